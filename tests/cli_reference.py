"""`docs/cli.md` as the command line itself has it: `python -m tests.cli_reference > docs/cli.md`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from gitledger import cli

HEAD = """# Commands

<!-- Generated from the program: python -m tests.cli_reference > docs/cli.md -->

`-C PATH` and `--ledger NAME` stand before the command. Where an ID of a task may be left out, the active task of the
work tree is meant. A command that reads takes `--json`; the shapes are in [json.md](json.md).

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a check found faults, or a command run as evidence failed |
| 2 | the words do not fit: see `--help` |
| 65 | bad data: an id, a file or a record is not what it should be |
| 69 | something is missing: a repository, a ledger, a program, an object, a key |
| 70 | a fault in gitledger |
| 73 | cannot write |
| 74 | reading, writing or syncing failed |
| 75 | try again: somebody else was faster, or holds a lock |
| 77 | not allowed: an illegal step, a missing proof, a bad signature |
| 78 | a configuration file or key is wrong |
| 130 | stopped by the user |

What each message means and what to do: [troubleshooting.md](troubleshooting.md).
"""


def commands(
    command: click.Command = cli.group, name: str = "gitledger", parent: click.Context | None = None
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its whole name, groups before what is in them."""
    # With its own settings: click keeps the help option that the first context asked for.
    ctx = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **command.context_settings)
    yield name, command, ctx
    if isinstance(command, click.Group):
        for word in command.list_commands(ctx):
            inner = command.get_command(ctx, word)
            if inner is not None:
                yield from commands(inner, f"{name} {word}", ctx)


def paragraphs(text: str) -> list[str]:
    """A help text's paragraphs, one line each."""
    return [" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n")]


def options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """The options as their words and what they do; `--help` is everywhere, so it is left out."""
    for parameter in command.get_params(ctx):
        # Arguments have no record before click 8.3, and the usage line names them anyway.
        record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in parameter.opts:
            yield record[0], " ".join(record[1].split())


def section(name: str, command: click.Command, ctx: click.Context) -> str:
    """What the reference says of one command."""
    usage = " ".join(["gitledger", *name.split()[1:], *command.collect_usage_pieces(ctx)])
    level = "##" if name.count(" ") < 2 else "###"
    rows = [f"{level} {name}", "", f"    {usage}", ""]
    for part in paragraphs(command.help or ""):
        rows += [part, ""]
    listed = [f"| `{words.replace('|', chr(92) + '|')}` | {text} |" for words, text in options(command, ctx)]
    if listed:
        rows += ["| option | |", "|---|---|", *listed, ""]
    if isinstance(command, click.Group) and command is not cli.group:
        rows += ["Commands: " + " · ".join(f"`{word}`" for word in command.list_commands(ctx)), ""]
    return "\n".join(rows)


def reference() -> str:
    """The whole of docs/cli.md."""
    return "\n".join([HEAD, *(section(*found) for found in commands())]).rstrip("\n") + "\n"


def help_text() -> str:
    """What `gitledger --help` prints, as `gitledger/help.txt` has it: `python -m tests.cli_reference --help-text`."""
    from click.testing import CliRunner

    return CliRunner().invoke(cli.group, ["--help"], prog_name="gitledger", terminal_width=80).output


if __name__ == "__main__":
    sys.stdout.write(help_text() if "--help-text" in sys.argv else reference())
