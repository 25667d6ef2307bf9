"""gitledger rollover."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.command()
@click.option("--used", type=click.FloatRange(0, 1), metavar="PART", help="How much of the context is used, 0 to 1.")
@json_option
@click.pass_context
def command(ctx: click.Context, used: float | None, as_json: bool) -> None:
    """Say what to do next: continue, checkpoint, fresh session or emergency.

    From how much of the context is used (where --used does not say it, by the transcript of Claude Code or Codex, or as
    the session's client said last), what is in no checkpoint yet, and whether something is half done. What it advises
    is journalled with the session, once for each time that it gets further.
    """
    from gitledger import rollover
    from gitledger.clients import usage

    ledger = opened(ctx)
    advice = usage.advised(ledger, rollover.current(ledger), used)
    if as_json:
        from gitledger.values import asdict

        put_json(asdict(advice))
    else:
        put(rollover.said(advice))
