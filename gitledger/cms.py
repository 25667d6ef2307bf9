"""CMS signatures (RFC 5652), as git has them made by gpgsm, checked in process by the `cryptography` package.

The form is parsed strictly: one signer, nothing enclosed, signed attributes. Whoever issued the certificate, and its
dates, have no say: a ledger's writer is believed by the fingerprint that is pinned, up to a place in the chain.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gitledger import certificates, der
from gitledger.errors import BadSignature, Missing, Unsupported
from gitledger.values import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

BEGIN = "-----BEGIN SIGNED MESSAGE-----"

_ARMOR = re.compile(BEGIN + r"\n((?:[A-Za-z0-9+/]{1,76}={0,2}\n)+)-----END SIGNED MESSAGE-----\n?")
_LONGEST = 1 << 17  # characters; a signature brings the certificates of its chain
_DATA, _SIGNED_DATA = "1.2.840.113549.1.7.1", "1.2.840.113549.1.7.2"
_CONTENT_TYPE, _MESSAGE_DIGEST = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4"
_DIGESTS = {  # a forger can choose two texts for an older one
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
_RSA = {
    "1.2.840.113549.1.1.1": "",  # hashed as the signer says
    "1.2.840.113549.1.1.11": "sha256",
    "1.2.840.113549.1.1.12": "sha384",
    "1.2.840.113549.1.1.13": "sha512",
}
_ECDSA = {"1.2.840.10045.4.3.2": "sha256", "1.2.840.10045.4.3.3": "sha384", "1.2.840.10045.4.3.4": "sha512"}
_ED25519 = {"1.3.101.112": "sha512"}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signature holds, its form checked; nothing is proved by that. `signed` are the bytes that it is over."""

    issuer: bytes
    number: bytes
    digest: str
    hashed: bytes
    signed: bytes
    kind: str
    value: bytes


def check(payload: bytes, armored: str, certificate: bytes) -> None:
    """BadSignature unless `armored` is over `payload` by the key of this very certificate (DER).

    Missing where there is no `cryptography` package.
    """
    made = read(armored)
    if (made.issuer, made.number) != certificates.issued(certificate):
        raise BadSignature(f"the signature is not by the certificate {certificates.fingerprint(certificate)}")
    if made.hashed != hashlib.new(made.digest, payload).digest() or not _good(made, certificate):
        whose = certificates.fingerprint(certificate)
        raise BadSignature(f"the signature by the certificate {whose} is not over these bytes")


def usable(certificate: bytes) -> None:
    """Unsupported unless signatures by this certificate's key can be checked here."""
    _key(certificate)


def read(armored: str) -> Signature:
    """The parts of an armored signature; BadSignature for one in any other form."""
    try:
        found = _ARMOR.fullmatch(armored) if len(armored) <= _LONGEST else None
        if found is None:
            raise ValueError("it is no signed message")
        return _parts(base64.b64decode(found[1].replace("\n", ""), validate=True))
    except (ValueError, binascii.Error) as e:
        raise BadSignature(f"a signature is not one that git takes: {e}") from e


def _parts(blob: bytes) -> Signature:
    outer = der.sequence(blob, indefinite=True)
    if len(outer) != 2 or der.oid(outer[0]) != _SIGNED_DATA or outer[1].tag != 0xA0:
        raise ValueError("it is no signed data")
    _, _, content, *others = _some(der.sequence(outer[1].body, indefinite=True), 4)
    kind = der.elements(content.body, indefinite=True)
    if content.tag != der.SEQUENCE or len(kind) != 1 or der.oid(kind[0]) != _DATA:
        raise ValueError("it encloses what it is over, or is of another kind")
    if [part.tag for part in others] not in ([0x31], [0xA0, 0x31], [0xA0, 0xA1, 0x31], [0xA1, 0x31]):
        raise ValueError("its parts are others")
    signers = der.elements(others[-1].body, indefinite=True)
    if len(signers) != 1 or signers[0].tag != der.SEQUENCE:
        raise ValueError(f"it has {len(signers)} signers instead of one")
    return _signer(der.elements(signers[0].body, indefinite=True))


def _signer(parts: list[der.Element]) -> Signature:
    """What the one signer says; the attributes, which are what is signed, are held to the strict form."""
    tags = [part.tag for part in parts]
    if tags not in (_SIGNER, [*_SIGNER, 0xA1]):
        raise ValueError("its signer signs no attributes, or is named in another way")
    issuer, number = _some(der.elements(parts[1].body), 2)[:2]
    digest = _DIGESTS.get(_method(parts[2]), "")
    kind = _method(parts[4])
    said: dict[str, der.Element] = {}
    for attribute in der.elements(parts[3].body):
        name, values = _some(der.elements(attribute.body), 2)[:2]
        if attribute.tag != der.SEQUENCE or values.tag != der.SET or der.oid(name) in said:
            raise ValueError("an attribute is none, or there twice")
        said[der.oid(name)] = values
    content, hashed = (
        der.elements(said[name].body) if name in said else [] for name in (_CONTENT_TYPE, _MESSAGE_DIGEST)
    )
    if len(content) != 1 or der.oid(content[0]) != _DATA or len(hashed) != 1 or hashed[0].tag != der.OCTET_STRING:
        raise ValueError("its attributes do not say what it is over")
    by = next((table[kind] for table in (_RSA, _ECDSA, _ED25519) if kind in table), None)
    if not digest or by is None or by not in ("", digest):
        raise ValueError("it is made by a method or a digest that is not taken")
    # Signed is the set, while what stands here is tagged as a field (RFC 5652, 5.4).
    return Signature(
        issuer.whole, number.whole, digest, hashed[0].body, b"\x31" + parts[3].whole[1:], kind, parts[5].body
    )


def _method(part: der.Element) -> str:
    name, *parameters = _some(der.elements(part.body), 1)
    if [one.whole for one in parameters] not in ([], [b"\x05\0"]):
        raise ValueError("a method of it has parameters that none has")
    return der.oid(name)


def _some(found: list[der.Element], least: int) -> list[der.Element]:
    if len(found) < least:
        raise ValueError("a part of it is missing")
    return found


_SIGNER = [der.INTEGER, der.SEQUENCE, der.SEQUENCE, 0xA0, der.SEQUENCE, der.OCTET_STRING]


# ── the mathematics, which is cryptography's ─────────────────────────────────────────────────
@lru_cache(maxsize=64)
def _key(certificate: bytes) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey:
    try:
        from cryptography import x509
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    except ImportError:
        raise Missing("certificates are checked by the cryptography package: install it with pip") from None
    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm) as e:
        raise Unsupported(f"the certificate {certificates.fingerprint(certificate)} cannot be read: use another") from e
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size >= 256:
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    whose = certificates.fingerprint(certificate)
    raise Unsupported(f"the key of the certificate {whose} is too short, or of a type not supported: use another")


def _good(made: Signature, certificate: bytes) -> bool:
    try:
        key = _key(certificate)
    except Unsupported as e:
        raise BadSignature(str(e)) from e
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    digest = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}[made.digest]
    try:
        if isinstance(key, rsa.RSAPublicKey):
            if made.kind not in _RSA:
                return False
            key.verify(made.value, made.signed, padding.PKCS1v15(), digest)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            if made.kind not in _ECDSA:
                return False
            key.verify(made.value, made.signed, ec.ECDSA(digest))
        elif made.kind in _ED25519:
            key.verify(made.value, made.signed)
        else:
            return False
    except (InvalidSignature, ValueError):
        return False
    return True
