"""Which sessions of Hermes this clone has heard of, since when, and which of them a living process has. Local.

`hermes-LEDGER/` in the clone's own folder holds one small file for each. It is locked by the process that has the
session, for as long as that lives: the kernel lets go of it however the process ends. So what never reached the ledger
is looked for by one process at a time, and never in a session in which it may still come.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from gitledger import gitdir
from gitledger.errors import LedgerError

HELD = 200
"""Sessions that one process has at once: a gateway that runs for months has had thousands."""
KEPT = 30 * 24 * 3600
"""Seconds after which a session that nobody has is looked at no more."""
LOOKED = 300
"""Sessions that are looked at by one start, the newest."""
MOST = 64 << 10
_held: dict[str, Claim] = {}


@dataclass(slots=True)
class Claim:
    """A session that this process has. `since` is when this clone heard of it first, in milliseconds.

    `settled` says how its messages stood when all of them were in the ledger, "" where nobody has looked.
    """

    path: str
    session: str
    since: int
    settled: str
    before: bool
    """Whether it was heard of before this claim."""
    fd: int

    def settle(self, standing: str) -> None:
        """Remember that all is in the ledger as its messages stand now."""
        if standing != self.settled and self.fd >= 0:
            self.settled = standing
            _write(self)

    def release(self) -> None:
        """Let go of it; again is harmless."""
        fd, self.fd = self.fd, -1
        if _held.get(self.path) is self:
            del _held[self.path]
        if fd >= 0:
            os.close(fd)


def take(common: str, ledger: str, session: str, *, new: bool = True) -> Claim | None:
    """Have a session, or None where another living process has it, or this one had it already where it is not `new`.

    Raises OSError and CannotWrite where no file can be.
    """
    folder = _folder(common, ledger)
    if new:
        gitdir.check_state(common)
        os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, hashlib.sha256(session.encode("utf-8", "backslashreplace")).hexdigest()[:32])
    if path in _held:
        return _held[path] if new else None
    fd = gitdir.open_own(path, os.O_RDWR | (os.O_CREAT if new else 0))
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    said = _read(fd)
    known = isinstance(said.get("session"), str)
    since = said.get("since")
    settled = said.get("settled")
    claim = Claim(
        path,
        session,
        since if isinstance(since, int) else time.time_ns() // 1_000_000,
        settled if isinstance(settled, str) else "",
        known,
        fd,
    )
    if not known:
        _write(claim)
    if new:
        _held[path] = claim
        while len(_held) > HELD:
            next(iter(_held.values())).release()
    return claim


def left(common: str, ledger: str) -> Iterator[Claim]:
    """The sessions that no living process has, each had by this one until the next is asked for."""
    try:
        with os.scandir(_folder(common, ledger)) as found:
            aged = sorted((-entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in found)
    except OSError:  # none yet, or one that another process takes out just now: the next start looks again
        return
    for n, (_, path) in enumerate(aged):
        try:
            fd = gitdir.open_own(path, os.O_RDWR)
        except (OSError, LedgerError):
            continue
        try:
            session = _read(fd).get("session")
            old = time.time() - os.fstat(fd).st_mtime > KEPT
        finally:
            os.close(fd)
        try:
            claim = take(common, ledger, session, new=False) if isinstance(session, str) else None
        except (OSError, LedgerError):
            continue
        if claim is None:
            continue
        try:
            if old:
                os.unlink(path)
            elif n < LOOKED:
                yield claim
        finally:
            claim.release()


def _folder(common: str, ledger: str) -> str:
    return os.path.join(gitdir.state(common), f"hermes-{ledger}")


def _read(fd: int) -> dict[str, object]:
    try:
        value = json.loads(os.pread(fd, MOST, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write(claim: Claim) -> None:
    # In its place: another file under the name would be locked by nobody.
    said = {"format": 1, "session": claim.session, "since": claim.since, "settled": claim.settled}
    data = json.dumps(said).encode("ascii")
    os.pwrite(claim.fd, data, 0)
    os.ftruncate(claim.fd, len(data))
