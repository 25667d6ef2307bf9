"""Events to records, and the merge of two records. Pure, and independent of order.

A field holds the value with the latest stamp, so folding the same events in any order, or merging two
records that each saw a part of them, ends in the same record. Immutable kinds keep their first statement.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitledger import layout
from gitledger.codec import canonical, record_bytes
from gitledger.model import Change, Field, Finding, Json, Key, Record, Stamp


def apply(record: Record | None, key: Key, change: Change, stamp: Stamp) -> Record:
    """`record` with `change` folded in; a field whose stamp is later keeps its value."""
    if record is None or _is_immutable(key):
        fields = {name: (value, stamp) for name, value in change.set.items()}
        new = Record(key, fields, {name: _stamped(items, stamp) for name, items in change.items.items()})
        return new if record is None else merge(record, new)
    # What `merge` makes of the two, with no look at what the change says nothing of.
    said = {name: (value, stamp) for name, value in change.set.items()}
    lists = dict(record.items)
    for name, items in change.items.items():
        lists[name] = _items(lists.get(name, {}), _stamped(items, stamp))
    return Record(record.key, _fields(record.fields, said), lists)


def _stamped(items: Mapping[str, Mapping[str, Json]], stamp: Stamp) -> dict[str, dict[str, Field]]:
    return {item: {name: (value, stamp) for name, value in values.items()} for item, values in items.items()}


def merge(a: Record, b: Record) -> Record:
    """One record that holds all that both hold; commutative, associative and idempotent."""
    if _is_immutable(a.key):
        return _earlier(a, b)
    return Record(
        a.key,
        _fields(a.fields, b.fields),
        {name: _items(a.items.get(name, {}), b.items.get(name, {})) for name in a.items.keys() | b.items.keys()},
    )


def _is_immutable(key: Key) -> bool:
    return key[:1] in layout.IMMUTABLE and key[1:2] == "-"


def conflicts(base: Record | None, a: Record, b: Record) -> list[Finding]:
    """What both sides set since `base`, each not knowing of the other: the later stamp shows, the other is named."""
    found = []
    before = base.fields if base else {}
    for name in sorted(a.fields.keys() & b.fields.keys()):
        mine, theirs, was = a.fields[name], b.fields[name], before.get(name)
        if mine[0] != theirs[0] and was != mine and was != theirs:
            loser = min(mine, theirs, key=_rank)
            text = canonical(loser[0])[:200].decode("utf-8", "replace").strip()
            found.append(
                Finding(
                    "set twice",
                    f"{a.key} {name}",
                    f"{loser[1].writer} wrote {text}, a later one replaced it",
                    "look at both and set the field again if the wrong one shows",
                )
            )
    return found


def _rank(field: Field) -> tuple[Stamp, bytes]:
    # Equal stamps with other values exist only where a writer id was copied; the bytes keep even that deterministic.
    return field[1], canonical(field[0])


def _later(a: Field, b: Field) -> bool:
    # Values are compared by their bytes: to Python, true and 1 are equal.
    return a[1] > b[1] or (a[1] == b[1] and canonical(a[0]) > canonical(b[0]))


def _fields(a: Mapping[str, Field], b: Mapping[str, Field]) -> dict[str, Field]:
    out = dict(a)
    for name, field in b.items():
        old = out.get(name)
        if old is None or old[1].lamport < field[1].lamport or _later(field, old):
            out[name] = field
    return out


def _items(a: dict[str, dict[str, Field]], b: dict[str, dict[str, Field]]) -> dict[str, dict[str, Field]]:
    return {**a, **{item: _fields(a.get(item, {}), fields) for item, fields in b.items()}}


def _earlier(a: Record, b: Record) -> Record:
    def born(record: Record) -> tuple[bool, Stamp, bytes]:
        stamps = [stamp for _, stamp in record.fields.values()]
        return not stamps, min(stamps, default=Stamp(0, "", 0)), record_bytes(record)  # one that says nothing is last

    return min(a, b, key=born)
