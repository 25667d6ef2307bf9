"""May a record be followed? Three facts and a verdict from them, and which handover is the right one. Pure.

Times are compared in whole milliseconds, names exactly.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from gitledger import layout
from gitledger.model import (
    DETACHED,
    UNBORN,
    Authenticity,
    Divergence,
    Freshness,
    Json,
    Position,
    Reason,
    Record,
    Relation,
    Stamp,
    Verdict,
)
from gitledger.patterns import pattern
from gitledger.typed import Literal, TypeAlias
from gitledger.values import dataclass

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SKEW = 5 * MINUTE
"""How far ahead another machine's clock may be before its time says nothing."""

_TIME = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")

WHY: dict[Reason, str] = {
    "": "",
    "rewound": "HEAD is behind the recorded commit",
    "rewritten": "the recorded commit was rewritten",
    "forked": "HEAD and the recorded commit each have commits the other lacks",
    "unrelated": "HEAD shares no history with the recorded commit",
    "missing": "the recorded commit is not in this repository",
    "unknown": "git could not tell how HEAD relates to the recorded commit",
    "other branch": "recorded on another branch",
    "merged": "recorded on another branch, which is merged here",
    "detached": "recorded on another branch, or on none: one side's HEAD is detached",
    "other ledger": "recorded in another ledger",
}
"""Each reason of a divergence in a person's words."""

_UNTRUSTED: dict[Authenticity, str] = {
    "unknown signer": "unknown signer: this machine does not trust the key that signed it",
    "bad": "bad signature: it is not what was signed",
    "unverifiable": "unverifiable: its signature cannot be checked here",
}


# ── divergence ───────────────────────────────────────────────────────────────────────────────
def same_context(recorded: Position, present: Position, *, same_ledger: bool) -> bool:
    """True where both positions are the same ledger's, on the same branch (`DETACHED` is one of its own)."""
    return same_ledger and bool(recorded.branch) and recorded.branch == present.branch


def needs_relation(recorded: Position, present: Position, *, same_ledger: bool) -> bool:
    """True where git has to be asked before `divergence` can say more than `unknown`."""
    return same_context(recorded, present, same_ledger=same_ledger) and recorded.head != present.head


def divergence(
    recorded: Position,
    present: Position,
    relation: Relation | None,
    *,
    same_ledger: bool,
    merged: bool = False,
) -> Divergence:
    """The label of the recorded position against the present one; what nobody can tell is `diverged`, never trusted.

    `relation` is git's answer for two heads that differ, None where it was not asked. `merged` is the caller's
    knowledge that the recorded branch's head is already in HEAD. The working tree plays no part.
    """
    if not same_ledger:
        return Divergence("different_context", "other ledger", relation)
    if not same_context(recorded, present, same_ledger=True):
        if DETACHED in (recorded.branch, present.branch):
            return Divergence("different_context", "detached", relation)
        return Divergence("different_context", "merged" if merged else "other branch", relation)
    if recorded.head and recorded.head == present.head:
        return Divergence("exact", "", relation)
    # "same" for two heads that differ contradicts itself, so it is no answer either.
    if relation is None or relation.ancestry == "same" or not (recorded.head and present.head):
        return Divergence("diverged", "unknown", relation)
    if relation.ancestry == "descends":
        if UNBORN in (recorded.head, present.head):
            return Divergence("diverged", "unknown", relation)
        return Divergence("advanced", "", relation)
    return Divergence("diverged", relation.ancestry, relation)


# ── freshness ────────────────────────────────────────────────────────────────────────────────
def milliseconds(created_at: str) -> int | None:
    """The time in milliseconds since 1970, or None unless it is written exactly as the ledger writes times."""
    if not _TIME.fullmatch(created_at):
        return None
    year, month, day = int(created_at[:4]), int(created_at[5:7]), int(created_at[8:10])
    clock = (int(created_at[11:13]), int(created_at[14:16]), int(created_at[17:19]))
    # By hand, because loading `datetime` takes as long as two modules of ours. The year begins in March here, so that
    # a leap day is its last.
    years, months = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day - 719_469
    seconds = 86_400 * days + 3_600 * clock[0] + 60 * clock[1] + clock[2]
    if not year or time.gmtime(seconds)[:6] != (year, month, day, *clock):
        return None  # such as the 31st of February
    return seconds * 1_000 + int(created_at[20:23])


def freshness(created_at: str, now_ms: int, *, fresh_hours: int = 12, stale_hours: int = 48) -> Freshness:
    """How old it is: under `fresh_hours` fresh, from `stale_hours` on stale, `invalid` with no time or a future one."""
    then = milliseconds(created_at)
    if then is None or then - now_ms > SKEW:
        return "invalid"
    age = now_ms - then
    if age >= stale_hours * HOUR:
        return "stale"
    return "fresh" if age < fresh_hours * HOUR else "aging"


def age_words(created_at: str, now_ms: int) -> str:
    """Its age for a person, such as `3 h ago`; rounded down, so that nothing looks older than it is."""
    then = milliseconds(created_at)
    if then is None:
        return "at an unknown time"
    age = now_ms - then
    if age < -SKEW:
        return "in the future"
    if age < MINUTE:
        return "just now"
    if age < HOUR:
        return f"{age // MINUTE} min ago"
    if age < 2 * DAY:
        return f"{age // HOUR} h ago"
    return f"{age // DAY} days ago"


# ── verdict ──────────────────────────────────────────────────────────────────────────────────
def verdict(divergence: Divergence, freshness: Freshness, authenticity: Authenticity) -> Verdict:
    """The verdict on the three facts: its `withheld` names every reason against following the record, or is empty."""
    withheld = []
    if divergence.label in ("diverged", "different_context"):
        withheld.append(_words(divergence))
    if freshness == "stale":
        withheld.append("stale: too old to be followed")
    elif freshness == "invalid":
        withheld.append("invalid time: it is from the future, or has no time")
    if authenticity != "verified":
        withheld.append(_UNTRUSTED.get(authenticity, "unverifiable: its signature cannot be checked here"))
    return Verdict(divergence, freshness, authenticity, tuple(withheld))


def _words(divergence: Divergence) -> str:
    reason: Reason = divergence.reason or "unknown"
    words = f"{divergence.label}: {reason}, {WHY[reason]}"
    if reason == "rewritten" and divergence.relation and divergence.relation.successor:
        words += f" and lives on as {divergence.relation.successor[:12]}"
    return words


# ── keys ─────────────────────────────────────────────────────────────────────────────────────
def revocation(writer: Record) -> dict[str, Json] | None:
    """What a writer's record says of its key's end, `{at, by}`, or None; any other writer's word counts for nothing."""
    value, stamp = writer.fields.get("revoked", (None, None))
    if value is None or stamp is None or layout.writer_key(stamp.writer) != writer.key:
        return None
    return value if value and isinstance(value, dict) else {"at": "", "by": stamp.writer}


# ── which handover ───────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Candidate:
    """A handover by what decides whether it is the one to continue from."""

    key: str
    ledger: str
    writer: str
    worktree: str
    branch: str
    created_at: str
    stamp: Stamp


Outcome: TypeAlias = 'Literal["selected", "superseded", "rejected"]'


@dataclass(frozen=True, slots=True)
class Choice:
    """What became of one candidate: its tier (None where it matches none), and why."""

    candidate: Candidate
    tier: int | None
    outcome: Outcome
    reason: str


def resolve(
    candidates: Iterable[Candidate],
    *,
    ledger: str,
    writer: str,
    worktree: str,
    branch: str,
    now_ms: int | None = None,
) -> list[Choice]:
    """Every candidate with its outcome: at most one selected and first, then superseded ones, then rejected ones.

    A nearer tier beats a newer time; within a tier the newest `created_at` wins, ties by journal order. A time that
    is none, or (where the present one is given) a future one, counts as older than any: a clock that was wrong once
    must not hide what is written after it.
    """
    latest = None if now_ms is None else now_ms + SKEW
    matched: list[tuple[int, Candidate]] = []
    rejected: list[Choice] = []
    for one in candidates:
        tier, reason = _tier(one, ledger, writer, worktree, branch)
        if tier is None:
            rejected.append(Choice(one, None, "rejected", reason))
        else:
            matched.append((tier, one))
    matched.sort(key=lambda pair: _recency(pair[1], latest), reverse=True)
    matched.sort(key=lambda pair: pair[0])
    rejected.sort(key=lambda choice: _recency(choice.candidate, latest), reverse=True)
    if not matched:
        return rejected
    best_tier, best = matched[0]
    choices = [Choice(best, best_tier, "selected", f"{_TIERS[best_tier]}, the newest of them")]
    for tier, one in matched[1:]:
        if tier != best_tier:
            reason = f"{_TIERS[tier]}; {best.key} is nearer"
        elif _recency(one, latest)[0] < 0:
            reason = f"{_TIERS[tier]}; its time is none or from the future"
        elif one.created_at == best.created_at:
            reason = f"{_TIERS[tier]}; {best.key} is of the same time and later in the journal"
        else:
            reason = f"{_TIERS[tier]}; {best.key} is newer"
        choices.append(Choice(one, tier, "superseded", reason))
    return choices + rejected


_TIERS = ("tier 0: same writer, worktree and branch", "tier 1: same branch in another worktree or clone")


def _tier(one: Candidate, ledger: str, writer: str, worktree: str, branch: str) -> tuple[int | None, str]:
    if one.ledger != ledger:
        return None, "other ledger"
    if one.branch != branch:
        return None, f"different_context: recorded on {one.branch or 'no branch'}"
    if (one.writer, one.worktree) == (writer, worktree):
        return 0, ""
    if branch == DETACHED:
        return None, "detached HEAD: matches only where the same writer left it, in the same worktree"
    return 1, ""


def _recency(one: Candidate, latest: int | None) -> tuple[int, Stamp]:
    then = milliseconds(one.created_at)
    if then is None or (latest is not None and then > latest):
        then = -1
    return (then, one.stamp)
