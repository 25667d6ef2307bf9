"""What the clients' shims call, with the payload on stdin.

`prompt`, `tool` and `turn` are only captured, by the fast path in `__main__`. A start prints the briefing, a
compaction makes a checkpoint or is refused, an end closes the session; every other event prints nothing.
"""

from __future__ import annotations

import os
import time

from gitledger import capture, gitdir, wal
from gitledger.errors import CannotWrite, LedgerError
from gitledger.terminal import put

CLIENTS = ("generic",)
EVENTS = ("start", "prompt", "tool", "turn", "compact", "end")


def take(client: str, event: str, path: str = ".", ledger: str | None = None) -> None:
    """Take an agent's event. Only a compaction can fail: it raises Blocked without a durable checkpoint."""
    payload, _ = capture.read_stdin(capture.LIMIT, capture.DEADLINE)
    if os.environ.get("GITLEDGER_DISABLE"):
        return
    try:
        found = _place(path, payload)
        name = gitdir.choose(found.common, ledger or os.environ.get("GITLEDGER_LEDGER")) if found else None
    except CannotWrite as e:
        if event == "compact":  # a ledger that cannot be looked at may well be there
            from gitledger.ledger import blocked

            raise blocked(e) from e
        return
    if found is None or name is None:
        return
    try:
        # The receipt comes before any guard, so that "did not fire" and "fired and failed" can be told apart.
        folder = os.path.join(gitdir.state(found.common), "wal", name)
        now = time.time_ns() // 1_000_000
        wal.append(folder, client, event, payload, now_ms=now, rand=os.urandom(10), worktree=found.worktree)
    except Exception as e:
        # A full disk, say: for a compaction the checkpoint will meet it too, and refuse.
        capture.log(found.common, f"hook {client} {event}: {type(e).__name__}: {e}")
    if event not in ("start", "compact", "end"):
        return
    try:
        text = _answer(found, name, client, event, payload)
    except Exception as e:
        capture.log(found.common, f"hook {client} {event}: {type(e).__name__}: {e}")
        if event == "compact":
            _refuse(found, name, e)
        return
    if text:
        try:
            put(text)
        except LedgerError as e:
            # What was asked for is done: a client that cannot be told must not take it for a refusal.
            capture.log(found.common, f"hook {client} {event}: {e}")


def _answer(found: gitdir.GitDir, name: str, client: str, event: str, payload: bytes) -> str:
    from gitledger import discover, schema
    from gitledger.clients import events

    ledger = discover.open(found.top or found.common, ledger=name)
    said, _ = schema.read_generic(payload)
    return {"start": events.start, "compact": events.compact, "end": events.end}[event](ledger, client, said)


def _refuse(found: gitdir.GitDir, name: str, error: Exception) -> None:
    """Raise Blocked for whatever stood in the way of the checkpoint, unless a person let this compaction through."""
    from gitledger import allowance
    from gitledger.errors import IOFailed, LedgerError
    from gitledger.ledger import blocked

    cause = error if isinstance(error, LedgerError) else IOFailed(f"{type(error).__name__}: {error}")
    if not allowance.use(found, name, str(cause)):
        raise blocked(cause) from error


def _place(path: str, payload: bytes) -> gitdir.GitDir | None:
    if path != ".":
        return gitdir.find(path)
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    return capture.locate(payload, os.environ, here)
