"""What stands where a local file belongs and is none: never followed, never waited for, never written through."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitledger import (
    allowance,
    capture,
    config,
    gitdir,
    hooks,
    identity,
    pins,
    schema,
    signing,
    terminal,
    wal,
    worktree,
)
from gitledger.errors import CannotWrite, LedgerError
from tests.ledgers import again, begin
from tests.sealed import Repo
from tests.test_hostile_commands import Said, run

MINE = b"mine\n" * 10
NEEDED = {
    "wal/main/current.wal": ("note", "checkpoint"),
    "lock": ("note", "checkpoint"),
    "trust.json": ("verify",),
    "writer.json": ("note", "checkpoint", "status", "verify"),
    "config.yaml": ("note", "checkpoint", "status", "verify"),
}
"""The commands that refuse without a file."""
SPARED = ("log", "config.cache", "allow-main.json", "rewrites", "sync-main.json")
"""Without these all goes on."""


@pytest.fixture(autouse=True)
def _no_wait() -> Iterator[None]:
    """A test that waits for a FIFO's other end is ended, and says where it waited."""

    def stop(*_: object) -> None:
        pytest.fail("it waits")  # which nothing here catches, as it would an OSError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def place(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with a ledger, as the present folder."""
    begin(repo)
    monkeypatch.chdir(repo.path)
    return repo


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Somebody's file outside of the repository, which stays as it is."""
    path = tmp_path / "outside"
    path.write_bytes(MINE)
    path.chmod(0o600)
    yield path
    assert path.read_bytes() == MINE
    assert not path.with_name("none").exists()


def state(repo: Repo) -> Path:
    return repo.path / ".git" / "gitledger"


@contextmanager
def odd(path: Path, kind: str, outside: Path) -> Iterator[None]:
    """Have something else at `path`; what was there comes back."""
    kept = path.with_name(f"{path.name} kept")
    if path.exists():
        path.rename(kept)
    path.parent.mkdir(exist_ok=True)
    match kind:
        case "symlink":
            path.symlink_to(outside)
        case "dangling symlink":
            path.symlink_to(outside.with_name("none"))
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "hard link":
            os.link(outside, path)
        case "socket":
            here = Path.cwd()
            with socket.socket(socket.AF_UNIX) as made:
                os.chdir(path.parent)  # a socket's path is short
                made.bind(path.name)
            os.chdir(here)
    yield
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if kept.exists():
        kept.rename(path)


def assert_one_line(said: Said, *statuses: int) -> None:
    assert said.status in statuses, said
    assert said.err.count("\n") == (said.status != 0), said.err


def notes() -> list[str]:
    """The texts of all notes of the ledger."""
    said = run("journal", "--type", "note", "--json", terminal=False)
    assert said.status == 0, said.err
    rows = [json.loads(row) for row in said.out.split("\n") if row]
    return [change["set"]["text"] for row in rows for change in row["records"].values() if "text" in change["set"]]


# ── one file ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", ["symlink", "dangling symlink", "fifo", "folder", "socket"])
def test_a_local_file_is_opened_only_where_it_is_a_plain_one(tmp_path: Path, outside: Path, kind: str):
    path = tmp_path / "file"
    with odd(path, kind, outside):
        for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_APPEND | os.O_CREAT):
            with pytest.raises(CannotWrite, match="file is not a plain file"):
                gitdir.open_own(str(path), flags)
    fd = gitdir.open_own(str(path), os.O_WRONLY | os.O_CREAT)
    assert os.fstat(fd).st_mode & 0o777 == 0o600
    os.close(fd)


@pytest.mark.parametrize("kind", ["symlink", "fifo"])
def test_no_command_follows_a_local_file_or_waits_for_it(place: Repo, outside: Path, kind: str):
    for name, refusing in NEEDED.items():
        with odd(state(place) / name, kind, outside):
            for words in (("note", name), ("checkpoint",), ("status",), ("verify",)):
                assert_one_line(run(*words), *((73,) if words[0] in refusing else (0,)))
    (state(place) / "config.yaml").write_text("briefing:\n  lines: 30\n")
    for name in SPARED:
        with odd(state(place) / name, kind, outside):
            assert_one_line(run("note", name), 0)
            assert_one_line(run("checkpoint"), 0)
            assert_one_line(run("status"), 0)
            capture.log(str(place.path / ".git"), "something went wrong")
            assert not allowance.use(_found(place), "main", "nothing")
            before = worktree.position(_found(place))
            place.git("commit", "--amend", "--allow-empty", "--message", name)
            after = worktree.position(_found(place))
            assert worktree.relate(_found(place), before, after).successor == after.head
    assert notes() == ["trust.json", *SPARED]


def _found(place: Repo) -> gitdir.GitDir:
    found = gitdir.find(str(place.path))
    assert found is not None
    return found


def test_what_has_another_name_is_not_changed_under_that(place: Repo, outside: Path):
    for name in ("wal/main/current.wal", "lock", "log", "config.cache", "allow-main.json"):
        with odd(state(place) / name, "hard link", outside):
            assert_one_line(run("note", name), 0)
            assert_one_line(run("checkpoint"), 0)
            capture.log(str(place.path / ".git"), "something went wrong")
            allowance.grant(_found(place), "main", "it is broken")
            assert (state(place) / name).exists()
    folder = str(state(place) / "wal" / "main")
    wal.append(folder, "generic", "prompt", b"one", now_ms=1, rand=os.urandom(10))
    before = (Path(folder) / "current.wal").read_bytes()
    os.link(Path(folder) / "current.wal", outside.with_name("copy"))
    wal.append(folder, "generic", "prompt", b"two", now_ms=2, rand=os.urandom(10))
    entries, findings = wal.pending(folder)
    assert ([entry.payload for entry in entries if entry.client == "generic"], findings) == ([b"one", b"two"], [])
    assert outside.with_name("copy").read_bytes() == before


def test_a_permission_on_a_full_disk_is_written_through_nothing(
    place: Repo, outside: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(path: str, data: bytes) -> None:
        raise CannotWrite("no space")

    monkeypatch.setattr(pins, "write_private", full)
    for kind in ("symlink", "dangling symlink", "fifo"):
        with odd(state(place) / "allow-main.json", kind, outside), pytest.raises(CannotWrite):
            allowance.grant(_found(place), "main", "it is full")
    with odd(state(place) / "allow-main.json", "hard link", outside):
        allowance.grant(_found(place), "main", "it is full")


def test_a_leftover_under_the_name_of_a_new_file_of_the_log_is_not_written_through(place: Repo, outside: Path):
    folder = state(place) / "wal" / "main"
    for kind in ("symlink", "fifo", "hard link"):
        (folder / "0.wal").write_bytes(b"damaged\n")
        (folder / "damaged").mkdir(exist_ok=True)
        with odd(folder / "0.wal.new", kind, outside), odd(folder / "damaged" / "0.wal.tmp", kind, outside):
            assert wal.rewrite(str(folder), lambda line: line.replace(b"damaged", b"hurt")) == 1
            wal.forget(str(folder), ["0.wal"])
        assert (folder / "damaged" / "0.wal").read_bytes() == b"hurt\n"


@pytest.mark.parametrize("kind", ["symlink", "fifo", "hard link"])
def test_a_key_file_that_is_none_holds_nothing_up(place: Repo, outside: Path, kind: str):
    for name in ("id_ed25519", "id_ed25519.pub"):
        with odd(Path(signing.key_folder()) / name, kind, outside):
            run("note", name)
            assert_one_line(run("checkpoint"), *((0,) if name.endswith("pub") else (65, 77)))
    assert notes() == ["id_ed25519", "id_ed25519.pub"]


def test_a_clones_configuration_is_not_written_through_a_symlink(place: Repo, outside: Path):
    with odd(state(place) / "config.yaml", "symlink", outside):
        assert_one_line(run("config", "set", "briefing.lines", "20"), 73)


def test_a_mark_beside_a_pack_that_is_a_fifo_holds_no_checkpoint_up(place: Repo, monkeypatch: pytest.MonkeyPatch):
    from gitledger import packs

    monkeypatch.setattr(packs, "LIMIT", 1)
    os.mkfifo(place.path / ".git" / "objects" / "pack" / f"pack-{'0' * 40}.keep")
    assert run("checkpoint").status == 0


# ── folders ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", ["symlink", "file"])
@pytest.mark.parametrize("name", [".", "wal", "wal/main"])
def test_nothing_is_done_through_what_is_no_folder(place: Repo, tmp_path: Path, name: str, kind: str):
    folder, elsewhere, common = state(place) / name, tmp_path / "elsewhere", str(place.path / ".git")
    folder.rename(elsewhere)
    if kind == "symlink":
        folder.symlink_to(elsewhere)
    else:
        folder.write_bytes(MINE)
    before = {path: path.stat().st_mtime_ns for path in [elsewhere, *elsewhere.rglob("*")]}
    gone = name == "wal/main" and kind == "file"  # a stray file among the logs is no ledger
    for words in (("note", "x"), ("status",), ("checkpoint",), ("compaction", "allow", "--once", "--reason", "x")):
        if not (name == "wal/main" and words[0] == "compaction"):
            assert_one_line(run(*words), 69 if gone else 73)
    assert_one_line(run("init"), 73, 77)
    assert capture.main(["hook", "generic", "prompt"]) == 0
    hooks.take("generic", "start")
    if not gone:
        said = run("hook", "generic", "compact")  # the ledger may well be there
        assert_one_line(said, 73)
        assert "not a folder" in said.err or "must be a folder" in said.err
    if name != "wal/main":
        capture.log(common, "something went wrong")
        assert terminal.run(lambda: 1 // 0) == 70
        with pytest.raises(CannotWrite, match="is not a folder"):
            gitdir.ledgers(common)
    assert {path: path.stat().st_mtime_ns for path in [elsewhere, *elsewhere.rglob("*")]} == before
    if kind == "file":
        assert folder.read_bytes() == MINE


def test_damaged_lines_go_through_no_symlink(place: Repo, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (state(place) / "wal" / "main" / "damaged").symlink_to(tmp_path / "elsewhere")
    (state(place) / "wal" / "main" / "0.wal").write_bytes(b"damaged\n")
    assert_one_line(run("checkpoint"), 0, 74)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (state(place) / "wal" / "main" / "0.wal").exists()


# ── other users ──────────────────────────────────────────────────────────────────────────────
@contextmanager
def of_another(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> Iterator[None]:
    """Have `paths` belong to another user than this process does; its own files too, where it is not root."""
    mine = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: mine + 65532)
        for path in paths if mine == 0 else ():
            os.chown(path, 65533, 65533)
        yield
    for path in paths if mine == 0 else ():
        os.chown(path, 0, 0)


def test_in_another_users_clone_one_line_says_so_and_nothing_is_written(place: Repo, monkeypatch: pytest.MonkeyPatch):
    before = {path: path.stat().st_mtime_ns for path in state(place).rglob("*")}
    for folder in (state(place), state(place) / "wal"):
        with of_another(monkeypatch, folder):
            for words in (("note", "x"), ("status",), ("checkpoint",), ("init",)):
                said = run(*words)
                assert_one_line(said, 73)
                assert "belongs to another user" in said.err
            assert capture.main(["hook", "generic", "prompt"]) == 0
            assert capture.main(["-C", str(place.path), "hook", "generic", "prompt"]) == 0
            hooks.take("generic", "start")
            said = run("hook", "generic", "compact")
            assert_one_line(said, 73)
            assert "another user" in said.err
    assert {path: path.stat().st_mtime_ns for path in state(place).rglob("*")} == before
    again(place)


def test_a_file_that_another_user_planted_gives_no_trust_and_starts_nothing(
    place: Repo, monkeypatch: pytest.MonkeyPatch
):
    common = str(place.path / ".git")
    (state(place) / "config.yaml").write_text("proposer:\n  command: [touch, evil]\n")
    (state(place) / "allow-main.json").write_text('{"reason":"x"}')
    files = [state(place) / name for name in ("config.yaml", "trust.json", "writer.json", "allow-main.json")]
    with of_another(monkeypatch, *files):
        for read in (
            lambda: config.load({}, common, os.environ),
            lambda: pins.load(str(state(place) / "trust.json"), "main"),
            lambda: identity.load(common),
        ):
            with pytest.raises(CannotWrite, match="belongs to another user"):
                read()
        assert not allowance.use(_found(place), "main", "nothing")


# ── what a person names ──────────────────────────────────────────────────────────────────────
def test_evidence_and_artifacts_are_plain_files_of_this_work_tree(place: Repo, outside: Path):
    run("task", "add", "One")
    run("task", "start", "T-0001")
    for kind in ("symlink", "dangling symlink", "fifo", "folder", "socket"):
        with odd(place.path / "odd", kind, outside):
            assert_one_line(run("artifact", "add", "odd"), 65)
            if kind == "fifo":
                assert_one_line(run("task", "evidence", "--path", "odd"), 65)
                assert_one_line(run("status"), 0)  # an untracked FIFO is in the way of no fingerprint
    found = _found(place)
    (place.path / "way out").symlink_to(outside.parent)
    for name in ("../outside", str(outside), "way out/outside", "a/../../outside", "..", ".", "", "a\0b", "-x"):
        assert worktree.blob_id(found, name) is None
    with odd(place.path / "odd", "hard link", outside):
        assert worktree.blob_id(found, "odd") is not None


def test_evidence_that_became_a_fifo_is_stale_and_not_waited_for(place: Repo):
    run("task", "add", "One")
    run("task", "start", "T-0001")
    assert run("task", "evidence", "--path", "README.md").status == 0
    (place.path / "README.md").unlink()
    os.mkfifo(place.path / "README.md")
    assert "README.md is gone" in run("status").out


def test_what_a_person_names_is_read_and_not_waited_for(place: Repo, outside: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "LONGEST", 1 << 16)
    for words in (("checkpoint", "--from"), ("purge", "--secret-from")):
        for kind in ("dangling symlink", "folder", "socket"):
            with odd(place.path / "odd", kind, outside):
                assert_one_line(run(*words, "odd"), 69)
        with odd(place.path / "odd", "fifo", outside):
            assert_one_line(run(*words, "odd"), 65)  # nobody writes to it: it is empty
        assert_one_line(run(*words, "/dev/null"), 65)
        assert "more than 65,5" in run(*words, "/dev/zero").err


def test_a_change_set_may_come_through_a_pipe_and_late(place: Repo):
    tip = place.git("rev-parse", "ledger/main")
    value = {"source_digest": tip, "ledger_updates": [], "handoff_summary": "Through a pipe"}
    os.mkfifo("pipe")
    with open(os.open("pipe", os.O_RDWR), "wb", buffering=0) as pipe:

        def write() -> None:
            pipe.write(json.dumps(value).encode())
            pipe.close()

        late = threading.Timer(0.3, write)
        late.start()
        try:
            said = run("checkpoint", "--from", "pipe")
        finally:
            late.join()
    assert said.status == 0, said


def test_C_may_name_anything_and_writes_nothing_there(place: Repo, outside: Path):  # noqa: N802
    for kind in ("fifo", "symlink", "dangling symlink"):
        with odd(outside.with_name("odd"), kind, outside):
            assert_one_line(run("-C", str(outside.with_name("odd")), "status"), 69)


def test_a_ledger_is_named_by_its_folder_and_by_no_path(place: Repo):
    for name in ("../main", "main/", "main/damaged", "/", "..", "."):
        with pytest.raises(LedgerError):
            again(place, name=name)
