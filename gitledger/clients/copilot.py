"""Copilot CLI. It cannot be kept from compacting, and calls its fields in camel case, or as others do."""

from __future__ import annotations

import re

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload

NAME = "copilot"
CAN_REFUSE = False
SETTLES = True
ANNOUNCES_ALWAYS = False
_CALLED = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "toolResult": "tool_result",
}
_SHELL = re.compile(r"\n?<shellId: \S+ completed with exit code (\d+)>\s*\Z")


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; it holds no answer."""
    value, faults = schema.read_object(payload)
    for theirs, ours in _CALLED.items():
        if theirs in value:
            value[ours] = value[theirs]
    return shape.read(event, value, faults, _result), faults


def _result(value: dict[str, Json]) -> shape.Result:
    given = value.get("tool_result")
    if not isinstance(given, dict):
        return shape.plain(value)
    text = given.get("text_result_for_llm", given.get("textResultForLlm"))
    status, output = shape.found(_SHELL, text if isinstance(text, str) else "")
    kind = given.get("result_type", given.get("resultType"))
    return shape.Result(output, status, status is None and kind in ("failure", "error", "rejected"))


def answer(event: str, text: str) -> Answer:
    """Context at a start, by a key of its own."""
    return answers.document({"additionalContext": text}) if event == "start" and text else answers.NOTHING


refusal = answers.warned
