"""Evidence as it is gathered: a command that was run, a commit that exists, a file with its content's id."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Sequence

from gitledger import gitcli, results, worktree
from gitledger.errors import BadData
from gitledger.gitdir import GitDir
from gitledger.model import Json
from gitledger.redact import ending, redact, within
from gitledger.worktree import Look

OUTPUT_KEPT = 4_000
"""Characters of a command's output that are kept: the last ones, where results stand."""
OUTPUT_READ = 1 << 18
"""Bytes of a command's output that are held while it runs: its end."""
COMMAND_KEPT = 1_000
CHANGED_KEPT = 40
"""Paths that differed from the head of which a run keeps the content's id; with more it stands for that tree alone."""
MADE_KEPT = 40
DEADLINE = 3600.0
STOPPED = 124
"""The exit status of a run that its deadline ended, as timeout(1) has it."""
LOOK = 0.05


def run(
    gitdir: GitDir,
    command: str,
    look: Look,
    *,
    covers: Sequence[str] = (),
    junit: str | None = None,
    deadline: float = DEADLINE,
) -> dict[str, Json]:
    """Run `command` by the user's shell in the work tree's root: a piece of evidence of what that showed.

    It says the exit status (of a signal 128 and its number), the duration (ms), the last output, test results that
    stand in it or in the file `junit` that it wrote, and the content that it ran on, which is `look`. A person or an
    agent asked for it by name; nothing that a ledger carries is ever run.
    """
    began = time.monotonic()
    status, tail, cut = _ran(gitdir.top, command, deadline)
    took = int((time.monotonic() - began) * 1000)
    text = tail.decode("utf-8", "replace")
    clean = within(command, COMMAND_KEPT)
    piece: dict[str, Json] = {
        "kind": "run",
        "command": clean,
        "exit": status,
        "ms": took,
        "output": ending(text, OUTPUT_KEPT, cut=cut),
        "head": look.position.head,
        "dirty": look.position.dirty,
        "fingerprint": look.position.fingerprint,
    }
    if clean != command:
        piece["whole"] = False  # what would be run again is another command
    if covers:
        piece["covers"] = list(covers)
    if look.position.dirty and (changed := _changed(piece, look)) is not None:
        piece["changed"] = changed
    if left := _made(gitdir, look):
        piece["made"] = left
    if found := (*_report(gitdir.top, junit, time.time() - took / 1000), *results.read(text)):
        piece["results"] = [one.value() for one in found]
    return piece


def _report(top: str, name: str | None, since: float) -> tuple[results.Result, ...]:
    """What a JUnit report counts; BadData where none was written since a time."""
    if name is None:
        return ()
    try:
        fd = os.open(os.path.join(top, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            text = file.read(results.XML_READ + 1).decode("utf-8", "replace")
    except (OSError, ValueError) as e:
        raise BadData(f"{name[:80]!r} cannot be read, so nothing was recorded; name the file that CMD writes") from e
    if found.st_mtime < since - 2:  # the clocks of file systems are coarse
        raise BadData(f"{name[:80]!r} is older than the run, so nothing was recorded; name the file that CMD writes")
    counted = results.xml(text)
    if counted is None:
        raise BadData(f"{name[:80]!r} holds no JUnit report, so nothing was recorded; name the file that CMD writes")
    return (counted,)


def _ran(top: str, command: str, deadline: float) -> tuple[int, bytes, bool]:
    """Exit status, the end of the output, and whether there was more before it."""
    # A session of its own, so that a deadline ends it with all its children.
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=top,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in gitcli.KEPT},
    )
    assert child.stdout is not None  # noqa: S101 (asked for)
    os.set_blocking(child.stdout.fileno(), False)
    until = time.monotonic() + deadline
    tail, cut, stopped = b"", False, False
    try:
        with selectors.DefaultSelector() as pipe:
            pipe.register(child.stdout, selectors.EVENT_READ)
            ended = over = False
            # What it left in the background may hold the pipe: once it has ended, only what is there is read.
            while not over:
                ended = child.poll() is not None
                data = os.read(child.stdout.fileno(), 1 << 16) if pipe.select(0 if ended else LOOK) else None
                if data:
                    tail += data
                    if len(tail) > 2 * OUTPUT_READ:
                        tail, cut = tail[-OUTPUT_READ:], True
                elif data == b"":
                    pipe.unregister(child.stdout)
                    child.wait(max(until - time.monotonic(), 0))
                    over = True
                over = over or (ended and data is None)
                if time.monotonic() > until and not over:
                    raise subprocess.TimeoutExpired(command, deadline)
    except subprocess.TimeoutExpired:
        stopped = True
        tail += f"\n[stopped after {deadline:g} s]\n".encode()
        gitcli.kill(child)
    except BaseException:
        gitcli.kill(child)
        raise
    finally:
        child.stdout.close()
    status = STOPPED if stopped else child.returncode
    return (status if status >= 0 else 128 - status), tail, cut


def _changed(piece: dict[str, Json], look: Look) -> list[Json] | None:
    """The content of what differs from the head and the run depends on; None where that is not exact, or is much."""
    from gitledger import proof

    differs = look.differs
    if differs is None:
        return None
    rows: list[Json] = [{"path": p, "blob": oid} for p, oid in sorted(differs.items()) if proof.depends(piece, p)]
    return rows if len(rows) <= CHANGED_KEPT and all(_is_text(row["path"]) for row in rows) else None


def _made(gitdir: GitDir, look: Look) -> list[str]:
    """Untracked files and folders that were not there before the run, such as caches that nobody ignores."""
    if look.differs is None:
        return []
    before = set(look.differs)
    folders = {f"{path.rpartition('/')[0]}/" for path in before}
    found = []
    held = []
    for path in worktree.untracked(gitdir):
        if path.endswith("/") and any(one.startswith(path) for one in before):
            held.append(path)
        elif path not in before:
            found.append(path)
    for path in worktree.untracked(gitdir, held) if held else ():
        folder = f"{path.rpartition('/')[0]}/"
        if path not in before:
            found.append(path if any(one.startswith(folder) for one in folders) else folder)
    return [path for path in dict.fromkeys(found) if _is_text(path)][:MADE_KEPT]


def _is_text(path: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in path)


def commit(gitdir: GitDir, rev: str) -> dict[str, Json]:
    """A commit as evidence; raise BadData for one that does not exist here."""
    oid = worktree.commit_exists(gitdir, rev)
    if oid is None:
        raise BadData(f"no commit {rev[:60]!r} in this repository; evidence must name one that exists")
    return {"kind": "commit", "commit": oid}


def paths(gitdir: GitDir, names: Sequence[str]) -> dict[str, Json]:
    """Files of the work tree as one piece of evidence, each with its blob id; raise BadData where one is none."""
    inside = list(dict.fromkeys(placed(gitdir, name) for name in names))
    blobs = worktree.blob_ids(gitdir, inside)
    for name in inside:
        if blobs[name] is None:
            raise BadData(f"no file {name[:80]!r} in this work tree; evidence must name one that exists")
    first, *others = inside
    more: dict[str, Json] = {"more": [{"path": p, "blob": blobs[p]} for p in others]} if others else {}
    return {"kind": "path", "path": first, "blob": blobs[first], **more}


def path(gitdir: GitDir, name: str) -> dict[str, Json]:
    """A file of the work tree as evidence, with its blob id; raise BadData where there is none."""
    return paths(gitdir, [name])


def covered(gitdir: GitDir, names: Sequence[str]) -> list[str]:
    """Files and folders that a run depends on, from the work tree's root; raise BadData where one is not there."""
    inside = list(dict.fromkeys(placed(gitdir, name) for name in names))
    for name in inside:
        if not os.path.lexists(os.path.join(gitdir.top, name)):
            raise BadData(f"nothing is at {name[:80]!r} in this work tree; --covers names what the command depends on")
        if not worktree.seen(gitdir, name):
            raise BadData(
                f"git ignores what is at {name[:80]!r}, so a change there would not be seen; name what git knows, or "
                f"give such a file with --path"
            )
        if redact(name) != name:
            raise BadData("a path after --covers looks like a secret and cannot be kept; name its folder instead")
    return inside


def placed(gitdir: GitDir, name: str) -> str:
    """A path as a person gave it, from the work tree's root; raise BadData where it lies outside."""
    full = os.path.realpath(os.path.join(os.getcwd(), name))
    inside = os.path.relpath(full, os.path.realpath(gitdir.top))
    if inside == ".." or inside.startswith("../"):
        raise BadData(f"{name[:80]!r} is outside of this work tree; evidence is a file of the project")
    return inside
