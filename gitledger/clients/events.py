"""What every client's events do once its payload is read: start, compact, end. Common to all, written once."""

from __future__ import annotations

from gitledger import capture, layout
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.schema import GenericPayload


def start(ledger: Ledger, client: str, said: GenericPayload) -> str:
    """Open the session, recover those that ended without saying so, and return the briefing."""
    key = layout.session_key(client, said.session_id)
    faults = []
    try:
        ledger.start_session(client, said.session_id, said.source, said.pid)
        ledger.recover_sessions(own=key)
    except (LedgerError, OSError) as e:
        # Best effort: the session still opens, and the briefing says what could not be done.
        faults.append(str(e))
        capture.log(ledger.gitdir.common, f"start {client}: {e}")
    if not ledger.desk.config.briefing.on_start:
        return ""
    from gitledger import briefing

    return briefing.briefing(ledger, session=key, client=client, source=said.source, faults=faults)


def compact(ledger: Ledger, client: str, said: GenericPayload) -> str:
    """Make the checkpoint without which compaction may not happen, and return its pointer; raise Blocked otherwise."""
    from gitledger.render.status import pointer

    made = ledger.before_compaction(layout.session_key(client, said.session_id))
    return pointer(made.name, made.task, made.path, made.digest, made.next).rstrip()


def end(ledger: Ledger, client: str, said: GenericPayload) -> str:
    """Close the session with a checkpoint and a handover; says nothing."""
    ledger.end_session(layout.session_key(client, said.session_id), said.reason)
    return ""
