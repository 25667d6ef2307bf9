"""Secrets stay out of git: in every field of every command, payload, branch and file name, whatever fails."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import cli, ingest, redact, replacing, scanner, schema, secrets_rules, wal
from gitledger.errors import Blocked, Unscanned
from gitledger.ledger import Ledger
from gitledger.model import Draft
from gitledger.redact import Clean, CleanBytes, bounded, ending, shortened, within
from tests.data import secrets_development, secrets_report
from tests.ledgers import again, begin, do
from tests.sealed import Repo
from tests.secrets_made import checked, leaks, made
from tests.test_hostile_commands import run

PACKAGE = Path(__file__).parent.parent / "gitledger"
SETS = (secrets_development, secrets_report)


def figma(seed: str) -> str:
    """A token that the built-in rules do not know and the scanner does."""
    return "fi" + "gd_" + made(seed, 20) + "-" + made(seed + "b", 19)


def objects_of(repo: Repo) -> bytes:
    """Every object of the repository, whether or not anything reaches it, unpacked, in one piece."""
    out = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"],
        cwd=repo.path,
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout
    assert len(out) > 1_000
    return out


@dataclass
class Planted:
    """Made-up keys, one for each place, and where each was put."""

    where: dict[str, str] = field(default_factory=dict)

    def __call__(self, place: str) -> str:
        self.where[place] = checked("gh" + "p_", place)
        return self.where[place]

    def found_in(self, data: bytes) -> list[str]:
        """The places whose key stands in `data`: any twelve characters of it in a row, in upper or lower case."""
        text = data.decode("utf-8", "replace").lower()
        return [place for place, key in self.where.items() if leaks(text, key.removeprefix("gh" + "p_").lower())]


# ── nothing reaches git ──────────────────────────────────────────────────────────────────────
def option_words() -> Iterator[tuple[str, str]]:
    """Every command with each of its parameters that takes free text."""

    def walk(words: str, command: click.Command) -> Iterator[tuple[str, str]]:
        if isinstance(command, click.Group):
            ctx = click.Context(command, **command.context_settings)
            for name in command.list_commands(ctx):
                inner = command.get_command(ctx, name)
                assert inner is not None
                yield from walk(f"{words} {name}".strip(), inner)
            return
        for parameter in command.params:
            text = isinstance(parameter.type, (click.types.StringParamType, click.types.Path, click.types.File))
            if text and parameter.name:
                yield words, parameter.name

    yield from walk("", cli.group)


def test_a_key_in_any_field_of_any_command_reaches_no_object(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    key = Planted()
    given: set[tuple[str, str]] = set()
    monkeypatch.chdir(repo.path)
    branch, subject, name = key("branch"), key("commit subject"), key("file name")
    repo.git("checkout", "-q", "-b", f"fix-{branch}")

    def do_(spelled: str, status: int = 0, **texts: str | list[str]) -> str:
        """Run a command with a key in each field that is named; a field's option is named as the parameter is."""
        argv = spelled.split(" ")
        command = cli.group
        for word in argv:
            if not isinstance(command, click.Group):
                break
            inner = command.get_command(click.Context(command, **command.context_settings), word)
            if inner is None:
                break
            command = inner
        names = (n for n, word in enumerate(argv) if word.startswith("-") or not word.islower())
        spoken = " ".join(argv[: next(names, len(argv))])
        for parameter in command.params:
            if parameter.name not in texts:
                continue
            given.add((spoken, parameter.name))
            text = texts[parameter.name]
            if isinstance(parameter, click.Option):
                argv += [max(parameter.opts, key=len), str(text)]
            else:
                argv += [str(text)] if isinstance(text, str) else text
        done = run(*argv)
        assert done.status == status, (argv, done)
        return done.out

    do_("init", project=f"Shop {key('project title')}")
    do_(
        "task add",
        title=f"Rotate {key('task title')}",
        goal=key("goal"),
        accept=key("criterion"),
        area=key("area"),
        todos=key("to-do"),
    )
    do_("task todo", words=["T-0001", f"Then {key('another to-do')}"])
    do_("task split T-0001 --todo t1", title=key("title of a part"), goal=key("goal of a part"))
    do_("task add", title="x" * 100 + f" {key('title, where a cut would part it')}")
    do_("task start T-0001", next_action=key("start next"))
    do_(
        "task edit T-0001",
        title=key("new title"), goal=key("new goal"), scope=key("scope"), non_goals=key("non-goals"),
        area=key("new area"), summary=key("summary"), accept=key("new criterion"), completed=key("completed"),
    )  # fmt: skip
    do_("task next", words=["T-0001", key("next action")])
    do_("task block T-0001", reason=key("blocked"))
    do_("task unblock T-0001")
    repo.write({f"{name}.txt": "x", "plain.txt": key("content of a file that only stands in the work tree")})
    do_("task evidence T-0001", claim=key("claim"), completed=key("completed work"))
    do_("task evidence T-0001", run_command=f"echo {key('output')}")
    do_("task evidence T-0001", paths=f"{name}.txt")
    do_("decide", title=key("decision"), why=key("why"))
    do_("blocker open", text=key("blocker"))
    do_("blocker resolve B-0001", how=key("resolution"))
    do_("question ask", text="y" * 100 + " " + key("question, where a cut would part it"))
    do_("question answer Q-0001", text=key("answer"))
    do_("artifact add", path=f"https://example.org/{key('artifact address')}", title=key("artifact title"))
    do_("note", text=key("note"))
    do_("project edit", title=key("project"), goal=key("project goal"), description=key("description"))
    session = do_("session start", client="shell", session=key("session id")).strip()
    do_("checkpoint", reason=key("reason"))
    repo.git("commit", "-q", "--allow-empty", "-m", f"Work on {subject}")
    do_("handover write", summary=key("handover summary"), next_action=key("handover next"))
    do_(f"session end {session}", reason=key("end reason"))
    do_("compaction allow --once", reason=key("compaction"))
    do_("task start T-0001")
    do_("task drop T-0002", reason=key("drop reason"))
    do_("task done T-0001", accept_unproven=key("unproven"))
    do_("checkpoint")

    assert key.found_in(objects_of_ledger(repo)) == []
    assert f"fix-{branch}" in repo.git("branch"), "the user's own branch keeps its name"
    assert missing_places(given) == set(), "give these a key above, or say here why nothing of them is written"


def missing_places(given: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The places for text that no test here fills, and of which something may be written."""
    ids = {
        "id", "task", "parent", "depends", "supersedes", "drop_criterion", "criterion", "commit", "who", "since",
        "candidate", "undepend", "done", "drop", "criteria", "todos",
    }  # fmt: skip
    reading = {
        "task list",
        "show",
        "get",
        "search",
        "capsule",
        "journal",
        "task show",
        "handover show",
        "schema",
        "config get",
        "demo",
    }
    others = {
        ("init", "name"): "a test of its own: it is refused",
        ("init", "expect"): "compared with a fingerprint",
        ("trust add", "expect"): "compared with a fingerprint",
        ("init", "remote"): "a remote, which stays in this clone; an address with a password in it is refused",
        ("remote set", "remote"): "a remote, which stays in this clone; an address with a password in it is refused",
        ("trust rotate", "to"): "a key file's name, which stays in this clone",
        ("session start", "client"): "a word; it and the session's id go through the same draft",
        ("hook", "client"): "a word of a-z, 0-9 and -, or it is refused; it goes through the same draft as the payload",
        ("checkpoint", "source"): "a test of its own: every field of a change set",
        ("config set", "key"): "one of those there are",
        ("config set", "value"): "local, or held to a short list where it goes into the ledger",
        ("config set", "where"): "one of three",
        ("purge", "secret_from"): "a file's name, which is not recorded",
        ("purge", "start"): "a commit",
        ("memory audit", "file"): "one of those that are configured; what a memory file holds has a test of its own",
        ("memory compact", "file"): "one of those that are configured",
        ("memory propose", "file"): "one of those that are configured",
        ("memory propose", "source"): "a file's name, which is not recorded",
        ("memory apply", "keep"): "numbers",
        ("memory apply", "delete"): "numbers",
        ("memory schedule", "at"): "a time of day",
        ("task evidence", "covers"): "a path that looks like a secret is refused, in a test of its own",
        ("task evidence", "junit"): "a file's name, which is not recorded",
    }
    return {
        (words, name)
        for words, name in option_words()
        if (words, name) not in given and name not in ids and words not in reading and (words, name) not in others
    }


def objects_of_ledger(repo: Repo) -> bytes:
    """Every object but those that the user's own branches reach, which are the user's; and what the reflogs say."""
    own = {line.split(" ")[0] for line in repo.git("rev-list", "--objects", "HEAD", "main").splitlines()}
    listed = repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").splitlines()
    wanted = "".join(f"{oid}\n" for oid in listed if oid not in own)
    out = subprocess.run(
        ["git", "cat-file", "--batch"],
        cwd=repo.path,
        input=wanted.encode(),
        capture_output=True,
        check=True,
        timeout=300,
    ).stdout
    assert len(out) > 2_000
    return out + repo.git("log", "-g", "--format=%gD %gs", "ledger/main").encode()


def test_a_key_in_any_field_of_a_payload_reaches_no_object_and_only_the_raw_log(repo: Repo):
    book = begin(repo)
    key = Planted()
    payload = {
        "session_id": key("session"),
        "cwd": f"/srv/{key('cwd')}",
        "prompt": f"use {key('prompt')} now",
        "answer": "z" * 1_950 + " " + key("answer, where a cut would part it"),
        "files": [f"src/{key('file')}.py"],
        "commands": [{"command": f"curl -H {key('command')}", "exit": 0, "output": key("output")}],
        "errors": [key("error")],
        "reason": key("reason"),
        "source": key("source"),
        key("a key of the payload"): 1,
    }
    for event in ("start", "prompt", "tool", "turn", "compact", "end"):
        done = hook(repo, event, json.dumps(payload).encode())
        assert done.returncode == 0, done.stderr
    bad = key("a payload that is no JSON")
    hook(repo, "turn", f"{{'token': {bad}".encode())
    hook(repo, "turn", b"\xff" + b" a" * 15_000 + b" " + key("far inside of one").encode())
    [log] = Path(book.desk.home.wal).glob("current.wal")
    assert key.found_in(log.read_bytes()), "the log is the bytes as they came"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700
    again(repo).checkpoint()
    assert list(log.parent.iterdir()) == [], "it goes once its lines are in the ledger"
    everything = objects_of(repo)
    assert key.found_in(everything) == []
    assert b"[redacted:github]" in everything


def hook(repo: Repo, event: str, payload: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gitledger", "hook", "generic", event],
        cwd=repo.path,
        input=payload,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        timeout=300,
        check=False,
    )


def test_a_key_in_any_field_of_a_change_set_reaches_no_object(repo: Repo, tmp_path: Path):
    from gitledger import changeset

    book = begin(repo)
    do(book, tasks_add, "Rotate the keys")
    key = Planted()
    updates = [
        {"op": "task_add", "title": key("title"), "goal": key("goal"), "accept": [key("accept")], "area": key("area")},
        {"op": "task_set", "task": "T-0001", "title": key("new title"), "goal": key("new goal"), "scope": key("scope"),
         "non_goals": key("non-goals"), "area": key("new area"), "summary": key("summary"), "next": key("next")},
        {"op": "complete", "task": "T-0001", "text": key("work"), "evidence": {"command": key("command"), "exit": 0}},
        {"op": "decide", "title": key("decision"), "why": key("why")},
        {"op": "blocker", "task": "T-0001", "text": key("blocker")},
        {"op": "resolve", "blocker": "B-0001", "text": key("resolution")},
        {"op": "question", "text": key("question")},
        {"op": "answer", "question": "Q-0001", "text": key("answer")},
        {"op": "artifact", "path": "README.md", "title": key("artifact")},
        {"op": "note", "text": "w" * 110 + " " + key("note, where a cut would part it")},
        {"op": "task_add", "title": "Another", "todos": [key("to-do")], "depends": ["T-0001"]},
        {"op": "task_set", "task": "T-0001", "accept": [key("one more criterion")]},
        {"op": "todo", "task": "T-0001", "add": [key("one more to-do")]},
    ]  # fmt: skip
    document = {
        "source_digest": book.tip(),
        "ledger_updates": updates,
        "handoff_summary": "s" * 110 + " " + key("handoff, where a cut would part it"),
        "next_action": key("next action"),
    }
    changeset.checkpoint(book, json.dumps(document).encode(), "manual")
    assert key.found_in(objects_of(repo)) == []


def tasks_add(view, hand, title):  # type: ignore[no-untyped-def]
    from gitledger import tasks

    return tasks.add(view, hand, title)


def test_what_a_command_says_is_clean_before_it_is_logged(repo: Repo):
    from gitledger import entries

    book = begin(repo)
    key = Planted()
    do(book, entries.note, f"the key is {key('note')}", None)
    [entry] = wal.pending(book.desk.home.wal)[0]
    assert b"[redacted:github]" in entry.payload
    assert not key.found_in(entry.payload)


def test_a_name_of_a_ledger_that_looks_like_a_secret_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(repo.path)
    done = run("init", "--name", "sk" + "-" + made("name", 40, "abcdefghij0123456789"))
    assert (done.status, "looks like a secret" in done.err) == (65, True)
    assert "ledger/" not in repo.git("branch", "--all")


# ── nothing is cut before it is read ─────────────────────────────────────────────────────────
@pytest.mark.parametrize("before", range(60, 141, 4))
def test_no_cut_parts_a_key_from_what_shows_it(before: int):
    token = "gl" + "pat-" + made("cut", 20)
    text = "x" * before + f" {token} and more" + "y" * 40_000
    assert not leaks(within(text, 120), token)
    assert not leaks(ending(text[::-1].replace(token[::-1], token), 40_100 - before, cut=False), token)
    assert not leaks(shortened(redact.redact(text), 120), token)


def test_a_long_text_is_read_far_enough_to_know_a_key_that_begins_before_the_cut():
    token = "gh" + "p_" + made("far", 36)
    for at in (1_960, 1_999, 2_000, 10_000, 18_300, 18_380):
        text = "a " * (at // 2) + token + " b" * 40_000
        kept = within(text, 2_000)
        assert len(kept) <= 2_000
        assert not leaks(kept, token)
        assert "characters cut]" in kept
    many = " ".join("-----" + f"BEGIN PRIVATE KEY-----\n{made(str(n), 800)}" for n in range(40)) + made("rest", 30_000)
    assert made("rest", 30_000)[:12] not in within(many, 2_000), "what follows so many keys may be the rest of one"


def test_the_end_of_an_output_does_not_begin_with_the_rest_of_a_key():
    rest = made("rest of a key", 600)
    assert not leaks(ending(rest + " done " * 100, 2_000, cut=True), rest[:580])


# ── disguises ────────────────────────────────────────────────────────────────────────────────
TOKEN = "gh" + "p_" + made("disguise", 36)
UNSEEN = st.sampled_from(
    ["\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060", "\u202e", "\ufe0f", "\x1b[1m", "\x1b[0;31m"]
)


@given(st.lists(st.tuples(st.integers(1, len(TOKEN) - 1), UNSEEN), min_size=1, max_size=12))
def test_what_is_drawn_as_nothing_hides_no_key(where: list[tuple[int, str]]):
    text = TOKEN
    for at, unseen in sorted(where, reverse=True):
        text = text[:at] + unseen + text[at:]
    assert redact.redact(f"before {text} after") == "before [redacted:github] after"


@given(
    st.sets(st.integers(0, len(TOKEN) - 1), min_size=1),
    st.sampled_from(["\\u{:04x}", "\\\\u{:04X}", "\\x{:02x}", "%{:02X}"]),
)
def test_no_escape_hides_a_key(where: set[int], form: str):
    text = "".join(form.format(ord(c)) if at in where else c for at, c in enumerate(TOKEN))
    assert redact.redact(f'{{"k": "{text}"}}') == '{"k": "[redacted:github]"}'


@given(st.integers(6, 34), st.sampled_from(["\n", "\r\n", "\\\n", "\n    ", "\n> ", "\n  | ", "\n# "]))
def test_no_line_end_hides_a_key(at: int, fold: str):
    clean = redact.redact(f"Look:\n  {TOKEN[:at]}{fold}{TOKEN[at:]}\nThat was it.")
    assert not leaks(clean.replace(fold, ""), TOKEN[4:])
    assert clean.endswith("]\nThat was it.")


def test_what_follows_a_key_on_the_next_line_stays():
    for text in ("and then it failed", "OTHER=1", "commit 4f2a", "", "    indented"):
        assert redact.redact(f"KEY={TOKEN}\n{text}") == f"KEY=[redacted:github]\n{text}"


@given(st.text(alphabet="abcdefgh \n\u200b\\u0041%-", max_size=80))
def test_a_text_without_a_secret_keeps_every_character(text: str):
    assert redact.redact(text) == text


# ── the two sets ─────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("rows", SETS, ids=["development", "report"])
def test_the_sets_are_large_enough_to_mean_something_and_have_nothing_in_common(rows):  # type: ignore[no-untyped-def]
    assert len({name for name, _, _ in rows.SECRETS}) == len(rows.SECRETS) >= 60
    assert len(set(rows.LOOK_ALIKES)) == len(rows.LOOK_ALIKES) >= 60
    other = next(one for one in SETS if one is not rows)
    assert not {secret for *_, secret in rows.SECRETS} & {secret for *_, secret in other.SECRETS}
    assert not set(rows.LOOK_ALIKES) & set(other.LOOK_ALIKES)


@pytest.mark.parametrize("row", secrets_development.SECRETS, ids=lambda row: row[0])
def test_every_secret_of_the_development_set_is_taken_out(row: tuple[str, str, str]):
    _, text, secret = row
    clean = redact.redact(text.replace("{}", secret))
    assert not leaks(clean, secret)
    assert "[redacted:" in clean
    assert redact.redact(clean) == clean


@pytest.mark.parametrize("text", secrets_development.LOOK_ALIKES)
def test_every_look_alike_of_the_development_set_is_left_alone(text: str):
    assert redact.redact(text) == text
    assert redact.redact_json({"text": [text]}) == {"text": [text]}


def test_the_page_says_the_figures_as_they_are():
    from tests.secrets_figures import BEGIN, END, figures

    page = (PACKAGE.parent / "docs" / "secrets.md").read_text(encoding="utf-8")
    shown = BEGIN + page.partition(BEGIN)[2].partition(END)[0] + END
    assert shown == figures(), "print them anew: python -m tests.secrets_figures"


# ── a type, and who may make it ──────────────────────────────────────────────────────────────
WRONG = """
from gitledger import derive, ingest, objects, redact, transaction
from gitledger.model import Draft, Event
from gitledger.render import text
from gitledger.transaction import Desk, Plan
from gitledger.view import View

def wrong(raw: str, data: bytes, draft: Draft, view: View, desk: Desk, clean: redact.Clean) -> None:
    redact.Clean(raw)  # E
    redact.CleanBytes(data)  # E
    named: redact.Clean = raw  # E
    joined: redact.Clean = clean + raw  # E
    formatted: redact.Clean = f"{clean}"  # E
    stripped: redact.Clean = clean.strip()  # E
    ingest.CleanDraft("", "", "")  # E
    ingest._stamped(view, draft, "k3f9c2")  # E
    ingest.typed_payload(draft)  # E
    ingest.segments([data])  # E
    objects.edit(desk.store.get, None, {"a": data})  # E
    Plan("checkpoint", (draft,), raw)  # E
    Plan("checkpoint", (draft,), clean, (raw,))  # E
    transaction.sign(desk, desk.writer.key, "", (), clean, raw)  # E
    transaction.sign(desk, desk.writer.key, "", (), raw, clean)  # E
    text.slug(raw)  # E
    redact.bounded(raw, 10)  # E
    redact.shortened(raw, 10)  # E

def right(raw: str, draft: Draft, view: View, desk: Desk) -> None:
    clean = redact.redact(raw)
    Plan("checkpoint", (draft,), clean, (redact.bounded(clean, 10), redact.shortened(clean, 10)))
    ingest._stamped(view, ingest.clean(draft), "k3f9c2")
    ingest.typed_payload(ingest.clean(draft))
    text.slug(clean)
"""


def test_mypy_refuses_text_that_nobody_has_read(tmp_path: Path):
    snippet = tmp_path / "wrong.py"
    snippet.write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(snippet)],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    reported = {
        int(line.split(":")[1]) for line in done.stdout.splitlines() if "wrong.py" in line and " error: " in line
    }
    assert reported == {n for n, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# E")}, done.stdout


def test_nothing_is_called_clean_by_hand_at_run_time_either():
    for make in (Clean, CleanBytes):
        with pytest.raises(TypeError):
            make("x")  # type: ignore[call-arg,arg-type]
    good = ingest.clean(Draft("0190f5e2-7c3b-7d4a-9c1e-2f6b8a9d0e1f", "2026-11-30T14:49:11.123Z", "note.added"))
    with pytest.raises((TypeError, ValueError)):
        replace(good, data={"text": "raw"})
    assert type(redact.redact("a") + "b") is str
    assert isinstance(bounded(redact.redact("a" * 50), 40), Clean)


def callers(*names: str) -> list[set[str]]:
    """For each name, the modules in which a function of that name is called."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if not any(name in text for name in names):
            continue
        for node in ast.walk(ast.parse(text)):
            called = node.func if isinstance(node, ast.Call) else None
            for name in {getattr(called, "id", ""), getattr(called, "attr", "")} & found.keys():
                found[name].add(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    return [found[name] for name in names]


def test_few_may_say_that_bytes_are_clean_and_one_place_makes_commits():
    of_events, clean, clean_bytes, clean_draft, format_commit, with_signature = callers(
        "of_events", "Clean", "CleanBytes", "CleanDraft", "format_commit", "with_signature"
    )
    assert of_events <= {"ingest", "purge", "render.tree"}
    assert clean == clean_bytes == {"redact"}
    assert clean_draft == {"ingest"}
    assert format_commit == with_signature == {"transaction"}


@pytest.mark.parametrize(
    ("type_", "records"),
    [("note.added", {"gh" + "p_" + made("key", 36): {}}), ("gh" + "p_" + made("type", 30), {}), ("note added", {})],
)
def test_an_event_has_no_name_that_could_hold_a_text(type_: str, records: dict[str, object]):
    from gitledger.errors import BadData
    from gitledger.model import Change

    draft = Draft(
        "0190f5e2-7c3b-7d4a-9c1e-2f6b8a9d0e1f",
        "2026-11-30T14:49:11.123Z",
        type_,
        records={key: Change() for key in records},
    )
    with pytest.raises(BadData):
        ingest.clean(draft)


# ── it fails closed ──────────────────────────────────────────────────────────────────────────
def state(ledger: Ledger) -> tuple[str, dict[str, bytes]]:
    return ledger.tip(), {path.name: path.read_bytes() for path in Path(ledger.desk.home.wal).glob("*.wal")}


def test_a_rule_set_that_fails_writes_nothing_and_says_so(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    from gitledger import entries

    book = begin(repo)
    hints = replacing.RULES[0].hints
    hook(repo, "turn", json.dumps({"session_id": "s", "prompt": f"hello {hints[0]}"}).encode())
    tip, log = state(book)
    broken = secrets_rules.Rule("broken", hints, "(")
    with monkeypatch.context() as patch:
        patch.setattr(replacing, "RULES", (*replacing.RULES, broken))
        with pytest.raises(Blocked, match="BLOCKED_MISSING_PREREQUISITE: the rules that take secrets out failed") as e:
            again(repo).checkpoint()
        assert e.value.exit_code == 69
        with pytest.raises(Unscanned):
            do(again(repo), entries.note, "a note", None)
    after = state(again(repo))
    assert (after[0], b"".join(after[1].values())) == (tip, b"".join(log.values()))
    again(repo).checkpoint()
    assert again(repo).tip() != tip


def scanning(repo: Repo) -> Ledger:
    book = again(repo)
    book.desk = replace(book.desk, config=replace(book.desk.config, secrets=schema.Secrets("betterleaks")))
    return book


def stand_in(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner of the real one's name whose `scan_string` is `body`."""
    (folder / "betterleaks").mkdir()
    (folder / "betterleaks" / "__init__.py").write_text(
        "import sys, time\nfrom types import SimpleNamespace as N\n"
        f"def scan_string(text):\n{body}\n"
        "def found(value):\n    return [N(rule_id='made-up', match=N(value=value))]\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_the_scanner_takes_out_what_the_rules_do_not_know(repo: Repo):
    from gitledger import entries, tasks

    pytest.importorskip("betterleaks")
    begin(repo)
    book = scanning(repo)
    token = figma("one")
    assert leaks(redact.redact(f"the figma token is {token}"), token), "else this test shows nothing"
    do(book, tasks.add, f"Use {token} no more")
    do(book, entries.note, f"the figma token is {token}", None)
    hook(repo, "turn", json.dumps({"session_id": "s", "prompt": f"my token is {token}"}).encode())
    book.checkpoint(f"because of {token}")
    everything = objects_of(repo)
    assert not leaks(everything.decode("utf-8", "replace").lower(), token.lower())
    assert b"[redacted:betterleaks-figma" in everything
    from gitledger import audit

    assert list(audit.fsck(again(repo))) == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("    raise RuntimeError(text)", "ended with 1"),
        ("    sys.exit(0)", "no JSON"),
        ("    return []", "does not find a made-up key"),
        ("    print('hello'); return found(text)", "no JSON"),
        ("    return found(7)", "another shape"),
        ("    time.sleep(60)", "did not end within"),
    ],
)
def test_a_scanner_that_fails_writes_nothing_and_says_so(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
):
    from gitledger import entries

    begin(repo)
    book = scanning(repo)
    do(book, entries.note, "a note", None)
    stand_in(tmp_path, body, monkeypatch)
    monkeypatch.setattr(scanner, "DEADLINE", 2.0 if "sleep" in body else 30.0)
    tip = book.tip()
    with pytest.raises(Blocked, match=why) as e:
        book.checkpoint()
    assert e.value.exit_code == 69
    assert "gitledger config set secrets.scanner none" in str(e.value)
    assert again(repo).tip() == tip
    assert len(wal.pending(book.desk.home.wal)[0]) == 1
    again(repo).checkpoint()


def test_a_scanner_that_is_not_installed_says_how_to_install_it(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    begin(repo)
    (tmp_path / "betterleaks.py").write_text("raise ModuleNotFoundError(\"No module named 'betterleaks'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Blocked, match=r"not installed.*pip install 'gitledger-continuity\[secrets\]'"):
        scanning(repo).checkpoint()


def test_a_file_of_the_scanner_s_name_in_the_project_is_not_run(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("betterleaks")
    begin(repo)
    repo.write({"betterleaks.py": "open('ran', 'w')\n"})
    monkeypatch.chdir(repo.path)
    scanning(repo).checkpoint()
    assert not (repo.path / "ran").exists()


def test_a_ledger_cannot_switch_the_scanner_off_or_on(repo: Repo):
    from gitledger import config

    assert "secrets" in schema.MACHINE_ONLY
    found, findings = config.load({"secrets.scanner": "betterleaks"}, str(repo.path / ".git"), os.environ)
    assert found.secrets.scanner == "none"
    assert [finding.rule for finding in findings] == ["config"]
