"""The hooks' commands, run by real shells beside programs that are missing, broken, slow or good."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitledger import shims
from gitledger.wiring import CLIENTS
from tests.patience import ended
from tests.process.program import Ran
from tests.sealed import Repo, new_repo

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
CLAUDE = shims.command("claude-code", "compact", "status")
CODEX = shims.command("codex", "compact", "json")
TURN = shims.command("claude-code", "turn")
BLOCKED = "BLOCKED_MISSING_PREREQUISITE"
WAY_OUT = "gitledger compaction allow --once --reason WHY"
BARE = "/usr/bin:/bin"


def begun(folder: Path) -> Repo:
    """A repository whose ledger was begun, as far as a shell can see that."""
    repo = new_repo(folder)
    (repo.path / ".git/gitledger/wal/main").mkdir(parents=True)
    return repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return begun(tmp_path / "a repo")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each shell that may be /bin/sh, to run the text that a command gives it."""
    return str(request.param)


def program(folder: Path, text: str) -> Path:
    """A program called gitledger in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gitledger"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return folder


def run(command: str, cwd: Path, path: str | Path = "", *, shell: str = "sh", stdin: bytes = b"{}", **env: str) -> Ran:
    """Run a command as a client does, in the words of one shell."""
    script = command.removeprefix("/bin/sh -c '").removesuffix("'")
    assert "'" not in script
    done = subprocess.run(
        [shell, "-c", script],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={"HOME": str(cwd), "PATH": f"{path}:{BARE}" if path else BARE, **env},
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def silent(ran: Ran) -> bool:
    return (ran.status, ran.out, ran.err) == (0, "", "")


def says_why(ran: Ran) -> None:
    """Claude Code's refusal: exit 2, nothing on stdout, and in the end one line that names the way out."""
    assert (ran.status, ran.out) == (2, ""), ran
    last = ran.err.splitlines()[-1]
    assert BLOCKED in last
    assert WAY_OUT in last


def stops(ran: Ran) -> None:
    """Codex' refusal: exit 0 and exactly one JSON object."""
    assert ran.status == 0, ran
    said = json.loads(ran.out)
    assert said["continue"] is False
    assert BLOCKED in said["stopReason"]
    assert WAY_OUT in said["stopReason"]
    assert set(said) == {"continue", "stopReason"}


# ── nobody is bothered ───────────────────────────────────────────────────────────────────────
EVERY = [(client.name, event, client.shim(event)) for client in CLIENTS for _, event in client.events]


def test_no_command_says_or_writes_anything_where_there_is_no_gitledger_and_no_ledger(
    shell: str, tmp_path: Path
) -> None:
    bare = new_repo(tmp_path / "theirs")
    before = sorted(bare.path.rglob("*"))
    for name, event, command in EVERY:
        ran = run(command, bare.path, shell=shell)
        assert silent(ran), (name, event, ran)
    assert sorted(bare.path.rglob("*")) == before


def test_no_command_but_a_compactions_says_anything_where_the_program_is_gone(repo: Repo, shell: str) -> None:
    for name, event, command in EVERY:
        if event != "compact":
            assert silent(run(command, repo.path, shell=shell)), (name, event)


def test_nothing_is_said_outside_of_any_repository(tmp_path: Path, shell: str) -> None:
    assert silent(run(CLAUDE, tmp_path, shell=shell))
    assert silent(run(CODEX, tmp_path, shell=shell))


def test_a_teammate_with_the_program_and_no_ledger_notices_nothing(tmp_path: Path, shell: str) -> None:
    theirs = new_repo(tmp_path / "theirs")
    for failing in ("exit 1", "exit 127", "kill -9 $$"):
        broken = program(tmp_path / "bin", failing)
        assert silent(run(CLAUDE, theirs.path, broken, shell=shell))
        assert silent(run(CODEX, theirs.path, broken, shell=shell))


def test_what_fails_on_a_turn_is_neither_seen_nor_a_failure(repo: Repo, shell: str, tmp_path: Path) -> None:
    broken = program(tmp_path / "bin", "echo broken >&2; exit 2")
    assert silent(run(TURN, repo.path, broken, shell=shell))


def test_a_person_may_switch_it_off(repo: Repo, shell: str) -> None:
    assert silent(run(CLAUDE, repo.path, shell=shell, GITLEDGER_DISABLE="1"))
    assert silent(run(CODEX, repo.path, shell=shell, GITLEDGER_DISABLE="1"))


def test_a_client_whose_pipe_is_not_read_sees_no_broken_pipe(repo: Repo, shell: str) -> None:
    big = b'{"x": "' + b"y" * 3_000_000 + b'"}'
    child = subprocess.Popen(
        [shell, "-c", shims.script("codex", "turn")],
        cwd=repo.path,
        stdin=subprocess.PIPE,
        env={"PATH": BARE},
    )
    assert child.wait(timeout=120) == 0
    assert child.stdin
    child.stdin.write(big)  # raises BrokenPipeError where nobody reads
    child.stdin.close()


# ── failing closed ───────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "failing",
    ["exit 1", "exit 70", "echo half; exit 1", "kill -9 $$", "kill -SEGV $$", "exit 127", "cat >/dev/null; exit 75"],
)
def test_compaction_is_refused_where_the_program_fails(repo: Repo, tmp_path: Path, shell: str, failing: str) -> None:
    broken = program(tmp_path / "b in", failing)
    says_why(run(CLAUDE, repo.path, broken, shell=shell))
    stops(run(CODEX, repo.path, broken, shell=shell))


def test_compaction_is_refused_where_the_program_is_gone(repo: Repo, shell: str) -> None:
    says_why(run(CLAUDE, repo.path, shell=shell))
    stops(run(CODEX, repo.path, shell=shell))


def test_compaction_is_refused_where_what_runs_the_program_is_gone(repo: Repo, tmp_path: Path, shell: str) -> None:
    broken = program(tmp_path / "bin", "")
    (broken / "gitledger").write_text("#!/nowhere/python3\n")
    says_why(run(CLAUDE, repo.path, broken, shell=shell))
    stops(run(CODEX, repo.path, broken, shell=shell))


def test_compaction_is_refused_in_a_subfolder_a_linked_work_tree_and_by_a_symlink(
    repo: Repo, tmp_path: Path, shell: str
) -> None:
    repo.commit("first")
    (repo.path / "a b" / "c").mkdir(parents=True)
    tree = tmp_path / "linked tree"
    repo.git("worktree", "add", "-q", "-b", "side", str(tree))
    (tree / "deep").mkdir()
    by_symlink = tmp_path / "symlink"
    by_symlink.symlink_to(repo.path / "a b" / "c")
    for place in (repo.path / "a b" / "c", tree, tree / "deep", by_symlink):
        says_why(run(CLAUDE, place, shell=shell, PWD=str(place)))
        stops(run(CODEX, place, shell=shell))


def test_compaction_is_refused_in_a_submodule_by_its_own_ledger(repo: Repo, tmp_path: Path, shell: str) -> None:
    inner = new_repo(tmp_path / "inner")
    inner.commit("first")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    assert silent(run(CLAUDE, repo.path / "sub", shell=shell))
    (repo.path / ".git/modules/sub/gitledger/wal").mkdir(parents=True)
    says_why(run(CLAUDE, repo.path / "sub", shell=shell))


def test_a_program_that_does_not_end_is_ended_and_compaction_refused(repo: Repo, tmp_path: Path, shell: str) -> None:
    slow = program(tmp_path / "bin", "exec /bin/sleep 300")
    sleep = slow / "sleep"  # as long as the watch says, in a hurry
    sleep.write_text(f'#!/bin/sh\n[ "$1" = {shims.WATCH} ] || exit 9\nexec /bin/sleep 0.2\n')
    sleep.chmod(0o755)
    says_why(run(CLAUDE, repo.path, slow, shell=shell))
    stops(run(CODEX, repo.path, slow, shell=shell))


def test_where_nothing_can_watch_the_program_still_runs(repo: Repo, tmp_path: Path, shell: str) -> None:
    here = program(tmp_path / "bin", "echo made")
    ran = subprocess.run(
        [shutil.which(shell) or shell, "-c", shims.script("claude-code", "compact", "status")],
        cwd=repo.path, env={"PATH": str(here)}, input=b"", capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, b"made\n")


# ── handing over ─────────────────────────────────────────────────────────────────────────────
GOOD = 'echo "$*"; cat; echo'


def test_words_payload_and_output_go_through_whole(repo: Repo, tmp_path: Path, shell: str) -> None:
    good = program(tmp_path / "bin", GOOD)
    payload = json.dumps({"text": "it's \\n $HOME `x` \u2028 " + "z" * 200_000}).encode()
    for name, event, command in EVERY:
        ran = run(command, repo.path, good, shell=shell, stdin=payload)
        assert ran == Ran(0, f"hook {name} {event}\n{payload.decode()}\n", ""), (name, event)


def test_the_programs_own_refusal_goes_through(repo: Repo, tmp_path: Path, shell: str) -> None:
    refusing = program(tmp_path / "bin", "echo because >&2; exit 2")
    assert run(CLAUDE, repo.path, refusing, shell=shell) == Ran(2, "", "because\n")
    said = '{"continue": false, "stopReason": "because"}'
    refusing = program(tmp_path / "bin", f"echo '{said}'")
    assert run(CODEX, repo.path, refusing, shell=shell) == Ran(0, f"{said}\n", "")


def test_a_compaction_that_was_let_through_says_nothing(repo: Repo, tmp_path: Path, shell: str) -> None:
    good = program(tmp_path / "bin", "cat >/dev/null")
    assert silent(run(CLAUDE, repo.path, good, shell=shell))
    assert silent(run(CODEX, repo.path, good, shell=shell))


def test_the_program_is_found_where_the_clone_says_it_is(repo: Repo, tmp_path: Path, shell: str) -> None:
    elsewhere = program(tmp_path / "not on $PATH", GOOD) / "gitledger"
    (repo.path / ".git/gitledger/program").write_text(f"{elsewhere}\n")
    repo.commit("first")
    tree = tmp_path / "tree"
    repo.git("worktree", "add", "-q", "-b", "side", str(tree))
    for place in (repo.path, tree):
        assert run(TURN, place, shell=shell, stdin=b"{}").out == "hook claude-code turn\n{}\n"
        assert run(CODEX, place, shell=shell, stdin=b"{}").out == "hook codex compact\n{}\n"


def test_a_program_that_was_moved_away_is_a_missing_one(repo: Repo, tmp_path: Path, shell: str) -> None:
    (repo.path / ".git/gitledger/program").write_text(f"{tmp_path}/gone\n")
    assert silent(run(TURN, repo.path, shell=shell))
    says_why(run(CLAUDE, repo.path, shell=shell))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's file")
def test_another_users_file_does_not_say_what_runs(repo: Repo, tmp_path: Path, shell: str) -> None:
    elsewhere = program(tmp_path / "bin", "echo planted") / "gitledger"
    named = repo.path / ".git/gitledger/program"
    named.write_text(f"{elsewhere}\n")
    os.chown(named, 65534, 65534)
    assert silent(run(TURN, repo.path, shell=shell))


def test_nothing_stays_behind(repo: Repo, tmp_path: Path, shell: str) -> None:
    mark = tmp_path / "watching"
    good = program(tmp_path / "bin", f"until [ -s {mark} ]; do /bin/sleep 0.02; done; echo made")
    sleep = good / "sleep"
    sleep.write_text(f"#!/bin/sh\necho $$ >{mark}\nexec /bin/sleep 300\n")
    sleep.chmod(0o755)
    assert run(CLAUDE, repo.path, good, shell=shell).out == "made\n"
    pid = int(mark.read_text())
    assert ended(pid), "the watch outlived what it watched"


# ── what it costs, and that it stays the same ────────────────────────────────────────────────
def test_a_turn_starts_no_program_but_ours(repo: Repo, tmp_path: Path) -> None:
    """So the shell adds what a shell takes to start: no git, no cat, no second shell."""
    strace = shutil.which("strace")
    if strace is None:
        script = shims.script("claude-code", "turn")
        before = script.partition('"$p" hook')[0]
        assert "$(" not in before
        assert "`" not in before
        return
    log = tmp_path / "calls"
    good = program(tmp_path / "bin", "exit 0")
    words = [strace, "-f", "-e", "trace=execve", "-o", str(log), "sh", "-c", shims.script("claude-code", "turn")]
    subprocess.run(words, cwd=repo.path, env={"PATH": f"{good}:{BARE}"}, input=b"{}", check=True, timeout=120)
    assert sum("execve(" in row and "= 0" in row for row in log.read_text().splitlines()) == 2


def test_every_command_is_quoted_alike_by_every_shell_and_knows_its_event() -> None:
    for name, event, command in EVERY:
        script = command.removeprefix("/bin/sh -c '").removesuffix("'")
        assert "'" not in script
        assert "\n" not in command
        assert shims.mark(command) == (name, event)


@pytest.mark.parametrize("text", ["gitledger hook claude-code turn", "echo : gitledger", "", None, 7, ": gitledger x"])
def test_somebody_elses_command_is_not_taken_for_ours(text: object) -> None:
    assert shims.mark(text) is None


def test_no_command_changes_unnoticed() -> None:
    """Codex trusts a command by its digest: with every change its users must look at it again, so CHANGELOG says it."""
    held = {client.name for client in CLIENTS if client.shape != "module"}  # the others' stand in nobody's settings
    all_of_them = "\n".join(sorted({command for name, _, command in EVERY if name in held}))
    assert hashlib.sha256(all_of_them.encode()).hexdigest()[:16] == "32364488c9155c07"
