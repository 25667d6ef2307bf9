"""One ledger on several machines: fetch into quarantine, verify, fast-forward or merge, push one refspec, never forced.

What was committed here stays here, whatever the remote says. What is done with what comes, `reconcile`, is loaded, and
this clone's own tip verified, while git fetches.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gitledger import layout, lock, remote, syncstate
from gitledger.errors import BadData, LedgerError, Missing, NotAllowed, TryAgain
from gitledger.ledger import Ledger
from gitledger.model import Oid
from gitledger.patterns import pattern
from gitledger.redact import redact
from gitledger.remote import Line, Remote
from gitledger.syncing import BOTH_WAYS, Outcome, Refused, Ways
from gitledger.transaction import Plan
from gitledger.values import dataclass, replace
from gitledger.view import View, read_manifest

if TYPE_CHECKING:
    from gitledger.reconcile import Both

ATTEMPTS = 10
"""How often a push is tried where other machines were faster."""
GONE = "gone"
"""The word in a commit's place for a remote that may have no ledger."""
OID = pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def sync(ledger: Ledger, to: Remote, ways: Ways = BOTH_WAYS) -> Outcome:
    """Bring this clone's ledger and the remote's together; how it went is kept for `status` and the briefing.

    Raises Refused with both sides kept, TryAgain where the remote could not be reached or was busy all the time, and
    any other LedgerError with its next step. Whatever is raised, what is committed here is as it was, or further.
    """
    home = ledger.desk.home
    with lock.held(os.path.join(home.state, f"sync-{home.name}.lock"), deadline=5.0):
        before = syncstate.load(home.state, home.name)
        line = Line(ledger.gitdir, to, home.name, time.monotonic() + ways.deadline, ways.heard)
        now = replace(before, remote=to.shown, at=ledger.desk.mint.at(), failed="")
        try:
            outcome = _Sync(ledger, line, ways).run()
        except Refused as e:
            syncstate.save(home.state, home.name, replace(now, refused=(e.finding,)))
            raise
        except LedgerError as e:
            syncstate.save(home.state, home.name, replace(now, failed=str(e)))
            raise
        now = now.add(outcome.twice, outcome.together)
        syncstate.save(home.state, home.name, replace(now, refused=(), tip=outcome.there))
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
        from gitledger import ancestry  # a sync has it with the rest, behind the fetch

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
    both: Both | None = None

    def run(self) -> Outcome:
        """Attempts until both sides agree."""
        outcome = Outcome("")
        if self.ways.push:
            outcome.journalled = journal(self.ledger)
        for attempt in range(1, ATTEMPTS + 1):
            outcome.attempts = attempt
            theirs = remote.fetch_whole(self.line, self.ledger.tip(), self._meanwhile)
            if self._both().join(theirs, outcome):
                return outcome
            if time.monotonic() > self.line.until:
                break
            self.ways.pause(attempt)
        raise TryAgain(
            f"{self.line.remote.shown} was busy, or had moved on, each of {outcome.attempts} times this clone tried; "
            "its commits are kept here: sync again"
        )

    def _meanwhile(self) -> None:
        """What needs nothing of the remote's: a fetch takes its time."""
        self._both().prepare()

    def _both(self) -> Both:
        if self.both is None:
            from gitledger import reconcile

            self.both = reconcile.Both.of(self.ledger, self.line, self.ways)
        return self.both


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
