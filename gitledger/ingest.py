"""From the write-ahead log to events: each line once, redacted and bounded, stamped in order.

The same function serves a commit (whose lines it returns, to be journalled) and every read (which folds what is
pending on top of the tip and throws the lines away), so that both always tell the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitledger import codec, layout
from gitledger.digests import sha256
from gitledger.errors import BadData
from gitledger.frame import Entry
from gitledger.model import Change, Draft, Event, Finding, Json
from gitledger.patterns import pattern
from gitledger.redact import Clean, CleanBytes, Known, bounded, of_events, redact, redact_json, within
from gitledger.render.text import slug
from gitledger.schema import Config
from gitledger.values import InitVar, dataclass, field
from gitledger.view import Tail, View

TEXT_LIMIT = 20_000
"""Characters of any one text in an event, unless its own rule is stricter."""
OWN = "gitledger"
"""The client name of typed lines, which commands write and no hook may."""
EVENT_LIMIT = 512 * 1024
"""Bytes of one event's line; half of the 1 MiB that no blob may pass, so that a segment holds any event."""
LAST = codec.BIGGEST - 1
"""The last place in the order of events. Reading goes on where a hostile writer took it; no commit is made there."""
SEGMENT_LIMIT = 1024 * 1024
"""Bytes of one journal segment."""

_ID = pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AT = pattern(r"[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_NO_TIME = "1970-01-01T00:00:00.000Z"
_TYPE = pattern(r"[a-z]{1,20}(?:[._][a-z]{1,20}){0,3}")

_FAULTY = (BadData, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
# What a line may raise that is not what it should be. What the machine raises (an object that is gone, a git that does
# not answer) is not among them: the line is sound then, and must not be journalled as unreadable.

Reader = Callable[[View, Entry, Config, str], Draft]
"""One client's adapter: the event that a captured payload is. The last argument is the writer's id. The one that is
called "*", which no client can be, is for those that have none of their own."""


class _Seal:
    """What only `clean` has: without it no draft can be called clean."""

    __slots__ = ()


_SEAL = _Seal()


@dataclass(frozen=True, slots=True)
class CleanDraft(Draft):
    """A draft whose every text has been through the rules; only `clean` makes one, and only of these come events."""

    seal: InitVar[_Seal] = field(kw_only=True)

    def __post_init__(self, seal: _Seal) -> None:
        if seal is not _SEAL:
            raise TypeError("a draft is made clean by gitledger.ingest.clean, and by nothing else")


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a WAL was worth: events with their lines, in order, and the faults met on the way."""

    lines: tuple[tuple[Event, CleanBytes], ...]
    findings: tuple[Finding, ...]


def ingest(
    view: View,
    entries: Iterable[Entry],
    *,
    writer: str,
    readers: Mapping[str, Reader],
    config: Config,
    known: frozenset[str] = frozenset(),
    secrets: Known = (),
) -> Ingested:
    """Fold every entry that is not `known` into `view` and return its events, without `secrets` that somebody found.

    A line that is no event (its adapter cannot read it, it is too large, it names what is no record) becomes an
    `unreadable` one that keeps its text: nothing is lost, and no line keeps the others from being read.
    """
    lines = []
    findings = []
    for entry in entries:
        if _id(entry) in known:
            continue
        try:
            draft = clean(_draft(view, entry, readers, config, writer), secrets)
        except _FAULTY as e:
            why = str(e) if isinstance(e, BadData) else f"it is not what it should be ({type(e).__name__})"
            findings.append(Finding("unreadable", f"WAL entry {entry.id}", why, "its text is kept in the journal"))
            draft = clean(_unreadable(entry, why, config), secrets)
        lines.append(_stamped(view, draft, writer))
    return Ingested(tuple(lines), tuple(findings))


def stamp(view: View, draft: Draft, writer: str, secrets: Known = ()) -> tuple[Event, CleanBytes]:
    """The next event of `writer`, cleaned, folded into `view`, with its journal line."""
    return _stamped(view, clean(draft, secrets), writer)


def _stamped(view: View, draft: CleanDraft, writer: str) -> tuple[Event, CleanBytes]:
    tail = view.manifest.writers.get(writer, Tail())
    event = Event(
        v=codec.VERSION,
        id=draft.id,
        writer=writer,
        seq=tail.seq + 1,
        lamport=min(view.manifest.lamport + 1, LAST),
        at=draft.at,
        type=draft.type,
        session=draft.session,
        task=draft.task,
        records=draft.records,
        data=draft.data,
        prev=tail.last,
    )
    line = of_events(codec.event_line(event))
    view.apply(event, line)
    return event, line


def clean(draft: Draft, secrets: Known = ()) -> CleanDraft:
    """`draft` without secrets and without texts beyond their bounds; what was cut says so in its place.

    Raises BadData for what no event may be called or change, and where it is too large all the same.
    """
    _check_names(draft)
    records = {key: _named_anew(_read(codec.change_value(change), secrets)) for key, change in draft.records.items()}
    data = _read(draft.data, secrets)
    for limit in (TEXT_LIMIT, 4_000, 500, 80):
        if limit < TEXT_LIMIT:
            records, data = _cut(records, limit), _cut(data, limit)
        size = len(codec.canonical([data, records]))
        if size <= EVENT_LIMIT:
            changes = {key: Change(row.get("set", {}), row.get("items", {})) for key, row in records.items()}
            return CleanDraft(draft.id, draft.at, draft.type, draft.session, draft.task, changes, data, seal=_SEAL)
    raise BadData(f"event {draft.id} of type {draft.type} holds too much to be journalled ({size} bytes); split it")


def _named_anew(change: Json) -> Json:
    """A change whose slug is made of the title as it is now: in a slug no rule would know a secret again."""
    fields = change.get("set", {})
    if isinstance(title := fields.get("title"), Clean) and "slug" in fields:
        return {**change, "set": {**fields, "slug": redact(slug(title))}}
    return change


def _read(value: Json, secrets: Known) -> Json:
    return redact_json(value, TEXT_LIMIT, secrets)


def _check_names(draft: Draft) -> None:
    """Raise BadData unless id, time, type and keys have the shapes that leave no room for a text."""
    keys = [key for key in (draft.session, draft.task) if key is not None]
    for key in (*keys, *draft.records):
        if layout.numbered(key) is None:
            layout.plain_stem(key)
    if not (_ID.fullmatch(draft.id) and _AT.fullmatch(draft.at) and _TYPE.fullmatch(draft.type)):
        shown = [str(word)[:40] for word in (draft.id, draft.at, draft.type)]
        raise BadData(f"no event can have the id, time and type {shown}; see docs/format.md")


def segments(lines: Iterable[CleanBytes]) -> list[CleanBytes]:
    """The journal lines of one commit, packed into parts of at most SEGMENT_LIMIT bytes each."""
    packed: list[list[bytes]] = []
    size = SEGMENT_LIMIT
    for line in lines:
        if size + len(line) > SEGMENT_LIMIT:
            packed.append([])
            size = 0
        packed[-1].append(line)
        size += len(line)
    return [of_events(b"".join(segment)) for segment in packed]


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


def typed_payload(draft: CleanDraft) -> bytes:
    """A draft as the payload of a typed WAL line: what a command says is clean before it is logged."""
    return codec.canonical(
        {
            "session": draft.session,
            "task": draft.task,
            "records": {key: codec.change_value(change) for key, change in draft.records.items()},
            "data": draft.data,
        }
    ).rstrip(b"\n")


def permitted(text: str, config: Config) -> Clean:
    """As much of what was said as `capture.text` lets into the journal, redacted before it is cut."""
    limits = {"none": 0, "full": TEXT_LIMIT}
    limit = limits.get(config.capture.text, config.capture.limit)
    return within(text, limit) if limit else redact("")


def _draft(view: View, entry: Entry, readers: Mapping[str, Reader], config: Config, writer: str) -> Draft:
    if entry.client == OWN:
        return _typed(entry, writer)
    reader = readers.get(entry.client) or readers.get("*")
    if reader is None:
        raise BadData(f"no adapter for client {entry.client}")
    return reader(view, entry, config, writer)


def _typed(entry: Entry, writer: str) -> Draft:
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
    changes = dict(_own(key, change, writer) for key, change in changes.items())
    return Draft(entry.id, entry.at, entry.event, session, task, changes, data)


def _own(key: str, change: Change, writer: str) -> tuple[str, Change]:
    """What a command said of this clone's work tree or of whose a session is, under the clone's writer of now.

    The line may be older than that: a clone whose key was revoked goes on as another writer, with its log.
    """
    if key.startswith("worktree:"):
        return f"worktree:{writer}:{key.rpartition(':')[2]}", change
    if layout.is_session(key) and "by" in change.set:
        return key, Change({**change.set, "by": writer}, change.items)
    return key, change


def _unreadable(entry: Entry, why: str, config: Config) -> Draft:
    text = entry.payload.decode("utf-8", "backslashreplace")
    kept = within(text, TEXT_LIMIT) if entry.client == OWN else permitted(text, config)
    data = {"client": entry.client, "event": entry.event, "why": why, "text": kept, "bytes": len(entry.payload)}
    return Draft(_id(entry), entry.at if _AT.fullmatch(entry.at) else _NO_TIME, "unreadable", data=data)


def _id(entry: Entry) -> str:
    """The id of an entry's event: its own, or one made of it where that is none."""
    if _ID.fullmatch(entry.id):
        return entry.id
    digest = sha256(entry.id.encode("utf-8", "backslashreplace")).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _cut(value: Json, limit: int) -> Json:
    if isinstance(value, Clean):
        return bounded(value, limit)
    if isinstance(value, list):
        return [_cut(inner, limit) for inner in value]
    if isinstance(value, dict):
        return {_cut(key, limit): _cut(inner, limit) for key, inner in value.items()}
    return value
