"""Hooks tried as a client runs them: a made-up payload through the installed command, with nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gitledger import install
from gitledger.install import Place, Wired
from gitledger.values import dataclass

VARIABLE = "GITLEDGER_PROBE"
HEARD = "gitledger heard"
"""What the program says first where VARIABLE is set: see probe.py."""
DEADLINE = 20.0
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL")


@dataclass(frozen=True, slots=True)
class Tried:
    """How one event's command did: `said` is what came of it, for a person."""

    row: Wired
    ok: bool
    said: str


def attempts(
    at: Place, rows: Sequence[Wired], folder: str, environ: Mapping[str, str]
) -> Iterator[tuple[str, bool, str]]:
    """Try each command at a place, and what else its client's own set-up can try: what, whether it went well, why."""
    for row in rows:
        if row.command:
            tried = attempt(row, folder, environ)
            yield row.theirs, tried.ok, tried.said
    its = install.setup(at.client)
    if its and any(row.state != "absent" for row in rows):
        yield from its.attempts(at, folder, environ)


def attempt(row: Wired, folder: str, environ: Mapping[str, str]) -> Tried:
    """Run one event's command in `folder`, by /bin/sh as clients do, and see whether the program heard it."""
    payload = {"session_id": "gitledger-test", "cwd": folder, "hook_event_name": row.theirs}
    with tempfile.TemporaryDirectory(prefix="gitledger-test-") as scratch:
        kept = {name: environ[name] for name in _KEPT if name in environ}
        try:
            ran = subprocess.run(
                ["/bin/sh", "-c", row.command],
                cwd=folder,
                input=json.dumps(payload).encode(),
                capture_output=True,
                env={**kept, "TMPDIR": scratch, VARIABLE: "1"},
                timeout=DEADLINE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as e:
            return Tried(row, False, f"its command did not run: {type(e).__name__}")
    said = ran.stdout.decode("utf-8", "replace").strip()
    if said.startswith(f"{HEARD} {row.place.client.name} {row.ours} "):
        return Tried(row, ran.returncode == 0, said.partition(f"{row.ours} ")[2])
    problem = (said or ran.stderr.decode("utf-8", "replace").strip() or "nothing").splitlines()[0]
    return Tried(row, False, f"the program did not hear it: exit {ran.returncode}, it said: {problem}")


def trust(folder: str, environ: Mapping[str, str] = os.environ) -> dict[tuple[str, str], str] | None:
    """What Codex says of the hooks that it loads, by file and command: trusted, untrusted, modified, disabled.

    None where it cannot be asked. A file of a project that is not trusted is not loaded.
    """
    ask: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "gitledger", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [folder]}},
    ]
    words = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in ask)
    try:
        child = subprocess.Popen(
            ["codex", "app-server"],
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        if child.stdin is None or child.stdout is None:
            return None
        child.stdin.write(words.encode())
        child.stdin.flush()
        return _listed(child.stdout.fileno())
    except OSError:
        return None
    finally:
        _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    import signal

    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended
    child.communicate()


def _listed(fd: int) -> dict[tuple[str, str], str] | None:
    """The trust of each command in the answer to request 2, read with a deadline."""
    import select
    import time

    until = time.monotonic() + DEADLINE
    data = b""
    while (left := until - time.monotonic()) > 0 and select.select([fd], [], [], left)[0]:
        piece = os.read(fd, 1 << 16)
        if not piece:
            break
        data += piece
        for row in data.split(b"\n")[:-1]:
            try:
                value = json.loads(row)
            except ValueError:
                continue
            if isinstance(value, dict) and value.get("id") == 2:
                return dict(_pairs(value.get("result")))
    return None


def trusted(row: Wired, said: dict[tuple[str, str], str] | None) -> str:
    """The state of one of Codex' hooks, with what Codex said of it; a hook that it does not load is untrusted."""
    if said is None or row.state == "absent":
        return row.state
    word = said.get((os.path.realpath(row.place.path), row.command), "untrusted")
    return row.state if word == "trusted" else word


def _pairs(value: object) -> list[tuple[tuple[str, str], str]]:
    """((file, command), trust) of every hook in an answer, wherever it stands in it."""
    if isinstance(value, dict):
        command, status, path = value.get("command"), value.get("trustStatus"), value.get("sourcePath")
        if isinstance(command, str) and isinstance(status, str) and isinstance(path, str):
            return [((os.path.realpath(path), command), status if value.get("enabled", True) else "disabled")]
        value = list(value.values())
    return [pair for one in value for pair in _pairs(one)] if isinstance(value, list) else []
