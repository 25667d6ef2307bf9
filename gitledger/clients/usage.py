"""How much of its context a session has used, where its client does not say so to hooks but in its own transcript."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator

from gitledger import capture, layout, rollover, wal
from gitledger.clients import adapter, claude_code, codex
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Json, Key

FIGURES = {claude_code.NAME: claude_code.figures, codex.NAME: codex.figures}
"""What reads a line of a transcript, by client."""
LOOKED_AT = 1 << 20
"""Bytes of a transcript, from its end."""


def advised(ledger: Ledger, session: Key | None, used: float | None = None) -> rollover.Advice:
    """The advice for a session, by `used`, else by its transcript, else by what its client said last; journalled."""
    if used is None and session:
        used = rollover.share(read(ledger, session))
    return rollover.told(ledger, session, used)


def spoken(ledger: Ledger, session: Key | None) -> str:
    """The same in one line, "" where work may just go on, or where nobody can tell."""
    try:
        advice = advised(ledger, session)
    except (LedgerError, OSError) as e:  # best effort: whoever shows it has something else to do
        capture.log(ledger.gitdir.common, f"rollover: {e}")
        return ""
    return rollover.said(advice) if advice.advice != "continue" else ""


def read(ledger: Ledger, session: Key) -> dict[str, int] | None:
    """`{"used", "limit"}` of a session in tokens, as the transcript that its newest event names has it; else None.

    The transcript is named by events that are in no commit yet: where it lies is not journalled.
    """
    entries, _ = wal.pending(ledger.desk.home.wal)
    for entry in reversed(entries):
        if entry.client in FIGURES:
            said, _ = adapter(entry.client).translate(entry.event, entry.payload)
            if said.transcript and layout.session_key(entry.client, said.session_id) == session:
                return next(
                    (found for line in _newest(said.transcript) if (found := FIGURES[entry.client](line))), None
                )
    return None


def _newest(path: str) -> Iterator[dict[str, Json]]:
    """The objects of a file's last lines, the newest first; none where it is no plain file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as f:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return
            f.seek(max(0, found.st_size - LOOKED_AT))
            lines = f.read(LOOKED_AT).split(b"\n")
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return
    for line in reversed(lines):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
