"""Real clients as proposers: asked in print mode, in a session of their own that leaves no trace in the ledger."""

from __future__ import annotations

import json
import re

import pytest

from tests.clients import install
from tests.clients.agents import Agent
from tests.clients.lab import Lab

COMMANDS = {
    "claude-code": ("-p", "--output-format", "json"),
    "codex": ("exec", "--sandbox", "read-only", "--dangerously-bypass-hook-trust", "-"),
}
"""Each one's words. That its hooks would run, were they not silent, is the test's: nobody has looked at them."""
OUTER = {
    "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "1", "CODEX_SANDBOX": "seatbelt",
    "CODEX_THREAD_ID": "x", "GIT_DIR": "/nowhere",
}  # fmt: skip
"""What a session around it would have left in the environment."""


def proposal(text: str) -> str:
    """What the model answers: first without a digest, then, told of it, a whole one; and prose around each."""
    digest = re.search(r"exactly (sha1:[0-9a-f]{40})", text)
    value = {"source_digest": digest[1] if digest else "", "next_action": "Do what the model proposed"}
    if "source_digest: is missing" not in text:
        del value["source_digest"]
    return f"Of course. {{This}} is what I propose:\n\n```json\n{json.dumps(value, indent=1)}\n```\n\nShall I go on?"


def test_it_proposes_and_its_session_is_in_no_ledger(agent: Agent, started: Lab) -> None:
    if agent.name not in COMMANDS:
        pytest.skip(f"no proposer is made of {agent.name} here")
    lab = started
    agent.turn(lab, "hello")
    sessions = {event["session"] for event in lab.journal("session.started")}
    before = len(lab.journal())
    words = json.dumps([str(install.PACKAGES[agent.name].path), *COMMANDS[agent.name]])
    lab.ledger("config", "set", "proposer.command", words)
    lab.server.script.reply = proposal
    first = len(lab.server.requests)
    ran = lab.run([lab.bin / "gitledger", "-C", lab.repo.path, "checkpoint", "--propose", "--json"], env=OUTER)
    assert (ran.status, ran.err) == (0, "")
    told = ran.json()
    assert told["proposal"] == {"accepted": True, "attempts": 2, "why": ""}
    assert told["next"] == "Do what the model proposed"
    asked = [one for one in lab.asked("turn", first) if "You write down where a piece of work stands" in one.text]
    assert len(asked) == 2
    assert "gitledger briefing: Shop" in asked[0].text
    events = lab.journal()
    new = [event["type"] for event in events[before:]]
    assert sorted(new) == ["checkpoint.made", "task.next"]
    assert {event["session"] for event in events if event["type"] == "session.started"} == sessions
