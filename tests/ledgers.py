"""Ledgers for tests: a real repository with a real key, under a clock that the test moves."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gitledger import discover, objects
from gitledger.ledger import Ledger
from gitledger.mint import Mint
from gitledger.model import Draft, Key
from gitledger.tasks import Hand
from gitledger.view import View
from tests.sealed import Repo

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
    """A new ledger in `repo`."""
    discover.init(str(repo.path), name, "Test project", mint=mint(clock or Clock()))
    return again(repo, clock, name=name, driver=driver)


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
