"""Claude Code. Plain output is context at a start, and at a compaction instructions to whoever writes the summary."""

from __future__ import annotations

import re

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload

NAME = "claude-code"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False
CONTEXT = 200_000
"""Tokens of a context where nobody says; one that holds more is of a size that is not known."""
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_FAILED = re.compile(r"\A(?:Error: )?Exit code (\d+)\n?")


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; a subagent's last words are not this session's answer."""
    value, faults = schema.read_object(payload)
    if value.get("hook_event_name") == "SubagentStop":
        value.pop("last_assistant_message", None)
    value["used"] = value.get("context_tokens")
    window = value.get("context_window")  # of its status line
    if isinstance(window, dict):
        value["limit"] = window.get("context_window_size")
        value["used"] = shape.total(window.get("current_usage"), _COUNTED)
    return shape.read(event, value, faults, _result), faults


def figures(line: dict[str, Json]) -> dict[str, int] | None:
    """What a line of a transcript says of the context; how large that is does not stand there."""
    message = line.get("message")
    if line.get("type") != "assistant" or line.get("isSidechain") or not isinstance(message, dict):
        return None
    used = shape.total(message.get("usage"), _COUNTED)
    return {"used": used, "limit": CONTEXT} if used and used <= CONTEXT else None


def _result(value: dict[str, Json]) -> shape.Result:
    result = shape.plain(value)
    if not result.failed:
        return result
    status, output = shape.found(_FAILED, result.output)
    # A command that failed is told as an error of its tool; its status says the same, shorter.
    return shape.Result(output, status, status is None)


def answer(event: str, text: str) -> Answer:
    """The text as it is."""
    return answers.plain(text) if event in answers.ASKED else answers.NOTHING


refusal = answers.blocked
