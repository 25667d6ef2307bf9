"""gitledger session."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.group()
def command() -> None:
    """Start, end, list and recover sessions. Agents' hooks do this by themselves."""


@command.command()
@click.option("--client", default="person", show_default=True, metavar="NAME", help="Whose session it is.")
@click.option(
    "--id", "session", default="default", show_default=True, metavar="ID", help="The client's own session id."
)
@click.pass_context
def start(ctx: click.Context, client: str, session: str) -> None:
    """Open a session, or keep one that goes on; prints its id."""
    put(opened(ctx).start_session(client, session, "command"))


@command.command()
@click.argument("id", required=False)
@click.option("--reason", default="done", show_default=True, metavar="WORD", help="Why it ends.")
@json_option
@click.pass_context
def end(ctx: click.Context, id: str | None, reason: str, as_json: bool) -> None:  # noqa: A002
    """End a session. Checkpoint, handover and close are one commit. Without ID, the one heard last here."""
    from gitledger import sessions
    from gitledger.errors import NoSuchRecord

    ledger = opened(ctx)
    view = ledger.view()
    key = view.resolve(id) if id else sessions.current(view, ledger.hand())
    if key is None:
        raise NoSuchRecord("no session is open here; list them with: gitledger session list")
    made = ledger.end_session(key, reason)
    if as_json:
        put_json({"session": key, "handover": made.name if made else None, "digest": made.digest if made else None})
    elif made is None:
        put(f"{key} is closed already.")
    else:
        put(f"{key} is closed. Handover: {made.name}  Digest: {made.digest}")


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the open sessions."""
    from gitledger import process, sessions

    rows = []
    for key, row in sessions.still_open(opened(ctx).view()).items():
        living = process.alive(row["process"]) if row.get("process") else None
        word = {True: "alive", False: "gone", None: "unknown"}[living]
        rows.append(
            {"id": key, **{n: row.get(n) for n in ("client", "worktree", "by", "at", "last_at")}, "process": word}
        )
    if as_json:
        put_json(rows)
    elif rows:
        put("\n".join(_row(r) for r in rows))
    else:
        put("No session is open.")


def _row(row: dict[str, str | None]) -> str:
    from gitledger.render.text import line

    client, worktree = line(str(row["client"]), 20), line(str(row["worktree"]), 30)
    heard = line(str(row["last_at"]), 24)
    return f"{line(str(row['id']), 40)}  {client:<10} {worktree:<10} last {heard}  client {row['process']}"


@command.command()
@click.pass_context
def recover(ctx: click.Context) -> None:
    """Make handovers for sessions that died: this clone's, each once."""
    from gitledger import sessions

    ledger = opened(ctx)
    made = ledger.recover_sessions(sessions.current(ledger.view(), ledger.hand()))
    put("\n".join(f"{p.name} recovered  Digest: {p.digest}" for p in made) or "Nothing to recover.")
