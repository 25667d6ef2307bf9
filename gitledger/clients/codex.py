"""Codex. It takes no other refusal than one JSON object on exit 0; exit 2 and a hook that fails let it compact."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload

NAME = "codex"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says."""
    value, faults = schema.read_object(payload)
    return shape.read(event, value, faults), faults


def figures(line: dict[str, Json]) -> dict[str, int] | None:
    """What a line of a session's file says of the context."""
    payload = line.get("payload")
    info = payload.get("info") if isinstance(payload, dict) and payload.get("type") == "token_count" else None
    if not isinstance(info, dict):
        return None
    used = shape.total(info.get("last_token_usage"), ("total_tokens",))
    limit = shape.total(info, ("model_context_window",))
    return {"used": used, "limit": limit} if used and limit else None


def answer(event: str, text: str) -> Answer:
    """The text as it is at a start and at a prompt; nothing reaches whoever writes the summary."""
    return answers.plain(text) if event in ("start", "prompt") else answers.NOTHING


def refusal(text: str, status: int = 0) -> Answer:
    """One JSON object and nothing else."""
    return answers.document({"continue": False, "stopReason": text})
