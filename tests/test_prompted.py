"""What a prompt is given where that was asked for, and what whoever compacts is handed, as clients are told it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gitledger import capture, clients, entries, prompted, tasks
from gitledger.clients import events
from gitledger.ledger import Ledger
from gitledger.render.capsule import BEGIN, CHARS, END
from gitledger.schema import Config, GenericPayload
from gitledger.values import replace
from tests.ledgers import again, begin, do
from tests.process.program import gitledger
from tests.sealed import Repo

SAID = {"session_id": "window 1", "prompt": "go on with the invoices"}


@pytest.fixture
def asked(repo: Repo) -> Ledger:
    """A ledger with an active task, in a clone whose prompts are answered."""
    ledger = begin(repo)
    key = do(ledger, tasks.add, "Invoices as PDF", goal="The office prints them")
    do(ledger, tasks.start, key)
    Path(ledger.desk.home.state, "config.yaml").write_text("capsule:\n  on_prompt: true\n")
    return again(repo)


def hook(repo: Repo, client: str, event: str, **more: object) -> str:
    ran = gitledger(repo.path, "hook", client, event, stdin={**SAID, "cwd": str(repo.path), **more})
    assert ran.status == 0, ran
    return ran.out


def test_a_prompt_is_given_the_capsule_once_and_then_what_has_changed(asked: Ledger, repo: Repo) -> None:
    hook(repo, "claude-code", "start", source="startup")
    first = hook(repo, "claude-code", "prompt")
    assert first.startswith(BEGIN)
    assert '"Invoices as PDF"' in first
    assert hook(repo, "claude-code", "prompt") == ""
    do(asked, entries.decide, "Invoices use A4", "No other paper", None, None)
    second = hook(repo, "claude-code", "prompt")
    assert '"Invoices use A4"' in second
    assert "The office prints them" not in second
    other = hook(repo, "claude-code", "prompt", session_id="window 2")
    assert "The office prints them" in other, "another window knows nothing of it"
    hook(repo, "claude-code", "start", source="compact")
    assert "The office prints them" in hook(repo, "claude-code", "prompt"), "what was compacted away is not said anew"


def test_a_prompt_is_given_nothing_unless_that_was_asked_for(repo: Repo) -> None:
    ledger = begin(repo)
    hook(repo, "claude-code", "start", source="startup")
    assert hook(repo, "claude-code", "prompt") == ""
    state = Path(ledger.desk.home.state)
    (state / "config.yaml").write_text("capsule:\n  on_prompt: true\n")
    hook(repo, "claude-code", "start", source="resume")
    assert hook(repo, "claude-code", "prompt").startswith(BEGIN)
    (state / "config.yaml").write_text("")
    assert hook(repo, "claude-code", "prompt") == "", "what the configuration says now holds, whatever a mark says"
    hook(repo, "claude-code", "start", source="resume")
    assert not (state / prompted.FLAG).exists()


def test_each_client_is_told_by_its_own_channel_and_the_others_are_told_nothing() -> None:
    told = {name: clients.adapter(name).answer("prompt", "TEXT").stdout for name in clients.NAMES}
    plain = {"claude-code", "codex", "generic", "hermes", "nanobot"}
    assert {name for name, out in told.items() if out == "TEXT"} == plain
    keys = {name: json.loads(told[name])["hookSpecificOutput"] for name in ("gemini", "qwen")}
    assert keys["gemini"] == {"hookEventName": "BeforeAgent", "additionalContext": "TEXT"}
    assert keys["qwen"] == {"hookEventName": "UserPromptSubmit", "additionalContext": "TEXT"}
    assert {name for name, out in told.items() if out} == plain | keys.keys()


def test_a_prompt_of_a_client_that_cannot_be_told_is_only_journalled(asked: Ledger, repo: Repo) -> None:
    hook(repo, "pi", "start")
    assert hook(repo, "pi", "prompt") == ""
    assert not Path(asked.desk.home.state, "prompted-main").exists()


def test_a_ledger_that_is_broken_does_not_keep_a_prompt(asked: Ledger, repo: Repo) -> None:
    hook(repo, "claude-code", "start", source="startup")
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    assert hook(repo, "claude-code", "prompt") == ""
    assert "hook claude-code prompt: NoLedger" in Path(asked.desk.home.state, "log").read_text()


def test_whoever_writes_a_summary_is_handed_pointer_and_capsule(asked: Ledger) -> None:
    said = GenericPayload(session_id="window 1")
    events.start(asked, "claude-code", said)
    told = events.compact(asked, clients.adapter("claude-code"), said)
    assert told.startswith("Checkpoint: C-000001\n")
    assert BEGIN in told
    assert told.endswith(END)
    assert 'Objective: "The office prints them"' in told
    assert len(told) <= CHARS


def test_the_marks_of_many_sessions_are_bounded_and_private(asked: Ledger) -> None:
    prompted.flag(asked.desk.home.state, replace(Config(), capsule=asked.desk.config.capsule))
    for n in range(prompted.KEPT + 10):
        prompted._write(prompted._path(asked.desk.home.state, "main", f"S-{n:012x}"), "task~01234567")
    folder = Path(asked.desk.home.state, "prompted-main")
    assert len(os.listdir(folder)) <= prompted.KEPT + 1
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder, *folder.iterdir()))


def test_the_fast_path_looks_for_the_mark_that_a_start_leaves() -> None:
    assert f'"{prompted.FLAG}"' in Path(capture.__file__).read_text()
