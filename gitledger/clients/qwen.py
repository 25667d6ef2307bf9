"""Qwen Code. It cannot be kept from compacting; it says at each turn's end how much of its context is used."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, gemini, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload

NAME = "qwen"
CAN_REFUSE = False
SETTLES = True
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; a tool's result is told as Gemini CLI does."""
    value, faults = schema.read_object(payload)
    value["used"], value["limit"] = value.get("input_tokens"), value.get("context_limit")
    return shape.read(event, value, faults, gemini.result), faults


def answer(event: str, text: str) -> Answer:
    """The text as it is at a start; for a prompt and for whoever writes the summary, by the key that adds context."""
    names = {"compact": "PreCompact", "prompt": "UserPromptSubmit"}
    if event in names:
        return answers.context(names[event], text)
    return answers.plain(text) if event == "start" else answers.NOTHING


refusal = answers.warned
