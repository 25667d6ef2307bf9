"""gitledger journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import opened, put, warn

if TYPE_CHECKING:
    from gitledger.model import Event, Finding
    from gitledger.view import View


@click.command()
@click.option("--writer", default="", metavar="ID", help="Only events of this writer.")
@click.option("--session", default="", metavar="ID", help="Only events of this session.")
@click.option(
    "--type", "kind", default="", metavar="WORD", help="Only this type, or all below it: task is also task.added."
)
@click.option("--task", metavar="ID", help="Only events that name or change this task.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Only the last N.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: each event as it is journalled.")
@click.pass_context
def command(
    ctx: click.Context, writer: str, session: str, kind: str, task: str | None, limit: int | None, as_json: bool
) -> None:
    """Print journalled events in order, oldest first; the last ones may be pending: in this clone's log alone."""
    import sys

    from gitledger import layout, reading
    from gitledger.commands.get import put_bytes

    escaped = sys.stdout.isatty()  # what nobody can see is written out on a terminal, and here it stays JSON
    ledger = opened(ctx)
    view = ledger.view()
    key = view.resolve(task, layout.TASK, ledger.desk.writer.id) if task else ""
    faults: list[Finding] = []
    for logged in reading.journal(ledger, faults, reading.Wanted(writer, session, key, kind), limit):
        if as_json:
            data = logged.line[:-2] + b',"pending":true}\n' if logged.pending else logged.line
            put_bytes(_escaped(data) if escaped else data)
        else:
            put(row(view, logged.event) + ("  [pending]" if logged.pending else ""))
    for fault in faults:
        warn(f"{fault.where}: {fault.what}; {fault.mend}")


def _escaped(data: bytes) -> bytes:
    """A line of JSON with the same value in ASCII alone."""
    import json
    import re

    return re.sub(r"[^ -~\n]+", lambda found: json.dumps(found[0])[1:-1], data.decode()).encode()


def row(view: View, event: Event) -> str:
    """One event for a person: when, who, what, which task, and the first text it brought."""
    from gitledger.render.text import line

    about = line(view.name(event.task), 24) if event.task else "-"
    head = f"{line(event.at, 24)}  {line(event.writer, 16)} {event.seq:>6}  {line(event.type, 24):<20} {about:<8}"
    return f"{head} {line(said(event), 100)}".rstrip()


def said(event: Event) -> str:
    """The first text that an event brought: a title, a next action, a prompt, whatever there is."""
    for change in event.records.values():
        for name in ("title", "next", "text", "summary", "last_prompt", "resolution", "answer", "status"):
            if isinstance(value := change.set.get(name), str) and value:
                return value
        for items in change.items.values():
            for fields in items.values():
                if isinstance(value := fields.get("text"), str) and value:
                    return value
    return next((value for value in event.data.values() if isinstance(value, str) and value), "")
