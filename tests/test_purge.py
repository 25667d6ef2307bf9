"""A secret that got through: found wherever it stands, and the ledger written anew without it, or left as it was."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import audit, capture, discover, entries, keys, needle, objects, pins, purge, reading, tasks, verify, wal
from gitledger.errors import BadData, IOFailed, LedgerError, NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Finding
from gitledger.needle import MARK
from tests.ledgers import again, begin, do
from tests.sealed import Repo
from tests.secrets_made import leaks
from tests.test_hostile_commands import run
from tests.test_secrets import figma, objects_of

SECRET = figma("purged")
"""Of a kind that the built-in rules do not know, so that it does get through."""
PEM = "-----BEGIN THING-----\n" + "\n".join(figma(f"row{n}") for n in range(3)) + "\n-----END THING-----"


def works(repo: Repo) -> Ledger:
    """A ledger whose third to fifth commits hold the secret in many places, and whose others do not."""
    book = begin(repo)
    do(book, tasks.add, "Before it", goal="none of it here")
    book.checkpoint()
    do(book, tasks.add, f"Use {SECRET} for it", goal=f"{SECRET} is the key", accept=(f"{SECRET} works",))
    do(book, tasks.start, book.view().resolve("T-0002"))
    do(book, entries.note, "x" * 90 + f" {SECRET} and so on", None)
    again(repo).checkpoint()
    do(again(repo), entries.decide, "Keep it", f"because {SECRET}", None, None)
    again(repo).checkpoint(f"for {SECRET}")
    do(again(repo), tasks.set_next, book.view().resolve("T-0002"), f"Replace {SECRET}")
    again(repo).write_handover()
    do(again(repo), entries.note, "After it", None)
    again(repo).checkpoint()
    return again(repo)


def log(repo: Repo) -> list[str]:
    return repo.git("rev-list", "ledger/main").splitlines()


def reachable(repo: Repo, *refs: str) -> bytes:
    """Every object that refs reach, unpacked."""
    listed = "\n".join(line.split(" ")[0] for line in repo.git("rev-list", "--objects", *refs).splitlines())
    words = ["git", "cat-file", "--batch"]
    out = subprocess.run(
        words, cwd=repo.path, input=listed.encode(), capture_output=True, check=True, timeout=300
    ).stdout
    assert len(out) > 2_000
    return out


def holds(data: bytes) -> bool:
    text = data.decode("utf-8", "replace")
    return leaks(text, SECRET) or leaks(text.lower(), SECRET.lower().replace("_", "-"))


def carry_out(repo: Repo, secret: str = SECRET, start: str = "") -> purge.Done:
    book = again(repo)
    return purge.carry_out(book.desk, book.gitdir.common, needle.of(secret), start)


def journal(book: Ledger) -> list[tuple[str, int, int, str, str]]:
    faults: list[Finding] = []
    found = [(e.id, e.seq, e.lamport, e.at, e.type) for e, _ in audit.chained(book.desk.store.get, tree(book), faults)]
    assert faults == []
    return found


def tree(book: Ledger) -> str:
    return objects.parse_commit(book.desk.store.get(book.tip()).data).tree


def is_sound(repo: Repo) -> None:
    """Every check of the ledger, by us and by stock git, finds nothing."""
    book = again(repo)
    assert list(audit.fsck(book)) == []
    for full in (False, True):
        found = verify.verify(book.desk, book.tip(), verify.Ways(full=full))
        assert (found.verdict, found.findings) == ("verified", ())
    signers = repo.path / "signers"
    signers.write_text(repo.git("show", "ledger/main:keys/allowed_signers") + "\n")
    for commit in log(repo):
        repo.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-commit", commit)
    repo.git("fsck", "--strict", "--no-dangling")


def test_it_is_found_in_every_commit_that_holds_it_and_nothing_is_changed(repo: Repo):
    book = works(repo)
    before = repo.git("for-each-ref"), book.tip()
    found = purge.look(book.desk, needle.of(SECRET))
    history = log(repo)[::-1]
    assert [hit.commit for hit in found.hits] == history[2:6]  # the last one's handover still tells the next action
    assert found.stretch == tuple(history[2:])
    assert found.hits[0].events >= 2
    assert any(key.startswith("T-0002") for key in found.hits[0].records)
    assert "its message" in found.hits[2].where
    assert not any(leaks(str(hit), SECRET) for hit in found.hits)
    assert (repo.git("for-each-ref"), again(repo).tip()) == before


def test_the_ledger_is_written_anew_without_it(repo: Repo):
    book = works(repo)
    old, kept, tip = log(repo)[::-1], again(repo).view(), book.tip()
    before = journal(book)
    done = carry_out(repo)
    new = log(repo)[::-1]
    assert new[:2] == old[:2], "what came before it is as it was"
    assert len(new) == len(old) + 1, "as many commits, and one that says what was done"
    assert not set(new[2:]) & set(old)
    assert not holds(reachable(repo, "ledger/main"))
    assert MARK.encode() in reachable(repo, "ledger/main")
    assert repo.git("rev-parse", done.rescue) == tip
    assert holds(reachable(repo, done.rescue)), "the old commits are kept until they are let go of"
    is_sound(repo)
    view = again(repo).view()
    for key, row in kept.walk(tasks.layout.TASK):
        assert view.need(key).get("status") == row["status"]
    assert view.need(view.resolve("T-0002")).get("title") == f"Use {MARK} for it"
    assert view.need(view.resolve("T-0001")).fields == kept.need(kept.resolve("T-0001")).fields
    after = journal(again(repo))
    assert after[:-1] == before, "the same events in the same places, at the same times"
    assert after[-1][-1] == "ledger.purged"
    times = "--format=%ad %cd"
    assert repo.git("log", times, "ledger/main~1") == repo.git("log", times, done.rescue), "nothing is dated anew"


def test_a_folder_that_carried_it_in_its_name_is_renamed_and_so_is_what_points_into_it(repo: Repo):
    works(repo)
    paths = repo.git("ls-tree", "-r", "--name-only", "ledger/main")
    assert "tasks/00xx/T-0002-use-figd-" in paths, "else this test shows nothing"
    carry_out(repo)
    listed = set(repo.git("ls-tree", "-r", "--name-only", "ledger/main").splitlines())
    assert not any("figd" in path for path in listed)
    view = again(repo).view()
    assert view.need("project").get("checkpoint")["path"] in listed


def test_after_letting_go_and_a_collection_no_object_holds_it(repo: Repo):
    works(repo)
    done = carry_out(repo)
    book = again(repo)
    assert holds(objects_of(repo))
    gone = purge.confirm(book.desk, book.gitdir.common)
    assert gone.refs == (done.rescue,)
    assert gone.holding == ()
    assert repo.git("for-each-ref", "refs/ledgers") == ""
    repo.git("gc", "--quiet", "--prune=now")
    assert not holds(objects_of(repo))
    is_sound(repo)
    again(repo).checkpoint()
    is_sound(repo)


def test_what_still_holds_the_old_commits_is_named(repo: Repo):
    works(repo)
    repo.git("branch", "copy", "ledger/main")
    repo.git("tag", "old-ledger", "ledger/main~1")
    carry_out(repo)
    book = again(repo)
    gone = purge.confirm(book.desk, book.gitdir.common)
    assert set(gone.holding) == {"refs/heads/copy", "refs/tags/old-ledger"}


def test_this_clone_s_own_files_are_cleaned_too(repo: Repo):
    from gitledger import gitdir

    book = works(repo)
    folder = Path(book.desk.home.wal)
    common = book.gitdir.common
    payload = json.dumps({"session_id": "s", "prompt": f"use {SECRET}"}).encode()
    line = wal.append(str(folder), "generic", "turn", payload, now_ms=1_790_000_000_000, rand=os.urandom(10))
    payload = b"no json: " + SECRET.encode()
    wal.append(str(folder), "generic", "turn", payload, now_ms=1_790_000_000_001, rand=os.urandom(10))
    do(again(repo), entries.note, "a line that stays", None)
    (folder / "damaged").mkdir(mode=0o700)
    (folder / "damaged" / "x.wal").write_bytes(b"GL1 00000000 half a line " + SECRET.encode() + b"\n")
    capture.log(common, f"hook: {SECRET} failed")
    state = Path(gitdir.state(common))
    (state / "config.yaml").write_text(f"# {SECRET}\n")
    found = purge.look(again(repo).desk, needle.of(SECRET))
    assert dict(found.local) == {str(folder): 3, str(state / "log"): 1}
    assert found.others == (str(state / "config.yaml"),), "a person's own file is named, and left to them"
    done = carry_out(repo)
    assert dict(done.local) == dict(found.local)
    for path in state.rglob("*"):
        if path.is_file() and path.name != "config.yaml":
            assert not holds(path.read_bytes()), path
    pending, faults = wal.pending(str(folder))
    assert faults == []
    assert [entry.id for entry in pending if entry.id == line.id] == [line.id], "each line keeps its place and its id"
    assert len(pending) == 3
    (state / "config.yaml").unlink()
    (folder / "damaged" / "x.wal").unlink()
    again(repo).checkpoint()
    assert not holds(reachable(repo, "ledger/main"))
    is_sound(repo)


def test_the_genesis_commit_itself_can_be_written_anew(repo: Repo):
    discover.init(str(repo.path), "main", f"Shop {SECRET}")
    do(again(repo), tasks.add, "Something")
    again(repo).checkpoint()
    first = log(repo)[-1]
    carry_out(repo)
    assert log(repo)[-1] != first
    assert not holds(reachable(repo, "ledger/main"))
    mine = pins.load(again(repo).desk.home.pins, "main")
    assert mine is not None
    assert mine.genesis == log(repo)[-1]
    is_sound(repo)


def test_a_purge_that_is_cut_off_between_the_branch_and_the_pins_is_finished_by_the_next(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
):
    discover.init(str(repo.path), "main", f"Shop {SECRET}")
    again(repo).checkpoint()
    saved = pins.save
    with monkeypatch.context() as patch:

        def dies(path: str, name: str, what: pins.Pins) -> None:
            if what.genesis != old:
                raise IOFailed("the disk is gone")
            saved(path, name, what)

        old = log(repo)[-1]
        patch.setattr(pins, "save", dies)
        with pytest.raises(IOFailed):
            carry_out(repo)
    assert log(repo)[-1] != old
    carry_out(repo)
    is_sound(repo)


@pytest.mark.parametrize("step", ["put", "swap", "rescue", "sign", "pins"])
def test_what_fails_before_the_branch_moves_leaves_the_old_ledger(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, step: str
):
    book = works(repo)
    tip, view = book.tip(), log(repo)

    def fails(*_: object, **__: object) -> None:
        raise IOFailed(f"{step} failed")

    with monkeypatch.context() as patch:
        where = {
            "put": ("gitledger.plumbing.PlumbingStore.put", fails),
            "swap": ("gitledger.plumbing.PlumbingStore.swap", fails),
            "rescue": ("gitledger.purge._rescue", fails),
            "sign": ("gitledger.transaction.sign", fails),
            "pins": ("gitledger.pins.save", fails),
        }[step]
        patch.setattr(*where)
        with pytest.raises(IOFailed):
            carry_out(repo)
    assert (again(repo).tip(), log(repo)) == (tip, view)
    is_sound(repo)
    carry_out(repo)
    assert not holds(reachable(repo, "ledger/main"))
    is_sound(repo)


def test_a_kill_in_the_middle_leaves_the_old_ledger(repo: Repo):
    works(repo)
    tip = again(repo).tip()
    program = (
        "import os, sys\n"
        "from gitledger import discover, needle, purge, rewriting\n"
        "book = discover.open(sys.argv[1])\n"
        "whole = rewriting._check\n"
        "def dies(*a): whole(*a); os.kill(os.getpid(), 9)\n"
        "rewriting._check = dies\n"
        "purge.carry_out(book.desk, book.gitdir.common, needle.of(sys.stdin.read()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(repo.path)],
        input=SECRET.encode(),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    assert again(repo).tip() == tip
    is_sound(repo)
    carry_out(repo)
    assert not holds(reachable(repo, "ledger/main"))


def test_where_another_writer_has_written_since_it_is_refused_and_nothing_is_changed(repo: Repo, tmp_path: Path):
    works(repo)
    repo.git("branch", "-q", "shared", "ledger/main")
    other = repo.clone(tmp_path / "other")
    other.git("branch", "ledger/main", "origin/shared")
    discover.init(str(other.path), "main", None)
    do(again(other), tasks.add, "Of the other clone")
    again(other).checkpoint()
    for clone, match in ((other, "is writer"), (repo, "is writer")):
        if clone is repo:
            repo.git("fetch", "-q", str(other.path), "ledger/main")
            repo.git("update-ref", "refs/heads/ledger/main", "FETCH_HEAD")
        before = clone.git("for-each-ref"), again(clone).tip()
        with pytest.raises(NotAllowed, match=match) as e:
            purge.look(again(clone).desk, needle.of(SECRET))
        assert "revoke it where it was issued" in str(e.value)
        with pytest.raises(NotAllowed):
            carry_out(clone)
        assert (clone.git("for-each-ref"), again(clone).tip()) == before


def test_it_can_begin_earlier_than_the_first_commit_that_holds_it_and_not_later(repo: Repo):
    works(repo)
    history = log(repo)[::-1]
    with pytest.raises(BadData, match="comes after the first commit"):
        carry_out(repo, start=history[4][:12])
    with pytest.raises(BadData, match="no commit of this ledger"):
        carry_out(repo, start="0123456789")
    assert log(repo)[::-1] == history
    done = carry_out(repo, start=history[1][:12])
    assert done.commits == len(history) - 1
    is_sound(repo)


def test_a_key_that_was_replaced_in_between_signs_its_own_part(repo: Repo):
    works(repo)
    book = again(repo)
    keys.rotate(book.desk, book.gitdir.common, discover.new_key)
    do(again(repo), entries.note, f"and {SECRET} again", None)
    again(repo).checkpoint()
    carry_out(repo)
    assert not holds(reachable(repo, "ledger/main"))
    book = again(repo)
    assert verify.verify(book.desk, book.tip(), verify.Ways(full=True)).findings == ()


@pytest.mark.parametrize("secret", [PEM, PEM.replace("\n", "\r\n"), "pass\"word\\with 'quotes' & <signs>"])
def test_a_secret_of_several_lines_or_with_marks_is_found_in_every_form(repo: Repo, secret: str):
    begin(repo)
    do(again(repo), entries.note, f"the thing:\n{secret}\nthat was it", None)
    do(again(repo), entries.decide, "About it", f"since `{secret}`", None, None)
    again(repo).checkpoint()
    found = purge.look(again(repo).desk, needle.of(secret))
    assert len(found.hits) == 1
    carry_out(repo, secret)
    data = reachable(repo, "ledger/main").decode("utf-8", "replace")
    for row in secret.splitlines():
        if not row.startswith("-----"):
            assert row not in data
            assert json.dumps(row)[1:-1] not in data
    is_sound(repo)


def test_what_a_cut_left_of_it_goes_too():
    found = needle.of(SECRET)
    for left in range(6, len(SECRET)):
        for text in (f"Use {SECRET[:left]}…", f"Use {SECRET[:left]}[… 1,234 characters cut]"):
            assert not found.scrub(text).startswith(f"Use {SECRET[:6]}"), text
            assert found.holds(text)
        text = f"[… earlier output cut]\n{SECRET[-left:]} and on"
        assert found.scrub(text) == f"[… earlier output cut]\n{MARK} and on"
    assert not found.holds("a text that ends in figd…")
    assert found.scrub(found.scrub(f"{SECRET} {SECRET[:9]}…")) == f"{MARK} {MARK}…"


@pytest.mark.parametrize(
    ("data", "match"), [(b"short\n", "5 characters"), (b"\xff" * 20, "no UTF-8"), (b"x" * 70_000, "more than")]
)
def test_what_cannot_be_looked_for_is_refused(data: bytes, match: str):
    with pytest.raises(BadData, match=match):
        needle.read(data)


# ── the command ──────────────────────────────────────────────────────────────────────────────
def test_the_command_says_what_would_be_done_does_it_and_never_prints_the_secret(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    works(repo)
    monkeypatch.chdir(repo.path)
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")
    tip = again(repo).tip()
    shown = run("purge", "--secret-from", str(file))
    assert shown.status == 0
    assert "Revoke the secret where it was issued" in shown.out
    assert "It stands in 4 commits of refs/heads/ledger/main" in shown.out
    assert "T-0002" in shown.out
    assert "Nothing was changed" in shown.out
    assert again(repo).tip() == tip
    done = run("purge", "--secret-from", str(file), "--yes")
    assert done.status == 0, done
    assert "commits written anew" in done.out
    assert "Remotes and other clones still have the old commits" in done.out
    again_ = run("purge", "--secret-from", str(file))
    assert "stands in no commit" in again_.out
    let_go = run("purge", "--confirm")
    assert let_go.status == 0
    assert "Let go of refs/ledgers/rescue/main/" in let_go.out
    for said in (shown, done, again_, let_go):
        assert not holds((said.out + said.err).encode())
        for destructive in ("--prune=", "push --force", "push -f", "rm -", "reset --hard"):
            assert destructive not in said.out
    is_sound(repo)


def test_the_secret_may_come_by_stdin(repo: Repo, monkeypatch: pytest.MonkeyPatch):
    works(repo)
    monkeypatch.chdir(repo.path)

    class Stdin:
        buffer = io.BytesIO(SECRET.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert run("purge", "--secret-from", "-", "--yes").status == 0
    assert not holds(reachable(repo, "ledger/main"))


def test_without_a_secret_or_without_a_purge_there_is_nothing_to_do(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    works(repo)
    monkeypatch.chdir(repo.path)
    assert run("purge").status == 2
    assert run("purge", "--confirm", "--secret-from", "x").status == 2
    assert run("purge", "--secret-from", str(tmp_path / "gone")).status == 69
    assert run("purge", "--confirm").status == 65
    other = tmp_path / "other"
    other.write_text(figma("another"))
    before = repo.git("for-each-ref")
    assert "in no commit" in run("purge", "--secret-from", str(other), "--yes").out
    assert repo.git("for-each-ref") == before


def test_where_a_file_that_no_event_made_holds_it_nothing_is_changed(repo: Repo):
    from tests.ledgers import tamper

    book = works(repo)
    tamper(book, {"notes.txt": f"{SECRET}".encode()})
    before = repo.git("for-each-ref")
    with pytest.raises(LedgerError):
        carry_out(repo)
    assert repo.git("for-each-ref") == before


def test_objects_are_read_back_from_the_store_they_were_put_into(repo: Repo):
    works(repo)
    done = carry_out(repo)
    book = again(repo)
    commit = objects.parse_commit(book.desk.store.get(done.tip, fresh=True).data)
    assert reading.trailers(commit)["Ledger-Kind"] == "purge"
    assert replace(commit).subject.startswith("Written anew from")


def test_a_memory_file_that_held_the_secret_is_known_by_no_digest_any_more(repo: Repo) -> None:
    from gitledger import memory, memoryundo
    from gitledger.errors import Missing
    from gitledger.memoryfile import digest

    book = begin(repo)
    path = repo.path / "memory" / "MEMORY.md"
    path.parent.mkdir()
    text = "".join(f"- fact {n}\n" for n in range(9)) + f"- the door opens by {SECRET}\n"
    path.write_text(text)
    for block in ("- fact 3", f"- the door opens by {SECRET}", "- fact 4"):
        loaded = memory.present(book)[0]
        change = {"kind": "ephemeral", "original": [block], "reason": "old"}
        data = json.dumps({"source_sha256": loaded.sha256, "changes": [change]}).encode()
        memory.apply(again(repo), loaded, memory.accepted(book, loaded, data), "audit")
    left = path.read_bytes()
    held = reachable(repo, "ledger/main")
    assert holds(held)
    assert digest(text.encode()).encode() in held
    carry_out(repo)
    is_sound(repo)
    now = reachable(repo, "ledger/main")
    assert not holds(now)
    assert digest(text.encode()).encode() not in now
    for name in ("M-0002", "M-0001"):
        with pytest.raises(Missing, match="its file held a secret"):
            memoryundo.undo(again(repo), name)
    assert path.read_bytes() == left
    memoryundo.undo(again(repo), "M-0003")  # whose file had lost it before
    assert path.read_bytes() == text.replace("- fact 3\n", "").replace(f"- the door opens by {SECRET}\n", "").encode()
    is_sound(repo)
