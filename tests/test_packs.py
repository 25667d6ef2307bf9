"""Packs of checkpoints: kept from every gc, combined before they pile up, and never lost on the way."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitledger import packs, store
from gitledger.errors import BadData, IOFailed, MissingObject, TryAgain
from gitledger.gitstore import GitStore
from gitledger.model import Oid
from gitledger.objects import Object
from gitledger.plumbing import PlumbingStore
from tests.sealed import LONG, Repo, new_repo
from tests.test_store_contract import REF, append, build

FEW = 4
"""Packs that are combined in most of these tests, in place of packs.LIMIT."""


@pytest.fixture
def ledger(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlumbingStore]:
    """The plumbing store on `repo`, which combines after a FEW packs."""
    monkeypatch.setattr(packs, "LIMIT", FEW)
    opened = PlumbingStore(str(repo.path / ".git"), REF)
    yield opened
    opened.close()


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A function that runs shell words in place of one git subcommand; everything else stays the real git."""
    real = shutil.which("git")

    def put(subcommand: str, words: str) -> None:
        path = tmp_path / "bin/git"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nfor a; do [ "$a" = {subcommand} ] && {{ {words}; }}; done\nexec {real} "$@"\n')
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")

    return put


def folder(repo: Repo) -> Path:
    return repo.path / ".git/objects/pack"


def kept(repo: Repo) -> set[str]:
    """The names of the packs with any mark."""
    return {path.stem for path in folder(repo).glob("*.keep")}


def whole(repo: Repo) -> set[str]:
    """The names of the packs that git sees."""
    return {path.stem for path in folder(repo).glob("*.idx") if path.with_suffix(".pack").exists()}


def grow(ledger: store.Store, count: int, tip: Oid | None = None) -> list[Oid]:
    """Append so many commits; their ids, oldest first."""
    tips: list[Oid] = []
    for n in range(count):
        tip = append(ledger, tip, {f"d/{n % 3}": os.urandom(9).hex().encode(), "n": b"%d" % n})
        tips.append(tip)
    return tips


def assert_all_there(repo: Repo, tip: Oid, count: int) -> None:
    assert int(repo.git("rev-list", "--count", tip)) == count
    repo.git("fsck", "--strict", "--full")


# ── kept ─────────────────────────────────────────────────────────────────────────────────────
def test_a_put_is_one_pack_with_our_mark_and_nothing_loose(ledger: PlumbingStore, repo: Repo) -> None:
    loose = set((repo.path / ".git/objects").glob("??/*"))
    new, _ = build(ledger, None, {"a/b": b"1", "c": b"2"})
    (name,) = kept(repo)
    assert whole(repo) == {name}
    assert (folder(repo) / f"{name}.keep").read_text().startswith(packs.MARK)
    assert set((repo.path / ".git/objects").glob("??/*")) == loose
    assert new in packs.index(str(folder(repo) / name), "sha1")
    repo.git("verify-pack", str(folder(repo) / f"{name}.pack"))


def test_the_same_objects_again_are_the_same_pack(ledger: PlumbingStore, repo: Repo) -> None:
    build(ledger, None, {"a": b"1"})
    first = whole(repo)
    build(ledger, None, {"a": b"1"})
    assert whole(repo) == kept(repo) == first


def test_an_object_under_another_id_is_refused_before_anything_is_stored(ledger: PlumbingStore, repo: Repo) -> None:
    with pytest.raises(BadData, match="a" * 40):
        ledger.put([("a" * 40, Object("blob", b"x"))])
    assert whole(repo) == set()


@pytest.mark.parametrize(
    "words",
    [
        "gc --quiet --prune=now",
        "gc --quiet --aggressive --prune=now",
        "repack -a -d -q",
        "repack -A -d -q --unpack-unreachable=now",
        "repack -a -d -f -q --cruft --cruft-expiration=now",
        "repack -d -q --geometric=2",
        "prune --expire=now",
        "prune-packed",
        "multi-pack-index write",
    ],
)
def test_git_takes_nothing_between_put_and_swap(ledger: PlumbingStore, repo: Repo, words: str) -> None:
    first = append(ledger, None, {"a": b"1"})
    second, edited = build(ledger, first, {"a": b"2"})
    repo.git(*words.split())
    ledger.swap(second, first, "x")
    store.read_back(ledger, second, edited)
    assert_all_there(repo, second, 2)


def test_kept_packs_do_not_hurry_the_automatic_gc(ledger: PlumbingStore, repo: Repo) -> None:
    grow(ledger, FEW - 1)
    before = whole(repo)
    auto = ("-c", f"gc.autoPackLimit={FEW - 2}", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet")
    repo.git(*auto)
    assert whole(repo) == before
    for name in before:
        (folder(repo) / f"{name}.keep").unlink()
    repo.git(*auto)
    assert whole(repo) != before, "without the mark they would"


def test_a_gc_under_way_holds_no_checkpoint_up(
    ledger: PlumbingStore, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo.path / ".git/gc.pid").write_text(f"{os.getpid()} {os.uname().nodename}")
    monkeypatch.setattr(store, "_running", lambda path: pytest.fail("it need not be asked for"))
    append(ledger, None, {"a": b"1"})


@pytest.mark.parametrize(
    "words",
    [
        "git repack -a -d -q; git prune --expire=now; sleep 0.05",
        "git gc --quiet --prune=now --cruft",
        "git multi-pack-index write; git repack -a -d -q; sleep 0.05",
    ],
)
def test_git_at_work_all_the_while_takes_nothing_and_combining_goes_on(
    ledger: PlumbingStore, repo: Repo, words: str
) -> None:
    stop, count = repo.path.parent / "stop", 30 if LONG else 3 * FEW
    loop = subprocess.Popen(
        ["sh", "-c", f"until [ -e {stop} ]; do {words}; done"], cwd=repo.path, stderr=subprocess.DEVNULL
    )
    try:
        tips = grow(ledger, count)  # a lost object raises in there
    finally:
        stop.touch()
        loop.wait(60)
    assert len(kept(repo)) <= FEW
    # Git cannot see through a multi-pack-index that was begun as packs went; whoever reads or writes the ledger does.
    packs.mend(str(repo.path / ".git"))
    again = PlumbingStore(str(repo.path / ".git"), REF)
    assert [oid for oid, _ in store.history(again, tips[-1])] == tips[::-1]
    again.close()
    assert_all_there(repo, tips[-1], count)


def test_a_multi_pack_index_that_names_packs_that_are_gone_hides_nothing(ledger: PlumbingStore, repo: Repo) -> None:
    tips = grow(ledger, FEW)
    old = {path.name: path.read_bytes() for path in folder(repo).iterdir() if path.suffix in (".idx", ".pack")}
    tips += grow(ledger, 1, tips[-1])  # combines them, and they go
    for name, data in old.items():
        (folder(repo) / name).write_bytes(data)
        # Of an object in two packs git names the newer pack's, by whole seconds, and among equals the first by name.
        os.utime(folder(repo) / name, (later := time.time() + 60, later))
    repo.git("multi-pack-index", "write")  # as one that saw both
    assert not packs.mend(str(repo.path / ".git")), "all that it names is there"
    for name in old:
        (folder(repo) / name).unlink()
    with pytest.raises(AssertionError, match=r"Could not read|bad object|missing"):
        repo.git("rev-list", "--objects", tips[-1])
    again = PlumbingStore(str(repo.path / ".git"), REF)
    assert again.absent(tips) == ()
    assert [oid for oid, _ in store.history(again, tips[-1])] == tips[::-1]
    again.close()
    assert_all_there(repo, tips[-1], FEW + 1)
    (folder(repo) / "multi-pack-index").write_bytes(b"MIDX of another time")
    assert not packs.mend(str(repo.path / ".git")), "what is not known is git's to judge"


# ── combined ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_the_packs_of_many_checkpoints_become_one_that_git_may_touch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    monkeypatch.setattr(packs, "LIMIT", FEW)
    repo = new_repo(tmp_path / "repo", f"--object-format={algorithm}")
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    tips = grow(ledger, FEW)
    old = kept(repo)
    assert len(old) == FEW
    tips += grow(ledger, 1, tips[-1])
    assert len(kept(repo)) == 1
    (ordinary,) = whole(repo) - kept(repo)
    assert not whole(repo) & old
    assert {path.suffix for path in folder(repo).iterdir()} == {".idx", ".pack", ".keep"}, "nothing is left over"
    assert set(tips[:FEW]) < set(packs.index(str(folder(repo) / ordinary), algorithm))
    assert_all_there(repo, tips[-1], FEW + 1)
    tips += grow(ledger, 3 * FEW, tips[-1])
    assert ordinary in whole(repo), "what was combined is not read or written again"
    assert len(whole(repo)) == 4 + len(kept(repo))
    assert [oid for oid, _ in store.history(ledger, tips[-1])] == tips[::-1]
    assert_all_there(repo, tips[-1], 4 * FEW + 1)
    ledger.close()


def test_an_index_is_read_as_git_reads_it_and_a_damaged_one_is_refused(ledger: PlumbingStore, repo: Repo) -> None:
    build(ledger, None, {"a/b": b"1", "c": b"2"})
    (name,) = whole(repo)
    path = folder(repo) / f"{name}.idx"
    data = path.read_bytes()
    assert packs.index(str(path.with_suffix("")), "sha1") == [
        row.split()[1] for row in repo.git("show-index", input=data).splitlines()
    ]
    path.chmod(0o644)
    for damaged in (b"", data[:100], data[:1100], data[:-50], b"x" + data):
        path.write_bytes(damaged)
        with pytest.raises(BadData):
            packs.index(str(path.with_suffix("")), "sha1")


def test_packs_that_are_not_ours_stay_as_they_are(ledger: PlumbingStore, repo: Repo) -> None:
    for n in range(2 * FEW):
        repo.commit(f"theirs {n}")
        repo.git("repack", "-d", "-q")
    theirs = sorted(whole(repo))
    for name in theirs[:FEW]:
        (folder(repo) / f"{name}.keep").touch()
    (folder(repo) / f"{theirs[FEW]}.keep").write_text("kept by a person\n")
    before = {path.name: path.stat().st_mtime_ns for path in folder(repo).iterdir()}
    grow(ledger, FEW + 1)
    after = {path.name: path.stat().st_mtime_ns for path in folder(repo).iterdir()}
    assert before.items() <= after.items()
    assert len(whole(repo) - set(theirs)) == 2, "and ours were combined beside them"


def test_readers_that_were_there_before_see_every_object_afterwards(ledger: PlumbingStore, repo: Repo) -> None:
    tips = grow(ledger, FEW)
    others: list[store.Store] = [PlumbingStore(ledger.common, REF), GitStore(ledger.common, REF)]
    names = repo.git("rev-list", "--objects", "--no-object-names", REF).split()
    for other in others:
        assert other.get(names[0]).kind == "commit"
    assert repo.git("rev-parse", REF) == tips[-1]
    grow(ledger, 1, tips[-1])
    assert len(kept(repo)) == 1
    for other in [*others, ledger]:
        assert other.absent(names) == ()
        for name in names:
            assert other.get(name, fresh=True) == other.get(name)
        other.close()


def test_a_reader_all_the_while_misses_nothing(ledger: PlumbingStore, repo: Repo) -> None:
    stop, failed = repo.path.parent / "stop", repo.path.parent / "failed"
    count = (10 if LONG else 3) * FEW
    first = append(ledger, None, {"n": b"first"})
    ask = f"git rev-list --objects --all >/dev/null && git cat-file -p {REF}:n >/dev/null"
    loop = subprocess.Popen(
        ["sh", "-c", f"until [ -e {stop} ]; do ( {ask} ) 2>>{failed}; done"], cwd=repo.path, stderr=subprocess.DEVNULL
    )
    try:
        tips = grow(ledger, count, first)
    finally:
        stop.touch()
        loop.wait(60)
    assert failed.read_text() == ""
    assert_all_there(repo, tips[-1], count + 1)


def test_what_a_failed_checkpoint_left_is_handed_to_git_with_the_rest(ledger: PlumbingStore, repo: Repo) -> None:
    abandoned = [build(ledger, None, {"a": b"%d" % n})[0] for n in range(FEW)]
    assert ledger.absent(abandoned) == ()
    tip = append(ledger, None, {"b": b"kept"})
    assert len(kept(repo)) == 1
    repo.git("gc", "--quiet", "--prune=now")
    ledger.close()
    assert ledger.absent(abandoned) == tuple(abandoned)
    assert_all_there(repo, tip, 1)


def test_a_big_pack_is_left_to_git_at_once(ledger: PlumbingStore, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "BIG", 2000)
    big = append(ledger, None, {"big": os.urandom(4000)})
    (name,) = whole(repo)
    tips = grow(ledger, FEW, big)
    assert name in whole(repo) - kept(repo)
    assert len(whole(repo)) == 3
    assert_all_there(repo, tips[-1], FEW + 1)


@pytest.mark.parametrize("sign", ["multi-pack-index", "maintenance.lock"])
def test_where_git_maintenance_is_at_work_packs_are_left_to_it(ledger: PlumbingStore, repo: Repo, sign: str) -> None:
    tips = grow(ledger, FEW)
    old = whole(repo)
    if sign == "multi-pack-index":
        repo.git("multi-pack-index", "write")
    else:
        (repo.path / ".git/objects/maintenance.lock").touch()
    tips += grow(ledger, 1, tips[-1])
    assert old < whole(repo)
    assert len(kept(repo)) == 1
    if sign == "multi-pack-index":
        repo.git("multi-pack-index", "verify")
    assert_all_there(repo, tips[-1], FEW + 1)


def test_an_index_of_packs_that_is_written_while_they_go_goes_too(
    ledger: PlumbingStore, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    tips = grow(ledger, FEW)
    remove = packs._remove

    def meanwhile(path: str) -> None:
        if not (folder(repo) / "multi-pack-index").exists():
            repo.git("multi-pack-index", "write")
        remove(path)

    monkeypatch.setattr(packs, "_remove", meanwhile)
    tips += grow(ledger, 1, tips[-1])
    assert len(kept(repo)) == 1
    assert_all_there(repo, tips[-1], FEW + 1)


def test_a_damaged_pack_stops_no_checkpoint_and_is_not_tried_for_ever(ledger: PlumbingStore, repo: Repo) -> None:
    tips = grow(ledger, FEW)
    name = min(whole(repo))
    path = folder(repo) / f"{name}.pack"
    path.chmod(0o644)
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes(20) + data[40:])
    before = whole(repo)
    made, edited = build(ledger, None, {"a": b"1"})
    assert before < whole(repo), "nothing was removed"
    assert len(kept(repo)) == 1, "all the old ones are git's now"
    path.write_bytes(data)
    ledger.swap(made, tips[-1], "x")
    store.read_back(ledger, made, edited)
    repo.git("fsck", "--strict", "--full")
    assert ledger.absent(tips) == ()


def test_the_new_pack_is_kept_until_the_old_ones_are_gone(
    ledger: PlumbingStore, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a repack that listed it as ordinary, but found all in packs that were kept, would delete it."""
    grow(ledger, FEW)
    old, seen = kept(repo), []
    remove = packs._remove

    def watched(path: str) -> None:
        remove(path)
        seen.append(kept(repo) - old)

    monkeypatch.setattr(packs, "_remove", watched)
    packs.combine(ledger.common, "sha1")
    assert [len(new) for new in seen] == [1] * FEW
    assert kept(repo) == set()


def test_an_ordinary_pack_that_is_there_already_is_not_relied_on(
    ledger: PlumbingStore, repo: Repo, tmp_path: Path
) -> None:
    """A repack that listed it as ordinary may delete it, though it is kept now."""
    tips = grow(ledger, FEW)
    old = kept(repo)
    shutil.copytree(folder(repo), tmp_path / "saved")
    packs.combine(ledger.common, "sha1")
    (ordinary,) = whole(repo)
    shutil.copytree(tmp_path / "saved", folder(repo), dirs_exist_ok=True)
    packs.combine(ledger.common, "sha1")
    assert old < kept(repo)
    assert whole(repo) == {*old, ordinary}
    tips += grow(ledger, 1, tips[-1])
    assert len(kept(repo)) == 1
    assert_all_there(repo, tips[-1], FEW + 1)


def test_a_new_pack_that_lacks_something_replaces_nothing(
    ledger: PlumbingStore, repo: Repo, instead: Callable[[str, str], None]
) -> None:
    tips = grow(ledger, FEW)
    before = whole(repo)
    instead("pack-objects", f'head -n 3 | exec {shutil.which("git")} "$@"; exit')
    packs.combine(ledger.common, "sha1")
    assert before < whole(repo)
    assert not kept(repo) & before
    assert_all_there(repo, tips[-1], FEW)


def test_two_at_once_do_not_get_into_each_other_s_way(ledger: PlumbingStore, repo: Repo) -> None:
    import fcntl

    tips = grow(ledger, FEW)
    before = kept(repo)
    fd = os.open(folder(repo), os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        packs.combine(ledger.common, "sha1")
        assert kept(repo) == whole(repo) == before
    finally:
        os.close(fd)
    packs.combine(ledger.common, "sha1")
    assert kept(repo) == set()
    assert len(whole(repo)) == 1
    assert_all_there(repo, tips[-1], FEW)


def test_a_borrowing_repository_and_a_linked_worktree_combine_their_own(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "LIMIT", FEW)
    lender = PlumbingStore(str(repo.path / ".git"), REF)
    tips = grow(lender, FEW - 1)
    borrower = Repo(tmp_path / "borrower")
    repo.git("clone", "--quiet", "--shared", str(repo.path), str(borrower.path))
    borrower.git("update-ref", REF, tips[-1])
    borrower.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    common = Repo(tmp_path / "linked").git("rev-parse", "--path-format=absolute", "--git-common-dir")
    ledger = PlumbingStore(common, REF)
    before = whole(repo)
    theirs = grow(ledger, FEW + 1, tips[-1])
    assert whole(repo) == before
    assert (len(whole(borrower)), len(kept(borrower))) == (2, 1)
    grow(lender, FEW, tips[-1])
    assert not before & whole(repo), "the lender has combined what the borrower reads"
    assert_all_there(borrower, theirs[-1], 2 * FEW)
    for opened in (lender, ledger):
        opened.close()


# ── failures and deaths ──────────────────────────────────────────────────────────────────────
def test_a_git_that_is_killed_or_hangs_stores_nothing_and_the_next_put_works(
    ledger: PlumbingStore, repo: Repo, instead: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = append(ledger, None, {"a": b"1"})
    before = whole(repo)
    instead("index-pack", "kill -9 $$")
    with pytest.raises(IOFailed, match="index-pack"):
        build(ledger, first, {"a": b"2"})
    monkeypatch.setattr(packs, "DEADLINE", 0.2)
    instead("index-pack", "sleep 60")
    with pytest.raises(TryAgain, match="index-pack"):
        build(ledger, first, {"a": b"2"})
    monkeypatch.undo()
    assert whole(repo) == before
    assert ledger.tip() == first
    append(ledger, first, {"a": b"2"})


def test_a_pack_that_a_prune_took_before_it_had_its_name_is_written_again(
    ledger: PlumbingStore, repo: Repo, instead: Callable[[str, str], None], tmp_path: Path
) -> None:
    once = tmp_path / "once"
    words = "echo 'fatal: cannot store pack file: No such file or directory' >&2"
    instead("index-pack", f"[ -e {once} ] || {{ touch {once}; cat >/dev/null; {words}; exit 128; }}")
    append(ledger, None, {"a": b"1"})
    assert once.exists()
    assert len(whole(repo)) == 1


@pytest.mark.parametrize("damage", ["removed", "cut", "bits"])
def test_reading_back_finds_a_pack_that_did_not_reach_the_disk(ledger: PlumbingStore, repo: Repo, damage: str) -> None:
    first, edited = build(ledger, None, {"a": b"1" * 100})
    ledger.swap(first, None, "x")
    (name,) = whole(repo)
    path = folder(repo) / f"{name}.pack"
    data = path.read_bytes()
    path.chmod(0o644)
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(data[:60] if damage == "cut" else data[:14] + bytes(100) + data[114:])
    with pytest.raises((MissingObject, IOFailed)):
        store.read_back(ledger, first, edited)


class Died(BaseException):
    """Stands for the end of the process: nothing here may catch it."""


@pytest.mark.parametrize("step", range(19))
def test_wherever_combining_ends_nothing_is_lost_and_the_next_one_tidies(
    ledger: PlumbingStore, repo: Repo, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Each child, each sync and each removal is a step; a process that dies does so before one of them."""
    tips = grow(ledger, FEW)
    steps = iter(range(100))

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **words: Any) -> Any:
            if next(steps) == step:
                raise Died
            return real(*args, **words)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(packs, "_git", dying(packs._git))
        patched.setattr(store, "sync", dying(store.sync))
        patched.setattr(os, "unlink", dying(os.unlink))
        died = False
        try:
            packs.combine(ledger.common, "sha1")
        except Died:
            died = True
    assert died == (step < 18), "every step is tried, and the last number is one too many"
    assert_all_there(repo, tips[-1], FEW)
    assert ledger.tip() == tips[-1]
    for path in folder(repo).glob("*.keep"):
        os.utime(path, (0, 0))  # an hour later
    tips += grow(ledger, 2 * FEW + 1, tips[-1])
    repo.git("fsck", "--strict", "--full")
    assert {path.stem for path in folder(repo).iterdir()} == whole(repo), "no half pack is left"
    assert len(kept(repo)) <= FEW
    assert len(whole(repo) - kept(repo)) <= 4
    assert [oid for oid, _ in store.history(ledger, tips[-1])] == tips[::-1]


def test_what_is_being_written_now_is_not_taken_for_what_somebody_left(ledger: PlumbingStore, repo: Repo) -> None:
    grow(ledger, FEW)
    fresh = folder(repo) / f"pack-{'1' * 40}.keep"
    fresh.write_text(packs._NOTE)
    packs.combine(ledger.common, "sha1")
    assert fresh.exists()
    assert len(whole(repo)) == 1


VICTIM = """
import os, sys
from gitledger import packs
from tests.test_store_contract import REF, build
from gitledger.plumbing import PlumbingStore
packs.LIMIT = int(sys.argv[2])
ledger = PlumbingStore(sys.argv[1], REF)
while True:
    tip = ledger.tip()
    new, edited = build(ledger, tip, {f"d/{os.urandom(2).hex()}": os.urandom(200), "n": os.urandom(9)})
    print("try", new, flush=True)
    ledger.swap(new, tip, "x")
    print("done", new, flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="children are found in /proc")
def test_kill_at_any_moment_leaves_a_whole_ledger_at_the_last_or_the_next_commit(repo: Repo) -> None:
    luck = random.Random(7)
    tip: Oid | None = None
    count = 0
    kills = 60 if LONG else 10
    for _ in range(kills):
        words = [sys.executable, "-c", VICTIM, str(repo.path / ".git"), str(FEW)]
        victim = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert victim.stdout is not None
        said = [victim.stdout.readline().split()]
        time.sleep(luck.random() * 0.15)
        victim.send_signal(signal.SIGSTOP)
        left = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if alive(path) == victim.pid]
        for child in left:
            if luck.random() < 0.5:
                os.kill(child, signal.SIGKILL)
        victim.kill()
        said += [line.split() for line in victim.stdout.read().splitlines()]
        victim.wait()
        victim.stdout.close()
        until = time.monotonic() + 20
        while any(alive(Path(f"/proc/{child}/stat")) for child in left) and time.monotonic() < until:
            time.sleep(0.005)
        for lock in (f"{REF}.lock", "packed-refs.lock"):
            (repo.path / ".git" / lock).unlink(missing_ok=True)  # its owner is dead
        done = [oid for word, oid in said if word == "done"]
        acknowledged = done[-1] if done else tip
        count += len(done)
        now = repo.git("for-each-ref", "--format=%(objectname)", REF) or None
        if now != acknowledged:
            assert ["try", now] in said[-1:]
            count += 1
        tip = now
        if tip:
            assert_all_there(repo, tip, count)
    assert tip
    assert count > kills
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    grow(ledger, FEW, tip)
    ledger.close()
    repo.git("fsck", "--strict", "--full")


def alive(stat: Path) -> int:
    """The parent of a process that runs, by its file in /proc; 0 for one that has ended."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        return 0 if state == "Z" else int(parent)
    return 0
