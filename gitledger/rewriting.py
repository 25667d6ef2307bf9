"""A stretch of a ledger's commits made again without a secret: the same events in the same order, all else new.

Nothing here moves a ref. What is made lies in the store, and is proved, before anybody relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitledger import codec, contents, ingest, layout, objects, reading, transaction
from gitledger.errors import BadData
from gitledger.folders import Folders
from gitledger.model import Draft, Event, Json, Oid
from gitledger.needle import MARK, Needle
from gitledger.objects import Kind, Object
from gitledger.redact import Clean, redact
from gitledger.store import Store, history
from gitledger.transaction import Desk, Plan
from gitledger.values import dataclass, field, replace
from gitledger.view import View

KIND = "purge"
EVENT = "ledger.purged"
DIGESTS = ("source_sha256", "result_sha256")
"""What a memory file is known by; a short secret could be guessed by it, all the rest of the file being told."""
BATCH = 2_000
"""Objects that are made before they are stored."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new tip, and what each old commit became."""

    tip: Oid
    oids: dict[Oid, Oid]


def written(desk: Desk, needle: Needle, tip: Oid, stretch: tuple[Oid, ...], told: Callable[[int], None]) -> Rewritten:
    """Make the commits of `stretch`, which ends in `tip`, again without the secret, and one that says so.

    `told` hears how many are done. Raises a LedgerError where the new line would not be what it must be.
    """
    made = _Made(desk.store)
    pending = replace(desk, store=made)
    first = objects.parse_commit(desk.store.get(stretch[0]).data)
    rewrite = _Rewrite(pending, needle)
    if first.parents:
        rewrite.tip = first.parents[0]
        rewrite.tree = objects.parse_commit(desk.store.get(rewrite.tip).data).tree
    for n, old in enumerate(stretch, 1):
        rewrite.follow(old)
        told(n)
    new = rewrite.close(tip, stretch)
    made.flush()
    _check(desk, needle, new, first.parents)
    return Rewritten(new, rewrite.oids)


def root(store: Store, tip: Oid) -> Oid:
    """The first commit of a tip's history."""
    return next(oid for oid, commit in history(store, tip) if not commit.parents)


def holds(needle: Needle, event: Event) -> bool:
    """True where the secret stands in any text of an event."""
    return needle.holds_json([event.data, {key: codec.change_value(c) for key, c in event.records.items()}])


# ── one after the other ──────────────────────────────────────────────────────────────────────
class _Made:
    """A store with what was made on top of it: read at once, stored in lots."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[Oid, Object] = {}
        self.ref, self.algorithm = store.ref, store.algorithm
        self.tip, self.absent, self.swap, self.close = store.tip, store.absent, store.swap, store.close
        self.ahead = store.ahead

    def get(self, oid: Oid, *, fresh: bool = False) -> Object:
        return self._made.get(oid) or self._store.get(oid, fresh=fresh)

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        made = self._made.get(oid)
        return (made.kind, made.data) if made else self._store.raw(oid)

    def put(self, made: Iterable[tuple[Oid, Object]]) -> None:
        self._made.update(made)
        if len(self._made) >= BATCH:
            self.flush()

    def flush(self) -> None:
        self._store.put(tuple(self._made.items()))
        self._made.clear()


@dataclass(slots=True)
class _Rewrite:
    """The new line of commits on its way: what stands for what, and the folders that got another name."""

    desk: Desk
    needle: Needle
    oids: dict[Oid, Oid] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()
    tree: Oid | None = None
    tip: Oid | None = None

    def follow(self, old: Oid) -> None:
        """Make one commit again, behind those before it."""
        store, me = self.desk.store, self.desk.writer.id
        commit = objects.parse_commit(store.get(old).data)
        view = View(reading.reader(store.get, self.tree) if self.tree else lambda path: None)
        owner = view.record(layout.writer_key(me))
        lines = []
        events = list(self._events(commit))
        # A file's parts are in events behind the one that has its digest.
        self.cut = frozenset(key for event in events if holds(self.needle, event) for key in event.records)
        for event in events:
            made, line = ingest.stamp(view, self._draft(event), me)
            if (made.id, made.seq, made.lamport) != (event.id, event.seq, event.lamport):
                raise BadData(f"event {event.id} would not keep its place; run: gitledger verify --full")
            lines.append(line)
        key, public = transaction.signer(self.desk, owner or view.record(layout.writer_key(me)))
        edited = transaction.next_tree(self.desk, view, lines, self.tree)
        parents = (self.tip,) if self.tip else ()
        said = self._message(commit, view)
        oid, signed = transaction.sign(self.desk, key, edited.tree, parents, redact(commit.author), said)
        transaction.write(self.desk, public, (*edited.objects, (oid, signed)))
        self.oids[old] = self.tip = oid
        self.tree = edited.tree

    def _events(self, commit: objects.Commit) -> Iterator[Event]:
        n, part = int(reading.trailers(commit)["Ledger-Seq"]) - 1, 0
        while (data := self._segment(commit, n, part)) is not None:
            for line in reading.lines(data):
                yield codec.read_event(line, f"segment {n}")
            part += 1

    def _segment(self, commit: objects.Commit, n: int, part: int) -> bytes | None:
        return objects.read(self.desk.store.get, commit.tree, layout.segment(self.desk.writer.id, n, part))

    def _draft(self, event: Event) -> Draft:
        raw = {key: codec.change_value(change) for key, change in event.records.items()}
        records = {key: codec.read_change(self._clean(value), event.id) for key, value in raw.items()}
        for key, change in records.items():
            if key in self.cut and change.set.keys() & set(DIGESTS):
                kept = {name: value for name, value in change.set.items() if name not in DIGESTS}
                records[key] = replace(change, set=kept | {"exact": False})
        draft = Draft(event.id, event.at, event.type, event.session, event.task, records, self._clean(event.data))
        for key, change in ingest.clean(draft).records.items():
            before, after = event.records[key].set.get("slug"), change.set.get("slug")
            if before != after and isinstance(before, str) and isinstance(after, str):
                # Its folder gets another name, and what names a file in it must name the new one.
                name = key.partition("@")[0]
                self.folders[f"{name}-{before}" if before else name] = f"{name}-{after}" if after else name
        return draft

    def _clean(self, value: Json) -> Json:
        return self.needle.scrub_json(_renamed(value, self.folders))

    def _message(self, commit: objects.Commit, view: View) -> Clean:
        tail = view.manifest.writers[self.desk.writer.id]
        head, gap, trailers = self.needle.scrub(commit.message).rstrip("\n").rpartition("\n\n")
        rows = [
            f"Ledger-Journal: {tail.seq} {tail.last}" if row.startswith("Ledger-Journal: ") else row
            for row in trailers.split("\n")
        ]
        return redact(f"{head}{gap}" + "\n".join(rows) + "\n")

    def close(self, old: Oid, stretch: tuple[Oid, ...]) -> Oid:
        """Make the commit that says what was done, and return it."""
        if self.tip is None or self.tree is None:
            raise AssertionError("a stretch holds a commit")
        view = View(reading.reader(self.desk.store.get, self.tree))
        me, at = self.desk.writer.id, self.desk.mint.at()
        data = {
            "from": stretch[0],
            "old": old,
            "commits": len(stretch),
            "genesis": root(self.desk.store, old),
            "mark": MARK,
        }
        _, line = ingest.stamp(view, Draft(self.desk.mint.id(), at, EVENT, data=data), me)
        edited = transaction.next_tree(self.desk, view, [line], self.tree)
        plan = Plan(
            KIND,
            (),
            redact(f"Written anew from {stretch[0][:12]} on, without a secret"),
            (redact(f"{len(stretch)} commits were made and signed again; the tip before was {old[:12]}."),),
        )
        key, public = transaction.signer(self.desk, view.record(layout.writer_key(me)))
        said = transaction.message(plan, view, me)
        new, signed = transaction.sign(self.desk, key, edited.tree, (self.tip,), transaction.person(self.desk), said)
        transaction.write(self.desk, public, (*edited.objects, (new, signed)))
        return new


def _renamed(value: Json, folders: dict[str, str]) -> Json:
    if isinstance(value, str):
        for old, new in folders.items():
            value = value.replace(f"/{old}/", f"/{new}/")
        return value
    if isinstance(value, list):
        return [_renamed(item, folders) for item in value]
    if isinstance(value, dict):
        return {key: _renamed(item, folders) for key, item in value.items()}
    return value


def _check(desk: Desk, needle: Needle, new: Oid, before: tuple[Oid, ...]) -> None:
    """Prove that no commit of the new line, and nothing at its tip, holds the secret, and that its journal makes it."""
    for oid, commit in history(desk.store, new, before):
        if needle.in_bytes(desk.store.get(oid).data) or needle.holds(commit.message):
            raise BadData(f"it would still stand in the message of commit {oid[:12]}; nothing was changed")
        for difference in reading.changed(desk.store, commit, []):
            if difference.new is None:
                continue
            data = desk.store.get(difference.new.oid).data
            path = difference.path
            if needle.holds_name(path) or needle.in_bytes(data) or _line_holds(needle, path, data):
                raise BadData(
                    f"it would still stand in {needle.scrub(path)[:80]}, which no event accounts for; "
                    "nothing was changed; run: gitledger fsck"
                )
    wrong = contents.differing(Folders(desk.store), new)
    if wrong:
        raise BadData(f"{wrong[0].where}: {wrong[0].what}; nothing was changed; run: gitledger fsck")


def _line_holds(needle: Needle, path: str, data: bytes) -> bool:
    if not path.startswith("journal/"):
        return False
    return any(holds(needle, codec.read_event(line, path)) for line in reading.lines(data))
