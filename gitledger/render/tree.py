"""Everything of the ledger's tree that a view's events change, the journal itself left out. Pure.

The tree is a function of the records, however they got there: events folded in many commits, each over the tree
before, and a whole journal folded into nothing end in the same bytes. What is read and written follows what was
touched. The one exception: where a record takes its bare name from another writer's (two made the same number apart,
and now meet), what names the other one is looked for everywhere, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitledger import codec, layout
from gitledger.layout import Kind
from gitledger.model import Json, Key, Record
from gitledger.redact import CleanBytes, of_events
from gitledger.render import documents, indexes, project
from gitledger.shards import Rows
from gitledger.view import View

BRANCH_HANDOVERS = 32
"""How many of a branch's newest handovers its list keeps, by time and by journal order each.

Both, because a clock that was wrong for a while would keep all later ones out of the first.
"""
BRANCHES = 20
"""How many branches, by their newest handover, are named to who is on another one."""

_LISTS = {
    "INDEX.md": ((layout.TASK,), indexes.index),
    "DECISIONS.md": ((layout.DECISION,), indexes.decisions),
    "BLOCKERS.md": ((layout.BLOCKER, layout.QUESTION), indexes.blockers),
    "ARTIFACTS.md": ((layout.ARTIFACT,), indexes.artifacts),
}
_DEPENDENT = (layout.DECISION, layout.BLOCKER, layout.QUESTION, layout.ARTIFACT, layout.NOTE, layout.MEMORY)


def changes(view: View) -> dict[str, CleanBytes | None]:
    """What to write over the tip's tree, by path, None where a path goes; journal segments are the caller's to add."""
    return {path: None if data is None else of_events(data) for path, data in _changes(view).items()}


def _changes(view: View) -> dict[str, bytes | None]:
    renamed = _renamed(view)
    again = {**view.touched, **dict.fromkeys(sorted(renamed)), **dict.fromkeys(sorted(_naming(view, renamed)))}
    out: dict[str, bytes | None] = {}
    for key in renamed:
        old = view.tip_stem(key)
        if old:
            out.update(dict.fromkeys((f"{old}.json", *documents.paths(key, None, old))))
    for key in again:
        out.update(documents.files(view, key))
    _shards(view, out)
    for path, (kinds, render) in _LISTS.items():
        if layout.PROJECT in view.touched or any(_is(key, kinds) for key in view.touched):
            out[path] = render(view)
    _signers(view, out)
    _sessions(view, out)
    _branches(view, [key for key in again if _is(key, (layout.HANDOVER,))], out)
    out[layout.MANIFEST] = codec.pretty(view.manifest.value())
    return out


# ── names that changed ───────────────────────────────────────────────────────────────────────
def _renamed(view: View) -> set[Key]:
    found = set()
    for part in {layout.part(key) for key in view.touched if layout.numbered(key)}:
        names, before = view.index.names(*part), view.index.tip_names(*part)
        for key in view.index.tip_rows(*part):
            if names[key] != before[key] or (key in view.touched and view.stem(key) != view.tip_stem(key)):
                found.add(key)
    tasks = {key for key in found if _is(key, (layout.TASK,))}
    if tasks:  # their checkpoints lie below them
        found |= {key for key, row in view.walk(layout.CHECKPOINT) if row["task"] in tasks and view.tip_stem(key)}
    return found


def _naming(view: View, renamed: set[Key]) -> set[Key]:
    if not renamed:
        return set()
    found = {layout.PROJECT} if view.record(layout.PROJECT) else set()
    kinds = {layout.numbered(key)[0] for key in renamed}  # type: ignore[index] # only numbered records are renamed
    if layout.TASK in kinds or not kinds <= {layout.CHECKPOINT, layout.HANDOVER}:
        found |= {
            key for kind in (layout.TASK, *_DEPENDENT) for key, _ in view.walk(kind) if _names(view, key, renamed)
        }
    for key in renamed:
        row = view.row(key)
        if _is(key, (layout.CHECKPOINT,)) and row and row["task"] and view.record(row["task"]):
            found.add(row["task"])
    return found


def _names(view: View, key: Key, renamed: set[Key]) -> bool:
    record = view.record(key)
    return record is not None and not renamed.isdisjoint(documents.neighbours(record))


def _is(key: Key, kinds: Iterable[Kind]) -> bool:
    found = layout.numbered(key)
    return found is not None and found[0] in kinds


# ── indexes ──────────────────────────────────────────────────────────────────────────────────
def _shards(view: View, out: dict[str, bytes | None]) -> None:
    for folder in sorted(view.touched_folders()):
        kind = next(k for k in layout.KINDS.values() if k.folder == folder.partition("/")[0])
        parts = view.index.parts(folder)
        if sum(counts["open"] + counts["closed"] for counts in parts.values()) <= layout.WHOLE:
            _listed(kind, folder, "index.json", "README.md", view.rows(folder), view.names(folder), out)
            continue
        for part in view.index.changed(folder) if view.index.is_divided(folder) else parts:
            rows, names = view.index.rows(folder, part), view.index.names(folder, part)
            _listed(kind, folder, f"index/{part}.json", f"index/{part}.md", rows, names, out)
        out[f"{folder}/index.json"] = codec.pretty({"parts": parts})
        out[f"{folder}/README.md"] = indexes.divided(kind, folder, parts)
    for kind in layout.KINDS.values():
        if view.index.changed_folders(kind):
            out[f"{kind.folder}/index.json"] = codec.pretty({"shards": view.shards(kind)})


def _listed(
    kind: Kind,
    folder: str,
    index: str,
    document: str,
    rows: Rows,
    names: Mapping[Key, str],
    out: dict[str, bytes | None],
) -> None:
    """Rows in a list and in a table."""
    out[f"{folder}/{index}"] = codec.pretty({"rows": rows})
    out[f"{folder}/{document}"] = indexes.shard(kind, f"{folder}/{document}", rows, names)


def _signers(view: View, out: dict[str, bytes | None]) -> None:
    writers = sorted(view.manifest.writers)
    if view.tip_writers != set(writers) or any(key.startswith("writer:") for key in view.touched):
        out["keys/allowed_signers"] = project.allowed_signers(view.record(layout.writer_key(w)) for w in writers)


def _sessions(view: View, out: dict[str, bytes | None]) -> None:
    touched = [key for key in view.touched if layout.is_session(key)]
    if not touched:
        return
    sessions = dict(view.json(layout.OPEN_SESSIONS, {}))
    for key in touched:
        sessions.pop(key, None)
        record = view.need(key)
        if not record.get("closed"):
            out[f"{layout.plain_stem(key)}.md"] = None  # it may have been closed, and go on
        if record.get("state") == "open":
            names = ("client", "worktree", "by", "at", "last_at", "process")
            sessions[key] = {name: record.get(name) for name in names}
    _put(view, layout.OPEN_SESSIONS, sessions, out)


# ── handovers by branch ──────────────────────────────────────────────────────────────────────
def _branches(view: View, handovers: list[Key], out: dict[str, bytes | None]) -> None:
    if not handovers:
        return
    recent = {row["branch"]: row for row in view.json(layout.RECENT_BRANCHES, {"rows": []})["rows"]}
    for key in handovers:
        record = view.need(key)
        branch = _branch(record)
        if branch is None:
            continue
        path, row = layout.branch_index(branch), _row(view, key, record)
        known = [old for old in view.json(path, {"rows": []})["rows"] if old["key"] != key]
        rows = [*known, row]
        last = sorted(rows, key=lambda one: one["stamp"], reverse=True)[:BRANCH_HANDOVERS]
        kept = {one["key"]: one for one in (*_newest(rows, BRANCH_HANDOVERS), *last)}
        _put(view, path, {"branch": branch, "rows": _newest(list(kept.values()), len(kept))}, out)
        others = [recent[branch]] if branch in recent and recent[branch]["key"] != key else []
        recent[branch] = _newest([*others, {"branch": branch, **row}], 1)[0]
    _put(view, layout.RECENT_BRANCHES, {"rows": _newest(list(recent.values()), BRANCHES)}, out)


def _put(view: View, path: str, value: Json, out: dict[str, bytes | None]) -> None:
    view.put_json(path, value)
    out[path] = codec.pretty(value)


def _row(view: View, key: Key, record: Record) -> dict[str, Json]:
    position = record.get("position") or {}
    born = min(stamp for _, stamp in record.fields.values())
    return {
        "key": key,
        "name": view.name(key),
        "writer": record.get("by") or "",
        "worktree": position.get("worktree") or "",
        "at": record.get("at") or "",
        "stamp": [born.lamport, born.writer, born.seq],
        "stem": view.stem(key),
        "session": record.get("session"),
        "ledger": record.get("ledger") or "",
    }


def _branch(record: Record) -> str | None:
    position = record.get("position")
    branch = position.get("branch") if isinstance(position, dict) else None
    return branch if isinstance(branch, str) and branch else None


def _newest(rows: list[dict[str, Json]], most: int) -> list[dict[str, Json]]:
    return sorted(rows, key=lambda row: (str(row["at"]), row["stamp"], row["key"]), reverse=True)[:most]
