"""gitledger blocker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import opened, optional_task, put

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.group()
def command() -> None:
    """Open or resolve what stands in the way."""


@command.command("open")
@click.argument("text")
@click.option("--task", metavar="ID|-", help="The task it blocks: the active one by default, - for none.")
@click.pass_context
def open_(ctx: click.Context, text: str, task: str | None) -> None:
    """Open a blocker and print its id; its task becomes blocked."""
    from gitledger import entries

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key, draft = entries.block(view, hand, text, optional_task(ledger, view, task))
        return key.partition("@")[0], draft

    put(ledger.record(build))


@command.command()
@click.argument("id")
@click.option("--how", default="", metavar="TEXT", help="How it was resolved.")
@click.pass_context
def resolve(ctx: click.Context, id: str, how: str) -> None:  # noqa: A002
    """Resolve a blocker. Its task stays blocked until gitledger task unblock."""
    from gitledger import entries, layout

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = view.resolve(id, layout.BLOCKER, hand.writer)
        return f"{view.name(key)} is resolved", entries.resolve(view, hand, key, how)

    put(ledger.record(build))
