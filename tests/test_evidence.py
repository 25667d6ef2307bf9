"""What evidence shows as the work tree goes on, what may be run again, and what is only a candidate."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitledger import (
    audit,
    briefing,
    changeset,
    checking,
    discover,
    evidence,
    gitcli,
    layout,
    proof,
    reading,
    runs,
    tasks,
    wal,
)
from gitledger.errors import BadData, LedgerError, NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Json, Key
from gitledger.tasks import Hand
from gitledger.view import View
from tests import evidence_transcript
from tests.attacks import Field, ground
from tests.ledgers import again, begin, do
from tests.patience import begun
from tests.sealed import Repo, new_repo


def started(book: Ledger, title: str, *accept: str) -> Key:
    """A task made the active one."""
    key = str(do(book, tasks.add, title, accept=accept))
    do(book, tasks.start, key)
    return key


def run(book: Ledger, key: Key, command: str = "true", criterion: str = "", *covers: str) -> None:
    """Run a command as evidence, as a person does."""
    checking.give(book, key, evidence.run(book.gitdir, command, book.look(), covers=covers), criterion)


def report(book: Ledger, key: Key) -> checking.Report:
    return checking.report(book, book.view(), [key])[0]


def shown(book: Ledger, key: Key) -> dict[str, str]:
    """What each piece shows by its name: its state, and why where it is stale."""
    return {piece.name: f"{piece.state} {piece.why}".strip() for piece in report(book, key).pieces}


def capture(book: Ledger, event: str, session: str = "s", **said: object) -> None:
    """Log a generic event of a session as its hook does."""
    payload = json.dumps({"session_id": session, **said}).encode()
    now, folder = book.desk.mint.now_ms(), book.desk.home.wal
    wal.append(folder, "generic", event, payload, now_ms=now, rand=os.urandom(10), worktree=book.gitdir.worktree)


# ── whether it stands ────────────────────────────────────────────────────────────────────────
def test_a_run_stands_as_long_as_the_content_it_depends_on_whatever_becomes_of_the_commit(repo: Repo) -> None:
    repo.commit("code", {"src/a.py": "1\n", "src/b.py": "1\n", "docs/guide.md": "1\n", "LICENSE": "1\n"})
    book = begin(repo)
    key = started(book, "Task")
    run(book, key, "true")  # e1 depends on all but prose
    run(book, key, "test -d src", "", "src")  # e2
    run(book, key, "test -f src/a.py", "", "src/a.py")  # e3
    run(book, key, "test -d docs", "", "docs")  # e4
    assert set(shown(book, key).values()) == {"verified"}
    repo.commit("prose", {"docs/guide.md": "2\n", "LICENSE": "2\n"})
    told = shown(book, key)
    assert told == {"e1": "verified", "e2": "verified", "e3": "verified", "e4": "STALE docs/guide.md has changed since"}
    repo.write({"src/b.py": "2\n"})  # dirty, and then the same as a commit
    stale = "STALE src/b.py has changed since"
    assert [shown(book, key)[e] for e in ("e1", "e2", "e3")] == [stale, stale, "verified"]
    repo.commit("work", {})
    assert [shown(book, key)[e] for e in ("e1", "e2", "e3")] == [stale, stale, "verified"]
    repo.commit("back", {"src/b.py": "1\n"})
    assert [shown(book, key)[e] for e in ("e1", "e2", "e3")] == ["verified"] * 3
    repo.git("commit", "--amend", "-q", "-m", "another message")
    assert shown(book, key)["e1"] == "verified"
    repo.write({"new.py": "untracked"})
    assert shown(book, key)["e1"] == "STALE new.py has changed since"
    os.unlink(repo.path / "src/a.py")
    assert shown(book, key)["e3"] == "STALE src/a.py has changed since"


def test_a_run_in_a_dirty_tree_speaks_of_that_very_content_and_of_its_commit(repo: Repo) -> None:
    repo.commit("code", {"a.py": "1\n", "b.py": "1\n"})
    book = begin(repo)
    key = started(book, "Task")
    repo.write({"a.py": "2\n", "new.py": "1\n", "notes.txt": "beside\n"})
    os.unlink(repo.path / "b.py")
    run(book, key, "true")
    piece = report(book, key).pieces[0].fields
    assert {row["path"]: bool(row["blob"]) for row in piece["changed"]} == {
        "a.py": True, "b.py": False, "new.py": True, "notes.txt": True,
    }  # fmt: skip
    assert shown(book, key) == {"e1": "verified"}
    repo.git("add", "a.py", "b.py", "new.py")
    repo.git("commit", "-q", "-m", "what it ran on, but for the notes")
    assert shown(book, key) == {"e1": "verified"}
    repo.git("checkout", "-q", "HEAD~1", "--", "b.py")
    assert shown(book, key) == {"e1": "STALE b.py has changed since"}
    repo.git("rm", "-q", "-f", "b.py")
    repo.write({"a.py": "3\n"})
    assert shown(book, key) == {"e1": "STALE a.py has changed since"}
    repo.write({f"many{n}.py": "x" for n in range(evidence.CHANGED_KEPT + 1)})
    run(book, key, "test 1")
    assert shown(book, key)["e2"] == "verified"  # more than is kept: for that very tree alone
    repo.write({"many0.py": "y"})
    assert shown(book, key)["e2"] == "STALE it ran in a dirty tree, which is not the one here"


def test_a_run_before_the_first_commit_speaks_of_what_that_commits(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "new")
    repo.write({"a.py": "1\n", "b.md": "1\n"})
    book = begin(repo)
    key = started(book, "Task")
    run(book, key, "true")
    assert shown(book, key) == {"e1": "verified"}
    repo.commit("first", {})
    assert shown(book, key) == {"e1": "verified"}
    repo.commit("second", {"c.py": "1\n"})
    assert shown(book, key) == {"e1": "STALE c.py has changed since"}


def test_what_a_run_leaves_behind_takes_nothing_back_and_what_it_changes_does(repo: Repo) -> None:
    repo.commit("code", {"src/a.py": "1\n"})
    book = begin(repo)
    key = started(book, "Task")
    repo.write({"fresh/b.py": "1\n"})  # a folder that nothing is committed of yet
    run(
        book,
        key,
        "mkdir -p src/__pycache__ fresh/__pycache__ && touch src/__pycache__/a.pyc fresh/__pycache__/b.pyc out",
    )
    assert shown(book, key) == {"e1": "verified"}
    assert report(book, key).pieces[0].fields["made"] == ["out", "src/__pycache__/", "fresh/__pycache__/"]
    repo.write({"fresh/b.py": "2\n"})
    assert shown(book, key) == {"e1": "STALE fresh/b.py has changed since"}
    run(book, key, "echo 2 > src/a.py")
    assert shown(book, key)["e2"] == "STALE src/a.py has changed since"
    run(book, key, "date +%N > src/__pycache__/a.pyc")  # a cache that was there before, and that nobody ignores
    assert shown(book, key)["e3"] == "verified"


def test_a_commit_stands_in_the_history_of_head_and_says_what_became_of_it(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "is there")
    first = repo.head()
    second = repo.commit("second")
    for rev in (first, second):
        checking.give(book, key, evidence.commit(book.gitdir, rev), "c1")
    assert set(shown(book, key).values()) == {"verified"}
    repo.git("commit", "--amend", "-q", "-m", "said better")
    assert shown(book, key)["e2"] == f"STALE commit {second[:12]} was rewritten and lives on as {repo.head()[:12]}"
    with pytest.raises(NotAllowed, match=r"c1 \(STALE: commit .* was rewritten"):
        do(book, tasks.done, key, "", checking.doubts(book, book.view().need(key)))
    repo.git("checkout", "-q", "-b", "side", first)
    other = repo.commit("beside")
    checking.give(book, key, evidence.commit(book.gitdir, other), "c1")
    repo.git("checkout", "-q", "main")
    assert shown(book, key)["e3"].endswith("is not in the history of HEAD, but on another branch or on none")
    repo.git("reset", "-q", "--hard", first)
    assert shown(book, key)["e1"] == "verified"
    for rev in ("0" * 40, "f" * 40, "no-such-branch", "--all", ""):
        with pytest.raises(BadData, match="evidence must name one that exists"):
            evidence.commit(book.gitdir, rev)


def test_several_files_are_one_piece_and_one_changed_line_takes_it_back(repo: Repo) -> None:
    repo.commit("code", {"a.py": "1\n", "b.py": "1\n"})
    os.chdir(repo.path)
    book = begin(repo)
    key = started(book, "Task", "is there")
    checking.give(book, key, evidence.paths(book.gitdir, ["a.py", "b.py", "a.py"]), "c1")
    assert proof.words(report(book, key).pieces[0].fields).endswith("and 1 more file")
    repo.write({"b.py": "2\n"})
    assert shown(book, key) == {"e1": "STALE b.py has changed since"}
    os.unlink("b.py")
    assert shown(book, key) == {"e1": "STALE b.py is gone"}
    for wrong in ("gone.py", "../README.md", ".", "/etc/passwd"):
        with pytest.raises(BadData, match=r"evidence (must name one that exists|is a file of the project)"):
            evidence.paths(book.gitdir, ["a.py", wrong])
    repo.write({"ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8": "x"})
    with pytest.raises(BadData, match="looks like a secret"):
        evidence.covered(book.gitdir, ["ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"])
    repo.write({".gitignore": "build/\n", "build/out": "x"})
    with pytest.raises(BadData, match="git ignores what is at 'build'"):
        evidence.covered(book.gitdir, ["build"])
    assert evidence.covered(book.gitdir, ["."]) == ["."]
    for wrong in ("gone", "../.."):
        with pytest.raises(BadData, match=r"nothing is at|outside of this work tree"):
            evidence.covered(book.gitdir, [wrong])


def test_what_cannot_be_compared_here_does_not_stand(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    for piece in (
        {"kind": "run", "command": "a", "exit": 0, "head": "e" * 40, "dirty": 0},
        {"kind": "run", "command": "b", "exit": 0},
        {"kind": "run", "command": "c", "exit": 0, "head": repo.head(), "dirty": 3},
        {"kind": "run", "command": "d", "exit": 0, "head": "no commit", "dirty": 0, "fingerprint": 7, "changed": "x"},
        {"kind": "commit", "commit": "e" * 40},
        {"kind": "path", "path": "README.md", "more": [7, {"path": ["x"]}, {"path": "../x", "blob": "y"}]},
    ):
        do(book, tasks.evidence, key, piece)
    repo.commit("on")
    assert {state.partition(" ")[0] for state in shown(book, key).values()} == {"STALE"}
    assert briefing.gather(book).verified == ()


def test_a_briefing_asks_git_two_things_more_however_much_evidence_there_is(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    popen = subprocess.Popen

    def counted(argv: list[str], *args: Any, **more: Any) -> Any:
        asked.append(gitcli.subcommand(argv[1:]))
        return popen(argv, *args, **more)

    def children() -> list[str]:
        asked.clear()
        briefing.gather(again(repo))
        return sorted(asked)

    repo.commit("code", {f"f{n}.py": f"{n}\n" for n in range(9)})
    os.chdir(repo.path)
    book = begin(repo)
    key = started(book, "Task")
    book.checkpoint()
    monkeypatch.setattr(subprocess, "Popen", counted)
    before = children()
    for n in range(3):
        run(book, key, f"test {n}")
        checking.give(book, key, evidence.paths(book.gitdir, [f"f{n}.py", f"f{n + 3}.py"]))
        checking.give(book, key, evidence.commit(book.gitdir, repo.commit(f"more {n}", {f"{n}.md": "x"})))
    repo.commit("last", {"last.md": "x"})
    book.checkpoint()
    children()  # a new tip is verified once
    assert children() == sorted([*before, "hash-object", "rev-list"])


# ── which piece speaks ───────────────────────────────────────────────────────────────────────
def test_the_newest_run_of_a_command_speaks_for_every_criterion_it_was_run_for(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "one", "two")
    flag = repo.path / ".git" / "flag"  # not of the work tree, so nothing becomes stale by it
    command = f"test ! -e {flag}"
    run(book, key, command, "c1")
    run(book, key, command, "c2")
    assert [c.state for c, _ in report(book, key).criteria] == ["verified", "verified"]
    flag.touch()
    run(book, key, command)
    assert [c.state for c, _ in report(book, key).criteria] == ["failed", "failed"]
    os.chdir(repo.path)
    checking.give(book, key, evidence.path(book.gitdir, "README.md"), "c1")
    assert [c.state for c, _ in report(book, key).criteria] == ["failed", "failed"]  # no file outweighs it
    run(book, key, "true", "c1")
    assert [c.state for c, _ in report(book, key).criteria] == ["verified", "failed"]
    assert report(book, key).faults == 1


def test_a_pipe_that_hides_a_failing_test_run_proves_nothing(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "works")
    run(book, key, "printf '1 failed, 2 passed in 0.12s\\n' | tail -1", "c1")
    (piece,) = report(book, key).pieces
    assert (piece.fields["exit"], piece.state) == (0, "failed")
    assert proof.words(piece.fields).endswith("exited 0, pytest: 2 passed, 1 failed")


def test_a_run_says_how_it_ended_and_keeps_the_end_of_what_it_said(repo: Repo) -> None:
    book = begin(repo)
    look = book.look()

    def made(command: str, **more: float) -> dict[str, Json]:
        return evidence.run(book.gitdir, command, look, **more)  # type: ignore[arg-type]

    assert made("exit 3")["exit"] == 3
    assert made("kill -9 $$")["exit"] == 137
    stopped = begun(
        lambda seconds: made("echo begun; sleep 60 & sleep 60", deadline=seconds),
        lambda ran: "begun\n" in str(ran["output"]),
        0.5,
    )
    assert stopped["exit"] == evidence.STOPPED
    assert re.search(r"begun\n\n\[stopped after [0-9.]+ s\]", str(stopped["output"]))
    assert made("exec >&- 2>&-; sleep 60", deadline=0.3)["exit"] == evidence.STOPPED
    left = made("sleep 60 >&1 & echo done $!")  # what stays in the background holds nobody up
    assert left["exit"] == 0
    os.kill(int(left["output"].split()[1]), 9)
    long = made("yes 0123456789 | head -c 2000000; echo the end")
    assert long["output"].startswith("[… earlier output cut]\n")
    assert long["output"].endswith("the end\n")
    assert len(long["output"]) <= evidence.OUTPUT_KEPT + 30
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    hidden = made(f"echo {secret}")
    assert secret not in json.dumps(hidden)
    assert hidden["whole"] is False


def test_the_counts_of_a_report_come_with_the_run_that_wrote_it(repo: Repo) -> None:
    book = begin(repo)
    repo.write({"old.xml": "<testsuite><testcase/></testsuite>"})
    os.utime(repo.path / "old.xml", (1, 1))
    look = book.look()
    written = "<testsuite><testcase/><testcase><skipped/></testcase></testsuite>"
    piece = evidence.run(book.gitdir, f"echo '{written}' > new.xml", look, junit="new.xml")
    assert proof.words(piece).endswith("exited 0, JUnit: 1 passed, 1 skipped")
    for name, why in (("old.xml", "older than the run"), ("no.xml", "cannot be read"), ("README.md", "older|no JUnit")):
        with pytest.raises(BadData, match=why):
            evidence.run(book.gitdir, "true", look, junit=name)


# ── what may be run again ────────────────────────────────────────────────────────────────────
def test_only_what_this_clone_ran_itself_is_run_again_and_each_command_is_shown_before(repo: Repo) -> None:
    repo.commit("code", {"a.py": "1\n"})
    book = begin(repo)
    key = started(book, "Task", "one", "two")
    log = repo.path / ".git" / "ran"
    run(book, key, f"echo x >> {log}", "c1", "a.py")
    run(book, key, f"echo x >> {log}", "c2", "a.py")
    run(book, key, "echo fresh")
    book.checkpoint()
    repo.commit("work", {"a.py": "2\n"})
    told: list[str] = []
    made = checking.rerun(book, report(book, key), told.append)
    assert told == [f"echo x >> {log}", "echo fresh"]
    assert [row["exit"] for row in made] == [0, 0]
    assert log.read_text() == "x\n" * 3
    assert [c.state for c, _ in report(book, key).criteria] == ["verified", "verified"]
    assert report(book, key).faults == 0
    assert checking.rerun(book, report(book, key), told.append) == []


def test_what_a_split_carries_over_can_still_be_run_again(repo: Repo) -> None:
    from gitledger import splitting

    book = begin(repo)
    key = started(book, "Task", "one", "two")
    run(book, key, "true", "c2")

    def build(view: View, hand: Hand) -> tuple[Key, Draft]:
        made = splitting.split(view, hand, key, "Rest", criteria=("c2",))
        return made.key, made.draft

    (piece,) = report(book, book.record(build)).pieces
    assert (piece.state, piece.again) == ("verified", True)


FORGED = "touch pwned"


def _forged(writer: str, at: str, command: str = FORGED) -> dict[str, Json]:
    return {
        "kind": "run", "command": command, "exit": 1, "at": at, "writer": writer, "by": writer, "head": "e" * 40,
        "dirty": 0, "criterion": "",
    }  # fmt: skip


def test_no_command_that_came_with_a_ledger_is_ever_run(tmp_path: Path) -> None:
    field: Field = ground(tmp_path)
    book = field.a
    key = next(k for k, _ in book.view().walk(layout.TASK))
    own, other = book.desk.writer.id, field.b.desk.writer.id
    run(book, key, "echo mine")
    (mine,) = report(book, key).pieces
    assert mine.again
    at = str(mine.fields["at"])
    book.checkpoint()

    # A trusted writer's run; one that says it is ours; ours with another command; and all that in our own writer's
    # name, signed with our key, as somebody with a copy of this clone's identity would make it.
    def said(*rows: tuple[str, dict[str, Json]]) -> Draft:
        return field.draft("task.evidence", {key: Change({}, {"evidence": dict(rows)})})

    field.say(field.b, said((f"e7@{other}", _forged(other, at)), (f"e8@{own}", _forged(own, at))))
    field.say(field.b, said((mine.fields["id"], {"command": FORGED})))
    field.say(field.a, said((f"e9@{own}", _forged(own, at)), (mine.fields["id"], {"exit": 1, "command": FORGED})))
    fresh = field._ledger("a")
    found = report(fresh, key)
    assert {p.name: (p.fields["command"], p.again) for p in found.pieces} == {
        "e1": (FORGED, False), "e7": (FORGED, False), "e8": (FORGED, False), "e9": (FORGED, False),
    }  # fmt: skip
    assert {p.writer for p in found.pieces if p.name in ("e7", "e8")} == {other}
    told: list[str] = []
    assert checking.rerun(fresh, found, told.append) == []
    assert told == []
    assert not (field.path / "pwned").exists()
    # Not even where the digest of our own run stands: the record says another command now.
    assert len(runs.load(fresh.gitdir.common)) >= 1


def test_a_run_of_another_clone_of_the_same_person_is_not_run_here(repo: Repo, tmp_path: Path) -> None:
    book = begin(repo)
    key = started(book, "Task", "one")
    run(book, key, "touch pwned; false", "c1")
    book.checkpoint()
    other = repo.clone(tmp_path / "other")
    other.git("fetch", "-q", "origin", "ledger/main:ledger/main")
    discover.init(str(other.path), "main", "", mint=book.desk.mint)
    there = again(other)
    (piece,) = report(there, key).pieces
    assert (piece.state, piece.again) == ("failed", False)
    assert checking.rerun(there, report(there, key), lambda _: None) == []
    assert not (other.path / "pwned").exists()


def test_evidence_of_a_stranger_finishes_nothing(tmp_path: Path) -> None:
    from gitledger import pins

    field = ground(tmp_path)
    book = field.a
    key = next(k for k, _ in book.view().walk(layout.TASK))
    other = field.b.desk.writer.id
    piece = {"kind": "commit", "commit": field.repo.head(), "criterion": f"c1@{book.desk.writer.id}", "at": "x"}
    seen = {"command": "make", "results": [{"tool": "pytest", "passed": 1}], "at": "x"}
    items: dict[str, dict[str, dict[str, Json]]] = {
        "evidence": {f"e7@{other}": piece},
        "candidates": {f"r1@{other}": seen},
    }
    field.say(field.b, field.draft("task.evidence", {key: Change({"title": "a stranger's"}, items)}))
    assert [c.state for c, _ in report(field._ledger("a"), key).criteria] == ["verified"]
    pins.save(
        field.home.pins,
        "main",
        pins.Pins(**{**_fields(field.pins()), "fingerprints": frozenset((field.fingerprint("a"),))}),
    )
    fresh = field._ledger("a")
    found = report(fresh, key)
    assert ([c.state for c, _ in found.criteria], found.strange, found.pieces) == (["open"], 2, ())
    assert found.title is None
    with pytest.raises(NotAllowed, match=f"was seen by writer {other}, who is not trusted here"):
        checking.take(fresh, key, "r1")
    with pytest.raises(NotAllowed, match=f"given by writer {other}, who is not trusted here"):
        do(fresh, tasks.done, key, "", checking.doubts(fresh, fresh.view().need(key)))
    done = {"op": "task_set", "task": "T-0001", "status": "done"}
    value = {"source_digest": f"sha1:{fresh.tip()}", "ledger_updates": [done]}
    with pytest.raises(LedgerError, match="not trusted here"):
        changeset.checkpoint(fresh, json.dumps(value).encode(), "test")


def _fields(value: object) -> dict[str, Json]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}  # type: ignore[attr-defined]


def test_the_transcript_in_the_guide_is_what_a_person_sees(tmp_path: Path) -> None:
    guide = (Path(__file__).parent.parent / "docs" / "guide.md").read_text("utf-8")
    shown = guide.partition("<!-- transcript: python -m tests.evidence_transcript -->")[2]
    assert shown.partition("```text\n")[2].partition("\n```")[0] == evidence_transcript.play(tmp_path)


# ── candidates ───────────────────────────────────────────────────────────────────────────────
def pytest_said(passed: int, failed: int = 0) -> str:
    return f"...\n{passed} passed, {failed} failed in 0.12s\n"


def test_a_test_result_in_a_turn_is_a_candidate_and_proves_nothing(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "works")
    run_ = {"command": "pytest -q", "exit": 0, "output": "x" * 30_000 + pytest_said(12)}
    capture(book, "tool", tool="Bash", commands=[run_])
    capture(book, "tool", tool="Bash", commands=[{"command": "ls", "output": "a b c"}])
    task = book.view().need(key)
    (one,) = proof.candidates(task)
    assert (one.name, one.command, one.text, one.exit) == ("r1", "pytest -q", "pytest: 12 passed", 0)
    assert [c.state for c in proof.criteria(task)] == ["open"]
    assert task.listed("evidence") == []
    made = book.checkpoint()
    assert book.view().need(made.key).get("candidates") == ["`pytest -q` printed pytest: 12 passed, exit 0"]
    document = repo.git("show", f"ledger/main:{made.path}")
    assert "Seen in turns, not verified" in document
    assert "12 passed" in document
    state = repo.git("show", f"ledger/main:{made.path.split('/checkpoints/')[0]}/STATE.md")
    assert "Seen in turns, not verified" in state
    assert "seen in a turn, not verified" in briefing.briefing(book)
    said = checking.take(book, key, "r1", "c1")
    book.checkpoint()
    sources = repo.git("show", f"ledger/main:{made.path.split('/checkpoints/')[0]}/SOURCES.md")
    assert "a tool's output in S-" in sources.partition("## Claims, UNVERIFIED")[2]
    assert said.startswith("T-0001 UNVERIFIED: claimed: `pytest -q` printed pytest: 12 passed")
    task = book.view().need(key)
    assert [c.state for c in proof.criteria(task)] == ["UNVERIFIED"]
    (piece,) = task.listed("evidence")
    assert piece["source"].startswith(f"a tool's output in {one.session}")
    assert report(book, key).candidates == ()
    with pytest.raises(NotAllowed, match=r"c1 \(UNVERIFIED\)"):
        do(book, tasks.done, key)
    with pytest.raises(BadData, match="there are: r1"):
        checking.take(book, key, "r9")


def test_what_a_clients_hook_says_of_its_shell_is_read(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    said = {
        "session_id": "x", "cwd": str(repo.path), "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": pytest_said(7), "stderr": ""},
    }  # fmt: skip
    now, folder = book.desk.mint.now_ms(), book.desk.home.wal
    for client in ("claude-code", "codex"):
        payload = json.dumps({**said, "tool_input": {"command": f"pytest -q {client}"}}).encode()
        wal.append(folder, client, "tool", payload, now_ms=now, rand=os.urandom(10), worktree="main")
    held = {(one.command, one.text) for one in proof.candidates(book.view().need(key))}
    assert held == {("pytest -q claude-code", "pytest: 7 passed"), ("pytest -q codex", "pytest: 7 passed")}


def test_candidates_stay_few_and_the_newest_of_a_command_takes_its_place(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    for n in range(40):
        capture(book, "tool", commands=[{"command": f"pytest -k t{n % 20}", "output": pytest_said(n + 1)}])
    capture(book, "turn", commands=[{"command": f"go{n}", "output": "ok  \ta\t0.1s"} for n in range(9)])
    held = proof.candidates(book.view().need(key))
    from gitledger import candidates

    assert len(held) == candidates.KEPT
    assert sum(one.command.startswith("go") for one in held) == candidates.AT_ONCE
    assert {one.text for one in held if one.command == "pytest -k t19"} == {"pytest: 40 passed"}
    book.checkpoint()
    assert list(audit.fsck(again(repo))) == []
    told = [e.event.data["results"] for e in reading.journal(again(repo), []) if e.event.type == "tool"]
    assert len(told) == 40  # the journal holds each
    (row,) = told[0]
    assert (row["command"], row["exit"], row["results"][0]["passed"]) == ("pytest -k t0", None, 1)


def test_a_turn_without_a_task_keeps_its_results_in_the_journal_alone(repo: Repo) -> None:
    book = begin(repo)
    capture(book, "tool", commands=[{"command": "pytest", "output": pytest_said(1)}])
    book.checkpoint()
    (told,) = [e.event.data["results"] for e in reading.journal(again(repo), []) if e.event.type == "tool"]
    assert told[0]["results"][0] == {"tool": "pytest", "passed": 1, "failed": 0, "skipped": 0, "unit": "tests"}


# ── what a session did ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("seed", range(2))
def test_a_session_and_its_handover_claim_only_what_its_own_events_hold(seed: int, repo: Repo) -> None:
    chance, book = random.Random(seed), begin(repo)
    started(book, "Task", "works")
    told: dict[str, list[str]] = {}
    for name in ("s0", "s1", "s2"):
        book.start_session("generic", name, pid=os.getpid())
    for n in range(60):
        name = chance.choice(("s0", "s1", "s2"))
        words = [f"{kind}{n}x" for kind in ("asked", "said", "file", "ran", "out", "broke")]
        told.setdefault(name, []).extend(words)
        asked, answer, file, command, out, broke = words
        choices: list[tuple[str, dict[str, Json]]] = [
            ("prompt", {"prompt": asked}),
            ("tool", {"commands": [{"command": command, "exit": n % 3, "output": f"{out}\n1 passed in 1s"}]}),
            ("tool", {"tool": "Edit", "files": [file], "errors": [broke]}),
            ("turn", {"answer": answer}),
        ]
        event, said = chance.choice(choices)
        capture(book, event, name, **said)
        if not n % 9:
            book.checkpoint()
    for name, own in told.items():
        key = layout.session_key("generic", name)
        made = book.end_session(key, "exit")
        assert made is not None
        view = again(repo).view()
        events = [e.event for e in reading.journal(again(repo), []) if e.event.session == key]
        held = json.dumps(
            [
                [e.data, {k: c.set for k, c in e.records.items() if k == key}]
                for e in events
                if e.type != "session.closed"
            ]
        )
        session, handover = view.need(key), view.need(made.key)
        fields = ("asked", "ran", "files", "last_prompt", "last_answer", "errors")
        claims = json.dumps(
            [*session.items.values(), session.values(), [handover.get(name) for name in fields]], default=str
        )
        claims += repo.git("show", f"ledger/main:{layout.plain_stem(key)}.md")
        found = set(re.findall(r"\b(?:asked|said|file|ran|out|broke)[0-9]+x\b", claims))
        assert found <= set(own)
        assert all(word in held for word in found)
        assert handover.get("turns") == sum(e.type == "turn" for e in events)
        assert found
    assert list(audit.fsck(again(repo))) == []


# ── an invented thing ────────────────────────────────────────────────────────────────────────
def test_an_invented_commit_path_or_task_is_refused_in_a_change_set(repo: Repo) -> None:
    book = begin(repo)
    started(book, "Task", "works")
    before = repo.git("for-each-ref", "refs/heads")
    for update, says in (
        ({"op": "complete", "task": "T-0001", "text": "x", "evidence": {"commit": "f" * 40}}, "no commit"),
        ({"op": "complete", "task": "T-0001", "text": "x", "evidence": {"path": "made/up.py"}}, "no file"),
        ({"op": "complete", "task": "T-0044", "text": "x"}, "T-0044"),
    ):
        value = {"source_digest": f"sha1:{book.tip()}", "ledger_updates": [update]}
        with pytest.raises(LedgerError, match=says):
            changeset.checkpoint(book, json.dumps(value).encode(), "test")
    assert repo.git("for-each-ref", "refs/heads") == before


# ── accepted without proof ───────────────────────────────────────────────────────────────────
def test_what_was_accepted_without_proof_says_so_wherever_the_task_shows(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "works")
    reason = "the tests come with the release"

    def finish(view: View, hand: Hand) -> tuple[None, Draft]:
        return None, tasks.done(view, hand, key, reason, checking.doubts(book, view.need(key)))

    book.record(finish)
    assert reason in briefing.briefing(book)
    made = book.write_handover()
    folder = book.view().folder(key)
    for path in (f"{folder}/TASK.md", f"{folder}/STATE.md", made.path):
        assert reason in repo.git("show", f"ledger/main:{path}"), path
    assert "without proof" in repo.git("show", "ledger/main:INDEX.md")
    do(book, tasks.start, key)
    book.checkpoint()
    assert "without proof" not in repo.git("show", "ledger/main:INDEX.md")
    assert reason not in repo.git("show", f"ledger/main:{folder}/STATE.md")
    assert list(audit.fsck(again(repo))) == []
