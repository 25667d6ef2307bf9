"""What a checkpoint costs a process that is running already, beside one `ssh-keygen -Y sign`, for both drivers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from benchmarks.checkpoint import Turn
from benchmarks.clock import Row, Side, beside, in_turn
from benchmarks.grounds import Grounds
from gitledger import discover, signing

BUDGET_MS = 15.0


def rows(grounds: Grounds) -> Iterator[Row]:
    """One row for each driver."""
    key = signing.default_key(os.environ)
    sign = ["ssh-keygen", "-Y", "sign", "-n", "git", "-P", "", "-f", key]
    message = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n" * 12
    sides = [Side(lambda: subprocess.run(sign, input=message, capture_output=True, check=True))]
    opened = []
    for driver in discover.DRIVERS:
        folder = grounds.ledger(f"append-{driver}", 10)
        opened.append(discover.open(folder, driver=driver))
        sides.append(Side(opened[-1].checkpoint, before=Turn(folder).log))
    base, *times = in_turn(sides, grounds.runs)
    for ledger in opened:
        ledger.desk.store.close()
    for driver, took in zip(discover.DRIVERS, times, strict=True):
        yield beside(f"checkpoint in a running process, {driver} / ssh-keygen -Y sign", took, base, BUDGET_MS)
