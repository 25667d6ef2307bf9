"""The transcript in `docs/sync.md`, by two clones and a real server: `python -m tests.sync_transcript` prints it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gitledger import discover
from tests import servers
from tests.sealed import Repo, identify, new_repo, sealed_environment
from tests.test_hostile_commands import run

ADDRESS = "git://git.example.org/"
STEPS = (
    ("ada", "gitledger remote set origin"),
    ("ada", "gitledger sync"),
    ("ben", "gitledger init --remote origin"),
    ("ben", "gitledger task add 'Pay by card'"),
    ("ben", "gitledger sync"),
    ("ada", "gitledger task add 'Opening hours'"),
    ("ada", "gitledger sync"),
    ("ada", "gitledger search hours"),
    ("ben", "gitledger sync"),
    ("ben", "gitledger remote show"),
)
"""Who types what. Of two tasks made apart the first one keeps the bare number."""
NAMES = {"ada": "k3f9c2", "ben": "w8d4qe"}
"""The writer ids that the page shows; a real one is random."""


def play(folder: Path) -> str:
    """What both typed and saw. Changes the process's home as it goes."""
    with servers.git_daemon(folder, folder) as server:
        said = "\n".join(_lines(folder, server.url("")))
        said = said.replace(server.url(""), ADDRESS)
    for who, name in NAMES.items():
        said = said.replace(discover.open(folder / who).desk.writer.id, name)
    return said


def _lines(folder: Path, base: str) -> Iterator[str]:
    _at_home(folder, "ada")
    ada = new_repo(folder / "ada")
    ada.commit("The shop")
    ada.git("clone", "--quiet", "--bare", str(ada.path), str(folder / "shop.git"))
    run("-C", str(ada.path), "init", "--project", "Corner shop", terminal=False)
    run("-C", str(ada.path), "task", "add", "Order by ten", terminal=False)
    ada.git("remote", "add", "origin", f"{ADDRESS}shop.git")
    ada.git("config", f"url.{base}.insteadOf", ADDRESS)
    ben = Repo(folder / "ben")
    ada.git("clone", "--quiet", str(folder / "shop.git"), str(ben.path))
    identify(ben).git("remote", "set-url", "origin", f"{ADDRESS}shop.git")
    ben.git("config", f"url.{base}.insteadOf", ADDRESS)
    for who, line in STEPS:
        _at_home(folder, who)
        yield f"{who}$ {line}"
        said = run("-C", str(folder / who), *shlex.split(line)[1:], terminal=False)
        yield (said.out + said.err).rstrip("\n")


def _at_home(folder: Path, who: str) -> None:
    home = folder / "homes" / who
    home.mkdir(parents=True, exist_ok=True)
    sealed = sealed_environment(home, os.environ)
    for name in [name for name in os.environ if name not in sealed]:
        del os.environ[name]
    os.environ.update(sealed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(play(Path(scratch)))
