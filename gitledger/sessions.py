"""Sessions: opened, kept, closed once; one that ended without saying so is recovered once.

A session is keyed by client and the client's own id. `open` and `touch` are lines in the WAL; `end` and `recover`
make the commit that holds checkpoint, handover and the closing together, so that none can exist without the others.
"""

from __future__ import annotations

from gitledger import derive, layout, process
from gitledger.derive import Facts
from gitledger.model import Change, Draft, Json, Key
from gitledger.tasks import Hand
from gitledger.transaction import Plan
from gitledger.values import asdict, replace
from gitledger.view import View

ENDED = frozenset(
    (
        "", "clear", "complete", "completed", "compression", "done", "exit", "fork", "logout", "new", "other",
        "prompt_input_exit", "quit", "reload", "resume", "user_close", "user_exit", "window_close",
    )
)  # fmt: skip
"""End reasons that clients list, of sessions that somebody left; any other one is an interruption."""


def opened(
    view: View, hand: Hand, client: str, client_session: str, facts: Facts, source: str, pid: int | None
) -> Draft:
    """The start of a session, or its going on where it was started before."""
    key = layout.session_key(client, client_session)
    now = hand.mint.at()
    known = view.record(key)
    fields: dict[str, Json] = {
        "state": "open",
        "source": source,
        "last_at": now,
        "by": hand.writer,  # whose it is: another clone's session that is resumed here is recovered here
        "worktree": hand.worktree,
        "position": asdict(facts.position),
        "process": process.named(pid) if pid else process.client(),
    }
    if known is None or "at" not in known.fields:
        fields |= {"client": client, "client_session": client_session, "at": now, "turns": 0}
    if known and known.get("closed"):
        fields["closed"] = None  # its handover stays, but nothing may say that it is closed
    # The hook's receipt makes the record; only a start gives it a position.
    word = "session.resumed" if known and "position" in known.fields else "session.started"
    draft = hand.draft(word, {key: Change(fields)}, None, source=source)
    return Draft(draft.id, draft.at, draft.type, key, None, draft.records, draft.data)


def still_open(view: View) -> dict[Key, dict[str, Json]]:
    """The open sessions of this ledger by key, with the WAL's on top."""
    rows = {key: _row(row) for key, row in view.json(layout.OPEN_SESSIONS, {}).items()}
    for key in view.touched:
        record = view.record(key) if layout.is_session(key) else None
        if record and record.get("state") == "open":
            rows[key] = _row(record.values())
        elif record:
            rows.pop(key, None)
    return rows


def _row(said: dict[str, Json]) -> dict[str, Json]:
    names = ("client", "worktree", "by", "at", "last_at")
    texts = {name: said[name] if isinstance(said.get(name), str) else "" for name in names}
    return {**texts, "process": said.get("process")}


def current(view: View, hand: Hand) -> Key | None:
    """The open session of this work tree and writer whose client runs this; else the one heard last; else None."""
    mine = {
        key: row
        for key, row in still_open(view).items()
        if row.get("by") == hand.writer and row.get("worktree") == hand.worktree
    }
    if len(mine) > 1:
        for one in process.lineage():
            if own := {key: row for key, row in mine.items() if row.get("process") == one}:
                mine = own
                break
    return max(mine, key=lambda key: (mine[key].get("last_at") or "", key)) if mine else None


def interrupted(view: View, writer: str, own: Key | None, now_ms: int, idle_minutes: int) -> list[Key]:
    """This writer's open sessions whose client is gone, oldest first; never `own`.

    Where the machine cannot tell whether a client lives, silence for `idle_minutes` counts as gone.
    """
    gone = []
    for key, row in still_open(view).items():
        if key == own or row.get("by") != writer:
            continue
        living = process.alive(row["process"]) if row.get("process") else None
        if living is False or (living is None and _minutes(row.get("last_at") or "", now_ms) >= idle_minutes):
            gone.append((row.get("at") or "", key))
    return [key for _, key in sorted(gone)]


def end(view: View, hand: Hand, key: Key, facts: Facts, reason: str) -> Plan | None:
    """Checkpoint, handover and close in one plan; None where the session is closed already or unknown."""
    record = view.record(key)
    if record is None or record.get("state") != "open":
        return None
    return _closing(view, hand, key, facts, reason, state="closed" if reason in ENDED else "interrupted")


def recover(view: View, hand: Hand, key: Key, facts: Facts) -> Plan | None:
    """The same for a session that ended without saying so, from its own records; None where another was faster."""
    record = view.record(key)
    if record is None or record.get("state") != "open":
        return None
    return _closing(view, hand, key, facts, "recovered", state="interrupted")


def _closing(view: View, hand: Hand, key: Key, facts: Facts, reason: str, state: str) -> Plan:
    record = view.need(key)
    # Where the session was, which need not be where its end is heard.
    hand = replace(hand, worktree=facts.position.worktree, session=key)
    recovered = reason == "recovered"
    c_key, c_draft = derive.checkpoint(
        view, hand, facts, reason="recover" if recovered else "end", session=key, ended=True
    )
    c_fields = c_draft.records[c_key].set
    h_key, h_draft = derive.handover(
        view,
        hand,
        facts,
        session=key,
        reason=reason,
        checkpoint_name=c_fields["number_name"],
        recovered=recovered,
        ended=True,
    )
    h_fields = h_draft.records[h_key].set
    closed: dict[str, Json] = {
        "at": hand.mint.at(),
        "reason": reason,
        "state": state,
        "turns": record.get("turns", 0),
        "opened_at": record.get("at", ""),
        "client": record.get("client", ""),
        "handover_name": h_fields["number_name"],
        "checkpoint_name": c_fields["number_name"],
        "position": asdict(facts.position),
        "files": record.get("files", []),
    }
    taken: dict[str, Json] = {} if record.text("by") == hand.writer else {"by": hand.writer}
    closing = hand.draft(
        "session.closed", {key: Change({"state": state, "closed": closed, **taken})}, c_draft.task, reason=reason
    )
    return Plan(
        "handover",
        (c_draft, h_draft, closing),
        derive.subject(view, h_key, h_draft),
        derive.capsule(h_fields),
        facts.position,
    )


def _minutes(at: str, now_ms: int) -> float:
    from datetime import UTC, datetime

    try:
        then = datetime.fromisoformat(at).astimezone(UTC).timestamp() * 1000
    except ValueError:
        return float("inf")
    return (now_ms - then) / 60_000
