"""Values to canonical bytes and back: one JSON line per event, one JSON text per record.

Canonical means: keys sorted, no spaces, UTF-8 as it is, no floats, and a final newline. Equal values are
equal bytes on every machine, so bytes can be hashed, signed and compared. Format version: 1.
"""

from __future__ import annotations

import json
from functools import lru_cache

from gitledger import digests
from gitledger.errors import BadData
from gitledger.model import Change, Event, Field, Json, Record, Stamp
from gitledger.patterns import pattern
from gitledger.typed import Any

VERSION = 1
"""The `v` of every event; a reader that meets a higher one says so and changes nothing."""

REMEMBERED = 4_096
"""Bytes of a line up to which its event is kept for a while, for whoever reads it again."""
NESTING = 64
"""How deep the JSON of a ledger may be nested; what folds and renders it goes down by recursion."""
BIGGEST = 2**53
"""Numbers of events are below this: each is followed by a greater one, and other programs read JSON too."""

_HALF = pattern(r"\\u[dD][89a-fA-F]")
_EVENT_KEYS = frozenset(
    ("v", "id", "writer", "seq", "lamport", "at", "type", "session", "task", "records", "data", "prev")
)
_CHANGE_KEYS = frozenset(("set", "items"))


def canonical(value: Json) -> bytes:
    """The one byte form of a JSON value, with its newline; raise BadData for floats and other types."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        _no_floats(value)
        if text.count("[") + text.count("{") > NESTING and _is_deep(value):
            raise ValueError(f"nested deeper than {NESTING} levels")
        return text.encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as e:  # UnicodeEncodeError (a lone surrogate) is a ValueError
        raise BadData(f"a value has no canonical JSON form ({e}); pass text, whole numbers, lists and objects") from e


def parse(data: bytes, where: str) -> Json:
    """The JSON value of `data`; raise BadData naming `where`.

    Refused as well: another encoding than UTF-8, duplicate keys, floats, half a character, and too deep a nesting.
    """
    try:
        text = data.decode()
        value = json.loads(text, object_pairs_hook=_unique, parse_float=_refuse_float, parse_constant=_refuse_float)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as e:  # UnicodeError is a ValueError
        raise BadData(f"{where} is not valid JSON ({e}); run: gitledger fsck") from e
    if text.count("[") + text.count("{") > NESTING and _is_deep(value):
        raise BadData(f"{where} is nested deeper than {NESTING} levels; run: gitledger fsck")
    return value


def pretty(value: Json) -> bytes:
    """A JSON text for people and line-wise diffs: sorted keys, indented, newline at the end; canonical too."""
    return (_indented(value, "\n") + "\n").encode()


def _indented(value: Json, line: str) -> str:
    """What `json.dumps` gives with an indent, several times as fast; `line` is a line's end and the next one's indent.

    TypeError or ValueError for what is no JSON here.
    """
    kind = type(value)
    if kind is str:
        return _QUOTED(value)
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    below = line + " "
    if kind is dict:
        if not value:
            return "{}"
        rows = [f"{_QUOTED(key)}: {_indented(inner, below)}" for key, inner in sorted(value.items())]
        return "{" + below + f",{below}".join(rows) + line + "}"
    if kind is list or kind is tuple:
        if not value:
            return "[]"
        return "[" + below + f",{below}".join([_indented(inner, below) for inner in value]) + line + "]"
    if kind is bool:
        return "true" if value else "false"
    _no_floats(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1).replace("\n", line)


# ── events ───────────────────────────────────────────────────────────────────────────────────
def event_line(event: Event) -> bytes:
    """The journal's line for an event, with its newline."""
    value = {
        "v": event.v,
        "id": event.id,
        "writer": event.writer,
        "seq": event.seq,
        "lamport": event.lamport,
        "at": event.at,
        "type": event.type,
        "session": event.session,
        "task": event.task,
        "records": {key: change_value(change) for key, change in event.records.items()},
        "data": event.data,
        "prev": event.prev,
    }
    return canonical(value)


def line_hash(line: bytes) -> str:
    """SHA-256 in hex of an event's line, its newline included: the next event's `prev`."""
    return digests.of("sha256", line).hexdigest()


def read_event(line: bytes, where: str) -> Event:
    """The event of a journal line; raise BadData for anything but a canonical line of a known version."""
    value = parse(line, where)
    if not isinstance(value, dict) or type(value.get("v")) is not int or value["v"] != VERSION:
        found = value.get("v") if isinstance(value, dict) else None
        raise BadData(f"{where} has event version {found!r}, this gitledger reads {VERSION}; update gitledger")
    if value.keys() != _EVENT_KEYS:
        raise BadData(f"{where} has other keys than an event ({', '.join(sorted(value.keys() ^ _EVENT_KEYS))})")
    texts = ("id", "writer", "at", "type", "prev")
    if not (
        all(isinstance(value[k], str) for k in texts)
        and all(type(value[k]) is int and 0 <= value[k] < BIGGEST for k in ("seq", "lamport"))
        and all(value[k] is None or isinstance(value[k], str) for k in ("session", "task"))
        and isinstance(value["data"], dict)
        and isinstance(value["records"], dict)
    ):
        raise BadData(f"{where} has a field of the wrong type; run: gitledger fsck")
    records = {key: read_change(change, where) for key, change in value["records"].items()}
    return Event(**{**value, "records": records})


def event_value(line: bytes, where: str, *, again: bool = False) -> dict[str, Json]:
    """The JSON value of a journal line, its keys and types checked, but not whether the line is canonical.

    For whoever checks very many, has the form checked elsewhere and changes nothing in it; `again` where `read_line` is
    to read the same lines soon. BadData as `read_event` raises it.
    """
    value = _parsed(line) if again and len(line) <= REMEMBERED else _quick(line)
    if value is None:
        read_event(line, where)  # says what is wrong
        raise BadData(f"{where} is not the canonical form of its event; run: gitledger fsck")
    return value


def read_line(line: bytes, where: str) -> tuple[Event, bool]:
    """What `read_event` reads, and whether the line is the canonical one of its event, for whoever checks very many."""
    found = _canonical(line) if len(line) > REMEMBERED else _remembered(line)
    if found is not None:
        return found, True
    event = read_event(line, where)
    return event, event_line(event) == line


def _canonical(line: bytes) -> Event | None:
    """The event of a line that is its canonical one; None for any other line."""
    value = _parsed(line) if len(line) <= REMEMBERED else _quick(line)
    if value is None or line.count(b"[") + line.count(b"{") > NESTING:
        return None
    # Equal bytes leave no room for a key that stands twice, nor for half a character.
    text = _ENCODE(value)
    if len(text) >= len(line) or text.encode("utf-8", "replace") + b"\n" != line:
        return None
    records = {key: Change(change.get("set", {}), change.get("items", {})) for key, change in value["records"].items()}
    return Event(**{**value, "records": records})


def _quick(line: bytes) -> dict[str, Json] | None:
    """The value of an event's line; None where `read_event` must say what is wrong with it."""
    try:
        text = line.decode()
        value, end = _SCAN(text, 0)
    except (ValueError, RecursionError, StopIteration):
        return None
    known = text[end:] == "\n" and type(value) is dict and type(value.get("v")) is int and value["v"] == VERSION
    return value if known and _is_event(value) else None


_parsed = lru_cache(maxsize=2_048)(_quick)  # a sync compares what it has just looked at
_remembered = lru_cache(maxsize=2_048)(_canonical)  # and folds what it has just compared


def _is_event(value: dict[str, Json]) -> bool:
    if value.keys() != _EVENT_KEYS or type(value["data"]) is not dict or type(value["records"]) is not dict:
        return False
    for key in ("id", "writer", "at", "type", "prev"):
        if type(value[key]) is not str:
            return False
    for key in ("session", "task"):
        if value[key] is not None and type(value[key]) is not str:
            return False
    for key in ("seq", "lamport"):
        if type(value[key]) is not int or not 0 <= value[key] < BIGGEST:
            return False
    for change in value["records"].values():
        if type(change) is not dict or not change.keys() <= _CHANGE_KEYS:
            return False
        for half in change.values():
            if type(half) is not dict or not half:  # an empty half is left out
                return False
        for items in change.get("items", {}).values():
            if type(items) is not dict or not all(type(fields) is dict for fields in items.values()):
                return False
    return True


def change_value(change: Change) -> Json:
    """A change as JSON; empty halves are left out."""
    value: dict[str, Json] = {}
    if change.set:
        value["set"] = change.set
    if change.items:
        value["items"] = change.items
    return value


def read_change(value: Json, where: str) -> Change:
    """The change of an event's `records` entry; raise BadData naming `where`."""
    if not isinstance(value, dict) or not value.keys() <= {"set", "items"}:
        raise BadData(f"{where} holds a change that is not {{set, items}}; run: gitledger fsck")
    fields, items = value.get("set", {}), value.get("items", {})
    if (
        not isinstance(fields, dict)
        or not isinstance(items, dict)
        or not all(isinstance(x, dict) and all(isinstance(y, dict) for y in x.values()) for x in items.values())
    ):
        raise BadData(f"{where} holds a change of the wrong shape; run: gitledger fsck")
    return Change(fields, items)


# ── records ──────────────────────────────────────────────────────────────────────────────────
def record_bytes(record: Record) -> bytes:
    """A record's JSON file."""
    rows = []
    for name, items in sorted(record.items.items()):
        lists = [f"{_QUOTED(item)}: {_fields_text(fields, 4)}" for item, fields in sorted(items.items())]
        rows.append(f"{_QUOTED(name)}: {_braced(lists, 3)}")
    fields = _fields_text(record.fields, 2)
    return f'{{\n "fields": {fields},\n "items": {_braced(rows, 2)},\n "key": {_QUOTED(record.key)}\n}}\n'.encode()


def _fields_text(fields: dict[str, Field], depth: int) -> str:
    line = "\n" + " " * (depth + 1)
    below = line + " "
    rows = []
    for name, (value, stamp) in sorted(fields.items()):
        lamport, seq = stamp.lamport, stamp.seq
        if type(lamport) is int and type(seq) is int:
            born = f"[{below}{lamport},{below}{_QUOTED(stamp.writer)},{below}{seq}{line}]"
        else:
            born = _indented([lamport, stamp.writer, seq], line)
        rows.append(f"{_QUOTED(name)}: [{line}{_indented(value, line)},{line}{born}{line[:-1]}]")
    return _braced(rows, depth)


def _braced(rows: list[str], depth: int) -> str:
    line = "\n" + " " * depth
    return "{" + line + f",{line}".join(rows) + line[:-1] + "}" if rows else "{}"


def read_record(data: bytes, where: str) -> Record:
    """The record of a JSON file in the ledger's tree; raise BadData naming `where`."""
    value = parse(data, where)
    try:
        if not isinstance(value["key"], str):
            raise ValueError("its key is no text")
        return Record(
            value["key"],
            {name: _read_field(f) for name, f in value["fields"].items()},
            {
                name: {item: {n: _read_field(f) for n, f in fields.items()} for item, fields in items.items()}
                for name, items in value["items"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadData(f"{where} is not a record ({type(e).__name__}: {e}); run: gitledger fsck") from e


def _read_field(value: Any) -> Field:
    content, (lamport, writer, seq) = value
    if not (isinstance(lamport, int) and isinstance(writer, str) and isinstance(seq, int)):
        raise ValueError("a stamp is not [lamport, writer, seq]")
    return content, Stamp(lamport, writer, seq)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _refuse_float(text: str) -> Json:
    raise ValueError(f"{text[:40]} is not a whole number")


def _is_deep(value: Json) -> bool:
    level = [value] if type(value) in _FOLDERS else []
    for _ in range(NESTING):
        level = [
            inner for one in level for inner in (one.values() if type(one) is dict else one) if type(inner) in _FOLDERS
        ]
        if not level:
            return False
    return True


_FOLDERS = frozenset((dict, list))
_QUOTED = json.encoder.encode_basestring
_DECODER: Any = json.JSONDecoder(parse_float=_refuse_float, parse_constant=_refuse_float)
_SCAN = _DECODER.scan_once  # what `decode` calls between two searches for white space, which no line of ours has
_ENCODE = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _no_floats(value: Json) -> None:
    if isinstance(value, float):
        raise ValueError(f"{value} is a float")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
            _no_floats(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _no_floats(inner)
