"""A task's four documents: what it is, where it stands, what is to do, and what that rests on. Pure.

Each is rendered from the task's own record; `link` knows what its neighbours are called and where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence

from gitledger import proof, todo
from gitledger.model import Json, Record
from gitledger.patterns import pattern
from gitledger.render.page import (
    Link,
    code,
    day,
    facts,
    few,
    joined,
    page,
    prose,
    said,
    section,
    short,
    table,
    when,
)
from gitledger.render.text import cell, inline

SHOWN = 40
"""How many completed works, pieces of evidence or links STATE.md and TODO.md show; SOURCES.md holds them all."""
STATE_LINES = 80
STATE_CHARS = 8_000
"""What STATE.md of one task may hold, entries that it leaves out counted: beyond it the task is more than one."""
_REST = "[SOURCES.md](SOURCES.md)"

_OTHERS = ("TASK.md", "STATE.md", "TODO.md", "SOURCES.md")
_WORDS = {"TASK.md": "Task", "STATE.md": "State", "TODO.md": "To do", "SOURCES.md": "Sources"}
_CLOSED = {"decision": "superseded", "blocker": "resolved", "question": "answered"}
_RUN = pattern(r"(?s)`(.*)` exited ([0-9-]+(?:, [^`]*)?)\Z")
_SEEN = 5
"""Test results of turns that STATE.md shows, the newest."""
_LINKED = {
    "decision": "Decisions",
    "blocker": "Blockers",
    "question": "Questions",
    "artifact": "Artifacts",
    "note": "Notes",
}


def documents(name: str, task: Record, link: Link) -> dict[str, bytes]:
    """The documents of a task by file name; `link` gives links relative to the task's folder."""
    state, hidden = _state(name, task, link)
    # Without where its links lead it is only shorter, so most tasks are rendered once.
    grown = _grown(name, task) if _is_over(state, hidden) else ""
    if grown:
        state, _ = _state(name, task, link, grown)
    return {
        "TASK.md": _task(name, task, link, grown),
        "STATE.md": state.encode(),
        "TODO.md": _todo(name, task, link),
        "SOURCES.md": _sources(name, task, link),
    }


def _task(name: str, task: Record, link: Link, grown: str) -> bytes:
    unproven = task.get("accept_unproven")
    depends = [
        f"- {link(row['id'])} {inline(row.get('title', ''))}" for row in task.listed("depends") if row.get("live")
    ]
    came = task.get("split_from")
    return page(
        f"# {name} {inline(task.get('title', ''))}",
        joined(_status(task), _menu("TASK.md")),
        grown,
        facts(
            (
                ("Made", joined(when(task.get("at")), f"by {code(task.get('by', ''))}" if task.get("by") else "")),
                ("Area", inline(task.get("area", ""))),
                ("Part of", link(task.get("parent")) if task.get("parent") else ""),
                ("Split from", link(came) if came else ""),
                ("Done", when(task.get("done_at")) if task.get("status") == "done" and task.get("done_at") else ""),
                ("Accepted without proof", inline(unproven) if unproven else ""),
            )
        ),
        section("Goal", prose(task.get("goal", "")), "*No goal is written down.*"),
        section("Scope", prose(task.get("scope", ""))),
        section("Not in scope", prose(task.get("non_goals", ""))),
        section("Acceptance criteria", _criteria(task, link), "*No acceptance criteria are written down.*"),
        section("To do", _todos(task, link)),
        section("Depends on", depends),
        section("Split off", _links(task, link, "task")),
        section("Decisions", _links(task, link, "decision")),
    )


def outgrown(task: Record) -> str:
    """How an open task's STATE.md is over its budget, "" where it is not; that depends on the record alone."""
    if task.get("status") in ("done", "dropped"):
        return ""
    # A link's name counts, where it leads does not: that is the same wherever the task lies, whatever it is called.
    text, hidden = _state("", task, str)
    if not _is_over(text, hidden):
        return ""
    lines = text.count("\n") + hidden
    return f"its STATE.md has {lines:,} lines and {len(text):,} characters, over its {STATE_LINES} and {STATE_CHARS:,}"


def _is_over(text: str, hidden: int) -> bool:
    return text.count("\n") + hidden > STATE_LINES or len(text) > STATE_CHARS


def _grown(name: str, task: Record) -> str:
    grown = outgrown(task)
    if not grown:
        return ""
    split = f"gitledger task split {name} --title TITLE --criterion C --todo T"
    return f"**This task wants splitting:** {grown}. Carry a part of it over: `{split}`."


def _state(name: str, task: Record, link: Link, grown: str = "") -> tuple[str, int]:
    """STATE.md, and how many lines of its lists it leaves out."""
    cut = task.get("split_at", "")
    done = [_completed(task, row) for row in reversed(task.listed("completed")) if row.get("at", "") > cut]
    before = len(task.listed("completed")) - len(done)
    standing = {criterion.id for criterion in proof.criteria(task)}
    pieces = [
        (piece, shown)
        for piece, shown in proof.states(task)
        if shown in ("verified", "failed") and (piece.get("at", "") > cut or piece.get("criterion") in standing)
    ]
    checkpoint = task.get("checkpoint")
    open_ = {kind: _open(task, link, kind) for kind in ("blocker", "question")}
    steps = _steps(task)
    lengths = (len(done), len(pieces), len(open_["blocker"]), len(open_["question"]), len(steps))
    text = page(
        f"# {name} {inline(task.get('title', ''))}: state",
        joined(_status(task), _menu("STATE.md")),
        grown,
        f"**Accepted without proof:** {inline(task.get('accept_unproven'))}" if task.get("accept_unproven") else "",
        inline(task.get("summary", "")),
        section("Next action", _next(task)),
        section("To do", few(steps, SHOWN, "[TODO.md](TODO.md)")),
        section("Completed", few(done, SHOWN, _REST), "*Nothing yet.*"),
        f"*and {before:,} before it was split: {_REST}*" if before else "",
        section("Blockers", few(open_["blocker"], SHOWN, _REST), "*None.*"),
        section("Open questions", few(open_["question"], SHOWN, _REST), "*None.*"),
        section("Verified state", _verified(pieces[-SHOWN:]), "*No command, commit or file proves anything yet.*"),
        section("Seen in turns, not verified", _candidates(task)),
        section(
            "Newest checkpoint",
            joined(link(checkpoint), when(task.get("checkpoint_at"))) if checkpoint else "*None yet.*",
        ),
    ).decode()
    return text, sum(max(0, length - SHOWN) for length in lengths)


def _todo(name: str, task: Record, link: Link) -> bytes:
    still = [
        line for criterion, line in zip(proof.criteria(task), _criteria(task, link), strict=False) if not criterion.met
    ]
    closed = [one for one in todo.todos(task) if one.state != "open"]
    return page(
        f"# {name} {inline(task.get('title', ''))}: to do",
        joined(_status(task), _menu("TODO.md")),
        section("Next action", _next(task)),
        section("To do", _steps(task)),
        section("Criteria still open", still, "*None.*"),
        section("Blockers", few(_open(task, link, "blocker"), SHOWN, _REST), "*None.*"),
        section("Open questions", few(_open(task, link, "question"), SHOWN, _REST), "*None.*"),
        section("Closed", [_closed_todo(one, link) for one in reversed(closed)]),
    )


def _sources(name: str, task: Record, link: Link) -> bytes:
    pieces = task.listed("evidence")
    runs = [p for p in pieces if p.get("kind") == "run"]
    names = proof.item_names(p["id"] for p in pieces)
    done = [_completed(task, row) for row in reversed(task.listed("completed"))]
    return page(
        f"# {name} {inline(task.get('title', ''))}: sources",
        joined(_status(task), _menu("SOURCES.md")),
        *(section(title, _links(task, link, kind)) for kind, title in _LINKED.items()),
        section("Completed", done),
        section(
            "Commands",
            table(
                ("Id", "Command", "Exit", "Ran at", "On head", "When", "Depends on"),
                (
                    (
                        cell(names[p["id"]]),
                        code(p.get("command", "")).replace("|", "\\|"),
                        cell(str(p.get("exit", ""))),
                        "dirty tree" if p.get("dirty") else "clean tree",
                        short(p["head"]) if p.get("head") else "",
                        when(p.get("at")),
                        cell(", ".join(proof.covers(p)) or "all but prose"),
                    )
                    for p in runs
                ),
            ),
        ),
        section(
            "Commits",
            [f"- {code(p.get('commit', ''))} {day(p.get('at'))}" for p in pieces if p.get("kind") == "commit"],
        ),
        section(
            "Files",
            table(
                ("Path", "Blob", "When"),
                (
                    (cell(path), short(blob), when(p.get("at")))
                    for p in pieces
                    if p.get("kind") == "path"
                    for path, blob in proof.files(p).items()
                ),
            ),
        ),
        section(
            "Claims, UNVERIFIED",
            [
                f"- {joined(inline(p.get('text', '')), inline(p.get('source', '')))}"
                for p in pieces
                if proof.state(p) == "UNVERIFIED"
            ],
        ),
        *([] if pieces or done or task.items.get("links") else ["*Nothing is recorded yet.*"]),
    )


# ── parts of them ────────────────────────────────────────────────────────────────────────────
def _status(task: Record) -> str:
    return f"**{inline(task.get('status', '') or 'no status')}**"


def _menu(own: str) -> str:
    return " · ".join(f"[{_WORDS[file]}]({file})" for file in _OTHERS if file != own)


def _next(task: Record) -> str:
    if not task.get("next"):
        return "*No next action is recorded.*"
    return f"{said(task.get('next'))}\n\n{'Set ' + when(task.get('next_at')) if task.get('next_at') else ''}"


def _steps(task: Record) -> list[str]:
    return [f"- [ ] {inline(one.name)} {inline(one.text)}" for one in todo.still_open(task)]


def _todos(task: Record, link: Link) -> list[str]:
    return [*_steps(task), *(_closed_todo(one, link) for one in todo.todos(task) if one.state != "open")]


def _closed_todo(one: todo.Todo, link: Link) -> str:
    text = inline(one.text) or "no text"
    if one.state == "done":
        return f"- [x] {joined(text, day(one.at))}"
    return f"- ~~{text}~~ {f'moved to {link(one.moved)}' if one.state == 'moved' else 'dropped'}"


def _criteria(task: Record, link: Link) -> list[str]:
    lines = []
    for criterion in proof.criteria(task):
        shown = f"{criterion.state}: {_words(criterion.proof)}" if criterion.proof else "no evidence yet"
        lines.append(f"- [{'x' if criterion.met else ' '}] {inline(criterion.text)} — {shown}")
    dropped = [row for row in task.listed("criteria") if row.get("dropped")]
    return lines + [
        f"- ~~{inline(row.get('text', '')) or 'no text'}~~ "
        + (f"moved to {link(row['moved'])}" if row.get("moved") else "dropped")
        for row in dropped
    ]


def _links(task: Record, link: Link, kind: str) -> list[str]:
    closed = f" — {_CLOSED.get(kind, 'closed')}"
    return [
        f"- {link(row['id'])} {inline(row.get('title', ''))}{'' if row.get('open', True) else closed}"
        for row in reversed(task.listed("links"))
        if row.get("kind") == kind
    ]


def _open(task: Record, link: Link, kind: str) -> list[str]:
    rows = [row for row in reversed(task.listed("links")) if row.get("kind") == kind and row.get("open")]
    return [f"- {link(row['id'])} {inline(row.get('title', ''))}" for row in rows]


def _completed(task: Record, row: dict[str, Json]) -> str:
    piece = _piece(task, row.get("evidence"))
    shown = f"{proof.state(piece)}: {_words(proof.words(piece))}" if piece else "UNVERIFIED"
    return f"- {joined(day(row.get('at')), inline(row.get('text', '')))} — {shown}"


def _piece(task: Record, item: Json) -> dict[str, Json] | None:
    fields = task.items.get("evidence", {}).get(item) if isinstance(item, str) else None
    return {"id": item, **{n: v for n, (v, _) in fields.items()}} if fields else None


def _words(words: str) -> str:
    # A command as code, so that what people copy is what ran.
    run = _RUN.match(words)
    return f"{code(run[1])} exited {inline(run[2])}" if run else inline(words).replace("\\|", "|")


def _candidates(task: Record) -> list[str]:
    found = [one for one in proof.candidates(task) if not one.taken]
    lines = [
        f"- {inline(one.name)} {code(one.command, 200)} printed {inline(one.text)} {when(one.at)}" for one in found
    ]
    return few(lines[:_SEEN], _SEEN, _REST)


def _verified(pieces: Sequence[tuple[dict[str, Json], proof.State]]) -> str:
    return table(
        ("Evidence", "State", "On head", "When"),
        (
            (
                _words(proof.words(p)).replace("|", "\\|"),
                shown,
                joined(short(p["head"]), "dirty tree" if p.get("dirty") else "") if p.get("head") else "",
                when(p.get("at")),
            )
            for p, shown in reversed(pieces)
        ),
    )
