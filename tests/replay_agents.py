"""Agents for a replay: processes that run their installed hooks, with payloads as the agents sent them."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from gitledger import wiring
from tests.process.program import STARTING, works
from tests.sealed import Repo

PAYLOADS = Path(__file__).parent / "data" / "payloads"
_FORK = multiprocessing.get_context("fork")
_GOOGLES = {"prompt": "BeforeAgent", "tool": "AfterTool", "turn": "AfterAgent", "compact": "PreCompress/auto"}
_SHARED = {
    "start": "SessionStart/startup",
    "prompt": "UserPromptSubmit",
    "tool": "PostToolUse",
    "turn": "Stop",
    "compact": "PreCompact/manual",
    "end": "SessionEnd/other",
}
SPOKEN: dict[str, dict[str, str]] = {
    "claude-code": {
        **_SHARED,
        "compact": "PreCompact/auto",
        "compacted": "PostCompact/manual",
        "again": "SessionStart/compact",
        "end": "SessionEnd/prompt_input_exit",
    },
    "codex": _SHARED,
    "qwen": {**_SHARED, "compacted": "PostCompact/manual", "again": "SessionStart/compact"},
    "gemini": {**_SHARED, **_GOOGLES, "end": "SessionEnd/exit"},
    "copilot": {
        "start": "sessionStart/new",
        "prompt": "userPromptSubmitted",
        "tool": "postToolUse",
        "turn": "agentStop",
        "compact": "preCompact/auto",
        "end": "sessionEnd/complete",
    },
}
"""Which recorded payload each agent sends at each of our events; `again` is a start after a compaction. Qwen's end was
not recorded, and is Claude Code's, from which it took its hooks over."""
SETTLING = ("copilot", "gemini", "qwen")
"""Agents whose turn's end makes a checkpoint behind the hook's back."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent was told by a hook."""

    status: int
    out: str
    err: str

    @property
    def context(self) -> str:
        """What goes into the session's context, out of whatever form the agent takes it in."""
        if not self.out.startswith("{"):
            return self.out
        value = json.loads(self.out)
        return str(value.get("additionalContext") or value.get("hookSpecificOutput", {}).get("additionalContext", ""))


def recorded(client: str) -> dict[str, Any]:
    """The payloads that an agent sent, by its own event."""
    found: dict[str, Any] = json.loads((PAYLOADS / f"{client}.json").read_text())
    return found


def _live(line: Connection) -> None:
    """The process that stands for an agent: it runs commands below itself until it is told to go, or killed."""
    while (asked := line.recv()) is not None:
        command, payload, folder, env = asked
        ran = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, env=env, input=payload, capture_output=True, check=False
        )
        line.send(Told(ran.returncode, ran.stdout.decode(), ran.stderr.decode()))


@dataclass
class Clone:
    """One machine: a home, a clone with a ledger, and the commands that its agents' settings hold."""

    name: str
    repo: Repo
    env: dict[str, str]
    commands: dict[str, dict[str, str]]

    @property
    def plain(self) -> dict[str, str]:
        """The environment without what Python reads as it starts, which is this process's own anyway."""
        return {name: value for name, value in self.env.items() if not name.startswith(STARTING)}

    def ledger(self, *words: str) -> str:
        """What gitledger prints where a person, or an agent's shell, runs it."""
        return works(self.repo.path, *words, env=self.plain)

    def tip(self) -> str:
        """The commit that the ledger's branch is at."""
        return self.repo.git("rev-parse", "refs/heads/ledger/main", env=self.env)


@dataclass
class Agent:
    """A session of an agent in a clone: a process of its own."""

    client: str
    ident: str
    clone: Clone
    payloads: dict[str, Any]

    def __post_init__(self) -> None:
        self.line, theirs = _FORK.Pipe()
        self.process = _FORK.Process(target=_live, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def payload(self, event: str, **said: str) -> bytes:
        """What this agent sends at an event, in this session, with other words."""
        value = json.loads(
            json.dumps(self.payloads[SPOKEN[self.client][event]]).replace("/lab/repo", str(self.clone.repo.path))
        )
        value["sessionId" if "sessionId" in value else "session_id"] = self.ident
        for name, text in said.items():
            if name in value:
                value[name] = text
        return json.dumps(value).encode()

    def command(self, event: str) -> str:
        """The command that this agent's settings hold for an event."""
        return self.clone.commands[self.client]["start" if event == "again" else event]

    def says(self, event: str, **said: str) -> Told:
        """An event, and what the agent is told; it waits for the checkpoint behind a turn, where one is made."""
        before = self.clone.tip() if event == "turn" and self.client in SETTLING else ""
        self.line.send((self.command(event), self.payload(event, **said), str(self.clone.repo.path), self.clone.env))
        told: Told = self.line.recv()
        until = time.monotonic() + 120
        while before and self.clone.tip() == before:
            assert time.monotonic() < until, f"no checkpoint behind a turn of {self.client}"
            time.sleep(0.02)
        return told

    def goes(self) -> None:
        """The agent is closed."""
        self.line.send(None)
        self.process.join()

    def dies(self) -> None:
        """The agent is killed: no hook says so."""
        self.process.kill()
        self.process.join()


def installed(repo: Repo, client: str) -> dict[str, str]:
    """The commands that an agent's settings in a work tree hold, by our own events."""
    (wired,) = [one for one in wiring.CLIENTS if one.name == client]
    hooks = json.loads((repo.path / wired.project).read_text())["hooks"]
    found: dict[str, str] = {}
    for theirs, ours in wired.events:
        entry = hooks[theirs][0]
        found.setdefault(ours, wiring.command(entry["hooks"][0] if "hooks" in entry else entry))
    return found
