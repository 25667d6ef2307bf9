"""Somebody's settings file: read as it is, replaced whole, and taken away where we made it.

What was put into one is remembered beside the ledger's local files (for a user's own settings, in the user's data
folder): where, how long, and what the file was then. So it comes out byte for byte; no text of theirs is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile

from gitledger import pins
from gitledger.errors import BadData, CannotWrite
from gitledger.model import Json
from gitledger.splice import Pointer, Span
from gitledger.values import asdict, dataclass

BIGGEST = 16 << 20
BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an install left at `path`: the file's digest then, what went in where, and what was made for it.

    `existed` is whether there was a file before; `folders` were made, the innermost last.
    """

    path: str
    digest: str
    spans: tuple[Span, ...] = ()
    made: tuple[Pointer, ...] = ()
    existed: bool = True
    folders: tuple[str, ...] = ()

    def fits(self, text: str) -> bool:
        """True where the file is as the install left it."""
        return digest(text) == self.digest


def digest(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ── the file ─────────────────────────────────────────────────────────────────────────────────
def read(path: str) -> str | None:
    """The text of a file with its byte order mark, None for no file; raise BadData for what is no UTF-8 text."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise CannotWrite(f"{path} cannot be read ({e.strerror}); mend its permissions") from e
    with open(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CannotWrite(f"{path} is not a plain file; move it away")
        data = f.read(BIGGEST + 1)
    if len(data) > BIGGEST:
        raise BadData(f"{path} is larger than {BIGGEST >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise BadData(f"{path} is not UTF-8 text") from e


def write(path: str, text: str | None, before: str | None) -> tuple[str, ...]:
    """Replace the file that `path` names by `text` (None: remove it), atomically; the folders that were made.

    A symlink stays and its target is written; a mode stays. Raises CannotWrite with nothing changed, also where the
    file is not `before` any more.
    """
    target = os.path.realpath(path)
    made: list[str] = []
    try:
        if read(path) != before:
            raise CannotWrite(f"{path} was changed by somebody else just now; look at it and run this again")
        if before is not None and not stat.S_IMODE(os.stat(target).st_mode) & 0o222:
            raise CannotWrite(f"{path} is read-only and was left alone; make it writable and run this again")
        if text is None:
            os.unlink(target)
            return ()
        folder = os.path.dirname(target)
        while not os.path.isdir(folder):
            made.insert(0, folder)
            folder = os.path.dirname(folder)
        for folder in made:
            os.mkdir(folder)
        _replace(target, text.encode())
    except OSError as e:
        for folder in reversed(made):
            _drop(folder)
        raise CannotWrite(f"{path} cannot be written ({e.strerror}); it is as it was") from e
    return tuple(made)


def _replace(target: str, data: bytes) -> None:
    fd, temp = tempfile.mkstemp(prefix=".gitledger-", dir=os.path.dirname(target))
    try:
        with open(fd, "wb") as f:
            try:
                there = os.stat(target)
                if (there.st_uid, there.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, there.st_uid, there.st_gid)
                os.fchmod(fd, stat.S_IMODE(there.st_mode))
            except FileNotFoundError:
                mask = os.umask(0o077)
                os.umask(mask)
                os.fchmod(fd, 0o666 & ~mask)
            f.write(data)
            f.flush()
            os.fsync(fd)
        os.replace(temp, target)
    except BaseException:
        os.unlink(temp)
        raise


def drop_folders(folders: tuple[str, ...]) -> None:
    """Remove the folders that an install made, the innermost first, as far as nothing is in them."""
    for folder in reversed(folders):
        _drop(folder)


def _drop(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # somebody's file is in it, or it is gone


# ── receipts ─────────────────────────────────────────────────────────────────────────────────
def load(path: str) -> Receipt | None:
    """The receipt in a file; None where there is none that can be read."""
    try:
        with open(path, "rb") as f:
            value = json.loads(f.read(BIGGEST))
        return Receipt(
            str(value["path"]),
            str(value["digest"]),
            tuple((int(at), int(length)) for at, length in value["spans"]),
            tuple(tuple(map(str, pointer)) for pointer in value["made"]),
            bool(value["existed"]),
            tuple(map(str, value["folders"])),
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def save(path: str, receipt: Receipt) -> None:
    """Keep a receipt."""
    keep(path, asdict(receipt))


def keep(path: str, fields: dict[str, Json]) -> None:
    """Keep the fields of a receipt of any form; `forget` drops it."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as e:
        raise CannotWrite(f"{path} cannot be written ({e.strerror}); mend its permissions") from e
    pins.write_private(path, json.dumps({"format": 1, **fields}).encode() + b"\n")


def forget(path: str) -> None:
    """Drop a receipt, and its folder with the last one."""
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # gone, or not the last
