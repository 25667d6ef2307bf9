"""What a session leaves that no model wrote is specific, true, and bounded; the page that shows it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitledger import audit, derive, discover, episode, layout, reading
from gitledger.ledger import read_position
from gitledger.model import Json, Record, Stamp
from tests import session_example
from tests.process.program import works
from tests.sealed import Repo
from tests.session_example import FAILED, PASSED, Session
from tests.test_docs import text
from tests.test_secrets import Planted, objects_of


def began(repo: Repo) -> Repo:
    works(repo.path, "init", "--project", "Corner shop")
    return repo


def newest(repo: Repo, kind: layout.Kind = layout.HANDOVER) -> dict[str, Json]:
    view = discover.open(repo.path).view()
    return view.need(max(key for key, _ in view.walk(kind))).values()


def page(repo: Repo, name: str) -> str:
    view = discover.open(repo.path).view()
    return reading.document(view, view.resolve(name))[1].decode()


@pytest.mark.process
def test_the_page_is_what_sessions_leave(tmp_path: Path) -> None:
    assert session_example.tell(tmp_path) == text("docs/handovers.md"), "run: python -m tests.session_example"


@pytest.mark.process
def test_a_session_without_a_task_leaves_what_it_was_about_what_it_did_and_what_failed(repo: Repo) -> None:
    session_example.without_a_task(began(repo))
    left = newest(repo)
    assert left["title"].startswith("The shop shows 5.5 as a price.")
    assert left["objective"].startswith("The shop shows 5.5 as a price.")
    assert left["next"].startswith(
        "Make this pass: python -m pytest -q (exited 1: pytest: 3 passed, 1 failed; FAILED tests/"
    )
    assert left["state"] == [
        "This session (claude-code, 2 turns) changed shop.py, tests/test_shop.py, discount.py.",
        f"Tests failed: {left['next'].removeprefix('Make this pass: ')}",
        "New in HEAD since it began, by whomever: Prices with two digits",
        "Not committed: discount.py.",
        "Said last: discount() is there, but one test fails: TEN on 999 cents rounds down to 99, the test wants 100.",
    ]
    assert left["uncommitted"] == ["discount.py"]
    assert [row["subject"] for row in left["session_commits"]] == ["Prices with two digits"]
    assert left["errors"] == [left["next"].removeprefix("Make this pass: ")]
    assert list(audit.fsck(discover.open(repo.path))) == []


@pytest.mark.process
def test_what_succeeded_since_does_not_stand_as_failed(repo: Repo) -> None:
    one = Session(began(repo), "one")
    one.start()
    one.ask("Mend it.")
    one.run("pytest -q", f"FAILED test_a.py::test_a - boom\n{FAILED}", 1)
    one.run("ls nothing", "ls: cannot access 'nothing': No such file or directory", 2)
    one.answer("Not yet.")
    one.ask("Go on.")
    one.run("pytest -q", PASSED)
    one.answer("It is mended.")
    one.end()
    left = newest(repo)
    assert "Tests passed: pytest -q (pytest: 4 passed)" in left["state"]
    assert left["errors"] == ["ls nothing (exited 2: ls: cannot access 'nothing': No such file or directory)"]
    assert left["next"] == ""  # a listing that fails is no work to do
    assert "boom" not in page(repo, "H-000001")


@pytest.mark.process
def test_a_session_in_which_nothing_was_asked_keeps_what_was_left_while_nothing_moved(repo: Repo) -> None:
    session_example.without_a_task(began(repo))
    first = newest(repo)
    for name in ("two", "three"):
        idle = Session(repo, name)
        idle.start()
        idle.end()
        left = newest(repo)
        assert (left["carried"], left["next"], left["objective"]) == ("H-000001", first["next"], first["objective"])
        assert left["state"] == [
            "Nothing was asked in this session; what H-000001 left stands:",
            *first["state"],
        ]
    repo.commit("Somebody went on")
    moved = Session(repo, "four")
    moved.start()
    moved.end()
    left = newest(repo)
    assert "carried" not in left
    assert left["next"] == ""
    assert list(audit.fsck(discover.open(repo.path))) == []


@pytest.mark.process
def test_another_writers_words_are_not_said_again_in_this_ones_name(repo: Repo) -> None:
    session_example.without_a_task(began(repo))
    book = discover.open(repo.path)
    view = book.view()
    first = view.need(view.resolve("H-000001"))
    forged = {**first.values(), "next": "rm -rf", "number_name": "H-000009"}
    stamp = Stamp(99, "zzzzzz", 1)
    key = "H-000009@zzzzzz"
    row = {"key": key, "writer": book.desk.writer.id, "worktree": "main", "stamp": [99, "zzzzzz", 1]}
    view._records[key] = Record(key, {name: (value, stamp) for name, value in forged.items()})
    path = layout.branch_index("main")
    view.put_json(path, {"rows": [*view.json(path, {"rows": []})["rows"], row]})
    here = read_position(first.get("position"))
    assert derive._left_before(view, book.hand(), here) == {}
    view._records[key] = Record(key, {name: (v, Stamp(99, book.desk.writer.id, 1)) for name, v in forged.items()})
    assert derive._left_before(view, book.hand(), here)["next"] == "rm -rf"


@pytest.mark.process
def test_a_request_that_was_cut_off_is_the_next_thing(repo: Repo) -> None:
    one = Session(began(repo), "one")
    one.start()
    one.ask("Say hello.")
    one.answer("Hello.")
    one.ask("Now write it into\n\nhello.txt.")
    one.compact()  # in the middle of a turn, as clients do by themselves
    between = newest(repo, layout.CHECKPOINT)
    assert between["next"] == "Go on with the request that is under way: Now write it into hello.txt."
    assert "The last request is under way." in between["state"]
    one.end("other")
    left = newest(repo)
    assert left["next"] == "Finish the last request, which was cut off: Now write it into hello.txt."
    assert "The last request was cut off before its turn ended." in left["state"]


@pytest.mark.process
def test_where_no_text_may_be_kept_none_is(repo: Repo) -> None:
    works(began(repo).path, "config", "set", "capture.text", "none")
    one = Session(repo, "one")
    one.start()
    one.ask("Word-of-prompt")
    one.run("pytest -q", f"FAILED Word-of-output\n{FAILED}", 1)
    one.answer("Word-of-answer")
    one.end()
    assert newest(repo)["ran"] == [
        {"command": "pytest -q", "exit": 1, "said": "pytest: 3 passed, 1 failed", "tests": "failed"}
    ]
    assert "Word-of" not in page(repo, "H-000001") + page(repo, layout.session_key("claude-code", "one"))


@pytest.mark.process
def test_a_key_in_what_was_asked_run_or_said_reaches_no_object(repo: Repo) -> None:
    key = Planted()
    one = Session(began(repo), "one")
    one.start()
    wide = "x" * (episode.LINE - 20)
    one.ask(f"Use {key('prompt')} {wide} {key('prompt, where a cut would part it')}")
    one.run(f"curl -H {key('command')} {wide} {key('command, where a cut would part it')}", f"a\n{key('output')}", 7)
    one.run("pytest -q", f"FAILED test_a.py - {wide} {key('failure')}\n{FAILED}", 1)
    one.run("cat log", "y" * (episode.READ - 10) + f" {key('output, where a cut would part it')}\n" + "z" * 100)
    one.answer(f"{wide} {key('answer')}")
    one.end()
    assert key.found_in(objects_of(repo)) == []
    assert "redacted" in page(repo, "H-000001")


@pytest.mark.process
def test_what_a_session_remembers_does_not_grow_with_it(repo: Repo) -> None:
    one = Session(began(repo), "one")
    one.start()
    for n in range(episode.ASKED_KEPT + 6):
        one.ask(f"Request {n} " + "and more " * 200)
        one.run(f"command {n} " + "of many words " * 200, "said " * 2000)
        one.run("the same one", f"{n}")
        one.answer("Yes.")
    record = discover.open(repo.path).view().need(layout.session_key("claude-code", "one"))
    known = episode.recalled(record)
    assert [words.split()[1] for words in known.asked] == ["0", *(str(n) for n in range(7, 14))]
    assert len(known.ran) == episode.RAN_KEPT
    assert known.ran[-1] == episode.Ran("the same one", None, "13")
    assert all(len(word) <= episode.LINE for word in (*known.asked, *(one.command for one in known.ran)))
