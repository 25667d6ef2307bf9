"""From the write-ahead log to events: each line once, redacted and bounded, stamped in order.

The same function serves a commit (whose lines it returns, to be journalled) and every read (which folds what is
pending on top of the tip and throws the lines away), so that both always tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from gitledger import codec, layout
from gitledger.errors import BadData
from gitledger.frame import Entry
from gitledger.model import Change, Draft, Event, Finding, Json
from gitledger.redact import bounded, redact_json
from gitledger.schema import Config
from gitledger.view import Tail, View

TEXT_LIMIT = 20_000
"""Characters of any one text in an event, unless its own rule is stricter."""
OWN = "gitledger"
"""The client name of typed lines, which commands write and no hook may."""
EVENT_LIMIT = 512 * 1024
"""Bytes of one event's line; half of the 1 MiB that no blob may pass, so that a segment holds any event."""
SEGMENT_LIMIT = 1024 * 1024
"""Bytes of one journal segment."""

_FAULTY = (BadData, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
# What a line may raise that is not what it should be. What the machine raises (an object that is gone, a git that does
# not answer) is not among them: the line is sound then, and must not be journalled as unreadable.

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

    A line that is no event (its adapter cannot read it, it is too large, it names what is no record) becomes an
    `unreadable` one that keeps its text: nothing is lost, and no line keeps the others from being read.
    """
    lines = []
    findings = []
    for entry in entries:
        if entry.id in known:
            continue
        try:
            draft = clean(_draft(view, entry, readers, config, writer))
        except _FAULTY as e:
            why = str(e) if isinstance(e, BadData) else f"it is not what it should be ({type(e).__name__})"
            findings.append(Finding("unreadable", f"WAL entry {entry.id}", why, "its text is kept in the journal"))
            draft = clean(_unreadable(entry, why, config))
        lines.append(_stamped(view, draft, writer))
    return Ingested(tuple(lines), tuple(findings))


def stamp(view: View, draft: Draft, writer: str) -> tuple[Event, bytes]:
    """The next event of `writer`, cleaned, folded into `view`, with its journal line."""
    return _stamped(view, clean(draft), writer)


def _stamped(view: View, draft: Draft, writer: str) -> tuple[Event, bytes]:
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


def permitted(text: str, config: Config) -> str:
    """As much of what was said as `capture.text` lets into the journal."""
    match config.capture.text:
        case "none":
            return ""
        case "full":
            return text
        case _:
            return bounded(text, config.capture.limit)


def _draft(view: View, entry: Entry, readers: Mapping[str, Reader], config: Config, writer: str) -> Draft:
    if entry.client == OWN:
        return _typed(entry)
    reader = readers.get(entry.client)
    if reader is None:
        raise BadData(f"no adapter for client {entry.client}")
    return reader(view, entry, config, writer)


def _typed(entry: Entry) -> Draft:
    where = f"WAL entry {entry.id}"
    value = codec.parse(entry.payload, where)
    if not isinstance(value, dict) or value.keys() != {"session", "task", "records", "data"}:
        raise BadData(f"{where} is not a typed line of gitledger")
    session, task, records, data = value["session"], value["task"], value["records"], value["data"]
    if not (
        all(key is None or isinstance(key, str) for key in (session, task))
        and isinstance(records, dict)
        and isinstance(data, dict)
    ):
        raise BadData(f"{where} has a field of the wrong type")
    for key in records:
        if layout.numbered(key) is None:
            layout.plain_stem(key)
        if key.startswith("writer:"):  # whose key is whose is said by signed commits of their own, never by a command
            raise BadData(f"{where} would change a writer's key")
    changes = {key: codec.read_change(change, where) for key, change in records.items()}
    return Draft(entry.id, entry.at, entry.event, session, task, changes, data)


def _unreadable(entry: Entry, why: str, config: Config) -> Draft:
    text = entry.payload[: TEXT_LIMIT * 4].decode("utf-8", "backslashreplace")
    if entry.client != OWN:
        text = permitted(text, config)
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
