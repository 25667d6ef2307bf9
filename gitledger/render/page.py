"""What every document is made of: sections, lists, tables, links, and the cut at a blob's limit. Pure.

Whatever comes from a record goes through `render.text` first; what is passed in here is Markdown already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gitledger import layout
from gitledger.model import DETACHED, Json, Key
from gitledger.patterns import pattern
from gitledger.render.text import block, inline, line, visible
from gitledger.typed import TypeAlias

LIMIT = 1 << 20
"""No file above this many bytes is ever written."""

Link: TypeAlias = Callable[[Key], str]
"""A key to the Markdown by which one document names it: its name, linked where it has a document."""

_TIME = pattern(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}):[0-9]{2}\.[0-9]{3}Z\Z")
_HEX = pattern(r"[0-9a-f]{7,64}\Z")
_LAID_OUT = pattern(r"(?m)^(?: {4}|\t| {0,3}```| {0,3}~~~)")
_FENCE = pattern(r" {0,3}(`{3,}|~{3,})")


# ── pieces ───────────────────────────────────────────────────────────────────────────────────
def when(at: Json) -> str:
    """A time as people read it, in UTC: `2026-11-30 14:49 UTC`."""
    found = _TIME.match(at) if isinstance(at, str) else None
    return f"{found[1]} {found[2]} UTC" if found else (inline(at, 40) if isinstance(at, str) and at else "no time")


def day(at: Json) -> str:
    """The day of a time: `2026-11-30`."""
    found = _TIME.match(at) if isinstance(at, str) else None
    return found[1] if found else ""


def code(text: Json, limit: int = 400) -> str:
    """One line of text as a code span that nothing in it can end."""
    shown = line(str(text), limit)
    if not shown:
        return ""
    if "`" not in shown:
        return f"`{shown}`"  # `line` leaves no space at either end
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    pad = " " if "`" in (shown[0], shown[-1]) or (shown[0] == shown[-1] == " ") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def short(oid: Json) -> str:
    """The first digits of an object id as code, good in a table too; `UNBORN` stays a word."""
    return f"`{oid[:12]}`" if isinstance(oid, str) and _HEX.match(oid) else inline(str(oid), 12)


def prose(text: str) -> str:
    """Text of many lines as paragraphs that keep their lines; where it is laid out in columns, as it is in a fence."""
    shown = visible(text).strip("\n")
    if _LAID_OUT.search(shown):
        return block(shown)
    paragraphs = re.split(r"\n[^\S\n]*\n\s*", shown)
    return "\n\n".join("\\\n".join(inline(row) for row in p.split("\n") if row.strip()) for p in paragraphs)


def said(text: str) -> str:
    """What somebody said, as a quotation that keeps its lines."""
    return "\n".join(f"> {row}" if row else ">" for row in prose(text).split("\n")) if text.strip() else ""


def section(title: str, body: str | Iterable[str], empty: str = "") -> str:
    """A heading with its body, a list of lines or one text; `empty` where there is none, or no section at all."""
    text = body if isinstance(body, str) else "\n".join(body)
    text = text.strip("\n") or empty
    return f"## {title}\n\n{text}" if text else ""


def few(lines: Sequence[str], most: int, rest: str) -> list[str]:
    """At most `most` lines, then how many more there are and where; `rest` says where."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[:most], f"- *and {len(lines) - most:,} more: {rest}*"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing where there is no row; cells are escaped already."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) if lines else ""


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A list of facts, each with its name in bold; a fact without a value is left out."""
    return "\n".join(f"- **{name}:** {value}" for name, value in rows if value)


def joined(*parts: str) -> str:
    """The line of small facts below a title."""
    return " · ".join(part for part in parts if part)


def position(value: Json) -> str:
    """Where the repository stood, as a list of facts."""
    value = value if isinstance(value, dict) else {}
    dirty, branch = value.get("dirty", 0), value.get("branch", "")
    tree = f"dirty, {dirty:,} {'path differs' if dirty == 1 else 'paths differ'} from head" if dirty else "clean"
    if not value.get("head"):
        tree = ""  # where nothing is known, not even that it was clean
    return facts(
        (
            ("Branch", branch if branch == DETACHED else code(branch)),
            ("Head", code(value.get("head", ""))),
            ("Work tree", joined(code(value.get("worktree", "")), tree) if value else ""),
            ("Tree of that head", code(value.get("tree", ""))),
            ("Fingerprint of the work tree", code(value.get("fingerprint", ""))),
            ("Under way", inline(str(value.get("operation") or ""), 80)),
        )
    )


# ── links ────────────────────────────────────────────────────────────────────────────────────
def relative(source: str, target: str) -> str:
    """The link from one file of the ledger's tree to another."""
    # Not relpath: it asks for the present folder, which may be gone.
    here, there = source.split("/")[:-1], target.split("/")
    n = 0
    while n < len(here) and n < len(there) - 1 and here[n] == there[n]:
        n += 1
    return "/".join([".."] * (len(here) - n) + there[n:])


def anchor(key: Key) -> str:
    """The anchor of a record in its shard's table: a function of the key alone, whatever name it shows."""
    return re.sub(r"[^a-z0-9-]", "-", key.lower())


def entry_link(source: str, key: Key) -> str:
    """A record's bare number, linked to its line in the table of its shard.

    For documents that must not change when another record's name or folder does: it needs the key alone.
    """
    shard = layout.shard_folder(key)
    if shard is None:
        return inline(key, 80)
    return f"[{key.partition('@')[0]}]({relative(source, shard + '/README.md')}#{anchor(key)})"


# ── the whole ────────────────────────────────────────────────────────────────────────────────
def page(*parts: str, limit: int = LIMIT) -> bytes:
    """A document of its parts; over `limit` bytes it is cut at a line, with a line that says how much is missing."""
    text = "\n\n".join(part.strip("\n") for part in parts if part.strip("\n")) + "\n"
    data = text.encode("utf-8", "backslashreplace")
    return data if len(data) <= limit else _cut(data, limit)


def _cut(data: bytes, limit: int) -> bytes:
    kept = data[: limit - 400]  # room for the line that says so, and to close a fence
    kept = kept[: kept.rfind(b"\n") + 1]
    fence, since = _open_fence(kept.decode())
    if len(fence) > 100:  # not worth closing: leave it out
        kept, fence = kept.decode()[:since].encode(), ""
    said = f"*Cut here: {len(data) - len(kept):,} of {len(data):,} bytes are left out; the record's JSON holds more.*"
    return kept + f"{fence}\n\n{said}\n".encode()


def _open_fence(text: str) -> tuple[str, int]:
    fence, since, offset = "", 0, 0
    for row in text.split("\n"):
        found = _FENCE.match(row)
        if found and not fence:
            fence, since = found[1], offset
        elif found and found[1].startswith(fence) and not row.strip().strip(fence[0]):
            fence = ""
        offset += len(row) + 1
    return fence, since
