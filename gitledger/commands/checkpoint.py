"""gitledger checkpoint."""

from __future__ import annotations

import click

from gitledger.commands import json_option, named, opened, put, put_json


@click.command()
@click.option("--reason", default="manual", show_default=True, metavar="WORD", help="Why it is made.")
@click.option("--from", "source", metavar="FILE|-", help="A change set to validate and apply in the same commit.")
@json_option
@click.pass_context
def command(ctx: click.Context, reason: str, source: str | None, as_json: bool) -> None:
    """Make a signed checkpoint of the work.

    The body is derived from the task, the journal and git, or taken from a change set (schema: gitledger schema
    changeset). Done means: written, synced, read back and verified. On any failure nothing has changed: a change set
    that does not fit is refused with all its errors, and where no checkpoint can be made the message begins with
    BLOCKED_MISSING_PREREQUISITE.
    """
    from gitledger import tasks
    from gitledger.render.status import pointer

    ledger = opened(ctx)
    reason = tasks.title(reason, "reason")
    if source is not None:
        from gitledger import changeset, schema

        made = changeset.checkpoint(ledger, named(source, schema.LONGEST + 1, "a change set"), reason)
    else:
        made = ledger.checkpoint(reason)
    if as_json:
        put_json(
            {
                "checkpoint": made.name,
                "task": made.task or None,
                "path": made.path,
                "digest": made.digest,
                "next": made.next,
            }
        )
    else:
        put(pointer(made.name, made.task, made.path, made.digest, made.next).rstrip())
