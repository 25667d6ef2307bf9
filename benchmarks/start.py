"""What a person waits for before anything happens: `--help` and `--version`, whole process."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clock import Row, Side, bare, child, in_turn, ratio, ways
from benchmarks.grounds import Grounds

BUDGET = 4.0


def rows(grounds: Grounds) -> Iterator[Row]:
    """One row for each word and way to start."""
    sides = [child(bare(), grounds.folder)]
    names = []
    for word in ("--help", "--version"):
        for way, command in ways(word).items():
            names.append(f"gitledger {word}, {way} / python -c pass")
            sides.append(child(command, grounds.folder))
    base, *times = in_turn([Side(side) for side in sides], grounds.runs)
    for name, took in zip(names, times, strict=True):
        yield ratio(name, took, base, BUDGET)
