"""Folding: the same events in any order, and any way of merging what each side saw, end in the same record."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gitledger import fold
from gitledger.codec import record_bytes
from gitledger.model import Change, Record, Stamp

TASK = "T-0001@aaaaaa"
CHECKPOINT = "C-000001@aaaaaa"
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b", "é"]))
FIELDS = st.dictionaries(st.sampled_from(["title", "status", "next"]), VALUES, max_size=3)
ITEMS = st.dictionaries(
    st.sampled_from(["criteria", "links"]),
    st.dictionaries(st.sampled_from(["c1@aaaaaa", "c1@bbbbbb"]), FIELDS.filter(bool), max_size=2),
    max_size=2,
)


@dataclass(frozen=True, slots=True)
class Said:
    change: Change
    stamp: Stamp


@st.composite
def histories(draw: st.DrawFn, least: int = 0) -> list[Said]:
    """What was said of one record: each time with a stamp of its own, as events have them."""
    stamps = st.builds(Stamp, st.integers(1, 6), st.sampled_from(["aaaaaa", "bbbbbb"]), st.integers(1, 6))
    taken = draw(st.lists(stamps, unique=True, min_size=least, max_size=8))
    return [Said(Change(draw(FIELDS), draw(ITEMS)), stamp) for stamp in taken]


def folded(key: str, said: list[Said]) -> Record:
    record = Record(key)
    for one in said:
        record = fold.apply(record, key, one.change, one.stamp)
    return record


@given(histories(), st.randoms(use_true_random=False), st.sampled_from([TASK, CHECKPOINT]))
def test_the_order_of_events_makes_no_difference(said, random, key):
    shuffled = random.sample(said, len(said))
    assert record_bytes(folded(key, shuffled)) == record_bytes(folded(key, said))


@given(histories(), st.data(), st.sampled_from([TASK, CHECKPOINT]))
def test_merging_what_each_saw_is_folding_all(said, data, key):
    mine = [one for one in said if data.draw(st.booleans())]
    theirs = [one for one in said if one not in mine or data.draw(st.booleans())]
    assert record_bytes(fold.merge(folded(key, mine), folded(key, theirs))) == record_bytes(folded(key, said))


@given(histories(), histories(), histories(), st.sampled_from([TASK, CHECKPOINT]))
def test_merge_is_commutative_associative_and_idempotent(one, two, three, key):
    # The three may even hold other values under one stamp, as a copied writer id would make them.
    a, b, c = (folded(key, said) for said in (one, two, three))
    assert record_bytes(fold.merge(a, b)) == record_bytes(fold.merge(b, a))
    assert record_bytes(fold.merge(fold.merge(a, b), c)) == record_bytes(fold.merge(a, fold.merge(b, c)))
    assert record_bytes(fold.merge(a, a)) == record_bytes(a)


@given(histories())
def test_nothing_but_a_later_stamp_replaces_a_field(said):
    record = folded(TASK, said)
    for name in {n for one in said for n in one.change.set}:
        last = max((one for one in said if name in one.change.set), key=lambda one: one.stamp)
        assert record.fields[name] == (last.change.set[name], last.stamp)
    for one in said:
        for listed, items in one.change.items.items():
            assert items.keys() <= record.items[listed].keys()


@given(histories(least=1))
def test_an_immutable_record_keeps_its_first_statement_whole(said):
    spoken = [one for one in said if one.change.set]
    record = folded(CHECKPOINT, said)
    if spoken:
        first = min(spoken, key=lambda one: one.stamp)
        assert {n: v for n, (v, _) in record.fields.items()} == first.change.set


def test_an_immutable_record_is_not_mended_by_a_later_event():
    first = fold.apply(None, CHECKPOINT, Change({"next": "Run the tests", "reason": "manual"}), Stamp(3, "aaaaaa", 3))
    again = fold.apply(first, CHECKPOINT, Change({"next": "Push", "branch": "x"}), Stamp(4, "bbbbbb", 1))
    assert again == first


# ── conflicts ────────────────────────────────────────────────────────────────────────────────
def at(lamport: int, writer: str, **fields: object) -> Record:
    return fold.apply(None, TASK, Change(dict(fields)), Stamp(lamport, writer, lamport))


BASE = at(1, "aaaaaa", title="Login", status="planned")


def test_a_field_that_both_sides_set_is_reported_with_the_value_that_lost():
    mine = fold.merge(BASE, at(2, "aaaaaa", status="active"))
    theirs = fold.merge(BASE, at(3, "bbbbbb", status="dropped"))
    assert fold.merge(mine, theirs).get("status") == "dropped"
    for a, b in itertools.permutations((mine, theirs)):
        (found,) = fold.conflicts(BASE, a, b)
        assert found.where == f"{TASK} status"
        assert "aaaaaa" in found.what
        assert '"active"' in found.what


def test_a_field_that_one_side_set_after_seeing_the_other_is_no_conflict():
    mine = fold.merge(BASE, at(2, "aaaaaa", status="active"))
    assert fold.conflicts(BASE, mine, BASE) == []
    assert fold.conflicts(mine, mine, fold.merge(mine, at(3, "bbbbbb", status="done"))) == []


def test_setting_different_fields_or_the_same_value_is_no_conflict():
    mine = fold.merge(BASE, at(2, "aaaaaa", status="active", title="Login page"))
    theirs = fold.merge(BASE, at(2, "bbbbbb", status="active", next="Write the form"))
    assert fold.conflicts(BASE, mine, theirs) == []


def test_a_record_that_both_sides_made_without_a_common_one_is_compared_field_by_field():
    found = fold.conflicts(None, at(1, "aaaaaa", title="One", at="t"), at(1, "bbbbbb", title="Two", at="t"))
    assert [f.where for f in found] == [f"{TASK} title"]
