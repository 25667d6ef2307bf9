"""The documents of decisions, blockers, questions, artifacts and notes. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gitledger.layout import Kind
from gitledger.model import Record
from gitledger.render.page import Link, code, day, facts, joined, page, prose, section, when
from gitledger.render.text import inline


def document(kind: Kind, name: str, record: Record, link: Link) -> bytes:
    """The document of a record of one of these kinds; `link` gives links relative to it."""
    status, task = record.get("status", ""), record.get("task")
    return page(
        f"# {name} {inline(record.get('title', ''))}",
        joined(
            f"**{inline(status)}**" if status else kind.word.capitalize(),
            when(record.get("at")),
            f"by {code(record.get('by'))}" if record.get("by") else "",
            f"task {link(task)}" if task else "",
        ),
        *_body(kind, record, link),
    )


def _body(kind: Kind, record: Record, link: Link) -> Iterable[str]:
    match kind.word:
        case "decision":
            yield facts(
                (
                    ("Supersedes", link(record.get("supersedes")) if record.get("supersedes") else ""),
                    ("Superseded by", link(record.get("superseded_by")) if record.get("superseded_by") else ""),
                )
            )
            yield section("Why", prose(record.get("why", "")), "*No reason is written down.*")
            yield section("Evidence", prose(_text(record, "evidence")))
        case "blocker":
            yield section("What is in the way", prose(record.get("text", "")))
            yield section(f"Resolved{_at(record, 'resolved_at')}", prose(record.get("resolution", "")))
        case "question":
            yield section("Question", prose(record.get("text", "")))
            yield section(f"Answer{_at(record, 'answered_at')}", prose(record.get("answer", "")))
        case "artifact":
            yield facts(
                (
                    ("Where", code(record.get("path", ""), 2000)),
                    ("Blob", code(record.get("blob", ""))),
                    ("Commit", code(record.get("commit", ""))),
                )
            )
            yield section("About it", prose(record.get("text", "")))
        case _:
            yield prose(record.get("text", ""))


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _at(record: Record, name: str) -> str:
    at = record.get(name)
    return f" {when(at)}" if day(at) else ""  # it stands in a heading, where nothing but a time may
