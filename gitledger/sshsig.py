"""SSH signatures checked in process, by the `cryptography` package; what it cannot do goes to `ssh-keygen`.

The format is OpenSSH's PROTOCOL.sshsig. It is parsed strictly: no byte more or less than the format has. All that is
mathematics is `cryptography`'s (OpenSSL's). ssh-keygen takes ten milliseconds for what takes a tenth of one here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gitledger import signing
from gitledger.errors import BadSignature
from gitledger.signing import NAMESPACE, PublicKey
from gitledger.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric import ec, rsa

_ARMOR = re.compile(r"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/]{1,76}={0,2}\n)+)-----END SSH SIGNATURE-----\n?")
_ED25519_LONG = 173
"""Bytes of a signature by an ed25519 key, hashed by either function."""
_LONGEST = 16384  # characters; an RSA key of 8,192 bits makes a third of that
_KINDS = {  # the signature's own name for each type of key that is checked here
    b"ssh-ed25519": (b"ssh-ed25519",),
    b"ecdsa-sha2-nistp256": (b"ecdsa-sha2-nistp256",),
    b"ecdsa-sha2-nistp384": (b"ecdsa-sha2-nistp384",),
    b"ecdsa-sha2-nistp521": (b"ecdsa-sha2-nistp521",),
    b"ssh-rsa": (b"rsa-sha2-512", b"rsa-sha2-256"),  # never ssh-rsa itself, which is SHA-1
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What an armored signature holds, its form checked; nothing is proved by that."""

    key: bytes
    digest: str
    kind: bytes
    value: bytes

    def signed(self, payload: bytes) -> bytes:
        """The bytes that were signed for `payload`."""
        hashed = hashlib.new(self.digest, payload).digest()
        words = (NAMESPACE.encode(), b"", self.digest.encode(), hashed)
        return b"SSHSIG" + b"".join(len(word).to_bytes(4, "big") + word for word in words)


def read(armored: str) -> Signature:
    """The parts of an armored signature for git; BadSignature for any other namespace, version or form."""
    try:
        found = _ARMOR.fullmatch(armored) if len(armored) <= _LONGEST else None
        if found is None:
            raise ValueError("it is no SSH signature")
        blob = base64.b64decode(found[1].replace("\n", ""), validate=True)
        if len(blob) == _ED25519_LONG and (shape := _ed25519(blob[:-64])):
            return Signature(shape.key, shape.digest, shape.kind, blob[-64:])
        return _parts(blob)
    except (ValueError, binascii.Error) as e:
        raise BadSignature(f"a signature is not one that git takes: {e}") from e


@lru_cache(maxsize=64)
def _ed25519(head: bytes) -> Signature | None:
    """What all signatures by one ed25519 key begin with, parsed once; None where it is not that, or none at all."""
    try:
        shape = _parts(head + bytes(64))
    except ValueError:
        return None
    return shape if shape.kind == b"ssh-ed25519" and shape.value == bytes(64) else None


def _parts(blob: bytes) -> Signature:
    if blob[:10] != b"SSHSIG\0\0\0\1":
        raise ValueError("it is no SSHSIG of version 1")
    key, namespace, reserved, digest, signature = _strings(blob[10:], 5)
    if namespace != NAMESPACE.encode():
        raise ValueError(f"it was made for {namespace[:40].decode('ascii', 'backslashreplace')!r} and not for git")
    if reserved:
        raise ValueError("it holds more than it should")
    if digest not in (b"sha512", b"sha256"):
        raise ValueError("it is hashed by another function than sha512 or sha256")
    kind, rest = _string(signature)
    value, rest = _string(rest)
    if rest and not kind.startswith(b"sk-"):  # a security key's flags and counter follow its signature
        raise ValueError("it holds more than it should")
    return Signature(key, digest.decode(), kind, value)


def check(payload: bytes, armored: str) -> PublicKey:
    """The key that made `armored` over `payload` for git, whoever's it is; BadSignature where none did."""
    made = read(armored)
    key = public_key(made.key)
    verifier = _verifier(made.key)
    if verifier is None:
        # A type of key that is not checked here, or no `cryptography` package.
        signing.verify(payload, armored, signing.allowed_signers_line(_ANYBODY, key.line).encode(), _ANYBODY)
        return key
    if made.kind not in _KINDS[key.line.split(" ", 1)[0].encode()]:
        raise BadSignature(f"the signature by {key.fingerprint} is of another type than its key")
    if not verifier(made, payload):
        raise BadSignature(f"the signature by {key.fingerprint} is not over these bytes")
    return key


def verify(payload: bytes, armored: str, allowed_signers: bytes, principal: str) -> None:
    """BadSignature unless `armored` is over `payload`, for git, by a key that `allowed_signers` gives `principal`.

    What `signing.verify` says, without a child.
    """
    line = check(payload, armored).line
    if signing.allowed_signers_line(principal, line).encode() not in allowed_signers.splitlines(keepends=True):
        raise BadSignature(f"the signature is by {public_key(_blob(line)).fingerprint}, which is no key of {principal}")


@lru_cache(maxsize=256)
def public_key(blob: bytes) -> PublicKey:
    """A public key's line and fingerprint from its bytes; BadSignature where they are no key."""
    try:
        kind, _ = _string(blob)
        if not re.fullmatch(rb"[a-z0-9@.-]+", kind):
            raise ValueError("no type of key")
    except ValueError as e:
        raise BadSignature(f"a signature names no public key ({e})") from e
    digest = base64.b64encode(hashlib.sha256(blob).digest()).rstrip(b"=").decode()
    return PublicKey(f"{kind.decode()} {base64.b64encode(blob).decode()}", f"SHA256:{digest}")


_ANYBODY = "anybody"


# ── the mathematics, which is cryptography's ─────────────────────────────────────────────────
@lru_cache(maxsize=64)
def _verifier(blob: bytes) -> Callable[[Signature, bytes], bool] | None:
    """What says whether a signature by this key is over a payload; None where only ssh-keygen can say."""
    kind = blob[4 : 4 + int.from_bytes(blob[:4], "big")]
    if kind not in _KINDS:
        return None
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    except ImportError:
        return None
    try:
        proved = _edwards(blob) if kind == b"ssh-ed25519" else _other(blob)
    except (ValueError, UnsupportedAlgorithm) as e:
        raise BadSignature(f"a signature names a damaged public key of type {kind.decode()}") from e

    def good(made: Signature, payload: bytes) -> bool:
        try:
            proved(made, payload)
        except (InvalidSignature, ValueError):
            return False
        return True

    return good


def load() -> None:
    """Load what a check needs when it is first made, for whoever has the time now."""
    import cryptography.exceptions
    import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401


def _edwards(blob: bytes) -> Callable[[Signature, bytes], None]:
    # read here, and not by cryptography's reader of SSH keys, which loads every kind of key that there is
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    _, point = _strings(blob, 2)
    key = Ed25519PublicKey.from_public_bytes(point)
    return lambda made, payload: key.verify(made.value, made.signed(payload))


def _other(blob: bytes) -> Callable[[Signature, bytes], None]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    kind, _ = _string(blob)
    key = load_ssh_public_key(kind + b" " + base64.b64encode(blob))

    def proved(made: Signature, payload: bytes) -> None:
        if isinstance(key, ec.EllipticCurvePublicKey):
            _ecdsa(key, made, payload)
        elif isinstance(key, rsa.RSAPublicKey):
            _rsa(key, made, payload)
        else:
            raise ValueError("no key of its own kind")

    return proved


def _ecdsa(key: ec.EllipticCurvePublicKey, made: Signature, payload: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    first, second = _strings(made.value, 2)
    r, s = int.from_bytes(first, "big", signed=True), int.from_bytes(second, "big", signed=True)
    if r <= 0 or s <= 0:
        raise ValueError("no number that a signature can hold")
    sizes = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
    key.verify(utils.encode_dss_signature(r, s), made.signed(payload), ec.ECDSA(sizes[key.curve.key_size]))


def _rsa(key: rsa.RSAPublicKey, made: Signature, payload: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    if key.key_size < 2048:  # what ssh-keygen refuses by default is 1,024; weaker than 2,048 is no proof any more
        raise ValueError("a key that short proves nothing")
    digest = hashes.SHA512() if made.kind == b"rsa-sha2-512" else hashes.SHA256()
    key.verify(made.value.rjust((key.key_size + 7) // 8, b"\0"), made.signed(payload), padding.PKCS1v15(), digest)


# ── SSH's wire format ────────────────────────────────────────────────────────────────────────
def _string(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ValueError("it is cut off")
    return data[4 : 4 + size], data[4 + size :]


def _strings(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` strings, and nothing behind them."""
    found = []
    for _ in range(count):
        one, data = _string(data)
        found.append(one)
    if data:
        raise ValueError("it holds more than it should")
    return found


def _blob(line: str) -> bytes:
    return base64.b64decode(line.split(" ")[1])
