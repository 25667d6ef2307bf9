"""Reading a ledger without a checkout: its commits, its documents and files, and its events in order.

Everything here streams: what is in memory follows the size of one commit or segment, never that of the history.
A fault in the data becomes a Finding, and reading goes on behind it.
"""

from __future__ import annotations

import heapq
import io
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from gitledger import codec, layout, objects, transaction, wal
from gitledger.errors import BadData, LedgerError, MissingObject, NoSuchRecord
from gitledger.ledger import Ledger
from gitledger.model import Event, Finding, Key, Oid
from gitledger.objects import FILE, Commit, Get, TreeEntry
from gitledger.patterns import pattern
from gitledger.render import documents
from gitledger.shards import Read
from gitledger.store import Store
from gitledger.values import dataclass
from gitledger.view import View

_HEX = pattern(r"[0-9a-f]{4,64}\Z")
_SEGMENT = pattern(r"([0-9a-f]{2})(?:\.([1-9][0-9]{0,4}))?\.jsonl\Z")
_BYTE = pattern(r"[0-9a-f]{2}\Z")
_WRITER = pattern(r"[a-z0-9]{4,16}\Z")


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def commits(store: Store, tip: Oid) -> Iterator[tuple[Oid, Commit]]:
    """Every commit that `tip` reaches, newest first by the committer's time, none before one of its children.

    What can be read comes before MissingObject is raised for what cannot (a shallow clone's parents).
    """
    seen = {tip}
    waiting: list[tuple[int, int, Oid, Commit]] = []
    lost: MissingObject | None = None

    def add(oid: Oid) -> None:
        commit = objects.parse_commit(store.get(oid).data)
        heapq.heappush(waiting, (-seconds(commit), len(seen), oid, commit))

    add(tip)
    while waiting:
        _, _, oid, commit = heapq.heappop(waiting)
        yield oid, commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                try:
                    add(parent)
                except MissingObject as e:
                    lost = lost or e
    if lost is not None:
        raise lost


def seconds(commit: Commit) -> int:
    """The committer's time in seconds since 1970, 0 where the line holds none."""
    found = re.search(r"> (\d{1,12}) [+-]\d{4}\Z", commit.committer)
    return int(found[1]) if found else 0


def trailers(commit: Commit) -> dict[str, str]:
    """The `Ledger…` lines of the message's last paragraph: body text may hold lines that look like them."""
    last = commit.message.rstrip("\n").rpartition("\n\n")[2]
    return dict(line.split(": ", 1) for line in last.split("\n") if line.startswith("Ledger") and ": " in line)


def find_commit(store: Store, tip: Oid, text: str) -> tuple[Oid, Commit] | None:
    """The ledger's commit that `text` is the id of, or the beginning of its id; BadData where several begin so."""
    if not _HEX.match(text):
        return None
    found: list[tuple[Oid, Commit]] = []
    try:
        found.extend(islice(((oid, commit) for oid, commit in commits(store, tip) if oid.startswith(text)), 3))
    except MissingObject:
        if not found:
            raise
    if len(found) > 1:
        raise BadData(f"{text} begins several commits: {', '.join(oid[:16] for oid, _ in found)}; give more digits")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One file that two trees do not have alike; None where one of them lacks it."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


def differences(
    get_old: Get, old: Oid | None, get_new: Get, new: Oid | None, faults: list[Finding], path: str = ""
) -> Iterator[Difference]:
    """Where two trees differ, file by file; equal folders are never read, and one that cannot be read is a fault."""
    if old == new:
        return
    left = folder(get_old, old, path, faults) if old else {}
    right = folder(get_new, new, path, faults) if new else {}
    for name in sorted(left.keys() | right.keys()):
        a, b = left.get(name), right.get(name)
        if a == b:
            continue
        if all(entry is None or entry.is_folder for entry in (a, b)):
            below = (a.oid if a else None, get_new, b.oid if b else None, faults, f"{path}{name}/")
            yield from differences(get_old, *below)
        else:
            yield Difference(path + name, a, b)


def changed(store: Store, commit: Commit, faults: list[Finding]) -> Iterator[Difference]:
    """What a commit changed against its first parent."""
    before = objects.parse_commit(store.get(commit.parents[0]).data).tree if commit.parents else None
    return differences(store.get, before, store.get, commit.tree, faults)


def folder(get: Get, tree: Oid, path: str, faults: list[Finding]) -> dict[str, TreeEntry]:
    """The entries of a tree; none, and a fault that names `path`, where it is damaged or gone."""
    try:
        return objects.entries(get, tree) or {}
    except LedgerError as e:
        faults.append(Finding("folder", path or "/", str(e), "run: git fsck"))
        return {}


def reader(get: Get, tree: Oid) -> Read:
    """What reads one tree's files by path and keeps the folders that it came through, for whoever reads very many."""

    @lru_cache(maxsize=64)
    def rows(path: str) -> dict[str, TreeEntry]:
        above, _, name = path.rpartition("/")
        entry = rows(above).get(name) if path else None
        if path and (entry is None or not entry.is_folder):
            return {}
        return objects.entries(get, entry.oid if entry else tree) or {}

    def read(path: str) -> bytes | None:
        above, _, name = path.rpartition("/")
        entry = rows(above).get(name)
        return get(entry.oid).data if entry and entry.mode == FILE else None

    return read


# ── documents and files ──────────────────────────────────────────────────────────────────────
def papers(view: View, key: Key) -> list[tuple[str, bytes]]:
    """Path and bytes of each document of a record as it stands now, the main one first; its JSON where it has none."""
    files = documents.files(view, key)
    if not files:
        raise NoSuchRecord(f"{key} is not in this ledger; find records with: gitledger search TEXT")
    stem = view.stem(key)
    named = [path for path in documents.paths(key, view.need(key), stem or "") if path in files]
    return [(path, files[path]) for path in named or [f"{stem}.json"]]


def document(view: View, key: Key) -> tuple[str, bytes]:
    """Path and bytes of a record's main document, as it stands now."""
    return papers(view, key)[0]


def record_key(view: View, text: str, writer: str) -> Key | None:
    """The key of what `text` names: an id as people write it, `project`, `config` or a writer's; None for no id."""
    if text in (layout.PROJECT, layout.CONFIG) or text.startswith(("writer:", "worktree:")):
        return text if view.record(text) else None
    if layout.is_session(text) or layout.parse_id(text):
        return view.resolve(text, None, writer)
    return None


def file(get: Get, tree: Oid, path: str) -> bytes:
    """The bytes of a file in the ledger's tree; BadData for a path that leaves it, NoSuchRecord with what is near."""
    parts = objects.check_path(path.rstrip("/"))
    data = objects.read(get, tree, "/".join(parts))
    if data is not None:
        return data
    n = len(parts)
    while (rows := objects.entries(get, tree, "/".join(parts[:n]))) is None:
        n -= 1  # ends at the top folder, which is always there
    where = "/".join(parts[:n]) or "the top folder"
    shown = _near("".join(parts[n : n + 1]), [f"{e.name}/" if e.is_folder else e.name for e in rows.values()])
    what = "is a folder" if n == len(parts) else "is not in the ledger"
    raise NoSuchRecord(f"{path} {what}; {where} holds {shown}")


def _near(name: str, names: list[str]) -> str:
    if name:
        import difflib

        if close := difflib.get_close_matches(name, names, 5, 0.4):
            return f"names like it: {', '.join(close)}"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{', '.join(names[:12]) or 'nothing'}{more}"


# ── the journal ──────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file of a writer's journal, in the order of the journal."""

    n: int
    part: int
    path: str
    oid: Oid


def writers(get: Get, tree: Oid, faults: list[Finding]) -> dict[str, Oid]:
    """The writers that have a journal, with its folder."""
    start = folder(get, tree, "/", faults).get("journal")
    rows = folder(get, start.oid, "journal/", faults) if start else {}
    return {name: rows[name].oid for name in sorted(rows) if belongs(rows[name], 0)}


def belongs(entry: TreeEntry, depth: int) -> bool:
    """True where a folder `depth` levels below `journal/` may hold such an entry: writers, two bytes, files."""
    if depth == 3:
        return entry.mode == FILE and bool(_SEGMENT.match(entry.name))
    return entry.is_folder and bool((_BYTE if depth else _WRITER).match(entry.name))


def segments(
    get: Get, start: Oid, writer: str, faults: list[Finding], *, newest_first: bool = False
) -> Iterator[Segment]:
    """The files of a writer's journal, whose folder is `start`, in order; nothing else that may lie among them."""

    def below(path: str, oid: Oid, high: int, depth: int) -> Iterator[Segment]:
        rows = folder(get, oid, f"{path}/", faults)
        mine = sorted((name for name, entry in rows.items() if belongs(entry, depth)), reverse=newest_first)
        if depth < 3:
            for name in mine:
                yield from below(f"{path}/{name}", rows[name].oid, high << 8 | int(name, 16), depth + 1)
            return
        named = [(match, rows[name].oid) for name in mine if (match := _SEGMENT.match(name))]
        found = [Segment(high << 8 | int(m[1], 16), int(m[2] or 0), f"{path}/{m[0]}", oid) for m, oid in named]
        yield from sorted(found, reverse=newest_first)

    return below(f"journal/{writer}", start, 0, 1)


def lines(data: bytes) -> list[bytes]:
    """The lines of a segment with their newlines, split at newlines alone; the last may lack one."""
    return io.BytesIO(data).readlines()


@dataclass(frozen=True, slots=True)
class Logged:
    """An event with its journal line; `pending` while it is in this clone's log alone."""

    event: Event
    line: bytes
    pending: bool = False


def events(get: Get, tree: Oid, faults: list[Finding], *, newest_first: bool = False) -> Iterator[Logged]:
    """All journalled events of a tree in order, of all writers; a line that cannot be read becomes a fault."""

    def of(writer: str, start: Oid) -> Iterator[Logged]:
        for segment in segments(get, start, writer, faults, newest_first=newest_first):
            try:
                found = lines(get(segment.oid).data)
            except LedgerError as e:
                faults.append(Finding("segment", segment.path, str(e), "run: gitledger fsck"))
                continue
            numbered = list(enumerate(found, 1))
            for n, line in reversed(numbered) if newest_first else numbered:
                try:
                    yield Logged(codec.read_event(line, f"{segment.path} line {n}"), line)
                except BadData as e:
                    faults.append(Finding("line", f"{segment.path} line {n}", str(e), "run: gitledger fsck"))

    streams = [of(writer, start) for writer, start in writers(get, tree, faults).items()]
    return heapq.merge(*streams, key=lambda logged: logged.event.stamp, reverse=newest_first)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events to tell of; "" means any. A type names itself and all below it: `task` is also `task.added`."""

    writer: str = ""
    session: Key = ""
    task: Key = ""
    type: str = ""

    def takes(self, event: Event) -> bool:
        """True where the event is one of them."""
        return (
            self.writer in ("", event.writer)
            and self.session in ("", event.session)
            and (self.task in ("", event.task) or self.task in event.records)
            and (self.type in ("", event.type) or event.type.startswith(f"{self.type}."))
        )


def journal(
    ledger: Ledger, faults: list[Finding], wanted: Wanted = Wanted(), newest: int | None = None
) -> Iterator[Logged]:
    """The events that are wanted, in order, then the pending ones; with `newest`, only the last so many."""
    store = ledger.desk.store
    entries, damaged = wal.pending(ledger.desk.home.wal)  # before the tip: see wal.py
    tip = ledger.tip()
    taken = transaction.fold_pending(ledger.desk, transaction.view_at(ledger.desk, tip), entries)
    faults += [*damaged, *taken.findings]
    waiting = [Logged(event, line, pending=True) for event, line in taken.lines if wanted.takes(event)]
    if newest is None:
        yield from (logged for logged in events(store.get, tip, faults) if wanted.takes(logged.event))
        yield from waiting
        return
    waiting = waiting[max(len(waiting) - newest, 0) :]
    # From the end, so that the last ten of a hundred thousand cost ten.
    backwards = events(store.get, tip, faults, newest_first=True)
    older = islice((logged for logged in backwards if wanted.takes(logged.event)), newest - len(waiting))
    yield from reversed(list(older))
    yield from waiting
