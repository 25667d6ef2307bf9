"""From the write-ahead log to events: each line once, redacted and bounded, stamped in order.

The same function serves a commit (whose lines it returns, to be journalled) and every read (which folds what is
pending on top of the tip and throws the lines away), so that both always tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from gitledger import codec, layout
from gitledger.errors import BadData, LedgerError
from gitledger.frame import Entry
from gitledger.model import Change, Draft, Event, Finding, Json, Key
from gitledger.redact import bounded, redact_json
from gitledger.schema import Config
from gitledger.view import Tail, View

TEXT_LIMIT = 20_000
"""Characters of any one text in an event, unless its own rule is stricter."""
EVENT_LIMIT = 512 * 1024
"""Bytes of one event's line; half of the 1 MiB that no blob may pass, so that a segment holds any event."""
SEGMENT_LIMIT = 1024 * 1024
"""Bytes of one journal segment."""

Reader = Callable[[View, Entry, Config, str], Draft]
"""One client's adapter: the event that a captured payload is. The last argument is the writer's id."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a WAL was worth: events with their lines, in order, and the faults met on the way."""

    lines: tuple[tuple[Event, bytes], ...]
    findings: tuple[Finding, ...]


def ingest(
    view: View,
    entries: Iterable[Entry],
    *,
    writer: str,
    readers: Mapping[str, Reader],
    config: Config,
    known: frozenset[str] = frozenset(),
) -> Ingested:
    """Fold every entry that is not `known` into `view` and return its events.

    A payload that its adapter cannot read becomes an `unreadable` event that keeps its text: nothing is lost.
    """
    lines = []
    findings = []
    for entry in entries:
        if entry.id in known:
            continue
        try:
            draft = _typed(entry) if entry.client == "gitledger" else readers[entry.client](view, entry, config, writer)
        except (LedgerError, KeyError) as e:
            why = f"no adapter for client {entry.client}" if isinstance(e, KeyError) else str(e)
            findings.append(Finding("unreadable", f"WAL entry {entry.id}", why, "its text is kept in the journal"))
            draft = _unreadable(entry, why)
        lines.append(stamp(view, draft, writer))
    return Ingested(tuple(lines), tuple(findings))


def stamp(view: View, draft: Draft, writer: str) -> tuple[Event, bytes]:
    """The next event of `writer`, cleaned, folded into `view`, with its journal line."""
    draft = clean(draft)
    tail = view.manifest.writers.get(writer, Tail())
    event = Event(
        v=codec.VERSION,
        id=draft.id,
        writer=writer,
        seq=tail.seq + 1,
        lamport=view.manifest.lamport + 1,
        at=draft.at,
        type=draft.type,
        session=draft.session,
        task=draft.task,
        records=draft.records,
        data=draft.data,
        prev=tail.last,
    )
    line = codec.event_line(event)
    view.apply(event, line)
    return event, line


def clean(draft: Draft) -> Draft:
    """`draft` without secrets and without texts beyond their bounds; what was cut says so in its place."""
    for limit in (TEXT_LIMIT, 4_000, 500, 80):
        shorter = replace(
            draft,
            records={
                key: Change(_cut(redact_json(c.set), limit), _cut(redact_json(c.items), limit))
                for key, c in draft.records.items()
            },
            data=_cut(redact_json(draft.data), limit),
        )
        size = len(codec.canonical([shorter.data, {k: codec.change_value(c) for k, c in shorter.records.items()}]))
        if size <= EVENT_LIMIT:
            return shorter
    raise BadData(f"event {draft.id} of type {draft.type} holds too much to be journalled ({size} bytes); split it")


def segments(lines: Iterable[bytes]) -> list[bytes]:
    """The journal lines of one commit, packed into parts of at most SEGMENT_LIMIT bytes each."""
    packed: list[list[bytes]] = []
    size = SEGMENT_LIMIT
    for line in lines:
        if size + len(line) > SEGMENT_LIMIT:
            packed.append([])
            size = 0
        packed[-1].append(line)
        size += len(line)
    return [b"".join(segment) for segment in packed]


def journalled(view: View, writer: str) -> frozenset[str]:
    """The ids of this writer's newest commit.

    WAL lines outlive their commit only where a crash came between it and the forgetting, and the next commit
    forgets them before it makes another; so only the newest segment can hold them.
    """
    n = view.manifest.writers.get(writer, Tail()).segments - 1
    ids: set[str] = set()
    part = 0
    while n >= 0 and (data := view.read(path := layout.segment(writer, n, part))) is not None:
        ids.update(codec.read_event(line, path).id for line in data.splitlines(keepends=True))
        part += 1
    return frozenset(ids)


def typed_payload(draft: Draft) -> bytes:
    """A draft as the payload of a typed WAL line."""
    return codec.canonical(
        {
            "session": draft.session,
            "task": draft.task,
            "records": {key: codec.change_value(change) for key, change in draft.records.items()},
            "data": draft.data,
        }
    ).rstrip(b"\n")


def _typed(entry: Entry) -> Draft:
    where = f"WAL entry {entry.id}"
    value = codec.parse(entry.payload, where)
    if not isinstance(value, dict) or value.keys() != {"session", "task", "records", "data"}:
        raise BadData(f"{where} is not a typed line of gitledger")
    session: Key | None = value["session"]
    return Draft(
        entry.id,
        entry.at,
        entry.event,
        session,
        value["task"],
        {key: codec.read_change(change, where) for key, change in value["records"].items()},
        value["data"],
    )


def _unreadable(entry: Entry, why: str) -> Draft:
    text = entry.payload[: TEXT_LIMIT * 4].decode("utf-8", "backslashreplace")
    data = {"client": entry.client, "event": entry.event, "why": why, "text": text, "bytes": len(entry.payload)}
    return Draft(entry.id, entry.at, "unreadable", data=data)


def _cut(value: Json, limit: int) -> Json:
    if isinstance(value, str):
        if not value.isascii():  # JSON can name half a surrogate pair, which UTF-8 cannot hold
            value = value.encode("utf-8", "backslashreplace").decode()
        return bounded(value, limit)
    if isinstance(value, list):
        return [_cut(inner, limit) for inner in value]
    if isinstance(value, dict):
        return {_cut(key, limit): _cut(inner, limit) for key, inner in value.items()}
    return value
