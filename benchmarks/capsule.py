"""What a request waits for: a capsule beside a briefing, whole processes; and what the index costs each checkpoint.

The large ledger has ten times as many events as checkpoints, and a thousand tasks with decisions and blockers.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.checkpoint import Turn
from benchmarks.clock import Row, Side, amount, child, in_turn, ratio, script
from benchmarks.grounds import HISTORY, Grounds, believe, hurried, pack, settle
from benchmarks.histories import History, Scribe, add
from gitledger import discover, entries, fulltext
from gitledger.model import Key

BUDGET = 1.2
GROWTH = 1.2
INDEX_MS = 10.0
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
    took = in_turn([followed(folder) for folder in (small, large)], grounds.runs)
    yield amount("index, one checkpoint later, 100 events", took[0].median, "ms", INDEX_MS)
    yield amount(f"index, one checkpoint later, {events}", took[1].median, "ms", INDEX_MS)
    yield ratio(f"index, {events} / 100 events", took[1], took[0], GROWTH)


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


def followed(folder: str) -> Side:
    """The index following one more checkpoint each time, as a process does that finds it one behind."""
    ledger = discover.open(folder, driver="pygit2")
    query = fulltext.read(QUERY)
    writers = list(ledger.view().manifest.writers)
    fulltext.matches(ledger, ledger.view(), query, writers)
    log = Turn(folder).log

    def step() -> None:
        log()
        ledger.checkpoint()

    def follow() -> None:
        fulltext.catch_up(ledger)

    return Side(follow, before=step)
