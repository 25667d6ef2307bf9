"""Texts that are only large: bounded wherever they are kept or shown, and never worth time by their square."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from gitledger import capture, entries, frame, gitdir, ingest, objects, redact, tasks, terminal, wal
from gitledger.clients import READERS, generic
from gitledger.frame import Entry
from gitledger.ledger import Ledger
from gitledger.schema import Config
from gitledger.view import View
from tests.hostile import BIG, unseen
from tests.ledgers import again, begin, do
from tests.sealed import LONG, Repo
from tests.test_hostile_commands import run

EXPANDED = 9
"""Bytes that one character may become where it is written out: `\\u{e0041}`."""


@pytest.fixture
def here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A ledger with an active task, as the present folder."""
    do(begin(repo), tasks.add, "Real", accept=("works",))
    do(again(repo), tasks.start, "T-0001@" + again(repo).desk.writer.id)
    monkeypatch.chdir(repo.path)
    return repo


def log(repo: Repo, payload: object, event: str = "turn") -> None:
    """What a hook does with a payload."""
    place = os.path.join(gitdir.state(str(repo.path / ".git")), "wal", "main")
    data = json.dumps(payload, ensure_ascii=False).encode()
    assert len(data) < capture.LIMIT
    wal.append(place, "generic", event, data, now_ms=again(repo).desk.mint.now_ms(), rand=random.randbytes(10))


def assert_within_budgets(ledger: Ledger) -> None:
    """What a session and a person are shown stays as small as it is promised, and no file passes a blob's limit."""
    config = ledger.desk.config.briefing
    said = run("briefing")
    assert said.status == 0
    assert len(said.out.splitlines()) <= config.lines
    assert len(said.out) <= config.chars + 1
    assert "T-0001" in said.out
    for words in (("status",), ("task", "list"), ("task", "show", "T-0001"), ("log",), ("session", "list")):
        said = run(*words)
        assert said.status == 0
        assert unseen(said.out) == []
    assert len(run("status").out) < 20_000
    rows = Repo(Path.cwd()).git("ls-tree", "-r", "-l", "ledger/main").splitlines()
    assert max(int(row.split()[3]) for row in rows) <= objects.BLOB_LIMIT


# ── what a client sends ──────────────────────────────────────────────────────────────────────
def test_what_a_client_sends_is_bounded_wherever_it_is_kept_and_shown(here: Repo) -> None:
    for name in (
        ("one word of a mebibyte of markup", "newlines", "a pile", "unseen") if LONG else ("newlines", "unseen")
    ):
        text = BIG[name]
        log(here, {"session_id": name, "prompt": text, "answer": text}, "prompt")
        log(here, {"session_id": name, "prompt": "x", "files": [text], "errors": [text]})
        log(here, {"session_id": name, "commands": [{"command": text, "exit": 1, "output": text}], "source": text})
        log(here, {"session_id": text, "cwd": text, "reason": text})
    assert_within_budgets(again(here))
    again(here).checkpoint()
    assert_within_budgets(again(here))
    for row in run("journal", "--json", "--limit", "0").out.splitlines():
        data = json.loads(row)["data"]
        assert len(row) < 12 * ingest.TEXT_LIMIT
        assert len(data.get("prompt", "")) <= Config().capture.limit
        assert len(data.get("answer", "")) <= Config().capture.limit
    assert run("fsck").status == 0
    assert run("verify", "--full").status == 0


def test_the_rules_read_no_more_of_a_text_than_may_be_kept_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    once = redact._redact

    def counted(text: str, known: redact.Known) -> redact.Clean:
        read.append(len(text))
        return once(text, known)

    monkeypatch.setattr(redact, "_redact", counted)
    text = "password: x1 http://a:b@c " * 100_000
    payload = {"session_id": text, "prompt": text, "files": [text], "errors": [text], "source": text}
    for client, event in (("generic", "turn"), ("generic", "start"), ("nobody", "turn"), ("gitledger", "turn")):
        entry = Entry("01a22d27-78fc-7c7c-85de-0039977620c9", frame.at(0), client, event, json.dumps(payload).encode())
        ingest.ingest(View(lambda path: None), [entry], writer="aaaaaa", readers=READERS, config=Config())
    assert max(read) <= ingest.TEXT_LIMIT + 2 * redact.MARGIN


def test_faults_of_a_payload_are_named_up_to_a_number_and_counted_beyond() -> None:
    payload = b'{"session_id": "s1", ' + b",".join(b'"k%d": 1, "k%d": 2' % (n, n) for n in range(5_000)) + b"}"
    entry = Entry("01a22d27-78fc-7c7c-85de-0039977620c9", frame.at(0), "generic", "turn", payload)
    got = ingest.ingest(View(lambda path: None), [entry], writer="aaaaaa", readers=READERS, config=Config())
    faults = got.lines[0][0].data["faults"]
    assert len(faults) == generic.FAULTS_KEPT + 1
    assert faults[-1] == "and 4,980 more"


@pytest.mark.parametrize("part", ["a/", "./", "../", "/", "\u0300/"])
def test_a_folder_of_five_megabytes_is_none_at_once(here: Repo, part: str) -> None:
    """By the square of its size, this would take hours."""
    folder = "/" + part * (4_900_000 // len(part.encode()))
    assert gitdir.find(folder) is None
    found = capture.locate(json.dumps({"cwd": folder}, ensure_ascii=False).encode(), {}, str(here.path))
    assert found is not None
    assert found.top == str(here.path)


# ── what a command is told ───────────────────────────────────────────────────────────────────
TOLD = (
    ("task", "add", "{}", "--goal", "{}", "--accept", "{}", "--area", "{}"),
    ("task", "add", "x", "--goal", "{}"),
    ("task", "next", "x{}"),
    ("task", "edit", "--scope", "{}"),
    ("task", "edit", "--completed", "{}"),
    ("task", "evidence", "--claim", "x{}"),
    ("task", "evidence", "--path", "{}"),
    ("task", "block", "--reason", "x{}"),
    ("decide", "x", "--why", "{}"),
    ("blocker", "open", "x{}"),
    ("question", "ask", "x{}"),
    ("note", "x{}"),
    ("artifact", "add", "{}"),
    ("project", "edit", "--goal", "{}"),
    ("checkpoint", "--reason", "x{}"),
    ("handover", "write", "--summary", "x{}", "--next", "x{}"),
    ("compaction", "allow", "--once", "--reason", "x{}"),
    ("config", "set", "remote.name", "{}"),
    ("show", "x{}"),
    ("get", "x{}"),
    ("trust", "add", "{}"),
    ("init", "--name", "{}"),
    ("-C", "{}", "status"),
    ("--ledger", "x{}", "status"),
    ("x{}",),
)


def test_a_command_refuses_what_is_too_long_in_one_bounded_line(here: Repo) -> None:
    for name in ("one word of a mebibyte of markup", "newlines"):
        for words in TOLD:
            said = run(*(word.format(BIG[name]) for word in words))
            assert said.status in (0, 2, 65, 69, 77, 78), (words, said.err[:300])
            assert said.err.count("\n") <= 1, words
            assert len(said.err) <= EXPANDED * terminal.LONGEST, words
            assert unseen(said.err) == []
            assert said.out.count("\n") < 60, words
    assert_within_budgets(again(here))


@pytest.mark.parametrize("char", ["\n", "\u200b", "`"] if LONG else ["\n", "\u200b"])
def test_the_longest_texts_that_are_kept_leave_every_budget_as_it_is(here: Repo, char: str) -> None:
    text = "x" + char * (tasks.TEXT_LIMIT - 1)
    title = "x" + ("y" if char in "\n\u200b" else char) * (tasks.TITLE_LIMIT - 1)
    for words in (
        ("task", "edit", "--title", title, "--goal", text, "--scope", text, "--non-goals", text),
        ("task", "edit", "--completed", title, "--summary", title),
        ("task", "next", text), ("decide", title, "--why", text), ("note", text), ("project", "edit", "--goal", text),
        *[("blocker", "open", text), ("question", "ask", text)] * 6,
    ):  # fmt: skip
        assert run(*words).status == 0, words[:2]
    assert_within_budgets(again(here))
    again(here).checkpoint()
    assert run("handover", "write", "--summary", title, "--next", text).status == 0
    assert_within_budgets(again(here))
    assert run("fsck").status == 0


def test_a_change_set_of_big_texts_is_refused_whole_and_a_full_one_is_kept(here: Repo) -> None:
    place = here.path / "changes.json"
    for text in BIG.values():
        change = {"source_digest": "x", "ledger_updates": [{"op": "note", "text": text}] * 3, "next_action": text}
        place.write_text(json.dumps(change))
        said = run("checkpoint", "--from", str(place))
        assert said.status == 65
        assert len(said.err) <= EXPANDED * terminal.LONGEST
    updates = [{"op": "note", "text": f"{n}" + "\u200b" * 3_990} for n in range(100)]
    digest = f"sha1:{again(here).tip()}"
    place.write_text(json.dumps({"source_digest": digest, "ledger_updates": updates, "handoff_summary": "\n" * 8_000}))
    said = run("checkpoint", "--from", str(place))
    assert said.status == 0, said.err
    assert_within_budgets(again(here))


# ── names ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("char", ["x", "\U000e0041"])
def test_names_as_long_as_the_system_lets_them_be_are_shown_within_every_budget(here: Repo, char: str) -> None:
    longest = "x" + char * (240 // len(char.encode()))
    here.git("checkout", "-q", "-b", "/".join([longest] * 8))
    deep = here.path
    for _ in range(10):
        deep = deep / longest
        deep.mkdir()
        (deep / f"a{longest}").write_text("x")
    assert_within_budgets(again(here))
    again(here).checkpoint()
    assert run("handover", "write", "--summary", "long names").status == 0
    assert_within_budgets(again(here))
    assert run("handover", "resolve").status == 0


def test_only_the_first_line_of_a_text_is_read_for_its_title() -> None:
    assert entries._first("x" * 5_000_000) == "x" * 119 + "…"
    assert entries._first("one\n" * 1_000_000) == "one"
