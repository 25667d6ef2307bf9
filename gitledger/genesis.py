"""How a ledger begins in a clone: the checks, the key, the writer's id, and the signed genesis commit.

A clone that finds the branch already there (made by another one) joins it: its key is added in a signed commit.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace

from gitledger import codec, gitcli, layout, lock, objects, pins, signing, store, tasks, transaction, wal, worktree
from gitledger.errors import BadConfig, CannotWrite, NoLedger, NotAllowed, NotARepository, Unsupported
from gitledger.gitdir import GitDir, state
from gitledger.mint import Mint
from gitledger.model import Change, Draft, Oid
from gitledger.store import Store
from gitledger.transaction import Desk, Home, Plan, Writer
from gitledger.view import View


@dataclass(frozen=True, slots=True)
class Begun:
    """What `init` tells: the branch, the ledger's uuid, this clone's writer and its key."""

    branch: str
    uuid: str
    writer: str
    fingerprint: str
    commit: Oid
    joined: bool = False


def check(gitdir: GitDir | None, path: str, name: str) -> GitDir:
    """The repository where a ledger may begin; raise with one line where it may not, having written nothing."""
    layout.ledger_name(name)
    if gitdir is None:
        raise NotARepository(f"{shown(path)} is in no git repository; go into one, or make one with: git init")
    if not gitdir.top:
        raise NotARepository(f"{gitdir.common} is bare; run this in one of its work trees (git worktree add)")
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


def writer_id(gitdir: GitDir) -> str | None:
    """This clone's writer id, or None where it has none yet; raise BadConfig for a damaged file."""
    path = os.path.join(state(gitdir.common), "writer.json")
    try:
        with open(path, encoding="utf-8") as f:
            found = json.load(f)["id"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BadConfig(f"{path} cannot be read ({e}); restore it from a backup of this clone") from e
    return str(found)


def writer(id_: str, key: signing.KeySigner) -> Writer:
    """The writer of an id; its principal is an address that can belong to nobody else."""
    return Writer(id_, f"{id_}@gitledger.invalid", key)


def begin(gitdir: GitDir, ledger_store: Store, name: str, title: str, mint: Mint, key: signing.KeySigner) -> Begun:
    """Make ledger `name` in this clone, or join the one whose branch is there; half-made files are taken back.

    What an init that was killed left half-made is finished.
    """
    home = Home(state(gitdir.common), name)
    # Two at once would each make a ledger, and the second one's pins would name a commit that is no genesis.
    with lock.folder(gitdir.common, deadline=transaction.LOCK_DEADLINE):
        tip = ledger_store.tip()
        fresh, fresh_wal = not os.path.isdir(home.state), not os.path.isdir(home.wal)
        me = writer_id(gitdir)
        recorded = _recorded(ledger_store, tip, me)
        if not fresh_wal:
            _refuse_complete(home, ledger_store, tip, recorded == key.fingerprint)
        if tip is None:
            _refuse_remote_root(gitdir, name)
        try:
            os.makedirs(home.state, mode=0o700, exist_ok=True)
            if me is None or recorded not in ("", key.fingerprint):
                me = _new_writer(home, mint)  # a key that is gone takes its writer with it: nobody can sign for it
            wal.create(home.wal)
            desk = Desk(ledger_store, home, writer(me, key), mint)
            return _join(desk, tip, name) if tip else _genesis(desk, name, title)
        except BaseException as e:
            if ledger_store.tip() == tip:  # else the ledger is begun, and the next init finishes it
                if fresh:
                    shutil.rmtree(home.state, ignore_errors=True)
                elif fresh_wal:
                    shutil.rmtree(home.wal, ignore_errors=True)
            if isinstance(e, OSError):
                where = e.filename or home.state
                raise CannotWrite(f"{where} cannot be written ({e.strerror}); mend its permissions") from e
            raise


def _recorded(ledger_store: Store, tip: Oid | None, me: str | None) -> str:
    """The fingerprint of the key that the ledger has for this clone's writer, "" where it has none."""
    if tip is None or me is None:
        return ""
    path = f"{layout.plain_stem(layout.writer_key(me))}.json"
    data = objects.read(ledger_store.get, tip, path)
    return codec.read_record(data, path).text("fingerprint") if data else ""


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
    project = Change({"title": tasks.title(title, "project title"), "uuid": uuid, "name": name, "at": at})
    records = {layout.PROJECT: project, layout.writer_key(desk.writer.id): _writer_change(desk)}
    draft = Draft(desk.mint.id(), at, "ledger.created", records=records, data={"uuid": uuid, "name": name})

    def build(view: View) -> Plan:
        if view.manifest.uuid:
            raise NotAllowed(f"{_branch(desk)} has just come from elsewhere; join it with: gitledger init")
        return Plan("genesis", (draft,), f"Begin ledger {name}: {title}", ("The first commit of this ledger.",))

    written = transaction.commit(desk, build, genesis=True)
    if written is None:
        raise AssertionError("a genesis plan always makes a commit")
    _pin(desk, pins.Pins(uuid, written.commit, (desk.writer.key.fingerprint,)).remember(written.commit))
    return Begun(_branch(desk), uuid, desk.writer.id, desk.writer.key.fingerprint, written.commit)


def _join(desk: Desk, tip: Oid, name: str) -> Begun:
    me = desk.writer
    view = transaction.view_at(desk, tip)
    if not view.manifest.uuid:
        raise NotAllowed(
            f"the branch {_branch(desk)} is there and holds no ledger; rename it with git branch -m, "
            "or begin under another name: gitledger init --name NAME"
        )
    if view.manifest.name != name:
        raise NotAllowed(f"{_branch(desk)} holds the ledger {view.manifest.name!r}, not {name!r}; put it back there")
    genesis = [oid for oid, commit in store.history(desk.store, tip) if not commit.parents]
    if len(genesis) != 1:
        raise NotAllowed(f"{_branch(desk)} has {len(genesis)} first commits, not one; see: git log --graph")
    uuid = view.manifest.uuid
    pinned = pins.load(desk.home.pins, name) or pins.Pins(uuid, genesis[0])
    if (pinned.uuid, pinned.genesis) != (uuid, genesis[0]):
        raise NotAllowed(f"{_branch(desk)} is another ledger than the one this clone has pinned; put that one back")
    fingerprints = tuple(dict.fromkeys((*pinned.fingerprints, me.key.fingerprint)))
    _pin(desk, replace(pinned, fingerprints=fingerprints))
    record = view.record(layout.writer_key(me.id))
    if record and record.get("fingerprint") == me.key.fingerprint:
        # This clone's own beginning, or joining, that was killed before its end: its key is in the ledger already.
        return Begun(_branch(desk), uuid, me.id, me.key.fingerprint, tip)
    records = {layout.writer_key(me.id): _writer_change(desk)}
    draft = Draft(desk.mint.id(), desk.mint.at(), "writer.joined", records=records)
    written = transaction.commit(desk, lambda view: Plan("key", (draft,), f"Add writer {me.id}"))
    if written is None:
        raise AssertionError("a key plan always makes a commit")
    return Begun(_branch(desk), uuid, me.id, me.key.fingerprint, written.commit, joined=True)


def _pin(desk: Desk, what: pins.Pins) -> None:
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):  # other ledgers' pins are in the same file
        pins.save(desk.home.pins, desk.home.name, what)


def _writer_change(desk: Desk) -> Change:
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


def _new_writer(home: Home, mint: Mint) -> str:
    new = mint.short()
    with lock.held(home.lock, deadline=transaction.LOCK_DEADLINE):
        value = json.dumps({"format": 1, "id": new}).encode() + b"\n"
        pins.write_private(os.path.join(home.state, "writer.json"), value)
    return new


def _refuse_remote_root(gitdir: GitDir, name: str) -> None:
    # A second root under the same name could never be merged with the first.
    listed = gitcli.run(["for-each-ref", "--format=%(refname)", f"refs/remotes/*/ledger/{name}"], cwd=gitdir.top).line
    for ref in listed.splitlines():
        short = ref.removeprefix("refs/remotes/")
        raise NotAllowed(
            f"this project has a ledger at {short} already; take it over with: git branch ledger/{name} {short}, "
            "then run gitledger init again"
        )


def _branch(desk: Desk) -> str:
    return desk.store.ref.removeprefix("refs/heads/")
