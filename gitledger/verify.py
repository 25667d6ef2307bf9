"""Verification: every commit since the last verified tip held against the rules, and the tip against its journal.

The history is walked by the parents that stand in the commits themselves, oldest first. What a commit says and shows
by itself is `examine`'s, and may be done by several processes; what depends on those before it is `chain`'s; that the
tip's documents and records are what its journals make is `contents`'. A verdict is remembered under all it rests on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from gitledger import chain, contents, hidden, lock, objects, pins, reading
from gitledger.errors import LedgerError, Missing, MissingObject, TryAgain
from gitledger.examine import Eye, Look, identity
from gitledger.model import Finding, Oid
from gitledger.pins import Pins
from gitledger.store import Store
from gitledger.transaction import Desk
from gitledger.values import dataclass, field

if TYPE_CHECKING:
    from gitledger.crew import Crew

Verdict: TypeAlias = Literal["verified", "unknown signer", "partial", "unverifiable", "bad"]
Progress: TypeAlias = Callable[[str, int, int], None]

WORTH_CREW = 400
"""Commits from which on several processes are faster than one."""
KEPT = 1000
"""Commits after which a store lets go of what it has read, so that memory does not follow the history."""
LOCATED = 50
"""Files at the tip that differ and whose commit is searched; the others are counted."""
_MILD: dict[str, Verdict] = {
    "unknown signer": "unknown signer",
    "partial": "partial",
    "missing object": "partial",
    "no pins": "unverifiable",
    "not checked": "unverifiable",
    "unverifiable": "unverifiable",
}
_UNREAD = ("partial", "missing object", "object")
_ORDER: tuple[Verdict, ...] = ("verified", "unknown signer", "unverifiable", "partial", "bad")


@dataclass(frozen=True, slots=True)
class Fault(Finding):
    """A finding of verification, with the commit it is in and the writer that this names; "" where there is none."""

    commit: Oid = ""
    writer: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification found. `checked` commits were looked at, back to `since` ("" for the first one).

    `trusted` are the writers whose keys are pinned here, and not revoked.
    """

    tip: Oid
    checked: int
    since: Oid
    verdict: Verdict
    findings: tuple[Fault, ...] = ()
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ways:
    """How to go about it.

    `full` forgets what was found good before. At most `limit` commits are looked at, where it is not 0. `reopen` gives
    another process a store of its own; `workers` is how many such there are, 0 for as many as are worth it. `progress`
    is told the phase, how many commits are done, and of how many. `eye` has read a part of it already.
    """

    full: bool = False
    limit: int = 0
    reopen: Callable[[], Store] | None = None
    progress: Progress = lambda phase, done, total: None
    workers: int = 0
    eye: Eye | None = None


def verify(desk: Desk, tip: Oid, ways: Ways = Ways()) -> Verified:
    """Check what is new since the last verified tip, all where that was under other trust; remember a good verdict."""
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is None:
        return _unpinned(desk, tip)
    base = mine.verified if mine.under == mine.digest() and not ways.full else ""
    walk = _Walk(desk, mine, tip, ways)
    walk.guarded(lambda: walk.run(base))
    made = walk.verdict()
    if made.verdict in ("verified", "unknown signer"):
        remember(desk, mine, tip)
    return made


def quarantined(desk: Desk, tip: Oid, order: list[Oid], known: list[Oid], ways: Ways = Ways()) -> Verified:
    """Check the commits `order`, oldest first and `tip` last, that stand on `known` ones, which were found good.

    For what came from elsewhere and is on no branch yet: nothing is remembered of it.
    """
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is None:
        return _unpinned(desk, tip)
    walk = _Walk(desk, mine, tip, ways)
    walk.guarded(lambda: walk.beside(order, known))
    return walk.verdict()


def unpinned(desk: Desk, mine: Pins, tip: Oid, ways: Ways = Ways()) -> Verified:
    """Check the whole history of a ledger that this clone is to join, against pins that are kept nowhere yet."""
    walk = _Walk(desk, mine, tip, ways)
    walk.guarded(lambda: walk.run(""))
    return walk.verdict()


def remember(desk: Desk, mine: Pins, tip: Oid) -> None:
    """Keep `tip` as the newest one whose whole history was found good; harmless where the file cannot be written."""
    if mine.remembers(tip):
        return
    try:
        with lock.held(desk.home.lock, deadline=0.2):
            now = pins.load(desk.home.pins, desk.home.name)
            if now is not None and now.digest() == mine.digest():  # else the trust changed under the verdict
                pins.save(desk.home.pins, desk.home.name, now.remember(tip))
    except LedgerError:
        pass  # read-only or busy: the next reader checks again, and nothing is lost but time


def _unpinned(desk: Desk, tip: Oid) -> Verified:
    what, mend = "this clone has pinned no key of this ledger", "join the ledger: gitledger init"
    return Verified(tip, 0, "", "unverifiable", (Fault("no pins", desk.home.pins, what, mend),))


# ── the walk ─────────────────────────────────────────────────────────────────────────────────
@dataclass(slots=True)
class _History:
    """New commits, oldest first; those whose parents are not here; whether the walk met the tip it was to stop at."""

    order: list[Oid] = field(default_factory=list)
    cut: set[Oid] = field(default_factory=set)
    joins: bool = False
    met: bool = False


@dataclass(slots=True)
class _Walk:
    """One verification under way."""

    desk: Desk
    mine: Pins
    tip: Oid
    ways: Ways
    found: list[Fault] = field(default_factory=list)
    checked: int = 0
    since: Oid = ""
    trusted: frozenset[str] = frozenset()
    _said: set[tuple[Oid, str]] = field(default_factory=set)
    _newest: dict[str, Oid] = field(default_factory=dict)
    _standing: dict[tuple[str, Oid, Oid], chain.Standing] = field(default_factory=dict)

    def add(self, rule: str, commit: Oid, writer: str, what: str, mend: str = "") -> None:
        """Note a fault."""
        where = commit[:12] or self.tip[:12]
        branch = self.desk.store.ref.removeprefix("refs/heads/")
        mend = mend or _mend(rule, commit or self.tip, writer, branch)
        self.found.append(Fault(rule, where, what, mend, commit, writer))

    def guarded(self, check: Callable[[], None]) -> None:
        """Do it; what cannot be read, or asked, is a fault."""
        try:
            check()
        except MissingObject as e:
            self.add("partial", "", "", f"an object is not here: {e}")
        except (Missing, TryAgain) as e:
            self.add("unverifiable", "", "", str(e))

    def verdict(self) -> Verified:
        """What it comes to."""
        worst = max((_MILD.get(fault.rule, "bad") for fault in self.found), key=_ORDER.index, default=_ORDER[0])
        return Verified(self.tip, self.checked, self.since, worst, tuple(self.found), self.trusted)

    def run(self, base: Oid) -> None:
        """All of it, in the order that the module names."""
        eye = self.ways.eye or Eye(self.desk.store)
        history = _History(met=True) if self.tip == base else self._history(eye, base)
        if history is None:
            return
        self.since = base if history.met else ""
        self._check(eye, history)
        self._rolled_back(eye, base, history)

    def beside(self, order: list[Oid], known: list[Oid]) -> None:
        """Commits that may have forked off before the newest one that was found good."""
        eye = self.ways.eye or Eye(self.desk.store)
        history = _History(order, joins=True, met=True)
        there = {*order, *known}
        for oid in order:
            for parent in eye.parents(oid):
                if parent not in there:  # a shallow file of somebody's making hides it from git
                    history.cut.add(oid)
                    what = f"its parent {parent[:12]} is not here, so nothing is known of what came before"
                    self.add("partial", oid, "", what)
        self.since = known[0] if known else ""
        self._check(eye, history)

    def _check(self, eye: Eye, history: _History) -> None:
        """The commits of `history` in order, then the tip's contents."""
        store, mine = self.desk.store, self.mine
        state = chain.state_at(eye.get, eye.tree(self.since), self._standing) if self.since else chain.State()
        ledger = f"{mine.uuid} {self.desk.home.name}"
        judge = chain.Judge(ledger, mine.genesis, partial(_prove, eye), self._ended(self.since, history.order))
        judge.newest.update((writer, tail.n) for writer, tail in state.tails.items())
        with ExitStack() as stack:
            crew = self._crew(stack, history)
            differing = (
                crew.contents(self.tip, self.since) if crew else partial(contents.differing, eye, self.tip, self.since)
            )
            state = self._judge(eye, crew, history, judge, state)
            self._strangers(state)
            for fault in hidden.hiding(store, os.path.dirname(self.desk.home.state), self.tip, frozenset(history.cut)):
                self.add(fault.rule, fault.where, "", fault.what, fault.mend)
            if history.order and not any(fault.rule in _UNREAD for fault in self.found):
                self.ways.progress("contents", 0, 0)
                self._contents(eye, history, differing())

    def _history(self, eye: Eye, base: Oid) -> _History | None:
        """The commits to look at; None, and said, where they are more than the limit."""
        history = _History()
        seen = {base} if base else set()
        pending: list[tuple[Oid, tuple[Oid, ...] | None, Oid]] = [(self.tip, None, "")]
        while pending:
            oid, parents, child = pending.pop()
            if parents is not None:
                history.order.append(oid)
                continue
            if oid in seen:
                continue
            seen.add(oid)
            if self.ways.limit and len(seen) - bool(base) > self.ways.limit:
                what = f"more than {self.ways.limit} commits are new since the last verified one"
                self.add("not checked", "", "", what, "run: gitledger verify")
                return None
            try:
                parents = eye.parents(oid)
            except LedgerError as e:
                self._unread(history, oid, child, e)
                continue
            if len(parents) > 1 and not history.joins:
                history.joins = True
                seen |= self._older(eye, base)
            history.met |= base in parents
            pending.append((oid, parents, child))
            pending += [(parent, None, oid) for parent in reversed(parents) if parent not in seen]
        return history

    def _unread(self, history: _History, oid: Oid, child: Oid, e: LedgerError) -> None:
        """A commit that cannot be read: the one behind it is looked at by itself."""
        if child:
            history.cut.add(child)
        if isinstance(e, MissingObject):
            what = f"its parent {oid[:12]} is not here or cannot be read, so nothing is known of what came before"
            self.add("partial", child, "", what if child else str(e))
        else:
            self.add("object", oid, "", str(e))

    def _older(self, eye: Eye, base: Oid) -> set[Oid]:
        """All commits that `base` reaches: a merge may bring a line that forked off before it."""
        seen: set[Oid] = set()
        pending = [base] if base else []
        while pending:
            oid = pending.pop()
            if oid not in seen:
                seen.add(oid)
                pending += eye.parents(oid)
        return seen

    def _judge(
        self, eye: Eye, crew: Crew | None, history: _History, judge: chain.Judge, state: chain.State
    ) -> chain.State:
        """Every commit in order; the state at the tip."""
        order, total = history.order, len(history.order)
        looks: Iterable[Look]
        looks = crew.looks(order) if crew else (eye.look(oid, alone=oid in history.cut) for oid in order)
        states: dict[Oid, chain.State] = {self.since: state} if history.joins else {}
        before = contents.newest_id(eye.get, eye.tree(self.since)) if self.since else ""
        old: list[Look] = []
        for look in looks:
            self.checked += 1
            if look.oid in history.cut:
                state = self._cut_state(look)
            elif history.joins:
                state = self._parents_state(eye, states, look)
            for rule, what in judge.judge(look, state):
                self.add(rule, look.oid, look.writer, what)
            self._said.update((look.oid, path) for path in look.paths)
            self._newest[look.writer] = look.oid
            if look.oldest and look.oldest <= before:
                old.append(look)
            if history.joins:
                states[look.oid] = state
            if not self.checked % KEPT:
                self.desk.store.close()
            self.ways.progress("commits", self.checked, total)
        if old:
            self._said_before(eye, old)
        return state

    def _said_before(self, eye: Eye, looks: list[Look]) -> None:
        """Name commits whose events stand in the journal of the verified tip.

        All of it is read, and only where an event's id is older than the newest there: ids begin with their time.
        """
        said = {event: look for look in looks for event in look.ids}
        for event in contents.event_ids(self.desk.store.get, eye.tree(self.since)):
            look = said.pop(identity(event), None)
            if look is not None:
                self.add("repeated", look.oid, look.writer, f"its event {event} stood in the journal before")

    def _cut_state(self, look: Look) -> chain.State:
        """What a commit whose parents are not here claims of itself, to hold those behind it against."""
        state = chain.state_at(self.desk.store.get, look.tree)
        tail = state.tails.get(look.writer)
        if tail is not None and look.writer:
            state.tails[look.writer] = chain.Tail(look.n - 1, tail.seq, tail.last)
        return state

    def _parents_state(self, eye: Eye, states: dict[Oid, chain.State], look: Look) -> chain.State:
        joined = chain.State()
        for n, parent in enumerate(look.parents):
            if parent not in states:  # from before the verified tip
                states[parent] = chain.state_at(eye.get, eye.tree(parent), self._standing)
            if n == 0:
                joined = states[parent].copy()
            else:
                joined.join(states[parent])
        return joined

    # ── trust ────────────────────────────────────────────────────────────────────────────────
    def _ended(self, base: Oid, order: list[Oid]) -> dict[str, frozenset[Oid]]:
        """Of each key that this machine revoked, which of the new commits it still counts for."""
        found: dict[str, frozenset[Oid]] = {}
        new = set(order)
        for fingerprint in {fingerprint for fingerprint, _ in self.mine.revoked}:
            pending = [oid for oid in self.mine.until(fingerprint) or () if oid]
            counted: set[Oid] = set()
            while pending:
                oid = pending.pop()
                if oid in counted or oid == base:
                    continue
                counted.add(oid)
                try:
                    pending += objects.parse_commit(self.desk.store.get(oid).data).parents
                except LedgerError:
                    continue  # not here, so none of what is here is known to be before it
            found[fingerprint] = frozenset(counted & new)
        return found

    def _strangers(self, state: chain.State) -> None:
        """Whom the tip's keys belong to; a writer whose key is not pinned is named once."""
        trusted = set()
        for writer, owner in sorted(state.owners.items()):
            if owner.fingerprint in self.mine.fingerprints and self.mine.until(owner.fingerprint) is None:
                trusted.add(writer)
            elif owner.fingerprint not in self.mine.fingerprints and writer in state.tails:
                what = f"writer {writer} signs with {owner.fingerprint}, a key that this clone does not trust"
                self.add("unknown signer", self._newest.get(writer, ""), writer, what)
        self.trusted = frozenset(trusted)

    def _rolled_back(self, eye: Eye, base: Oid, history: _History) -> None:
        """The last verified tip must be the tip or one of its ancestors, whatever trust it was verified under."""
        last = self.mine.verified
        if not last or last == self.tip or (last == base and history.met) or last in history.order:
            return
        try:
            older = self._older(eye, last)
        except LedgerError:
            older = set()
        if self.tip in older:
            lost = len(older) - len(self._older(eye, self.tip))
            what = f"the branch went back from {last[:12]}, the last verified tip, by {lost} commits to {self.tip[:12]}"
            self.add("rollback", self.tip, "", what)
        elif not history.cut:
            what = f"{last[:12]}, the last verified tip, is not in the history of {self.tip[:12]}, which was rewritten"
            self.add("rewrite", self.tip, "", what)

    # ── the tip against its journal ──────────────────────────────────────────────────────────
    def _contents(self, eye: Eye, history: _History, found: list[Finding]) -> None:
        paths = {finding.where for finding in found[:LOCATED]}
        made = self._located(eye, history, paths) if paths else {}
        for finding in found[:LOCATED]:
            commit, writer = made.get(finding.where, ("", ""))
            if (commit, finding.where) not in self._said:
                self.add(finding.rule, commit, writer, f"{finding.where}: {finding.what}")
        if len(found) > LOCATED:
            what = f"{len(found) - LOCATED} more files are not what the journal makes"
            self.add("differs", "", "", what, "list them with: gitledger fsck")

    def _located(self, eye: Eye, history: _History, paths: set[str]) -> dict[str, tuple[Oid, str]]:
        """The newest of the new commits that changed each path."""
        found: dict[str, tuple[Oid, str]] = {}
        for oid in reversed(history.order):
            if len(found) == len(paths):
                break
            commit = objects.parse_commit(eye.read(oid, "commit"))
            old = bytes.fromhex(eye.tree(commit.parents[0])) if commit.parents else None
            writer = reading.trailers(commit).get("Ledger-Writer", "")
            for file in eye.changed(old, bytes.fromhex(commit.tree)):
                if file.path in paths:
                    found.setdefault(file.path, (oid, writer))
        return found

    # ── several processes ────────────────────────────────────────────────────────────────────
    def _crew(self, stack: ExitStack, history: _History) -> Crew | None:
        if self.ways.reopen is None or history.cut or (len(history.order) < WORTH_CREW and not self.ways.workers):
            return None
        from gitledger import crew

        workers = self.ways.workers or crew.cores()
        return crew.hire(stack, self.ways.reopen, workers) if workers > 1 else None


def _prove(eye: Eye, commit: Oid, armored: str, public_key: str) -> None:
    """Raise unless `armored` is over a commit by an OpenPGP key or a certificate that its ledger carries."""
    from gitledger import gitsigner  # nobody else pays for it

    gitsigner.check(objects.signed_payload(eye.read(commit, "commit")), armored, public_key)


_COMPARE = "compare with another clone or a remote, and with: git show "
_MENDS = {
    "partial": "fetch the ledger's whole history: git fetch --unshallow",
    "missing object": "fetch the ledger again, or run git fsck to see what else is missing",
    "object": "run git fsck to see what is hurt, and fetch the ledger again from another clone",
    "unverifiable": "mend that and run gitledger verify again",
    "unknown signer": "ask that writer for the fingerprint, then: gitledger trust add ",
    "rollback": "compare with other clones; the reflog of the branch shows who moved it: git reflog ",
    "rewrite": "compare with other clones; the reflog of the branch shows who moved it: git reflog ",
    "other ledger": "see where the branch was before it came here: git reflog ",
    "revoked": "believe nothing that it says; whose key it was is shown by: gitledger trust list",
}


def _mend(rule: str, commit: Oid, writer: str, branch: str) -> str:
    mend = _MENDS.get(rule, _COMPARE)
    if mend.endswith("trust add "):
        return mend + writer
    if mend.endswith("reflog "):
        return mend + branch
    return mend + commit[:12] if mend is _COMPARE else mend
