"""gitledger checkpoint."""

from __future__ import annotations

import click

from gitledger.commands import json_option, named, opened, put, put_json, warn


@click.command()
@click.option("--reason", default="manual", show_default=True, metavar="WORD", help="Why it is made.")
@click.option("--from", "source", metavar="FILE|-", help="A change set to validate and apply in the same commit.")
@click.option("--propose", is_flag=True, help="Ask the configured proposer for a change set; derive without one.")
@json_option
@click.pass_context
def command(ctx: click.Context, reason: str, source: str | None, propose: bool, as_json: bool) -> None:
    """Make a signed checkpoint of the work.

    The body is derived from the task, the journal and git, or taken from a change set (schema: gitledger schema
    changeset). Done means: written, synced, read back and verified. On any failure nothing has changed: a change set
    that does not fit is refused with all its errors, and where no checkpoint can be made the message begins with
    BLOCKED_MISSING_PREREQUISITE.

    With --propose the command in proposer.command is asked, three times at most. Where it proposes nothing that fits,
    the checkpoint is derived, stderr and the checkpoint say why, and the exit code is 0: there is one.
    """
    from gitledger import tasks
    from gitledger.errors import Usage
    from gitledger.render.status import pointer

    if propose and source is not None:
        raise Usage("--from gives a change set and --propose asks for one; leave one of them out")
    ledger = opened(ctx)
    reason = tasks.title(reason, "reason")
    proposal: dict[str, object] | None = None
    if propose:
        from gitledger import capture, documenter

        found = documenter.checkpoint(ledger, reason)
        made = found.pointer
        proposal = {"accepted": not found.why, "attempts": found.attempts, "why": found.why}
        if found.why:
            warn(f"no proposal was accepted, so the checkpoint is derived: {found.why}")
            if found.heard.strip():
                capture.log(ledger.gitdir.common, f"checkpoint --propose: the proposer said: {found.heard}")
    elif source is not None:
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
                **({"proposal": proposal} if proposal else {}),
            }
        )
    else:
        put(pointer(made.name, made.task, made.path, made.digest, made.next).rstrip())
