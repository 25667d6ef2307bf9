"""The checkpoint transaction: everything that makes a commit on the ledger goes through here.

Ten steps (the numbers stand in the code): lock, ingest, build, fold and render, objects, signed commit, durable write
with the signature proved beside it, compare-and-swap, read back, and only then forget the WAL. Whatever fails before
the swap leaves the ref as it was; a commit that does not read back is taken off the ref again. The WAL goes last, so
nothing acknowledged is lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from gitledger import frame, ingest, layout, lock, objects, pins, signing, store, trust, wal
from gitledger.errors import BadSignature, LedgerError, MissingObject, NoLedger, NotAllowed, StaleTip
from gitledger.mint import Mint
from gitledger.model import Draft, Event, Finding, Oid, Position, Record
from gitledger.redact import Clean, CleanBytes, Known, redact, texts
from gitledger.render.text import line as one_line
from gitledger.schema import Config
from gitledger.values import dataclass, field
from gitledger.view import View

LOCK_DEADLINE = 20.0
"""Seconds to wait for another gitledger of this repository; a hook's own timeout is longer."""
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Home:
    """Where a clone's local files lie, all below `<git common dir>/gitledger/`."""

    state: str
    name: str

    @property
    def wal(self) -> str:
        """The folder of this ledger's write-ahead log."""
        return f"{self.state}/wal/{self.name}"

    @property
    def lock(self) -> str:
        """The file whose lock every writer of this clone takes."""
        return f"{self.state}/lock"

    @property
    def pins(self) -> str:
        """The trust list."""
        return f"{self.state}/trust.json"


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: the clone's short id, its principal in `allowed_signers`, and the key that signs.

    `spare` are other keys of this clone. Each commit is signed by the one that the ledger has for the writer, so that
    a rotation that was cut off anywhere leaves a ledger that can be signed for.
    """

    id: str
    principal: str
    key: signing.Signer
    spare: tuple[signing.Signer, ...] = ()


def writer(id_: str, key: signing.Signer, *spare: signing.Signer) -> Writer:
    """The writer of an id; its principal is an address that can belong to nobody else."""
    return Writer(id_, f"{id_}@gitledger.invalid", key, spare)


@dataclass(frozen=True, slots=True)
class Plan:
    """What one commit is to hold: its events, its subject and capsule, and the position it was made at."""

    kind: str
    drafts: tuple[Draft, ...]
    subject: Clean
    body: tuple[Clean, ...] = ()
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A commit that was read back and verified."""

    commit: Oid
    tree: Oid
    events: tuple[Event, ...]
    view: View
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Desk:
    """All that a transaction works with: the store, the clone's files, the writer, time, adapters, policy."""

    store: store.Store
    home: Home
    writer: Writer
    mint: Mint
    readers: Mapping[str, ingest.Reader] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    patience: float | None = None
    """Seconds to wait for the clone's lock; None for LOCK_DEADLINE."""

    @property
    def wait(self) -> float:
        """How long to wait for the clone's lock, in seconds."""
        return LOCK_DEADLINE if self.patience is None else self.patience


def view_at(desk: Desk, tip: Oid | None) -> View:
    """The records of a tip; an empty ledger for None."""
    if tip is None:
        return View(lambda path: None)
    return View(lambda path: objects.read(desk.store.get, tip, path))


def fold_pending(desk: Desk, view: View, entries: list[frame.Entry]) -> ingest.Ingested:
    """Fold WAL entries on top of `view`, leaving out what its journal already holds."""
    known = ingest.journalled(view, desk.writer.id) if entries else frozenset()
    return _fold(desk, view, entries, known)


def _fold(
    desk: Desk, view: View, entries: list[frame.Entry], known: frozenset[str], secrets: Known = ()
) -> ingest.Ingested:
    me, readers = desk.writer.id, desk.readers
    return ingest.ingest(view, entries, writer=me, readers=readers, config=desk.config, known=known, secrets=secrets)


def texts_of(one: Draft | Event) -> Iterator[str]:
    """Every text that an event holds."""
    for change in one.records.values():
        yield from texts(change.set)
        yield from texts(change.items)
    yield from texts(one.data)


def _texts(taken: ingest.Ingested, plan: Plan) -> Iterator[str]:
    """Every text that the commit of these would hold."""
    new: list[Draft | Event] = [*(event for event, _ in taken.lines), *plan.drafts]
    for one in new:
        yield from texts_of(one)
    yield from (plan.subject, *plan.body)
    if plan.position:
        yield plan.position.branch


def commit(desk: Desk, build: Callable[[View], Plan | None], *, genesis: bool = False) -> Written | None:
    """Make one commit of what is pending and what `build` adds; None where `build` finds nothing to do.

    `build` sees the ledger with the WAL folded in and may be called again when another writer was faster. Raises a
    LedgerError and changes nothing when any step fails. Only with `genesis` may the branch be absent.
    """
    with lock.held(desk.home.lock, deadline=desk.wait):  # 1
        wal.seal(desk.home.wal)
        for attempt in range(ATTEMPTS):
            try:
                return _attempt(desk, build, genesis)
            except (StaleTip, MissingObject):
                # A writer outside this clone's lock (a fetch, another tool) moved the ref, or a `git gc --prune=now`
                # took new objects before the ref named them: build again on the tip as it is now.
                if attempt == ATTEMPTS - 1:
                    raise
    raise AssertionError("unreachable")


def _attempt(desk: Desk, build: Callable[[View], Plan | None], genesis: bool) -> Written | None:
    tip = desk.store.tip()
    if tip is None and not genesis:
        # A new root here would be another ledger under the same name.
        raise NoLedger(f"the branch {desk.store.ref} is gone; bring it back from a remote, another clone or its reflog")
    view = view_at(desk, tip)
    sealed = wal.sealed(desk.home.wal)
    damaged = [finding for _, _, findings in sealed for finding in findings]
    known = ingest.journalled(view, desk.writer.id) if sealed else frozenset()
    if known:
        # A crash came between the newest commit and its forgetting. Now, because only the newest commit's lines are
        # known: after another one nobody could tell that these are in the journal already.
        taken_already = [path for path, found, _ in sealed if found and all(entry.id in known for entry in found)]
        if taken_already:
            wal.forget(desk.home.wal, taken_already)
        sealed = [one for one in sealed if one[0] not in taken_already]
    entries = wal.in_order((path, found) for path, found, _ in sealed)
    taken = _fold(desk, view, entries, known)  # 2
    plan = build(view)  # 3
    if plan is None:
        return None
    secrets: Known = ()
    if desk.config.secrets.scanner != "none":
        from gitledger import scanner  # what it needs is not on the way of those who have none

        secrets = scanner.secrets(desk.config.secrets.scanner, _texts(taken, plan))
        if secrets:  # once more from the beginning: what is derived may quote what was just taken out
            view = view_at(desk, tip)
            taken = _fold(desk, view, entries, known, secrets)
            plan = build(view)
            if plan is None:
                return None
    owner = view.record(layout.writer_key(desk.writer.id))  # before the plan: a new key is signed in by the one before
    lines = [*taken.lines, *(ingest.stamp(view, draft, desk.writer.id, secrets) for draft in plan.drafts)]
    if view.manifest.lamport >= ingest.LAST:
        # An event beyond could be read by nobody, and one at the same place would be taken for a forged one.
        raise NotAllowed(
            f"the order of events in {desk.store.ref} is at its end, which only a forged event reaches; nothing was "
            "written and nothing is lost; find the commit with: gitledger verify"
        )
    key, public = signer(desk, owner or view.record(layout.writer_key(desk.writer.id)))

    base = objects.parse_commit(desk.store.get(tip).data).tree if tip else None
    edited = next_tree(desk, view, (line for _, line in lines), base)  # 4, 5
    said = message(plan, view, desk.writer.id, secrets)
    new, signed = sign(desk, key, edited.tree, (tip,) if tip else (), person(desk), said)  # 6
    write(desk, public, (*edited.objects, (new, signed)))  # 7
    desk.store.swap(new, tip, f"gitledger: {plan.kind}")  # 8
    try:
        store.read_back(desk.store, new, edited)  # 9
    except (LedgerError, OSError):
        desk.store.swap(tip, new, "gitledger: the new commit did not read back")
        raise
    untidy = _tidy(desk, public, tip, new, [path for path, _, _ in sealed])  # 10
    return Written(new, edited.tree, tuple(event for event, _ in lines), view, (*damaged, *taken.findings, *untidy))


def load() -> None:
    """Load what a commit's documents are made by, for who has to wait for something else before it makes one."""
    from gitledger.render import tree  # noqa: F401


def next_tree(desk: Desk, view: View, lines: Iterable[CleanBytes], base: Oid | None) -> objects.Edited:
    """The tree of a commit whose events are folded into `view` already, their lines the writer's next segment."""
    from gitledger.render import tree  # every document there is, for what writes alone

    changes: dict[str, CleanBytes | None] = {}
    tail = view.manifest.writers[desk.writer.id]
    for part, data in enumerate(ingest.segments(lines)):
        changes[layout.segment(desk.writer.id, tail.segments, part)] = data
    tail.segments += 1
    changes.update(tree.changes(view))
    return objects.edit(desk.store.get, base, changes, desk.store.algorithm)


def sign(
    desk: Desk, key: signing.Signer, made: Oid, parents: tuple[Oid, ...], person: Clean, said: Clean
) -> tuple[Oid, objects.Object]:
    """A signed commit of the tree `made`; the only place where gitledger makes one, so its texts must be clean."""
    commit = objects.Commit(tree=made, parents=parents, author=person, committer=person, message=said)
    payload = objects.format_commit(commit)
    signed = objects.with_signature(payload, key.sign(payload), desk.store.algorithm)
    return objects.oid("commit", signed, desk.store.algorithm), objects.Object("commit", signed)


def write(desk: Desk, public: signing.PublicKey, made: tuple[tuple[Oid, objects.Object], ...]) -> None:
    """Put objects to disk, the commit last, while its one signature is proved to be by `public`, in the writer's name.

    BadSignature where it is not: a ref that named this commit could be followed by nobody.
    """
    data = made[-1][1].data
    signatures = objects.parse_commit(data).signatures
    if len(signatures) != 1:
        raise BadSignature(f"a commit carries {len(signatures)} signatures instead of one; run: gitledger verify")
    # By the key as the ledger has it: one that its owner changed since may sign what nobody else can check.
    put = partial(desk.store.put, made)
    verify(objects.signed_payload(data), signatures[0][1], public.line, desk.writer.principal, meanwhile=put)


def message(plan: Plan, view: View, writer: str, secrets: Known = ()) -> Clean:
    """The commit's message: subject of at most 72 characters, capsule, and the trailers that bind it to its ledger."""
    tail = view.manifest.writers[writer]
    trailers = [
        f"Ledger: {view.manifest.uuid} {view.manifest.name}",
        f"Ledger-Kind: {plan.kind}",
        f"Ledger-Writer: {writer}",
        f"Ledger-Seq: {tail.segments}",
        f"Ledger-Journal: {tail.seq} {tail.last}",
    ]
    if plan.position:
        branch = redact(plan.position.branch, secrets)  # before it is cut: of half a secret no rule knows the other
        trailers.append(f"Ledger-Head: {plan.position.head} {one_line(branch, 200)}")
    body = [_inert(one_line(redact(text, secrets), 200)) for text in plan.body]
    subject = one_line(redact(plan.subject, secrets), 72)
    return redact("\n".join([subject, "", *body, *([""] if body else []), "[skip ci]", "", *trailers, ""]), secrets)


def _inert(row: str) -> str:
    # Git takes a line that begins with --- for the end of a message, and one with # for none of it: what stands before
    # could then pass for the trailers.
    return f" {row}" if row.startswith(("#", "---")) else row


def verify(
    payload: bytes, armored: str, public_key: str, principal: str, *, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """BadSignature unless `armored` is over `payload` by a public key as a ledger carries it, in a principal's name.

    `meanwhile` is done beside it, before the answer is in where that takes a child; what it raises is raised.
    """
    line = "" if public_key.startswith(signing.OTHERS) else signing.allowed_signers_line(principal, public_key)
    if line and "cryptography.exceptions" not in sys.modules:  # whose loading takes longer than an ssh-keygen
        signing.verify(payload, armored, line.encode(), principal, meanwhile=meanwhile)
        return
    if line:
        from gitledger import sshsig

        sshsig.verify(payload, armored, line.encode(), principal)
    else:
        from gitledger import gitsigner  # nobody else pays for it

        gitsigner.check(payload, armored, public_key)
    meanwhile()


def signer(desk: Desk, record: Record | None) -> tuple[signing.Signer, signing.PublicKey]:
    """The key of this clone that the ledger has for its writer, and its public half as it stands there.

    Signed by any other, the commit would be a forgery to everybody.
    """
    me = desk.writer
    if record and trust.revocation(record):
        raise NotAllowed(
            f"the key of this clone's writer {me.id} was revoked in the ledger; begin with a new one: gitledger init"
        )
    broken: LedgerError | None = None
    public = signing.parse_public_key(record.text("public_key")) if record else None
    for key in (me.key, *me.spare):
        try:
            if public and key.fingerprint == public.fingerprint:
                return key, public
        except LedgerError as e:
            broken = broken or e
    if broken:
        raise broken
    knows = f"by the key {public.fingerprint}" if public else "not at all"
    raise BadSignature(
        f"the ledger knows this clone's writer {me.id} {knows}, and the key here is {me.key.fingerprint}; "
        "restore the first one, or join with a new writer by: gitledger init"
    )


def _tidy(desk: Desk, public: signing.PublicKey, tip: Oid | None, new: Oid, sealed: list[str]) -> list[Finding]:
    # The commit stands, read back and verified: what fails from here on is told, and is not a checkpoint that failed.
    untidy = []
    steps = (
        (desk.home.pins, partial(_remember, desk, public, tip, new)),
        (desk.home.wal, partial(_forget, desk, sealed)),
    )
    for where, step in steps:
        try:
            step()
        except (LedgerError, OSError) as e:
            mend = "nothing is lost; mend what it says before the next checkpoint"
            untidy.append(Finding("after the commit", where, str(e), mend))
    return untidy


def _forget(desk: Desk, sealed: list[str]) -> None:
    wal.forget(desk.home.wal, sealed)


def _remember(desk: Desk, public: signing.PublicKey, tip: Oid | None, new: Oid) -> None:
    # A commit of our own on a verified tip is verified: the next briefing need not ask ssh-keygen again.
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is None or tip is None or not mine.remembers(tip):
        return
    if public.fingerprint in mine.fingerprints and mine.until(public.fingerprint) is None:
        pins.save(desk.home.pins, desk.home.name, mine.remember(new))


def person(desk: Desk) -> Clean:
    """Author and committer of a commit that is made now."""
    # An address under .invalid can belong to nobody; the clone's own identity may be unset or private.
    return redact(f"gitledger {desk.writer.id} <{desk.writer.principal}> {desk.mint.now_ms() // 1000} +0000")
