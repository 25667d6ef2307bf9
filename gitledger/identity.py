"""`writer.json`: who this clone is as a writer, and the key files of its own. Local, never in the tree.

Clones of one user share the user's key until one of them gets its own by a rotation; its path then stands here, for
each ledger of the clone, since each ledger says for itself which key is the writer's.
"""

from __future__ import annotations

import json
import os

from gitledger import gitdir, pins
from gitledger.errors import BadConfig
from gitledger.gitdir import state
from gitledger.values import dataclass, field, replace

FORMAT = 2
"""Of the file. Format 1 had no `keys`."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A clone's writer id, and by ledger the private key files that are its own, the newest first."""

    id: str
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def own(self, ledger: str) -> tuple[str, ...]:
        """The key files that were made for one ledger."""
        return self.keys.get(ledger, ())

    def with_keys(self, ledger: str, paths: tuple[str, ...]) -> Identity:
        """The same writer with other key files for one ledger."""
        return replace(self, keys={**self.keys, ledger: paths})


def load(common: str) -> Identity | None:
    """This clone's identity, or None where it has none yet; raise BadConfig for a damaged file."""
    path = _path(common)
    try:
        value = json.loads(gitdir.read_own(path))
        keys = {str(name): tuple(map(str, paths)) for name, paths in value.get("keys", {}).items()}
        return Identity(str(value["id"]), keys)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as e:
        raise BadConfig(f"{path} cannot be read ({e}); restore it from a backup of this clone") from e


def save(common: str, mine: Identity) -> None:
    """Write this clone's identity, atomically and synced. The caller holds the lock."""
    value = {"format": FORMAT, "id": mine.id, "keys": {name: list(paths) for name, paths in mine.keys.items()}}
    pins.write_private(_path(common), json.dumps(value, sort_keys=True).encode() + b"\n")


def _path(common: str) -> str:
    return os.path.join(state(common), "writer.json")
