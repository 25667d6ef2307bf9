"""What a request waits for: a capsule beside a briefing, whole processes; and what the index costs each checkpoint.

The large ledger has ten times as many events as checkpoints, and a thousand tasks with decisions and blockers.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.checkpoint import Turn
from benchmarks.clock import WARM, Row, Side, Times, amount, child, in_turn, ratio, script
from benchmarks.grounds import HISTORY, Grounds, believe, hurried, pack, settle, text
from benchmarks.histories import History, Scribe, add
from gitledger import discover, entries, fulltext, tasks
from gitledger.model import Key

BUDGET = 1.2
GROWTH = 1.2
INDEX_MS = 10.0
ROUNDS = 4
"""Rounds of the index for each one of a process: they are short, and what differs is small beside what disturbs."""
TASKS = 1_000
QUERY = "the token refresh path, and why a dead session is not renewed"


def rows(grounds: Grounds) -> Iterator[Row]:
    """The capsule without and with a query, on a small ledger and a large one; then the index."""
    small = grounds.ledger("capsule-small", 10)
    large = crowded(grounds)
    plain, asked = [str(script()), "capsule"], [str(script()), "capsule", "--query", QUERY]
    for folder in (small, large):
        said = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout
        if "Active task: T-" not in said or "Next action, of" not in said:
            sys.exit(f"the capsule in {folder} is not one of a ledger in good order:\n{said}")
    sides = [child([str(script()), "briefing"], folder) for folder in (small, large)]
    sides += [child(command, folder) for command in (plain, asked) for folder in (small, large)]
    brief, brief_large, bare, bare_large, query, query_large = in_turn([Side(one) for one in sides], grounds.runs)
    events = f"{grounds.checkpoints * 10:,} events and {TASKS:,} tasks"
    yield ratio(f"capsule / briefing, {HISTORY} history", bare, brief, BUDGET)
    yield ratio("capsule --query / briefing", query, brief, BUDGET)
    yield ratio(f"capsule / briefing, {events}", bare_large, brief_large, BUDGET)
    yield ratio(f"capsule --query / briefing, {events}", query_large, brief_large, BUDGET)
    yield ratio(f"capsule, {events} / 100 events", bare_large, bare, GROWTH)
    yield ratio(f"capsule --query, {events} / 100 events", query_large, query, GROWTH)
    yield from index(small, large, grounds.runs * ROUNDS, events)


def index(small: str, large: str, runs: int, events: str) -> Iterator[Row]:
    """What the index takes to follow a checkpoint of each ledger, by the clock and by the processor."""
    sides = [Followed(folder) for folder in (small, large)]
    # The checkpoints between are not what is measured, and a disk that is still writing is what they would leave.
    with hurried(sides[1].ledger):
        took = in_turn([Side(one.follow, before=one.step) for one in sides], runs)
    busy = [Times(tuple(one.busy[WARM:])) for one in sides]
    yield amount("index, one checkpoint later, 100 events", took[0].median, "ms", INDEX_MS)
    yield amount(f"index, one checkpoint later, {events}", took[1].median, "ms", INDEX_MS)
    yield ratio(f"index, {events} / 100 events", took[1], took[0], GROWTH)
    yield ratio("the same, processor time", busy[1], busy[0], GROWTH)


def crowded(grounds: Grounds) -> str:
    """The large ledger with TASKS tasks more, built once where the scratch folder is kept."""
    built = os.path.join(grounds.folder, f"ledger-crowded-{grounds.checkpoints}")
    if not os.path.exists(built):
        folder = grounds.ledger("crowded", grounds.checkpoints)
        grounds.say(f"adding {TASKS:,} tasks")
        opened = discover.open(folder, driver="pygit2")
        with hurried(opened):
            scribe, told = Scribe(opened), History(1)
            fill(scribe, told)
        opened.desk.store.close()
        pack(folder)
        os.rename(folder, built)
    settle(built)
    believe(built)
    return built


def fill(scribe: Scribe, told: History) -> None:
    """Add the tasks, a decision and a blocker with every fifth."""
    dice = random.Random(1)
    for n in range(TASKS):
        key = add(scribe, told, dice, alone=True)
        if n % 5 == 0:
            beside(scribe, key, f"{n} on {told.said[key].title}")
        if n % 100 == 99:
            scribe.checkpoint()


def beside(scribe: Scribe, task: Key, about: str) -> None:
    """A decision and a blocker of a task."""
    scribe.record(lambda v, h: entries.decide(v, h, f"Decision {about}", "It is the cheapest to run", task, None))
    scribe.record(lambda v, h: entries.block(v, h, f"Blocker {about}", task))


class Followed:
    """The index of one ledger, which follows one checkpoint each time, as a process does that finds it one behind."""

    def __init__(self, folder: str) -> None:
        self.ledger = discover.open(folder, driver="pygit2")
        self.busy: list[float] = []
        """Milliseconds of processor time that each following took."""
        view = self.ledger.view()
        fulltext.matches(self.ledger, view, fulltext.read(QUERY), list(view.manifest.writers))
        self._task = tasks.active(view, self.ledger.desk.writer.id, self.ledger.gitdir.worktree) or ""
        self._log = Turn(folder).log

    def step(self) -> None:
        """Make a checkpoint that changes the active task's words, without which there is little to follow."""
        said = text(len(self.busy), 12)
        self.ledger.record(lambda v, h: (None, tasks.set_next(v, h, self._task, said)))
        self._log()
        self.ledger.checkpoint()

    def follow(self) -> None:
        """Bring the index to the tip."""
        begun = time.process_time()
        fulltext.catch_up(self.ledger)
        self.busy.append((time.process_time() - begun) * 1000)
