"""Many processes on one clone at once: nothing acknowledged is lost, repeated or torn, and nothing stays wedged.

`python -m tests.stampede --processes 16 --events 500 --checkpoints 50` is the long form; the default suite makes a
short one. Beside the writers `git gc --prune=now` runs all the time, one process is stopped while it holds the lock,
and others are killed wherever they are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gitledger import audit, discover, lock, objects, reading, verify, wal
from gitledger.errors import TryAgain
from gitledger.ledger import Ledger
from gitledger.model import Finding
from tests import sealed
from tests.sealed import new_repo

_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Told:
    """What a run came to: events acknowledged and journalled, checkpoints made, gc runs beside, seconds."""

    events: int
    checkpoints: int
    collected: int
    retried: int
    seconds: float


def write(path: str, n: int, events: int, checkpoints: int, acknowledged: str) -> None:
    """One writer: turns logged as a hook does, and a checkpoint now and then; each is noted once it is acknowledged."""
    ledger = discover.open(path)
    every = max(events // max(checkpoints, 1), 1)
    with open(acknowledged, "a", encoding="utf-8") as f:
        for m in range(events):
            payload = json.dumps({"session_id": f"s{n}", "prompt": f"turn {m} of {n}"}).encode()
            made = wal.append(
                ledger.desk.home.wal, "generic", "turn", payload, now_ms=time.time_ns() // 10**6, rand=os.urandom(10)
            )
            f.write(f"event {made.id}\n")
            if m % every == every - 1:
                while True:
                    try:
                        pointer = ledger.checkpoint("stampede")
                        break
                    except TryAgain:
                        f.write("retried\n")
                    except Exception as e:
                        # Blocked carries the code of what caused it: somebody else's lock is worth another try.
                        if getattr(e, "exit_code", 70) != TryAgain.exit_code:
                            raise
                        f.write("retried\n")
                f.write(f"checkpoint {pointer.commit}\n")
    ledger.desk.store.close()


def hold(path: str, seconds: float) -> None:
    """Hold the ledger's lock for a while."""
    ledger = discover.open(path)
    with lock.held(ledger.desk.home.lock, deadline=60):
        time.sleep(seconds)


def victim(path: str) -> None:
    """Checkpoints without end, until it is killed."""
    ledger = discover.open(path)
    while True:
        try:
            ledger.checkpoint("victim")
        except Exception:
            time.sleep(0.01)


def started(what: Callable[..., None], *args: object) -> multiprocessing.process.BaseProcess:
    """A process of its own."""
    child = _FORK.Process(target=what, args=args)
    child.start()
    return child


def run(folder: Path, processes: int, events: int, checkpoints: int, seed: int = 0) -> Told:
    """One run in a new repository; AssertionError where a promise was broken."""
    repo = new_repo(folder / "repo")
    repo.commit("first")
    path = str(repo.path)
    discover.init(path, "main", "Stampede")
    begun = time.monotonic()
    notes = [str(folder / f"acknowledged-{n}") for n in range(processes)]
    writers = [started(write, path, n, events, checkpoints, notes[n]) for n in range(processes)]
    collected = trouble(path, writers, random.Random(seed))
    for child in writers:
        child.join()
        assert child.exitcode == 0, f"a writer ended with {child.exitcode}"
    took = time.monotonic() - begun
    ledger = discover.open(path)
    ledger.checkpoint("the last one")  # nothing is wedged
    said = [row.split() for note in notes for row in Path(note).read_text(encoding="utf-8").splitlines()]
    acknowledged = {row[1] for row in said if row[0] == "event"}
    made = {row[1] for row in said if row[0] == "checkpoint"}
    check(ledger, acknowledged, made)
    assert len(acknowledged) == processes * events
    return Told(len(acknowledged), len(made), collected, sum(row[0] == "retried" for row in said), took)


def trouble(path: str, writers: list[multiprocessing.process.BaseProcess], chance: random.Random) -> int:
    """gc beside the writers, a holder that is stopped for a while, and processes that are killed; how many gc ran."""
    collected = 0
    stopped = started(hold, path, 0.5)
    time.sleep(0.2)
    os.kill(stopped.pid or 0, signal.SIGSTOP)
    until = time.monotonic() + 2.0
    while any(child.is_alive() for child in writers):
        killed = started(victim, path)
        subprocess.run(["git", "-C", path, "gc", "--quiet", "--prune=now"], capture_output=True, check=False)
        collected += 1
        if time.monotonic() > until and stopped.is_alive() and stopped.pid:
            os.kill(stopped.pid, signal.SIGCONT)
        time.sleep(chance.uniform(0.05, 0.4))
        killed.kill()
        killed.join()
    if stopped.is_alive() and stopped.pid:
        os.kill(stopped.pid, signal.SIGCONT)
    stopped.join()
    return collected


def check(ledger: Ledger, acknowledged: set[str], made: set[str]) -> None:
    """Everything acknowledged is in the journal, once; every checkpoint is in the history; all of it is sound."""
    tip = ledger.tip()
    faults: list[Finding] = []
    journalled = [logged.event.id for logged in reading.events(ledger.desk.store.get, tip, faults)]
    assert not faults, faults
    assert len(journalled) == len(set(journalled)), "an event was repeated"
    lost = acknowledged - set(journalled)
    assert not lost, f"{len(lost)} acknowledged events were lost"
    history = {oid for oid, _ in reading.commits(ledger.desk.store, tip)}
    assert made <= history, "a checkpoint that was acknowledged is not in the history"
    found = verify.verify(ledger.desk, tip, verify.Ways(full=True))
    assert found.verdict == "verified", found.findings[:3]
    root = objects.parse_commit(ledger.desk.store.get(tip).data).tree
    with audit.rebuilt(ledger, root) as again:
        assert again.tree == root, "the tree is torn"
    assert wal.pending(ledger.desk.home.wal) == ([], [])


def main() -> int:
    """One run, told."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--processes", type=int, default=16)
    words.add_argument("--events", type=int, default=500)
    words.add_argument("--checkpoints", type=int, default=50)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sealed.seal_process(Path(folder))
        told = run(Path(folder), given.processes, given.events, given.checkpoints)
    print(
        f"{given.processes} processes: {told.events:,} events and {told.checkpoints:,} checkpoints in "
        f"{told.seconds:.0f} s beside {told.collected} gc --prune=now, {told.retried} tries repeated: "
        "0 lost, 0 repeated, 0 torn, 0 wedged"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
