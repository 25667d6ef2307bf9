"""gitledger init."""

from __future__ import annotations

import click

from gitledger.commands import json_option, put, put_json


@click.command()
@click.option(
    "--name", default="main", show_default=True, metavar="NAME", help="The ledger's name: branch ledger/NAME."
)
@click.option("--project", metavar="TITLE", help="The project's title; the folder's name where none is given.")
@json_option
@click.pass_context
def command(ctx: click.Context, name: str, project: str | None, as_json: bool) -> None:
    """Begin a ledger in this repository.

    Makes the orphan branch ledger/NAME with a signed first commit, and a key for this user where there is none.
    Your index, HEAD, work tree, hooks and configuration stay as they are. Where the branch exists already, as in a
    clone, this clone joins it under a writer id of its own.
    """
    from gitledger import discover

    begun = discover.init(ctx.obj.path, ctx.obj.ledger or name, project)
    if as_json:
        put_json(
            {
                "branch": begun.branch,
                "uuid": begun.uuid,
                "writer": begun.writer,
                "fingerprint": begun.fingerprint,
                "commit": begun.commit,
                "joined": begun.joined,
            }
        )
        return
    put(
        f"{'Joined' if begun.joined else 'Began'} the ledger on branch {begun.branch}\n"
        f"Ledger: {begun.uuid}\n"
        f"Writer: {begun.writer}\n"
        f"Key:    {begun.fingerprint}\n"
        f"Commit: {begun.commit}\n"
        f"Next:   gitledger {'status' if begun.joined else 'task add TITLE, then gitledger task start T-0001'}"
    )
