"""Claude Code's own ways: every source of a start, every signal, two windows, and where its settings may lie."""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.clients.agents import Agent, claude_code
from tests.clients.hooks import install_hooks
from tests.clients.lab import NEXT, Lab, begin

HEAD = "# gitledger briefing"
pytestmark = pytest.mark.only("claude-code")


@pytest.mark.column("start")
def test_a_session_that_is_cleared_and_one_that_is_forked_are_each_briefed_once(agent: Agent, started: Lab) -> None:
    def briefed(n: int = -1) -> int:
        text = started.asked("turn")[n].text
        assert NEXT in text
        return text.count(HEAD)

    with claude_code.talk(started) as session:
        session.say("hello CLEARED-MARK")
        assert briefed() == 1
        session.say("/clear")
        session.say("after it")
        assert "CLEARED-MARK" not in started.asked("turn")[-1].text
        assert briefed() == 1
    started.run([*agent.line("another way", resume=True)[:-2], "--fork-session", "--", "another way"])
    assert briefed() == 2, "not one for the fork and the one that it was forked with"
    starts = [event for event in started.journal("session.started") if event["session"]]
    assert [event["data"]["source"] for event in starts] == ["startup", "clear", "fork"]
    assert len({event["session"] for event in starts}) == len(started.journal("session.closed")) == 3


def asked_again(lab: Lab, before: int) -> bool:
    return len(lab.asked("turn")) > before


@pytest.mark.column("recovered")
def test_a_turn_that_a_signal_ended_is_in_the_next_briefing(agent: Agent, started: Lab) -> None:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    for name in names:
        before = len(started.asked("turn"))
        started.server.script.hang.set()
        child = started.start(agent.line(f"begin {name}-MARK"))
        started.wait_for("the model was asked", partial(asked_again, started, before), child)
        child.send_signal(signal.Signals[name])
        with started.patience(child):
            child.communicate()
        started.server.script.hang.clear()
    agent.turn(started, "where were we")
    found: dict[str, str] = {}
    for event in started.journal("handover.written"):
        for key, record in event["records"].items():
            found |= {key: record["set"]["last_prompt"]} if key.startswith("H-") else {}
    assert list(found.values()) == [*(f"begin {name}-MARK" for name in names), "where were we"]
    assert started.ledger("session", "list", "--json").strip() == "[]"
    assert "## Handover H-000003" in started.asked("turn")[-1].text


@pytest.mark.column("end")
def test_two_windows_are_two_sessions_and_neither_ends_the_other(agent: Agent, started: Lab) -> None:
    def prompts() -> dict[str, str]:
        return {event["session"]: event["data"]["prompt"] for event in started.journal("prompt")}

    with claude_code.talk(started) as one, claude_code.talk(started) as two:
        one.say("hello FIRST-WINDOW")
        two.say("hello SECOND-WINDOW")
        one.say("go on FIRST-WINDOW")
        said = [event["data"]["prompt"] for event in started.journal("prompt")]
        assert said == ["hello FIRST-WINDOW", "hello SECOND-WINDOW", "go on FIRST-WINDOW"]
        assert len(json.loads(started.ledger("session", "list", "--json"))) == 2
    closed = [event["session"] for event in started.journal("session.closed")]
    assert sorted(closed) == sorted(prompts())
    assert len(set(closed)) == 2
    assert all(request.text.count(HEAD) == 1 for request in started.asked("turn"))


@pytest.mark.column("start")
def test_a_projects_settings_hold_where_they_lie_and_a_users_in_every_folder(
    agent: Agent, lab: Lab, tmp_path: Path
) -> None:
    begin(lab)
    lab.ledger("hooks", "install", "--client", "claude-code")
    lab.repo.commit("settings", {"a b/c d/file": "x", ".gitignore": "/nothing\n"})
    tree = tmp_path / "linked tree"
    lab.repo.git("worktree", "add", "-q", "-b", "side", str(tree))

    def briefed(cwd: Path) -> int:
        before = len(lab.server.requests)
        agent.turn(lab, "hello", cwd=cwd)
        return lab.asked("turn", before)[0].text.count(HEAD)

    assert briefed(tree) == 1
    assert briefed(tree / "a b") == 0, "docs/clients/claude-code.md says that it reads none from a folder above"
    install_hooks(lab, agent.name)
    assert briefed(tree / "a b" / "c d") == 1
    assert briefed(lab.repo.path) == 1, "wired twice, it is briefed twice or not at all"
    assert [event["data"]["reason"] for event in lab.journal("session.closed")] == ["other"] * 3
