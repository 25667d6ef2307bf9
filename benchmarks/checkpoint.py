"""What a compaction waits for: a checkpoint, whole process, signed, synced and read back.

Beside it the same by stock git: three blobs, a tree and a signed commit, the ref moved by compare-and-swap, every
child with `core.fsync=all`. Stock git reads nothing back, and `mktree` syncs nothing whatever it is told (git 2.39).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.clock import Row, Side, bare, child, in_turn, ratio, ways
from benchmarks.grounds import HISTORY, Grounds, git, journal, text
from gitledger import discover, signing

BUDGET = 3.0
GROWTH = 1.2


@dataclass(slots=True)
class Stock:
    """A branch in `folder` that git's own plumbing adds signed commits to."""

    folder: str
    key: str
    ref: str = "refs/heads/stock"
    tip: str = ""
    _count: Iterator[int] = field(default_factory=itertools.count)

    def commit(self) -> None:
        """Six children: three blobs, a tree, a signed commit, the ref."""
        n = next(self._count)
        blobs = [text(n * 3 + part, 300).encode() for part in range(3)]
        oids = [self._git("hash-object", "-w", "--stdin", data=blob) for blob in blobs]
        tree = self._git("mktree", data="".join(f"100644 blob {oid}\t{oid}\n" for oid in oids).encode())
        parents = ["-p", self.tip] if self.tip else []
        new = self._git("commit-tree", "-S", *parents, "-m", f"checkpoint {n}", tree)
        self._git("update-ref", self.ref, new, self.tip or "0" * 40)
        self.tip = new

    def _git(self, *args: str, data: bytes = b"") -> str:
        signed = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={self.key}")
        return git(self.folder, "-c", "core.fsync=all", *signed, *args, data=data)


def rows(grounds: Grounds) -> Iterator[Row]:
    """One row for each way to start, then the large ledger beside the small one."""
    folders = {way: grounds.ledger(f"checkpoint-{n}", 10) for n, way in enumerate(ways())}
    large = grounds.ledger("checkpoint-large", grounds.checkpoints)
    stock = Stock(grounds.repository("checkpoint-stock"), signing.default_key(os.environ))
    commands = ways("checkpoint")
    sides = [Side(child(bare(), large)), Side(stock.commit)]
    for way, folder in [*folders.items(), ("script", large)]:
        sides.append(Side(child(commands[way], folder), before=Turn(folder).log))
    base, theirs, script, isolated, grown = in_turn(sides, grounds.runs)
    yield ratio(f"checkpoint, {HISTORY} history, script / stock git", script, theirs, BUDGET)
    yield ratio(f"checkpoint, {HISTORY} history, python -I -c / stock git", isolated, theirs, BUDGET)
    yield ratio("checkpoint, script / python -c pass", script, base)
    yield ratio(f"checkpoint, {grounds.checkpoints:,} checkpoints / 10 checkpoints", grown, script, GROWTH)


class Turn:
    """One turn to be logged before each checkpoint: without one, there is little to make a checkpoint of."""

    def __init__(self, folder: str) -> None:
        self._ledger = discover.open(folder)
        self._count = itertools.count(1_000_000)

    def log(self) -> None:
        """Log another turn."""
        journal(self._ledger, "measured", 1, next(self._count))
