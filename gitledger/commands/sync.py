"""gitledger sync."""

from __future__ import annotations

import click

from gitledger.commands import json_option
from gitledger.commands.remote import deadline_option, run


@click.command()
@deadline_option
@click.option(
    "--as-new-writer",
    "renew",
    is_flag=True,
    help="In a copy of a clone whose writer's id is in use in both: go on as a new writer.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, deadline: int | None, renew: bool, as_json: bool) -> None:
    """Bring this clone's ledger and the remote's together.

    What is pending is committed, the remote's ledger is fetched into quarantine and every new commit of it verified;
    then this one is fast-forwarded or the two are merged, and the result is pushed by one explicit refspec, never
    forced. Where another machine is faster it is tried again. What is committed here stays, whatever the remote says.
    """
    run(ctx, deadline, as_json, renew=renew)
