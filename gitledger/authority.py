"""Whom this clone believes: the signatures from the tip back to the last verified one, and the keys behind them.

A verdict is about the whole history: one bad commit makes everything after it `bad`. A good signature of a key that
this machine has not pinned is `unknown signer`; where nothing can be checked (no ssh-keygen, no pins) it is
`unverifiable`, which is not bad.
"""

from __future__ import annotations

from dataclasses import dataclass

from gitledger import lock, objects, pins, signing, store
from gitledger.codec import read_record
from gitledger.errors import BadSignature, LedgerError, Missing, TryAgain
from gitledger.model import Authenticity, Finding, Oid
from gitledger.transaction import Desk

CHECKED_AT_ONCE = 200
"""Commits that one briefing checks at most; `gitledger verify` checks them all."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the signatures say of a tip. `trusted` are writers whose keys are pinned here."""

    chain: Authenticity
    trusted: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()

    def of(self, writer: str) -> Authenticity:
        """How authentic a record of `writer` is."""
        if self.chain in ("bad", "unverifiable"):
            return self.chain
        return "verified" if writer in self.trusted else "unknown signer"


def assess(desk: Desk, tip: Oid, *, limit: int = CHECKED_AT_ONCE) -> Assessment:
    """Check what is new since the last verified tip, and remember a good verdict."""
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is None:
        finding = Finding("no pins", desk.home.pins, "this clone has pinned no key", "join the ledger: gitledger init")
        return Assessment("unverifiable", findings=(finding,))
    writers = _writers(desk, tip)
    trusted = frozenset(w for w, fingerprint in writers.items() if fingerprint in mine.fingerprints)
    if mine.remembers(tip):
        return Assessment("verified", trusted)
    stop = (mine.verified,) if mine.under == mine.digest() and mine.verified else ()
    findings: list[Finding] = []
    unknown = False
    seen = 0
    try:
        for oid, commit in store.history(desk.store, tip, stop):
            seen += 1
            if seen > limit:
                more = Finding("not checked", oid[:12], f"more than {limit} commits are new", "run: gitledger verify")
                return Assessment("unverifiable", trusted, (*findings, more))
            known, faults = check(desk, oid, commit, mine)
            unknown |= not known
            findings += faults
    except (Missing, TryAgain) as e:
        finding = Finding("unverifiable", tip[:12], str(e), "mend that and look again")
        return Assessment("unverifiable", trusted, (finding,))
    if findings:
        return Assessment("bad", trusted, tuple(findings))
    if not unknown:
        remember(desk, mine, tip)
    return Assessment("verified", trusted)


def check(desk: Desk, oid: Oid, commit: objects.Commit, mine: pins.Pins) -> tuple[bool, list[Finding]]:
    """Whether a commit is by a pinned key, and its faults: signature, owner of the key, ledger it is bound to."""
    rows = [row for row in commit.message.splitlines() if row.startswith("Ledger") and ": " in row]
    trailers = dict(row.split(": ", 1) for row in rows)
    writer = trailers.get("Ledger-Writer", "")
    found: list[Finding] = []
    mend = "look at it with: git show " + oid[:12]
    if trailers.get("Ledger", "").split(" ")[0] != mine.uuid:
        found.append(Finding("other ledger", oid[:12], "it is not signed for this ledger", mend))
    if not commit.parents and oid != mine.genesis:
        found.append(Finding("other root", oid[:12], "it is another first commit than the pinned one", mend))
    if len(commit.signatures) != 1:
        what = "it is not signed" if not commit.signatures else f"it carries {len(commit.signatures)} signatures"
        return False, [*found, Finding("signature", oid[:12], what, mend)]
    record = objects.read(desk.store.get, oid, f"keys/{writer}.json") if writer else None
    if record is None:
        return False, [*found, Finding("writer", oid[:12], f"the ledger has no key for writer {writer[:20]!r}", mend)]
    key = read_record(record, f"keys/{writer}.json")
    line = signing.allowed_signers_line(key.get("principal", ""), key.get("public_key", ""))
    try:
        payload = objects.signed_payload(desk.store.get(oid).data)
        signing.verify(payload, commit.signatures[0][1], line.encode(), key.get("principal", ""))
    except BadSignature as e:
        return False, [*found, Finding("signature", oid[:12], str(e), mend)]
    fingerprint = signing.signer_of(commit.signatures[0][1]).fingerprint
    return fingerprint in mine.fingerprints, found


def _writers(desk: Desk, tip: Oid) -> dict[str, str]:
    """The fingerprint of every writer's key that the ledger carries."""
    found = {}
    for name in objects.entries(desk.store.get, tip, "keys") or {}:
        writer, dot, ending = name.rpartition(".")
        if dot and ending == "json" and writer != "index":
            data = objects.read(desk.store.get, tip, f"keys/{name}")
            try:
                record = read_record(data or b"", f"keys/{name}")
                found[writer] = signing.parse_public_key(record.get("public_key", "")).fingerprint
            except LedgerError:
                continue  # a damaged key file trusts nobody; fsck names it
    return found


def remember(desk: Desk, mine: pins.Pins, tip: Oid) -> None:
    """Keep `tip` as the newest one whose whole history was found good; harmless where the file cannot be written."""
    try:
        with lock.held(desk.home.lock, deadline=0.2):
            pins.save(desk.home.pins, desk.home.name, mine.remember(tip))
    except LedgerError:
        pass  # read-only or busy: the next reader checks again, and nothing is lost but time
