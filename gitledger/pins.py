"""`trust.json`: what this clone has pinned and verified. Local, never in the tree.

A ledger's carried keys give no trust; the fingerprints here do. `verified` is the newest tip whose whole history was
found good, and `under` the digest of all that verdict rested on: with another trust list it counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, field, replace

from gitledger.errors import BadConfig, CannotWrite
from gitledger.model import Oid


@dataclass(frozen=True, slots=True)
class Pins:
    """One ledger's pins: its uuid and genesis commit, trusted key fingerprints, the newest verified tip."""

    uuid: str
    genesis: Oid
    fingerprints: tuple[str, ...] = ()
    verified: Oid = ""
    under: str = ""
    more: dict[str, object] = field(default_factory=dict)

    def digest(self) -> str:
        """SHA-256 of what a verdict depends on besides the commits themselves."""
        return hashlib.sha256("\0".join((self.uuid, self.genesis, *sorted(self.fingerprints))).encode()).hexdigest()

    def remembers(self, tip: Oid) -> bool:
        """True where `tip` was verified under exactly these pins."""
        return bool(tip) and self.verified == tip and self.under == self.digest()

    def remember(self, tip: Oid) -> Pins:
        """These pins with `tip` as the newest verified one."""
        return replace(self, verified=tip, under=self.digest())


def load(path: str, name: str) -> Pins | None:
    """The pins of ledger `name`, or None where this clone has none; raise BadConfig for a damaged file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as f:
            value = json.load(f)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as e:
        raise BadConfig(f"{path} cannot be read ({e}); mend it, or move it away and run: gitledger init") from e
    try:
        row = value["ledgers"].get(name)
        if row is None:
            return None
        return Pins(row["uuid"], row["genesis"], tuple(row["fingerprints"]), row["verified"], row["under"])
    except (KeyError, TypeError, AttributeError) as e:
        raise BadConfig(f"{path} is not a trust list ({e}); mend it, or move it away and run: gitledger init") from e


def save(path: str, name: str, pins: Pins) -> None:
    """Write the pins of ledger `name`, keeping other ledgers'; atomic, 0600. The caller holds the lock."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as f:
            value = json.load(f)
    except FileNotFoundError:
        value = {"format": 1, "ledgers": {}}
    except (OSError, ValueError) as e:
        raise BadConfig(f"{path} cannot be read ({e}); mend it, or move it away and run: gitledger init") from e
    value["ledgers"][name] = {
        "uuid": pins.uuid,
        "genesis": pins.genesis,
        "fingerprints": list(pins.fingerprints),
        "verified": pins.verified,
        "under": pins.under,
    }
    write_private(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")


def write_private(path: str, data: bytes) -> None:
    """Replace a local file by `data`, atomically and synced, readable by its owner alone."""
    folder = os.path.dirname(path)
    try:
        fd, temp = tempfile.mkstemp(prefix=".new-", dir=folder)
        try:
            with open(fd, "wb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
            os.replace(temp, path)
        except BaseException:
            os.unlink(temp)
            raise
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
    except OSError as e:
        raise CannotWrite(f"{path} cannot be written ({e.strerror}); free space or mend its permissions") from e
