"""Gemini CLI. It cannot be kept from compacting, and announces it before every request to its model."""

from __future__ import annotations

import re

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload

NAME = "gemini"
CAN_REFUSE = False
SETTLES = True
ANNOUNCES_ALWAYS = True
_OURS = re.compile(r"\A\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_LABELLED = re.compile(r"^Exit Code: (\d+)\n?", re.MULTILINE)


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; in a prompt stands what a hook added before it, which is left out."""
    value, faults = schema.read_object(payload)
    if isinstance(prompt := value.get("prompt"), str):
        value["prompt"] = own_words(prompt)
    value["last_assistant_message"] = value.get("prompt_response")
    return shape.read(event, value, faults, result), faults


def own_words(prompt: str) -> str:
    """A prompt without the blocks of context that hooks put before it."""
    while match := _OURS.match(prompt):
        prompt = prompt[match.end() :]
    return prompt


def result(value: dict[str, Json]) -> shape.Result:
    """A tool's result: what a person is shown of it; its status and its error stand in what the model is shown."""
    given = value.get("tool_response")
    if not isinstance(given, dict):
        return shape.plain(value)
    model, shown = given.get("llmContent"), given.get("returnDisplay")
    status = shape.found(_LABELLED, model)[0] if isinstance(model, str) else None
    error = given.get("error") or value.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    if isinstance(error, str) and error:
        return shape.Result(error, status, status is None)
    return shape.Result(shown if isinstance(shown, str) else model if isinstance(model, str) else "", status)


def answer(event: str, text: str) -> Answer:
    """Context at a start and at a prompt; plain output would be shown to the person alone."""
    names = {"start": "SessionStart", "prompt": "BeforeAgent"}
    return answers.context(names[event], text) if event in names else answers.NOTHING


def refusal(text: str, status: int = 0) -> Answer:
    """A message to the person; the compaction goes on."""
    return answers.document({"systemMessage": text})
