"""Verification as a whole: what it remembers, what a remembered verdict rests on, how it goes on behind a fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import audit, authority, cli, crew, discover, layout, objects, pins, verify
from gitledger.ledger import Ledger
from gitledger.store import MemoryStore
from gitledger.verify import Fault, Ways
from tests import attacks
from tests.ledgers import again, begin, tamper
from tests.sealed import Repo
from tests.test_attacks import field as field
from tests.test_audit import lived, run


def checked(book: Ledger, *, full: bool = False) -> verify.Verified:
    return verify.verify(book.desk, book.tip(), Ways(full=full))


def findings(repo: Repo, *, full: bool = False) -> list[Fault]:
    return list(checked(again(repo), full=full).findings)


# ── what is remembered ───────────────────────────────────────────────────────────────────────
def test_every_commit_is_checked_once_and_remembered(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book = lived(repo)
    assert run(repo, "verify", "--full") == 0
    commits = int(repo.git("rev-list", "--count", "ledger/main"))
    assert f"verified; {commits} commits checked to the first one" in capfd.readouterr().out
    assert run(repo, "verify", "--json") == 0
    value = json.loads(capfd.readouterr().out)
    assert (value["verdict"], value["checked"], value["since"], value["findings"]) == ("verified", 0, book.tip(), [])
    again(repo).checkpoint()
    assert run(repo, "verify", "--full", "--json") == 0
    assert json.loads(capfd.readouterr().out)["checked"] == commits + 1


def test_an_unsigned_commit_is_named_also_below_good_ones(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    book = lived(repo)
    bad = tamper(book, {"stray.txt": b"x"})
    book.checkpoint()
    found = findings(repo)
    assert ("signature", bad) in [(f.rule, f.commit) for f in found]
    assert run(repo, "verify") == 1
    said = capfd.readouterr().out
    assert bad[:12] in said
    assert "BAD" in said
    assert "signature" in {f.rule for f in findings(repo)}, "a bad verdict is never remembered"


def test_a_verdict_under_another_trust_list_counts_for_nothing(field: attacks.Field) -> None:
    assert field.verify().checked == 0
    mine = field.pins()
    for other in (
        replace(mine, fingerprints=mine.fingerprints[:1]),
        mine.revoke("SHA256:somebody", (field.tip,)),
        replace(mine, founder="SHA256:another"),
    ):
        pins.save(field.home.pins, "main", other)
        assert field.verify().checked == len(field.commits())


def test_a_verdict_by_other_rules_counts_for_nothing(field: attacks.Field, monkeypatch: pytest.MonkeyPatch) -> None:
    assert field.verify().checked == 0
    monkeypatch.setattr(pins, "RULES", pins.RULES + 1)
    assert field.verify().checked == len(field.commits())
    assert field.verify().checked == 0


def test_a_trust_list_that_changes_meanwhile_keeps_no_verdict(field: attacks.Field) -> None:
    mine = field.pins()
    pins.save(field.home.pins, "main", mine.distrust(mine.fingerprints[1]))
    verify.remember(field.a.desk, mine, field.tip)
    assert field.pins().under != field.pins().digest()


def test_a_stranger_is_named_each_time_and_hides_no_fault(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(repo)
    other = repo.clone(tmp_path / "clone")
    other.git("branch", "ledger/main", "origin/ledger/main")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another person"))
    discover.init(str(other.path), "main", None)
    for _ in range(2):
        made = checked(again(other))
        assert made.verdict == "unknown signer"
        assert [f.rule for f in made.findings] == ["unknown signer"]
    assert made.checked == 0, "a sound history is remembered, whoever wrote it"
    bad = tamper(again(other), {"stray.txt": b"x"})
    assert checked(again(other)).verdict == "bad"
    assert bad in [f.commit for f in checked(again(other)).findings]


def test_without_pins_nothing_can_be_said(repo: Repo) -> None:
    book = lived(repo)
    os.unlink(book.desk.home.pins)
    assert checked(book).verdict == "unverifiable"
    assert [f.rule for f in checked(book).findings] == ["no pins"]


# ── what is not here ─────────────────────────────────────────────────────────────────────────
def test_a_shallow_ledger_is_partial_and_what_is_here_is_checked(
    field: attacks.Field, capfd: pytest.CaptureFixture[str]
) -> None:
    cut = attacks.shallow(field)
    made = field.verify(full=True)
    assert made.verdict == "partial"
    assert made.checked == 2
    assert {(f.rule, f.commit) for f in made.findings} == {("partial", cut)}
    bad = attacks.unsigned_tip(field)
    assert field.verify(full=True).verdict == "bad"
    assert bad in [f.commit for f in field.verify(full=True).findings]


def test_an_object_that_is_gone_is_partial(field: attacks.Field) -> None:
    path, _ = field.segment("b")
    blob = field.repo.git("rev-parse", f"ledger/main:{path}")
    loosen(field)
    (field.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    made = field.verify(full=True)
    assert made.verdict == "partial", made.findings
    assert any(blob in f.what for f in made.findings)


def loosen(field: attacks.Field) -> None:
    """Every object in a file of its own."""
    packs = field.path / ".git" / "objects" / "pack"
    for pack in sorted(packs.glob("*.pack")):
        data = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.unlink()
        field.repo.git("unpack-objects", "-q", input=data)


def test_a_commit_that_cannot_be_read_hides_no_other_fault(field: attacks.Field) -> None:
    bad = attacks.unsigned_tip(field)
    loosen(field)
    hurt, tip, desk = field.commits()[3], field.tip, field.a.desk
    path = field.path / ".git" / "objects" / hurt[:2] / hurt[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:30])
    made = verify.verify(desk, tip, Ways(full=True))
    assert made.verdict == "bad"
    assert ("signature", bad) in {(f.rule, f.commit) for f in made.findings}
    assert any(hurt[:12] in f.what for f in made.findings)


# ── merges ───────────────────────────────────────────────────────────────────────────────────
def test_a_merge_on_a_verified_tip_is_checked_from_there(field: attacks.Field) -> None:
    ours, theirs = attacks.forked(field)
    assert field.verify().checked == 1
    attacks.merged(field, ours, theirs)
    made = field.verify()
    assert (made.verdict, made.checked, made.since) == ("verified", 2, ours)  # theirs, and the merge
    assert field.verify(full=True).checked == len(field.commits())


def test_both_orders_of_a_merge_make_one_tree(field: attacks.Field) -> None:
    ours, theirs = attacks.forked(field)
    mine = field.pins()
    one = attacks.merged(field, ours, theirs)
    assert field.verify(full=True).findings == ()
    pins.save(field.home.pins, "main", mine)
    other = attacks.merged(field, theirs, ours)
    assert field.verify(full=True).findings == ()
    assert field.commit(one).tree == field.commit(other).tree


def test_one_number_of_a_writer_in_two_lines_is_named(field: attacks.Field) -> None:
    tip = field.tip
    first = attacks.honest(field)
    field.point(tip)
    second = attacks.honest(field)
    merge = objects.Commit(
        field.commit(second).tree, (second, first), field.commit(second).author, field.commit(second).author, "Merge\n"
    )
    field.point(field.make(merge, field.key("a")))
    assert {("repeated", first), ("repeated", second)} & {(f.rule, f.commit) for f in field.verify().findings}


# ── a crew, other stores, the briefing ───────────────────────────────────────────────────────
@pytest.mark.skipif(sys.platform != "linux", reason="a crew is copied from this process, which only Linux does safely")
def test_several_processes_find_what_one_finds(field: attacks.Field, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(threading, "active_count", lambda: 1)  # pytest-xdist has threads of its own
    honest = field.verify(full=True)
    gitdir = field.a.gitdir
    ways = Ways(full=True, reopen=lambda: discover.open_store(gitdir, "main"), workers=2)
    assert verify.verify(field.a.desk, field.tip, ways) == honest
    attacks.unsigned_middle(field)
    attacks.lying_document(field)
    one = field.verify(full=True)
    assert {"signature", "differs"} <= {f.rule for f in one.findings}
    assert verify.verify(field.a.desk, field.tip, ways) == one
    assert crew.cores() >= 1


def test_the_drivers_and_the_memory_store_agree(field: attacks.Field) -> None:
    attacks.lying_record(field)
    one = field.verify(full=True)
    stores = [discover.open_store(field.a.gitdir, "main", driver) for driver in discover.DRIVERS]
    memory = MemoryStore(attacks.REF)
    for row in field.repo.git("cat-file", "--batch-all-objects", "--batch-check").split("\n"):
        oid = row.split(" ")[0]
        memory.objects[oid] = stores[0].get(oid)
    for store in (*stores, memory):
        assert verify.verify(replace(field.a.desk, store=store), field.tip, Ways(full=True)) == one
        store.close()


def test_a_briefing_checks_by_the_same_rules_and_at_most_so_many(field: attacks.Field) -> None:
    assert authority.assess(field.a.desk, field.tip).chain == "verified"
    bad = attacks.lying_document(field)
    found = authority.assess(field.a.desk, field.tip)
    assert found.chain == "bad"
    assert bad[:12] in [f.where for f in found.findings]
    assert authority.assess(field.a.desk, field.tip, limit=0).chain == "bad"
    few = authority.assess(field.a.desk, attacks.second_root(field), limit=0)
    assert few.chain == "bad"


def test_more_than_the_limit_is_not_checked_and_not_called_good(field: attacks.Field) -> None:
    pins.save(field.home.pins, "main", replace(field.pins(), under=""))
    found = authority.assess(field.a.desk, field.tip, limit=2)
    assert found.chain == "unverifiable"
    assert [f.rule for f in found.findings] == ["not checked"]


def test_under_another_trust_all_is_checked_once_and_the_verdict_is_remembered(
    field: attacks.Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins.save(field.home.pins, "main", field.pins().trust("SHA256:another"))
    assert authority.assess(field.a.desk, field.tip, limit=2).chain == "unverifiable"
    first, second = field.verify(), field.verify()
    assert (first.since, second.since, second.checked) == ("", field.tip, 0)
    monkeypatch.setattr(verify, "verify", None)  # a briefing asks for no verification any more
    assert authority.assess(field.a.desk, field.tip, limit=2).chain == "verified"


def test_a_remembered_tip_needs_no_cryptography(field: attacks.Field) -> None:
    code = (
        "import sys; from gitledger import authority, discover; book = discover.open(sys.argv[1]); "
        "print(authority.assess(book.desk, book.tip()).chain, "
        "'cryptography' in sys.modules, 'gitledger.verify' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(field.path)], capture_output=True, text=True, check=True
    ).stdout
    assert said == "verified False False\n"


# ── the command ──────────────────────────────────────────────────────────────────────────────
def test_a_finding_names_commit_writer_rule_and_what_to_do(
    field: attacks.Field, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = attacks.forged_author(field)
    assert run(field.repo, "verify", "--json") == 1
    value = json.loads(capfd.readouterr().out)
    assert value["verdict"] == "bad"
    one = next(f for f in value["findings"] if f["rule"] == "author")
    assert (one["commit"], one["writer"]) == (bad, field.writers["a"])
    assert one["what"]
    assert bad[:12] in one["mend"]
    assert run(field.repo, "verify") == 1
    assert f"author: {bad[:12]} by writer {field.writers['a']}: " in capfd.readouterr().out


def test_a_partial_history_is_said_in_the_last_line(field: attacks.Field, capfd: pytest.CaptureFixture[str]) -> None:
    attacks.shallow(field)
    assert cli.group.main(["-C", str(field.path), "verify"], "gitledger", standalone_mode=False) == 1
    assert "PARTIAL" in capfd.readouterr().out.splitlines()[-1]


def test_another_renderer_s_documents_are_not_compared_its_records_are(
    field: attacks.Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacks.lying_document(field)
    monkeypatch.setattr(layout, "RENDERER", layout.RENDERER + 1)
    assert "differs" not in {f.rule for f in field.verify(full=True).findings}
    attacks.lying_record(field)
    assert "differs" in {f.rule for f in field.verify(full=True).findings}
    assert audit.is_document("INDEX.md")


def test_another_ledger_at_the_branch_is_named(repo: Repo) -> None:
    lived(repo)
    begin(repo, name="other")
    repo.git("update-ref", "refs/heads/ledger/main", "refs/heads/ledger/other")
    assert {"other ledger", "other root"} <= {f.rule for f in checked(again(repo, name="main")).findings}
