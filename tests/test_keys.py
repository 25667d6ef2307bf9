"""A key replaced or ended: who signs what, what stock git says of it, and that nobody is ever left without a key."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gitledger import discover, entries, genesis, identity, keys, layout, objects, signing, tasks, verify
from gitledger.errors import Blocked, CannotWrite, LedgerError, Missing, NotAllowed
from gitledger.ledger import Ledger
from tests.ledgers import Clock, again, begin, do, mint
from tests.process.program import python
from tests.sealed import Repo
from tests.test_config_command import run


def rotate(book: Ledger) -> str:
    """A new key for the ledger's writer; its fingerprint."""
    _, new = keys.rotate(book.desk, book.gitdir.common, discover.new_key)
    return new.fingerprint


def signer(book: Ledger, commit: str) -> str:
    """The fingerprint of the key that signed a commit."""
    return signing.signer_of(objects.parse_commit(book.desk.store.get(commit).data).signatures[0][1]).fingerprint


def recorded(book: Ledger) -> str:
    """The fingerprint that the ledger has for this clone's writer."""
    return book.view().need(layout.writer_key(book.desk.writer.id)).text("fingerprint")


def verdict(repo: Repo) -> str:
    """What a verification of the whole history says."""
    book = again(repo)
    made = verify.verify(book.desk, book.tip(), verify.Ways(full=True))
    assert made.verdict == "verified", made.findings
    return made.verdict


def stock_git_agrees(repo: Repo) -> None:
    """Every commit passes git's own check with the signers that the ledger carries."""
    signers = repo.path / ".git" / "signers"
    signers.write_text(repo.git("show", "ledger/main:keys/allowed_signers") + "\n")
    for commit in repo.git("rev-list", "ledger/main").splitlines():
        repo.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-commit", commit)


# ── replaced ─────────────────────────────────────────────────────────────────────────────────
def test_the_old_key_signs_the_new_one_in_and_the_new_one_signs_from_then_on(repo: Repo) -> None:
    book = begin(repo)
    old = recorded(book)
    do(book, entries.note, "Waiting in the log", None)
    new = rotate(book)
    assert new != old
    assert signer(book, book.tip()) == old
    assert recorded(again(repo)) == new
    assert b"Waiting in the log" in objects.read(book.desk.store.get, book.tip(), "notes/00xx/N-0001.md")
    made = again(repo).checkpoint()
    assert signer(book, made.commit) == new
    assert verdict(repo) == "verified"
    stock_git_agrees(repo)


def test_a_process_that_opened_the_ledger_before_keeps_none_from_signing(repo: Repo) -> None:
    book = begin(repo)
    rotate(again(repo))
    with pytest.raises(Blocked, match="knows this clone's writer"):
        book.checkpoint()  # it has never heard of the new key, and forges nothing with the old one
    assert again(repo).checkpoint().name == "C-000001"
    assert verdict(repo) == "verified"


def test_keys_can_be_replaced_again_and_each_stays_known_for_what_it_signed(repo: Repo) -> None:
    begin(repo)
    for n in range(3):
        rotate(again(repo))
        again(repo).checkpoint(f"number {n}")
    book = again(repo)
    (known,) = keys.listed(book.desk, book.tip(), keys.pinned(book.desk))
    assert len(known.earlier) == 3
    assert len({known.fingerprint, *(one.fingerprint for one in known.earlier)}) == 4
    assert len(repo.git("show", "ledger/main:keys/allowed_signers").splitlines()) == 4
    assert verdict(repo) == "verified"
    stock_git_agrees(repo)


def test_other_clones_and_other_ledgers_keep_the_key_that_they_share(repo: Repo, tmp_path: Path) -> None:
    begin(repo)
    discover.init(str(repo.path), "docs", None)
    clone = repo.clone(tmp_path / "clone")
    clone.git("branch", "ledger/main", "origin/ledger/main")
    discover.init(str(clone.path), "main", None)
    shared = Path(signing.default_key()).read_bytes()
    new = rotate(again(repo, name="main"))
    assert Path(signing.default_key()).read_bytes() == shared
    for book in (again(clone), again(repo, name="docs")):
        made = book.checkpoint()
        assert signer(book, made.commit) == recorded(book) != new
    made = again(repo, name="main").checkpoint()
    assert signer(again(repo, name="main"), made.commit) == new


def test_a_new_key_is_private_and_the_only_thing_in_its_folder(repo: Repo) -> None:
    book = begin(repo)
    rotate(book)
    mine = identity.load(book.gitdir.common)
    assert mine is not None
    (path,) = mine.own("main")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(os.path.dirname(path))) == ["id_ed25519", "id_ed25519.pub"]
    stored = repo.path / ".git" / "gitledger" / "writer.json"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert json.loads(stored.read_text()) == {"format": 2, "id": book.desk.writer.id, "keys": {"main": [path]}}


def test_an_identity_of_the_first_format_is_read(repo: Repo) -> None:
    book = begin(repo)
    (repo.path / ".git" / "gitledger" / "writer.json").write_text(f'{{"format": 1, "id": "{book.desk.writer.id}"}}\n')
    assert again(repo).checkpoint().name == "C-000001"
    rotate(again(repo))
    assert verdict(repo) == "verified"


def test_what_was_found_good_stays_so_where_only_an_unused_key_was_added(repo: Repo) -> None:
    book = begin(repo)
    book.checkpoint()
    rotate(again(repo))
    again(repo).checkpoint()
    made = verify.verify(again(repo).desk, again(repo).tip())
    assert (made.verdict, made.checked) == ("verified", 0)


def test_a_rotation_that_cannot_be_made_changes_nothing_that_signs(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    tip, old = book.tip(), recorded(book)

    def broken(payload: bytes, key: signing.KeySigner) -> str:
        raise CannotWrite("no")

    with monkeypatch.context() as patched:
        patched.setattr(signing, "sign", broken)
        with pytest.raises(CannotWrite):
            rotate(book)
    assert again(repo).tip() == tip
    made = again(repo).checkpoint()
    assert signer(book, made.commit) == old
    assert rotate(again(repo)) != old
    assert verdict(repo) == "verified"


def test_a_key_that_is_gone_is_named_and_another_of_this_clone_is_not_taken_for_it(repo: Repo) -> None:
    book = begin(repo)
    rotate(book)
    mine = identity.load(book.gitdir.common)
    assert mine is not None
    Path(mine.own("main")[0]).rename(repo.path / ".git" / "away")
    tip = book.tip()
    with pytest.raises(Blocked, match=r"writers/.* is gone"):
        again(repo).checkpoint()
    assert again(repo).tip() == tip


CRASH = """
import os, sys
from gitledger import discover, identity, keys, pins, signing, transaction, wal
from gitledger import store as stores
from gitledger.plumbing import PlumbingStore
place, name = sys.argv[2].rsplit(".", 1)
def die(*a, **k): os._exit(9)
book = discover.open(sys.argv[1])
setattr({"signing": signing, "pins": pins, "identity": identity, "transaction": transaction, "wal": wal,
         "store": PlumbingStore, "stores": stores}[place], name, die)
keys.rotate(book.desk, book.gitdir.common, discover.new_key)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "step",
    [
        "signing.new_key",
        "pins.save",
        "identity.save",
        "transaction.commit",
        "signing.sign",
        "store.put",
        "store.swap",
        "stores.read_back",
        "transaction._remember",
        "wal.forget",
    ],
)
def test_a_rotation_cut_off_anywhere_leaves_a_ledger_that_can_be_signed_for(step: str, repo: Repo) -> None:
    book = begin(repo)
    do(book, tasks.add, "A task")
    done = python(repo.path, CRASH, str(repo.path), step)
    assert done.status == 9, done.err
    made = again(repo).checkpoint()
    assert signer(book, made.commit) == recorded(again(repo))
    assert verdict(repo) == "verified"
    new = rotate(again(repo))
    assert signer(book, again(repo).checkpoint().commit) == new
    assert verdict(repo) == "verified"


def test_trust_does_not_follow_a_rotation(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    other = repo.clone(tmp_path / "other")
    other.git("branch", "ledger/main", "origin/ledger/main")
    ada = os.environ["XDG_DATA_HOME"]
    bob = str(tmp_path / "bob")
    monkeypatch.setenv("XDG_DATA_HOME", bob)
    discover.init(str(other.path), "main", None)
    run(other.path, "trust", "add", book.desk.writer.id, "--yes")
    repo.git("fetch", "--quiet", str(other.path), "ledger/main:ledger/main")
    monkeypatch.setenv("XDG_DATA_HOME", ada)
    new = rotate(again(repo))
    again(repo).checkpoint()
    other.git("fetch", "--quiet", str(repo.path), "ledger/main:ledger/main")
    monkeypatch.setenv("XDG_DATA_HOME", bob)
    mine = again(other)
    made = verify.verify(mine.desk, mine.tip())
    assert made.verdict == "unknown signer", "the chain is sound, and the new key is nobody's yet"
    assert made.trusted == {mine.desk.writer.id}
    run(other.path, "trust", "add", book.desk.writer.id, "--expect", new)
    made = verify.verify(mine.desk, mine.tip())
    assert (made.verdict, made.trusted) == ("verified", {mine.desk.writer.id, book.desk.writer.id})


# ── ended ────────────────────────────────────────────────────────────────────────────────────
def test_a_key_that_was_ended_signs_nothing_more_and_init_begins_with_another(
    repo: Repo, capfd: pytest.CaptureFixture[str]
) -> None:
    book = begin(repo)
    old, first = recorded(book), book.desk.writer.id
    book.checkpoint()
    run(repo.path, "trust", "revoke", first, "--in-ledger", "--yes")
    assert signer(book, again(repo).tip()) == old
    assert verdict(repo) == "verified", "what it signed before counts"
    stock_git_agrees(repo)
    tip = again(repo).tip()
    with pytest.raises(Blocked, match=r"was revoked in the ledger.*gitledger init"):
        again(repo).checkpoint()
    with pytest.raises(NotAllowed, match="revoked"):
        rotate(again(repo))
    assert again(repo).tip() == tip
    do(again(repo), entries.note, "Said in between", None)
    begun = discover.init(str(repo.path), "main", None)
    assert begun.joined
    assert begun.writer != first
    assert begun.fingerprint != old
    made = again(repo).checkpoint()
    assert signer(book, made.commit) == begun.fingerprint
    assert b"Said in between" in objects.read(book.desk.store.get, again(repo).tip(), "notes/00xx/N-0001.md")
    assert verdict(repo) == "verified"
    capfd.readouterr()
    run(repo.path, "trust", "list", "--json")
    rows = {row["writer"]: row for row in json.loads(capfd.readouterr().out)["writers"]}
    assert rows[first]["status"] == "revoked"
    assert rows[first]["revoked_in_ledger"]["by"] == first
    assert rows[begun.writer]["status"] == "trusted"
    with pytest.raises(NotAllowed, match="exists here already"):
        discover.init(str(repo.path), "main", None)


def test_a_key_is_ended_once_however_often_it_is_asked(repo: Repo) -> None:
    book = begin(repo)
    for _ in range(2):
        run(repo.path, "trust", "revoke", book.desk.writer.id, "--in-ledger", "--yes")
    events = [row for row in repo.git("log", "--format=%s", "ledger/main").splitlines() if row.startswith("Revoke")]
    assert len(events) == 1


def test_an_ended_key_that_signs_on_is_found(repo: Repo) -> None:
    """By hand: a transaction refuses to."""
    book = begin(repo)
    run(repo.path, "trust", "revoke", book.desk.writer.id, "--in-ledger", "--yes")
    old = objects.parse_commit(book.desk.store.get(book.tip()).data)
    payload = objects.format_commit(
        objects.Commit(old.tree, (book.tip(),), old.author, old.committer, old.message.replace("Seq: 2", "Seq: 3"))
    )
    data = objects.with_signature(payload, book.desk.writer.key.sign(payload), "sha1")
    forged = objects.oid("commit", data)
    book.desk.store.put([(forged, objects.Object("commit", data))])
    book.desk.store.swap(forged, book.tip(), "test")
    made = verify.verify(again(repo).desk, forged, verify.Ways(full=True))
    assert "revoked" in {fault.rule for fault in made.findings if fault.commit == forged}


def test_a_new_clone_does_not_begin_with_a_key_that_was_ended(repo: Repo, tmp_path: Path) -> None:
    book = begin(repo)
    old = recorded(book)
    run(repo.path, "trust", "revoke", book.desk.writer.id, "--in-ledger", "--yes")
    clone = repo.clone(tmp_path / "clone")
    clone.git("branch", "ledger/main", "origin/ledger/main")
    begun = discover.init(str(clone.path), "main", None, mint=mint(Clock()))
    assert begun.fingerprint != old
    assert signer(again(clone), again(clone).checkpoint().commit) == begun.fingerprint


@pytest.mark.parametrize("value", ["not json", "[]", '{"id": 5, "keys": 7}', '{"keys": {}}'])
def test_a_damaged_identity_is_one_error(repo: Repo, value: str) -> None:
    begin(repo)
    (repo.path / ".git" / "gitledger" / "writer.json").write_text(value)
    with pytest.raises(LedgerError, match=r"writer\.json cannot be read"):
        again(repo)


def test_a_ledger_without_a_key_of_this_clone_is_not_rotated(repo: Repo) -> None:
    book = begin(repo)
    assert genesis.writer_id(book.gitdir) == book.desk.writer.id
    Path(signing.default_key()).unlink()
    tip = book.tip()
    with pytest.raises(Missing, match="is gone"):
        rotate(again(repo))
    assert again(repo).tip() == tip
