"""A program on nanobot's SDK that keeps a ledger: `python shop.py REPOSITORY SAYING…`, with nanobot's own Python."""

from __future__ import annotations

import asyncio
import sys

from nanobot import Nanobot

from gitledger.clients.nanobot import Blocked, attach

SESSION = "sdk:shop"


async def main(repository: str, sayings: list[str]) -> None:
    """Say one thing after the other, compact behind them, and say where things stand."""
    async with Nanobot.from_config() as bot:
        attach(bot, repository)  # briefing and capsule, a journal of every turn, a checkpoint before a compaction
        for saying in sayings:
            result = await bot.run(saying, session_key=SESSION)
            print(result.content)
        try:
            await bot.runtime.compact_session(SESSION)
        except Blocked as e:
            print(f"not compacted, all is as it was: {e}", file=sys.stderr)
        print((await bot.run("What is the next action?", session_key=SESSION)).content)
    # Here the session is closed: its handover is what the next one, of any agent, begins with.


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
