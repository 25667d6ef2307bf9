"""gitledger compaction."""

from __future__ import annotations

import click

from gitledger.commands import put


@click.group()
def command() -> None:
    """Let one compaction through where no checkpoint can be made."""


@command.command()
@click.option("--once", is_flag=True, required=True, help="Exactly one compaction; there is no lasting permission.")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is journalled.")
@click.pass_context
def allow(ctx: click.Context, once: bool, reason: str) -> None:
    """Let the next compaction through without a checkpoint. The next briefing says CHECKPOINT MISSING."""
    import os

    from gitledger import allowance, gitdir, tasks
    from gitledger.errors import NoLedger

    found = gitdir.find(ctx.obj.path)
    name = gitdir.choose(found.common, ctx.obj.ledger or os.environ.get("GITLEDGER_LEDGER")) if found else None
    if found is None or name is None:
        where = os.path.abspath(ctx.obj.path) if found is None else found.top or found.common
        raise NoLedger(f"{where} has no ledger; run this in the repository whose session is blocked")
    allowance.grant(found, name, tasks.title(reason, "reason"))
    put("The next compaction may happen without a checkpoint, once.")
