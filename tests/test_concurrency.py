"""Several at once: work trees, sessions, commands and processes, none of which takes what is another's."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger import authority, discover, entries, handovers, layout, process, sessions, tasks, wal
from gitledger.errors import NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Key
from gitledger.redact import redact
from tests.ledgers import Clock, again, begin, do
from tests.sealed import LONG, Repo


def linked(repo: Repo, path: Path, branch: str) -> Repo:
    """A linked work tree at `path` on a new branch."""
    repo.git("worktree", "add", "-q", "-b", branch, str(path))
    return Repo(path, repo._clock)


def capture(book: Ledger, event: str, session: str, **said: object) -> str:
    """Log a generic event of a session as its hook does; the entry's id."""
    import json

    payload = json.dumps({"session_id": session, **said}).encode()
    now = book.desk.mint.now_ms()
    where = book.gitdir.worktree
    return wal.append(book.desk.home.wal, "generic", event, payload, now_ms=now, rand=os.urandom(10), worktree=where).id


def chosen(book: Ledger) -> tuple[str, int | None] | None:
    """The name and tier of the handover that a session starting here is given."""
    view, here = book.view(), book.position()
    judged, tier, _, _ = handovers.selected(book, view, here, authority.assess(book.desk, book.tip()))
    return (view.name(judged.key), tier) if judged else None


def gone() -> int:
    """The pid of a process that lives; it ends with this one's test."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    return child.pid


@pytest.fixture
def client() -> object:
    """A client that runs until it is killed."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    yield child
    child.kill()
    child.wait()


# ── work trees ───────────────────────────────────────────────────────────────────────────────
def test_a_handover_of_one_work_tree_is_never_tier_0_of_another(repo: Repo, tmp_path: Path) -> None:
    clock = Clock()
    one = begin(repo, clock)
    side = linked(repo, tmp_path / "side", "side")
    two = again(side, clock)
    for book in (one, two):
        session = book.start_session("generic", book.gitdir.worktree)
        book.end_session(session, "exit")
    assert chosen(again(repo, clock)) == ("H-000001", 0)
    assert chosen(again(side, clock)) == ("H-000002", 0)
    side.git("checkout", "-q", "-b", "elsewhere")
    repo.git("checkout", "-q", "side")
    assert chosen(again(repo, clock)) == ("H-000002", 1)  # the branch is the same, the work tree is not


def test_a_linked_work_tree_called_main_is_not_the_main_one(repo: Repo, tmp_path: Path) -> None:
    clock = Clock()
    one = begin(repo, clock)
    side = linked(repo, tmp_path / "x" / "main", "side")
    two = again(side, clock)
    assert os.path.basename(two.gitdir.git_dir) == "main"
    assert two.gitdir.worktree != one.gitdir.worktree
    assert two.position().worktree == two.gitdir.worktree
    do(one, tasks.add, "Of the main one")
    do(two, tasks.add, "Of the linked one")
    do(one, tasks.start, do_key(one, "T-0001"))
    do(two, tasks.start, do_key(two, "T-0002"))
    assert tasks.active(one.view(), one.desk.writer.id, one.gitdir.worktree) == do_key(one, "T-0001")
    assert tasks.active(two.view(), two.desk.writer.id, two.gitdir.worktree) == do_key(two, "T-0002")
    session = two.start_session("generic", "in the linked one")
    two.end_session(session, "exit")
    side.git("checkout", "-q", "--detach")
    repo.git("checkout", "-q", "side")
    assert chosen(again(repo, clock)) == ("H-000001", 1)


def do_key(book: Ledger, name: str) -> Key:
    """The key of a task's name."""
    return book.view().resolve(name, layout.TASK, book.desk.writer.id)


def test_a_task_started_in_one_work_tree_leaves_the_other_ones_active(repo: Repo, tmp_path: Path) -> None:
    one = begin(repo)
    two = again(linked(repo, tmp_path / "side", "side"))
    first, second, third = (str(do(one, tasks.add, name)) for name in ("One", "Two", "Three"))
    do(one, tasks.start, first)
    do(two, tasks.start, second)
    do(two, tasks.start, third)
    view = again(repo).view()
    assert [view.need(key).get("status") for key in (first, second, third)] == ["active", "planned", "active"]
    assert tasks.active(view, one.desk.writer.id, "main") == first
    assert tasks.active(view, one.desk.writer.id, "side") == third
    assert again(repo).checkpoint().task == "T-0001"
    assert two.checkpoint().task == "T-0003"


def test_a_task_that_is_active_in_another_work_tree_can_be_taken_up_here(repo: Repo, tmp_path: Path) -> None:
    one = begin(repo)
    two = again(linked(repo, tmp_path / "side", "side"))
    first, second = (str(do(one, tasks.add, name)) for name in ("One", "Two"))
    do(one, tasks.start, first)
    do(two, tasks.start, second)
    do(two, tasks.done, second)
    assert tasks.active(two.view(), two.desk.writer.id, "side") is None
    do(two, tasks.start, first)
    assert tasks.active(two.view(), two.desk.writer.id, "side") == first
    with pytest.raises(NotAllowed, match="is active already"):
        do(two, tasks.start, first)
    other = str(do(one, tasks.add, "Three"))
    do(one, tasks.start, other)
    assert again(repo).view().need(first).get("status") == "active"  # it goes on where it was taken to


def test_a_session_ended_from_another_work_tree_is_handed_over_where_it_was(repo: Repo, tmp_path: Path) -> None:
    clock = Clock()
    one = begin(repo, clock)
    side = linked(repo, tmp_path / "side", "side")
    key, other = str(do(one, tasks.add, "In main")), str(do(one, tasks.add, "In side"))
    do(one, tasks.start, key)
    do(again(side, clock), tasks.start, other)
    session = one.start_session("generic", "s")
    done = repo.commit("work in main")
    made = again(side, clock).end_session(session, "exit")
    assert made is not None
    record = again(repo).view().need(made.key)
    position = record.get("position")
    assert (position["worktree"], position["branch"], position["head"]) == ("main", "main", done)
    assert record.get("task") == key
    assert chosen(again(repo, clock)) == ("H-000001", 0)
    assert chosen(again(side, clock)) is None


def test_a_session_of_a_work_tree_that_is_gone_is_recovered_by_what_was_recorded(repo: Repo, tmp_path: Path) -> None:
    clock = Clock()
    book = begin(repo, clock)
    side = linked(repo, tmp_path / "side", "side")
    session = again(side, clock).start_session("generic", "s", pid=os.getpid())
    then = again(side, clock).position()
    repo.git("worktree", "remove", "--force", str(side.path))
    made = book.end_session(session, "exit")
    assert made is not None
    position = book.view().need(made.key).get("position")
    assert (position["worktree"], position["branch"], position["head"]) == ("side", "side", then.head)


# ── the log's order ──────────────────────────────────────────────────────────────────────────


# ── work trees that move or go ───────────────────────────────────────────────────────────────
def test_the_handover_of_a_work_tree_that_was_removed_is_found_from_another_one_on_its_branch(
    repo: Repo, tmp_path: Path
) -> None:
    begin(repo)
    side = linked(repo, tmp_path / "side", "topic")
    book = again(side)
    key = do(book, tasks.add, "Work on the side")
    do(book, tasks.start, key)
    do(book, tasks.set_next, key, "Go on here")
    name = book.write_handover().name
    do(book, entries.note, "Said last", None)
    repo.git("worktree", "remove", "--force", str(side.path))
    other = again(linked_at(repo, tmp_path / "other", "topic"))
    assert chosen(other) == (name, 1)
    assert [row["title"] for _, row in other.view().walk(layout.NOTE)] == ["Said last"]  # pending lines are the clone's


def test_a_work_tree_that_was_moved_keeps_its_task_and_its_handover(repo: Repo, tmp_path: Path) -> None:
    begin(repo)
    side = linked(repo, tmp_path / "side", "topic")
    book = again(side)
    key = do(book, tasks.add, "Work on the side")
    do(book, tasks.start, key)
    name = book.write_handover().name
    repo.git("worktree", "move", str(side.path), str(tmp_path / "moved"))
    moved = again(Repo(tmp_path / "moved", repo._clock))
    assert chosen(moved) == (name, 0)
    assert tasks.active(moved.view(), moved.desk.writer.id, moved.gitdir.worktree) == key
    do(moved, entries.note, "Goes on", None)
    moved.checkpoint()


def linked_at(repo: Repo, path: Path, branch: str) -> Repo:
    """A linked work tree at `path` on a branch that is there."""
    repo.git("worktree", "add", "-q", str(path), branch)
    return Repo(path, repo._clock)


def test_commands_keep_their_order_while_a_stopped_process_holds_the_log(repo: Repo) -> None:
    book = begin(repo)
    key = str(do(book, tasks.add, "First added, then started"))
    with open(f"{book.desk.home.wal}/current.wal", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        do(again(repo), tasks.start, key)
    assert again(repo).view().need(key).get("status") == "active"
    do(again(repo), tasks.set_next, key, "Write it")
    book.checkpoint()
    record = again(repo).view().need(key)
    assert (record.get("status"), record.get("next")) == ("active", "Write it")


# ── sessions ─────────────────────────────────────────────────────────────────────────────────
END = """
import sys
from gitledger import discover
book = discover.open(sys.argv[1])
made = book.end_session(sys.argv[2], "exit")
print(made.name if made else "-")
"""
RECOVER = """
import sys
from gitledger import discover
book = discover.open(sys.argv[1])
print(",".join(p.name for p in book.recover_sessions()) or "-")
"""


def at_once(script: str, count: int, *words: str) -> list[str]:
    """What each of `count` processes printed that ran the same script at the same time."""
    children = [
        subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    said = [child.communicate(timeout=120)[0].strip() for child in children]
    assert [child.returncode for child in children] == [0] * count
    return said


@pytest.mark.process
def test_a_session_ended_by_several_processes_is_closed_once(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "s", pid=os.getpid())
    assert sorted(at_once(END, 4, str(repo.path), session)) == ["-", "-", "-", "H-000001"]
    assert repo.git("rev-list", "--count", "ledger/main") == "2"


@pytest.mark.process
def test_a_dead_session_is_recovered_by_one_of_several_starts(repo: Repo, client: subprocess.Popen[bytes]) -> None:
    book = begin(repo)
    for n in range(3):
        book.start_session("generic", f"s{n}", pid=client.pid)
    client.kill()
    client.wait()
    said = [name for words in at_once(RECOVER, 4, str(repo.path)) for name in words.split(",") if name != "-"]
    assert sorted(said) == ["H-000001", "H-000002", "H-000003"]


def test_a_session_that_goes_on_while_it_is_taken_for_dead_is_not_recovered(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, client: subprocess.Popen[bytes]
) -> None:
    book = begin(repo)
    session = book.start_session("generic", "s", pid=client.pid)
    client.kill()
    client.wait()
    real = sessions.interrupted

    def found_then_resumed(*args: object) -> list[Key]:
        found = real(*args)  # type: ignore[arg-type]
        if found and not resumed:
            resumed.append(again(repo).start_session("generic", "s", "resume", pid=os.getpid()))
        return found

    resumed: list[Key] = []
    monkeypatch.setattr(sessions, "interrupted", found_then_resumed)
    assert book.recover_sessions() == []
    assert resumed == [session]
    assert again(repo).view().need(session).get("state") == "open"


def test_a_turn_that_was_said_before_the_end_and_comes_after_it_opens_nothing(repo: Repo) -> None:
    clock = Clock()
    book = begin(repo, clock)
    session = book.start_session("generic", "s", pid=os.getpid())
    early = clock.now
    clock.forward(minutes=1)
    book.end_session(session, "exit")
    late = again(repo, Clock(early))
    ident = capture(late, "turn", "s", prompt="said before the end")
    view = again(repo, clock).view()
    assert view.need(session).get("state") == "closed"
    again(repo, clock).checkpoint()
    assert ident in repo.git("grep", "-h", ident, "ledger/main", "--", "journal")
    clock.forward(hours=5)
    assert again(repo, clock).recover_sessions() == []


def test_a_session_that_speaks_after_its_end_is_open_again_and_closes_again(repo: Repo) -> None:
    clock = Clock()
    book = begin(repo, clock)
    session = book.start_session("generic", "s", pid=os.getpid())
    book.end_session(session, "exit")
    book.start_session("generic", "s", "resume", pid=os.getpid())
    capture(book, "turn", "s", prompt="back again")
    assert book.view().need(session).get("state") == "open"
    book.checkpoint()
    documents = repo.git("ls-tree", "-r", "--name-only", "ledger/main", "sessions").splitlines()
    assert not [name for name in documents if name.endswith(f"{session}.md")]  # nothing says that it is closed
    made = book.end_session(session, "exit")
    assert made is not None
    assert made.name == "H-000002"
    document = repo.git("show", f"ledger/main:{layout.plain_stem(session)}.md")
    assert "H-000002" in document
    assert "Turns: 1" in document or "1" in document


def test_a_session_resumed_in_another_clone_is_that_clones_to_recover(
    repo: Repo, tmp_path: Path, client: subprocess.Popen[bytes]
) -> None:
    one = begin(repo)
    session = one.start_session("generic", "s", pid=client.pid)
    one.checkpoint()
    there = repo.clone(tmp_path / "there")
    there.git("branch", "-q", "ledger/main", "origin/ledger/main")
    two = begin(there)
    assert two.start_session("generic", "s", "resume", pid=client.pid) == session
    client.kill()
    client.wait()
    assert [made.name for made in two.recover_sessions()] == ["H-000001"]


def test_clear_ends_one_session_and_starts_another(repo: Repo) -> None:
    book = begin(repo)
    old = book.start_session("generic", "old", pid=os.getpid())
    capture(book, "turn", "old", prompt="before")
    made = book.end_session(old, "clear")
    new = book.start_session("generic", "new", "clear", pid=os.getpid())
    capture(book, "turn", "new", prompt="after")
    view = book.view()
    assert made is not None
    assert (view.need(old).get("state"), view.need(new).get("state")) == ("closed", "open")
    assert view.need(made.key).get("last_prompt") == "before"
    assert (view.need(old).get("turns"), view.need(new).get("turns")) == (1, 1)


def test_a_pid_that_another_process_has_now_is_not_the_client(repo: Repo) -> None:
    mine = process.named(os.getpid())
    assert mine is not None
    assert process.alive(mine) is True
    assert process.alive({**mine, "started": "1"}) is False
    assert process.alive({**mine, "boot": "another boot"}) is False
    odd: object
    for odd in ("x", 7, [], {"pid": "../../etc"}, {"pid": os.getpid()}, {**mine, "pid": "self"}):
        assert process.alive(odd) is not True


@pytest.mark.process
def test_seven_sessions_at_once_each_have_their_own_record(repo: Repo) -> None:
    script = """
import json, subprocess, sys
from gitledger import discover
me = sys.argv[2]
def hook(event, **said):
    body = json.dumps({"session_id": me, **said}).encode()
    subprocess.run([sys.executable, "-m", "gitledger", "hook", "generic", event], cwd=sys.argv[1], input=body,
                   check=True, stdout=subprocess.DEVNULL, timeout=120)
hook("start", source="startup", pid=int(sys.argv[3]))
for n in range(int(sys.argv[4])):
    hook("turn", prompt=f"{me} asks {n}", answer=f"{me} answers {n}")
hook("end", reason="exit")
"""
    begin(repo)
    env = {**os.environ, "PYTHONPATH": str(Path(discover.__file__).parent.parent)}
    turns = 4 if LONG else 2
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(repo.path), f"s{n}", str(os.getpid()), str(turns)], env=env)
        for n in range(7)
    ]
    assert [child.wait(300) for child in children] == [0] * 7
    view = again(repo).view()
    numbers = set()
    for n in range(7):
        record = view.need(layout.session_key("generic", f"s{n}"))
        assert (record.get("state"), record.get("turns")) == ("closed", turns), n
        assert record.get("last_prompt") == f"s{n} asks {turns - 1}"
        handover = record.get("closed")["handover_name"]
        numbers.add(handover)
        told = view.need(view.resolve(handover, layout.HANDOVER, view.manifest.name))
        assert (told.get("session"), told.get("last_answer")) == (record.key, f"s{n} answers {turns - 1}")
    assert len(numbers) == 7
    assert view.manifest.numbers["H"] == 7


def test_the_first_start_of_a_session_is_no_resume(repo: Repo) -> None:
    book = begin(repo)
    capture(book, "start", "s")  # the receipt that the hook logs first
    book.start_session("generic", "s", "startup", pid=os.getpid())
    book.view()
    assert [event.type for event in book.pending] == ["receipt", "session.started"]
    book.start_session("generic", "s", "resume", pid=os.getpid())
    book.view()
    assert [event.type for event in book.pending][-1] == "session.resumed"


def test_a_command_belongs_to_the_session_it_runs_in_not_to_the_one_heard_last(
    repo: Repo, client: subprocess.Popen[bytes]
) -> None:
    book = begin(repo)
    mine = book.start_session("generic", "mine", pid=os.getpid())
    book.start_session("generic", "other", pid=client.pid)
    do(book, entries.note, "said by a command below this process", None)
    book.view()
    assert book.pending[-1].session == mine


# ── compaction ───────────────────────────────────────────────────────────────────────────────
COMPACT = """
import sys
from gitledger import discover
book = discover.open(sys.argv[1])
made = book.before_compaction(sys.argv[2])
print(made.name, made.digest)
"""


@pytest.mark.process
def test_a_compaction_announced_by_several_processes_makes_one_checkpoint(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "s", pid=os.getpid())
    said = at_once(COMPACT, 4, str(repo.path), session)
    assert set(said) == {f"C-000001 sha1:{repo.git('rev-parse', 'ledger/main')}"}


def compacted(book: Ledger) -> Key:
    session = book.start_session("generic", "s", pid=os.getpid())
    assert book.before_compaction(session).name == "C-000001"
    assert again_compacted(book, session) == "C-000001"
    return session


def again_compacted(book: Ledger, session: Key) -> str:
    made = discover.open(book.gitdir.top, mint=book.desk.mint).before_compaction(session)
    return made.name


@pytest.mark.parametrize(
    "what", ["turn", "prompt", "tool", "note", "next", "commit", "same size", "checkout", "other session", "stash"]
)
def test_a_compaction_after_anything_happened_makes_a_new_checkpoint(what: str, repo: Repo) -> None:
    book = begin(repo)
    task = str(do(book, tasks.add, "Task"))
    repo.write({"dirty.txt": "abc"})
    session = compacted(book)
    if what in ("turn", "prompt", "tool"):
        capture(book, what, "s", prompt="more")
    elif what == "note":
        do(book, entries.note, "noted", None)
    elif what == "next":
        do(book, tasks.set_next, task, "Other")
    elif what == "commit":
        repo.commit("done", {})
    elif what == "same size":
        repo.write({"dirty.txt": "abd"})
    elif what == "checkout":
        repo.git("checkout", "-q", "-b", "side")
    elif what == "other session":
        book.start_session("generic", "another", pid=os.getpid())
    elif what == "stash":
        (repo.path / "dirty.txt").unlink()
    assert again_compacted(book, session) == "C-000002"


def test_a_compaction_announced_from_another_work_tree_makes_a_new_checkpoint(repo: Repo, tmp_path: Path) -> None:
    book = begin(repo)
    repo.git("checkout", "-q", "--detach")
    side = Repo(tmp_path / "side")
    repo.git("worktree", "add", "-q", "--detach", str(side.path))
    session = compacted(book)
    assert again(side).before_compaction(session).name == "C-000002"


def test_the_digest_of_a_checkpoint_named_again_is_the_commit_that_brought_it(repo: Repo) -> None:
    book = begin(repo)
    session = book.start_session("generic", "s", pid=os.getpid())
    made = book.before_compaction(session)
    from gitledger.transaction import Plan

    book.commit(lambda view: Plan("key", (book.hand().draft("noted.elsewhere", {}),), redact("Something else")))
    assert again(repo).tip() != made.commit
    second = again(repo).before_compaction(session)
    assert second.name != made.name or second.digest == made.digest
