"""Clients: what each says is read as what it is, and each is answered and refused in the form that it knows.

The payloads in `data/payloads/` came from the clients themselves; for Kiro and Cursor their documentation stands here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import capture, clients, hooks, layout, lock, sessions, transaction, wal
from gitledger.clients import events, generic, usage
from gitledger.clients.answers import Answer
from gitledger.ledger import Ledger
from gitledger.schema import CommandRun, GenericPayload
from tests.ledgers import again, begin
from tests.process.program import gitledger, works
from tests.sealed import LONG, Repo
from tests.test_fuzz import JSON, PAYLOADS, taken

FUZZ = settings(max_examples=60 if LONG else 25)
REAL = Path(__file__).parent / "data" / "payloads"

# ── what is said ─────────────────────────────────────────────────────────────────────────────
Said = tuple[str, dict[str, Any]]
ASKED, RAN, RAN_WELL = (CommandRun("echo tool-ran", *told) for told in ((), (None, "tool-ran"), (0, "tool-ran")))
SHARED: dict[str, Said] = {
    "SessionStart/startup": ("start", {"source": "startup"}),
    "SessionStart/resume": ("start", {"source": "resume"}),
    "SessionStart/compact": ("start", {"source": "compact"}),
    "UserPromptSubmit": ("prompt", {"prompt": "hello TOOLCALL"}),
    "PreToolUse": ("tool", {"tool": "Bash", "commands": (ASKED,)}),
    "PostToolUse": ("tool", {"tool": "Bash", "commands": (RAN,)}),
    "PreCompact/manual": ("compact", {"trigger": "manual"}),
    "PreCompact/auto": ("compact", {"trigger": "auto"}),
    "PostCompact/manual": ("compacted", {"trigger": "manual"}),
    "Stop": ("turn", {"answer": "FAKE-REPLY ok."}),
    "SessionEnd/other": ("end", {"reason": "other"}),
}
GOOGLES: dict[str, Said] = {
    "PreToolUse": ("tool", {"tool": "run_shell_command", "commands": (ASKED,)}),
    "PostToolUse": ("tool", {"tool": "run_shell_command", "commands": (RAN,)}),
}
SAID: dict[str, dict[str, Said]] = {
    "claude-code": {
        **SHARED,
        "UserPromptSubmit": ("prompt", {"prompt": "third"}),
        "PreToolUse": ("tool", {"tool": "Bash", "commands": (CommandRun("rm -rf /lab/repo"),)}),
        "SubagentStop": ("turn", {}),
        "SessionStart/clear": ("start", {"source": "clear"}),
        "SessionStart/fork": ("start", {"source": "fork", "used": 1212}),
        "SessionStart/resume": ("start", {"source": "resume", "used": 95012}),
        "SessionEnd/clear": ("end", {"reason": "clear"}),
        "SessionEnd/prompt_input_exit": ("end", {"reason": "prompt_input_exit"}),
    },
    "codex": SHARED,
    "droid": {
        **SHARED,
        "PreToolUse": ("tool", {"tool": "Execute", "commands": (ASKED,)}),
        "PostToolUse": ("tool", {"tool": "Execute", "commands": (RAN_WELL,)}),
        "Stop": ("turn", {}),
    },
    "qwen": {
        **SHARED,
        **GOOGLES,
        "PostToolUse": ("tool", {"tool": "run_shell_command", "commands": (RAN_WELL,)}),
        "Stop": ("turn", {"answer": "FAKE-REPLY ok.", "used": 1200, "limit": 200000}),
    },
    "gemini": {
        **SHARED,
        "BeforeAgent": ("prompt", {"prompt": "hello TOOLCALL"}),
        "AfterAgent": SHARED["Stop"],
        "BeforeTool": GOOGLES["PreToolUse"],
        "AfterTool": GOOGLES["PostToolUse"],
        "PreCompress/auto": SHARED["PreCompact/auto"],
        "SessionEnd/exit": ("end", {"reason": "exit"}),
    },
    "copilot": {
        **SHARED,
        "PostToolUse": ("tool", {"tool": "Bash", "commands": (RAN_WELL,)}),
        "Stop": ("turn", {}),
        "SessionStart/new": ("start", {"source": "new"}),
        "SessionEnd/complete": ("end", {"reason": "complete"}),
        "sessionStart/new": ("start", {"source": "new"}),
        "sessionStart/resume": ("start", {"source": "resume"}),
        "userPromptSubmitted": ("prompt", {"prompt": "second TOOLCALL"}),
        "preToolUse": ("tool", {"tool": "bash", "commands": (ASKED,)}),
        "postToolUse": ("tool", {"tool": "bash", "commands": (RAN_WELL,)}),
        "preCompact/auto": SHARED["PreCompact/auto"],
        "preCompact/manual": SHARED["PreCompact/manual"],
        "agentStop": ("turn", {}),
        "sessionEnd/complete": ("end", {"reason": "complete"}),
    },
    "opencode": {
        "event:session.created": ("start", {}),
        "chat.message": ("prompt", {}),
        "tool.execute.before": ("tool", {"tool": "bash"}),
        "tool.execute.after": ("tool", {"tool": "bash"}),
        "event:session.idle": ("turn", {}),
        "session.compacting": ("compact", {}),
        "event:session.compacted": ("compacted", {}),
    },
    "pi": {
        "session_start/startup": ("start", {"source": "startup"}),
        "before_agent_start": ("prompt", {"prompt": "again"}),
        "tool_call": ("tool", {"tool": "bash"}),
        "tool_result": ("tool", {"tool": "bash"}),
        "session_before_compact/threshold": ("compact", {"trigger": "threshold"}),
        "session_compact/threshold": ("compacted", {"trigger": "threshold"}),
        "session_shutdown/quit": ("end", {"reason": "quit"}),
    },
}
"""Our word for each event of each client, and what its payload says besides session, folder and transcript."""
SILENT = {"plugin.load", "dispose", "system.transform", "event:session.status", "compaction.autocontinue"}
SILENT |= {"agent_end", "agent_settled", "turn_end"}
"""What the plugins' runs logged that carries nothing, or that has no word of ours."""


def real(client: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((REAL / f"{client}.json").read_text())
    return found


def said(client: str, event: str, payload: object) -> GenericPayload:
    """What a payload says; nothing may be wrong with it."""
    found, faults = clients.adapter(client).translate(event, json.dumps(payload).encode())
    assert faults == []
    return found


@pytest.mark.parametrize("client", SAID)
def test_every_real_payload_says_what_the_client_meant(client: str) -> None:
    for name, payload in real(client).items():
        if name in SILENT:
            continue
        event, rest = SAID[client][name]
        found = said(client, event, payload)
        info = payload.get("info", {})
        inner = payload.get("input", {})
        ids = [at.get(key) for at in (payload, inner) for key in ("session_id", "sessionId", "sessionID", "file")]
        expected = GenericPayload(
            session_id=next((one for one in ids if one), ""),
            cwd=payload.get("cwd", info.get("directory", "")),
            transcript=payload.get("transcript_path", payload.get("transcriptPath", "")),
            **rest,
        )
        assert found == expected, name


DOCUMENTED: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("kiro", "start", {"hook_event_name": "SessionStart", "source": "startup"}, {"source": "startup"}),
    ("kiro", "prompt", {"prompt": "hello"}, {"prompt": "hello"}),
    ("kiro", "turn", {"assistant_response": "done"}, {"answer": "done"}),
    (
        "kiro",
        "tool",
        {"tool_name": "execute_bash", "tool_input": {"command": "ls"}, "tool_response": {"result": ["a", "b"]}},
        {"tool": "execute_bash", "commands": (CommandRun("ls", None, "a\nb"),)},
    ),
    ("cursor", "prompt", {"conversation_id": "s", "workspace_roots": ["/lab"], "prompt": "p"}, {"prompt": "p"}),
    ("cursor", "turn", {"hook_event_name": "afterAgentResponse", "text": "done"}, {"answer": "done"}),
    (
        "cursor",
        "tool",
        {"hook_event_name": "afterShellExecution", "command": "ls", "output": "a"},
        {"tool": "Shell", "commands": (CommandRun("ls", None, "a"),)},
    ),
    (
        "cursor",
        "tool",
        {"hook_event_name": "afterFileEdit", "file_path": "/lab/a.py", "edits": []},
        {"tool": "Edit", "files": ("/lab/a.py",)},
    ),
    (
        "cursor",
        "compact",
        {"trigger": "auto", "context_tokens": 9, "context_window_size": 10},
        {"trigger": "auto", "used": 9, "limit": 10},
    ),
]


@pytest.mark.parametrize(("client", "event", "payload", "rest"), DOCUMENTED)
def test_what_the_documentation_tells_is_read(
    client: str, event: str, payload: dict[str, Any], rest: dict[str, Any]
) -> None:
    found = said(client, event, {"session_id": "s", "cwd": "/lab", **payload})
    assert found == GenericPayload(session_id="s", cwd="/lab", **rest)


FAILED: list[tuple[str, dict[str, Any], int | None, str, str]] = [
    ("claude-code", {"error": "Exit code 2\nusage: x\nno such file"}, 2, "usage: x\nno such file", "no such file"),
    ("claude-code", {"error": "Command timed out"}, None, "Command timed out", "Command timed out"),
    ("droid", {"tool_response": "1 failed\n\n[Process exited with code 1]"}, 1, "1 failed", "1 failed"),
    ("qwen", {"tool_response": {"llmContent": "Output: no\nExit Code: 3", "returnDisplay": "no"}}, 3, "no", "no"),
    ("gemini", {"tool_response": {"llmContent": "Output: no\nExit Code: 4", "returnDisplay": "no"}}, 4, "no", "no"),
    ("gemini", {"tool_response": {"error": {"message": "denied"}}}, None, "denied", "denied"),
    (
        "copilot",
        {"tool_result": {"result_type": "failure", "text_result_for_llm": "no such tool"}},
        None, "no such tool", "no such tool",
    ),
    ("codex", {"tool_response": {"output": "a\nb", "exit_code": 5}}, 5, "a\nb", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("client", "told", "status", "output", "error"), FAILED)
def test_a_command_that_failed_leaves_its_status_and_the_exact_error(
    client: str, told: dict[str, Any], status: int | None, output: str, error: str
) -> None:
    found = said(client, "tool", {"tool_name": "bash", "tool_input": {"command": "x"}, **told})
    assert found.commands == (CommandRun("x", status, output),)
    assert found.errors == (error,)


EDITS: list[tuple[str, str, dict[str, Any]]] = [
    ("claude-code", "Edit", {"file_path": "{top}/src/a.py", "old_string": "", "new_string": ""}),
    ("claude-code", "NotebookEdit", {"notebook_path": "{top}/src/a.py"}),
    ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** End Patch"}),
    ("gemini", "write_file", {"file_path": "{top}/src/a.py"}),
    ("qwen", "edit", {"file_path": "{top}/src/a.py"}),
    ("copilot", "create", {"path": "{top}/src/a.py"}),
    ("droid", "Create", {"file_path": "{top}/src/a.py"}),
    ("kiro", "fs_write", {"command": "create", "path": "src/a.py"}),
]


@pytest.mark.parametrize(("client", "tool", "given"), EDITS)
def test_a_file_that_a_tool_wrote_is_named_from_the_work_trees_root(
    client: str, tool: str, given: dict[str, Any], repo: Repo
) -> None:
    given = {name: str(value).replace("{top}", str(repo.path.resolve())) for name, value in given.items()}
    payload = {"cwd": str(repo.path), "tool_name": tool, "tool_input": given}
    assert said(client, "tool", payload).files == ("src/a.py",)
    assert said(client, "tool", {**payload, "tool_name": "Read"}).files == ()
    (repo.path / "sub").mkdir(exist_ok=True)
    below = said(client, "tool", {**payload, "cwd": str(repo.path / "sub")}).files
    assert below == (("src/a.py",) if str(repo.path.resolve()) in str(given) else ("sub/src/a.py",))


@pytest.mark.parametrize("client", ["opencode", "pi"])
def test_a_plugin_names_files_as_it_was_told_and_the_work_trees_root_is_taken_off(client: str, repo: Repo) -> None:
    top = str(repo.path.resolve())
    told = {"session_id": "s", "cwd": top, "tool": "edit", "files": [f"{top}/src/a.py", "b.py", "/elsewhere/c"]}
    assert said(client, "tool", told).files == ("src/a.py", "b.py", "/elsewhere/c")


@pytest.mark.parametrize("client", SAID)
def test_a_session_that_its_person_left_is_no_interruption(client: str) -> None:
    for name, (event, rest) in SAID[client].items():
        if event == "end" and name in real(client):
            assert rest["reason"] in sessions.ENDED


def test_what_was_not_written_is_not_named_as_changed() -> None:
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "/x/a"}}
    assert said("claude-code", "tool", edit).files == ("/x/a",)
    assert said("claude-code", "tool", {**edit, "error": "File has not been read yet"}).files == ()
    look = {"tool_name": "str_replace_editor", "tool_input": {"command": "view", "path": "a"}}
    assert said("copilot", "tool", look).files == ()


def test_our_own_text_in_a_prompt_is_left_out_and_the_persons_is_kept() -> None:
    block = "<hook_context># gitledger briefing: Shop\n\nNext</hook_context>\n\n"
    for prompt, kept in (
        (block + "do it", "do it"),
        (block + block + "do it", "do it"),
        ("what is <hook_context>x</hook_context>?", "what is <hook_context>x</hook_context>?"),
        ("<hook_context>never closed", "<hook_context>never closed"),
    ):
        assert said("gemini", "prompt", {"prompt": prompt}).prompt == kept


def test_a_subagents_last_words_are_not_the_sessions_answer() -> None:
    told = {"hook_event_name": "SubagentStop", "last_assistant_message": "from below"}
    assert said("claude-code", "turn", told).answer == ""
    assert said("claude-code", "turn", {**told, "hook_event_name": "Stop"}).answer == "from below"


FIELDS = (
    "session_id", "cwd", "prompt", "tool_name", "tool_input", "tool_response", "tool_result", "error", "input", "info",
    "reason", "file", "trigger", "workspace_roots", "hook_event_name", "context_tokens", "command",
)  # fmt: skip


@FUZZ
@given(
    st.sampled_from(clients.NAMES),
    st.sampled_from(clients.EVENTS),
    st.binary(max_size=60)
    | st.sampled_from(sorted(PAYLOADS)).map(PAYLOADS.__getitem__)
    | st.dictionaries(
        st.sampled_from(FIELDS),
        JSON | st.sampled_from(("Bash", "edit", "SubagentStop", "afterFileEdit", {"command": "x"}, {"path": "\ud800"})),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_any_bytes_from_any_client_are_one_event(client: str, event: str, payload: bytes) -> None:
    taken(payload, event, client)


@FUZZ
@given(data=st.data())
def test_a_real_payload_with_any_value_anywhere_is_one_event(data: st.DataObject) -> None:
    client = data.draw(st.sampled_from(sorted(SAID)))
    name, value = data.draw(st.sampled_from(sorted(real(client).items())))
    spot = value
    while spot:
        key = data.draw(st.sampled_from(sorted(spot)))
        if not isinstance(spot[key], dict) or data.draw(st.booleans()):
            spot[key] = data.draw(JSON)
            break
        spot = spot[key]
    event = SAID[client].get(name, ("receipt",))[0]
    taken(json.dumps(value).encode(), event, client)


# ── what is answered ─────────────────────────────────────────────────────────────────────────
TEXT = 'Checkpoint: "C-000001"\nNext action: größer'
HOOKED = {"hookEventName": "SessionStart", "additionalContext": TEXT}
ANSWERS: dict[str, tuple[object, object]] = {
    "generic": (TEXT, TEXT),
    "claude-code": (TEXT, TEXT),
    "codex": (TEXT, ""),
    "gemini": ({"hookSpecificOutput": HOOKED}, ""),
    "qwen": (TEXT, {"hookSpecificOutput": {**HOOKED, "hookEventName": "PreCompact"}}),
    "copilot": ({"additionalContext": TEXT}, ""),
    "droid": (TEXT, ""),
    "opencode": (TEXT, TEXT),
    "pi": (TEXT, TEXT),
    "hermes": (TEXT, TEXT),
    "nanobot": (TEXT, TEXT),
    "kiro": (TEXT, ""),
    "cursor": ({"additional_context": TEXT}, ""),
}
"""What a start and a compaction print."""
REFUSALS: dict[str, tuple[int, object, str]] = {
    "generic": (75, "", TEXT),
    "claude-code": (2, "", TEXT),
    "codex": (0, {"continue": False, "stopReason": TEXT}, ""),
    "gemini": (0, {"systemMessage": TEXT}, ""),
    "qwen": (1, "", TEXT),
    "copilot": (1, "", TEXT),
    "droid": (2, "", TEXT),
    "opencode": (2, "", TEXT),
    "pi": (2, "", TEXT),
    "hermes": (2, "", TEXT),
    "nanobot": (2, "", TEXT),
    "kiro": (2, "", TEXT),
    "cursor": (0, {"user_message": TEXT}, ""),
}
"""Exit status, stdout and stderr of a refusal."""


def printed(text: str, expected: object) -> object:
    return text if isinstance(expected, str) else json.loads(text)


@pytest.mark.parametrize("client", clients.NAMES)
def test_each_client_is_told_a_text_in_its_own_form_where_it_has_a_channel(client: str) -> None:
    speak = clients.adapter(client).answer
    for event, expected in zip(("start", "compact"), ANSWERS[client], strict=True):
        told = speak(event, TEXT)
        assert (printed(told.stdout, expected), told.stderr, told.code) == (expected, "", 0)
        assert speak(event, "") in (Answer(), Answer(""))
    for event in set(clients.EVENTS) - {"start", "compact", "prompt"}:  # of a prompt see test_prompted
        assert speak(event, TEXT) == Answer()


@pytest.mark.parametrize("client", clients.NAMES)
def test_each_client_is_refused_a_compaction_in_its_own_form(client: str) -> None:
    status, out, err = REFUSALS[client]
    told = clients.adapter(client).refusal(TEXT, 75)
    assert (told.code, printed(told.stdout, out), told.stderr) == (status, out, err)


def test_every_client_has_the_whole_surface_and_the_fast_path_knows_those_that_settle() -> None:
    settling = set()
    for name in clients.NAMES:
        adapter = clients.adapter(name)
        assert name == adapter.NAME
        assert adapter.CAN_REFUSE or adapter.SETTLES, f"{name} would compact without any checkpoint"
        assert name in clients.READERS
        if adapter.SETTLES:
            settling.add(name)
    assert settling == capture.SETTLING
    assert set(clients.DOCUMENTED) <= set(clients.NAMES)
    assert set(clients.EVENTS) >= capture.FAST


# ── what an event does ───────────────────────────────────────────────────────────────────────
NOW = 1_796_000_000_000


@pytest.fixture
def ledger(repo: Repo) -> Ledger:
    return begin(repo)


def heard(ledger: Ledger, event: str, at: int = NOW, client: str = "claude-code", **payload: Any) -> str:
    """The receipt of an event, as its hook logs it; its id."""
    data = json.dumps({"session_id": "s1", **payload}).encode()
    return wal.append(ledger.desk.home.wal, client, event, data, now_ms=at, rand=os.urandom(10)).id


def started(ledger: Ledger, receipt: str, **payload: object) -> str:
    found = said("claude-code", "start", {"session_id": "s1", **payload})
    return events.start(ledger, "claude-code", found, receipt)


def test_a_start_fired_twice_prints_one_briefing_whichever_hook_is_faster(ledger: Ledger) -> None:
    first = heard(ledger, "start", source="startup")
    second = heard(ledger, "start", NOW + 40, source="startup")
    assert started(ledger, second, source="startup") == ""
    assert started(ledger, first, source="startup").startswith("# gitledger briefing")


def test_a_start_fired_twice_is_one_though_a_commit_came_between(ledger: Ledger) -> None:
    assert started(ledger, heard(ledger, "start", source="startup"), source="startup")
    ledger.checkpoint()
    assert started(ledger, heard(ledger, "start", NOW + 900, source="startup"), source="startup") == ""


def test_a_client_that_compacts_before_it_resumes_is_briefed_once(ledger: Ledger) -> None:
    heard(ledger, "compact", NOW - 500, trigger="auto")
    assert started(ledger, heard(ledger, "start", source="resume"), source="resume")
    assert started(ledger, heard(ledger, "start", NOW + 200, source="compact"), source="compact") == ""
    heard(ledger, "compact", NOW + 300, trigger="manual")
    assert started(ledger, heard(ledger, "start", NOW + 400, source="compact"), source="compact")


def test_a_start_under_a_held_lock_is_briefed_and_told_of_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hooks, "PATIENCE", 0.05)
    monkeypatch.setattr(transaction, "LOCK_DEADLINE", None)  # nobody waits that long here
    monkeypatch.setattr(capture, "read_stdin", lambda *_: (b'{"session_id": "s1"}', False))
    with lock.held(ledger.desk.home.lock, deadline=1):
        assert hooks.take("claude-code", "start", str(ledger.gitdir.top)) == 0
        told = capsys.readouterr().out
        assert hooks.take("claude-code", "end", str(ledger.gitdir.top)) == 0
    assert told.startswith("# gitledger briefing")
    assert f"is held by process {os.getpid()}" in told
    assert "is held" in Path(ledger.gitdir.common, "gitledger", "log").read_text()


BETWEEN = [
    ("start", NOW + 10, {"source": "clear"}, "for another reason"),
    ("start", NOW + generic.TWICE + 1, {"source": "startup"}, "later"),
    ("start", NOW + 10, {"source": "startup", "session_id": "s2"}, "in another window"),
]


@pytest.mark.parametrize(("event", "at", "payload", "why"), BETWEEN)
def test_a_start_that_is_another_one_prints_its_own(
    event: str, at: int, payload: dict[str, str], why: str, ledger: Ledger
) -> None:
    assert started(ledger, heard(ledger, "start", source="startup"), source="startup")
    assert started(ledger, heard(ledger, event, at, **payload), **payload), why


@pytest.mark.parametrize("between", ["prompt", "tool", "turn", "compact", "compacted", "end"])
def test_a_start_after_anything_else_prints_its_own(between: str, ledger: Ledger) -> None:
    assert started(ledger, heard(ledger, "start", source="resume"), source="resume")
    heard(ledger, between, NOW + 5, prompt="p", last_assistant_message="a", reason="exit")
    assert started(ledger, heard(ledger, "start", NOW + 10, source="resume"), source="resume")


def compacted(ledger: Ledger, client: str = "claude-code", **payload: Any) -> str:
    """What a compaction that is announced prints."""
    heard(ledger, "compact", client=client, **payload)
    return events.compact(ledger, clients.adapter(client), said(client, "compact", {"session_id": "s1", **payload}))


def name(told: str) -> str:
    return told.split("\n")[0].removeprefix("Checkpoint: ")


def test_a_compaction_announced_twice_makes_one_checkpoint_and_hands_over_its_capsule(ledger: Ledger) -> None:
    works(Path(ledger.gitdir.top), "task", "add", "Discounts", "--goal", "Prices fall")
    works(Path(ledger.gitdir.top), "task", "start", "T-0001", "--next", "Write discount()")
    first = compacted(ledger, trigger="auto")
    assert compacted(ledger, trigger="auto") == first
    assert name(first) == "C-000001"
    assert "[PROJECT LEDGER CAPSULE]" in first
    assert 'Objective: "Prices fall"' in first
    assert "<<< T-0001\nWrite discount()\n>>> T-0001" in first
    heard(ledger, "prompt", prompt="go on")
    assert name(compacted(ledger, trigger="auto")) == "C-000002"


def test_a_client_that_announces_one_before_each_request_gets_one_checkpoint_a_turn(ledger: Ledger) -> None:
    assert name(compacted(ledger, "gemini", trigger="auto")) == "C-000001"
    for event in ("prompt", "tool", "tool"):
        heard(ledger, event, client="gemini", prompt="p", tool_name="x")
        (Path(ledger.gitdir.top) / "new.txt").write_text(event)
        assert name(compacted(ledger, "gemini", trigger="auto")) == "C-000001"
    heard(ledger, "turn", client="gemini", prompt_response="done")
    assert name(compacted(ledger, "gemini", trigger="auto")) == "C-000002"
    heard(ledger, "tool", client="gemini", tool_name="x")
    assert name(compacted(ledger, "gemini", trigger="manual")) == "C-000003"


def test_a_turns_end_settles_once_and_stands_for_a_compaction_that_follows_at_once(ledger: Ledger) -> None:
    heard(ledger, "turn", client="qwen", last_assistant_message="done")
    for _ in range(2):
        events.settle(ledger, "qwen", said("qwen", "turn", {"session_id": "s1"}))
    assert name(compacted(ledger, "qwen", trigger="manual")) == "C-000001"


def test_an_end_that_is_told_twice_leaves_one_handover(ledger: Ledger) -> None:
    started(ledger, heard(ledger, "start", source="startup"), source="startup")
    told = said("claude-code", "end", {"session_id": "s1", "reason": "other"})
    tips = []
    for _ in range(2):
        heard(ledger, "end", NOW + 9_000, reason="other")
        assert events.end(ledger, "claude-code", told) == ""
        tips.append(ledger.tip())
    assert tips[0] == tips[1]


def test_the_figures_of_a_context_are_kept_with_the_session(ledger: Ledger) -> None:
    heard(ledger, "turn", client="qwen", input_tokens=90_000, context_limit=200_000)
    heard(ledger, "turn", client="qwen", input_tokens=-1, context_limit=10**18)
    record = ledger.view().need(layout.session_key("qwen", "s1"))
    assert record.get("usage") == {"used": 90_000, "limit": 200_000}


CODEX = {
    "type": "event_msg",
    "payload": {
        "type": "token_count",
        "info": {
            "total_token_usage": {"input_tokens": 300_000, "total_tokens": 301_000},
            "last_token_usage": {"input_tokens": 94_900, "cached_input_tokens": 90_000, "total_tokens": 95_000},
            "model_context_window": 190_000,
        },
        "rate_limits": {"limit_id": "codex", "primary": None},
    },
}
CLAUDE = {
    "type": "assistant",
    "isSidechain": False,
    "message": {"usage": {"input_tokens": 12, "cache_creation_input_tokens": 4_988, "cache_read_input_tokens": 95_000}},
}
TRANSCRIPTS: list[tuple[str, list[object], dict[str, int] | None]] = [
    ("codex", [CODEX, {"type": "event_msg", "payload": {"type": "task_complete"}}], {"used": 95_000, "limit": 190_000}),
    ("codex", [{"type": "event_msg", "payload": {"type": "token_count", "info": None}}], None),
    ("claude-code", [CLAUDE, {**CLAUDE, "isSidechain": True, "message": {"usage": {"input_tokens": 1}}}],
     {"used": 100_000, "limit": 200_000}),
    ("claude-code", [{**CLAUDE, "message": {"usage": {"input_tokens": 300_000}}}], None),
    ("claude-code", ["no object", {"type": "assistant", "message": [1]}], None),
    ("claude-code", [{"message": {"usage": {"input_tokens": 1}}}], None),
    ("qwen", [CODEX, CLAUDE], None),
]  # fmt: skip


@pytest.mark.parametrize(("client", "rows", "figures"), TRANSCRIPTS)
def test_a_transcript_tells_how_much_of_the_context_is_used(
    client: str, rows: list[object], figures: dict[str, int] | None, ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "transcript.jsonl"
    lines = ['half a line"}', *map(json.dumps, rows), "\xff not JSON", ""]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    heard(ledger, "turn", client=client, transcript_path=str(path))
    heard(ledger, "turn", client=client, session_id="another", transcript_path=str(tmp_path))
    assert usage.read(ledger, layout.session_key(client, "s1")) == figures
    assert usage.read(ledger, layout.session_key(client, "another")) is None


@pytest.mark.parametrize("path", ["/dev/zero", "/nowhere/x", "", "/", "a\0b", "pipe"])
def test_what_is_no_transcript_tells_nothing_and_holds_nobody_up(path: str, ledger: Ledger, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    heard(ledger, "turn", transcript_path=str(tmp_path / "pipe") if path == "pipe" else path)
    assert usage.read(ledger, layout.session_key("claude-code", "s1")) is None


def test_a_checkpoint_that_takes_too_long_refuses_the_compaction(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(*_: object) -> str:
        time.sleep(20)
        return "never"

    monkeypatch.setattr(events, "compact", slow)
    monkeypatch.setattr(hooks, "DEADLINE", 0.05)
    monkeypatch.setattr(capture, "read_stdin", lambda *_: (b'{"session_id": "s1"}', False))
    assert hooks.take("claude-code", "compact", str(ledger.gitdir.top)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "BLOCKED_MISSING_PREREQUISITE: the checkpoint was not made within 0.05 seconds" in told.err


def test_a_start_or_an_end_that_takes_too_long_lets_the_client_go_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(*_: object, **__: object) -> None:
        time.sleep(20)

    monkeypatch.setattr(Ledger, "recover_sessions", slow)
    monkeypatch.setattr(Ledger, "end_session", slow)
    monkeypatch.setattr(hooks, "START", 1.0)
    monkeypatch.setattr(hooks, "END", 0.05)
    monkeypatch.setattr(capture, "read_stdin", lambda *_: (b'{"session_id": "s1"}', False))
    assert hooks.take("claude-code", "start", str(ledger.gitdir.top)) == 0
    assert "the session was not opened within 1 seconds" in capsys.readouterr().out
    assert hooks.take("claude-code", "end", str(ledger.gitdir.top)) == 0
    assert capsys.readouterr().out == ""
    assert "not closed within 0.05 seconds" in Path(ledger.gitdir.common, "gitledger", "log").read_text()


# ── the real program ─────────────────────────────────────────────────────────────────────────
@pytest.mark.process
def test_every_client_is_briefed_refused_and_recovered_by_the_real_program(ledger: Ledger, home: Path) -> None:
    top = ledger.gitdir.top
    for client in clients.NAMES:
        told = {"session_id": client, "cwd": top, "source": "startup", "pid": os.getpid()}
        ran = gitledger(Path(top), "hook", client, "start", stdin=told)
        assert (ran.status, ran.err) == (0, ""), client
        shown = ran.out if isinstance(ANSWERS[client][0], str) else str(json.loads(ran.out))
        assert "# gitledger briefing" in shown, client
    (key,) = [p for p in (home / ".local" / "share" / "gitledger").rglob("id_*") if p.suffix != ".pub"]
    key.rename(key.with_name("away"))
    for client in clients.NAMES:
        status, out, err = REFUSALS[client]
        ran = gitledger(Path(top), "hook", client, "compact", stdin={"session_id": client, "cwd": top})
        assert ran.status == (69 if client == "generic" else status), client
        assert bool(ran.out) == bool(out), client
        assert len(ran.err.splitlines()) == (1 if err else 0), client
        why = ran.err or str(json.loads(ran.out))
        assert "BLOCKED_MISSING_PREREQUISITE" in why, client
        assert "gitledger compaction allow --once" in why, client


@pytest.mark.process
def test_a_turn_of_a_client_that_cannot_be_refused_gets_its_checkpoint_behind_the_hooks_back(ledger: Ledger) -> None:
    top = Path(ledger.gitdir.top)
    before = ledger.tip()
    works(top, "hook", "codex", "turn", stdin={"session_id": "s1", "last_assistant_message": "one"})
    assert works(top, "hook", "gemini", "turn", stdin={"session_id": "s1", "prompt_response": "two"}) == ""
    until = time.monotonic() + 60
    while ledger.tip() == before and time.monotonic() < until:
        time.sleep(0.05)
    made = again(Repo(top)).view().record(layout.PROJECT)
    assert made is not None
    assert made.get("checkpoint")["name"] == "C-000001"


@pytest.mark.process
def test_an_unknown_event_is_a_usage_error(ledger: Ledger) -> None:
    for words in (("claude-code", "lunch"), ("No Body", "start"), ("person", "start"), ("gitledger", "turn")):
        assert gitledger(Path(ledger.gitdir.top), "hook", *words, stdin={}).status == 2


@pytest.mark.process
def test_logging_any_clients_turn_loads_no_adapter_and_nothing_heavy(ledger: Ledger) -> None:
    code = (
        "import os, sys\nfrom gitledger import capture\n"
        "for client in sys.argv[1:]:\n"
        "    for event in sorted(capture.FAST):\n"
        "        r, w = os.pipe(); os.write(w, b'{}'); os.close(w); os.dup2(r, 0); os.close(r)\n"
        "        assert capture.main(['hook', client, event], lambda *_: None) == 0\n"
        "print(*sorted(sys.modules))\n"
    )
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}", *clients.NAMES],
        cwd=ledger.gitdir.top,
        capture_output=True,
        check=True,
        timeout=300,
    )
    loaded = set(done.stdout.decode().split())
    assert not {name for name in loaded if name.startswith(("gitledger.clients", "gitledger.schema"))}
    assert not loaded & {"click", "dataclasses", "hashlib", "json", "pydantic", "pygit2", "re", "typing", "yaml"}
    entries, _ = wal.pending(ledger.desk.home.wal)
    assert len(entries) == len(clients.NAMES) * len(capture.FAST)
