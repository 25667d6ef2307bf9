"""What is kept on this machine of a change to a memory file while it is under way: what is to be said, and the bytes.

The bytes are written first and go last, so that what tells of them never stands alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from gitledger import gitdir, lock, memoryfile, memoryrecord, memorystate, pins
from gitledger.errors import BadData, CannotWrite, LedgerError
from gitledger.ledger import Ledger
from gitledger.memoryrecord import Made
from gitledger.model import Json, Key
from gitledger.values import dataclass

DEADLINE = 20.0
"""Seconds to wait for another gitledger that changes a file of the same folder."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """A change that was under way when its process ended, and where its file lies now."""

    made: Made
    path: str
    before: bytes


def folder(ledger: Ledger) -> str:
    """The folder of this ledger's local memory files, made where there is none."""
    gitdir.check_state(ledger.gitdir.common)
    path = ledger.desk.home.state
    for name in ("memory", ledger.desk.home.name):
        path = os.path.join(path, name)
        if os.path.islink(path):
            raise CannotWrite(f"{path} is not a folder (a symlink); move it away")
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def kept_path(ledger: Ledger, key: Key) -> str:
    """Where the bytes of a file before the change `key` lie, if they may not travel."""
    return os.path.join(folder(ledger), f"{key}.before")


def keep(ledger: Ledger, made: Made, path: str, before: bytes) -> None:
    """Keep what is about to be done to the file at `path`, which is `before`."""
    place = folder(ledger)
    base = os.path.join(place, made.id)
    value = {"format": 1, "path": path, "made": memoryrecord.made_value(made)}
    with lock.folder(place, deadline=DEADLINE):  # against who sweeps away what nothing tells of
        pins.write_private(f"{base}.bytes", before)
        pins.write_private(f"{base}.json", json.dumps(value).encode() + b"\n")


def forget(ledger: Ledger, id: str) -> None:  # noqa: A002
    """Let go of what was kept."""
    base = os.path.join(folder(ledger), id)
    memoryfile.remove(f"{base}.json")
    memoryfile.remove(f"{base}.bytes")


def waits(ledger: Ledger, id: str) -> str:  # noqa: A002
    """How the name goes on of what waits beside a file for the change `id`, or with "" for any of this ledger's."""
    # Of this clone and ledger: what another one's command has waiting beside the same file is not ours to sweep away.
    place = f"{ledger.desk.home.state}\0{ledger.desk.home.name}"
    return f"{memoryfile.digest(os.fsencode(place))[:12]}-{id}"


def beside(ledger: Ledger, path: str, made: Made) -> str:
    """Where what waits for a change lies, or would lie, beside the file at `path`."""
    base = os.path.dirname(path)
    name = f"{memoryfile.PREFIX}{waits(ledger, made.id)}"
    return os.path.join(base, _waiting(base, made) or name)


def _waiting(base: str, made: Made) -> str:
    """The name of what waits in a folder for a change, however a clone that lay elsewhere named it; "" for nothing."""
    try:
        names = os.listdir(base)
    except OSError:
        return ""
    return next((one for one in names if one.startswith(memoryfile.PREFIX) and one.endswith(f"-{made.id}")), "")


def cut_off(ledger: Ledger) -> Iterator[CutOff]:
    """The changes that were under way when their processes ended, oldest first."""
    for where in memorystate.under_way(folder(ledger)):
        try:
            value: Json = json.loads(gitdir.read_own(where))
            made = memoryrecord.read_made(value["made"], where)
            before = gitdir.read_own(where.removesuffix(".json") + ".bytes")
            path = _found(ledger, str(value["path"]), made)
        except (OSError, ValueError, LookupError, TypeError) as e:
            if not os.path.lexists(where):
                continue  # its process has just ended it
            raise BadData(f"{where} is not what gitledger wrote ({e}); move it away") from e
        yield CutOff(made, path, before)


def _found(ledger: Ledger, path: str, made: Made) -> str:
    """Where the file of a change lies: at `path`, or with a repository that was moved since."""
    if os.path.isdir(os.path.dirname(path)):
        return path
    try:
        moved = memoryfile.locate(ledger.gitdir.top, made.name)
        data = memoryfile.read(moved)
    except LedgerError:
        return path
    ours = data is not None and memoryfile.digest(data) in (made.source, made.result)
    return moved if ours or _waiting(os.path.dirname(moved), made) else path


def sweep(ledger: Ledger, path: str) -> None:
    """Remove what waits beside the file at `path`, or is kept, and belongs to no change any more.

    The lock of the file's folder is held.
    """
    base = os.path.dirname(path)
    for name in os.listdir(base):
        if name.startswith(f"{memoryfile.PREFIX}{waits(ledger, '')}"):
            memoryfile.remove(os.path.join(base, name))
    place = folder(ledger)
    with lock.folder(place, deadline=DEADLINE):
        names = set(os.listdir(place))
        for name in names:
            if name.endswith(".bytes") and name.replace(".bytes", ".json") not in names:
                memoryfile.remove(os.path.join(place, name))
