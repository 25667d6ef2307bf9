"""What every benchmark shares: sides timed in turn by one clock, and the rows that they end in.

The two sides of a ratio run alternately in one loop, so that whatever else the machine does meets both alike.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BOOT = "from gitledger.__main__ import main; import sys; sys.exit(main())"
"""What a shim may run in place of the console script."""
WARM = 2
"""Rounds before the first that counts: they compile, and fill the system's caches."""
REST = 0.005
"""Seconds between what is not counted and what is.

On a busy machine a process that has just worked for long is soon made to wait for others: where one side's preparation
is longer, that would be counted as its own, and was: 6.8 ms beside 3.5 of which 3.3 and 3.0 were work.
"""


# ── timing ───────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Side:
    """One thing to time; `before` runs ahead of each round and is not counted."""

    run: Callable[[], object]
    before: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Times:
    """What one side took, in milliseconds."""

    all: tuple[float, ...]

    @property
    def median(self) -> float:
        """The round in the middle."""
        return statistics.median(self.all)

    @property
    def least(self) -> float:
        """The quickest round: what it costs when nothing else runs."""
        return min(self.all)

    def __str__(self) -> str:
        return f"{self.median:.1f} ({self.least:.1f})"


def in_turn(sides: Sequence[Side], runs: int) -> list[Times]:
    """What each side took in `runs` rounds, each in an order of its own.

    Another order each time, because what comes after a short side finds a cooler processor than what comes after a long
    one; the same orders in every run.
    """
    took: list[list[float]] = [[] for _ in sides]
    orders = random.Random(runs)
    for round_ in range(runs + WARM):
        for at in orders.sample(range(len(sides)), len(sides)):
            side = sides[at]
            if side.before is not None:
                side.before()
                time.sleep(REST)
            begun = time.perf_counter()
            side.run()
            if round_ >= WARM:
                took[at].append((time.perf_counter() - begun) * 1000)
    return [Times(tuple(times)) for times in took]


def child(command: Sequence[str], cwd: str, payload: bytes = b"") -> Callable[[], object]:
    """A whole process, from its start to its end; one that fails stops the benchmark."""

    def run() -> None:
        done = subprocess.run(command, input=payload, cwd=cwd, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} exited {done.returncode}: {done.stderr.decode(errors='replace').strip()}")

    return run


# ── the programs that are timed ──────────────────────────────────────────────────────────────
def bare() -> list[str]:
    """What every start is held against."""
    return [sys.executable, "-c", "pass"]


def script() -> Path:
    """The console script beside this Python; an error where there is none."""
    path = Path(sys.executable).with_name("gitledger")
    if not path.exists():
        sys.exit(f"{path} does not exist: install gitledger into this Python, or run ./dev bench")
    return path


def ways(*words: str) -> dict[str, list[str]]:
    """Each way to run the program with `words`: the installed script, and what a shim may do."""
    return {"script": [str(script()), *words], "python -I -c": [sys.executable, "-I", "-c", BOOT, *words]}


def seal(home: str) -> None:
    """Let this process and its children see an empty home, no configuration, and a Python as users start it.

    PYTHON* goes too: PYTHONDONTWRITEBYTECODE, which some shells set, makes every start compile everything.
    """
    dropped = ("PYTHON", "GIT_", "GITLEDGER_", "XDG_", "SSH_", "LC_", "LANG")
    for name in [name for name in os.environ if name.startswith(dropped)]:
        del os.environ[name]
    os.environ |= {"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


# ── rows ─────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `reached` is None where there is no budget."""

    what: str
    ours: str
    theirs: str
    figure: str
    budget: str
    reached: bool | None

    def cells(self) -> tuple[str, ...]:
        """The line's texts, in the table's order."""
        said = {True: "yes", False: "no", None: "–"}[self.reached]
        return (self.what, self.ours, self.theirs, self.figure, self.budget, said)


HEAD = ("what", "ours", "theirs", "figure", "budget", "reached")


def ratio(what: str, ours: Times, theirs: Times, at_most: float | None = None) -> Row:
    """Ours by theirs, of medians and (in brackets) of minima; what counts is the first."""
    figure = ours.median / theirs.median
    return Row(
        what,
        str(ours),
        str(theirs),
        f"{figure:.2f} × ({ours.least / theirs.least:.2f})",
        f"{at_most:g} ×" if at_most else "–",
        figure <= at_most if at_most else None,
    )


def beside(what: str, ours: Times, theirs: Times, at_most: float) -> Row:
    """What ours takes more than theirs, in ms."""
    figure = ours.median - theirs.median
    least = ours.least - theirs.least
    return Row(what, str(ours), str(theirs), f"+{figure:.1f} ms (+{least:.1f})", f"+{at_most:g} ms", figure <= at_most)


def amount(what: str, value: float, unit: str, at_most: float | None = None, theirs: str = "–") -> Row:
    """A size, by itself."""
    return Row(
        what,
        f"{value:,.1f} {unit}",
        theirs,
        f"{value / at_most:.2f} ×" if at_most else "–",
        f"{at_most:g} {unit}" if at_most else "–",
        value <= at_most if at_most else None,
    )


def table(rows: Iterable[Row]) -> str:
    """Rows as a Markdown table, its columns aligned."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(HEAD))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    shown = [f"| {' | '.join(line)} |" for line in padded]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]])


def machine(folder: str, environ: Mapping[str, str] = os.environ) -> str:
    """What the figures were taken on: cores, load, versions, the disk's file system."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    version = ".".join(str(part) for part in sys.version_info[:3])
    return (
        f"{os.cpu_count()} cores, load {load}, {sys.platform}, Python {version}, git {git}, {file_system(folder)}\n"
        f"interpreter {sys.executable}, script {script()}"
    )


def file_system(folder: str) -> str:
    """The kind of file system that `folder` is on, where the system tells: a sync costs what it costs there."""
    found = ("", "unknown file system")
    try:
        with open("/proc/self/mounts", encoding="utf-8") as mounts:  # Linux only
            for line in mounts:
                _, place, kind, *_ = line.split()
                if (folder + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(found[0]):
                    found = (place, kind)
    except OSError:
        pass
    return found[1]
