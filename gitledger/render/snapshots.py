"""What is never changed again: checkpoints, handovers, closed sessions. Pure.

Each is rendered from its own event alone, so that a rebuild after a merge tells the story that was signed; another
record is named as it was called then, and linked by its key where a link is given.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitledger.model import Json, Record
from gitledger.render.page import (
    code,
    entry_link,
    facts,
    few,
    joined,
    page,
    position,
    prose,
    said,
    section,
    short,
    when,
)
from gitledger.render.text import inline

SHOWN = 200
"""How many lines a list in such a document shows before it says how many more the JSON holds."""
_REST = "in the JSON beside this file"


def checkpoint(record: Record, *, below_task: bool) -> bytes:
    """The document of a checkpoint; `below_task` is true where it lies in its task's folder."""
    missing = record.get("missing")
    return page(
        _title(record),
        joined(_task(record, "[{}](../../TASK.md)" if below_task else "{}"), _made(record), *_session(record)),
        f"**CHECKPOINT MISSING:** {inline(missing)}" if missing else "",
        *_body(record),
        section("Acceptance criteria", _criteria(record.get("criteria"))),
        _todos(record),
        section("Completed", [*_earlier(record, "completed"), *_plain(record.get("completed"))]),
        section("Evidence", [*_earlier(record, "evidence"), *_evidence(record.get("evidence"))]),
        section("Seen in turns, not verified", _plain(record.get("candidates"))),
        *_open(record),
        section("Decisions", [*_earlier(record, "decisions"), *_named(record.get("decisions"), "title")]),
        *_work(record),
        *_last(record),
        joined(
            f"Follows {inline(record.get('previous'))}" if record.get("previous") else "The first of its task.",
            "derived from records, journal and git; no model wrote it." if record.get("derived") else "",
        ),
        f"**No proposal was accepted:** {inline(record.get('unproposed'))}" if record.get("unproposed") else "",
    )


def handover(record: Record, source: str) -> bytes:
    """The document of a handover; `source` is its path in the ledger's tree."""
    task = record.get("task")
    link = entry_link(source, task) if task else ""
    return page(
        _title(record),
        joined(
            _task(record, link or "{}"),
            _made(record),
            *_session(record),
            f"checkpoint {inline(record.get('checkpoint_name'))}" if record.get("checkpoint_name") else "",
        ),
        "**Recovered:** the session ended without saying so; this was composed from what it had journalled."
        if record.get("recovered")
        else "",
        *_body(record),
        _todos(record),
        *_open(record),
        *(_since_it_began(record) if record.get("session_commits") else _work(record)),
        *_last(record),
        f"*{'Written by its author' if record.get('kind') == 'written' else 'Derived from records, journal and git'}. "
        "A handover is not the source of truth, git is: compare where the repository stands now before following it.*",
    )


def session(key: str, record: Record) -> bytes | None:
    """The document of a closed session, or None while it is open."""
    closed = record.get("closed")
    if not closed:
        return None
    return page(
        f"# Session {key}",
        facts(
            (
                ("Client", inline(record.get("client", ""))),
                ("Opened", when(record.get("at"))),
                ("Closed", joined(when(closed.get("at")), inline(closed.get("reason") or ""))),
                ("Goes on from", code(record.get("parent")) if record.get("parent") else ""),
                ("Turns", inline(str(closed.get("turns", 0)), 20)),
                ("Checkpoint", inline(closed.get("checkpoint_name") or "")),
                ("Handover", inline(closed.get("handover_name") or "")),
            )
        ),
        section("Where the repository stood", position(closed.get("position"))),
        section("Files", _paths(closed.get("files"))),
    )


# ── what they share ──────────────────────────────────────────────────────────────────────────
def _title(record: Record) -> str:
    name = record.get("number_name") or record.key.partition("@")[0]
    return f"# {inline(name)} {inline(record.get('title', ''))}"


def _task(record: Record, form: str) -> str:
    name = inline(record.get("task_name") or "")
    return f"Task {form.format(name)} {inline(record.get('task_title') or '')}" if name else "No task"


def _made(record: Record) -> str:
    by, reason = record.get("by"), record.get("reason")
    return joined(
        joined(when(record.get("at")), f"by {code(by)}" if by else ""), f"reason: {inline(reason)}" if reason else ""
    )


def _session(record: Record) -> Iterable[str]:
    if record.get("client"):
        yield inline(record.get("client"))
    if record.get("session"):
        yield f"session {code(record.get('session'))}"


def _body(record: Record) -> Iterable[str]:
    yield section("Objective", prose(record.get("objective") or ""), "*None is recorded.*")
    yield section("Current State", _plain(record.get("state")), "*Nothing is recorded.*")
    yield section("Next Action", said(record.get("next") or ""), "*None is recorded.*")
    yield section("Where the repository stood", position(record.get("position")))
    yield section("Not committed then", _paths(record.get("uncommitted")))


def _last(record: Record) -> Iterable[str]:
    asked = record.get("asked") or []
    yield section("What was asked in this session", _plain(asked) if len(asked) > 1 else "")
    yield section("What was run in it, and how it ended last", _ran(record.get("ran")))
    yield section("Files that it changed", _paths(record.get("files")))
    yield section("Last request", said(record.get("last_prompt") or ""))
    yield section("Last answer", said(record.get("last_answer") or ""))
    yield section("What failed last", _plain(record.get("errors")))


def _open(record: Record) -> Iterable[str]:
    for title, name in (("Blockers", "blockers"), ("Open questions", "questions")):
        yield section(title, [*_named(record.get(name), "text"), *_earlier(record, name)], "*None.*")


def _todos(record: Record) -> str:
    count = (record.get("left_out") or {}).get("todos")
    return section("To do", [*_named(record.get("todos"), "text"), *([f"- *and {count:,} more*"] if count else [])])


def _work(record: Record) -> Iterable[str]:
    # Git tells what came since, not who did it: none of it is said to be the session's own work.
    commits = [*_commits(record.get("commits")), *_earlier(record, "commits")]
    yield section("Commits since the previous checkpoint here, by whomever", commits)
    yield section("Paths that differ since then", _paths(record.get("changed")))


def _since_it_began(record: Record) -> Iterable[str]:
    rows = [*_commits(record.get("session_commits")), *_earlier(record, "session_commits")]
    yield section("Commits since the session began, by whomever", rows)
    yield section("Paths that differ since the previous checkpoint here", _paths(record.get("changed")))


def _earlier(record: Record, name: str) -> list[str]:
    count = (record.get("left_out") or {}).get(name)
    return [f"- *and {count:,} earlier*"] if count else []


def _plain(rows: Json) -> list[str]:
    return few(
        [f"- {inline(row if isinstance(row, str) else row.get('text', ''))}" for row in rows or ()], SHOWN, _REST
    )


def _named(rows: Json, field: str) -> list[str]:
    return few([f"- {inline(row.get('id', ''))} {inline(row.get(field, ''))}" for row in rows or ()], SHOWN, _REST)


def _criteria(rows: Json) -> list[str]:
    lines = [
        f"- [{'x' if row.get('met') else ' '}] {inline(row.get('text', ''))}"
        + (f" — {inline(row['proof'])}" if row.get("proof") else "")
        for row in rows or ()
    ]
    return few(lines, SHOWN, _REST)


def _evidence(rows: Json) -> list[str]:
    lines = [f"- {inline(row.get('state', '') or 'UNVERIFIED')}: {inline(row.get('text', ''))}" for row in rows or ()]
    return few(lines, SHOWN, _REST)


def _ran(rows: Json) -> list[str]:
    lines = []
    for row in rows or ():
        ended = "" if row.get("exit") is None else f"exited {inline(str(row.get('exit')), 20)}"
        told = ": ".join(word for word in (ended, inline(row.get("said") or "")) if word)
        lines.append(f"- {code(row.get('command', ''))} {told}".rstrip())
    return few(lines, SHOWN, _REST)


def _commits(rows: Json) -> list[str]:
    return few([f"- {short(row.get('oid', ''))} {inline(row.get('subject', ''))}" for row in rows or ()], SHOWN, _REST)


def _paths(rows: Json) -> list[str]:
    return few([f"- {code(row)}" for row in rows or ()], SHOWN, _REST)
