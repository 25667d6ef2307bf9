"""What git hooks add: a commit and a switch with them and without; their shell beside the one capture; the guard."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.clock import WARM, Row, Side, Times, amount, beside, child, in_turn, ratio, script
from benchmarks.grounds import Grounds, git
from gitledger import capture, gitdir, githooks, gitshims

SHELL = 5
"""Milliseconds that a hook may take beside its capture: the shell, and git's one child.

Told twice: by the clock, where a busy machine counts each process several times over, and by the processors' time.
"""


def rows(grounds: Grounds) -> Iterator[Row]:
    """A commit, a switch, and a branch that is moved."""
    os.environ["PATH"] = f"{script().parent}{os.pathsep}{os.environ['PATH']}"
    plain, hooked, guarded = (_repository(grounds, name) for name in ("plain", "hooked", "guarded"))
    githooks.install(_found(hooked))
    githooks.install(_found(guarded), ("reference-transaction",))
    payload = b"id %s\nparents %s\nbranch refs/heads/main@{0}\nsubject a step\n\nstep.txt\n" % (b"0" * 40, b"0" * 40)
    captured = Side(child([str(script()), "-C", ".git", "hook", "git", "commit"], hooked, payload))

    commit = ["git", "commit", "--quiet", "--message", "a step"]
    sides = [Side(child(commit, folder), _step(folder)) for folder in (plain, hooked)]
    without, with_, capturing = in_turn([*sides, captured], grounds.runs)
    _check(hooked, "commit", 2 * (grounds.runs + WARM))
    yield ratio("git commit, with hooks / without", with_, without)
    one = Times(tuple(a + b for a, b in zip(without.all, capturing.all, strict=True)))
    yield beside("git commit, with hooks / without, and a capture by itself", with_, one, SHELL)

    for name, words in (("post-commit", ()), ("post-checkout", ("0" * 40, "0" * 40, "1"))):
        took = _processor(grounds, hooked, [f".git/hooks/{name}", *words])
        yield amount(f"{name} without its capture, processor time", took, "ms", SHELL)

    sides = [Side(child(["git", "switch", "--quiet", "-"], folder)) for folder in (plain, hooked)]
    for folder in (plain, hooked):
        git(folder, "switch", "--quiet", "--create", "topic")
    without, with_ = in_turn(sides, grounds.runs)
    yield ratio("git switch, with hooks / without", with_, without)

    sides = [Side(_moves(folder)) for folder in (plain, guarded)]
    without, with_ = in_turn(sides, grounds.runs)
    yield ratio("git update-ref, guarded / not", with_, without)


def _processor(grounds: Grounds, folder: str, command: list[str]) -> float:
    """What a hook takes of the processors, in milliseconds, beside a program that ends at once."""
    place = Path(grounds.folder, "nothing")
    place.mkdir(exist_ok=True)
    stub = place / "gitledger"
    if not stub.exists():
        stub.symlink_to(shutil.which("true") or "/bin/true")
    env = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}

    def took(words: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(grounds.runs):
            subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return used * 1000 / grounds.runs

    return took(command) - took([str(stub)])


def _repository(grounds: Grounds, name: str) -> str:
    folder = grounds.repository(f"githooks-{name}")
    Path(folder, ".git", "gitledger", "wal", "main").mkdir(parents=True)
    return folder


def _found(folder: str) -> gitdir.GitDir:
    found = gitdir.find(folder)
    if found is None:
        sys.exit(f"{folder} is no repository")
    return found


def _step(folder: str) -> Callable[[], None]:
    count = itertools.count()

    def stage() -> None:
        Path(folder, "step.txt").write_text(f"{next(count)}\n")
        git(folder, "add", "step.txt")

    return stage


def _moves(folder: str) -> Callable[[], None]:
    heads = itertools.cycle(git(folder, "rev-list", "--max-count=2", "HEAD").split())

    def move() -> None:
        git(folder, "update-ref", "refs/heads/elsewhere", next(heads))

    return move


def _check(folder: str, event: str, sent: int) -> None:
    """Stop where the hooks told nothing: what does nothing is quick."""
    log = Path(folder, ".git", "gitledger", "wal", "main", "current.wal")
    logged = log.read_bytes().count(b" git " + event.encode())
    if logged != sent:
        sys.exit(f"{logged} events were logged where {sent} were sent; see {log.parent.parent.parent}/log")
    missing = set(gitshims.USUAL) - {hook.name for hook in githooks.status(_found(folder)) if hook.state == "installed"}
    if missing or event not in capture.GIT:
        sys.exit(f"not installed: {missing}")
