"""The command line: a group that loads each command when it is asked for, and the one place that prints errors.

Every command is one file in `commands/`, whose `command` is a click command. The table below is what `--help`
shows without importing any of them; a test holds it against the files.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gitledger import __version__
from gitledger.errors import LedgerError, Usage

if TYPE_CHECKING:
    from gitledger.ledger import Ledger

COMMANDS: dict[str, str] = {
    "init": "Begin a ledger in this repository.",
    "status": "Show where the project stands.",
    "briefing": "Print what a starting session is given.",
    "task": "Add, start, prove and finish tasks.",
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
    "verify": "Check signatures from the tip to the first commit.",
    "trust": "List, add and revoke the keys that this machine believes.",
    "fsck": "Check documents and journals against records.",
    "rebuild": "Make the whole tree from the journal alone.",
    "compaction": "Let one compaction through where no checkpoint can be made.",
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
    _streams()
    status = _run()
    try:
        sys.stdout.flush()
    except OSError as e:
        # Python would try once more as it ends, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if status == 0 and not isinstance(e, BrokenPipeError):
            return _say(f"the output cannot be written ({e.strerror}); what was asked for is done", 74)
    return status


def _run() -> int:
    try:
        status = group.main(_words(), prog_name="gitledger", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except LedgerError as e:
        return _say(str(e), e.exit_code)
    except click.exceptions.Exit as e:
        return e.exit_code
    except click.Abort:
        return _say("stopped", 130)
    except click.ClickException as e:
        hint = f"See: {e.ctx.command_path if e.ctx else 'gitledger'} --help" if isinstance(e, click.UsageError) else ""
        return _say(f"{e.format_message().rstrip('.')}. {hint}".rstrip(), 2)
    except KeyboardInterrupt:
        return _say("stopped", 130)
    except BrokenPipeError:
        return 0  # the reader of our output has gone (`| head`): nothing to say, and nobody to say it to
    except Exception as e:
        return _crash(e)


def _streams() -> None:
    """Give every standard stream that the caller closed a place: without one, a hook's `print` is a crash."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 (they live as long as the process does)
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115


def _words() -> list[str]:
    """The words of the command line; raise Usage for one that is no text: no record could hold it."""
    words = sys.argv[1:]
    for before, word in zip(["", *words], words, strict=False):
        if before != "-C" and any("\ud800" <= c <= "\udfff" for c in word):
            raise Usage(f"the word {os.fsencode(word)!r} is not UTF-8 text; only -C takes a path that is not")
    return words


def _say(text: str, status: int) -> int:
    from gitledger.render.text import line

    print(f"gitledger: {line(text)}", file=sys.stderr)
    return status


def _crash(error: Exception) -> int:
    import traceback

    from gitledger import capture, gitdir

    where = "set GITLEDGER_TRACEBACK=1 to see where"
    found = gitdir.find(".")
    if found and gitdir.ledgers(found.common):
        capture.log(found.common, "".join(traceback.format_exception(error)).replace("\n", " ⏎ "))
        where = f"details in {gitdir.state(found.common)}/log"
    if os.environ.get("GITLEDGER_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, OSError):  # the disk, a permission: this machine's, not ours
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{place}{error.strerror or error}; mend that and try again ({where})", 74)
    return _say(f"{type(error).__name__}: {error} (this is a fault in gitledger; {where})", 70)
