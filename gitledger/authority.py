"""Whom this clone believes, for a briefing: what is new since the last verified tip, by the rules of `verify`.

A verdict is about the whole history: one bad commit makes everything after it `bad`. A good signature of a key that
this machine has not pinned is `unknown signer`; where nothing can be checked (a shallow clone, no pins) it is
`unverifiable`, which is not bad.
"""

from __future__ import annotations

from gitledger import objects, pins, signing
from gitledger.codec import read_record
from gitledger.errors import LedgerError
from gitledger.model import Authenticity, Finding, Oid
from gitledger.transaction import Desk
from gitledger.values import dataclass

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
    if mine is not None and mine.remembers(tip):
        return Assessment("verified", _trusted(desk, tip, mine))
    from gitledger import verify  # what it takes to check is not loaded where nothing is new

    made = verify.verify(desk, tip, verify.Ways(limit=limit))
    trusted = made.trusted or (_trusted(desk, tip, mine) if mine is not None else frozenset())
    # A stranger is named by what the briefing withholds of it.
    findings = tuple(fault for fault in made.findings if fault.rule != "unknown signer")
    match made.verdict:
        case "bad":
            return Assessment("bad", trusted, findings)
        case "verified" | "unknown signer":
            return Assessment("verified", trusted, findings)
        case _:
            return Assessment("unverifiable", trusted, findings)


def _trusted(desk: Desk, tip: Oid, mine: pins.Pins) -> frozenset[str]:
    """The writers whose present keys are pinned here, and not revoked."""
    found = set()
    for name in objects.entries(desk.store.get, tip, "keys") or {}:
        writer, dot, ending = name.rpartition(".")
        if not dot or ending != "json":
            continue
        try:
            record = read_record(objects.read(desk.store.get, tip, f"keys/{name}") or b"", f"keys/{name}")
            fingerprint = signing.parse_public_key(record.text("public_key")).fingerprint
        except LedgerError:
            continue  # a damaged key file trusts nobody; fsck names it
        if fingerprint in mine.fingerprints and mine.until(fingerprint) is None:
            found.add(writer)
    return frozenset(found)
