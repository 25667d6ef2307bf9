"""What a new session is told after things went as they do go: replaced, finished, switched, amended, killed.

Each is a way in which notes that nobody checked were followed elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace

import pytest

from gitledger import briefing, entries, layout, tasks, wal
from gitledger.derive import Told
from gitledger.ledger import Ledger
from gitledger.model import Key
from gitledger.schema import Briefing
from tests.ledgers import again, begin, do
from tests.process.program import works
from tests.sealed import Repo
from tests.test_truth import capture, section


@pytest.fixture
def book(repo: Repo) -> Ledger:
    """A ledger whose active task has the next action `Take the first step`."""
    found = begin(repo)
    key = do(found, tasks.add, "Discounts", goal="Codes are read", accept=("TEN works",))
    do(found, tasks.start, key)
    step(found, "Take the first step")
    return found


def step(book: Ledger, text: str) -> None:
    """Another next action."""
    do(book, tasks.set_next, active(book), text)


def active(book: Ledger) -> Key:
    """The task at hand."""
    key = tasks.active(book.view(), book.desk.writer.id, "main")
    assert key is not None
    return key


def hand_over(book: Ledger, name: str = "s1") -> None:
    """A session that was opened, and that its person left."""
    book.end_session(book.start_session("generic", name, pid=os.getpid()), "exit")


def told(repo: Repo) -> str:
    """What a session that starts now is told."""
    return briefing.briefing(again(repo))


def followed(text: str) -> list[str]:
    """Every text in a briefing that may be followed."""
    return [found[1] for found in re.findall(r"^<<< (Next Action of \S+)\n(.*?)\n>>> \1$", text, re.S | re.M)]


# ── what is over ─────────────────────────────────────────────────────────────────────────────
def test_a_next_action_that_was_replaced_since_the_handover_is_nowhere(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    assert followed(told(repo)) == ["Take the first step"]
    step(book, "Take the second step")
    said = told(repo)
    assert followed(said) == ["Take the second step"]
    assert "first step" not in said
    assert "Its Next Action is over, another one was set since; to see it: gitledger handover show H-000001" in said


def test_a_handover_whose_task_was_finished_since_is_over_although_it_is_advanced(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    repo.commit("more")
    do(book, tasks.done, active(book), "by hand")
    said = told(repo)
    assert "advanced: 1 commit since" in said
    assert followed(said) == []
    assert "Its Next Action is over, T-0001 is done now" in said
    assert "first step" not in said
    assert "first step" not in works(repo.path, "status")


def test_a_handover_of_the_task_before_is_over_where_another_one_is_worked_on(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    key = do(book, tasks.add, "Refunds", accept=("cash comes back",))
    do(book, tasks.start, key)
    said = told(repo)
    assert followed(said) == ["Meet the first open criterion: cash comes back"]
    assert "Its Next Action is over, the work is at T-0002 now" in said
    assert "first step" not in said


def test_what_a_handover_was_written_with_leads_while_nothing_else_was_said(book: Ledger, repo: Repo) -> None:
    book.write_handover(told=Told(next="Ask Ada first"))
    said = told(repo)
    assert followed(said) == ["Ask Ada first"]
    assert 'Its next action as recorded: "Take the first step"' in said


def test_the_newest_word_is_what_the_smallest_briefing_holds(book: Ledger, repo: Repo) -> None:
    for n in range(7):
        step(book, f"Step number {n}")
        do(book, entries.block, f"Blocker number {n}", active(book))
    hand_over(book)
    step(book, "No: ask Ada first")
    ledger = again(repo)
    small = replace(ledger.desk.config, briefing=Briefing(16, 2_400))
    ledger.desk = replace(ledger.desk, config=small)
    said = briefing.briefing(ledger)
    assert followed(said) == ["No: ask Ada first"]
    assert "Step number" not in said
    assert "BLOCKED" in said


# ── where it was said ────────────────────────────────────────────────────────────────────────
def test_an_older_handover_does_not_vouch_for_what_a_newer_one_was_withheld_for(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    repo.commit("more")
    hand_over(book, "s2")
    repo.git("commit", "--quiet", "--amend", "--message", "said better")
    said = told(repo)
    assert "diverged (rewritten)" in said
    assert followed(said) == []
    step(book, "Compare the two")
    assert followed(told(repo)) == ["Compare the two"]


def test_what_was_said_on_another_branch_is_withheld_here_and_named_in_one_line(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    repo.git("switch", "--quiet", "-c", "card")
    step(book, "Take the second step")
    repo.commit("work on the branch")
    hand_over(book, "s2")
    assert followed(told(repo)) == ["Take the second step"]
    repo.git("switch", "--quiet", "main")
    said = told(repo)
    assert followed(said) == []
    assert "different_context: last worked on card" in said
    assert "\n- H-000002 on card: different_context\n" in said
    repo.commit("meanwhile")
    repo.git("merge", "--quiet", "--no-edit", "card")
    said = told(repo)
    assert "\n- H-000002 on card: different_context (merged)\n" in said
    assert followed(said) == []
    assert "step" not in section(said, "Handover")


# ── sessions that nobody ended ───────────────────────────────────────────────────────────────
def test_a_handover_of_a_session_that_died_says_so(book: Ledger, repo: Repo) -> None:
    hand_over(book)
    assert "recovered" not in told(repo)
    with subprocess.Popen(["sleep", "600"]) as client:
        book.start_session("generic", "s2", pid=client.pid)
        client.kill()
    assert len(book.recover_sessions()) == 1
    assert "recovered: its session ended without saying so" in section(told(repo), "Handover H-000002")


def test_a_compaction_that_no_hook_told_of_loses_no_turn(book: Ledger, repo: Repo) -> None:
    book.start_session("generic", "s1", pid=os.getpid())
    for n in range(3):
        capture(book, "turn", "s1", prompt=f"ask {n}", answer=f"answer {n}")
    said = works(repo.path, "hook", "generic", "start", stdin={"session_id": "s1", "source": "compact"})
    assert followed(said) == ["Take the first step"]
    journal = works(repo.path, "journal")
    assert all(f"ask {n}" in journal for n in range(3))
    record = again(repo).view().need(layout.session_key("generic", "s1"))
    assert (record.get("turns"), record.get("last_answer"), record.get("state")) == (3, "answer 2", "open")


# ── what else a session is given ─────────────────────────────────────────────────────────────
def test_every_document_that_is_named_can_be_got(book: Ledger, repo: Repo) -> None:
    said = told(repo)
    assert "\nRead by `gitledger get`: T-0001\n" in said  # no commit holds its documents yet
    do(book, entries.decide, "Codes are case-blind", "people type", active(book), None)
    hand_over(book)
    (listed,) = re.findall(r"^Read by `gitledger get`: (.*)$", told(repo), re.M)
    named = listed.split(" · ")
    assert [name.rpartition("/")[2] for name in named] == ["STATE.md", "TODO.md", "SOURCES.md", "D-0001"]
    for name in named:
        assert works(repo.path, "get", name)


def test_what_lies_in_the_work_tree_is_counted_and_named(book: Ledger, repo: Repo) -> None:
    assert "## Work tree" not in told(repo)
    repo.commit("files", {"a.txt": "1\n", "b.txt": "1\n"})
    (repo.path / "a.txt").write_text("2\n3\n")
    (repo.path / "b.txt").unlink()
    (repo.path / "new\nline.txt").write_text("x")
    said = section(told(repo), "Work tree")
    assert said.splitlines()[:3] == ["- changed a.txt", "- deleted b.txt", "- untracked new line.txt"]
    assert "## Work tree: 3 paths differ from HEAD (2 files changed, 2 insertions(+), 2 deletions(-))" in told(repo)
    for n in range(30):
        (repo.path / f"more{n}.txt").write_text("x")
    assert "- and 25 more: git status" in told(repo)


def test_turns_that_end_unheard_session_after_session_are_told(repo: Repo, book: Ledger) -> None:
    def session(name: str, *events: str, client: str = "claude-code") -> None:
        for event in ("start", *events):
            payload = json.dumps({"session_id": name, **({"prompt": "Go on"} if event == "prompt" else {})}).encode()
            now, folder = book.desk.mint.now_ms(), book.desk.home.wal
            wal.append(folder, client, event, payload, now_ms=now, rand=os.urandom(10), worktree="main")
        at = again(repo)
        at.end_session(at.start_session(client, name, pid=os.getpid()), "exit")

    def unheard() -> list[str]:
        facts = briefing.gather(again(repo))
        return [one.where for one in facts.findings if one.rule == "hooks have not fired"]

    session("a1", "prompt", "turn")
    session("a2", "prompt")
    session("a3", "prompt")
    assert unheard() == []  # two of them may have been stopped in their first turn
    session("a4", "prompt")
    assert unheard() == ["claude-code"]
    text = works(repo.path, "status")
    assert "no turn's end of claude-code was heard in its last 3 sessions" in text
    assert "gitledger hooks status" in text
    session("a5")
    assert unheard() == ["claude-code"]  # nothing was asked in it, so it says nothing
    session("a6", "prompt", "turn")
    assert unheard() == []
    for n in range(3):
        session(f"b{n}", "prompt", client="made-by-hand")  # which may have no such event
    assert unheard() == []
