"""What the last run showed of each client, kept in the cache for the table of the documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients import install

FILE = install.CACHE / "results.json"
RANK = ("skipped", "passed", "failed")
"""Of several tests in one cell the last of these tells."""


def read() -> dict[str, Any]:
    """Client → version and column → outcome."""
    try:
        kept = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


class Collector:
    """Gathers each test's outcome in the process that reports them all."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = dict(report.user_properties)
        if "column" not in told or (report.when != "call" and report.passed):
            return
        cell = (str(told["client"]), str(told["column"]))
        self.cells[cell] = max(self.cells.get(cell, "skipped"), report.outcome, key=RANK.index)

    def pytest_sessionfinish(self) -> None:
        kept = read()
        for (client, column), outcome in self.cells.items():
            version = install.PACKAGES[client].version
            if kept.get(client, {}).get("version") != version:
                kept[client] = {"version": version}
            kept[client][column] = outcome
        if self.cells:
            FILE.parent.mkdir(parents=True, exist_ok=True)
            FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
