"""X.509 certificates for tests, and what GnuPG needs to sign with them: no passphrase, and a root that is trusted.

Made by the `cryptography` package, so that dates, keys and chains are as a test says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

needs_gpgsm = pytest.mark.skipif(
    not (shutil.which("gpgsm") and shutil.which("gpg-agent")), reason="gpgsm is not here: signing by x509 is NOT TESTED"
)
Kind = Literal["rsa", "ec"]
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Made:
    """A certificate with its key, and the one above it (itself for a root)."""

    certificate: x509.Certificate
    key: Key
    issuer: Made | None = None

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def id(self) -> str:
        """What gpgsm names it by."""
        return self.certificate.fingerprint(hashes.SHA1()).hex().upper()


def make(
    name: str,
    issuer: Made | None = None,
    *,
    kind: Kind = "rsa",
    bits: int = 2048,
    until: datetime | None = None,
) -> Made:
    """A certificate for `name` that may sign; by itself a root, else by `issuer`."""
    key: Key = rsa.generate_private_key(65537, bits) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    said = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    end = until or datetime(2040, 1, 1, tzinfo=UTC)
    root = issuer is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(said)
        .issuer_name(issuer.certificate.subject if issuer else said)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2019, 1, 1, tzinfo=UTC) if end.year > 2020 else end - timedelta(days=900))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(root, None), critical=True)
        .add_extension(x509.KeyUsage(True, False, False, False, False, root, root, False, False), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.RFC822Name("ada@example.org")]), critical=False)
    )
    return Made(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key, issuer)


def install(home: Path, *made: Made) -> None:
    """Let the gpgsm of the GnuPG home `home` sign with these, and trust their roots."""
    (home / "private-keys-v1.d").mkdir(mode=0o700, exist_ok=True)
    env = {**os.environ, "GNUPGHOME": str(home)}
    for one in made:
        root = one
        chain = one.pem
        while root.issuer:
            root = root.issuer
            chain = root.pem + chain
        with (home / "trustlist.txt").open("a") as f:
            f.write(f"{root.id} S relax\n")
        gpgsm(env, "--import", text=chain)
        listed = gpgsm(env, "--with-colons", "--list-keys", "--", one.id).decode()
        grip = next(row.split(":")[9] for row in listed.splitlines() if row.startswith("grp"))
        path = home / "private-keys-v1.d" / f"{grip}.key"
        path.write_bytes(_expression(one.key))
        path.chmod(0o600)


def gpgsm(env: dict[str, str], *words: str, text: bytes = b"") -> bytes:
    """What gpgsm prints; a failure raises with its words."""
    done = subprocess.run(
        ["gpgsm", "--batch", "--no-tty", "--disable-dirmngr", "--disable-crl-checks", *words],
        input=text,
        capture_output=True,
        env=env,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def _expression(key: Key) -> bytes:
    """A private key in the form of the agent's own files, without a passphrase."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        secret = _integer(key.private_numbers().private_value)
        return b"(11:private-key(3:ecc(5:curve10:NIST P-256)(1:q%d:%s)(1:d%d:%s)))" % (
            len(point),
            point,
            len(secret),
            secret,
        )
    numbers = key.private_numbers()
    public = numbers.public_numbers
    values = {
        "n": public.n,
        "e": public.e,
        "d": numbers.d,
        "p": numbers.p,
        "q": numbers.q,
        "u": pow(numbers.p, -1, numbers.q),
    }
    rows = b"".join(
        b"(1:%s%d:%s)" % (name.encode(), len(data), data)
        for name, data in ((n, _integer(v)) for n, v in values.items())
    )
    return b"(11:private-key(3:rsa" + rows + b"))"


def _integer(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big")
