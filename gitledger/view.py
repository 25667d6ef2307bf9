"""The ledger's records at a tip with events folded on top: loads what it is asked for, and nothing else.

A View is a value under construction, owned by one call. `read` gives the bytes of a path in the tip's tree;
a View over `lambda path: None` is an empty ledger, and folding a whole journal into it is a rebuild.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from gitledger import codec, fold, layout, listing
from gitledger.errors import BadData, NoSuchRecord
from gitledger.layout import Kind
from gitledger.model import Event, Json, Key, Record
from gitledger.patterns import pattern
from gitledger.shards import Counts, Read, Row, Rows, Shards, total
from gitledger.values import dataclass, field, replace

_UUID = pattern(r"[0-9A-Za-z-]{0,64}")
_NAME = pattern(r"[a-z0-9][a-z0-9-]{0,62}|")
_WRITER = pattern(r"[a-z0-9]{4,16}")
_HASH = pattern(r"[0-9a-f]{64}|")
_LETTER = pattern("[A-Z]")
DEPENDS = 20
"""How many tasks one may depend on; what somebody else's program says beyond them no list shows."""


@dataclass(slots=True)
class Tail:
    """Where one writer's journal ends: its last seq, that line's SHA-256, and how many segments it has."""

    seq: int = 0
    last: str = ""
    segments: int = 0


@dataclass(slots=True)
class Manifest:
    """`manifest.json`: what the ledger is, and where every writer's journal and every number stands."""

    uuid: str = ""
    name: str = ""
    lamport: int = 0
    writers: dict[str, Tail] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    format: int = layout.FORMAT
    renderer: int = layout.RENDERER

    def value(self) -> Json:
        """The manifest as JSON."""
        return {
            "format": self.format,
            "renderer": self.renderer,
            "ledger": {"uuid": self.uuid, "name": self.name},
            "lamport": self.lamport,
            "numbers": self.numbers,
            "writers": {w: {"seq": t.seq, "last": t.last, "segments": t.segments} for w, t in self.writers.items()},
        }


def read_manifest(data: bytes) -> Manifest:
    """The manifest of its bytes; raise BadData where it is damaged or of a newer format."""
    value = codec.parse(data, layout.MANIFEST)
    try:
        if value["format"] > layout.FORMAT:
            raise BadData(
                f"the ledger has format {value['format']}, this gitledger reads {layout.FORMAT}; update gitledger"
            )
        # Its uuid and name go into commits' trailers, and its numbers into paths: no form but their own gets that far.
        return Manifest(
            _text(value["ledger"]["uuid"], _UUID),
            _text(value["ledger"]["name"], _NAME),
            _number(value["lamport"]),
            {
                _text(w, _WRITER): Tail(_number(t["seq"]), _text(t["last"], _HASH), _number(t["segments"]))
                for w, t in value["writers"].items()
            },
            {_text(letter, _LETTER): _number(n) for letter, n in value["numbers"].items()},
            value["format"],
            _number(value["renderer"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadData(f"{layout.MANIFEST} is not a manifest ({type(e).__name__}: {e}); run: gitledger fsck") from e


def _text(value: Json, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise ValueError(f"{str(value)[:60]!r} where {form.pattern} belongs")
    return value


def _number(value: Json) -> int:
    if type(value) is not int or not 0 <= value < codec.BIGGEST:
        raise ValueError(f"{str(value)[:60]!r} where a number belongs")
    return value


class View:
    """Records by key, their index rows, and what has been touched since the tip."""

    def __init__(self, read: Read) -> None:
        self.read = read
        data = read(layout.MANIFEST)
        self.manifest = read_manifest(data) if data is not None else Manifest()
        self.tip_writers = frozenset(self.manifest.writers)  # whose journals the tip holds
        self.touched: dict[Key, None] = {}  # a dict keeps the order of touching
        self._records: dict[Key, Record | None] = {}
        self.index = Shards(read)
        self._json: dict[str, Json] = {}

    def fork(self) -> View:
        """The same records as a value of their own: what is folded into one is not seen by the other."""
        other = View.__new__(View)
        other.read, other.tip_writers = self.read, self.tip_writers
        # Records and small files are replaced, never changed, so only what holds them is copied.
        other.manifest = replace(
            self.manifest,
            writers={writer: replace(tail) for writer, tail in self.manifest.writers.items()},
            numbers=dict(self.manifest.numbers),
        )
        other.touched, other._records, other._json = dict(self.touched), dict(self._records), dict(self._json)
        other.index = self.index.fork()
        return other

    # ── reading ──────────────────────────────────────────────────────────────────────────
    def record(self, key: Key) -> Record | None:
        """The record of a key, or None; raise BadData where its file is damaged."""
        if key not in self._records:
            path = self.tip_stem(key)  # not `stem`: an event folded on top may have given it another name by now
            data = self.read(f"{path}.json") if path else None
            found = codec.read_record(data, f"{path}.json") if data is not None else None
            if found is not None and found.key != key:
                raise BadData(f"{path}.json holds the record {found.key[:60]!r}; run: gitledger fsck")
            self._records[key] = found
        return self._records[key]

    def need(self, key: Key) -> Record:
        """The record of a key; raise NoSuchRecord where there is none."""
        found = self.record(key)
        if found is None:
            raise NoSuchRecord(f"{key} is not in this ledger; list what is there with: gitledger task list")
        return found

    def rows(self, folder: str) -> dict[Key, Row]:
        """All index rows of one shard folder, such as `tasks/00xx`, as they stand now, in the order of numbers."""
        parts = self.index.parts(folder)
        return {key: row for part in parts for key, row in sorted(self.index.rows(folder, part).items())}

    def row(self, key: Key) -> Row | None:
        """The index row of a numbered record."""
        return self.index.rows(*layout.part(key)).get(key) if layout.numbered(key) else None

    def name(self, key: Key) -> str:
        """The name people see for a key: `T-0007`, or `T-0007@k3f9c2` where the bare one is another's."""
        return self.index.names(*layout.part(key)).get(key, key) if layout.numbered(key) else key

    def names(self, folder: str) -> dict[Key, str]:
        """The names that all records of one shard show, as they stand now."""
        return {key: name for part in self.index.parts(folder) for key, name in self.index.names(folder, part).items()}

    def stem(self, key: Key) -> str | None:
        """The path of a record without its ending; None for a numbered record that no index lists."""
        return _stem(key, self.index.rows, self.index.names)

    def tip_stem(self, key: Key) -> str | None:
        """The path that the tip has a record under, without its ending; None for a numbered one it does not list."""
        return _stem(key, self.index.tip_rows, self.index.tip_names)

    def folder(self, task: Key) -> str | None:
        """A task's folder, or None where the ledger has no such task."""
        return _folder(task, self.index.rows, self.index.names)

    def resolve(self, text: str, kind: Kind | None = None, writer: str | None = None) -> Key:
        """The key that an id as people write it names; raise NoSuchRecord or BadData with the next step.

        A bare number is the record that shows it, except that one which `writer` made itself comes first.
        """
        shown = text[:60].encode("unicode_escape").decode()
        if layout.is_session(text):
            if self.record(text) is None:
                raise NoSuchRecord(f"no session {shown} in this ledger; list them with: gitledger session list")
            return text
        ref = layout.parse_id(text)
        if ref is None or (kind and ref.kind is not kind):
            want = kind or layout.TASK
            raise BadData(f"{shown!r} is no {want.word if kind else 'record'} id; write it like {want.number(7)}")
        part = layout.part_of(ref.kind, ref.n)
        rows = self.index.rows(*part)
        shown_as = {name: key for key, name in self.index.names(*part).items()}
        for candidate in (layout.key_of(ref.kind, ref.n, ref.writer or writer or ""), shown_as.get(text)):
            if candidate and candidate in rows:
                return candidate
        listing = "gitledger log" if ref.kind is layout.CHECKPOINT else f"gitledger search {ref.kind.letter}-"
        if ref.kind in (layout.TASK, layout.HANDOVER):
            listing = f"gitledger {ref.kind.word} list"
        raise NoSuchRecord(f"no {ref.kind.word} {shown} in this ledger; list what is there with: {listing}")

    def shards(self, kind: Kind) -> dict[str, Counts]:
        """Counts by state of each shard of a kind, as they stand now: `{"00xx": {"open": 3, "closed": 97}}`."""
        counts = dict(self.json(f"{kind.folder}/index.json", {"shards": {}})["shards"])
        for folder in self.index.changed_folders(kind):
            counts[folder.rpartition("/")[2]] = total(self.index.parts(folder).values())
        return counts

    def open_rows(self, kind: Kind, limit: int) -> tuple[list[tuple[Key, Row]], int]:
        """The newest `limit` open records of a kind, newest first, and how many are open in all.

        Reads only what holds an open one, newest first, so that cost follows `limit`, not history.
        """
        found = (one for one in self._newest(kind, "open") if one[1]["state"] == "open")
        return list(islice(found, limit)), sum(c.get("open", 0) for c in self.shards(kind).values())

    def having(self, kind: Kind, status: str, most: int) -> list[Key]:
        """At most `most` records of a kind that have a status, newest first; reads only what holds one."""
        found = (key for key, row in self._newest(kind, f"status:{status}") if row["status"] == status)
        return list(islice(found, most))

    def _newest(self, kind: Kind, counted: str) -> Iterator[tuple[Key, Row]]:
        """The records of a kind, newest first, passing over all parts that have none of what is counted."""
        counts = self.shards(kind)
        for shard in sorted(counts, key=_shard_order, reverse=True):
            if counts[shard].get(counted):
                folder = f"{kind.folder}/{shard}"
                for part, here in reversed(self.index.parts(folder).items()):
                    if here.get(counted):
                        yield from sorted(self.index.rows(folder, part).items(), reverse=True)

    def walk(self, kind: Kind) -> Iterator[tuple[Key, Row]]:
        """Every record of a kind with its row, oldest first, one shard in memory at a time as it is reached."""
        for shard in sorted(self.shards(kind), key=_shard_order):
            yield from self.rows(f"{kind.folder}/{shard}").items()

    def json(self, path: str, default: Json) -> Json:
        """A small JSON file of the tree, as events left it; `default` where it is absent."""
        if path not in self._json:
            data = self.read(path)
            self._json[path] = listing.checked(path, codec.parse(data, path)) if data is not None else default
        return self._json[path]

    # ── folding ──────────────────────────────────────────────────────────────────────────
    def apply(self, event: Event, line: bytes) -> None:
        """Fold one event in; `line` is its journal line."""
        self.manifest.lamport = max(self.manifest.lamport, event.lamport)
        tail = self.manifest.writers.setdefault(event.writer, Tail())
        if event.seq > tail.seq:
            tail.seq, tail.last = event.seq, codec.line_hash(line)
        if event.type == "ledger.created" and not self.manifest.uuid:
            self.manifest.uuid, self.manifest.name = event.data["uuid"], event.data["name"]
        for key, change in event.records.items():
            self._records[key] = fold.apply(self.record(key), key, change, event.stamp)
            self.touched[key] = None
            self._index(key)

    def put_json(self, path: str, value: Json) -> None:
        """Replace a small JSON file of the tree."""
        self._json[path] = value

    def touched_folders(self) -> set[str]:
        """Shard folders whose rows changed."""
        return {f for key in self.touched if (f := layout.shard_folder(key))}

    def next_number(self, kind: Kind, writer: str) -> Key:
        """The key of the next record of a kind: one above the highest number known."""
        return layout.key_of(kind, self.manifest.numbers.get(kind.letter, 0) + 1, writer)

    def _index(self, key: Key) -> None:
        found = layout.numbered(key)
        if found is None:
            return
        kind, n, _ = found
        self.manifest.numbers[kind.letter] = max(self.manifest.numbers.get(kind.letter, 0), n)
        record = self._records[key]
        if record:
            self.index.put(key, index_row(kind, record))


_Rows = Callable[[str, str], Rows]
_Names = Callable[[str, str], dict[Key, str]]


def _stem(key: Key, rows: _Rows, names: _Names) -> str | None:
    found = layout.numbered(key)
    if found is None:
        return layout.plain_stem(key)
    part = layout.part(key)
    row = rows(*part).get(key)
    if row is None:
        return None
    if found[0] is layout.TASK:
        return f"{_folder(key, rows, names)}/task"
    name = names(*part)[key]
    if found[0] is layout.CHECKPOINT:
        return layout.checkpoint_stem(key, name, _folder(row["task"], rows, names) if row["task"] else None)
    return layout.stem(key, name)


def _folder(task: Key, rows: _Rows, names: _Names) -> str | None:
    if layout.numbered(task) is None:
        return None
    part = layout.part(task)
    row = rows(*part).get(task)
    return layout.task_folder(task, names(*part)[task], row["slug"]) if row else None


def index_row(kind: Kind, record: Record) -> Row:
    """What a shard's index says of a record: enough to list it and to find its file."""
    born = record.fields.get("at")
    row: Row = {
        "state": "open" if is_open(kind, record) else "closed",
        "status": record.text("status"),
        "title": record.text("title"),
        "task": record.text("task") or None,
        "at": record.text("at"),
        "born": [born[1].lamport, born[1].writer, born[1].seq] if born else [],
    }
    if kind is layout.TASK:
        row["area"] = record.text("area")
        # It becomes part of a path, and another writer may have set it to anything.
        row["slug"] = re.sub(r"[^a-z0-9-]", "", record.text("slug"))[:60]
        # What the map of tasks needs; a key of another kind, which another writer may have set, leads nowhere.
        if layout.is_task(parent := record.text("parent")):
            row["parent"] = parent
        if row["status"] == "done" and record.text("accept_unproven"):
            row["unproven"] = True
        if depends := sorted(one["id"] for one in record.listed("depends") if one.get("live")):
            row["depends"] = [key for key in depends if layout.is_task(key)][:DEPENDS]
    return row


_CLOSED = {
    "T": ("done", "dropped"),
    "D": ("superseded",),
    "B": ("resolved",),
    "Q": ("answered",),
}


def is_open(kind: Kind, record: Record) -> bool:
    """True while a record still asks for something, or stands."""
    return kind.letter not in layout.IMMUTABLE and record.get("status", "") not in _CLOSED.get(kind.letter, ())


def _shard_order(shard: str) -> tuple[int, str]:
    return len(shard), shard
