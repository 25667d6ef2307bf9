"""When each hook fired last, as this clone's log and the newest part of its journal tell."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from gitledger import reading, wal
from gitledger.ledger import Ledger
from gitledger.model import Finding

LOOK_BACK = 3_000
"""Journalled events that are looked at, from the newest on: what fired before them counts as not fired."""


def last(ledger: Ledger) -> Mapping[tuple[str, str], str]:
    """The time of the newest event of this clone, by client and event."""
    desk = ledger.desk
    found: dict[tuple[str, str], str] = {}
    entries, _ = wal.pending(desk.home.wal)
    for entry in entries:
        at = (entry.client, entry.event)
        found[at] = max(found.get(at, ""), entry.at)
    faults: list[Finding] = []
    for logged in islice(reading.events(desk.store.get, ledger.tip(), faults, newest_first=True), LOOK_BACK):
        event = logged.event
        client, name = event.data.get("client"), event.data.get("event")
        if event.writer == desk.writer.id and isinstance(client, str) and isinstance(name, str):
            found[client, name] = max(found.get((client, name), ""), event.at)
    return found
