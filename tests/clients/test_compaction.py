"""Before a real client compacts there is a checkpoint; where there can be none, it does not compact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.clients import lab as labs
from tests.clients.agents import Agent
from tests.clients.lab import NEXT, Lab
from tests.process.program import Ran

FAULTS: dict[str, Callable[[Lab], AbstractContextManager[None]]] = {
    "the program is missing": labs.program_missing,
    "the key is gone": labs.key_gone,
    "the ledger is broken": labs.ledger_broken,
}


def press(agent: Agent, way: str) -> Callable[[Agent, Lab], list[Ran]]:
    """What brings the client to compaction; skips where it cannot be brought to it this way."""
    if way not in agent.presses:
        pytest.skip(f"{agent.name} is not brought to compaction headless this way: {way}")
    return agent.presses[way]


@pytest.mark.column("compaction")
@pytest.mark.parametrize("way", ["manual", "auto"])
def test_a_compaction_has_its_checkpoint_before_it(agent: Agent, started: Lab, way: str) -> None:
    bring = press(agent, way)
    genesis = started.tip()
    agent.turn(started, "hello first")
    started.server.script.look = started.tip
    bring(agent, started)
    summaries = started.asked("summary")
    assert summaries, "the client never compacted"
    seen = summaries[0].seen
    body = started.repo.git("log", "-1", "--format=%B", seen)
    assert seen != genesis
    assert "Ledger-Kind: checkpoint" in body
    assert NEXT in body
    if agent.hears:
        assert "Checkpoint: C-" in summaries[0].text, "whoever writes the summary was not told of the checkpoint"
    before = len(started.server.requests)
    agent.turn(started, "and after", resume=True)
    (after,) = started.asked("turn", before)[:1]
    assert "FAKE-SUMMARY" in after.text, "the client did not go on from its summary"
    assert NEXT in after.text, "what the model is to do next is gone"


@pytest.mark.column("compaction refused")
@pytest.mark.parametrize("way", ["manual", "auto"])
def test_without_a_checkpoint_nothing_is_compacted(agent: Agent, started: Lab, way: str) -> None:
    if not agent.refuses:
        pytest.skip(f"{agent.name} compacts whatever a hook says")
    bring = press(agent, way)
    # A start, a compaction and an end each wait for the lock: for a client that compacts often, that takes minutes.
    faults = FAULTS | ({"the lock is held": labs.lock_held} if way == "manual" else {})
    agent.turn(started, "hello first")
    tip = started.tip()
    for fault, broken in faults.items():
        with broken(started):
            runs = bring(agent, started)
        told = "\n".join(ran.out + ran.err for ran in runs)
        assert started.asked("summary") == [], f"it compacted although {fault}: {told[-3000:]}"
        assert started.tip() == tip, f"the ledger moved although {fault}"
        if way in agent.tells:
            assert "BLOCKED_MISSING_PREREQUISITE" in told, f"it does not say why when {fault}: {told[-3000:]}"
    # The same steps compact as soon as nothing is wrong: it was the hook that kept the client from it.
    bring(agent, started)
    assert started.asked("summary") != []
