"""What the messages of a nanobot session say, turn by turn, in the generic client's words. Pure.

Messages are the objects of nanobot's own session file, without the context that was added to what the person said.
"""

from __future__ import annotations

import hashlib
import json
import re

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from gitledger.model import Json

    Message: TypeAlias = Mapping[str, Any]

SHELL = "exec"
WRITERS = frozenset(("apply_patch", "edit_file", "write_file"))
OUTPUT = 20_000
"""Characters of a command's output that are kept, from its end: what is journalled is less."""
UNANSWERED = "[Assistant reply unavailable due to model error.]"

_EXIT = re.compile(r"\n*^Exit code: (-?[0-9]{1,9})\s*\Z", re.MULTILINE)
_HINT = "\n\n[Analyze the error above and try a different approach.]"


def digest(message: Message) -> str:
    """What a message is known by: its time, its role and its text, or the calls that it is there for."""
    calls = message.get("tool_call_id"), [call.get("id") for call in _calls(message)]
    told = [message.get("timestamp"), message.get("role"), text(message), *calls]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()[:24]


def text(message: Message) -> str:
    """A message's text; of pictures and the like it has none."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def since(messages: Sequence[Message], last: str, at: str) -> Sequence[Message]:
    """The messages behind the one known by `last`; where it is gone, for the talk began anew, those later than `at`."""
    for n in range(len(messages) - 1, -1, -1):
        if digest(messages[n]) == last:
            return messages[n + 1 :]
    return [message for message in messages if time(message) > at]


def time(message: Message) -> str:
    """When a message was said, by nanobot's own clock; "" where it does not tell."""
    at = message.get("timestamp")
    return at if isinstance(at, str) else ""


def split(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The messages turn by turn. A turn begins where a person speaks and the model has answered before."""
    turn: list[Message] = []
    for message in messages:
        if message.get("role") == "user" and turn and turn[-1].get("role") == "assistant":
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def ended(turn: Sequence[Message]) -> bool:
    """True where the last word of a turn is an answer."""
    return bool(turn) and turn[-1].get("role") == "assistant" and not _calls(turn[-1])


def prompts(turn: Sequence[Message]) -> list[str]:
    """What the person said in a turn, which may be more than once."""
    return [text(one) for one in turn if one.get("role") == "user" and text(one)]


def told(turn: Sequence[Message], known: Container[str] = ()) -> dict[str, Json]:
    """What a turn's messages say but for the prompt; calls whose ids are `known` were told before."""
    answers = [text(one) for one in turn if one.get("role") == "assistant" and text(one) and not _calls(one)]
    results = {one.get("tool_call_id"): text(one) for one in turn if one.get("role") == "tool"}
    tools: list[str] = []
    files: list[Json] = []
    commands: list[Json] = []
    errors: list[Json] = [answer for answer in answers if answer == UNANSWERED]
    for message in turn:
        for call in _calls(message):
            if call.get("id") in known:
                continue
            name, given = _named(call)
            result = results.get(call.get("id"), "").removesuffix(_HINT)
            failed = result.startswith("Error")
            tools.append(name)
            if name == SHELL and (command := given.get("command") or given.get("cmd")):
                commands.append(_ran(str(command), result))
            if failed:
                errors.append(result)
            elif name in WRITERS and call.get("id") in results and not given.get("dry_run"):
                files += _paths(given)
    said: dict[str, Json] = {"tool": ", ".join(dict.fromkeys(tools))} if tools else {}
    if answers and answers[-1] != UNANSWERED:
        said["answer"] = answers[-1]
    lists: dict[str, list[Json]] = {"files": list(dict.fromkeys(files)), "commands": commands, "errors": errors}
    return said | {name: rows for name, rows in lists.items() if rows}


def _calls(message: Message) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _named(call: Message) -> tuple[str, dict[str, Any]]:
    function = call.get("function")
    if not isinstance(function, dict):
        return "", {}
    given = function.get("arguments")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            given = {}
    name = function.get("name")
    return name if isinstance(name, str) else "", given if isinstance(given, dict) else {}


def _ran(command: str, result: str) -> Json:
    found = _EXIT.search(result)
    output = (result[: found.start()] if found else result).strip("\n")
    run: dict[str, Json] = {"command": command, "output": output[-OUTPUT:]}
    return run | {"exit": int(found[1])} if found else run


def _paths(given: Mapping[str, Any]) -> list[Json]:
    edits = given.get("edits")
    rows = [given, *(edits if isinstance(edits, list) else [])]
    return [row["path"] for row in rows if isinstance(row, dict) and isinstance(row.get("path"), str) and row["path"]]
