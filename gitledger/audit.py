"""The ledger held against itself: the chains of its journal, and the tree that its events alone make.

A rebuild folds every event into an empty view and renders what that changes, as a commit does, but a thousand events
at a time: each lot over the tree that the lot before it made, kept in a temporary file. So memory follows one lot,
whatever the length of the history, and what is smaller than one lot is made in one piece.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from heapq import merge
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Protocol

from gitledger import codec, layout, objects, reading, wal
from gitledger.errors import BadData, LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Event, Finding, Oid
from gitledger.objects import FOLDER, Get, Object, TreeEntry
from gitledger.reading import Segment
from gitledger.render import tree
from gitledger.store import Store
from gitledger.values import dataclass, field, replace
from gitledger.view import Tail, View, read_manifest

LOT_EVENTS = 1_000
"""Events that are folded before their documents are rendered."""
LOT_BYTES = 2 << 20
"""Bytes of journal lines that one lot holds at most; as records and documents they take some ten times that."""

PRESSED_FROM = 4 << 10
"""Bytes from which an object is worth pressing before it goes into a temporary file."""

_PRESSED = b"z"
_ASK = "look at it with: gitledger get "
_HURT = "compare with another clone, or with git log of the ledger's branch, before you mend it"


# ── the journal's chains ─────────────────────────────────────────────────────────────────────
def chained(
    get: Get,
    root: Oid,
    faults: list[Finding],
    since: Mapping[str, Tail] = MappingProxyType({}),
    journals: Mapping[str, Oid] | None = None,
) -> Iterator[tuple[Event, bytes]]:
    """All events of a tree in order, each writer's journal checked on the way; what cannot be read is passed over.

    With `since`, only those behind the given ends of the writers' journals; with `journals`, only those writers'.
    """
    ids: set[bytes] = set()
    journals = reading.writers(get, root, faults) if journals is None else journals
    streams = [_chain(get, start, writer, ids, faults, since.get(writer, Tail())) for writer, start in journals.items()]
    return merge(*streams, key=lambda row: row[0].stamp)


def _chain(
    get: Get, start: Oid, writer: str, ids: set[bytes], faults: list[Finding], since: Tail
) -> Iterator[tuple[Event, bytes]]:
    seq, lamport, prev, lost = since.seq, 0, since.last, 0
    for segment in _whole(behind(get, start, writer, faults, since.segments), faults, since.segments):
        try:
            data = get(segment.oid).data
        except LedgerError as e:
            faults.append(Finding("segment", segment.path, str(e), _HURT))
            lost += 1
            continue
        for n, line in enumerate(reading.lines(data), 1):
            where = f"{segment.path} line {n}"
            try:
                event, canonical = codec.read_line(line, where)
            except BadData as e:
                faults.append(Finding("line", where, str(e), _HURT))
                prev, lost = codec.line_hash(line), lost + 1
                continue
            if not canonical:
                faults.append(Finding("form", where, "the line is not the canonical form of its event", _HURT))
            if event.seq != seq + 1 or event.prev != prev or event.lamport <= lamport or event.writer != writer:
                for rule, what in _faults(event, writer, seq, lamport, prev, lost):
                    faults.append(Finding(rule, where, what, _HURT))
            known = event.id.encode()
            if known in ids:
                faults.append(Finding("repeated", where, f"event {event.id} stands in the journal twice", _HURT))
            ids.add(known)
            seq, lamport, prev, lost = event.seq, event.lamport, codec.line_hash(line), 0
            yield event, line


def behind(get: Get, start: Oid, writer: str, faults: list[Finding], first: int) -> Iterable[Segment]:
    """The segments from number `first` on, in order; of the folders before it none is read but the first one's."""
    if not first:
        return reading.segments(get, start, writer, faults)
    backwards = reading.segments(get, start, writer, faults, newest_first=True)
    return reversed(list(takewhile(lambda segment: segment.n >= first, backwards)))


def _faults(event: Event, writer: str, seq: int, lamport: int, prev: str, lost: int) -> Iterator[tuple[str, str]]:
    if event.writer != writer:
        yield "writer", f"it names the writer {event.writer[:20]!r}"
    if event.seq <= seq:
        yield "seq", f"seq {event.seq} comes again after {seq}"
    elif event.seq != seq + 1 and not lost:
        yield "seq", f"seq goes from {seq} to {event.seq}"
    if event.prev != prev:
        yield "chain", f"it follows {event.prev[:12] or 'nothing'}, the line before it is {prev[:12] or 'nothing'}"
    if event.lamport <= lamport:
        yield "order", f"its place in the order, {event.lamport}, is not after {lamport}"


def _whole(segments: Iterable[Segment], faults: list[Finding], first: int = 0) -> Iterator[Segment]:
    n, part = first - 1, 0
    for segment in segments:
        if (segment.n, segment.part) not in ((n, part + 1), (n + 1, 0)):
            before = f"the last one before it is {n:06x}" if n >= 0 else "there is none before it"
            faults.append(Finding("segment", segment.path, f"segments are missing: {before}", _HURT))
        n, part = segment.n, segment.part
        yield segment


# ── the tree from the journal ────────────────────────────────────────────────────────────────
class Scratch:
    """Objects that only this process needs: in a temporary file that vanishes with it, what is not there in a store."""

    def __init__(self, get: Get) -> None:
        self._get = get
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this object)
        self._rows: dict[bytes, tuple[str, int, int]] = {}
        self._end = 0

    def get(self, oid: Oid) -> Object:
        """One object, from here or from the store."""
        row = self._rows.get(bytes.fromhex(oid))
        if row is None:
            return self._get(oid)
        kind, at, size = row
        data = os.pread(self._file.fileno(), size, at)
        return Object(kind, zlib.decompress(data[1:]) if data[:1] == _PRESSED else data[1:])  # type: ignore[arg-type]

    def put(self, made: Iterable[tuple[Oid, Object]]) -> None:
        """Keep objects."""
        for oid, thing in made:
            small = len(thing.data) < PRESSED_FROM
            data = b"=" + thing.data if small else _PRESSED + zlib.compress(thing.data, 1)
            self._rows.setdefault(bytes.fromhex(oid), (thing.kind, self._end, len(data)))
            self._file.write(data)
            self._end += len(data)
        self._file.flush()

    def below(self, tree: Oid) -> Iterator[tuple[Oid, Object]]:
        """The tree and all below it that is here and not in the store, once each: what a commit of it has to bring."""
        seen: set[Oid] = set()
        pending = [tree]
        while pending:
            oid = pending.pop()
            if oid in seen or bytes.fromhex(oid) not in self._rows:
                continue
            seen.add(oid)
            thing = self.get(oid)
            yield oid, thing
            if thing.kind == "tree":
                pending += [
                    entry.oid for entry in objects.parse_tree(thing.data, "sha1" if len(oid) == 40 else "sha256")
                ]

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


@dataclass(slots=True)
class Rebuilt:
    """A tree made from the journal of another one, and where its objects are."""

    tree: Oid
    events: int
    objects: Scratch
    faults: list[Finding] = field(default_factory=list)


@contextmanager
def rebuilt(ledger: Ledger, root: Oid, *, renderer: int = layout.RENDERER) -> Iterator[Rebuilt]:
    """The whole tree of `root` made again from its journal segments alone, which are taken as they are.

    An event that cannot be folded is a fault, and the others go on.
    """
    with remade(ledger.desk.store, root, renderer=renderer) as made:
        yield made


class Readable(Protocol):
    """What a tree is made again from: a store, or one with more objects in front of it."""

    @property
    def algorithm(self) -> str:
        """`sha1` or `sha256`."""

    @property
    def get(self) -> Get:
        """What gives an object."""


@contextmanager
def remade(
    ledger_store: Readable, root: Oid, base: Oid | None = None, *, renderer: int = layout.RENDERER
) -> Iterator[Rebuilt]:
    """The tree of `root` made again: the events of its journal that `base` lacks, folded into the tree of `base`.

    The journal's segments are taken as they are. An event that cannot be folded is a fault, and the others go on.
    """
    scratch = Scratch(ledger_store.get)
    try:
        yield _rebuild(scratch, ledger_store, root, base, renderer)
    finally:
        scratch.close()


def _rebuild(scratch: Scratch, ledger_store: Readable, root: Oid, base: Oid | None, renderer: int) -> Rebuilt:
    real, algorithm = ledger_store.get, ledger_store.algorithm
    faults: list[Finding] = []
    journals = reading.writers(real, root, faults)
    total, first = 0, base
    view = _over(scratch, base) if base else View(lambda path: None)
    since = {writer: replace(tail) for writer, tail in view.manifest.writers.items()}
    counts = {writer: since[writer].segments for writer in journals if writer in since}
    if base:  # of very many writers, most have said nothing since
        older = reading.writers(real, base, [])
        journals = {writer: start for writer, start in journals.items() if (writer, start) not in older.items()}
    for writer, start in journals.items():
        newest = next(reading.segments(real, start, writer, [], newest_first=True), None)
        counts[writer] = newest.n + 1 if newest else 0

    def render() -> Oid:
        for writer, tail in view.manifest.writers.items():
            tail.segments = counts.get(writer, 0)
        view.manifest.renderer = renderer
        edited = objects.edit(scratch.get, base, tree.changes(view), algorithm)
        scratch.put(edited.objects)
        return edited.tree

    events = size = 0
    for event, line in chained(real, root, faults, since, journals):
        if events >= LOT_EVENTS or size + len(line) > LOT_BYTES:
            base = render()
            view, events, size = _over(scratch, base), 0, 0
        try:
            view.apply(event, line)
        except (LedgerError, AttributeError, KeyError, TypeError, ValueError) as e:
            what = f"event {event.id} of {event.writer} cannot be folded ({type(e).__name__}: {e})"
            faults.append(Finding("event", f"journal/{event.writer} seq {event.seq}", what, _HURT))
        total, events, size = total + 1, events + 1, size + len(line)
    return Rebuilt(_with_journal(scratch, real, root, first, render(), algorithm), total, scratch, faults)


def _over(scratch: Scratch, base: Oid) -> View:
    return View(reading.reader(scratch.get, base))


def _with_journal(scratch: Scratch, get: Get, root: Oid, base: Oid | None, made: Oid, algorithm: str) -> Oid:
    """The tree of `made` with the journal of `root` and nothing else that lies there; what `base` has is sound."""

    def kept(entry: TreeEntry, depth: int, before: TreeEntry | None) -> TreeEntry:
        if entry == before:
            return entry
        try:
            rows = objects.entries(get, entry.oid) or {}
            older = (objects.entries(get, before.oid) or {}) if before and before.is_folder else {}
        except LedgerError:
            return entry  # it cannot be read: the differences name it
        mine = [row for row in rows.values() if reading.belongs(row, depth)]
        below = mine if depth == 3 else [kept(row, depth + 1, older.get(row.name)) for row in mine]
        if below == list(rows.values()):
            return entry
        return TreeEntry(FOLDER, entry.name, _put(scratch, below, algorithm))

    journal = (objects.entries(get, root) or {}).get("journal")
    if journal is None:
        return made
    before = (objects.entries(get, base) or {}).get("journal") if base else None
    rows = {**(objects.entries(scratch.get, made) or {}), "journal": kept(journal, 0, before)}
    return _put(scratch, rows.values(), algorithm)


def _put(scratch: Scratch, rows: Iterable[TreeEntry], algorithm: str) -> Oid:
    data = objects.format_tree(rows)
    oid = objects.oid("tree", data, algorithm)
    scratch.put([(oid, Object("tree", data))])
    return oid


# ── fsck ─────────────────────────────────────────────────────────────────────────────────────
def fsck(ledger: Ledger) -> Iterator[Finding]:
    """Every fault of the ledger at its tip, in the order in which it is found: journal, records and documents, log."""
    get, tip = ledger.desk.store.get, ledger.tip()
    root = objects.parse_commit(get(tip).data).tree
    renderer = layout.RENDERER
    try:
        data = objects.read(get, root, layout.MANIFEST)
        renderer = read_manifest(data).renderer if data is not None else renderer
    except LedgerError as e:
        yield Finding("manifest", layout.MANIFEST, str(e), _HURT)
    with rebuilt(ledger, root, renderer=renderer) as made:
        faults = made.faults
        for difference in reading.differences(get, root, made.objects.get, made.tree, faults):
            if renderer == layout.RENDERER or not is_document(difference.path):
                yield wrong(difference)
        yield from faults
    yield from _gone(ledger.desk.store, root)
    yield from _log(ledger)


def _gone(ledger_store: Store, root: Oid) -> Iterator[Finding]:
    """What the tree names and the repository lacks; equal ids elsewhere do not show that the bytes are here."""
    faults: list[Finding] = []
    whole = reading.differences(ledger_store.get, None, ledger_store.get, root, faults)
    while batch := {row.new.oid: row.path for row in islice(whole, 1_000) if row.new}:
        for oid in ledger_store.absent(batch):
            yield Finding("missing object", batch[oid], f"{oid} is not in this repository", "fetch it; run: git fsck")
    yield from faults


def wrong(difference: reading.Difference) -> Finding:
    """What a file that the journal's events make otherwise, or not at all, is called; `where` is its path."""
    path = difference.path
    if difference.new is None:
        return Finding("foreign file", path, "no event accounts for it", _ASK + path)
    if difference.old is None:
        return Finding("missing file", path, "the journal's events make it, the tree lacks it", _HURT)
    if path == layout.MANIFEST:
        what = "it tells of another journal than the segments hold"
    elif difference.old.mode != difference.new.mode:
        what = "it is not a plain file"
    else:
        word = "document" if is_document(path) else "record or index"
        what = f"the {word} is not what the journal's events make"
    return Finding("differs", path, what, _ASK + path)


def is_document(path: str) -> bool:
    """True for a file that is rendered for people, and differs between renderers."""
    return path.endswith((".md", ".yaml"))


def _log(ledger: Ledger) -> Iterator[Finding]:
    folder = ledger.desk.home.wal
    try:
        _, damaged = wal.pending(folder)
        yield from damaged
    except LedgerError as e:
        yield Finding("log", folder, str(e), "mend that and run gitledger fsck again")
    kept = f"{folder}/{wal.DAMAGED}"
    try:
        names = sorted(os.listdir(kept))
    except FileNotFoundError:
        return
    except OSError as e:
        yield Finding("log", kept, f"cannot be read ({e.strerror})", "mend its permissions")
        return
    for name in names:
        what = "lines of the log that could not be read when their file was committed"
        yield Finding("damaged log", f"{kept}/{name}", what, "read what can be saved, then move the file away")
