"""Where benchmarks play: real histories in a sealed folder, and ledgers that are built quickly.

A ledger is built by the library itself, every event and commit through the same transaction as any other, with some
things left out, because they take minutes ten thousand times over and leave nothing behind in the ledger: fsync;
`git status` before each checkpoint (the position is taken once); the search for secrets in texts that hold none; and
ssh-keygen, in whose place a signature of the same form and length is made of random bytes. What is measured is then
done with all of them.
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from gitledger import discover, entries, ingest, layout, pins, signing, tasks, transaction, wal
from gitledger.derive import Facts
from gitledger.gitdir import GitDir
from gitledger.ledger import Ledger
from gitledger.view import View

DATA = Path(__file__).parent / "data"
Size = Literal["small", "medium", "large"]
HISTORY: Size = "medium"

TALK = (
    "moved the check into its own module, all tests pass, the refresh path is next; found that tokens are read twice, "
    "noted it as a question, and left the second reader as it was until somebody says why it is there"
)


@dataclass(frozen=True, slots=True)
class Grounds:
    """The scratch folder, how often short things are run, how large the large ledgers are, and whom to tell."""

    folder: str
    runs: int = 40
    long: bool = False
    say: Callable[[str], None] = print

    @property
    def checkpoints(self) -> int:
        """How many the large ledger has; ten times as many events."""
        return 10_000 if self.long else 500

    def repository(self, name: str, size: Size | None = HISTORY) -> str:
        """A new repository on `main`, with a real history checked out in it, or empty; one left there is removed."""
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        git(self.folder, "init", "--quiet", "--initial-branch=main", folder)
        git(folder, "config", "user.name", "Robin Bench")
        git(folder, "config", "user.email", "robin@example.invalid")
        if size is not None:
            unpack(size, folder)
        return folder

    def ledger(self, name: str, checkpoints: int) -> str:
        """A repository of its own with a ledger of so many checkpoints and ten times as many events, packed.

        It is copied from one that is built once; where the scratch folder is kept, the next run finds that one.
        """
        built = os.path.join(self.folder, f"ledger-{checkpoints}")
        if not os.path.exists(built):
            self.say(f"building a ledger of {checkpoints:,} checkpoints and {checkpoints * 10:,} events")
            begin(self.repository("building"))
            grow(os.path.join(self.folder, "building"), checkpoints, 9, self.say)
            os.rename(os.path.join(self.folder, "building"), built)
        folder = os.path.join(self.folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(built, folder, symlinks=True)
        settle(folder)
        believe(folder)
        return folder


def git(folder: str, *args: str, data: bytes | None = None) -> str:
    """What git printed; a failure stops the benchmark with git's own words."""
    done = subprocess.run(["git", *args], cwd=folder, input=data, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(args)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().strip()


def unpack(size: Size, folder: str) -> None:
    """Put a real history on `main` and check it out."""
    git(folder, "fast-import", "--quiet", data=lzma.decompress((DATA / f"{size}.fast-export.xz").read_bytes()))
    git(folder, "branch", "--quiet", "-M", "ref0", "main")
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    git(folder, "reset", "--quiet", "--hard")
    settle(folder)


def settle(folder: str) -> None:
    """Let git's index know the work tree: one as old as its files makes each later `git status` read them all."""
    time.sleep(1.1)
    git(folder, "update-index", "-q", "--really-refresh")
    git(folder, "status", "--porcelain")


# ── ledgers ──────────────────────────────────────────────────────────────────────────────────
def begin(folder: str) -> None:
    """A ledger whose project has a task under way, the other records, a checkpoint and a handover."""
    discover.init(folder, "main", "Shop")
    ledger = discover.open(folder)
    session = ledger.start_session("generic", "first", pid=os.getpid())
    criteria = ("a token is renewed before it ends", "a dead token says so")
    goal = "A session outlives its token"
    task = ledger.record(lambda v, h: tasks.add(v, h, "Token refresh", goal=goal, accept=criteria))
    ledger.record(lambda v, h: (None, tasks.start(v, h, task)[0]))
    ledger.record(lambda v, h: (None, tasks.set_next(v, h, task, "Write the refresh path in auth/session.py")))
    ledger.record(lambda v, h: entries.decide(v, h, "Tokens are opaque", "Their form is the server's", task, None))
    ledger.record(lambda v, h: entries.ask(v, h, "May a dead token be renewed?", task))
    ledger.checkpoint()
    ledger.end_session(session, "exit")
    ledger.desk.store.close()


def grow(folder: str, checkpoints: int, turns: int, say: Callable[[str], None] = lambda text: None) -> None:
    """Add so many checkpoints, with so many journalled turns before each; then git packs what that left.

    Every 50 a session ends with a handover, every 100 a task is done and the next begins. The last two checkpoints
    are made with nothing left out.
    """
    opened = discover.open(folder, driver="pygit2")
    ledger = Still(opened)
    begun = time.monotonic()
    session = ""
    with hurried(opened):
        for n in range(max(checkpoints - 2, 0)):
            if n % 50 == 0:
                if session:
                    ledger.end_session(layout.session_key("generic", session), "exit")
                session = f"session-{n // 50}"
            if n % 100 == 99:
                turn_over(ledger, f"Part {n // 100 + 2} of the work")
            journal(ledger, session, turns, n)
            ledger.checkpoint()
            if n % 1000 == 999:
                say(f"{n + 1:,} checkpoints in {time.monotonic() - begun:.0f} s")
                pack(folder)  # loose objects by the hundred thousand would slow the rest down
    for n in range(min(checkpoints, 2)):
        journal(opened, "last", turns, n)
        opened.checkpoint()
    opened.end_session(layout.session_key("generic", "last"), "exit")
    opened.desk.store.close()
    pack(folder)


def believe(folder: str) -> None:
    """Let this clone have verified the tip, as it has after any briefing: stand-ins would be checked each time anew."""
    home, tip = discover.open(folder).desk.home, git(folder, "rev-parse", "refs/heads/ledger/main")
    mine = pins.load(home.pins, home.name)
    if mine is None:
        raise SystemExit(f"{home.pins} has no pins: remove {folder} and run again")
    pins.save(home.pins, home.name, mine.remember(tip))


def pack(folder: str) -> None:
    """What `git gc` does, now."""
    git(folder, "gc", "--quiet", "--prune=now")


def turn_over(ledger: Ledger, title: str) -> None:
    """The active task done, and another one begun."""
    view = ledger.view()
    old = tasks.active(view, ledger.desk.writer.id, ledger.gitdir.worktree)
    if old:
        ledger.record(lambda v, h: (None, tasks.done(v, h, old, "the benchmark says so")))
    criteria = ("it works", "it is fast")
    new = ledger.record(lambda v, h: tasks.add(v, h, title, goal=text(len(title), 20), accept=criteria))
    ledger.record(lambda v, h: (None, tasks.start(v, h, new)[0]))
    ledger.record(lambda v, h: (None, tasks.set_next(v, h, new, "Write the next part in auth/session.py")))


def journal(ledger: Ledger, session: str, turns: int, salt: int = 0) -> None:
    """Log turns as a client's hooks do."""
    for n in range(turns):
        said = {"session_id": session, "prompt": text(salt * turns + n, 12), "answer": text(salt * turns + n + 7, 30)}
        now = ledger.desk.mint.now_ms()
        wal.append(ledger.desk.home.wal, "generic", "turn", json.dumps(said).encode(), now_ms=now, rand=os.urandom(10))


def text(salt: int, words: int) -> str:
    """Some words, others for another `salt`."""
    talk = TALK.split()
    return f"{salt}: " + " ".join(talk[(salt * 7 + n * (salt % 11 + 1)) % len(talk)] for n in range(words))


class Still(Ledger):
    """A ledger whose work tree is taken to stand still."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger.desk, ledger.gitdir)
        self._here = Facts(ledger.position())

    def facts(self, view: View, place: GitDir | None = None) -> Facts:
        """Where the work tree stood."""
        return self._here


@contextmanager
def hurried(ledger: Ledger) -> Iterator[None]:
    """Without fsync and ssh-keygen; `ledger` is one on pygit2, opened before."""
    import pygit2

    signed = ledger.desk.writer.key.sign(b"any")
    stand_ins: tuple[tuple[ModuleType, str, Callable[..., object]], ...] = (
        (os, "fsync", lambda fd: None),
        (signing, "sign", lambda payload, key: stand_in(signed)),
        (transaction, "verify", lambda payload, armored, public_key, principal, meanwhile: meanwhile()),
        (ingest, "redact_json", lambda value, *_: value),
    )
    real = [getattr(module, name) for module, name, _ in stand_ins]
    for module, name, other in stand_ins:
        setattr(module, name, other)
    pygit2.settings.enable_fsync_gitdir(False)
    try:
        yield
    finally:
        for (module, name, _), was in zip(stand_ins, real, strict=True):
            setattr(module, name, was)
        pygit2.settings.enable_fsync_gitdir(True)


def stand_in(signed: str) -> str:
    """A signature of the same form and length as `signed`, which verifies nothing."""
    first, *middle, last = signed.strip().split("\n")
    blob = base64.b64decode("".join(middle))[:-64] + os.urandom(64)
    body = base64.b64encode(blob).decode()
    return "\n".join([first, *(body[at : at + 70] for at in range(0, len(body), 70)), last, ""])
