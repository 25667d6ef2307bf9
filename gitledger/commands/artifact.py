"""gitledger artifact."""

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
    """Record a file or address worth knowing."""


@command.command()
@click.argument("path")
@click.option("--title", default="", metavar="TEXT", help="What it is.")
@click.option("--task", metavar="ID|-", help="The task it belongs to: the active one by default, - for none.")
@click.pass_context
def add(ctx: click.Context, path: str, title: str, task: str | None) -> None:
    """Add a file or an address and print its id. A file's content is recorded by its blob id."""
    from gitledger import entries, evidence

    ledger = opened(ctx)
    found = {"path": path, "blob": ""} if "://" in path else evidence.path(ledger.gitdir, path)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key, draft = entries.artifact(
            view, hand, found["path"], title, found["blob"], optional_task(ledger, view, task)
        )
        return key.partition("@")[0], draft

    put(ledger.record(build))
