"""gitledger statusline."""

from __future__ import annotations

import os

import click

WAIT = 1.0
"""Seconds for a client's payload."""


@click.command()
@click.pass_context
def command(ctx: click.Context) -> None:
    """Print one line: task, checkpoint, label, context, advice.

    For a client's status line: it reads Claude Code's payload on stdin, where there is one, for the folder, the session
    and how much of its context is used. Where there is no ledger it prints nothing.
    """
    from gitledger import capture, clients, gitdir, layout, rollover
    from gitledger.commands import put

    payload, _ = capture.read_stdin(capture.LIMIT, WAIT)
    said, _ = clients.adapter("claude-code").translate("status", payload)
    path = ctx.obj.path
    place = gitdir.find(path) if path != "." else capture.locate(payload, os.environ, os.getcwd())
    if place is None or gitdir.choose(place.common, ctx.obj.ledger or os.environ.get("GITLEDGER_LEDGER")) is None:
        return
    from gitledger import briefing, discover
    from gitledger.render.status import prompt_line

    ledger = discover.open(place.top or place.common, ledger=ctx.obj.ledger)
    key = layout.session_key("claude-code", said.session_id) if said.session_id else rollover.current(ledger)
    used = rollover.share({"used": said.used, "limit": said.limit})
    advice = rollover.told(ledger, key, used)
    put(prompt_line(briefing.gather(ledger), advice.percent, advice.advice))
