"""Several processes on one clone, beside gc, a stopped holder of the lock and killed ones: `stampede` in short."""

from __future__ import annotations

from pathlib import Path

from tests import stampede


def test_nothing_acknowledged_is_lost_repeated_or_torn_and_nothing_stays_wedged(tmp_path: Path) -> None:
    told = stampede.run(tmp_path, processes=4, events=24, checkpoints=3)
    assert (told.events, told.checkpoints) == (96, 12)
    assert told.collected > 0
