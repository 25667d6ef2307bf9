"""gitledger pull."""

from __future__ import annotations

import click

from gitledger.commands import json_option
from gitledger.commands.remote import deadline_option, run


@click.command()
@deadline_option
@json_option
@click.pass_context
def command(ctx: click.Context, deadline: int | None, as_json: bool) -> None:
    """Take in the remote's ledger, verified, by fast-forward or merge; nothing is pushed."""
    run(ctx, deadline, as_json, push=False)
