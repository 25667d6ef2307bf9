"""One file per command; `command` in each is what the group loads. What they share on the terminal stands here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gitledger.terminal import counted as counted
from gitledger.terminal import put as put
from gitledger.terminal import put_json as put_json

if TYPE_CHECKING:
    from gitledger.cli import Words
    from gitledger.ledger import Ledger
    from gitledger.model import Key
    from gitledger.view import View

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """`--json`: the same facts for programs; shapes are in docs/json.md."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def send(data: bytes) -> None:
    """Write bytes to stdout, which the end of the program flushes; raise IOFailed where they cannot be written."""
    with told():
        sys.stdout.buffer.write(data)


@contextmanager
def told() -> Iterator[None]:
    """Turn a failure to write to stdout into IOFailed; that its reader has gone (`| head`) passes as it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        from gitledger.errors import IOFailed

        raise IOFailed(f"the output cannot be written ({e.strerror}); what was asked for is done") from e


def warn(text: str) -> None:
    """Say something in one line on stderr, beside what was asked for."""
    from gitledger.render.text import line

    print(f"gitledger: {line(text)}", file=sys.stderr)


def named(source: str, most: int, what: str) -> bytes:
    """The first `most` bytes of a file that a person named to hold `what`, or of stdin for `-`; Missing for no file.

    A pipe, as `<(command)` is, is read to its end; one that nobody is writing to is empty, and not waited for.
    """
    import os
    import stat

    from gitledger.errors import Missing

    if source == "-":
        return sys.stdin.buffer.read(most)
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.close(fd)
            raise IsADirectoryError(0, "it is a folder")
        os.set_blocking(fd, True)
        with open(fd, "rb") as f:
            return f.read(most)
    except (OSError, ValueError) as e:  # ValueError: a NUL in it
        why = e.strerror if isinstance(e, OSError) else e
        raise Missing(f"{source!r} cannot be read ({why}); name a file that holds {what}, or - for stdin") from e


def opened(ctx: click.Context) -> Ledger:
    """The ledger that the words before the command mean."""
    words: Words = ctx.obj
    return words.open()


def edited(before: dict[str, str]) -> dict[str, str]:
    """The fields that a person changed in an editor; raise Usage where there is neither an editor nor a terminal."""
    import os

    from gitledger import form
    from gitledger.errors import Missing, Usage

    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR")) and not sys.stdin.isatty():
        raise Usage("there is no terminal for an editor; give the fields as options, see --help")  # an agent would hang
    try:
        text = click.edit(form.write(before), extension=".yaml")
    except click.ClickException as e:
        raise Missing(f"{e.format_message()}; nothing was changed, mend EDITOR or give the fields as options") from e
    return form.changed(before, text)


def task_key(ledger: Ledger, view: View, text: str | None) -> Key:
    """The task that `text` names, or the active one where it is None; raise NoSuchRecord with what to do."""
    from gitledger import layout, tasks
    from gitledger.errors import NoSuchRecord

    if text:
        return view.resolve(text, layout.TASK, ledger.desk.writer.id)
    key = tasks.active(view, ledger.desk.writer.id, ledger.gitdir.worktree)
    if key is None:
        raise NoSuchRecord("no task is active here; name one, or begin one with: gitledger task start ID")
    return key


def optional_task(ledger: Ledger, view: View, text: str | None) -> Key | None:
    """The task that `text` names, the active one where it is None, or None for "-" or where none is active."""
    from gitledger import layout, tasks

    if text == "-":
        return None
    if text:
        return view.resolve(text, layout.TASK, ledger.desk.writer.id)
    return tasks.active(view, ledger.desk.writer.id, ledger.gitdir.worktree)
