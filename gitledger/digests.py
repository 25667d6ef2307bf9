"""SHA-256 of little: names and seals of some hundred bytes.

Without OpenSSL, whose loading takes as long as hashing a thousand of them; what is hashed in bulk goes by `hashlib`,
which is several times faster there.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from hashlib import sha256 as sha256
else:
    try:
        from _sha256 import sha256  # Python 3.11
    except ImportError:
        try:
            from _sha2 import sha256  # since 3.12
        except ImportError:
            from hashlib import sha256  # noqa: F401 (a Python that was built without)
