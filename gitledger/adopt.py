"""A ledger that is elsewhere already: found at a remote, fetched into quarantine, verified wholly, and taken over.

A clone asks before it would begin a root of its own, since two ledgers that were begun apart can never be merged. What
is found is on no branch, and nothing but objects is written, until all of it was found good.
"""

from __future__ import annotations

from gitledger import gitcli, pins, remote, verify
from gitledger.errors import BadConfig, BadSignature, LedgerError, Missing, NotAllowed, Usage
from gitledger.genesis import Found, compare, founder
from gitledger.gitdir import GitDir
from gitledger.model import Oid
from gitledger.remote import Line, Remote
from gitledger.transaction import Desk


# ── whom to ask ──────────────────────────────────────────────────────────────────────────────
def which(gitdir: GitDir, named: str, configured: str) -> Remote | None:
    """The remote to ask: the one that is named, else configured, else `origin`, else the only one; None for none.

    Raises Usage where there are several and none of these, and Missing for a name that git does not know.
    """
    if named:
        return _known(gitdir, named)
    there = remote.names(gitdir)
    if configured:
        found = remote.read(configured)
        # A user's own configuration may name one for all repositories, also for those that have none.
        return None if not there and found.named else _known(gitdir, configured)
    if "origin" in there or len(there) == 1:
        return remote.read("origin" if "origin" in there else there[0])
    if there:
        raise Usage(
            f"this repository has {len(there)} remotes ({', '.join(there)}), and any may have the ledger already; "
            "say which one to ask: gitledger init --remote NAME"
        )
    return None


def _known(gitdir: GitDir, name: str) -> Remote:
    found = remote.read(name)
    if not remote.address(gitdir, found):
        known = ", ".join(remote.names(gitdir)) or "none"
        raise Missing(f"git knows no remote {found.shown} here, only: {known}; add it first, see: git help remote")
    return found


# ── finding it ───────────────────────────────────────────────────────────────────────────────
def look(
    desk: Desk, gitdir: GitDir, line: Line | None, chosen: Remote | None, expect: str, checks: verify.Ways
) -> Found | None:
    """The ledger that is elsewhere already, None for none: asked for over `line`; else what git fetched of it before.

    Raises NotAllowed where none is there and one by the key `expect` is expected.
    """
    found = ask(desk, line, expect, checks) if line else tracked(desk, gitdir, chosen, expect, checks)
    if expect and found is None:
        at = f" here nor at {line.remote.shown}" if line else ""
        raise NotAllowed(
            f"there is no branch ledger/{desk.home.name}{at} to compare with {expect}; fetch it, then run this again"
        )
    return found


def ask(desk: Desk, line: Line, expect: str, checks: verify.Ways) -> Found | None:
    """The remote's ledger, fetched whole and found good, in quarantine; None where the remote has no such branch.

    Whatever is raised, nothing but objects was written. A clone that is shallow or partial stays so for everything
    but the ledger, of which nothing is fetched later.
    """
    where = f"{line.remote.shown} {line.branch.removeprefix('refs/heads/')}"
    try:
        try:
            tip = remote.fetch_whole(line)
        except LedgerError as e:
            raise _unasked(line, e) from None
        if tip is None:
            remote.drop(line, line.incoming)
            return None
        return _proved(desk, tip, where, expect, checks)
    except BaseException:
        remote.drop(line, line.incoming)
        raise


def tracked(desk: Desk, gitdir: GitDir, chosen: Remote | None, expect: str, checks: verify.Ways) -> Found | None:
    """The ledger that a remote's branch was when git fetched it last, found good; None where git knows no such branch.

    Nothing is contacted.
    """
    rows = _tracking(gitdir, desk.home.name)
    if not rows:
        return None
    mine = f"refs/remotes/{chosen.slug}/ledger/{desk.home.name}" if chosen else ""
    ref = mine if mine in rows else next(iter(rows))
    if ref != mine and len(set(rows.values())) > 1:
        known = ", ".join(row.removeprefix("refs/remotes/") for row in rows)
        raise Usage(
            f"several remotes have this ledger, each another one: {known}; say whose: gitledger init --remote NAME"
        )
    tip, where = rows[ref], ref.removeprefix("refs/remotes/")
    if not remote.is_whole(gitdir, tip):
        raise Missing(f"{where} is not here wholly, the clone being shallow or partial; run it without --no-remote")
    return _proved(desk, tip, where, expect, checks)


def let_go(line: Line, accepted: Oid | None) -> None:
    """End the quarantine; a ledger that was taken over is the highest one accepted from that remote."""
    if accepted is not None:
        try:
            remote.move(line, line.seen, accepted)
        except LedgerError:
            pass  # the next sync finds it out again
    remote.drop(line, line.incoming)


def _unasked(line: Line, e: LedgerError) -> LedgerError:
    if remote.tip(line, line.incoming) is not None:
        return e  # it has one, and not all of it came
    what = str(e).rpartition("; ")[0] or str(e)
    if isinstance(e, BadConfig):
        return BadConfig(f"{what}; say which one to ask: gitledger init --remote ADDRESS")
    way = "begin without asking, knowing that two ledgers begun apart can never be merged"
    if _tracking(line.gitdir, line.name):
        way = "take over what git fetched of it before"
    return type(e)(f"{what}, so nobody knows whether it has a ledger; try again, or {way}: gitledger init --no-remote")


def _tracking(gitdir: GitDir, name: str) -> dict[str, Oid]:
    """The tracking refs of ledger `name`, with their tips."""
    words = ["for-each-ref", "--format=%(refname) %(objectname)", f"refs/remotes/*/ledger/{name}"]
    rows = gitcli.run(words, cwd=gitdir.top).line.splitlines()
    return {ref: tip for ref, _, tip in (row.partition(" ") for row in rows)}


def _proved(desk: Desk, tip: Oid, where: str, expect: str, checks: verify.Ways) -> Found:
    if desk.store.get(tip).kind != "commit":
        raise NotAllowed(f"{where} is no commit, so it is not taken over; nothing was written: look at it there")
    first = founder(desk.store, tip, desk.home.name, where)
    compare(first, where, expect)
    mine = pins.load(desk.home.pins, desk.home.name) or pins.Pins(first.uuid, first.genesis, founder=first.fingerprint)
    if (mine.uuid, mine.genesis) != (first.uuid, first.genesis):
        raise NotAllowed(f"{where} is another ledger than the one this clone has pinned; look at that remote")
    made = verify.unpinned(desk, mine, tip, checks)
    if made.verdict not in ("verified", "unknown signer"):
        fault = next((f for f in made.findings if f.rule != "unknown signer"), made.findings[0])
        by = f" by writer {fault.writer}" if fault.writer else ""
        raise BadSignature(
            f"{where} is not taken over: commit {fault.where}{by} ({fault.rule}): {fault.what}; nothing was written: "
            "compare with another clone, and ask whoever keeps that remote"
        )
    return Found(tip, first, made.checked, where)
