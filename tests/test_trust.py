"""The decision tables of trust, row by row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gitledger.model import DETACHED, UNBORN, Ancestry, Authenticity, Divergence, Freshness, Position, Relation, Stamp
from gitledger.trust import (
    WHY,
    Candidate,
    age_words,
    divergence,
    freshness,
    milliseconds,
    needs_relation,
    resolve,
    verdict,
)

OLD, NEW = "a" * 40, "b" * 40
THEN = Position("main", OLD, tree="t" * 40)
NOW = Position("main", NEW, tree="u" * 40)
HOUR = 3_600_000
NOON = "2026-11-30T12:00:00.000Z"
NOON_MS = 1_796_040_000_000


# ── divergence ───────────────────────────────────────────────────────────────────────────────
def test_the_same_head_on_the_same_branch_is_exact() -> None:
    assert divergence(THEN, THEN, None, same_ledger=True) == Divergence("exact")
    assert not needs_relation(THEN, THEN, same_ledger=True)


def test_both_unborn_is_exact() -> None:
    unborn = Position("main", UNBORN)
    assert divergence(unborn, unborn, None, same_ledger=True).label == "exact"


@pytest.mark.parametrize(("then", "now"), [(UNBORN, NEW), (OLD, UNBORN)])
@pytest.mark.parametrize("ancestry", ["unrelated", "descends", "same", "rewound"])
def test_one_side_unborn_is_never_exact_nor_advanced(then: str, now: str, ancestry: Ancestry) -> None:
    found = divergence(replace(THEN, head=then), replace(NOW, head=now), Relation(ancestry), same_ledger=True)
    assert found.label == "diverged"
    assert found.reason


def test_a_descendant_is_advanced_and_carries_its_commits() -> None:
    relation = Relation("descends", ((NEW, "two"),), 1)
    assert needs_relation(THEN, NOW, same_ledger=True)
    assert divergence(THEN, NOW, relation, same_ledger=True) == Divergence("advanced", "", relation)


@pytest.mark.parametrize("ancestry", ["rewound", "rewritten", "forked", "unrelated", "missing", "unknown"])
def test_any_other_answer_is_diverged_with_that_reason(ancestry: Ancestry) -> None:
    found = divergence(THEN, NOW, Relation(ancestry), same_ledger=True)
    assert (found.label, found.reason) == ("diverged", ancestry)
    assert WHY[found.reason]


@pytest.mark.parametrize("relation", [None, Relation("same")])
def test_no_answer_or_a_contradicting_one_is_diverged_unknown(relation: Relation | None) -> None:
    found = divergence(THEN, NOW, relation, same_ledger=True)
    assert (found.label, found.reason) == ("diverged", "unknown")


def test_a_record_that_names_no_head_is_never_exact() -> None:
    blank = Position("main", "")
    assert divergence(blank, blank, None, same_ledger=True).label == "diverged"


@pytest.mark.parametrize(
    ("recorded", "present", "same_ledger", "merged", "reason"),
    [
        (THEN, THEN, False, False, "other ledger"),
        (THEN, replace(THEN, branch="dev"), False, True, "other ledger"),
        (THEN, replace(THEN, branch="dev"), True, False, "other branch"),
        (THEN, replace(THEN, branch="Main"), True, False, "other branch"),
        (THEN, replace(NOW, branch="dev"), True, True, "merged"),
        (THEN, replace(THEN, branch=DETACHED), True, False, "detached"),
        (replace(THEN, branch=DETACHED), THEN, True, False, "detached"),
        (replace(THEN, branch=DETACHED), NOW, True, True, "detached"),
    ],
)
def test_another_context_comes_before_any_comparison_of_commits(
    recorded: Position, present: Position, same_ledger: bool, merged: bool, reason: str
) -> None:
    found = divergence(recorded, present, Relation("descends"), same_ledger=same_ledger, merged=merged)
    assert (found.label, found.reason) == ("different_context", reason)
    assert not needs_relation(recorded, present, same_ledger=same_ledger)


def test_detached_then_and_now_is_one_context() -> None:
    then, now = replace(THEN, branch=DETACHED), replace(NOW, branch=DETACHED)
    assert divergence(then, then, None, same_ledger=True).label == "exact"
    assert divergence(then, now, Relation("descends"), same_ledger=True).label == "advanced"


def test_a_dirty_tree_never_changes_the_label() -> None:
    dirty = replace(THEN, dirty=7, fingerprint="~x", operation="merge")
    assert divergence(THEN, dirty, None, same_ledger=True).label == "exact"
    assert divergence(dirty, NOW, Relation("descends"), same_ledger=True).label == "advanced"


# ── freshness ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("age", "label"),
    [
        (0, "fresh"),
        (12 * HOUR - 1, "fresh"),
        (12 * HOUR, "aging"),
        (48 * HOUR - 1, "aging"),
        (48 * HOUR, "stale"),
        (10_000 * HOUR, "stale"),
        (-300_000, "fresh"),
        (-300_001, "invalid"),
    ],
)
def test_freshness_changes_exactly_at_its_borders(age: int, label: str) -> None:
    assert freshness(NOON, NOON_MS + age) == label


def test_the_thresholds_are_the_configs() -> None:
    assert freshness(NOON, NOON_MS + HOUR, fresh_hours=1, stale_hours=2) == "aging"
    assert freshness(NOON, NOON_MS + 2 * HOUR, fresh_hours=1, stale_hours=2) == "stale"
    assert freshness(NOON, NOON_MS + 3 * HOUR, fresh_hours=9, stale_hours=2) == "stale"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-11-30",
        "2026-11-30T12:00:00Z",
        "2026-11-30T12:00:00.000",
        "2026-11-30T12:00:00.000+01:00",
        "2026-02-31T12:00:00.000Z",
        "2026-11-30T25:00:00.000Z",
        "2026-11-30T12:00:00.000Z\n",
        "٢٠٢٦-11-30T12:00:00.000Z",
        "0000-01-01T00:00:00.000Z",
    ],
)
def test_a_time_that_is_none_is_invalid(text: str) -> None:
    assert milliseconds(text) is None
    assert freshness(text, NOON_MS) == "invalid"
    assert age_words(text, NOON_MS) == "at an unknown time"


def test_milliseconds_are_exact() -> None:
    assert milliseconds(NOON) == NOON_MS
    assert milliseconds("2026-11-30T12:00:00.123Z") == NOON_MS + 123
    assert milliseconds("1970-01-01T00:00:00.000Z") == 0


def test_a_time_is_what_the_standard_library_reads_of_it() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for year in (
        0,
        1,
        3,
        4,
        100,
        400,
        1582,
        1600,
        1899,
        1900,
        1969,
        1970,
        1999,
        2000,
        2023,
        2024,
        2026,
        2100,
        2400,
        9999,
    ):
        for month in range(14):
            for day in (0, 1, 9, 28, 29, 30, 31, 32):
                for clock in ("00:00:00.000", "23:59:59.999", "25:00:00.000", "12:60:00.000", "12:00:60.000"):
                    text = f"{year:04}-{month:02}-{day:02}T{clock}Z"
                    try:
                        wanted = (datetime.fromisoformat(text) - epoch) // timedelta(milliseconds=1)
                    except ValueError:
                        wanted = None
                    assert milliseconds(text) == wanted, text


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-300_001, "in the future"),
        (-1, "just now"),
        (59_999, "just now"),
        (60_000, "1 min ago"),
        (HOUR - 1, "59 min ago"),
        (3 * HOUR, "3 h ago"),
        (48 * HOUR - 1, "47 h ago"),
        (48 * HOUR, "2 days ago"),
    ],
)
def test_ages_are_told_in_round_words(age: int, words: str) -> None:
    assert age_words(NOON, NOON_MS + age) == words


# ── verdict ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("label", ["exact", "advanced"])
@pytest.mark.parametrize("age", ["fresh", "aging"])
def test_only_all_three_good_facts_are_trusted(label: str, age: Freshness) -> None:
    good = Divergence("exact") if label == "exact" else Divergence("advanced")
    assert verdict(good, age, "verified").trusted
    assert not verdict(good, age, "unverifiable").trusted
    assert not verdict(good, "stale", "verified").trusted
    assert not verdict(Divergence("diverged", "forked"), age, "verified").trusted


@pytest.mark.parametrize(
    ("found", "age", "signed", "words"),
    [
        (Divergence("diverged", "rewound"), "fresh", "verified", ["rewound"]),
        (Divergence("different_context", "merged"), "fresh", "verified", ["merged"]),
        (Divergence("exact"), "stale", "verified", ["stale"]),
        (Divergence("exact"), "invalid", "verified", ["invalid"]),
        (Divergence("exact"), "fresh", "unknown signer", ["unknown signer"]),
        (Divergence("exact"), "fresh", "bad", ["bad signature"]),
        (Divergence("exact"), "fresh", "unverifiable", ["unverifiable"]),
        (Divergence("diverged", "missing"), "stale", "bad", ["missing", "stale", "bad signature"]),
    ],
)
def test_each_fault_gives_a_reason_of_its_own(
    found: Divergence, age: Freshness, signed: Authenticity, words: list[str]
) -> None:
    withheld = verdict(found, age, signed).withheld
    assert len(withheld) == len(words)
    for reason, word in zip(withheld, words, strict=True):
        assert word in reason
        assert "\n" not in reason


def test_a_rewritten_commit_is_named_by_what_it_became() -> None:
    found = Divergence("diverged", "rewritten", Relation("rewritten", successor=NEW))
    assert NEW[:12] in verdict(found, "fresh", "verified").withheld[0]


# ── resolve ──────────────────────────────────────────────────────────────────────────────────
def candidate(
    key: str,
    at: str = NOON,
    *,
    ledger: str = "L",
    writer: str = "me",
    worktree: str = "main",
    branch: str = "main",
    lamport: int = 1,
) -> Candidate:
    return Candidate(key, ledger, writer, worktree, branch, at, Stamp(lamport, writer, lamport))


LATER, LATEST = "2026-11-30T13:00:00.000Z", "2026-11-30T14:00:00.000Z"


def outcomes(*candidates: Candidate, branch: str = "main") -> list[tuple[str, int | None, str]]:
    found = resolve(candidates, ledger="L", writer="me", worktree="main", branch=branch)
    assert all(choice.reason for choice in found)
    return [(choice.candidate.key, choice.tier, choice.outcome) for choice in found]


def test_nothing_to_choose_from_selects_nothing() -> None:
    assert outcomes() == []


def test_a_nearer_tier_beats_a_newer_time() -> None:
    assert outcomes(candidate("far", LATEST, writer="other"), candidate("near")) == [
        ("near", 0, "selected"),
        ("far", 1, "superseded"),
    ]


def test_within_a_tier_the_newest_wins() -> None:
    assert outcomes(candidate("old"), candidate("new", LATEST), candidate("mid", LATER)) == [
        ("new", 0, "selected"),
        ("mid", 0, "superseded"),
        ("old", 0, "superseded"),
    ]


def test_a_tie_in_time_goes_by_the_journals_order() -> None:
    assert outcomes(candidate("b", lamport=9), candidate("a", lamport=10)) == [
        ("a", 0, "selected"),
        ("b", 0, "superseded"),
    ]


def test_the_same_branch_in_another_worktree_or_clone_is_tier_one() -> None:
    assert outcomes(candidate("tree", worktree="wt"))[0] == ("tree", 1, "selected")
    assert outcomes(candidate("clone", writer="other"))[0] == ("clone", 1, "selected")


def test_there_is_no_third_tier() -> None:
    assert outcomes(candidate("branch", branch="dev"), candidate("ledger", ledger="M")) == [
        ("branch", None, "rejected"),
        ("ledger", None, "rejected"),
    ]


def test_a_detached_head_matches_tier_zero_only() -> None:
    mine = candidate("mine", branch=DETACHED)
    theirs = candidate("theirs", LATEST, branch=DETACHED, writer="other")
    elsewhere = candidate("elsewhere", LATER, branch=DETACHED, worktree="wt")
    assert outcomes(theirs, mine, elsewhere, branch=DETACHED) == [
        ("mine", 0, "selected"),
        ("theirs", None, "rejected"),
        ("elsewhere", None, "rejected"),
    ]
    assert outcomes(mine, branch="main") == [("mine", None, "rejected")]


def test_a_time_that_is_none_is_older_than_any() -> None:
    assert outcomes(candidate("broken", "zzzz"), candidate("whole"))[0] == ("whole", 0, "selected")
