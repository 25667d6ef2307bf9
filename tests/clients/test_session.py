"""Start, turn and end of a real client, proved in what its model was asked and what the ledger holds."""

from __future__ import annotations

import html

import pytest

from tests.clients.agents import Agent
from tests.clients.lab import NEXT, Lab, briefing
from tests.clients.models.server import REPLY


def in_order(lines: list[str], text: str) -> list[str]:
    """The lines that are not in the text after the one before; none where all of them are."""
    at, lost = 0, []
    for line in lines:
        found = text.find(line, at)
        if found < 0:
            lost.append(line)
        else:
            at = found + len(line)
    return lost


@pytest.mark.column("start")
def test_the_briefing_reaches_the_model_whole_and_once(agent: Agent, started: Lab) -> None:
    for n in range(5):
        started.ledger("question", "ask", f"Question {n}: " + "is it written so, " * 15)
    lines = briefing(started)
    assert sum(map(len, lines)) > 6_000, "the briefing is too short to prove anything"
    ran = agent.turn(started, "hello")
    assert ran.status == 0, ran
    first = started.asked("turn")[0].text
    if agent.escapes:
        first = html.unescape(first)
    assert in_order(lines, first) == []
    assert first.count(lines[0]) == 1
    if agent.resumes:
        started.ledger("task", "next", "T-0001", "Write RESUMED-MARK")
        before = len(started.server.requests)
        agent.turn(started, "again", resume=True)
        assert "Write RESUMED-MARK" in started.asked("turn", before)[0].text, "a session that goes on is not briefed"


@pytest.mark.column("turn")
def test_a_turn_is_journalled_with_what_was_said_and_what_ran(agent: Agent, started: Lab) -> None:
    agent.turn(started, "please do PROMPT-MARK TOOLCALL")
    assert len(started.asked("turn")) > 1, "the tool did not run"
    events = started.journal("prompt", "tool", "turn")
    if "prompt" not in agent.untold:
        assert any("PROMPT-MARK" in event["data"].get("prompt", "") for event in events)
    if "answer" not in agent.untold:
        assert any(REPLY in event["data"].get("answer", "") for event in events)
    commands = [command for event in events for command in event["data"].get("commands", [])]
    assert any("echo tool-ran" in command["command"] for command in commands)
    assert not any(NEXT in event["data"].get("prompt", "") for event in events), "our own words were journalled"


@pytest.mark.column("end")
def test_an_end_leaves_a_handover(agent: Agent, started: Lab) -> None:
    if not agent.ends:
        pytest.skip("a headless run of this client tells no end")
    agent.turn(started, "hello PROMPT-MARK")
    (written,) = started.journal("handover.written")
    (closed,) = started.journal("session.closed")
    assert closed["session"] == written["session"]
    assert started.ledger("session", "list", "--json").strip() == "[]", "a session is still open"
    assert NEXT in started.ledger("handover", "show")
