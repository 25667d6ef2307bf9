"""A real client's start, turn, compaction and end, proved in what its model was asked and what the ledger holds."""

from __future__ import annotations

import html

import pytest

from tests.clients.agents import Agent
from tests.clients.lab import NEXT, RESUMED
from tests.clients.models.server import REPLY
from tests.clients.story import Story, went_on

HEAD = "# gitledger briefing"


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
def test_the_briefing_reaches_the_model_whole_and_once(agent: Agent, told: Story) -> None:
    assert sum(map(len, told.briefing)) > 6_000, "the briefing is too short to prove anything"
    assert told.first.status == 0, told.first
    text = next(request.text for request in told.requests if request.kind == "turn")
    if agent.escapes:
        text = html.unescape(text)
    assert in_order(told.briefing, text) == []
    assert text.count(told.briefing[0]) == text.count(HEAD) == 1
    if agent.resumes:
        again = next(request.text for request in told.resumed if request.kind == "turn")
        wanted = "\n".join(told.renewed).count(RESUMED)
        assert again.count(RESUMED) == wanted > 0, "a session that goes on is not briefed, or is twice"


@pytest.mark.column("turn")
def test_a_turn_is_journalled_with_what_was_said_and_what_ran(agent: Agent, told: Story) -> None:
    assert sum(request.kind == "turn" for request in told.requests) > 1, "the tool did not run"
    events = told.events_of("prompt", "tool", "turn")
    if "prompt" not in agent.untold:
        assert any("PROMPT-MARK" in event["data"].get("prompt", "") for event in events)
    if "answer" not in agent.untold:
        assert any(REPLY in event["data"].get("answer", "") for event in events)
    commands = [command for event in events for command in event["data"].get("commands", [])]
    assert any("echo tool-ran" in command["command"] for command in commands)
    assert not any(NEXT in event["data"].get("prompt", "") for event in events), "our own words were journalled"


@pytest.mark.column("end")
def test_an_end_leaves_a_handover(agent: Agent, told: Story) -> None:
    if not agent.ends:
        pytest.skip("a headless run of this client tells no end")
    (written,) = told.events_of("handover.written")
    (closed,) = told.events_of("session.closed")
    assert closed["session"] == written["session"]
    assert told.sessions.strip() == "[]", "a session is still open"
    assert NEXT in told.handover


@pytest.mark.column("compaction")
def test_a_compaction_has_its_checkpoint_before_it_and_the_next_action_behind_it(agent: Agent, told: Story) -> None:
    if not agent.compacts:
        pytest.skip("this client is not brought to compaction headless")
    summaries = [request for request in told.resumed if request.kind == "summary"]
    assert summaries, "the client never compacted"
    body = told.lab.repo.git("log", "-1", "--format=%B", summaries[0].seen)
    assert "Ledger-Kind: checkpoint" in body
    assert RESUMED in body
    if agent.hears:
        assert "Checkpoint: C-" in summaries[0].text, "whoever writes the summary was not told of the checkpoint"
    after = went_on(told.resumed)
    assert after, "the client did not go on from its summary"
    assert after[-1].text.count(HEAD) == 1, "the model has no briefing after a compaction, or more than one"
    assert RESUMED in after[-1].text, "what the model is to do next is gone"
