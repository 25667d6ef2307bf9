"""gitledger task todo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import opened, put, task_key

if TYPE_CHECKING:
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.command("todo")
@click.argument("words", nargs=-1, metavar="[ID] [TEXT]")
@click.option("--done", multiple=True, metavar="T", help="A to-do that is done, such as t2; it never comes back.")
@click.option("--drop", multiple=True, metavar="T", help="A to-do that will not be done; it stays on record.")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], done: tuple[str, ...], drop: tuple[str, ...]) -> None:
    """Add a to-do to a task, close some, or list those that are left."""
    from gitledger import layout, tasks, todo
    from gitledger.errors import Usage
    from gitledger.render.text import line

    if len(words) > 2:
        raise Usage("put the to-do into quotes: gitledger task todo [ID] TEXT")
    named = len(words) == 2 or (len(words) == 1 and (ref := layout.parse_id(words[0])) and ref.kind is layout.TASK)
    id_, new = (words[0], words[1:]) if named else (None, words)
    ledger = opened(ctx)
    if not (new or done or drop):
        view = ledger.view()
        key = task_key(ledger, view, id_)
        rows = [f"{line(one.name):<4} {line(one.text)}" for one in todo.still_open(view.need(key))]
        put("\n".join(rows or [f"{view.name(key)} has no open to-do"]))
        return

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        key = task_key(ledger, view, id_)
        draft = tasks.set_todos(view, hand, key, new=new, done=done, drop=drop)
        changed = draft.records[key].items["todos"]
        return f"{view.name(key)} " + ", ".join(
            f"{item.partition('@')[0]} {'done' if 'done_at' in said else 'dropped' if 'dropped' in said else 'added'}"
            for item, said in changed.items()
        ), draft

    put(ledger.record(build))
