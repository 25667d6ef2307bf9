"""gitledger within another program's process: what it logs is safe, and what it asks of the program fails closed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitledger import capture, program, wal
from gitledger.clients import embedded
from gitledger.clients.embedded import LATE, Embedded, find
from gitledger.errors import BadData, CannotWrite
from gitledger.frame import Entry
from gitledger.ledger import Ledger
from tests.ledgers import again, begin
from tests.patience import begun, ended
from tests.sealed import Repo, new_repo

ROOT = Path(__file__).parent.parent
BARE = "/usr/bin:/bin"
BLOCKED = "BLOCKED_MISSING_PREREQUISITE"


@pytest.fixture
def ledger(repo: Repo) -> Ledger:
    return begin(repo)


@pytest.fixture
def here(ledger: Ledger) -> Embedded:
    return opened(ledger.gitdir.top)


def opened(folder: str | Path) -> Embedded:
    found = find("own-agent", str(folder))
    assert found is not None
    return found


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str = "", *, text: str = "") -> Path:
    """A program called gitledger on PATH: ours after `code` was run in it, or a script of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    load = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nfrom gitledger.__main__ import main\nsys.exit(main())"
    )
    script = folder / "gitledger"
    script.write_text(text or f"#!{sys.executable} -P\n{load}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{BARE}")
    return script


def pending(ledger: Ledger) -> list[Entry]:
    entries, faults = wal.pending(ledger.desk.home.wal)
    assert faults == []
    return entries


# ── which ledger ─────────────────────────────────────────────────────────────────────────────
def test_a_folder_without_a_ledger_is_none_of_its_business(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    before = sorted(new_repo(tmp_path / "other").path.rglob("*"))
    assert find("own-agent", str(plain)) is None
    assert find("own-agent", str(tmp_path / "other")) is None
    assert find("own-agent", str(tmp_path / "gone")) is None
    assert sorted((tmp_path / "other").rglob("*")) == before


@pytest.mark.parametrize("switch", ["GITLEDGER_DISABLE", "GITLEDGER_PROPOSING"])
def test_switched_off_there_is_no_ledger(ledger: Ledger, switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(switch, "1")
    assert find("own-agent", ledger.gitdir.top) is None


def test_the_ledger_that_is_named_is_meant_and_one_that_is_not_there_is_none(ledger: Ledger) -> None:
    assert opened(ledger.gitdir.top).ledger == "main"
    assert find("own-agent", ledger.gitdir.top, "other") is None


@pytest.mark.parametrize("name", ["", "-x", "a b", "a;b", "$(x)", "../x", "A", "a\nb", "a'b", "a.b"])
def test_a_name_that_a_shell_would_read_is_no_clients(name: str, ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="cannot be a client's name"):
        find(name, ledger.gitdir.top)


def test_a_clone_whose_own_folder_is_a_link_is_not_taken_for_one_without_a_ledger(ledger: Ledger) -> None:
    state = Path(ledger.gitdir.common, "gitledger")
    state.rename(state.with_name("away"))
    state.symlink_to("away")
    with pytest.raises(CannotWrite):
        find("own-agent", ledger.gitdir.top)


# ── what is logged ───────────────────────────────────────────────────────────────────────────
def test_what_was_logged_survives_the_process_and_is_of_its_own_work_tree(ledger: Ledger, tmp_path: Path) -> None:
    Repo(Path(ledger.gitdir.top)).git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    code = (
        "import os, signal, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from gitledger.clients.embedded import find\n"
        "found = find('own-agent', sys.argv[2])\n"
        "os.write(1, found.log('prompt', {'session_id': 's1', 'prompt': 'hello'}).encode())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(ROOT), str(tmp_path / "linked")],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    (entry,) = pending(ledger)
    assert (entry.id, entry.client, entry.event) == (done.stdout.decode(), "own-agent", "prompt")
    assert entry.worktree == "linked"
    assert json.loads(entry.payload) == {"cwd": str(tmp_path / "linked"), "session_id": "s1", "prompt": "hello"}


TEXTS = ["žluťoučký kůň 漢字 🐎", "a\nb\r\n\t\\ \x00 \x1b[31m", "\ud800 alone", "\udcff of a byte"]


def test_every_text_reaches_the_log_and_comes_back(ledger: Ledger, here: Embedded) -> None:
    for text in TEXTS:
        here.log("turn", {"session_id": "s1", "answer": text, "files": [text]})
    told = [json.loads(entry.payload) for entry in pending(ledger)]
    assert [one["answer"] for one in told] == TEXTS
    fresh = again(Repo(Path(ledger.gitdir.top)))
    fresh.view()
    answers = [event.data["answer"] for event in fresh.pending]
    assert answers[0] == TEXTS[0]
    assert answers[2:] == ["\ufffd alone", "\ufffd of a byte"]


def test_a_payload_that_is_too_large_is_cut_text_by_text_and_stays_one(ledger: Ledger, here: Embedded) -> None:
    big: list[dict[str, Any]] = [
        {"answer": "x" * 12_000_000},
        {"commands": [{"command": "make", "exit": 1, "output": "y" * 100_000}] * 80},
        {"errors": ["z" * 3_000] * 2_000},
    ]
    for payload in big:
        here.log("turn", {"session_id": "s1", **payload})
    entries = pending(ledger)
    assert max(len(entry.payload) for entry in entries) <= capture.LIMIT
    told = [json.loads(entry.payload) for entry in entries]
    assert {one["session_id"] for one in told} == {"s1"}
    assert told[0]["answer"] == "x" * 200_000 + " … 11,800,000 more characters"
    assert told[1]["commands"][0]["output"].startswith("y" * 50_000 + " …")
    assert told[2]["errors"][0] == " … 3,000 more characters"
    with pytest.raises(BadData, match="too large"):
        here.log("turn", {"files": ["f" * 1_999] * 10_000})
    assert len(pending(ledger)) == len(big)


# ── what the program is asked ────────────────────────────────────────────────────────────────
def test_start_prompt_refused_compaction_compaction_and_end_by_the_program_that_the_clone_names(
    ledger: Ledger, here: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = on_path(monkeypatch, tmp_path / "bin")
    name = Path(ledger.gitdir.common, "gitledger", program.NAME)
    name.write_text(f"{script}\n")
    monkeypatch.setenv("PATH", BARE)
    said = {"session_id": "s1", "source": "startup", "pid": os.getpid()}
    started = here.hook("start", said)
    assert started.text.startswith("# gitledger briefing")
    assert (started.status, started.error) == (0, "")
    here.log("prompt", {"session_id": "s1", "prompt": "hello"})
    home = Path(os.environ["HOME"])
    (key,) = [p for p in (home / ".local" / "share" / "gitledger").rglob("id_*") if p.suffix != ".pub"]
    key.rename(key.with_name("away"))
    refused = here.hook("compact", {"session_id": "s1", "trigger": "auto"})
    assert (refused.status, refused.text) == (2, "")
    assert BLOCKED in refused.error
    assert "gitledger compaction allow --once" in refused.error
    key.with_name("away").rename(key)
    made = here.hook("compact", {"session_id": "s1", "trigger": "auto"})
    assert (made.status, made.error) == (0, "")
    assert made.text.startswith("Checkpoint: C-000001")
    given, mark = here.capsule("hello")
    assert given.text == here.run("capsule", "--query", "hello").text
    assert here.capsule("hello", mark) == (embedded.Ran(0), mark)
    wrong, none = here.capsule("hello", "no mark")
    assert (wrong.status, none) == (2, "")
    assert "no mark of a capsule" in wrong.error
    here.hook("end", {"session_id": "s1", "reason": "exit"})
    assert "H-" in here.run("handover", "list").text
    assert here.run("no-such-command").status == 2


def test_a_compaction_is_refused_where_the_program_is_nowhere(
    ledger: Ledger, here: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(ledger.gitdir.common, "gitledger", program.NAME).unlink(missing_ok=True)
    monkeypatch.setenv("PATH", BARE)
    ran = here.hook("compact", {"session_id": "s1"})
    assert ran.status == 2
    assert BLOCKED in ran.error
    assert here.hook("start", {"session_id": "s1"}) == embedded.Ran(0)
    assert here.run("status").status == embedded.MISSING
    assert "neither on PATH" in here.run("status").error


def test_a_compaction_is_refused_where_the_lock_is_held(
    ledger: Ledger, here: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gitledger import lock

    on_path(
        monkeypatch, tmp_path / "bin", "from gitledger import transaction\ntransaction.LOCK_DEADLINE = 0.05"
    )  # nobody waits here
    with lock.held(ledger.desk.home.lock, deadline=1):
        ran = here.hook("compact", {"session_id": "s1"})
    assert ran.status == 2
    assert f"is held by process {os.getpid()}" in ran.error
    assert BLOCKED in ran.error
    assert here.hook("compact", {"session_id": "s1"}).status == 0


def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    ledger: Ledger, here: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    hang = f"#!/bin/sh\nsleep 600 & echo $! >>{pids}; echo $$ >>{pids}; sleep 600\n"
    on_path(monkeypatch, tmp_path / "bin", text=hang)
    asked: tuple[Callable[[float], embedded.Ran], ...] = (
        lambda seconds: here.hook("compact", {"session_id": "s1"}, timeout=seconds),
        lambda seconds: here.run("status", timeout=seconds),
    )
    for ask in asked:
        pids.write_text("")
        ran = begun(ask, lambda _: pids.read_text().count("\n") % 2 == 0 and pids.read_text(), 0.5)
        assert ran.status == LATE
        assert re.search(r"did not end within [0-9.]+ seconds", ran.error)
        for pid in pids.read_text().split():
            assert ended(int(pid))


def test_one_who_keeps_the_pipes_of_a_program_that_was_ended_holds_nobody_up(
    here: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    apart = f"import os, time; os.setsid(); open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    on_path(monkeypatch, tmp_path / "bin", text=f'#!/bin/sh\n{sys.executable} -c "{apart}" & sleep 600\n')
    ran = begun(lambda seconds: here.run("status", timeout=seconds), lambda _: pid.exists() and pid.read_text(), 1.0)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert ran.status == LATE


def test_texts_reach_the_program_and_come_back(
    ledger: Ledger, here: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path(monkeypatch, tmp_path / "bin")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")  # the host's own, whose Python is another one
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    assert here.run("note", "žluťoučký kůň 漢字").status == 0
    assert "žluťoučký kůň 漢字" in here.run("search", "kůň").text
    ran = here.hook("compact", {"session_id": "\ud800", "trigger": "漢" * 6_000_000})
    assert (ran.status, ran.error) == (0, "")


def test_what_a_plugin_complains_of_is_a_line_in_the_hooks_log(ledger: Ledger, here: Embedded) -> None:
    here.complain("state.db cannot be read:\n\x1b[31mno such table")
    line = Path(ledger.gitdir.common, "gitledger", "log").read_text()
    assert "own-agent: state.db cannot be read:\\n\\x1b[31mno such table\n" in line
