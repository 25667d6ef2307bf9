"""pi, by an extension of ours (`plugins/pi.ts`), which sends the generic client's payload and cancels a compaction."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload
from gitledger.values import replace

NAME = "pi"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; pi calls a session by its file, and why it starts or compacts `reason`."""
    value, faults = schema.read_object(payload)
    if "session_id" not in value and "file" in value:
        value["session_id"] = value["file"]
    if "toolName" in value and "tool" not in value:
        value["tool"] = value["toolName"]
    if isinstance(reason := value.get("reason"), str) and event != "end":
        value.pop("reason")
        value.setdefault("source" if event == "start" else "trigger", reason)
    found = schema.generic(value, faults)
    return replace(found, files=tuple(shape.placed(path, found.cwd) for path in found.files)), faults


def answer(event: str, text: str) -> Answer:
    """The text as it is: the extension puts it into the system prompt."""
    return answers.plain(text) if event in answers.SPOKEN else answers.NOTHING


refusal = answers.blocked
