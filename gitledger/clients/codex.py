"""Codex. It takes no other refusal than one JSON object on exit 0; exit 2 and a hook that fails let it compact."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload

NAME = "codex"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says."""
    value, faults = schema.read_object(payload)
    return shape.read(event, value, faults), faults


def answer(event: str, text: str) -> Answer:
    """The text as it is at a start; nothing reaches whoever writes the summary."""
    return answers.plain(text) if event == "start" else answers.NOTHING


def refusal(text: str, status: int = 0) -> Answer:
    """One JSON object and nothing else."""
    return answers.document({"continue": False, "stopReason": text})
