"""gitledger task: the life of a task, from discovered to done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import (
    edited,
    json_option,
    opened,
    put,
    put_json,
    task_evidence,
    task_key,
    task_split,
    task_todo,
    warn,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitledger.model import Draft, Key
    from gitledger.tasks import Hand
    from gitledger.view import View

STATUSES = ("active", "blocked", "planned", "discovered", "done", "dropped")


@click.group()
def command() -> None:
    """Add, start, prove and finish tasks.

    A task has exactly one next action, and is done when every acceptance criterion has evidence. Where a command
    takes an optional ID, the active task of this work tree is meant.
    """


command.add_command(task_evidence.command)
command.add_command(task_todo.command)
command.add_command(task_split.command)


@command.command()
@click.argument("title")
@click.option("--goal", default="", metavar="TEXT", help="What it is for.")
@click.option("--accept", multiple=True, metavar="TEXT", help="An acceptance criterion; may be given several times.")
@click.option("--area", default="", metavar="TEXT", help="The part of the project it belongs to.")
@click.option("--parent", metavar="ID", help="The task it is a part of.")
@click.option("--depends", multiple=True, metavar="ID", help="A task that must be done before.")
@click.option("--todo", "todos", multiple=True, metavar="TEXT", help="A step to do; may be given several times.")
@click.option(
    "--status", type=click.Choice(["discovered", "planned"]), default="planned", show_default=True, help="Its status."
)
@click.pass_context
def add(
    ctx: click.Context,
    title: str,
    goal: str,
    accept: tuple[str, ...],
    area: str,
    parent: str | None,
    depends: tuple[str, ...],
    todos: tuple[str, ...],
    status: str,
) -> None:
    """Add a task and print its id. It never takes the place of the active one."""
    from gitledger import layout, tasks

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        others = tuple(view.resolve(d, layout.TASK, hand.writer) for d in depends)
        above = view.resolve(parent, layout.TASK, hand.writer) if parent else None
        key, draft = tasks.add(
            view, hand, title, goal=goal, accept=accept, area=area, parent=above, depends=others, todos=todos,
            status=status,
        )  # fmt: skip
        return key.partition("@")[0], draft

    put(ledger.record(build))


@command.command("list")
@click.option(
    "--status", "wanted", multiple=True, type=click.Choice(STATUSES), help="Only these; open ones by default."
)
@click.option("--area", metavar="TEXT", help="Only those of this part of the project.")
@click.option("--parent", metavar="ID", help="Only the parts of this task.")
@click.option("--text", default="", metavar="TEXT", help="Only those whose title holds this.")
@click.option("--all", "everything", is_flag=True, help="Finished and dropped ones too.")
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    wanted: tuple[str, ...],
    area: str | None,
    parent: str | None,
    text: str,
    everything: bool,
    as_json: bool,
) -> None:
    """List tasks, with the open ones that each waits for."""
    from gitledger import layout, relations

    ledger = opened(ctx)
    view = ledger.view()
    above = view.resolve(parent, layout.TASK, ledger.desk.writer.id) if parent else None
    rows, keys = [], []
    for key, row in view.walk(layout.TASK):
        if row.get("depends") or row.get("parent"):
            keys.append(key)
        if not (row["status"] in wanted if wanted else (everything or row["state"] == "open")):
            continue
        if area is not None and row["area"].casefold() != area.strip().casefold():
            continue
        if (above and row.get("parent") != above) or text.casefold() not in row["title"].casefold():
            continue
        waits = [view.name(other) for other in relations.waits_for(view, key)] if row["state"] == "open" else []
        part_of = view.name(row["parent"]) if row.get("parent") else ""
        rows.append(
            {
                "id": view.name(key),
                "status": row["status"],
                "title": row["title"],
                "area": row["area"],
                "parent": part_of,
                "waits_for": waits,
            }
        )
    if as_json:
        put_json(rows)
    elif rows:
        put("\n".join(map(_listed, rows)))
    elif above or area is not None or text or wanted:
        put("No such tasks. List all with: gitledger task list --all")
    else:
        put("No tasks. Add one with: gitledger task add TITLE")
    if faults := relations.rings(view, keys):
        more = f"; and {len(faults) - 1:,} more such" if len(faults) > 1 else ""
        warn(f"{faults[0].where}: {faults[0].what}; to end it: {faults[0].mend}{more}")


def _listed(row: dict[str, Any]) -> str:
    from gitledger.render.text import line

    more = [line(row["area"], 40)] if row["area"] else []
    more += [f"part of {line(row['parent'], 40)}"] if row["parent"] else []
    more += [f"waits for {', '.join(map(line, row['waits_for']))}"] if row["waits_for"] else []
    said = f"{row['id']:<8} {line(row['status'], 12):<10} {line(row['title'], 100)}"
    return f"{said} ({'; '.join(more)})" if more else said


@command.command()
@click.argument("id", required=False)
@json_option
@click.pass_context
def show(ctx: click.Context, id: str | None, as_json: bool) -> None:  # noqa: A002
    """Show a task: its document, or its fields as JSON."""
    ledger = opened(ctx)
    view = ledger.view()
    key = task_key(ledger, view, id)
    from gitledger.errors import LedgerError

    try:
        stale = ledger.stale(view.need(key))
    except LedgerError:
        stale = {}  # git cannot say where the work tree stands: the record is shown all the same
    if as_json:
        put_json(as_value(view, key, stale))
        return
    from gitledger import reading
    from gitledger.render.text import line

    put(reading.document(view, key)[1].decode().rstrip("\n"))
    if stale:
        why = "; ".join(dict.fromkeys(stale.values()))
        put(f"\nSTALE in this work tree: {line(why, 300)}. See: gitledger check {view.name(key)}")


def as_value(view: View, key: Key, stale: Mapping[str, str]) -> dict[str, Any]:
    """A task as plain JSON: fields without stamps, lists with the names people use."""
    from gitledger import proof, relations, splitting, todo

    record = view.need(key)
    value: dict[str, Any] = {"id": view.name(key), "key": key}
    value |= {name: v for name, (v, _) in sorted(record.fields.items())}
    value["criteria"] = [
        {"id": c.name, "text": c.text, "state": c.state, "met": c.met, "proof": c.proof, "why": c.why}
        for c in proof.criteria(record, stale)
    ]
    value["todos"] = [
        {"id": one.name, "text": one.text, "state": one.state, "moved": view.name(one.moved) if one.moved else ""}
        for one in todo.todos(record)
    ]
    for listed in ("evidence", "completed", "depends", "links"):
        value[listed] = record.listed(listed)
    value["waits_for"] = [view.name(other) for other in relations.waits_for(view, key)]
    faults = (relations.ring(view, key), splitting.wanted(view, key))
    value["findings"] = [f"{fault.rule}: {fault.what}; {fault.mend}" for fault in faults if fault]
    return value


@command.command()
@click.argument("id")
@click.pass_context
def plan(ctx: click.Context, id: str) -> None:  # noqa: A002
    """Make a discovered, blocked or active task a planned one."""
    _move(ctx, id, "planned")


@command.command()
@click.argument("id")
@click.option("--next", "next_action", metavar="TEXT", help="Its next action.")
@click.pass_context
def start(ctx: click.Context, id: str, next_action: str | None) -> None:  # noqa: A002
    """Make a task the active one of this work tree. The one before it goes back to planned.

    Tasks that it depends on and that are still open are named, and stand in no way.
    """
    from gitledger import layout, tasks
    from gitledger.model import Change

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = view.resolve(id, layout.TASK, hand.writer)
        draft, before = tasks.start(view, hand, key)
        if next_action is not None:
            told = tasks.body(next_action, "next action").strip()
            draft.records[key] = Change({**draft.records[key].set, "next": told, "next_at": draft.at})
        set_aside = f"; {view.name(before)} is planned again" if before else ""
        return f"{view.name(key)} is active{set_aside}{_waiting(view, key)}", draft

    put(ledger.record(build))


@command.command("next")
@click.argument("words", nargs=-1, required=True, metavar="[ID] TEXT")
@click.pass_context
def next_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Set the one next action of a task."""
    from gitledger import tasks
    from gitledger.errors import Usage

    if len(words) > 2:
        raise Usage("put the next action into quotes: gitledger task next [ID] TEXT")
    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = task_key(ledger, view, words[0] if len(words) == 2 else None)
        word = "set" if words[-1].strip() else "cleared"
        return f"{view.name(key)} next action {word}", tasks.set_next(view, hand, key, words[-1])

    put(ledger.record(build))


@command.command()
@click.argument("id", required=False)
@click.option("--reason", required=True, metavar="TEXT", help="What stands in the way.")
@click.pass_context
def block(ctx: click.Context, id: str | None, reason: str) -> None:  # noqa: A002
    """Block a task and print the id of the blocker that says why."""
    from gitledger import entries

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key, draft = entries.block(view, hand, reason, task_key(ledger, view, id))
        return key.partition("@")[0], draft

    put(ledger.record(build))


@command.command()
@click.argument("id")
@click.pass_context
def unblock(ctx: click.Context, id: str) -> None:  # noqa: A002
    """Take a blocked task up again. Active where it was this work tree's, planned otherwise.

    Its blockers stay open until gitledger blocker resolve.
    """
    from gitledger import layout, tasks

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = view.resolve(id, layout.TASK, hand.writer)
        status, draft = tasks.unblock(view, hand, key)
        return f"{view.name(key)} is {status}", draft

    put(ledger.record(build))


@command.command()
@click.argument("id", required=False)
@click.option("--accept-unproven", default="", metavar="REASON", help="Finish without evidence; the reason shows.")
@click.pass_context
def done(ctx: click.Context, id: str | None, accept_unproven: str) -> None:  # noqa: A002
    """Finish a task. Its acceptance criteria must all have evidence.

    Parts of it that are open are named, and stand in no way. The last line says what to do next with this session: a
    finished task is worth a checkpoint.
    """
    from gitledger import checking, tasks, todo
    from gitledger.render.text import line

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = task_key(ledger, view, id)
        stale = checking.doubts(ledger, view.need(key))
        left = [line(one.name, 40) for one in todo.still_open(view.need(key))]
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        undone = f"; left undone: {', '.join(left[:5])}{more}" if left else ""
        draft = tasks.done(view, hand, key, accept_unproven, stale)
        return f"{view.name(key)} is done{undone}{_waiting(view, key)}{_parts(view, key)}", draft

    put(ledger.record(build))
    from gitledger import rollover
    from gitledger.clients import usage

    if advice := usage.spoken(ledger, rollover.current(ledger)):
        put(line(advice))


@command.command()
@click.argument("id")
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@click.pass_context
def drop(ctx: click.Context, id: str, reason: str) -> None:  # noqa: A002
    """Drop a task; it stays in the ledger."""
    from gitledger import tasks

    _move(ctx, id, "dropped", summary=tasks.title(reason, "reason") if reason else "Dropped.")


@command.command()
@click.argument("id", required=False)
@click.option("--title", metavar="TEXT", help="What it is called; its folder keeps its name.")
@click.option("--goal", metavar="TEXT", help="What it is for.")
@click.option("--scope", metavar="TEXT", help="What belongs to it.")
@click.option("--non-goals", metavar="TEXT", help="What does not belong to it.")
@click.option("--area", metavar="TEXT", help="The part of the project it belongs to.")
@click.option("--summary", metavar="TEXT", help="One line on the state.")
@click.option("--accept", multiple=True, metavar="TEXT", help="Add an acceptance criterion.")
@click.option("--drop-criterion", multiple=True, metavar="C", help="Drop a criterion, such as c2; it stays on record.")
@click.option("--completed", multiple=True, metavar="TEXT", help="Note completed work.")
@click.option("--parent", metavar="ID", help="The task it is a part of; - for none.")
@click.option("--depends", multiple=True, metavar="ID", help="A task that must be done before.")
@click.option("--undepend", multiple=True, metavar="ID", help="A task that it does not wait for any more.")
@click.pass_context
def edit(
    ctx: click.Context,
    /,
    id: str | None,  # noqa: A002
    accept: tuple[str, ...],
    drop_criterion: tuple[str, ...],
    completed: tuple[str, ...],
    parent: str | None,
    depends: tuple[str, ...],
    undepend: tuple[str, ...],
    **fields: str | None,
) -> None:
    """Change a task's fields, criteria, and place among the tasks. Without options, in $EDITOR."""
    from gitledger import layout, tasks

    ledger = opened(ctx)
    chosen = {name: text for name, text in fields.items() if text is not None}
    if not (chosen or accept or drop_criterion or completed or parent is not None or depends or undepend):
        view = ledger.view()
        record = view.need(task_key(ledger, view, id))
        names = ("title", "goal", "scope", "non_goals", "area", "summary")
        before = {name: record.get(name, "") or "" for name in names}
        chosen = edited(before)
        if not chosen:
            put("Nothing changed.")
            return

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = task_key(ledger, view, id)
        above = parent and ("" if parent == "-" else view.resolve(parent, layout.TASK, hand.writer))
        more, less = (
            tuple(view.resolve(other, layout.TASK, hand.writer) for other in others) for others in (depends, undepend)
        )
        draft = tasks.edit(
            view, hand, key, fields=chosen, accept=accept, drop=drop_criterion, completed=completed, parent=above,
            depends=more, undepend=less,
        )  # fmt: skip
        return f"{view.name(key)} changed", draft

    put(ledger.record(build))


def _waiting(view: View, key: Key) -> str:
    from gitledger import relations

    waits = _with_status(view, relations.waits_for(view, key))
    return f"; it depends on {', '.join(waits)}, not done yet" if waits else ""


def _parts(view: View, key: Key) -> str:
    """A line of its own: the parts of a task that are open, the first of them; "" where none is."""
    from gitledger import relations

    parts = _with_status(view, relations.parts(view, key))
    more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
    return f"\nParts of {view.name(key)} are open: {', '.join(parts[:5])}{more}" if parts else ""


def _with_status(view: View, keys: list[Key]) -> list[str]:
    from gitledger.render.text import line

    return [f"{view.name(key)} ({line(row['status'], 12)})" for key in keys if (row := view.row(key))]


def _move(ctx: click.Context, text: str, status: str, **fields: str) -> None:
    from gitledger import layout, tasks

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = view.resolve(text, layout.TASK, hand.writer)
        return f"{view.name(key)} is {status}", tasks.move(view, hand, key, status, **fields)

    put(ledger.record(build))
