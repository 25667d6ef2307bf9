"""How many tokens a text is, as an estimate: no tokenizer is at hand here, and each model has another one. Pure.

Words, digits, marks and letters of other scripts are counted with weights that were fitted to three tokenizers over
real texts, and rounded up. How far off that is stands in docs/capsule.md.
"""

from __future__ import annotations

from functools import lru_cache

from gitledger.patterns import pattern

_WORD, _LONG, _LETTERS = 100, 30, 6
"""A word, and what each of its letters beyond the sixth adds, in hundredths of a token."""
_DIGIT, _MARK, _ACCENTED, _GREEK, _OTHER, _RARE, _BREAK = 65, 72, 165, 80, 100, 250, 100
"""What one character of a kind adds: digits, ASCII marks, accented letters, Greek to Hebrew, all others to U+FFFF, the
rest; and a line end. A space goes with the word that it stands before."""
# What is not ASCII is one run here: a pattern with those ranges takes longer to compile than a capsule to render.
_RUNS = pattern("([A-Za-z]+)|([0-9]+)|([!-/:-@\\[-`{-~\x00-\x08\x0e-\x1f\x7f]+)|([^\x00-\x7f]+)|( {2,}|[\t\x0b-\x0d]+)")


def estimate(text: str) -> int:
    """The tokens of `text`; never less for a text that another one begins with, or ends with at a line's end."""
    return -(-sum(_hundredths(row) + _BREAK for row in text.split("\n")) // 100) if text else 0


@lru_cache(maxsize=4096)  # fitting a text into a budget counts the same lines again and again
def _hundredths(row: str) -> int:
    total = 0
    for found in _RUNS.finditer(row):
        kind, length = found.lastindex or 0, found.end() - found.start()
        if kind == 1:
            total += _WORD + _LONG * max(0, length - _LETTERS)
        elif kind == 2:
            total += _DIGIT * length
        elif kind == 3:
            total += _MARK * length
        elif kind == 4:
            total += sum(map(_beyond, found[0]))
        else:
            total += _MARK
    return total


def _beyond(letter: str) -> int:
    if letter <= "\u024f" or "\u1e00" <= letter <= "\u1eff":
        return _ACCENTED
    return _GREEK if letter <= "\u05ff" else _OTHER if letter <= "\uffff" else _RARE
