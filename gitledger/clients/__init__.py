"""One adapter per agent: its events, its payloads, its way to answer."""

from __future__ import annotations

from collections.abc import Mapping

from gitledger.clients import generic
from gitledger.ingest import Reader

READERS: Mapping[str, Reader] = {generic.NAME: generic.read}
"""What turns a captured payload into an event, by client."""
