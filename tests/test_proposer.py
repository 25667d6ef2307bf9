"""A command that proposes: what is taken from what it prints, what comes back to it, and how it is ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitledger import proposer
from gitledger.errors import Missing
from gitledger.schema import BadChangeSet
from tests.patience import LONGEST, begun, ended, until

GOOD = '{"key": "good", "n": 1}'
Script = Callable[[str], list[str]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """A command that runs some Python, with `n` the number of the attempt and `prompt` what came on stdin."""

    def make(body: str) -> list[str]:
        head = f"import json, os, pathlib, sys, time\nplace = pathlib.Path({str(tmp_path)!r})\n"
        head += "n = len(list(place.glob('prompt*'))) + 1\nprompt = sys.stdin.read()\n"
        head += "(place / f'prompt{n}').write_text(prompt)\n"
        (tmp_path / "propose.py").write_text(head + body)
        return [sys.executable, "-P", str(tmp_path / "propose.py")]

    return make


def asked(errors: tuple[str, ...]) -> str:
    """The prompt of these tests."""
    return "\n".join(("Propose.", *errors))


def taken(data: bytes) -> str:
    """What these tests accept: an object whose key says that it is good."""
    found = json.loads(data)
    if found.get("key") != "good":
        raise BadChangeSet(("key: is not good", "n: is missing"))
    return data.decode()


def run(command: list[str], tmp_path: Path, deadline: float = 60.0, key: str = "") -> proposer.Proposed[str]:
    return proposer.propose(command, asked, taken, cwd=tmp_path, deadline=deadline, key=key)


@pytest.mark.parametrize(
    ("printed", "key"),
    [
        (GOOD, ""),
        (f"Here it is, {{so to say}}:\n\n```json\n{GOOD}\n```\nAnything else?", ""),
        (f'An example: {{"key": "bad"}}. And now mine: {GOOD}', ""),
        (f'{GOOD}\nI left {{"this": 1}} out.', "key"),
        (json.dumps({"type": "result", "is_error": False, "result": f"Well: {GOOD}", "usage": {"key": 1}}), "key"),
        ('\ufeff{ "broken": ' + GOOD, "key"),
    ],
)
def test_the_document_is_found_in_whatever_stands_around_it(printed: str, key: str) -> None:
    assert proposer.document(printed.encode(), key) == GOOD.encode()


@pytest.mark.parametrize("printed", [b"", b"no", b"[1, 2]", b"{", b'"{}"'[:2], b"\xff\xfe", b'{"a":' * 200_000])
def test_an_answer_without_a_document_is_an_error_that_can_be_sent_back(printed: bytes) -> None:
    with pytest.raises(BadChangeSet) as e:
        proposer.document(printed)
    assert e.value.errors == ("the answer holds no JSON object",)


def test_an_answer_that_is_made_to_be_read_again_and_again_is_read_so_often_and_no_more() -> None:
    looked = 0

    class Text(str):
        def find(self, *args: object) -> int:
            nonlocal looked
            looked += 1
            return super().find(*args)  # type: ignore[arg-type]

    row = '{"a": [' + "1, " * 1000
    assert proposer._objects(Text(row * 300)) == []
    assert looked < 200


def test_what_was_refused_goes_back_with_every_error(script: Script, tmp_path: Path) -> None:
    command = script(f'print(\'{{"key": "bad"}}\' if n == 1 else {GOOD!r})')
    assert run(command, tmp_path) == proposer.Proposed(GOOD, 2)
    assert (tmp_path / "prompt1").read_text() == "Propose."
    assert (tmp_path / "prompt2").read_text() == "Propose.\nkey: is not good\nn: is missing"


def test_after_three_refusals_there_is_no_proposal_and_it_says_why(script: Script, tmp_path: Path) -> None:
    found = run(script("print('{}'); print('let me think', file=sys.stderr)"), tmp_path)
    assert (found.value, found.attempts) == (None, 3)
    assert found.why == "after 3 attempts: its document was refused: key: is not good; n: is missing"
    assert found.heard == "let me think\n" * 3
    assert not (tmp_path / "prompt4").exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit(3)", "it ended with 3"),
        (f"print({GOOD!r}); sys.exit('no model\\n')", "it ended with 1 (no model)"),
        ("os.kill(os.getpid(), 9)", "it was ended by signal 9"),
        ("print('x' * (1 << 21)); time.sleep(60)", "it printed more than 1 MiB"),
        ("while True: print('x' * 1000, file=sys.stderr) if n < 1 else sys.exit(1)", "it ended with 1"),
    ],
)
def test_a_process_that_fails_is_an_attempt_without_an_answer(
    script: Script, tmp_path: Path, body: str, why: str
) -> None:
    found = run(script(body), tmp_path)
    assert (found.value, found.why) == (None, f"after 3 attempts: {why}")
    assert (tmp_path / "prompt3").read_text() == "Propose."  # nothing of it was the document's fault


def test_all_attempts_share_one_deadline_and_all_children_end_with_it(script: Script, tmp_path: Path) -> None:
    body = "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\n"
    body += "(place / 'pids').write_text(f'{os.getpid()} {child.pid}')\nprint('{', flush=True)\ntime.sleep(300)"
    command, pids = script(body), tmp_path / "pids"
    given: list[float] = []

    def attempt(seconds: float) -> proposer.Proposed[str]:
        given.append(seconds)
        return run(command, tmp_path, deadline=seconds)

    found = begun(attempt, lambda _: pids.exists() and len(pids.read_text().split()) == 2, 1.5)
    assert (found.value, found.attempts) == (None, 1)
    assert found.why == f"it did not end in time; then the {given[-1]:g} seconds for all attempts were over"
    for pid in pids.read_text().split():
        assert ended(int(pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_asks_and_is_ended_ends_the_proposer_first(
    script: Script, tmp_path: Path, number: signal.Signals
) -> None:
    body = "(place / 'pid').write_text(str(os.getpid()))\ntime.sleep(300)"
    words = f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\nfrom gitledger import proposer\n"
    words += "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # under nohup it is ignored
    words += f"proposer.propose({script(body)!r}, lambda _: '', lambda data: data, cwd={str(tmp_path)!r})"
    asking = subprocess.Popen([sys.executable, "-P", "-c", words], stderr=subprocess.DEVNULL)
    pid = tmp_path / "pid"
    assert until(lambda: pid.exists() and pid.read_text())
    asking.send_signal(number)
    asking.wait(LONGEST)
    assert ended(int(pid.read_text()))
    assert asking.returncode != 0


def test_a_child_that_is_left_behind_holds_nobody_up_and_is_ended(script: Script, tmp_path: Path) -> None:
    body = "import subprocess\nchild = subprocess.Popen(['sleep', '300'])\n"
    body += f"(place / 'pid').write_text(str(child.pid))\nprint({GOOD!r})"
    assert run(script(body), tmp_path).value == GOOD
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_prompt_that_nobody_reads_or_that_no_pipe_holds_is_no_fault(tmp_path: Path) -> None:
    for command in (["sh", "-c", f"exec <&-; echo '{GOOD}'"], ["sh", "-c", f"wc -c >count; echo '{GOOD}'"]):
        long = proposer.propose(command, lambda _: "x" * 3_000_000, taken, cwd=tmp_path, deadline=60)
        assert long.value == GOOD
    assert (tmp_path / "count").read_text().split() == ["3000000"]


def test_a_command_that_is_not_there_is_said_once_and_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"the proposer no-such-program cannot be started .*proposer\.command"):
        run(["no-such-program"], tmp_path)


def test_a_proposer_knows_nothing_of_the_session_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {
        "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID",
        "CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CODEX_SANDBOX", "CLAUDE_PROJECT_DIR", "GEMINI_CLI", "CURSOR_TRACE_ID",
        "GIT_DIR", "GIT_INDEX_FILE", "OPENCODE", "QWEN_CODE", "GITLEDGER_PROJECT_DIR",
    }  # fmt: skip
    kept = {
        "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_HOME", "CODEX_API_KEY",
        "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENCODE_CONFIG", "COPILOT_PROVIDER_BASE_URL",
        "GEMINI_API_KEY", "GIT_SSH_COMMAND", "PATH", "HOME", "PI_CODING_AGENT_DIR",
    }  # fmt: skip
    for name in gone | (kept - {"PATH", "HOME"}):
        monkeypatch.setenv(name, "1")
    found = proposer.environment()
    assert not gone & found.keys()
    assert kept <= found.keys()
    assert found["GITLEDGER_PROPOSING"] == found["GITLEDGER_DISABLE"] == "1"
