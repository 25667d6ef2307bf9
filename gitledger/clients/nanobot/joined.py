"""Where a nanobot comes to keep a ledger: by a call of its owner's, or because it loads our tools."""

from __future__ import annotations

import os

from gitledger.clients.nanobot import gate
from gitledger.clients.nanobot.attached import IDLE, Attached

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from typing import Any


def attach(
    bot: Any, folder: str | os.PathLike[str] | None = None, *, ledger: str | None = None, idle_seconds: float = IDLE
) -> Attached:
    """Have `bot`, a `nanobot.Nanobot`, keep the ledger of `folder`, or else of each session's own workspace.

    From then on each turn is journalled, the model is told what the ledger says, and no compaction happens without a
    checkpoint: `run` and `compact_session` raise Blocked. Closing the bot closes the ledger's sessions. Again is
    harmless. In a folder without a ledger nothing is written and nothing is held up.
    """
    loop = bot._loop  # nanobot's SDK has no other way to its bus
    found = join(loop.bus, loop.sessions, str(bot.runtime.workspace))
    found.folder = os.fspath(folder) if folder is not None else ""
    found.ledger, found.idle_seconds = ledger, idle_seconds
    bot.runtime.add_context_provider(found.context)
    if not hasattr(bot.aclose, "gitledger"):
        close = bot.aclose

        async def aclose() -> None:
            try:
                await close()
            finally:
                await found.aclose()

        aclose.gitledger = True  # type: ignore[attr-defined]
        bot.aclose = aclose
    return found


def join(bus: Any, sessions: Any, workspace: str) -> Attached:
    """What keeps the ledger for the nanobot of `bus`: journal and gate are there from the first call on."""
    found: Attached | None = getattr(bus, "gitledger", None)
    if found is None:
        from nanobot.bus.runtime_events import SessionTurnPersisted

        found = Attached(bus, sessions, workspace)
        bus.subscribe(found.persisted, SessionTurnPersisted)
        found.ungated = gate.watch(sessions, found)
        bus.gitledger = found
    return found
