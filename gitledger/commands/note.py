"""gitledger note."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import opened, optional_task, put

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.command()
@click.argument("text")
@click.option("--task", metavar="ID|-", help="The task it is about: the active one by default, - for none.")
@click.pass_context
def command(ctx: click.Context, text: str, task: str | None) -> None:
    """Record a note and print its id."""
    from gitledger import entries

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key, draft = entries.note(view, hand, text, optional_task(ledger, view, task))
        return key.partition("@")[0], draft

    put(ledger.record(build))
