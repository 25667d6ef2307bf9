"""Hashes of little: names, seals and objects of some hundred bytes.

Without OpenSSL, whose loading takes as long as hashing a thousand of them; what is hashed in bulk goes by `hashlib`,
which is several times faster there.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from _hashlib import HASH
    from hashlib import sha1
    from hashlib import sha256 as sha256
else:
    try:
        from _sha1 import sha1

        try:
            from _sha256 import sha256  # Python 3.11
        except ImportError:
            from _sha2 import sha256  # since 3.12
    except ImportError:
        from hashlib import sha1, sha256  # a Python that was built without

_LITTLE = 1 << 16  # bytes that OpenSSL would take milliseconds less for than it takes to load


def of(algorithm: str, data: bytes) -> HASH:
    """The hash of `data` by `sha1` or `sha256`, by OpenSSL where that is loaded already or `data` is long."""
    if len(data) < _LITTLE and "_hashlib" not in sys.modules:
        return (sha1 if algorithm == "sha1" else sha256)(data, usedforsecurity=False)
    import hashlib

    return hashlib.new(algorithm, data, usedforsecurity=False)
