"""gitledger compaction."""

from __future__ import annotations

import click

from gitledger.commands import opened, put


@click.group()
def command() -> None:
    """What to do when a checkpoint cannot be made and the client wants to compact."""


@command.command()
@click.option("--once", is_flag=True, required=True, help="Exactly one compaction; there is no lasting permission.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is journalled.")
@click.pass_context
def allow(ctx: click.Context, once: bool, reason: str) -> None:
    """Let the next compaction through without a checkpoint. The next briefing says CHECKPOINT MISSING."""
    from gitledger import allowance, tasks

    allowance.grant(opened(ctx), tasks.title(reason, "reason"))
    put("The next compaction may happen without a checkpoint, once.")
