"""Reading without a checkout: commits, documents, files, the journal in order, and finding a text."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from gitledger import cli, entries, objects, reading, search, tasks
from gitledger.errors import BadData, NoSuchRecord
from gitledger.ledger import Ledger
from gitledger.model import Finding, Key
from tests.ledgers import again, begin, do, tamper
from tests.sealed import Repo


def run(repo: Repo, *words: str) -> int:
    """A command, in this process."""
    return cli.group.main(["-C", str(repo.path), *words], "gitledger", standalone_mode=False) or 0


def worked(repo: Repo) -> tuple[Ledger, Key]:
    """A ledger with a task, a checkpoint, and a decision that is still in the log."""
    book = begin(repo)
    key = do(book, tasks.add, "Authentication", accept=("logs in",))
    assert key is not None
    do(book, tasks.start, key)
    book.checkpoint()
    do(book, entries.decide, "Sessions are signed cookies", "No server state to lose", key, None)
    return book, key


def joined(repo: Repo, tmp_path: Path) -> tuple[Repo, Ledger]:
    """A second clone that has taken the ledger over and joined it."""
    from gitledger import discover

    other = repo.clone(tmp_path / "clone")
    other.git("branch", "ledger/main", "origin/ledger/main")
    discover.init(str(other.path), "main", None)
    return other, again(other)


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def test_log_lists_every_commit_newest_first_with_its_kind(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book, _ = worked(repo)
    made = book.checkpoint()
    assert run(repo, "log", "--json") == 0
    rows = json.loads(capfd.readouterr().out)["commits"]
    assert [row["commit"] for row in rows] == repo.git("rev-list", "ledger/main").split()
    assert [row["kind"] for row in rows] == ["checkpoint", "checkpoint", "genesis"]
    assert rows[0]["commit"] == made.commit
    assert rows[0]["writer"] == book.desk.writer.id
    run(repo, "log", "--limit", "1")
    shown = capfd.readouterr().out.splitlines()
    assert shown[0].startswith(made.commit[:12])
    assert shown[1] == "… and older ones: gitledger log --limit 5"


def test_trailers_in_the_body_of_a_message_are_not_believed() -> None:
    message = "subject\n\nLedger-Writer: forged\nmore\n\n[skip ci]\n\nLedger-Kind: memory\nLedger-Writer: abcdef\n"
    commit = objects.Commit("0" * 40, (), "a", "a", message)
    assert reading.trailers(commit) == {"Ledger-Kind": "memory", "Ledger-Writer": "abcdef"}


def test_show_of_a_commit_tells_the_events_and_files_that_it_added(
    repo: Repo, capfd: pytest.CaptureFixture[str]
) -> None:
    book, _ = worked(repo)
    made = book.checkpoint()
    run(repo, "show", made.commit[:10], "--json")
    value = json.loads(capfd.readouterr().out)
    assert value["commit"] == made.commit
    assert [event["type"] for event in value["events"]] == ["decision.made", "checkpoint.made"]
    assert made.path in value["added"]
    assert "INDEX.md" in value["changed"] or "DECISIONS.md" in value["changed"]
    told = repo.git("diff", "--name-only", f"{made.commit}^", made.commit).split("\n")
    assert sorted(value["added"] + value["changed"] + value["removed"]) == sorted(told)
    run(repo, "show", made.commit[:10])
    assert "C-000002" in capfd.readouterr().out


def test_a_beginning_that_several_commits_share_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book, _ = worked(repo)
    monkeypatch.setattr(reading, "_HEX", re.compile("[0-9a-f]{0,64}"))
    with pytest.raises(BadData, match="begins several commits"):
        reading.find_commit(book.desk.store, book.tip(), "")
    assert reading.find_commit(book.desk.store, book.tip(), "0" * 40) is None


# ── documents and files ──────────────────────────────────────────────────────────────────────
def test_show_holds_what_no_checkpoint_holds_yet(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book, key = worked(repo)
    do(book, tasks.set_next, key, "Write the login form")
    run(repo, "show", "T-0001")
    assert "Write the login form" in capfd.readouterr().out
    run(repo, "show", "D-0001")
    assert "No server state to lose" in capfd.readouterr().out
    run(repo, "show", "D-0001", "--json")
    assert json.loads(capfd.readouterr().out)["fields"]["why"] == "No server state to lose"


def test_show_of_nothing_says_where_to_look(repo: Repo) -> None:
    worked(repo)
    with pytest.raises(NoSuchRecord, match="gitledger log"):
        run(repo, "show", "nothing")
    with pytest.raises(NoSuchRecord, match="gitledger task list"):
        run(repo, "show", "T-0099")


def test_get_prints_the_exact_bytes_of_every_file_of_the_tip(
    repo: Repo, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    worked(repo)
    for path in repo.git("ls-tree", "-r", "--name-only", "ledger/main").split("\n"):
        run(repo, "get", path)
        assert capfdbinary.readouterr().out.decode() == repo.git("show", f"ledger/main:{path}") + "\n", path


@pytest.mark.parametrize("path", ["../README.md", "tasks/../../x", "/etc/passwd", ".git/config", "a\\b", "tasks//x"])
def test_get_refuses_a_path_that_leaves_the_ledger(repo: Repo, path: str) -> None:
    worked(repo)
    with pytest.raises(BadData, match="no path for a ledger"):
        run(repo, "get", path)


def test_get_names_what_is_near(repo: Repo) -> None:
    worked(repo)
    with pytest.raises(NoSuchRecord, match=r"names like it: PROJECT\.md"):
        run(repo, "get", "PROJECTS.md")
    with pytest.raises(NoSuchRecord, match=r"tasks/00xx is a folder; tasks/00xx holds .*T-0001-authentication/"):
        run(repo, "get", "tasks/00xx")
    with pytest.raises(NoSuchRecord, match="tasks holds names like it: 00xx/"):
        run(repo, "get", "tasks/77xx/none.md")


# ── the journal ──────────────────────────────────────────────────────────────────────────────
def test_the_journal_is_told_in_one_order_whoever_wrote(repo: Repo, tmp_path: Path) -> None:
    _, _ = worked(repo)
    other, second = joined(repo, tmp_path)
    do(second, tasks.add, "From the other clone")
    second.checkpoint()
    faults: list[Finding] = []
    told = [logged.event for logged in reading.journal(again(other), faults)]
    assert faults == []
    assert len({event.writer for event in told}) == 2
    assert [event.stamp for event in told] == sorted(event.stamp for event in told)
    files = [p for p in repo_files(other) if p.startswith("journal/")]
    assert len(told) == sum(len(other.git("show", f"ledger/main:{path}").split("\n")) for path in files)


def repo_files(repo: Repo) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", "ledger/main").split("\n")


def test_json_lines_are_the_journal_s_own_and_pending_ones_say_so(
    repo: Repo, capfd: pytest.CaptureFixture[str]
) -> None:
    worked(repo)
    run(repo, "journal", "--json")
    out = capfd.readouterr().out.splitlines()
    files = sorted(p for p in repo_files(repo) if p.startswith("journal/"))
    journalled = [line for path in files for line in repo.git("show", f"ledger/main:{path}").split("\n")]
    assert out[:-1] == journalled
    last = json.loads(out[-1])
    assert (last["type"], last["pending"]) == ("decision.made", True)
    run(repo, "journal")
    shown = capfd.readouterr().out.splitlines()
    assert [line.endswith("[pending]") for line in shown] == [False] * len(journalled) + [True]


@pytest.mark.parametrize("newest", [0, 1, 2, 3, 5, 100])
def test_the_last_events_are_the_end_of_all_events(repo: Repo, newest: int) -> None:
    book, key = worked(repo)
    for n in range(4):
        do(book, entries.note, f"note {n}", key)
        if n % 2:
            book.checkpoint()
    do(book, entries.note, "pending", key)
    every = [logged.event.id for logged in reading.journal(book, [])]
    some = [logged.event.id for logged in reading.journal(book, [], newest=newest)]
    assert some == every[len(every) - newest :] if newest < len(every) else every
    notes = [x.event.id for x in reading.journal(book, [], reading.Wanted(type="note"))]
    assert len(notes) == 5
    assert [x.event.id for x in reading.journal(book, [], reading.Wanted(type="note"), 2)] == notes[-2:]


def test_events_are_told_by_writer_session_type_and_task(repo: Repo) -> None:
    book, key = worked(repo)
    session = book.start_session("generic", "one")
    do(book, entries.note, "within the session", key)
    do(book, tasks.add, "Another")

    def told(**wanted: str) -> list[str]:
        return [logged.event.type for logged in reading.journal(book, [], reading.Wanted(**wanted))]

    assert told(writer="nobody") == []
    assert told(type="task") == ["task.added", "task.active", "task.added"]
    assert told(type="task.active") == ["task.active"]
    assert told(session=session) == ["session.started", "note.added", "task.added"]
    assert "note.added" in told(task=key)
    assert told(task="T-0002@" + book.desk.writer.id) == ["task.added"]


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_told(repo: Repo) -> None:
    book, _ = worked(repo)
    path = f"journal/{book.desk.writer.id}/00/00/01.jsonl"
    lines = repo.git("show", f"ledger/main:{path}").encode().split(b"\n")
    tamper(book, {path: b"\n".join([lines[0], b"{broken", *lines[1:]]) + b"\n"})
    faults: list[Finding] = []
    told = [logged.event for logged in reading.events(book.desk.store.get, book.tip(), faults)]
    assert [fault.where for fault in faults] == [f"{path} line 2"]
    assert len(told) == len(lines) + 1  # genesis is in segment 0


def test_segments_come_in_the_order_of_their_numbers_and_parts(repo: Repo) -> None:
    book = begin(repo)
    writer = book.desk.writer.id
    names = ["00/00/00", "00/00/00.1", "00/00/00.2", "00/00/00.10", "00/00/ff", "00/01/00", "01/00/00"]
    files = {f"journal/{writer}/{name}.jsonl": b"%d\n" % n for n, name in enumerate(names)}
    shuffled = list(files.items())
    random.Random(7).shuffle(shuffled)
    tamper(
        book, {**dict(shuffled), f"journal/{writer}/00/00/notes.txt": b"x", f"journal/{writer}/zz/00/00.jsonl": b"y"}
    )
    get = book.desk.store.get
    start = reading.writers(get, objects.parse_commit(get(book.tip()).data).tree, [])[writer]
    assert [s.path for s in reading.segments(get, start, writer, [])] == list(files)
    backwards = [s.path for s in reading.segments(get, start, writer, [], newest_first=True)]
    assert backwards == list(files)[::-1]


# ── search ───────────────────────────────────────────────────────────────────────────────────
def test_search_finds_all_words_in_any_case_also_what_is_pending(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    worked(repo)
    run(repo, "search", "SERVER lose", "--json")
    value = json.loads(capfd.readouterr().out)
    assert [(hit["name"], hit["kind"], hit["field"]) for hit in value["hits"]] == [("D-0001", "decision", "why")]
    run(repo, "search", "authentication", "--json", "--kind", "task", "--kind", "decision")
    assert [hit["name"] for hit in json.loads(capfd.readouterr().out)["hits"]] == ["T-0001"]
    run(repo, "search", "server nowhere", "--json")
    assert json.loads(capfd.readouterr().out)["total"] == 0


def test_search_finds_ids_titles_items_and_sessions(repo: Repo) -> None:
    book, _ = worked(repo)
    session = book.start_session("generic", "window-one")
    found = {
        text: [hit.name for hit in search.search(again(repo), again(repo).view(), text, [])]
        for text in ("d-0001", "logs in", "window-one", "test project")
    }
    assert "D-0001" in found["d-0001"]
    assert "T-0001" in found["logs in"]
    assert found["window-one"] == [session]
    assert found["test project"] == ["project"]
    book.end_session(session)
    assert session in [hit.name for hit in search.search(again(repo), again(repo).view(), "window-one", [])]


def test_search_names_how_many_more_there_are(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book, _ = worked(repo)
    for n in range(5):
        do(book, entries.note, f"needle {n}", None)
    run(repo, "search", "needle", "--limit", "2")
    out = capfd.readouterr().out
    assert "N-0005" in out
    assert "N-0003" not in out
    assert "3 more" in out
    assert "--limit 5" in out


def test_search_goes_on_behind_a_damaged_record(repo: Repo) -> None:
    book, _ = worked(repo)
    do(book, entries.note, "needle one", None)
    do(book, entries.note, "needle two", None)
    book.checkpoint()
    tamper(book, {"notes/00xx/N-0001.json": b"{broken"})
    faults: list[Finding] = []
    hits = [hit.name for hit in search.search(book, again(repo).view(), "needle", faults, ("note",))]
    assert hits == ["N-0002"]
    assert [fault.where for fault in faults] == ["N-0001"]


def test_search_keeps_no_record_that_it_has_looked_at(repo: Repo) -> None:
    book = begin(repo)
    for n in range(3):
        do(book, entries.note, f"needle {n}", None)
    book.checkpoint()
    view = book.view()
    assert len(list(search.search(book, view, "needle", []))) >= 3
    assert not any(key.startswith("N-") for key in view._records)


def test_what_is_printed_shows_unseen_characters(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book = begin(repo)
    do(book, entries.note, "needle \x1b[31mred\u202eback", None)
    book.checkpoint()
    for words in (["search", "needle"], ["journal"], ["show", "N-0001"], ["log"], ["show", book.tip()[:10]]):
        run(repo, *words)
        out = capfd.readouterr().out
        assert "\x1b" not in out, words
        assert "\u202e" not in out, words


def test_reading_writes_nothing(repo: Repo) -> None:
    worked(repo)

    def state() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in (repo.path / ".git").rglob("*") if p.is_file()}

    before = state()
    for words in ("log", "show T-0001", "get INDEX.md", "search x", "journal", "fsck", "rebuild --check"):
        run(repo, *words.split())
    assert state() == before
