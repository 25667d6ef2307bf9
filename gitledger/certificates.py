"""X.509 certificates as a ledger carries them: `x509` and the one certificate in base64, in one line. Pure.

Only the form is read here, and the fingerprint; who signed what is said by `cms`. Who issued a certificate has no say
in whether its owner is believed, so the chain is not carried: every signature by gpgsm brings it along.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from gitledger import der
from gitledger.errors import BadData

WORD = "x509"
LONGEST = 15_000
"""Characters of a line; a text of an event may have a few more."""


def line(certificate: bytes) -> str:
    """A certificate as one line; BadData for what is not exactly one, or is too long to be carried."""
    fingerprint(certificate)
    text = f"{WORD} {base64.b64encode(certificate).decode()}"
    if len(text) > LONGEST:
        raise BadData(f"the certificate is {len(certificate):,} bytes long, more than a ledger carries; use another")
    return text


def carried(text: str) -> bytes:
    """The certificate (DER) in such a line; BadData for any other."""
    word, _, rest = text.partition(" ")
    try:
        if word != WORD or len(text) > LONGEST:
            raise ValueError("no such line")
        found = base64.b64decode(rest, validate=True)
    except (ValueError, binascii.Error) as e:
        raise BadData(f"{text[:40]!r} is no certificate: one looks like `x509 MIID…`") from e
    fingerprint(found)
    return found


def fingerprint(certificate: bytes) -> str:
    """The SHA-256 of one certificate, 64 digits in upper case, as `openssl x509 -fingerprint -sha256` has it."""
    issued(certificate)
    return hashlib.sha256(certificate).hexdigest().upper()


def issued(certificate: bytes) -> tuple[bytes, bytes]:
    """Who issued a certificate and under which number, both as they stand in it: what a signature names it by."""
    try:
        outer = der.sequence(certificate)
        if [part.tag for part in outer] != [der.SEQUENCE, der.SEQUENCE, der.BIT_STRING]:
            raise ValueError("its parts are others")
        inner = der.elements(outer[0].body)
        number, _, issuer = inner[1:4] if inner[0].tag == 0xA0 else inner[:3]
        if (number.tag, issuer.tag) != (der.INTEGER, der.SEQUENCE):
            raise ValueError("its parts are others")
    except (ValueError, IndexError) as e:
        raise BadData("a certificate is damaged, or not one alone: export it again with `gpgsm --export`") from e
    return issuer.whole, number.whole
