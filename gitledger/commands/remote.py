"""gitledger remote set|show, and what sync, push and pull share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from gitledger.commands import counted, json_option, opened, put, put_json
from gitledger.values import asdict

F = TypeVar("F", bound=Callable[..., Any])


def deadline_option(function: F) -> F:
    """`--deadline SECONDS`."""
    return click.option(
        "--deadline",
        type=click.IntRange(1, 86_400),
        metavar="SECONDS",
        help="How long it may take in all; remote.deadline where it is not given.",
    )(function)


@click.group()
def command() -> None:
    """Name the remote that the ledger is backed up to, or show it.

    How this clone stands with it, and whether what it has now is right after it went back or was rewritten.
    """


@command.command("set")
@click.argument("remote", metavar="REMOTE")
@json_option
@click.pass_context
def set_(ctx: click.Context, remote: str, as_json: bool) -> None:
    """Name the remote for sync, push and pull: a git remote's name, an address or a path; "" for none again.

    Kept in this clone's own configuration. Nothing is contacted now, and nothing but this remote ever.
    """
    from gitledger import config
    from gitledger import remote as remotes

    ledger = opened(ctx)
    path = config.clone_path(ledger.gitdir.common)
    if not remote:
        config.set_value(path, "remote.name", "")
        put_json({"remote": None}) if as_json else put("No remote any more: sync, push and pull do nothing.")
        return
    found = remotes.read(remote)
    remotes.place(ledger.gitdir, found)
    where = remotes.address(ledger.gitdir, found)
    config.set_value(path, "remote.name", remote)
    text = ledger.desk.config.capture.text
    if as_json:
        put_json({"remote": found.shown, "address": where, "carries": text})
        return
    said = {
        "none": "no prompts or answers",
        "bounded": f"prompts and answers, redacted, of {ledger.desk.config.capture.limit:,} characters at most each",
        "full": "prompts and answers whole, redacted",
    }[text]
    put(
        f"Remote: {found.shown} ({where})\n"
        f"A push carries the whole ledger: tasks, decisions, handovers, and {said} (capture.text: {text}).\n"
        "Next:   gitledger sync"
    )


@command.command("show")
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show the remote, what was not pushed yet, and how the last sync went. Nothing is contacted."""
    from gitledger import ancestry, synced, syncstate
    from gitledger import remote as remotes

    ledger = opened(ctx)
    to = synced.named(ledger)
    line = remotes.Line(ledger.gitdir, to, ledger.desk.home.name, time.monotonic() + 60)
    seen, held = remotes.tip(line, line.seen), remotes.tip(line, line.incoming)
    tip = ledger.tip()
    behind = ancestry.count(ledger.desk.store.get, tip, seen)
    state = syncstate.load(ledger.desk.home.state, ledger.desk.home.name)
    findings = syncstate.standing(state, ledger.view())
    facts = {
        "remote": to.shown,
        "address": remotes.address(ledger.gitdir, to),
        "seen": seen,
        "incoming": held,
        "tip": tip,
        "unpushed": behind,
        "at": state.at or None,
        "failed": state.failed or None,
        "findings": [asdict(finding) for finding in findings],
    }
    if as_json:
        put_json(facts)
        return
    rows = [
        f"Remote:    {to.shown} ({facts['address'] or 'git does not know it'})",
        f"Accepted:  {seen[:12] if seen else 'nothing yet'}",
        f"Here:      {tip[:12]}, {counted(behind, 'commit')} not pushed",
        *([f"Held:      {held} as {line.incoming}, not taken in"] if held and state.refused else []),
        f"Last sync: {state.at or 'never'}" + (f", failed: {state.failed}" if state.failed else ""),
    ]
    rows += [f"{f.rule}: {f.where}: {f.what}; {f.mend}" for f in findings]
    put("\n".join(rows))


@command.command("accept")
@click.argument("commit", metavar="COMMIT")
@json_option
@click.pass_context
def accept(ctx: click.Context, commit: str, as_json: bool) -> None:
    """Take what the remote has now for good, after it went back, was rewritten or vanished; nothing is contacted.

    COMMIT is its whole id, as remote show names what the last sync fetched and refused; `gone` says that the remote
    may have no ledger. Only a person who has compared it with other clones can say so. Nothing is moved but what this
    clone remembers of the remote: the next sync verifies, merges and pushes as ever, and never forces.
    """
    from gitledger import sync, synced

    made = sync.accept(opened(ctx), synced.named(opened(ctx)), commit)
    if as_json:
        put_json(asdict(made))
        return
    rows = [f"Accepted {made.now[:12] or 'that it has no ledger'} of {made.remote}; before it was {made.before[:12]}."]
    if made.now:
        rows.append(f"{counted(made.left, 'commit')} of before not there now, {counted(made.new, 'commit')} new there.")
    put("\n".join((*rows, "Next: gitledger sync")))


def run(
    ctx: click.Context,
    deadline: int | None,
    as_json: bool,
    *,
    pull: bool = True,
    push: bool = True,
    renew: bool = False,
) -> None:
    """Sync, or half of it, and tell how it went."""
    from gitledger import synced

    where, made = synced.run(opened(ctx), deadline, pull=pull, push=push, renew=renew)
    put_json({"remote": where, **asdict(made)}) if as_json else put(synced.told(made, where))
