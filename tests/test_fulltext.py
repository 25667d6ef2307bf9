"""The index beside the ledger: it follows, it is never in the way, it says nothing that the records do not."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import entries, fulltext, needle, objects, purge, tasks
from gitledger.fulltext import _Useless
from gitledger.ledger import Ledger
from tests.ledgers import again, begin, do
from tests.sealed import Repo


@pytest.fixture
def book(repo: Repo) -> Ledger:
    """A ledger with two tasks and a decision, in a checkpoint."""
    ledger = begin(repo)
    do(ledger, tasks.add, "Refreshing of tokens", goal="A session outlives its token", accept=("it is renewed",))
    do(ledger, tasks.add, "Invoices as PDF", goal="The office prints them")
    do(ledger, entries.decide, "Invoices use A4", "No other paper", ledger.view().resolve("T-0002"), None)
    ledger.checkpoint()
    return ledger


def found(ledger: Ledger, text: str, trusted: list[str] | None = None) -> list[str]:
    view = ledger.view()
    who = list(view.manifest.writers) if trusted is None else trusted
    return [view.name(one.key) for one in fulltext.matches(ledger, view, fulltext.read(text), who)]


def index(ledger: Ledger) -> Path:
    return Path(fulltext.path(ledger))


# ── what it finds ────────────────────────────────────────────────────────────────────────────
def test_words_are_found_in_any_form_and_the_best_comes_first(book: Ledger) -> None:
    assert found(book, "How is a token refreshed?") == ["T-0001"]
    assert found(book, "the invoice's A4 paper") == ["D-0001", "T-0002"]
    assert found(book, "nothing of the kind") == []
    assert found(book, "'\" OR * NEAR( ) - : ^ \0 ") == []


def test_what_is_in_no_commit_yet_is_found_and_what_it_closed_is_not(book: Ledger) -> None:
    assert found(book, "A4 paper") == ["D-0001", "T-0002"]
    view = book.view()
    do(book, entries.decide, "Invoices use letters", "They have paper", view.resolve("T-0002"), view.resolve("D-0001"))
    for _ in range(2):
        assert found(book, "A4 paper") == ["D-0002"]
        book.checkpoint()


def test_words_of_a_writer_who_is_not_trusted_find_nothing(book: Ledger) -> None:
    assert found(book, "paper", []) == []
    assert found(book, "paper", ["zzzzzz"]) == []


def test_without_an_index_the_same_records_are_found(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("How is a token refreshed?", "the invoice's A4 paper", "office", "nothing of the kind")
    before = [found(book, text) for text in asked]

    def useless(file: str) -> sqlite3.Connection:
        raise _Useless("no such module: fts5")

    monkeypatch.setattr(fulltext, "_connect", useless)
    assert [found(book, text) for text in asked] == before


# ── how it follows ───────────────────────────────────────────────────────────────────────────
def test_it_reads_only_what_a_checkpoint_has_changed(book: Ledger) -> None:
    assert fulltext.catch_up(book) == 3
    assert fulltext.catch_up(book) == 0
    for n in range(20):
        do(book, tasks.add, f"Another task {n}")
    book.checkpoint()
    assert fulltext.catch_up(book) == 20
    do(book, tasks.edit, book.view().resolve("T-0007"), fields={"goal": "purple"})
    book.checkpoint()
    read: list[str] = []
    get = book.desk.store.get

    class Watched:
        def __getattr__(self, name: str) -> object:
            return getattr(book.desk.store, name)

        def get(self, oid: str) -> objects.Object:
            read.append(oid)
            return get(oid)

    watched = Ledger(replace(book.desk, store=Watched()), book.gitdir)  # type: ignore[arg-type]
    assert fulltext.catch_up(watched) == 1
    assert len(read) < 30
    assert found(book, "purple") == ["T-0007"]


def test_what_a_checkpoint_says_in_no_other_words_is_not_written_again(book: Ledger) -> None:
    def rows() -> list[int]:
        with closing(sqlite3.connect(index(book))) as database:
            return [row for (row,) in database.execute("SELECT id FROM rows ORDER BY id")]

    task = book.view().resolve("T-0001")
    do(book, tasks.start, task)
    book.checkpoint()
    fulltext.catch_up(book)
    before = rows()
    book.checkpoint()
    assert fulltext.catch_up(book) == 1, "its task's record names the checkpoint"
    assert rows() == before
    do(book, tasks.set_next, task, "Look at the clock")
    book.checkpoint()
    fulltext.catch_up(book)
    assert rows() != before
    assert found(book, "clock") == ["T-0001"]


def test_a_damaged_folder_of_the_ledger_hides_only_what_is_in_it(repo: Repo) -> None:
    ledger = begin(repo, driver="pygit2")  # which keeps each object as a file of its own
    do(ledger, tasks.add, "Refreshing of tokens")
    do(ledger, entries.decide, "Tokens are opaque", "Their form is the server's", None, None)
    ledger.checkpoint()
    folder = (objects.entries(ledger.desk.store.get, ledger.tip()) or {})["decisions"].oid
    (repo.path / ".git/objects" / folder[:2] / folder[2:]).unlink()
    assert found(again(repo), "How is a token refreshed?") == ["T-0001"]


def test_it_is_private(book: Ledger) -> None:
    found(book, "paper")
    for name in fulltext.names("main"):
        assert stat.S_IMODE(index(book).with_name(name).stat().st_mode) == 0o600


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(20_000))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _other_form(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA user_version = 99")


def _no_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE state")


def _lost_tip(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE state SET tip = ?", ("1" * 40,))


def _holes(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 200] = bytes(200)
    path.write_bytes(bytes(data))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [_garbage, _cut, _other_form, _no_tables, _lost_tip, _holes, _empty, _gone])
def test_one_that_is_damaged_or_of_another_form_is_made_anew(book: Ledger, harm: Callable[[Path], None]) -> None:
    found(book, "paper")
    harm(index(book))
    assert found(book, "the invoice's A4 paper") == ["D-0001", "T-0002"]
    assert fulltext.catch_up(book) == 0, "the next query would do it again"


def test_a_link_or_a_folder_in_its_place_is_not_followed(book: Ledger, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE mine(x)")
    before = other.read_bytes()
    index(book).symlink_to(other)
    assert found(book, "paper") == ["D-0001"]
    assert other.read_bytes() == before
    index(book).unlink()
    index(book).mkdir()
    assert found(book, "paper") == ["D-0001"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_disk_that_cannot_be_written_only_makes_it_slower(book: Ledger) -> None:
    folder = index(book).parent
    os.chmod(folder, 0o500)
    try:
        assert found(book, "paper") == ["D-0001"]
        assert not index(book).exists()
    finally:
        os.chmod(folder, 0o700)


def test_another_process_that_holds_it_only_makes_it_slower(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulltext, "PATIENCE", 0.01)
    found(book, "paper")
    do(book, entries.decide, "Paper is white", "It is the cheapest", None, None)
    holder = sqlite3.connect(index(book), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert set(found(book, "paper")) == {"D-0001", "D-0002"}
    book.checkpoint()
    assert set(found(book, "paper")) == {"D-0001", "D-0002"}
    holder.close()
    assert set(found(book, "paper")) == {"D-0001", "D-0002"}


def _ask(path: str, go: object, answers: object) -> None:
    ledger = again(Repo(Path(path)))
    go.wait()  # type: ignore[attr-defined]
    answers.put([found(ledger, "paper") for _ in range(5)])  # type: ignore[attr-defined]


def test_two_processes_may_ask_at_once(book: Ledger, repo: Repo) -> None:
    context = multiprocessing.get_context("fork")
    go, answers = context.Event(), context.Queue()
    children = [context.Process(target=_ask, args=(str(repo.path), go, answers)) for _ in range(3)]
    for child in children:
        child.start()
    go.set()
    told = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
    assert told == [[["D-0001"]] * 5] * 3


def test_a_purge_takes_the_index_along(repo: Repo) -> None:
    ledger = begin(repo)
    do(ledger, entries.note, "the word is Xylophagous-4711-Quasar", None)
    ledger.checkpoint()
    assert found(ledger, "xylophagous") == ["N-0001"]
    secret = needle.of("Xylophagous-4711-Quasar")
    assert str(index(ledger)) in dict(purge.look(ledger.desk, secret).local)
    done = purge.carry_out(ledger.desk, ledger.gitdir.common, secret)
    assert str(index(ledger)) in dict(done.local)
    files = [index(ledger).with_name(name) for name in fulltext.names("main")]
    assert not any(file.exists() for file in files)
    assert found(again(repo), "xylophagous") == []
    assert not any(b"ylophagous" in file.read_bytes() for file in files)
