"""Steps of tasks: what is legal, and what a refusal says."""

from __future__ import annotations

import pytest

from gitledger import entries, tasks
from gitledger.errors import BadData, NotAllowed
from tests.ledgers import again, begin, do
from tests.sealed import Repo


def test_only_a_blocked_task_is_unblocked_and_it_is_active_only_where_it_was(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    with pytest.raises(NotAllowed, match="is planned, not blocked"):
        do(book, tasks.unblock, one)
    do(book, tasks.start, one)
    do(book, entries.block, "no network", one)
    do(book, entries.block, "no licence", two)
    do(book, tasks.unblock, one)
    do(book, tasks.unblock, two)
    view = again(repo).view()
    assert [view.need(str(k)).get("status") for k in (one, two)] == ["active", "planned"]


def test_a_discovered_task_never_displaces_the_active_one(repo: Repo) -> None:
    book = begin(repo)
    one = do(book, tasks.add, "One")
    do(book, tasks.start, one)
    do(book, tasks.add, "Found on the way", status="discovered")
    assert tasks.active(book.view(), book.desk.writer.id, "main") == one


def test_a_task_that_becomes_blocked_is_still_the_one_at_hand(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    do(book, tasks.start, one)
    do(book, entries.block, "no network", None)
    do(book, entries.block, "no licence", one)
    assert book.checkpoint().task == "T-0001"
    do(book, tasks.start, two)
    view = book.view()
    assert view.need(str(one)).get("status") == "blocked"  # set aside, it still waits for the licence
    assert tasks.active(view, book.desk.writer.id, "main") == two


def test_starting_another_task_plans_the_first_again_and_keeps_its_next_action(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    do(book, tasks.start, one)
    do(book, tasks.set_next, one, "Half way")
    do(book, tasks.start, two)
    view = book.view()
    assert tasks.active(view, book.desk.writer.id, "main") == two
    assert (view.need(str(one)).get("status"), view.need(str(one)).get("next")) == ("planned", "Half way")


@pytest.mark.parametrize(("status", "to"), [("discovered", "done"), ("planned", "done"), ("dropped", "active")])
def test_an_illegal_step_names_what_is_legal(status: str, to: str, repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", status="discovered" if status == "discovered" else "planned")
    if status == "dropped":
        do(book, tasks.move, key, "dropped")
    with pytest.raises(NotAllowed, match="legal from here: " + ", ".join(tasks.LEGAL[status])):
        do(book, tasks.move, key, to)


def test_done_needs_evidence_for_every_criterion_or_a_reason_that_stays(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", accept=("works", "is documented"))
    do(book, tasks.start, key)
    do(book, tasks.evidence, key, {"kind": "run", "command": "true", "exit": 0}, "c1")
    do(book, tasks.evidence, key, {"kind": "claim", "text": "I wrote it"}, "c2")
    with pytest.raises(NotAllowed, match=r"c2 \(UNVERIFIED\)"):
        do(book, tasks.done, key)
    do(book, tasks.done, key, "the documents come with the release")
    record = book.view().need(str(key))
    assert (record.get("status"), record.get("accept_unproven")) == ("done", "the documents come with the release")


def test_a_later_failing_run_takes_the_proof_back(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", accept=("works",))
    do(book, tasks.start, key)
    do(book, tasks.evidence, key, {"kind": "run", "command": "make test", "exit": 0}, "c1")
    do(book, tasks.evidence, key, {"kind": "run", "command": "make test", "exit": 1}, "c1")
    with pytest.raises(NotAllowed, match=r"c1 \(failed\)"):
        do(book, tasks.done, key)


def test_a_task_that_is_started_again_is_not_done_any_more(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One")
    do(book, tasks.start, key)
    do(book, tasks.done, key)
    do(book, tasks.start, key)
    record = book.view().need(str(key))
    assert (record.get("status"), record.get("done_at")) == ("active", None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" ", "empty"),
        ("x" * 10_000_000, "10,000,000 characters"),
        ("a\nb", "U\\+000A"),
        ("a\0", "U\\+0000"),
    ],
)
def test_a_title_that_is_none_is_refused_with_what_is_wrong(text: str, says: str, repo: Repo) -> None:
    book = begin(repo)
    with pytest.raises(BadData, match=says):
        do(book, tasks.add, text)
    assert book.view().manifest.numbers.get("T") is None
