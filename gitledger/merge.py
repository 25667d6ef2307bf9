"""Two states of one ledger made one: each writer's journal whole, and the tree that all events together make.

The tree of a merge follows from the events alone. So whoever merges, in whatever order, comes to the same tree, and a
merge adds no event of its own. Cost follows what one side has and the other lacks, not the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gitledger import audit, codec, layout, objects, reading
from gitledger.errors import BadData, NotAllowed
from gitledger.folders import Folders
from gitledger.model import Change, Field, Json, Key, Oid, Stamp
from gitledger.objects import FOLDER, Get, Object, TreeEntry
from gitledger.values import dataclass, field

MOST_CONFLICTS = 100
"""Fields set on both sides that one merge names; what is set is kept, however many they are."""

_JUDGED = frozenset("TDBQAN")
_MAY_SAY = re.compile(rb'"(?:[TDBQAN]-[0-9]+@[a-z0-9]+|worktree:[^"]+|project|config)":')  # a key of what is judged
_MECHANICAL = frozenset(("at", "by", "slug", "writer", "checkpoint", "missing", "links"))


class Forked(NotAllowed):
    """One writer's journal goes on in two ways: its id is in use in two clones at once. Both are kept."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that both sides set, not knowing of each other: the later stamp shows, the other is kept here."""

    key: Key
    field: str
    shown: Stamp
    lost: Stamp
    value: Json


@dataclass(frozen=True, slots=True)
class Apart:
    """What both sides did, not knowing of each other: fields set twice; tasks that two writers became active on."""

    conflicts: tuple[Conflict, ...] = ()
    together: tuple[tuple[Key, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged tree, the objects that it needs and the store lacks, how many events each side had, and more.

    `ours` is what the other side lacked, `theirs` what this one did.
    """

    tree: Oid
    made: tuple[tuple[Oid, Object], ...]
    ours: int
    theirs: int
    apart: Apart


def merge(look: Folders, ours: Oid, theirs: Oid) -> Merged:
    """The merge of two commits' trees; symmetric. Raises Forked, and BadData where a journal cannot be folded."""
    a, b = (look.tree(oid) for oid in (ours, theirs))
    scratch = audit.Scratch(look.get)
    try:
        union = _union(scratch, a, b, look.algorithm)
        news = Sides(look).of(a, b)
        # From the side that has more: what the other one has besides is folded into it.
        base = a if news[0].events >= news[1].events else b
        with audit.remade(_Front(scratch.get, look.algorithm), union, base) as made:
            if made.faults:
                fault = made.faults[0]
                raise BadData(f"{fault.where}: {fault.what}; nothing was merged: {fault.mend}")
            bring = (*made.objects.below(made.tree),)
            have = {oid for oid, _ in bring}
            bring += tuple((oid, thing) for oid, thing in _journal(scratch, made, have))
    finally:
        scratch.close()
    return Merged(made.tree, bring, news[0].events, news[1].events, _apart(*news))


class Sides:
    """What reads both sides of merges: each folder and each segment once, however many merges share it."""

    def __init__(self, look: Folders) -> None:
        self._folders = look
        self._said: dict[bytes, _Side] = {}

    def of(self, a: Oid, b: Oid) -> tuple[_Side, _Side]:
        """What each of two trees' journals has that the other lacks; both must have been found good."""
        one, two = _Side(), _Side()
        look = self._folders
        for file in look.changed(look.journal(a), look.journal(b), "journal/"):
            if file.old is None and file.new:
                two.add(self._segment(file.new[1]))
            elif file.old and file.new is None:
                one.add(self._segment(file.old[1]))
        return one, two

    def apart(self, ours: Oid, theirs: Oid) -> Apart:
        """What two commits' sides set, not knowing of each other; for a merge that somebody else has made."""
        return _apart(*self.of(self._folders.tree(ours), self._folders.tree(theirs)))

    def _segment(self, oid: bytes) -> _Side:
        if oid not in self._said:
            self._said[oid] = _Side.of(reading.lines(self._folders.read(oid.hex(), "blob")))
        return self._said[oid]


@dataclass(frozen=True, slots=True)
class _Front:
    """A store with more objects in front of it."""

    get: Get
    algorithm: str


def _journal(scratch: audit.Scratch, made: audit.Rebuilt, have: set[Oid]) -> Iterator[tuple[Oid, Object]]:
    """The merged journal's folders, which stand beside what was folded."""
    root = objects.entries(made.objects.get, made.tree) or {}
    journal = root.get("journal")
    if journal is not None:
        yield from ((oid, thing) for oid, thing in scratch.below(journal.oid) if oid not in have)


# ── journals ─────────────────────────────────────────────────────────────────────────────────
def _union(scratch: audit.Scratch, a: Oid, b: Oid, algorithm: str) -> Oid:
    """A tree that holds nothing but every segment of both sides."""
    rows = [(objects.entries(scratch.get, tree) or {}).get("journal") for tree in (a, b)]
    joined = _join(scratch, rows[0], rows[1], "journal", algorithm)
    return _tree(scratch, [joined] if joined else [], algorithm)


def _join(
    scratch: audit.Scratch, a: TreeEntry | None, b: TreeEntry | None, path: str, algorithm: str
) -> TreeEntry | None:
    if a is None or b is None or a == b:
        return a or b
    if not (a.is_folder and b.is_folder):
        writer = path.split("/")[1]
        raise Forked(
            f"writer {writer} goes on in two ways from {path}: its id is in use in two clones, as by a copied disk"
        )
    left, right = (objects.entries(scratch.get, entry.oid) or {} for entry in (a, b))
    names = sorted(left.keys() | right.keys())
    rows = [_join(scratch, left.get(name), right.get(name), f"{path}/{name}", algorithm) for name in names]
    return TreeEntry(FOLDER, a.name, _tree(scratch, [row for row in rows if row], algorithm))


def _tree(scratch: audit.Scratch, rows: Iterable[TreeEntry], algorithm: str) -> Oid:
    data = objects.format_tree(rows)
    oid = objects.oid("tree", data, algorithm)
    scratch.put([(oid, Object("tree", data))])
    return oid


# ── what both sides said ─────────────────────────────────────────────────────────────────────
@dataclass(slots=True)
class _Side:
    """What one side's new events set: the latest of each field, and the tasks its work trees are at."""

    events: int = 0
    fields: dict[tuple[Key, str], Field] = field(default_factory=dict)
    active: dict[Key, tuple[Stamp, Key, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> _Side:
        side = cls()
        for line in lines:
            side.events += 1
            # In a canonical line `data` comes first and may be long; what is called so in there only begins it sooner.
            if not _MAY_SAY.search(line, max(line.find(b'"records":'), 0)):  # a turn, most often
                continue
            event = codec.read_event(line, "a journal line")
            for key, change in event.records.items():
                if key.startswith("worktree:") and "active" in change.set:
                    side.active[key] = (event.stamp, change.set["active"], event.writer)
                if key[:1] in _JUDGED or key in (layout.PROJECT, layout.CONFIG):
                    side.note(key, change, event.stamp)
        return side

    def add(self, other: _Side) -> None:
        """What another part of the same side set, too."""
        self.events += other.events
        for at, said in other.fields.items():
            if at not in self.fields or self.fields[at][1] < said[1]:
                self.fields[at] = said
        for place, task in other.active.items():
            self.active[place] = max(self.active.get(place, task), task, key=lambda one: one[0])

    def note(self, key: Key, change: Change, stamp: Stamp) -> None:
        """What one event sets of one record, where it is the latest."""
        said = dict(change.set)
        for listed, items in change.items.items():
            for item, values in items.items():
                said |= {f"{listed}.{item}.{name}": value for name, value in values.items()}
        for name, value in said.items():
            before = self.fields.get((key, name))
            if _is_said(name.rpartition(".")[2]) and (before is None or before[1] < stamp):
                self.fields[key, name] = (value, stamp)


def _is_said(field: str) -> bool:
    """True for a field that somebody meant, and that did not only follow from another one."""
    return field not in _MECHANICAL and not field.endswith("_at")


def _apart(a: _Side, b: _Side) -> Apart:
    return Apart(tuple(_conflicts(a, b))[:MOST_CONFLICTS], tuple(_together(a, b)))


def _conflicts(a: _Side, b: _Side) -> Iterator[Conflict]:
    for at in sorted(a.fields.keys() & b.fields.keys()):
        mine, theirs = a.fields[at], b.fields[at]
        if mine[0] != theirs[0]:
            lost, shown = sorted((mine, theirs), key=lambda one: one[1])
            yield Conflict(at[0], at[1], shown[1], lost[1], lost[0])


def _together(a: _Side, b: _Side) -> Iterator[tuple[Key, str, str]]:
    """Tasks that work trees of both sides became active on: (task, writer, writer)."""
    for task, one in sorted({found[1:] for found in a.active.values() if found[1]}):
        for other_task, other in sorted({found[1:] for found in b.active.values() if found[1]}):
            if task == other_task and one != other:
                yield task, one, other
