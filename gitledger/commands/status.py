"""gitledger status."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show where the project stands: task, handover, checkpoint, and what needs a person."""
    from gitledger import briefing, rollover
    from gitledger.clients import usage
    from gitledger.render import status

    ledger = opened(ctx)
    facts = briefing.gather(ledger, advice=usage.spoken(ledger, rollover.current(ledger)))
    if as_json:
        from gitledger.values import asdict

        put_json(asdict(facts))
    else:
        put(status.status(facts).rstrip("\n"))
