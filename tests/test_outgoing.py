"""What is about to be pushed is looked through by the second scanner, also what was said before it was switched on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import certificates, entries, layout, objects, outgoing, reading, remote, scanner, schema, sync, syncing
from gitledger.errors import NotAllowed, Unscanned
from gitledger.ledger import Ledger
from tests import certificate, convergence
from tests.convergence import Fleet
from tests.ledgers import again, do
from tests.test_config_command import run
from tests.test_secrets import figma, stand_in

ORIGIN = remote.read("origin")
SECRET = "orchid-harvest-41"
FINDS = f"    return found('7Qf2mX9cVb4Tn8Lw3Zr6Ky1H') + [x for w in ('{SECRET}',) if w in text for x in found(w)]"
"""A scanner that finds the made-up key that it is shown, and a word of ours."""


@pytest.fixture
def pair(tmp_path: Path) -> Fleet:
    return convergence.pair(tmp_path / "fleet", 11)


def switched(ledger: Ledger, name: str = "betterleaks") -> None:
    config = replace(ledger.desk.config, secrets=schema.Secrets(name))  # type: ignore[arg-type]
    ledger.desk = replace(ledger.desk, config=config)


def there(pair: Fleet) -> str:
    return pair.clones[0].git("ls-remote", str(pair.remote), "refs/heads/ledger/main").split("\t")[0]


def test_what_was_said_before_the_scanner_was_switched_on_is_not_pushed(
    pair: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair.ledgers
    stand_in(tmp_path, FINDS, monkeypatch)
    do(a, entries.note, f"The word is {SECRET}", None)
    leaking = a.checkpoint().commit
    do(a, entries.note, "Nothing to hide", None)
    a.checkpoint()
    before = there(pair)
    switched(a)
    rows = reading.events(a.desk.store.get, objects.parse_commit(a.desk.store.get(a.tip()).data).tree, [])
    event = next(row.event.id for row in rows if SECRET in str(row.event.records))
    for ways in (syncing.Ways(), syncing.Ways(pull=False)):
        with pytest.raises(NotAllowed, match=rf"event {event} in commit {leaking[:12]} .*purge") as found:
            sync.sync(a, ORIGIN, ways)
        assert "\n" not in str(found.value)
        assert "nothing was pushed" in str(found.value)
        assert SECRET not in str(found.value)
        assert there(pair) == before
    # A merge that was made meanwhile brings it no further, and the branch stays with what was committed here.
    do(b, entries.note, "From b", None)
    theirs, mine = sync.sync(b, ORIGIN).tip, a.tip()
    with pytest.raises(NotAllowed, match="nothing was pushed"):
        sync.sync(a, ORIGIN)
    assert (there(pair), a.tip()) == (theirs, mine)
    # Whoever has switched it off pushes as before; and what the remote has is nobody's to look through again.
    switched(a, "none")
    sync.sync(a, ORIGIN)
    switched(a)
    do(a, entries.note, "One more", None)
    assert sync.sync(a, ORIGIN).pushed == 1


def test_what_the_scanner_saw_as_it_was_written_and_what_others_said_is_pushed(
    pair: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair.ledgers
    stand_in(tmp_path, FINDS, monkeypatch)
    switched(a)
    do(a, entries.note, f"The word is {SECRET}", None)
    a.checkpoint()
    do(b, entries.note, f"Another machine says {SECRET}", None)
    sync.sync(b, ORIGIN)
    made = sync.sync(a, ORIGIN)
    assert made.merged
    assert there(pair) == made.tip == a.tip()
    titles = {str(row["title"]) for _, row in a.view().walk(layout.NOTE)}
    assert titles == {"The word is [redacted:betterleaks-made-up]", f"Another machine says {SECRET}"}


def test_what_was_refused_is_purged_and_then_pushed(
    pair: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, repo = pair.ledgers[0], pair.clones[0]
    stand_in(tmp_path, FINDS, monkeypatch)
    do(a, entries.note, f"The word is {SECRET}", None)
    a.checkpoint()
    switched(a)
    with pytest.raises(NotAllowed, match="gitledger purge --secret-from FILE"):
        sync.sync(a, ORIGIN)
    (tmp_path / "word").write_text(SECRET)
    run(repo.path, "purge", "--secret-from", str(tmp_path / "word"), "--yes")
    a = again(repo)
    switched(a)
    assert sync.sync(a, ORIGIN).tip == there(pair) == a.tip()
    assert {str(row["title"]) for _, row in a.view().walk(layout.NOTE)} == {"The word is [redacted:purged]"}


@pytest.mark.parametrize(
    ("body", "why"),
    [("    raise RuntimeError(text)", "ended with 1"), ("    return []", "does not find a made-up key")],
)
def test_a_scanner_that_fails_lets_nothing_be_pushed(
    pair: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    a = pair.ledgers[0]
    do(a, entries.note, "A note", None)
    a.checkpoint()
    before = there(pair)
    stand_in(tmp_path, body, monkeypatch)
    switched(a)
    with pytest.raises(Unscanned, match=why):
        sync.sync(a, ORIGIN)
    assert there(pair) == before


def test_all_that_is_new_is_read_in_lots_and_no_more(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    a = pair.ledgers[0]
    read: list[list[str]] = []

    def secrets(name: str, texts: object) -> tuple[tuple[str, str], ...]:
        read.append(list(texts))  # type: ignore[call-overload]
        return ()

    monkeypatch.setattr(scanner, "secrets", secrets)
    monkeypatch.setattr(outgoing, "LOT", 400)
    known = a.tip()
    for n in range(5):
        do(a, entries.note, f"note {n} {'x' * 90}", None)
        a.checkpoint()
    switched(a)
    sync.sync(a, ORIGIN)
    assert len(read) > 1
    everything = "\n".join(text for lot in read for text in lot)
    assert all(f"note {n} " in everything for n in range(5))
    assert known not in everything
    read.clear()
    sync.sync(a, ORIGIN)
    assert read == []


def test_a_ledger_that_holds_no_secret_is_pushed_whole_with_the_real_scanner(tmp_path: Path) -> None:
    pytest.importorskip("betterleaks")
    made = convergence.fleet(tmp_path / "fleet", 12, 1)
    a = made.ledgers[0]
    switched(a)
    token = figma("two")
    do(a, entries.note, f"the figma token is {token}", None)
    a.checkpoint(f"because of {token}")
    empty = tmp_path / "empty.git"
    made.clones[0].git("clone", "--quiet", "--bare", "--single-branch", str(made.remote), str(empty))
    made.clones[0].git("remote", "add", "other", str(empty))
    pushed = sync.sync(a, remote.read("other")).pushed
    assert pushed == len(made.clones[0].git("rev-list", "ledger/main").split())
    # Of keys that are public no scanner may make secrets: a clone could not begin, or not push, any more.
    one = certificates.line(certificate.make("Ada").der)
    assert (
        scanner.secrets(
            "betterleaks", [a.desk.writer.key.public_key, one, certificates.fingerprint(certificates.carried(one))]
        )
        == ()
    )
