"""gitledger as Hermes' memory provider; all of it is in gitledger's own package."""

from __future__ import annotations

import sys

from agent.memory_provider import MemoryProvider

from .found import checkpoint, load


class Gone(MemoryProvider):
    """What is there in gitledger's place where its package is gone: it says so, and lets nothing be compacted."""

    name = "gitledger"
    pre_compress_checkpoint_api_version = 2

    def __init__(self, why: str) -> None:
        self.why, self.session = why, ""

    def is_available(self) -> bool:
        return True

    def unavailable_reason(self) -> str:
        return self.why

    def initialize(self, session_id: str, **kwargs: object) -> None:
        self.session = session_id
        print(f"gitledger: nothing is journalled: {self.why}", file=sys.stderr)

    def get_tool_schemas(self) -> list:
        return []

    def system_prompt_block(self) -> str:
        return f"gitledger keeps no record of this session: {self.why}. Tell the person."

    def on_session_switch(self, new_session_id: str, **kwargs: object) -> None:
        self.session = new_session_id

    def on_pre_compress(self, messages: list, *, require_checkpoint: bool = False) -> str:
        text, refusal = checkpoint(self.session, "auto")
        if refusal:
            raise RuntimeError(refusal)
        return text


def register(ctx) -> None:
    """Give Hermes the provider, or what says that it is gone."""
    why = load()
    if not why:
        try:
            from gitledger.clients.hermes.provider import register as given

            given(ctx)
            return
        except Exception as e:
            why = f"its code does not run in this Hermes ({type(e).__name__}: {e}); bring one of them up to date"
    ctx.register_memory_provider(Gone(why))
