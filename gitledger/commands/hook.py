"""gitledger hook."""

from __future__ import annotations

import click

from gitledger.hooks import CLIENTS, EVENTS, take


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.argument("event", type=click.Choice(EVENTS))
@click.pass_context
def command(ctx: click.Context, client: str, event: str) -> None:
    """Take an agent's event; its payload is on stdin.

    In a repository without a ledger nothing is written and nothing is said. Only a compaction can fail: without a
    durable checkpoint it exits non-zero, and the client is meant to refuse it.
    """
    ctx.exit(take(client, event, ctx.obj.path, ctx.obj.ledger))
