"""What an agent waits for that gitledger runs within: a turn logged in its own process, what is asked of the program.

A turn is a prompt, one tool and an answer. The other side of it is as many lines of the same size, appended to a file
and synced by the same process: the least that anything can take that may not be lost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.capture import ANSWER
from benchmarks.clock import Row, Side, bare, child, in_turn, ratio, script
from benchmarks.grounds import Grounds
from gitledger import wal
from gitledger.clients.embedded import Embedded, find

TALK = "bench-1"
QUERY = "the token refresh path, and why a dead session is not renewed"
TURN = (
    ("prompt", {"session_id": TALK, "prompt": QUERY}),
    ("tool", {"session_id": TALK, "tool": "terminal", "commands": [{"command": "make", "exit": 0, "output": ANSWER}]}),
    ("turn", {"session_id": TALK, "answer": ANSWER, "files": ["auth/session.py"]}),
)


def rows(grounds: Grounds) -> Iterator[Row]:
    """The turn, then what is answered."""
    os.environ["PATH"] = f"{script().parent}{os.pathsep}{os.environ['PATH']}"
    here = opened(grounds.repository("hosts-turn", None), begin=True)
    log = Path(here.found.common, "gitledger", "wal", "main")
    ours, least = in_turn([Side(lambda: turn(here)), Side(appends(log))], grounds.runs)
    yield ratio("a turn logged in the agent's process / three lines appended and synced", ours, least)
    here = opened(grounds.ledger("hosts", 10))
    base, start, capsule, compact = in_turn(
        [
            Side(child(bare(), here.folder)),
            Side(asked(here, "start", "# gitledger briefing")),
            Side(lambda: told(here.run("capsule", "--query", QUERY).text, "[PROJECT LEDGER CAPSULE]")),
            Side(asked(here, "compact", "Checkpoint: C-"), before=lambda: turn(here)),
        ],
        grounds.runs,
    )
    yield ratio("a start's briefing, asked of the program / python -c pass", start, base)
    yield ratio("a request's capsule, asked of the program / python -c pass", capsule, base)
    yield ratio("a compaction's checkpoint, asked of the program / python -c pass", compact, base)


def opened(folder: str, *, begin: bool = False) -> Embedded:
    """The clone as an agent has it; `begin` makes as much of a ledger as logging asks for."""
    if begin:
        Path(folder, ".git", "gitledger", "wal", "main").mkdir(parents=True)
    here = find("bench-agent", folder)
    if here is None:
        sys.exit(f"{folder} has no ledger")
    return here


def turn(here: Embedded) -> None:
    """Log one."""
    for event, payload in TURN:
        here.log(event, payload)


def asked(here: Embedded, event: str, begins: str) -> Callable[[], object]:
    """The hook of an event; every other start is of another reason, or it would be the same one and print nothing."""
    count = iter(range(1 << 30))

    def ask() -> None:
        told(here.hook(event, {"session_id": TALK, "source": f"{next(count)}"}).text, begins)

    return ask


def told(text: str, begins: str) -> None:
    """End where the program said something else."""
    if not text.startswith(begins):
        sys.exit(f"the program said this in the place of {begins!r}:\n{text}")


def appends(log: Path) -> Callable[[], object]:
    """The turn's lines, as one `turn` leaves them, written to a file beside."""
    lines = [b"x" * len(line) + b"\n" for line in written(log)]
    path = log.parent.parent / "plain"

    def append() -> None:
        for line in lines:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, line)
            os.fdatasync(fd)
            os.close(fd)

    return append


def written(log: Path) -> list[bytes]:
    """The lines of one turn."""
    here = opened(str(log.parents[3]))
    turn(here)
    return (log / wal.CURRENT).read_bytes().splitlines()[-len(TURN) :]
