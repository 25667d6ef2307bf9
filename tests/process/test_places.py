"""Repositories of every kind, and machines that lack something, through the real program."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitledger.cli import COMMANDS
from tests.process.program import Ran, begun, gitledger, refused, works
from tests.sealed import LONG, Repo, first_repo, git, identify, new_repo

pytestmark = pytest.mark.process

STATUS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch")
OURS = ("gitledger/", "objects/", "refs/heads/ledger/", "logs/refs/heads/ledger/")
"""What the program may touch in a git folder."""


def users(folder: Path) -> dict[str, bytes]:
    """Every file of the work tree and of its git folders that is the user's own."""
    said = git(folder, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir").decode().splitlines()
    found = {}
    for place in {folder.resolve(), *map(Path, said)}:
        for path in place.rglob("*"):
            name = str(path.relative_to(place))
            if path.is_file() and not name.startswith(OURS) and ".git" not in path.relative_to(place).parts[:-1]:
                found[str(path)] = path.read_bytes()
    return found


def plain(tmp: Path) -> Path:
    repo = new_repo(tmp / "repo")
    repo.commit("first", {"deep/er/file": "one\n", "README.md": "# first\n"})
    return repo.path


def subfolder(tmp: Path) -> Path:
    return plain(tmp) / "deep" / "er"


def symlink(tmp: Path) -> Path:
    (tmp / "link").symlink_to(plain(tmp))
    return tmp / "link"


def linked(tmp: Path) -> Path:
    git(plain(tmp), "worktree", "add", "-q", "-b", "side", str(tmp / "linked tree"))
    return tmp / "linked tree"


def submodule(tmp: Path) -> Path:
    inner = Repo(plain(tmp))
    outer = new_repo(tmp / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "libs/inner")
    outer.commit("with a submodule", {})
    return identify(Repo(outer.path / "libs" / "inner")).path


def bare_with_worktree(tmp: Path) -> Path:
    git(tmp, "clone", "-q", "--bare", str(plain(tmp)), "bare.git")
    git(tmp / "bare.git", "worktree", "add", "-q", str(tmp / "tree"), "main")
    return identify(Repo(tmp / "tree")).path


def separate(tmp: Path) -> Path:
    repo = new_repo(tmp / "work", "--separate-git-dir", str(tmp / "elsewhere.git"))
    repo.commit("first")
    return repo.path


def unborn(tmp: Path) -> Path:
    return new_repo(tmp / "repo").path


def detached(tmp: Path) -> Path:
    path = plain(tmp)
    git(path, "switch", "-q", "--detach")
    return path


def shallow(tmp: Path) -> Path:
    repo = Repo(plain(tmp))
    repo.commit("second")
    return repo.clone(tmp / "shallow", "--depth", "1").path


def partial(tmp: Path) -> Path:
    repo = Repo(plain(tmp))
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.commit("second", {"README.md": "# second\n"})
    return repo.clone(tmp / "partial", "--filter=blob:none").path


def sparse(tmp: Path) -> Path:
    path = plain(tmp)
    git(path, "sparse-checkout", "set", "elsewhere")
    assert not (path / "deep").exists()
    return path


def alternates(tmp: Path) -> Path:
    git(tmp, "clone", "-q", "--shared", str(plain(tmp)), "borrower")
    return identify(Repo(tmp / "borrower")).path


def awkward_path(tmp: Path) -> Path:
    repo = new_repo(tmp / "sp ace ü 'q\" $(touch pwned) é")
    repo.commit("first")
    return repo.path


def opinionated(tmp: Path) -> Path:
    """Hooks by `core.hooksPath`, signing with a key that is not there, odd line ends, and no reflogs."""
    path = plain(tmp)
    hooks = tmp / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "pre-commit", "post-commit", "commit-msg", "pre-auto-gc", "post-rewrite"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{tmp}/hook-ran'\n")
        (hooks / name).chmod(0o755)
    for key, value in (
        ("core.hooksPath", str(hooks)), ("core.fsmonitor", str(hooks / "pre-commit")), ("core.autocrlf", "true"),
        ("commit.gpgsign", "true"), ("gpg.format", "ssh"), ("user.signingkey", "/nonexistent"),
        ("core.logAllRefUpdates", "false"), ("core.pager", "false"), ("gc.auto", "1"), ("status.short", "true"),
        ("log.showSignature", "true"), ("i18n.logOutputEncoding", "UTF-16"), ("color.ui", "always"),
    ):  # fmt: skip
        git(path, "config", key, value)
    return path


def merging(tmp: Path) -> Path:
    repo = Repo(plain(tmp))
    repo.branches("other")
    repo.commit("ours", {"README.md": "# ours\n"})
    repo.git("switch", "-q", "other")
    repo.commit("theirs", {"README.md": "# theirs\n"})
    with pytest.raises(AssertionError, match="merge"):
        repo.git("merge", "main")
    return repo.path


KINDS = (
    plain, subfolder, symlink, linked, submodule, bare_with_worktree, separate, unborn, detached, shallow, partial,
    sparse, alternates, awkward_path, opinionated, merging,
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_ledger_works_in_every_kind_of_repository_and_leaves_it_as_it_was(
    kind: Callable[[Path], Path], tmp_path: Path
) -> None:
    place = kind(tmp_path)
    top = Path(git(place, "rev-parse", "--show-toplevel").decode().strip())
    before = users(top)
    status = git(place, *STATUS)
    works(place, "init")
    works(place, "task", "add", "One", "--accept", "it holds")
    works(place, "task", "start", "T-0001", "--next", "Go on")
    said = {"session_id": "s1", "cwd": str(place), "pid": os.getpid()}
    works(place, "hook", "generic", "start", stdin=said)
    works(place, "hook", "generic", "turn", stdin={**said, "prompt": "do it", "answer": "did it"})
    works(place, "hook", "generic", "compact", stdin=said)
    works(place, "hook", "generic", "end", stdin={**said, "reason": "exit"})
    briefing = works(place, "briefing")
    assert "Go on" in briefing
    assert "may be followed" in briefing
    assert works(place, "handover", "resolve").splitlines()[1].startswith("exact: ")
    works(place, "verify", "--full")
    works(place, "fsck")
    works(place, "rebuild", "--check")
    assert users(top) == before
    assert git(place, *STATUS) == status
    assert not (tmp_path / "hook-ran").exists()
    assert not list(tmp_path.rglob("pwned"))


def sha256(tmp: Path) -> Path:
    return new_repo(tmp / "repo", "--object-format=sha256").path


def bare(tmp: Path) -> Path:
    git(tmp, "init", "-q", "--bare", "repo.git")
    return tmp / "repo.git"


def branch(*names: str) -> Callable[[Path], Path]:
    def made(tmp: Path) -> Path:
        Repo(plain(tmp)).branches(*names)
        return tmp / "repo"

    return made


def remote_has_one(tmp: Path) -> Path:
    first = Repo(plain(tmp))
    works(first.path, "init")
    return first.clone(tmp / "clone").path


def no_repository(tmp: Path) -> Path:
    return tmp


def broken_config(tmp: Path) -> Path:
    with (plain(tmp) / ".git" / "config").open("a") as f:
        f.write("[broken\n")
    return tmp / "repo"


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        (sha256, 69, "sha256"),
        (bare, 69, "git worktree add"),
        (no_repository, 69, "git init"),
        (branch("ledger"), 73, "git branch -m ledger"),
        (branch("ledger/main"), 77, "holds no ledger"),
        (branch("ledger/main/x"), 73, "ledger/main/x"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_where_no_ledger_can_begin_one_line_says_why_and_nothing_is_written(
    kind: Callable[[Path], Path], status: int, says: str, tmp_path: Path
) -> None:
    place = kind(tmp_path)
    before = {str(p): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file() and "objects" not in p.parts}
    line = refused(place, "init", status=status)
    assert says in line
    after = {str(p): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file() and "objects" not in p.parts}
    assert after == before
    assert not list(tmp_path.rglob("gitledger/wal/other"))
    assert str(place) in refused(place, "status", status=69)


def test_a_clone_takes_the_ledger_over_and_goes_on_in_it(tmp_path: Path) -> None:
    clone = remote_has_one(tmp_path)
    works(tmp_path / "repo", "task", "add", "From the first")
    works(tmp_path / "repo", "checkpoint")
    git(clone, "fetch", "-q")
    git(clone, "branch", "-q", "ledger/main", "origin/ledger/main")
    said = works(clone, "init")
    assert "Joined" in said
    assert "task start T-0001" not in said  # that one is there already
    assert "From the first" in works(clone, "task", "list")
    works(clone, "checkpoint")
    works(clone, "verify", "--full")
    works(clone, "fsck")


def test_gits_own_cleaning_takes_nothing_of_a_ledger(tmp_path: Path) -> None:
    place = plain(tmp_path)
    works(place, "init")
    for n in range(3):
        works(place, "note", f"note {n}")
        works(place, "checkpoint")
    works(place, "note", "in the log alone")
    git(place, "gc", "-q", "--aggressive", "--prune=now")
    git(place, "repack", "-a", "-d", "-q")
    git(place, "pack-refs", "--all", "--prune")
    git(place, "fsck", "--strict")
    works(place, "fsck")
    works(place, "verify", "--full")
    assert "in the log alone" in works(place, "search", "alone")
    works(place, "checkpoint")


# ── a machine that lacks something ───────────────────────────────────────────────────────────
@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a ledger, one active task and a checkpoint."""
    start = ("task", "start", "T-0001", "--next", "Go on")
    return begun(first_repo(tmp_path / "repo"), ("init",), ("task", "add", "One"), start, ("checkpoint",)).path


def tip(place: Path) -> bytes:
    return git(place, "rev-parse", "ledger/main")


def only(tmp: Path, *programs: str) -> dict[str, str]:
    """An environment whose PATH holds these programs and no other."""
    folder = tmp / "bin"
    folder.mkdir()
    for program in programs:
        (folder / program).symlink_to(shutil.which(program) or program)
    return {"PATH": str(folder)}


def test_without_git_every_command_says_so_and_no_hook_but_the_compaction_fails(place: Path, tmp_path: Path) -> None:
    env = only(tmp_path)
    for words in (("status",), ("briefing",), ("task", "add", "Two"), ("checkpoint",), ("log",), ("init",), ("demo",)):
        ran = gitledger(place, *words, env=env)
        assert ran.status in (69, 77), ran
        assert len(ran.err.splitlines()) == 1
        assert "git" in ran.err or words == ("init",)
        assert "fault in gitledger" not in ran.err
    for event in ("start", "prompt", "turn", "end"):
        assert gitledger(place, "hook", "generic", event, stdin={"session_id": "s"}, env=env).status == 0
    assert "BLOCKED" in refused(place, "hook", "generic", "compact", stdin={"session_id": "s"}, env=env, status=69)


def test_without_ssh_keygen_nothing_begins_and_no_checkpoint_is_made_but_work_is_recorded(
    place: Path, tmp_path: Path
) -> None:
    env = only(tmp_path, "git")
    other = new_repo(tmp_path / "other").path
    fresh = {**env, "XDG_DATA_HOME": str(tmp_path / "data")}
    assert "ssh-keygen" in refused(other, "init", env=fresh, status=69)
    assert not (other / ".git" / "gitledger").exists()
    before = tip(place)
    works(place, "task", "add", "Two", env=env)
    assert "ssh-keygen" in refused(place, "checkpoint", env=env, status=69)
    assert tip(place) == before
    works(place, "checkpoint")
    assert "Two" in works(place, "task", "list")


def test_the_key_lies_where_xdg_says_and_nowhere_else(tmp_path: Path, home: Path) -> None:
    works(plain(tmp_path), "init", env={"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": "/nonexistent"})
    assert [p.name for p in home.rglob("*")] == []
    key = tmp_path / "data" / "gitledger" / "id_ed25519"
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_hold_a_key_is_named(tmp_path: Path) -> None:
    place = plain(tmp_path)
    data = str(tmp_path / "file" / "data")
    (tmp_path / "file").write_text("in the way\n")
    assert data in refused(place, "init", env={"XDG_DATA_HOME": data}, status=73)
    assert not (place / ".git" / "gitledger").exists()


def test_a_broken_git_configuration_is_named_with_its_line(place: Path, tmp_path: Path, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n[broken\n")
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}, check=True)
    for folder, words in ((other, "init"), (place, "status"), (place, "checkpoint")):
        ran = gitledger(folder, words)
        assert ran.status in (74, 78)
        assert f"line 3 in file {home}/.gitconfig" in ran.err
        assert len(ran.err.splitlines()) == 1
    assert not (other / ".git" / "gitledger").exists()


@pytest.mark.parametrize("limit", [0, 300, 1500, 4000])
def test_a_full_disk_moves_no_ref_and_loses_nothing(limit: int, place: Path) -> None:
    works(place, "task", "add", "Kept")
    before, after = tip(place), f"limit {limit}"
    script = (
        f"import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {resource.RLIM_INFINITY}))\n"
        "sys.argv = ['gitledger', *sys.argv[1:]]; runpy.run_module('gitledger', run_name='__main__')"
    )
    for words in (("task", "add", after), ("checkpoint",), ("hook", "generic", "turn")):
        ran = run([sys.executable, "-c", script, *words], place)
        assert "Traceback" not in ran.err
        if words == ("checkpoint",) and ran.status:
            assert tip(place) == before
            assert "BLOCKED_MISSING_PREREQUISITE" in ran.err
        if words[0] == "hook":
            assert ran.status == 0
    works(place, "fsck")
    works(place, "checkpoint")
    works(place, "verify", "--full")
    assert "Kept" in works(place, "task", "list")


def run(command: list[str], cwd: Path, *, env: dict[str, str] | None = None, **user: Any) -> Ran:
    """Run any command with an empty JSON object on stdin, as another user where that is asked for."""
    root = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(
        command,
        cwd=cwd,
        input=b"{}",
        env={**os.environ, "PYTHONPATH": root, **(env or {})},
        capture_output=True,
        timeout=300,
        check=False,
        **user,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


CLOSED = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", "<&- >&-")


@pytest.mark.parametrize("closed", CLOSED)
def test_a_standard_stream_that_is_closed_stops_nothing(closed: str, place: Path) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "gitledger"]
    events = [("hook", "generic", event) for event in ("start", "prompt", "turn", "compact", "end")]
    # The long form tries each with each; the short one each event, and a command of each kind under the worst of them.
    worst = LONG or closed == CLOSED[3]
    commands = (("status",), ("checkpoint",), ("log", "--json"), ("task", "add", "Two"), ("--help",))
    for words in (*commands, *events) if worst else (("task", "add", "Two"), events[CLOSED.index(closed)]):
        ran = run([*shell, *words], place)
        assert (ran.status, ran.err) == (0, ""), words
    assert "Two" in works(place, "task", "list")
    works(place, "fsck")
    assert not (place / ".git" / "gitledger" / "log").exists()


def test_an_output_that_cannot_be_written_is_said_and_is_no_fault_of_ours(place: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-m", "gitledger"]
    for words in (("status",), ("journal", "--json"), ("checkpoint",), ("get", "INDEX.md")):
        ran = run([*shell, *words], place)
        assert ran.status == 74
        assert len(ran.err.splitlines()) == 1
        assert "cannot be written (No space left on device)" in ran.err
    compact = run([*shell, "hook", "generic", "compact"], place)
    assert compact.status == 0  # the checkpoint is made: this is no refusal


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "TERM": "dumb"}, {"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "ascii"}])
def test_text_is_utf_8_whatever_the_locale_says(env: dict[str, str], place: Path) -> None:
    title = "Prüfung der Tür – 日本 ✓"
    works(place, "task", "add", title, env={"LC_ALL": "C.UTF-8"})
    for words in (("task", "list"), ("search", "tür"), ("show", "T-0002"), ("get", "T-0002"), ("journal",)):
        assert title in works(place, *words, env=env)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to somebody else")
def test_a_repository_of_somebody_else_gets_gits_own_words_and_no_write(tmp_path: Path) -> None:
    place = plain(tmp_path)
    for path in (place, *place.rglob("*")):
        os.chown(path, 12345, 12345)
    line = refused(place, "init", status=77)
    assert "dubious ownership" in line
    assert "safe.directory" in line
    assert not (place / ".git" / "gitledger").exists()


@pytest.fixture
def guest() -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder that an ordinary user owns and may write no more, and what starts a program as that user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        place = plain(folder)
        works(place, "init")
        works(place, "task", "add", "One")
        works(place, "checkpoint")
        user: dict[str, Any] = {"env": {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}}
        if os.geteuid() == 0:
            user |= {"user": 65534, "group": 65534, "extra_groups": []}
            for path in (place, *place.rglob("*")):
                os.chown(path, 65534, 65534)
            try:
                run([sys.executable, "-c", "import gitledger.cli"], place, **user)
            except PermissionError:
                pytest.skip("this Python is root's alone")
        for path in (place, *place.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
        yield place, user
        for path in (place, *place.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)


def test_a_read_only_repository_can_be_read_and_says_what_cannot_be_written(
    guest: tuple[Path, dict[str, Any]],
) -> None:
    place, user = guest
    program = [sys.executable, "-B", "-m", "gitledger"]
    for words in (
        "status",
        "briefing",
        "task list",
        "log",
        "verify",
        "fsck",
        "rebuild --check",
        "search One",
        "capsule --query One",
        "journal",
    ):
        ran = run([*program, *words.split()], place, **user)
        assert (ran.status, ran.err) == (0, ""), words
    for words in ("task add Two", "checkpoint", "note x", "compaction allow --once --reason x"):
        ran = run([*program, *words.split()], place, **user)
        assert ran.status == 73, words
        assert len(ran.err.splitlines()) == 1
        assert "Permission denied" in ran.err
    for event in ("start", "turn", "end"):
        assert run([*program, "hook", "generic", event], place, **user).status == 0
    assert run([*program, "hook", "generic", "compact"], place, **user).status == 73


# ── words ────────────────────────────────────────────────────────────────────────────────────
NEEDS_A_LEDGER = {
    "status": "status", "briefing": "briefing", "capsule": "capsule --query x",
    "task": "task list", "decide": "decide x --why y", "note": "note x",
    "blocker": "blocker open x", "question": "question ask x", "artifact": "artifact add x", "show": "show T-0001",
    "project": "project show", "checkpoint": "checkpoint", "handover": "handover list", "session": "session list",
    "log": "log", "get": "get T-0001", "search": "search x", "journal": "journal", "verify": "verify", "fsck": "fsck",
    "rebuild": "rebuild --check", "purge": "purge --secret-from /dev/null", "trust": "trust list",
    "config": "config list", "check": "check",
    "memory": "memory log", "compaction": "compaction allow --once --reason x",
    "remote": "remote show", "sync": "sync", "push": "push", "pull": "pull", "doctor": "doctor",
    "rollover": "rollover", "hooks": "hooks install --git",
}  # fmt: skip
NEEDS_NONE = {"init", "hook", "schema", "demo", "completion", "statusline"}


def test_without_a_ledger_every_command_says_so_in_one_line_and_writes_nothing(tmp_path: Path) -> None:
    assert set(COMMANDS) == set(NEEDS_A_LEDGER) | NEEDS_NONE
    place = plain(tmp_path)
    before = users(place)
    for words in NEEDS_A_LEDGER.values():
        line = refused(place, *words.split(), status=69)
        assert str(place) in line
        assert "ledger" in line
    assert users(place) == before
    assert not (place / ".git" / "gitledger").exists()


READING = (
    "status", "briefing", "capsule",
    "task list", "task list --all", "project show", "handover list", "handover resolve",
    "handover explain", "session list", "log", "show project", "search zzz", "verify", "fsck", "rebuild --check",
    "config list", "config get briefing.lines",
)  # fmt: skip


def test_json_is_json_in_a_new_ledger_and_in_a_used_one(tmp_path: Path) -> None:
    place = plain(tmp_path)
    works(place, "init")
    for words in READING:
        json.loads(works(place, *words.split(), "--json"))
    works(place, "task", "add", "One")
    works(place, "task", "start", "T-0001")
    works(place, "session", "start")
    works(place, "handover", "write")
    later = ("task show", "handover show", "show H-000001", "show T-0001", "show C-000001", "checkpoint", "session end")
    for words in (*READING, *later):
        json.loads(works(place, *words.split(), "--json"))
    for line in works(place, "journal", "--json").splitlines():
        json.loads(line)


def test_names_that_would_drive_a_terminal_or_a_shell_are_shown_and_run_nowhere(tmp_path: Path) -> None:
    repo = Repo(plain(tmp_path))
    works(repo.path, "init")
    works(repo.path, "task", "add", "One")
    works(repo.path, "task", "start", "T-0001", "--next", "Go on")
    for name in ("$(touch${IFS}pwned)", "a\u202eb", "`touch${IFS}pwned`;x"):
        repo.git("switch", "-q", "-c", name)
        repo.write({"new\nline": "x", "esc\x1b[31mred": "x", "bidi\u202e": "x"})
        (repo.path / os.fsdecode(b"no\xff\xfetext")).write_text("x")
        said = {"session_id": "a\x1b[2J\u202e\nb", "prompt": "clear\x1b[2J", "answer": "\u202e\x07"}
        printed = [works(repo.path, "hook", "generic", "start", stdin=said)]
        works(repo.path, "hook", "generic", "turn", stdin=said)
        works(repo.path, "task", "evidence", "--path", "new\nline")
        works(repo.path, "hook", "generic", "end", stdin=said)
        repo.commit("subject \x1b[31mred \u202e", {})
        for words in ("status", "briefing", "handover resolve", "handover show", "journal", "log", "session list"):
            printed.append(works(repo.path, *words.split()))
        assert not {c for text in printed for c in text if c != "\n" and (c < " " or c in "\u202e\x7f")}
        works(repo.path, "fsck")
    assert not list(tmp_path.rglob("pwned"))


def test_a_word_that_is_no_text_is_refused_before_it_means_something_else(place: Path) -> None:
    for words in (("note", "bad\udcff"), ("task", "evidence", "--path", "bad\udcff"), ("search", "\udcff")):
        assert "UTF-8" in refused(place, *words, status=2)
    odd = place.parent / os.fsdecode(b"odd\xff")
    works(plain(odd), "init")
    works(place, "-C", str(odd / "repo"), "status")


def test_without_a_terminal_no_editor_is_opened(place: Path) -> None:
    assert "terminal" in refused(place, "task", "edit", status=2)
    assert "terminal" in refused(place, "project", "edit", status=2)
    assert "EDITOR" in refused(place, "task", "edit", status=69, env={"EDITOR": "false"})
    script = place.parent / "editor"
    script.write_text("#!/bin/sh\nsed -i 's/^title:.*/title: Renamed/' \"$1\"\n")
    script.chmod(0o755)
    works(place, "task", "edit", env={"EDITOR": str(script)})
    assert "Renamed" in works(place, "task", "list")
