"""What a checkpoint and a handover say when no model says it: composed from records and git, never invented. Pure.

An immutable record is rendered from its own event alone, so everything its document says is put into the event here:
names and texts as they stand now, not references to what may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gitledger import episode, layout, proof, tasks, todo
from gitledger.episode import Recalled
from gitledger.layout import Kind
from gitledger.model import Change, Draft, Json, Key, Oid, Position, Record
from gitledger.redact import Clean, redact, shortened
from gitledger.tasks import Hand
from gitledger.values import asdict, dataclass, field
from gitledger.view import View

NAMED = 5
"""How many paths one sentence names."""
SAID = 200
"""Characters of the last answer that stand in the state; its section holds what was kept of it."""
LISTED = 20
"""How many commits, files, decisions and the like one body lists; beyond that it says how many it leaves out."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What git says at this moment, whoever did it.

    `commits` are those that HEAD has and `since`, the head of this work tree's previous checkpoint, had not; `changed`
    the paths that differ between the two. `stale` has (task, evidence id) of what does not stand any more, with why.
    `uncommitted` are paths that differ from HEAD, where that can be told. `made` are the commits that HEAD has and
    `began`, the head at the session's start, had not, where a session's end is told.
    """

    position: Position
    commits: tuple[tuple[Oid, str], ...] = ()
    changed: tuple[str, ...] = ()
    since: Oid = ""
    stale: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    uncommitted: tuple[str, ...] = ()
    began: Oid = ""
    made: tuple[tuple[Oid, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a person or a validated change set says in place of what would be derived; "" derives it.

    `unproposed` says why no proposal was accepted, where one was asked for.
    """

    summary: str = ""
    next: str = ""
    objective: str = ""
    task: Key | None = None
    derived: bool = True
    unproposed: str = ""


def checkpoint(
    view: View,
    hand: Hand,
    facts: Facts,
    *,
    reason: str,
    session: Key | None,
    told: Told | None = None,
    ended: bool = False,
) -> tuple[Key, Draft]:
    """A checkpoint of the active task (or of the project where none is active) as one event.

    `ended` says that the session is over, so that a request without an answer will get none.
    """
    told = told or Told()
    key = view.next_number(layout.CHECKPOINT, hand.writer)
    task = told.task or tasks.active(view, hand.writer, hand.worktree)
    fields = _body(view, hand, facts, task, session, told, ended=ended)
    before = view.record(layout.worktree_key(hand.writer, hand.worktree))
    previous = before.text("checkpoint") if before else ""
    fields |= {
        "number_name": key.partition("@")[0],
        "reason": reason,
        "previous": view.name(previous) if previous else "",
        "derived": told.derived,
    }
    if told.unproposed:
        fields["unproposed"] = shortened(redact(" ".join(told.unproposed.split())), 400)
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
    ended: bool = False,
) -> tuple[Key, Draft]:
    """What the next worker continues from, as one event: Objective, Current State, Next Action."""
    told = told or Told()
    key = view.next_number(layout.HANDOVER, hand.writer)
    task = told.task or tasks.active(view, hand.writer, hand.worktree)
    fields = _body(view, hand, facts, task, session, told, ended=ended)
    record = view.record(session) if session else None
    if record is not None and told.derived and not task and not episode.recalled(record).busy:
        fields |= _left_before(view, hand, facts.position)
    fields |= {
        "began": facts.began,
        "session_commits": [{"oid": oid, "subject": text} for oid, text in facts.made[:LISTED]],
    }
    if len(facts.made) > LISTED:
        fields["left_out"]["session_commits"] = len(facts.made) - LISTED
    fields |= {
        "number_name": key.partition("@")[0],
        "reason": reason,
        "checkpoint_name": checkpoint_name,
        "recovered": recovered,
        "client": record.get("client", "") if record else "",
        "kind": "derived" if told.derived else "written",
    }
    records = {key: Change(fields)}
    return key, hand.draft("handover.written", records, task, reason=reason)


def _left_before(view: View, hand: Hand, here: Position) -> dict[str, Json]:
    """What this writer's newest handover here says, for a session in which nothing was asked: it still stands.

    Only where the repository stands as it did then; nothing otherwise, since nobody looked at what came between.
    """
    rows = view.json(layout.branch_index(here.branch), {"rows": []})["rows"]
    own = [row for row in rows if row["writer"] == hand.writer and row["worktree"] == here.worktree]
    record = view.record(max(own, key=lambda row: row["stamp"])["key"]) if own else None
    then = record.get("position") if record else None
    if record is None or not isinstance(then, dict):
        return {}
    if any(stamp.writer != hand.writer for _, stamp in record.fields.values()):
        return {}  # another writer's words, whoever it says it is: they are not said again in this one's name
    if any(then.get(name) != getattr(here, name) for name in ("branch", "head", "fingerprint", "worktree")):
        return {}
    name = record.text("carried") or record.text("number_name")
    state = record.get("state") if record.get("carried") is None else (record.get("state") or [])[1:]
    return {
        "carried": name,
        "title": record.text("title"),
        "objective": record.text("objective"),
        "next": record.text("next"),
        "state": [f"Nothing was asked in this session; what {name} left stands:", *(state or [])],
    }


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


def _body(
    view: View, hand: Hand, facts: Facts, task: Key | None, session: Key | None, told: Told, *, ended: bool
) -> dict[str, Json]:
    record = view.need(task) if task else Record("")
    past = episode.recalled(view.record(session) if session else None)
    stale = {item: why for (key, item), why in facts.stale.items() if key == task}
    criteria = proof.criteria(record, stale)
    linked = [row for row in record.listed("links") if row.get("open")]
    state = [*_state(record, criteria, facts, past, told, ended), *([] if task else _finished(view, hand))]
    completed = [row.get("text", "") for row in record.listed("completed")]
    evidence = [
        {"text": proof.words(piece) + (f" ({stale[piece['id']]})" if shown == "STALE" else ""), "state": shown}
        for piece, shown in proof.states(record, stale)
    ]
    candidates = [proof.seen(one) for one in proof.candidates(record) if not one.taken]
    decisions = [
        {"id": view.name(row["id"]), "title": row.get("title", "")} for row in linked if row.get("kind") == "decision"
    ]
    blockers, questions = _open(view, layout.BLOCKER, linked), _open(view, layout.QUESTION, linked)
    steps = todo.still_open(record)
    sizes = {
        "todos": len(steps),
        "completed": len(completed),
        "evidence": len(evidence),
        "decisions": len(decisions),
        "blockers": blockers[1],
        "questions": questions[1],
        "commits": len(facts.commits),
    }
    opening = past.asked[0] if past.asked else ""
    objective = told.objective or record.get("goal") or record.get("title") or opening
    next_action = told.next or (tasks.next_action(record) if task else "") or _following(past, ended)
    title = told.summary or (tasks.next_action(record) if task else "") or record.get("title") or opening
    return {
        "title": shortened(redact(title or next_action or "project state"), 120),
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
        "todos": [{"id": one.name, "text": one.text} for one in steps[:LISTED]],
        "evidence": evidence[-LISTED:],
        "candidates": candidates[:LISTED],
        "blockers": blockers[0],
        "questions": questions[0],
        "decisions": decisions[-LISTED:],
        "commits": [{"oid": oid, "subject": text} for oid, text in facts.commits[:LISTED]],
        "changed": _listed(facts.changed),
        "since": facts.since,
        "left_out": {name: size - LISTED for name, size in sizes.items() if size > LISTED},
        "uncommitted": _listed(facts.uncommitted),
        "turns": past.turns,
        "asked": list(past.asked),
        "ran": [one.value() for one in past.ran],
        "files": _listed(past.files),
        "last_prompt": past.prompt,
        "last_answer": past.answer,
        "errors": list(past.failing())[-5:],
    }


def _finished(view: View, hand: Hand) -> list[str]:
    """That the task which this work tree was at is done, and what was accepted of it without proof."""
    key = tasks.finished(view, hand.writer, hand.worktree)
    if key is None:
        return []
    record = view.need(key)
    unproven = record.text("accept_unproven")
    return [
        f"{view.name(key)} is done: {record.text('title')}",
        *([f"{view.name(key)} was accepted without proof: {unproven}"] if unproven else []),
    ]


def _state(
    task: Record, criteria: list[proof.Criterion], facts: Facts, past: Recalled, told: Told, ended: bool
) -> list[str]:
    lines = [told.summary] if told.summary else []
    if task.get("summary"):
        lines.append(task.get("summary"))
    if task.get("status"):
        lines.append(f"The task is {task.get('status')}.")
    if criteria:
        met = sum(c.met for c in criteria)
        lines.append(f"{met} of {len(criteria)} acceptance criteria met.")
    steps = [one for one in todo.todos(task) if one.state in ("open", "done")]
    if steps:
        lines.append(f"{sum(one.state == 'done' for one in steps)} of {len(steps)} to-dos done.")
    lines += [f"Done: {row.get('text', '')}" for row in task.listed("completed")[-5:]]
    if task.get("accept_unproven"):
        lines.append(f"Accepted unproven: {task.get('accept_unproven')}")
    return [*lines, *_doing(facts, past, ended), *([] if lines else _last_words(past))]


def _doing(facts: Facts, past: Recalled, ended: bool) -> list[str]:
    """What the session did and where that left the repository, in a few lines."""
    lines = []
    if past.turns:
        turns = "1 turn" if past.turns == 1 else f"{past.turns:,} turns"
        files = f"changed {_few(past.files)}" if past.files else "changed no file by its tools"
        lines.append(f"This session ({past.client}, {turns}) {files}.")
    if past.undone:
        lines.append(f"Taken back by the person, with its turn; files stay as they are: {_few(past.undone, '; ')}")
    tests = [one for one in past.ran if one.tests]
    lines += [f"Tests {one.tests}: {episode.words(one)}" for one in tests[-2:]]
    made, since = (facts.made, "it began") if facts.began else (facts.commits, "the checkpoint before")
    if made:
        lines.append(f"New in HEAD since {since}, by whomever: {_few([text for _, text in made], '; ')}")
    if facts.uncommitted:
        lines.append(f"Not committed: {_few(facts.uncommitted)}.")
    elif facts.position.dirty:
        lines.append(f"{facts.position.dirty:,} paths are not committed.")
    if past.unanswered:
        lines.append(f"The last request {'was cut off before its turn ended' if ended else 'is under way'}.")
    return lines


def _last_words(past: Recalled) -> list[str]:
    # Where no task says where things stand, what the client said last does.
    return [f"Said last: {shortened(episode.one_line(past.answer), SAID)}"] if past.answer else []


def _following(past: Recalled, ended: bool) -> str:
    """What follows from the session alone, where nobody recorded a next action; "" where nothing does."""
    if past.unanswered:
        asked = "Finish the last request, which was cut off" if ended else "Go on with the request that is under way"
        return f"{asked}: {episode.one_line(past.prompt)}"
    if past.ran and past.ran[-1].tests == "failed":
        return f"Make this pass: {episode.words(past.ran[-1])}"
    return ""


def _few(names: Sequence[str], between: str = ", ") -> str:
    """`a.py, b.py and 3 more`."""
    more = len(names) - NAMED
    return f"{between.join(names[:NAMED])}{f' and {more:,} more' if more > 0 else ''}"


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
