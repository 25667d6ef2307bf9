"""Text from records, made safe to show: to people on a terminal, in Markdown on a git host, and to models.

Text is data, whoever wrote it. Nothing here filters meaning; it only makes sure that text cannot hide, move,
or close the place that it is shown in. Every function is total: any str goes in, lone surrogates too.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from gitledger.patterns import pattern
from gitledger.redact import Clean

# Characters that are drawn as nothing or that move what stands around them. Line feed and tab stay. A variation
# selector stays where it follows a visible character, because emoji need it; a second one would carry hidden data.
_UNSEEN = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(1, 17))
    + "]|(?:(?<![\\s\\S])|(?<=[\\s\ufe0e\ufe0f]))[\ufe0e\ufe0f]"
)
_DRAWN_AS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f")
"""Those of them below U+3000 that Unicode calls printable."""
_PUNCTUATION = "!-/:-@\\[-`{-~"
# What Markdown or HTML reads as more than itself. `_` inside a word, `\` before a letter, `>` and `&` in prose are only
# themselves and stay readable: paths, names and arrows are most of what is shown.
_INLINE = pattern(
    r"(?P<mention>(?<![A-Za-z0-9_])@[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9_])?)"
    rf"|(?P<escape>\\(?=[{_PUNCTUATION}]|\Z)|[`*\[\]|~$]|(?<![^\W_])_+|_++(?![^\W_])|!(?=\[)|\A[#+=>-]|(?<= )#+\Z)"
    r"|(?P<number>\A\d{1,9}(?=[.)]))"
    r"|<|&(?=#?\w{1,32};)"
)
_ADDRESS = pattern(r"(?:://|www\.)\S*\Z")
_OPEN, _CLOSE = "<<<", ">>>"
_BLOCKS = ("[project ledger", "[/project ledger")


def visible(text: str) -> str:
    """`text` with every unseen character written out, as `\\u{202e}`; `\\r\\n` is a line feed.

    A second run changes nothing. It is for reading, not for undoing: text that spells `\\u{202e}` looks the same.
    Letters are not normalised: what was written is what is shown.
    """
    if text.isascii() and text.isprintable():
        return text  # nearly every text, at a tenth of the cost
    rows = text.replace("\n", "")
    if rows.isprintable() and max(rows, default="") < "\u3000" and _DRAWN_AS_NOTHING.isdisjoint(rows):
        return text  # a whole document, mostly; and the pattern below takes longer to compile than all else here
    return _UNSEEN.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text.replace("\r\n", "\n"))


def line(text: str, limit: int | None = None) -> str:
    """`text` visible, on one line: any white space, line ends too, is one space; cut to `limit` characters with `…`."""
    flat = _flat(text, limit)
    if limit is None or len(flat) <= limit:
        return flat
    at = max(0, limit - 1)
    while at and (unicodedata.category(flat[at])[0] == "M" or "\U0001f3fb" <= flat[at] <= "\U0001f3ff"):
        at -= 1  # an accent or a skin tone stays with its letter, or goes with it
    opened = flat.rfind("\\u{", max(0, at - 9), at)
    if opened >= 0 and "}" not in flat[opened:at]:
        at = opened
    return flat[:at].rstrip() + "…"


def _flat(text: str, limit: int | None) -> str:
    # Of a long text no more is looked at than is shown; what a cut through `\r\n` makes of it lies behind that.
    size = 4 * (limit or 0) + 64
    while limit is not None and size < len(text):
        flat = " ".join(visible(text[:size]).split())
        if len(flat) > limit + 8:
            return flat
        size *= 4
    return " ".join(visible(text).split())


@lru_cache(maxsize=512)  # documents of one task say the same goal, criteria and paths again and again
def inline(text: str, limit: int | None = None) -> str:
    """`text` on one line of Markdown, shown as it is by CommonMark and by git hosts.

    No markup, link, image or HTML comes of it, and a mention is shown as code (inside an address, as `%40`), so that
    nobody is pinged. A bare http address stays one. At most `limit` characters are shown.
    """
    return _INLINE.sub(_escaped, line(text, limit))


def cell(text: str, limit: int | None = None) -> str:
    """`text` as one cell of a Markdown table."""
    return inline(text, limit)


def block(text: str) -> str:
    """`text` as a fenced block of Markdown, its lines kept; no line of it can close the fence."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def quote(text: str) -> str:
    """`text` as a Markdown quotation, line by line; "" for an empty text."""
    rows = [inline(row) for row in visible(text).split("\n")] if text else []
    return "\n".join(f"> {row}" if row else ">" for row in rows)


def fenced(text: str, label: str) -> str:
    """`text` as data between `<<< label` and `>>> label`, for models, who read plain text.

    A line of `text` that begins like a fence or the edge of a capsule, also in full-width characters or behind white
    space or backslashes, gets one more backslash in front. So no line of it equals a fence, and taking one backslash
    off such lines gives back what was there.
    """
    name = re.sub(r"[^A-Za-z0-9 ._@:/-]", "", line(label, 60)).strip()
    rows = [f"\\{row}" if _like_a_fence(row) else row for row in visible(text).split("\n")]
    return "\n".join([f"{_OPEN} {name}".rstrip(), *rows, f"{_CLOSE} {name}".rstrip()])


def quoted(text: str, limit: int) -> str:
    """`text` on one line between quotation marks that no mark of its own can close."""
    return '"' + line(text, limit).replace('"', "'") + '"'


def slug(title: Clean, limit: int = 40) -> str:
    """`title` as part of a file name: `[a-z0-9-]`, at most `limit` long, cut between words; "" if nothing is left.

    In lower case and without its marks no rule would know a secret again, so it must be clean before.
    """
    words = dashed(title)
    if len(words) <= limit:
        return words
    cut = words[: limit + 1].rpartition("-")[0] or words[:limit]
    return cut.strip("-")


def dashed(text: str) -> str:
    """The letters and digits of `text`, in lower case and with a dash for anything else: what a slug is cut from."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if match["mention"]:
        before = match.string[max(0, match.start() - 300) : match.start()]
        # inside an address a code span would break, or be swallowed by, the link that hosts make of it
        return f"%40{found[1:]}".replace("_", "\\_") if _ADDRESS.search(before) else f"`{found}`"
    if match["number"]:
        return f"{found}\\"
    if not match["escape"]:
        return "&lt;" if found == "<" else "&amp;"
    if found == "$" and match.string.find("$") == match.string.rfind("$"):
        return found  # only a pair of them is mathematics on a git host
    return "".join(f"\\{character}" for character in found)


def _like_a_fence(row: str) -> bool:
    start = unicodedata.normalize("NFKC", re.sub(r"\A[\s\\]+", "", row)[:24])
    return start.startswith((_OPEN, _CLOSE)) or start.casefold().startswith(_BLOCKS)
