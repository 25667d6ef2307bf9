"""What a sync is asked for, what came of it, and how it says that it took nothing: light, for whoever starts one."""

from __future__ import annotations

import time
from collections.abc import Callable

from gitledger.errors import NotAllowed
from gitledger.model import Finding, Key, Oid
from gitledger.store import Store
from gitledger.syncstate import Twice
from gitledger.values import dataclass, field


class Refused(NotAllowed):
    """What the remote has is not taken, and nothing is pushed over it; both sides are kept."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.where}: {finding.what}; nothing was changed on either side: {finding.mend}")
        self.finding = finding


@dataclass(frozen=True, slots=True)
class Ways:
    """How to go about it: which halves of it, how long in all (seconds), and who is told how it goes.

    `pause` waits before the next attempt, given how many there were. With `renew` a clone whose writer's id is in use
    in another one as well goes on as a new writer.
    """

    pull: bool = True
    push: bool = True
    renew: bool = False
    deadline: float = 120.0
    heard: Callable[[str], None] | None = None
    progress: Callable[[str, int, int], None] = lambda phase, done, total: None
    reopen: Callable[[], Store] | None = None
    pause: Callable[[int], None] = lambda tried: time.sleep(backoff(tried))


BOTH_WAYS = Ways()


def backoff(tried: int, between: Callable[[float, float], float] | None = None) -> float:
    """Seconds to wait after so many attempts; `between` chooses, so that machines that met do not meet again."""
    if between is None:
        import random  # hardly any sync waits

        between = random.uniform
    return between(0.05, 0.1 * 2 ** min(tried, 6))


@dataclass(frozen=True, slots=True)
class Parted:
    """A copied clone that goes on: the new writer, how many events it said again, the ref that keeps its old line."""

    writer: str
    events: int
    kept: str
    tip: Oid


@dataclass(slots=True)
class Outcome:
    """What a sync did: commits that came and went, the tips of both sides now, and what a person should look at."""

    tip: Oid
    there: Oid = ""
    fetched: int = 0
    pushed: int = 0
    merged: bool = False
    journalled: int = 0
    attempts: int = 0
    parted: Parted | None = None
    twice: tuple[Twice, ...] = ()
    together: tuple[tuple[Key, str, str], ...] = ()
    findings: list[Finding] = field(default_factory=list)
