"""gitledger init."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Literal

import click

from gitledger.commands import counted, json_option, put, put_json
from gitledger.commands.remote import deadline_option

if TYPE_CHECKING:
    from gitledger.genesis import Begun


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
@click.option(
    "--remote",
    default="",
    metavar="REMOTE",
    help="Ask this remote for the ledger, and name it for sync, push and pull: git's name of it, an address or a path.",
)
@click.option(
    "--no-remote",
    "offline",
    is_flag=True,
    help="Ask no remote: take over what git fetched before, or begin. Two ledgers begun apart can never be merged.",
)
@deadline_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    project: str | None,
    expect: str,
    mode: Literal["key", "git"] | None,
    remote: str,
    offline: bool,
    deadline: int | None,
    as_json: bool,
) -> None:
    """Begin a ledger in this repository, or join the one that its remote has.

    Makes the orphan branch ledger/NAME with a signed first commit, and a key for this user where there is none.
    Your index, HEAD, work tree, hooks and configuration stay as they are. Before that the remote is asked, as `origin`
    or the only one: a ledger that is there already is fetched, verified wholly, and joined under a writer id of this
    clone's own. So is one whose branch is here. The ledger's uuid, first commit and that commit's key are pinned, and
    the key's fingerprint is printed. Whose words this machine believes is another matter: see gitledger trust.
    """
    from gitledger import discover
    from gitledger.progress import Progress

    progress = Progress()
    try:
        begun = discover.init(
            ctx.obj.path,
            ctx.obj.ledger or name,
            project,
            expect=expect,
            mode=mode or "",
            remote=remote,
            ask=not offline,
            deadline=deadline,
            heard=progress.heard if progress.on else None,
            progress=progress.tell,
        )
    finally:
        progress.end()
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
                "adopted": begun.adopted or None,
                "checked": begun.checked,
                "asked": begun.asked,
                "remote": begun.remote or None,
                "remote_named": begun.named,
            }
        )
        return
    put("\n".join(told(begun)))


def told(begun: Begun) -> list[str]:
    """What was begun or joined, and what comes next."""
    from gitledger.render.text import line

    first, joined = begun.founder, begun.joined or begun.adopted
    rows = [
        f"{'Joined' if joined else 'Began'} the ledger on branch {begun.branch}",
        f"Ledger:   {begun.uuid}",
        f"Writer:   {begun.writer}",
        f"Key:      {begun.fingerprint}",
        f"Commit:   {begun.commit}",
    ]
    if begun.adopted:
        rows.append(f"Found at: {begun.adopted}, {counted(begun.checked, 'commit')}, all of them verified")
    elif begun.asked:
        rows.append(f"Asked:    {line(begun.remote)}, which has no ledger of this name")
    elif begun.remote and not joined:
        rows.append("Asked:    nobody; if a remote has a ledger already, the two can never be merged")
    if joined:
        rows.append(f"Begun by: {first.writer} with the key {first.fingerprint}")
    steps = []
    if joined and first.fingerprint != begun.fingerprint:
        steps.append("compare that key with what its owner reads; whom to believe: gitledger trust list")
    if begun.remote and begun.named:
        steps.append("gitledger sync")
    elif begun.remote:
        steps.append(f"gitledger remote set {quote(begun.remote)}, then gitledger sync; nothing is pushed before that")
    if not joined:
        steps.append("gitledger task add TITLE, then gitledger task start T-0001")
    rows += [f"{'Next:' if n == 0 else '':10}{step}" for n, step in enumerate(steps or ["gitledger status"])]
    return rows
