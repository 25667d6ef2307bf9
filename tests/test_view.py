"""The view: what people call a record, where it lies, and what an id that people write names."""

from __future__ import annotations

from typing import Any

import pytest

from gitledger import codec, layout, listing
from gitledger.codec import record_bytes
from gitledger.errors import BadData, NoSuchRecord
from gitledger.model import Change, Event, Key
from gitledger.view import View

T1A, T1B = "T-0001@aaaaaa", "T-0001@bbbbbb"


def event(seq: int, writer: str, records: dict[str, Change], lamport: int | None = None, at: str = "") -> Event:
    at = at or f"2026-11-30T10:00:{seq:02}.000Z"
    return Event(1, f"id-{writer}-{seq}", writer, seq, lamport or seq, at, "test", None, None, records, {}, "")


def fold_in(view: View, *events: Event) -> View:
    for one in events:
        view.apply(one, codec.event_line(one))
    return view


def empty() -> View:
    return View(lambda path: None)


def task(title: str, at: str, slug: str = "", **more: object) -> Change:
    return Change({"title": title, "slug": slug, "status": "planned", "at": at, **more})


def tree_of(view: View) -> dict[str, bytes]:
    """The files by which a later view finds this one's records again."""
    files = {layout.MANIFEST: codec.pretty(view.manifest.value())}
    for folder in view.touched_folders():
        files[f"{folder}/index.json"] = codec.pretty({"rows": view.rows(folder)})
        kind = folder.partition("/")[0]
        (of,) = (k for k in layout.KINDS.values() if k.folder == kind)
        files[f"{kind}/index.json"] = codec.pretty({"shards": view.shards(of)})
    for key in view.touched:
        files[f"{view.stem(key)}.json"] = record_bytes(view.need(key))
    return files


# ── names ────────────────────────────────────────────────────────────────────────────────────
def test_the_record_made_first_keeps_the_bare_name_in_every_order_of_arrival():
    mine = event(1, "aaaaaa", {T1A: task("Mine", "2026-11-30T10:00:00.000Z")})
    theirs = event(1, "bbbbbb", {T1B: task("Theirs", "2026-11-30T09:00:00.000Z")})
    for order in ((mine, theirs), (theirs, mine)):
        view = fold_in(empty(), *order)
        assert (view.name(T1B), view.name(T1A)) == ("T-0001", T1A)
        assert view.stem(T1B) == "tasks/00xx/T-0001/task"
        assert view.stem(T1A) == "tasks/00xx/T-0001@aaaaaa/task"


def test_two_records_of_one_moment_are_told_apart_by_journal_order():
    at = "2026-11-30T10:00:00.000Z"
    view = fold_in(empty(), event(2, "aaaaaa", {T1A: task("Mine", at)}), event(1, "bbbbbb", {T1B: task("Theirs", at)}))
    assert view.name(T1B) == "T-0001"


def test_a_name_is_asked_again_after_each_event():
    view = fold_in(empty(), event(1, "aaaaaa", {T1A: task("Mine", "2026-11-30T10:00:00.000Z")}))
    assert view.name(T1A) == "T-0001"
    fold_in(view, event(1, "bbbbbb", {T1B: task("Theirs", "2026-11-30T09:00:00.000Z")}))
    assert view.name(T1A) == T1A


def test_a_record_is_found_where_the_tip_has_it_though_an_event_took_its_name():
    tip = tree_of(
        fold_in(empty(), event(1, "aaaaaa", {T1A: task("Mine", "2026-11-30T10:00:00.000Z", "mine", goal="x")}))
    )
    view = View(tip.get)
    fold_in(view, event(1, "bbbbbb", {T1B: task("Theirs", "2026-11-30T09:00:00.000Z")}))
    fold_in(view, event(2, "aaaaaa", {T1A: Change({"status": "active"})}))
    assert view.need(T1A).get("goal") == "x"
    assert view.tip_stem(T1A) == "tasks/00xx/T-0001-mine/task"
    assert view.stem(T1A) == "tasks/00xx/T-0001@aaaaaa-mine/task"
    assert view.tip_stem(T1B) is None


def test_a_checkpoint_lies_below_its_task_and_beside_the_index_without_one():
    c1, c2 = "C-000123@aaaaaa", "C-000124@aaaaaa"
    view = fold_in(
        empty(),
        event(1, "aaaaaa", {T1A: task("Mine", "2026-11-30T10:00:00.000Z", "mine")}),
        event(2, "aaaaaa", {c1: Change({"title": "one", "task": T1A, "at": "2026-11-30T10:00:01.000Z"})}),
        event(3, "aaaaaa", {c2: Change({"title": "two", "task": None, "at": "2026-11-30T10:00:02.000Z"})}),
    )
    assert view.stem(c1) == "tasks/00xx/T-0001-mine/checkpoints/0001xx/C-000123"
    assert view.stem(c2) == "checkpoints/0001xx/C-000124"


def test_a_slug_from_elsewhere_cannot_leave_its_folder():
    view = fold_in(empty(), event(1, "aaaaaa", {T1A: task("x", "2026-11-30T10:00:00.000Z", "../../keys/Ä x")}))
    assert view.stem(T1A) == "tasks/00xx/T-0001-keysx/task"


# ── resolve ──────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def shared() -> View:
    """Two writers made T-0001; bbbbbb was first."""
    return fold_in(
        empty(),
        event(1, "aaaaaa", {T1A: task("Mine", "2026-11-30T10:00:00.000Z")}),
        event(1, "bbbbbb", {T1B: task("Theirs", "2026-11-30T09:00:00.000Z")}),
        event(2, "bbbbbb", {"T-0002@bbbbbb": task("Other", "2026-11-30T09:00:01.000Z")}),
    )


def test_a_bare_number_is_the_record_that_shows_it(shared):
    assert shared.resolve("T-0001") == T1B


def test_a_bare_number_is_a_writers_own_record_first(shared):
    assert shared.resolve("T-0001", writer="aaaaaa") == T1A
    assert shared.resolve("T-0002", writer="aaaaaa") == "T-0002@bbbbbb"


def test_a_full_id_is_its_record_even_where_it_shows_bare(shared):
    assert shared.resolve("T-0001@bbbbbb", writer="aaaaaa") == T1B
    assert shared.resolve("T-0001@aaaaaa") == T1A


@pytest.mark.parametrize("text", ["T-0009", "T-0001@cccccc", "D-0001", "S-0123456789ab"])
def test_an_id_that_names_nothing_is_refused_with_a_command_that_lists(shared, text):
    with pytest.raises(NoSuchRecord, match=r"list .*: gitledger"):
        shared.resolve(text)


@pytest.mark.parametrize("text", ["", "seven", "T-1", "T-0001@", "T-0001@AAAAAA", "\x1b[31mT-0001", "T-0001\n"])
def test_what_is_no_id_is_refused_with_what_one_looks_like(shared, text):
    with pytest.raises(BadData, match="T-0007"):
        shared.resolve(text)


def test_an_id_of_another_kind_is_refused(shared):
    with pytest.raises(BadData, match="decision id"):
        shared.resolve("T-0001", layout.DECISION)


# ── lists ────────────────────────────────────────────────────────────────────────────────────
def many(n: int) -> View:
    view = empty()
    for i in range(1, n + 1):
        status = "planned" if i % 3 == 0 else "done"
        change = Change({"title": f"Task {i}", "slug": "", "status": status, "at": f"2026-11-30T10:00:00.{i:03}Z"})
        fold_in(view, event(i, "aaaaaa", {f"T-{i:04}@aaaaaa": change}))
    return view


def test_open_records_come_newest_first_and_are_counted_in_all():
    rows, total = many(250).open_rows(layout.TASK, 3)
    assert [key for key, _ in rows] == ["T-0249@aaaaaa", "T-0246@aaaaaa", "T-0243@aaaaaa"]
    assert total == 83


def test_open_records_are_the_same_from_the_tip_and_with_events_on_top():
    tip = tree_of(many(250))
    view = View(tip.get)
    fold_in(view, event(251, "aaaaaa", {"T-0249@aaaaaa": Change({"status": "done"})}))
    rows, total = view.open_rows(layout.TASK, 2)
    assert [key for key, _ in rows] == ["T-0246@aaaaaa", "T-0243@aaaaaa"]
    assert total == 82


def test_listing_a_few_open_records_reads_a_few_shards():
    tip = tree_of(many(900))
    read: list[str] = []
    view = View(lambda path: read.append(path) or tip.get(path))  # type: ignore[func-returns-value]
    view.open_rows(layout.TASK, 5)
    assert [path for path in read if "xx/" in path] == ["tasks/09xx/index.json", "tasks/08xx/index.json"]


def test_walking_a_kind_yields_every_record_once_oldest_first():
    tip = tree_of(many(250))
    view = View(tip.get)
    fold_in(view, event(251, "aaaaaa", {"T-0301@aaaaaa": task("New", "2026-11-30T10:00:01.000Z")}))
    assert [key for key, _ in view.walk(layout.TASK)] == [f"T-{i:04}@aaaaaa" for i in [*range(1, 251), 301]]


def test_the_next_number_is_one_above_the_highest_of_all_writers(shared):
    assert shared.next_number(layout.TASK, "aaaaaa") == "T-0003@aaaaaa"
    assert shared.next_number(layout.DECISION, "aaaaaa") == "D-0001@aaaaaa"


def test_a_manifest_of_a_newer_format_is_refused():
    view = empty()
    newer = codec.pretty({**view.manifest.value(), "format": layout.FORMAT + 1})
    with pytest.raises(BadData, match="update gitledger"):
        View({layout.MANIFEST: newer}.get)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"format":1}'])
def test_a_damaged_manifest_is_refused_by_name(data):
    with pytest.raises(BadData, match=r"manifest\.json"):
        View({layout.MANIFEST: data}.get)


# ── lists of a shard ─────────────────────────────────────────────────────────────────────────
GONE = object()
ODD: tuple[Any, ...] = (
    *(GONE, None, "", "a-b", "A b", "T-0001@ada1", 0, True, 1.5, {}, [], ["x"], ["T-0001@ada1"], [1, "ada1", 2]),
    *([True, "ada1", 2], [1, "ada1", True], [1, 2, 3], [1, "ada1"], [[], "ada1", 2]),
)
KEYS = ("T-0002@bob2", "T-0101@ada1", "D-0001@ada1", "session:x", "T-1", "")


@pytest.mark.parametrize(("folder", "letter"), [("tasks/00xx", "T"), ("decisions/00xx", "D")])
def test_rows_that_pass_all_at_once_would_pass_one_by_one(folder: str, letter: str) -> None:
    row: dict[str, Any] = {"state": "open", "status": "", "title": "x", "at": "", "task": None, "born": [1, "ada1", 2]}
    row |= {"slug": "a-b", "area": ""} if letter == "T" else {}
    rows: dict[Key, Any] = {f"{letter}-{n:04}@ada1": row for n in (1, 2)}
    assert listing._are_plain(rows, folder), "as gitledger writes them"
    changed = [{**row, name: value} for name in (*row, "depends", "parent", "more") for value in ODD]
    changed = [{name: value for name, value in one.items() if value is not GONE} for one in changed]
    tried = [{**rows, f"{letter}-0003@ada1": one} for one in (*changed, *ODD[1:])]
    tried += [{**rows, key: row} for key in KEYS]
    passed = [one for one in tried if listing._are_plain(one, folder)]
    assert 0 < len(passed) < len(tried)
    for one in passed:
        assert all(listing._is_row(key, value, folder) for key, value in one.items()), one
