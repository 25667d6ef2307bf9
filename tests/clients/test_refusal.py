"""Where no checkpoint can be made a real client does not compact, whatever the reason, until a person says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.clients import lab as labs
from tests.clients.agents import Agent
from tests.clients.lab import Lab

Fault = Callable[[Lab], AbstractContextManager[None]]
FAULTS: dict[str, Fault] = {
    "the program is missing": labs.program_missing,
    "the program crashes": labs.crash,
    "the deadline passes": labs.deadline_passed,
    "the disk is full": labs.disk_full,
    "the lock is held": labs.lock_held,
    "the ledger is broken": labs.ledger_broken,
    "the signature is bad": labs.signature_bad,
}
WHY = "BLOCKED_MISSING_PREREQUISITE"


@pytest.mark.column("compaction refused")
def test_without_a_checkpoint_nothing_is_compacted_but_what_a_person_lets_through(agent: Agent, started: Lab) -> None:
    if not agent.refuses:
        pytest.skip(f"{agent.name} compacts whatever a hook says")
    with agent.pressing(agent, started) as press:
        for fault, broken in FAULTS.items():
            tip, before = started.tip(), len(labs.called(started))
            with broken(started):
                told = press()
            assert started.asked("summary") == [], f"it compacted although {fault}: {told[-3000:]}"
            assert started.tip() == tip, f"the ledger moved although {fault}"
            asked = f"hook {agent.name} compact" in labs.called(started)[before:]
            assert asked == (fault != "the program is missing"), f"the hook was not asked when {fault}"
            if agent.tells:
                assert WHY in told, f"it does not say why when {fault}: {told[-3000:]}"
        # The same step compacts once a person lets it through, as it would have done each time, and only once.
        with labs.signature_bad(started):
            started.ledger("compaction", "allow", "--once", "--reason", "the key is in another house")
            press()
            assert len(started.asked("summary")) == 1
            if agent.tells:
                assert WHY in press(), "a second one went through on the same permission"
                assert len(started.asked("summary")) == 1
    if not missed(started):  # nothing was asked since, or the summary came at a turn's end
        agent.turn(started, "and on", resume=True)
    assert missed(started), "the next briefing does not say that a checkpoint is missing"


def missed(lab: Lab) -> bool:
    """True once a model read that a compaction went through without a checkpoint, and why."""
    texts = [request.text for request in lab.asked("turn")]
    return any("CHECKPOINT MISSING" in text and "the key is in another house" in text for text in texts)
