"""The store on git's own plumbing: no import that costs, few children, and every repository that git can open.

Why each child is what it is (measured on ext4, 25 objects a commit):

- Reading: one `git cat-file` that lives as long as the store. It resolves the ref and finds objects anew for each
  request, so what other processes write, pack or remove is seen.
- Objects: one pack, built in memory, into `git index-pack`: two files to sync where loose objects would be fifty files
  and folders, and `packs` keeps it from every gc.
- Syncing: `core.fsyncMethod=fsync`. Git promises `batch` only for APFS, HFS+, NTFS and ReFS: on Linux it writes the
  files out and relies on one sync of another file for what the file system knows of them. Git syncs no folder; we do.
- The ref: `git update-ref` with the old value, which is git's own compare-and-swap. Hooks are off as everywhere
  in gitledger: a reference-transaction hook is about the user's refs.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections.abc import Collection, Iterable, Sequence

from gitledger import gitcli, objects, packs, store
from gitledger.errors import (
    BadData,
    CannotWrite,
    IOFailed,
    LedgerError,
    Missing,
    MissingObject,
    NotARepository,
    TryAgain,
    Unsupported,
)
from gitledger.model import Oid
from gitledger.objects import Kind, Object
from gitledger.typed import cast

DEADLINE = 30.0
"""Seconds that one answer of git may take."""
_KEPT = 2048  # trees and commits in memory; a checkpoint reads a few dozen
_SYNCED = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync")
_USAGE = 129  # git's exit code where it does not know an option
_NO_NETWORK = {"GIT_ALLOW_PROTOCOL": "none"}  # before 2.44 git fetches what a partial clone lacks, whatever is said
_BATCH = 256  # ids asked at once: requests and answers must fit into the pipes, or both sides wait for ever
_TURN = 48  # objects asked for at once: answers may be long, so the requests must fit into the smallest pipe
_MOST = 8 << 20  # bytes that are read ahead: all of it is in memory


class PlumbingStore:
    """A ledger's ref in the repository whose common git folder is `common`."""

    def __init__(self, common: str, ref: str) -> None:
        self.ref = store.check_ref(ref)
        self.common = os.path.realpath(common)
        self.algorithm, self._files_backend = _format(self.common)
        self._cache: dict[Oid, Object] = {}
        self._ahead: dict[Oid, Object] = {}
        self._reader: _Reader | None = None

    # ── reading ──────────────────────────────────────────────────────────────────────────────
    def tip(self) -> Oid | None:
        """See Store."""
        for _ in range(2):  # a ref that appears between the two questions below is asked for again
            found = self._info([self.ref])[0]
            if found is not None:
                name, kind = found
                if kind != "commit":
                    raise BadData(f"{self.ref} names a {kind} and no commit: look at it with `git show {self.ref}`")
                return name
            # Missing to cat-file is a ref that is not there, and one whose commit is not.
            answer = self._git("rev-parse", "--verify", "--quiet", self.ref, check=False)
            if answer.code == 0:
                name = answer.line
                if not objects.is_oid(name, self.algorithm):
                    raise BadData(f"{self.ref} names no object id: look at it with `git show-ref`")
                if self.absent([name]):
                    raise store.tip_is_missing(self.ref, name)
            elif not os.path.isfile(os.path.join(self.common, self.ref)):
                return None
        raise BadData(f"{os.path.join(self.common, self.ref)} is no ref that git can read: run `git fsck` to see more")

    def get(self, oid: Oid, *, fresh: bool = False) -> Object:
        """See Store."""
        found = None if fresh else self._cache.get(oid) or self._ahead.pop(oid, None)
        if found is None:
            store.check_oids([oid], self.algorithm)
            found = self._child().contents(oid)
            if found is None and packs.mend(self.common):
                self.close()
                found = self._child().contents(oid)
            if found is None:
                raise store.object_is_missing(oid, self.common)
            if found.kind != "blob":
                if len(self._cache) >= _KEPT:
                    self._cache.clear()
                self._cache[oid] = found
        return found

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        """See Store."""
        thing = self.get(oid)
        return thing.kind, thing.data

    def ahead(self, oids: Iterable[Oid]) -> Collection[Oid]:
        """See Store."""
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self._cache]
        self._ahead.clear()
        left = _MOST
        if len(wanted) > 1 and all(objects.is_oid(oid, self.algorithm) for oid in wanted):
            try:
                for at in range(0, len(wanted), _TURN):
                    left -= self._child().some(wanted[at : at + _TURN], left, self._ahead)
            except LedgerError:
                self.close()  # what is wrong is told to whoever asks for it
        return self._ahead.keys()

    def absent(self, oids: Iterable[Oid]) -> tuple[Oid, ...]:
        """See Store."""
        wanted = list(dict.fromkeys(oids))
        store.check_oids(wanted, self.algorithm)
        return tuple(oid for oid, found in zip(wanted, self._info(wanted), strict=True) if found is None)

    def close(self) -> None:
        """See Store."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _child(self) -> _Reader:
        if self._reader is None or not self._reader.alive:
            self._reader = _Reader(self.common)
        return self._reader

    def _info(self, names: Sequence[str]) -> list[tuple[Oid, Kind] | None]:
        found: list[tuple[Oid, Kind] | None] = []
        for at in range(0, len(names), _BATCH):
            some = names[at : at + _BATCH]
            try:
                found += self._child().info(some)
            except MissingObject:
                # Only where a partial clone lacks one of them and git is old; asked one by one, the others answer.
                found += [None] if len(some) == 1 else [row for name in some for row in self._info([name])]
        if None in found and packs.mend(self.common):
            self.close()
            return self._info(names)
        return found

    # ── writing ──────────────────────────────────────────────────────────────────────────────
    def put(self, made: Sequence[tuple[Oid, Object]]) -> None:
        """See Store.

        No gc takes the objects, whether or not `swap` follows. Where it does not, they stay until `packs.combine`
        and then git's own gc get to them.
        """
        if not made:
            return
        things = dict(made)
        store.check_oids(things, self.algorithm)
        for oid, thing in things.items():
            if objects.oid(thing.kind, thing.data, self.algorithm) != oid:
                raise BadData(f"a {thing.kind} was to be stored as {oid}, which is not its id: hash it again")
        packs.combine(self.common, self.algorithm)
        packs.keep(self.common, packs.build(things.values(), self.algorithm))

    def swap(self, new: Oid | None, old: Oid | None, reason: str) -> None:
        """See Store."""
        store.check_oids((oid for oid in (new, old) if oid is not None), self.algorithm)
        nothing = "0" * (40 if self.algorithm == "sha1" else 64)
        # --no-deref: a symbolic ref here must not move the branch that it names.
        words = ["update-ref", "--no-deref", "-m", reason or "gitledger"]
        words += ["-d", self.ref, old or nothing] if new is None else [self.ref, new, old or nothing]
        # A live writer holds the lock for milliseconds; git's default of 100 ms is short for a busy disk.
        patient = ("-c", "core.filesRefLockTimeout=1000", "-c", "core.packedRefsTimeout=1000")
        try:
            answer = self._git(*_SYNCED, *patient, *words, check=False)
        except TryAgain:
            if self._at() != new:
                raise
            # Git was stopped after it had moved the ref.
        else:
            if answer.code:
                raise self._not_swapped(answer, new, old)
        if self._files_backend:
            try:
                store.sync_ref(self.common, self.ref)
            except LedgerError:
                back = [self.ref, old, new or nothing] if old else ["-d", self.ref, new or nothing]
                self._git("update-ref", "--no-deref", *back, check=False)
                raise

    def _not_swapped(self, answer: gitcli.Answer, new: Oid | None, old: Oid | None) -> LedgerError:
        # Git knows a packed-refs file by its times in seconds: a child that lives may have missed the last change.
        self.close()
        try:
            now = self._at()
        except BadData as e:
            return CannotWrite(str(e))
        if now != old:
            return store.stale(self.ref, old, now)
        lock = re.search(r"Unable to create '([^']*\.lock)': File exists", answer.err)
        if lock:
            return store.lock_is_held(lock[1])
        if "nonexistent object" in answer.err:
            return store.object_is_missing(new or "", self.common)
        failed = gitcli.failure(["update-ref"], answer, self.common)
        return failed if isinstance(failed, IOFailed) and "No space" in answer.err else CannotWrite(str(failed))

    def _at(self) -> Oid | None:
        """Where the ref is, whether or not that commit is here."""
        try:
            return self.tip()
        except MissingObject:
            return self._git("rev-parse", "--verify", "--quiet", self.ref).line

    def _git(self, *args: str, data: bytes | None = None, check: bool = True) -> gitcli.Answer:
        words = [f"--git-dir={self.common}", *args]
        return gitcli.run(words, cwd=self.common, input=data, deadline=DEADLINE, check=check, extra_env=_NO_NETWORK)


class _Reader:
    """The long-lived `git cat-file`: one for both questions where git can (2.36), else one for each."""

    def __init__(self, common: str) -> None:
        child = _Child(common, "--batch-command")
        self._words = ("contents ", "info ")
        self._contents = self._info = child
        # An older git ends with its usage; a question about what never exists tells without asking for a version.
        if not child.answers("info refs/gitledger/none"):
            self._words = ("", "")
            self._contents, self._info = _Child(common, "--batch"), _Child(common, "--batch-check")

    @property
    def alive(self) -> bool:
        return self._contents.alive and self._info.alive

    def close(self) -> None:
        self._contents.close()
        self._info.close()

    def contents(self, name: str) -> Object | None:
        self._contents.send(f"{self._words[0]}{name}\n")
        found = self._contents.header(name)
        return None if found is None else Object(found[1], self._contents.take(found[2] + 1, name)[:-1])

    def some(self, names: Sequence[Oid], most: int, found: dict[Oid, Object]) -> int:
        """Put those of a few objects into `found` that are here, and at most so many bytes; how many these were.

        Two waits, however many objects there are.
        """
        self._info.send("".join(f"{self._words[1]}{name}\n" for name in names))
        sizes = [(name, self._info.header(name)) for name in names]
        asked, taken = [], 0
        for name, row in sizes:
            if row is not None and taken + row[2] <= most:
                asked.append(name)
                taken += row[2]
        self._contents.send("".join(f"{self._words[0]}{name}\n" for name in asked))
        for name in asked:
            row = self._contents.header(name)
            if row is not None:
                found[name] = Object(row[1], self._contents.take(row[2] + 1, name)[:-1])
        return taken

    def info(self, names: Sequence[str]) -> list[tuple[Oid, Kind] | None]:
        self._info.send("".join(f"{self._words[1]}{name}\n" for name in names))
        found = [self._info.header(name) for name in names]
        return [None if row is None else row[:2] for row in found]


class _Child:
    """One `git cat-file` that answers until it is closed, or until something in the repository kills it."""

    def __init__(self, common: str, mode: str) -> None:
        self._common = common
        argv = gitcli.command([f"--git-dir={common}", "cat-file", mode])
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=common,
                env=gitcli.environment(_NO_NETWORK),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # nobody reads it, and a full pipe would stop git
                bufsize=0,
                start_new_session=True,
            )
        except OSError as e:
            raise Missing(f"git cannot be started in {common} ({e.strerror}): see that both are there") from e
        assert self._process.stdin is not None  # noqa: S101 (both were asked for above)
        assert self._process.stdout is not None  # noqa: S101
        self._in, self._out = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN | select.POLLHUP)
        self._buffer = b""
        self.alive = True

    def answers(self, request: str) -> bool:
        """False, and closed, where git knows no such mode."""
        try:
            self.send(request + "\n")
            return self.header(request) is None
        except IOFailed:
            if self._process.returncode != _USAGE:
                raise
            return False

    def send(self, request: str) -> None:
        try:
            self._in.write(request.encode())
        except OSError:
            pass  # it died; reading the answer finds out why

    def header(self, name: str) -> tuple[Oid, Kind, int] | None:
        while b"\n" not in self._buffer:
            self._read(name)
        line, _, self._buffer = self._buffer.partition(b"\n")
        words = line.decode("ascii", "replace").split(" ")
        if len(words) == 3 and words[2].isdigit():
            return words[0], cast(Kind, words[1]), int(words[2])
        return None

    def take(self, size: int, name: str) -> bytes:
        parts = [self._buffer]
        missing = size - len(self._buffer)
        while missing > 0:
            self._buffer = b""
            self._read(name)
            parts.append(self._buffer)
            missing -= len(self._buffer)
        data = b"".join(parts)
        self._buffer = data[size:]
        return data[:size]

    def _read(self, name: str) -> None:
        if not self._poll.poll(DEADLINE * 1000):
            self.close()
            raise TryAgain(
                f"git cat-file in {self._common} did not answer in {DEADLINE:g} s and was stopped: try again"
            )
        data = os.read(self._out.fileno(), 1 << 18)
        if not data:
            self.close()
            code = self._process.returncode
            # It ends on damaged objects and on repositories it will not open; a second child says which.
            name = name.split(" ")[-1]
            answer = gitcli.run(
                [f"--git-dir={self._common}", "cat-file", "-p", name],
                cwd=self._common,
                check=False,
                extra_env=_NO_NETWORK,
            )
            if "from promisor remote" in answer.err:
                raise store.object_is_missing(name, self._common)
            if answer.code not in (0, _USAGE) and code != _USAGE:
                raise gitcli.failure(["cat-file"], answer, self._common)
            raise IOFailed(f"git cat-file in {self._common} ended with {code}: run `git fsck` to see what is hurt")
        self._buffer += data

    def __del__(self) -> None:
        if getattr(self, "alive", False):  # a store that nobody closed; the child itself ends with us in any case
            self.close()

    def close(self) -> None:
        self.alive = False
        for pipe in (self._in, self._out):
            try:
                pipe.close()
            except OSError:
                pass  # a request that nobody will read any more
        try:
            self._process.wait(1)  # it ends when its input does
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _format(common: str) -> tuple[str, bool]:
    """A repository's object format, and whether its refs are files."""
    try:
        with open(os.path.join(common, "config"), encoding="utf-8", errors="replace") as f:
            text = f.read().lower()
    except FileNotFoundError:
        raise NotARepository(f"{common} is no git repository: name the folder that holds its `config`") from None
    except OSError as e:
        raise CannotWrite(f"{common}/config cannot be read ({e.strerror}): see who owns it with `ls -l`") from e
    # Git takes extensions from this one file and follows no include for them, so a word that is not in it is not set.
    if "objectformat" not in text and "refstorage" not in text:
        return "sha1", True
    asked = ["config", "--local", "--no-includes", "--default"]
    words = [
        gitcli.run([f"--git-dir={common}", *asked, default, "--get", key], cwd=common).line
        for default, key in (("sha1", "extensions.objectFormat"), ("files", "extensions.refStorage"))
    ]
    if words[0] not in ("sha1", "sha256"):
        raise Unsupported(f"{common} stores objects by {words[0]}: gitledger knows sha1 and sha256")
    return words[0], words[1].startswith("files")
