"""Cursor, from its documentation and not run: it announces a compaction and cannot be refused one."""

from __future__ import annotations

from gitledger import schema
from gitledger.clients import answers, shape
from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import GenericPayload

NAME = "cursor"
CAN_REFUSE = False
SETTLES = True
ANNOUNCES_ALWAYS = False
_CALLED = {
    "conversation_id": "session_id",
    "context_tokens": "used",
    "context_window_size": "limit",
    "text": "last_assistant_message",
    "tool_output": "tool_response",
    "error_message": "error",
}


def translate(event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
    """What a payload says; a conversation is a session, and the first folder of a workspace is where it works."""
    value, faults = schema.read_object(payload)
    for theirs, ours in _CALLED.items():
        if theirs in value:
            value[ours] = value[theirs]
    roots = value.get("workspace_roots")
    if not value.get("cwd") and isinstance(roots, list) and roots:
        value["cwd"] = roots[0]
    if value.get("hook_event_name") == "afterShellExecution":
        value |= {"tool_name": "Shell", "tool_input": {"command": value.get("command")}}
        value["tool_response"] = value.get("output")
    elif value.get("hook_event_name") == "afterFileEdit":
        value |= {"tool_name": "Edit", "tool_input": {"file_path": value.get("file_path")}}
    return shape.read(event, value, faults), faults


def answer(event: str, text: str) -> Answer:
    """Context at a start, by a key of its own."""
    return answers.document({"additional_context": text}) if event == "start" and text else answers.NOTHING


def refusal(text: str, status: int = 0) -> Answer:
    """A message to the person; the compaction goes on."""
    return answers.document({"user_message": text})
