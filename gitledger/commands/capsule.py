"""gitledger capsule."""

from __future__ import annotations

import click

from gitledger.commands import json_option, named, opened, put, put_json

LONGEST = 1 << 20
"""Bytes of a query that are read from stdin."""


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
    from gitledger import capsule

    if query == "-":  # what was typed is nothing for a list of processes
        query = named(query, LONGEST, "a request").decode("utf-8", "replace")
    ledger = opened(ctx)
    made = capsule.compose(ledger, query, ledger.desk.config.capsule.tokens if tokens is None else tokens, since)
    if as_json:
        left = [{"what": what, "count": number, "command": how} for what, number, how in made.left]
        put_json({"text": made.text, "tokens": made.tokens, "mark": made.mark, "left": left})
    elif made.text:
        put(made.text.rstrip("\n"))
