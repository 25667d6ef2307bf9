"""The document of a change to a memory file: what went, what stands in its place, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gitledger.model import Json, Record
from gitledger.render.page import Link, code, facts, joined, page, section, when
from gitledger.render.text import block, inline


def document(name: str, record: Record, link: Link) -> bytes:
    """The document of a change; `link` gives links relative to it."""
    said = {
        field: record.get(field) for field in ("path", "how", "undoes", "undone_by", "source_sha256", "result_sha256")
    }
    edits = sorted(record.listed("edits"), key=lambda row: (_whole(row, "n"), row["id"]))
    exact = record.get("exact") is True
    return page(
        f"# {name} {inline(record.get('title', ''))}",
        joined(
            f"**{inline(record.get('status', ''))}**" if record.get("status") else "Memory",
            when(record.get("at")),
            f"by {code(record.get('by'))}" if record.get("by") else "",
        ),
        facts(
            (
                ("File", code(said["path"] or "")),
                ("Made by", code(said["how"] or "")),
                ("Undoes", link(said["undoes"]) if said["undoes"] else ""),
                ("Undone by", link(said["undone_by"]) if said["undone_by"] else ""),
                ("Before", _state(record, "bytes_before", said["source_sha256"])),
                ("After", _state(record, "bytes_after", said["result_sha256"])),
            )
        ),
        "" if exact else "*The file held a secret, which is left out here; only where this was made can it be undone.*",
        section("Changes", "\n\n".join(part for row in edits for part in _edit(row))),
        "The JSON beside this file holds the whole file as it was before, in parts." if exact else "",
    )


def _edit(row: dict[str, Json]) -> Iterator[str]:
    line, lines = _whole(row, "line"), _whole(row, "lines")
    place = f"line {line}" if lines < 2 else f"lines {line} to {line + lines - 1}"
    held = f" ({code(row['held_at'])} holds it)" if row.get("held_at") else ""
    yield f"### {_whole(row, 'change')}: {inline(_text(row, 'kind'))}, {place}"
    yield f"{inline(_text(row, 'reason'))}{held}"
    if gone := _text(row, "text").rstrip("\r\n"):
        yield block(gone)
    if put := _text(row, "put").rstrip("\r\n"):
        yield "In its place:" if gone else "Put back:"
        yield block(put)


def _state(record: Record, name: str, digest: Json) -> str:
    size = record.get(name)
    return joined(f"{size:,} bytes" if type(size) is int else "", code(digest or ""))


def _whole(row: dict[str, Json], name: str) -> int:
    value = row.get(name)
    return value if type(value) is int else 0


def _text(row: dict[str, Json], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""
