"""The ledger against itself: every kind of fault is found, one never hides another, and a sound ledger has none."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import audit, cli, codec, discover, entries, layout, objects, reading, tasks, wal
from gitledger.ledger import Ledger
from gitledger.store import MemoryStore
from gitledger.view import View
from tests.ledgers import again, begin, do, tamper
from tests.sealed import Repo


def run(repo: Repo, *words: str) -> int:
    """A command, in this process."""
    return cli.group.main(["-C", str(repo.path), *words], "gitledger", standalone_mode=False) or 0


def lived(repo: Repo) -> Ledger:
    """A ledger with something of everything, over several commits."""
    book = begin(repo)
    first = do(book, tasks.add, "Authentication", accept=("logs in", "logs out"))
    do(book, tasks.start, first)
    book.checkpoint()
    do(book, entries.decide, "Cookies", "Simple", first, None)
    blocker = do(book, entries.block, "No test server", first)
    do(book, entries.ask, "Which colour?", None)
    session = book.start_session("generic", "one")
    book.checkpoint()
    do(book, entries.resolve, blocker, "There is one now")
    do(book, entries.artifact, "docs/login.md", "The login page", "", first)
    do(book, entries.note, "Remember the milk\nand the honey", first)
    repo.commit("work")
    book.end_session(session)
    second = do(book, tasks.add, "Second", depends=(first,))
    book.checkpoint()
    assert second
    return book


def rules(book: Ledger) -> set[str]:
    return {finding.rule for finding in audit.fsck(book)}


def rebuilt(book: Ledger, root: str) -> str:
    with audit.rebuilt(book, root) as made:
        return made.tree


def read(book: Ledger, path: str) -> bytes:
    data = objects.read(book.desk.store.get, book.tip(), path)
    assert data is not None, path
    return data


# ── what is sound ────────────────────────────────────────────────────────────────────────────
def test_a_sound_ledger_has_no_finding(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    lived(repo)
    assert run(repo, "fsck") == 0
    assert capfd.readouterr().out == "The ledger is clean.\n"
    assert run(repo, "fsck", "--json") == 0
    assert json.loads(capfd.readouterr().out) == {"clean": True, "total": 0, "findings": []}


def test_the_journal_alone_makes_the_same_tree(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    lived(repo)
    assert run(repo, "rebuild", "--check", "--json") == 0
    value = json.loads(capfd.readouterr().out)
    assert value["tree"] == value["rebuilt"] == repo.tree("ledger/main")
    assert value["differing"] == []


@pytest.mark.parametrize("lot", [1, 2, 3, 7])
def test_a_rebuild_in_lots_makes_what_one_piece_makes(repo: Repo, monkeypatch: pytest.MonkeyPatch, lot: int) -> None:
    book = lived(repo)
    root = repo.tree("ledger/main")
    assert rebuilt(book, root) == root
    monkeypatch.setattr(audit, "LOT_EVENTS", lot)
    assert rebuilt(book, root) == root


def test_two_writers_journals_make_the_same_tree(repo: Repo, tmp_path: Path) -> None:
    lived(repo)
    other = repo.clone(tmp_path / "clone")
    other.git("branch", "ledger/main", "origin/ledger/main")
    discover.init(str(other.path), "main", None)
    book = again(other)
    do(book, tasks.add, "From the other clone")
    book.checkpoint()
    assert rebuilt(book, other.tree("ledger/main")) == other.tree("ledger/main")
    assert list(audit.fsck(book)) == []


def test_a_commit_of_several_parts_is_one_segment(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    monkeypatch.setattr("gitledger.ingest.SEGMENT_LIMIT", 2_000)
    for n in range(8):
        do(book, entries.note, f"note {n} " + "x" * 400, None)
    book.checkpoint()
    book.checkpoint()
    assert any(".1.jsonl" in path for path in repo.git("ls-tree", "-r", "--name-only", "ledger/main").split("\n"))
    assert list(audit.fsck(book)) == []
    assert rebuilt(book, repo.tree("ledger/main")) == repo.tree("ledger/main")


# ── what is not ──────────────────────────────────────────────────────────────────────────────
def segment(book: Ledger, n: int) -> str:
    return layout.segment(book.desk.writer.id, n)


def lines(book: Ledger, n: int) -> list[bytes]:
    return reading.lines(read(book, segment(book, n)))


Damage = Callable[[Ledger], dict[str, bytes | None]]
DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a changed document": (lambda b: {"INDEX.md": read(b, "INDEX.md") + b"\nmore\n"}, {"differs"}),
    "a changed record": (lambda b: {"project.json": read(b, "project.json").replace(b"Test", b"Best")}, {"differs"}),
    "a changed index": (lambda b: {"tasks/index.json": b"{}\n"}, {"differs"}),
    "a changed key": (lambda b: {"keys/allowed_signers": b"* ssh-ed25519 AAAA\n"}, {"differs"}),
    "a manifest that is none": (lambda b: {"manifest.json": b"[]\n"}, {"differs", "manifest"}),
    "a document that is gone": (lambda b: {"decisions/00xx/D-0001.md": None}, {"missing file"}),
    "a foreign file": (lambda b: {"tasks/00xx/notes.txt": b"x"}, {"foreign file"}),
    "a foreign workflow": (lambda b: {".github/workflows/x.yml": b"x"}, {"foreign file"}),
    "a foreign file in the journal": (lambda b: {f"journal/{b.desk.writer.id}/00/00/x.txt": b"x"}, {"foreign file"}),
    "a foreign folder in the journal": (lambda b: {"journal/Not A Writer/00/00/00.jsonl": b"x"}, {"foreign file"}),
    "a line that does not parse": (
        lambda b: {segment(b, 1): b"{broken\n" + b"".join(lines(b, 1)[1:])},
        {"line", "chain", "differs", "missing file", "foreign file"},
    ),
    "a line that was changed": (
        lambda b: {segment(b, 2): read(b, segment(b, 2)).replace(b"Cookies", b"Biscuit")},
        {"chain", "differs"},
    ),
    "a line in another form": (
        lambda b: {segment(b, 4): read(b, segment(b, 4)).replace(b'{"at":', b'{ "at":', 1)},
        {"form", "chain"},
    ),
    "a line that stands twice": (
        lambda b: {segment(b, 4): read(b, segment(b, 4)) + lines(b, 4)[-1]},
        {"seq", "order", "chain", "repeated"},
    ),
    "a line without its end": (lambda b: {segment(b, 4): read(b, segment(b, 4))[:-1]}, {"form", "differs"}),
    "a segment that is gone": (
        lambda b: {segment(b, 2): None},
        {"segment", "seq", "chain", "differs", "foreign file"},
    ),
    "a line of another writer": (
        lambda b: {layout.segment("zzzzzz", 0): lines(b, 0)[0]},
        {"writer", "repeated"},
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_fsck_finds(name: str, repo: Repo) -> None:
    book = lived(repo)
    make, expected = DAMAGES[name]
    changes = make(book)
    tamper(book, changes)
    found = list(audit.fsck(again(repo)))
    assert {finding.rule for finding in found} == expected
    assert all(finding.where and finding.what and finding.mend for finding in found)
    other = {finding.rule for finding in found} & {"differs", "missing file", "foreign file"}
    assert run(repo, "rebuild", "--check") == bool(other), "it is the journal and the tree that a rebuild compares"


def test_one_fault_never_hides_another(repo: Repo) -> None:
    book = lived(repo)
    tamper(
        book,
        {
            "INDEX.md": b"x",
            "stray.txt": b"x",
            "decisions/00xx/D-0001.json": b"{",
            "blockers/00xx/B-0001.md": None,
            segment(book, 1): b"{broken\n" + b"".join(lines(book, 1)[1:]),
        },
    )
    found = {(finding.rule, finding.where) for finding in audit.fsck(again(repo))}
    assert {
        ("differs", "INDEX.md"),
        ("foreign file", "stray.txt"),
        ("differs", "decisions/00xx/D-0001.json"),
        ("missing file", "blockers/00xx/B-0001.md"),
        ("line", f"{segment(book, 1)} line 1"),
    } <= found


def test_an_event_that_cannot_be_folded_is_named_and_the_others_are(repo: Repo) -> None:
    book = lived(repo)
    last = codec.read_event(lines(book, 4)[-1], "")
    prev = codec.line_hash(lines(book, 4)[-1])
    odd = b"".join(
        codec.event_line(event)
        for event in [
            codec.read_event(
                codec.canonical(
                    {
                        **json.loads(lines(book, 4)[-1]),
                        "id": "0197",
                        "seq": last.seq + 1,
                        "lamport": last.lamport + 1,
                        "prev": prev,
                        "records": {"../../etc": {"set": {"title": "x"}}},
                    }
                ),
                "",
            )
        ]
    )
    tamper(book, {segment(book, 5): odd})
    found = [finding for finding in audit.fsck(again(repo)) if finding.rule == "event"]
    assert len(found) == 1
    assert "is no record's key" in found[0].what


def test_documents_of_another_renderer_are_not_compared_and_records_are(repo: Repo) -> None:
    book = lived(repo)
    manifest = json.loads(read(book, "manifest.json"))
    manifest["renderer"] = 99
    tamper(book, {"manifest.json": codec.pretty(manifest), "INDEX.md": b"another style\n", "NEW.md": b"new kind\n"})
    assert list(audit.fsck(again(repo))) == []
    tamper(again(repo), {"project.json": b"{}\n"})
    assert [finding.where for finding in audit.fsck(again(repo))] == ["project.json"]


def without(repo: Repo, path: str) -> Ledger:
    """The ledger in a store that holds all of it but one object."""
    book = again(repo)
    store = MemoryStore()
    named = [row.split(" ")[0] for row in repo.git("rev-list", "--objects", "ledger/main").split("\n")]
    store.put([(oid, book.desk.store.get(oid)) for oid in named])
    store.swap(book.tip(), None, "test")
    del store.objects[repo.git("rev-parse", f"ledger/main:{path}")]
    return Ledger(replace(book.desk, store=store), book.gitdir)


def test_an_object_that_is_gone_is_named_with_its_path(repo: Repo) -> None:
    lived(repo)
    found = list(audit.fsck(without(repo, "decisions/00xx/D-0001.md")))
    assert [(f.rule, f.where) for f in found] == [("missing object", "decisions/00xx/D-0001.md")]


@pytest.mark.parametrize("path", ["decisions", "journal"])
def test_a_folder_that_is_gone_does_not_hide_the_rest(repo: Repo, path: str) -> None:
    tamper(lived(repo), {"stray.txt": b"x"})
    found = {finding.where for finding in audit.fsck(without(repo, path))}
    assert {f"{path}/", "stray.txt"} <= found


def test_damaged_lines_of_the_log_are_named_before_and_after_their_commit(repo: Repo) -> None:
    book = lived(repo)
    do(book, entries.note, "whole", None)
    log = Path(book.desk.home.wal) / wal.CURRENT
    with open(log, "ab") as f:
        f.write(b"GL1 00000000 nonsense\n")
    assert len([f for f in audit.fsck(again(repo)) if str(log) in f.where]) == 1
    book.checkpoint()
    kept = os.listdir(f"{book.desk.home.wal}/{wal.DAMAGED}")
    assert [(f.rule, f.where) for f in audit.fsck(again(repo))] == [
        ("damaged log", f"{book.desk.home.wal}/{wal.DAMAGED}/{kept[0]}")
    ]


def test_fsck_prints_what_where_and_the_next_step_and_exits_1(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    tamper(lived(repo), {"stray\x1b.txt": b"x"})
    assert run(repo, "fsck") == 1
    out = capfd.readouterr().out
    assert "foreign file: stray\\u{1b}.txt: no event accounts for it; look at it with: gitledger get" in out
    assert "1 finding." in out


def test_rebuild_names_the_first_paths_that_differ(repo: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    tamper(lived(repo), {f"stray-{n:02}.txt": b"x" for n in range(30)})
    assert run(repo, "rebuild", "--check", "--json") == 1
    value = json.loads(capfd.readouterr().out)
    assert value["differing"] == [f"stray-{n:02}.txt" for n in range(20)]
    assert value["more"]
    assert value["tree"] != value["rebuilt"]


# ── views and lots ───────────────────────────────────────────────────────────────────────────
def test_a_scratch_store_gives_back_what_it_was_given_and_reads_the_rest_from_the_ledger(repo: Repo) -> None:
    book = begin(repo)
    scratch = audit.Scratch(book.desk.store.get)
    made = []
    for n in range(200):
        data = random.Random(n).randbytes(n * 13)
        made.append((objects.oid("blob", data), objects.Object("blob", data)))
    scratch.put(made)
    assert all(scratch.get(oid) == thing for oid, thing in made)
    assert scratch.get(book.tip()).kind == "commit"
    scratch.close()


def test_a_fork_of_a_view_is_not_seen_by_the_view(repo: Repo) -> None:
    book = lived(repo)
    view = book.view()
    before = (json.dumps(view.manifest.value()), dict(view.rows("tasks/00xx")), dict(view.touched))
    fork = view.fork()
    from gitledger import ingest

    key, draft = tasks.add(fork, book.hand(), "Only in the fork")
    ingest.stamp(fork, draft, book.desk.writer.id)
    assert fork.record(key) is not None
    assert fork.next_number(layout.TASK, "w") != view.next_number(layout.TASK, "w")
    assert (json.dumps(view.manifest.value()), dict(view.rows("tasks/00xx")), dict(view.touched)) == before
    assert view.record(key) is None
    assert isinstance(fork, View)
