"""Where this program is, kept in a clone for hooks that run with another PATH than the person's."""

from __future__ import annotations

import os
import sys

from gitledger import gitdir, pins
from gitledger.errors import CannotWrite

NAME = "program"
WRAPPER = "run"


def remember(common: str) -> None:
    """Write `<common>/gitledger/program`: one line, the path of what runs this program; raises as a write does.

    A program that has no script of its own (`python -m gitledger`) gets one, `<common>/gitledger/run`.
    """
    state = gitdir.state(common)
    gitdir.check_state(common)
    if not os.path.isdir(state):
        return  # no clone of a ledger
    path = script()
    if not path:
        path = os.path.join(state, WRAPPER)
        _write(path, wrapper().encode(), 0o700)
    _write(os.path.join(state, NAME), os.fsencode(path) + b"\n", 0o600)


def named(common: str) -> tuple[str, bool]:
    """The program that the clone names, "" where it names none, and whether it is there and can be run."""
    try:
        path = os.fsdecode(gitdir.read_own(os.path.join(gitdir.state(common), NAME))).partition("\n")[0]
    except (OSError, CannotWrite):
        return "", False
    return path, os.path.isfile(path) and os.access(path, os.X_OK)


def refresh(common: str) -> None:
    """Name this program where the one that the clone names is gone: its environment was moved, say."""
    if not named(common)[1]:
        remember(common)


def script() -> str:
    """The script that runs this program: the one it was started by, the one on PATH, or its Python's; "" for none."""
    import shutil

    beside = os.path.join(os.path.dirname(sys.executable), "gitledger")
    for path in (os.path.abspath(sys.argv[0]), shutil.which("gitledger") or "", beside):
        if os.path.basename(path) == "gitledger" and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return ""


def wrapper() -> str:
    """A shell script that runs this program by this Python, from where it was loaded."""
    import shlex

    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    load = f"import sys; sys.path.insert(0, {home!r}); from gitledger.__main__ import main; sys.exit(main())"
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(load)} "$@"\n'


def _write(path: str, data: bytes, mode: int) -> None:
    try:
        if gitdir.read_own(path) == data and os.stat(path).st_mode & 0o777 == mode:
            return
    except OSError:
        pass  # not there
    pins.write_private(path, data)
    os.chmod(path, mode)
