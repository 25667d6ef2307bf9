"""Several processes that look at commits, each with a store of its own: verification is work for every core."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack
from typing import Any

from gitledger import contents
from gitledger.errors import IOFailed
from gitledger.examine import Eye, Look
from gitledger.model import Finding, Oid
from gitledger.store import Store

CHUNK = 32
"""Commits that one worker takes at once: neighbours share folders."""
KEPT = 1000
"""Commits after which a store lets go of what it has read, so that memory does not follow the history."""


class Crew:
    """Workers that wait for commits."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def looks(self, order: list[Oid]) -> Iterator[Look]:
        """What is to be said of each commit, in the order given; IOFailed where a worker died of it."""
        try:
            yield from self._pool.map(_look, order, chunksize=CHUNK)
        except BrokenExecutor as e:
            raise _died() from e

    def contents(self, tip: Oid, base: Oid) -> Callable[[], list[Finding]]:
        """What `contents.differing` finds, beside the looks; the call waits for it."""
        future = self._pool.submit(_differing, tip, base)

        def wait() -> list[Finding]:
            try:
                return future.result()
            except BrokenExecutor as e:
                raise _died() from e

        return wait


def _died() -> IOFailed:
    return IOFailed("a process that read the ledger's objects died: run `git fsck` to see what is hurt")


def hire(stack: ExitStack, reopen: Callable[[], Store], workers: int) -> Crew | None:
    """A crew until the stack closes; None where this process cannot be copied safely."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return None  # a copy of one thread among several may wait for a lock that nobody holds
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(reopen,))
    stack.callback(pool.shutdown, cancel_futures=True)
    return Crew(pool)


def cores() -> int:
    """How many processes run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ── in a worker ──────────────────────────────────────────────────────────────────────────────
_mine: dict[str, Any] = {}  # this process's own: a worker is told once what all its work is on


def _begin(reopen: Callable[[], Store]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that was interrupted ends the others
    gc.freeze()  # what came with the copy stays as it is, shared
    gc.set_threshold(20_000, 50, 50)
    store = reopen()
    _mine.update(store=store, eye=Eye(store), done=0)


def _look(oid: Oid) -> Look:
    _mine["done"] += 1
    if not _mine["done"] % KEPT:
        _mine["store"].close()
    look: Look = _mine["eye"].look(oid)
    return look


def _differing(tip: Oid, base: Oid) -> list[Finding]:
    return contents.differing(_mine["eye"], tip, base)
