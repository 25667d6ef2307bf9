"""The lists: INDEX, DECISIONS, BLOCKERS, ARTIFACTS, and the table of a shard. Pure, bounded, from index rows alone.

They never load a record: what they cost follows what they show, not the ledger's history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitledger import layout, relations
from gitledger.layout import Kind
from gitledger.model import Key
from gitledger.render import graph
from gitledger.render.page import anchor, day, entry_link, page, relative, section, table
from gitledger.render.text import cell, inline
from gitledger.shards import Row
from gitledger.view import View

SHOWN = 40
"""How many records a list shows before it says how many more there are, and where."""
WAITS = 6
"""How many of those that a task waits for its line names."""
SHARDS = 60
"""How many shards a list links, the newest ones."""

_KEY = "An arrow leads to the task that waits; a dotted line joins a task with its parts."
_ORDER = ("active", "blocked", "planned", "discovered")
_STATES = {"D": ("Standing", "Superseded"), "Q": ("Open", "Answered"), "B": ("Open", "Resolved")}
_TITLES = {"tasks": "Tasks", "decisions": "Decisions", "blockers": "Blockers", "questions": "Questions"}


def index(view: View) -> bytes:
    """INDEX.md: a map of the newest open tasks, by area with what each waits for, then where all of them are."""
    rows, total = view.open_rows(layout.TASK, SHOWN)
    counts: dict[str, int] = {}
    unproven = 0
    for shard in view.shards(layout.TASK).values():
        unproven += shard.get("unproven", 0)
        for name, n in shard.items():
            if name.startswith("status:"):
                counts[name[7:]] = counts.get(name[7:], 0) + n
    order = {status: n for n, status in enumerate((*_ORDER, "done", "dropped"))}

    def rank(status: str) -> tuple[int, str]:
        return order.get(status, len(order)), status

    now = [_task_line(view, *r) for r in rows if r[1]["status"] == "active"]
    areas: dict[str, list[str]] = {}
    for key, row in sorted(rows, key=lambda r: (r[1]["area"].casefold(), r[1]["area"], rank(r[1]["status"]))):
        areas.setdefault(row["area"], []).append(_task_line(view, key, row))
    listed = [
        f"**{inline(area, 60) or 'No area'}**\n\n" + "\n".join(lines)
        for area, lines in sorted(areas.items(), key=lambda one: not one[0])
    ]
    return page(
        "# Tasks",
        "[Project](PROJECT.md) · [Decisions](DECISIONS.md) · [Blockers and questions](BLOCKERS.md) · "
        "[Artifacts](ARTIFACTS.md)",
        section("Active", now),
        section("Map", _map(view, [key for key, _ in rows])),
        section("Open, by area", "\n\n".join(listed)),
        "" if total else "*No task is open.*",
        _more(layout.TASK, total, "open"),
        section(
            "How many",
            table(("Status", "Tasks"), ((cell(s), f"{counts[s]:,}") for s in sorted(counts, key=rank))),
        ),
        f"Accepted without proof: {unproven:,} of those that are done." if unproven else "",
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


def shard(kind: Kind, source: str, rows: Mapping[Key, Row], names: Mapping[Key, str]) -> bytes:
    """The table of a shard, or of one number of it: one line for each record, in the order of their numbers."""
    folder = "/".join(source.split("/")[:2])
    status, task = any(row["status"] for row in rows.values()), kind is layout.CHECKPOINT
    head = ["Id", *(["Status"] if status else []), "Title", *(["Task"] if task else []), "Since"]
    lines = []
    for key in sorted(rows):
        row = rows[key]
        lines.append(
            [
                f'<a id="{anchor(key)}"></a>{_own_link(kind, source, names[key], row)}',
                *([cell(row["status"]) + (", without proof" if row.get("unproven") else "")] if status else []),
                cell(row["title"]),
                *([entry_link(source, row["task"]) if row["task"] else ""] if task else []),
                day(row["at"]),
            ]
        )
    if source != f"{folder}/README.md":
        return page(f"# {min(rows).partition('@')[0]}", table(head, lines))
    return page(_shard_title(kind, folder), table(head, lines))


def divided(kind: Kind, folder: str, parts: Mapping[str, Mapping[str, int]]) -> bytes:
    """The README.md of a shard whose numbers have a table each: where those are, and how much each holds."""
    digits = folder.rpartition("/")[2].removesuffix("xx")
    rows = [
        (f"[{kind.letter}-{digits}{part}](index/{part}.md)", f"{counts['open']:,}", f"{counts['closed']:,}")
        for part, counts in parts.items()
    ]
    said = (
        "Writers that did not know of each other gave out these numbers several times. Each number has its own table."
    )
    return page(_shard_title(kind, folder), said, table(("Number", "Open", "Closed"), rows))


# ── parts of them ────────────────────────────────────────────────────────────────────────────
def _shard_title(kind: Kind, folder: str) -> str:
    low = folder.rpartition("/")[2].replace("x", "0")
    high = folder.rpartition("/")[2].replace("x", "9")
    return f"# {_TITLES.get(kind.folder, kind.folder.capitalize())} {low} to {high}"


def _own_link(kind: Kind, source: str, name: str, row: Row) -> str:
    up = "../" * (source.count("/") - 2)
    if kind is layout.TASK:
        folder = f"{name}{'-' + row['slug'] if row['slug'] else ''}"
        return f"[{name}]({up}{folder}/TASK.md)"
    # A checkpoint lies in its task's folder, whose name is the task's to change: the table leads there by its key.
    return name if kind is layout.CHECKPOINT and row["task"] else f"[{name}]({up}{name}.md)"


def _task_line(view: View, key: Key, row: Row) -> str:
    parts = [f"**{inline(row['status'], 20) or 'no status'}**"]
    waits = [one for one in relations.waits_for(view, key) if one != key]
    if waits:
        more = f" and {len(waits) - WAITS:,} more" if len(waits) > WAITS else ""
        parts.append(f"waits for {', '.join(_task_link(view, one) for one in waits[:WAITS])}{more}")
    if row.get("parent") and view.row(row["parent"]):
        parts.append(f"part of {_task_link(view, row['parent'])}")
    return f"- {_task_link(view, key)} {inline(row['title'])} · {' · '.join((*parts, day(row['at'])))}"


def _task_link(view: View, key: Key) -> str:
    return f"[{view.name(key)}]({view.folder(key)}/TASK.md)"


def _map(view: View, keys: Sequence[Key]) -> str:
    drawn = graph.graph(view, keys)
    rings = [
        f"**{fault.where}:** {fault.what}; to end it: `{fault.mend}`"
        for fault in relations.rings(view, list(keys), relations.WALKED)
    ]
    left = [_task_link(view, key) for key in drawn.left_out]
    more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
    gone = f"*Not drawn: {', '.join(left[:SHOWN])}{more}*" if left else ""
    return "\n\n".join(filter(None, (_KEY if drawn.text else "", drawn.text, gone, *rings)))


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
    shards = view.shards(kind)
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
