"""Hermes' memory provider beside a stand-in for its host, which calls as Hermes does: in its order, from its threads.

The real one is tried by tests/clients/test_hermes.py.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gitledger import entries, layout, reading, shims, tasks
from gitledger.clients import tools
from gitledger.clients.embedded import LATE, Embedded, Ran
from gitledger.clients.hermes import claims, context, health, statedb, turns
from gitledger.clients.hermes.line import Line
from gitledger.clients.hermes.provider import OPENED, PROMPT, Provider
from gitledger.clients.hermes.turns import Call, Turn
from gitledger.ledger import Ledger
from gitledger.model import Event
from gitledger.render.capsule import BEGIN, END
from tests.ledgers import again, begin, do
from tests.process.program import gitledger
from tests.sealed import Repo

Message = dict[str, Any]
CAPSULED = f"{{}}\n\n<memory-context>\n[System note: x]\n\n{BEGIN} Shop\nNext action: none\n{END}\n</memory-context>"


class MemoryProvider(ABC):
    """What Hermes demands of a provider."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def is_available(self) -> bool: ...

    @abstractmethod
    def initialize(self, session_id: str, **kwargs: Any) -> None: ...

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]: ...


class Ours(Provider, MemoryProvider):
    """As `provider.make` makes it."""


class Host:
    """One agent process of Hermes: its talk, its database, its worker. What the provider raises is a failure here."""

    def __init__(self, home: Path, session: str = "one", **kwargs: Any) -> None:
        self.home = home
        self.session = session
        self.messages: list[Message] = []
        self.said: list[str] = []
        self.provider = Ours()
        self.worker = ThreadPoolExecutor(1)
        self.tools = {schema["name"] for schema in self.provider.get_tool_schemas()}
        given = {"platform": "cli", "hermes_home": str(home), "agent_context": "primary", **kwargs}
        given |= {"warning_callback": self.said.append, "status_callback": self.said.append}
        row(home, session)
        self.provider.initialize(session_id=session, **given)

    def turn(self, prompt: str, answer: str = "It is done.", *calls: Message, sync: bool = True) -> str:
        """A person's message and all that comes of it; what the model was given with it."""
        self.provider.on_turn_start(len(self.messages), prompt)
        box: list[str] = []
        thread = threading.Thread(target=lambda: box.append(self.provider.prefetch(prompt, session_id="")))
        thread.start()
        thread.join(120)
        [given] = box
        mine: Message = {"role": "user", "content": prompt}
        if given:
            mine["api_content"] = f"{prompt}\n\n<memory-context>\n{given}\n</memory-context>"
        new = [mine, *calls, *([{"role": "assistant", "content": answer}] if answer else [])]
        self.messages += new
        keep(self.home, self.session, new)
        if sync:
            self.sync(prompt, answer)
        return given

    def sync(self, prompt: str, answer: str) -> None:
        """Tell the provider of a turn's end, on the worker, and wait for that."""
        told = list(self.messages)
        self.worker.submit(
            lambda: self.provider.sync_turn(prompt, answer, session_id=self.session, messages=told)
        ).result()
        self.worker.submit(lambda: self.provider.queue_prefetch(prompt, session_id=self.session)).result()

    def compact(self, new: str = "") -> str:
        """Compact, in place or by a new id; what the provider has for whoever writes the summary."""
        told = self.provider.on_pre_compress(self.messages)
        self.provider.on_session_end(self.messages)
        kept = [{"role": "user", "content": "[CONTEXT COMPACTION] So far"}, *self.messages[-2:]]
        parent, self.session = self.session, new or self.session
        if new:
            row(self.home, new, parent)
        else:
            archive(self.home, parent)
        keep(self.home, self.session, kept)
        self.messages = kept
        self.provider.on_session_switch(self.session, parent_session_id=parent, reset=False, reason="compression")
        return told

    def switch(self, new: str, parent: str, reason: str, *, reset: bool = False) -> None:
        """Go to another session, as Hermes' commands do."""
        row(self.home, new)
        self.session, self.messages = new, []
        self.provider.on_session_switch(new, parent_session_id=parent, reset=reset, reason=reason)

    def undo(self) -> None:
        """Take the last turn back."""
        last = max(n for n, message in enumerate(self.messages) if message["role"] == "user")
        del self.messages[last:]
        with closing(sqlite3.connect(self.home / "state.db")) as db, db:
            words = "SELECT MAX(id) FROM messages WHERE session_id = ? AND role = 'user' AND active = 1"
            [first] = db.execute(words, (self.session,)).fetchone()
            db.execute("UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ?", (self.session, first))
        self.provider.on_session_switch(self.session, parent_session_id="", reset=False, rewound=True)

    def settled(self) -> None:
        """Wait for what is done behind the agent."""
        assert self.provider._line.wait(60)

    def leave(self) -> None:
        """Exit in good order."""
        self.provider.on_session_end(self.messages)
        self.provider.shutdown()
        self.worker.shutdown()

    def die(self) -> None:
        """End as a kill does: nobody is told, and the kernel lets go of what was held."""
        self.settled()
        self.worker.shutdown()
        for claim in list(claims._held.values()):
            claim.release()


def tool(ident: str, name: str, given: Message, result: object) -> list[Message]:
    """A call and what it gave."""
    made = {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    said = result if isinstance(result, str) else json.dumps(result)
    return [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": ident, "tool_name": name, "content": said},
    ]


def row(home: Path, session: str, parent: str | None = None) -> None:
    home.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, parent_session_id TEXT)")
        db.execute(
            "CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT,"
            " content TEXT, tool_call_id TEXT, tool_calls TEXT, timestamp REAL, active INTEGER DEFAULT 1,"
            " compacted INTEGER DEFAULT 0, observed INTEGER DEFAULT 0)"
        )
        db.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?)", (session, parent))


def keep(home: Path, session: str, messages: Sequence[Message]) -> None:
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        for m in messages:
            calls = json.dumps(m["tool_calls"]) if m.get("tool_calls") else None
            db.execute(
                "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, timestamp)"
                " VALUES (?, ?, ?, ?, ?, 4102444800)",
                (session, m["role"], m["content"], m.get("tool_call_id"), calls),
            )


def rows(home: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "state.db")) as db:
        return db.execute("SELECT * FROM messages ORDER BY id").fetchall()


def archive(home: Path, session: str) -> None:
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1", (session,))


@pytest.fixture
def ledger(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with an active task, in the folder that the host works in; the program is forked instead of started."""
    one = threading.Lock()

    def child(self: Embedded, said: Sequence[str], given: str, timeout: float) -> Ran:
        mark = shims.mark(said[2]) if said[0] == "/bin/sh" else None
        with one:
            ran = gitledger(repo.path, *(("hook", *mark) if mark else said[1:]), stdin=given.encode())
        return Ran(ran.status, ran.out.rstrip("\n"), ran.err.strip())

    ledger = begin(repo)
    key = do(ledger, tasks.add, "Invoices as PDF", goal="The office prints them", accept=("tests pass",))
    do(ledger, tasks.start, key)
    monkeypatch.setattr(Embedded, "_child", child)
    monkeypatch.setattr(shutil, "which", lambda name: f"/{name}")
    monkeypatch.setenv("TERMINAL_CWD", str(repo.path))
    yield ledger
    for claim in list(claims._held.values()):
        claim.release()


def events(repo: Repo, *kinds: str) -> list[Event]:
    ledger = again(repo)
    faults: list[Any] = []
    ledger.view()
    found = [one.event for one in reading.events(ledger.desk.store.get, ledger.tip(), faults)]
    return [event for event in (*found, *ledger.pending) if not kinds or event.type in kinds]


def log(ledger: Ledger) -> str:
    path = Path(ledger.desk.home.state, "log")
    return path.read_text() if path.exists() else ""


def key(session: str) -> str:
    return layout.session_key("hermes", session)


# ── turns ────────────────────────────────────────────────────────────────────────────────────
def test_a_turn_is_told_in_the_words_of_its_messages_and_our_own_are_left_out() -> None:
    messages: list[Message] = [
        {"role": "system", "content": "You are Hermes"},
        {"role": "user", "content": "earlier"},
        *tool("c0", "terminal", {"command": "true"}, {"output": "", "exit_code": 0, "error": None}),
        {"role": "assistant", "content": "earlier done"},
        {"role": "user", "content": CAPSULED.format("mend it"), "api_content": CAPSULED.format("mend it")},
        *tool("c1", "terminal", {"command": "pytest"}, {"output": "E  x\n1 failed", "exit_code": 1, "error": None}),
        *tool("c2", "write_file", {"path": "/r/a.py", "content": "x"}, {"bytes_written": 1}),
        *tool("c3", "patch", {"mode": "patch", "patch": "*** Update File: b.py\n"}, {"success": True}),
        *tool("c4", "write_file", {"path": "c.py"}, {"error": "Permission denied: c.py"}),
        *tool("c5", "execute_code", {"code": "print(1)"}, {"output": "1", "status": "success"}),
        *tool("c6", "read_file", {"path": "d.py"}, "not JSON {"),
        {"role": "user", "content": "[System: go on]"},
        {"role": "assistant", "content": [{"type": "text", "text": "Mended."}]},
    ]
    turn = turns.newest(messages, "mend it")
    assert (turn.prompt, turn.answer) == ("mend it", "Mended.")
    assert turns.payload(turn, cwd="/r") == {
        "tool": "terminal, write_file ×2, patch, execute_code, read_file",
        "files": ["a.py", "b.py"],
        "commands": [
            {"command": "pytest", "exit": 1, "output": "E  x\n1 failed"},
            {"command": "execute_code: print(1)", "output": "1"},
        ],
        "errors": ["1 failed", "Permission denied: c.py"],
    }
    known = [turns.call_id(call) for call in turn.calls[:5]]
    assert turns.payload(turn, known, "/r") == {"tool": "read_file"}
    assert turns.newest(None, "hello") == Turn("hello")
    assert turns.newest([{"role": "assistant"}, {"role": "tool"}, {}], "hello") == Turn("hello")
    odd: list[Any] = [{"role": "user", "content": "x"}, 7, {"role": "assistant", "tool_calls": [3, {"function": 4}]}]
    assert turns.newest(odd, "x") == Turn("x")


def test_a_turn_is_journalled_once_however_often_it_is_told(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    run = tool("c1", "terminal", {"command": "pytest"}, {"output": "1 failed, 3 passed in 0.1s", "exit_code": 1})
    host.turn("mend it", "Not yet.", *run)
    host.sync("mend it", "Not yet.")
    host.turn("go on", "ok")
    host.turn("go on", "ok")
    host.leave()
    told = [event.data for event in events(repo, "turn")]
    assert [(data["answer"], data.get("tool", "")) for data in told] == [
        ("Not yet.", "terminal"),
        ("ok", ""),
        ("ok", ""),
    ]
    assert told[0]["commands"] == [{"command": "pytest", "exit": 1, "output": "1 failed, 3 passed in 0.1s"}]
    assert told[0]["results"]
    assert [event.data["prompt"] for event in events(repo, "prompt")] == ["mend it", "go on", "go on"]
    journal = json.dumps([event.data for event in events(repo)])
    assert BEGIN not in journal
    assert "memory-context" not in journal
    [left] = [e.records for e in events(repo, "handover.written")]
    fields = next(change.set for name, change in left.items() if name.startswith("H-"))
    assert fields["ran"][0]["command"] == "pytest"
    assert (fields["turns"], fields["last_prompt"], fields["last_answer"]) == (3, "go on", "ok")
    assert log(ledger) == ""


def test_what_hermes_remembers_and_hands_on_is_noted_and_nothing_is_concluded_from_it(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    host.turn("remember it")
    given = {"session_id": "one", "old_text": "Ada drinks coffee", "write_origin": "assistant"}
    host.provider.on_memory_write("replace", "user", "Ada drinks tea", metadata=given)
    host.provider.on_delegation("count the files", "All 3 tests pass", child_session_id="child")
    host.settled()
    notes = [event.data for event in events(repo, "tool")]
    assert [data["tool"] for data in notes] == ["memory", "delegate_task"]
    assert notes[0]["note"] == "replace in user\nwas: Ada drinks coffee\nAda drinks tea"
    assert notes[1]["note"] == "asked of child: count the files\nit says: All 3 tests pass"
    assert not any("results" in data or "commands" in data for data in notes)
    known = again(repo).view().need(key("one"))
    assert (known.text("last_prompt"), known.text("last_answer")) == ("remember it", "It is done.")
    host.leave()


# ── what the model is given ──────────────────────────────────────────────────────────────────
def test_a_prompt_is_given_all_first_and_after_a_compaction_and_else_what_has_changed(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    assert host.provider.system_prompt_block() == PROMPT
    first = host.turn("hello")
    assert first.startswith("# gitledger briefing")
    assert first.count(BEGIN) == first.count(END) == 1
    assert "The office prints them" in first
    assert host.turn("go on") == ""
    do(ledger, entries.decide, "Invoices use A4", "No other paper", None, None)
    changed = host.turn("go on then")
    assert "Invoices use A4" in changed
    assert "The office prints them" not in changed
    told = host.compact()
    assert told.startswith("Checkpoint: C-000001\n")
    assert len(told) <= 6_000
    whole = host.turn("after it")
    assert whole.startswith(BEGIN)
    assert "The office prints them" in whole
    assert host.turn("and on") == ""
    host.compact("two")
    host.settled()
    assert host.turn("in the next one").startswith(BEGIN)
    assert host.provider.system_prompt_block() == PROMPT
    host.leave()
    assert log(ledger) == ""
    assert [event.data["event"] for event in events(repo, "receipt")].count("compacted") == 1


def test_a_program_that_does_not_answer_keeps_no_prompt_and_the_next_one_is_given_all(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path / "h")
    host.settled()
    run = Embedded.run
    asked: list[float] = []

    def late(self: Embedded, *said: str, given: str = "", timeout: float = 30.0) -> Ran:
        asked.append(timeout)
        return Ran(LATE, error="gitledger did not end within 4 seconds")

    monkeypatch.setattr(Embedded, "run", late)
    assert host.turn("hello").startswith("# gitledger briefing"), "what is there already is given"
    assert max(asked) + OPENED < 8, "Hermes waits no longer"
    assert "hermes: a prompt's capsule: gitledger did not end" in log(ledger)
    assert [said for said in host.said if "did not end" in said] == [
        "gitledger: a prompt's capsule: gitledger did not end within 4 seconds"
    ]
    monkeypatch.setattr(Embedded, "run", run)
    assert BEGIN in host.turn("once more")
    host.leave()


def test_another_agent_of_the_same_talk_in_one_process_is_not_given_all_again(ledger: Ledger, tmp_path: Path) -> None:
    first = Host(tmp_path / "h")
    assert BEGIN in first.turn("hello")
    again_ = Host(tmp_path / "h")
    assert again_.turn("go on") == "", "a gateway makes an agent anew for each message"
    again_.leave()
    assert BEGIN in Host(tmp_path / "h").turn("later"), "that one was closed"


def test_the_advice_of_a_context_that_fills_reaches_the_person_once(ledger: Ledger, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    for used in (10_000, 50_000, 51_000, 57_000):
        context.tell("one", used, 100_000)
        host.turn(f"with {used}")
        assert "gitledger: checkpoint" not in json.dumps(host.messages)
    context.tell("one", True, 0)
    assert context.figures("one") == {"used": 57_000, "limit": 100_000}
    assert context.figures("nobody") == {}
    [said] = [said for said in host.said if "%" in said]
    assert said.startswith("gitledger: checkpoint: 50 % of the context is used")
    host.leave()
    other = Host(tmp_path / "h", "two")
    other.provider._status = None  # a gateway's, which has the model alone to tell its person by
    context.tell("two", 60_000, 100_000)
    other.turn("with much")
    assert other.turn("and on").endswith(
        "60 % of the context is used, and there are 3 events in no checkpoint; gitledger checkpoint"
    )
    assert "For the person" not in other.turn("further")
    other.leave()


# ── tools ────────────────────────────────────────────────────────────────────────────────────
def test_each_tool_answers_with_one_json_object_or_one_line_on_what_failed(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    assert host.tools == tools.NAMES

    def call(name: str, **given: object) -> dict[str, Any]:
        said = host.provider.handle_tool_call(name, given, messages=[])
        value = json.loads(said)
        assert isinstance(value, dict)
        assert "\n" not in str(value.get("error", ""))
        return value

    assert call("ledger_task", action="add", title="--help me", accept=["-x"])["text"] == "T-0002"
    assert call("ledger_task", action="start", id="T-0002", next="-n is next")["text"].startswith("T-0002")
    assert "error" not in call("ledger_task", action="next", text="Write it")
    assert call("ledger_task", action="todo", text="one step")["text"]
    assert "error" not in call("ledger_task", action="evidence", claim="I saw it", criterion="c1")
    assert {row["id"] for row in call("ledger_task", action="list")["result"]} == {"T-0001", "T-0002"}
    assert call("ledger_task", action="show", id="T-0002")["result"]["next"] == "Write it"
    assert "without standing evidence" in call("ledger_task", action="done", id="T-0001")["error"]
    assert call("ledger_decide", title="Use A4", why="No other paper", task="-")["text"] == "D-0001"
    assert call("ledger_search", text="paper")["result"]["total"] == 1
    assert "No other paper" in call("ledger_get", what="D-0001")["text"]
    made = call("ledger_checkpoint", reason="asked")["result"]
    assert made["checkpoint"] == "C-000001"
    for name, given in (
        ("ledger_get", {"what": "T-0099"}),
        ("ledger_get", {"what": "../../etc/passwd"}),
        ("ledger_get", {}),
        ("ledger_get", {"what": "a\0b"}),
        ("ledger_search", {"text": "x", "limit": "9"}),
        ("ledger_task", {"action": "evidence", "run": "touch here"}),
        ("ledger_task", {"action": "drop everything"}),
        ("ledger_task", {"action": "add", "title": "x", "accept": "y"}),
        ("ledger_decide", {"title": "without a reason"}),
        ("ledger_nothing", {}),
    ):
        assert call(name, **given)["error"], (name, given)
    assert not (repo.path / "here").exists()
    assert json.loads(tools.call(None, "ledger_get", {"what": "T-0001"}))["error"]
    host.leave()


# ── sessions ─────────────────────────────────────────────────────────────────────────────────
def test_each_way_to_another_session_keeps_whose_it_goes_on_from(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    host.turn("in one")
    host.switch("two", "one", "new_session", reset=True)
    host.turn("in two")
    host.switch("three", "two", "branch")
    host.turn("in three")
    host.compact("four")
    host.settled()
    host.turn("in four")
    host.switch("one", "four", "resume")
    host.turn("in one again")
    host.leave()
    view = again(repo).view()
    found = {name: view.need(key(name)) for name in ("one", "two", "three", "four")}
    parents = {name: one.text("parent") for name, one in found.items()}
    assert parents == {"one": "", "two": key("one"), "three": key("two"), "four": key("three")}
    assert {name: one.text("state") for name, one in found.items()} == dict.fromkeys(found, "closed")
    assert [event.session for event in events(repo, "turn")] == list(map(key, ("one", "two", "three", "four", "one")))
    path = gitledger(repo.path, "show", key("two"), "--json").json()["path"]
    assert f"**Goes on from:** `{key('one')}`" in gitledger(repo.path, "get", path).out
    assert log(ledger) == ""
    assert gitledger(repo.path, "rebuild", "--check").status == 0


def test_a_compaction_closes_no_session_and_an_end_told_twice_makes_one_handover(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    host.turn("hello")
    host.compact()
    host.provider.on_session_end(host.messages)
    host.provider.on_session_end([])
    host.settled()
    assert again(repo).view().need(key("one")).text("state") == "open"
    host.leave()
    host.provider.shutdown()
    assert len(events(repo, "handover.written")) == 1
    assert len(events(repo, "session.closed")) == 1


def test_a_turn_that_was_taken_back_is_no_longer_told_as_done(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    host.turn("keep this")
    host.turn("paint it red", "It is red.")
    host.undo()
    host.settled()
    assert BEGIN in host.turn("paint it blue", "It is blue."), "what it was given may have gone with the turn"
    host.undo()
    host.settled()
    assert [event.data["undone"] for event in events(repo, "prompt") if "undone" in event.data] == [
        ["paint it red"],
        ["paint it blue"],
    ]
    host.leave()
    [left] = [e.records for e in events(repo, "handover.written")]
    fields = next(change.set for name, change in left.items() if name.startswith("H-"))
    assert fields["asked"] == ["keep this"]
    assert (fields["last_prompt"], fields["last_answer"]) == ("", "")
    back = "Taken back by the person, with its turn; files stay as they are: paint it red; paint it blue"
    assert back in fields["state"]
    assert not any("cut off" in line for line in fields["state"])
    assert gitledger(repo.path, "rebuild", "--check").status == 0


# ── cut off ──────────────────────────────────────────────────────────────────────────────────
def test_what_never_reached_the_provider_is_made_good_once(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    home = tmp_path / "h"
    host = Host(home)
    host.turn("one")
    host.turn("two", "It is done.", *tool("c1", "terminal", {"command": "make"}, {"output": "made", "exit_code": 0}))
    host.compact()
    host.turn("three", "lost", sync=False)
    half = tool("c2", "terminal", {"command": "make half"}, {"output": "half", "exit_code": 0})
    host.turn("four", "", *half, sync=False)
    with closing(sqlite3.connect(home / "state.db")) as db, db:
        db.execute("INSERT INTO messages (session_id, role, content, observed) VALUES ('one', 'user', 'chatter', 1)")
    host.die()
    before = rows(home)
    both = [Host(home, "two"), Host(home, "three")]
    for one in both:
        one.settled()
    told = [(event.type, event.data.get("answer") or event.data.get("tool")) for event in events(repo, "turn", "tool")]
    assert told == [("turn", "It is done."), ("turn", "It is done."), ("turn", "lost"), ("tool", "terminal")]
    assert [e.data["prompt"] for e in events(repo, "prompt")] == ["one", "two", "three", "four"]
    commands = [c["command"] for e in events(repo, "turn", "tool") for c in e.data.get("commands", ())]
    assert commands == ["make", "make half"]
    for one in both:
        one.leave()
    Host(home, "one").leave()
    assert len(events(repo, "turn", "tool")) == 4
    assert rows(home) == before
    with closing(statedb._opened(str(home))) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM messages")
    assert log(ledger) == ""


def test_only_what_is_missing_is_missing() -> None:
    turn = Turn("ask", "answer", (Call("c1", "terminal"), Call("c2", "terminal")))
    ids = turns.ids(turn, "in other words")
    assert len(ids) == 4
    known = Counter(["p" + ids[0][1:], *ids])
    assert statedb.missing(turn, Counter(ids), copied=False) == []
    calls = [one for one in ids if one.startswith("c")]
    under_way = Counter([turns.prompt_id("ask"), *calls])
    [(event, said)] = statedb.missing(turn, under_way, copied=False)
    assert (event, said["answer"], "tool" in said) == ("turn", "answer", False), (
        "what ran was told, and its end was not"
    )
    assert statedb.missing(turn, under_way, copied=True) == []
    known.update(f"ended {one}" for one in calls)
    other = Turn("in words of the database", "answer", turn.calls)
    assert statedb.missing(other, known, copied=False) == [], "its calls are known, whatever it is called"
    fresh: Counter[str] = Counter()
    assert [event for event, _ in statedb.missing(turn, fresh, copied=True)] == ["prompt", "turn"]
    assert statedb.missing(turn, fresh, copied=True) == [], "a compaction's copy of it"
    plain = Turn("go on", "ok")
    counted = Counter(["t" + turns.turn_id(plain)[1:], turns.prompt_id("go on")])
    assert statedb.missing(plain, counted, copied=False) == []
    assert [event for event, _ in statedb.missing(plain, counted, copied=False)] == ["prompt", "turn"], "said twice"


def test_an_interrupted_turn_is_journalled_with_what_it_had_run(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    run = tool("c1", "terminal", {"command": "make"}, {"output": "made", "exit_code": 0})
    host.turn("begin it", "", *run, sync=False)
    host.provider.on_pre_compress(host.messages)
    host.turn("something else")
    host.turn("and that", "", *tool("c2", "write_file", {"path": "a.py"}, {"bytes_written": 1}), sync=False)
    host.leave()
    told = [(event.type, event.data.get("tool", "")) for event in events(repo, "turn", "tool")]
    assert told == [("tool", "terminal"), ("turn", ""), ("tool", "write_file")]
    [left] = [e.records for e in events(repo, "handover.written")]
    fields = next(change.set for name, change in left.items() if name.startswith("H-"))
    assert fields["files"] == ["a.py"]
    assert "The last request was cut off before its turn ended." in fields["state"]


def test_a_session_that_a_living_process_has_is_nobody_elses(ledger: Ledger) -> None:
    common = ledger.gitdir.common
    mine = claims.take(common, "main", "one")
    assert mine is not None
    assert claims.take(common, "main", "one") is mine
    assert claims.take(common, "main", "one", new=False) is None
    assert list(claims.left(common, "main")) == []
    fd = os.open(mine.path, os.O_RDWR)
    mine.release()
    mine.release()
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert claims.take(common, "main", "one") is None
    os.close(fd)
    assert [claim.session for claim in claims.left(common, "main")] == ["one"]
    assert Path(mine.path).stat().st_mode & 0o077 == 0
    os.utime(mine.path, (0, 0))
    assert list(claims.left(common, "main")) == []
    assert not Path(mine.path).exists()


# ── compaction ───────────────────────────────────────────────────────────────────────────────
def test_a_required_checkpoint_is_durable_or_refused_and_the_same_evidence_makes_no_second_one(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    host.turn("hello")
    assert host.provider.pre_compress_checkpoint_api_version == 2
    first = host.provider.on_pre_compress(host.messages, require_checkpoint=True)
    assert first.startswith("Checkpoint: C-000001\n")
    assert BEGIN in first
    tip = again(repo).tip()
    assert host.provider.on_pre_compress(host.messages, require_checkpoint=True).startswith("Checkpoint: C-000001\n")
    assert again(repo).tip() == tip
    host.turn("more")
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    with pytest.raises(RuntimeError, match=r"^BLOCKED_MISSING_PREREQUISITE: .*gitledger compaction allow --once"):
        host.provider.on_pre_compress(host.messages, require_checkpoint=True)
    assert host.provider.on_pre_compress(host.messages) == ""
    assert "hermes: compact: BLOCKED_MISSING_PREREQUISITE" in log(ledger)
    assert any("BLOCKED_MISSING_PREREQUISITE" in said for said in host.said)
    repo.git("update-ref", "refs/heads/ledger/main", tip)
    host.leave()


# ── where nothing is to be written ───────────────────────────────────────────────────────────
def test_where_no_ledger_is_nothing_is_written_and_the_person_hears_why(
    ledger: Ledger, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, bare = tmp_path / "plain", tmp_path / "bare"
    plain.mkdir()
    repo.git("init", "-q", str(bare))
    for folder, said in ((plain, 1), (bare, 0)):
        monkeypatch.setenv("TERMINAL_CWD", str(folder))
        host = Host(tmp_path / "h")
        assert host.tools == set()
        assert host.turn("hello") == ""
        assert host.provider.system_prompt_block() == ""
        assert host.compact() == ""
        assert host.provider.on_pre_compress([], require_checkpoint=True) == "", "Hermes asks it of every folder"
        host.leave()
        assert len(host.said) == said, host.said
    assert list(plain.iterdir()) == []
    assert not (bare / ".git" / "gitledger").exists()
    monkeypatch.setenv("TERMINAL_CWD", str(repo.path))
    before = len(events(repo))
    for given in ({"agent_context": "cron"}, {"agent_context": "subagent"}, {"platform": "cron"}):
        other = Host(tmp_path / "h", **given)
        other.turn("by the clock")
        other.leave()
    looked = Ours()
    looked.initialize_for_inspection("looked at", platform="cli", hermes_home=str(tmp_path / "h"))
    assert looked.system_prompt_block() == PROMPT
    assert {schema["name"] for schema in looked.get_tool_schemas()} == tools.NAMES
    monkeypatch.setenv("GITLEDGER_DISABLE", "1")
    off = Host(tmp_path / "h")
    off.turn("switched off")
    off.leave()
    assert off.provider.on_pre_compress([], require_checkpoint=True) == ""
    assert "GITLEDGER_DISABLE" in health.absent(str(repo.path))
    assert len(events(repo)) == before


def test_how_the_ledger_fares_is_read_from_the_disk(ledger: Ledger, repo: Repo, tmp_path: Path) -> None:
    host = Host(tmp_path / "h")
    assert host.provider._at is not None
    host.turn("hello")
    told = dict(health.told(host.provider._at))
    assert told["last event"].startswith("turn at ")
    assert told["last event"].endswith("in the log")
    assert told["last checkpoint"] == "none yet"
    assert told["last error"] == "none"
    host.compact()
    host.provider._complain("it\nbroke")
    told = dict(health.told(host.provider._at))
    assert told["last checkpoint"].startswith("C-000001 at ")
    assert told["last error"].endswith("hermes: it\\nbroke")
    host.leave()
    assert dict(health.told(host.provider._at))["last event"].endswith("journalled")
    assert "is in no git repository" in health.absent(str(tmp_path))


def test_jobs_are_done_in_order_and_one_that_fails_keeps_none_from_being_done() -> None:
    failed: list[Exception] = []
    line = Line("test", failed.append)
    done: list[int] = []
    gate = threading.Event()
    line.add(lambda: gate.wait(30) and done.append(1))  # type: ignore[func-returns-value]
    line.add(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    line.add(lambda: done.append(2))
    assert not line.idle()
    assert not line.wait(0.0)
    gate.set()
    assert line.wait(30)
    assert line.idle()
    assert done == [1, 2]
    assert [type(e) for e in failed] == [ZeroDivisionError]
