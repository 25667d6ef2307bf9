"""Test results that the tools of a turn printed, kept with the task as candidates for evidence. Pure.

A client's payload is anybody's word: what it prints is a candidate, never a claim and never proof. A command has one
candidate, its newest, and a writer keeps few of them, so that a task does not grow with its turns.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitledger import layout, results
from gitledger.model import Json, Key, Record
from gitledger.redact import Clean, within
from gitledger.schema import CommandRun

KEPT = 12
"""Candidates that one writer keeps of a task; the oldest gives way."""
COMMAND_KEPT = 500
AT_ONCE = 4
"""Commands of one event of which results are kept, the last ones."""

Items = dict[str, dict[str, Json]]


def seen(
    commands: Iterable[CommandRun], task: Record | None, writer: str, at: str, session: Key
) -> tuple[list[Json], Items]:
    """What the commands of one event printed as test results, for its data, and as items of the task's record."""
    told: list[Json] = []
    for run in commands:
        if run.output and (found := results.read(run.output)):
            command = within(" ".join(run.command.split()), COMMAND_KEPT)
            told.append({"command": command, "results": [one.value() for one in found], "exit": run.exit})
    items: Items = {}
    known = {k: {n: v for n, (v, _) in f.items()} for k, f in task.items.get("candidates", {}).items()} if task else {}
    for row in told[-AT_ONCE:] if task else ():
        item = _slot({**known, **items}, row["command"], writer)
        items[item] = {**row, "at": at, "session": session, "taken": ""}
    return told[-AT_ONCE:], items


def _slot(known: Items, command: Clean, writer: str) -> str:
    own = {item: row for item, row in known.items() if item.endswith(f"@{writer}")}
    for item, row in own.items():
        if row.get("command") == command:
            return item
    if len(own) < KEPT:
        return layout.item_id("r", known, writer)
    return min(own, key=lambda item: (str(own[item].get("at", "")), item))
