"""Whom a clone believes: first contact, the trust list, and the words of strangers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import briefing, discover, entries, genesis, keys, layout, objects, pins, tasks, verify
from gitledger.errors import BadConfig, BadData, LedgerError, NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft
from gitledger.pins import Pins
from gitledger.redact import redact
from gitledger.transaction import Plan
from tests.ledgers import Clock, again, begin, do, mint, tamper
from tests.sealed import Repo
from tests.test_config_command import run

STRANGER = "SHA256:" + "A" * 43


@pytest.fixture
def as_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Be another user from now on: other keys, everything else the same."""

    def be(name: str) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / f"data-{name}"))

    return be


@pytest.fixture
def two(repo: Repo, tmp_path: Path, as_user: Callable[[str], None]) -> tuple[Ledger, Repo]:
    """Ada's ledger, and a clone that Bob has not joined yet; Bob is at work."""
    as_user("ada")
    book = begin(repo)
    other = repo.clone(tmp_path / "other")
    other.git("branch", "ledger/main", "origin/ledger/main")
    as_user("bob")
    return book, other


def bring(repo: Repo, other: Repo) -> None:
    """Take the ledger's branch from `repo` over into `other`, where it has moved on from there."""
    other.git("fetch", "--quiet", str(repo.path), "ledger/main:ledger/main")


def list_(repo: Repo, capfd: pytest.CaptureFixture[str]) -> dict[str, object]:
    capfd.readouterr()
    run(repo.path, "trust", "list", "--json")
    return json.loads(capfd.readouterr().out)


# ── the file ─────────────────────────────────────────────────────────────────────────────────
PINS = Pins("u", "g" * 40, ("SHA256:a",), founder="SHA256:f", revoked=(("SHA256:r", "c" * 40),))


@pytest.mark.parametrize(
    "other",
    [
        replace(PINS, uuid="v"),
        replace(PINS, genesis="h" * 40),
        replace(PINS, founder="SHA256:g"),
        replace(PINS, fingerprints=()),
        replace(PINS, fingerprints=("SHA256:a", "SHA256:b")),
        replace(PINS, revoked=()),
        replace(PINS, revoked=(("SHA256:r", "d" * 40),)),
        replace(PINS, revoked=(("SHA256:a", "c" * 40),)),
        replace(PINS, fingerprints=("SHA256:a", "SHA256:r"), revoked=()),
    ],
)
def test_a_verdict_counts_for_nothing_under_another_trust_list(other: Pins) -> None:
    tip = "e" * 40
    assert PINS.remember(tip).remembers(tip)
    assert not replace(other, verified=tip, under=PINS.digest()).remembers(tip)


def test_the_order_in_which_keys_were_named_changes_no_verdict() -> None:
    rows = (("SHA256:x", "1" * 40), ("SHA256:y", ""))
    a = replace(PINS, fingerprints=("SHA256:a", "SHA256:b"), revoked=rows)
    assert a.digest() == replace(a, fingerprints=("SHA256:b", "SHA256:a"), revoked=rows[::-1]).digest()


def test_pins_come_back_as_they_were_saved_and_other_ledgers_stay(tmp_path: Path) -> None:
    path = str(tmp_path / "trust.json")
    pins.save(path, "main", PINS.remember("e" * 40))
    pins.save(path, "docs", replace(PINS, uuid="w", revoked=(("SHA256:r", ""),)))
    assert pins.load(path, "main") == PINS.remember("e" * 40)
    assert pins.load(path, "docs") == replace(PINS, uuid="w", revoked=(("SHA256:r", ""),))
    assert pins.load(path, "more") is None
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_trust_list_of_the_first_format_is_read_and_a_later_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trust.json"
    row = {"uuid": "u", "genesis": "g", "fingerprints": ["SHA256:a"], "verified": "t", "under": "x"}
    path.write_text(json.dumps({"format": 1, "ledgers": {"main": row}}))
    mine = pins.load(str(path), "main")
    assert mine == Pins("u", "g", ("SHA256:a",), "t", "x")
    assert not mine.remembers("t"), "what that verdict rested on was told in another way"
    pins.save(str(path), "docs", PINS)
    assert pins.load(str(path), "main") == mine
    path.write_text(json.dumps({"format": 3, "ledgers": {"main": row}}))
    for step in (lambda: pins.load(str(path), "main"), lambda: pins.save(str(path), "main", PINS)):
        with pytest.raises(BadConfig, match="format 3"):
            step()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": true, "ledgers": 5}', '{"ledgers": {}}'])
def test_a_file_that_is_no_trust_list_is_one_error_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)
    with pytest.raises(BadConfig, match="gitledger"):
        pins.load(str(path), "main")
    with pytest.raises(BadConfig, match="gitledger"):
        pins.save(str(path), "main", PINS)
    assert path.read_text() == text


# ── first contact ────────────────────────────────────────────────────────────────────────────
def test_first_contact_pins_what_the_ledger_is_and_trusts_this_clones_key_alone(two: tuple[Ledger, Repo]) -> None:
    book, other = two
    begun = discover.init(str(other.path), "main", None, expect=own_of(book))
    assert begun.joined
    assert begun.founder == genesis.Founder(book.view().manifest.uuid, book.tip(), book.desk.writer.id, own_of(book))
    mine = keys.pinned(again(other).desk)
    assert (mine.uuid, mine.genesis, mine.founder) == (begun.uuid, book.tip(), own_of(book))
    assert mine.fingerprints == (begun.fingerprint,) != (own_of(book),)


def own_of(book: Ledger) -> str:
    """The fingerprint that the ledger has for a clone's writer."""
    return book.view().need(layout.writer_key(book.desk.writer.id)).text("fingerprint")


def test_another_founder_than_expected_is_refused_and_nothing_is_written(
    two: tuple[Ledger, Repo], monkeypatch: pytest.MonkeyPatch
) -> None:
    book, other = two
    before = other.git("for-each-ref")
    for way in ({"expect": STRANGER}, {}):
        with pytest.raises(NotAllowed, match=f"{re.escape(own_of(book))}, not with {STRANGER}; nothing was written"):
            discover.init(str(other.path), "main", None, **way)
        monkeypatch.setenv("GITLEDGER_EXPECT", STRANGER)
    assert other.git("for-each-ref") == before
    assert not (other.path / ".git" / "gitledger").exists()
    assert not Path(os.environ["XDG_DATA_HOME"]).exists(), "no key was made for a ledger that is not the one meant"
    monkeypatch.setenv("GITLEDGER_EXPECT", own_of(book))
    assert discover.init(str(other.path), "main", None).joined


def test_a_ledger_that_is_not_there_cannot_be_the_one_that_is_expected(repo: Repo) -> None:
    with pytest.raises(NotAllowed, match="no branch ledger/main to compare"):
        discover.init(str(repo.path), "main", None, expect=STRANGER)
    assert repo.git("for-each-ref", "refs/heads/ledger") == ""
    assert not (repo.path / ".git" / "gitledger").exists()


@pytest.mark.parametrize("text", [STRANGER[:-1], "SHA256:", "x" * 60, "MD5:" + "0" * 32, "\x1b[31m"])
def test_a_part_of_a_fingerprint_proves_nothing_and_is_refused(two: tuple[Ledger, Repo], text: str) -> None:
    with pytest.raises(BadData, match="no whole fingerprint"):
        discover.init(str(two[1].path), "main", None, expect=text)


def test_a_first_commit_that_its_key_did_not_sign_is_no_first_contact(two: tuple[Ledger, Repo]) -> None:
    book, other = two
    store = book.desk.store
    first = objects.parse_commit(store.get(book.tip()).data)
    signature = first.signatures[0]
    for forged in (
        replace(first, signatures=()),
        replace(first, signatures=(signature, signature)),
        replace(first, message=first.message.replace("Begin", "Began")),
    ):
        data = objects.format_commit(forged)
        oid = other.git("hash-object", "-w", "-t", "commit", "--stdin", input=data)
        other.git("update-ref", "refs/heads/ledger/main", oid)
        with pytest.raises(NotAllowed):  # BadSignature is one
            discover.init(str(other.path), "main", None)
        assert not (other.path / ".git" / "gitledger").exists()


def test_init_prints_whose_ledger_it_joins(two: tuple[Ledger, Repo], capfd: pytest.CaptureFixture[str]) -> None:
    book, other = two
    run(other.path, "init")
    out = capfd.readouterr().out
    assert f"Begun by: {book.desk.writer.id} with the key {own_of(book)}\n" in out
    assert "gitledger trust list" in out


# ── the list ─────────────────────────────────────────────────────────────────────────────────
def test_keys_that_the_ledger_carries_are_listed_and_not_trusted(
    two: tuple[Ledger, Repo], capfd: pytest.CaptureFixture[str]
) -> None:
    book, other = two
    discover.init(str(other.path), "main", None)
    found = list_(other, capfd)
    status = {row["writer"]: row["status"] for row in found["writers"]}
    me = again(other).desk.writer.id
    assert status == {book.desk.writer.id: "unknown", me: "trusted"}
    assert found["genesis"] == {"commit": book.tip(), "fingerprint": own_of(book), "writer": book.desk.writer.id}
    assert found["writer"] == me
    run(other.path, "trust", "list")
    out = capfd.readouterr().out
    assert f"unknown: its words are withheld; accept it with: gitledger trust add {book.desk.writer.id}" in out
    assert "this clone; trusted here" in out


def test_a_record_that_lies_about_its_fingerprint_is_listed_by_its_key(two: tuple[Ledger, Repo]) -> None:
    book, other = two
    discover.init(str(other.path), "main", None)
    mine = again(other)
    path = f"keys/{book.desk.writer.id}.json"
    data = objects.read(mine.desk.store.get, mine.tip(), path)
    assert data
    tamper(mine, {path: data.replace(own_of(book).encode(), own_of(mine).encode())})
    (row,) = [
        one for one in keys.listed(mine.desk, mine.tip(), keys.pinned(mine.desk)) if one.writer == book.desk.writer.id
    ]
    assert row.fingerprint == own_of(book)
    assert not row.trusted


def test_a_writer_is_accepted_by_its_whole_fingerprint_and_refused_by_another(
    two: tuple[Ledger, Repo], capfd: pytest.CaptureFixture[str]
) -> None:
    book, other = two
    discover.init(str(other.path), "main", None)
    name = book.desk.writer.id
    before = (other.path / ".git" / "gitledger" / "trust.json").read_bytes()
    for words, error in (
        (["add", name, "--expect", STRANGER], NotAllowed),
        (["add", name, "--expect", own_of(book)[:20]], BadData),
        (["add", name], NotAllowed),  # nobody is at a terminal
        (["add", "nobody"], BadData),
        (["add", own_of(book)[:-2]], BadData),
        (["add", own_of(book), "--expect", STRANGER], NotAllowed),
    ):
        with pytest.raises(error):
            run(other.path, "trust", *words)
    assert (other.path / ".git" / "gitledger" / "trust.json").read_bytes() == before
    run(other.path, "trust", "add", name, "--expect", own_of(book))
    assert own_of(book) in keys.pinned(again(other).desk).fingerprints
    run(other.path, "trust", "remove", name)
    assert own_of(book) not in keys.pinned(again(other).desk).fingerprints
    run(other.path, "trust", "add", own_of(book))
    assert own_of(book) in keys.pinned(again(other).desk).fingerprints
    assert f"writer {name}" in capfd.readouterr().out


@pytest.mark.process
@pytest.mark.parametrize(("answer", "accepted"), [("y", True), ("n", False), ("", False)])
def test_a_person_at_a_terminal_is_shown_the_fingerprint_and_asked(
    two: tuple[Ledger, Repo], answer: str, accepted: bool
) -> None:
    import pty

    book, other = two
    discover.init(str(other.path), "main", None)
    parent, child = pty.openpty()
    os.write(parent, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "gitledger", "trust", "add", book.desk.writer.id],
        cwd=other.path,
        stdin=child,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        timeout=300,
        check=False,
    )
    os.close(parent)
    os.close(child)
    assert own_of(book).encode() in done.stdout
    assert (done.returncode == 0) is accepted
    assert (own_of(book) in keys.pinned(again(other).desk).fingerprints) is accepted


def test_this_clones_own_key_is_neither_removed_nor_revoked_by_accident(two: tuple[Ledger, Repo]) -> None:
    _, other = two
    discover.init(str(other.path), "main", None)
    for word in ("remove", "revoke"):
        with pytest.raises(NotAllowed, match="gitledger trust rotate"):
            run(other.path, "trust", word, again(other).desk.writer.id)


def test_only_who_holds_a_key_ends_it_for_everybody(two: tuple[Ledger, Repo]) -> None:
    book, other = two
    discover.init(str(other.path), "main", None)
    tip = again(other).tip()
    with pytest.raises(NotAllowed, match="only who holds the key"):
        run(other.path, "trust", "revoke", book.desk.writer.id, "--in-ledger", "--yes")
    assert again(other).tip() == tip


# ── verdicts under it ────────────────────────────────────────────────────────────────────────
def test_what_was_found_good_is_checked_again_once_the_trust_list_changed(two: tuple[Ledger, Repo]) -> None:
    book, other = two
    discover.init(str(other.path), "main", None)
    mine = again(other)
    first = verify.verify(mine.desk, mine.tip())
    assert (first.checked, first.verdict) == (2, "unknown signer")
    assert verify.verify(mine.desk, mine.tip()).checked == 0
    for words in (["add", book.desk.writer.id, "--yes"], ["revoke", book.desk.writer.id], ["remove", own_of(book)]):
        run(other.path, "trust", *words)
        assert verify.verify(mine.desk, mine.tip()).checked == 2, words
        assert verify.verify(mine.desk, mine.tip()).checked == 0, words


def test_a_revoked_key_counts_up_to_its_place_in_the_chain(
    two: tuple[Ledger, Repo], repo: Repo, as_user: Callable[[str], None]
) -> None:
    book, other = two
    as_user("ada")
    old = book.checkpoint("before").commit
    as_user("bob")
    bring(repo, other)
    discover.init(str(other.path), "main", None)
    mine = again(other)
    run(other.path, "trust", "add", book.desk.writer.id, "--yes")
    run(other.path, "trust", "revoke", book.desk.writer.id)
    assert verify.verify(mine.desk, mine.tip()).verdict == "verified", "all of it was there before"
    run(other.path, "trust", "revoke", book.desk.writer.id, "--from", old[:12])
    assert keys.pinned(mine.desk).revoked == ((own_of(book), keys.pinned(mine.desk).genesis),)
    bad = [fault for fault in verify.verify(mine.desk, mine.tip()).findings if fault.rule == "revoked"]
    assert [fault.commit for fault in bad] == [old]
    run(other.path, "trust", "revoke", book.desk.writer.id, "--from", keys.pinned(mine.desk).genesis)
    assert keys.pinned(mine.desk).revoked == ((own_of(book), ""),)
    assert len([f for f in verify.verify(mine.desk, mine.tip()).findings if f.rule == "revoked"]) == 2
    run(other.path, "trust", "add", book.desk.writer.id, "--yes")
    assert keys.pinned(mine.desk).revoked == ()
    assert verify.verify(mine.desk, mine.tip()).verdict == "verified"
    with pytest.raises(LedgerError, match="no commit of this ledger"):
        run(other.path, "trust", "revoke", book.desk.writer.id, "--from", "0" * 40)


# ── a stranger's words ───────────────────────────────────────────────────────────────────────
EVIL = "evil words"


def seen(book: Ledger) -> str:
    """All that a session and a person are shown."""
    from gitledger import capsule
    from gitledger.render.status import status

    asked = "the words title task goal next criterion blocker question T-0001 B-0001 Q-0001 C-000001 H-000001"
    return briefing.briefing(book) + status(briefing.gather(book)) + capsule.compose(book, asked).text


@pytest.fixture
def strangers(two: tuple[Ledger, Repo], repo: Repo, as_user: Callable[[str], None]) -> tuple[Ledger, Ledger]:
    """Ada's ledger with words in every place, as Bob has joined it; Bob is at work."""
    _, other = two
    as_user("ada")
    clock = Clock()
    book = again(repo, clock)
    project = Change({"title": f"{EVIL} title", "goal": f"{EVIL} goal", "description": f"{EVIL} text"})
    policy = Change({"evil words": "evil words", "briefing": {"evil words": 5}, "briefing.lines": "evil words"})
    missing = Change({"missing": {"at": "2026-11-30T10:00:00.000Z", "reason": EVIL}})
    do(book, lambda view, hand: hand.draft("project.edited", {layout.PROJECT: project}))
    do(book, lambda view, hand: hand.draft("config.set", {layout.CONFIG: policy}))
    task = do(book, tasks.add, f"{EVIL} task", goal=f"{EVIL} goal", accept=(f"{EVIL} criterion",))
    do(book, tasks.start, task)
    do(book, tasks.set_next, task, f"{EVIL} next")
    do(book, entries.block, f"{EVIL} blocker", None)
    do(book, entries.ask, f"{EVIL} question", None)
    repo.git("switch", "--quiet", "--create", "evil-branch")
    book.write_handover()
    repo.git("switch", "--quiet", "main")
    book.write_handover()
    do(book, lambda view, hand: hand.draft("checkpoint.missing", {layout.PROJECT: missing}))
    book.commit(lambda view: Plan("memory", (), redact("More")))
    bring(repo, other)
    as_user("bob")
    discover.init(str(other.path), "main", None, mint=mint(clock))
    return book, again(other, clock)


def test_no_word_of_a_stranger_is_in_briefing_or_status_until_a_person_accepts_it(
    strangers: tuple[Ledger, Ledger],
) -> None:
    book, mine = strangers
    ada, place = book.desk.writer.id, Path(mine.gitdir.top)
    (task,) = [key for key, _ in mine.view().walk(layout.TASK)]
    at = {layout.worktree_key(mine.desk.writer.id, "main"): Change({"name": "main", "active": task})}
    do(mine, lambda view, hand: hand.draft("task.active", at))
    text = seen(mine)
    assert "evil" not in text
    for said in ("T-0001", "H-000002", "B-0001", "Q-0001", "C-000002", "CHECKPOINT MISSING", "trust list", ada):
        assert said in text, said
    run(place, "trust", "add", ada, "--expect", own_of(book))
    text = seen(mine)
    assert "unknown key (the ledger's configuration: evil words)" in text
    for said in ("title", "task", "goal", "next", "criterion", "blocker", "question"):
        assert f"{EVIL} {said}" in text, said
    assert "evil-branch" in text
    run(place, "trust", "remove", ada)
    assert "evil" not in seen(mine)


def test_a_strangers_handover_is_shown_whole_under_a_line_that_says_whose_it_is(
    strangers: tuple[Ledger, Ledger], capfd: pytest.CaptureFixture[str]
) -> None:
    book, mine = strangers
    place = Path(mine.gitdir.top)
    run(place, "handover", "show")
    first, _, rest = capfd.readouterr().out.partition("\n")
    assert first.startswith(f"Written by {book.desk.writer.id}, whose key this machine does not trust")
    assert f"{EVIL} next" in rest
    run(place, "handover", "show", "--json")
    assert json.loads(capfd.readouterr().out)["authenticity"] == "unknown signer"
    run(place, "trust", "add", book.desk.writer.id, "--yes")
    capfd.readouterr()
    run(place, "handover", "show")
    assert "Written by" not in capfd.readouterr().out.splitlines()[0]


def test_each_field_goes_by_who_set_it(two: tuple[Ledger, Repo], repo: Repo, as_user: Callable[[str], None]) -> None:
    """Ada's task, of which Bob changes some: only his words are withheld from Ada."""
    book, other = two
    as_user("ada")
    task = do(book, tasks.add, "My title", goal="My goal", accept=("My criterion", "My other criterion"))
    do(book, tasks.start, task)
    do(book, tasks.set_next, task, "My next")
    book.checkpoint()
    bring(repo, other)
    as_user("bob")
    discover.init(str(other.path), "main", None)
    theirs = again(other)

    def edit(view: object, hand: tasks.Hand) -> Draft:
        change = Change(
            {"title": EVIL},
            {
                "criteria": {"c1@" + book.desk.writer.id: {"dropped": True}, f"c3@{hand.writer}": {"text": EVIL}},
                "evidence": {
                    f"e1@{hand.writer}": {
                        "criterion": "c2@" + book.desk.writer.id,
                        "kind": "run",
                        "command": EVIL,
                        "exit": 0,
                        "at": hand.mint.at(),
                    }
                },
            },
        )
        return Draft(hand.mint.id(), hand.mint.at(), "task.edited", records={task: change})

    do(theirs, edit)
    theirs.checkpoint()
    as_user("ada")
    bring(other, repo)
    mine = again(repo)
    text = seen(mine)
    assert "evil" not in text
    for said in ("My goal", "My next", "My criterion", "My other criterion", "0 of 2"):
        assert said in text, said
    assert "title is withheld" in text
    assert "1 more criterion is withheld" in text
    assert "1 more by writers that are not trusted here" in text


def test_a_strangers_newer_handover_takes_no_next_action_away(
    two: tuple[Ledger, Repo], repo: Repo, as_user: Callable[[str], None]
) -> None:
    book, other = two
    as_user("ada")
    clock = Clock()
    book = again(repo, clock)
    task = do(book, tasks.add, "My title")
    do(book, tasks.start, task)
    do(book, tasks.set_next, task, "My next")
    book.checkpoint()
    bring(repo, other)
    as_user("bob")
    discover.init(str(other.path), "main", None, mint=mint(clock))
    other.git("switch", "--quiet", "--create", "elsewhere")
    again(other, clock).write_handover()
    as_user("ada")
    bring(other, repo)
    assert "My next" in seen(again(repo, clock))
