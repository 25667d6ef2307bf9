"""Ledgers for tests: a real repository with a real key, under a clock that the test moves."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from gitledger import discover, objects
from gitledger.ledger import Ledger
from gitledger.mint import Mint
from gitledger.model import Draft, Key
from gitledger.tasks import Hand
from gitledger.view import View
from tests.sealed import Files, Repo, first_repo, sealed_environment, template

START = 1_790_000_000_000
"""Milliseconds since 1970 at which every test's clock begins."""


@dataclass
class Clock:
    """A clock that moves a millisecond at each look, and as far as a test says."""

    now: int = START
    _count: itertools.count[int] = field(default_factory=itertools.count)

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def forward(self, *, hours: float = 0, minutes: float = 0) -> None:
        """Let time pass."""
        self.now += int(hours * 3_600_000 + minutes * 60_000)


def mint(clock: Clock) -> Mint:
    """Ids and times of a clock; randomness is real, so that writers differ."""
    return Mint(clock, os.urandom)


def begin(
    repo: Repo, clock: Clock | None = None, *, name: str = "main", driver: discover.Driver = "plumbing"
) -> Ledger:
    """A new ledger in `repo`.

    A test's first one is a copy where the repository is still as the fixture made it: so all such tests have the same
    ids, and the same key, each in its own home.
    """
    first = clock or Clock()
    if name == "main" and _untouched(repo, first):
        begun, first.now = _template()
        Unused.home = ""
        begun.put(repo)
    else:
        discover.init(str(repo.path), name, "Test project", mint=mint(first))
    return again(repo, clock, name=name, driver=driver)


class Unused:
    """The home of a test that has begun no ledger yet; two of one test must not be copies of the same."""

    home = ""


@dataclass(frozen=True, slots=True)
class Begun:
    """What work on a first repository left in its git folder, and in the folder of the keys."""

    git: Files
    data: Files

    @classmethod
    def by(cls, work: Callable[[Repo, Mapping[str, str]], None]) -> Begun:
        """Do the work once, in a repository and under an environment of its own."""
        with tempfile.TemporaryDirectory(prefix="gitledger-begun-") as name:
            folder = Path(name)
            repo, environ = first_repo(folder / "repo"), sealed_environment(folder / "home", os.environ)
            before = Files.of(repo.path / ".git").all
            work(repo, environ)
            after = Files.of(repo.path / ".git").all
            added = {name: file for name, file in after.items() if file != before.get(name)}
            assert "index" not in added, "it would not tell of the files of another repository"
            return cls(Files(added), Files.of(Path(environ["XDG_DATA_HOME"]) / "gitledger"))

    def put(self, repo: Repo) -> None:
        """Have it in a first repository that nothing was done in, and in a home that has no key."""
        self.git.put(repo.path / ".git")
        data = Path(os.environ["XDG_DATA_HOME"]) / "gitledger"
        data.mkdir(mode=0o700, parents=True)
        self.data.put(data)


@functools.cache
def _template() -> tuple[Begun, int]:
    clock = Clock()

    def init(repo: Repo, environ: Mapping[str, str]) -> None:
        discover.init(str(repo.path), "main", "Test project", mint=mint(clock), environ=environ)

    return Begun.by(init), clock.now


def _untouched(repo: Repo, clock: Clock) -> bool:
    """True where a ledger begun now would be like the template, but for what is random."""
    if Unused.home != os.environ["HOME"] or clock.now != START or repo.path.name != "repo":
        return False
    if any(name.startswith("GITLEDGER_") for name in os.environ) or any(Path(Unused.home).iterdir()):
        return False
    first, folder = template("first").files.all, repo.path / ".git"
    there = sorted(name.removeprefix(".git/") for name in first if name.count("/") == 1)
    same = ("README.md", ".git/config", ".git/HEAD", ".git/refs/heads/main")
    return (
        folder.is_dir()
        and sorted(os.listdir(repo.path)) == [".git", "README.md"]
        and sorted(os.listdir(folder)) == there
        and os.listdir(folder / "refs/heads") == ["main"]
        and all((repo.path / name).read_bytes() == first[name][1] for name in same)
    )


def again(
    repo: Repo, clock: Clock | None = None, *, name: str | None = None, driver: discover.Driver = "plumbing"
) -> Ledger:
    """The ledger of `repo` as a new process would open it."""
    return discover.open(repo.path, ledger=name, mint=mint(clock or Clock()), driver=driver)


def do(
    ledger: Ledger,
    step: Callable[..., Draft | tuple[Key, Draft] | tuple[Draft, Key | None]],
    *args: object,
    **kwargs: object,
) -> Key | None:
    """Record one step of `tasks` or `entries`, as a command does; the new record's key where it makes one."""

    def build(view: View, hand: Hand) -> tuple[Key | None, Draft]:
        made = step(view, hand, *args, **kwargs)
        if isinstance(made, Draft):
            return None, made
        first, second = made
        return (first, second) if isinstance(second, Draft) else (second, first)  # type: ignore[return-value]

    return ledger.record(build)


def tamper(ledger: Ledger, changes: dict[str, bytes | None]) -> str:
    """Change files of the ledger's tree behind its back, in a commit that nobody signed; the new tip."""
    desk, tip = ledger.desk, ledger.tip()
    get = desk.store.get
    old = objects.parse_commit(get(tip).data)
    edited = objects.edit(get, old.tree, changes)
    data = objects.format_commit(replace(old, tree=edited.tree, parents=(tip,), signatures=(), message="tampered\n"))
    new = objects.oid("commit", data)
    desk.store.put([*edited.objects, (new, objects.Object("commit", data))])
    desk.store.swap(new, tip, "test")
    return new
