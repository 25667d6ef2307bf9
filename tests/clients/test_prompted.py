"""What has changed reaches the model with the prompt, in the request that it was sent."""

from __future__ import annotations

import html

import pytest

from tests.clients.agents import Agent
from tests.clients.lab import Lab

HEAR = ("claude-code",)
"""Clients that were seen to add what their prompt's hook prints; of the others their documentation says so."""


def test_a_prompt_brings_its_model_what_has_changed(agent: Agent, started: Lab) -> None:
    if agent.name not in HEAR:
        pytest.skip("what this client does with a prompt's hook was not looked at")
    path = started.repo.path / ".git" / "gitledger" / "config.yaml"
    path.write_text("capsule:\n  on_prompt: true\n")
    started.ledger("decide", "Codes have DECIDED-MARK digits", "--why", "WHY-MARK")
    agent.turn(started, "hello first")
    first = html.unescape(started.asked("turn")[0].text)
    assert first.count("[PROJECT LEDGER CAPSULE]") == 1
    assert "Codes have DECIDED-MARK digits" in first
    started.ledger("blocker", "open", "Waits for BLOCKED-MARK")
    before = len(started.server.requests)
    agent.turn(started, "hello second", resume=True)
    last = html.unescape(started.asked("turn", before)[-1].text)
    assert "Waits for BLOCKED-MARK" in last.rpartition("[PROJECT LEDGER CAPSULE]")[2]
