"""The write-ahead log: one checksummed text line (frame.py) per entry, synced before it is acknowledged.

`<common>/gitledger/wal/<ledger>/` holds `current.wal`, which writers append to; `<uuid7>.wal`, which never
change again (sealed, or spilled by a writer that could not have the lock); and `damaged/`, lines that could
not be read when their file was forgotten. Read `pending` before the ledger's tip, never after: an entry that
is committed in between is then seen twice, and its id tells, where the other order would not see it at all.

Standard library only, and little of it: this runs once per turn of every agent.
"""

from __future__ import annotations

import fcntl
import os
import time

from gitledger import gitdir
from gitledger.errors import BadData, CannotWrite, IOFailed, LockHeld, NoLedger
from gitledger.frame import Entry, decode, encode, uuid7
from gitledger.frame import at as time_text

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from gitledger.model import Finding

CURRENT = "current.wal"
SUFFIX = ".wal"
UNFINISHED = ".tmp"
DAMAGED = "damaged"
MAX_LINE = 16 << 20
"""Bytes of one line with its frame; an escaped payload is at most twice its size."""

_PAUSE = 0.002  # seconds between two tries for a lock
_ABANDONED = 3600  # seconds after which an unfinished spill file has no live writer


# ── writing ──────────────────────────────────────────────────────────────────────────────────
def create(folder: str) -> None:
    """Make the log's folder and its parents up to `<common>` (mode 0700, synced); again is harmless."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
            parent = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                _sync(parent)
            finally:
                os.close(parent)
        except FileExistsError:  # another process is making the same folders
            if not os.path.isdir(path):
                raise CannotWrite(f"{path} is not a folder; move it away") from None
        except OSError as e:
            raise CannotWrite(f"cannot create {path}: {e.strerror}; check its permissions") from e


def append(
    folder: str,
    client: str,
    event: str,
    payload: bytes,
    *,
    now_ms: int,
    rand: bytes,
    worktree: str = "main",
    wait: float = 0.25,
) -> Entry:
    """Log one entry and return it; when this returns, the entry is on disk and a crash cannot lose it.

    Waits at most `wait` seconds for other writers, then writes a file of its own instead, so a stopped
    process wedges nobody. `rand` is ten random bytes. Raises ValueError for a bad word, BadData for a payload
    that is too large, NoLedger, CannotWrite and IOFailed; then the log is as it was.
    """
    ident = uuid7(now_ms, rand)
    return append_entry(folder, ident, time_text(now_ms), client, event, payload, worktree, wait=wait)


def append_entry(
    folder: str,
    id: str,  # noqa: A002 (the word that events have for it)
    at: str,
    client: str,
    event: str,
    payload: bytes,
    worktree: str = "main",
    *,
    wait: float = 0.25,
) -> Entry:
    """`append` for an event that has its id and time already."""
    entry = Entry(id, at, client, event, payload, worktree)
    line = encode(entry)
    if len(line) > MAX_LINE:
        raise BadData(f"an event of {len(payload)} bytes is too large for the log; send at most {MAX_LINE // 2}")
    place = _enter(folder)
    try:
        # git refuses another user's repository (safe.directory); neither may a hook hand him what was typed.
        # Root may: in containers it works on a user's mounted files.
        if os.geteuid() not in (0, os.fstat(place).st_uid):
            raise CannotWrite(f"{folder} belongs to another user; run as that user or use a clone of your own")
        fd = _locked(place, folder, os.O_CREAT, wait)
        if fd is None:
            _spill(place, entry.id, line)
            return entry
        try:
            _add(place, fd, line)
        finally:
            os.close(fd)
    except OSError as e:
        raise IOFailed(f"cannot write {folder}: {e.strerror}; check space and permissions, then try again") from e
    finally:
        os.close(place)
    return entry


def _add(place: int, fd: int, line: bytes) -> None:
    size = os.fstat(fd).st_size
    if size == 0:
        # Before the first line and under the lock: whoever sees a line may rely on the file's own name
        # being on disk, and sync the file alone, even if the process that made it dies here.
        _sync(place)
    elif os.pread(fd, 1, size - 1) != b"\n":
        line = b"\n" + line  # a writer died in its line: that stays a line of its own
    try:
        _write(fd, line)
    except BaseException:
        os.ftruncate(fd, size)
        raise
    # Unlocked before the sync, or every writer would wait for every other's disk. What can happen in
    # between: a later writer's sync carries this line too; a checkpoint reads, commits and forgets it,
    # and then it is durable in the ledger; the machine dies, and an entry that nobody acknowledged is gone.
    fcntl.flock(fd, fcntl.LOCK_UN)
    _sync(fd)


def _spill(place: int, ident: str, line: bytes) -> None:
    name = ident + SUFFIX
    fd = _fresh(place, name + UNFINISHED)
    try:
        _write(fd, line)
        _sync(fd)
        os.rename(name + UNFINISHED, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        os.unlink(name + UNFINISHED, dir_fd=place)
        raise
    finally:
        os.close(fd)
    _sync(place)


def seal(folder: str, *, wait: float = 5.0) -> None:
    """Give what was logged so far a name of its own, so that no writer touches it again.

    Raises LockHeld when a writer keeps the log for longer than `wait` seconds.
    """
    place = _enter(folder)
    try:
        now = time.time_ns() // 1_000_000
        for name in os.listdir(place):
            if name.endswith(SUFFIX + UNFINISHED):
                _adopt(place, name, now // 1000 - _ABANDONED)
        fd = _locked(place, folder, 0, wait)
        if fd is None:
            held = _holder(place)
            raise LockHeld(f"{folder}/{CURRENT} is held by {held}; try again when that has ended or goes on")
        try:
            if os.fstat(fd).st_size:
                _put_aside(place)
        finally:
            os.close(fd)
    except FileNotFoundError:
        pass  # nothing was logged yet
    except OSError as e:
        raise IOFailed(f"cannot seal {folder}: {e.strerror}; check space and permissions, then try again") from e
    finally:
        os.close(place)


def _adopt(place: int, name: str, before: int) -> None:
    """Let the spill file of a writer that died before its rename be read like the others."""
    try:
        if os.stat(name, dir_fd=place, follow_symlinks=False).st_mtime < before:
            os.rename(name, name.removesuffix(UNFINISHED), src_dir_fd=place, dst_dir_fd=place)
    except FileNotFoundError:
        pass  # its writer lives and has renamed it


def forget(folder: str, paths: Iterable[str]) -> None:
    """Remove sealed files whose entries are safe in the ledger; lines that were unreadable go to `damaged/` first.

    `paths` are those of `sealed`; one that is gone is no fault. Raises IOFailed where a file stays.
    """
    place = _enter(folder)
    try:
        for path in paths:
            name = os.path.basename(path)
            if not name.endswith(SUFFIX) or name == CURRENT:
                raise ValueError(f"{path} is not a sealed file")
            try:
                fd = gitdir.open_own(f"{folder}/{name}", os.O_RDONLY, place)
            except FileNotFoundError:
                continue
            with open(fd, "rb") as file:
                _keep_damage(place, name, file, os.fstat(fd).st_size)
            os.unlink(name, dir_fd=place)
        _sync(place)
    except OSError as e:
        raise IOFailed(f"cannot forget {folder}: {e.strerror}; its entries will be read again, none twice") from e
    finally:
        os.close(place)


def _keep_damage(place: int, name: str, file: BinaryIO, size: int) -> None:
    out = damaged = -1
    try:
        for _, raw, verdict in _lines(file, size):
            if not isinstance(verdict, str):
                continue
            if out < 0:
                try:
                    os.mkdir(DAMAGED, 0o700, dir_fd=place)
                except FileExistsError:
                    pass
                damaged = os.open(DAMAGED, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
                out = _fresh(damaged, name + UNFINISHED)
            _write(out, raw)
        if out >= 0:
            _sync(out)
            os.rename(name + UNFINISHED, name, src_dir_fd=damaged, dst_dir_fd=damaged)
            _sync(damaged)
            _sync(place)
    finally:
        for fd in (out, damaged):
            if fd >= 0:
                os.close(fd)


def rewrite(folder: str, change: Callable[[bytes], bytes], *, dry: bool = False) -> int:
    """Replace each line that `change` gives another form of, and return how many those are; `dry` only counts.

    All sealed and spilled files and those in `damaged/` are read, whatever state their lines are in. Each is replaced
    in one step, synced; the current one is only counted in a dry run: seal it first. The caller holds the lock.
    """
    place = _enter(folder)
    try:
        changed = _rewrite_in(place, folder, change, dry)
        try:
            damaged = os.open(DAMAGED, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        except FileNotFoundError:
            return changed
        try:
            return changed + _rewrite_in(damaged, f"{folder}/{DAMAGED}", change, dry)
        finally:
            os.close(damaged)
    except OSError as e:
        raise IOFailed(f"cannot rewrite {folder}: {e.strerror}; check space and permissions, then try again") from e
    finally:
        os.close(place)


def _rewrite_in(place: int, folder: str, change: Callable[[bytes], bytes], dry: bool) -> int:
    total = 0
    for name in sorted(os.listdir(place)):
        if not name.endswith(SUFFIX) or (name == CURRENT and not dry):
            continue
        try:
            fd = gitdir.open_own(f"{folder}/{name}", os.O_RDONLY, place)
        except FileNotFoundError:
            continue
        with open(fd, "rb") as file:
            before = file.read().split(b"\n")
        after = [change(line) for line in before]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        if changed and not dry:
            _replace(place, name, b"\n".join(after))
        total += changed
    return total


def _replace(place: int, name: str, data: bytes) -> None:
    fd = _fresh(place, f"{name}.new")
    try:
        _write(fd, data)
        _sync(fd)
    finally:
        os.close(fd)
    os.rename(f"{name}.new", name, src_dir_fd=place, dst_dir_fd=place)
    _sync(place)


def _fresh(place: int, name: str) -> int:
    """A new file of that name, for writing; what stands there, as a process that died leaves it, is gone."""
    try:
        os.unlink(name, dir_fd=place)
    except FileNotFoundError:
        pass
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def pending(folder: str) -> tuple[list[Entry], list[Finding]]:
    """All entries that no checkpoint has forgotten, once each, and a finding for each bad line.

    Sealed and spilled files come first, by name, then the current one. Needs no write permission.
    """
    place = _enter(folder)
    try:
        # The current file first: if it is sealed meanwhile, the listing shows it too, and ids tell.
        current, size, settled = _current(place, folder)
        runs: list[tuple[str, list[Entry]]] = []
        findings: list[Finding] = []
        for path, found, faults in _sealed(place, folder):
            runs.append((path, found))
            findings += faults
        if isinstance(current, str):
            findings.append(_finding(f"{folder}/{CURRENT}", current))
        elif current is not None:
            with current:
                found, faults = _load(current, size, f"{folder}/{CURRENT}", settled=settled)
                runs.append((CURRENT, found))
                findings += faults
    finally:
        os.close(place)
    return list({entry.id: entry for entry in in_order(runs)}.values()), findings


def in_order(runs: Iterable[tuple[str, list[Entry]]]) -> list[Entry]:
    """The entries of files by name, each spilled one where its time puts it among those that were appended.

    A spilled one was written while somebody held the current file, whose other entries may be older or younger: what
    a command said must stand behind what it was said of.
    """
    entries: list[Entry] = []
    spilled: list[Entry] = []
    for path, found in runs:
        alone = len(found) == 1 and os.path.basename(path) == found[0].id + SUFFIX
        (spilled if alone else entries).extend(found)
    for one in spilled:
        at = len(entries)
        while at and entries[at - 1].id[:13] > one.id[:13]:  # its first 13 characters are the time in milliseconds
            at -= 1
        entries.insert(at, one)
    return entries


def sealed(folder: str) -> list[tuple[str, list[Entry], list[Finding]]]:
    """Each sealed or spilled file with its entries and findings, by name; to be given to `forget` later.

    A file that cannot be read is not among them, so it is never forgotten; `pending` reports it.
    """
    place = _enter(folder)
    try:
        return [(path, entries, findings) for path, entries, findings in _sealed(place, folder) if path]
    finally:
        os.close(place)


def _sealed(place: int, folder: str) -> Iterator[tuple[str, list[Entry], list[Finding]]]:
    """Like `sealed`, and with an empty path for what could not be read."""
    for name in sorted(os.listdir(place)):
        if not name.endswith(SUFFIX) or name == CURRENT:
            continue
        path = f"{folder}/{name}"
        try:
            fd = gitdir.open_own(f"{folder}/{name}", os.O_RDONLY, place)
            with open(fd, "rb") as file:
                entries, findings = _load(file, os.fstat(fd).st_size, path)
        except FileNotFoundError:
            continue  # a checkpoint has just forgotten it
        except (OSError, CannotWrite) as e:
            yield "", [], [_finding(path, _said(e))]
            continue
        yield path, entries, findings


def _current(place: int, folder: str) -> tuple[BinaryIO | str | None, int, bool]:
    """The current file, how much of it to read, and whether that ends where a writer ended; a fault as text."""
    try:
        fd = gitdir.open_own(f"{folder}/{CURRENT}", os.O_RDONLY, place)
    except FileNotFoundError:
        return None, 0, True
    except (OSError, CannotWrite) as e:
        return _said(e), 0, True
    settled = _flock(fd, fcntl.LOCK_SH, 0.25)
    size = os.fstat(fd).st_size  # the log only grows: what lies before this was whole while we had the lock
    if settled:
        fcntl.flock(fd, fcntl.LOCK_UN)
    return open(fd, "rb"), size, settled


def _load(file: BinaryIO, size: int, where: str, *, settled: bool = True) -> tuple[list[Entry], list[Finding]]:
    entries: list[Entry] = []
    findings: list[Finding] = []
    seen = 0
    for number, raw, verdict in _lines(file, size):
        if not isinstance(verdict, str):
            entries.append(verdict)
        elif number != seen and (settled or raw.endswith(b"\n")):  # else somebody is writing this line now
            findings.append(_finding(f"{where}:{number}", verdict))
        seen = number
    return entries, findings


def _lines(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes, Entry | str]]:
    """Each line's number, bytes and entry, or what is wrong with it; one over MAX_LINE comes in pieces."""
    number, fresh = 0, True
    while size > 0:
        raw = file.readline(min(size, MAX_LINE))
        if not raw:
            return
        size -= len(raw)
        number += fresh
        ended = raw.endswith(b"\n")
        if not fresh or (not ended and len(raw) == MAX_LINE):
            yield number, raw, "is longer than any line of this log"
        elif raw != b"\n":
            try:
                yield number, raw, decode(raw)
            except ValueError as e:
                yield number, raw, str(e)
        fresh = ended


def _finding(where: str, fault: str) -> Finding:
    from gitledger.model import Finding

    return Finding("wal.line", where, fault, f"nothing to do: it is kept in {DAMAGED}/ at the next checkpoint")


# ── files and locks ──────────────────────────────────────────────────────────────────────────
def _enter(folder: str) -> int:
    """The log's folder as a descriptor; every file in it is opened through that, never by path."""
    try:
        return os.open(folder.rstrip("/"), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NoLedger(f"{folder} does not exist; run gitledger init") from None
    except OSError as e:
        raise CannotWrite(f"cannot open {folder}: {_said(e)}; it must be a folder of your own") from e


def _locked(place: int, folder: str, create: int, wait: float) -> int | None:
    """The current file, open and locked and still current, or None when `wait` seconds have passed."""
    until = time.monotonic() + wait
    while True:
        fd = gitdir.open_own(f"{folder}/{CURRENT}", os.O_RDWR | os.O_APPEND | create, place)
        try:
            if not _flock(fd, fcntl.LOCK_EX, until - time.monotonic()):
                os.close(fd)
                return None
            try:
                there = os.stat(CURRENT, dir_fd=place, follow_symlinks=False)
            except FileNotFoundError:
                pass
            else:
                if os.path.samestat(there, os.fstat(fd)):
                    if there.st_nlink < 2:
                        return fd
                    # By `cp -al`, say: what is added would be added under the other name too.
                    _put_aside(place)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # sealed between our open and our lock, or by us


def _put_aside(place: int) -> None:
    """Seal the current file, whose lock is held."""
    name = uuid7(time.time_ns() // 1_000_000, os.urandom(10)) + SUFFIX
    os.rename(CURRENT, name, src_dir_fd=place, dst_dir_fd=place)
    _sync(place)


def _flock(fd: int, kind: int, wait: float) -> bool:
    until = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
        time.sleep(_PAUSE)


def _holder(place: int) -> str:
    """Who has the current file locked, as far as the system tells."""
    try:
        inode = os.stat(CURRENT, dir_fd=place, follow_symlinks=False).st_ino
        with open("/proc/locks", encoding="ascii") as locks:  # Linux only
            for line in locks:
                words = line.split()
                if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                    return f"process {words[4]}"
    except (OSError, IndexError):
        pass
    return "another process"


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync(fd: int) -> None:
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: a plain fsync stays in the drive's cache there
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
            return
        except OSError:
            pass  # not every file system there knows it
    os.fsync(fd)


def _said(e: Exception) -> str:
    return (e.strerror or str(e)) if isinstance(e, OSError) else str(e)
