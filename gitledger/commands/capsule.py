"""gitledger capsule."""

from __future__ import annotations

from functools import partial

import click

from gitledger.commands import json_option, opened


@click.command()
@click.option(
    "--query",
    metavar="TEXT",
    default="",
    help="What the request is about, such as the prompt itself; - reads it from standard input.",
)
@click.option("--tokens", type=int, metavar="N", help="At most so many tokens, by an estimate.  [default: 3000]")
@click.option("--since", metavar="MARK", help="Only what has changed since the capsule that had this mark.")
@json_option
@click.pass_context
def command(ctx: click.Context, query: str, tokens: int | None, since: str | None, as_json: bool) -> None:
    """Print what a single request is given.

    The active task, records that TEXT names, at most two related tasks, and the decisions, blockers, questions and
    documents that bear on them. At most N tokens and 9,000 characters; what does not fit is named.
    """
    from gitledger import direct

    direct.capsule(partial(opened, ctx), query, tokens, since, as_json)
