"""How a ledger begins in a clone: the checks, the key, the writer's id, and the signed genesis commit.

A clone that finds the branch already there (made by another one) joins it: its key is added in a signed commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from gitledger import (
    codec,
    gitcli,
    identity,
    layout,
    lock,
    objects,
    pins,
    program,
    signing,
    store,
    tasks,
    transaction,
    trust,
    wal,
    worktree,
)
from gitledger.errors import BadData, CannotWrite, LedgerError, NoLedger, NotAllowed, NotARepository, Unsupported
from gitledger.gitdir import GitDir, check_state, state
from gitledger.identity import Identity
from gitledger.mint import Mint
from gitledger.model import Change, Draft, Oid, Record
from gitledger.redact import redact
from gitledger.signing import Signer
from gitledger.store import Store
from gitledger.transaction import Desk, Home, Plan
from gitledger.values import dataclass, replace
from gitledger.view import View


@dataclass(frozen=True, slots=True)
class Founder:
    """What a ledger is known by: its uuid, its first commit, and who signed that with which key."""

    uuid: str
    genesis: Oid
    writer: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Found:
    """A ledger that is not here yet, all of its `checked` commits found good; `where` as messages name it."""

    tip: Oid
    founder: Founder
    checked: int
    where: str


@dataclass(frozen=True, slots=True)
class Begun:
    """What `init` tells: the branch, the ledger's uuid, this clone's writer and its key, and the first commit's.

    Where it was taken over from elsewhere, `adopted` says from where, and `checked` how many commits were found good.
    `remote` is what `asked`, `named` or not, tell of; "" for none.
    """

    branch: str
    uuid: str
    writer: str
    fingerprint: str
    commit: Oid
    founder: Founder
    joined: bool = False
    adopted: str = ""
    checked: int = 0
    remote: str = ""
    asked: bool = False
    named: bool = False


def check(gitdir: GitDir | None, path: str, name: str) -> GitDir:
    """The repository where a ledger may begin; raise with one line where it may not, having written nothing."""
    if redact(layout.ledger_name(name)) != name:
        raise BadData("that name of a ledger looks like a secret, and names are seen by everybody; choose another")
    if gitdir is None:
        raise NotARepository(f"{shown(path)} is in no git repository; go into one, or make one with: git init")
    if not gitdir.top:
        raise NotARepository(f"{gitdir.common} is bare; run this in one of its work trees (git worktree add)")
    check_state(gitdir.common)
    where = gitdir.top
    answer = gitcli.run(["rev-parse", "--show-object-format"], cwd=where)
    if answer.line != "sha1":
        raise Unsupported(f"{where} uses {answer.line} object ids, not supported yet; use a sha1 repository")
    if worktree.ref_storage(gitdir) == "reftable":
        raise Unsupported(f"{where} keeps its refs in a reftable, not supported yet; use the files format")
    if worktree.branch_exists(gitdir, "ledger"):
        raise CannotWrite(
            "a branch called ledger exists, so git cannot hold ledger/main beside it; "
            "rename it: git branch -m ledger NEW-NAME"
        )
    return gitdir


def shown(path: str) -> str:
    """A path as messages name it: `.` says nothing."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path  # the present folder is gone


def is_lost(home: Home) -> bool:
    """True where this clone has had the ledger: its log and its pins are here, whatever became of the branch."""
    return os.path.isdir(home.wal) and pins.load(home.pins, home.name) is not None


def writer_id(gitdir: GitDir) -> str | None:
    """This clone's writer id, or None where it has none yet; raise BadConfig for a damaged file."""
    mine = identity.load(gitdir.common)
    return mine.id if mine else None


# ── first contact ────────────────────────────────────────────────────────────────────────────
def founder(ledger_store: Store, tip: Oid, name: str, where: str = "") -> Founder:
    """What the ledger at `tip` is known by, its first commit's signature checked; raise NotAllowed for no ledger."""
    branch = where or ledger_store.ref.removeprefix("refs/heads/")
    view = View(lambda path: objects.read(ledger_store.get, tip, path))
    if not view.manifest.uuid:
        mend = "" if where else "rename it with git branch -m, or "
        raise NotAllowed(
            f"the branch {branch} is there and holds no ledger; {mend}"
            "begin under another name: gitledger init --name NAME"
        )
    if view.manifest.name != name:
        raise NotAllowed(f"{branch} holds the ledger {view.manifest.name!r}, not {name!r}; put it back there")
    first = [(oid, commit) for oid, commit in store.history(ledger_store, tip) if not commit.parents]
    if len(first) != 1:
        raise NotAllowed(f"{branch} has {len(first)} first commits, not one; see: git log --graph")
    oid, commit = first[0]
    words = commit.message.rstrip("\n").rpartition("\n\n")[2].splitlines()
    trailers = dict(row.split(": ", 1) for row in words if ": " in row)
    me, uuid = trailers.get("Ledger-Writer", ""), trailers.get("Ledger", "").partition(" ")[0]
    record = writer_record(ledger_store, oid, me)
    if record is None or uuid != view.manifest.uuid or len(commit.signatures) != 1:
        raise NotAllowed(f"{branch} does not begin as a signed ledger does; look at its first commit: {oid[:12]}")
    payload = objects.signed_payload(ledger_store.get(oid).data)
    transaction.verify(payload, commit.signatures[0][1], record.text("public_key"), record.text("principal"))
    return Founder(uuid, oid, me, signing.parse_public_key(record.text("public_key")).fingerprint)


def writer_record(ledger_store: Store, tip: Oid, writer: str) -> Record | None:
    """The record of a writer's key, or None where the ledger has none."""
    path = f"{layout.plain_stem(layout.writer_key(writer))}.json"
    data = objects.read(ledger_store.get, tip, path)
    return codec.read_record(data, path) if data else None


def compare(found: Founder, branch: str, expect: str) -> None:
    """Raise NotAllowed unless a ledger's first commit is by the key `expect`; "" expects nothing."""
    if expect and found.fingerprint != expect:
        raise NotAllowed(
            f"{branch} was begun with the key {found.fingerprint}, not with {expect}; nothing was written: "
            "ask the ledger's owner which of the two it is"
        )


def here(ledger_store: Store, tip: Oid, name: str, expect: str) -> Founder:
    """What the ledger that is here is known by; raise NotAllowed unless its first commit is by the key `expect`."""
    found = founder(ledger_store, tip, name)
    compare(found, ledger_store.ref.removeprefix("refs/heads/"), expect)
    return found


# ── beginning and joining ────────────────────────────────────────────────────────────────────
def begin(
    gitdir: GitDir,
    ledger_store: Store,
    name: str,
    title: str,
    mint: Mint,
    keys: Sequence[Signer],
    new: Signer,
    another: Callable[[str], tuple[str, Signer]],
    *,
    expect: str = "",
    elsewhere: Found | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Begun:
    """Make ledger `name` in this clone, or join the one whose branch is there; half-made files are taken back.

    Where no branch is there, `elsewhere` is made it and joined.

    What an init that was killed left half-made is finished. `keys` are this clone's own, `new` is for a new writer;
    where that one was revoked, `another` makes a key file for the writer, and gives its path and signer. `settle` is
    called before the commit, when there is a place for this clone's own configuration.
    """
    home = Home(state(gitdir.common), name)
    # Two at once would each make a ledger, and the second one's pins would name a commit that is no genesis.
    with lock.folder(gitdir.common, deadline=transaction.LOCK_DEADLINE):
        tip = ledger_store.tip()
        found = elsewhere if tip is None else None
        first = here(ledger_store, tip, name, expect) if tip else found.founder if found else None
        base = found.tip if found else tip
        fresh, fresh_wal = not os.path.isdir(home.state), not os.path.isdir(home.wal)
        mine = identity.load(gitdir.common)
        record = writer_record(ledger_store, base, mine.id) if base and mine else None
        key = _holding([*keys, new], record, pins.load(home.pins, name)) if record else None
        if not fresh_wal:
            _refuse_complete(home, ledger_store, tip, key is not None)
        try:
            os.makedirs(home.state, mode=0o700, exist_ok=True)
            if mine is None or (record and key is None):
                # A key that is gone, or revoked, takes its writer with it: nobody can sign for it.
                mine, key = _new_writer(home, mint, new, _revoked(ledger_store, base, home), another)
            wal.create(home.wal)
            program.remember(gitdir.common)
            settle()
            desk = Desk(ledger_store, home, transaction.writer(mine.id, key or [*keys, new][0]), mint)
            if found:
                ledger_store.swap(found.tip, None, f"gitledger: taken over from {found.where}")
            return _join(desk, base, first, found) if base and first else _genesis(desk, name, title)
        except BaseException as e:
            import shutil

            if found and ledger_store.tip() == found.tip:
                ledger_store.swap(None, found.tip, "gitledger: not joined")
            if ledger_store.tip() == tip:  # else the ledger is begun, and the next init finishes it
                if fresh:
                    shutil.rmtree(home.state, ignore_errors=True)
                elif fresh_wal:
                    shutil.rmtree(home.wal, ignore_errors=True)
            if isinstance(e, OSError):
                where = e.filename or home.state
                raise CannotWrite(f"{where} cannot be written ({e.strerror}); mend its permissions") from e
            raise


def _holding(keys: Sequence[Signer], record: Record, pinned: pins.Pins | None) -> Signer | None:
    """The one of `keys` that the ledger has for a writer; None where it is not among them, or was revoked."""
    if trust.revocation(record) or (pinned and pinned.until(record.text("fingerprint")) is not None):
        return None
    for key in keys:
        try:
            if key.fingerprint == signing.parse_public_key(record.text("public_key")).fingerprint:
                return key
        except LedgerError:
            continue  # gone or damaged: as good as none
    return None


def _revoked(ledger_store: Store, tip: Oid | None, home: Home) -> frozenset[str]:
    """The fingerprints of keys that a new writer must not begin with."""
    pinned = pins.load(home.pins, home.name)
    found = {fingerprint for fingerprint, _ in pinned.revoked} if pinned else set()
    for name in objects.entries(ledger_store.get, tip, "keys") or {} if tip else {}:
        try:
            data = objects.read(ledger_store.get, tip, f"keys/{name}") if tip and name.endswith(".json") else None
            record = codec.read_record(data, f"keys/{name}") if data else None
        except LedgerError:
            continue  # damaged: fsck names it
        if record and trust.revocation(record):
            found.add(record.text("fingerprint"))
    return frozenset(found)


def _refuse_complete(home: Home, ledger_store: Store, tip: Oid | None, ours: bool) -> None:
    """Raise unless what is here of the ledger is less than a whole one: its branch, its pins and this clone's key."""
    pinned = pins.load(home.pins, home.name)
    if tip is None:
        if pinned:
            raise NoLedger(
                f"the branch {ledger_store.ref} is gone; bring it back from a remote, another clone or its reflog"
            )
        return
    if pinned and ours:
        raise NotAllowed(f"the ledger {home.name} exists here already; look at it with: gitledger status")


def _genesis(desk: Desk, name: str, title: str) -> Begun:
    uuid = desk.mint.id()
    at = desk.mint.at()
    named = tasks.title(title, "project title")
    project = Change({"title": named, "uuid": uuid, "name": name, "at": at})
    records = {layout.PROJECT: project, layout.writer_key(desk.writer.id): key_change(desk)}
    draft = Draft(desk.mint.id(), at, "ledger.created", records=records, data={"uuid": uuid, "name": name})

    def build(view: View) -> Plan:
        if view.manifest.uuid:
            raise NotAllowed(f"{_branch(desk)} has just come from elsewhere; join it with: gitledger init")
        return Plan(
            "genesis", (draft,), redact(f"Begin ledger {name}: {named}"), (redact("The first commit of this ledger."),)
        )

    written = transaction.commit(desk, build, genesis=True)
    if written is None:
        raise AssertionError("a genesis plan always makes a commit")
    mine = desk.writer.key.fingerprint
    _pin(desk, pins.Pins(uuid, written.commit, (mine,), founder=mine).remember(written.commit))
    first = Founder(uuid, written.commit, desk.writer.id, mine)
    return Begun(_branch(desk), uuid, desk.writer.id, mine, written.commit, first)


def _join(desk: Desk, tip: Oid, first: Founder, found: Found | None) -> Begun:
    me, uuid = desk.writer, first.uuid
    pinned = pins.load(desk.home.pins, desk.home.name) or pins.Pins(uuid, first.genesis)
    if (pinned.uuid, pinned.genesis) != (uuid, first.genesis):
        raise NotAllowed(f"{_branch(desk)} is another ledger than the one this clone has pinned; put that one back")
    pinned = replace(pinned.trust(me.key.fingerprint), founder=first.fingerprint)
    if found:  # to believe one key more, this clone's own, takes nothing from what was found good
        pinned = pinned.remember(tip)
    _pin(desk, pinned)
    record = transaction.view_at(desk, tip).record(layout.writer_key(me.id))
    if record and record.get("fingerprint") == me.key.fingerprint:
        # This clone's own beginning, or joining, that was killed before its end: its key is in the ledger already.
        return _joined(desk, tip, first, found, joined=False)
    records = {layout.writer_key(me.id): key_change(desk)}
    draft = Draft(desk.mint.id(), desk.mint.at(), "writer.joined", records=records)
    written = transaction.commit(desk, lambda view: Plan("key", (draft,), redact(f"Add writer {me.id}")))
    if written is None:
        raise AssertionError("a key plan always makes a commit")
    return _joined(desk, written.commit, first, found, joined=True)


def _joined(desk: Desk, commit: Oid, first: Founder, found: Found | None, *, joined: bool) -> Begun:
    from_, checked = (found.where, found.checked) if found else ("", 0)
    me = desk.writer
    return Begun(_branch(desk), first.uuid, me.id, me.key.fingerprint, commit, first, joined, from_, checked)


def _pin(desk: Desk, what: pins.Pins) -> None:
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):  # other ledgers' pins are in the same file
        pins.save(desk.home.pins, desk.home.name, what)


def key_change(desk: Desk) -> Change:
    """What a writer's record says of its key when it joins."""
    me = desk.writer
    return Change(
        {
            "id": me.id,
            "principal": me.principal,
            "public_key": me.key.public_key,
            "fingerprint": me.key.fingerprint,
            "at": desk.mint.at(),
        }
    )


def _new_writer(
    home: Home, mint: Mint, key: Signer, revoked: frozenset[str], another: Callable[[str], tuple[str, Signer]]
) -> tuple[Identity, Signer]:
    mine = Identity(mint.short())
    if key.fingerprint in revoked:
        path, key = another(mine.id)
        mine = mine.with_keys(home.name, (path,))
    with lock.held(home.lock, deadline=transaction.LOCK_DEADLINE):
        identity.save(os.path.dirname(home.state), mine)
    return mine, key


def _branch(desk: Desk) -> str:
    return desk.store.ref.removeprefix("refs/heads/")
