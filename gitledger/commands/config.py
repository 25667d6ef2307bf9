"""gitledger config."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import json_option, opened, put, put_json

if TYPE_CHECKING:
    from gitledger.cli import Words
    from gitledger.model import Draft
    from gitledger.tasks import Hand
    from gitledger.view import View


@click.group()
def command() -> None:
    """List, get and set configuration.

    A value comes from the ledger (the project's policy, which travels), then from this clone's file, then from the
    user's; the later one wins. What can start a program or reach a network is never read from the ledger.
    """


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List every key with its value and where it comes from."""
    from gitledger import config
    from gitledger.render.text import line
    from gitledger.values import asdict

    ledger = opened(ctx)
    origins = _origins(ctx)
    rows = [
        {"key": key, "value": tame(value), "from": origins[key]}
        for key, value in config.flat(ledger.desk.config).items()
    ]
    if as_json:
        put_json({"values": rows, "findings": [asdict(fault) for fault in ledger.faults]})
        return
    for row in rows:
        put(f"{row['key']:<28} {line(shown(row['value']), 60):<24} {line(row['from'])}")
    for fault in ledger.faults:
        put(f"not used: {line(fault.where, 120)} {line(fault.what, 200)}; {line(fault.mend, 200)}")


@command.command()
@click.argument("key")
@json_option
@click.pass_context
def get(ctx: click.Context, key: str, as_json: bool) -> None:
    """Print the value of a key."""
    from gitledger import config
    from gitledger.render.text import visible

    value = config.get(opened(ctx).desk.config, key)
    if as_json:
        put_json({"key": key, "value": tame(value), "from": _origins(ctx)[key]})
    else:
        put(visible(shown(value)))


@command.command("set")
@click.argument("key")
@click.argument("value")
@click.option("--user", "where", flag_value="user", help="In the user's file, for all repositories.")
@click.option("--clone", "where", flag_value="clone", default=True, help="In this clone's file (the default).")
@click.option("--ledger", "where", flag_value="ledger", help="In the ledger, for everybody who works with it.")
@click.pass_context
def set_(ctx: click.Context, key: str, value: str, where: str) -> None:
    """Set a key. VALUE is a word, a number, true or false, or a list such as '["a", "b"]'."""
    from gitledger import config, gitdir
    from gitledger.errors import Missing, NotARepository
    from gitledger.render.text import line

    words: Words = ctx.obj
    if where == "ledger":
        put(_in_ledger(ctx, key, value))
        return
    if where == "user":
        path = config.user_path(os.environ)
        if not path:
            raise Missing("there is no home folder to keep configuration in; set HOME, or use --clone")
    else:
        found = gitdir.find(words.path)
        if found is None:
            raise NotARepository(f"{words.path} is in no git repository; go into one, or use --user")
        path = config.clone_path(found.common)
    config.set_value(path, key, value, users=where == "user")
    if key.partition(".")[0] in ("documenter", "proposer"):
        _mark(words)
    put(f"{key} is set in {line(path)}")


def _mark(words: Words) -> None:
    """Have a turn's end know from now on whether a proposer may be due; elsewhere a session's start says it."""
    from gitledger import proposerstate
    from gitledger.errors import LedgerError

    try:
        ledger = words.open()
        proposerstate.mark(ledger.desk.home.state, ledger.desk.config)
    except LedgerError:
        pass  # no ledger here, or one that cannot be read: the key is set all the same


def shown(value: Any) -> str:
    """A value as it is typed, without a password that stands in an address."""
    import json

    from gitledger.refusal import bare

    return bare(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tame(value: Any) -> Any:
    """A value as JSON has it, without a password that stands in an address."""
    return shown(value) if isinstance(value, str) else value


def _in_ledger(ctx: click.Context, key: str, value: str) -> str:
    from gitledger import config, layout, schema
    from gitledger.errors import NotAllowed
    from gitledger.model import Change

    if key.partition(".")[0] in schema.MACHINE_ONLY:
        raise NotAllowed(f"{key} is this machine's to say, never a ledger's: use --clone or --user")
    wanted = config.typed(key, value)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        draft = hand.draft("config.set", {layout.CONFIG: Change({key: wanted})}, None, key=key)
        return f"{key} is set in the ledger, from its next checkpoint on", draft

    return opened(ctx).record(build)


def _origins(ctx: click.Context) -> dict[str, str]:
    from gitledger import config, discover

    ledger = opened(ctx)
    return config.origins(discover.ledger_policy(ledger.desk.store), ledger.gitdir.common, os.environ)
