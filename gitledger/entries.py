"""The other records: decisions, blockers, questions, artifacts, notes. Each function says one as a Draft.

A record that bears on a task is also linked from it, so that the task's documents need no other record.
"""

from __future__ import annotations

from gitledger import layout
from gitledger.errors import NotAllowed
from gitledger.layout import Kind
from gitledger.model import Change, Draft, Json, Key
from gitledger.redact import Clean, shortened, within
from gitledger.tasks import TEXT_LIMIT, Hand, body, title
from gitledger.view import View


def decide(view: View, hand: Hand, text: str, why: str, task: Key | None, supersedes: Key | None) -> tuple[Key, Draft]:
    """A decision with its reason; the one it supersedes stays, marked."""
    fields: dict[str, Json] = {"why": body(why, "reason"), "status": "accepted"}
    if supersedes:
        fields["supersedes"] = supersedes
    key, records = _new(view, hand, layout.DECISION, text, task, fields)
    if supersedes:
        old = view.need(supersedes)
        if old.get("status") == "superseded":
            raise NotAllowed(f"{view.name(supersedes)} is superseded already by {view.name(old.get('superseded_by'))}")
        records[supersedes] = Change({"status": "superseded", "superseded_by": key})
        _close_link(view, records, supersedes)
    return key, hand.draft("decision.made", records, task)


def block(view: View, hand: Hand, text: str, task: Key | None) -> tuple[Key, Draft]:
    """A blocker, open until resolved; a task it names becomes blocked where that is legal."""
    key, records = _new(
        view, hand, layout.BLOCKER, _first(text), task, {"status": "open", "text": body(text, "blocker")}
    )
    if task and view.need(task).get("status") in ("active", "planned"):
        linked = records[task]
        records[task] = Change({**linked.set, "status": "blocked"}, linked.items)
    return key, hand.draft("blocker.opened", records, task)


def resolve(view: View, hand: Hand, key: Key, how: str) -> Draft:
    """A blocker resolved, and how."""
    return _close(view, hand, key, "resolved", {"resolution": body(how, "resolution"), "resolved_at": hand.mint.at()})


def ask(view: View, hand: Hand, text: str, task: Key | None) -> tuple[Key, Draft]:
    """A question for a person, open until answered."""
    key, records = _new(
        view, hand, layout.QUESTION, _first(text), task, {"status": "open", "text": body(text, "question")}
    )
    return key, hand.draft("question.asked", records, task)


def answer(view: View, hand: Hand, key: Key, text: str) -> Draft:
    """A question answered."""
    return _close(view, hand, key, "answered", {"answer": body(text, "answer"), "answered_at": hand.mint.at()})


def artifact(view: View, hand: Hand, path: str, text: str, blob: str, task: Key | None) -> tuple[Key, Draft]:
    """A file or address worth knowing; `blob` is the file's content id at this moment, "" for an address."""
    fields: dict[str, Json] = {"path": body(path, "path")}
    if blob:
        fields["blob"] = blob
    key, records = _new(view, hand, layout.ARTIFACT, text or _first(path), task, fields)
    return key, hand.draft("artifact.added", records, task)


def note(view: View, hand: Hand, text: str, task: Key | None) -> tuple[Key, Draft]:
    """A note, beside the task it names."""
    key, records = _new(view, hand, layout.NOTE, _first(text), task, {"text": body(text, "note")})
    return key, hand.draft("note.added", records, task)


def _new(
    view: View, hand: Hand, kind: Kind, text: str, task: Key | None, fields: dict[str, Json]
) -> tuple[Key, dict[Key, Change]]:
    named = title(text, kind.word)
    key = view.next_number(kind, hand.writer)
    records = {key: Change({"title": named, "at": hand.mint.at(), "by": hand.writer, **fields})}
    if task:
        view.need(task)
        records[key].set["task"] = task
        records[task] = Change({}, {"links": {key: {"kind": kind.word, "title": named, "open": True}}})
    return key, records


def _close(view: View, hand: Hand, key: Key, status: str, fields: dict[str, Json]) -> Draft:
    record = view.need(key)
    if record.get("status") == status:
        raise NotAllowed(f"{view.name(key)} is {status} already; look at it with: gitledger show {view.name(key)}")
    records = {key: Change({"status": status, **fields})}
    _close_link(view, records, key)
    found = layout.numbered(key)
    word = found[0].word if found else "record"
    return hand.draft(f"{word}.{status}", records, record.get("task"))


def _close_link(view: View, records: dict[Key, Change], key: Key) -> None:
    task = view.need(key).get("task")
    if not task:
        return
    before = records.get(task, Change())
    links = {**before.items.get("links", {}), key: {"open": False}}
    records[task] = Change(before.set, {**before.items, "links": links})


def _first(text: str) -> Clean:
    # The record's one line: the first line of what was said, whole texts stand in its `text`.
    head = text.strip().split("\n", 1)[0][: 2 * TEXT_LIMIT]  # some more than is shown, as what is cut may be a secret
    return shortened(within("".join(c if c.isprintable() else " " for c in head), TEXT_LIMIT), 120)
