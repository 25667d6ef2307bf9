"""A task's to-dos: small steps, each open until it is done, dropped, or moved to another task. Pure.

Each way of closing is a field of its own, which nothing takes back: whatever two machines say, what was done is done.
"""

from __future__ import annotations

from gitledger import proof
from gitledger.model import Key, Record
from gitledger.typed import Literal, TypeAlias
from gitledger.values import dataclass

State: TypeAlias = 'Literal["open", "done", "moved", "dropped"]'


@dataclass(frozen=True, slots=True)
class Todo:
    """One to-do; `moved` is the task that took it over, `at` when it was done, "" where it was not."""

    id: str
    name: str
    text: str
    state: State
    moved: Key = ""
    at: str = ""


def todos(task: Record) -> list[Todo]:
    """A task's to-dos in the order they were added, closed ones too."""
    rows = task.listed("todos")
    names = proof.item_names(row["id"] for row in rows)
    found = []
    for row in rows:
        moved, at = row.get("moved", ""), row.get("done_at", "")
        state: State = "done" if at else "moved" if moved else "dropped" if row.get("dropped") else "open"
        found.append(Todo(row["id"], names[row["id"]], row.get("text", ""), state, moved, at))
    return found


def still_open(task: Record) -> list[Todo]:
    """The to-dos that are left."""
    return [one for one in todos(task) if one.state == "open"]
