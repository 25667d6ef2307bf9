"""Rollover: what is advised at which part of a context, and that a session is told once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gitledger import clients, layout, rollover, tasks, wal
from gitledger.clients import events
from gitledger.errors import LockHeld
from gitledger.ledger import Ledger
from gitledger.model import Json
from gitledger.rollover import Standing, advise
from gitledger.schema import GenericPayload, Rollover
from tests.ledgers import begin, do
from tests.process.program import gitledger, works
from tests.sealed import Repo, new_repo

POLICY = Rollover()


@pytest.mark.parametrize(
    ("standing", "advice"),
    [
        (Standing(), "continue"),
        (Standing(None, 900), "continue"),
        (Standing(0.34, 900), "continue"),
        (Standing(0.35, 1), "checkpoint"),
        (Standing(0.35, 0), "continue"),
        (Standing(0.0, 1, finished=True), "checkpoint"),
        (Standing(None, 1, finished=True), "checkpoint"),
        (Standing(0.45, 0), "fresh session"),
        (Standing(0.45, 1), "checkpoint"),
        (Standing(0.45, 0, half="a merge is under way"), "continue"),
        (Standing(0.79, 0, half="a merge is under way"), "continue"),
        (Standing(0.34, 0, moved=True), "continue"),
        (Standing(0.35, 0, moved=True), "checkpoint"),
        (Standing(0.45, 0, moved=True, half="1 path of the work tree not committed"), "checkpoint"),
        (Standing(0.80, 0), "emergency"),
        (Standing(1.0, 5, True, True, "a merge is under way"), "emergency"),
    ],
)
def test_what_is_advised_follows_from_how_things_stand(standing: Standing, advice: str) -> None:
    found = advise(standing, POLICY)
    assert found.advice == advice
    assert found.command.startswith("gitledger ") == (advice != "continue")
    assert (found.percent is None) == (standing.used is None)


def test_the_thresholds_are_the_configurations() -> None:
    assert advise(Standing(0.2, 1), Rollover(10, 45, 80)).advice == "checkpoint"
    assert advise(Standing(0.2), Rollover(10, 20, 80)).advice == "fresh session"
    assert advise(Standing(0.2), Rollover(10, 20, 20)).advice == "emergency"


@pytest.mark.parametrize(
    ("usage", "share"),
    [
        ({"used": 90, "limit": 200}, 0.45),
        ({"used": 900, "limit": 200}, 1.0),
        ({"used": 90}, None),
        ({"used": 90, "limit": 0}, None),
        ({"used": "90", "limit": 200}, None),
        ({}, None),
        (None, None),
        ([1], None),
    ],
)
def test_a_share_is_told_only_where_both_figures_are(usage: Json, share: float | None) -> None:
    assert rollover.share(usage) == share


@pytest.fixture
def ledger(repo: Repo) -> Ledger:
    found = begin(repo)
    found.start_session("qwen", "s1")
    return found


def turn(ledger: Ledger, used: int) -> None:
    payload = {"session_id": "s1", "input_tokens": used * 1_000, "context_limit": 100_000}
    now = ledger.desk.mint.now_ms()
    wal.append(ledger.desk.home.wal, "qwen", "turn", json.dumps(payload).encode(), now_ms=now, rand=os.urandom(10))


def advised(ledger: Ledger) -> list[object]:
    """What was journalled so far, in order; all of it is still pending here."""
    ledger.view()
    return [event.data["advice"] for event in ledger.pending if event.type == "rollover.advised"]


def test_a_crossing_is_journalled_once_and_anew_after_the_context_was_small_again(ledger: Ledger) -> None:
    key = layout.session_key("qwen", "s1")
    for used in (10, 20, 36, 38, 40, 81, 85, 12, 14, 37, 39):
        turn(ledger, used)
        rollover.told(ledger, key)
    assert advised(ledger) == ["checkpoint", "emergency", "continue", "checkpoint"]


def test_advice_makes_no_checkpoint_stale(ledger: Ledger) -> None:
    key = layout.session_key("qwen", "s1")
    turn(ledger, 50)
    first = ledger.before_compaction(key)
    assert rollover.told(ledger, key).advice == "fresh session"
    assert advised(ledger) == ["fresh session"]
    assert ledger.before_compaction(key).name == first.name
    assert rollover.standing(ledger, key)[0].unsaved == 0


def test_a_dirty_tree_or_a_merge_is_a_step_half_done(ledger: Ledger, repo: Repo) -> None:
    assert rollover.standing(ledger, None)[0].half == ""
    (repo.path / "new.txt").write_text("x")
    assert rollover.standing(ledger, None)[0].half == "1 path of the work tree not committed"
    (repo.path / ".git" / "MERGE_HEAD").write_text(repo.git("rev-parse", "HEAD").strip() + "\n")
    assert rollover.standing(ledger, None)[0].half == "a merge is under way"


def test_a_task_without_a_next_action_and_a_head_that_no_checkpoint_saw_are_no_clean_boundary(
    ledger: Ledger, repo: Repo
) -> None:
    key = do(ledger, tasks.add, "Task")
    do(ledger, tasks.start, key)
    ledger.checkpoint()
    assert rollover.standing(ledger, None)[0].half == "T-0001 has no next action"
    do(ledger, tasks.set_next, key, "Write it")
    ledger.checkpoint()
    assert rollover.standing(ledger, None, 0.5)[0] == Standing(0.5)
    repo.commit("a commit that no hook told of")
    found, _ = rollover.standing(ledger, None, 0.5)
    assert (found.unsaved, found.moved) == (0, True)
    assert advise(found, POLICY).advice == "checkpoint"


def test_each_finished_task_is_a_reason_of_its_own(ledger: Ledger) -> None:
    session = layout.session_key("qwen", "s1")
    for n in range(2):
        key = do(ledger, tasks.add, f"Task {n}")
        do(ledger, tasks.start, key)
        do(ledger, tasks.done, key)
        for _ in range(3):
            assert rollover.told(ledger, session).advice == "checkpoint"
    assert advised(ledger) == ["checkpoint", "checkpoint"]


def test_a_session_that_goes_on_is_told_where_it_has_got_to_and_one_that_begins_is_not(ledger: Ledger) -> None:
    adapter = clients.adapter("qwen")
    turn(ledger, 50)
    assert "Rollover" not in events.start(ledger, "qwen", GenericPayload(session_id="s2", pid=os.getpid()))
    events.compact(ledger, adapter, GenericPayload(session_id="s1"))
    assert advised(ledger) == ["fresh session"]
    said = events.start(ledger, "qwen", GenericPayload(session_id="s1", source="resume", pid=os.getpid()))
    assert "\nRollover: checkpoint: 50 % of the context is used, and there is 1 event in no checkpoint; " in said


def test_advice_that_cannot_be_given_stands_in_nobodys_way(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise LockHeld("somebody else works on it")

    monkeypatch.setattr(rollover, "told", broken)
    turn(ledger, 90)
    assert "Checkpoint: C-000001" in events.compact(ledger, clients.adapter("qwen"), GenericPayload(session_id="s1"))


# ── the real program ─────────────────────────────────────────────────────────────────────────
@pytest.mark.process
def test_the_commands_say_it_in_one_line(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    works(repo.path, "task", "add", "Discounts", "--accept", "TEN works")
    works(repo.path, "task", "start", "T-0001")
    ran = works(repo.path, "rollover", "--used", "0.37")
    assert ran.startswith("checkpoint: 37 % of the context is used, and there are ")
    assert json.loads(works(repo.path, "rollover", "--used", "0.1", "--json"))["advice"] == "continue"
    assert gitledger(repo.path, "rollover", "--used", "37").status == 2
    works(repo.path, "checkpoint")
    works(repo.path, "task", "add", "Refunds")
    assert works(repo.path, "task", "done", "T-0001", "--accept-unproven", "by hand").splitlines()[1:] == [
        "checkpoint: how much of the context is used is not known, and a task was finished; gitledger checkpoint"
    ]
    assert "\nRollover    checkpoint: " in works(repo.path, "status")
    works(repo.path, "task", "start", "T-0002", "--next", "Begin with cards")
    works(repo.path, "checkpoint")
    assert "Rollover" not in works(repo.path, "status")
    window = {"context_window_size": 200_000, "current_usage": {"input_tokens": 4, "cache_read_input_tokens": 91_996}}
    payload = {"session_id": "s9", "cwd": str(repo.path), "context_window": window}
    said = works(tmp_path, "statusline", stdin=payload)
    assert said == "T-0002 Refunds · C-000002 +1 · 46 % · fresh session"
    assert works(repo.path, "statusline") == "T-0002 Refunds · C-000002 +1"
    bare = new_repo(tmp_path / "bare")
    assert works(bare.path, "statusline", stdin={"cwd": str(bare.path)}) == ""
