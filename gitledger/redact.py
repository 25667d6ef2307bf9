"""Secrets out, before anything is hashed: rules by format, never by entropy alone.

`redact` replaces what a rule knows by `[redacted:<rule>]` and leaves the rest as it is, so it can run twice without
harm. It lowers the risk that a key travels with a ledger; it does not promise that none does: a password in plain
prose has no format. What it returns is `Clean`, which nothing else can make: whoever writes to git asks for that type.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

from gitledger.errors import BadData, Unscanned
from gitledger.model import Json
from gitledger.patterns import pattern
from gitledger.typed import TypeAlias

__all__ = ["Clean", "CleanBytes", "bounded", "redact", "redact_json", "shortened", "within"]

DEEPEST = 100
"""Levels of lists and objects that `redact_json` enters; what lies deeper is named and dropped."""
MARGIN = 8_192
"""Characters of a long text that are read beyond what is kept, so that no secret is cut before a rule has seen it."""

Known: TypeAlias = tuple[tuple[str, str], ...]
"""Secrets that something else than the rules has found, with the name to put in their place."""

_REST = 1_024  # characters at the beginning of a cut text that may be the rest of a secret
_REMEMBERED = 4_096  # characters of a text whose reading is remembered

_PUBLIC = "public_key"
_SURROGATE = pattern(r"[\ud800-\udfff]")


class _Seal:
    """What only this module has: without it nothing can be called clean."""

    __slots__ = ()


_SEAL = _Seal()


class Clean(str):
    """A text that every rule has read. Only functions here make one; joined to another it is a plain `str` again."""

    __slots__ = ()

    def __new__(cls, text: str, seal: _Seal) -> Clean:
        """Not for callers: `redact` is."""
        if seal is not _SEAL:
            raise TypeError("a text is made clean by gitledger.redact.redact, and by nothing else")
        return super().__new__(cls, text)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # a copy by way of bytes is no longer known to be clean

    def __deepcopy__(self, memo: object) -> Clean:
        return self


class CleanBytes(bytes):
    """Bytes made of clean texts alone: a journal's lines, and what is rendered from the records that they add up to."""

    __slots__ = ()

    def __new__(cls, data: bytes, seal: _Seal) -> CleanBytes:
        """Not for callers: `of_events` says who."""
        if seal is not _SEAL:
            raise TypeError("bytes are clean where they come of clean events, and nowhere else")
        return super().__new__(cls, data)


def of_events(data: bytes) -> CleanBytes:
    """`data` as clean, on the caller's word that it is a function of clean events alone.

    A test holds who may say so: `ingest` of journal lines, `render.tree` of the tree, `purge` of what it rewrites.
    """
    return CleanBytes(data, _SEAL)


# ── texts ────────────────────────────────────────────────────────────────────────────────────
def redact(text: str, known: Known = ()) -> Clean:
    """`text` with every secret that a rule knows replaced by `[redacted:<rule>]`; a second run changes nothing.

    So are the `known` ones. A lone surrogate becomes U+FFFD, so the answer can always be encoded. Raises Unscanned
    where the rules themselves fail: then nothing may be written.
    """
    # A log's lines say the same paths and prompts again and again, and reading a text costs more than all else.
    return _redact_once(text) if not known and len(text) <= _REMEMBERED else _redact(text, known)


@lru_cache(maxsize=1024)
def _redact_once(text: str) -> Clean:
    return _redact(text, ())


def _redact(text: str, known: Known) -> Clean:
    try:
        from gitledger import replacing  # the rules take longer to load than what reads a ledger

        text = _SURROGATE.sub("\ufffd", text)
        for secret, name in known:
            text = text.replace(secret, f"[redacted:{name}]")
        return Clean(replacing.replaced(text), _SEAL)
    except Exception as e:
        # What it says of itself may hold the text.
        raise Unscanned(
            f"the rules that take secrets out failed ({type(e).__name__}), so nothing was written; "
            "install gitledger anew, and report it where that does not mend it"
        ) from e


def bounded(text: Clean, limit: int) -> Clean:
    """`text`, or its beginning and a mark that says how many characters were cut: at most `limit` characters in all.

    The mark itself is never cut, so a limit below its size gives the mark alone. The cut does not part a
    letter from its accents, an emoji from its parts, or a `[redacted:…]` in the middle.
    """
    return _bounded(text, limit, 0)


def within(text: str, limit: int, known: Known = ()) -> Clean:
    """`text` redacted and bounded, reading no more of a very long one than it takes."""
    if len(text) <= limit + 2 * MARGIN:
        return bounded(redact(text, known), limit)
    unread = len(text) - limit - 2 * MARGIN
    clean = redact(text[: limit + 2 * MARGIN], known)
    # What was cut off may be the rest of a secret whose beginning no rule knew: so much of the end is not shown either.
    return _bounded(clean, min(limit, max(0, len(clean) - MARGIN)), unread)


def ending(text: str, limit: int, *, cut: bool) -> Clean:
    """The last `limit` characters of `text`, redacted; `cut` says that something stood before it already."""
    clean = redact(text)
    room = min(limit, max(0, len(clean) - _REST)) if cut else limit
    if not cut and len(clean) <= limit:
        return clean
    return Clean("[… earlier output cut]\n" + clean[len(clean) - room :], _SEAL)


def shortened(text: Clean, limit: int) -> Clean:
    """`text`, or its beginning and `…`: at most `limit` characters."""
    return text if len(text) <= limit else Clean(text[: limit - 1].rstrip() + "…", _SEAL)


def redact_json(value: Json, limit: int | None = None, known: Known = ()) -> Json:
    """`value` with every text in it redacted, keys too; a text under a key such as `password` is judged as its value.

    What stands under `public_key`, and is an OpenPGP key or a certificate, stays as it is. With a `limit` each text is
    bounded by it. Two keys that become equal stay apart by a number, so nothing is dropped but what lies deeper than
    `DEEPEST`.
    """
    read = (lambda text: redact(text, known)) if limit is None else (lambda text: within(text, limit, known))
    return _walk(value, "", DEEPEST, read)


def unmarked(text: str) -> str:
    """`text` without the marks that stand in secrets' places, for whoever looks through it again."""
    from gitledger.replacing import MARK

    return MARK.sub("", text)


def texts(value: Json) -> Iterator[str]:
    """Every text in `value`, keys too; what stands under a key such as `password` comes with it, as an assignment.

    Public keys are left out, as `redact_json` leaves them alone.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            if name == _PUBLIC and isinstance(item, str) and _is_public(item):
                continue
            yield from (f'{name} = "{text}"' for text in texts(item)) if isinstance(item, str) else texts(item)


# ── values, and where to cut ─────────────────────────────────────────────────────────────────
def _walk(value: Json, key: str, depth: int, read: Callable[[str], Clean]) -> Json:
    if isinstance(value, str):
        if key == _PUBLIC and _is_public(value):
            return Clean(value, _SEAL)
        return _under(key, read(value))
    if not isinstance(value, (dict, list)) or not value:
        return value
    if not depth:
        return Clean(f"[… nested deeper than {DEEPEST} levels, cut]", _SEAL)
    if isinstance(value, list):
        return [_walk(item, key, depth - 1, read) for item in value]
    clean: dict[str, Json] = {}
    called = next((n for name in ("name", "key") if isinstance(n := value.get(name), str)), "")
    for name, item in value.items():
        shown = read(name)
        number = 2
        while shown in clean:
            shown, number = redact(f"{read(name)}#{number}"), number + 1
        # `{"name": "API_TOKEN", "value": "…"}`: what the value is called stands beside it
        clean[shown] = _walk(item, called if name == "value" and called else name, depth - 1, read)
    return clean


def _is_public(text: str) -> bool:
    """True for a public key whose base64 is long enough to hold, by chance, what a rule takes for a token."""
    if not text.startswith(("openpgp ", "x509 ")):
        return False
    from gitledger import certificates, openpgp

    try:
        (openpgp.exported if text.startswith(openpgp.WORD) else certificates.carried)(text)
    except BadData:
        return False
    return True


def _under(key: str, value: Clean) -> Clean:
    """`value` judged by the key that it stands under."""
    from gitledger import keywords

    if keywords.secret_under(key, value):
        return Clean("[redacted:keyword]", _SEAL)
    if "authorization" in key[-20:].lower():
        head = "authorization: "
        return Clean(redact(head + value).removeprefix(head), _SEAL)
    return value


def _bounded(text: Clean, limit: int, unread: int) -> Clean:
    if not unread and len(text) <= limit:
        return text
    room = max(0, limit - len(_cut_mark(len(text) + unread)))
    keep = _edge(text, room)
    return Clean(text[:keep] + _cut_mark(len(text) + unread - keep), _SEAL)


def _cut_mark(count: int) -> str:
    return f"[… {count:,} characters cut]"


def _edge(text: str, at: int) -> int:
    """The nearest place at or before `at` where the text may be cut."""
    if at >= len(text):
        return len(text)
    from gitledger.replacing import MARK

    opened = text.rfind("[redacted:", max(0, at - 40), at + 9)
    if opened >= 0 and (mark := MARK.match(text, opened)) and mark.end() > at:
        at = opened
    for back in range(at, max(0, at - 32), -1):
        before, after = text[back - 1], text[back]
        if not (
            unicodedata.category(after) in ("Mn", "Mc", "Me")
            or after in "\u200d\ufe0e\ufe0f"
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or "\udc00" <= after <= "\udfff"
            or before == "\u200d"
            or (before == "\r" and after == "\n")
        ):
            return back
    return at
