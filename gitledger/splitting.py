"""A task cut in two: what was chosen goes on in a new task, and each of the two says where the other is.

One event says all of it, so no machine ever sees a half. Nothing is lost: in the old task what was moved is closed with
a pointer, and its evidence stays there.
"""

from __future__ import annotations

from collections.abc import Callable

from gitledger import layout, proof, tasks, todo
from gitledger.errors import BadData, NotAllowed
from gitledger.model import Change, Draft, Field, Finding, Json, Key, Record
from gitledger.render import task as rendered
from gitledger.tasks import Hand
from gitledger.values import dataclass
from gitledger.view import View


@dataclass(frozen=True, slots=True)
class Split:
    """A new task, the event that makes it, and how many pieces of evidence by other writers stay with the old one."""

    key: Key
    draft: Draft
    left: int = 0


def wanted(view: View, key: Key) -> Finding | None:
    """That an open task has outgrown its STATE.md, as a finding with the way out."""
    task = view.need(key)
    grown = rendered.outgrown(task)
    if not grown:
        return None
    name = view.name(key)
    return Finding("task wants splitting", name, grown, f"gitledger task split {name} --title TITLE --criterion C")


def split(
    view: View,
    hand: Hand,
    key: Key,
    text: str,
    *,
    goal: str = "",
    criteria: tuple[str, ...] = (),
    todos: tuple[str, ...] = (),
    believed: Callable[[str], bool] = lambda writer: True,
) -> Split:
    """A planned task with chosen criteria and to-dos of an open one, which keeps everything else.

    Evidence of one's own for a moved criterion goes along. Another writer's stays: taken over, it would be ours to run
    again. Raises NotAllowed for what is closed, and for the words of a writer that is not `believed`.
    """
    task, name = view.need(key), view.name(key)
    if task.get("status") in ("done", "dropped"):
        raise NotAllowed(f"{name} is {task.get('status')}, and only an open task is split; start it again first")
    if not criteria and not todos:
        raise BadData(f"nothing to carry over; name what of {name} goes along: --criterion C, --todo T")
    new = view.next_number(layout.TASK, hand.writer)
    moved: dict[str, dict[str, dict[str, Json]]] = {}
    carried: dict[str, dict[str, dict[str, Json]]] = {}
    left = 0
    at = hand.mint.at()
    for item in _chosen(task, "criteria", criteria, name):
        if not any(one.id == item for one in proof.criteria(task)):
            raise NotAllowed(f"{name} {item.partition('@')[0]} is dropped or moved already; choose an open one")
        fields = _fields(task, "criteria", item, believed, name)
        own = f"c{len(carried.get('criteria', {})) + 1}@{hand.writer}"
        carried.setdefault("criteria", {})[own] = {n: v for n, v in fields.items() if n in ("text", "met")}
        moved.setdefault("criteria", {})[item] = {"dropped": True, "moved": new}
        for piece in task.listed("evidence"):
            if piece.get("criterion") != item:
                continue
            if _writers(task.items["evidence"][piece["id"]]) != {hand.writer}:
                left += 1
                continue
            taken = carried.setdefault("evidence", {})
            kept = {n: v for n, v in piece.items() if n != "id"}
            taken[f"e{len(taken) + 1}@{hand.writer}"] = {**kept, "criterion": own}
    for item in _chosen(task, "todos", todos, name):
        if not any(one.id == item for one in todo.still_open(task)):
            raise NotAllowed(f"{name} {item.partition('@')[0]} is closed already; choose an open to-do")
        fields = _fields(task, "todos", item, believed, name)
        taken = carried.setdefault("todos", {})
        taken[f"t{len(taken) + 1}@{hand.writer}"] = {"text": fields.get("text", ""), "at": at}
        moved.setdefault("todos", {})[item] = {"moved": new}
    _, added = tasks.add(view, hand, text, goal=goal, area=task.text("area"), parent=task.text("parent") or None)
    fields = {**added.records[new].set, "split_from": key}
    moved["links"] = {new: {"kind": "task", "title": fields["title"], "open": True}}
    records = {new: Change(fields, carried), key: Change({"split_at": at}, moved)}
    return Split(new, hand.draft("task.split", records, key), left)


def _chosen(task: Record, listed: str, texts: tuple[str, ...], name: str) -> list[str]:
    return list(dict.fromkeys(tasks.find_item(task, listed, text, name) for text in texts))


def _fields(task: Record, listed: str, item: str, believed: Callable[[str], bool], name: str) -> dict[str, Json]:
    fields = task.items[listed][item]
    for writer in sorted(_writers(fields)):
        if not believed(writer):
            # Carried over they would be our words, and no briefing would withhold them any more.
            raise NotAllowed(
                f"{name} {item.partition('@')[0]} is by writer {writer}, which is not trusted here; "
                f"look at its key, then run: gitledger trust add {writer}"
            )
    return {n: v for n, (v, _) in fields.items()}


def _writers(fields: dict[str, Field]) -> set[str]:
    return {stamp.writer for _, stamp in fields.values()}
