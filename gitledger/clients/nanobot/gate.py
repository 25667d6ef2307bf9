"""What holds up nanobot's compaction until there is a checkpoint.

nanobot asks nobody before it compacts, so its `Consolidator` is made to: every way to a compaction leads through two
of its methods, the person's `/compact`, the SDK's `compact_session`, the job for idle sessions and a request that has
grown too long. The transcript stays on disk in any case; what a compaction takes away is what the model still sees.
"""

from __future__ import annotations

import functools
import os
import time
from contextvars import ContextVar
from dataclasses import dataclass

from gitledger import gitdir

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from typing import Any, Protocol

    from gitledger.clients.embedded import Embedded

    class Watch(Protocol):
        """Who is asked for the compactions of one nanobot."""

        async def before(self, key: str, trigger: str) -> str:
            """Make the checkpoint and return its pointer, "" for where there is no ledger; raise Blocked."""

        async def after(self, key: str) -> None:
            """Hear that session `key` was compacted."""


PATIENCE, LONGEST = 5.0, 300.0
"""Seconds for which a checkpoint that failed is not tried again: the first time, and at most, twice as long each."""
MARK = "gitledger, before this compaction (a record, no instruction):"

_POINTER: ContextVar[str] = ContextVar("gitledger_pointer", default="")


class Blocked(RuntimeError):
    """No checkpoint was made, so nanobot may not compact; it says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A checkpoint that failed: why, when that was (seconds), and for how long it is not tried again."""

    why: str
    at: float
    wait: float


def pending(refusal: Refusal | None, embedded: Embedded, now: float) -> bool:
    """True while a refusal holds without another try: not for long, and not where a person lets one through."""
    if refusal is None or now - refusal.at >= refusal.wait:
        return False
    return not os.path.lexists(os.path.join(gitdir.state(embedded.found.common), f"allow-{embedded.ledger}.json"))


def refused(why: str, before: Refusal | None) -> Refusal:
    """One more refusal, which holds twice as long as the one before."""
    return Refusal(why, time.monotonic(), min(max(before.wait * 2, PATIENCE), LONGEST) if before else PATIENCE)


def pointed(summary: str, pointer: str) -> str:
    """The summary that is left of a talk, with where the checkpoint is that was made before it."""
    return f"{summary}\n\n{MARK}\n{pointer}" if pointer and summary else summary


def watch(sessions: Any, by: Watch) -> str:
    """Have the compactions of the sessions of one nanobot ask `by`; "" or why they cannot be made to."""
    from nanobot.agent import memory

    why = _wrap(memory.Consolidator)
    if not why:
        sessions.gitledger = by  # the Consolidator has it at hand; a table of ours would keep both alive for ever
    return why


def _wrap(consolidator: type[Any]) -> str:
    names = ("compact_idle_session", "summarize_transcript", "archive_session")
    if missing := [name for name in names if not callable(getattr(consolidator, name, None))]:
        return f"this nanobot compacts in another way than the one this was written for (no {', '.join(missing)})"
    compact, summarize, archive = (getattr(consolidator, name) for name in names)
    if hasattr(compact, "gitledger"):
        return ""  # by another nanobot of this process

    @functools.wraps(compact)
    async def compact_idle_session(self: Any, session_key: str, **given: Any) -> Any:
        by: Watch | None = getattr(self.sessions, "gitledger", None)
        token = _POINTER.set(await by.before(session_key, "manual") if by else "")
        try:
            summary = await compact(self, session_key, **given)
        finally:
            _POINTER.reset(token)
        if by and summary:
            await by.after(session_key)
        return summary

    @functools.wraps(archive)
    async def archive_session(self: Any, *words: Any, **given: Any) -> Any:
        return pointed(await archive(self, *words, **given), _POINTER.get())

    @functools.wraps(summarize)
    async def summarize_transcript(self: Any, *words: Any, **given: Any) -> Any:
        by: Watch | None = getattr(self.sessions, "gitledger", None)
        key = str(given.get("session_key") or "")
        pointer = ""
        if by:
            try:
                pointer = await by.before(key, "auto")
            except Blocked:
                if given.get("provider_state") is None:
                    raise
                # The model's provider has compacted already, on its side: what is refused here is lost for nobody.
        summary = await summarize(self, *words, **given)
        if by and summary:
            await by.after(key)
        return pointed(summary, pointer)

    compact_idle_session.gitledger = True  # type: ignore[attr-defined]
    for method in (compact_idle_session, archive_session, summarize_transcript):
        setattr(consolidator, method.__name__, method)
    return ""
