"""What a client is told: its standard output, its standard error and the exit status."""

from __future__ import annotations

import json

from gitledger.values import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a hook leaves. `stderr` is for a person; a text is one line of it."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


NOTHING = Answer()
SPOKEN = ("start", "compact")
"""The events that have a text at all."""
ASKED = (*SPOKEN, "prompt")
"""The same for a client that adds plain output to a prompt as well."""


def plain(text: str) -> Answer:
    """The text as it is."""
    return Answer(text)


def context(event: str, text: str) -> Answer:
    """The text as what one of the client's events adds to the context, by the key that most clients know."""
    return document({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}) if text else NOTHING


def document(value: dict[str, object]) -> Answer:
    """One JSON object, in ASCII."""
    return Answer(json.dumps(value))


def blocked(text: str, status: int = 0) -> Answer:
    """The refusal that most clients know: exit 2, its reason on stderr."""
    return Answer(stderr=text, code=2)


def warned(text: str, status: int = 0) -> Answer:
    """A failure that blocks nothing: exit 1, its reason on stderr."""
    return Answer(stderr=text, code=1)
