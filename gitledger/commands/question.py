"""gitledger question."""

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
    """Ask a question that a person must answer, or answer one."""


@command.command()
@click.argument("text")
@click.option("--task", metavar="ID|-", help="The task it is about: the active one by default, - for none.")
@click.pass_context
def ask(ctx: click.Context, text: str, task: str | None) -> None:
    """Ask a question and print its id."""
    from gitledger import entries

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key, draft = entries.ask(view, hand, text, optional_task(ledger, view, task))
        return key.partition("@")[0], draft

    put(ledger.record(build))


@command.command()
@click.argument("id")
@click.argument("text")
@click.pass_context
def answer(ctx: click.Context, id: str, text: str) -> None:  # noqa: A002
    """Answer a question."""
    from gitledger import entries, layout

    ledger = opened(ctx)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = view.resolve(id, layout.QUESTION, hand.writer)
        return f"{view.name(key)} is answered", entries.answer(view, hand, key, text)

    put(ledger.record(build))
