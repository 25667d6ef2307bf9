"""A sync of two clones, each with 1,000 events that the other lacks, against plain `git fetch` and `git push`."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks import grounds as ground
from benchmarks.clock import Row, child, ways
from benchmarks.grounds import Grounds, git
from benchmarks.verify import signed_ledger, signing_in_process
from gitledger import config, discover

BUDGET = 3.0
GROWTH = 1.3
COMMITS, TURNS = 10, 100
"""What each side has that the other lacks: so many commits of so many events."""
ROUNDS = 15


@dataclass(frozen=True, slots=True)
class Stage:
    """Folders as they stand before a sync: a bare remote that has one side's events, and the clone with the other's."""

    folder: str

    @property
    def bare(self) -> str:
        return os.path.join(self.folder, "remote.git")

    @property
    def clone(self) -> str:
        return os.path.join(self.folder, "clone")

    def copy(self, name: str) -> Stage:
        """The same once more, beside it, with its own remote."""
        other = Stage(os.path.join(os.path.dirname(self.folder), name))
        shutil.rmtree(other.folder, ignore_errors=True)
        shutil.copytree(self.folder, other.folder, symlinks=True)
        git(other.clone, "remote", "set-url", "origin", other.bare)
        return other


def rows(grounds: Grounds) -> Iterator[Row]:
    """Both ways at once; then the same with another size of the ledger."""
    large = 10_000 if grounds.long else 1_000
    took: dict[int, float] = {}
    for n in (10, large):
        grounds.say(f"two clones of a ledger of {n:,} checkpoints")
        ours, fetched, pushed = measured(stage(grounds, n))
        took[n] = ours
        theirs = fetched + pushed
        figure = ours / theirs
        yield Row(
            f"sync, {COMMITS * TURNS:,} events each way, {n:,} checkpoints before / git fetch + git push",
            f"{ours:.0f} ms",
            f"{theirs:.0f} ms",
            f"{figure:.2f} ×",
            f"{BUDGET:g} ×",
            figure <= BUDGET,
        )
    grown = took[large] / took[10]
    yield Row(
        f"the same, {large:,} checkpoints before / 10",
        f"{took[large]:.0f} ms",
        f"{took[10]:.0f} ms",
        f"{grown:.2f} ×",
        f"{GROWTH:g} ×",
        grown <= GROWTH,
    )


def stage(grounds: Grounds, n: int) -> Stage:
    """A remote with one clone's new events, and another clone with as many of its own."""
    made = Stage(os.path.join(grounds.folder, f"sync-{n}", "start"))
    if os.path.isdir(made.folder):
        return made
    building = Stage(f"{made.folder}.building")
    shutil.rmtree(building.folder, ignore_errors=True)
    os.makedirs(building.folder)
    first = os.path.join(building.folder, "first")
    shutil.copytree(signed_ledger(grounds, n), first, symlinks=True)
    git(building.folder, "init", "--quiet", "--bare", "--initial-branch=main", building.bare)
    git(first, "push", "--quiet", building.bare, "main", "ledger/main")
    git(building.folder, "clone", "--quiet", building.bare, building.clone)
    git(building.clone, "fetch", "--quiet", "origin", "refs/heads/ledger/main:refs/heads/ledger/main")
    git(building.clone, "config", "user.name", "Robin Bench")
    git(building.clone, "config", "user.email", "robin@example.invalid")
    discover.init(building.clone, "main", "Shop")
    for folder in (first, building.clone):
        work(folder)
    git(first, "push", "--quiet", building.bare, "ledger/main")
    git(building.bare, "gc", "--quiet")
    os.rename(building.folder, made.folder)
    git(made.clone, "remote", "set-url", "origin", made.bare)
    found = discover.open(made.clone)
    config.set_value(config.clone_path(found.gitdir.common), "remote.name", "origin")
    from gitledger import verify

    verify.verify(found.desk, found.tip())  # as any briefing has
    found.desk.store.close()
    return made


def work(folder: str) -> None:
    """Some commits of events, each as a checkpoint makes it, signed."""
    opened = discover.open(folder, driver="pygit2")
    with signing_in_process(), ground.hurried(opened):
        ledger = ground.Still(opened)
        for n in range(COMMITS):
            ground.journal(ledger, "sync", TURNS - 1, n)
            ledger.checkpoint()
    opened.desk.store.close()


def measured(start: Stage) -> tuple[float, float, float]:
    """Milliseconds of a sync, of a plain fetch of what it fetches, and of a plain push of what it pushes."""
    took: list[tuple[float, float, float]] = []
    command = ways("sync")["script"]
    branch = "refs/heads/ledger/main"
    for _ in range(ROUNDS):
        mine, plain = start.copy("mine"), start.copy("plain")
        child(ways("config", "get", "remote.name")["script"], mine.clone)()  # as any earlier command has read it
        ours = timed(command, mine.clone)
        tip = git(mine.clone, "rev-parse", branch)
        fetched = timed(["git", "fetch", "--quiet", "origin", f"{branch}:refs/x"], plain.clone)
        # The clone that has merged pushes the same objects to a remote that lacks them.
        git(mine.clone, "remote", "set-url", "origin", plain.bare)
        pushed = timed(["git", "push", "--quiet", "origin", f"{tip}:{branch}"], mine.clone)
        took.append((ours, fetched, pushed))
    return tuple(median(column) for column in zip(*took, strict=True))  # type: ignore[return-value]


def timed(command: list[str], folder: str) -> float:
    """Milliseconds of a whole process."""
    run = child(command, folder)
    begun = time.perf_counter()
    run()
    return (time.perf_counter() - begun) * 1000
