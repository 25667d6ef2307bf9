"""One day of a client, told once for all that it proves: a turn, the same session resumed until it compacts, and on.

Clients take seconds to start, so every run counts for as much as it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.clients.agents import WORDS, Agent
from tests.clients.lab import RESUMED, Lab, briefing
from tests.clients.models.server import SMALL, SUMMARY, Request
from tests.process.program import Ran

MOST = 3
"""Runs within which a client whose window is full has compacted and gone on."""


@dataclass(frozen=True, slots=True)
class Story:
    """What was seen of it. `briefing` is what a start was to be given, `events` and `sessions` stand after one run."""

    lab: Lab
    briefing: list[str]
    first: Ran
    requests: list[Request]
    events: list[dict[str, Any]]
    sessions: str
    handover: str
    renewed: list[str]
    """The briefing as it was to be when the session went on."""
    resumed: list[Request]
    """What the model was asked in the runs that went on."""

    def events_of(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of some types after the first run, oldest first."""
        return [event for event in self.events if event["type"] in kinds]


def tell(agent: Agent, lab: Lab) -> Story:
    """Run it, in a lab that has its ledger and the client's hooks."""
    script = lab.server.script
    lines = briefing(lab)
    first = agent.turn(lab, "please do PROMPT-MARK TOOLCALL")
    asked = list(lab.server.requests)
    events = lab.journal()
    sessions = lab.ledger("session", "list", "--json")
    handover = lab.ledger("handover", "show") if agent.ends else ""
    renewed: list[str] = []
    if agent.resumes:
        lab.ledger("task", "next", "T-0001", RESUMED)
        renewed = briefing(lab)
        script.look = lab.tip
        script.claimed = agent.full
        for _ in range(MOST):
            agent.turn(lab, "go on TOOLCALL " + WORDS, resume=True)
            if not agent.compacts or went_on(lab.server.requests):
                break
        script.claimed = SMALL
    return Story(lab, lines, first, asked, events, sessions, handover, renewed, lab.server.requests[len(asked) :])


def went_on(requests: list[Request]) -> list[Request]:
    """The turns that began from a summary."""
    return [request for request in requests if request.kind == "turn" and SUMMARY in request.text]
