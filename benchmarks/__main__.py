"""Run benchmarks and print their table: `./dev bench [NAMES]`, or `python -m benchmarks [NAMES]`."""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks import clock

NAMES = (
    "capture", "turn", "hosts", "githooks", "start", "briefing", "capsule", "checkpoint", "append", "size", "verify",
    "sync",
)  # fmt: skip
LONG = ("fleet", "recall")
"""Run only where they are named."""


def main() -> None:
    """Print one table of the benchmarks that were asked for; where none was, of all but the long ones."""
    words = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    words.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(NAMES)}; or {', '.join(LONG)}")
    words.add_argument("--runs", type=int, default=40, help="rounds of each short thing (40)")
    words.add_argument(
        "--long", action="store_true", help="10,000 checkpoints and 100,000 events instead of 500 and 5,000"
    )
    words.add_argument("--keep", metavar="FOLDER", help="play there, leave it, and use what an earlier run built there")
    options = words.parse_args()
    unknown = [name for name in options.names if name not in NAMES + LONG]
    if unknown:
        words.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(NAMES + LONG)}")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        play(os.path.realpath(options.keep), options)
    else:
        with tempfile.TemporaryDirectory(prefix="gitledger-bench-") as folder:
            play(os.path.realpath(folder), options)


def play(folder: str, options: argparse.Namespace) -> None:
    """Run what was asked for in a folder, and print the table."""
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    clock.seal(home)
    package = import_module("gitledger").__file__ or ""
    compileall.compile_dir(os.path.dirname(package), quiet=1)  # as an installer does
    from benchmarks.grounds import Grounds

    grounds = Grounds(folder, options.runs, options.long, lambda text: print(text, file=sys.stderr, flush=True))
    begun = time.monotonic()
    rows = []
    before = clock.machine(folder)
    for name in options.names or NAMES:
        grounds.say(f"{name} …")
        rows += list(import_module(f"benchmarks.{name}").rows(grounds))
    print(f"{before}\ngitledger from {Path(package).parent}; {options.runs} rounds in turn, ms: median (minimum)\n")
    print(clock.table(rows))
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"\n{time.monotonic() - begun:.0f} s, load at the end {load}; budgets inform, nothing fails")


if __name__ == "__main__":
    main()
