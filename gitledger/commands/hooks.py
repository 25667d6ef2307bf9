"""gitledger hooks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from gitledger.commands import counted, json_option, put, put_json, warn
from gitledger.gitshims import NAMES as GIT_HOOKS
from gitledger.gitshims import USUAL
from gitledger.wiring import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitledger.gitdir import GitDir
    from gitledger.githooks import Hook
    from gitledger.guidance import Sheet
    from gitledger.install import Outcome, Place, Wired
    from gitledger.wiring import Client, Scope

_clients = click.option(
    "--client", "names", multiple=True, type=click.Choice(list(BY_NAME)), help="This client; may be said several times."
)
_user = click.option("--user", "user", is_flag=True, help="In your own settings, for all repositories.")
_git = click.option("--git", "git", is_flag=True, help="Git's hooks of this clone.")


@click.group()
def command() -> None:
    """Put the hooks of agents and of git in, look at them, try them, take them out.

    An agent's hooks stand in its own settings, in this project's or in yours. What else stands there stays as it is,
    byte for byte. Settings that cannot be read are left alone, and what to put there is printed.
    """


@command.command()
@_clients
@_user
@_git
@click.option("--hook", "hooks", multiple=True, type=click.Choice(GIT_HOOKS), help="With --git: this hook too.")
@click.option("--guidance", is_flag=True, help="How to work with the ledger, where the agent reads instructions, too.")
@click.option("--replace", "instead", is_flag=True, help="In place of another program's, where only one can be.")
@click.pass_context
def install(
    ctx: click.Context,
    names: tuple[str, ...],
    user: bool,
    git: bool,
    hooks: tuple[str, ...],
    guidance: bool,
    instead: bool,
) -> int:
    """Put hooks in, or bring those of an older version up to date.

    Without --client for every agent that seems to be used here. Once more changes nothing.
    """
    from gitledger import gitdir, install, program, wiring
    from gitledger.errors import Missing, NotARepository, Usage

    found = gitdir.find(ctx.obj.path)
    if hooks and not git:
        raise Usage("--hook names one of git's hooks; say --git with it")
    if git:
        _git_install(found, hooks)
        if not names:
            return 0
    scope: wiring.Scope = "user" if user else "project"
    named = [BY_NAME[name] for name in names]
    bare = found is None or not found.top
    if bare and (not named or any(client.scope(user) == "project" for client in named)) and not user:
        raise NotARepository(f"{ctx.obj.path} is in no work tree; go into one, or say --user for your own settings")
    used = [client for client in wiring.CLIENTS if not names and install.is_used(client, found, os.environ)]
    apart = [client for client in used if client.asked or scope not in client.scopes]
    chosen = named or [client for client in used if client.name not in wiring.DOCUMENTED and client not in apart]
    if found and gitdir.ledgers(found.common):
        program.remember(found.common)
    if not chosen:
        raise Missing(f"no agent was found here; name one: --client {'|'.join(BY_NAME)}")
    places = [at for client in chosen if (at := install.place(client, client.scope(user), found, os.environ))]
    if not places:
        raise Missing("there is no home folder to keep settings in; set HOME, or leave out --user")
    done, status = _each(places, lambda at: install.install(at, instead=instead))
    for outcome in done:
        put(_told(outcome))
        if outcome.place.scope != scope and outcome.done != "current":
            whose = "your own settings, for all repositories" if outcome.place.scope == "user" else "a project's"
            put(f"{outcome.place.client.name}: these are {whose}, for it has no others")
        for text in outcome.notes:
            put(f"{outcome.place.client.name}: {text}")
    for client in apart:
        put(f"{client.title} is here too, and is put in by its name: gitledger hooks install --client {client.name}")
    if guidance:
        status = _guidance(((client, scope) for client in chosen), found, "install") or status
    for text in install.also(done, found, os.environ):
        put(text)
    if any(outcome.done != "current" and outcome.place.client.name == "codex" for outcome in done):
        put("Codex runs no hook before you have looked at it: open Codex and say /hooks")
    if done and not user and found is None:
        here = os.path.abspath(ctx.obj.path)
        put(f"{here} is in no git repository, where a ledger is kept; make it one: git init && gitledger init")
    elif done and not user and not (found and gitdir.ledgers(found.common)):
        put("There is no ledger here yet, and until then the hooks do nothing; begin one: gitledger init")
    return status


@command.command()
@_clients
@_user
@_git
@click.pass_context
def uninstall(ctx: click.Context, names: tuple[str, ...], user: bool, git: bool) -> int:
    """Take hooks out: a file is what it was before, and is gone where there was none.

    Without --client those of every agent, in this project's settings, or in yours with --user.
    """
    from gitledger import gitdir, install, wiring

    found = gitdir.find(ctx.obj.path)
    if git:
        _git_uninstall(found)
        if not names:
            return 0
    scope: wiring.Scope = "user" if user else "project"
    places = [
        at
        for at in install.places(found, os.environ)
        if (at.client.name in names and at.scope == at.client.scope(user))
        or (not names and at.scope == scope and os.path.lexists(at.path))
    ]
    done, status = _each(places, install.uninstall, paste=False)
    rows = [_told(outcome) for outcome in done if names or outcome.done != "absent"]
    rows += [f"{outcome.place.client.name}: {text}" for outcome in done for text in outcome.notes]
    told: list[str] = []
    chosen = [BY_NAME[name] for name in names] or wiring.CLIENTS
    status = _guidance(((client, scope) for client in chosen), found, "uninstall", told) or status
    put("\n".join((*rows, *told) or ([] if status else ["Nothing of gitledger's was there"])))
    return status


@command.command()
@_clients
@_user
@_git
@json_option
@click.pass_context
def status(ctx: click.Context, names: tuple[str, ...], user: bool, git: bool, as_json: bool) -> None:
    """Say of each event whether it is wired, and when it fired last in this clone.

    All that is wired, or with --client, --user or --git these alone. Codex is asked whether it trusts its hooks, where
    it is named by --client.
    """
    from gitledger import gitdir, install, trial
    from gitledger.errors import LedgerError
    from gitledger.render.text import line

    found = gitdir.find(ctx.obj.path)
    fired = _fired(ctx, found)
    rows: list[tuple[Wired, str, str]] = []
    faults: list[str] = []
    agents = bool(names or user or not git)
    for at in _places(found, names, user) if agents else ():
        try:
            wired = install.wired(at)
        except LedgerError as e:
            faults.append(str(e))
            continue
        if not names and all(row.state == "absent" for row in wired):
            continue
        codex = trial.trust(found.top if found else ".") if names and at.client.name == "codex" else None
        rows += [(row, trial.trusted(row, codex), fired.get((at.client.name, row.ours), "")) for row in wired]
        faults += [f"{at.client.name}: {what}; {mend}" for what, mend in install.faults(at, os.environ)]
    sheets = _sheets(found, names, user, faults) if agents else []
    gits = _git_hooks(found, fired, faults) if git or not (names or user) else []
    if as_json:
        put_json(
            {
                "guidance": [
                    {"client": one.client.name, "scope": one.scope, "path": one.path, "state": state}
                    for one, state in sheets
                ],
                "hooks": [
                    {
                        "client": row.place.client.name,
                        "scope": row.place.scope,
                        "path": row.place.path,
                        "event": row.theirs,
                        "means": row.ours,
                        "state": state,
                        "fired": at or None,
                    }
                    for row, state, at in rows
                ],
                "git": [
                    {
                        "hook": hook.name,
                        "path": hook.path,
                        "state": hook.state,
                        "what": hook.what,
                        "fired": when or None,
                    }
                    for hook, when in gits
                ],
                "findings": faults,
            }
        )
        return
    hooks = [(hook, when) for hook, when in gits if hook.state != "absent"]
    if agents:
        put("\n".join(_rows(rows, fired is not _UNKNOWN)))
    if hooks:
        put("git:")
    elif git:
        put("None of git's hooks is wired here; put them in: gitledger hooks install --git")
    for hook, when in hooks:
        told = (
            f"fired last at {when}" if when else "never fired" if hook.name in USUAL and fired is not _UNKNOWN else ""
        )
        put(f"  {hook.name:36} {'git':10} {hook.state:11} {told}".rstrip())
        if hook.state != "installed":
            put(f"    {line(hook.what, 200)}")
    if sheets:
        put("guidance:")
    for sheet, state in sheets:
        put(f"  {sheet.client.name:12} {sheet.scope:8} {state:11} {line(sheet.path, 200)}")
    for fault in faults:
        warn(line(fault, 300))


@command.command()
@_clients
@_user
@click.pass_context
def test(ctx: click.Context, names: tuple[str, ...], user: bool) -> int:
    """Send a made-up payload through each installed command, as the agent does, and say what came of it.

    The program is told to do nothing else than to say that it was reached: nothing is written. Exit code 1 where one
    was not.
    """
    from gitledger import gitdir, install, trial
    from gitledger.errors import Missing
    from gitledger.render.text import line

    found = gitdir.find(ctx.obj.path)
    folder = found.top if found and found.top else os.path.abspath(ctx.obj.path)
    good, any_row = True, False
    for at in _places(found, names, user):
        for what, ok, said in trial.attempts(at, install.wired(at), folder, os.environ):
            good, any_row = good and ok, True
            head = f"{at.client.name:12} {at.scope:8} {line(what, 40):36}"
            put(f"{head} {'ok' if ok else 'failed':7} {line(said, 200)}")
    if not any_row:
        raise Missing("no hook is installed here; put them in: gitledger hooks install")
    return 0 if good else 1


@command.command()
@click.argument("name", type=click.Choice(GIT_HOOKS))
def script(name: str) -> None:
    """Print what one of git's hooks would run, for a hook that is kept by hand."""
    from gitledger import gitshims

    put(gitshims.command(name).rstrip("\n"))


@command.command()
def package() -> None:
    """Print the folder that this program's code is in, for a plugin that loads it from there."""
    put(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ── agents ───────────────────────────────────────────────────────────────────────────────────
def _places(found: GitDir | None, names: tuple[str, ...], user: bool) -> list[Place]:
    """Where the hooks that are asked for stand: of these clients, or of all; in the person's own settings alone."""
    from gitledger import install

    return [
        at
        for at in install.places(found, os.environ)
        if (not names or at.client.name in names) and (not user or at.scope == "user")
    ]


def _each(
    places: Iterable[Place], step: Callable[[Place], Outcome], *, paste: bool = True
) -> tuple[list[Outcome], int]:
    """Do one thing at each place; what was done, and the exit code of the first that failed."""
    from gitledger import install
    from gitledger.errors import BadData, LedgerError

    done: list[Outcome] = []
    status = 0
    for at in places:
        try:
            done.append(step(at))
        except LedgerError as e:
            status = status or e.exit_code
            warn(f"{at.client.name}: {e}")
            if paste and isinstance(e, BadData):
                put(f"What belongs into {at.path}:\n{install.to_paste(at.client)}")
    return done, status


def _guidance(
    clients: Iterable[tuple[Client, Scope]], found: GitDir | None, step: str, told: list[str] | None = None
) -> int:
    """Put the guidance in or take it out, say what was done (or add it to `told`); the first failure's exit code."""
    from gitledger import guidance
    from gitledger.errors import LedgerError

    status = 0
    for client, scope in clients:
        at = guidance.sheet(client, scope, found, os.environ)
        if at is None:
            if step == "install":
                warn(f"{client.name}: has no file of instructions there; leave out --user")
            continue
        try:
            done = guidance.install(at) if step == "install" else guidance.uninstall(at)
        except LedgerError as e:
            status = status or e.exit_code
            warn(f"{client.name}: {e}")
            continue
        words = "stays for others in" if step == "uninstall" and done == "updated" else _DONE.get(done)
        if words:
            (put if told is None else told.append)(f"{client.name}: guidance {words} {at.path}")
    return status


def _sheets(found: GitDir | None, names: tuple[str, ...], user: bool, faults: list[str]) -> list[tuple[Sheet, str]]:
    """Where the guidance is, with its state; what cannot be read is one more fault."""
    from gitledger import guidance
    from gitledger.errors import LedgerError

    rows: list[tuple[Sheet, str]] = []
    for at in guidance.sheets(found, os.environ):
        if (names and at.client.name not in names) or (user and at.scope != "user"):
            continue
        try:
            state = guidance.state(at)
        except LedgerError as e:
            faults.append(str(e))
            continue
        if state != "absent":
            rows.append((at, state))
    return rows


_DONE: Mapping[str, str] = {
    "installed": "put into",
    "current": "is there already, in",
    "updated": "brought up to date in",
    "removed": "taken out of",
}


def _told(outcome: Outcome) -> str:
    at = outcome.place
    head = f"{at.client.name}: "
    if outcome.done == "installed":
        return f"{head}{counted(len(outcome.missing), 'event')} wired in {at.path}"
    if outcome.done == "current":
        return f"{head}all is there already, in {at.path}"
    if outcome.done == "updated":
        parts = [f"missing: {', '.join(outcome.missing)}"] if outcome.missing else []
        parts += [f"of another version: {', '.join(outcome.old)}"] if outcome.old else []
        return f"{head}brought up to date in {at.path}; {'; '.join(parts)}"
    if outcome.done == "removed":
        return f"{head}{at.path} is as it was before" if os.path.lexists(at.path) else f"{head}{at.path} is gone"
    return f"{head}nothing of gitledger's is in {at.path}"


_UNKNOWN: Mapping[tuple[str, str], str] = {}


def _fired(ctx: click.Context, found: GitDir | None) -> Mapping[tuple[str, str], str]:
    from gitledger import firing, gitdir
    from gitledger.errors import LedgerError

    if found is None or not gitdir.ledgers(found.common):
        return _UNKNOWN
    try:
        return firing.last(ctx.obj.open())
    except LedgerError as e:
        warn(f"when hooks fired cannot be told: {e}")
        return _UNKNOWN


def _rows(rows: list[tuple[Wired, str, str]], known: bool) -> list[str]:
    from gitledger.render.text import line

    if not rows:
        return ["No agent is wired here; put hooks in: gitledger hooks install"]
    told: list[str] = []
    last = None
    for row, state, at in rows:
        if row.place != last:
            told.append(f"{row.place.client.name} ({row.place.scope}): {line(row.place.path, 200)}")
            last = row.place
        fired = f"fired last at {at}" if at else "never fired" if known else ""
        told.append(f"  {line(row.theirs, 40):36} {row.ours:10} {line(state, 12):11} {fired}".rstrip())
    return told


# ── git ──────────────────────────────────────────────────────────────────────────────────────
def _git_install(found: GitDir | None, more: tuple[str, ...]) -> None:
    from gitledger import gitdir, githooks, gitshims, program
    from gitledger.errors import NoLedger, NotARepository

    if found is None:
        raise NotARepository("git's hooks belong to a repository, and this is in none; go into one")
    if not gitdir.ledgers(found.common):
        raise NoLedger(
            f"{found.top or found.common} has no ledger for git's hooks to write to; begin one: gitledger init"
        )
    done = githooks.install(found, (*gitshims.USUAL, *(name for name in more if name not in gitshims.USUAL)))
    program.remember(found.common)
    put("\n".join(done or ["git's hooks are all there already"]))


def _git_uninstall(found: GitDir | None) -> None:
    from gitledger import githooks
    from gitledger.errors import NotARepository

    if found is None:
        raise NotARepository("git's hooks belong to a repository, and this is in none; go into one")
    put("\n".join(githooks.uninstall(found) or ["None of git's hooks was gitledger's"]))


def _git_hooks(found: GitDir | None, fired: Mapping[tuple[str, str], str], faults: list[str]) -> list[tuple[Hook, str]]:
    """Each of git's hooks with when it fired last; where none can be put in, why is one more fault."""
    from gitledger import githooks
    from gitledger.errors import LedgerError

    if found is None:
        return []
    try:
        return [(hook, fired.get(("git", hook.name.removeprefix("post-")), "")) for hook in githooks.status(found)]
    except LedgerError as e:
        faults.append(str(e))
        return []
