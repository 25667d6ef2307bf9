"""OpenPGP public keys as a ledger carries them: `openpgp` and the exported key in base64, in one line. Pure.

Only the form is read here, and the fingerprint; who signed what is said by GnuPG (`gitsigner`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator

from gitledger.errors import BadData

WORD = "openpgp"
LONGEST = 15_000
"""Characters of a line; a text of an event may have a few more."""

_PRIMARY, _USER, _SUBKEY, _SIGNATURE, _ATTRIBUTE = 6, 13, 14, 2, 17


def line(export: bytes) -> str:
    """An exported key as one line; BadData for what is not exactly one public key, or is too long to be carried."""
    fingerprint(export)
    text = f"{WORD} {base64.b64encode(export).decode()}"
    if len(text) > LONGEST:
        raise BadData(
            f"the public key is {len(export):,} bytes long, more than a ledger carries; sign with another one"
        )
    return text


def exported(text: str) -> bytes:
    """The exported key in such a line; BadData for any other."""
    word, _, rest = text.partition(" ")
    try:
        if word != WORD or len(text) > LONGEST:
            raise ValueError("no such line")
        found = base64.b64decode(rest, validate=True)
    except (ValueError, binascii.Error) as e:
        raise BadData(f"{text[:40]!r} is no OpenPGP public key: one looks like `openpgp mQIN…`") from e
    fingerprint(found)
    return found


def fingerprint(export: bytes) -> str:
    """The fingerprint of the one primary key of an export, 40 digits in upper case."""
    primary = b""
    for n, (tag, body) in enumerate(_packets(export)):
        if (n == 0) != (tag == _PRIMARY):
            raise BadData("an OpenPGP public key is not exactly one: export it again with `gpg --export`")
        if tag not in (_PRIMARY, _USER, _SUBKEY, _SIGNATURE, _ATTRIBUTE):
            raise BadData(f"an OpenPGP public key holds a packet of type {tag}, which belongs in none")
        primary = primary or body
    if primary[:1] != b"\4":
        raise BadData("an OpenPGP public key is not of version 4, the only one that is supported; sign with another")
    counted = b"\x99" + len(primary).to_bytes(2, "big") + primary
    # SHA-1 is what the format names a key by; nothing here rests on it alone, GnuPG compares it with the whole key.
    return hashlib.new("sha1", counted, usedforsecurity=False).hexdigest().upper()


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        first, at = data[at], at + 1
        if not first & 0x80:
            raise BadData("an OpenPGP public key is damaged: export it again with `gpg --export`")
        if first & 0x40:
            tag, (size, width) = first & 0x3F, _new_length(data[at : at + 5])
        else:
            tag, width = first >> 2 & 0x0F, (1, 2, 4, 0)[first & 3]
            size = int.from_bytes(data[at : at + width], "big")
        body = data[at + width : at + width + size]
        if not width or len(body) != size:
            raise BadData("an OpenPGP public key is cut off, or in pieces: export it again with `gpg --export`")
        yield tag, body
        at += width + size


def _new_length(data: bytes) -> tuple[int, int]:
    """Length of a packet's body and of the length itself; (0, 0) for one in pieces, which no key is written in."""
    first = data[0] if data else 0
    if first < 192:
        return first, 1
    if first < 224:
        return (first - 192 << 8) + (data[1] if len(data) > 1 else 0) + 192, 2
    return (int.from_bytes(data[1:5], "big"), 5) if first == 255 else (0, 0)
