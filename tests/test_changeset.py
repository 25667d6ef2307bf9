"""Change sets: applied whole in one checkpoint, or refused with every error and its place, and nothing applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger import audit, changeset, cli, entries, layout, proof, reading, signing, tasks, todo
from gitledger.errors import BadData, Blocked, IOFailed
from gitledger.ledger import Ledger, Pointer
from gitledger.model import Key
from gitledger.schema import BadChangeSet
from tests.ledgers import again, begin, do
from tests.sealed import LONG, Repo


def at_work(repo: Repo) -> tuple[Ledger, Key]:
    """A ledger with an active task that has two criteria, and one decision still in the log."""
    book = begin(repo)
    key = do(book, tasks.add, "Authentication", accept=("logs in", "logs out"))
    assert key is not None
    do(book, tasks.start, key)
    book.checkpoint()
    do(book, entries.decide, "Cookies", "Simple", key, None)
    return book, key


def apply(book: Ledger, *updates: dict[str, Any], **more: Any) -> Pointer:
    value = {"source_digest": f"sha1:{book.tip()}", "ledger_updates": list(updates), **more}
    return changeset.checkpoint(book, json.dumps(value).encode(), "proposed")


def refused(repo: Repo, book: Ledger, *updates: dict[str, Any], **more: Any) -> tuple[str, ...]:
    """The errors of a change set that is refused; and that nothing was applied."""

    def state() -> tuple[str, list[str]]:
        return repo.git("for-each-ref", "refs/heads"), [e.event.id for e in reading.journal(again(repo), [])]

    before = state()
    with pytest.raises(BadChangeSet) as caught:
        apply(book, *updates, **more)
    assert state() == before
    assert isinstance(caught.value, BadData)
    assert "nothing was applied" in str(caught.value)
    return caught.value.errors


def test_all_updates_land_in_one_checkpoint_commit(repo: Repo) -> None:
    book, key = at_work(repo)
    repo.write({"login.py": "pass\n"})
    head = repo.head()
    before = int(repo.git("rev-list", "--count", "ledger/main"))
    blocker = do(book, entries.block, "No server", None)
    question = do(book, entries.ask, "Which colour?", None)
    assert blocker
    assert question
    made = apply(
        book,
        {"op": "task_set", "task": "T-0001", "goal": "People can log in", "summary": "Half way"},
        {"op": "complete", "task": "T-0001", "text": "The form", "evidence": {"path": "login.py", "criterion": "c1"}},
        {"op": "complete", "task": "T-0001", "text": "The logout", "evidence": {"commit": head, "criterion": "c2"}},
        {"op": "decide", "title": "Signed cookies", "why": "No state"},
        {"op": "blocker", "task": "T-0001", "text": "The certificate is missing"},
        {"op": "resolve", "blocker": "B-0001", "text": "There is one"},
        {"op": "question", "text": "Who may log in?"},
        {"op": "answer", "question": "Q-0001", "text": "Blue"},
        {"op": "artifact", "path": "login.py", "title": "The form"},
        {"op": "artifact", "path": "https://example.org/spec"},
        {"op": "note", "text": "Mind the gap"},
        {"op": "task_add", "title": "Later", "accept": ["it is there"], "parent": "T-0001"},
        handoff_summary="The form is there.",
        next_action="Write the test",
    )
    assert int(repo.git("rev-list", "--count", "ledger/main")) == before + 1
    assert list(audit.fsck(again(repo))) == []
    view = again(repo).view()
    assert again(repo).pending == ()
    task = view.need(key)
    assert task.get("goal") == "People can log in"
    assert task.get("next") == "Write the test"
    assert [row["text"] for row in task.listed("completed")] == ["The form", "The logout"]
    assert {row["kind"] for row in task.listed("links")} == {"decision", "blocker", "question", "artifact", "note"}
    assert view.need(blocker).get("status") == "resolved"
    assert view.need(question).get("answer") == "Blue"
    assert view.need(view.resolve("A-0001")).get("blob") == repo.git("hash-object", "login.py")
    later = view.need(view.resolve("T-0002"))
    assert (later.get("status"), later.get("parent")) == ("discovered", key)
    point = view.need(view.resolve(made.name))
    assert (point.get("reason"), point.get("derived")) == ("proposed", False)
    assert point.get("title") == "The form is there."
    assert made.next == point.get("next") == "Write the test"
    assert made.task == "T-0001"
    said = [e.event.data.get("source") for e in reading.journal(again(repo), []) if e.event.type == "note.added"]
    assert said == ["changeset"]


def test_updates_see_those_before_them_and_numbers_are_given_once(repo: Repo) -> None:
    book, _ = at_work(repo)
    apply(
        book,
        {"op": "task_add", "title": "First"},
        {"op": "task_add", "title": "Second", "parent": "T-0002"},
        {"op": "task_set", "task": "T-0003", "status": "planned"},
        {"op": "decide", "title": "One", "why": "a", "task": "T-0003"},
        {"op": "decide", "title": "Two", "why": "b", "task": "-"},
        {"op": "blocker", "task": "T-0003", "text": "It waits"},
        {"op": "resolve", "blocker": "B-0001", "text": "It came"},
    )
    view = again(repo).view()
    titles = {view.name(key): row["title"] for key, row in view.walk(layout.TASK)}
    assert titles == {"T-0001": "Authentication", "T-0002": "First", "T-0003": "Second"}
    decisions = {view.name(key): (row["title"], row["task"]) for key, row in view.walk(layout.DECISION)}
    assert decisions["D-0002"] == ("One", view.resolve("T-0003"))
    assert decisions["D-0003"] == ("Two", None)
    third = view.need(view.resolve("T-0003"))
    assert third.get("parent") == view.resolve("T-0002")
    assert third.get("status") == "blocked"
    assert view.need(view.resolve("B-0001")).get("status") == "resolved"
    assert list(audit.fsck(again(repo))) == []


def test_every_error_is_named_with_its_place_and_nothing_is_applied(repo: Repo) -> None:
    book, _ = at_work(repo)
    errors = refused(
        repo,
        book,
        {"op": "note", "text": "This one is good"},
        {"op": "task_set", "task": "T-0099", "goal": "x"},
        {"op": "task_set", "task": "T-0001", "status": "done"},
        {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"commit": "f" * 40}},
        {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"path": "../outside"}},
        {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"path": "README.md", "criterion": "c9"}},
        {"op": "resolve", "blocker": "T-0001", "text": "x"},
        {"op": "answer", "question": "Q-0007", "text": "x"},
        {"op": "artifact", "path": "not-there.py"},
        {"op": "task_add", "title": "x", "parent": "T-0098"},
        {"op": "task_set", "task": "T-0001", "status": "discovered"},
        active_task="T-0097",
    )
    places = [error.partition(": ")[0] for error in errors]
    assert places == [
        "ledger_updates[1].task",
        "ledger_updates[2].status",
        "ledger_updates[3].evidence.commit",
        "ledger_updates[4].evidence.path",
        "ledger_updates[5].evidence.criterion",
        "ledger_updates[6].blocker",
        "ledger_updates[7].question",
        "ledger_updates[8].path",
        "ledger_updates[9].parent",
        "ledger_updates[10].status",
        "active_task",
    ]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"", "not JSON"),
        (b"[]", "1 error"),
        (b'{"ledger_updates": []}', "source_digest"),
        (b'{"source_digest": "x", "ledger_updates": [{"op": "note"}]}', r"ledger_updates\[0\].text"),
        (b'{"source_digest": "x", "ledger_updates": [{"op": "erase"}]}', r"ledger_updates\[0\]"),
        (b'{"source_digest": "x", "surplus": 1}', "surplus"),
    ],
)
def test_what_is_no_change_set_is_refused(repo: Repo, data: bytes, place: str) -> None:
    book, _ = at_work(repo)
    tip = book.tip()
    with pytest.raises(BadChangeSet, match=place):
        changeset.checkpoint(book, data, "proposed")
    assert book.tip() == tip


def test_a_proposal_made_from_another_tip_is_refused(repo: Repo) -> None:
    book, _ = at_work(repo)
    old = book.tip()
    new = book.checkpoint().commit
    errors = refused(repo, book, {"op": "note", "text": "x"}, source_digest=f"sha1:{old}")
    assert len(errors) == 1
    assert errors[0].startswith(f"source_digest: is not the ledger's tip, sha1:{new}")
    assert refused(repo, book, source_digest=f"sha256:{new}")
    assert changeset.checkpoint(book, json.dumps({"source_digest": new}).encode(), "proposed").commit != new


def test_a_command_that_a_model_says_it_ran_proves_nothing(repo: Repo) -> None:
    book, key = at_work(repo)
    ran = {"command": "pytest", "exit": 0, "criterion": "c1"}
    apply(book, {"op": "complete", "task": "T-0001", "text": "Tests pass", "evidence": ran})
    task = again(repo).view().need(key)
    assert [c.state for c in proof.criteria(task)] == ["UNVERIFIED", "open"]
    assert refused(repo, book, {"op": "task_set", "task": "T-0001", "status": "done"})


def test_a_task_is_done_where_its_proof_comes_in_the_same_change_set(repo: Repo) -> None:
    book, key = at_work(repo)
    head = repo.head()
    made = apply(
        book,
        {"op": "complete", "task": "T-0001", "text": "in", "evidence": {"commit": head, "criterion": "c1"}},
        {"op": "complete", "task": "T-0001", "text": "out", "evidence": {"path": "README.md", "criterion": "c2"}},
        {"op": "task_set", "task": "T-0001", "status": "done"},
        {"op": "task_add", "title": "The next one"},
        active_task="T-0002",
        next_action="Begin with the form",
    )
    view = again(repo).view()
    assert view.need(key).get("status") == "done"
    second = view.need(view.resolve("T-0002"))
    assert (second.get("status"), second.get("next")) == ("active", "Begin with the form")
    assert made.task == "T-0002"


def test_a_change_set_never_takes_the_active_task_s_place(repo: Repo) -> None:
    book, _ = at_work(repo)
    do(book, tasks.add, "Another")
    for errors in (
        refused(repo, book, active_task="T-0002"),
        refused(repo, book, {"op": "task_set", "task": "T-0002", "status": "active"}),
    ):
        assert "T-0001 is active" in errors[0]
        assert "gitledger task start T-0002" in errors[0]
    assert apply(book, active_task="T-0001").task == "T-0001"


def test_to_dos_dependencies_and_decisions_that_supersede_are_the_steps_that_commands_take(repo: Repo) -> None:
    book, key = at_work(repo)
    old = do(book, entries.decide, "Sessions in memory", "Quick", key, None)
    apply(
        book,
        {"op": "task_add", "title": "The server", "todos": ["rent it", "name it"]},
        {"op": "task_add", "title": "The client", "depends": ["T-0002"], "parent": "T-0001"},
        {"op": "task_set", "task": "T-0001", "accept": ["is fast"], "depends": ["T-0002"]},
        {"op": "todo", "task": "T-0002", "add": ["open the port"], "done": ["t1"], "drop": ["2"]},
        {"op": "decide", "title": "Sessions in cookies", "why": "No state", "supersedes": "D-0002"},
        {"op": "task_set", "task": "T-0003", "parent": ""},
    )
    view = again(repo).view()
    server, client = view.resolve("T-0002"), view.resolve("T-0003")
    assert [(one.text, one.state) for one in todo.todos(view.need(server))] == [
        ("rent it", "done"),
        ("name it", "dropped"),
        ("open the port", "open"),
    ]
    assert [row["id"] for row in view.need(client).listed("depends")] == [server]
    assert view.need(client).get("parent") == ""
    assert [c.text for c in proof.criteria(view.need(key))] == ["logs in", "logs out", "is fast"]
    assert view.need(str(old)).get("status") == "superseded"
    errors = refused(
        repo,
        book,
        {"op": "task_set", "task": "T-0002", "depends": ["T-0001"]},
        {"op": "task_set", "task": "T-0001", "undepend": ["T-0003"]},
        {"op": "task_set", "task": "T-0001", "depends": ["T-0002", "T-0099"]},
        {"op": "todo", "task": "T-0002", "done": ["t1"]},
        {"op": "todo", "task": "T-0002", "drop": ["t9"]},
        {"op": "decide", "title": "x", "why": "y", "supersedes": "D-0002"},
        {"op": "decide", "title": "x", "why": "y", "supersedes": "T-0001"},
    )
    assert [error.partition(": ")[0] for error in errors] == [
        "ledger_updates[0]",
        "ledger_updates[1]",
        "ledger_updates[2].depends[1]",
        "ledger_updates[3]",
        "ledger_updates[4]",
        "ledger_updates[5]",
        "ledger_updates[6].supersedes",
    ]
    assert "waits for it already" in errors[0]
    assert "is done already" in errors[3]


def test_a_blocked_task_is_taken_up_again_where_it_was_the_active_one(repo: Repo) -> None:
    book, key = at_work(repo)
    made = apply(book, {"op": "blocker", "task": "T-0001", "text": "No server"}, next_action="Rent one")
    assert (made.task, made.next) == ("T-0001", "Rent one")
    assert again(repo).view().need(key).get("status") == "blocked"
    apply(book, {"op": "resolve", "blocker": "B-0001", "text": "rented"}, active_task="T-0001")
    assert again(repo).view().need(key).get("status") == "active"
    apply(book, {"op": "task_set", "task": "T-0001", "status": "blocked"})
    apply(book, {"op": "task_set", "task": "T-0001", "status": "active"})
    assert again(repo).view().need(key).get("status") == "active"


def test_a_task_whose_proof_is_stale_is_not_done(repo: Repo) -> None:
    book, key = at_work(repo)
    repo.write({"login.py": "pass\n"})
    proven = [
        {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"path": "login.py", "criterion": one}}
        for one in ("c1", "c2")
    ]
    apply(book, *proven)
    repo.write({"login.py": "fail\n"})
    errors = refused(repo, book, {"op": "task_set", "task": "T-0001", "status": "done"})
    assert errors[0].startswith("ledger_updates[0].status: T-0001 has criteria without standing evidence: c1 (STALE")
    apply(book, *proven, {"op": "task_set", "task": "T-0001", "status": "done"})
    assert again(repo).view().need(key).get("status") == "done"


@pytest.mark.parametrize(
    "surplus", [{"accept_unproven": "good enough"}, {"drop": ["c1"]}, {"drop_criteria": ["c1"]}, {"met": True}]
)
def test_what_is_a_persons_to_say_is_no_part_of_a_change_set(repo: Repo, surplus: dict[str, Any]) -> None:
    book, _ = at_work(repo)
    errors = refused(repo, book, {"op": "task_set", "task": "T-0001", "status": "done", **surplus})
    assert errors == (f"ledger_updates[0].{next(iter(surplus))}: unknown key",)


def test_a_finished_task_takes_a_next_action_only_when_it_is_open_again(repo: Repo) -> None:
    book, key = at_work(repo)
    do(book, tasks.done, key, "good enough")
    errors = refused(repo, book, {"op": "task_set", "task": "T-0001", "next": "more"})
    assert "is done and has no next action" in errors[0]
    apply(book, {"op": "task_set", "task": "T-0001", "status": "active", "next": "more"})
    errors = refused(repo, book, {"op": "task_set", "task": "T-0001", "status": "dropped", "next": "more"})
    assert errors[0].startswith("ledger_updates[0].next")
    assert again(repo).view().need(key).get("next") == "more"


def test_a_failure_of_the_machine_is_blocked_and_no_fault_of_the_change_set(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    book, _ = at_work(repo)
    tip = book.tip()

    def broken(payload: bytes, key: signing.KeySigner) -> str:
        raise IOFailed("no space left on device; free some")

    monkeypatch.setattr("gitledger.transaction.signing.sign", broken)
    with pytest.raises(Blocked, match="no space left"):
        apply(book, {"op": "note", "text": "x"})
    assert book.tip() == tip


def test_secrets_in_a_change_set_are_redacted(repo: Repo) -> None:
    book, _ = at_work(repo)
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    apply(book, {"op": "note", "text": f"the key is {key}"}, handoff_summary=f"key {key}")
    for path in repo.git("ls-tree", "-r", "--name-only", "ledger/main").split("\n"):
        assert key not in repo.git("show", f"ledger/main:{path}"), path
    assert list(audit.fsck(again(repo))) == []


# ── whatever is refused ──────────────────────────────────────────────────────────────────────
WORDS = st.sampled_from(["T-0001", "T-0002", "T-0099", "D-0001", "B-0001", "c1", "t1", "-", "", "x", "\0", "a\nb"])
OIDS = st.sampled_from(["f" * 40, "HEAD", "nothing", ""])
PATHS = st.sampled_from(["README.md", "../outside", "/etc/passwd", "no-such-file", ".git/config"])
STATES = st.sampled_from(["discovered", "planned", "active", "blocked", "done", "dropped", "finished"])
PROOF = st.fixed_dictionaries({}, optional={"commit": OIDS, "path": PATHS, "criterion": WORDS, "command": WORDS})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "task": WORDS, "title": WORDS, "text": WORDS, "why": WORDS, "status": STATES, "evidence": PROOF, "path": PATHS,
    "parent": WORDS, "depends": st.lists(WORDS, max_size=2), "supersedes": WORDS, "blocker": WORDS, "question": WORDS,
    "add": st.lists(WORDS, max_size=2), "done": st.lists(WORDS, max_size=2), "next": WORDS, "surplus": WORDS,
}  # fmt: skip
OPS = st.sampled_from(
    ["task_add", "task_set", "todo", "complete", "decide", "blocker", "resolve", "question", "answer", "artifact"]
)
UPDATES: st.SearchStrategy[dict[str, Any]] = st.builds(dict, st.fixed_dictionaries({"op": OPS}, optional=FIELDS))


@settings(max_examples=60 if LONG else 20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(updates=st.lists(UPDATES, max_size=4), last=st.sampled_from(["form", "digest", "task"]))
def test_whatever_is_refused_leaves_every_file_byte_for_byte(
    repo: Repo, updates: list[dict[str, Any]], last: str
) -> None:
    book = again(repo) if (repo.path / ".git/gitledger").exists() else at_work(repo)[0]
    value: dict[str, Any] = {"source_digest": f"sha1:{book.tip()}", "ledger_updates": updates}
    match last:
        case "form":
            value["surplus"] = 1
        case "digest":
            value["source_digest"] = "sha1:" + "0" * 40
        case _:
            value["active_task"] = "T-0077"
    before = files(repo)
    with pytest.raises(BadChangeSet) as caught:
        changeset.checkpoint(book, json.dumps(value).encode(), "proposed")
    assert files(repo) == before
    assert caught.value.errors
    for error in caught.value.errors:
        assert error.partition(":")[0].split("[")[0].split(".")[0] in {*value, "active_task"}, error


def files(repo: Repo) -> dict[str, bytes]:
    """Every file of the repository and its clone's state, the work tree included."""
    return {str(path): path.read_bytes() for path in sorted(repo.path.rglob("*")) if path.is_file()}


def test_checkpoint_from_a_file_prints_the_pointer(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book, _ = at_work(repo)
    repo.write({"set.json": json.dumps({"source_digest": book.tip(), "next_action": "Go on"})})
    cli.group.main(
        ["-C", str(repo.path), "checkpoint", "--from", str(repo.path / "set.json")], "gitledger", standalone_mode=False
    )
    assert "Next action: Go on" in capfd.readouterr().out
