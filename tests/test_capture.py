"""Capture: every turn's bytes reach the right ledger, at about the price of Python's start, and never fail the work."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gitledger
from gitledger import capture, gitdir, wal
from tests.sealed import Repo, new_repo

SOURCE = os.path.dirname(os.path.dirname(gitledger.__file__))
HEAVY = {"click", "contextlib", "dataclasses", "gitledger.cli", "gitledger.model", "hashlib", "json", "pathlib"}
HEAVY |= {"pydantic", "pygit2", "re", "subprocess", "tempfile", "typing", "yaml"}


def begin(repo: Repo, *names: str) -> None:
    for name in names or ("main",):
        wal.create(os.path.join(gitdir.state(str(repo.path / ".git")), "wal", name))


def logged(repo: Repo, name: str = "main") -> list[tuple[str, str, bytes]]:
    entries, findings = wal.pending(os.path.join(gitdir.state(str(repo.path / ".git")), "wal", name))
    assert findings == []
    return [(entry.client, entry.event, entry.payload) for entry in entries]


def complaints(repo: Repo) -> list[str]:
    path = Path(gitdir.state(str(repo.path / ".git"))) / "log"
    return path.read_text().splitlines() if path.exists() else []


def start(*words: str, cwd: Path, stdin: Any = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gitledger", *words],
        cwd=cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCE, **env},
    )


def hook(payload: bytes, *words: str, cwd: Path, **env: str) -> None:
    """Run the real program on a fast hook; it must succeed and print nothing."""
    process = start(*(words or ("hook", "generic", "turn")), cwd=cwd, **env)
    out, err = process.communicate(payload, timeout=300)
    assert (process.returncode, out, err) == (0, b"", b"")


def run_in(script: str, *args: str, cwd: Path) -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path.insert(0, {SOURCE!r})\n{script}"
    return subprocess.Popen([sys.executable, "-c", code, *args], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def ours(repo: Repo) -> Repo:
    begin(repo)
    return repo


# ── what is logged, and where ────────────────────────────────────────────────────────────────
ODD = [b"", b"not JSON", b'{"a": "\\u00e4\n"}', b"\0\xff\r\n\\n", b'{"a":' + b"[" * 100_000]
CUT = [b"{", b'{"a', b'{"cwd": "/x', b'{"cwd": nul}', b'{"a": {"b": 1}']


@pytest.mark.parametrize("payload", ODD + CUT)
@pytest.mark.process
def test_a_payload_is_logged_byte_for_byte_whatever_it_is(ours: Repo, payload: bytes) -> None:
    hook(payload, cwd=ours.path)
    assert logged(ours) == [("generic", "turn", payload)]
    assert complaints(ours) == []


@pytest.mark.parametrize("event", sorted(capture.FAST))
@pytest.mark.process
def test_every_fast_event_of_any_client_is_logged(ours: Repo, event: str) -> None:
    hook(b"{}", "hook", "some-client", event, cwd=ours.path)
    assert logged(ours) == [("some-client", event, b"{}")]


@pytest.mark.process
def test_the_payloads_folder_wins_over_the_environment_and_that_over_the_process(tmp_path: Path) -> None:
    repos = [new_repo(tmp_path / name) for name in ("payload", "claude", "gemini", "own", "process")]
    for repo in repos:
        begin(repo)
    said, claude, gemini, own, process = repos
    env = {"CLAUDE_PROJECT_DIR": claude.path, "GEMINI_PROJECT_DIR": gemini.path, "GITLEDGER_PROJECT_DIR": own.path}
    left = {name: str(path) for name, path in env.items()}
    hook(json.dumps({"n": {"cwd": "/"}, "cwd": str(said.path)}).encode(), cwd=process.path, **left)
    assert [len(logged(repo)) for repo in repos] == [1, 0, 0, 0, 0]
    for number, name in enumerate(env, start=1):
        hook(b"{}", cwd=process.path, **left)
        assert [len(logged(repo)) for repo in repos] == [1] * (number + 1) + [0] * (4 - number)
        del left[name]
    hook(b'{"cwd": 7}', cwd=process.path)
    assert [len(logged(repo)) for repo in repos] == [1] * 5


@pytest.mark.process
def test_a_repository_without_a_ledger_is_passed_over_for_one_that_has_it(ours: Repo, tmp_path: Path) -> None:
    other = new_repo(tmp_path / "other")
    payload = json.dumps({"cwd": str(other.path)}).encode()
    hook(payload, cwd=ours.path)
    assert logged(ours) == [("generic", "turn", payload)]


@pytest.mark.process
def test_a_linked_worktree_logs_to_its_repositorys_ledger_under_its_own_name(ours: Repo, tmp_path: Path) -> None:
    ours.git("worktree", "add", "-q", str(tmp_path / "linked"))
    hook(b"{}", cwd=tmp_path / "linked")
    hook(b"{}", cwd=ours.path)
    entries, _ = wal.pending(os.path.join(gitdir.state(str(ours.path / ".git")), "wal", "main"))
    assert [entry.worktree for entry in entries] == ["linked", "main"]


@pytest.mark.process
def test_a_named_folder_wins_over_everything(ours: Repo, tmp_path: Path) -> None:
    other = new_repo(tmp_path / "other")
    begin(other)
    payload = json.dumps({"cwd": str(other.path)}).encode()
    hook(payload, "-C", str(ours.path), "hook", "generic", "turn", cwd=other.path)
    hook(payload, "-C", "../repo", "hook", "generic", "turn", cwd=other.path)
    assert (len(logged(ours)), logged(other)) == (2, [])


@pytest.mark.process
def test_a_named_ledger_wins_over_main(repo: Repo) -> None:
    begin(repo, "main", "side", "third")
    hook(b"1", "--ledger", "side", "hook", "generic", "turn", cwd=repo.path)
    hook(b"2", "--ledger=side", "hook", "generic", "turn", cwd=repo.path, GITLEDGER_LEDGER="third")
    hook(b"3", cwd=repo.path, GITLEDGER_LEDGER="third")
    hook(b"4", cwd=repo.path)
    found = [[payload for _, _, payload in logged(repo, name)] for name in ("side", "third", "main")]
    assert found == [[b"1", b"2"], [b"3"], [b"4"]]


# ── what is not ──────────────────────────────────────────────────────────────────────────────
def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_size) for p in [folder, *folder.rglob("*")])


@pytest.mark.process
def test_an_uninitialised_repository_gets_no_write_at_all(repo: Repo) -> None:
    before = listing(repo.path)
    hook(b"{}", cwd=repo.path)
    hook(b"{}", "-C", str(repo.path), "--ledger", "main", "hook", "generic", "turn", cwd=repo.path)
    hook(json.dumps({"cwd": str(repo.path)}).encode(), cwd=repo.path, GITLEDGER_LEDGER="main")
    assert listing(repo.path) == before


@pytest.mark.process
def test_outside_of_any_repository_nothing_happens(tmp_path: Path) -> None:
    hook(b"{}", cwd=tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.process
def test_disabled_means_no_write_and_a_pipe_that_does_not_break(ours: Repo) -> None:
    before = listing(ours.path)
    hook(b"x" * 2_000_000, cwd=ours.path, GITLEDGER_DISABLE="1")
    assert listing(ours.path) == before


@pytest.mark.parametrize(
    "words",
    [
        "hook generic start",
        "hook generic compact",
        "hook generic end",
        "hook generic",
        "hook generic turn --json",
        "hook Generic turn",
        "hook ../x turn",
        "--json hook generic turn",
        "status",
        "-C",
        "--ledger",
        "",
    ],
)
def test_other_words_are_left_to_the_whole_program_before_anything_is_read(words: str) -> None:
    # Stdin is pytest's own here, which raises when it is read.
    assert capture.main(words.split()) is None


# ── stdin ────────────────────────────────────────────────────────────────────────────────────
NEVER = """
from gitledger import capture
capture.DEADLINE = float(sys.argv[1])
sys.exit(capture.main(["hook", "generic", "turn"]))
"""


@pytest.mark.process
def test_a_stdin_that_never_closes_ends_with_the_json_value(ours: Repo) -> None:
    process = run_in(NEVER, "3600", cwd=ours.path)
    assert process.stdin is not None
    process.stdin.write(b'{"turn": 1}\n')
    process.stdin.flush()
    assert process.wait(timeout=300) == 0
    process.communicate()
    assert logged(ours) == [("generic", "turn", b'{"turn": 1}\n')]


@pytest.mark.parametrize("sent", [b"", b'{"turn": ', b"no JSON"])
@pytest.mark.process
def test_a_stdin_that_never_closes_ends_at_the_deadline(ours: Repo, sent: bytes) -> None:
    process = run_in(NEVER, "0.3", cwd=ours.path)
    assert process.stdin is not None
    process.stdin.write(sent)
    process.stdin.flush()
    assert process.wait(timeout=300) == 0
    process.communicate()
    assert logged(ours) == [("generic", "turn", sent)]


@pytest.mark.process
def test_slow_chunks_are_waited_for(ours: Repo) -> None:
    process = start("hook", "generic", "turn", cwd=ours.path)
    assert process.stdin is not None
    for part in (b'{"a": {}', b', "b": "}', b'"}'):
        process.stdin.write(part)
        process.stdin.flush()
        time.sleep(3 * capture._QUIET)
    process.communicate()
    assert logged(ours) == [("generic", "turn", b'{"a": {}, "b": "}"}')]


@pytest.mark.process
def test_five_megabytes_are_kept_and_what_is_more_is_read_and_said_to_be_cut(ours: Repo, tmp_path: Path) -> None:
    head = json.dumps({"cwd": str(ours.path), "text": ""}).encode()[:-2]
    whole = head + b"x" * (capture.LIMIT - len(head) - 2) + b'"}'
    hook(whole, cwd=tmp_path)
    assert logged(ours) == [("generic", "turn", whole)]
    assert complaints(ours) == []
    longer = head + b"x" * capture.LIMIT + b'"}'
    hook(longer, cwd=tmp_path)
    assert logged(ours)[1] == ("generic", "turn", longer[: capture.LIMIT])
    [line] = complaints(ours)
    assert line.endswith(f"hook generic turn: the payload was cut at {capture.LIMIT} bytes")


@pytest.mark.process
def test_what_is_cut_is_not_kept_in_memory(tmp_path: Path) -> None:
    script = """
import tracemalloc
from gitledger import capture
tracemalloc.start()
text, cut = capture.read_stdin(1000, 60)
print(len(text), cut, tracemalloc.get_traced_memory()[1] < 1_000_000)
"""
    process = run_in(script, cwd=tmp_path)
    assert process.communicate(b"x" * 20_000_000, timeout=300)[0] == b"1000 True True\n"


@pytest.mark.process
def test_no_stdin_worth_reading_is_an_empty_payload(ours: Repo) -> None:
    master, slave = pty.openpty()
    for stdin in (slave, subprocess.DEVNULL):
        process = start("hook", "generic", "turn", cwd=ours.path, stdin=stdin)
        assert process.communicate(timeout=300) == (b"", b"")
        assert process.returncode == 0
    os.close(master)
    os.close(slave)
    closed = f"exec {sys.executable} -m gitledger hook generic turn <&-"
    subprocess.run(
        ["sh", "-c", closed], cwd=ours.path, env={**os.environ, "PYTHONPATH": SOURCE}, check=True, timeout=300
    )
    assert logged(ours) == [("generic", "turn", b"")] * 3


# ── failures ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.process
def test_a_log_that_cannot_be_written_is_one_line_for_the_doctor_and_no_failure(ours: Repo) -> None:
    log = Path(gitdir.state(str(ours.path / ".git")))
    (log / "wal" / "main" / wal.CURRENT).symlink_to("/dev/null")
    hook(b"{}", cwd=ours.path)
    [line] = complaints(ours)
    assert "hook generic turn: CannotWrite: " in line
    assert line[:20].startswith("20")
    (log / "log").unlink()
    (log / "log").mkdir()
    hook(b"{}", cwd=ours.path)


@pytest.mark.process
def test_a_ledger_that_is_not_here_is_said_in_the_log(ours: Repo) -> None:
    hook(b"{}", cwd=ours.path, GITLEDGER_LEDGER="other")
    assert logged(ours) == []
    assert "no ledger other here" in complaints(ours)[0]


@pytest.mark.process
def test_a_folder_that_was_deleted_under_the_hook_is_no_failure(ours: Repo) -> None:
    gone = ours.path / "gone"
    gone.mkdir()
    script = "import os; os.rmdir(os.getcwd()); from gitledger import capture; sys.exit(capture.main(sys.argv[1:]))"
    process = run_in(script, "hook", "generic", "turn", cwd=gone)
    process.communicate(b"{}", timeout=300)
    assert process.returncode == 0


@pytest.mark.process
def test_a_hook_that_hangs_is_ended(ours: Repo) -> None:
    script = """
import time
from gitledger import capture, wal
capture.ALARM = 0.2
wal.append = lambda *args, **named: time.sleep(600)
capture.main(["hook", "generic", "turn"])
"""
    process = run_in(script, cwd=ours.path)
    process.communicate(b"{}", timeout=300)
    assert process.returncode == -signal.SIGALRM


def test_the_log_of_failures_is_bounded_and_one_line_each(ours: Repo) -> None:
    common = str(ours.path / ".git")
    capture.log(common, "two\nlines \x1b[31m \u202e and \ud800")
    assert complaints(ours)[0][25:] == "two\\nlines \\x1b[31m \\u202e and \\ud800"
    for _ in range(400):
        capture.log(common, "begin" + "x" * 50_000 + "end")
    assert complaints(ours)[-1][25:30] == "begin"
    assert complaints(ours)[-1].endswith("xend")
    sizes = {name: os.path.getsize(f"{common}/gitledger/{name}") for name in ("log", "log.1")}
    assert all(size < capture.LOG_LIMIT + 9000 for size in sizes.values())
    assert sorted(os.listdir(gitdir.state(common))) == ["log", "log.1", "wal"]
    assert os.stat(f"{common}/gitledger/log").st_mode & 0o777 == 0o600


# ── its price ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.process
def test_capture_imports_nothing_that_costs(ours: Repo) -> None:
    script = """
before = set(sys.modules)
from gitledger import __main__, capture
status = capture.main(["hook", "generic", "turn"])
print(status, *sorted(set(sys.modules) - before))
"""
    process = run_in(script, cwd=ours.path)
    out, _ = process.communicate(
        json.dumps({"cwd": str(ours.path), "a": [1, 2.5, None, {"b": "c"}]}).encode(), timeout=300
    )
    status, *modules = out.decode().split()
    assert status == "0"
    assert len(logged(ours)) == 1
    assert set(modules) & HEAVY == set()
    assert {name for name in modules if name.startswith("gitledger")} == {
        "gitledger",
        "gitledger.__main__",
        "gitledger.capture",
        "gitledger.errors",
        "gitledger.frame",
        "gitledger.gitdir",
        "gitledger.wal",
    }


# ── just enough JSON ─────────────────────────────────────────────────────────────────────────
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("cwd"), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5) | st.just("cwd"), VALUES), st.booleans(), st.sampled_from([None, 1]))
def test_the_folder_is_what_json_says_it_is(value: dict[str, Any], plain: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=plain, indent=indent)
    wanted = value.get("cwd")
    assert capture._cwd_of(text.encode()) == (wanted if isinstance(wanted, str) else None)


def test_a_payload_that_was_cut_after_its_folder_still_names_it() -> None:
    assert capture._cwd_of(b' {"a": [1, {}], "cwd": "/x\\u00e4", "text": "abc') == "/xä"
    assert capture._cwd_of(b'{"a": "cwd') is None
    assert capture._cwd_of(b'[{"cwd": "/x"}]') is None


def test_another_python_without_the_c_scanner_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_json", None)
    assert capture._cwd_of(b'{"a": {"cwd": "/no"}, "cwd": "/x"}') == "/x"
    assert capture._whole(b'{"a": 1}\n')
    assert not capture._whole(b'{"a": 1')
