"""The command line: a group that loads each command when it is asked for, and the one place that prints errors.

Every command is one file in `commands/`, whose `command` is a click command. The table below is what `--help`
shows without importing any of them; a test holds it against the files.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from gitledger import __version__, terminal
from gitledger.errors import Usage
from gitledger.values import dataclass

if TYPE_CHECKING:
    from gitledger.ledger import Ledger

COMMANDS: dict[str, str] = {
    "init": "Begin a ledger in this repository.",
    "status": "Show where the project stands.",
    "briefing": "Print what a starting session is given.",
    "capsule": "Print what a single request is given.",
    "rollover": "Say what to do next: continue, checkpoint, fresh session or emergency.",
    "statusline": "Print one line: task, checkpoint, label, context, advice.",
    "task": "Add, start, prove and finish tasks.",
    "check": "Check what a task's claims rest on.",
    "decide": "Record a decision and why.",
    "blocker": "Open or resolve what stands in the way.",
    "question": "Ask a question that a person must answer, or answer one.",
    "artifact": "Record a file or address worth knowing.",
    "note": "Record a note.",
    "project": "Show or edit the project's title, goal and description.",
    "checkpoint": "Make a signed checkpoint of the work.",
    "handover": "Write, show and choose what the next worker continues from.",
    "session": "Start, end, list and recover sessions.",
    "log": "List the ledger's commits, newest first.",
    "show": "Show a record or a commit.",
    "get": "Print a record's document or a file of the ledger.",
    "search": "Find records that hold a text.",
    "journal": "Print journalled events.",
    "verify": "Check every commit, and the tip against its journals.",
    "remote": "Name the remote that the ledger is backed up to, or show it.",
    "sync": "Bring this clone's ledger and the remote's together.",
    "push": "Push this clone's ledger.",
    "pull": "Take in the remote's ledger.",
    "trust": "List, add and revoke the keys that this machine believes.",
    "fsck": "Check documents and journals against records.",
    "rebuild": "Make the whole tree from the journal alone.",
    "doctor": "Look at this machine's set-up.",
    "purge": "Take a secret that got through out of this clone's ledger.",
    "memory": "Have stale lines of agents' memory files proposed, checked, removed and brought back.",
    "compaction": "Let one compaction through where no checkpoint can be made.",
    "hooks": "Put the hooks of agents and of git in, look at them, try them, take them out.",
    "hook": "Take an agent's event; its payload is on stdin.",
    "config": "List, get and set configuration.",
    "schema": "Print a JSON Schema.",
    "demo": "Show a whole cycle in a temporary repository.",
    "completion": "Print a shell's completion script.",
}


@dataclass(slots=True)
class Words:
    """What stands before the command: where, and which ledger."""

    path: str = "."
    ledger: str | None = None

    def open(self) -> Ledger:
        """The ledger that is meant."""
        from gitledger import discover

        return discover.open(self.path, ledger=self.ledger)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        found: click.Command = import_module(f"gitledger.commands.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option("-C", "path", default=".", metavar="PATH", help="Work as if started in PATH.")
@click.option("--ledger", metavar="NAME", help="Which ledger, where the repository has several.")
@click.version_option(__version__, "--version", prog_name="gitledger", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context, path: str, ledger: str | None) -> None:
    """A git-native continuity ledger: one project, one stable ledger, many short sessions.

    Begin with `gitledger init` in a git repository, or watch `gitledger demo`.

    Exit codes: 0 done; 1 a check found faults; 2 usage; 65 bad data; 69 something is missing; 73 cannot write;
    74 I/O; 75 try again; 77 not allowed; 78 configuration.
    """
    ctx.obj = Words(path, ledger)


def main() -> int:
    """Run the command line; the exit status. A traceback goes to the log, never to the terminal."""
    return terminal.run(_run)


def _run() -> int:
    try:
        status = group.main(_words(), prog_name="gitledger", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.Abort:
        return terminal.say("stopped", 130)
    except click.ClickException as e:
        hint = f"See: {e.ctx.command_path if e.ctx else 'gitledger'} --help" if isinstance(e, click.UsageError) else ""
        return terminal.say(f"{e.format_message().rstrip('.')}. {hint}".rstrip(), 2)


def _words() -> list[str]:
    """The words of the command line; raise Usage for one that is no text: no record could hold it."""
    words = sys.argv[1:]
    for before, word in zip(["", *words], words, strict=False):
        try:
            word.encode()
        except UnicodeEncodeError:
            if before != "-C":
                raise Usage(
                    f"the word {os.fsencode(word)!r} is not UTF-8 text; only -C takes a path that is not"
                ) from None
    return words
