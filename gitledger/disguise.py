"""Text as it is meant, with the way back: what hides a secret from a rule is taken off before the rules look again.

What is taken off: characters that are drawn as nothing, colour codes, `\\u0041`, `\\x41` and `%41`, full-width letters.
Line ends in the middle of a word, as a terminal, a mail or a shell makes them, are found by `folds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitledger.patterns import pattern
from gitledger.values import dataclass

_SPECIAL = pattern(
    "(?P<nothing>[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+|\x1b\\[[0-9;:?]*[A-Za-z])"
    r"|(?<!\\)\\++(?:u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[2-7][0-9a-fA-F]))|%(?P<percent>[2-7][0-9a-fA-F])"
    "|(?P<wide>[\uff01-\uff5e])"
)
_RUN = pattern(r"[A-Za-z0-9_+/=.~-]+")
_RUNNING = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.~-")
# Where a word that reaches the end of its line may go on: behind a shell's `\`, or a mail's or a comment's mark.
_FOLD = pattern(r"\\?\r?\n[ \t]{0,12}(?:[>|#*]{1,3}[ \t]{0,4})?(?=[A-Za-z0-9_+/=.~-])")
_PIECES = 16
_NARROWEST = 16
_LONGEST = 4_096


@dataclass(frozen=True, slots=True)
class Bare:
    """A text without its disguise; `starts` and `ends` say for each of its characters where it stood."""

    text: str
    starts: list[int]
    ends: list[int]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` to `end` (not included) stood in the disguised text."""
        return self.starts[start], self.ends[end - 1]


def decoded(text: str) -> Bare | None:
    """`text` with every disguise but line ends taken off, or None where it wears none."""
    if text.isascii() and not any(sign in text for sign in ("\\", "%", "\x1b")):
        return None  # most texts: looking for each of the signs alone is many times faster
    if _SPECIAL.search(text) is None:
        return None
    return _without(text, _SPECIAL, list(range(len(text))), list(range(1, len(text) + 1)))


def folds(text: str) -> Iterator[list[tuple[int, int]]]:
    """Words that reach the end of their line, each with what may be its rest on the lines below: starts and ends."""
    for fold in _FOLD.finditer(text):
        start = fold.start()
        while start and fold.start() - start < _LONGEST and text[start - 1] in _RUNNING:
            start -= 1
        if start == fold.start():
            continue
        pieces = [(start, fold.start())]
        more: re.Match[str] | None = fold
        while more is not None and len(pieces) < _PIECES:
            run = _RUN.match(text, more.end())
            if run is None:
                break
            pieces.append(run.span())
            # What goes on further is a whole line of a token, and nobody wraps lines at a few characters.
            more = _FOLD.match(text, run.end()) if run.end() - run.start() >= _NARROWEST else None
        yield pieces


def _without(text: str, pattern: re.Pattern[str], starts: list[int], ends: list[int]) -> Bare:
    parts: list[str] = []
    new_starts: list[int] = []
    new_ends: list[int] = []
    done = 0
    for match in pattern.finditer(text):
        start, end = match.span()
        parts.append(text[done:start])
        new_starts += starts[done:start]
        new_ends += ends[done:start]
        meant = _meant(match)
        if meant:
            parts.append(meant)
            new_starts.append(starts[start])
            new_ends.append(ends[end - 1])
        done = end
    parts.append(text[done:])
    return Bare("".join(parts), new_starts + starts[done:], new_ends + ends[done:])


def _meant(match: re.Match[str]) -> str:
    found = match.groupdict()
    if digits := found.get("four") or found.get("two") or found.get("percent"):
        # Half a surrogate pair, or a control character, is no part of a token: a blank stands for it.
        code = int(digits, 16)
        return chr(code) if code >= 0x20 and not 0xD800 <= code <= 0xDFFF else "\n" if code == 10 else " "
    if wide := found.get("wide"):
        return chr(ord(wide) - 0xFEE0)
    return ""
