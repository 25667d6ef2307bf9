"""nanobot, by code of ours in its process, which sends the generic client's payload and heeds a refusal."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload
from gitledger.values import replace

NAME = "nanobot"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says: it is the generic client's, its files as nanobot's model named them."""
    found, faults = schema.read_generic(payload)
    return replace(found, files=tuple(shape.placed(path, found.cwd) for path in found.files)), faults


def answer(event: str, text: str) -> Answer:
    """The text as it is: our own code reads it."""
    return answers.plain(text) if event in answers.ASKED else answers.NOTHING


refusal = answers.blocked
