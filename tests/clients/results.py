"""What the last run showed of each client, kept in the cache for the tables of the documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients import install

FILE = install.CACHE / "results.json"
RANK = ("skipped", "passed", "failed")
"""Of several tests in one cell the last of these tells."""
WITHIN = ("hermes", "nanobot")
"""Clients that gitledger runs within: their tests are their own, in files named after them."""
PROOFS = "proofs"
"""The key of their tests' outcomes, by the test's name."""


def within(path: str) -> str:
    """The client of a test file that is of one of WITHIN; "" for any other file."""
    name = Path(path.partition("::")[0]).name
    return next((client for client in WITHIN if name.startswith(f"test_{client}")), "")


def read() -> dict[str, Any]:
    """Client → version and column → outcome; of those of WITHIN → version and PROOFS → test → outcome."""
    try:
        kept = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


class Collector:
    """Gathers each test's outcome in the process that reports them all."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}
        self.proofs: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        told = dict(report.user_properties)
        if client := within(report.nodeid):
            _keep(self.proofs, (client, report.nodeid.rpartition("::")[2].partition("[")[0]), report.outcome)
        if "column" in told:
            _keep(self.cells, (str(told["client"]), str(told["column"])), report.outcome)
        self.write()  # after each: a run that is stopped has shown something, too

    def write(self) -> None:
        """Add what was gathered to what earlier runs left."""
        kept = read()
        for client, _ in (*self.cells, *self.proofs):
            version = install.PACKAGES[client].version
            if kept.get(client, {}).get("version") != version:
                kept[client] = {"version": version}
        for (client, column), outcome in self.cells.items():
            kept[client][column] = outcome
        for (client, test), outcome in self.proofs.items():
            kept[client].setdefault(PROOFS, {})[test] = outcome
        if self.cells or self.proofs:
            FILE.parent.mkdir(parents=True, exist_ok=True)
            FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _keep(found: dict[tuple[str, str], str], at: tuple[str, str], outcome: str) -> None:
    found[at] = max(found.get(at, "skipped"), outcome, key=RANK.index)
