"""A replayed project: what every start is told is what was said and done, `replay` in short. Other seeds by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import replay
from tests.replay_agents import SPOKEN
from tests.replay_story import LONG, SHORT
from tests.sealed import LONG as ALL

SEEDS = (1,)
CLIENTS = tuple(SPOKEN) if ALL else ("claude-code", "codex")


@pytest.mark.process
@pytest.mark.parametrize("seed", SEEDS)
def test_every_start_is_told_the_task_the_next_action_and_the_label_as_they_are(seed: int, tmp_path: Path) -> None:
    played = replay.replay(tmp_path, LONG if ALL else SHORT, seed, CLIENTS, quick=not ALL)
    assert played.faults == [], "\n".join(played.rows)
    assert played.did["crashes"] == (3 if ALL else 1)
    assert sum(count for name, count in played.did.items() if name.startswith("compactions")) == (6 if ALL else 2)
