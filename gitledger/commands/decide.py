"""gitledger decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import opened, optional_task, put

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.command()
@click.argument("title")
@click.option("--why", required=True, metavar="TEXT", help="The reason.")
@click.option("--task", metavar="ID|-", help="The task it bears on: the active one by default, - for none.")
@click.option("--supersedes", metavar="ID", help="The decision that this one takes the place of.")
@click.pass_context
def command(ctx: click.Context, title: str, why: str, task: str | None, supersedes: str | None) -> None:
    """Record a decision and why; prints its id."""
    from gitledger import entries, layout

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        old = view.resolve(supersedes, layout.DECISION, hand.writer) if supersedes else None
        key, draft = entries.decide(view, hand, title, why, optional_task(ledger, view, task), old)
        return key.partition("@")[0], draft

    put(ledger.record(build))
