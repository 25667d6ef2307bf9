"""What acorn logs, in the words of gitledger, whose program loads this; acorn itself never does."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload

NAME = "acorn"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says."""
    value, faults = schema.read_object(payload)
    said = {"session_id": value.get("conversation"), "cwd": value.get("cwd"), "pid": value.get("pid")}
    if event in ("prompt", "turn"):
        said["prompt" if event == "prompt" else "answer"] = value.get("text")
        said |= {"used": value.get("size"), "limit": value.get("limit")}
    elif event == "tool":
        run = {"command": value.get("ran"), "exit": value.get("status"), "output": value.get("printed")}
        said |= {"tool": "shell", "commands": [run]}
    elif event in ("start", "end"):
        said["source" if event == "start" else "reason"] = value.get("why")
    return schema.generic(said, faults), faults


def answer(event: str, text: str) -> Answer:
    """The briefing and the checkpoint's pointer, as they are."""
    return answers.plain(text) if event in answers.SPOKEN else answers.NOTHING


refusal = answers.blocked
