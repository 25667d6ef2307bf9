"""The real program as a child process, as a shell or an agent runs it.

The process is forked from a warm one (`warm.py`), which is five times cheaper; in the long form, and where something is
asked of Python's own start, it is started anew.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ledgers import Begun
from tests.process import warm
from tests.sealed import LONG, Repo

STARTING = ("PYTHON", "LC_", "LANG")
"""What Python reads only as it starts."""


@dataclass(frozen=True)
class Ran:
    """What a run left: its exit status and what it printed."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.out)


def gitledger(
    cwd: Path, *words: str, stdin: object = None, env: dict[str, str] | None = None, timeout: float = 300
) -> Ran:
    """Run the program in `cwd`; `stdin` is bytes as they are, or a value as JSON."""
    data = stdin if isinstance(stdin, bytes) else b"" if stdin is None else json.dumps(stdin).encode()
    return _run(cwd, ["-m", "gitledger", *words], data, env, timeout)


def python(cwd: Path, code: str, *words: str) -> Ran:
    """Run a program of a test's own, which loads ours and may die in the middle of it."""
    return _run(cwd, ["-c", code, *words], b"", None, 300)


def _run(cwd: Path, words: list[str], data: bytes, env: dict[str, str] | None, timeout: float) -> Ran:
    if not LONG and not any(name.startswith(STARTING) for name in env or {}):
        status, out, err = warm.nursery().run(words, cwd, {**os.environ, **(env or {})}, data, timeout)
        return Ran(status, out.decode(), err.decode())
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        input=data,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent), **(env or {})},
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def begun(repo: Repo, *commands: tuple[str, ...]) -> Repo:
    """A first repository in which these commands were run.

    They are run once for all who ask, who have the same ids and the same key, each in its own home; in the long form
    once more for each.
    """
    if LONG:
        for words in commands:
            works(repo.path, *words)
    else:
        _begun(commands).put(repo)
    return repo


@functools.cache
def _begun(commands: tuple[tuple[str, ...], ...]) -> Begun:
    def run(repo: Repo, environ: Mapping[str, str]) -> None:
        for words in commands:
            works(repo.path, *words, env=dict(environ))

    return Begun.by(run)


def works(cwd: Path, *words: str, stdin: object = None, env: dict[str, str] | None = None) -> str:
    """Run the program where it must succeed; what it printed."""
    ran = gitledger(cwd, *words, stdin=stdin, env=env)
    assert ran.status == 0, f"{words} exited {ran.status}: {ran.err}"
    return ran.out.rstrip("\n")


def refused(cwd: Path, *words: str, status: int, stdin: object = None, env: dict[str, str] | None = None) -> str:
    """Run the program where it must refuse: one line on stderr, nothing on stdout, no traceback."""
    ran = gitledger(cwd, *words, stdin=stdin, env=env)
    assert ran.status == status, f"{words} exited {ran.status}: {ran.out} {ran.err}"
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("gitledger: ")
    assert "Traceback" not in ran.err
    return lines[0]
