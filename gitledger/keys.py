"""A writer's key: listed with what this clone makes of it, replaced by another, ended for everybody.

A new key is signed in by the one before it, and the key that a commit must be signed with is the one that its parent
has for the writer; so both changes hold by their place in the chain, whatever a clock says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitledger import codec, identity, layout, lock, objects, pins, signing, transaction, trust
from gitledger.errors import BadData, BadSignature, LedgerError, NoLedger, NotAllowed
from gitledger.mint import Mint
from gitledger.model import Change, Draft, Json, Oid, Record
from gitledger.pins import Pins
from gitledger.redact import redact
from gitledger.signing import Signer
from gitledger.transaction import Desk, Plan, Written
from gitledger.values import dataclass, replace
from gitledger.view import View

Make = Callable[[str], tuple[str, Signer]]
"""A new key for a writer: the path of its file ("" where it is not ours to keep) and its signer."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A key that a writer had before, and when it was replaced."""

    fingerprint: str
    until: str


@dataclass(frozen=True, slots=True)
class Known:
    """A writer that the ledger carries. `fingerprint` is computed from the key itself, "" where that is damaged.

    `ended` is what the ledger says of the key's end for everybody; `until` are the commits up to which the key counts
    in this clone, None where it was not revoked here.
    """

    writer: str
    fingerprint: str
    trusted: bool = False
    until: tuple[Oid, ...] | None = None
    ended: Mapping[str, Json] | None = None
    earlier: tuple[Earlier, ...] = ()


# ── whom this clone believes ─────────────────────────────────────────────────────────────────
def listed(desk: Desk, tip: Oid, pinned: Pins) -> list[Known]:
    """Every writer that the ledger carries a key of, by its id, with what this clone makes of it."""
    found = []
    for name in sorted(objects.entries(desk.store.get, tip, "keys") or {}):
        writer, dot, ending = name.rpartition(".")
        if not dot or ending != "json":
            continue
        try:
            record = codec.read_record(objects.read(desk.store.get, tip, f"keys/{name}") or b"", f"keys/{name}")
            fingerprint = signing.parse_public_key(record.text("public_key")).fingerprint
        except LedgerError:
            found.append(Known(writer, ""))
            continue
        trusted, until = fingerprint in pinned.fingerprints, pinned.until(fingerprint)
        found.append(Known(writer, fingerprint, trusted, until, trust.revocation(record), earlier(record)))
    return found


def earlier(record: Record) -> tuple[Earlier, ...]:
    """The keys that a writer had before the present one, oldest first."""
    rows = ((row.get("fingerprint"), row.get("until")) for row in record.listed("keys"))
    return tuple(Earlier(key, until) for key, until in rows if isinstance(key, str) and isinstance(until, str))


def pinned(desk: Desk) -> Pins:
    """This clone's pins; raise NoLedger where it has none."""
    found = pins.load(desk.home.pins, desk.home.name)
    if found is None:
        raise NoLedger(f"{desk.home.pins} says nothing of the ledger {desk.home.name}; join it with: gitledger init")
    return found


def change(desk: Desk, step: Callable[[Pins], Pins]) -> Pins:
    """The pins after one step, on disk: read and written under the clone's lock."""
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
        changed = step(pinned(desk))
        pins.save(desk.home.pins, desk.home.name, changed)
    return changed


# ── a key replaced ───────────────────────────────────────────────────────────────────────────
def rotation(view: View, writer: str, mint: Mint, new: Signer) -> Plan:
    """The plan of a commit that gives `writer` another key; the old one stays in the record, for what it signed."""
    key = layout.writer_key(writer)
    record = view.record(key)
    if record is None:
        raise NoLedger(f"the ledger has no key of this clone's writer {writer}; join it with: gitledger init")
    old = {"public_key": record.text("public_key"), "fingerprint": record.text("fingerprint")}
    if new.public_key == old["public_key"]:
        raise NotAllowed(f"writer {writer} signs with the key {new.fingerprint} already; nothing is to be replaced")
    at = mint.at()
    item = layout.item_id("k", record.items.get("keys", {}), writer)
    fields = {"public_key": new.public_key, "fingerprint": new.fingerprint, "rotated": at}
    records = {key: Change(fields, {"keys": {item: {**old, "until": at}}})}
    data = {"from": old["fingerprint"], "to": new.fingerprint}
    draft = Draft(mint.id(), at, "key.rotated", records=records, data=data)
    said = (redact(f"From {old['fingerprint']}"), redact(f"to {new.fingerprint}"))
    return Plan("key", (draft,), redact(f"New key of writer {writer}"), said)


def rotate(desk: Desk, common: str, make: Make) -> tuple[Written, Signer]:
    """Give this clone's writer a new key in a commit that the old one signs; from then on the new one signs.

    Both keys are on disk and named in the clone's identity before the commit, and stay: whichever of the two the
    ledger has, whenever this is cut off, somebody here can sign for it.
    """
    writer = desk.writer.id
    with lock.folder(common, deadline=transaction.LOCK_DEADLINE):
        mine = identity.load(common)
        if mine is None or mine.id != writer:
            raise BadSignature(f"this clone's writer is not {writer} any more; run the command again")
        record = transaction.view_at(desk, desk.store.tip()).record(layout.writer_key(writer))
        if record and trust.revocation(record):  # before a key is made in vain
            raise NotAllowed(f"the key of this clone's writer {writer} was revoked; begin anew with: gitledger init")
        path, new = make(writer)
        mine_now = pinned(desk)
        known = listed(desk, desk.store.tip() or "", mine_now)
        ended = {one.fingerprint for one in known if one.ended} | {key for key, _ in mine_now.revoked}
        if new.fingerprint in ended:
            raise NotAllowed(f"the key {new.fingerprint} was revoked, so it cannot sign again; take another one")
        own = mine.with_keys(desk.home.name, tuple(dict.fromkeys((path, *mine.own(desk.home.name)))) if path else ())
        with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
            pins.save(desk.home.pins, desk.home.name, _with_unused(pinned(desk), new.fingerprint))
            if path:
                identity.save(common, own)
        written = transaction.commit(desk, lambda view: rotation(view, writer, desk.mint, new))
    if written is None:
        raise AssertionError("a rotation always makes a commit")
    return written, new


def _with_unused(mine: Pins, fingerprint: str) -> Pins:
    # A key that has signed nothing yet changes no verdict, so what was found good stays so.
    changed = mine.trust(fingerprint)
    return replace(changed, under=changed.digest()) if mine.under == mine.digest() else changed


# ── a key ended ──────────────────────────────────────────────────────────────────────────────
def ending(view: View, writer: str, mint: Mint) -> Plan | None:
    """The plan of a commit after which `writer`'s key counts for nobody; None where it is so already."""
    key = layout.writer_key(writer)
    record = view.record(key)
    if record is None:
        raise NoLedger(f"the ledger has no key of this clone's writer {writer}; join it with: gitledger init")
    if trust.revocation(record):
        return None
    at, fingerprint = mint.at(), record.text("fingerprint")
    records = {key: Change({"revoked": {"at": at, "by": writer}})}
    draft = Draft(mint.id(), at, "key.revoked", records=records, data={"fingerprint": fingerprint})
    said = redact(f"{fingerprint} counts up to here.")
    return Plan("key", (draft,), redact(f"Revoke the key of writer {writer}"), (said,))


def revoke(desk: Desk, fingerprint: str, first: Oid | None = None) -> Pins:
    """Believe what a key signed up to the present tip only, or up to the commits before `first`."""
    tip = desk.store.tip()
    if tip is None:
        raise NoLedger(f"the branch {desk.store.ref} is gone; bring it back from a remote or another clone")
    until: tuple[Oid, ...] = (tip,)
    if first is not None:
        thing = desk.store.get(first)
        if thing.kind != "commit":
            raise BadData(f"{first} is no commit of the ledger; list them with: gitledger log")
        until = objects.parse_commit(thing.data).parents
    return change(desk, lambda mine: mine.revoke(fingerprint, until))
