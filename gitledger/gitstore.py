"""The store on libgit2: the only module that imports pygit2.

No child at all, so it is the quick one inside a process that lives; `plumbing` is the quick one for a process
that makes one commit, because importing pygit2 takes longer than all of git's children together.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gitledger import store
from gitledger.errors import (
    BadData,
    CannotWrite,
    IOFailed,
    LedgerError,
    MissingObject,
    NotARepository,
    Unsupported,
)
from gitledger.model import Oid
from gitledger.objects import Kind, Object

if TYPE_CHECKING:
    import pygit2

_NUMBERS: dict[Kind, int] = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_LOOSE: dict[bytes, Kind] = {kind.encode(): kind for kind in _NUMBERS}
_KINDS: dict[int, Kind] = {number: kind for kind, number in _NUMBERS.items()}
WINDOW = 4 << 20
"""Bytes of a pack that are mapped at once."""
_PATIENCE = 1.0  # seconds for a live writer to let go of the ref's lock; libgit2 itself waits for none


class GitStore:
    """A ledger's ref in the repository whose common git folder is `common`."""

    algorithm = "sha1"

    def __init__(self, common: str, ref: str) -> None:
        self.ref = store.check_ref(ref)
        self.common = os.path.realpath(common)
        self._objects = os.path.join(self.common, "objects")
        self._opened: pygit2.Repository | None = None
        self._odb: Any = None
        self._packs: Any = None
        self._repo  # noqa: B018 (opens it: a repository that cannot be served is an error here, not later)

    @property
    def _repo(self) -> pygit2.Repository:
        if self._opened is None:
            import pygit2

            # Global to the process, and safe to be: it makes libgit2 sync every object, its folder and every ref.
            pygit2.settings.enable_fsync_gitdir(True)
            try:
                self._opened = pygit2.Repository(self.common)
            except (pygit2.GitError, OSError) as e:
                raise _not_opened(self.common, str(e)) from e
        return self._opened

    # ── reading ──────────────────────────────────────────────────────────────────────────────
    def tip(self) -> Oid | None:
        """See Store."""
        name = self._at()
        if name is None:
            return None
        try:
            kind = self.get(name).kind
        except MissingObject:
            raise store.tip_is_missing(self.ref, name) from None
        if kind != "commit":
            raise BadData(f"{self.ref} names a {kind} and no commit: look at it with `git show {self.ref}`")
        return name

    def get(self, oid: Oid, *, fresh: bool = False) -> Object:
        """See Store."""
        store.check_oids([oid], self.algorithm)
        return Object(*self._read(self._fresh() if fresh else self._repo.odb, oid))

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        """See Store."""
        if self._packs is None:
            self._odb = self._repo.odb
            # Else libgit2 maps whole packs, and they count as this process's memory. Global, and harmless.
            _pygit2().settings.mwindow_size, _pygit2().settings.mwindow_mapped_limit = WINDOW, 8 * WINDOW
            self._packs = _pygit2().OdbBackendPack(self._objects)
        try:
            # Straight from the packs: past the search for a loose file, and past libgit2's own hashing.
            number, data = self._packs.read(oid)
        except (_pygit2().GitError, KeyError, OSError, ValueError, MemoryError):
            return self._read(self._odb, oid)  # loose, an alternate's, packed since, or damaged there
        return _KINDS[number], data

    def ahead(self, oids: Iterable[Oid]) -> Collection[Oid]:
        """See Store: nothing is waited for here."""
        return ()

    def _read(self, odb: Any, oid: Oid) -> tuple[Kind, bytes]:
        loose = self._read_loose(oid)
        if loose is not None:
            return loose
        try:
            number, data = odb.read(oid)
        except KeyError:
            raise store.object_is_missing(oid, self.common) from None
        except (_pygit2().GitError, OSError, ValueError, MemoryError) as e:  # damage can claim any size
            raise IOFailed(f"{oid} in {self.common} cannot be read ({e}): run `git fsck` to see what is hurt") from e
        return _KINDS[number], data

    def _read_loose(self, oid: Oid) -> tuple[Kind, bytes] | None:
        # libgit2 (1.9.7) reads some damaged loose objects for ever.
        path = store.loose(self._objects, oid)
        try:
            with open(path, "rb") as f:
                packed = f.read()
        except FileNotFoundError:
            return None
        except OSError as e:
            raise IOFailed(f"{path} cannot be read ({e.strerror}): look at its permissions, and at the disk") from e
        try:
            head, null, data = zlib.decompress(packed).partition(b"\0")
        except zlib.error as e:
            raise IOFailed(f"{oid} in {self.common} is damaged ({e}): run `git fsck` to see what else is hurt") from e
        kind = _LOOSE.get(head.partition(b" ")[0])
        if not null or kind is None or head != b"%s %d" % (kind.encode(), len(data)):
            raise IOFailed(f"{oid} in {self.common} is damaged: run `git fsck` to see what else is hurt")
        return kind, data

    def absent(self, oids: Iterable[Oid]) -> tuple[Oid, ...]:
        """See Store."""
        wanted = list(dict.fromkeys(oids))
        store.check_oids(wanted, self.algorithm)
        odb = self._fresh()
        return tuple(oid for oid in wanted if not odb.exists(oid))

    def close(self) -> None:
        """See Store."""
        self._odb = self._packs = None
        if self._opened is not None:
            self._opened.free()
            self._opened = None

    def _fresh(self) -> Any:
        # libgit2 answers from its cache even for what has gone from the disk; a second database has none yet.
        import pygit2

        return pygit2.Odb(self._objects)

    def _at(self) -> Oid | None:
        """Where the ref is, whether or not that commit is here."""
        import pygit2

        try:
            return str(self._repo.lookup_reference(self.ref).resolve().target)
        except KeyError:
            return None
        except (pygit2.GitError, OSError, ValueError) as e:
            raise BadData(f"{self.ref} in {self.common} cannot be read ({e}): run `git fsck` to see more") from e

    # ── writing ──────────────────────────────────────────────────────────────────────────────
    def put(self, made: Sequence[tuple[Oid, Object]]) -> None:
        """See Store."""
        import pygit2

        paths = [store.loose(self._objects, oid) for oid, _ in made]
        # libgit2 does not write, and so not sync, what is here already; whoever wrote it may not have synced it either.
        old = [path for path in paths if os.path.exists(path)]
        # Nor what was here when it last looked into a pack that a gc has since removed: a fresh database looks again.
        odb = self._fresh()
        for attempt in range(store.ATTEMPTS):
            try:
                for oid, thing in made:
                    written = str(odb.write(_NUMBERS[thing.kind], thing.data))
                    if written != oid:
                        raise BadData(
                            f"a {thing.kind} was to be stored as {oid} but its id is {written}: hash it again"
                        )
                break
            except (pygit2.GitError, OSError) as e:
                # A gc removes folders that are empty, also those into which an object is about to be put.
                if "No such file" not in str(e) or not os.path.isdir(self._objects) or attempt == store.ATTEMPTS - 1:
                    raise _failure(f"objects cannot be stored in {self._objects}", e) from e
        if made:
            store.sync(*old, *{os.path.dirname(path) for path in old}, self._objects)

    def swap(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        """See Store."""
        import pygit2

        store.check_oids((oid for oid in (new, old) if oid is not None), self.algorithm)
        if new is not None and self.absent([new]):  # libgit2 asks its cache
            raise store.object_is_missing(new, self.common)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._move(new, old, reason or "gitledger")
                break
            except (pygit2.GitError, OSError, ValueError, KeyError) as e:
                # libgit2 has three words for a lost race, two of which it also uses for other failures:
                # where the ref is now tells which it was.
                now = self._at()
                if now != old:
                    raise store.stale(self.ref, old, now) from e
                lock = os.path.join(self.common, self.ref) + ".lock"
                # Two words for a held lock: seen at once, or by the open(2) that lost.
                if "failed to lock file" not in str(e) and not ("locked file" in str(e) and "File exists" in str(e)):
                    raise _failure(f"{self.ref} in {self.common} cannot be moved", e) from e
                if time.monotonic() >= until:
                    raise store.lock_is_held(lock) from e
                time.sleep(0.01)
        store.sync_ref(self.common, self.ref)
        store.outlast_gc(self.common)

    def _move(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        if old is None:
            if new is None:
                if self._at() is not None:
                    raise ValueError("the ref exists")
                return
            self._repo.create_reference_direct(self.ref, new, False, reason)
            return
        ref = self._repo.lookup_reference(self.ref)
        if str(ref.target) != old:
            # Another tip, or a symbolic ref: libgit2 would move the one and overwrite the other.
            raise ValueError("the ref does not hold the old tip itself; see `git symbolic-ref`")
        if new is None:
            ref.delete()
        else:
            # Compares with the target that was looked up above, under the lock.
            ref.set_target(new, reason)


def damaged_index(common: str) -> str:
    """The first pack index whose checksum is wrong, "" for none: libgit2 (1.9.7) may crash on one."""
    folder = os.path.join(common, "objects", "pack")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    for name in names:
        if name.endswith(".idx") or name == "multi-pack-index":
            path = os.path.join(folder, name)
            try:
                with open(path, "rb") as f:
                    data = f.read()
            except OSError:
                continue  # a gc took it away
            if hashlib.sha1(data[:-20], usedforsecurity=False).digest() != data[-20:]:
                return path
    return ""


def trust_ids() -> None:
    """Have libgit2 hash no object again in this process, whose caller does: it takes as long as the reading itself."""
    _pygit2().option(_pygit2().enums.Option.ENABLE_STRICT_HASH_VERIFICATION, False)


def _pygit2() -> Any:
    import pygit2

    return pygit2


def _not_opened(common: str, words: str) -> LedgerError:
    if "unknown object format" in words:
        return Unsupported(f"{common} is a sha256 repository, which libgit2 cannot open: use the plumbing store")
    if "unsupported extension" in words:
        return Unsupported(f"{common} cannot be opened by libgit2 ({words}): use the plumbing store")
    return NotARepository(f"{common} cannot be opened as a git repository ({words}): name its common git folder")


def _failure(what: str, e: Exception) -> LedgerError:
    words = str(e)
    if "No space left" in words or "Input/output error" in words:
        return IOFailed(f"{what} ({words}): look at the disk")
    return CannotWrite(f"{what} ({words}): see who owns that folder with `ls -l`, and that no branch stands in the way")
