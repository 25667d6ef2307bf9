"""What one hook costs: capture of a turn, whole process, synced, beside `python -c pass`.

    python benchmarks/capture.py [--runs 60] [PROGRAM]

PROGRAM is the installed `gitledger`; by default the one beside this Python. Both sides run in turn in one loop,
by the same interpreter, with compiled files on both; what counts is the ratio, at most 1.5.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGET = 1.5
BOOT = "from gitledger.__main__ import main; main()"  # a shim may do this: older pips' scripts import `re`
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


def interpreter(program: Path) -> str:
    """The Python that the console script names in its first line."""
    first = program.read_bytes().split(b"\n", 1)[0]
    return os.fsdecode(first.removeprefix(b"#!").strip())


def main() -> int:
    """Print each side's median and minimum in ms and its ratio; 1 where the budget is missed."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    words.add_argument("program", nargs="?", type=Path, default=Path(sys.executable).with_name("gitledger"))
    words.add_argument("--runs", type=int, default=60)
    options = words.parse_args()
    program = options.program.absolute()
    python = interpreter(program)
    sides = {
        "python -c pass": [python, "-c", "pass"],
        "gitledger hook generic turn": [str(program), "hook", "generic", "turn"],
        "the same by python -I -c": [python, "-I", "-c", BOOT, "hook", "generic", "turn"],
        "the same by python -I -m gitledger": [python, "-I", "-m", "gitledger", "hook", "generic", "turn"],
    }
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GITLEDGER_", "GIT_"))}
    times: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "--quiet", folder], check=True, env=env)
        wal = Path(folder, ".git", "gitledger", "wal", "main")
        wal.mkdir(parents=True)
        text = payload(folder)
        for run in range(options.runs + 2):
            for name, command in sides.items():
                begun = time.perf_counter()
                subprocess.run(command, input=text, cwd=folder, env=env, check=True)
                if run >= 2:  # the first two compile and warm
                    times[name].append((time.perf_counter() - begun) * 1000)
        lines = (wal / "current.wal").read_bytes().count(b"\n")
        sent = (len(sides) - 1) * (options.runs + 2)
        if lines != sent:
            sys.exit(f"{lines} events were logged where {sent} were sent")
    base = times["python -c pass"]
    print(f"{options.runs} runs in turn, {python}, ms: median (minimum), ratio of medians (of minima)")
    ratios = []
    for name, took in times.items():
        median, least = statistics.median(took), min(took)
        ratios.append(median / statistics.median(base))
        print(f"{name:42} {median:6.1f} ({least:5.1f})  {ratios[-1]:.2f} ({least / min(base):.2f})")
    print(f"budget: the second line at most {BUDGET} x the first: {'kept' if ratios[1] <= BUDGET else 'MISSED'}")
    return int(ratios[1] > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
