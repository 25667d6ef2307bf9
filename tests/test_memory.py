"""A memory file on the disk and the ledger that tells of it: nothing lost, nothing half done, every byte comes back."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitledger import (
    audit,
    briefing,
    capsule,
    doctor,
    layout,
    memory,
    memoryfile,
    memorykept,
    memoryrecord,
    memoryundo,
    transaction,
    verify,
)
from gitledger.errors import BadData, CannotWrite, LedgerError, Missing, NotAllowed, TryAgain
from gitledger.ledger import Ledger
from gitledger.memory import Applied
from gitledger.schema import BadChangeSet, Memory
from gitledger.values import replace
from tests.ledgers import again, begin
from tests.sealed import Repo

TEXT = "".join(f"- fact number {n} of this file\n" for n in range(1, 41))


def configured(ledger: Ledger, **keys: Any) -> Ledger:
    """The same ledger under another configuration of memory files."""
    import dataclasses

    config = replace(ledger.desk.config, memory=Memory(**keys))
    return Ledger(dataclasses.replace(ledger.desk, config=config), ledger.gitdir)


@pytest.fixture
def book(repo: Repo) -> Ledger:
    return begin(repo)


@pytest.fixture
def file(repo: Repo) -> Path:
    path = repo.path / "memory" / "MEMORY.md"
    path.parent.mkdir()
    path.write_bytes(TEXT.encode())
    return path


def fact(n: int) -> str:
    return f"- fact number {n} of this file"


def change(*original: str, kind: str = "ephemeral", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "original": list(original), "reason": "no longer true", **more}


def apply(book: Ledger, *changes: dict[str, Any], how: str = "audit") -> Applied:
    loaded = memory.present(book)[0]
    data = json.dumps({"source_sha256": loaded.sha256, "changes": list(changes)}).encode()
    return memory.apply(book, loaded, memory.accepted(book, loaded, data), how)


def sound(book: Ledger) -> None:
    """See that the ledger is whole: signatures, tree, documents."""
    again_ = again(Repo(Path(book.gitdir.top)))
    assert verify.verify(again_.desk, again_.tip(), verify.Ways(full=True)).verdict == "verified"
    assert list(audit.fsck(again_)) == []


def left_over(book: Ledger, file: Path) -> list[str]:
    """What waits beside a file or is kept of a change under way."""
    kept = [name for name in os.listdir(memorykept.folder(book)) if name.endswith((".json", ".bytes"))]
    return kept + [name for name in os.listdir(file.parent) if name != file.name]


# ── a change and its record ──────────────────────────────────────────────────────────────────
def test_a_change_is_one_signed_commit_that_holds_the_file_before(book: Ledger, repo: Repo, file: Path) -> None:
    made = apply(book, change(fact(3)), change(fact(7) + "\n" + fact(8), kind="superseded"))
    assert file.read_bytes().decode() == TEXT.replace(f"{fact(3)}\n", "").replace(f"{fact(7)}\n{fact(8)}\n", "")
    message = repo.git("show", "-s", "--format=%B", made.commit)
    assert "Ledger-Kind: memory" in message
    assert message.startswith("M-0001 memory/MEMORY.md: 2 changes, 87 bytes less")
    told = memoryrecord.told(book.view(), made.key)
    assert told.before is not None
    assert told.before.data() == TEXT.encode()
    assert [(e.kind, e.first, e.lines, e.reason) for e in told.edits] == [
        ("ephemeral", 2, 1, "no longer true"),
        ("superseded", 6, 2, "no longer true"),
    ]
    document = repo.git("show", f"{made.commit}:memory/00xx/M-0001.md")
    assert fact(7) in document
    assert "no longer true" in document
    assert left_over(book, file) == []
    sound(book)


def test_a_request_that_names_a_change_is_told_of_it_and_never_what_it_removed(book: Ledger, file: Path) -> None:
    apply(book, change(fact(3)))
    text = capsule.compose(again(Repo(Path(book.gitdir.top))), "why M-0001? fact number 3").text
    assert '- M-0001 memory (applied; gitledger show M-0001): "memory/MEMORY.md: 1 change, ' in text
    assert fact(3) not in text
    assert "number 3" not in text
    memoryundo.undo(again(Repo(Path(book.gitdir.top))), "M-0001")
    text = capsule.compose(again(Repo(Path(book.gitdir.top))), "M-0001 M-0009").text
    assert "- M-0001 memory (undone; gitledger show M-0001)" in text
    assert "M-0009 (not in this ledger)" in text


def test_a_big_file_travels_in_parts_and_one_beyond_the_bound_is_refused(book: Ledger, file: Path) -> None:
    big = "".join(f"- {n} {'x' * 90} é\n" for n in range(4_000)) + "- " + "y" * 30_000 + "\n"
    file.write_text(big)
    made = apply(book, change(f"- 17 {'x' * 90} é"))
    told = memoryrecord.told(book.view(), made.key)
    assert told.before is not None
    assert told.before.data() == big.encode()
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == big
    file.write_text(big * 2)
    with pytest.raises(BadData, match="more than 512 KiB"):
        memory.present(book)
    sound(book)


def test_a_file_that_is_cut_in_its_record_comes_back_all_the_same(book: Ledger, file: Path) -> None:
    text = TEXT + "".join(f"- {n} {chr(1) * 99}\n" for n in range(2_000))  # six bytes each, as JSON
    file.write_text(text)
    made = apply(book, change(fact(5)))
    assert memoryrecord.told(book.view(), made.key).before is None
    kept = Path(memorykept.kept_path(book, made.key))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    away = kept.rename(kept.with_suffix(".away"))
    with pytest.raises(Missing, match="its file is cut in the ledger, and whole where"):
        memoryundo.undo(book, "M-0001")
    away.rename(kept)
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == text
    sound(book)


def test_the_log_tells_of_each_change_once_and_the_copy_is_made_where_it_is_configured(
    book: Ledger, repo: Repo, file: Path
) -> None:
    book = configured(book, backup="backup", log="log/memory-clean.log")
    first = apply(book, change(fact(1)))
    apply(book, change(fact(2)), change(fact(4)))
    lines = (repo.path / "log/memory-clean.log").read_text().splitlines()
    assert [line.split()[1:4] for line in lines] == [
        ["M-0001", "ephemeral", "memory/MEMORY.md:1"],
        ["M-0002", "ephemeral", "memory/MEMORY.md:1"],
        ["M-0002", "ephemeral", "memory/MEMORY.md:3"],
    ]
    assert f'"{fact(2)}": no longer true' in lines[1]
    day = first.made.at[:10]
    assert (repo.path / f"backup/{day}_memory.backup.md").read_bytes() == TEXT.encode()
    assert (repo.path / f"backup/{day}_memory.backup.2.md").read_bytes() == TEXT.replace(f"{fact(1)}\n", "").encode()


def test_mode_owner_and_a_symlink_stay(book: Ledger, repo: Repo, tmp_path: Path, file: Path) -> None:
    real = tmp_path / "home" / "agent.md"
    real.parent.mkdir(exist_ok=True)
    file.rename(real)
    real.chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(real)
    apply(configured(book, files=(str(link),)), change(fact(5)))
    assert link.is_symlink()
    assert fact(5) not in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no such attributes")
def test_who_may_read_it_and_what_a_person_noted_of_it_stay(book: Ledger, file: Path) -> None:
    import struct

    # Version 2; the owner, one more user, the group, the mask, the others.
    rows = ((1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    marks = {"user.note": b"mine", "system.posix_acl_access": access}
    try:
        for name, value in marks.items():
            os.setxattr(file, name, value)
    except OSError as e:
        pytest.skip(f"the file system keeps none ({e})")
    apply(book, change(fact(5)))
    assert fact(5) not in file.read_text()
    assert {name: os.getxattr(file, name) for name in marks} == marks
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no such attributes")
def test_nobody_may_read_it_who_might_not_before(book: Ledger, file: Path) -> None:
    import struct

    rows = ((1, 7, 0xFFFFFFFF), (2, 7, 1234), (4, 5, 0xFFFFFFFF), (16, 7, 0xFFFFFFFF), (32, 5, 0xFFFFFFFF))
    default = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    file.chmod(0o640)
    try:
        os.setxattr(file.parent, "system.posix_acl_default", default)
    except OSError as e:
        pytest.skip(f"the file system keeps none ({e})")
    apply(book, change(fact(5)))
    assert os.listxattr(file) == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_name_of_the_work_tree_cannot_lead_out_of_it(book: Ledger, file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.md"
    secret.write_text(TEXT)
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(NotAllowed, match="leads out of the work tree"):
        memory.present(book)
    with pytest.raises(NotAllowed, match="leads out of the work tree"):
        memory.present(configured(book, files=("../x.md",)))


# ── the file changes under us ────────────────────────────────────────────────────────────────
def untouched(book: Ledger, file: Path, kind: type[LedgerError], words: str, wanted: str = TEXT) -> None:
    """See that a change is refused with nothing done, here or in the ledger."""
    tip = book.tip()
    with pytest.raises(kind, match=words):
        apply(book, change(fact(5)))
    assert file.read_text() == wanted
    assert book.tip() == tip
    assert left_over(book, file) == []


def test_a_file_that_changed_after_the_proposal_is_left_alone(book: Ledger, file: Path) -> None:
    loaded = memory.present(book)[0]
    data = json.dumps({"source_sha256": loaded.sha256, "changes": [change(fact(5))]}).encode()
    edits = memory.accepted(book, loaded, data)
    file.write_text(TEXT + "- new\n")
    with pytest.raises(TryAgain, match="was changed by somebody else meanwhile"):
        memory.apply(book, loaded, edits, "audit")
    with pytest.raises(BadChangeSet, match="source_sha256"):
        memory.accepted(book, memory.present(book)[0], data)
    assert file.read_text() == TEXT + "- new\n"
    assert left_over(book, file) == []


@pytest.mark.parametrize("way", ["in place", "by rename"])
def test_who_writes_in_the_moment_of_the_exchange_is_not_lost(
    book: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    real = memoryfile.exchange
    theirs = TEXT + "- written in between\n"
    calls: list[str] = []

    def late(one: str, other: str) -> bool:
        if not calls:
            calls.append(one)
            if way == "in place":
                file.write_text(theirs)
            else:
                (file.parent / "new").write_text(theirs)
                (file.parent / "new").rename(file)
        return real(one, other)

    monkeypatch.setattr(memoryfile, "exchange", late)
    untouched(book, file, TryAgain, "changed by somebody else", theirs)


def test_where_files_cannot_be_exchanged_one_takes_the_others_place(
    book: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memoryfile, "exchange", lambda one, other: False)
    apply(book, change(fact(5)))
    assert fact(5) not in file.read_text()
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == TEXT
    assert left_over(book, file) == []


def test_what_somebody_writes_into_the_old_file_is_kept(book: Ledger, file: Path) -> None:
    with file.open("a") as held:  # an editor, or a shell's >>
        apply_ = memory._log

        def write_late(*words: Any) -> None:
            held.write("- late\n")
            held.flush()
            apply_(*words)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory, "_log", write_late)
            made = apply(book, change(fact(5)))
    kept = [path for path in file.parent.iterdir() if ".kept-" in path.name]
    assert [path.read_text() for path in kept] == [TEXT + "- late\n"]
    assert kept[0].name in made.findings[0].what


@pytest.mark.parametrize("name", [".MEMORY.md.swp", ".MEMORY.md.swn", ".#MEMORY.md", ".~lock.MEMORY.md#"])
def test_a_file_that_is_open_in_an_editor_is_left_alone(book: Ledger, file: Path, name: str) -> None:
    swap = file.parent / name
    swap.symlink_to("nowhere")
    tip = book.tip()
    with pytest.raises(TryAgain, match="is open in an editor"):
        apply(book, change(fact(5)))
    swap.unlink()
    assert (file.read_text(), book.tip(), left_over(book, file)) == (TEXT, tip, [])


def test_a_file_that_went_meanwhile_is_missed_and_not_made_anew(book: Ledger, file: Path) -> None:
    loaded = memory.present(book)[0]
    data = json.dumps({"source_sha256": loaded.sha256, "changes": [change(fact(5))]}).encode()
    edits = memory.accepted(book, loaded, data)
    file.unlink()
    with pytest.raises(TryAgain, match="is not there any more"):
        memory.apply(book, loaded, edits, "audit")
    assert (file.exists(), left_over(book, file)) == (False, [])


def test_a_read_only_file_is_left_alone(book: Ledger, file: Path) -> None:
    file.chmod(0o444)
    untouched(book, file, CannotWrite, "is read-only")


def test_a_file_of_two_names_is_left_alone(book: Ledger, repo: Repo, file: Path) -> None:
    os.link(file, repo.path / "other.md")
    untouched(book, file, CannotWrite, "second name")


def test_what_is_no_plain_file_is_said(book: Ledger, file: Path) -> None:
    file.unlink()
    with pytest.raises(Missing, match="there is no memory file"):
        memory.present(book)
    os.mkfifo(file)
    with pytest.raises(CannotWrite, match="no plain file"):
        memory.present(book)


def test_a_folder_stands_for_its_markdown_files(book: Ledger, repo: Repo, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for name in ("MEMORY.md", "topic.md", ".hidden.md", "notes.txt", "2026-12-01_memory.backup.2.md"):
        (folder / name).write_text(TEXT.replace("fact", name))
    (folder / "led-elsewhere.md").symlink_to(file)
    (folder / "folder.md").mkdir()
    (folder / "broken.md").write_bytes(b"\xff")
    book = configured(book, files=(str(folder), "memory"), backup=str(folder))
    assert [target.name for target in memory.targets(book)] == [
        *(f"{folder}/{name}" for name in ("MEMORY.md", "broken.md", "topic.md")),
        "memory/MEMORY.md",
    ]
    loaded = memory.present(book, f"{folder}/topic.md")[0]
    held = memory.companions(book, loaded.target)
    assert list(held) == [f"{folder}/MEMORY.md", "memory/MEMORY.md"]
    gone = "- topic.md number 3 of this file"
    data = json.dumps({"source_sha256": loaded.sha256, "changes": [change(gone)]}).encode()
    memory.apply(book, loaded, memory.accepted(book, loaded, data), "audit")
    assert gone not in (folder / "topic.md").read_text()
    away = (folder / "topic.md").rename(folder / "topic.away")
    with pytest.raises(Missing, match=r"topic\.md is not there"):
        memoryundo.undo(book, "M-0001")
    away.rename(folder / "topic.md")
    memoryundo.undo(book, "M-0001")
    assert (folder / "topic.md").read_text() == TEXT.replace("fact", "topic.md")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(Missing, match=f"there is no memory file .{empty}"):
        memory.present(configured(book, files=(str(empty),)))


def full(*words: Any, **more: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("where", ["stage", "kept", "backup", "ledger", "objects"])
def test_a_full_disk_leaves_the_file_and_the_ledger_as_they_were(
    book: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    book = configured(book, backup="backup")
    if where == "stage":
        monkeypatch.setattr(os, "fchmod", full)
    elif where == "kept":
        monkeypatch.setattr(memory, "keep", full)
    elif where == "backup":
        monkeypatch.setattr(memoryfile, "backup", full)
    elif where == "ledger":
        monkeypatch.setattr(transaction, "commit", full)
    else:
        monkeypatch.setattr(type(book.desk.store), "put", full)
    before = file.stat().st_ino
    tip = book.tip()
    with pytest.raises((LedgerError, OSError)):
        apply(book, change(fact(5)))
    monkeypatch.undo()
    assert (file.read_text(), file.stat().st_ino, book.tip(), left_over(book, file)) == (TEXT, before, tip, [])
    apply(book, change(fact(5)))
    assert fact(5) not in file.read_text()


def test_what_cannot_be_taken_back_because_somebody_wrote_is_said_and_told_by_the_next_command(
    book: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*words: Any, **more: Any) -> None:
        with file.open("a") as f:
            f.write("- theirs\n")
        full()

    monkeypatch.setattr(transaction, "commit", fails)
    with pytest.raises(LedgerError, match="so the change stands in it, and the ledger does not tell of it yet"):
        apply(book, change(fact(5)))
    monkeypatch.undo()
    now = TEXT.replace(f"{fact(5)}\n", "") + "- theirs\n"
    assert file.read_text() == now
    assert ["it is M-0001 now" in one.what for one in memory.recover(book)] == [True]
    assert (file.read_text(), left_over(book, file)) == (now, [])
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == TEXT + "- theirs\n"
    sound(book)


def test_a_log_that_cannot_be_written_is_told_and_undoes_nothing(book: Ledger, repo: Repo, file: Path) -> None:
    (repo.path / "log").write_text("a file\n")
    made = apply(configured(book, log="log/memory-clean.log"), change(fact(5)))
    assert "the change itself is made and committed" in made.findings[0].mend
    assert fact(5) not in file.read_text()


# ── a kill at every step ─────────────────────────────────────────────────────────────────────
STEPS: tuple[tuple[Any, str], ...] = (
    (memoryfile, "stage"),
    (memory, "keep"),
    (memoryfile, "swap"),
    (memoryfile, "exchange"),
    (memory, "_commit"),
    (memory, "_log"),
    (memory, "_drop"),
    (memory, "forget"),
)


def killed(work: Callable[[], object]) -> int:
    """The exit status of a child process that does some work."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kills() -> Iterator[tuple[Any, str, bool]]:
    for owner, name in STEPS:
        yield owner, name, False
        yield owner, name, True


@pytest.mark.parametrize("exchanged", [True, False], ids=["exchange", "replace"])
def test_a_kill_at_any_step_leaves_file_and_ledger_telling_the_same(
    book: Ledger, repo: Repo, file: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool
) -> None:
    if not exchanged:
        monkeypatch.setattr(memoryfile, "exchange", lambda one, other: False)
    done = 0
    for n, (owner, name, behind) in enumerate(kills()):
        before = file.read_text()

        def work(owner: Any = owner, name: str = name, behind: bool = behind, n: int = n) -> None:
            real = getattr(owner, name)

            def step(*words: Any, **more: Any) -> Any:
                found = real(*words, **more) if behind else None
                os._exit(9)
                return found

            setattr(owner, name, step)
            apply(again(repo), change(fact(n + 1)))

        assert killed(work) == 9, (name, behind)
        text = file.read_text()
        assert text in (before, before.replace(f"{fact(n + 1)}\n", "")), (name, behind)
        memory.recover(again(repo))
        assert file.read_text() == text, (name, behind)
        done += text != before
        view = again(repo).view()
        assert view.manifest.numbers.get("M", 0) == done, (name, behind)
        named = [line.split()[1] for line in _lines(book)]
        assert named == [f"M-{k:04d}" for k in range(1, done + 1)], (name, behind)
        apply(again(repo), change(fact(n + 21)))  # and the next one goes through, with nothing left over
        done += 1
        assert left_over(book, file) == [], (name, behind)
    assert done > len(STEPS) * 2
    sound(book)


def _lines(book: Ledger) -> list[str]:
    path = Path(memory.log_path(book))
    return path.read_text().splitlines() if path.exists() else []


def told_of(repo: Repo) -> tuple[list[str], list[str]]:
    """What a briefing and doctor say of changes that nobody ended; both name the command that does."""
    book = again(repo)
    found = [one for one in briefing.gather(book).findings if one.rule == "memory"]
    seen = [one for one in doctor.checks(book) if one.name == "memory"]
    assert all(
        mend.endswith("gitledger memory log") for mend in [one.mend for one in found] + [one.mend for one in seen]
    )
    return [one.what for one in found], [one.what for one in seen]


def test_whether_a_change_was_cut_off_is_told_by_names_alone() -> None:
    code = "import sys, gitledger.memorystate as m; m.standing('/nowhere', 'main'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert {"gitledger.memorystate", "os"} <= set(loaded)
    assert {"json", "pydantic", "markdown_it", "gitledger.memory", "gitledger.schema"} & set(loaded) == set()


def test_a_kill_that_is_followed_by_an_edit_is_told_as_it_was(book: Ledger, repo: Repo, file: Path) -> None:
    def work() -> None:
        memory._commit = lambda *words: os._exit(9)  # type: ignore[assignment]
        apply(again(repo), change(fact(5)))

    assert told_of(repo) == ([], [])
    assert killed(work) == 9
    found, seen = told_of(repo)
    assert [one.partition(";")[0] for one in found] == ["a change of a memory file was cut off, or under way just now"]
    assert seen == found
    file.write_text(file.read_text() + "- appended\n")
    assert ["cut off; it is M-0001 now" in one.what for one in memory.recover(again(repo))] == [True]
    assert told_of(repo) == ([], [])
    assert file.read_text() == TEXT.replace(f"{fact(5)}\n", "") + "- appended\n"
    memoryundo.undo(again(repo), "M-0001")
    assert file.read_text() == TEXT + "- appended\n"
    sound(book)


@pytest.mark.parametrize("step", ["swap", "exchange"])
def test_a_change_that_was_cut_off_is_ended_in_a_repository_that_was_moved_since(
    book: Ledger, repo: Repo, file: Path, step: str
) -> None:
    def work() -> None:
        real = getattr(memoryfile, step)
        setattr(memoryfile, step, lambda *words: (step == "exchange" and real(*words), os._exit(9)))
        apply(again(repo), change(fact(5)))

    assert killed(work) == 9
    moved = Repo(repo.path.rename(repo.path.with_name("elsewhere")))
    there = moved.path / "memory" / "MEMORY.md"
    made = step == "exchange"
    wanted = TEXT.replace(f"{fact(5)}\n", "") if made else TEXT
    assert [("M-0001 now" in one.what) for one in memory.recover(again(moved))] == [made]
    assert (there.read_text(), again(moved).view().manifest.numbers.get("M", 0)) == (wanted, int(made))
    apply(again(moved), change(fact(6)))
    assert left_over(again(moved), there) == []
    sound(again(moved))


def test_a_change_that_was_cut_off_holds_nothing_up_where_its_folder_is_gone(
    book: Ledger, repo: Repo, file: Path
) -> None:
    def work() -> None:
        memory._commit = lambda *words: os._exit(9)  # type: ignore[assignment]
        apply(again(repo), change(fact(5)))

    assert killed(work) == 9
    for path in file.parent.iterdir():
        path.unlink()
    file.parent.rmdir()
    assert ["M-0001 now" in one.what for one in memory.recover(again(repo))] == [True]
    told = memoryrecord.told(again(repo).view(), again(repo).view().resolve("M-0001", layout.MEMORY))
    assert told.before is not None  # all that is left of the file
    assert told.before.data() == TEXT.encode()
    file.parent.mkdir()
    file.write_text(TEXT)
    apply(again(repo), change(fact(6)))
    assert left_over(book, file) == []
    sound(book)


def test_bytes_that_nothing_tells_of_do_not_stay(book: Ledger, repo: Repo, file: Path) -> None:
    from gitledger import pins

    def work() -> None:
        real = pins.write_private

        def write(path: str, data: bytes) -> None:
            real(path, data)
            if path.endswith(".bytes"):
                os._exit(9)

        pins.write_private = write
        apply(again(repo), change(fact(5)))

    assert killed(work) == 9
    assert [name.endswith(".bytes") for name in left_over(book, file) if not name.startswith(".")] == [True]
    apply(again(repo), change(fact(5)))
    assert left_over(book, file) == []


# ── undo ─────────────────────────────────────────────────────────────────────────────────────
def test_an_undo_puts_back_every_byte_whatever_was_changed_elsewhere(book: Ledger, file: Path) -> None:
    raw = "\ufeff# A\r\n\r\n- ein\tFakt ü\r\n- two\n- 三\r\n\r\n### S\r\n- x y z\r\n- x y w\r\n\r\n- the last line"
    raw += " of a file that has more than twice what goes from it, by all these words and some more of them behind them"
    file.write_bytes(raw.encode())
    apply(book, change("- two\n- 三"), change("- x y z", "- x y w", kind="merge", replacement="- x y z w"))
    apply(book, change("- ein\tFakt ü"))
    file.write_bytes(file.read_bytes().replace(b"# A", b"# Another title") + b"\r\n- at the end")
    memoryundo.undo(book, "M-0001")
    now = raw.replace("# A", "# Another title") + "\r\n- at the end"
    assert file.read_bytes().decode() == now.replace("- ein\tFakt ü\r\n", "")
    memoryundo.undo(book, "M-0002")
    assert file.read_bytes().decode() == now
    sound(book)


def test_an_undo_names_the_later_change_that_stands_in_the_way(book: Ledger, file: Path) -> None:
    apply(book, change(fact(5), kind="detail", replacement="- fact 5"))
    apply(book, change("- fact 5"))
    before = file.read_bytes()
    with pytest.raises(NotAllowed, match="M-0001 cannot be undone: M-0002 changed the same lines later"):
        memoryundo.undo(book, "M-0001")
    assert file.read_bytes() == before
    memoryundo.undo(book, "M-0002")
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == TEXT


def test_an_undo_says_where_something_else_stands_in_the_way(book: Ledger, file: Path) -> None:
    apply(book, change(fact(5), kind="detail", replacement="- fact 5"))
    file.write_text(file.read_text().replace("- fact 5\n", "- fact five\n"))
    with pytest.raises(
        NotAllowed, match="line 5 of the file as it was then were changed since M-0001 by something else"
    ):
        memoryundo.undo(book, "M-0001")
    assert "- fact five" in file.read_text()


@pytest.mark.parametrize("gone", [(1,), (5,), (5, 6), (40,)])
def test_an_undo_puts_nothing_beside_the_same_lines_that_somebody_put_back(
    book: Ledger, file: Path, gone: tuple[int, ...]
) -> None:
    text = TEXT.replace("\n", "\n\n")
    block = "\n\n".join(fact(n) for n in gone)
    file.write_text(text)
    apply(book, change(block), change(fact(20)))
    left = file.read_text()
    for theirs in (text, f"{text}- and more\n", left.replace("\n\n\n", f"\n\n{fact(20)}\n\n")):
        file.write_text(theirs)
        tip = book.tip()
        with pytest.raises(NotAllowed, match="lines that it took away stand in the file again, at line"):
            memoryundo.undo(book, "M-0001")
        assert (file.read_text(), book.tip(), left_over(book, file)) == (theirs, tip, [])
    file.write_text(left)
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == text


def test_an_undo_minds_no_like_line_far_from_its_place(book: Ledger, file: Path) -> None:
    apply(book, change(fact(5)))
    file.write_text(f"{file.read_text()}\n# Elsewhere\n\n{fact(5)}\n")
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == f"{TEXT}\n# Elsewhere\n\n{fact(5)}\n"


def test_an_undo_can_be_undone_and_is_refused_twice(book: Ledger, file: Path) -> None:
    apply(book, change(fact(5)))
    memoryundo.undo(book, "M-0001")
    with pytest.raises(NotAllowed, match="undone already, by M-0002"):
        memoryundo.undo(book, "M-0001")
    memoryundo.undo(book, "M-0002")
    assert fact(5) not in file.read_text()
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == TEXT
    statuses = [row["status"] for _, row in book.view().walk(layout.MEMORY)]
    assert statuses == ["undone", "undone", "applied", "applied"]
    sound(book)


def test_an_undo_restores_what_went_at_the_ends_of_a_file(book: Ledger, file: Path) -> None:
    file.write_text(TEXT.rstrip("\n"))
    apply(book, change(fact(1)), change(fact(40)))
    file.write_text("- before\n" + file.read_text() + "- behind\n")
    memoryundo.undo(book, "M-0001")
    assert sorted(file.read_text().split("\n")) == sorted([*TEXT.split("\n"), "- before", "- behind"])


# ── what may not travel ──────────────────────────────────────────────────────────────────────
def test_a_secret_of_the_file_is_in_no_object_and_comes_back_here(book: Ledger, repo: Repo, file: Path) -> None:
    token = "gh" + "p_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    raw = TEXT + f"- the token is {token}\n- PIN of the door: 1234\n"
    file.write_text(raw)
    made = apply(book, change(f"- the token is {token}"), change(fact(5)))
    objects = repo.git("rev-list", "--objects", "ledger/main").splitlines()
    for row in objects:
        oid = row.split()[0]
        if repo.git("cat-file", "-t", oid) != "tree":
            data = repo.git("cat-file", "-p", oid)
            assert token not in data
            # By the digest of the file one could try all PINs.
            assert memoryfile.digest(raw.encode()) not in data
    assert token not in "".join(_lines(book))
    kept = Path(memorykept.kept_path(book, made.key))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    away = kept.rename(kept.with_suffix(".away"))
    with pytest.raises(Missing, match="its file held a secret, so its bytes are where"):
        memoryundo.undo(book, "M-0001")
    away.rename(kept)
    memoryundo.undo(book, "M-0001")
    assert file.read_text() == raw
    sound(book)


def test_a_strangers_text_is_put_into_no_file(book: Ledger, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(book, change(fact(5)))
    from gitledger import pins

    mine = pins.load(book.desk.home.pins, "main")
    assert mine is not None
    import dataclasses

    pins.save(book.desk.home.pins, "main", dataclasses.replace(mine, fingerprints=("SHA256:x",), verified=""))
    with pytest.raises(NotAllowed, match="whose text is put into no file here"):
        memoryundo.undo(book, "M-0001")
    assert fact(5) not in file.read_text()


# ── several clones, and records that are not what they should be ─────────────────────────────
def test_changes_made_apart_meet_and_either_clone_takes_its_own_back(tmp_path: Path) -> None:
    from tests import convergence

    pair = convergence.pair(tmp_path / "fleet", 7)
    texts = []
    for n, (repo, ledger) in enumerate(zip(pair.clones, pair.ledgers, strict=True), 1):
        path = repo.path / "memory" / "MEMORY.md"
        path.parent.mkdir()
        path.write_text(TEXT)
        apply(ledger, change(fact(n)))
        texts.append(path)
    pair.settle()
    assert pair.ledgers[0].tip() == pair.ledgers[1].tip()
    assert len(list(pair.ledgers[0].view().walk(layout.MEMORY))) == 2
    for path, ledger in zip(texts, pair.ledgers, strict=True):
        memoryundo.undo(ledger, "M-0001")  # of two that have the number, one's own
        assert path.read_text() == TEXT
        sound(ledger)


ODD = (None, True, -1, 1 << 60, "\u202e\n# x", ["a"], {"a": 1})


def test_a_record_with_fields_of_any_kind_is_shown_and_never_put_into_a_file(book: Ledger, file: Path) -> None:
    from gitledger.model import Change, Draft
    from gitledger.redact import redact
    from gitledger.render import documents
    from gitledger.transaction import Plan

    mint = book.desk.mint
    names = ("path", "how", "status", "exact", "undoes", "undone_by", "source_sha256", "bytes_before", "title")
    rows = ("n", "change", "kind", "reason", "line", "lines", "text", "put", "held_at")

    def build(view: Any) -> Plan:
        said = []
        for n, odd in enumerate(ODD, 1):
            key = layout.key_of(layout.MEMORY, n, book.desk.writer.id)
            items = {
                "edits": {f"e1@{book.desk.writer.id}": dict.fromkeys(rows, odd)},
                "before": {"f1@aaaa": {"n": odd, "text": odd}},
            }
            fields = {**dict.fromkeys(names, odd), "at": mint.at(), "by": book.desk.writer.id}
            said.append(Draft(mint.id(), mint.at(), "memory.applied", records={key: Change(fields, items)}))
        return Plan("memory", tuple(said), redact("odd"))

    assert book.commit(build) is not None
    view = book.view()
    for key, _ in view.walk(layout.MEMORY):
        assert all(data.endswith(b"\n") for data in documents.files(view, key).values())
        with pytest.raises(LedgerError):
            memoryundo.undo(book, view.name(key))
    assert file.read_text() == TEXT
    sound(book)
