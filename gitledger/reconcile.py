"""Two sides of one ledger made one: verify what came, fast-forward or merge, push, and only then move the branch.

Nothing that comes from a remote touches the branch before it was verified. A merge is pushed before the branch moves to
it: where somebody else was faster, it is made again of what is there now, and no merge of merges is left behind.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial

from gitledger import (
    ancestry,
    layout,
    lock,
    merge,
    objects,
    outgoing,
    packs,
    pins,
    remote,
    sshsig,
    transaction,
    verify,
)
from gitledger.codec import canonical
from gitledger.errors import BadSignature, LedgerError, NotAllowed, StaleTip
from gitledger.examine import Eye
from gitledger.ledger import Ledger
from gitledger.model import Finding, Json, Oid
from gitledger.redact import redact
from gitledger.remote import Line
from gitledger.syncing import Outcome, Refused, Ways
from gitledger.syncstate import Twice
from gitledger.transaction import Plan
from gitledger.values import dataclass, field
from gitledger.view import View, read_manifest

SHOWN = 200
"""Bytes of a value that was overtaken, as it is kept for a person to see."""
TAKEN = 1 << 20
"""Bytes of the largest pack that is read as a whole when it was fetched; objects are some eight times as long."""
MERGES_READ = 50
"""Merges made elsewhere that are looked through for fields set twice, the newest ones."""


@dataclass(slots=True)
class Both:
    """This clone's side of a ledger and the remote's, for all attempts of one sync."""

    ledger: Ledger
    line: Line
    ways: Ways
    eye: Eye  # one for all of it: what verification has read and hashed is what a merge is made of
    good: Oid = ""
    sound: Oid = ""
    scanned: set[Oid] = field(default_factory=set)

    @classmethod
    def of(cls, ledger: Ledger, line: Line, ways: Ways) -> Both:
        """Both sides, with nothing looked at yet."""
        return cls(ledger, line, ways, Eye(ledger.desk.store, again=True))

    def prepare(self) -> None:
        """What needs nothing of the remote's. Raises BadSignature unless this clone's own tip is good."""
        self.verify_ours(self.ledger.tip())
        sshsig.load()

    def join(self, theirs: Oid | None, outcome: Outcome) -> bool:
        """Bring the two together once, given what was fetched; False where somebody else was faster."""
        line = self.line
        seen = remote.seen(line)
        ours = self.ledger.tip()  # not before: a fetch takes its time, and this clone may commit something meanwhile
        if theirs is None:
            if seen:
                raise self._refused("vanished", f"the remote's ledger is gone, which was at {seen[:12]} before")
            if not self.ways.push:
                raise NotAllowed(f"{line.remote.shown} has no ledger {line.name} yet; push this one: gitledger push")
            if not self.verify_ours(ours):
                return False
            remote.refuse_default(line)
            return self._push(outcome, ours, ours, "")
        self._take()
        self._same_ledger(theirs)
        if not self.verify_ours(ours):
            return False
        found = ancestry.beyond(self.eye.get, theirs, ours)
        forward = ours in found.known
        if seen and seen != theirs and not forward and not remote.contains(line, theirs, seen):
            self._went_back(theirs, seen)
        if not found.new:
            outcome.tip, outcome.there = ours, theirs
            self._accepted(theirs)
            return ours == theirs or not self.ways.push or self._push(outcome, ours, ours, theirs)
        order = self._verify_theirs(theirs, found)
        if not self.ways.pull:
            raise NotAllowed(
                f"{line.remote.shown} has {len(order)} commits that this clone lacks; take them in by: gitledger sync"
            )
        if forward:
            if not self._move(theirs, ours, "fast-forward"):
                return False
            outcome.tip, outcome.there, outcome.fetched = theirs, theirs, len(order)
            self._found(outcome, order)
            self._accepted(theirs)
            return True
        try:
            made = merge.merge(self.eye, ours, theirs)
        except merge.Forked as e:
            if not self.ways.renew:
                mend = "in the clone that is the copy go on as a new writer: gitledger sync --as-new-writer"
                raise self._refused("copied writer", str(e), mend) from e
            from gitledger import rejournal  # for a copied clone alone

            outcome.parted = rejournal.part(self.ledger, theirs, partial(remote.move, line))
            self._accepted(theirs)
            return False
        new = self._merge_commit(made, ours, theirs)
        outcome.fetched, outcome.merged = len(order), True
        if self.ways.push:
            if not self._push(outcome, new, ours, theirs):
                return False
        elif self._move(new, ours, "merge"):
            outcome.tip, outcome.there = new, theirs
            self._accepted(theirs)
        else:
            return False
        self._found(outcome, order, made.apart)  # not before the push: others are faster the longer it takes until then
        return True

    def _take(self) -> None:
        """Read what was fetched in one go, where that is not much: one after the other takes several times as long.

        Only a hint: what is damaged, or in a form of pack that is not known here, is read when it is asked for.
        """
        for path in self.line.packs:
            with suppress(LedgerError, OSError):
                if os.path.getsize(f"{path}.pack") <= TAKEN:
                    self.eye.take(packs.index(path, self.eye.algorithm))
        self.line.packs.clear()

    def _push(self, outcome: Outcome, new: Oid, ours: Oid, theirs: Oid) -> bool:
        """Push `new`, then have the branch there, and remember it as seen."""
        desk = self.ledger.desk
        lacking = ancestry.beyond(self.eye.get, new, theirs or None).new
        outgoing.scan(desk, (oid for oid in lacking if oid not in self.scanned))
        self.scanned.update(lacking)
        if not remote.push(self.line, new):
            return False
        outcome.pushed = len(lacking)
        if new != ours and not self._move(new, ours, "merge"):
            return False  # the remote has it; what this clone committed meanwhile is merged with it next
        self._accepted(new)
        outcome.tip = outcome.there = new
        return True

    def _accepted(self, tip: Oid) -> None:
        remote.accept(self.line, tip)

    def _move(self, new: Oid, old: Oid, word: str) -> bool:
        """The branch from `old` to `new`; False where this clone committed something meanwhile."""
        desk = self.ledger.desk
        with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
            try:
                desk.store.swap(new, old, f"gitledger: {word} with {self.line.remote.shown}")
            except StaleTip:
                return False
            mine = pins.load(desk.home.pins, desk.home.name)
            if mine is not None and mine.remembers(old):  # both sides were found good, and what joins them is ours
                pins.save(desk.home.pins, desk.home.name, mine.remember(new))
        return True

    # ── what is refused ──────────────────────────────────────────────────────────────────────
    def _refused(self, rule: str, what: str, mend: str = "") -> Refused:
        mend = mend or "compare with other clones before anything else, see docs/sync.md, What is refused"
        return Refused(Finding(rule, f"remote {self.line.remote.shown}", what, mend))

    def _went_back(self, theirs: Oid, seen: Oid) -> None:
        if remote.contains(self.line, seen, theirs):
            what = f"it went back to {theirs[:12]}, which comes before {seen[:12]} that was accepted from it"
            raise self._refused("went back", what)
        what = f"its history was rewritten: {theirs[:12]} does not hold {seen[:12]} that was accepted from it"
        raise self._refused("rewritten", what)

    def _same_ledger(self, theirs: Oid) -> None:
        mine = pins.load(self.ledger.desk.home.pins, self.line.name)
        data = objects.read(self.ledger.desk.store.get, theirs, layout.MANIFEST)
        if data is None:
            raise self._refused("no ledger", f"its branch ledger/{self.line.name} holds no ledger")
        there = read_manifest(data)
        if mine is not None and there.uuid != mine.uuid:
            what = (
                f"it holds another ledger, {there.uuid}, begun apart from this one, {mine.uuid}; they cannot be merged"
            )
            mend = (
                "one of the two goes on: join the remote's in a fresh clone (git clone, then gitledger init) and enter "
                "there what is open here; this one stays as it is"
            )
            raise self._refused("another root", what, mend)

    def verify_ours(self, ours: Oid) -> bool:
        """Raise unless this clone's own tip is good: what is pushed is what others will have to believe.

        False where the branch has moved on: by then the newer tip may be the last good one, and `ours` looks older.
        """
        if ours == self.sound:
            return True
        made = verify.verify(self.ledger.desk, ours, self._checks())
        if made.verdict not in ("verified", "unknown signer"):
            if self.ledger.tip() != ours:
                return False
            fault = made.findings[0]
            raise BadSignature(
                f"this clone's own ledger does not verify ({fault.rule}: {fault.what}), so nothing was synced; "
                "see all of it with: gitledger verify"
            )
        self.sound = ours
        return True

    def _verify_theirs(self, theirs: Oid, found: ancestry.Beyond) -> list[Oid]:
        """The commits that are new here, all found good; those that an earlier attempt found so are not asked again."""
        order = list(found.new)
        if self.good in found.new:
            found = ancestry.beyond(self.eye.get, theirs, self.good)
        made = verify.quarantined(self.ledger.desk, theirs, list(found.new), list(found.known), self._checks())
        if made.verdict not in ("verified", "unknown signer"):
            fault = next((f for f in made.findings if f.rule != "unknown signer"), made.findings[0])
            who = f" by writer {fault.writer}" if fault.writer else ""
            what = f"commit {fault.where}{who} is not taken in ({fault.rule}): {fault.what}"
            raise self._refused(fault.rule, what)
        self.good = theirs
        return order

    def _checks(self) -> verify.Ways:
        return verify.Ways(reopen=self.ways.reopen, progress=self.ways.progress, eye=self.eye)

    # ── the merge ────────────────────────────────────────────────────────────────────────────
    def _merge_commit(self, made: merge.Merged, ours: Oid, theirs: Oid) -> Oid:
        desk = self.ledger.desk
        front = dict(made.made)

        def get(oid: Oid) -> objects.Object:
            return front.get(oid) or desk.store.get(oid)

        view = View(lambda path: objects.read(get, made.tree, path))
        owner = view.record(layout.writer_key(desk.writer.id))
        key, public = transaction.signer(desk, owner)
        names = " and ".join(sorted((ours[:12], theirs[:12])))
        plan = Plan("merge", (), redact(f"Merge {made.ours:,} and {made.theirs:,} events of {names}"))
        said = transaction.message(plan, view, desk.writer.id)
        new, signed = transaction.sign(desk, key, made.tree, (ours, theirs), transaction.person(desk), said)
        transaction.write(desk, public, (*made.made, (new, signed)))
        return new

    def _found(self, outcome: Outcome, order: list[Oid], own: merge.Apart | None = None) -> None:
        """Note what the merges that others made, and this clone's own, say of fields set twice."""
        parents = [self.eye.parents(oid) for oid in order]
        merges = [pair for pair in parents if len(pair) == 2][-MERGES_READ:]
        sides = merge.Sides(self.eye)
        for apart in [*(sides.apart(*pair) for pair in merges), *([own] if own else [])]:
            outcome.twice += tuple(
                Twice(one.key, one.field, one.shown, one.lost, _beginning(one.value)) for one in apart.conflicts
            )
            outcome.together += apart.together


def _beginning(value: Json) -> str:
    return canonical(value)[:SHOWN].decode("utf-8", "replace").strip()
