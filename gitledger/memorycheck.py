"""A memory file's change set held against the file: every rule, and every refusal with its path in the document. Pure.

What a model says of a file is believed nowhere: a block must be in it, the fact of a duplicate must stand where it is
said to, and what is left must be read by Markdown as it was before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

from gitledger.blocks import Lines, Span, Structure, end_of, structure
from gitledger.memoryset import Change, MemorySet
from gitledger.render.text import line as one_line
from gitledger.render.text import visible
from gitledger.schema import BadChangeSet
from gitledger.values import dataclass

SCHEMA = "memory"
COUNTED = 100
"""Places of one block that are looked for."""
HINTS = 10
"""Blocks that are not in the file for which a line that is like them is looked for."""
_PERMANENT = re.compile(r"\[permanent\\?\]", re.IGNORECASE)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
# What stands together: up to a space or a bracket, and up to a letter of a script that puts no space between words.
_RUN = re.compile(
    r"[^\s`*_<>()\[\]{}\"',;|\u00ab\u00b7\u00bb\u2018-\u201f\u2022\u2026\u2039\u203a\u2190-\u21ff"
    r"\u0e00-\u0e4f\u0e5a-\u0ecf\u1000-\u103f\u104a-\u108f\u1780-\u17df"
    r"\u3000-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]+"
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Edit:
    """One block that goes: `lines` lines from `first` on (counted from 0), and the text that stands there instead.

    `n` is the number of its change, from 1; a change of several blocks has its replacement at the first.
    """

    n: int
    kind: str
    reason: str
    first: int
    lines: int
    put: str = ""
    held_at: str = ""

    @property
    def span(self) -> Span:
        """The lines that go."""
        return self.first, self.first + self.lines


def edited(text: Lines, edits: Sequence[Edit]) -> Lines:
    """The file with these edits made, everything between them as it was."""
    made: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda one: one.first):
        made += text.lines[at : edit.first]
        made += [edit.put] if edit.put else []
        at = edit.first + edit.lines
    whole = "".join([*made, *text.lines[at:]])
    # Read anew: a replacement has lines of its own.
    from gitledger.blocks import split

    return Lines(text.mark, split(whole.encode(), "").lines)


def check(
    text: Lines,
    sha256: str,
    proposed: MemorySet,
    own: str,
    companions: Mapping[str, Lines],
    only: frozenset[int] | None = None,
) -> tuple[Edit, ...]:
    """The edits of a change set, in the order of the file; BadChangeSet with every refusal.

    `own` is the file's name, as a duplicate may name it beside the `companions`. `only` are the numbers, from 1, of
    the changes that a person has chosen: the others are as if they had not been proposed.
    """
    if proposed.source_sha256 != sha256:
        raise BadChangeSet(
            (f"source_sha256: is not that of {own} as it is now, {sha256}; read the file again and propose anew",),
            SCHEMA,
        )
    trial = _Trial(text, structure(text), own, companions)
    chosen = {n: one for n, one in enumerate(proposed.changes) if only is None or n + 1 in only}
    for n, change in chosen.items():
        trial.look(n, change)
    trial.together(chosen)
    if not trial.errors:
        trial.whole()
    if trial.errors:
        raise BadChangeSet(tuple(trial.errors), SCHEMA)
    return tuple(sorted(trial.edits, key=lambda edit: edit.first))


class _Trial:
    """A change set on its way through the rules."""

    def __init__(self, text: Lines, shape: Structure, own: str, companions: Mapping[str, Lines]) -> None:
        self.text, self.shape, self.own = text, shape, own
        self.companions = companions
        self.bare = [text.bare(n) for n in range(len(text.lines))]
        self.edits: list[Edit] = []
        self.errors: list[str] = []
        self._held_lines = {n for span in shape.permanent for n in range(*span)}
        words = [span for span in shape.blocks if shape.roles[span[0]][-1] == "paragraph+"]
        self._paragraphs = {n: span for span in words for n in range(*span)}
        self._items: dict[int, list[Span]] = {}
        for item in shape.items:
            self._items.setdefault(item[0], []).append(item)
        self._hints = HINTS
        self._places: dict[str, list[int]] = {}
        for n, line in enumerate(self.bare):
            self._places.setdefault(line, []).append(n)

    def refuse(self, where: str, what: str) -> None:
        self.errors.append(f"{where}: {what}")

    # ── one change ───────────────────────────────────────────────────────────────────────────
    def look(self, n: int, change: Change) -> None:
        """Find a change's blocks, and hold them against the rules of its kind."""
        at = f"changes[{n}]"
        spans = [self._find(f"{at}.original[{k}]", block) for k, block in enumerate(change.original)]
        found = [span for span in spans if span]
        for k, span in enumerate(spans):
            if span and (stays := next((n for n in range(*span) if n in self._held_lines), None)) is not None:
                what = "the front matter" if self.shape.roles[stays] == ("front",) else "[permanent]"
                self.refuse(f"{at}.original[{k}]", f"holds line {stays + 1}, which is {what} and stays")
        if len(found) < len(spans):
            return
        first = min(found)
        put = self._put(at, change, found)
        held = f"{change.held_at.file}:{change.held_at.line}" if change.held_at else ""
        reason = " ".join(change.reason.split())
        self.edits += [
            Edit(n + 1, change.kind, reason, low, high - low, put if (low, high) == first else "", held)
            for low, high in found
        ]
        self._units(at, found, first if put else None)
        self._headings(at, change, found)
        if change.kind == "merge":
            self._merge(at, found)

    def _find(self, where: str, block: str) -> Span | None:
        if "\r" in block:
            self.refuse(
                where, "holds a carriage return; give whole lines joined by \\n, whatever ends the file's lines have"
            )
            return None
        rows = block.split("\n")
        size = len(rows)
        found = (n for n in self._places.get(rows[0], ()) if self.bare[n : n + size] == rows)
        places = list(islice(found, COUNTED))
        if len(places) == 1:
            return places[0], places[0] + size
        if places:
            shown = ", ".join(str(n + 1) for n in places[:5])
            count = f"{len(places)} times{' and more' if len(places) == COUNTED else ''}"
            self.refuse(where, f"stands in the file {count}, at lines {shown}; add a line that tells them apart")
        else:
            self.refuse(where, f"is not in the file character for character{self._near(rows)}")
        return None

    def _near(self, rows: list[str]) -> str:
        from difflib import get_close_matches

        self._hints -= 1
        if self._hints < 0:
            return ""
        wanted = next((row for row in rows if row.strip()), "")[:400]
        lines = list(dict.fromkeys(line for line in self.bare if line.strip() and len(line) < 1_000))[:5_000]
        held = [line for line in lines if len(wanted.strip()) > 3 and wanted.strip() in line]
        close = held or get_close_matches(wanted, lines, 1, 0.7)
        if not close:
            return ""
        n = self._places[close[0]][0]
        return (
            f"; line {n + 1} is like it: {one_line(close[0], 120)}"
            if close[0] != wanted
            else f"; line {n + 1} is its first"
        )

    def _put(self, at: str, change: Change, spans: list[Span]) -> str:
        """The text of a replacement, with the file's own line ends."""
        if change.replacement is None:
            return ""
        where, wanted = f"{at}.replacement", change.replacement
        gone = "".join(self.text.lines[n] for low, high in spans for n in range(low, high))
        low, high = min(spans)
        end = end_of(self.text.lines[low:high]) if self.text.lines[low] != self.bare[low] else end_of(self.text.lines)
        last = self.text.lines[high - 1]
        put = wanted.replace("\n", end) + last[len(self.bare[high - 1]) :]
        if "\r" in wanted:
            self.refuse(where, "holds a carriage return; join its lines by \\n")
        elif strange := {c for c in wanted if visible(c) != c and c not in "\n\ufe0e\ufe0f" and c not in gone}:
            codes = ", ".join(sorted(f"U+{ord(c):04X}" for c in strange))
            self.refuse(where, f"holds what nobody can see: {codes}")
        if len(put.encode()) >= len(gone.encode()):
            self.refuse(where, "is not shorter than what it replaces")
        if _PERMANENT.search(wanted):
            self.refuse(where, "says [permanent], which only a person may write")
        said = _exact(gone)
        invented = [word for key, word in _exact(wanted).items() if key not in said]
        if invented:
            shown = ", ".join(one_line(word, 40) for word in invented[:5])
            self.refuse(where, f"says {shown}, which stands in none of the blocks that it replaces")
        return put

    def _units(self, at: str, spans: list[Span], replaced: Span | None) -> None:
        """Half a paragraph says something else, and what is nested in an item would go to the item before."""
        gone = {n for low, high in spans for n in range(low, high)}
        free = set(range(*replaced)) if replaced else set()
        paragraphs = {self._paragraphs[n] for n in gone if n in self._paragraphs}
        items = {span for n in gone for span in self._items.get(n, ())}
        for what, units in (("paragraph", paragraphs), ("list item", items)):
            for low, high in sorted(units):
                left = [n for n in range(low, high) if n not in gone and self.bare[n].strip()]
                if left and not free & set(range(low, high)):
                    said = f"takes a part of the {what} at line {low + 1}, and not line {left[0] + 1}"
                    self.refuse(at, f"{said}; take all of it, lines {low + 1} to {high}")
                    return

    def _headings(self, at: str, change: Change, spans: list[Span]) -> None:
        gone = {n for low, high in spans for n in range(low, high)}
        inside = [h for h in self.shape.headings if h.line in gone]
        for heading in inside:
            if change.kind == "merge":
                self.refuse(at, f"is a merge, and takes the heading at line {heading.line + 1} away")
                return
            rest = [n for n in range(heading.line, heading.end) if n not in gone and self.bare[n].strip()]
            if rest:
                self.refuse(
                    at, f"takes the heading at line {heading.line + 1} away, and not line {rest[0] + 1} of its section"
                )
                return
        if change.kind != "stale-section":
            return
        top = inside[0] if inside else None
        if len(spans) != 1 or top is None or top.line != spans[0][0]:
            self.refuse(at, "is a stale-section, and is not one block that begins with the section's heading")
        elif spans[0][1] > top.end:
            self.refuse(at, f"is a stale-section, and goes on behind its section, which ends at line {top.end}")

    def _merge(self, at: str, spans: list[Span]) -> None:
        sections = {self.shape.section(n, 3) for low, high in spans for n in range(low, high)}
        if None in sections or len(sections) != 1:
            self.refuse(at, "is a merge, and does not stay within one ### subsection")

    # ── all of them ──────────────────────────────────────────────────────────────────────────
    def together(self, changes: Mapping[int, Change]) -> None:
        """The rules that one change alone cannot break."""
        ordered = sorted(self.edits, key=lambda edit: (edit.first, edit.n))
        for before, after in pairwise(ordered):
            if after.first < before.first + before.lines:
                self.refuse(f"changes[{after.n - 1}]", f"overlaps changes[{before.n - 1}] at line {after.first + 1}")
        gone = {n for edit in self.edits for n in range(*edit.span)}
        for n, change in changes.items():
            if change.held_at:
                self._held(n, change, gone)
        size, removed = len(self.text.data()), sum(len(self.text.lines[n].encode()) for n in gone)
        if removed * 2 > size:
            self.refuse(
                "changes", f"take {removed:,} of {size:,} bytes away, and at most half of the file may go at once"
            )

    def _held(self, n: int, change: Change, gone: set[int]) -> None:
        where, named = f"changes[{n}].held_at", change.held_at
        mine = [edit for edit in self.edits if edit.n == n + 1]
        if named is None or not mine:
            return
        own = named.file == self.own
        text = self.text if own else self.companions.get(named.file)
        if text is None:
            known = ", ".join([self.own, *self.companions])
            self.refuse(f"{where}.file", f"names no file that was shown; there are: {known}")
            return
        line = named.line - 1
        if line >= len(text.lines) or not text.lines[line].strip():
            self.refuse(
                f"{where}.line",
                f"names no text: {named.file} has {len(text.lines)} lines, and that one is empty or none",
            )
            return
        shape = self.shape if own else structure(text)
        heading = next((h for h in shape.headings if h.line == line), None)
        low, high = (heading.line, heading.end) if heading else shape.around(line)
        if own and gone & set(range(low, high)):
            self.refuse(f"{where}.line", f"names line {named.line}, which goes as well")
            return
        there = "".join(text.lines[low:high])
        removed = "".join(self.text.lines[k] for edit in mine for k in range(*edit.span))
        if why := _differs(removed, there):
            self.refuse(where, f"{named.file} line {named.line} does not hold the same fact: {why}")

    def whole(self) -> None:
        """What is left must be read as it was before, line by line."""
        after = edited(self.text, self.edits)
        now = structure(after)
        if after.lines and not "".join(after.lines).strip():
            self.refuse("changes", "leave nothing of the file")
        at = k = 0
        for edit in [*sorted(self.edits, key=lambda one: one.first), None]:
            stop = edit.first if edit else len(self.text.lines)
            while at < stop:
                if now.roles[k] != self.shape.roles[at]:
                    near = min(self.edits, key=lambda one: min(abs(one.first - at), abs(one.first + one.lines - at)))
                    was, became = (
                        " in ".join(reversed(role)).replace("+", "") for role in (self.shape.roles[at], now.roles[k])
                    )
                    told = f"({one_line(self.bare[at], 60)})"
                    what = "would begin or end elsewhere" if was == became else f"would become {became}, and is {was}"
                    self.refuse(
                        f"changes[{near.n - 1}]", f"without it line {at + 1} {told} {what}; take the whole block"
                    )
                    return
                at, k = at + 1, k + 1
            if edit is None:
                return
            at = edit.first + edit.lines
            rows = (
                edit.put.count("\n")
                + edit.put.replace("\r\n", "").count("\r")
                + (edit.put[-1:] not in ("\n", "\r", ""))
            )
            for n in range(k, k + rows):
                if strange := [word for word in now.roles[n] if word[0] == "h" and word.rstrip("+") not in ("h",)]:
                    self.refuse(
                        f"changes[{edit.n - 1}].replacement",
                        f"makes a {_block(strange[0])}, which is a person's to write",
                    )
                    return
            k += rows


def _block(word: str) -> str:
    return "comment or HTML block" if word.startswith("html") else "heading"


def _exact(text: str) -> dict[str, str]:
    """The numbers, dates and addresses of a text: all that has a digit in it, by what counts of it."""
    runs = (run for run in _RUN.findall(text) if _DIGIT.search(run))
    return {run.strip(".:!?-–—/\\").casefold(): run for run in runs}


def _differs(removed: str, there: str) -> str:
    """Why a text cannot say what another says; "" where it may."""
    here = _exact(there)
    lacking = [word for key, word in _exact(removed).items() if key not in here]
    if lacking:
        return f"it lacks {one_line(lacking[0], 60)}"
    words = {word.casefold() for word in _WORD.findall(removed)}
    if not words:
        return "the block holds no word"
    shared = words & {word.casefold() for word in _WORD.findall(there)}
    return "" if len(shared) * 2 >= len(words) else f"they share {len(shared)} of {len(words)} words"
