"""How a ledger begins in a clone: the checks, the key, the writer's id, and the signed genesis commit.

A clone that finds the branch already there (made by another one) joins it: its key is added in a signed commit.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass

from gitledger import gitcli, layout, lock, pins, signing, store, tasks, transaction, wal, worktree
from gitledger.errors import BadConfig, CannotWrite, NotAllowed, NotARepository, Unsupported
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
        raise NotARepository(f"{path} is in no git repository; go into one, or make one with: git init")
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
    """Make ledger `name` in this clone, or join the one whose branch is there; half-made files are taken back."""
    home = Home(state(gitdir.common), name)
    if os.path.isdir(home.wal):
        raise NotAllowed(f"the ledger {name} exists here already; look at it with: gitledger status")
    if ledger_store.tip() is None:
        _refuse_remote_root(gitdir, name)
    fresh = not os.path.isdir(home.state)
    try:
        os.makedirs(home.state, mode=0o700, exist_ok=True)
        me = writer(writer_id(gitdir) or _new_writer(home, mint), key)
        wal.create(home.wal)
        desk = Desk(ledger_store, home, me, mint)
        tip = ledger_store.tip()
        return _join(desk, tip, name) if tip else _genesis(desk, name, title)
    except BaseException as e:
        shutil.rmtree(home.state if fresh else home.wal, ignore_errors=True)
        if isinstance(e, OSError):
            where = e.filename or home.state
            raise CannotWrite(f"{where} cannot be written ({e.strerror}); mend its permissions") from e
        raise


def _genesis(desk: Desk, name: str, title: str) -> Begun:
    uuid = desk.mint.id()
    at = desk.mint.at()
    project = Change({"title": tasks.title(title, "project title"), "uuid": uuid, "name": name, "at": at})
    records = {layout.PROJECT: project, layout.writer_key(desk.writer.id): _writer_change(desk)}
    draft = Draft(desk.mint.id(), at, "ledger.created", records=records, data={"uuid": uuid, "name": name})

    def build(view: View) -> Plan:
        return Plan("genesis", (draft,), f"Begin ledger {name}: {title}", ("The first commit of this ledger.",))

    written = transaction.commit(desk, build, genesis=True)
    if written is None:
        raise AssertionError("a genesis plan always makes a commit")
    begun = pins.Pins(uuid, written.commit, (desk.writer.key.fingerprint,)).remember(written.commit)
    pins.save(desk.home.pins, name, begun)
    return Begun(_branch(desk), uuid, desk.writer.id, desk.writer.key.fingerprint, written.commit)


def _join(desk: Desk, tip: Oid, name: str) -> Begun:
    view = transaction.view_at(desk, tip)
    if view.manifest.name != name:
        raise NotAllowed(f"{_branch(desk)} holds the ledger {view.manifest.name!r}, not {name!r}; put it back there")
    genesis = [oid for oid, commit in store.history(desk.store, tip) if not commit.parents]
    if len(genesis) != 1:
        raise NotAllowed(f"{_branch(desk)} has {len(genesis)} first commits, not one; see: git log --graph")
    pins.save(desk.home.pins, name, pins.Pins(view.manifest.uuid, genesis[0], (desk.writer.key.fingerprint,)))
    records = {layout.writer_key(desk.writer.id): _writer_change(desk)}
    draft = Draft(desk.mint.id(), desk.mint.at(), "writer.joined", records=records)
    written = transaction.commit(desk, lambda view: Plan("key", (draft,), f"Add writer {desk.writer.id}"))
    if written is None:
        raise AssertionError("a key plan always makes a commit")
    me = desk.writer
    return Begun(_branch(desk), view.manifest.uuid, me.id, me.key.fingerprint, written.commit, joined=True)


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
