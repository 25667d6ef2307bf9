"""What an agent's hooks add to a turn (its prompt, one tool, its end) as the agent runs them, beside doing nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.capture import payload
from benchmarks.clock import WARM, Row, Side, child, in_turn, ratio, script
from benchmarks.grounds import Grounds
from gitledger import shims

EVENTS = ("prompt", "tool", "turn")


def rows(grounds: Grounds) -> Iterator[Row]:
    """A turn in a clone with a ledger, and one of somebody who has no gitledger."""
    os.environ["PATH"] = f"{script().parent}{os.pathsep}{os.environ['PATH']}"
    ours, theirs = (grounds.repository(name, None) for name in ("turn", "turn-without"))
    log = Path(ours, ".git", "gitledger", "wal", "main")
    log.mkdir(parents=True)
    nothing = Side(_hooks(ours, [":"] * len(EVENTS)))
    scripts = [shims.script("claude-code", event) for event in EVENTS]
    hooked, without = Side(_hooks(ours, scripts)), Side(_hooks(theirs, [f"PATH=/nowhere; {one}" for one in scripts]))
    took, spared, least = in_turn([hooked, without, nothing], grounds.runs)
    logged = (log / "current.wal").read_bytes().count(b"\n")
    sent = len(EVENTS) * (grounds.runs + WARM)
    if logged != sent:
        sys.exit(f"{logged} events were logged where {sent} were sent; see {log.parent.parent}/log")
    yield ratio("a turn's three hooks / three shells that do nothing", took, least)
    yield ratio("the same where there is no gitledger / three shells", spared, least)


def _hooks(folder: str, scripts: list[str]) -> Callable[[], object]:
    text = payload(folder)
    runs = [child(["/bin/sh", "-c", script], folder, text) for script in scripts]
    return lambda: [run() for run in runs]
