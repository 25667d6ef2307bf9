"""Two clones of one ledger over a bare remote: what each said is on both, however they come together."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gitledger import discover, doctor, entries, layout, merge, objects, remote, signing, sync, syncing, tasks, verify
from gitledger.briefing import gather
from gitledger.errors import BadSignature, LockHeld, TryAgain
from gitledger.folders import Folders
from gitledger.ledger import Ledger
from gitledger.model import Oid
from gitledger.transaction import Desk
from tests import convergence
from tests.convergence import Fleet
from tests.ledgers import Clock, again, do, mint
from tests.sealed import LONG

ORIGIN = remote.read("origin")


@pytest.fixture
def pair(tmp_path: Path) -> Fleet:
    """Two clones that have the same ledger."""
    return convergence.pair(tmp_path / "fleet", 7)


def together(made: Fleet) -> None:
    """Everybody has everything."""
    made.settle()


def tree(ledger: Ledger, tip: Oid | None = None) -> Oid:
    return objects.parse_commit(ledger.desk.store.get(tip or ledger.tip()).data).tree


def names(ledger: Ledger) -> set[str]:
    view = ledger.view()
    return {f"{view.name(key)} {row['title']}" for key, row in view.walk(layout.TASK)}


# ── the merge ────────────────────────────────────────────────────────────────────────────────
def test_what_both_sides_said_apart_is_on_both(pair: Fleet) -> None:
    a, b = pair.ledgers
    do(a, entries.note, "From a", None)
    do(b, entries.decide, "From b", "because", None, None)
    assert sync.sync(a, ORIGIN).pushed == 1
    made = sync.sync(b, ORIGIN)
    assert (made.merged, made.fetched, made.journalled) == (True, 1, 1)
    assert sync.sync(a, ORIGIN).tip == b.tip() == a.tip()
    for ledger in (a, b):
        assert [row["title"] for _, row in ledger.view().walk(layout.NOTE)] == ["From a"]
        assert [row["title"] for _, row in ledger.view().walk(layout.DECISION)] == ["From b"]
        assert verify.verify(ledger.desk, ledger.tip(), verify.Ways(full=True)).findings == ()
    assert verify.verify(b.desk, b.tip()).checked == 0  # what was verified on the way in is remembered


def test_whoever_merges_comes_to_the_same_tree(pair: Fleet) -> None:
    a, b = pair.ledgers
    for ledger in (a, b):
        do(ledger, tasks.add, "One task of each")
        ledger.checkpoint()
    ours, theirs = a.tip(), b.tip()
    pair.clones[0].git("fetch", "--quiet", str(pair.clones[1].path), theirs)
    look = Folders(a.desk.store)
    one, two = merge.merge(look, ours, theirs), merge.merge(look, theirs, ours)
    assert one.tree == two.tree
    assert {oid for oid, _ in one.made} >= {one.tree}
    assert (one.ours, one.theirs) == (two.theirs, two.ours)


def test_three_sides_come_to_one_tree_in_any_order(tmp_path: Path) -> None:
    made = convergence.fleet(tmp_path / "fleet", 3, 3)
    made.settle()
    tips = []
    for n, ledger in enumerate(made.ledgers):
        do(ledger, tasks.add, f"Task of {n}")
        ledger.checkpoint()
        tips.append(ledger.tip())
    store = made.ledgers[0].desk.store
    for repo, tip in zip(made.clones[1:], tips[1:], strict=True):
        made.clones[0].git("fetch", "--quiet", str(repo.path), tip)

    def joined(*order: int) -> Oid:
        first, *others = (tips[n] for n in order)
        for other in others:
            step = merge.merge(Folders(store), first, other)
            commit = objects.Commit(step.tree, (first, other), "a <a@b> 1 +0000", "a <a@b> 1 +0000", "m\n")
            data = objects.format_commit(commit)
            first = objects.oid("commit", data)
            store.put([*step.made, (first, objects.Object("commit", data))])
        return step.tree

    assert len({joined(0, 1, 2), joined(2, 1, 0), joined(1, 2, 0)}) == 1


def test_ids_that_collided_are_both_kept_and_named_alike_everywhere(pair: Fleet) -> None:
    a, b = pair.ledgers
    first = do(a, tasks.add, "Made by a")
    second = do(b, tasks.add, "Made by b")
    together(pair)
    assert names(a) == names(b)
    assert len(names(a)) == 2
    assert {key for key, _ in a.view().walk(layout.TASK)} == {first, second}
    # Each clone's bare number is still its own.
    number = str(first).partition("@")[0]
    assert a.view().resolve(number, layout.TASK, a.desk.writer.id) == first
    assert b.view().resolve(number, layout.TASK, b.desk.writer.id) == second


def test_a_field_set_on_both_sides_shows_the_later_and_names_the_other(pair: Fleet) -> None:
    a, b = pair.ledgers
    task = do(a, tasks.add, "One title")
    together(pair)
    do(a, tasks.edit, task, fields={"title": "Title by a"})
    do(b, entries.note, "So that b's clock is later", None)
    do(b, tasks.edit, task, fields={"title": "Title by b"})
    together(pair)
    for ledger in (a, b):
        assert ledger.view().need(str(task)).text("title") == "Title by b"
        _named(ledger)
        found = [f for f in gather(_named(ledger)).findings if f.rule == "set twice"]
        assert [f.where for f in found] == [f"{ledger.view().name(str(task))} title"]
        assert a.desk.writer.id in found[0].what
    do(a, tasks.edit, task, fields={"title": "Settled"})
    assert [f for f in gather(_named(a)).findings if f.rule == "set twice"] == []


def test_a_field_that_both_sides_set_alike_is_no_conflict(pair: Fleet) -> None:
    a, b = pair.ledgers
    task = do(a, tasks.add, "One title")
    together(pair)
    for ledger in (a, b):
        do(ledger, tasks.edit, task, fields={"title": "The same"})
    together(pair)
    assert [f.rule for f in gather(_named(b)).findings] == []


def test_both_active_on_one_task_is_named_on_both(pair: Fleet) -> None:
    a, b = pair.ledgers
    task = do(a, tasks.add, "One task")
    together(pair)
    for ledger in (a, b):
        do(ledger, tasks.start, task)
    together(pair)
    for ledger in (a, b):
        found = [f for f in gather(_named(ledger)).findings if f.rule == "active twice"]
        assert [f.where for f in found] == [ledger.view().name(str(task))]
        assert tasks.active(ledger.view(), ledger.desk.writer.id, "main") == task
    do(a, tasks.done, task, "it is")
    together(pair)
    assert [f for f in gather(_named(b)).findings if f.rule == "active twice"] == []


def test_a_session_that_both_ended_is_one_session(pair: Fleet) -> None:
    a, b = pair.ledgers
    key = a.start_session("generic", "shared", pid=os.getpid())
    assert b.start_session("generic", "shared", pid=os.getpid()) == key
    for ledger in (a, b):
        ledger.end_session(key, "exit" if ledger is a else "logout")
    together(pair)
    assert tree(a) == tree(b)
    assert a.view().need(key).get("state") == "closed"
    assert len(list(a.view().walk(layout.HANDOVER))) == 2  # both handovers stand


def test_a_copied_writer_is_refused_with_both_sides_kept(pair: Fleet, tmp_path: Path) -> None:
    a, b = pair.ledgers
    copy = tmp_path / "copy"
    shutil.copytree(pair.clones[1].path, copy, symlinks=True)
    c = discover.open(copy, mint=mint(Clock()))
    assert c.desk.writer.id == b.desk.writer.id
    do(b, entries.note, "Said in the first", None)
    do(c, entries.note, "Said in the copy", None)
    sync.sync(b, ORIGIN)
    kept = sync.journal(c)
    tip = c.tip()
    with pytest.raises(syncing.Refused, match=b.desk.writer.id) as caught:
        sync.sync(c, ORIGIN)
    assert caught.value.finding.rule == "copied writer"
    assert (kept, c.tip()) == (1, tip)
    assert remote.tip(_line(c), "refs/ledgers/incoming/origin/main") == b.tip()
    assert "copied writer" in [f.rule for f in gather(_named(c)).findings]
    assert a.tip() != b.tip()


def test_a_copy_goes_on_as_a_new_writer_with_all_that_it_said(pair: Fleet, tmp_path: Path) -> None:
    a, b = pair.ledgers
    task = do(b, tasks.add, "Before the copy")
    together(pair)
    copy = tmp_path / "copy"
    shutil.copytree(pair.clones[1].path, copy, symlinks=True)
    c = discover.open(copy, mint=mint(Clock()))
    for ledger, name in ((b, "first"), (c, "copy")):
        do(ledger, tasks.add, f"Made in the {name}", accept=(f"criterion of the {name}",))
        do(ledger, tasks.start, task)
        do(ledger, tasks.edit, task, fields={}, completed=(f"done in the {name}",))
        ledger.write_handover()
        do(ledger, entries.note, f"Pending in the {name}", None)
    sync.sync(b, ORIGIN)
    sync.journal(c)
    before, tip = c.desk.writer.id, c.tip()
    made = sync.sync(c, ORIGIN, syncing.Ways(renew=True, pause=lambda tried: None))
    assert made.parted is not None
    assert before not in (made.parted.writer, c.desk.writer.id)
    assert remote.tip(_line(c), made.parted.kept) == tip
    d = discover.open(copy, mint=mint(Clock()))
    assert d.desk.writer.id == made.parted.writer
    do(d, entries.note, "And goes on", None)
    sync.sync(d, ORIGIN)
    together(pair)
    assert a.tip() == b.tip() == d.tip()
    view = a.view()
    titles = [row["title"] for _, row in view.walk(layout.TASK)]
    assert sorted(titles) == ["Before the copy", "Made in the copy", "Made in the first"]
    notes = {row["title"] for _, row in view.walk(layout.NOTE)}
    assert notes == {"Pending in the first", "Pending in the copy", "And goes on"}
    done = [item["text"] for item in view.need(str(task)).listed("completed")]
    assert sorted(done) == ["done in the copy", "done in the first"]
    assert len(list(view.walk(layout.HANDOVER))) == 2
    assert verify.verify(a.desk, a.tip(), verify.Ways(full=True)).verdict == "verified"


# ── the way of a sync ────────────────────────────────────────────────────────────────────────
def test_nothing_is_contacted_and_nothing_said_before_a_remote_was_named(pair: Fleet) -> None:
    a = pair.ledgers[0]
    do(a, entries.note, "Here only", None)
    assert [f.rule for f in gather(a).findings] == []
    assert [f.rule for f in gather(_named(a)).findings] == []  # pending, not committed: nothing to push yet
    a.checkpoint()
    found = gather(_named(a)).findings
    assert [(f.rule, f.where) for f in found] == [("not pushed", "origin")]
    assert "1 commit " in found[0].what
    sync.sync(a, ORIGIN)
    assert gather(_named(a)).findings == ()


def test_push_alone_refuses_where_the_remote_has_more(pair: Fleet) -> None:
    a, b = pair.ledgers
    a.checkpoint()
    sync.sync(a, ORIGIN)
    b.checkpoint()
    before = b.tip()
    with pytest.raises(sync.NotAllowed, match=r"1 commits? that this clone lacks"):
        sync.sync(b, ORIGIN, syncing.Ways(pull=False))
    assert b.tip() == before


def test_pull_alone_pushes_nothing(pair: Fleet) -> None:
    a, b = pair.ledgers
    a.checkpoint()
    sync.sync(a, ORIGIN)
    b.checkpoint()
    made = sync.sync(b, ORIGIN, syncing.Ways(push=False))
    assert (made.merged, made.there, made.pushed) == (True, a.tip(), 0)
    assert [f.rule for f in gather(_named(b)).findings] == ["not pushed"]
    assert remote.branches(_line(b))["refs/heads/ledger/main"] == a.tip()
    sync.sync(b, ORIGIN)
    assert remote.branches(_line(b))["refs/heads/ledger/main"] == b.tip()


def test_a_push_that_came_second_is_merged_and_tried_again(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair.ledgers
    real, raced = remote.push, []

    def push(line: remote.Line, new: Oid) -> bool:
        if not raced:
            raced.append(new)
            a.checkpoint()
            sync.sync(a, ORIGIN)
        return real(line, new)

    monkeypatch.setattr(remote, "push", push)
    b.checkpoint()
    made = sync.sync(b, ORIGIN, syncing.Ways(pause=lambda tried: None))
    assert (made.attempts, made.merged) == (2, True)
    sync.sync(a, ORIGIN)
    assert a.tip() == b.tip()


def test_what_was_found_good_is_not_verified_again_by_the_next_attempt(
    pair: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair.ledgers
    asked: list[int] = []
    push, quarantined = remote.push, verify.quarantined

    def raced(line: remote.Line, new: Oid) -> bool:
        if len(asked) < 3:
            with monkeypatch.context() as honest:
                honest.setattr(remote, "push", push)
                honest.setattr(verify, "quarantined", quarantined)
                a.checkpoint()
                sync.sync(a, ORIGIN)
        return push(line, new)

    def counted(desk: Desk, tip: Oid, order: list[Oid], known: list[Oid], ways: verify.Ways) -> verify.Verified:
        asked.append(len(order))
        return quarantined(desk, tip, order, known, ways)

    for _ in range(4):
        a.checkpoint()
    sync.sync(a, ORIGIN)
    b.checkpoint()
    monkeypatch.setattr(remote, "push", raced)
    monkeypatch.setattr(verify, "quarantined", counted)
    made = sync.sync(b, ORIGIN, syncing.Ways(pause=lambda tried: None))
    assert asked == [4, 1, 1]
    assert made.fetched == 6
    assert verify.verify(b.desk, b.tip(), verify.Ways(full=True)).findings == ()


def test_a_merge_that_was_not_accepted_leaves_no_commit_behind(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair.ledgers
    a.checkpoint()
    sync.sync(a, ORIGIN)
    b.checkpoint()
    before = b.tip()
    monkeypatch.setattr(remote, "push", lambda line, new: False)
    with pytest.raises(sync.TryAgain):
        sync.sync(b, ORIGIN, syncing.Ways(pause=lambda tried: None))
    assert b.tip() == before


def test_what_is_committed_during_a_push_is_merged_behind_it(pair: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = pair.ledgers
    a.checkpoint()
    sync.sync(a, ORIGIN)
    real, meanwhile = remote.push, []

    def push(line: remote.Line, new: Oid) -> bool:
        done = real(line, new)
        if not meanwhile:
            meanwhile.append(b.checkpoint("meanwhile"))
        return done

    b.checkpoint()
    monkeypatch.setattr(remote, "push", push)
    sync.sync(b, ORIGIN, syncing.Ways(pause=lambda tried: None))
    sync.sync(a, ORIGIN)
    assert a.tip() == b.tip()
    assert a.view().record(meanwhile[0].key)


def test_two_clones_that_push_their_records_in_turn_have_them_all(pair: Fleet) -> None:
    turns = 24 if LONG else 6
    for n in range(turns):
        ledger = pair.ledgers[n % 2]
        for m in range(4):
            do(ledger, entries.note, f"Note {n} {m}", None)
        sync.sync(ledger, ORIGIN)
    together(pair)
    for ledger in pair.ledgers:
        assert len(list(ledger.view().walk(layout.NOTE))) == 4 * turns


@pytest.mark.parametrize(("seed", "whole"), [(0, layout.WHOLE), (1, layout.WHOLE), (2, 1)])
def test_random_work_on_several_clones_ends_in_one_tree(
    tmp_path: Path, seed: int, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "WHOLE", whole)
    made = convergence.run(tmp_path / "fleet", seed, steps=20 if LONG else 12)
    assert made.said
    paths = made.clones[0].git("ls-tree", "-r", "--name-only", made.ledgers[0].tip()).splitlines()
    assert any("/index/" in path for path in paths) == (whole == 1)  # shards that one side divided, or the merge


def _named(ledger: Ledger) -> Ledger:
    """The ledger as the next process has it, with a remote named."""
    from gitledger import config

    config.set_value(config.clone_path(ledger.gitdir.common), "remote.name", "origin")
    found = again(convergence.Repo(Path(ledger.gitdir.top)))
    found.desk.store.close()
    return found


def _line(ledger: Ledger) -> remote.Line:
    import time

    return remote.Line(ledger.gitdir, ORIGIN, "main", time.monotonic() + 30)


def test_a_checkpoint_while_a_sync_fetches_or_verifies_is_no_rollback(
    pair: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair.ledgers
    do(a, entries.note, "From a", None)
    sync.sync(a, ORIGIN)
    verify.verify(b.desk, b.tip())  # so that each checkpoint is at once the last verified tip
    fetch, check, made = remote.fetch_whole, verify.verify, []

    def fetched(line: remote.Line, known: Oid | None, meanwhile: remote.Meanwhile) -> Oid | None:
        found = fetch(line, known, meanwhile)
        if not made:
            made.append(b.checkpoint("while it fetched").commit)
        return found

    def verified(desk: Desk, tip: Oid, ways: verify.Ways) -> verify.Verified:
        if len(made) == 1:
            made.append(b.checkpoint("while it verified").commit)
        return check(desk, tip, ways)

    monkeypatch.setattr(remote, "fetch_whole", fetched)
    monkeypatch.setattr(verify, "verify", verified)
    done = sync.sync(b, ORIGIN, syncing.Ways(pause=lambda tried: None))
    assert (done.attempts, done.merged) == (2, True)
    assert len(made) == 2
    assert set(made) <= set(pair.clones[1].git("rev-list", done.there).split())


@pytest.mark.parametrize("version", [2, 1])
def test_what_was_fetched_is_read_at_once_where_its_index_is_known_and_else_as_it_is_asked_for(
    pair: Fleet, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    a, b = pair.ledgers
    do(a, entries.note, "From a", None)
    sync.sync(a, ORIGIN)
    pair.clones[1].git("config", "fetch.unpackLimit", "1")
    pair.clones[1].git("config", "pack.indexVersion", str(version))
    taken: list[Oid] = []
    real = Folders.take
    monkeypatch.setattr(Folders, "take", lambda eye, oids: (taken.extend(oids), real(eye, oids))[1])
    made = sync.sync(b, ORIGIN)
    assert (made.fetched, made.tip) == (1, a.tip())
    assert (a.tip() in taken) == (version == 2)


def test_a_clone_whose_own_tip_is_not_good_takes_nothing_in_and_pushes_nothing(pair: Fleet) -> None:
    a, b = pair.ledgers
    do(a, entries.note, "From a", None)
    there = sync.sync(a, ORIGIN).tip
    good, here = b.tip(), pair.clones[1]
    forged = here.git("commit-tree", f"{good}^{{tree}}", "-p", good, "-m", "forged")
    here.git("update-ref", "refs/heads/ledger/main", forged)
    with pytest.raises(BadSignature, match=r"own ledger does not verify \(.*so nothing was synced"):
        sync.sync(b, ORIGIN)
    assert here.git("rev-parse", "ledger/main") == forged
    assert here.git("ls-remote", "origin", "refs/heads/ledger/main").split()[0] == there
    here.git("update-ref", "refs/heads/ledger/main", good)
    assert sync.sync(b, ORIGIN).tip == there


def test_a_merge_whose_signature_is_not_good_is_neither_pushed_nor_taken(
    pair: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair.ledgers
    for ledger in (a, b):
        do(ledger, tasks.add, "One task of each")
        ledger.checkpoint()
    sync.sync(b, ORIGIN)
    there, here, real = pair.clones[0].git("ls-remote", "origin"), a.tip(), signing.sign
    with monkeypatch.context() as patch:
        patch.setattr(signing, "sign", lambda payload, key: real(payload + b"x", key))
        with pytest.raises(BadSignature, match="is not over these bytes"):
            sync.sync(a, ORIGIN)
    assert (pair.clones[0].git("ls-remote", "origin"), a.tip()) == (there, here)
    sync.sync(a, ORIGIN)
    assert names(a) >= names(b)


# ── locks of refs that are ours ──────────────────────────────────────────────────────────────
def test_a_lock_on_what_is_fetched_is_named_and_not_taken_for_the_servers(pair: Fleet) -> None:
    a, b = pair.ledgers
    do(a, entries.note, "From a", None)
    sync.sync(a, ORIGIN)
    lock = Path(b.gitdir.common) / "refs" / "ledgers" / "incoming" / "origin" / "main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(LockHeld, match=r"main\.lock exists, so a git process is moving this ref, or died"):
        sync.sync(b, ORIGIN)
    assert [c.what for c in doctor.checks(b) if str(lock) in c.what]
    lock.unlink()
    assert sync.sync(b, ORIGIN).fetched == 1
    assert not [c.what for c in doctor.checks(b) if str(lock) in c.what]


def test_a_fetch_that_is_stopped_leaves_no_lock(pair: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    b = pair.ledgers[1]
    lock = Path(b.gitdir.common) / "refs" / "ledgers" / "incoming" / "origin" / "main.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    # A git that is killed while it holds the lock: the real one, but for a fetch.
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ncase " $* " in *" fetch "*) touch "{lock}"; sleep 60 ;; esac\nexec {shutil.which("git")} "$@"\n'
    )
    slow.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        with pytest.raises(TryAgain, match="did not answer within the time"):
            sync.sync(b, ORIGIN, syncing.Ways(deadline=3))
    assert not lock.exists()
    sync.sync(b, ORIGIN)
