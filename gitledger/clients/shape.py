"""The payload that most clients send, as they took it over from one another: one object in the generic client's words.

`session_id`, `cwd`, `transcript_path` on every event; `prompt`; `tool_name`, `tool_input`, `tool_response`;
`last_assistant_message`; `source`, `reason`, `trigger`. What a client calls otherwise, its adapter renames first.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from functools import lru_cache

from gitledger import gitdir, schema
from gitledger.model import Finding, Json
from gitledger.schema import GenericPayload
from gitledger.values import dataclass

SHELLS = frozenset(("bash", "exec_command", "execute", "execute_bash", "powershell", "run_shell_command", "shell"))
"""Tools that run a command, in lower case."""
WRITERS = frozenset(
    (
        "apply_patch", "applypatch", "create", "edit", "edit_file", "fs_write", "multiedit", "notebookedit", "patch",
        "replace", "str_replace", "str_replace_editor", "write", "write_file",
    )
)  # fmt: skip
"""Tools that change a file, in lower case."""
PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_STATUS = ("exit_code", "exitCode", "exit")


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gave: its output, the exit status where it is told, and whether it failed."""

    output: str = ""
    exit: int | None = None
    failed: bool = False


def read(
    event: str, value: dict[str, Json], faults: list[Finding], told: Callable[[dict[str, Json]], Result] | None = None
) -> GenericPayload:
    """What an object of this shape says at `event`; `told` reads a tool's result from it where that is not plain."""
    said: dict[str, Json] = {
        "session_id": value.get("session_id"),
        "cwd": value.get("cwd"),
        "transcript": value.get("transcript_path"),
        "pid": value.get("pid"),
    }
    if event == "start":
        said["source"] = value.get("source")
    elif event == "end":
        said["reason"] = value.get("reason")
    elif event in ("compact", "compacted"):
        said["trigger"] = value.get("trigger")
    elif event == "prompt":
        said["prompt"] = value.get("prompt")
    elif event == "turn":
        said["answer"] = value.get("last_assistant_message")
    elif event == "tool":
        said |= _tool(value, (told or plain)(value))
    said["used"], said["limit"] = value.get("used"), value.get("limit")
    return schema.generic(said, faults)


def plain(value: dict[str, Json]) -> Result:
    """A tool's result as clients give it: a text, or an object with its streams and its status."""
    given = value.get("tool_response")
    error = value.get("error")
    failed = isinstance(error, str) and bool(error)
    if isinstance(given, dict):
        streams = [given.get(name) for name in ("stdout", "stderr", "output")]
        output = "\n".join(text.rstrip("\n") for text in streams if isinstance(text, str) and text)
        status = next((given[name] for name in _STATUS if _status(given.get(name))), None)
        return Result(output or (str(error) if failed else ""), status, failed or given.get("success") is False)
    text = given if isinstance(given, str) else str(error) if failed else ""
    return Result(text.rstrip("\n"), None, failed)


def found(pattern: re.Pattern[str], text: str) -> tuple[int | None, str]:
    """The status that `pattern` finds in a tool's text, and the text without what it matched."""
    match = pattern.search(text)
    if match is None or len(match[1]) > 9:
        return None, text
    return int(match[1]), (text[: match.start()] + text[match.end() :]).strip("\n")


def words(value: Json) -> dict[str, Json]:
    """A tool's input as an object; some clients send it as JSON in a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def total(counts: Json, names: tuple[str, ...]) -> int | None:
    """The sum of an object's numbers of these names; None where it has none of them."""
    numbers = [counts.get(name) for name in names] if isinstance(counts, dict) else []
    told = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool)]
    return sum(told) if told else None


def _status(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tool(value: dict[str, Json], result: Result) -> dict[str, Json]:
    name = value.get("tool_name")
    given = words(value.get("tool_input"))
    said: dict[str, Json] = {"tool": name}
    kind = name.lower() if isinstance(name, str) else ""
    failed = result.failed or bool(result.exit)
    if kind in SHELLS and (command := _command(given.get("command", given.get("cmd")))):
        said["commands"] = [{"command": command, "exit": result.exit, "output": result.output}]
    elif kind in WRITERS and not failed and given.get("command") != "view":
        said["files"] = [placed(path, value.get("cwd")) for path in _paths(given, value.get("tool_input"))]
    lines = result.output.strip().splitlines()
    if failed and lines:
        # The error as the tool gave it where it says that it is one; of a command that failed the last line says most.
        said["errors"] = [result.output.strip() if result.failed else lines[-1].strip()]
    return said


def _command(value: Json) -> str:
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return value if isinstance(value, str) else ""


def _paths(given: dict[str, Json], raw: Json) -> list[str]:
    paths = [given[name] for name in PATHS if isinstance(given.get(name), str) and given[name]][:1]
    if not paths:
        texts = [raw, *(given.get(name) for name in ("command", "input", "patch", "patchText"))]
        for text in texts:
            if isinstance(text, str):
                paths += [path.strip() for path in _PATCHED.findall(text)]
    return list(dict.fromkeys(paths))


def placed(path: str, cwd: Json) -> str:
    """The path from its work tree's root, which the record's reader has too; as it is where that cannot be told."""
    if not isinstance(cwd, str) or "\0" in path + cwd:
        return path
    whole = os.path.normpath(os.path.join(cwd, path))
    top = _top(cwd)
    return os.path.relpath(whole, top) if top and whole.startswith(top + os.sep) else path


@lru_cache(maxsize=64)  # a session's events all name the same folder
def _top(folder: str) -> str:
    place = gitdir.find(folder)
    return place.top if place else ""
