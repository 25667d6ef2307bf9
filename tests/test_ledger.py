"""The ledger end to end, in process: what begins it, what a checkpoint promises, and what a failure leaves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger import discover, entries, genesis, ledger, lock, signing, sshsig, tasks, transaction, verify, wal
from gitledger.errors import (
    Blocked,
    CannotWrite,
    IOFailed,
    LedgerError,
    Missing,
    MissingObject,
    NotAllowed,
    NotARepository,
    StaleTip,
    Unsupported,
)
from gitledger.ledger import Ledger
from gitledger.render import tree
from tests.ledgers import Clock, again, begin, do
from tests.process.program import python
from tests.sealed import Repo, new_repo

DRIVERS = discover.DRIVERS


def everything(repo: Repo) -> dict[str, str]:
    """The user's side of a repository, byte for byte: work tree, index, HEAD, config, hooks."""
    found = {}
    for folder, names, files in os.walk(repo.path):
        if Path(folder) == repo.path / ".git":
            names[:] = [n for n in names if n not in ("objects", "refs", "gitledger", "logs")]
        for name in files:
            path = Path(folder) / name
            found[str(path.relative_to(repo.path))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def state(repo: Repo) -> dict[str, bytes]:
    """The ledger's side: its ref and its write-ahead log."""
    folder = repo.path / ".git" / "gitledger" / "wal" / "main"
    log = b"".join(sorted(p.read_bytes() for p in folder.glob("*.wal")))
    return {"ref": repo.git("for-each-ref", "refs/heads/ledger").encode(), "wal": log}


# ── beginning ────────────────────────────────────────────────────────────────────────────────
def test_init_makes_a_signed_orphan_branch_and_touches_nothing_of_the_users(repo: Repo) -> None:
    before = everything(repo)
    begun = discover.init(str(repo.path), "main", "Shop")
    assert everything(repo) == before
    assert repo.git("rev-list", "--count", "ledger/main") == "1"
    signers = repo.path / ".git" / "signers"
    signers.write_text(repo.git("show", "ledger/main:keys/allowed_signers") + "\n")
    repo.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-commit", "ledger/main")
    assert begun.fingerprint.startswith("SHA256:")
    assert oct((repo.path / ".git" / "gitledger").stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("place", ["linked", "submodule", "bare+worktree", "unborn", "detached"])
def test_init_and_checkpoint_work_in(place: str, repo: Repo, tmp_path: Path) -> None:
    if place == "linked":
        repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        where = Repo(tmp_path / "linked")
    elif place == "submodule":
        outer = new_repo(tmp_path / "outer")
        outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo.path), "inner")
        where = Repo(outer.path / "inner")
    elif place == "bare+worktree":
        repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare.git"))
        Repo(tmp_path / "bare.git").git("worktree", "add", "-q", str(tmp_path / "tree"), "main")
        where = Repo(tmp_path / "tree")
    elif place == "unborn":
        where = new_repo(tmp_path / "unborn")
    else:
        repo.git("checkout", "-q", "--detach")
        where = repo
    made = begin(where).checkpoint()
    assert where.git("rev-parse", "ledger/main") == made.commit
    assert again(where).position().branch == {"linked": "side", "detached": "DETACHED"}.get(place, "main")


def test_init_is_refused_outside_of_a_repository_and_writes_nothing(tmp_path: Path, home: Path) -> None:
    with pytest.raises(NotARepository, match="git init"):
        discover.init(str(tmp_path), "main", None)
    assert list(tmp_path.iterdir()) == []
    assert list(home.iterdir()) == []


def test_init_is_refused_where_a_branch_is_called_ledger(repo: Repo) -> None:
    repo.branches("ledger")
    with pytest.raises(CannotWrite, match="a branch called ledger exists"):
        discover.init(str(repo.path), "main", None)
    assert not (repo.path / ".git" / "gitledger").exists()


def test_init_is_refused_where_the_ledger_exists(repo: Repo) -> None:
    begin(repo)
    tip = repo.git("rev-parse", "ledger/main")
    with pytest.raises(NotAllowed, match="exists here already"):
        discover.init(str(repo.path), "main", None)
    assert repo.git("rev-parse", "ledger/main") == tip


def test_init_is_refused_in_a_sha256_repository(tmp_path: Path) -> None:
    other = new_repo(tmp_path / "sha256", "--object-format=sha256")
    with pytest.raises(Unsupported, match="sha256"):
        discover.init(str(other.path), "main", None)
    assert not (other.path / ".git" / "gitledger").exists()


def test_init_without_ssh_keygen_says_so_and_leaves_nothing(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(Missing, match="ssh-keygen"):
        discover.init(str(repo.path), "main", None)
    assert not (repo.path / ".git" / "gitledger").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere; the process test drops root instead")
def test_init_in_a_read_only_repository_is_one_error(repo: Repo) -> None:
    (repo.path / ".git").chmod(0o555)
    try:
        with pytest.raises(CannotWrite):
            discover.init(str(repo.path), "main", None)
    finally:
        (repo.path / ".git").chmod(0o755)


def test_init_that_fails_under_way_takes_its_files_back(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(payload: bytes, key: signing.KeySigner) -> str:
        raise IOFailed("no space left on device; free some")

    monkeypatch.setattr(transaction.signing, "sign", broken)
    with pytest.raises(IOFailed):
        discover.init(str(repo.path), "main", None)
    assert not (repo.path / ".git" / "gitledger").exists()
    assert repo.git("for-each-ref", "refs/heads/ledger") == ""


def test_a_clone_joins_the_ledger_whose_branch_it_has(repo: Repo, tmp_path: Path) -> None:
    first = begin(repo)
    other = repo.clone(tmp_path / "clone")
    other.git("branch", "ledger/main", "origin/ledger/main")
    begun = discover.init(str(other.path), "main", None)
    assert begun.joined
    assert not begun.asked
    assert begun.uuid == first.view().manifest.uuid
    assert begun.writer != first.desk.writer.id
    assert len(again(other).view().manifest.writers) == 2


def test_a_lost_key_makes_no_forgery_and_init_joins_with_a_new_writer(repo: Repo) -> None:
    book = begin(repo)
    do(book, tasks.add, "Logged before the loss")
    key = Path(book.desk.writer.key.path)
    before = book.tip()
    key.rename(key.with_name("lost"))
    Path(f"{key}.pub").unlink()
    with pytest.raises(Blocked, match="gitledger init"):
        again(repo).checkpoint()
    signing.make_key(str(key.parent), "another")  # as another repository's init would
    with pytest.raises(Blocked, match="knows this clone's writer"):
        again(repo).checkpoint()
    assert again(repo).tip() == before
    begun = discover.init(str(repo.path), "main", None)
    assert begun.joined
    assert begun.writer != book.desk.writer.id
    view = again(repo).view()
    assert [row["title"] for _, row in view.walk(ledger.layout.TASK)] == ["Logged before the loss"]
    again(repo).checkpoint()
    book = again(repo)
    assert verify.verify(book.desk, book.tip(), verify.Ways(full=True)).findings == ()


def test_two_ledgers_live_side_by_side(repo: Repo) -> None:
    begin(repo, name="main")
    other = begin(repo, name="docs")
    do(other, tasks.add, "Only here")
    assert again(repo, name="main").view().manifest.numbers.get("T") is None
    assert again(repo, name="docs").view().manifest.numbers["T"] == 1


# ── the checkpoint transaction ───────────────────────────────────────────────────────────────
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_checkpoint_holds_what_was_logged_and_passes_stock_git(repo: Repo, driver: discover.Driver) -> None:
    book = begin(repo, driver=driver)
    key = do(book, tasks.add, "Authentication", accept=("logs in",))
    do(book, tasks.start, key)
    do(book, tasks.set_next, key, "Write the login form")
    before = everything(repo)
    made = book.checkpoint()
    assert everything(repo) == before
    assert made.name == "C-000001"
    assert made.task == "T-0001"
    assert made.path == "tasks/00xx/T-0001-authentication/checkpoints/0000xx/C-000001.md"
    assert made.digest == "sha1:" + repo.git("rev-parse", "ledger/main")
    assert made.next == "Write the login form"
    assert repo.git("log", "-1", "--format=%s", "ledger/main") == "C-000001 T-0001: Write the login form"
    assert "Write the login form" in repo.git("show", f"ledger/main:{made.path}")
    assert wal.pending(book.desk.home.wal) == ([], [])
    signers = repo.path / ".git" / "signers"
    signers.write_text(repo.git("show", "ledger/main:keys/allowed_signers") + "\n")
    repo.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-commit", "ledger/main")
    repo.git("fsck", "--strict")


def test_the_commit_message_binds_the_ledger_the_writer_and_the_head(repo: Repo) -> None:
    book = begin(repo)
    book.checkpoint()
    trailers = dict(
        row.split(": ", 1)
        for row in repo.git("log", "-1", "--format=%(trailers:only)", "ledger/main").splitlines()
        if row
    )
    view = book.view()
    tail = view.manifest.writers[book.desk.writer.id]
    assert trailers["Ledger"] == f"{view.manifest.uuid} main"
    assert trailers["Ledger-Kind"] == "checkpoint"
    assert trailers["Ledger-Writer"] == book.desk.writer.id
    assert trailers["Ledger-Seq"] == "2"
    assert trailers["Ledger-Journal"] == f"{tail.seq} {tail.last}"
    assert trailers["Ledger-Head"] == f"{repo.head()} main"
    assert "[skip ci]" in repo.git("log", "-1", "--format=%B", "ledger/main")


def failures(book: Ledger, monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    """Make one step of the transaction fail, as a broken machine would."""
    store = book.desk.store

    def full(*args: object, **kwargs: object) -> None:
        raise IOFailed("no space left on device; free some")

    if step == "lock":
        with lock.held(book.desk.home.lock, deadline=1):
            monkeypatch.setattr(transaction, "LOCK_DEADLINE", 0.1)
            yield
        return
    if step == "seal":
        monkeypatch.setattr(transaction.wal, "seal", full)
    elif step == "render":
        monkeypatch.setattr(tree, "changes", full)
    elif step == "sign":
        Path(book.desk.writer.key.path).rename(book.desk.writer.key.path + ".away")
    elif step == "put":
        monkeypatch.setattr(type(store), "put", full)
    elif step == "swap":
        monkeypatch.setattr(type(store), "swap", full)
    elif step == "read back":
        monkeypatch.setattr(transaction.store, "read_back", full)
    elif step == "verify":
        monkeypatch.setattr(transaction, "verify", full)
    elif step == "os error":

        def broken(*args: object) -> None:
            raise OSError(28, "No space left on device", "/somewhere")

        monkeypatch.setattr(type(store), "put", broken)
    yield


STEPS = ("lock", "seal", "render", "sign", "put", "swap", "read back", "verify", "os error")


@pytest.mark.parametrize("step", STEPS)
def test_a_failing_step_leaves_everything_as_it_was(step: str, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    do(book, tasks.add, "Kept")
    repo.write({"dirty.txt": "not committed"})
    users, ours = everything(repo), state(repo)
    with pytest.MonkeyPatch.context() as patch:
        for _ in failures(book, patch, step):
            with pytest.raises(
                Blocked, match=r"^BLOCKED_MISSING_PREREQUISITE: .+: .+compaction allow --once"
            ) as caught:
                book.checkpoint()
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code in (69, 73, 74, 75, 77)
    assert everything(repo) == users
    assert state(repo) == ours
    if step == "sign":
        Path(book.desk.writer.key.path + ".away").rename(book.desk.writer.key.path)
    made = again(repo).checkpoint()  # and afterwards it works, with nothing lost
    assert again(repo).view().manifest.numbers["T"] == 1
    assert made.name == "C-000001"


@pytest.mark.parametrize("way", ["ssh-keygen", "in process"])
def test_a_signature_that_is_not_good_is_found_before_the_branch_moves(
    way: str, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = begin(repo)
    real, moved = signing.sign, []
    monkeypatch.setattr(signing, "sign", lambda payload, key: real(payload + b"x", key))
    monkeypatch.setattr(type(book.desk.store), "swap", lambda *args: moved.append(args))
    if way == "in process":
        sshsig.load()
    else:
        monkeypatch.delitem(sys.modules, "cryptography.exceptions", raising=False)
    with pytest.raises(Blocked, match=r"the signature (by .* is not a good one of|is not over|by \S+ is not over)"):
        book.checkpoint()
    assert moved == []


def test_another_writers_commit_in_between_is_built_upon(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    do(book, tasks.add, "Mine")
    store = book.desk.store
    real, raced = type(store).swap, []

    def raced_swap(self: object, new: str | None, old: str | None, reason: str) -> None:
        if not raced:
            raced.append(True)
            raise StaleTip("refs/heads/ledger/main moved on; read its tip and try again")
        real(self, new, old, reason)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store), "swap", raced_swap)
    assert book.checkpoint().name == "C-000001"
    assert raced


def test_new_objects_that_a_prune_took_are_made_again(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    real, pruned = transaction.store.read_back, []

    def missing(*args: object) -> None:
        if not pruned:
            pruned.append(True)
            raise MissingObject("a new object is gone; run the command again")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(transaction.store, "read_back", missing)
    made = book.checkpoint()
    assert repo.git("rev-parse", "ledger/main") == made.commit
    assert repo.git("rev-list", "--count", "ledger/main") == "2"


CRASH = """
import os, sys
from gitledger import discover, transaction, wal
book = discover.open(sys.argv[1])
if sys.argv[2] == "before":
    transaction.signing.sign = lambda *a: os._exit(9)
else:
    wal.forget = lambda *a: os._exit(9)
book.checkpoint()
"""


@pytest.mark.process
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_the_commit_neither_loses_nor_repeats_a_line(when: str, repo: Repo) -> None:
    book = begin(repo)
    for n in range(5):
        do(book, tasks.add, f"Task {n}")
    assert python(repo.path, CRASH, str(repo.path), when).status == 9
    assert wal.sealed(book.desk.home.wal)  # the lines are still there
    book = again(repo)
    assert book.view().manifest.numbers["T"] == 5
    do(book, tasks.add, "After the crash")
    book.checkpoint()
    view = again(repo).view()
    assert view.manifest.numbers["T"] == 6
    journal = repo.git("grep", "-h", "task.added", "ledger/main", "--", "journal").splitlines()
    assert len(journal) == 6
    assert wal.pending(book.desk.home.wal) == ([], [])


def test_every_read_sees_what_is_only_logged(repo: Repo) -> None:
    book = begin(repo)
    tip = book.tip()
    key = do(book, tasks.add, "Just logged")
    assert again(repo).view().need(str(key)).get("title") == "Just logged"
    assert book.tip() == tip


PARALLEL = """
import sys
from gitledger import discover, tasks
book = discover.open(sys.argv[1])
for n in range(8):
    book.record(lambda view, hand: tasks.add(view, hand, f"{sys.argv[2]} {n}"))
    if n % 4 == 3:
        book.checkpoint()
"""


@pytest.mark.process
def test_processes_at_once_never_share_a_number_and_lose_nothing(repo: Repo) -> None:
    begin(repo)
    children = [subprocess.Popen([sys.executable, "-c", PARALLEL, str(repo.path), str(n)]) for n in range(4)]
    assert [child.wait(120) for child in children] == [0] * 4
    view = again(repo).view()
    assert view.manifest.numbers["T"] == 32
    titles = {row["title"] for _, row in view.walk(ledger.layout.TASK)}
    assert titles == {f"{p} {n}" for p in range(4) for n in range(8)}
    assert repo.git("rev-list", "--count", "ledger/main") == "9"


# ── compaction ───────────────────────────────────────────────────────────────────────────────
def test_a_compaction_announced_twice_makes_one_checkpoint(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "one")
    first = book.before_compaction(session)
    second = again(repo).before_compaction(session)
    assert (second.name, second.digest, second.again) == (first.name, first.digest, True)
    assert repo.git("rev-list", "--count", "ledger/main") == "2"


def test_a_second_compaction_after_more_work_makes_a_second_checkpoint(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "one")
    book.before_compaction(session)
    do(book, entries.note, "something happened", None)
    assert again(repo).before_compaction(session).name == "C-000002"
    repo.write({"new.txt": "work without an event"})
    assert again(repo).before_compaction(session).name == "C-000003"


# ── sessions ─────────────────────────────────────────────────────────────────────────────────
def test_an_end_makes_checkpoint_handover_and_close_in_one_commit_and_only_once(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "one")
    made = book.end_session(session, "exit")
    assert made is not None
    assert made.name == "H-000001"
    assert book.end_session(session, "exit") is None
    assert repo.git("rev-list", "--count", "ledger/main") == "2"
    view = book.view()
    assert view.need(session).get("state") == "closed"
    assert view.need(session).get("closed")["handover_name"] == "H-000001"
    assert repo.git("log", "-1", "--format=%(trailers:key=Ledger-Kind,valueonly)", "ledger/main").strip() == "handover"


def test_an_unlisted_end_reason_is_an_interruption(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "one")
    book.end_session(session, "meteor")
    assert book.view().need(session).get("state") == "interrupted"


def test_a_resume_keeps_the_session_and_its_beginning(repo: Repo) -> None:
    clock = Clock()
    book = begin(repo, clock)
    session = book.start_session("generic", "one")
    began = book.view().need(session).get("at")
    clock.forward(hours=1)
    assert book.start_session("generic", "one", "resume") == session
    record = book.view().need(session)
    assert (record.get("at"), record.get("state")) == (began, "open")


def test_a_session_whose_client_died_is_recovered_exactly_once_and_never_its_own(repo: Repo) -> None:
    book = begin(repo)
    client = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    dead = book.start_session("generic", "dead", pid=client.pid)
    alive = book.start_session("generic", "alive", pid=os.getpid())
    assert book.recover_sessions(alive) == []  # both still run
    client.kill()
    client.wait()
    assert book.recover_sessions(dead) == []  # never its own
    made = book.recover_sessions(alive)
    assert [p.name for p in made] == ["H-000001"]
    assert again(repo).recover_sessions(alive) == []
    view = again(repo).view()
    assert view.need(dead).get("state") == "interrupted"
    assert view.need(alive).get("state") == "open"
    assert view.need(made[0].key).get("recovered") is True


def test_a_session_of_an_unknown_process_is_gone_after_silence_only(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    book = begin(repo, clock)
    monkeypatch.setattr("gitledger.process.client", lambda: None)
    book.start_session("generic", "elsewhere")
    assert book.recover_sessions() == []
    clock.forward(minutes=29)
    assert book.recover_sessions() == []
    clock.forward(minutes=2)
    assert len(book.recover_sessions()) == 1


def test_two_windows_never_share_or_close_each_others_session(repo: Repo) -> None:
    book = begin(repo)
    one = book.start_session("generic", "window 1", pid=os.getpid())
    two = book.start_session("generic", "window 2", pid=os.getpid())
    assert one != two
    book.end_session(one, "exit")
    assert book.view().need(two).get("state") == "open"


def test_a_gone_ref_is_said_and_not_begun_anew(repo: Repo) -> None:
    book = begin(repo)
    book.checkpoint()
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    with pytest.raises(LedgerError, match="is gone"):
        again(repo).view()
    with pytest.raises(Blocked):
        again(repo).checkpoint()
    assert repo.git("for-each-ref", "refs/heads/ledger") == ""


def test_the_writer_of_a_clone_is_its_own(repo: Repo) -> None:
    book = begin(repo)
    assert genesis.writer_id(book.gitdir) == book.desk.writer.id
