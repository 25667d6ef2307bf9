"""The lists: INDEX, DECISIONS, BLOCKERS, ARTIFACTS, and the table of a shard. Pure, bounded, from index rows alone.

They never load a record: what they cost follows what they show, not the ledger's history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger import layout
from gitledger.layout import Kind
from gitledger.model import Json, Key
from gitledger.render.page import anchor, day, entry_link, page, relative, section, table
from gitledger.render.text import cell, inline
from gitledger.view import Row, View, count_states

SHOWN = 40
"""How many records a list shows before it says how many more there are, and where."""
SHARDS = 60
"""How many shards a list links, the newest ones."""

_ORDER = ("active", "blocked", "planned", "discovered")
_STATES = {"D": ("Standing", "Superseded"), "Q": ("Open", "Answered"), "B": ("Open", "Resolved")}
_TITLES = {"tasks": "Tasks", "decisions": "Decisions", "blockers": "Blockers", "questions": "Questions"}


def index(view: View) -> bytes:
    """INDEX.md: the newest open tasks by status, then how many there are, then where all of them are."""
    rows, total = view.open_rows(layout.TASK, SHOWN)
    groups = []
    for status in (*_ORDER, ""):
        found = [r for r in rows if r[1]["status"] == status or (not status and r[1]["status"] not in _ORDER)]
        groups.append(section(status.capitalize() or "Other", [_task_line(view, *r) for r in found]))
    counts: dict[str, int] = {}
    for shard in _shards(view, layout.TASK).values():
        for name, n in shard.items():
            if name.startswith("status:"):
                counts[name[7:]] = counts.get(name[7:], 0) + n
    order = {status: n for n, status in enumerate((*_ORDER, "done", "dropped"))}
    return page(
        "# Tasks",
        "[Project](PROJECT.md) · [Decisions](DECISIONS.md) · [Blockers and questions](BLOCKERS.md) · "
        "[Artifacts](ARTIFACTS.md)",
        *groups,
        "" if total else "*No task is open.*",
        _more(layout.TASK, total, "open"),
        section(
            "How many",
            table(
                ("Status", "Tasks"),
                ((cell(s), f"{counts[s]:,}") for s in sorted(counts, key=lambda s: (order.get(s, len(order)), s))),
            ),
        ),
        _where(view, layout.TASK, "All tasks"),
    )


def decisions(view: View) -> bytes:
    """DECISIONS.md: the newest standing decisions, an anchor each, then where all of them are."""
    return page(
        "# Decisions",
        "What was decided and still stands, newest first. Each links to its reason.",
        *_listed(view, layout.DECISION, "standing", "*No decision is recorded yet.*"),
        _where(view, layout.DECISION, "All decisions"),
    )


def blockers(view: View) -> bytes:
    """BLOCKERS.md: what is in the way, and what waits for a person's answer."""
    parts: list[str] = []
    for kind, title in ((layout.BLOCKER, "Blockers"), (layout.QUESTION, "Open questions")):
        lines, more = _listed(view, kind, "open", "*None.*")
        parts += [section(title, lines), more, _where(view, kind, f"All {kind.folder}")]
    return page("# Blockers and questions", *parts)


def artifacts(view: View) -> bytes:
    """ARTIFACTS.md: the newest files and addresses worth knowing."""
    return page(
        "# Artifacts",
        "Files and addresses worth knowing, newest first.",
        *_listed(view, layout.ARTIFACT, "listed", "*No artifact is recorded yet.*"),
        _where(view, layout.ARTIFACT, "All artifacts"),
    )


def shard(kind: Kind, folder: str, rows: Mapping[Key, Row], names: Mapping[Key, str]) -> bytes:
    """The README.md of a shard: one line for each of its records, in the order of their numbers."""
    source = f"{folder}/README.md"
    status, task = any(row["status"] for row in rows.values()), kind is layout.CHECKPOINT
    head = ["Id", *(["Status"] if status else []), "Title", *(["Task"] if task else []), "Since"]
    lines = []
    for key in sorted(rows):
        row = rows[key]
        lines.append(
            [
                f'<a id="{anchor(key)}"></a>{_own_link(kind, names[key], row)}',
                *([cell(row["status"])] if status else []),
                cell(row["title"]),
                *([entry_link(source, row["task"]) if row["task"] else ""] if task else []),
                day(row["at"]),
            ]
        )
    low = folder.rpartition("/")[2].replace("x", "0")
    high = folder.rpartition("/")[2].replace("x", "9")
    title = f"# {_TITLES.get(kind.folder, kind.folder.capitalize())} {low} to {high}"
    return page(title, table(head, lines))


# ── parts of them ────────────────────────────────────────────────────────────────────────────
def _own_link(kind: Kind, name: str, row: Row) -> str:
    if kind is layout.TASK:
        folder = f"{name}{'-' + row['slug'] if row['slug'] else ''}"
        return f"[{name}]({folder}/TASK.md)"
    # A checkpoint lies in its task's folder, whose name is the task's to change: the table leads there by its key.
    return name if kind is layout.CHECKPOINT and row["task"] else f"[{name}]({name}.md)"


def _task_line(view: View, key: Key, row: Row) -> str:
    area = f" · {inline(row['area'], 60)}" if row.get("area") else ""
    return f"- [{view.name(key)}]({view.folder(key)}/TASK.md) {inline(row['title'])}{area} · {day(row['at'])}"


def _listed(view: View, kind: Kind, word: str, empty: str) -> tuple[str, str]:
    rows, total = view.open_rows(kind, SHOWN)
    source = f"{kind.folder}.md"  # any file at the root: links start there
    lines = []
    for key, row in rows:
        task = f" · {entry_link(source, row['task'])}" if row["task"] else ""
        anchored = f'<a id="{anchor(key)}"></a>[{view.name(key)}]({view.stem(key)}.md)'
        lines.append(f"- {anchored} {inline(row['title'])}{task} · {day(row['at'])}")
    return "\n".join(lines) or empty, _more(kind, total, word)


def _more(kind: Kind, total: int, word: str) -> str:
    return f"*and {total - SHOWN:,} more {word}: [{kind.folder}/]({kind.folder}/)*" if total > SHOWN else ""


def _where(view: View, kind: Kind, title: str) -> str:
    shards = _shards(view, kind)
    newest = sorted(shards, key=lambda s: (len(s), s), reverse=True)
    rows: list[Sequence[str]] = [
        (
            f"[{shard}]({relative('INDEX.md', f'{kind.folder}/{shard}/README.md')})",
            f"{shards[shard].get('open', 0)}",
            f"{shards[shard].get('closed', 0)}",
        )
        for shard in newest[:SHARDS]
    ]
    more = f"\n\n*and {len(newest) - SHARDS:,} more: [{kind.folder}/]({kind.folder}/)*" if len(newest) > SHARDS else ""
    return (
        section(title, table(("Numbers", *_STATES.get(kind.letter, ("Open", "Closed"))), rows) + more) if rows else ""
    )


def _shards(view: View, kind: Kind) -> dict[str, dict[str, int]]:
    touched: dict[str, Json] = {
        folder.rpartition("/")[2]: count_states(view.rows(folder))
        for folder in view.touched_folders()
        if folder.startswith(f"{kind.folder}/")
    }
    return {**view.shards(kind), **touched}
