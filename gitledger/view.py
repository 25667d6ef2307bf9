"""The ledger's records at a tip with events folded on top: loads what it is asked for, and nothing else.

A View is a value under construction, owned by one call. `read` gives the bytes of a path in the tip's tree;
a View over `lambda path: None` is an empty ledger, and folding a whole journal into it is a rebuild.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from gitledger import codec, fold, layout, listing
from gitledger.errors import BadData, NoSuchRecord
from gitledger.layout import Kind
from gitledger.model import Event, Json, Key, Record

_UUID = re.compile(r"[0-9A-Za-z-]{0,64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}|")
_WRITER = re.compile(r"[a-z0-9]{4,16}")
_HASH = re.compile(r"[0-9a-f]{64}|")
_LETTER = re.compile("[A-Z]")
Read = Callable[[str], bytes | None]
Row = dict[str, Json]


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
    """Records by key, rows by shard, and what has been touched since the tip."""

    def __init__(self, read: Read) -> None:
        self.read = read
        data = read(layout.MANIFEST)
        self.manifest = read_manifest(data) if data is not None else Manifest()
        self.tip_writers = frozenset(self.manifest.writers)  # whose journals the tip holds
        self.touched: dict[Key, None] = {}  # a dict keeps the order of touching
        self._records: dict[Key, Record | None] = {}
        self._shards: dict[str, dict[Key, Row]] = {}
        self._tip: dict[str, dict[Key, Row]] = {}
        self._names: dict[str, dict[Key, str]] = {}
        self._tip_names: dict[str, dict[Key, str]] = {}
        self._json: dict[str, Json] = {}

    def fork(self) -> View:
        """The same records as a value of their own: what is folded into one is not seen by the other."""
        other = View.__new__(View)
        other.read, other.tip_writers = self.read, self.tip_writers
        # Records, rows and small files are replaced, never changed, so only what holds them is copied.
        other.manifest = replace(
            self.manifest,
            writers={writer: replace(tail) for writer, tail in self.manifest.writers.items()},
            numbers=dict(self.manifest.numbers),
        )
        other.touched, other._records, other._json = dict(self.touched), dict(self._records), dict(self._json)
        other._shards, other._names = dict(self._shards), dict(self._names)
        other._tip, other._tip_names = dict(self._tip), dict(self._tip_names)
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
        """The index rows of one shard folder, such as `tasks/00xx`, as they stand now; do not change them."""
        if folder not in self._shards:
            data = self.read(f"{folder}/index.json")
            path = f"{folder}/index.json"
            self._tip[folder] = listing.shard(codec.parse(data, path), folder) if data is not None else {}
            self._shards[folder] = self._tip[folder]
        return self._shards[folder]

    def tip_rows(self, folder: str) -> dict[Key, Row]:
        """The index rows of one shard folder as the tip has them, whatever was folded on top; do not change them."""
        self.rows(folder)
        return self._tip[folder]

    def row(self, key: Key) -> Row | None:
        """The index row of a numbered record."""
        folder = layout.shard_folder(key)
        return self.rows(folder).get(key) if folder else None

    def name(self, key: Key) -> str:
        """The name people see for a key: `T-0007`, or `T-0007@k3f9c2` where the bare one is another's."""
        folder = layout.shard_folder(key)
        return self.names(folder).get(key, key) if folder else key

    def names(self, folder: str) -> dict[Key, str]:
        """The names that one shard's records show, as they stand now; do not change them."""
        if folder not in self._names:
            self._names[folder] = layout.names(self.rows(folder))
        return self._names[folder]

    def tip_names(self, folder: str) -> dict[Key, str]:
        """The names that one shard's records show at the tip; do not change them."""
        if folder not in self._tip_names:
            self._tip_names[folder] = layout.names(self.tip_rows(folder))
        return self._tip_names[folder]

    def stem(self, key: Key) -> str | None:
        """The path of a record without its ending; None for a numbered record that no index lists."""
        return _stem(key, self.rows, self.names)

    def tip_stem(self, key: Key) -> str | None:
        """The path that the tip has a record under, without its ending; None for a numbered one it does not list."""
        return _stem(key, self.tip_rows, self.tip_names)

    def folder(self, task: Key) -> str | None:
        """A task's folder, or None where the ledger has no such task."""
        return _folder(task, self.rows, self.names)

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
        rows = self.rows(f"{ref.kind.folder}/{ref.kind.shard(ref.n)}")
        shown_as = {name: key for key, name in layout.names(rows).items()}
        for candidate in (layout.key_of(ref.kind, ref.n, ref.writer or writer or ""), shown_as.get(text)):
            if candidate and candidate in rows:
                return candidate
        listing = "gitledger log" if ref.kind is layout.CHECKPOINT else f"gitledger search {ref.kind.letter}-"
        if ref.kind in (layout.TASK, layout.HANDOVER):
            listing = f"gitledger {ref.kind.word} list"
        raise NoSuchRecord(f"no {ref.kind.word} {shown} in this ledger; list what is there with: {listing}")

    def shards(self, kind: Kind) -> dict[str, dict[str, int]]:
        """Counts by state of each shard of a kind: `{"00xx": {"open": 3, "closed": 97}}`."""
        return dict(self.json(f"{kind.folder}/index.json", {"shards": {}})["shards"])

    def open_rows(self, kind: Kind, limit: int) -> tuple[list[tuple[Key, Row]], int]:
        """The newest `limit` open records of a kind, newest first, and how many are open in all.

        Reads only the shards that hold an open one, newest first, so that cost follows `limit`, not history.
        """
        counts = self._counts(kind)
        found: list[tuple[Key, Row]] = []
        for shard in sorted(counts, key=lambda s: (len(s), s), reverse=True):
            if len(found) >= limit:
                break
            if counts[shard].get("open"):
                rows = self.rows(f"{kind.folder}/{shard}")
                found += sorted((r for r in rows.items() if r[1]["state"] == "open"), key=_by_number, reverse=True)
        return found[:limit], sum(c.get("open", 0) for c in counts.values())

    def having(self, kind: Kind, status: str, most: int) -> list[Key]:
        """At most `most` records of a kind that have a status, newest first; reads only shards that hold one."""
        counts = self._counts(kind)
        found: list[tuple[Key, Row]] = []
        for shard in sorted(counts, key=lambda s: (len(s), s), reverse=True):
            if len(found) >= most:
                break
            if counts[shard].get(f"status:{status}"):
                rows = self.rows(f"{kind.folder}/{shard}").items()
                found += sorted((r for r in rows if r[1]["status"] == status), key=_by_number, reverse=True)
        return [key for key, _ in found[:most]]

    def _counts(self, kind: Kind) -> dict[str, dict[str, int]]:
        counts = self.shards(kind)
        for folder in self._shards:  # events folded on top are counted from their rows
            if folder.startswith(kind.folder + "/"):
                counts[folder.rpartition("/")[2]] = count_states(self._shards[folder])
        return counts

    def walk(self, kind: Kind) -> Iterator[tuple[Key, Row]]:
        """Every record of a kind with its row, oldest first, one shard in memory at a time as it is reached."""
        known = set(self.shards(kind)) | {
            f.rpartition("/")[2] for f in self._shards if f.startswith(kind.folder + "/") and self._shards[f]
        }
        for shard in sorted(known, key=lambda s: (len(s), s)):
            yield from sorted(self.rows(f"{kind.folder}/{shard}").items(), key=_by_number)

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
        folder = layout.shard_folder(key)
        record = self._records[key]
        if folder and record:
            self._shards[folder] = {**self.rows(folder), key: index_row(kind, record)}
            self._names.pop(folder, None)


_Rows = Callable[[str], dict[Key, Row]]
_Names = Callable[[str], dict[Key, str]]


def _stem(key: Key, rows: _Rows, names: _Names) -> str | None:
    found, shard = layout.numbered(key), layout.shard_folder(key)
    if found is None or shard is None:
        return layout.plain_stem(key)
    row = rows(shard).get(key)
    if row is None:
        return None
    if found[0] is layout.TASK:
        return f"{_folder(key, rows, names)}/task"
    name = names(shard)[key]
    if found[0] is layout.CHECKPOINT:
        return layout.checkpoint_stem(key, name, _folder(row["task"], rows, names) if row["task"] else None)
    return layout.stem(key, name)


def _folder(task: Key, rows: _Rows, names: _Names) -> str | None:
    shard = layout.shard_folder(task)
    row = rows(shard).get(task) if shard else None
    return layout.task_folder(task, names(shard)[task], row["slug"]) if shard and row else None


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


def count_states(rows: dict[Key, Row]) -> dict[str, int]:
    """How many rows are open and closed, and how many have each status."""
    counts = {"open": 0, "closed": 0}
    for row in rows.values():
        counts[row["state"]] += 1
        if row["status"]:
            counts[f"status:{row['status']}"] = counts.get(f"status:{row['status']}", 0) + 1
    return counts


def _by_number(item: tuple[Key, Row]) -> tuple[int, str]:
    found = layout.numbered(item[0])
    return (found[1] if found else 0, item[0])
