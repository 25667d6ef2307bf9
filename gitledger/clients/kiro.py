"""Kiro, from its documentation and not run: the shape that most clients share, and a refusal by exit 2."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload
from gitledger.values import replace

NAME = "kiro"
CAN_REFUSE = True
SETTLES = True
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says."""
    value, faults = schema.read_object(payload)
    value.setdefault("last_assistant_message", value.get("assistant_response"))
    return shape.read(event, value, faults, _result), faults


def _result(value: dict[str, Json]) -> shape.Result:
    result = shape.plain(value)
    given = value.get("tool_response")
    listed = given.get("result") if isinstance(given, dict) else None
    if isinstance(listed, list):
        texts = [one for one in listed if isinstance(one, str)]
        return replace(result, output="\n".join(texts) or result.output)
    return result


def answer(event: str, text: str) -> Answer:
    """The text as it is at a start."""
    return answers.plain(text) if event == "start" else answers.NOTHING


refusal = answers.blocked
