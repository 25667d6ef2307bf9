"""gitledger task split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import counted, opened, put, task_key, warn

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.command("split")
@click.argument("id", required=False)
@click.option("--title", required=True, metavar="TEXT", help="What the new task is called.")
@click.option("--goal", default="", metavar="TEXT", help="What the new task is for.")
@click.option("--criterion", "criteria", multiple=True, metavar="C", help="A criterion that goes along, such as c2.")
@click.option("--todo", "todos", multiple=True, metavar="T", help="A to-do that goes along, such as t3.")
@click.pass_context
def command(
    ctx: click.Context,
    id: str | None,  # noqa: A002
    title: str,
    goal: str,
    criteria: tuple[str, ...],
    todos: tuple[str, ...],
) -> None:
    """Cut a task in two and print the new one's id. Chosen criteria and to-dos go along.

    Each of the two says where the other is. Your evidence for a criterion goes along, and stays as well.
    """
    from gitledger import authority, splitting

    ledger = opened(ctx)
    tip, me = ledger.tip(), ledger.desk.writer.id

    def believed(writer: str) -> bool:
        return writer == me or authority.assess(ledger.desk, tip).of(writer) == "verified"

    def build(view: View, hand: Hand) -> tuple[splitting.Split, Draft]:
        key = task_key(ledger, view, id)
        made = splitting.split(view, hand, key, title, goal=goal, criteria=criteria, todos=todos, believed=believed)
        return made, made.draft

    made = ledger.record(build)
    put(made.key.partition("@")[0])
    if made.left:
        warn(f"{counted(made.left, 'piece')} of evidence by other writers stayed behind; show it here again")
