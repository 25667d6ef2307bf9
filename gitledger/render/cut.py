"""Records that would pass a blob's limit: what is cut, and that it says so. Pure.

The journal holds every event whole; what is cut here is only the sum of them. A record grows by what is added to it,
so one that was cut and grows again is cut to what cutting it all at once would have left.
"""

from __future__ import annotations

from gitledger.codec import record_bytes
from gitledger.model import Field, Json, Record
from gitledger.patterns import pattern
from gitledger.render.page import LIMIT

_TEXTS = tuple(1 << n for n in range(17, 5, -1))
_LISTS = (4096, 1024, 256, 64, 16)
_MARK = pattern(r"… \[cut, ([0-9]+) characters in all\]\Z")
CUT = "cut"
"""The field that says how many items of each list were left out."""


def cut_record(record: Record, limit: int = LIMIT) -> bytes:
    """A record's JSON in at most `limit` bytes: the longest texts are cut first, then long lists, then old items."""
    data = record_bytes(record)
    if len(data) <= limit:
        return data
    for most in _TEXTS:
        shorter = _each(record, most, _LISTS[0])
        data = record_bytes(shorter)
        if len(data) <= limit:
            return data
    for length in _LISTS:
        shorter = _each(record, _TEXTS[-1], length)
        data = record_bytes(shorter)
        if len(data) <= limit:
            return data
    return record_bytes(_newest(shorter, limit))


def _each(record: Record, most: int, length: int) -> Record:
    def fields(old: dict[str, Field]) -> dict[str, Field]:
        return {name: (_value(value, most, length), stamp) for name, (value, stamp) in old.items()}

    return Record(
        record.key,
        fields(record.fields),
        {name: {item: fields(f) for item, f in items.items()} for name, items in record.items.items()},
    )


def _value(value: Json, most: int, length: int) -> Json:
    if isinstance(value, str):
        return _text(value, most)
    if isinstance(value, list):
        kept = [_value(v, most, length) for v in value[:length]]
        said = f"… [cut, {len(value)} in all]"
        return kept if len(value) <= length else [*kept, {"text": said} if isinstance(value[0], dict) else said]
    if isinstance(value, dict):
        return {name: _value(value[name], most, length) for name in sorted(value)[:length]}
    return value


def _text(text: str, most: int) -> str:
    marked = _MARK.search(text)
    if len(text) - (len(marked[0]) if marked else 0) <= most:
        return text
    total = int(marked[1]) if marked else len(text)
    return f"{text[:most]}… [cut, {total} characters in all]"


def _newest(record: Record, limit: int) -> Record:
    born = sorted(
        (
            (min(stamp for _, stamp in fields.values()), name, item)
            for name, items in record.items.items()
            for item, fields in items.items()
            if fields
        ),
        reverse=True,
    )
    before = record.get(CUT)
    before = before if isinstance(before, dict) else {}

    def keep(n: int) -> Record:
        items: dict[str, dict[str, dict[str, Field]]] = {}
        for _, name, item in born[:n]:
            items.setdefault(name, {})[item] = record.items[name][item]
        left = dict(before)
        for _, name, _ in born[n:]:
            left[name] = left.get(name, 0) + 1
        return Record(record.key, {**record.fields, CUT: (left, born[0][0])} if born else record.fields, items)

    low, high = 0, len(born)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(record_bytes(keep(middle))) <= limit else (low, middle - 1)
    return keep(low)
