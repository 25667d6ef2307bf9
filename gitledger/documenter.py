"""A checkpoint that a proposer is asked for: what it is told, what is taken of its answer, what happens without one.

A model proposes, code decides: its change set is applied in the checkpoint, or the checkpoint is derived as any other
and says that no proposal was accepted, and why. So there always is one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial

from gitledger import (
    briefing,
    capture,
    changeset,
    layout,
    lock,
    proof,
    proposer,
    proposerstate,
    reading,
    schema,
    sessions,
    todo,
)
from gitledger.briefing import Survey
from gitledger.derive import Told
from gitledger.errors import LedgerError, LockHeld, NotAllowed
from gitledger.ledger import Ledger, Pointer
from gitledger.model import Event, Finding, Json, Key
from gitledger.render import asking
from gitledger.render import briefing as rendered
from gitledger.values import asdict, dataclass

EVENTS = 500
"""Events of this writer that are looked at for what happened."""
LISTED = 30
"""Tasks, commits and paths that a prompt lists at most."""
REASON = "turns"
"""The reason of a checkpoint that is made behind a turn's end because so many turns had passed."""


@dataclass(frozen=True, slots=True)
class Made:
    """The checkpoint; `why` no proposal was accepted, "" where one was; `heard` is what the proposer said on stderr."""

    pointer: Pointer
    attempts: int
    why: str = ""
    heard: str = ""


def checkpoint(ledger: Ledger, reason: str, session: Key | None = None) -> Made:
    """Ask the configured proposer for a change set and apply it in one checkpoint; without one, derive the checkpoint.

    Raises Blocked, and nothing has changed, where no checkpoint can be made at all; NotAllowed within a proposer's own
    session.
    """
    if os.environ.get("GITLEDGER_PROPOSING"):
        raise NotAllowed("a proposer's own session does not ask a proposer; leave --propose out")
    policy = ledger.desk.config.proposer
    view = ledger.view()
    session = session or sessions.current(view, ledger.hand())
    found: proposer.Proposed[Pointer]
    try:
        if policy.command:
            found = proposer.propose(
                policy.command,
                partial(prompt, ledger, session),
                lambda data: changeset.checkpoint(ledger, data, reason, session),
                cwd=ledger.gitdir.top or ledger.gitdir.common,
                deadline=policy.deadline,
                key="source_digest",
            )
        else:
            why = "no proposer is configured; name one by: gitledger config set proposer.command 'COMMAND WORDS'"
            found = proposer.Proposed(None, 0, why)
    except LedgerError as e:
        # It cannot be started, or the machine failed under its change set: if the latter lasts, so will the next line.
        found = proposer.Proposed(None, 0, str(e))
    if found.value is not None:
        return Made(found.value, found.attempts, "", found.heard)
    pointer = ledger.checkpoint(reason, session=session, told=Told(unproposed=found.why or "it proposed nothing"))
    return Made(pointer, found.attempts, found.why, found.heard)


def behind(ledger: Ledger, session: Key) -> None:
    """Ask the proposer where so many turns of a session have passed; one at a time, and nobody waits for another.

    What goes wrong is in the log and, when it happens again, a finding of the status. Never raises a LedgerError.
    """
    state, name = ledger.desk.home.state, ledger.desk.home.name
    every = proposerstate.every(ledger.desk.config)
    proposerstate.mark(state, ledger.desk.config)
    if not every:
        return
    try:
        with lock.held(proposerstate.lock(state, name), deadline=0):
            before = proposerstate.load(state, name)
            record = ledger.view().record(session)
            turns = record.get("turns", 0) if record else 0
            if not before.due(session, turns, every):
                return
            # Before the long part: a turn's end meanwhile counts from here.
            at = ledger.desk.mint.at()
            why = _asked(ledger, session)
            proposerstate.save(state, name, before.asked(session, turns, at, why))
    except LockHeld:
        return  # it is being asked: the next turn's end counts what was missed
    except (LedgerError, OSError) as e:
        capture.log(ledger.gitdir.common, f"documenter: {e}")


def _asked(ledger: Ledger, session: Key) -> str:
    common = ledger.gitdir.common
    try:
        made = checkpoint(ledger, REASON, session)
    except LedgerError as e:
        capture.log(common, f"documenter: no checkpoint: {e}")
        return str(e)
    if made.why:
        heard = f"; it said: {made.heard}" if made.heard.strip() else ""
        capture.log(common, f"documenter: no proposal was accepted: {made.why}{heard}")
    return made.why


# ── what it is asked ─────────────────────────────────────────────────────────────────────────
def prompt(ledger: Ledger, session: Key | None, errors: tuple[str, ...] = ()) -> str:
    """The prompt for a change set as the ledger stands now; `errors` are what was wrong with the answer before."""
    survey = briefing.survey(ledger, session=session or "")
    policy = ledger.desk.config.briefing
    facts = ledger.facts(survey.view)
    own = survey.assessment.of(ledger.desk.writer.id) == "verified"
    rows, earlier = happened(ledger, session, own=own)
    git = [f"{oid[:12]} {subject}" for oid, subject in facts.commits[:LISTED]]
    git = [f"since {facts.since[:12]}, by whomever, newest first:", *git] if git else ["no commit since the checkpoint"]
    changed = [f"differs since then: {path}" for path in facts.changed[:LISTED]]
    asked = asking.Asked(
        digest=f"{ledger.desk.store.algorithm}:{ledger.tip()}",
        form=json.dumps(_untitled(schema.json_schema("changeset")), separators=(",", ":")),
        briefing=rendered.briefing(survey.facts, policy.lines, policy.chars).rstrip("\n"),
        task=tuple(_task(survey)),
        others=tuple(_others(survey)),
        happened=tuple(rows),
        earlier=earlier,
        git=(*git, *changed, *(f"{name}: {value}" for name, value in asdict(facts.position).items() if value)),
    )
    return asking.prompt(asked, errors)


def _untitled(form: Json) -> Json:
    """A JSON Schema without the titles that only repeat its keys: an eighth of what a model would read."""
    if isinstance(form, list):
        return [_untitled(one) for one in form]
    if not isinstance(form, dict):
        return form
    # Among properties a title is a field of that name, and an object.
    return {key: _untitled(value) for key, value in form.items() if key != "title" or not isinstance(value, str)}


def happened(ledger: Ledger, session: Key | None, *, own: bool = True) -> tuple[list[str], int]:
    """What this work tree's events say since the last proposal that was accepted, and how many came before these.

    `own` is False where a commit in this writer's name need not be this writer's: then only what is still in this
    clone's log is told.
    """
    me = reading.Wanted(writer=ledger.desk.writer.id)
    faults: list[Finding] = []
    rows: list[str] = []
    earlier = 0
    for logged in reading.journal(ledger, faults, me, EVENTS):
        event = logged.event
        if not (own or logged.pending):
            continue
        if event.session not in (None, session) or event.data.get("worktree", ledger.gitdir.worktree) != (
            ledger.gitdir.worktree
        ):
            continue
        if event.type == "checkpoint.made" and any(c.set.get("derived") is False for c in event.records.values()):
            earlier += len(rows) + 1
            rows = []
        elif text := said(event):
            rows.append(f"{event.at[11:16]} {text}")
    return rows, earlier


def said(event: Event) -> str:
    """An event in one line for a model; "" for one that says nothing of the work."""
    data = event.data
    match event.type:
        case "receipt" | "rollover.advised" | "session.started" | "session.resumed" | "session.closed":
            return ""
        case "prompt":
            return f"asked: {data['prompt']}" if data.get("prompt") else ""
        case "turn":
            return f"answered: {data['answer']}" if data.get("answer") else ""
        case "tool":
            return "; ".join(_tool(data))
        case "commit" | "merge":
            return f"git {event.type} {str(data.get('commit', ''))[:12]} {data.get('subject', '')}"
        case "checkout":
            return f"git checkout of {data.get('branch') or data.get('commit', '')}"
        case "checkpoint.made" | "handover.written":
            return " ".join([event.type, *(c.set.get("number_name") or "" for c in event.records.values())]).strip()
    words = [
        f"{name}: {value}"
        for change in event.records.values()
        for name, value in change.set.items()
        if _told(name, value)
    ]
    items = [
        f"{listed}: {fields['text']}"
        for change in event.records.values()
        for listed, found in change.items.items()
        for fields in found.values()
        if isinstance(fields.get("text"), str)
    ]
    return f"{event.type} {'; '.join(words[:6] + items[:6])}".strip()


def _told(name: str, value: Json) -> bool:
    wanted = ("title", "status", "next", "why", "text", "summary", "goal", "resolution", "answer")
    return name in wanted and isinstance(value, str) and bool(value)


def _tool(data: dict[str, Json]) -> Iterator[str]:
    for run in data.get("commands") or ():
        last = (str(run.get("output") or "").strip().splitlines() or [""])[-1]
        status = "" if run.get("exit") is None else f" exited {run.get('exit')}"
        yield f"ran `{run.get('command')}`{status}{': ' + last if last else ''}"
    if data.get("files"):
        yield f"changed {', '.join(map(str, data['files']))}"
    elif data.get("tool") and not data.get("commands"):
        yield f"used {data['tool']}"
    for error in data.get("errors") or ():
        yield f"failed: {error}"


def _task(survey: Survey) -> Iterator[str]:
    task, view = survey.record, survey.view
    if task is None or survey.task is None:
        return
    yield f"{view.name(survey.task)} {task.get('title', '')} ({task.get('status', '')})"
    for name in ("goal", "scope", "non_goals", "summary", "area", "next"):
        if task.get(name):
            yield f"{name}: {task.get(name)}"
    for one in proof.criteria(task):
        yield f"criterion {one.name} {one.text} ({one.state}{': ' + one.proof if one.proof else ''})"
    for step in todo.todos(task):
        yield f"to-do {step.name} {step.text} ({step.state})"
    for row in task.listed("completed")[-LISTED:]:
        yield f"completed: {row.get('text', '')}"
    for row in task.listed("links")[-LISTED:]:
        if row.get("open"):
            yield f"{row.get('kind', '')} {view.name(row['id'])} {row.get('title', '')}"


def _others(survey: Survey) -> Iterator[str]:
    view = survey.view
    rows, count = view.open_rows(layout.TASK, LISTED)
    for key, _ in rows:
        record = view.record(key)
        if record is None or key == survey.task:
            continue
        known = survey.believed(record)
        if "title" in known.fields:
            yield f"{view.name(key)} {known.get('title', '')} ({known.get('status', '')})"
        else:
            yield f"{view.name(key)} (by a writer that is not trusted here)"
    if count > LISTED:
        yield f"and {count - LISTED:,} more"
