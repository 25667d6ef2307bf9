"""Real clients as proposers of a memory file's nightly run: refused once, told why, accepted; their session unseen."""

from __future__ import annotations

import json
import re

import pytest

from tests.clients import install
from tests.clients.agents import Agent
from tests.clients.lab import ROOT, Lab
from tests.clients.test_hermes import hermes as hermes
from tests.clients.test_proposer import COMMANDS, OUTER

TEXT = "# Memory\n\n" + "".join(f"- fact number {n} of this file\n" for n in range(1, 11))


def proposal(text: str) -> str:
    """What the model answers: first a block that is not in the file, then, told of it, one that is."""
    digest = re.search(r"source_sha256: ([0-9a-f]{64})", text)
    block = "- fact number 4 of this file" if "character for character; line" in text else "- fact number 4"
    change = {"kind": "ephemeral", "original": [block], "reason": "it was of a day"}
    value = {"source_sha256": digest[1] if digest else "", "changes": [change]}
    return f"I looked at it.\n\n```json\n{json.dumps(value, indent=1)}\n```\n\nShall I go on?"


def compacted(lab: Lab, words: list[str], env: dict[str, str]) -> None:
    """See that a proposer was refused once, told why, and then accepted, and that nothing else got into the ledger."""
    before = len(lab.journal())
    (lab.repo.path / "memory").mkdir()
    file = lab.repo.path / "memory/MEMORY.md"
    file.write_text(TEXT)
    lab.ledger("config", "set", "proposer.command", json.dumps(words))
    lab.server.script.reply = proposal
    first = len(lab.server.requests)
    ran = lab.run([lab.bin / "gitledger", "-C", lab.repo.path, "memory", "compact"], env=env)
    assert ran.status == 0, ran.err
    assert "1 change" in ran.out
    assert "1. ephemeral, line 6: it was of a day" in ran.out
    assert file.read_text() == TEXT.replace("- fact number 4 of this file\n", "")
    asked = [one for one in lab.asked("turn", first) if "You are asked which lines of an agent's memory" in one.text]
    assert len(asked) == 2
    assert [event["type"] for event in lab.journal()[before:]] == ["memory.applied", "memory.file"]


def test_it_compacts_a_memory_file_and_its_session_is_in_no_ledger(agent: Agent, started: Lab) -> None:
    if agent.name not in COMMANDS:
        pytest.skip(f"no proposer is made of {agent.name} here")
    compacted(started, [str(install.PACKAGES[agent.name].path), *COMMANDS[agent.name]], OUTER)


def test_hermes_compacts_a_memory_file_by_the_script_that_is_shown(hermes: Lab) -> None:
    script = ROOT / "docs" / "examples" / "proposers" / "hermes.sh"
    python = install.PACKAGES["hermes"].path
    # Its environment was renamed into its place, so that the first line of its scripts names no program.
    run = hermes.bin / "hermes"
    run.write_text(f'#!/bin/sh\nexec {python} {python.parent / "hermes"} "$@"\n')
    run.chmod(0o755)
    compacted(hermes, ["sh", str(script)], {})
