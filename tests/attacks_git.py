"""The attacks on signatures and keys again, where the second writer signs as its git does: OpenPGP, or a certificate.

Its keys ran out in 2021, and GnuPG is told that it is 2020 when it signs: what they signed counts, and nothing goes by
that date. `ROWS` is the second part of the table of `docs/security.md`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gitledger import keys, objects, pins
from gitledger.gitsigner import GitSigner
from gitledger.ledger import Ledger
from tests import attacks, certificate
from tests.attacks import Attack, Field

Format = Literal["openpgp", "x509"]
PROGRAMS: dict[Format, tuple[str, ...]] = {"openpgp": ("gpg", "gpgv", "gpg-agent"), "x509": ("gpgsm", "gpg-agent")}
NOW = "20200101T000000"


# ── the field ────────────────────────────────────────────────────────────────────────────────
@dataclass
class GitField(Field):
    """A field whose writer `b` signs with the key `own` of its GnuPG; `other` is a stranger's, in the same name."""

    own: str = ""
    other: str = ""

    def signer(self, key: str) -> GitSigner:
        """What signs with a key of that GnuPG."""
        return GitSigner(str(self.path), key)

    def _ledger(self, name: str) -> Ledger:
        made = super()._ledger(name)
        if name != "b" or not self.own:
            return made
        return Ledger(replace(made.desk, writer=replace(made.desk.writer, key=self.signer(self.own))), made.gitdir)

    def fingerprint(self, name: str) -> str:
        return self.signer(self.own).fingerprint if name == "b" else super().fingerprint(name)

    def sign(self, payload: bytes, key: Path, namespace: str = "git") -> str:
        return self.signer(self.own).sign(payload) if key == self.key("b") else super().sign(payload, key, namespace)


def here(format_: Format) -> bool:
    """True where the programs of a format are installed."""
    return all(shutil.which(name) for name in PROGRAMS[format_])


def furnish(home: Path) -> dict[Format, tuple[str, str]]:
    """Two keys of each format that is installed in an empty GnuPG home, which GNUPGHOME must name."""
    made: dict[Format, tuple[str, str]] = {}
    for name in ("gpg.conf", "gpgsm.conf"):
        (home / name).write_text(f"faked-system-time {NOW}\n")
    if here("openpgp"):
        made["openpgp"] = (_openpgp("Ada"), _openpgp("Ada"))
    if here("x509"):
        authority = certificate.make("Authority", until=datetime(2021, 1, 1, tzinfo=UTC))
        one, two = (certificate.make("Ada", authority, until=datetime(2020, 12, 1, tzinfo=UTC)) for _ in range(2))
        certificate.install(home, one, two)
        made["x509"] = (one.id, two.id)
    return made


def _openpgp(name: str) -> str:
    words = ["gpg", "--batch", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", "--status-fd", "1"]
    made = subprocess.run(
        [*words, "--quick-gen-key", f"{name} <ada@example.org>", "ed25519", "sign", "1y"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
        timeout=300,
    )
    return next(row.split()[3] for row in made.stdout.splitlines() if row.startswith("[GNUPG:] KEY_CREATED"))


def ground(base: Field, path: Path, format_: Format, chosen: tuple[str, str]) -> GitField:
    """The field of the other attacks, its second writer gone over to the first of two keys and found good with it."""
    beside = attacks.copy(base, path)
    made = GitField(path, beside.folder, beside.writers, *chosen)
    made.repo.git("config", "gpg.format", format_)
    new = made.signer(made.own)
    pins.save(made.home.pins, "main", made.pins().trust(new.fingerprint))
    beside.b.commit(lambda view: keys.rotation(view, made.writers["b"], beside.a.desk.mint, new))
    attacks.honest_b(made)
    assert made.verify(full=True).findings == ()
    return made


# ── attacks ──────────────────────────────────────────────────────────────────────────────────
def over_other_bytes(field: Field) -> str:
    attacks.honest_b(field)
    return attacks.other_bytes(field)


def by_another_key(field: Field) -> str:
    assert isinstance(field, GitField)
    payload = objects.signed_payload(field.raw(attacks.honest_b(field)))
    made = objects.with_signature(payload, field.signer(field.other).sign(payload))
    return field.point(field.store("commit", made))


def ssh_in_its_place(field: Field) -> str:
    attacks.honest_b(field)
    return field.forge(key=field.key("stranger"))


def in_an_ssh_keys_place(field: Field) -> str:
    attacks.honest(field)
    return field.forge(key=field.key("b"))


# ── the table ────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class GitAttack(Attack):
    """A row that needs the programs of a format."""

    format: Format = "openpgp"

    @property
    def name(self) -> str:
        return f"{self.format}-{super().name}"


_Row = tuple[str, str, Callable[[Field], str], str, Callable[[Field], str]]


def _rows(format_: Format, key: str, signature: str, other: str) -> tuple[GitAttack, ...]:
    expired = f"a checkpoint by {key} that has expired since"
    rows: tuple[_Row, ...] = (
        (f"{signature} over other bytes", "signature", over_other_bytes, expired, attacks.honest_b),
        (other, "signature", by_another_key, expired, attacks.honest_b),
        (f"an SSH key in the place of {key}", "key", ssh_in_its_place, expired, attacks.honest_b),
        (f"{key} in the place of an SSH key", "signature", in_an_ssh_keys_place, expired, attacks.honest_b),
        (
            f"{key} after its revocation in the ledger, dated before it",
            "revoked",
            attacks.dated_before_revocation,
            "commits before the revocation, and the revocation itself",
            attacks.honest_revocation,
        ),
        (
            f"{key} after this machine revoked it",
            "revoked",
            attacks.after_local_revocation,
            "what it signed up to there, though it has expired",
            attacks.honest_local_revocation,
        ),
        (
            f"{key} after its rotation",
            "signature",
            attacks.old_key_after_rotation,
            "a rotation and the new key",
            attacks.honest_rotation,
        ),
    )
    return tuple(GitAttack(*row, format=format_) for row in rows)


ROWS = (
    *_rows("openpgp", "an OpenPGP key", "an OpenPGP signature", "another OpenPGP key in the same name"),
    *_rows("x509", "a certificate", "a certificate's signature", "another certificate in the same name by its issuer"),
)
