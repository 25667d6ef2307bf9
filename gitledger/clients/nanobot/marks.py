"""How far each nanobot session is journalled, one small file for each in the clone's own folder. Local.

nanobot tells of a turn once, and a process that dies in that moment tells of it never: by its mark a session's own
file is read on from where the journal ends. A line is logged before its mark is written, under an id that is made of
what it says: where a crash came in between, the same line is logged again under the same id, and is one.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass

from gitledger import gitdir, pins
from gitledger.errors import LedgerError

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitledger.clients.embedded import Embedded

BIGGEST = 64 << 10
KEPT = 200
"""Sessions whose marks are kept, the newest."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is journalled of nanobot's session `key`: up to message `last`, of `at`, and of the turn behind it prompts.

    `last` and `prompted` are digests, `updated` is what nanobot's own file said when it was read.
    """

    key: str
    last: str = ""
    at: str = ""
    updated: str = ""
    prompted: tuple[str, ...] = ()


def read(embedded: Embedded, session: str) -> Mark | None:
    """The mark of a session; None where nothing is known of it."""
    return _read(os.path.join(_folder(embedded), _name(session)))


def write(embedded: Embedded, session: str, mark: Mark) -> None:
    """Keep a session's mark; raises OSError and CannotWrite."""
    folder = _folder(embedded)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    pins.write_private(os.path.join(folder, _name(session)), json.dumps(asdict(mark)).encode("ascii"))


def each(embedded: Embedded) -> Iterator[Mark]:
    """The marks of all sessions, the newest first; those that are beyond KEPT are forgotten."""
    folder = _folder(embedded)
    try:
        paths = [os.path.join(folder, name) for name in os.listdir(folder)]
        paths.sort(key=os.path.getmtime, reverse=True)
        for path in paths[KEPT:]:
            os.unlink(path)
    except OSError:
        return  # there are none, or another process has just written one
    for path in paths[:KEPT]:
        if (mark := _read(path)) is not None:
            yield mark


def digest(text: str) -> str:
    """What a prompt is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _read(path: str) -> Mark | None:
    try:
        value = json.loads(gitdir.read_own(path, BIGGEST))
        texts = {name: str(value[name]) for name in ("key", "last", "at", "updated")}
        return Mark(**texts, prompted=tuple(str(one) for one in value["prompted"]))
    except (OSError, LedgerError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _folder(embedded: Embedded) -> str:
    return os.path.join(gitdir.state(embedded.found.common), f"nanobot-{embedded.ledger}")


def _name(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
