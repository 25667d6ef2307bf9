"""Made-up secrets: text as a machine would make it, the same in every run, put together so that no scanner stumbles."""

from __future__ import annotations

import base64
import hashlib
import string
import zlib

ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
BASE32 = string.ascii_uppercase + "234567"
HEX = "0123456789abcdef"
URL = ALNUM + "-_"
B64 = ALNUM + "+/"

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


def made(seed: str, length: int, alphabet: str = ALNUM) -> str:
    """Text of `length` characters that looks random, the same for the same seed."""
    found = ""
    n = 0
    while len(found) < length:
        for byte in hashlib.sha512(f"{seed}/{n}".encode()).digest():
            if byte < 256 - 256 % len(alphabet):
                found += alphabet[byte % len(alphabet)]
        n += 1
    return found[:length]


def checked(prefix: str, seed: str) -> str:
    """A token of GitHub's and npm's kind, whose last six characters are the checksum of the thirty before them."""
    body = made(seed, 30)
    value, digits = zlib.crc32(body.encode()), ""
    while value:
        value, digit = divmod(value, 62)
        digits = _BASE62[digit] + digits
    return prefix + body + digits.rjust(6, "0")


def uuid(seed: str) -> str:
    """A random UUID."""
    d = made(seed, 32, HEX)
    return f"{d[:8]}-{d[8:12]}-4{d[13:16]}-a{d[17:20]}-{d[20:]}"


def b64(text: str) -> str:
    """`text` in base64."""
    return base64.b64encode(text.encode()).decode()


def jwt(seed: str, claims: str = '{"role":"service_role","iss":"example","iat":1790000000}') -> str:
    """A JSON Web Token with a signature of 43 characters."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(claims.encode()).decode().rstrip("=")
    return f"{head}.{body}.{made(seed, 43, URL)}"


def pem(seed: str, kind: str, lines: int = 6, newline: str = "\n", width: int = 64) -> str:
    """A PEM block of a private key; `kind` such as `RSA PRIVATE KEY`."""
    rows = [made(f"{seed}{n}", width, B64) for n in range(lines)]
    return newline.join(
        ["-----" + f"BEGIN {kind}-----", *rows, made(seed, 22, B64) + "==", "-----" + f"END {kind}-----"]
    )


def leaks(text: str, secret: str) -> bool:
    """True where twelve characters of the secret in a row, or all of a shorter one, still stand in `text`."""
    size = min(len(secret), 12)
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))
