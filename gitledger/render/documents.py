"""The files of one record: its JSON and its documents, by path. Pure.

A document that must change when another record is renamed names it by the view's `link`; `neighbours` says whose names
those are, so that whoever renames a record knows which documents to render again.
"""

from __future__ import annotations

from gitledger import layout
from gitledger.model import Key, Record
from gitledger.render import entries, memory, project, snapshots, task
from gitledger.render.cut import cut_record
from gitledger.render.page import LIMIT, Link, page, relative
from gitledger.render.text import inline
from gitledger.view import View

_ODD = "*A field of this record is not of the kind it should be; the JSON beside this file holds it as it is.*"


def files(view: View, key: Key) -> dict[str, bytes]:
    """All files of the record of a key; nothing where there is no such record."""
    record, stem = view.record(key), view.stem(key)
    if record is None or stem is None:
        return {}
    return {f"{stem}.json": cut_record(record), **documents(view, key, record, stem)}


def documents(view: View, key: Key, record: Record, stem: str) -> dict[str, bytes]:
    """The documents of a record that lies at `stem`; a record that is damaged has one that says so."""
    try:
        made = _documents(view, key, record, stem)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # Another writer's fields may be of any kind; one record must not keep the others from being written. No word of
        # Python's own goes into the text: it differs between versions, and the bytes may not.
        return {path: page(f"# {inline(view.name(key), 80)}", _ODD) for path in paths(key, record, stem)}
    if not record.is_odd():
        return made
    # Such a field is shown as one that is not set. A document that has no room left says that it is cut.
    said = f"\n{_ODD}\n".encode()
    fits = {path for path, data in made.items() if path.endswith(".md") and len(data) + len(said) <= LIMIT}
    return {path: data + said if path in fits else data for path, data in made.items()}


def paths(key: Key, record: Record | None, stem: str) -> list[str]:
    """Where a record's documents lie, its JSON not among them."""
    found = layout.numbered(key)
    if found and found[0] is layout.TASK:
        folder = stem.rpartition("/")[0]
        return [f"{folder}/{name}" for name in ("TASK.md", "STATE.md", "TODO.md", "SOURCES.md")]
    if found:
        return [f"{stem}.md"]
    if key == layout.PROJECT:
        return ["PROJECT.md", "README.md"]
    if key == layout.CONFIG:
        return ["config.yaml"]
    return [f"{stem}.md"] if layout.is_session(key) and record and record.get("closed") else []


def neighbours(record: Record) -> set[Key]:
    """The records whose names and paths this record's documents show."""
    found = layout.numbered(record.key)
    if found is None:
        newest = record.get("checkpoint")
        return {newest["key"]} if isinstance(newest, dict) and isinstance(newest.get("key"), str) else set()
    kind = found[0]
    if kind.letter in layout.IMMUTABLE:
        return set()
    names = ("parent", "checkpoint", "split_from") if kind is layout.TASK else ("task", "supersedes", "superseded_by")
    shown = {record.get(name) for name in (("undoes", "undone_by") if kind is layout.MEMORY else names)}
    if kind is layout.TASK:
        shown |= record.items.get("depends", {}).keys() | record.items.get("links", {}).keys()
    return {key for key in shown if isinstance(key, str)}


def link_from(view: View, source: str) -> Link:
    """Links from the file at `source` to any record's document, by the name that the record shows."""

    def link(key: Key) -> str:
        found = layout.numbered(key)
        stem = view.stem(key) if found else None
        if found is None or stem is None:
            return inline(key, 80)
        target = f"{stem.rpartition('/')[0]}/TASK.md" if found[0] is layout.TASK else f"{stem}.md"
        return f"[{view.name(key)}]({relative(source, target)})"

    return link


def _documents(view: View, key: Key, record: Record, stem: str) -> dict[str, bytes]:
    found = layout.numbered(key)
    if found is None:
        return _plain(view, key, record, stem)
    kind, source = found[0], f"{stem}.md"
    if kind is layout.TASK:
        folder = stem.rpartition("/")[0]
        own = task.documents(view.name(key), record, link_from(view, f"{folder}/TASK.md"))
        return {f"{folder}/{name}": data for name, data in own.items()}
    if kind is layout.CHECKPOINT:
        return {source: snapshots.checkpoint(record, below_task=stem.startswith(f"{layout.TASK.folder}/"))}
    if kind is layout.HANDOVER:
        return {source: snapshots.handover(record, source)}
    if kind is layout.MEMORY:
        return {source: memory.document(view.name(key), record, link_from(view, source))}
    return {source: entries.document(kind, view.name(key), record, link_from(view, source))}


def _plain(view: View, key: Key, record: Record, stem: str) -> dict[str, bytes]:
    if key == layout.PROJECT:
        return {
            "PROJECT.md": project.project(record, link_from(view, "PROJECT.md")),
            "README.md": project.readme(record),
        }
    if key == layout.CONFIG:
        return {"config.yaml": project.config_yaml({name: value for name, (value, _) in record.fields.items()})}
    if layout.is_session(key) and (document := snapshots.session(key, record)):
        return {f"{stem}.md": document}
    return {}
