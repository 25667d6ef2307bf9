"""What a session's start waits for: the briefing, whole process, and whether it grows with the ledger.

The repository has a real history, its ledger an active task, a handover, a checkpoint, a decision, an open question.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.clock import Row, Side, bare, child, in_turn, ratio, ways
from benchmarks.grounds import HISTORY, Grounds

BUDGET = 6.0
GROWTH = 1.1


def rows(grounds: Grounds) -> Iterator[Row]:
    """One row for each way to start, then the large ledger beside the small one."""
    small = grounds.ledger("briefing-small", 10)
    large = grounds.ledger("briefing-large", grounds.checkpoints)
    commands = ways("briefing")
    for folder in (small, large):
        said = subprocess.run(commands["script"], cwd=folder, capture_output=True, text=True, check=True).stdout
        if "may be followed" not in said or "## Active task" not in said:
            sys.exit(f"the briefing in {folder} is not one of a ledger in good order:\n{said}")
    sides = [child(bare(), small), *(child(command, small) for command in commands.values())]
    sides.append(child(commands["script"], large))
    base, script, isolated, grown = in_turn([Side(side) for side in sides], grounds.runs)
    yield ratio(f"briefing, {HISTORY} history, script / python -c pass", script, base, BUDGET)
    yield ratio(f"briefing, {HISTORY} history, python -I -c / python -c pass", isolated, base, BUDGET)
    yield ratio(f"briefing, {grounds.checkpoints * 10:,} events / 100 events", grown, script, GROWTH)
