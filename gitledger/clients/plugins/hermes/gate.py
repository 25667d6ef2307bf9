"""gitledger's gate before Hermes' compactions; all of it is in gitledger's own package."""

from __future__ import annotations

import logging

from agent.context_compressor import ContextCompressor

from .found import checkpoint, load


class Bare(ContextCompressor):
    """The gate where that package is gone: in a clone with a ledger nothing is compacted."""

    name = "gitledger-gate"

    def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=""):
        text, refusal = checkpoint(getattr(self, "_session_id", "") or "", "manual" if force else "auto")
        if refusal:
            self._last_compress_aborted = True
            self._last_summary_error = refusal
            return messages
        if text and text not in memory_context:
            memory_context = f"{text}\n\n{memory_context}"
        return super().compress(messages, current_tokens, focus_topic, force, memory_context)


def register(ctx) -> None:
    """Give Hermes the gate."""
    ctx.register_context_engine(engine())


def engine():
    """The gate, or the bare one where our package is gone or does not run in this Hermes."""
    if not load():
        try:
            from gitledger.clients.hermes.engine import engine as given

            return given()
        except Exception as e:
            logging.getLogger(__name__).warning("gitledger's gate does not run in this Hermes: %s", e)
    return Bare(model="", quiet_mode=True, config_context_length=131_072)
