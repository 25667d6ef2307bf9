"""What git's hooks ask the whole program for: the task that a commit's trailer names, and a push behind the user's own.

Both keep silent about whatever goes wrong, which is a line in the log: git's work is not theirs to hold up.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gitledger import capture, gitdir

if TYPE_CHECKING:
    from gitledger.ledger import Ledger

EVENTS = ("trailer", "push")
OTHERS_COMMITS = ("cherry-pick", "rebase", "revert")
"""What is under way when a message is another commit's, whose task need not be this one."""
PATIENCE = 600.0
"""Seconds that the user's own push may take before the ledger's begins beside it."""
LOOK = 0.05


def main(words: list[str]) -> int | None:
    """Do what `-C PATH hook git EVENT` asks for and return 0; None where the words are others."""
    if words[:1] != ["-C"] or words[2:4] != ["hook", "git"] or len(words) != 5 or words[4] not in EVENTS:
        return None
    if capture.silenced():
        return 0
    found = None
    try:
        # A hook's GIT_DIR may be `.git`, which names no place once this process has gone elsewhere.
        found = gitdir.find(words[1])
        if words[4] == "push":
            _behind(found)
        elif found is not None and gitdir.ledgers(found.common):
            text = task(_opened(found))
            os.write(1, text.encode())
    except (Exception, KeyboardInterrupt) as e:
        if found is not None and os.path.isdir(gitdir.state(found.common)):
            capture.log(found.common, f"hook git {words[4]}: {type(e).__name__}: {e}")
    return 0


def task(ledger: Ledger) -> str:
    """The number of the task that this work tree is at, as in `T-0007`; "" for none, and while others' commits come."""
    from gitledger import tasks, worktree

    if worktree.operation(ledger.gitdir) in OTHERS_COMMITS:
        return ""
    view = ledger.view()
    key = tasks.active(view, ledger.desk.writer.id, ledger.gitdir.worktree)
    return view.name(key) if key else ""


def push(ledger: Ledger) -> bool:
    """Push the ledger to its remote, where `remote.push` says so; the outcome lies where any sync leaves it."""
    from functools import partial

    from gitledger import discover, remote, sync, syncing

    config = ledger.desk.config.remote
    if not config.push or not config.name:
        return False
    reopen = partial(discover.open_store, ledger.gitdir, ledger.desk.home.name)
    ways = syncing.Ways(pull=False, deadline=config.deadline, reopen=reopen)
    sync.sync(ledger, remote.read(config.name), ways)
    return True


def _behind(found: gitdir.GitDir | None) -> None:
    said, _ = capture.read_stdin(1 << 12, capture.DEADLINE)
    try:
        os.setsid()  # the terminal's interrupt is for the push of the user's, and so is its end
    except PermissionError:
        pass  # it leads a group already
    if found is None or not gitdir.ledgers(found.common) or not _opened(found).desk.config.remote.push:
        return
    from gitledger import process

    pid = said.decode("ascii", "replace").partition("pid ")[2].strip()
    theirs = process.named(int(pid)) if pid.isdigit() else None
    until = time.monotonic() + PATIENCE
    while theirs and process.alive(theirs) and time.monotonic() < until:
        time.sleep(LOOK)
    push(_opened(found))


def _opened(found: gitdir.GitDir) -> Ledger:
    from gitledger import discover

    return discover.open(found.top or found.common)
