"""gitledger task evidence."""

from __future__ import annotations

import click

from gitledger.commands import opened, put, task_key


@click.command("evidence")
@click.argument("id", required=False)
@click.option("--run", "run_command", metavar="CMD", help="Run a command and record its exit status.")
@click.option("--covers", multiple=True, metavar="PATH", help="What CMD depends on; by default all but prose.")
@click.option("--junit", metavar="FILE", help="The JUnit XML that CMD writes; its counts are recorded too.")
@click.option("--deadline", type=click.IntRange(1, 86_400), default=3600, show_default=True, help="Seconds for CMD.")
@click.option("--commit", metavar="REV", help="A commit that shows it.")
@click.option("--path", "paths", multiple=True, metavar="FILE", help="A file that shows it, with its blob id; several.")
@click.option("--candidate", metavar="R", help="A test result that was seen in a turn, such as r1; UNVERIFIED.")
@click.option("--claim", metavar="TEXT", help="A claim without proof; shows as UNVERIFIED.")
@click.option("--criterion", default="", metavar="C", help="The criterion it is for, such as c1.")
@click.option("--completed", default="", metavar="TEXT", help="The completed work it shows.")
@click.pass_context
def command(
    ctx: click.Context,
    id: str | None,  # noqa: A002
    run_command: str | None,
    covers: tuple[str, ...],
    junit: str | None,
    deadline: int,
    commit: str | None,
    paths: tuple[str, ...],
    candidate: str | None,
    claim: str | None,
    criterion: str,
    completed: str,
) -> None:
    """Record evidence for a task. A command with its exit status, a commit, files, or a bare claim.

    A command is run by the shell in the work tree's root. Exit code 1 where it failed, which is recorded too.
    """
    from gitledger import checking, tasks
    from gitledger import evidence as proofs
    from gitledger.errors import Usage
    from gitledger.render.text import line

    if [run_command is None, commit is None, not paths, candidate is None, claim is None].count(False) != 1:
        raise Usage("give exactly one of --run, --commit, --path, --candidate, --claim")
    if run_command is None and (covers or junit):
        raise Usage("--covers and --junit say something of a command; give it with --run")
    ledger = opened(ctx)
    view = ledger.view()
    key = task_key(ledger, view, id)
    if criterion:  # before a long command runs for nothing
        tasks.find_item(view.need(key), "criteria", criterion, view.name(key))
    if candidate is not None:
        put(line(checking.take(ledger, key, candidate, criterion, completed)))
        return
    if run_command is not None:
        named = proofs.covered(ledger.gitdir, covers)
        piece = proofs.run(ledger.gitdir, run_command, ledger.look(), covers=named, junit=junit, deadline=deadline)
    elif commit is not None:
        piece = proofs.commit(ledger.gitdir, commit)
    elif paths:
        piece = proofs.paths(ledger.gitdir, paths)
    else:
        piece = {"kind": "claim", "text": tasks.title(claim or "", "claim")}
    from gitledger import proof

    put(line(checking.give(ledger, key, piece, criterion, completed)))
    if proof.state(piece) == "failed":
        ctx.exit(1)
