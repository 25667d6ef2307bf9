"""`trust.json`: what this clone has pinned and verified. Local, never in the tree.

A ledger's carried keys give no trust; the fingerprints here do. `verified` is the newest tip whose whole history was
found good, and `under` the digest of all that verdict rested on: with another trust list it counts for nothing.
"""

from __future__ import annotations

import json
import os

from gitledger import gitdir
from gitledger.digests import sha256
from gitledger.errors import BadConfig, CannotWrite
from gitledger.model import Json, Oid
from gitledger.values import dataclass, replace

FORMAT = 2
"""Of the file. Format 1 had no founder and no revocations; a ledger's entry of that form is read as it stands."""
RULES = 2
"""Of verification: raised whenever it names what it did not name before, so that every verdict is found again."""


@dataclass(frozen=True, slots=True)
class Pins:
    """One ledger's pins: its uuid and genesis commit, the keys that are trusted and revoked, the newest verified tip.

    `founder` is the fingerprint of the key that signed the genesis commit ("" where an old file does not say): it is
    part of what the ledger is, and gives no trust. `revoked` pairs a key with a commit: what that key signed counts
    only where it is that commit or an ancestor of it, and not at all where the commit is "". A key in several pairs
    counts up to each of them.
    """

    uuid: str
    genesis: Oid
    fingerprints: tuple[str, ...] = ()
    verified: Oid = ""
    under: str = ""
    founder: str = ""
    revoked: tuple[tuple[str, Oid], ...] = ()

    def digest(self) -> str:
        """SHA-256 of what a verdict depends on besides the commits themselves: the pins, and the rules that judge."""
        rows = [RULES, self.uuid, self.genesis, self.founder, sorted(self.fingerprints), sorted(self.revoked)]
        return sha256(json.dumps(rows).encode()).hexdigest()

    def remembers(self, tip: Oid) -> bool:
        """True where `tip` was verified under exactly these pins."""
        return bool(tip) and self.verified == tip and self.under == self.digest()

    def remember(self, tip: Oid) -> Pins:
        """These pins with `tip` as the newest verified one."""
        return replace(self, verified=tip, under=self.digest())

    def until(self, fingerprint: str) -> tuple[Oid, ...] | None:
        """The commits up to which a revoked key counts, "" for none; None for a key that is not revoked here."""
        found = tuple(oid for key, oid in self.revoked if key == fingerprint)
        return found or None

    def trust(self, fingerprint: str) -> Pins:
        """These pins with a key trusted, and not revoked any more."""
        known = tuple(dict.fromkeys((*self.fingerprints, fingerprint)))
        return replace(self, fingerprints=known, revoked=self._others(fingerprint))

    def distrust(self, fingerprint: str) -> Pins:
        """These pins without a trusted key: it is a stranger's again."""
        return replace(self, fingerprints=tuple(one for one in self.fingerprints if one != fingerprint))

    def revoke(self, fingerprint: str, until: tuple[Oid, ...]) -> Pins:
        """These pins with a key that counts up to the commits `until` only, for nothing where there are none.

        What the key signed before stays as trusted as it was.
        """
        rows = tuple((fingerprint, oid) for oid in until or ("",))
        return replace(self, revoked=(*self._others(fingerprint), *rows))

    def _others(self, fingerprint: str) -> tuple[tuple[str, Oid], ...]:
        return tuple(row for row in self.revoked if row[0] != fingerprint)


def load(path: str, name: str) -> Pins | None:
    """The pins of ledger `name`, or None where this clone has none; raise BadConfig for a damaged file."""
    value = _read(path)
    try:
        row = value["ledgers"].get(name) if value else None
        if row is None:
            return None
        return Pins(
            row["uuid"],
            row["genesis"],
            tuple(row["fingerprints"]),
            row["verified"],
            row["under"],
            row.get("founder", ""),
            tuple((fingerprint, oid) for fingerprint, oid in row.get("revoked", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadConfig(f"{path} is not a trust list ({e}); mend it, or move it away and run: gitledger init") from e


def save(path: str, name: str, pins: Pins) -> None:
    """Write the pins of ledger `name`, keeping other ledgers'; atomic, 0600. The caller holds the lock."""
    value = _read(path) or {"ledgers": {}}
    value["format"] = FORMAT
    value["ledgers"][name] = {
        "uuid": pins.uuid,
        "genesis": pins.genesis,
        "founder": pins.founder,
        "fingerprints": list(pins.fingerprints),
        "revoked": [list(row) for row in pins.revoked],
        "verified": pins.verified,
        "under": pins.under,
    }
    write_private(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")


def _read(path: str) -> Json:
    try:
        value = json.loads(gitdir.read_own(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as e:
        raise BadConfig(f"{path} cannot be read ({e}); mend it, or move it away and run: gitledger init") from e
    if not isinstance(value, dict) or not isinstance(value.get("ledgers"), dict):
        raise BadConfig(f"{path} is not a trust list; mend it, or move it away and run: gitledger init")
    # A later format may revoke in a way that is not known here: reading past it would trust what it does not.
    if not isinstance(value.get("format"), int) or value["format"] > FORMAT:
        raise BadConfig(f"{path} has format {value.get('format')!r}, this gitledger reads {FORMAT}; update gitledger")
    return value


def write_private(path: str, data: bytes) -> None:
    """Replace a local file by `data`, atomically and synced, readable by its owner alone."""
    folder = os.path.dirname(path)
    # Not `tempfile`: with the compressors that it loads it costs what all else here does ten times over.
    temp = os.path.join(folder, f".new-{os.urandom(8).hex()}")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
