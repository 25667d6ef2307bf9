"""What a checkpoint and a handover say when no model says it: composed from records and git, never invented. Pure.

An immutable record is rendered from its own event alone, so everything its document says is put into the event here:
names and texts as they stand now, not references to what may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from gitledger import layout, proof, tasks
from gitledger.layout import Kind
from gitledger.model import Change, Draft, Json, Key, Oid, Position, Record
from gitledger.redact import Clean, redact, shortened
from gitledger.tasks import Hand
from gitledger.view import View

LISTED = 20
"""How many commits, files, decisions and the like one body lists; beyond that it says how many it leaves out."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What git says at this moment, whoever did it.

    `commits` are those that HEAD has and `since`, the head of this work tree's previous checkpoint, had not; `changed`
    the paths that differ between the two. `stale` are (task, evidence id) whose file has changed since.
    """

    position: Position
    commits: tuple[tuple[Oid, str], ...] = ()
    changed: tuple[str, ...] = ()
    since: Oid = ""
    stale: frozenset[tuple[Key, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Told:
    """What a person or a validated change set says in place of what would be derived; "" derives it."""

    summary: str = ""
    next: str = ""
    objective: str = ""
    task: Key | None = None
    derived: bool = True


def checkpoint(
    view: View,
    hand: Hand,
    facts: Facts,
    *,
    reason: str,
    session: Key | None,
    told: Told | None = None,
) -> tuple[Key, Draft]:
    """A checkpoint of the active task (or of the project where none is active) as one event."""
    told = told or Told()
    key = view.next_number(layout.CHECKPOINT, hand.writer)
    task = told.task or tasks.active(view, hand.writer, hand.worktree)
    fields = _body(view, hand, facts, task, session, told)
    before = view.record(layout.worktree_key(hand.writer, hand.worktree))
    previous = before.text("checkpoint") if before else ""
    fields |= {
        "number_name": key.partition("@")[0],
        "reason": reason,
        "previous": view.name(previous) if previous else "",
        "derived": told.derived,
    }
    project = view.record(layout.PROJECT)
    missing = project.get("missing") if project else None
    if isinstance(missing, dict):
        fields["missing"] = f"a compaction went through without one at {missing.get('at')}: {missing.get('reason')}"
    stem = layout.checkpoint_stem(key, key.partition("@")[0], view.folder(task) if task else None)
    pointer = {
        "key": key,
        "name": fields["number_name"],
        "task_name": fields["task_name"],
        "at": fields["at"],
        "path": f"{stem}.md",
    }
    records = {
        key: Change(fields),
        layout.PROJECT: Change({"checkpoint": pointer, "missing": None}),
        layout.worktree_key(hand.writer, hand.worktree): Change(
            {
                "name": hand.worktree,
                "writer": hand.writer,
                "checkpoint": key,
                "head": facts.position.head,
                "at": fields["at"],
            }
        ),
    }
    if task:
        records[task] = Change({"checkpoint": key, "checkpoint_at": fields["at"]})
    return key, hand.draft("checkpoint.made", records, task, reason=reason)


def handover(
    view: View,
    hand: Hand,
    facts: Facts,
    *,
    session: Key | None,
    reason: str,
    checkpoint_name: str = "",
    recovered: bool = False,
    told: Told | None = None,
) -> tuple[Key, Draft]:
    """What the next worker continues from, as one event: Objective, Current State, Next Action."""
    told = told or Told()
    key = view.next_number(layout.HANDOVER, hand.writer)
    task = told.task or tasks.active(view, hand.writer, hand.worktree)
    fields = _body(view, hand, facts, task, session, told)
    episode = view.record(session) if session else None
    fields |= {
        "number_name": key.partition("@")[0],
        "reason": reason,
        "checkpoint_name": checkpoint_name,
        "recovered": recovered,
        "client": episode.get("client", "") if episode else "",
        "kind": "derived" if told.derived else "written",
    }
    records = {key: Change(fields)}
    return key, hand.draft("handover.written", records, task, reason=reason)


def subject(view: View, key: Key, draft: Draft) -> Clean:
    """`C-000123 T-0007: next action or summary`, the first line of the commit."""
    fields = draft.records[key].set
    head = f"{fields['number_name']} {fields['task_name']}".strip()
    return redact(f"{head}: {fields['next'] or fields['title']}")


def capsule(fields: dict[str, Json]) -> tuple[Clean, ...]:
    """A few lines on a checkpoint or handover for its commit message."""
    lines = [f"Objective: {fields['objective']}" if fields.get("objective") else "", *fields["state"][:4]]
    lines.append(f"Next action: {fields['next']}" if fields["next"] else "No next action is recorded.")
    return tuple(redact(line) for line in lines if line)


def _body(view: View, hand: Hand, facts: Facts, task: Key | None, session: Key | None, told: Told) -> dict[str, Json]:
    record = view.need(task) if task else Record("")
    episode = view.record(session) if session else None
    stale = frozenset(item for key, item in facts.stale if key == task)
    criteria = proof.criteria(record, stale)
    linked = [row for row in record.listed("links") if row.get("open")]
    state = _state(record, criteria, told)
    completed = [row.get("text", "") for row in record.listed("completed")]
    evidence = [{"text": proof.words(piece), "state": shown} for piece, shown in proof.states(record, stale)]
    decisions = [
        {"id": view.name(row["id"]), "title": row.get("title", "")} for row in linked if row.get("kind") == "decision"
    ]
    blockers, questions = _open(view, layout.BLOCKER, linked), _open(view, layout.QUESTION, linked)
    sizes = {
        "completed": len(completed),
        "evidence": len(evidence),
        "decisions": len(decisions),
        "blockers": blockers[1],
        "questions": questions[1],
        "commits": len(facts.commits),
    }
    objective = told.objective or record.get("goal") or record.get("title") or ""
    next_action = told.next or (tasks.next_action(record) if task else "")
    return {
        "title": shortened(redact(told.summary or next_action or record.get("title") or "project state"), 120),
        "task": task,
        "task_name": view.name(task) if task else "",
        "task_title": record.get("title", ""),
        "at": hand.mint.at(),
        "by": hand.writer,
        "session": session,
        "ledger": view.manifest.uuid,
        "position": asdict(facts.position),
        "objective": objective,
        "next": next_action,
        "state": state,
        "completed": completed[-LISTED:],
        "criteria": [{"text": c.text, "met": c.met, "proof": c.proof or c.state} for c in criteria],
        "evidence": evidence[-LISTED:],
        "blockers": blockers[0],
        "questions": questions[0],
        "decisions": decisions[-LISTED:],
        "commits": [{"oid": oid, "subject": text} for oid, text in facts.commits[:LISTED]],
        "changed": _listed(facts.changed),
        "since": facts.since,
        "left_out": {name: size - LISTED for name, size in sizes.items() if size > LISTED},
        "last_prompt": episode.get("last_prompt", "") if episode else "",
        "last_answer": episode.get("last_answer", "") if episode else "",
        "errors": (episode.get("errors", []) if episode else [])[-5:],
    }


def _state(task: Record, criteria: list[proof.Criterion], told: Told) -> list[str]:
    lines = [told.summary] if told.summary else []
    if task.get("summary"):
        lines.append(task.get("summary"))
    if task.get("status"):
        lines.append(f"The task is {task.get('status')}.")
    if criteria:
        met = sum(c.met for c in criteria)
        lines.append(f"{met} of {len(criteria)} acceptance criteria met.")
    lines += [f"Done: {row.get('text', '')}" for row in task.listed("completed")[-5:]]
    if task.get("accept_unproven"):
        lines.append(f"Accepted unproven: {task.get('accept_unproven')}")
    return lines


def _open(view: View, kind: Kind, linked: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], int]:
    # The task's own come first, however old; what belongs to no task or another one still stops the project.
    own = [row["id"] for row in linked if row.get("kind") == kind.word][::-1]
    rows, count = view.open_rows(kind, LISTED)
    keys = list(dict.fromkeys([*own, *(key for key, _ in rows)]))[:LISTED]
    titles = {key: row["title"] for key in keys if (row := view.row(key))}
    return [{"id": view.name(key), "text": text} for key, text in titles.items()], count


def _listed(paths: Iterable[str]) -> list[str]:
    names = list(paths)
    more = len(names) - LISTED
    return [*names[:LISTED], f"and {more} more"] if more > 0 else names
