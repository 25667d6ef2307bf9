"""One ledger on several machines: fetch into quarantine, verify, fast-forward or merge, push one refspec, never forced.

Nothing that comes from a remote touches the branch before it was verified. A merge is pushed before the branch moves to
it: where somebody else was faster, it is made again of what is there now, and no merge of merges is left behind. What
was committed here stays here, whatever the remote says.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from gitledger import (
    ancestry,
    layout,
    lock,
    merge,
    objects,
    outgoing,
    pins,
    remote,
    syncstate,
    transaction,
    verify,
)
from gitledger.codec import canonical
from gitledger.errors import BadData, BadSignature, LedgerError, Missing, NotAllowed, StaleTip, TryAgain
from gitledger.examine import Eye
from gitledger.ledger import Ledger
from gitledger.model import Finding, Json, Oid
from gitledger.redact import redact
from gitledger.remote import Line, Remote
from gitledger.store import Store
from gitledger.transaction import Plan
from gitledger.values import dataclass, field, replace
from gitledger.view import View, read_manifest

if TYPE_CHECKING:
    from gitledger import rejournal

ATTEMPTS = 10
"""How often a push is tried where other machines were faster."""
SHOWN = 200
"""Bytes of a value that was overtaken, as it is kept for a person to see."""
GONE = "gone"
"""The word in a commit's place for a remote that may have no ledger."""
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
MERGES_READ = 50
"""Merges made elsewhere that are looked through for fields set twice, the newest ones."""


class Refused(NotAllowed):
    """What the remote has is not taken, and nothing is pushed over it; both sides are kept."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.where}: {finding.what}; nothing was changed on either side: {finding.mend}")
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Ways:
    """How to go about it: which halves of it, how long in all (seconds), and who is told how it goes.

    `pause` waits before the next attempt, given how many there were. With `renew` a clone whose writer's id is in use
    in another one as well goes on as a new writer.
    """

    pull: bool = True
    push: bool = True
    renew: bool = False
    deadline: float = 120.0
    heard: Callable[[str], None] | None = None
    progress: verify.Progress = lambda phase, done, total: None
    reopen: Callable[[], Store] | None = None
    pause: Callable[[int], None] = lambda tried: time.sleep(backoff(tried))


def backoff(tried: int, between: Callable[[float, float], float] = random.uniform) -> float:
    """Seconds to wait after so many attempts; `between` chooses, so that machines that met do not meet again."""
    return between(0.05, 0.1 * 2 ** min(tried, 6))


@dataclass(slots=True)
class Outcome:
    """What a sync did: commits that came and went, the tips of both sides now, and what a person should look at."""

    tip: Oid
    there: Oid = ""
    fetched: int = 0
    pushed: int = 0
    merged: bool = False
    journalled: int = 0
    attempts: int = 0
    parted: rejournal.Parted | None = None
    findings: list[Finding] = field(default_factory=list)


def sync(ledger: Ledger, to: Remote, ways: Ways = Ways()) -> Outcome:
    """Bring this clone's ledger and the remote's together; how it went is kept for `status` and the briefing.

    Raises Refused with both sides kept, TryAgain where the remote could not be reached or was busy all the time, and
    any other LedgerError with its next step. Whatever is raised, what is committed here is as it was, or further.
    """
    home = ledger.desk.home
    with lock.held(os.path.join(home.state, f"sync-{home.name}.lock"), deadline=5.0):
        before = syncstate.load(home.state, home.name)
        line = Line(ledger.gitdir, to, home.name, time.monotonic() + ways.deadline, ways.heard)
        now = replace(before, remote=to.shown, at=ledger.desk.mint.at(), failed="")
        one = _Sync(ledger, line, ways, now, Eye(ledger.desk.store, again=True))
        try:
            outcome = one.run()
        except Refused as e:
            syncstate.save(home.state, home.name, replace(one.state, refused=(e.finding,)))
            raise
        except LedgerError as e:
            syncstate.save(home.state, home.name, replace(one.state, failed=str(e)))
            raise
        syncstate.save(home.state, home.name, replace(one.state, refused=(), tip=outcome.there))
        outcome.findings = syncstate.standing(syncstate.load(home.state, home.name), ledger.view())
        return outcome


@dataclass(frozen=True, slots=True)
class Accepted:
    """What this clone remembers of a remote now ("" for no ledger) and did before; how many commits differ."""

    remote: str
    before: Oid
    now: Oid
    left: int = 0
    new: int = 0


def accept(ledger: Ledger, to: Remote, commit: str) -> Accepted:
    """Remember `commit` as what the remote has, on a person's word: the whole id of what was fetched and refused.

    `gone` forgets what it had, where its ledger vanished. Only what this clone remembers of the remote is changed, and
    what comes from there is verified as ever. Raises Missing where nothing was refused, NotAllowed for another commit.
    """
    home = ledger.desk.home
    with lock.held(os.path.join(home.state, f"sync-{home.name}.lock"), deadline=5.0):
        state = syncstate.load(home.state, home.name)
        line = Line(ledger.gitdir, to, home.name, time.monotonic() + 60)
        seen, held = remote.tip(line, line.seen), remote.tip(line, line.incoming)
        rule = next((fault.rule for fault in state.refused), "")
        if seen is None or state.remote != to.shown or not rule:
            raise Missing(f"nothing of {to.shown} was refused by the last sync, so there is nothing to accept")
        if rule not in ("went back", "rewritten", "vanished"):
            raise NotAllowed(f"{to.shown} was refused for what it holds ({rule}), which nobody can accept; see status")
        if commit == GONE:
            if rule != "vanished":
                raise NotAllowed(f"the ledger of {to.shown} was there at the last sync; see: gitledger remote show")
            remote.drop(line, line.seen)
            return Accepted(to.shown, seen, "")
        if not OID.fullmatch(commit):
            raise BadData(f"{commit[:80]!r} is no whole commit id; gitledger remote show names what was refused")
        if commit != held or rule == "vanished":
            raise NotAllowed(f"{commit[:12]} is not what the last sync refused; see: gitledger remote show")
        get = ledger.desk.store.get
        made = Accepted(to.shown, seen, held, ancestry.count(get, seen, held), ancestry.count(get, held, seen))
        remote.move(line, line.seen, held)
        return made


@dataclass(slots=True)
class _Sync:
    """One sync under way."""

    ledger: Ledger
    line: Line
    ways: Ways
    state: syncstate.SyncState
    eye: Eye  # one for all of it: what verification has read and hashed is what a merge is made of
    good: Oid = ""
    scanned: set[Oid] = field(default_factory=set)

    def run(self) -> Outcome:
        """Attempts until both sides agree."""
        outcome = Outcome("")
        if self.ways.push:
            outcome.journalled = journal(self.ledger)
        for attempt in range(1, ATTEMPTS + 1):
            outcome.attempts = attempt
            if self._attempt(outcome):
                return outcome
            if time.monotonic() > self.line.until:
                break
            self.ways.pause(attempt)
        raise TryAgain(
            f"{self.line.remote.shown} was busy, or had moved on, each of {outcome.attempts} times this clone tried; "
            "its commits are kept here: sync again"
        )

    def _attempt(self, outcome: Outcome) -> bool:
        """Fetch, and bring the two together once; False where somebody else was faster."""
        line = self.line
        theirs = remote.fetch_whole(line, self.ledger.tip())
        seen = remote.seen(line)
        ours = self.ledger.tip()  # not before: a fetch takes its time, and this clone may commit something meanwhile
        if theirs is None:
            if seen:
                raise self._refused("vanished", f"the remote's ledger is gone, which was at {seen[:12]} before")
            if not self.ways.push:
                raise NotAllowed(f"{line.remote.shown} has no ledger {line.name} yet; push this one: gitledger push")
            if not self._verify_ours(ours):
                return False
            remote.refuse_default(line)
            return self._push(outcome, ours, ours, "")
        self._same_ledger(theirs)
        if not self._verify_ours(ours):
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
            self._found(order)
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
        self._found(order, made.apart)  # not before the push: others are faster the longer it takes until then
        return True

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

    def _verify_ours(self, ours: Oid) -> bool:
        """Raise unless this clone's own tip is good: what is pushed is what others will have to believe.

        False where the branch has moved on: by then the newer tip may be the last good one, and `ours` looks older.
        """
        made = verify.verify(self.ledger.desk, ours, self._checks())
        if made.verdict not in ("verified", "unknown signer"):
            if self.ledger.tip() != ours:
                return False
            fault = made.findings[0]
            raise BadSignature(
                f"this clone's own ledger does not verify ({fault.rule}: {fault.what}), so nothing was synced; "
                "see all of it with: gitledger verify"
            )
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
        key, _ = transaction.signer(desk, owner)
        names = " and ".join(sorted((ours[:12], theirs[:12])))
        plan = Plan("merge", (), redact(f"Merge {made.ours:,} and {made.theirs:,} events of {names}"))
        said = transaction.message(plan, view, desk.writer.id)
        new, signed = transaction.sign(desk, key, made.tree, (ours, theirs), transaction.person(desk), said)
        desk.store.put((*made.made, (new, signed)))
        return new

    def _found(self, order: list[Oid], own: merge.Apart | None = None) -> None:
        """Keep what the merges that others made, and this clone's own, say of fields set twice."""
        parents = [self.eye.parents(oid) for oid in order]
        merges = [pair for pair in parents if len(pair) == 2][-MERGES_READ:]
        sides = merge.Sides(self.eye)
        for apart in [*(sides.apart(*pair) for pair in merges), *([own] if own else [])]:
            twice = (
                syncstate.Twice(one.key, one.field, one.shown, one.lost, _beginning(one.value))
                for one in apart.conflicts
            )
            self.state = self.state.add(tuple(twice), apart.together)


def _beginning(value: Json) -> str:
    return canonical(value)[:SHOWN].decode("utf-8", "replace").strip()


# ── what is pending ──────────────────────────────────────────────────────────────────────────
def journal(ledger: Ledger) -> int:
    """Commit what this clone's log holds and no commit does yet; how many events that was."""
    ledger.view()
    if not ledger.pending:
        return 0

    def build(view: View) -> Plan | None:
        before = view.read(layout.MANIFEST)
        known = read_manifest(before).lamport if before else 0
        count = view.manifest.lamport - known
        return Plan("journal", (), redact(f"Journal: {count:,} events")) if count else None

    written = ledger.commit(build)
    return len(written.events) if written else 0
