"""gitledger briefing."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Print what a starting session is given.

    What was left, the one next action, and how far the handover may be trusted against HEAD. At most briefing.lines
    lines and briefing.chars characters; what does not fit is named.
    """
    from gitledger import briefing

    ledger = opened(ctx)
    if as_json:
        from gitledger.values import asdict

        put_json(asdict(briefing.gather(ledger)))
    else:
        put(briefing.briefing(ledger).rstrip("\n"))
