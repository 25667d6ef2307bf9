"""What nanobot's turns say, how far they are journalled, and what holds its compactions: beside a stand-in for nanobot.

The real one is in tests/clients/test_nanobot_agent.py. What stands in here has the names that ours uses, and no more.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gitledger import gitdir, install, settingsfile, wiring
from gitledger.clients import nanobot as named
from gitledger.clients.embedded import Embedded, Ran, find
from gitledger.clients.nanobot import adapter, gate, marks, setup, turns
from gitledger.clients.nanobot.attached import Attached
from gitledger.clients.nanobot.gate import Blocked, Refusal
from gitledger.clients.nanobot.marks import Mark
from gitledger.errors import BadData
from gitledger.wal import pending
from tests.ledgers import begin
from tests.sealed import Repo

TIME = datetime(2026, 11, 30, 12)
SCRIPT = "BLOCKED_MISSING_PREREQUISITE: the disk is full"


def message(role: str, content: Any = "", n: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": (TIME + timedelta(seconds=n)).isoformat(), **more}


def call(ident: str, name: str, **given: Any) -> dict[str, Any]:
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


def talk(*words: str, start: int = 0) -> list[dict[str, Any]]:
    """A person's words, each answered by itself in capitals."""
    rows: list[dict[str, Any]] = []
    for n, word in enumerate(words):
        rows += [message("user", word, start + 2 * n), message("assistant", word.upper(), start + 2 * n + 1)]
    return rows


# ── what a turn says ─────────────────────────────────────────────────────────────────────────
def test_a_turn_says_what_was_answered_run_changed_and_what_failed() -> None:
    turn = [
        message("user", "go on"),
        message(
            "assistant",
            "",
            tool_calls=[
                call("a", "exec", command="pytest -q"),
                call("b", "write_file", path="a.py", content="…"),
                call("c", "edit_file", path="b.py"),
                call("d", "apply_patch", edits=[{"path": "c.py"}, {"path": "d.py"}, {"path": 3}]),
                call("e", "apply_patch", edits=[{"path": "e.py"}], dry_run=True),
                call("f", "exec", cmd="sleep 9"),
                {"id": "g", "function": {"name": "exec", "arguments": "{"}},
            ],
        ),
        message("tool", "1 failed\n\nExit code: 1", tool_call_id="a"),
        message("tool", "Successfully wrote", tool_call_id="b"),
        message("tool", "Error: old_text not found\n\n[Analyze the error above and try a different approach.]",
                tool_call_id="c"),
        message("tool", "done", tool_call_id="d"),
        message("tool", "would do", tool_call_id="e"),
        message("tool", "Error: Command timed out after 60 seconds", tool_call_id="f"),
        message("assistant", [{"type": "text", "text": "it is done"}, {"type": "image_url"}]),
    ]  # fmt: skip
    assert turns.told(turn) == {
        "tool": "exec, write_file, edit_file, apply_patch",
        "answer": "it is done",
        "files": ["a.py", "c.py", "d.py"],
        "commands": [
            {"command": "pytest -q", "output": "1 failed", "exit": 1},
            {"command": "sleep 9", "output": "Error: Command timed out after 60 seconds"},
        ],
        "errors": ["Error: old_text not found", "Error: Command timed out after 60 seconds"],
    }
    assert turns.told([message("assistant", turns.UNANSWERED)]) == {"errors": [turns.UNANSWERED]}
    for odd in ({}, {"role": "assistant", "tool_calls": [3, {"function": 3}]}, {"content": 3}):
        assert "answer" not in turns.told([odd])


def test_turns_are_told_apart_and_read_on_from_where_the_journal_ends() -> None:
    rows = talk("one", "two", "three")
    assert [len(turn) for turn in turns.split(rows)] == [2, 2, 2]
    assert turns.prompts(rows) == ["one", "two", "three"]
    assert turns.since(rows, turns.digest(rows[1]), "") == rows[2:]
    assert turns.since(rows, turns.digest(rows[-1]), "") == []
    # The talk was cleared: what is there now is later than what was journalled.
    fresh = talk("four", start=100)
    assert turns.since(fresh, turns.digest(rows[-1]), turns.time(rows[-1])) == fresh
    assert turns.since(rows, "gone", turns.time(rows[3])) == rows[4:]
    assert [turns.ended(turn) for turn in turns.split([*rows, message("user", "and")])] == [True, True, True, False]


def test_a_path_is_told_from_the_work_trees_root_wherever_nanobot_works(repo: Repo) -> None:
    payload = {"files": ["a.py", str(repo.path / "b.py"), "/elsewhere/c.py"], "cwd": str(repo.path / "deep")}
    (repo.path / "deep").mkdir()
    said, faults = adapter.translate("turn", json.dumps(payload).encode())
    assert said.files == ("deep/a.py", "b.py", "/elsewhere/c.py")
    assert faults == []


# ── a stand-in ───────────────────────────────────────────────────────────────────────────────
@dataclass
class Sessions:
    """nanobot's session manager, as far as ours asks it."""

    rows: dict[str, SimpleNamespace] = field(default_factory=dict)

    def get_or_create(self, key: str) -> SimpleNamespace:
        return self.rows.setdefault(key, SimpleNamespace(messages=[], metadata={}, updated_at=TIME))

    def read_session_metadata(self, key: str) -> dict[str, Any] | None:
        return {"updated_at": self.rows[key].updated_at.isoformat()} if key in self.rows else None

    def read_session_file(self, key: str) -> dict[str, Any] | None:
        return {"messages": self.rows[key].messages} if key in self.rows else None


@dataclass
class Bus:
    """nanobot's bus."""

    said: list[Any] = field(default_factory=list)

    async def publish_outbound(self, message: Any) -> None:
        self.said.append(message)


class Consolidator:
    """What nanobot compacts by."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions
        self.done: list[str] = []

    async def compact_idle_session(self, session_key: str, *, runtime: Any = None) -> str | None:
        return await self.archive_session(session_key)

    async def archive_session(self, key: str) -> str | None:
        self.done.append(key)
        return "summary"

    async def summarize_transcript(
        self, rows: list[Any], previous: str | None, *, session_key: str, provider_state: Any = None
    ) -> str | None:
        self.done.append(session_key)
        return "summary"


@pytest.fixture
def nanobot(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package of that name."""
    parts = {
        "nanobot": {},
        "nanobot.agent": {"memory": SimpleNamespace(Consolidator=type("Consolidator", (Consolidator,), {}))},
        "nanobot.runtime_context": {
            "RuntimeContextBlock": SimpleNamespace,
            "public_history_message": lambda one: {**one, "content": one["content"].partition("\n\n#")[0]},
        },
        "nanobot.session": {},
        "nanobot.session.history_visibility": {"is_hidden_history_message": lambda one: "_hidden" in one},
        "nanobot.bus": {},
        "nanobot.bus.events": {"OutboundMessage": SimpleNamespace},
    }
    for name, has in parts.items():
        module = ModuleType(name)
        vars(module).update(has)
        monkeypatch.setitem(sys.modules, name, module)
    return sys.modules["nanobot"]


@pytest.fixture
def found(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """A clone's ledger whose program is not run: what it is asked is kept in `asked`, and refused where `refuse` is."""
    begin(repo)
    asked.clear()
    refuse.clear()

    def hook(self: Embedded, event: str, payload: dict[str, Any], timeout: float = 0) -> Ran:
        asked.append((event, payload))
        if event == "compact":
            return Ran(2, error=f"gitledger: {refuse[0]}") if refuse else Ran(0, "Checkpoint: C-000001\n\nrest")
        return Ran(0, "# briefing" if event == "start" else "")

    def run(self: Embedded, *words: str, given: str = "", timeout: float = 0) -> Ran:
        asked.append((words[0], {"words": words, "given": given}))
        since = any(word.startswith("--since=") for word in words)
        return Ran(0, json.dumps({"text": "" if since else "# capsule", "mark": "m"}))

    monkeypatch.setattr(Embedded, "hook", hook)
    monkeypatch.setattr(Embedded, "run", run)
    place = find("nanobot", str(repo.path))
    assert place is not None
    return place


asked: list[tuple[str, dict[str, Any]]] = []
refuse: list[str] = []


def logged(found: Embedded) -> list[tuple[str, dict[str, Any]]]:
    """What the log holds of nanobot: each event with its payload."""
    entries, _ = pending(os.path.join(gitdir.state(found.found.common), "wal", found.ledger))
    return [(one.event, json.loads(one.payload)) for one in entries if one.client == "nanobot"]


def told(found: Embedded) -> list[str]:
    """The prompts and answers in the log, in their order."""
    return [data.get("prompt", data.get("answer", "")) for event, data in logged(found) if event in ("prompt", "turn")]


def attached(repo: Repo, sessions: Sessions) -> Attached:
    return Attached(Bus(), sessions, str(repo.path))


def ask(one: Attached, key: str, said: str, turn: str = "") -> str:
    """What nanobot is given for a person's message; then it saves that, with it, as its own."""
    request = SimpleNamespace(
        session_key=key, original_user_text=said, turn_id=turn or said, workspace=None, channel="cli", chat_id="direct",
        runtime=SimpleNamespace(context_window_tokens=1000),
    )  # fmt: skip
    block = asyncio.run(one.context(request))
    text = "" if block is None else str(block.content)
    rows = one.sessions.get_or_create(key).messages
    rows.append(message("user", said + (f"\n\n{text}" if text else ""), len(rows)))
    return text


def save(one: Attached, key: str, answer: str, *, tell: bool = True) -> None:
    """nanobot saves an answer, and tells of it unless it dies."""
    session = one.sessions.get_or_create(key)
    session.messages.append(message("assistant", answer, len(session.messages)))
    session.metadata["_last_usage"] = {"context_tokens": 400}
    session.updated_at += timedelta(seconds=1)
    if tell:
        asyncio.run(one.persisted(SimpleNamespace(context=SimpleNamespace(session_key=key))))


# ── a nanobot that keeps a ledger ────────────────────────────────────────────────────────────
def test_the_first_message_is_briefed_and_every_turn_is_logged_once(
    nanobot: ModuleType, found: Embedded, repo: Repo
) -> None:
    one = attached(repo, Sessions())
    assert ask(one, "cli:direct", "hello") == "# briefing\n\n# capsule"
    assert asyncio.run(one.context(SimpleNamespace(
        session_key="cli:direct", original_user_text="hello", turn_id="hello", workspace=None, channel="", chat_id="",
        runtime=None))) is None, "one message was asked about twice"  # fmt: skip
    save(one, "cli:direct", "HELLO")
    assert ask(one, "cli:direct", "and on") == ""
    save(one, "cli:direct", "AND ON")
    asyncio.run(one.persisted(SimpleNamespace(context=SimpleNamespace(session_key="cli:direct"))))
    assert told(found) == ["hello", "HELLO", "and on", "AND ON"]
    _, turn = logged(found)[-1]
    assert (turn["used"], turn["limit"], turn["pid"]) == (400, 1000, os.getpid())
    assert [event for event, _ in asked] == ["start", "capsule", "capsule"]
    assert asked[0][1]["source"] == "startup"
    assert ask(one, "dream:x", "tidy up") == ""
    assert len(told(found)) == 4
    one.close()
    one.close()
    assert [data["reason"] for event, data in asked if event == "end"] == ["exit"]


def test_what_was_saved_and_never_told_is_logged_by_the_next_process_once(
    nanobot: ModuleType, found: Embedded, repo: Repo
) -> None:
    sessions = Sessions()
    sessions.get_or_create("cli:old").messages += talk("long ago")
    first = attached(repo, sessions)
    for key in ("cli:direct", "cli:old"):
        ask(first, key, f"to {key}")
        save(first, key, f"OF {key}", tell=False)
    ask(first, "cli:cut", "begin")  # the answer never came
    before = told(found)
    assert before == ["to cli:direct", "to cli:old", "begin"]
    for n in range(2):  # two more processes, each in another talk
        ask(attached(repo, sessions), f"cli:new{n}", "hi")
    assert sorted(told(found)) == sorted([*before, "OF cli:direct", "OF cli:old", "hi", "hi"])
    # Its mark is as if that process had died behind the line and before the mark: the same line is no second one.
    mark = marks.read(found, "cli:direct")
    assert mark is not None
    rows = sessions.rows["cli:direct"].messages
    marks.write(found, "cli:direct", Mark("cli:direct", prompted=(marks.digest("to cli:direct"),)))
    ask(attached(repo, sessions), "cli:direct", "again")
    assert told(found).count("OF cli:direct") == 1
    # What was cut off is told when its own talk goes on.
    sessions.rows["cli:cut"].messages.append(message("assistant", "Error: Task interrupted", 50))
    ask(attached(repo, sessions), "cli:cut", "go on")
    assert told(found)[-2:] == ["Error: Task interrupted", "go on"]
    assert len(rows) == 3


def test_a_talk_that_was_cleared_is_closed_and_goes_on_as_another(
    nanobot: ModuleType, found: Embedded, repo: Repo
) -> None:
    one = attached(repo, Sessions())
    ask(one, "cli:direct", "hello")
    save(one, "cli:direct", "HELLO")
    one.sessions.rows["cli:direct"].messages.clear()
    assert ask(one, "cli:direct", "anew") == "# briefing\n\n# capsule"
    events = [(event, data.get("reason", data.get("source"))) for event, data in asked if event != "capsule"]
    assert events == [("start", "startup"), ("end", "new"), ("start", "clear")]


def test_a_word_between_is_a_prompt_of_its_own_and_a_command_is_none(
    nanobot: ModuleType, found: Embedded, repo: Repo
) -> None:
    one = attached(repo, Sessions())
    ask(one, "cli:direct", "hello")
    one.sessions.rows["cli:direct"].messages.append(message("assistant", "HELLO", 1))
    ask(one, "cli:direct", "wait", turn="hello")
    save(one, "cli:direct", "WAITED")
    assert told(found) == ["hello", "wait", "HELLO", "WAITED"]
    rows = one.sessions.rows["cli:direct"].messages
    rows += [message("user", "/status", 9, _command=True), message("assistant", "fine", 9, _command=True)]
    rows.append(message("user", "for itself", 9, _hidden=True))
    asyncio.run(one.persisted(SimpleNamespace(context=SimpleNamespace(session_key="cli:direct"))))
    assert len(told(found)) == 4


def test_a_talk_that_falls_silent_is_closed_and_its_next_word_takes_it_up_again(
    nanobot: ModuleType, found: Embedded, repo: Repo
) -> None:
    one = attached(repo, Sessions())
    one.idle_seconds = 0.01
    ask(one, "cli:direct", "hello")
    one.sessions.rows["cli:direct"].messages.append(message("assistant", "HELLO", 1))

    async def silence() -> None:
        await one.persisted(SimpleNamespace(context=SimpleNamespace(session_key="cli:direct")))
        while not any(event == "end" for event, _ in asked):
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(silence(), 120))
    assert ask(one, "cli:direct", "still there?") == "# briefing\n\n# capsule"
    events = [(event, data.get("reason", data.get("source"))) for event, data in asked if event != "capsule"]
    assert events == [("start", "startup"), ("end", "other"), ("start", "resume")]


def test_where_there_is_no_ledger_nothing_is_said_written_or_held_up(nanobot: ModuleType, repo: Repo) -> None:
    one = attached(repo, Sessions())
    assert ask(one, "cli:direct", "hello") == ""
    save(one, "cli:direct", "HELLO")
    assert asyncio.run(one.before("cli:direct", "auto")) == ""
    one.close()
    assert not (repo.path / ".git" / "gitledger").exists()


# ── compaction ───────────────────────────────────────────────────────────────────────────────
def test_every_way_to_a_compaction_waits_for_the_checkpoint(nanobot: ModuleType, found: Embedded, repo: Repo) -> None:
    from nanobot.agent import memory

    one = attached(repo, Sessions())
    assert gate.watch(one.sessions, one) == ""
    assert gate.watch(one.sessions, one) == "", "it was wrapped twice"
    box = memory.Consolidator(one.sessions)
    refuse.append(SCRIPT)
    for way in (
        lambda: box.compact_idle_session("cli:direct"),
        lambda: box.summarize_transcript([], None, session_key="cli:direct"),
    ):
        with pytest.raises(Blocked, match="BLOCKED_MISSING_PREREQUISITE: the disk is full"):
            asyncio.run(way())
    assert box.done == []
    assert [said.content for said in one.bus.said] == [SCRIPT, SCRIPT]
    assert [event for event, _ in asked] == ["compact"], "it was tried again at once"
    # What the provider has compacted on its side already is not made undone by a refusal.
    asyncio.run(box.summarize_transcript([], None, session_key="cli:direct", provider_state=object()))
    refuse.clear()
    Path(gitdir.state(found.found.common), f"allow-{found.ledger}.json").touch()
    summary = asyncio.run(box.compact_idle_session("cli:direct"))
    assert summary == f"summary\n\n{gate.MARK}\nCheckpoint: C-000001"
    assert [event for event, _ in logged(found)][-1] == "compacted"
    assert ask(one, "cli:direct", "where were we") == "# briefing\n\n# capsule"
    assert [data["source"] for event, data in asked if event == "start"] == ["compact"]
    # A talk that is archived at its end is no compaction, and another nanobot's is not ours to hold up.
    assert asyncio.run(box.archive_session("cli:direct")) == "summary"
    assert asyncio.run(memory.Consolidator(Sessions()).compact_idle_session("x")) == "summary"


def test_a_session_that_has_not_spoken_yet_is_held_up_by_the_ledger_of_its_own_project(
    nanobot: ModuleType, found: Embedded, repo: Repo, tmp_path: Path
) -> None:
    one = Attached(Bus(), Sessions(), str(tmp_path / "workspace"))
    scope = {"project_path": str(repo.path)}
    one.sessions.get_or_create("websocket:1").metadata["workspace_scope"] = scope
    refuse.append(SCRIPT)
    with pytest.raises(Blocked, match="the disk is full"):
        asyncio.run(one.before("websocket:1", "auto"))
    assert asyncio.run(one.before("websocket:2", "auto")) == ""


def test_a_nanobot_that_compacts_in_another_way_is_told_of(nanobot: ModuleType, found: Embedded, repo: Repo) -> None:
    from nanobot.agent import memory

    memory.Consolidator = type("Consolidator", (), {})
    one = attached(repo, Sessions())
    one.ungated = gate.watch(one.sessions, one)
    ask(one, "cli:direct", "hello")
    assert "compactions are not held up" in Path(gitdir.state(found.found.common), "log").read_text()


def test_a_refusal_holds_for_longer_each_time_and_no_longer_than_a_person_says(found: Embedded) -> None:
    one = gate.refused("why", None)
    waits = [one.wait]
    for _ in range(9):
        one = gate.refused("why", one)
        waits.append(one.wait)
    assert waits[:3] == [5.0, 10.0, 20.0]
    assert waits[-1] == gate.LONGEST
    kept = Refusal("why", 100.0, 5.0)
    assert gate.pending(kept, found, 104.0)
    assert not gate.pending(kept, found, 105.0)
    assert not gate.pending(None, found, 100.0)
    Path(gitdir.state(found.found.common), f"allow-{found.ledger}.json").touch()
    assert not gate.pending(kept, found, 104.0)


# ── the plugin ───────────────────────────────────────────────────────────────────────────────
def test_the_plugin_goes_in_is_looked_at_and_comes_out_without_a_trace(
    repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    client = wiring.BY_NAME["nanobot"]
    for scope in ("project", "user"):
        place = install.place(client, scope, gitdir.find(str(repo.path)), os.environ)
        assert place is not None
        done = install.install(place)
        assert done.done == "installed"
        assert any("pip install gitledger-continuity" in note for note in done.notes)
        assert {row.state for row in install.wired(place)} == {"installed"}
        assert install.install(place).done == "current"
        folder = Path(place.path).parent
        assert json.loads((folder / "plugin.json").read_text())["$schema"] == setup.SCHEMA
        assert (folder / "skills/gitledger/SKILL.md").read_text().startswith("---\nname: gitledger\n")
        [fault] = [what for what, _ in install.faults(place, os.environ) if "enabled" in what]
        assert "not enabled" in fault
        (folder / "plugin.json").write_text((folder / "plugin.json").read_text().replace("Development", "Old"))
        assert {row.state for row in install.wired(place)} == {"outdated"}
        assert install.install(place).done == "updated"
        assert install.uninstall(place).done == "removed"
        assert install.uninstall(place).done == "absent"
        assert not folder.parent.exists()
        assert not (home / ".nanobot").exists()


def test_a_plugin_of_that_name_that_is_somebody_elses_is_left_alone(
    repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    place = install.place(wiring.BY_NAME["nanobot"], "project", gitdir.find(str(repo.path)), os.environ)
    assert place is not None
    settingsfile.write(place.path, '{"name": "gitledger"}', None)
    with pytest.raises(BadData, match="is not gitledger's"):
        install.install(place)
    assert install.uninstall(place).done == "absent"
    assert Path(place.path).read_text() == '{"name": "gitledger"}'


def test_where_nanobots_python_lacks_the_package_that_is_said_with_the_command(
    repo: Repo, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home))
    python = tmp_path / "venv" / "bin" / "python"
    program = tmp_path / "bin" / "nanobot"
    for path, text in ((python, "#!/bin/sh\nexit 1\n"), (program, f"#!{python}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    place = install.place(wiring.BY_NAME["nanobot"], "project", gitdir.find(str(repo.path)), os.environ)
    assert place is not None
    assert any(f"{python} -m pip install gitledger-continuity" in note for note in install.install(place).notes)
    assert (f"{python} -m pip install gitledger-continuity") in [mend for _, mend in install.faults(place, os.environ)]
    (tmp_path / "venv/lib/python3.11/site-packages/gitledger_continuity-0.1.0.dist-info").mkdir(parents=True)
    assert [what for what, _ in install.faults(place, os.environ) if "no gitledger-continuity" in what] == []


def test_the_package_is_read_without_nanobot_and_says_so_of_a_name_that_it_has_not() -> None:
    assert named.Blocked is Blocked
    assert named.Attached is Attached
    with pytest.raises(AttributeError, match="nothing"):
        _ = named.nothing  # type: ignore[attr-defined]
