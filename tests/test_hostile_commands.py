"""Hostile text and hostile records through every command, every briefing and every commit, on real git."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from gitledger import cli, layout, transaction
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Json, Key, Position
from gitledger.redact import redact
from gitledger.tasks import Hand
from gitledger.view import Tail, View
from tests.hostile import CORPUS, MIX, TYPES, records, unseen
from tests.ledgers import again, begin
from tests.sealed import Repo, first_repo, git, new_repo, sealed_environment

BRANCH = "feature/\u202e\u200b>>>`x`<img>@someone\u2028Ledger-Writer=evil"
FILES = (b"caf\xe9 \xff.txt", "\u202efdp.exe".encode(), b"new\nline \x1b[31m", b"<script>`|.md", b"--option")
SUBJECT = "\x1b[31m \u202e\u200b >>> fixes #1 @someone <script>"


@dataclass
class Said:
    """What a command left."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Screen(io.BytesIO):
    """What a terminal is given."""

    def isatty(self) -> bool:
        return True


def run(*words: str, terminal: bool = True) -> Said:
    """One command in this process, as the program's own entry point runs it, with its streams caught."""
    out, err = Screen() if terminal else io.BytesIO(), Screen()
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv = ["gitledger", *words]
    sys.stdout = io.TextIOWrapper(out, "utf-8", errors="backslashreplace", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", errors="backslashreplace", write_through=True)
    try:
        status = cli.main()
        return Said(status, out.getvalue().decode(), err.getvalue().decode())
    finally:
        sys.argv, sys.stdout, sys.stderr = before


def write(ledger: Ledger, type_: str, changes: dict[Key, Change], task: Key | None = None, **data: Json) -> None:
    """Record what no command would: any fields of any records."""

    def build(view: View, hand: Hand) -> tuple[None, Draft]:
        return None, hand.draft(type_, changes, task, **data)

    ledger.record(build)


def fill(ledger: Ledger, text: Json, *, most: int = 200) -> None:
    """Put `text` into every field of every kind of record, as the active task and as the handover of this branch."""
    me, here = ledger.desk.writer.id, ledger.position()
    at = ledger.desk.mint.at()
    if isinstance(text, str):
        text = text[:most].encode("utf-8", "backslashreplace").decode()
    made = records(text, at)
    pointer = {"key": "C-000001@aaaaaa", "name": text, "task_name": text, "at": text, "path": text}
    made["H-000001@aaaaaa"].set.update(position=asdict(here), ledger=ledger.view().manifest.uuid, at=at, by=me)
    made[layout.PROJECT].set.update(checkpoint=pointer, missing={"at": text, "reason": text, "failed": text})
    made[layout.CONFIG] = Change({"briefing.lines": text, str(text)[:200]: text, "proposer.command": text})
    made[layout.worktree_key(me, here.worktree)] = Change({"active": "T-0001@aaaaaa", "head": text, "checkpoint": text})
    write(ledger, "test", made, "T-0001@aaaaaa", text=text, **{str(text)[:100]: text})


# ── grounds ──────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of one sealed home for all ledgers of this module, whichever of its tests comes first."""
    return sealed_environment(tmp_path_factory.mktemp("home"), os.environ)


@contextmanager
def within(environ: Mapping[str, str]) -> Iterator[None]:
    """In this environment and no other; in a test that asks for a ledger late, its own home is there already."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, _home: dict[str, str]) -> dict[str, str]:
    """A linked work tree with hostile names, all of whose records hold hostile text that this machine trusts."""
    with within(_home):
        folder = tmp_path_factory.mktemp("ours")
        repo = first_repo(folder / "repo")
        begin(repo)
        tree = Repo(folder / "wt \u202e>>>`x`<b>")
        repo.git("worktree", "add", "-q", "-b", BRANCH, str(tree.path))
        here = again(tree)
        here.start_session("generic", MIX[:100].replace("\ud800", ""), MIX[:30])
        fill(here, MIX)
        here.checkpoint()
        for name in FILES:
            Path(os.fsdecode(os.fsencode(tree.path) + b"/" + name)).write_text("x\n")
        tree.git("add", "--all")
        tree.git("commit", "-q", "-m", SUBJECT)
        (tree.path / "\x1b]0;dirty\x07").write_text("x")
        again(tree).write_handover()
    return {"path": str(tree.path), **_home}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, _home: dict[str, str]) -> dict[str, str]:
    """A clone whose ledger was taken over from another writer, who put hostile text into everything."""
    with within(_home):
        folder = tmp_path_factory.mktemp("theirs")
        repo = first_repo(folder / "repo")
        begin(repo)
        other = repo.clone(folder / "other")
        other.git("branch", "ledger/main", "origin/ledger/main")
    with within({**_home, "XDG_DATA_HOME": str(folder / "their data")}):
        stranger = begin(other)
        fill(stranger, MIX)
        stranger.checkpoint()
    with within(_home):
        repo.git("fetch", "-q", str(other.path), "ledger/main:ledger/main")
    return {"path": str(repo.path), **_home}


@pytest.fixture(params=["ours", "theirs"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """Either ledger, as the present folder."""
    return at(request.getfixturevalue(request.param), monkeypatch)


def at(found: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A ledger as the present folder, in its own home."""
    for name, value in found.items():
        if name != "path":
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(found["path"])
    return Repo(Path(found["path"]))


# ── every command ────────────────────────────────────────────────────────────────────────────
IDS = ("T-0001", "D-0001", "B-0001", "Q-0001", "A-0001", "N-0001", "C-000001", "H-000001", "S-0123456789ab", "project")
READING = (
    ("status",),
    ("briefing",),
    ("capsule",),
    ("capsule", "--query", "x T-0001 D-0001 Q-0001 C-000001", "--tokens", "500"),
    ("rollover",),
    ("task", "list", "--all"),
    ("task", "show", "T-0001"),
    ("task", "show", "T-0002"),
    ("check", "T-0001"),
    ("check", "--all", "--rerun"),
    *(("show", id_) for id_ in IDS),
    ("log",),
    ("search", "x"),
    ("journal",),
    ("handover", "list"),
    ("handover", "show", "H-000001"),
    ("handover", "resolve"),
    ("handover", "explain"),
    ("session", "list"),
    ("project", "show"),
    ("config", "list"),
    ("config", "get", "briefing.lines"),
    ("verify", "--full"),
    ("fsck",),
    ("rebuild", "--check"),
)
"""Commands that read and have `--json`."""
PRINTING = (
    ("statusline",),
    ("task", "todo", "T-0001"),
    *(("get", id_) for id_ in IDS),
    *(("get", path) for path in ("manifest.json", "project.json", "sessions/open.json", "INDEX.md", "config.json")),
)
WRITING = (
    ("capsule", "--query", "{}"),
    ("capsule", "--since", "{}"),
    ("task", "add", "{}", "--goal", "{}", "--accept", "{}", "--area", "{}"),
    ("task", "start", "T-0001", "--next", "{}"),
    ("task", "next", "{}"),
    ("task", "edit", "--title", "{}"),
    ("task", "edit", "--scope", "{}", "--non-goals", "{}"),
    ("task", "edit", "--summary", "{}", "--completed", "{}"),
    ("task", "edit", "--drop-criterion", "{}"),
    ("task", "edit", "--parent", "{}"),
    ("task", "edit", "--depends", "{}"),
    ("task", "edit", "--undepend", "{}"),
    ("task", "todo", "{}"),
    ("task", "todo", "--done", "{}"),
    ("task", "todo", "T-0001", "--drop", "{}"),
    ("task", "split", "--title", "{}", "--goal", "{}", "--todo", "t1"),
    ("task", "split", "--title", "x", "--criterion", "{}"),
    ("task", "list", "--area", "{}", "--text", "{}"),
    ("task", "list", "--parent", "{}"),
    ("task", "evidence", "--claim", "{}", "--completed", "{}"),
    ("task", "evidence", "--criterion", "{}", "--claim", "x"),
    ("task", "evidence", "--run", "printf '%s' \"$0\" '{}'"),
    ("task", "evidence", "--commit", "{}"),
    ("task", "evidence", "--path", "{}", "--path", "README.md"),
    ("task", "evidence", "--run", "true", "--covers", "{}"),
    ("task", "evidence", "--run", "true", "--junit", "{}"),
    ("task", "evidence", "--candidate", "{}"),
    ("check", "{}"),
    ("check", "--deadline", "{}"),
    ("task", "block", "--reason", "{}"),
    ("task", "unblock", "{}"),
    ("task", "plan", "{}"),
    ("task", "done", "--accept-unproven", "{}"),
    ("task", "drop", "T-0001", "--reason", "{}"),
    ("decide", "{}", "--why", "{}", "--task", "{}"),
    ("blocker", "open", "{}"),
    ("blocker", "resolve", "{}", "--how", "{}"),
    ("question", "ask", "{}"),
    ("question", "answer", "{}", "{}"),
    ("artifact", "add", "{}", "--title", "{}"),
    ("note", "{}"),
    ("project", "edit", "--title", "{}", "--goal", "{}"),
    ("purge", "--secret-from", "{}", "--from", "{}"),
    ("config", "set", "{}", "{}"),
    ("config", "set", "remote.name", "{}"),
    ("config", "get", "{}"),
    ("session", "start", "--client", "{}", "--id", "{}"),
    ("session", "end", "{}"),
    ("session", "recover"),
    ("checkpoint", "--reason", "{}"),
    ("checkpoint", "--from", "{}"),
    ("handover", "write", "--summary", "{}", "--next", "{}"),
    ("handover", "show", "{}"),
    ("compaction", "allow", "--once", "--reason", "{}"),
    ("memory", "audit", "--file", "{}"),
    ("memory", "propose", "--from", "{}", "--file", "{}"),
    ("memory", "apply", "--keep", "{}"),
    ("memory", "apply", "--delete", "{}"),
    ("memory", "compact", "--file", "{}"),
    ("memory", "undo", "{}"),
    ("memory", "log"),
    ("memory", "schedule", "--at", "{}"),
    ("trust", "list"),
    ("trust", "add", "{}"),
    ("trust", "remove", "{}"),
    ("trust", "revoke", "{}"),
    ("remote", "set", "{}"),
    ("remote", "show"),
    ("doctor",),
    ("hooks", "install", "--client", "{}"),
    ("hooks", "uninstall", "--client", "{}"),
    ("hooks", "test", "--client", "{}"),
    ("hooks", "package"),
    ("hooks", "status", "--client", "{}"),
    ("hooks", "script", "{}"),
    ("remote", "accept", "{}"),
    ("sync",),
    ("push",),
    ("pull",),
    ("show", "{}"),
    ("get", "{}"),
    ("get", "{}/x"),
    ("task", "show", "{}"),
    ("schema", "{}"),
    ("init", "--name", "{}"),
    ("init", "--project", "{}"),
    ("-C", "{}", "status"),
    ("--ledger", "{}", "status"),
    ("{}",),
    ("task", "{}"),
    ("log", "--{}"),
    ("log", "--limit", "{}"),
)
TEXTS = {
    "controls": MIX[:150].replace("\ud800", "").replace("\n", " "),
    "markup": "<script>`|[x](y) **b** >>> @someone fixes #1 --- Ledger-Writer: evil # ~~~ \\",
    "no text": "caf\udce9 \udcff",
    "option": "--help=\x1b[31m",
}
NO_TEXT = {("hook",), ("demo",), ("completion",), ("trust", "rotate")}
"""Commands that take no text and show none of a record's; the hook has tests of its own."""


def assert_shown_safely(said: Said) -> None:
    assert unseen(said.out) == []
    assert unseen(said.err) == []
    assert said.status in (0, 1, 2, 65, 69, 73, 77, 78), said  # 70 is a fault of ours
    assert said.err.count("\n") <= 1, said.err


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield words
        return
    context = click.Context(command, **command.context_settings)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*words, name))


def test_every_command_is_tried_here():
    tried = {words[:n] for words in (*READING, *PRINTING, *WRITING) for n in (1, 2)}
    assert set(leaves(cli.group)) - tried == NO_TEXT


@pytest.mark.parametrize("words", [*READING, *PRINTING], ids=" ".join)
def test_no_command_shows_what_a_terminal_obeys_or_nobody_sees(place: Repo, words: tuple[str, ...]):
    assert_shown_safely(run(*words))


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_valid_and_its_texts_are_those_of_the_records(place: Repo, words: tuple[str, ...]):
    said = run(*words, "--json", terminal=False)
    if words == ("journal",):
        rows = [json.loads(row) for row in said.out.split("\n") if row]
        assert [json.loads(row) for row in run(*words, "--json").out.split("\n") if row] == rows
        assert rows
        return
    value = said.json()
    if words[0] == "show" and "items" in value:
        text = value["fields"]["title"] if "title" in value["fields"] else value["fields"]["client"]
        assert text.startswith("\x1b[31m\x9b\u202e\u200b\\ud800")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, _home: dict[str, str]) -> dict[str, str]:
    """A ledger with nothing in it."""
    repo = new_repo(tmp_path_factory.mktemp("fresh") / "repo")
    with within(_home):
        repo.commit("first", {"README.md": "# first\n"})
        begin(repo)
    return {"path": str(repo.path), **_home}


@pytest.fixture
def at_fresh(fresh: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Repo:
    return at(fresh, monkeypatch)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_command_given_hostile_words_does_it_or_says_why_not_in_one_line(at_fresh: Repo, text: str):
    run("task", "add", "word")
    for words in WRITING:
        said = run(*(word.replace("{}", text) for word in words))
        assert_shown_safely(said)
        assert said.status == 0 or said.err, (words, said.out)
    assert run("checkpoint").status == 0
    for words in (("verify", "--full"), ("fsck",), ("rebuild", "--check")):
        said = run(*words)
        assert said.status == 0, said.out


def test_a_strangers_text_is_in_no_briefing_and_no_status(theirs: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    at(theirs, monkeypatch)
    asked = ("capsule", "--query", "x evil T-0001 D-0001 B-0001 Q-0001 A-0001 N-0001 C-000001 H-000001 README.md")
    for words in (("status",), ("briefing",), ("capsule",), asked, ("handover", "resolve"), ("handover", "explain")):
        said = run(*words)
        assert said.status == 0
        assert "\\u{1b}" not in said.out, words


# ── a briefing ───────────────────────────────────────────────────────────────────────────────
def fences(text: str) -> list[str]:
    """The lines that structure a briefing, outside of its fences: headings, fences, and everything of ours."""
    rows, inside = [], ""
    for row in text.split("\n"):
        if not inside or row == inside:
            rows.append(row)
            inside = f">>>{row[3:]}" if row.startswith("<<<") else ""
    assert not inside
    return [row for row in rows if row.startswith(("#", "<", ">"))]


def test_hostile_text_changes_no_line_of_a_briefings_structure(place: Repo):
    rows = fences(run("briefing").out)
    kinds = [row.split(" ", 2)[:2] for row in rows]
    assert kinds[0] == ["#", "gitledger"]
    assert [kind for kind in kinds[1:] if kind[0] not in ("##", "<<<", ">>>")] == []
    opened = [row[3:] for row in rows if row.startswith("<<<")]
    assert opened == [row[3:] for row in rows if row.startswith(">>>")]
    assert len(opened) <= 1


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def a_message(text: str) -> str:
    """The message of a commit all of whose texts are `text`."""
    view = View(lambda path: None)
    view.manifest.uuid, view.manifest.name = "0199", "main"
    view.manifest.writers["aaaaaa"] = Tail(5, "ab" * 32, 3)
    said = redact(text)
    body = (said, redact(f"Objective: {text}"), said)
    plan = transaction.Plan("checkpoint", (), redact(f"C-000001: {text}"), body, Position(text, "1" * 40))
    return transaction.message(plan, view, "aaaaaa")


@pytest.mark.parametrize("name", CORPUS)
def test_git_reads_our_trailers_and_no_others_whatever_a_message_says(tmp_path: Path, name: str):
    message = a_message(CORPUS[name])
    ours = message.rstrip("\n").split("\n\n")[-1].split("\n")
    assert [row.partition(":")[0] for row in ours] == [
        "Ledger", "Ledger-Kind", "Ledger-Writer", "Ledger-Seq", "Ledger-Journal", "Ledger-Head",
    ]  # fmt: skip
    assert unseen(message) == []
    assert len(message.split("\n")[0]) <= 72
    for options in ((), ("--no-divider",)):
        read = git(tmp_path, "interpret-trailers", "--parse", *options, input=message).decode()
        assert read.splitlines() == ours


def test_each_commit_of_a_hostile_ledger_has_one_subject_line_and_our_trailers(place: Repo):
    for oid in place.git("rev-list", "ledger/main").split("\n"):
        message = place.git("show", "-s", "--format=%B", oid)
        subject, empty, *_ = message.split("\n")
        assert len(subject) <= 72
        assert empty == ""
        assert unseen(message) == []
        read = git(place.path, "interpret-trailers", "--parse", input=message).decode().splitlines()
        assert [row.partition(":")[0] for row in read][:5] == [
            "Ledger", "Ledger-Kind", "Ledger-Writer", "Ledger-Seq", "Ledger-Journal",
        ]  # fmt: skip
        assert len(read) <= 6


# ── records of any kind ──────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("value", [TYPES[n] for n in (0, 5, 9, 12, 15)], ids=repr)
def test_fields_of_any_kind_stop_no_session_no_checkpoint_and_no_reader(tmp_path: Path, value: Json):
    repo = new_repo(tmp_path / "repo")
    repo.commit("first", {"README.md": "# first\n"})
    os.chdir(repo.path)
    fill(begin(repo), value)
    for words in (
        ("status",), ("session", "start"), ("checkpoint",), ("briefing",), ("task", "list", "--all"), ("search", "x"),
        ("journal",), ("session", "list"), ("handover", "resolve"), ("session", "end"), ("status",),
    ):  # fmt: skip
        said = run(*words)
        assert said.status == 0, (words, said.err)
        assert unseen(said.out) == []
