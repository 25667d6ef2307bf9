"""The one place that joins environment, repository, clock and config into a Ledger."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial

from gitledger import config, gitdir, identity, layout, objects, schema, signing, transaction
from gitledger.clients import READERS
from gitledger.errors import BadConfig, LedgerError, NoLedger, NotARepository
from gitledger.ledger import Ledger
from gitledger.mint import Mint
from gitledger.store import Store
from gitledger.transaction import Desk, Home
from gitledger.typed import TYPE_CHECKING, Literal, TypeAlias
from gitledger.values import replace

if TYPE_CHECKING:
    from gitledger import genesis

Driver: TypeAlias = 'Literal["plumbing", "pygit2"]'
DRIVERS: tuple[Driver, ...] = ("plumbing", "pygit2")


def open(  # noqa: A001 (the library's own word: gitledger.open)
    path: str | os.PathLike[str] = ".",
    *,
    ledger: str | None = None,
    environ: Mapping[str, str] = os.environ,
    mint: Mint | None = None,
    driver: Driver = "plumbing",
) -> Ledger:
    """The ledger of the repository that `path` lies in.

    `ledger` (or GITLEDGER_LEDGER) names one of several. Raises NotARepository or NoLedger with what to do instead.
    `plumbing` starts at once; `pygit2` takes a tenth of a second to load and is faster in a process that stays.
    """
    found = gitdir.find(os.fspath(path))
    if found is None:
        from gitledger import genesis

        where = genesis.shown(os.fspath(path))
        raise NotARepository(f"{where} is in no git repository; go into one, or make one with: git init")
    wanted = ledger or environ.get("GITLEDGER_LEDGER")
    name = gitdir.choose(found.common, wanted)
    if name is None:
        there = gitdir.ledgers(found.common)
        if there:
            named = layout.ledger_name(wanted or "main")
            raise NoLedger(f"no ledger {named} here, there are: {', '.join(there)}; name one with --ledger")
        raise NoLedger(f"{found.top or found.common} has no ledger yet; begin one with: gitledger init")
    me = identity.load(found.common)
    if me is None:
        raise BadConfig(f"{gitdir.state(found.common)}/writer.json is gone; restore it from a backup of this clone")
    store = open_store(found, name, driver)
    policy, faults = config.load(ledger_policy(store), found.common, environ)
    writer = transaction.writer(me.id, *signers(found, me, name, policy, environ))
    desk = Desk(store, Home(gitdir.state(found.common), name), writer, mint or Mint(), READERS, policy)
    opened = Ledger(desk, found)
    opened.faults = tuple(faults)
    return opened


def open_store(found: gitdir.GitDir, name: str, driver: Driver = "plumbing") -> Store:
    """The store of a repository's ledger `name` behind the driver that was asked for."""
    ref = f"refs/heads/ledger/{layout.ledger_name(name)}"
    if driver == "pygit2":
        from gitledger.gitstore import GitStore

        return GitStore(found.common, ref)
    from gitledger.plumbing import PlumbingStore

    return PlumbingStore(found.common, ref)


def signers(
    found: gitdir.GitDir,
    me: identity.Identity,
    name: str,
    policy: schema.Config,
    environ: Mapping[str, str] = os.environ,
) -> tuple[signing.Signer, ...]:
    """The keys of this clone for ledger `name`, its own first; which of them is the writer's, the ledger says."""
    paths = (*me.own(name), policy.signing.key, signing.default_key(environ))
    files = tuple(signing.KeySigner(path) for path in dict.fromkeys(paths) if path)
    return (git_signer(found), *files) if policy.signing.mode == "git" else files


def git_signer(found: gitdir.GitDir, chosen: str = "") -> signing.Signer:
    """The user's own git set-up as a signer; `chosen` is another user.signingkey than git's configuration has."""
    from gitledger.gitsigner import GitSigner

    return GitSigner(found.top or found.common, chosen)


def init(
    path: str,
    name: str,
    title: str | None,
    *,
    expect: str = "",
    mode: Literal["", "key", "git"] = "",
    remote: str = "",
    ask: bool = True,
    deadline: float | None = None,
    heard: Callable[[str], None] | None = None,
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None,
    environ: Mapping[str, str] = os.environ,
    mint: Mint | None = None,
) -> genesis.Begun:
    """Begin ledger `name` in the repository of `path`, or join the one that is here, or at the remote, already.

    `expect` (or GITLEDGER_EXPECT) is the fingerprint of the key that the ledger must have been begun with. `mode` is
    kept as this clone's signing.mode, `remote` as its remote.name. Before a new root is made the remote is asked,
    for `deadline` seconds at most or as long as the configuration says, unless `ask` is false; then what git fetched of
    it before is all that is looked at.
    """
    from gitledger import adopt, genesis, verify  # nobody else pays for them
    from gitledger import remote as remotes

    found = genesis.check(gitdir.find(path), path, name)
    expect = expect or environ.get("GITLEDGER_EXPECT", "")
    expect = signing.read_fingerprint(expect) if expect else ""
    store = open_store(found, name)
    policy, _ = config.load({}, found.common, environ)
    policy = replace(policy, signing=replace(policy.signing, mode=mode or policy.signing.mode))
    # Before anything is written, a key for this user too.
    tip, home = store.tip(), Home(gitdir.state(found.common), name)
    chosen, line, elsewhere = adopt.which(found, remote, "") if remote else None, None, None
    if tip is not None:
        genesis.here(store, tip, name, expect)
    elif not genesis.is_lost(home):
        chosen = chosen or adopt.which(found, "", policy.remote.name)
        if chosen and ask:
            line = remotes.Line(found, chosen, name, time.monotonic() + (deadline or policy.remote.deadline), heard)
        hand = transaction.writer("new", signing.KeySigner(signing.default_key(environ)))
        desk = Desk(store, home, hand, mint or Mint(), READERS, policy)
        checks = verify.Ways(reopen=partial(open_store, found, name), progress=progress)
        elsewhere = adopt.look(desk, found, line, chosen, expect, checks)

    new = git_signer(found) if policy.signing.mode == "git" else None
    me = identity.load(found.common)
    own = signers(found, me, name, policy, environ) if me else ()
    titled = title or os.path.basename(found.top) or name

    another = partial(new_key, environ=environ)

    def settle() -> None:
        if mode:
            config.set_value(config.clone_path(found.common), "signing.mode", mode)
        if remote:
            config.set_value(config.clone_path(found.common), "remote.name", remote)

    accepted = False
    try:
        new = new or signing.KeySigner(policy.signing.key or signing.ensure_key(environ))
        begun = genesis.begin(
            found,
            store,
            name,
            titled,
            mint or Mint(),
            own,
            new,
            another,
            expect=expect,
            elsewhere=elsewhere,
            settle=settle,
        )
        accepted = bool(begun.adopted)
    finally:
        if line and elsewhere:
            adopt.let_go(line, elsewhere.tip if accepted else None)
    named = bool(remote or policy.remote.name)
    return replace(begun, remote=chosen.where if chosen else "", asked=line is not None, named=named)


def new_key(writer: str, *, environ: Mapping[str, str] = os.environ) -> tuple[str, signing.Signer]:
    """A new key for one writer: the path of its file, and its signer."""
    path = signing.new_key(writer, environ)
    return path, signing.KeySigner(path)


def ledger_policy(store: Store) -> dict[str, object]:
    """The project's own configuration as the ledger carries it, {} where it has none or it cannot be read."""
    from gitledger.codec import read_record

    try:
        tip = store.tip()
        data = objects.read(store.get, tip, f"{layout.CONFIG}.json") if tip else None
        record = read_record(data, "config.json") if data else None
    except LedgerError:
        return {}  # a damaged policy must not keep a person from looking at the ledger; fsck names it
    return {name: value for name, (value, _) in record.fields.items()} if record else {}
