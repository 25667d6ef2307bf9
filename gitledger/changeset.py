"""A change set held against the present ledger, and applied in one checkpoint: whole, or not at all.

Every update is checked on top of those before it, in a view that nobody else sees; only when none is refused do their
events go into the commit, with the checkpoint behind them. What a model says of itself proves nothing: a commit must
exist, a file must be there, and a command that it says it ran is kept as a claim.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from gitledger import checking, derive, entries, evidence, ingest, layout, schema, sessions, tasks
from gitledger.derive import Told
from gitledger.errors import BadData, Blocked, LedgerError, NotAllowed
from gitledger.ledger import Ledger, Pointer
from gitledger.model import Draft, Json, Key
from gitledger.proposal import (
    Answer,
    Artifact,
    Blocker,
    ChangeSet,
    Complete,
    Decide,
    Evidence,
    Note,
    Question,
    Resolve,
    TaskAdd,
    TaskSet,
    Todo,
    Update,
)
from gitledger.tasks import Hand
from gitledger.transaction import Plan
from gitledger.values import dataclass, field, replace
from gitledger.view import View


def checkpoint(ledger: Ledger, data: bytes, reason: str, session: Key | None = None) -> Pointer:
    """Apply the change set in `data` with one checkpoint; BadChangeSet names every fault, Blocked what failed.

    Whatever is raised, nothing was applied. `session` is whose it is; None for the one that is open here.
    """
    proposed = schema.read_change_set(data)

    def of(view: View) -> Hand:
        hand = ledger.hand(session)
        return replace(hand, session=session or sessions.current(view, hand))

    def build(view: View) -> Plan:
        hand = of(view)
        drafts, told, scratch = checked(ledger, view, hand, proposed)
        facts = ledger.facts(scratch)
        key, made = derive.checkpoint(scratch, hand, facts, reason=reason, session=hand.session, told=told)
        body = derive.capsule(made.records[key].set)
        return Plan("checkpoint", (*drafts, made), derive.subject(scratch, key, made), body, facts.position)

    # Before the lock too: what is refused touches no file at all. Under it the ledger may be another one by then.
    before = ledger.view()
    checked(ledger, before, of(before), proposed)
    try:
        return ledger.make(build)
    except Blocked as e:
        if isinstance(e.__cause__, schema.BadChangeSet):
            raise e.__cause__ from None
        raise


def checked(ledger: Ledger, view: View, hand: Hand, proposed: ChangeSet) -> tuple[tuple[Draft, ...], Told, View]:
    """The events of a change set, what its checkpoint is told, and the view with them folded in; `view` stays as it is.

    Raises BadChangeSet with every update that the ledger does not take.
    """
    trial = _Trial(ledger, view.fork(), hand)
    tip = ledger.tip()
    digest = f"{ledger.desk.store.algorithm}:{tip}"
    if proposed.source_digest not in (tip, digest):
        trial.errors.append(f"source_digest: is not the ledger's tip, {digest}; read the ledger again and propose anew")
    for n, update in enumerate(proposed.ledger_updates):
        trial.at = f"ledger_updates[{n}]"
        trial.attempt(partial(_events, trial, update))
    if proposed.active_task is not None:
        trial.at = "active_task"
        trial.attempt(lambda: _activate(trial, trial.task("", proposed.active_task)))
    about = trial.current()
    told_next = proposed.next_action or ""
    if told_next and about:
        trial.at = "next_action"
        trial.attempt(lambda: [tasks.set_next(trial.view, hand, about, told_next)])
    if trial.errors:
        raise schema.BadChangeSet(tuple(trial.errors))
    told = Told(summary=proposed.handoff_summary.strip(), next=told_next.strip(), task=about, derived=False)
    return tuple(trial.drafts), told, trial.view


@dataclass(slots=True)
class _Trial:
    """A change set on its way through: the view that its updates see, their events, and what was refused."""

    ledger: Ledger
    view: View
    hand: Hand
    at: str = ""
    drafts: list[Draft] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def attempt(self, step: Callable[[], list[Draft]]) -> None:
        """Fold in what a step says, or note why the ledger does not take it."""
        try:
            self.apply(step())
        except _Refused as e:
            self.errors.append(str(e))
        except LedgerError as e:
            self.errors.append(f"{self.at}: {e}")

    def apply(self, drafts: list[Draft]) -> None:
        """Fold events in, so that the next update sees them."""
        for draft in drafts:
            said = replace(draft, data={**draft.data, "source": "changeset"})
            ingest.stamp(self.view, said, self.hand.writer)
            self.drafts.append(said)

    def key(self, name: str, text: str, kind: layout.Kind) -> Key:
        """What an id names; a refusal says in which field it stands."""
        try:
            return self.view.resolve(text, kind, self.hand.writer)
        except LedgerError as e:
            raise _Refused(f"{'.'.join(filter(None, (self.at, name)))}: {e}") from e

    def task(self, name: str, text: str | None) -> Key:
        """The task that a field names."""
        return self.key(name, text or "", layout.TASK)

    def several(self, name: str, texts: tuple[str, ...]) -> tuple[Key, ...]:
        """The tasks that a list names."""
        return tuple(self.task(f"{name}[{n}]", text) for n, text in enumerate(texts))

    def about(self, text: str | None) -> Key | None:
        """The task that an update is about: the named one, the active one, or none for `-`."""
        if text == "-":
            return None
        return self.task("task", text) if text else self.current()

    def current(self) -> Key | None:
        """The task that this is about: the one that this work tree is at, blocked or not."""
        return tasks.active(self.view, self.hand.writer, self.hand.worktree)

    def piece(self, told: Evidence) -> dict[str, Json]:
        """A piece of evidence as far as this machine can see it itself."""
        gitdir = self.ledger.gitdir
        try:
            if told.commit:
                return evidence.commit(gitdir, told.commit)
            if told.path:
                return evidence.path(gitdir, os.path.join(gitdir.top, told.path))
        except LedgerError as e:
            raise _Refused(f"{self.at}.evidence.{'commit' if told.commit else 'path'}: {e}") from e
        return {"kind": "claim", "text": f"{told.command} exited {told.exit}", "command": told.command}


class _Refused(BadData):
    """A refusal that names its place in the document already."""


# ── the updates ──────────────────────────────────────────────────────────────────────────────
def _events(trial: _Trial, update: Update) -> list[Draft]:
    view, hand = trial.view, trial.hand
    match update:
        case TaskAdd():
            return _task_add(trial, update)
        case TaskSet():
            return _task_set(trial, update)
        case Todo():
            key = trial.task("task", update.task)
            return [tasks.set_todos(view, hand, key, new=update.add, done=update.done, drop=update.drop)]
        case Complete():
            return _complete(trial, update)
        case Decide():
            old = trial.key("supersedes", update.supersedes, layout.DECISION) if update.supersedes else None
            return [entries.decide(view, hand, update.title, update.why, trial.about(update.task), old)[1]]
        case Blocker():
            return [entries.block(view, hand, update.text, trial.task("task", update.task))[1]]
        case Resolve():
            return [entries.resolve(view, hand, trial.key("blocker", update.blocker, layout.BLOCKER), update.text)]
        case Question():
            return [entries.ask(view, hand, update.text, trial.about(update.task))[1]]
        case Answer():
            return [entries.answer(view, hand, trial.key("question", update.question, layout.QUESTION), update.text)]
        case Artifact():
            return _artifact(trial, update)
        case Note():
            return [entries.note(view, hand, update.text, trial.about(update.task))[1]]


def _task_add(trial: _Trial, told: TaskAdd) -> list[Draft]:
    # What an agent comes upon is discovered; that it shall be worked on is said apart.
    parent = trial.task("parent", told.parent) if told.parent else None
    _, draft = tasks.add(
        trial.view,
        trial.hand,
        told.title,
        goal=told.goal,
        accept=told.accept,
        area=told.area,
        parent=parent,
        depends=trial.several("depends", told.depends),
        todos=told.todos,
        status="discovered",
    )
    return [draft]


def _task_set(trial: _Trial, told: TaskSet) -> list[Draft]:
    key = trial.task("task", told.task)
    names = ("title", "goal", "scope", "non_goals", "area", "summary")
    fields = {name: text for name in names if (text := getattr(told, name)) is not None}
    if told.next is not None and told.status in ("done", "dropped"):
        raise _Refused(f"{trial.at}.next: a task that is {told.status} has no next action; leave one of them out")
    parent = trial.task("parent", told.parent) if told.parent else told.parent
    depends, undepend = trial.several("depends", told.depends), trial.several("undepend", told.undepend)

    # Each on top of those before: what was finished takes a next action once it is open again.
    if told.status in ("active", "planned"):
        trial.apply(_moved(trial, key, told.status))
    if fields or told.accept or parent is not None or depends or undepend:
        place = {"accept": told.accept, "depends": depends, "undepend": undepend}
        trial.apply([tasks.edit(trial.view, trial.hand, key, fields=fields, parent=parent, **place)])
    if told.next is not None:
        trial.apply([tasks.set_next(trial.view, trial.hand, key, told.next)])
    return [] if told.status in (None, "active", "planned") else _moved(trial, key, told.status)


def _moved(trial: _Trial, key: Key, status: str) -> list[Draft]:
    try:
        if status == "active":
            return _activate(trial, key)
        if status == "done":
            stale = checking.doubts(trial.ledger, trial.view.need(key))
            return [tasks.done(trial.view, trial.hand, key, stale=stale)]
        return [tasks.move(trial.view, trial.hand, key, status)]
    except NotAllowed as e:
        raise _Refused(f"{trial.at}.status: {e}") from e


def _activate(trial: _Trial, key: Key) -> list[Draft]:
    view, hand = trial.view, trial.hand
    active = tasks.active(view, hand.writer, hand.worktree)
    if active == key:
        blocked = view.need(key).get("status") == "blocked"
        return [tasks.unblock(view, hand, key)[1]] if blocked else []
    if active:
        name = view.name(active)
        raise NotAllowed(
            f"{name} is active, and a change set does not take its place; finish it, or run: gitledger task start "
            f"{view.name(key)}"
        )
    return [tasks.start(view, hand, key)[0]]


def _complete(trial: _Trial, told: Complete) -> list[Draft]:
    key = trial.task("task", told.task)
    if told.evidence is None:
        return [tasks.edit(trial.view, trial.hand, key, fields={}, completed=(told.text,))]
    piece = trial.piece(told.evidence)
    if told.evidence.criterion:
        try:
            tasks.find_item(trial.view.need(key), "criteria", told.evidence.criterion, trial.view.name(key))
        except LedgerError as e:
            raise _Refused(f"{trial.at}.evidence.criterion: {e}") from e
    return [tasks.evidence(trial.view, trial.hand, key, piece, told.evidence.criterion, told.text)]


def _artifact(trial: _Trial, told: Artifact) -> list[Draft]:
    path, blob = told.path, ""
    if "://" not in path:
        try:
            found = evidence.path(trial.ledger.gitdir, os.path.join(trial.ledger.gitdir.top, path))
        except LedgerError as e:
            raise _Refused(f"{trial.at}.path: {e}") from e
        path, blob = found["path"], found["blob"]
    return [entries.artifact(trial.view, trial.hand, path, told.title, blob, trial.about(told.task))[1]]
