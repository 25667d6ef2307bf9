"""A slice of the yardstick: what a capsule recalls of made-up projects, beside three simpler ways."""

from __future__ import annotations

from pathlib import Path

from benchmarks import recall
from benchmarks.histories import History
from tests.sealed import LONG

HISTORIES, FIRST = 12 if LONG else 8, 400


def test_a_capsule_finds_more_than_the_simpler_ways_leaks_nothing_and_invents_nothing(
    tmp_path: Path, home: Path
) -> None:
    tally = recall.measure(tmp_path / "recall", HISTORIES, first=FIRST)
    for tokens in recall.TOKENS:
        ours, *theirs = (tally.share(way, tokens) for way in recall.WAYS)
        assert ours > max(theirs), (tokens, ours, theirs)
    assert tally.share("capsule", 1_000) > 0.85
    assert tally.leaked["capsule"] == 0
    assert tally.leaked["newest records"] > 0, "nothing was there that could be leaked"
    assert tally.invented == []
    assert tally.over == 0
    assert tally.mislabelled() == 0
    assert {done for done, *_ in tally.labels} == set(recall.EXPECTED)


def test_the_yardstick_sees_an_invented_quotation_and_a_wrong_label() -> None:
    told = History(1, texts=["Codes have six digits"])
    assert recall.invented('- D-0001: "Codes have six digits"\n<<< x\nCodes have\n>>> x\n', told) == []
    assert recall.invented('- D-0001: "Codes have seven digits"\n', told) == ["Codes have seven digits"]
    tally = recall.Tally()
    tally.labels["same", "exact", ""] += 1
    tally.labels["ahead", "exact", ""] += 1
    assert tally.mislabelled() == 1
