"""gitledger hook."""

from __future__ import annotations

import click

from gitledger import clients
from gitledger.hooks import EVENTS, take


def _client(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not clients.is_name(value):
        raise click.BadParameter(f"{value!r} cannot be a client's name; ours are {', '.join(clients.NAMES)}")
    return value


@click.command()
@click.argument("client", callback=_client)
@click.argument("event", type=click.Choice(EVENTS))
@click.pass_context
def command(ctx: click.Context, client: str, event: str) -> None:
    """Take an agent's event; its payload is on stdin.

    CLIENT is one of ours, or of your own: then its payload is what the adapter of an installed package reads, or the
    generic client's. See docs/clients/.

    In a repository without a ledger nothing is written and nothing is said. Only a compaction can fail: without a
    durable checkpoint it exits non-zero, and the client is meant to refuse it.
    """
    ctx.exit(take(client, event, ctx.obj.path, ctx.obj.ledger))
