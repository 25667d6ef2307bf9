"""Which commits one tip of a ledger has and another one lacks, exactly, and by reading little more than those.

`git rev-list` goes by the commits' dates and then counts too many where clocks disagree, which on several machines they
do. A ledger has a better order: no commit's highest lamport is below that of one of its parents. So what the known tip
reaches is read down to where the other one's news ends, and no further.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

from gitledger import codec, layout, objects
from gitledger.errors import BadData
from gitledger.model import Oid
from gitledger.objects import Get
from gitledger.values import dataclass, field

_LAMPORT = re.compile(rb'\A\{\n "format": [0-9]{1,9},\n "lamport": ([0-9]{1,16}),\n')  # as a manifest begins


@dataclass(frozen=True, slots=True)
class Beyond:
    """The commits that are new, parents before children, and the known ones that they stand on."""

    new: tuple[Oid, ...] = ()
    known: tuple[Oid, ...] = ()


def beyond(get: Get, tip: Oid, known: Oid | None) -> Beyond:
    """The commits that `tip` reaches and `known` does not; all of them where that is none.

    `known` and what is behind it must have been found good; of the others a false lamport changes nothing. Raises
    MissingObject where a commit is not here.
    """
    reading = _Reading(get)
    behind = _Front(reading)
    if known:
        behind.add(known)
    ahead = _Front(reading)
    ahead.add(tip)
    there: set[Oid] = set()
    new: dict[Oid, tuple[Oid, ...]] = {}
    standing: dict[Oid, None] = {}
    while ahead:
        # A commit of the known side is found before it is judged: all on the way to it are at least as high.
        while behind and behind.highest >= ahead.highest:
            oid = behind.take()
            there.add(oid)
            for parent in reading.parents(oid):
                behind.add(parent)
        oid = ahead.take()
        if oid in there:
            standing[oid] = None
            continue
        new[oid] = reading.parents(oid)
        for parent in new[oid]:
            ahead.add(parent)
    return Beyond(tuple(_in_order(tip, new)), tuple(standing))


def count(get: Get, tip: Oid, known: Oid | None) -> int:
    """How many commits `tip` reaches that `known` does not; all of them where that is none."""
    return len(beyond(get, tip, known).new)


def _in_order(tip: Oid, new: dict[Oid, tuple[Oid, ...]]) -> Iterator[Oid]:
    seen: set[Oid] = set()
    pending: list[tuple[Oid, bool]] = [(tip, False)]
    while pending:
        oid, ready = pending.pop()
        if ready:
            yield oid
        elif oid in new and oid not in seen:
            seen.add(oid)
            pending.append((oid, True))
            pending += [(parent, False) for parent in reversed(new[oid])]


@dataclass(slots=True)
class _Reading:
    """Commits' parents and heights, each read once."""

    get: Get
    _parents: dict[Oid, tuple[Oid, ...]] = field(default_factory=dict)
    _heights: dict[Oid, int] = field(default_factory=dict)

    def parents(self, oid: Oid) -> tuple[Oid, ...]:
        self._read(oid)
        return self._parents[oid]

    def height(self, oid: Oid) -> int:
        self._read(oid)
        return self._heights[oid]

    def _read(self, oid: Oid) -> None:
        if oid in self._parents:
            return
        thing = self.get(oid)
        if thing.kind != "commit":
            raise BadData(f"{oid} is a {thing.kind} where a commit is named: run `git fsck` to see what is hurt")
        commit = objects.parse_commit(thing.data)
        self._parents[oid], self._heights[oid] = commit.parents, self._lamport(commit.tree)

    def _lamport(self, tree: Oid) -> int:
        try:
            data = objects.read(self.get, tree, layout.MANIFEST)
            found = _LAMPORT.search(data or b"")
            if found is not None:  # without the rest, which is a line or more for each writer
                return int(found[1])
            lamport = codec.parse(data, layout.MANIFEST).get("lamport") if data else 0
        except (BadData, AttributeError):
            return 0  # nobody's who was found good
        return lamport if type(lamport) is int else 0


@dataclass(slots=True)
class _Front:
    """Commits to be looked at, the highest first, each once."""

    reading: _Reading
    _heap: list[tuple[int, Oid]] = field(default_factory=list)
    _added: set[Oid] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def highest(self) -> int:
        return -self._heap[0][0]

    def add(self, oid: Oid) -> None:
        if oid not in self._added:
            self._added.add(oid)
            heapq.heappush(self._heap, (-self.reading.height(oid), oid))

    def take(self) -> Oid:
        return heapq.heappop(self._heap)[1]
