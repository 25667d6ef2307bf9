"""What doctor looks at: each warning is seen where there is reason for it, and not where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitledger import config, doctor, entries, remote, sync, wal
from gitledger.ledger import Ledger
from tests.ledgers import again, begin, do
from tests.sealed import Repo


@pytest.fixture
def book(repo: Repo, tmp_path: Path) -> Ledger:
    """A ledger that is backed up to a bare remote which takes neither force nor deletion."""
    bare = Repo(tmp_path / "remote.git")
    repo.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare.path))
    for key in ("receive.denyNonFastForwards", "receive.denyDeletes"):
        bare.git("config", key, "true")
    repo.git("remote", "add", "origin", str(bare.path))
    repo.git("push", "--quiet", "origin", "main")
    ledger = begin(repo)
    config.set_value(config.clone_path(ledger.gitdir.common), "remote.name", "origin")
    sync.sync(ledger, remote.read("origin"))
    return again(repo)


def worrying(book: Ledger) -> set[tuple[str, str]]:
    """Name and state of what is not as it should be."""
    book.desk.store.close()
    return {(c.name, c.state) for c in doctor.checks(book) if c.state in ("warning", "fault")}


def test_a_clone_that_is_as_it_should_be_worries_nobody(book: Ledger) -> None:
    assert worrying(book) == set()
    assert {c.name for c in doctor.checks(book)} >= {
        "git",
        "ledger",
        "trust",
        "key",
        "log",
        "remote",
        "server",
        "git push",
    }


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("config", "remote.origin.mirror", "true"), "git push"),
        (("config", "remote.origin.push", "refs/heads/*:refs/heads/*"), "git push"),
        (("config", "remote.origin.push", "+refs/*:refs/*"), "git push"),
        (("config", "push.default", "matching"), "git push"),
        (("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/ledger/main"), "default branch"),
        (("symbolic-ref", "HEAD", "refs/heads/ledger/main"), "work tree"),
        (("--git-dir=../remote.git", "config", "receive.denyDeletes", "false"), "server"),
        (("--git-dir=../remote.git", "config", "--unset", "receive.denyNonFastForwards"), "server"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else None,
)
def test_what_would_harm_the_ledger_is_named(book: Ledger, repo: Repo, words: tuple[str, ...], name: str) -> None:
    repo.git(*words)
    assert worrying(book) == {(name, "warning")}


def test_a_push_rule_for_other_branches_is_none_of_its_business(book: Ledger, repo: Repo) -> None:
    repo.git("config", "remote.origin.push", "refs/heads/main:refs/heads/main")
    assert worrying(book) == set()


def test_a_key_that_others_can_read_is_a_fault(book: Ledger) -> None:
    os.chmod(book.desk.writer.key.path, 0o644)  # type: ignore[attr-defined]
    assert ("key", "fault") in worrying(book)


def test_what_a_hook_could_not_do_and_what_is_not_pushed_is_told(book: Ledger, repo: Repo) -> None:
    (Path(book.desk.home.state) / "log").write_text("2026-11-30T00:00:00.000Z no space left\n")
    do(book, entries.note, "One", None)
    book.checkpoint()
    told = {c.name: c for c in doctor.checks(again(repo))}
    assert "no space left" in told["hooks' log"].what
    assert "1 commits not pushed" in told["remote"].what


def test_damage_of_the_log_is_named(book: Ledger) -> None:
    do(book, entries.note, "One", None)
    path = Path(book.desk.home.wal) / "current.wal"
    path.write_bytes(b"GL1 00000000 damage\n" + path.read_bytes())
    assert ("log", "warning") in worrying(book)
    wal.seal(book.desk.home.wal)
    book.checkpoint()
    assert ("log", "warning") in worrying(book)  # what was damaged is kept, and doctor says where


def test_a_proposer_that_is_no_program_and_reports_without_their_library_are_told(
    book: Ledger, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen(name: str) -> list[tuple[str, str]]:
        return [(c.state, c.what) for c in doctor.checks(again(repo)) if c.name == name]

    def say(key: str, value: str) -> None:
        config.set_value(config.clone_path(book.gitdir.common), key, value)

    assert seen("proposer") == [("note", "none is named, so checkpoints are derived")]
    assert seen("notify") == []
    say("proposer.command", "no-such-program --print")
    assert seen("proposer") == [("warning", "no-such-program is not on PATH")]
    repo.write({"tools/propose": "#!/bin/sh\n"})
    say("proposer.command", "tools/propose")
    path = str(repo.path / "tools/propose")
    assert seen("proposer") == [("warning", f"{path} is no program that may be run")]
    os.chmod(path, 0o755)
    assert seen("proposer") == [("ok", path)]
    say("notify.urls", "tgram://123:secret/456")
    for there, state in ((object(), "ok"), (None, "warning")):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, there=there: there)
        ((found, what),) = seen("notify")
        assert found == state
        assert "1 address" in what
        assert "secret" not in what


def test_a_check_that_cannot_be_made_hides_no_other(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.wal, "pending", lambda folder: (_ for _ in ()).throw(OSError("gone")))
    told = [c.name for c in doctor.checks(book)]
    assert told.index("log") < told.index("size") < told.index("git push")
