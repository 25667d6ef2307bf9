"""gitledger push."""

from __future__ import annotations

import click

from gitledger.commands import json_option
from gitledger.commands.remote import deadline_option, run


@click.command()
@deadline_option
@json_option
@click.pass_context
def command(ctx: click.Context, deadline: int | None, as_json: bool) -> None:
    """Push this clone's ledger; refused where the remote has what this clone lacks.

    What is pending is committed before. One explicit refspec, never forced.
    """
    run(ctx, deadline, as_json, pull=False)
