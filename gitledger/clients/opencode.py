"""OpenCode, by a plugin of ours (`plugins/opencode.js`), which sends the generic client's payload.

The plugin throws where the compaction is refused, which is the only way that OpenCode leaves.
"""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload
from gitledger.values import replace

NAME = "opencode"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; where its session's id is called as OpenCode does, that is read too."""
    value, faults = schema.read_object(payload)
    inner = value.get("input")
    info = value.get("info")
    places = (value, inner if isinstance(inner, dict) else {}, info if isinstance(info, dict) else {})
    said: dict[str, Json] = {
        "session_id": next((p["sessionID"] for p in places if "sessionID" in p), places[2].get("id")),
        "cwd": value.get("directory") or places[2].get("directory"),
    }
    found = schema.generic({name: given for name, given in said.items() if given is not None} | value, faults)
    return replace(found, files=tuple(shape.placed(path, found.cwd) for path in found.files)), faults


def answer(event: str, text: str) -> Answer:
    """The text as it is: the plugin puts it into the system prompt, or before whoever writes the summary."""
    return answers.plain(text) if event in answers.SPOKEN else answers.NOTHING


refusal = answers.blocked
