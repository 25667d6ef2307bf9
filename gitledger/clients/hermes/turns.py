"""A turn of Hermes in the generic client's words: what was asked, answered, run and changed, and what failed. Pure.

Hermes has turns as messages in OpenAI's form. A turn has no id there that stays: a compaction writes its messages anew,
and what the person typed may stand in other words in its database. So it is known by what it says, and a tool's call by
its own id; never by its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COMMANDS = frozenset(("terminal",))
"""Tools whose result has a command's status."""
CODE = frozenset(("execute_code",))
WRITERS = frozenset(("write_file", "patch"))
NOT_ASKED = (
    "[CONTEXT COMPACTION",
    "[CONTEXT SUMMARY]",
    "[Your active task list was preserved",
    "[System: ",
)
"""How messages begin that have a person's role and that no person wrote."""
_OURS = re.compile(
    r"<\s*memory-context\s*>.*?</\s*memory-context\s*>"
    r"|\[PROJECT LEDGER CAPSULE\].*?\[/PROJECT LEDGER CAPSULE\]",
    re.DOTALL | re.IGNORECASE,
)
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, and what it gave; None where that is not known."""

    id: str
    tool: str
    given: Mapping[str, Any] = field(default_factory=dict)
    result: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one request of a person; `answer` is "" where it was cut off, `at` its time in seconds, or 0."""

    prompt: str
    answer: str = ""
    calls: tuple[Call, ...] = ()
    at: float = 0.0


def text(content: Any) -> str:
    """What a message says, without what we put there."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "\n".join(part for part in parts if isinstance(part, str))
    return _OURS.sub("", content).strip() if isinstance(content, str) else ""


def split(messages: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a conversation, oldest first; what stands before the first request is of none."""
    found: list[Turn] = []
    current: list[Mapping[str, Any]] = []
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if _asks(message):
            if current:
                found.append(_turn(current))
            current = [message]
        elif current:
            current.append(message)
    return [*found, _turn(current)] if current else found


def newest(messages: Sequence[Mapping[str, Any]] | None, prompt: str) -> Turn:
    """The turn that `prompt` began, the last one of it; the last one of all where its words stand nowhere."""
    found = split(messages or ())
    asked = text(prompt)
    same = [turn for turn in found if turn.prompt == asked]
    holding = [turn for turn in found if asked and asked in turn.prompt]
    return next((group[-1] for group in (same, holding, found) if group), Turn(asked))


def payload(turn: Turn, without: Iterable[str] = (), cwd: str = "") -> dict[str, Any]:
    """What a turn's calls came to, but those whose ids are in `without`: tools, files, commands, exact errors."""
    known = set(without)
    calls = [call for call in turn.calls if call_id(call) not in known]
    said: dict[str, Any] = {}
    counts: dict[str, int] = {}
    files: dict[str, None] = {}
    commands: list[dict[str, Any]] = []
    errors: dict[str, None] = {}
    for call in calls:
        counts[call.tool] = counts.get(call.tool, 0) + 1
        result = _object(call.result)
        error = _error(call, result)
        if call.tool in COMMANDS | CODE and (run := _command(call, result)):
            commands.append(run)
        if call.tool in WRITERS and not error:
            files.update((_placed(path, cwd), None) for path in _paths(call, result))
        if error:
            errors[error] = None
    if counts:
        said["tool"] = ", ".join(f"{tool} ×{n}" if n > 1 else tool for tool, n in counts.items())
    said |= {name: value for name, value in (("files", list(files)), ("commands", commands)) if value}
    if errors:
        said["errors"] = list(errors)
    return said


# ── by what it is known ──────────────────────────────────────────────────────────────────────
def prompt_id(prompt: str) -> str:
    """The id of a request, by its words."""
    return "p" + _digest(text(prompt))


def call_id(call: Call) -> str:
    """The id of a tool's call, by Hermes' own."""
    return "c" + _digest(call.id or json.dumps([call.tool, dict(call.given)], sort_keys=True, default=str))


def turn_id(turn: Turn) -> str:
    """The id of a turn: by request, answer and calls together."""
    return "t" + _digest("\0".join((turn.prompt, turn.answer, *(call_id(call) for call in turn.calls))))


def ids(turn: Turn, *prompts: str) -> list[str]:
    """All ids of a turn, the turn's own first; also as it is known by `prompts`, other words for the same request."""
    others = (Turn(text(prompt), turn.answer, turn.calls) for prompt in prompts)
    own = dict.fromkeys(turn_id(one) for one in (turn, *others))
    return [*own, *(call_id(call) for call in turn.calls)]


def _digest(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:16]


# ── reading messages ─────────────────────────────────────────────────────────────────────────
def _asks(message: Mapping[str, Any]) -> bool:
    if message.get("role") != "user" or any(str(key).endswith("_synthetic") for key in message):
        return False
    said = text(message.get("content"))
    return bool(said) and not message.get("_compressed_summary") and not said.startswith(NOT_ASKED)


def _turn(messages: Sequence[Mapping[str, Any]]) -> Turn:
    results = {
        str(message.get("tool_call_id") or ""): _raw(message.get("content"))
        for message in messages
        if message.get("role") == "tool"
    }
    calls = []
    answer = ""
    for message in messages:
        if message.get("role") != "assistant":
            continue
        made = [call for raw in _listed(message.get("tool_calls")) if (call := _call(raw, results))]
        calls += made
        # What is said beside a call is on the way to the answer.
        answer = "" if made else text(message.get("content")) or answer
    at = messages[0].get("timestamp")
    return Turn(
        text(messages[0].get("content")), answer, tuple(calls), float(at) if isinstance(at, int | float) else 0.0
    )


def _call(raw: Any, results: Mapping[str, str]) -> Call | None:
    if not isinstance(raw, Mapping):
        return None
    function = raw.get("function")
    made = function if isinstance(function, Mapping) else raw
    name, ident = made.get("name"), str(raw.get("id") or raw.get("call_id") or "")
    if not isinstance(name, str) or not name:
        return None
    given = made.get("arguments")
    return Call(ident, name, given if isinstance(given, Mapping) else _object(given), results.get(ident))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    return value if isinstance(value, list) else []


def _raw(content: Any) -> str:
    return content if isinstance(content, str) else text(content)


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


# ── what a call came to ──────────────────────────────────────────────────────────────────────
def _command(call: Call, result: Mapping[str, Any]) -> dict[str, Any] | None:
    command = call.given.get("command") if call.tool in COMMANDS else call.given.get("code")
    if not isinstance(command, str) or not command.strip():
        return None
    if call.tool in CODE:
        command = f"{call.tool}: {command}"
    output = result.get("output") if result else call.result
    status = result.get("exit_code")
    run: dict[str, Any] = {"command": command}
    if isinstance(status, int) and not isinstance(status, bool):
        run["exit"] = status
    if isinstance(output, str) and output:
        run["output"] = output
    return run


def _error(call: Call, result: Mapping[str, Any]) -> str:
    """The error as the tool gave it; of a command that failed, its last line."""
    error = result.get("error")
    if isinstance(error, str) and error.strip():
        return error.strip()
    status = result.get("exit_code")
    output = result.get("output")
    if call.tool in COMMANDS and isinstance(status, int) and status and isinstance(output, str):
        rows = output.strip().splitlines()
        return rows[-1].strip() if rows else ""
    if result.get("success") is False:
        said = result.get("message")
        return said.strip() if isinstance(said, str) else f"{call.tool} failed"
    return ""


def _paths(call: Call, result: Mapping[str, Any]) -> list[str]:
    told = [path for key in ("files_modified", "files_created", "files_deleted") for path in _listed(result.get(key))]
    given = call.given.get("path")
    patch = call.given.get("patch")
    found = [path for path in told if isinstance(path, str)]
    if not found and isinstance(given, str) and given:
        found = [given]
    if not found and isinstance(patch, str):
        found = [path.strip() for path in _PATCHED.findall(patch)]
    return list(dict.fromkeys(found))


def _placed(path: str, cwd: str) -> str:
    """The path from the work tree's root where it lies below that."""
    if not cwd or "\0" in path:
        return path
    whole = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
    return os.path.relpath(whole, cwd) if whole.startswith(cwd + os.sep) else path
