"""gitledger project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import edited, json_option, opened, put, put_json

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View

FIELDS = ("title", "goal", "description")


@click.group()
def command() -> None:
    """Show or edit the project's title, goal and description."""


@command.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show the project."""
    from gitledger import layout
    from gitledger.render.text import visible

    record = opened(ctx).view().need(layout.PROJECT)
    value = {name: record.get(name, "") for name in ("name", "uuid", "at", *FIELDS)}
    if as_json:
        put_json(value)
    else:
        put("\n".join(f"{name}: {visible(str(text))}" for name, text in value.items() if text))


@command.command()
@click.option("--title", metavar="TEXT", help="What it is called.")
@click.option("--goal", metavar="TEXT", help="What it is for.")
@click.option("--description", metavar="TEXT", help="What it is.")
@click.pass_context
def edit(ctx: click.Context, /, **fields: str | None) -> None:
    """Change the project's fields. Without options, in $EDITOR."""
    from gitledger import layout, tasks
    from gitledger.model import Change

    ledger = opened(ctx)
    chosen = {name: text for name, text in fields.items() if text is not None}
    if not chosen:
        record = ledger.view().need(layout.PROJECT)
        before = {name: record.get(name, "") or "" for name in FIELDS}
        chosen = edited(before)
    if not chosen:
        put("Nothing changed.")
        return
    new = {n: tasks.title(t, n) if n == "title" else tasks.body(t, n) for n, t in chosen.items()}

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        return "The project is changed.", hand.draft("project.edited", {layout.PROJECT: Change(dict(new))})

    put(ledger.record(build))
