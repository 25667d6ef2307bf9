"""One contract, every store: what a ledger may rely on, whoever drives git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitledger import objects, plumbing, store
from gitledger.errors import (
    BadData,
    CannotWrite,
    IOFailed,
    LedgerError,
    LockHeld,
    MissingObject,
    NotARepository,
    StaleTip,
    Unsupported,
)
from gitledger.gitstore import GitStore
from gitledger.model import Oid
from gitledger.objects import Commit, Edited, Object
from gitledger.plumbing import PlumbingStore
from gitledger.store import MemoryStore, Store
from tests.sealed import LONG, Repo, new_repo

REF = "refs/heads/ledger/main"
WHO = "gitledger k3f9c2 <k3f9c2@ledger.invalid> 1790000000 +0000"
DRIVERS: dict[str, Callable[[str, str], Store]] = {"pygit2": GitStore, "plumbing": PlumbingStore}
STRACE = shutil.which("strace")


@pytest.fixture(params=["memory", "pygit2", "plumbing", "plumbing-sha256"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store on an empty repository, by every driver."""
    driver, _, algorithm = request.param.partition("-")
    if driver == "memory":
        yield MemoryStore(REF)
        return
    repo = new_repo(tmp_path / "repo", f"--object-format={algorithm or 'sha1'}")
    opened = DRIVERS[driver](str(repo.path / ".git"), REF)
    yield opened
    opened.close()


@pytest.fixture(params=["pygit2", "plumbing"])
def on_git(request: pytest.FixtureRequest, repo: Repo) -> Iterator[Store]:
    """A store on the repository that the test also holds as `repo`."""
    opened = DRIVERS[request.param](str(repo.path / ".git"), REF)
    yield opened
    opened.close()


@pytest.fixture
def on_loose(repo: Repo) -> Iterator[Store]:
    """The store that writes loose objects, which a gc may take until a ref reaches them."""
    opened = GitStore(str(repo.path / ".git"), REF)
    yield opened
    opened.close()


def build(
    ledger: Store, parent: Oid | None, changes: dict[str, bytes | None], message: str = "m\n"
) -> tuple[Oid, Edited]:
    """Put a commit on `parent` with `changes`; the ref stays."""
    base = objects.parse_commit(ledger.get(parent).data).tree if parent else None
    edited = objects.edit(ledger.get, base, changes, ledger.algorithm)
    data = objects.format_commit(Commit(edited.tree, (parent,) if parent else (), WHO, WHO, message))
    oid = objects.oid("commit", data, ledger.algorithm)
    ledger.put((*edited.objects, (oid, Object("commit", data))))
    return oid, edited


def append(ledger: Store, parent: Oid | None, changes: dict[str, bytes | None]) -> Oid:
    oid, edited = build(ledger, parent, changes)
    ledger.swap(oid, parent, "gitledger: test")
    store.read_back(ledger, oid, edited)
    return oid


def loosen(repo: Repo) -> None:
    """Make a loose object of every packed one, so that a test can get at each by itself."""
    folder = repo.path / ".git/objects/pack"
    aside = folder.rename(repo.path.parent / "packs")
    folder.mkdir()
    for pack in aside.glob("*.pack"):
        repo.git("unpack-objects", "-q", input=pack.read_bytes())
    shutil.rmtree(aside)


# ── objects ──────────────────────────────────────────────────────────────────────────────────
def test_what_is_put_comes_back_byte_for_byte(ledger: Store) -> None:
    blobs = [b"", b"x", bytes(range(256)) * 300, b"\n\n\0", bytes(1 << 20)]
    made = [(objects.oid("blob", data, ledger.algorithm), Object("blob", data)) for data in blobs]
    edited = objects.edit(ledger.get, None, {"a/b": b"x", "ü": b"\xff"}, ledger.algorithm)
    commit = objects.format_commit(Commit(edited.tree, (), WHO, WHO, "Grüße\n"))
    empty = objects.edit(ledger.get, None, {}, ledger.algorithm)
    made += [
        *edited.objects,
        *empty.objects,
        (objects.oid("commit", commit, ledger.algorithm), Object("commit", commit)),
    ]
    ledger.put(made)
    for oid, thing in made:
        assert ledger.get(oid) == thing
        assert ledger.get(oid, fresh=True) == thing
    assert ledger.absent(oid for oid, _ in made) == ()


def test_putting_twice_and_putting_nothing_is_no_fault(ledger: Store) -> None:
    made = [(objects.oid("blob", data, ledger.algorithm), Object("blob", data)) for data in (b"a", b"b")]
    ledger.put(made[:1])
    ledger.put(made)
    ledger.put([])
    ledger.put([*made, *made])
    assert ledger.get(made[1][0]).data == b"b"


def test_a_missing_object_is_said_to_be_missing(ledger: Store) -> None:
    here = objects.oid("blob", b"here", ledger.algorithm)
    ledger.put([(here, Object("blob", b"here"))])
    gone = [objects.oid("blob", b"%d" % n, ledger.algorithm) for n in range(600)]
    for fresh in (False, True):
        with pytest.raises(MissingObject, match=gone[0]):
            ledger.get(gone[0], fresh=fresh)
    assert ledger.absent([*gone[:300], here, *gone]) == tuple(gone)
    assert ledger.get(here).data == b"here", "and the store goes on"


def test_what_is_asked_for_ahead_is_read_as_without(ledger: Store) -> None:
    blobs = [b"%d" % n for n in range(130)] + [bytes(1 << 20), b"", b"last"]
    made = [(objects.oid("blob", data, ledger.algorithm), Object("blob", data)) for data in blobs]
    edited = objects.edit(ledger.get, None, {"a/b": b"x", "c": b"y"}, ledger.algorithm)
    made += edited.objects
    ledger.put(made)
    gone = objects.oid("blob", b"gone", ledger.algorithm)
    ledger.ahead([])
    ledger.ahead(["HEAD", "no id"])
    ledger.ahead([gone, *(oid for oid, _ in made), gone, made[0][0]])
    for oid, thing in reversed(made):
        assert ledger.get(oid) == thing
    with pytest.raises(MissingObject, match=gone):
        ledger.get(gone)
    ledger.ahead([gone, gone[::-1]])
    ledger.put([(gone, Object("blob", b"gone"))])
    assert ledger.raw(gone) == ("blob", b"gone"), "what is not here yet is asked for again"


def test_only_an_object_id_gets_to_git(on_git: Store) -> None:
    for name in ("HEAD", "", "a" * 39, "A" * 40, "HEAD\ninfo HEAD", "--help", "a" * 64):
        with pytest.raises(BadData):
            on_git.get(name)
        with pytest.raises(BadData):
            on_git.absent([name])
        with pytest.raises(BadData):
            on_git.swap(name, None, "x")


def test_what_another_process_writes_packs_and_removes_is_seen(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    blob = objects.oid("blob", b"new")
    assert on_git.absent([blob]) == (blob,)
    assert repo.git("hash-object", "-w", "--stdin", input=b"new") == blob
    assert on_git.get(blob).data == b"new"
    repo.git("gc", "--quiet", "--prune=now")
    assert on_git.tip() == first
    assert on_git.absent([blob]) == (blob,)
    with pytest.raises(MissingObject):
        on_git.get(blob, fresh=True)
    other = repo.git("commit-tree", "-m", "theirs", "-p", first, repo.tree(first))
    repo.git("update-ref", REF, other)
    assert on_git.tip() == other
    assert on_git.get(other).kind == "commit"
    repo.git("update-ref", "-d", REF)
    assert on_git.tip() is None


# ── the ref ──────────────────────────────────────────────────────────────────────────────────
def test_a_ledger_grows_from_nothing(ledger: Store) -> None:
    assert ledger.tip() is None
    tips: list[Oid] = []
    for n in range(3):
        tips.append(append(ledger, tips[-1] if tips else None, {f"d/{n}": b"x"}))
        assert ledger.tip() == tips[-1]
    assert set(objects.entries(ledger.get, tips[-1], "d") or ()) == {"0", "1", "2"}
    assert [oid for oid, _ in store.history(ledger, tips[-1])] == tips[::-1]


def test_append_after_an_old_tip_is_refused(ledger: Store) -> None:
    first = append(ledger, None, {"a": b"1"})
    second = append(ledger, first, {"a": b"2"})
    third, _ = build(ledger, first, {"a": b"3"})
    with pytest.raises(StaleTip, match=second):
        ledger.swap(third, first, "x")
    assert ledger.tip() == second


def test_creating_over_an_existing_ref_is_refused(ledger: Store) -> None:
    first = append(ledger, None, {"a": b"1"})
    other, _ = build(ledger, None, {"a": b"2"})
    with pytest.raises(StaleTip):
        ledger.swap(other, None, "x")
    assert ledger.tip() == first


def test_moving_a_ref_that_is_not_there_is_refused(ledger: Store) -> None:
    first, _ = build(ledger, None, {"a": b"1"})
    second, _ = build(ledger, first, {"a": b"2"})
    with pytest.raises(StaleTip):
        ledger.swap(second, first, "x")
    assert ledger.tip() is None


def test_the_ref_never_moves_to_what_is_not_here(ledger: Store) -> None:
    first = append(ledger, None, {"a": b"1"})
    gone = objects.oid("commit", b"never stored", ledger.algorithm)
    with pytest.raises(MissingObject, match=gone):
        ledger.swap(gone, first, "x")
    assert ledger.tip() == first


def test_a_ref_can_be_taken_back_to_nothing_but_only_from_the_tip_that_was_read(ledger: Store) -> None:
    first = append(ledger, None, {"a": b"1"})
    second = append(ledger, first, {"a": b"2"})
    with pytest.raises(StaleTip):
        ledger.swap(None, first, "x")
    assert ledger.tip() == second
    ledger.swap(None, second, "x")
    assert ledger.tip() is None
    with pytest.raises(StaleTip):
        ledger.swap(None, second, "x")
    assert append(ledger, None, {"a": b"1"}) == first


def test_a_closed_store_opens_again(ledger: Store) -> None:
    first = append(ledger, None, {"a": b"1"})
    ledger.close()
    ledger.close()
    assert ledger.tip() == first


def test_a_ref_in_a_deep_folder_and_after_packing(on_git: Store, repo: Repo) -> None:
    deep = type(on_git)(str(repo.path / ".git"), "refs/ledgers/incoming/origin/a/b")  # type: ignore[call-arg]
    first = append(deep, None, {"a": b"1"})
    repo.git("pack-refs", "--all", "--prune")
    assert not (repo.path / ".git" / deep.ref).exists()
    shutil.rmtree(repo.path / ".git/refs/ledgers")
    second = append(deep, first, {"a": b"2"})
    assert repo.git("rev-parse", deep.ref) == deep.tip() == second
    deep.close()


@pytest.mark.parametrize(
    "ref", ["main", "refs/x", "refs/heads/", "refs/heads/a b", "refs/heads/a..b", "refs/heads/a.lock", "refs/heads/a\n"]
)
def test_a_name_that_is_no_ref_is_refused(repo: Repo, ref: str) -> None:
    for driver in DRIVERS.values():
        with pytest.raises(BadData):
            driver(str(repo.path / ".git"), ref)
    with pytest.raises(BadData):
        MemoryStore(ref)


def test_a_ref_whose_commit_is_not_here_is_an_error_and_not_an_empty_ledger(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    on_git.close()
    loosen(repo)
    os.unlink(store.loose(str(repo.path / ".git/objects"), first))
    with pytest.raises(MissingObject, match=first):
        on_git.tip()


def test_a_damaged_ref_is_an_error_and_not_an_empty_ledger(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    (repo.path / ".git" / REF).write_text("garbage\n")
    with pytest.raises(BadData):
        on_git.tip()
    for old in (first, None):
        with pytest.raises(LedgerError) as caught:
            on_git.swap(first, old, "x")
        assert not isinstance(caught.value, StaleTip)


def test_a_ref_that_names_no_commit_is_an_error(on_git: Store, repo: Repo) -> None:
    repo.git("tag", "-a", "-m", "t", "v1")
    (repo.path / ".git/refs/heads/ledger").mkdir()
    (repo.path / ".git" / REF).write_text(repo.git("rev-parse", "v1") + "\n")
    with pytest.raises(BadData, match="tag"):
        on_git.tip()


def test_a_symbolic_ref_never_moves_the_branch_it_names(on_git: Store, repo: Repo) -> None:
    head = repo.head()
    repo.git("symbolic-ref", REF, "refs/heads/main")
    made, _ = build(on_git, None, {"a": b"1"})
    try:
        on_git.swap(made, head, "x")
    except CannotWrite:
        pass
    assert repo.git("rev-parse", "refs/heads/main") == head


# ── lost races, and what is none ─────────────────────────────────────────────────────────────
def test_a_tip_that_moves_between_look_and_lock_is_a_lost_race(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """libgit2 says it in three ways: the value differs, the ref exists, the ref is gone."""
    ledger = GitStore(str(repo.path / ".git"), REF)
    first, _ = build(ledger, None, {"a": b"1"})
    second, _ = build(ledger, first, {"a": b"2"})
    third, _ = build(ledger, first, {"a": b"3"})

    class Between:
        """A repository in which somebody is quicker, right after the ref was looked up."""

        def __init__(self, opened: Any, quicker: Callable[[], object]) -> None:
            self._opened, self._quicker = opened, quicker

        def lookup_reference(self, name: str) -> Any:
            found = self._opened.lookup_reference(name)
            if self._quicker is not None:
                self._quicker()
                self._quicker = None  # type: ignore[assignment]
            return found

        def create_reference_direct(self, *args: Any) -> Any:
            self._quicker()
            return self._opened.create_reference_direct(*args)

    opened = ledger._repo
    for old, new, quicker in (
        (None, first, lambda: repo.git("update-ref", REF, third)),
        (third, second, lambda: repo.git("update-ref", REF, first)),
        (first, second, lambda: repo.git("update-ref", "-d", REF)),
    ):
        ledger._opened = Between(opened, quicker)  # type: ignore[assignment]
        with pytest.raises(StaleTip):
            ledger.swap(new, old, "x")
    ledger._opened = opened
    assert ledger.tip() is None


def test_a_lock_that_a_dead_process_left_is_not_a_lost_race(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    second, _ = build(on_git, first, {"a": b"2"})
    lock = repo.path / ".git" / (REF + ".lock")
    lock.touch()
    for new, old in ((second, first), (None, first)):
        with pytest.raises(LockHeld, match=re.escape(str(lock))) as caught:
            on_git.swap(new, old, "x")
        assert not re.search(r"\b(rm|unlink|delete)\b", str(caught.value)), "no destructive command ready to run"
    assert lock.exists(), "its owner may live"
    assert on_git.tip() == first
    lock.unlink()
    on_git.swap(second, first, "x")
    assert on_git.tip() == second


def test_a_lock_is_a_lost_race_where_the_tip_has_moved(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    second = append(on_git, first, {"a": b"2"})
    (repo.path / ".git" / (REF + ".lock")).touch()
    with pytest.raises(StaleTip):
        on_git.swap(first, first, "x")
    assert on_git.tip() == second


def test_a_branch_in_the_way_is_not_a_lost_race(on_git: Store, repo: Repo) -> None:
    repo.branches("ledger")
    made, _ = build(on_git, None, {"a": b"1"})
    with pytest.raises(CannotWrite, match="ledger"):
        on_git.swap(made, None, "x")
    assert on_git.tip() is None


@pytest.fixture
def anybody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], None]]:
    """Root may write everywhere: a function that makes this process an ordinary user until the test ends."""
    was = os.geteuid()

    def become() -> None:
        if was == 0:
            os.seteuid(65534)

    yield become
    if was == 0:
        os.seteuid(0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_folder_that_is_not_ours_to_write_is_named(
    tmp_path: Path, repo: Repo, driver: str, anybody: Callable[[], None]
) -> None:
    ledger = DRIVERS[driver](str(repo.path / ".git"), REF)
    first = append(ledger, None, {"a": b"1"})
    second, _ = build(ledger, first, {"a": b"2"})
    blob = objects.oid("blob", b"not to be written")
    closed = [path for path in (repo.path / ".git").rglob("*") if path.is_dir()]
    for parent in (repo.path, *repo.path.parents):
        if parent.owner() == repo.path.owner() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    for path in closed:
        path.chmod(0o555)
    anybody()
    try:
        with pytest.raises(CannotWrite, match="refs/heads/ledger"):
            ledger.swap(second, first, "x")
        with pytest.raises(CannotWrite, match="objects"):
            ledger.put([(blob, Object("blob", b"not to be written"))])
        assert ledger.tip() == first
        ledger.close()
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        for path in closed:
            path.chmod(0o755)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_full_disk_changes_nothing(tmp_path: Path, repo: Repo, driver: str) -> None:
    """RLIMIT_FSIZE stands for the full disk: both let a write fail half-way."""
    with_room = DRIVERS[driver](str(repo.path / ".git"), REF)
    first = append(with_room, None, {"a": b"1"})
    with_room.close()
    code = """
import os, resource, signal, sys
from gitledger import objects
from gitledger.errors import LedgerError
from tests.test_store_contract import DRIVERS, REF
ledger = DRIVERS[sys.argv[1]](sys.argv[2], REF)
ledger.tip()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
data = os.urandom(100_000)
try:
    ledger.put([(objects.oid("blob", data), objects.Object("blob", data))])
except LedgerError as e:
    print(type(e).__name__)
ledger.close()
"""
    words = [sys.executable, "-c", code, driver, str(repo.path / ".git")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.strip() in ("IOFailed", "CannotWrite"), done.stderr
    after = DRIVERS[driver](str(repo.path / ".git"), REF)
    assert after.tip() == first
    after.close()
    repo.git("fsck", "--strict")


RACER = """
import sys
from gitledger.errors import TryAgain
from tests.test_store_contract import DRIVERS, REF, append
ledger = DRIVERS[sys.argv[1]](sys.argv[2], REF)
print("here", flush=True)
sys.stdin.read()
for n in range(int(sys.argv[4])):
    while True:
        try:
            append(ledger, ledger.tip(), {f"{sys.argv[3]}/{n}": b"x"})
            break
        except TryAgain:
            pass
ledger.close()
"""


@pytest.mark.parametrize("pair", ["pygit2 pygit2", "plumbing plumbing", "pygit2 plumbing"])
def test_two_processes_that_race_lose_no_append(repo: Repo, pair: str) -> None:
    words, each = [sys.executable, "-c", RACER], 50 if LONG else 15
    racers = [
        subprocess.Popen(
            [*words, driver, str(repo.path / ".git"), str(number), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number, driver in enumerate(pair.split())
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"here\n"
    for racer in racers:  # none begins before all are there
        assert racer.stdin is not None
        racer.stdin.close()
    assert [racer.wait(300) for racer in racers] == [0, 0]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.close()
    assert int(repo.git("rev-list", "--count", REF)) == 2 * each
    assert len(repo.git("ls-tree", "-r", "--name-only", REF).split()) == 2 * each
    repo.git("fsck", "--strict")


# ── durability ───────────────────────────────────────────────────────────────────────────────
def test_libgit2_is_told_to_sync(repo: Repo) -> None:
    """It has no way to ask what is set, so the system calls are looked at where strace is there."""
    synced = trace(repo, "pygit2")
    new = repo.git("rev-list", "--objects", "--no-object-names", REF).split()
    assert len(new) == 6
    folders = {f"objects/{oid[:2]}" for oid in new}
    assert folders | {"objects"} <= set(synced)
    old = objects.oid("blob", b"old")
    assert f"objects/{old[:2]}/{old[2:]}" in synced, "what is here already and was never synced"
    temporary = [path for path in synced if re.fullmatch(r"objects/(../)?tmp_obj.*", path)]
    assert len(temporary) >= len(new) - 1, synced


def test_plumbing_syncs_pack_index_mark_folder_and_ref_in_that_order(repo: Repo) -> None:
    synced = trace(repo, "plumbing")
    (pack,) = (path.stem for path in (repo.path / ".git/objects/pack").glob("*.pack"))
    indexed = repo.git("show-index", input=(repo.path / f".git/objects/pack/{pack}.idx").read_bytes())
    needed = repo.git("rev-list", "--objects", "--no-object-names", REF).split()
    assert sorted(row.split()[1] for row in indexed.splitlines()) == sorted(needed), "also what was here already"
    kinds = [re.sub(r"(tmp_[a-z]+_).*", r"\1", path.removeprefix("objects/pack/")) for path in synced]
    assert {"tmp_pack_", "tmp_idx_"} <= set(kinds), "before they get the names that git looks for"
    mark = synced.index(f"objects/pack/{pack}.keep")
    assert synced.index("objects/pack") > mark > max(kinds.index("tmp_pack_"), kinds.index("tmp_idx_"))


def trace(repo: Repo, driver: str) -> list[str]:
    """What is synced for one commit, in order, below `.git`; the ref last, with its folders."""
    if STRACE is None:
        pytest.skip("strace is not installed: NOTHING WAS PROVED about what reaches the disk; apt-get install strace")
    # One object is here already and was never synced: git does not write it again.
    assert repo.git("hash-object", "-w", "--stdin", input=b"old") == objects.oid("blob", b"old")
    code = """
import sys
from tests.test_store_contract import DRIVERS, REF, append
ledger = DRIVERS[sys.argv[1]](sys.argv[2], REF)
append(ledger, None, {"a/b": b"x", "c": b"y", "old": b"old"})
ledger.close()
"""
    log = repo.path.parent / "strace"
    calls = "openat,fsync,fdatasync,rename,renameat,renameat2,link,linkat"
    words = [STRACE, "-f", "-y", "-o", str(log), "-e", f"trace={calls}"]
    git_dir = repo.path / ".git"
    subprocess.run([*words, sys.executable, "-c", code, driver, str(git_dir)], check=True, capture_output=True)
    synced = [
        os.path.relpath(os.path.join(git_dir, path), git_dir)
        for path in re.findall(r"(?:fsync|fdatasync)\(\d+<([^>]*)>\)\s+= 0", log.read_text())
    ]
    ref_lock = synced.index(REF + ".lock") if REF + ".lock" in synced else synced.index(REF)
    for folder in ("refs/heads/ledger", "refs/heads"):
        assert folder in synced[ref_lock:], synced
    objects_done = max(at for at, path in enumerate(synced) if path.startswith("objects"))
    assert objects_done < ref_lock, "objects before the ref"
    return synced


@pytest.mark.parametrize("damage", ["removed", "corrupt", "another", "empty"])
def test_reading_back_finds_what_is_not_on_the_disk(on_git: Store, repo: Repo, damage: str) -> None:
    first = append(on_git, None, {"a/b": b"one", "c": b"two", "d/e": b"untouched"})
    second, edited = build(on_git, first, {"a/b": b"three", "c": b"four"})
    on_git.swap(second, first, "x")
    store.read_back(on_git, second, edited)
    loosen(repo)
    on_git.close()  # a reader that has a pack open goes on reading it
    store.read_back(on_git, second, edited)
    needed = [second, edited.tree, *(oid for oid, _ in edited.objects), first]
    needed += [(objects.entries(on_git.get, first) or {})["d"].oid]
    for oid in needed:
        on_git.get(oid)
        path = Path(store.loose(str(repo.path / ".git/objects"), oid))
        good = path.read_bytes()
        path.chmod(0o644)
        if damage == "removed":
            path.unlink()
        elif oid not in (second, *(oid for oid, _ in edited.objects)):
            continue  # what was not written is only asked for, not read again
        elif damage == "corrupt":
            path.write_bytes(good[:-3] + bytes([good[-3] ^ 1]) + good[-2:])
        elif damage == "another":
            path.write_bytes(
                Path(store.loose(str(repo.path / ".git/objects"), objects.oid("blob", b"one"))).read_bytes()
            )
        else:
            path.write_bytes(b"")
        with pytest.raises((MissingObject, IOFailed)):
            store.read_back(on_git, second, edited)
        path.write_bytes(good)
        store.read_back(on_git, second, edited)


def test_objects_that_a_gc_took_before_the_swap_are_noticed_and_put_again(on_loose: Store, repo: Repo) -> None:
    first = append(on_loose, None, {"a": b"1"})
    second, edited = build(on_loose, first, {"a": b"2"})
    commit = on_loose.get(second)
    repo.git("gc", "--quiet", "--prune=now")
    with pytest.raises(MissingObject, match=second):
        on_loose.swap(second, first, "x")
    with pytest.raises(MissingObject):
        store.read_back(on_loose, second, edited)
    assert on_loose.tip() == first
    on_loose.put((*edited.objects, (second, commit)))
    on_loose.swap(second, first, "x")
    store.read_back(on_loose, second, edited)
    repo.git("fsck", "--strict")


def test_a_gc_that_began_before_the_swap_is_over_when_it_returns(on_loose: Store, repo: Repo) -> None:
    first, edited = build(on_loose, None, {"a": b"1"})
    lock = repo.path / ".git/gc.pid"
    blob = Path(store.loose(str(repo.path / ".git/objects"), objects.oid("blob", b"1")))
    code = "import os, sys, time; time.sleep(0.5); os.unlink(sys.argv[1]); os.unlink(sys.argv[2])"
    gc = subprocess.Popen([sys.executable, "-c", code, str(blob), str(lock)])
    lock.write_text(f"{gc.pid} {os.uname().nodename}")
    on_loose.swap(first, None, "x")
    assert not lock.exists()
    assert gc.wait() == 0
    with pytest.raises(MissingObject):
        store.read_back(on_loose, first, edited)


def test_the_lock_of_a_gc_that_died_holds_nobody_up(
    on_loose: Store, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (repo.path / ".git/gc.pid").write_text(f"{dead.pid} {os.uname().nodename}")
    monkeypatch.setattr("gitledger.store.GC_PATIENCE", 1e9)
    append(on_loose, None, {"a": b"1"})


@pytest.mark.parametrize("driver", DRIVERS)
def test_gc_with_prune_now_running_all_the_while_loses_nothing(repo: Repo, driver: str) -> None:
    stop = repo.path.parent / "stop"
    loop = f"until [ -e {stop} ]; do git gc --quiet --prune=now; done"
    gc = subprocess.Popen(["sh", "-c", loop], cwd=repo.path, stderr=subprocess.DEVNULL)
    ledger = DRIVERS[driver](str(repo.path / ".git"), REF)
    taken = 0
    try:
        for n in range(25):
            while True:
                tip = ledger.tip()
                try:
                    new, edited = build(ledger, tip, {f"d/{n % 7}/{n}": b"%d" % n})
                    ledger.swap(new, tip, "x")
                except MissingObject:
                    taken += 1
                    continue
                except (StaleTip, CannotWrite):
                    continue
                try:
                    store.read_back(ledger, new, edited)
                    break
                except MissingObject:
                    taken += 1
                    ledger.swap(tip, new, "taken back")
    finally:
        stop.touch()
        gc.wait(60)
        ledger.close()
    assert taken == 0 or driver == "pygit2", "no gc takes from a pack that is kept"
    assert int(repo.git("rev-list", "--count", REF)) == 25
    assert len(repo.git("ls-tree", "-r", "--name-only", REF).split()) == 25
    repo.git("fsck", "--strict")


def test_reading_back_another_tree_than_was_edited_is_refused(ledger: Store) -> None:
    first, edited = build(ledger, None, {"a": b"1"})
    second, _ = build(ledger, first, {"a": b"2"})
    with pytest.raises(IOFailed):
        store.read_back(ledger, second, edited)
    with pytest.raises(IOFailed):
        store.read_back(ledger, edited.tree, edited)


# ── history ──────────────────────────────────────────────────────────────────────────────────
def merge(ledger: Store, *parents: Oid, message: str = "merge\n") -> Oid:
    tree = objects.parse_commit(ledger.get(parents[0]).data).tree
    data = objects.format_commit(Commit(tree, parents, WHO, WHO, message))
    oid = objects.oid("commit", data, ledger.algorithm)
    ledger.put([(oid, Object("commit", data))])
    return oid


def test_history_names_each_commit_once_first_parents_first(ledger: Store) -> None:
    root, _ = build(ledger, None, {"a": b"1"})
    left, _ = build(ledger, root, {"a": b"2"})
    right, _ = build(ledger, root, {"a": b"3"})
    top = merge(ledger, left, right)
    assert [oid for oid, _ in store.history(ledger, top)] == [top, left, root, right]
    assert [oid for oid, _ in store.history(ledger, top, stop=[root])] == [top, left, right]
    assert list(store.history(ledger, None)) == []
    assert dict(store.history(ledger, top))[top].parents == (left, right)


def test_history_tells_all_it_can_before_it_says_what_is_missing(ledger: Store) -> None:
    lost = objects.oid("commit", b"never stored", ledger.algorithm)
    root, _ = build(ledger, None, {"a": b"1"})
    top = merge(ledger, merge(ledger, root, lost), merge(ledger, root, message="other\n"))
    told = store.history(ledger, top)
    assert len({next(told)[0] for _ in range(4)}) == 4
    with pytest.raises(MissingObject, match=lost):
        next(told)


def test_replace_refs_and_grafts_change_nothing(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"a": b"1"})
    second = append(on_git, first, {"a": b"2"})
    fake = repo.git("commit-tree", "-m", "fake", repo.tree())
    repo.git("replace", second, fake)
    (repo.path / ".git/info/grafts").write_text(f"{second}\n")
    on_git.close()
    assert [oid for oid, _ in store.history(on_git, on_git.tip())] == [second, first]
    assert on_git.get(second, fresh=True).kind == "commit"
    assert b"fake" not in on_git.get(second).data


# ── the user's repository ────────────────────────────────────────────────────────────────────
def test_git_finds_nothing_wrong_and_builds_the_same_commit(on_git: Store, repo: Repo) -> None:
    first = append(on_git, None, {"tasks/T-1/task.json": b"{}", "a.b": b"", "README.md": b"x\n"})
    edited = objects.edit(on_git.get, objects.parse_commit(on_git.get(first).data).tree, {"a.b": None, "c": b"c"})
    name = {"GIT_AUTHOR_NAME": "Zoë", "GIT_AUTHOR_EMAIL": "z@x", "GIT_AUTHOR_DATE": "1790000000 -0330"}
    name |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in name.items()}
    line = "Zoë <z@x> 1790000000 -0330"
    data = objects.format_commit(Commit(edited.tree, (first,), line, line, "subject\n\nbody\n"))
    oid = objects.oid("commit", data)
    on_git.put((*edited.objects, (oid, Object("commit", data))))
    on_git.swap(oid, first, "gitledger: checkpoint\nwith a line end")
    listing = "".join(f"{row}\n" for row in repo.git("ls-tree", oid).splitlines())
    assert repo.git("mktree", input=listing) == edited.tree
    assert repo.git("commit-tree", edited.tree, "-p", first, "-F", "-", input="subject\n\nbody\n", env=name) == oid
    done = subprocess.run(["git", "fsck", "--strict", "--full"], cwd=repo.path, capture_output=True, check=True)
    assert b"error" not in done.stderr + done.stdout


def snapshot(repo: Repo) -> dict[str, bytes]:
    mine = re.compile(r"\.git/(objects|refs/heads/ledger|logs/refs/heads/ledger)(/|$)")
    paths = (path for path in repo.path.rglob("*") if path.is_file())
    return {
        name: path.read_bytes() + str(path.stat().st_mtime_ns).encode()
        for path in paths
        if not mine.match(name := str(path.relative_to(repo.path)))
    }


def test_the_user_s_head_index_config_hooks_and_files_stay_untouched(on_git: Store, repo: Repo) -> None:
    ran = repo.path.parent / "ran"
    for hook in ("reference-transaction", "post-commit", "pre-commit", "post-update"):
        path = repo.path / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}\nexit 1\n")
        path.chmod(0o755)
    repo.write({"dirty.txt": "not committed"})
    before = snapshot(repo)
    assert ".git/index" in before
    first = append(on_git, None, {"a": b"1"})
    append(on_git, first, {"a": b"2"})
    assert snapshot(repo) == before
    assert not ran.exists()


def test_no_identity_and_a_hostile_environment_make_no_difference(
    on_git: Store, repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo.git("config", "--unset", "user.name")
    repo.git("config", "--unset", "user.email")
    elsewhere = new_repo(tmp_path / "elsewhere")
    for name, value in (("DIR", ".git"), ("OBJECT_DIRECTORY", ".git/objects"), ("INDEX_FILE", ".git/index")):
        monkeypatch.setenv(f"GIT_{name}", str(elsewhere.path / value))
    monkeypatch.setenv("GIT_NAMESPACE", "other")
    first = append(on_git, None, {"a": b"1"})
    for name in ("DIR", "OBJECT_DIRECTORY", "INDEX_FILE", "NAMESPACE"):
        monkeypatch.delenv(f"GIT_{name}")
    assert repo.git("rev-parse", REF) == first
    assert elsewhere.git("for-each-ref") == ""


def test_a_linked_worktree_a_bare_and_a_shallow_repository_work(repo: Repo, tmp_path: Path) -> None:
    repo.commit("second")
    repo.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    bare = repo.clone(tmp_path / "bare.git", "--bare")
    shallow = repo.clone(tmp_path / "shallow", "--depth=1")
    for driver, opened in DRIVERS.items():
        for where in (linked, bare, shallow):
            ref = f"refs/heads/ledger/{driver}-{where.path.name}"
            common = where.git("rev-parse", "--path-format=absolute", "--git-common-dir")
            ledger = opened(common, ref)
            first = append(ledger, None, {"a": b"1"})
            second = append(ledger, first, {"a": b"2"})
            assert where.git("rev-parse", ref) == second
            ledger.close()
    assert {row.split("-")[0] for row in repo.git("branch", "--list", "ledger/*").split()} == {
        "ledger/pygit2",
        "ledger/plumbing",
    }


def test_a_partial_clone_reaches_for_no_network(repo: Repo, tmp_path: Path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    blob = repo.git("rev-parse", "HEAD:README.md")
    clone = repo.clone(tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    for driver in DRIVERS.values():
        ledger = driver(str(clone.path / ".git"), REF)
        assert ledger.absent([blob]) == (blob,)
        with pytest.raises(MissingObject):
            ledger.get(blob)
        ledger.close()
    assert blob not in clone.git("cat-file", "--batch-all-objects", "--batch-check")


def test_a_repository_that_libgit2_cannot_open_is_unsupported_by_it_and_no_repository_is_said_to_be_none(
    tmp_path: Path,
) -> None:
    modern = new_repo(tmp_path / "modern", "--object-format=sha256")
    with pytest.raises(Unsupported, match="sha256"):
        GitStore(str(modern.path / ".git"), REF)
    reftable = new_repo(tmp_path / "reftable")
    reftable.git("config", "core.repositoryFormatVersion", "1")
    with open(reftable.path / ".git/config", "a", encoding="utf-8") as f:
        f.write("[extensions]\n\trefStorage = reftable\n")
    with pytest.raises(Unsupported, match="refstorage"):
        GitStore(str(reftable.path / ".git"), REF)
    for driver in DRIVERS.values():
        with pytest.raises(NotARepository):
            driver(str(tmp_path), REF)


def test_what_is_read_ahead_is_waited_for_twice_and_bounded_in_all(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    blobs = [b"%d" % n for n in range(40)] + [bytes(1 << 20)]
    made = [(objects.oid("blob", data), Object("blob", data)) for data in blobs]
    ledger.put(made)
    sent: list[str] = []
    real = plumbing._Child.send
    monkeypatch.setattr(plumbing, "_MOST", 1 << 20)
    monkeypatch.setattr(plumbing._Child, "send", lambda child, words: (sent.append(words), real(child, words))[1])
    assert set(ledger.ahead(oid for oid, _ in made)) == {oid for oid, _ in made[:-1]}
    assert [len(words.splitlines()) for words in sent[-2:]] == [41, 40]
    sent.clear()
    for oid, thing in made:
        assert ledger.get(oid) == thing
    assert len(sent) == 1, "the large one by itself"
    assert ledger.get(made[0][0]) == made[0][1], "each is kept until it was asked for once"
    assert len(sent) == 2
    many = [(objects.oid("blob", data), Object("blob", data)) for data in (b"%d" % n * 9_000 for n in range(100, 160))]
    ledger.put(many)
    held = ledger.ahead(oid for oid, _ in many)
    assert 30 < len(held) < 40, "what is read in several turns is bounded as a whole"
    ledger.close()


def test_a_child_that_dies_while_it_reads_ahead_is_another_one_s_to_report(repo: Repo) -> None:
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    first = append(ledger, None, {"a": b"1"})
    second = append(ledger, first, {"a": b"2"})
    again = PlumbingStore(str(repo.path / ".git"), REF)
    again.tip()
    assert again._reader is not None
    again._reader._contents._process.kill()
    again.ahead([first, second])
    assert again.get(second).kind == "commit"
    again.close()
    ledger.close()


def test_an_older_git_is_read_through_two_children(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git before 2.36 ends with its usage on --batch-command; everything else is the real git."""
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    real = shutil.which("git")
    old.write_text(f'#!/bin/sh\nfor a; do [ "$a" = --batch-command ] && exit 129; done\nexec {real} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    first = append(ledger, None, {"a": b"1"})
    second = append(ledger, first, {"a": b"2"})
    assert ledger.tip() == second
    assert ledger.absent(["1" * 40, first]) == ("1" * 40,)
    with pytest.raises(MissingObject):
        ledger.get("1" * 40)
    again = PlumbingStore(str(repo.path / ".git"), REF)
    again.ahead([first, "1" * 40, second])
    assert [again.get(oid).kind for oid in (first, second)] == ["commit", "commit"]
    again.close()
    ledger.close()


def test_a_repository_that_vanishes_is_an_error_of_its_own(repo: Repo) -> None:
    ledger = PlumbingStore(str(repo.path / ".git"), REF)
    first = append(ledger, None, {"a": b"1"})
    ledger.close()
    (repo.path / ".git").rename(repo.path / "gone")
    with pytest.raises(LedgerError) as caught:
        ledger.get(first, fresh=True)
    assert str(repo.path) in str(caught.value)


def test_the_plumbing_store_imports_nothing_heavy() -> None:
    code = "import sys, gitledger.plumbing; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode().split()
    assert {"pygit2", "pydantic", "hashlib", "tempfile", "cffi"}.isdisjoint(loaded)
    code = "import sys, gitledger.gitstore; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode().split()
    assert "pygit2" not in loaded
