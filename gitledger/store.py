"""What a ledger needs of git: an object database and one ref, and what is true of any that has both.

A store trusts its driver for reading: what must not be believed is hashed again by whoever asks (`read_back`,
verification). Objects are always written before the ref names them. Between the two nothing protects them: a
`git gc --prune=now` that runs beside may take them, since no ref reaches them yet, and even after the swap, if it
had looked at the refs before. So `swap` proves nothing about the objects, but it waits for such a gc; `read_back`
after it proves them, and a MissingObject there means: build and put everything again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from gitledger import objects
from gitledger.errors import BadData, IOFailed, LockHeld, MissingObject, StaleTip
from gitledger.model import Oid
from gitledger.objects import GITLINK, Commit, Edited, Kind, Object
from gitledger.patterns import pattern
from gitledger.typed import Protocol

ATTEMPTS = 5
"""How often a driver puts objects again where a gc beside it takes the folders away."""

GC_PATIENCE = 3.0
"""Seconds to wait for a gc that may be about to remove what no ref reached when it began."""

# What git check-ref-format refuses, and what a protocol of lines cannot carry.
_NO_REF = pattern(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(/|$)|[./]$")


class Store(Protocol):
    """A git object database and the one ref that a ledger lives on. Not for two threads at once."""

    @property
    def ref(self) -> str:
        """The full name of the ref, such as `refs/heads/ledger/main`."""

    @property
    def algorithm(self) -> str:
        """The repository's object format: `sha1` or `sha256`."""

    def tip(self) -> Oid | None:
        """The commit that the ref names now, None where there is no ref; MissingObject where it is not here."""

    def get(self, oid: Oid, *, fresh: bool = False) -> Object:
        """One object, or MissingObject; `fresh` reads what is on disk now, past every cache."""

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        """Kind and bytes of one object as `get` reads them, for whoever reads very many and hashes each."""

    def ahead(self, oids: Iterable[Oid]) -> Collection[Oid]:
        """These are asked for next, each once, so they may be waited for together; those that were, if any.

        Nothing is wrong with the others, as far as this tells.
        """

    def put(self, made: Sequence[tuple[Oid, Object]]) -> None:
        """Store objects; when it returns each is on disk, with its folder. Those that are here already are no fault."""

    def absent(self, oids: Iterable[Oid]) -> tuple[Oid, ...]:
        """Those of `oids` that are not here now, past every cache."""

    def swap(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        """Move the ref from `old` to `new`, durably; None stands for no ref, on either side.

        Raises StaleTip, and only then, where the ref is not at `old`; LockHeld where somebody holds the ref's lock;
        MissingObject where `new` is not here (any more); CannotWrite or IOFailed for anything else. Whatever is
        raised, the ref is where it was, if the disk obeys.
        """

    def close(self) -> None:
        """Let go of children and files; a closed store opens them again when it is used again."""


class MemoryStore:
    """A store for tests of what stands on one: the same promises, without git."""

    def __init__(self, ref: str = "refs/heads/ledger/main", algorithm: str = "sha1") -> None:
        self.ref = check_ref(ref)
        self.algorithm = algorithm
        self.objects: dict[Oid, Object] = {}
        self._tip: Oid | None = None
        self._lock = threading.Lock()

    def tip(self) -> Oid | None:
        """See Store."""
        if self._tip is not None and self._tip not in self.objects:
            raise tip_is_missing(self.ref, self._tip)
        return self._tip

    def get(self, oid: Oid, *, fresh: bool = False) -> Object:
        """See Store."""
        try:
            return self.objects[oid]
        except KeyError:
            raise object_is_missing(oid, "memory") from None

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        """See Store."""
        thing = self.get(oid)
        return thing.kind, thing.data

    def ahead(self, oids: Iterable[Oid]) -> Collection[Oid]:
        """See Store."""
        return ()

    def put(self, made: Sequence[tuple[Oid, Object]]) -> None:
        """See Store."""
        self.objects.update(made)

    def absent(self, oids: Iterable[Oid]) -> tuple[Oid, ...]:
        """See Store."""
        return tuple(oid for oid in dict.fromkeys(oids) if oid not in self.objects)

    def swap(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        """See Store."""
        with self._lock:
            if self._tip != old:
                raise stale(self.ref, old, self._tip)
            if new is not None and new not in self.objects:
                raise object_is_missing(new, "memory")
            self._tip = new

    def close(self) -> None:
        """See Store."""


# ── what is true of every store ──────────────────────────────────────────────────────────────
def history(store: Store, tip: Oid | None, stop: Iterable[Oid] = ()) -> Iterator[tuple[Oid, Commit]]:
    """Every commit that `tip` reaches and `stop` does not cut off, once each, from raw commits.

    First parents come first, so a line of commits comes newest first; after a merge a commit may come before
    another of its children. What can be read is yielded before MissingObject is raised for what cannot (a shallow
    clone's parents).
    """
    seen = set(stop)
    pending = [tip] if tip else []
    lost: MissingObject | None = None
    while pending:
        oid = pending.pop()
        if oid in seen:
            continue
        seen.add(oid)
        try:
            thing = store.get(oid)
        except MissingObject as e:
            lost = lost or e
            continue
        if thing.kind != "commit":
            raise BadData(f"{oid} is a {thing.kind} where a commit is named: run `git fsck` to see what is hurt")
        commit = objects.parse_commit(thing.data)
        yield oid, commit
        pending.extend(reversed(commit.parents))
    if lost is not None:
        raise lost


def read_back(store: Store, commit: Oid, edited: Edited) -> None:
    """Prove that a commit and the tree edited for it are on disk, whole.

    Each new object is read past the cache, hashed again and compared; every object that a new tree or the commit
    names must be there. MissingObject: put it all again. IOFailed: bytes came back other than they went.
    """
    made = dict(edited.objects)
    thing = _same(store, commit, None)
    if thing.kind != "commit":
        raise IOFailed(f"{commit} reads back as a {thing.kind}: run `git fsck` to see what is hurt")
    named = objects.parse_commit(thing.data)
    if named.tree != edited.tree:
        raise IOFailed(f"commit {commit} reads back with tree {named.tree} instead of {edited.tree}: run `git fsck`")
    needed = [named.tree, *named.parents]
    for oid, expected in made.items():
        thing = _same(store, oid, expected)
        if thing.kind == "tree":
            entries = objects.parse_tree(thing.data, store.algorithm)
            needed += [entry.oid for entry in entries if entry.mode != GITLINK and entry.oid not in made]
    gone = store.absent(needed)
    if gone:
        raise MissingObject(f"{len(gone)} objects that commit {commit} needs are not here, {gone[0]} first: try again")


def _same(store: Store, oid: Oid, expected: Object | None) -> Object:
    thing = store.get(oid, fresh=True)
    if objects.oid(thing.kind, thing.data, store.algorithm) != oid or (expected is not None and thing != expected):
        raise IOFailed(f"{oid} reads back as other bytes than were written: run `git fsck`, and look at the disk")
    return thing


# ── what drivers share ───────────────────────────────────────────────────────────────────────
def check_ref(ref: str) -> str:
    """`ref` itself where it is a full ref name that git takes; BadData otherwise."""
    if not ref.startswith("refs/") or ref.count("/") < 2 or _NO_REF.search(ref):
        raise BadData(f"{ref!r} is no full ref name: one looks like refs/heads/ledger/main")
    return ref


def check_oids(oids: Iterable[Oid], algorithm: str) -> None:
    """BadData where one is no full object id: a driver hands ids to git as they are."""
    for oid in oids:
        if not objects.is_oid(oid, algorithm):
            raise BadData(f"{oid!r} is no {algorithm} object id: give all its hex digits in lower case")


def stale(ref: str, old: Oid | None, now: Oid | None) -> StaleTip:
    """The error for a lost race."""
    return StaleTip(f"{ref} is at {now or 'no commit'}, not at {old or 'none'}: read its tip and try again")


def tip_is_missing(ref: str, tip: Oid) -> MissingObject:
    """The error for a ref whose commit is not here."""
    return MissingObject(f"{ref} names {tip}, which is not in this repository: fetch it, or run `git fsck` to see more")


def object_is_missing(oid: Oid, where: str) -> MissingObject:
    """The error for an object that is not here, or cannot be found for damage to its first bytes."""
    return MissingObject(f"{oid} is not in {where}: fetch it, or run `git fsck` to see what else is missing")


def lock_is_held(path: str) -> LockHeld:
    """The error for a ref's lock file that did not go away."""
    return LockHeld(
        f"{path} exists, so a git process is moving this ref, or died while it did: try again, and if it stays, see "
        "with `ps` that no git runs here before you move that file away"
    )


def outlast_gc(common: str) -> None:
    """Wait, at most GC_PATIENCE seconds, for a `git gc` that is under way; one that begins later sees the ref.

    Not seen are a `git prune --expire=now` or `git repack -ad` by hand, and a gc with more to do than that: git itself
    warns not to run those beside writers. Any gc that spares young objects, as git does unless told, harms nothing.
    """
    path = os.path.join(common, "gc.pid")
    until = time.monotonic() + GC_PATIENCE
    first = _running(path)
    while first and _running(path) == first and time.monotonic() < until:
        time.sleep(0.02)


def _running(path: str) -> str:
    """Who holds git's gc lock; "" where nobody does, or only a process that has died."""
    try:
        with open(path, encoding="utf-8") as f:
            holder = f.read(300)
        os.kill(int(holder.split()[0]), 0)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except (OSError, ValueError, IndexError, OverflowError):
        return path  # just being written, another user's, or another machine's
    return holder


def loose(folder: str, oid: Oid) -> str:
    """Where git keeps an object that is in no pack; `folder` is the repository's `objects`."""
    return os.path.join(folder, oid[:2], oid[2:])


def sync(*paths: str) -> None:
    """Have files or folders on disk before going on; one that is not there is passed over (git packed it)."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as e:
            raise IOFailed(f"{path} cannot be synced to disk ({e.strerror}): look at its permissions") from e
        try:
            os.fsync(fd)
        except OSError as e:
            raise IOFailed(f"{path} cannot be synced to disk ({e.strerror}): look at the disk") from e
        finally:
            os.close(fd)


def sync_ref(common: str, ref: str) -> None:
    """Have a loose ref on disk with every folder up to `refs`, which git makes and removes as it likes."""
    path = os.path.join(common, ref)
    sync(path)
    while len(path) > len(common) + len("/refs"):
        path = os.path.dirname(path)
        sync(path)
