"""Private keys in text: whole blocks, and ones that were cut at either end."""

from __future__ import annotations

import re
from collections.abc import Callable

_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_GAP = r"(?:\\[rn]|[\s>|*#\"',-])*"
_BODY = re.compile(
    rf"(?:{_GAP}(?:[A-Za-z0-9+/]{{16,}}+={{0,2}}|(?:Proc-Type|DEK-Info|Comment|Version|Private-Lines):[^\n\\]*+))+"
    rf"(?:(?:\\[rn]|\n)[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=\\[rn]|\s*\n|\Z))?"
)
_BODY_REVERSED = re.compile(r"(?:(?:[nr]\\|[\s>|*#\"',-])*(?:={0,2}[A-Za-z0-9+/]{4,}+))+")
_PUTTY = re.compile(rf"(?<=Private-Lines: )\d{{1,4}}{_BODY.pattern}")
_ENOUGH = re.compile(r"[A-Za-z0-9+/]{16}")
_LONGEST = 32_768


def private_keys(text: str, mark: Callable[[str, int, int], str]) -> str:
    """`text` with every private key replaced by what `mark` says for its name and place."""
    text = _replaced(text, _blocks(text), mark)
    if "Private-Lines" not in text:
        return text
    return _replaced(text, [match.span() for match in _PUTTY.finditer(text)], mark)


def _blocks(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    done = 0
    ends = [match.span() for match in _END.finditer(text)]
    begins = [match.span() for match in _BEGIN.finditer(text)]

    def take(start: int, end: int) -> None:
        nonlocal done
        found.append((start, end))
        done = end

    for i, (start, body) in enumerate(begins):
        following = begins[i + 1][0] if i + 1 < len(begins) else len(text)
        while ends and ends[0][0] < body:
            if (orphan := _orphan(text, done, *ends.pop(0), limit=start)) is not None:
                take(*orphan)
        if ends and ends[0][0] < following and ends[0][0] - body <= _LONGEST:
            stop, block_end = ends.pop(0)
            if _ENOUGH.search(text, body, stop) is None:
                continue
        else:
            cut = _BODY.match(text, body, following)
            if cut is None:
                continue
            block_end = cut.end()
        take(start, block_end)
    for start, end in ends:
        if (orphan := _orphan(text, done, start, end, limit=start)) is not None:
            take(*orphan)
    return found


def _orphan(text: str, done: int, start: int, end: int, limit: int) -> tuple[int, int] | None:
    """Where the tail of a key stands whose BEGIN was cut away, its END from `start` to `end`."""
    if start > limit or start < done:
        return None
    lines = _BODY_REVERSED.match(text[max(done, start - _LONGEST) : start][::-1])
    if lines is None or _ENOUGH.search(lines[0]) is None:
        return None
    return start - lines.end(), end


def _replaced(text: str, spans: list[tuple[int, int]], mark: Callable[[str, int, int], str]) -> str:
    parts, done = [], 0
    for start, end in spans:
        parts += [text[done:start], mark("private-key", start, end)]
        done = end
    return "".join([*parts, text[done:]])
