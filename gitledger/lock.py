"""The ledger's lock: one process at a time changes a clone's ledger.

Plain `flock`, because the kernel drops it when its holder dies, however it dies. `filelock` would be the library
for this, but importing it takes longer than making a whole checkpoint does.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gitledger import gitdir
from gitledger.errors import CannotWrite, LockHeld

_PAUSE = 0.01  # seconds between two tries


@contextmanager
def held(path: str, *, deadline: float) -> Iterator[None]:
    """Hold the lock file at `path` for the length of the block.

    Waits at most `deadline` seconds, then raises LockHeld with the holder's process id. A file that a dead process
    left is harmless. Not re-entrant: a second `held` on one path in one process waits for the first.
    """
    until = time.monotonic() + deadline
    fd = _take(path, until)
    try:
        if os.fstat(fd).st_nlink < 2:  # one with another name may be anything, and is only locked
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(fd)


@contextmanager
def folder(path: str, *, deadline: float) -> Iterator[None]:
    """Hold a folder's own lock for the length of the block: where there is no place for a lock file yet, or no longer.

    Raises LockHeld after `deadline` seconds.
    """
    until = time.monotonic() + deadline
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as e:
        raise CannotWrite(f"cannot open {path}: {e.strerror}; check its permissions") from e
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise LockHeld(f"{path} is held by another process; try again when it has finished") from None
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(fd)


def _take(path: str, until: float) -> int:
    while True:
        fd = _open(path)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Somebody may have removed the file by hand; a lock on a nameless file locks nobody out.
            if os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False)):
                return fd
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(fd)
            raise
        if time.monotonic() >= until:
            pid = os.pread(fd, 20, 0).strip().decode("ascii", "replace")
            os.close(fd)
            who = f"process {pid}" if pid.isdigit() else "another process"
            raise LockHeld(f"{path} is held by {who}; try again when it has finished")
        os.close(fd)
        time.sleep(_PAUSE)


def _open(path: str) -> int:
    try:
        return gitdir.open_own(path, os.O_RDWR | os.O_CREAT)
    except OSError as e:
        raise CannotWrite(f"cannot open the lock {path}: {e.strerror}; check its permissions") from e
