"""When to make a checkpoint, and when to begin a fresh session: many short ones are better than one that is compacted.

`advise` is a pure function of how things stand; what it says is journalled when a session first gets there, not at
every turn.
"""

from __future__ import annotations

from gitledger import layout, sessions, tasks
from gitledger.ledger import QUIET, Ledger
from gitledger.model import Change, Draft, Json, Key, Position, Record
from gitledger.schema import Rollover
from gitledger.tasks import Hand
from gitledger.typed import Literal, TypeAlias
from gitledger.values import dataclass
from gitledger.view import View

Word: TypeAlias = 'Literal["continue", "checkpoint", "fresh session", "emergency"]'
ORDER: tuple[Word, ...] = ("continue", "checkpoint", "fresh session", "emergency")


@dataclass(frozen=True, slots=True)
class Standing:
    """What advice depends on.

    `used` is the part of the context that is used, from 0 to 1, None where nobody says. `unsaved` counts events that
    are in no checkpoint, `finished` says that one of them finished a task. `moved` says that HEAD is not where the
    newest checkpoint of this work tree was made. `half` says why a step is half done, or "".
    """

    used: float | None = None
    unsaved: int = 0
    finished: bool = False
    moved: bool = False
    half: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do next, why, and by which command; `percent` is how much of the context is used, None if unknown."""

    advice: Word
    why: str
    command: str
    percent: int | None


def advise(standing: Standing, policy: Rollover) -> Advice:
    """What to do next, from how things stand."""
    percent = None if standing.used is None else round(standing.used * 100)
    used = "how much of the context is used is not known" if percent is None else f"{percent} % of the context is used"
    full = percent or 0
    events = f"there {'is 1 event' if standing.unsaved == 1 else f'are {standing.unsaved:,} events'} in no checkpoint"
    if full >= policy.emergency_percent:
        return Advice("emergency", f"{used}: it will soon be compacted", "gitledger handover write", percent)
    if standing.finished:
        return Advice("checkpoint", f"{used}, and a task was finished", "gitledger checkpoint", percent)
    if full >= policy.checkpoint_percent and standing.unsaved:
        return Advice("checkpoint", f"{used}, and {events}", "gitledger checkpoint", percent)
    if full >= policy.checkpoint_percent and standing.moved:
        why = f"{used}, and HEAD is not where the newest checkpoint was made"
        return Advice("checkpoint", why, "gitledger checkpoint", percent)
    if full >= policy.fresh_percent and not standing.half:
        return Advice("fresh session", f"{used}, and nothing is half done", "gitledger handover write", percent)
    if full >= policy.fresh_percent:
        return Advice("continue", f"{used}, and {standing.half}: finish that, then begin afresh", "", percent)
    return Advice("continue", used, "", percent)


def standing(ledger: Ledger, session: Key | None, used: float | None = None) -> tuple[Standing, Record | None]:
    """How things stand in a session, and its record; `used` counts before what its client said last."""
    view = ledger.view()
    record = view.record(session) if session else None
    here = ledger.position(fingerprint=False)
    place = view.record(layout.worktree_key(ledger.desk.writer.id, here.worktree))
    moved = (place.text("head") if place else "") != here.head
    news = [event.type for event in ledger.pending if event.type not in QUIET]
    told = share(record.get("usage")) if record and used is None else used
    return Standing(told, len(news), "task.done" in news, moved, _half(ledger, view, here)), record


def _half(ledger: Ledger, view: View, here: Position) -> str:
    """Why a step is half done, or "": what the next session could not go on from by the one next action."""
    if here.operation:
        return f"a {here.operation} is under way"
    if here.dirty:
        return f"{here.dirty:,} path{'' if here.dirty == 1 else 's'} of the work tree not committed"
    key = tasks.active(view, ledger.desk.writer.id, here.worktree)
    if key and not tasks.next_action(view.need(key)):
        return f"{view.name(key)} has no next action"
    return ""


def share(usage: Json) -> float | None:
    """The part of a context that is used, as a session's record holds it: `{"used", "limit"}`; None where not told."""
    if not isinstance(usage, dict):
        return None
    used, limit = usage.get("used"), usage.get("limit")
    if not (isinstance(used, int) and isinstance(limit, int)) or min(used, limit) < 1:
        return None
    return min(used / limit, 1.0)


def current(ledger: Ledger) -> Key | None:
    """The open session that this is asked from, or None."""
    return sessions.current(ledger.view(), ledger.hand())


def told(ledger: Ledger, session: Key | None, used: float | None = None) -> Advice:
    """The advice for a session, journalled where it has got further than before since its context was last small."""
    found, record = standing(ledger, session, used)
    advice = advise(found, ledger.desk.config.rollover)
    policy = ledger.desk.config.rollover
    if record is None or session is None or not (_crossed(record, advice, policy) or _finished(ledger, session)):
        return advice

    def build(view: View, hand: Hand) -> tuple[None, Draft]:
        changes = {session: Change({"advised": advice.advice})}
        return None, hand.draft("rollover.advised", changes, None, advice=advice.advice, percent=advice.percent)

    ledger.record(build)
    return advice


def said(advice: Advice) -> str:
    """The advice in one line."""
    return f"{advice.advice}: {advice.why}" + (f"; {advice.command}" if advice.command else "")


def _finished(ledger: Ledger, session: Key) -> bool:
    """True where a task was finished since this session was last advised: each one is a reason of its own."""
    for event in reversed(ledger.pending):
        if event.type == "rollover.advised" and session in event.records:
            return False
        if event.type == "task.done":
            return True
    return False


def _crossed(record: Record, advice: Advice, policy: Rollover) -> bool:
    before = record.get("advised")
    reached = ORDER.index(before) if before in ORDER else 0
    now = ORDER.index(advice.advice)
    # Above the first threshold advice comes and goes with the turns; back below it (compacted, cleared) it begins anew.
    return now > reached or (now == 0 < reached and (advice.percent or 0) < policy.checkpoint_percent)
