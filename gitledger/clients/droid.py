"""Factory Droid. It can be refused a compaction that it announces; one was seen that it did not announce."""

from __future__ import annotations

import re

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload
from gitledger.values import replace

NAME = "droid"
CAN_REFUSE = True
SETTLES = True
ANNOUNCES_ALWAYS = False
_EXITED = re.compile(r"\n*\[Process exited with code (\d+)\]\s*\Z")


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; it holds no answer."""
    value, faults = schema.read_object(payload)
    return shape.read(event, value, faults, _result), faults


def _result(value: dict[str, Json]) -> shape.Result:
    result = shape.plain(value)
    status, output = shape.found(_EXITED, result.output)
    return replace(result, output=output, exit=result.exit if status is None else status)


def answer(event: str, text: str) -> Answer:
    """The text as it is at a start."""
    return answers.plain(text) if event == "start" else answers.NOTHING


refusal = answers.blocked
