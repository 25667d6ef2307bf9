"""What a copied clone said, said once more by a writer of its own.

A clone that was copied with its disk has the writer's id of the first one, and both go on from the same line of one
journal. Neither line may be dropped, and no event may change its writer. So the copy keeps its own line under a ref of
its own, stands on the remote's, and journals there again, as a new writer, what it had said since the copy was made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from gitledger import codec, identity, layout, lock, pins, reading, transaction
from gitledger.errors import StaleTip, TryAgain
from gitledger.genesis import key_change
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Event, Finding, Json, Oid
from gitledger.redact import redact
from gitledger.store import Store
from gitledger.syncing import Parted
from gitledger.transaction import Plan
from gitledger.values import replace
from gitledger.view import View, read_manifest

KEPT = "refs/ledgers/kept"


def part(ledger: Ledger, theirs: Oid, keep: Callable[[str, Oid], None]) -> Parted:
    """Go on from `theirs`, found good before, as a new writer, with what this clone alone had said journalled again.

    What is in the log must be committed before. `keep` sets a ref. The branch moves once, from the line as it was,
    which that ref keeps, to the new commit; raises TryAgain where something is said here meanwhile.
    """
    desk = ledger.desk
    old, ours = desk.writer, ledger.tip()
    mine, said = _apart(desk.store, ours, theirs, old.id)
    kept = f"{KEPT}/{desk.home.name}/{ours[:16]}"
    keep(kept, ours)
    new = replace(old, id=desk.mint.short())
    new = replace(new, principal=f"{new.id}@gitledger.invalid")
    onto = _Onto(desk.store, theirs, ours)
    moved = replace(desk, store=onto, writer=new)

    def build(view: View) -> Plan:
        before = view.read(layout.MANIFEST)
        if before is None or view.manifest.lamport != read_manifest(before).lamport:
            raise TryAgain("something was said in this clone meanwhile; try again when nothing else works here")
        joined = Draft(
            desk.mint.id(), desk.mint.at(), "writer.joined", records={layout.writer_key(new.id): key_change(moved)}
        )
        names = _names(view, mine, said, old.id, new.id)
        again = tuple(_again(event, names, old.id, new.id) for event in mine)
        words = f"Add writer {new.id}, which goes on from a copy of {old.id}"
        body = (redact(f"{len(again):,} events of that copy, said again; its own line was at {ours[:16]}"),)
        return Plan("key", (joined, *again), redact(words), body)

    written = transaction.commit(moved, build)
    if written is None:
        raise AssertionError("a key plan always makes a commit")
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
        common = ledger.gitdir.common
        me = identity.load(common) or identity.Identity(old.id)
        identity.save(common, replace(me, id=new.id))
        trusted = pins.load(desk.home.pins, desk.home.name)
        if trusted is not None:  # the line as it was is no longer what the branch has to come after
            pins.save(desk.home.pins, desk.home.name, trusted.remember(theirs))
    ledger.desk = replace(desk, writer=new)
    return Parted(new.id, len(mine), kept, written.commit)


# ── what was said apart ──────────────────────────────────────────────────────────────────────
def _apart(store: Store, ours: Oid, theirs: Oid, writer: str) -> tuple[list[Event], frozenset[str]]:
    """The writer's events that the other line lacks, and every id that the writer had made before them."""
    there = {(segment.n, segment.part): segment.oid for segment in _segments(store, theirs, writer)}
    elsewhere: set[str] = set()
    mine: list[Event] = []
    made: set[str] = set()
    parted = False
    for segment in _segments(store, ours, writer):
        other = there.get((segment.n, segment.part))
        parted = parted or other != segment.oid
        if parted and other:
            elsewhere.update(event.id for event in _events(store, other, segment.path))
        for event in _events(store, segment.oid, segment.path):
            if parted:
                mine.append(event)
            else:
                made.update(_ids(event, writer))
    # A line of the log that was in it when the disk was copied was journalled by both.
    return [event for event in mine if event.id not in elsewhere], frozenset(made)


def _segments(store: Store, tip: Oid, writer: str) -> Iterator[reading.Segment]:
    faults: list[Finding] = []
    start = reading.writers(store.get, tip, faults).get(writer)
    if start:
        yield from reading.segments(store.get, start, writer, faults)


def _events(store: Store, segment: Oid, path: str) -> list[Event]:
    return [codec.read_event(line, path) for line in reading.lines(store.get(segment).data)]


def _ids(event: Event, writer: str) -> set[str]:
    """The ids of records and items in an event that the writer has made, in it or before."""
    found: set[str] = set()
    for key, change in event.records.items():
        found |= {one for one in (key, *(i for items in change.items.values() for i in items)) if _made(one, writer)}
    return found


def _made(name: str, writer: str) -> bool:
    return bool(re.fullmatch(rf"(?:[A-Z]-[0-9]+|[a-z][0-9]+)@{re.escape(writer)}", name))


# ── said again ───────────────────────────────────────────────────────────────────────────────
def _names(view: View, mine: list[Event], made: frozenset[str], old: str, new: str) -> dict[str, str]:
    """What everything that was made apart is called now: its number, of the new writer.

    Checkpoints and handovers get new numbers, because theirs must be above all that the ledger knows.
    """
    names: dict[str, str] = {}
    taken = dict(view.manifest.numbers)
    for event in mine:
        for name in sorted(_ids(event, old) - made - names.keys()):
            found = layout.numbered(name)
            if found and found[0].letter in layout.IMMUTABLE:
                kind = found[0]
                taken[kind.letter] = taken.get(kind.letter, 0) + 1
                names[name] = layout.key_of(kind, taken[kind.letter], new)
                names[name.partition("@")[0]] = names[name].partition("@")[0]
            else:
                names[name] = f"{name.partition('@')[0]}@{new}"
    return names


def _again(event: Event, names: Mapping[str, str], old: str, new: str) -> Draft:
    records = {}
    for key, change in event.records.items():
        if key.startswith("writer:"):
            continue  # whose key is whose is said by who has it
        key = f"worktree:{new}:{key.rpartition(':')[2]}" if key.startswith(f"worktree:{old}:") else names.get(key, key)
        records[key] = Change(_renamed(change.set, names), _renamed(change.items, names))
        for field in ("by", "writer"):
            if records[key].set.get(field) == old:
                records[key].set[field] = new
        if layout.is_session(key):
            records[key].set["by"] = new  # who says something of another writer's session takes it over
    task = names.get(event.task, event.task) if event.task else None
    return Draft(event.id, event.at, event.type, event.session, task, records, _renamed(event.data, names))


def _renamed(value: Json, names: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(one, names) for key, one in value.items()}
    return value


class _Onto:
    """A store whose tip is another line's, and whose ref moves from its own line all the same."""

    def __init__(self, store: Store, tip: Oid, real: Oid) -> None:
        self._store, self._tip, self._real = store, tip, real
        self.ref, self.algorithm = store.ref, store.algorithm
        self.get, self.raw, self.put, self.absent = store.get, store.raw, store.put, store.absent
        self.ahead, self.close = store.ahead, store.close

    def tip(self) -> Oid | None:
        """The other line's."""
        return self._tip

    def swap(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        """From the line as it was; back to it where the new commit did not read back."""
        if old == self._tip:
            self._store.swap(new, self._real, reason)
        elif new == self._tip:
            self._store.swap(self._real, old, reason)
        else:
            raise StaleTip(f"{self.ref} is not where it was; try again")
