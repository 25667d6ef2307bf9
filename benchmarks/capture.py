"""What one hook costs: capture of a turn, whole process, synced, beside `python -c pass`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.clock import WARM, Row, Side, bare, child, in_turn, ratio, ways
from benchmarks.grounds import Grounds

BUDGET = 1.5
ANSWER = "I moved the token check into `auth/session.py`, and all 212 tests pass. Next: the refresh path.\n" * 12


def payload(folder: str) -> bytes:
    """A turn's end as a client sends it."""
    return json.dumps(
        {
            "session_id": "0f5a1c52-6b0c-4c55-9d5e-0d5c1f0a7a11",
            "transcript_path": f"{folder}/.client/0f5a1c52.jsonl",
            "cwd": folder,
            "hook_event_name": "Stop",
            "permission_mode": "default",
            "stop_hook_active": False,
            "last_assistant_message": ANSWER,
            "background_tasks": [],
        }
    ).encode()


def rows(grounds: Grounds) -> Iterator[Row]:
    """One row for each way to start."""
    folder = grounds.repository("capture", None)
    log = Path(folder, ".git", "gitledger", "wal", "main")
    log.mkdir(parents=True)
    text = payload(folder)
    commands = ways("hook", "generic", "turn")
    commands["python -I -m"] = [sys.executable, "-I", "-m", "gitledger", "hook", "generic", "turn"]
    sides = [Side(child(command, folder, text)) for command in (bare(), *commands.values())]
    base, *times = in_turn(sides, grounds.runs)
    logged = (log / "current.wal").read_bytes().count(b"\n")
    sent = len(commands) * (grounds.runs + WARM)
    if logged != sent:
        sys.exit(f"{logged} events were logged where {sent} were sent; see {os.path.dirname(log.parent)}/log")
    for way, took in zip(commands, times, strict=True):
        yield ratio(f"capture a turn, {way} / python -c pass", took, base, BUDGET)
