"""What every client's events do once its payload is read: start, compact, end. Common to all, written once."""

from __future__ import annotations

from gitledger import capture, layout, prompted, proposerstate
from gitledger.clients import Adapter, generic
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.schema import GenericPayload


def start(ledger: Ledger, client: str, said: GenericPayload, entry: str = "") -> str:
    """Open the session, recover those that ended without saying so, and return the briefing.

    "" where the receipt `entry` is the second of one start: clients fire twice, and a context needs one briefing.
    """
    key = layout.session_key(client, said.session_id)
    faults = []
    goes_on = False
    try:
        known = ledger.view().record(key)
        if known is not None and entry and generic.same(known, entry):
            return ""
        goes_on = known is not None and "position" in known.fields
        ledger.start_session(client, said.session_id, said.source, said.pid)
        ledger.recover_sessions(own=key)
    except (LedgerError, OSError) as e:
        # Best effort: the session still opens, and the briefing says what could not be done.
        faults.append(str(e))
        capture.log(ledger.gitdir.common, f"start {client}: {e}")
    proposerstate.mark(ledger.desk.home.state, ledger.desk.config)
    prompted.flag(ledger.desk.home.state, ledger.desk.config)
    prompted.forget(ledger, key)
    if not ledger.desk.config.briefing.on_start:
        return ""
    from gitledger import briefing
    from gitledger.clients import usage

    # Of a session that begins, the context is empty: only one that goes on has got anywhere.
    advice = usage.spoken(ledger, key) if goes_on and not faults else ""
    return briefing.briefing(ledger, session=key, client=client, source=said.source, advice=advice, faults=faults)


def compact(ledger: Ledger, client: Adapter, said: GenericPayload) -> str:
    """Make the checkpoint without which compaction may not happen; raise Blocked otherwise.

    Returns its pointer and its capsule, for whoever writes the summary.
    """
    from gitledger.render.status import pointer

    often = client.ANNOUNCES_ALWAYS and said.trigger != "manual"
    made = ledger.before_compaction(layout.session_key(client.NAME, said.session_id), often=often)
    from gitledger.clients import usage

    usage.spoken(ledger, layout.session_key(client.NAME, said.session_id))
    told = pointer(made.name, made.task, made.path, made.digest, made.next)
    prompted.forget(ledger, layout.session_key(client.NAME, said.session_id))
    return f"{told}\n{_capsule(ledger, len(told) + 1)}".rstrip() if client.answer("compact", told).stdout else told


def prompt(ledger: Ledger, client: str, said: GenericPayload) -> str:
    """What has changed for a session since its last prompt; "" where that is nothing, or prompts are not answered."""
    return prompted.told(ledger, layout.session_key(client, said.session_id), said.prompt)


def _capsule(ledger: Ledger, taken: int) -> str:
    from gitledger import capsule
    from gitledger.render.capsule import CHARS

    try:
        return capsule.compose(ledger, tokens=ledger.desk.config.capsule.tokens, chars=CHARS - taken).text
    except Exception as e:  # the checkpoint is made: what more could be said of it refuses nothing
        capture.log(ledger.gitdir.common, f"compact: {type(e).__name__}: {e}")
        return ""


def settle(ledger: Ledger, client: str, said: GenericPayload) -> None:
    """Make the checkpoint of a turn's end, for a client that cannot be kept from compacting, and say what is next."""
    from gitledger.clients import usage

    key = layout.session_key(client, said.session_id)
    ledger.before_compaction(key, reason="turn")
    usage.advised(ledger, key)


def end(ledger: Ledger, client: str, said: GenericPayload) -> str:
    """Close the session with a checkpoint and a handover; says nothing."""
    ledger.end_session(layout.session_key(client, said.session_id), said.reason)
    return ""
