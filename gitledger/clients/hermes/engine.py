"""The context engine that keeps Hermes from compacting without a checkpoint: its own compressor, behind a gate.

Hermes 0.19 has no other way to be kept from it: a provider that fails is passed over. What Hermes' own compressor is
given by its configuration this one reads itself, for Hermes gives an engine none of it.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

from agent.context_compressor import ContextCompressor

from gitledger.clients.hermes import compaction, context, health

NAME = "gitledger-gate"
WINDOW = 131_072
"""Tokens, until Hermes says which model is used: without a figure its compressor would ask the network for one."""
_TRUE = ("true", "1", "yes")
_NAMES = {"threshold": "threshold_percent", "target_ratio": "summary_target_ratio"}
"""What is called otherwise in the configuration than in the compressor."""


class Gate(ContextCompressor):  # type: ignore[misc]  # Hermes' own class
    """Hermes' compressor, which compacts nothing without a checkpoint where a ledger is."""

    compacts_outside_compress = False
    _threshold_asked = 0.50

    @property
    def name(self) -> str:
        """What `context.engine` selects."""
        return NAME

    def compress(
        self,
        messages: list[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
        **more: Any,
    ) -> list[dict[str, Any]]:
        """Compact as Hermes does, the summary's writer handed the ledger's capsule; or return `messages` as they are.

        Then nothing was dropped, and `_last_summary_error` says why and what the way out is.
        """
        verdict = compaction.before(self.folders(), getattr(self, "_session_id", "") or "", asked=force)
        if verdict.refusal:
            return self._refuse(messages, verdict.refusal)
        if verdict.text and verdict.text[:200] not in memory_context:
            memory_context = f"{verdict.text}\n\n{memory_context}".rstrip()
        given = {"focus_topic": focus_topic, "force": force, "memory_context": memory_context, **more}
        took = inspect.signature(super().compress).parameters
        kept = {key: value for key, value in given.items() if key in took}
        return list(super().compress(messages, current_tokens, **kept))

    def should_compress(self, prompt_tokens: int | None = None, **more: Any) -> bool:
        """As Hermes decides, but not while a refusal holds."""
        return bool(super().should_compress(prompt_tokens, **more)) and not compaction.held(self.folders())

    def _automatic_compression_blocked(self, *args: Any, **more: Any) -> bool:
        # Hermes asks this of the class before it compacts by itself.
        return bool(compaction.held(self.folders()) or super()._automatic_compression_blocked(*args, **more))

    def _compression_block_reason(self, *args: Any, **more: Any) -> Any:
        # Newer than 0.19: a cooldown is no reason to take a session for one that cannot be made smaller.
        if compaction.held(self.folders()):
            return f"cooldown:{NAME}"
        above = getattr(super(), "_compression_block_reason", None)
        return above(*args, **more) if above else None

    def update_from_response(self, usage: dict[str, Any], *args: Any, **more: Any) -> None:
        """Take what a request used, and keep it for the memory provider: a gateway tells that one nothing of it."""
        super().update_from_response(usage, *args, **more)
        context.tell(getattr(self, "_session_id", "") or "", self.last_prompt_tokens, self.context_length)

    def update_model(self, model: str, context_length: int, *args: Any, **more: Any) -> None:
        """Take another model, with the threshold that Hermes' configuration has for it."""
        provider = more.get("provider", args[2] if len(args) > 2 else "")
        self._configured_threshold_percent = threshold(self._threshold_asked, model, str(provider or ""))
        super().update_model(model, context_length, *args, **more)

    def folders(self) -> list[str]:
        """Where this session works, the likeliest first."""
        found = [_recorded(getattr(self, "_session_db", None), getattr(self, "_session_id", ""))]
        found.append(health.here())
        try:
            found.append(os.getcwd())
        except OSError:
            pass  # the folder is gone
        return [folder for folder in found if folder]

    def _refuse(self, messages: list[dict[str, Any]], why: str) -> list[dict[str, Any]]:
        self._last_compress_aborted = True
        self._last_summary_error = why
        self._last_compression_made_progress = False
        self._last_summary_fallback_used = False
        self._last_summary_dropped_count = 0
        return messages


def engine() -> Gate:
    """A gate as Hermes' configuration has its compressor."""
    given = settings()
    gate = Gate(model="", quiet_mode=True, config_context_length=WINDOW, **given)
    gate._threshold_asked = given["threshold_percent"]
    return gate


def settings() -> dict[str, Any]:
    """What the configuration's `compression` says that the compressor takes; what is of another type is left out."""
    try:
        from hermes_cli.config import load_config

        config = dict(load_config())
    except Exception:
        config = {}
    said, model = config.get("compression"), config.get("model")
    took = inspect.signature(ContextCompressor.__init__).parameters
    found: dict[str, Any] = {}
    for key, value in (said if isinstance(said, dict) else {}).items():
        name = _NAMES.get(str(key), str(key))
        if name not in took or took[name].default is inspect.Parameter.empty:
            continue
        like = took[name].default
        try:
            if isinstance(like, bool):
                found[name] = str(value).lower() in _TRUE
            elif isinstance(like, (int, float)):
                found[name] = max(type(like)(value), 0)
        except (TypeError, ValueError):
            continue  # then it is Hermes' own
    answer = os.environ.get("HERMES_MAX_TOKENS") or (model.get("max_tokens") if isinstance(model, dict) else None)
    if "max_tokens" in took and str(answer).isdecimal():
        found["max_tokens"] = int(str(answer))  # what a model may answer is no room for the talk
    return {"threshold_percent": 0.50, **found}


def threshold(asked: float, model: str, provider: str) -> float:
    """The share of the window at which Hermes compacts with this model: what was asked for, or the model's own."""
    try:
        from agent import agent_init, auxiliary_client

        own = auxiliary_client._compression_threshold_for_model(model, provider)
        raised = auxiliary_client._is_codex_gpt54_or_gpt55(model, provider) or auxiliary_client._is_codex_spark(
            model, provider
        )
        found, _ = agent_init._resolve_compression_threshold(asked, own, model=model, is_codex_autoraise=raised)
        return float(found)
    except Exception:
        return asked  # these names are Hermes' own, and may be others tomorrow


def _recorded(sessions: Any, session: str) -> str:
    """The folder that Hermes has of a session; "" where it has none, or it is gone."""
    try:
        row = sessions.get_session(session) if sessions is not None and session else None
        folder = str((row or {}).get("cwd") or "")
    except Exception:
        return ""
    return folder if os.path.isdir(folder) else ""
