"""What the ledger says of a change to a memory file: the file before, each block that went, and why. Pure.

The file before travels whole, in parts, because the bytes that went must come back exactly. Where a rule knows a secret
in it, what travels has none, and no digest of the real bytes either, by which a short secret could be guessed: such a
change can be undone where it was made alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from gitledger import codec, layout
from gitledger.blocks import Lines, split
from gitledger.errors import BadData
from gitledger.memorycheck import Edit, edited
from gitledger.memoryfile import digest
from gitledger.model import Change, Draft, Json, Key, Record
from gitledger.redact import Clean, Known, bounded, redact
from gitledger.tasks import Hand
from gitledger.values import dataclass, replace
from gitledger.view import View

PART = 12_000
"""Characters of one part of a file; an event's text may have more."""
EVENT = 256 * 1024
"""Bytes of an event's parts together, half of what an event may hold."""
SHOWN = 12_000
"""Characters of a block as its change shows it; the parts hold it whole."""
MOST = 200
"""Changes of one change set."""


@dataclass(frozen=True, slots=True)
class Made:
    """A change to a memory file, as it is about to be made or was: all that its record is composed of.

    `name` is the file's name as it is configured here, `how` who made it: audit, compact or undo.
    """

    id: str
    at: str
    name: str
    how: str
    edits: tuple[Edit, ...]
    source: str
    result: str
    undoes: Key | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What a record tells of a change; `before` is None where the file's bytes did not travel exactly."""

    key: Key
    name: str
    path: str
    at: str
    by: str
    how: str
    status: str
    edits: tuple[Edit, ...]
    before: Lines | None
    source: str
    result: str
    undoes: str
    undone_by: str
    exact: bool

    @property
    def changes(self) -> int:
        """How many changes it had."""
        return len({edit.n for edit in self.edits})


def shown(name: str) -> str:
    """A file's name as the ledger has it: below the home of whoever made the change as `~/…`."""
    home = os.path.expanduser("~")
    path = os.path.expanduser(name)
    if os.path.isabs(path) and home != "/" and path.startswith(f"{home}/"):
        return f"~/{path[len(home) + 1 :]}"
    return name


def drafts(view: View, hand: Hand, made: Made, before: Lines, known: Known) -> tuple[Key, tuple[Draft, ...]]:
    """The events of a change, and the key of its record; `known` are secrets that something else has found."""
    key = view.next_number(layout.MEMORY, hand.writer)
    whole = "".join((before.mark, *before.lines))
    clean = redact(whole, known)
    parts = list(_parts(clean))
    puts = [redact(edit.put, known) for edit in made.edits]
    exact = clean == whole and all(redact(part, known) == part for part in parts)
    exact = exact and all(put == edit.put and len(put) <= PART for put, edit in zip(puts, made.edits, strict=True))
    fields = _fields(hand, made, before, exact)
    items: dict[str, dict[str, dict[str, Json]]] = {"edits": {}}
    for n, (edit, put) in enumerate(zip(made.edits, puts, strict=True), 1):
        gone = "".join(before.lines[edit.first : edit.first + edit.lines])
        items["edits"][f"e{n}@{hand.writer}"] = {
            "n": n,
            "change": edit.n,
            "kind": edit.kind,
            "reason": redact(edit.reason, known),
            "line": edit.first + 1,
            "lines": edit.lines,
            "text": bounded(redact(gone, known), SHOWN),
            "put": bounded(put, PART),
            "held_at": redact(edit.held_at, known),
        }
    records = {key: Change(fields, items)}
    if made.undoes:
        records[made.undoes] = Change({"status": "undone", "undone_by": key})
        undone = view.record(made.undoes)
        if undone is not None and layout.numbered(first := undone.text("undoes")):
            records[first] = Change({"status": "applied"})  # what had been taken back is there again
    said = hand.draft("memory.undone" if made.undoes else "memory.applied", records)
    said = replace(said, id=made.id, at=made.at)
    return key, (said, *_file(hand, key, parts))


def _fields(hand: Hand, made: Made, before: Lines, exact: bool) -> dict[str, Json]:
    after = edited(before, made.edits)
    old, new = len(before.data()), len(after.data())
    count = len({edit.n for edit in made.edits})
    name = redact(shown(made.name))
    what = "undone" if made.undoes else f"{count} change{'' if count == 1 else 's'}"
    size = f"{old - new:,} bytes less" if new <= old else f"{new - old:,} bytes more"
    fields: dict[str, Json] = {
        "at": made.at,
        "by": hand.writer,
        "title": redact(f"{name}: {what}, {size}"),
        "status": "applied",
        "path": name,
        "how": made.how,
        "id": made.id,
        "bytes_before": old,
        "bytes_after": new,
        "exact": exact,
    }
    if exact:
        fields |= {"source_sha256": made.source, "result_sha256": made.result}
    if made.undoes:
        fields["undoes"] = made.undoes
    return fields


def _file(hand: Hand, key: Key, parts: Sequence[Clean]) -> Iterator[Draft]:
    held: dict[str, dict[str, Json]] = {}
    size = 0
    for n, part in enumerate(parts, 1):
        grown = len(codec.canonical(part))
        if held and size + grown > EVENT:
            yield hand.draft("memory.file", {key: Change({}, {"before": held})})
            held, size = {}, 0
        held[f"f{n}@{hand.writer}"] = {"n": n, "text": part}
        size += grown
    if held:
        yield hand.draft("memory.file", {key: Change({}, {"before": held})})


def _parts(text: Clean) -> Iterator[Clean]:
    """A text in parts, cut at line ends where it can be; together they are the text."""
    at = 0
    while at < len(text):
        end = min(at + PART, len(text))
        cut = max(text.rfind("\n", at, end), text.rfind("\r", at, end)) + 1 if end < len(text) else end
        if 0 < cut < len(text) and text[cut - 1 : cut + 1] == "\r\n":
            cut -= 1
        end = cut if cut > at else end
        yield redact(text[at:end])
        at = end


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def told(view: View, key: Key) -> Told:
    """What the record of a change tells; BadData where it is no such record, or a damaged one."""
    record = view.need(key)
    edits = tuple(sorted(_edits(record), key=lambda edit: (edit.first, edit.n)))
    exact = record.get("exact") is True
    before = _before(record) if exact else None
    source, result = record.text("source_sha256"), record.text("result_sha256")
    if before is not None and digest(before.data()) != source:
        before = None  # its file was cut, or somebody wrote another digest
    return Told(
        key,
        view.name(key),
        record.text("path"),
        record.text("at"),
        record.text("by"),
        record.text("how"),
        record.text("status"),
        edits,
        before,
        source,
        result,
        record.text("undoes"),
        record.text("undone_by"),
        exact,
    )


def _edits(record: Record) -> Iterator[Edit]:
    for row in record.listed("edits"):
        n, line, lines = (_whole(row.get(name)) for name in ("change", "line", "lines"))
        if n is None or lines is None or not line:
            raise BadData(f"{record.key} has an edit without a place; run: gitledger fsck")
        texts = [
            value if isinstance(value := row.get(name), str) else "" for name in ("kind", "reason", "put", "held_at")
        ]
        yield Edit(n, texts[0], texts[1], line - 1, lines, texts[2], texts[3])


def _whole(value: Json) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def _before(record: Record) -> Lines | None:
    parts: list[tuple[int, str]] = []
    for row in record.listed("before"):
        n, text = row.get("n"), row.get("text")
        if type(n) is not int or not isinstance(text, str):
            return None
        parts.append((n, text))
    try:
        return split("".join(text for _, text in sorted(parts)).encode(), record.key)
    except (BadData, UnicodeEncodeError):
        return None


# ── what was about to be done, on this machine's disk ────────────────────────────────────────
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def made_value(made: Made) -> Json:
    """A change as JSON."""
    edits = [[e.n, e.kind, e.reason, e.first, e.lines, e.put, e.held_at] for e in made.edits]
    return {
        "id": made.id,
        "at": made.at,
        "name": made.name,
        "how": made.how,
        "edits": edits,
        "source": made.source,
        "result": made.result,
        "undoes": made.undoes,
    }


def read_made(value: Json, where: str) -> Made:
    """The change that `made_value` made this JSON of; BadData for anything else."""
    try:
        edits = tuple(
            Edit(int(n), str(kind), str(why), int(first), int(lines), str(put), str(held))
            for n, kind, why, first, lines, put, held in value["edits"]
        )
        id_, at, name, how, source, result = (
            str(value[key]) for key in ("id", "at", "name", "how", "source", "result")
        )
        if not _ID.fullmatch(id_):
            raise ValueError("its id is none")
        undoes = value["undoes"]
        return Made(id_, at, name, how, edits, source, result, str(undoes) if undoes else None)
    except (LookupError, TypeError, ValueError) as e:
        raise BadData(f"{where} is not what gitledger wrote ({e}); move it away") from e
