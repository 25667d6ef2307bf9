"""Additions to somebody else's JSON file, put in and taken out without touching another byte of it.

JSON, and JSON with comments and trailing commas (JSONC). Indentation, order, line ends and everything that is not ours
stay as they are; a document that cannot be read whole is refused.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from gitledger.errors import BadData
from gitledger.model import Json
from gitledger.values import dataclass

DEPTH = 100
_BLANK = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = json.decoder.scanstring  # type: ignore[attr-defined]  # (text, after the quote) → value, end

Pointer: TypeAlias = tuple[str, ...]
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Member:
    """One value of a container: where it begins (its key, in an object), and the offset after its comma, if any."""

    key: str
    start: int
    node: Node
    comma: int


@dataclass(frozen=True, slots=True)
class Node:
    """One value, from `start` to before `end`."""

    kind: Literal["object", "array", "scalar"]
    start: int
    end: int
    members: tuple[Member, ...] = ()
    scalar: Json = None

    def get(self, key: str) -> Member | None:
        """The member of a key: the last one, as every reader of JSON has it."""
        return next((m for m in reversed(self.members) if m.key == key), None)

    def plain(self) -> Json:
        """The value itself."""
        if self.kind == "object":
            return {m.key: m.node.plain() for m in self.members}
        return [m.node.plain() for m in self.members] if self.kind == "array" else self.scalar


@dataclass(frozen=True, slots=True)
class Document:
    """A text, its value, and where each of its tokens and comments ends, in order."""

    text: str
    root: Node
    ends: tuple[int, ...]
    comments: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """A text with something put in: at which offsets and how long, and which containers were made for it."""

    text: str
    spans: tuple[Span, ...] = ()
    made: tuple[Pointer, ...] = ()


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def parse(text: str, *, comments: bool) -> Document:
    """A text as a document; raise BadData, with line and column, for what is no JSON (or JSONC where `comments`)."""
    scan = _Scan(text, comments)
    scan.blank()
    root = scan.value(0)
    scan.blank()
    if scan.at != len(text):
        raise scan.fault("there is something after the value")
    return Document(text, root, tuple(scan.ends), tuple(scan.comments))


class _Scan:
    __slots__ = ("at", "comments", "ends", "jsonc", "text")

    def __init__(self, text: str, jsonc: bool) -> None:
        self.text, self.jsonc = text, jsonc
        self.at = 0
        self.ends: list[int] = []
        self.comments: list[Span] = []

    def fault(self, what: str) -> BadData:
        line = self.text.count("\n", 0, self.at) + 1
        return BadData(f"line {line}, column {self.at - self.text.rfind(chr(10), 0, self.at)}: {what}")

    def blank(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in _BLANK:
                self.at += 1
            elif self.text[self.at] == "/":
                found = _COMMENT.match(self.text, self.at)
                if not self.jsonc or found is None:
                    raise self.fault("a comment does not belong here" if found else "a value is expected")
                self.at = found.end()
                self.comments.append(found.span())
                self.ends.append(self.at)
            else:
                return

    def take(self, char: str) -> bool:
        if self.text[self.at : self.at + 1] != char:
            return False
        self.at += 1
        self.ends.append(self.at)
        return True

    def string(self) -> str:
        if self.text[self.at : self.at + 1] != '"':
            raise self.fault("a text in double quotes is expected")
        try:
            value, self.at = _STRING(self.text, self.at + 1, True)
        except ValueError as e:
            raise self.fault("a text is not as JSON has it") from e
        self.ends.append(self.at)
        return str(value)

    def value(self, depth: int) -> Node:
        if depth > DEPTH:
            raise self.fault(f"it is nested more than {DEPTH} deep")
        start = self.at
        if self.take("{"):
            return self.inside("object", "}", start, depth)
        if self.take("["):
            return self.inside("array", "]", start, depth)
        if self.text[start : start + 1] == '"':
            text = self.string()
            return Node("scalar", start, self.at, scalar=text)
        found = _NUMBER.match(self.text, start) or _WORD.match(self.text, start)
        if found is None:
            raise self.fault("a value is expected")
        self.at = found.end()
        self.ends.append(self.at)
        return Node("scalar", start, self.at, scalar=json.loads(found[0]))

    def inside(self, kind: Literal["object", "array"], close: str, start: int, depth: int) -> Node:
        members: list[Member] = []
        self.blank()
        while not self.take(close):
            begin, key = self.at, ""
            if kind == "object":
                key = self.string()
                self.blank()
                if not self.take(":"):
                    raise self.fault("a colon is expected")
                self.blank()
            node = self.value(depth + 1)
            self.blank()
            comma = self.at if self.take(",") else 0  # where it ends
            members.append(Member(key, begin, node, comma))
            self.blank()
            if not comma and self.text[self.at : self.at + 1] != close:
                raise self.fault(f"a comma or {close} is expected")
            if comma and not self.jsonc and self.text[self.at : self.at + 1] == close:
                raise self.fault("a value is expected after the comma")
        return Node(kind, start, self.at, tuple(members))


# ── putting in ───────────────────────────────────────────────────────────────────────────────
def merged(value: Json, add: Json) -> Json:
    """What `insert` makes of a value: objects key by key, lists by what comes after; what is there already stays."""
    if isinstance(value, dict) and isinstance(add, dict):
        return value | {k: merged(value[k], v) if k in value else v for k, v in add.items()}
    if isinstance(value, list) and isinstance(add, list):
        return value + add
    return value


def insert(text: str, add: Mapping[str, Json], *, comments: bool) -> Added:
    """The text with `add` merged in as `merged` has it, every byte of its own kept; raise BadData where that cannot be.

    A text of blanks alone becomes a new document.
    """
    if not text.strip(_BLANK):
        new = fresh(add)
        return Added(text + new, ((len(text), len(new)),), tuple(_pointers(dict(add), ())))
    doc = parse(text, comments=comments)
    if doc.root.kind != "object":
        raise BadData("its value is not an object")
    style = _Style(doc)
    edits: list[tuple[int, str]] = []
    making: list[Pointer] = []
    _merge(style, doc.root, dict(add), (), edits, making)
    out: list[str] = []
    spans: list[Span] = []
    last = size = 0
    for at, piece in sorted(edits, key=lambda edit: edit[0]):  # stable: a comma comes before what it separates
        out += [text[last:at], piece]
        size += at - last
        spans.append((size, len(piece)))
        size += len(piece)
        last = at
    return Added("".join([*out, text[last:]]), tuple(spans), tuple(making))


def fresh(add: Mapping[str, Json]) -> str:
    """`add` as a document of its own."""
    return json.dumps(add, indent=2, ensure_ascii=False) + "\n"


def _pointers(value: Json, at: Pointer) -> list[Pointer]:
    """Where an object, and each object and list by its keys below it, lies; lists' own members have no keys."""
    if not isinstance(value, dict):
        return [at]
    return [at, *(p for k, v in value.items() for p in _pointers(v, (*at, k)))]


def _merge(
    style: _Style, node: Node, add: Json, at: Pointer, edits: list[tuple[int, str]], made: list[Pointer]
) -> None:
    """Note what must be put where for `add` to be in `node`."""
    wanted = {"object": dict, "array": list}.get(node.kind)
    if wanted is None or not isinstance(add, wanted):
        if isinstance(add, (dict, list)):
            raise BadData(f"{'.'.join(at)} is of another kind than a hook's settings have")
        return  # a plain value that is there already stays
    new: list[tuple[str | None, Json]] = []
    if isinstance(add, list):
        new = [(None, value) for value in add]
    else:
        for key, value in add.items():
            there = node.get(key)
            if there is None:
                new.append((key, value))
                made += _pointers(value, (*at, key))
            else:
                _merge(style, there.node, value, (*at, key), edits, made)
    if new:
        edits += style.added(node, new)


class _Style:
    """How a document is laid out, and how more is written in the same way."""

    __slots__ = ("doc", "ends", "line", "separators", "unit")

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        text, root = doc.text, doc.root
        found = re.search(r"\r\n|\n|\r", text)
        self.line = found[0] if found else "\n"
        self.separators = (", ", ": ")
        if root.members and not re.search(r"[,:]\s", text[root.start : root.end]):
            self.separators = (",", ":")
        self.unit = self.indent(root) or "  "

    def indent(self, node: Node) -> str | None:
        """The blanks before a container's first member where that begins a line; None where it does not."""
        if not node.members:
            return None
        start = node.members[0].start
        row = max(self.doc.text.rfind("\n", 0, start), self.doc.text.rfind("\r", 0, start)) + 1
        before = self.doc.text[row:start]
        return before if row > node.start and not before.strip(" \t") else None

    def added(self, node: Node, new: list[tuple[str | None, Json]]) -> list[tuple[int, str]]:
        """What to put where, for `new` to stand behind a container's members."""
        text, gap = self.doc.text, self.separators[0][1:]
        indent, last = self.indent(node), node.members[-1] if node.members else None
        broken = indent is not None or (last is None and self._multiline())
        lead = self._lead(node.start)
        if indent is None:
            indent = lead + self.unit
        at = self._after(node, last)
        below_comment = any(end == at and text.startswith("//", start) for start, end in self.doc.comments)
        before = self.line + indent if broken or below_comment else gap if last else ""
        between = "," + (self.line + indent if broken else gap)
        pieces = before + between.join(self._written(key, value, indent if broken else None) for key, value in new)
        if last is None:
            open_line = not re.search(r"[\r\n]", text[at : node.end - 1])
            return [(at, pieces + (self.line + lead if broken and open_line else ""))]
        return [(at, pieces + ",")] if last.comma else [(last.node.end, ","), (at, pieces)]

    def _lead(self, at: int) -> str:
        """The blanks that the line of an offset begins with."""
        row = max(self.doc.text.rfind("\n", 0, at), self.doc.text.rfind("\r", 0, at)) + 1
        found = re.compile(r"[ \t]*").match(self.doc.text, row, at)
        return found[0] if found else ""

    def _multiline(self) -> bool:
        root = self.doc.root
        return not root.members or bool(re.search(r"[\r\n]", self.doc.text[root.start : root.end]))

    def _after(self, node: Node, last: Member | None) -> int:
        """Where more may stand: behind the last member and its comma, and behind comments that speak of it."""
        text = self.doc.text
        if last is None:
            at = node.start + 1
            inside = [end for start, end in self.doc.comments if node.start < start and end <= node.end]
            return inside[-1] if inside else at
        at = max(last.comma, last.node.end)
        for start, end in self.doc.comments:
            if start >= at and end <= node.end and not text[at:start].strip(" \t"):
                at = end
        return at

    def _written(self, key: str | None, value: Json, indent: str | None) -> str:
        head = "" if key is None else json.dumps(key, ensure_ascii=False) + self.separators[1]
        if indent is None:
            return head + json.dumps(value, ensure_ascii=False, separators=self.separators)
        if key is not None:
            head = json.dumps(key, ensure_ascii=False) + ": "
        return head + json.dumps(value, ensure_ascii=False, indent=self.unit).replace("\n", self.line + indent)


# ── taking out ───────────────────────────────────────────────────────────────────────────────
def cut(text: str, spans: tuple[Span, ...]) -> str:
    """The text without those spans, as `insert` gave them."""
    out, last = [], 0
    for start, length in spans:
        out.append(text[last:start])
        last = start + length
    return "".join([*out, text[last:]])


def remove(
    text: str, under: str, ours: Callable[[Json], bool], *, comments: bool, made: tuple[Pointer, ...] | None = None
) -> str:
    """The text without each value below the key `under` that is `ours`, and without what only stood for those.

    A list or an object that has nothing left goes too, unless `made` says what was made for ours and it is not among
    that. Every other byte stays.
    """
    doc = parse(text, comments=comments)
    top = doc.root.get(under)
    keep = None if made is None else frozenset(made)
    drop: list[Span] = []
    emptied = top is not None and _prune(doc, top.node, (under,), ours, keep, drop)
    gone = [
        i
        for i, m in enumerate(doc.root.members)
        if (m is top and emptied and (keep is None or (under,) in keep))
        or (keep and m.node.kind == "scalar" and (m.key,) in keep)
    ]
    if gone:
        drop += _cuts(doc, doc.root, gone)
    out, last = [], 0
    for start, end in sorted(drop):
        if start >= last:
            out.append(text[last:start])
        last = max(last, end)
    return "".join([*out, text[last:]])


def _prune(
    doc: Document,
    node: Node,
    at: Pointer,
    ours: Callable[[Json], bool],
    keep: frozenset[Pointer] | None,
    drop: list[Span],
) -> bool:
    """Note what to take out of a container; True where nothing is left in it, and something was."""
    gone = []
    for i, member in enumerate(node.members):
        inner = member.node
        if inner.kind == "object" and ours(inner.plain()):
            gone.append(i)
        elif node.kind == "array":  # what `made` names lies above all lists
            if inner.kind != "scalar" and _prune(doc, inner, at, ours, None, drop):
                gone.append(i)
        elif inner.kind != "scalar":
            below = (*at, member.key)
            if _prune(doc, inner, below, ours, keep, drop) and (keep is None or below in keep):
                gone.append(i)
    if gone:
        drop += _cuts(doc, node, gone)
    # A group of hooks is nothing without them, whatever else it says.
    hollow = node.kind == "object" and len(at) > 1 and any(node.members[i].key == "hooks" for i in gone)
    return bool(gone) and (len(gone) == len(node.members) or hollow)


def _cuts(doc: Document, node: Node, gone: list[int]) -> list[Span]:
    """What goes with these members: the blanks before each, and as many commas as are not needed any more."""
    drop: list[Span] = []
    for i in gone:
        member = node.members[i]
        before = doc.ends[bisect_right(doc.ends, member.start) - 1]
        drop.append((before, member.node.end))
        if member.comma:
            drop.append((member.comma - 1, member.comma))
    last = len(node.members) - 1
    left = [i for i in range(len(node.members)) if i not in gone]
    if left and last in gone and not node.members[last].comma:
        comma = node.members[left[-1]].comma
        drop.append((comma - 1, comma))
    elif not left:  # a closing bracket goes back to where it was, where only blanks are between
        begin = doc.ends[bisect_right(doc.ends, node.members[0].start) - 1]
        end = node.members[last].comma or node.members[last].node.end
        if begin == node.start + 1 and not doc.text[end : node.end - 1].strip(_BLANK):
            drop.append((end, node.end - 1))
    return drop
