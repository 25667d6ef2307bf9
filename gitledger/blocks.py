"""A Markdown file as lines, and what each of them is: by markdown-it-py's source map, no byte of it rewritten. Pure.

A line ends where Markdown has it end: at `\\r\\n`, `\\n` or a lone `\\r`; the last one may lack its end. A byte order
mark stands before the first line and belongs to none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gitledger.errors import BadData
from gitledger.values import dataclass

if TYPE_CHECKING:
    from markdown_it.token import Token

BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
_PERMANENT = re.compile(r"\[permanent\\?\]", re.IGNORECASE)
_FRONT = re.compile(r"---[ \t]*\Z")
_FRONT_END = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")
_CONTAINERS = {
    "blockquote_open": "quote",
    "bullet_list_open": "bullets",
    "ordered_list_open": "numbers",
    "list_item_open": "item",
}
_LEAVES = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
    "tr_open": "row",
}

Role = tuple[str, ...]
"""What a line is: the containers around it, then its block; `+` behind one that begins on this line."""
Span = tuple[int, int]
"""Lines from the first (counted from 0) up to, not with, the second."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A file's text: `mark` is its byte order mark or "", each line has its own end."""

    mark: str
    lines: tuple[str, ...]

    def data(self) -> bytes:
        """The file's bytes."""
        return (self.mark + "".join(self.lines)).encode()

    def bare(self, n: int) -> str:
        """Line `n` without its end."""
        return self.lines[n].rstrip("\r\n")


def split(data: bytes, where: str) -> Lines:
    """The lines of a file; BadData for what is no UTF-8 text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise BadData(f"{where} is not UTF-8 text (byte {e.start}); mend or move it") from e
    mark = BOM if text.startswith(BOM) else ""
    return Lines(mark, tuple(_LINE.findall(text[len(mark) :])))


def end_of(lines: Sequence[str]) -> str:
    """The line end that most of these lines have; a newline where none has one."""
    counts = dict.fromkeys(("\n", "\r\n", "\r"), 0)
    for line in lines:
        if end := line[len(line.rstrip("\r\n")) :]:
            counts[end] += 1
    return max(counts, key=lambda end: counts[end])


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside of any list or quotation: its level, its first line, and the line behind its section."""

    level: int
    line: int
    end: int


@dataclass(frozen=True, slots=True)
class Structure:
    """What a file's lines are: list items outermost first, other blocks, and what nobody may remove."""

    roles: tuple[Role, ...]
    headings: tuple[Heading, ...]
    items: tuple[Span, ...]
    blocks: tuple[Span, ...]
    permanent: tuple[Span, ...]

    def section(self, line: int, level: int) -> Heading | None:
        """The section of that level that a line lies in."""
        return next((h for h in self.headings if h.level == level and h.line <= line < h.end), None)

    def around(self, line: int) -> Span:
        """The innermost list item that a line belongs to, else its block, else the line alone."""
        spans = [s for s in self.items if s[0] <= line < s[1]] or [s for s in self.blocks if s[0] <= line < s[1]]
        return max(spans, key=lambda s: (s[0], -s[1]), default=(line, line + 1))


def structure(text: Lines) -> Structure:
    """What each line of a file is."""
    front = _front(text)
    count = len(text.lines)
    roles: list[Role] = [("front",) for _ in range(front)]
    roles += [("other",) if text.lines[n].strip() else ("blank",) for n in range(front, count)]
    headings: list[tuple[int, int]] = []
    items: list[Span] = []
    blocks: list[Span] = []
    inside: list[tuple[str, int]] = []
    for token in _tokens(text.lines[front:]):
        if token.nesting == -1:
            if token.type.removesuffix("_close") + "_open" in _CONTAINERS:
                inside.pop()
            continue
        if token.map is None:
            continue
        first, end = token.map[0] + front, min(token.map[1] + front, count)
        while end > first and token.type not in ("fence", "html_block") and not text.lines[end - 1].strip():
            end -= 1  # the blank lines behind a block are nobody's
        if token.type in _CONTAINERS:
            inside.append((_CONTAINERS[token.type], first))
            if token.type == "list_item_open":
                items.append((first, end))
        elif end > first and (leaf := _LEAVES.get(token.type)):  # a form feed alone is a paragraph of nothing
            if token.type == "heading_open":
                leaf = token.tag
                if not inside:
                    headings.append((int(token.tag[1]), first))
            blocks.append((first, end))
            for n in range(first, end):
                around = tuple("item+" if name == "item" and n == start else name for name, start in inside)
                roles[n] = (*around, f"{leaf}+" if n == first else leaf)
    sections = tuple(_sections(headings, count))
    permanent = tuple(_permanent(text, front, sections, items, blocks))
    return Structure(tuple(roles), sections, tuple(items), tuple(blocks), permanent)


def _tokens(lines: Sequence[str]) -> list[Token]:
    from markdown_it import MarkdownIt

    # A NUL and a lone carriage return are what the parser itself turns into something of the same number of lines.
    return MarkdownIt("commonmark", {"maxNesting": 60}).enable("table").disable("inline").parse("".join(lines))


def _front(text: Lines) -> int:
    """How many lines the front matter takes."""
    if text.lines and _FRONT.match(text.bare(0)):
        for n in range(1, len(text.lines)):
            if _FRONT_END.match(text.bare(n)):
                return n + 1
    return 0


def _sections(headings: list[tuple[int, int]], count: int) -> Iterator[Heading]:
    ends = [count] * len(headings)
    open_: list[int] = []
    for n, (level, line) in enumerate(headings):
        while open_ and headings[open_[-1]][0] >= level:
            ends[open_.pop()] = line
        open_.append(n)
    for (level, line), end in zip(headings, ends, strict=True):
        yield Heading(level, line, end)


def _permanent(
    text: Lines, front: int, sections: Sequence[Heading], items: Sequence[Span], blocks: Sequence[Span]
) -> Iterator[Span]:
    if front:
        yield 0, front
    marked = [n for n in range(front, len(text.lines)) if _PERMANENT.search(text.lines[n])]
    around = _innermost(len(text.lines), items, blocks) if marked else []
    begin = {heading.line: heading for heading in sections}
    for n in marked:
        span = around[n]
        # A heading holds its section; of an item its children too; of a paragraph, a fence or a comment all of it.
        held = begin.get(span[0])
        yield (held.line, held.end) if held else span


def _innermost(count: int, items: Sequence[Span], blocks: Sequence[Span]) -> list[Span]:
    """For each line the innermost list item that it belongs to, else its block, else the line alone."""
    found: list[Span] = [(n, n + 1) for n in range(count)]
    for span in (*blocks, *items):  # items come outermost first, and inner ones take their lines
        found[slice(*span)] = [span] * (span[1] - span[0])
    return found
