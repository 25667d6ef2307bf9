"""Finding a text in the records, one shard in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitledger import layout, objects, reading
from gitledger.errors import BadData, LedgerError
from gitledger.layout import Kind
from gitledger.ledger import Ledger
from gitledger.model import Finding, Json, Key, Record
from gitledger.shards import Read, Row
from gitledger.values import dataclass
from gitledger.view import View

_AROUND = 60  # characters of a found text before its first word
_SNIPPET = 200

KINDS: tuple[str, ...] = ("project", *(kind.word for kind in layout.KINDS.values()), "session")
"""What `search` looks through, in this order."""

_NOT_TEXT = frozenset(("at", "by", "ledger", "position", "process", "session", "slug", "task", "worktree", "uuid"))


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that holds all the words: what it is, and a text that holds one of them, cut around it."""

    key: Key
    name: str
    kind: str
    title: str
    status: str
    at: str
    field: str
    text: str


def search(ledger: Ledger, view: View, text: str, faults: list[Finding], kinds: Sequence[str] = KINDS) -> Iterator[Hit]:
    """The records that hold every word of `text`, whatever their case; kind by kind, the newest number first."""
    words = text.casefold().split()
    if not words:
        raise BadData("there is nothing to search for; give a word")
    for kind in KINDS:
        if kind in kinds:
            for key, name, record in records(ledger, view, kind, faults):
                if hit := _hit(key, name, kind, record, words):
                    yield hit


def records(ledger: Ledger, view: View, kind: str, faults: list[Finding]) -> Iterator[tuple[Key, str, Record]]:
    """Every record of one of KINDS with its name; what cannot be read is a fault, and left out."""
    read = reading.reader(ledger.desk.store.get, ledger.tip())
    if kind == "project":
        groups: Iterator[_Group] = iter([(view, [(layout.PROJECT, layout.PROJECT)])])
    elif kind == "session":
        groups = _sessions(ledger, view, read)
    else:
        groups = _shards(view, read, next(k for k in layout.KINDS.values() if k.word == kind))
    while True:
        try:
            group = next(groups, None)
        except LedgerError as e:
            faults.append(Finding("index", kind, str(e), "run: gitledger fsck"))
            return
        if group is None:
            return
        fresh, names = group
        for key, name in names:
            try:
                record = (view if key in view.touched else fresh).record(key)
            except LedgerError as e:
                faults.append(Finding("record", name, str(e), "run: gitledger fsck"))
                continue
            if record is not None:
                yield key, name, record


# A view to read one group of records with, which is dropped when the next group comes, and their keys and names.
_Group = tuple[View, list[tuple[Key, str]]]


def _shards(view: View, read: Read, kind: Kind) -> Iterator[_Group]:
    touched = view.touched_folders()
    known = {f"{kind.folder}/{shard}" for shard in view.shards(kind)}
    known |= {shard_folder for shard_folder in touched if shard_folder.startswith(f"{kind.folder}/")}
    for shard_folder in sorted(known, key=lambda f: (len(f), f), reverse=True):
        fresh = View(read)
        source = view if shard_folder in touched else fresh
        rows, names = source.rows(shard_folder), source.names(shard_folder)
        yield fresh, [(key, names[key]) for key in sorted(rows, key=lambda k: _order(k, rows[k]), reverse=True)]


def _order(key: Key, row: Row) -> tuple[int, str]:
    found = layout.numbered(key)
    return (found[1] if found else 0, str(row.get("at", "")))


def _sessions(ledger: Ledger, view: View, read: Read) -> Iterator[_Group]:
    get, tip = ledger.desk.store.get, ledger.tip()
    pending = [key for key in view.touched if layout.is_session(key)]
    yield view, [(key, key) for key in pending]
    for _, entry in sorted((objects.entries(get, tip, "sessions") or {}).items()):
        if entry.is_folder:
            keys = [name.removesuffix(".json") for name in objects.entries(get, entry.oid) or {}]
            yield (
                View(read),
                [(key, key) for key in sorted(keys) if layout.is_session(key) and key not in view.touched],
            )


def _hit(key: Key, name: str, kind: str, record: Record, words: list[str]) -> Hit | None:
    found = [("id", name), *texts(record)]
    whole = "\n".join(text for _, text in found).casefold()
    if not all(word in whole for word in words):
        return None
    field, text = next(
        ((f, t) for f, t in found[1:] if f != "title" and any(word in t.casefold() for word in words)), ("", "")
    )
    return Hit(
        key,
        name,
        kind,
        _text(record.get("title")) or (_text(record.get("client")) if kind == "session" else ""),
        _text(record.get("status")) or _text(record.get("state")),
        _text(record.get("at")),
        field,
        snippet(text, words),
    )


def texts(record: Record) -> Iterator[tuple[str, str]]:
    """(field, text) of everything in a record that a person or an agent said, the title first."""
    title = record.get("title")
    if isinstance(title, str):
        yield "title", title
    for name, (value, _) in sorted(record.fields.items()):
        if name != "title" and name not in _NOT_TEXT:
            for text in _strings(value):
                yield name, text
    for listed in sorted(record.items):
        for item in record.listed(listed):
            for text in _strings({n: v for n, v in item.items() if n not in ("id", "at")}):
                yield listed, text


def snippet(text: str, words: list[str]) -> str:
    """The part of a text around the first of `words` that it holds, on one line, with … where it was cut."""
    flat = " ".join(text.split())
    low = flat.casefold()
    at = min((low.find(word) for word in words if word in low), default=0)
    start = max(at - _AROUND, 0) if len(low) == len(flat) else 0  # a few letters change their length with their case
    shown = flat[start : start + _SNIPPET]
    return f"{'…' if start else ''}{shown}{'…' if start + _SNIPPET < len(flat) else ''}"


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
