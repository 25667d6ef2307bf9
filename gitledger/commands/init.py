"""gitledger init."""

from __future__ import annotations

from typing import Literal

import click

from gitledger.commands import json_option, put, put_json


@click.command()
@click.option(
    "--name", default="main", show_default=True, metavar="NAME", help="The ledger's name: branch ledger/NAME."
)
@click.option("--project", metavar="TITLE", help="The project's title; the folder's name where none is given.")
@click.option(
    "--expect",
    default="",
    metavar="FINGERPRINT",
    help="Join only where the ledger was begun with this key, as its owner reads it; GITLEDGER_EXPECT says it as well.",
)
@click.option(
    "--signing",
    "mode",
    type=click.Choice(["key", "git"]),
    help="Sign with gitledger's own key, or as git is set up here; kept as this clone's signing.mode.",
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    project: str | None,
    expect: str,
    mode: Literal["key", "git"] | None,
    as_json: bool,
) -> None:
    """Begin a ledger in this repository.

    Makes the orphan branch ledger/NAME with a signed first commit, and a key for this user where there is none.
    Your index, HEAD, work tree, hooks and configuration stay as they are. Where the branch exists already, as in a
    clone, this clone joins it under a writer id of its own: it pins the ledger's uuid, first commit and that commit's
    key, whose fingerprint is printed. Whose words this machine believes is another matter: see gitledger trust.
    """
    from gitledger import discover

    begun = discover.init(ctx.obj.path, ctx.obj.ledger or name, project, expect=expect, mode=mode or "")
    if as_json:
        put_json(
            {
                "branch": begun.branch,
                "uuid": begun.uuid,
                "writer": begun.writer,
                "fingerprint": begun.fingerprint,
                "commit": begun.commit,
                "genesis": {
                    "commit": begun.founder.genesis,
                    "writer": begun.founder.writer,
                    "fingerprint": begun.founder.fingerprint,
                },
                "joined": begun.joined,
            }
        )
        return
    first = begun.founder
    rows = [
        f"{'Joined' if begun.joined else 'Began'} the ledger on branch {begun.branch}",
        f"Ledger:   {begun.uuid}",
        f"Writer:   {begun.writer}",
        f"Key:      {begun.fingerprint}",
        f"Commit:   {begun.commit}",
    ]
    if begun.joined:
        rows.append(f"Begun by: {first.writer} with the key {first.fingerprint}")
    if begun.joined and first.fingerprint != begun.fingerprint:
        rows.append("Next:     compare that key with what its owner reads; whom to believe: gitledger trust list")
    elif begun.joined:
        rows.append("Next:     gitledger status")
    else:
        rows.append("Next:     gitledger task add TITLE, then gitledger task start T-0001")
    put("\n".join(rows))
