"""A real client that dies, and one in a clone that has no ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import install
from tests.clients.agents import Agent
from tests.clients.hooks import install_hooks
from tests.clients.lab import Lab, kill, program_missing


@pytest.mark.column("recovered")
def test_a_turn_that_was_killed_is_in_the_next_briefing(agent: Agent, started: Lab) -> None:
    started.server.script.hang.set()
    child = started.start(agent.line("begin KILLED-MARK"))
    started.wait_for("the model was asked", lambda: bool(started.asked("turn")), child)
    kill(child)
    child.communicate()
    started.server.script.hang.clear()
    before = len(started.server.requests)
    agent.turn(started, "where were we")
    first = started.journal("handover.written")[0]
    (handover,) = [record["set"] for key, record in first["records"].items() if key.startswith("H-")]
    assert handover["recovered"] is True
    if "prompt" not in agent.untold:
        assert "KILLED-MARK" in handover["last_prompt"]
    assert "## Handover H-000001" in started.asked("turn", before)[0].text, "the next start was not told of it"


@pytest.mark.column("teammate")
@pytest.mark.parametrize("there", [True, False], ids=["with gitledger", "without gitledger"])
def test_a_clone_without_a_ledger_is_not_touched(agent: Agent, lab: Lab, there: bool) -> None:
    install_hooks(lab, agent.name)
    before = ours(lab.repo.path)
    refs = lab.repo.git("for-each-ref")
    if there:
        ran = agent.turn(lab, "hello TOOLCALL")
    else:
        with program_missing(lab):
            ran = agent.turn(lab, "hello TOOLCALL")
    assert ran.status == 0, ran
    assert len(lab.asked("turn")) > 1
    told = "\n".join((ran.out, ran.err, lab.asked("turn")[0].text))
    assert "gitledger" not in told.replace(str(install.CACHE), "")
    assert ours(lab.repo.path) == before
    assert lab.repo.git("for-each-ref") == refs


def ours(folder: Path) -> dict[str, bytes]:
    """Every file of the repository but those that the client itself keeps there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if "opencode" not in path.name}
