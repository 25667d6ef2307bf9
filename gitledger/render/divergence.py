"""What git says of a recorded position against the present one, in one sentence for a person. Pure."""

from __future__ import annotations

from gitledger.model import DETACHED, UNBORN, Divergence, Position, Relation
from gitledger.render.text import line

SUBJECT = 72


def short(head: str) -> str:
    """A commit's first digits; `UNBORN` and an absent one as words."""
    return "no commit" if head in ("", UNBORN) else line(head, 40) if len(head) < 8 else line(head[:9])


def commit(row: tuple[str, str]) -> str:
    """A commit with its subject in one line."""
    oid, subject = row
    return f"{short(oid)} {line(subject, SUBJECT)}".rstrip()


def divergence_sentence(divergence: Divergence, recorded: Position, present: Position) -> str:
    """The label, its reason, and which commits or branches it rests on: one line without its period."""
    relation = divergence.relation or Relation("unknown")
    then, now = short(recorded.head), short(present.head)
    if divergence.label == "exact":
        return "exact: no commit then and none now" if recorded.head == UNBORN else f"exact: HEAD is still {then}"
    if divergence.label == "advanced":
        count = max(relation.count, len(relation.commits))
        since = f"advanced: {count:,} {'commit' if count == 1 else 'commits'} since {then}"
        return f"{since}, newest {commit(relation.commits[0])}" if relation.commits else since
    if divergence.label == "different_context":
        return f"different_context ({divergence.reason or 'unknown'}): {_elsewhere(divergence, recorded, present)}"
    return f"diverged ({divergence.reason or 'unknown'}): {_diverged(divergence.reason, relation, then, now)}"


def _elsewhere(divergence: Divergence, recorded: Position, present: Position) -> str:
    then = short(recorded.head)
    match divergence.reason:
        case "other ledger":
            return "it was recorded in another ledger"
        case "merged":
            return f"recorded on {branch(recorded)}, whose {then} is already in HEAD of {branch(present)}"
        case "detached":
            if recorded.branch == DETACHED:
                return f"recorded on a detached HEAD at {then}, this is {branch(present)}"
            return f"recorded on {branch(recorded)}, HEAD is detached now"
        case _:
            return f"recorded on {branch(recorded)}, this is {branch(present)}"


def _diverged(reason: str, relation: Relation, then: str, now: str) -> str:
    match reason:
        case "rewound":
            return f"HEAD {now} is behind the recorded {then}"
        case "rewritten":
            lives = f" lives on as {short(relation.successor)}" if relation.successor else " was rewritten"
            return f"{then}{lives}"
        case "forked":
            return f"HEAD {now} and the recorded {then} each have commits that the other lacks"
        case "unrelated":
            return f"HEAD {now} shares no history with the recorded {then}"
        case "missing":
            return f"the recorded {then} is not in this repository (shallow, pruned, or never fetched)"
        case _:
            detail = line(relation.detail, 120)
            return f"git could not say how HEAD {now} relates to the recorded {then}" + (
                f" ({detail})" if detail else ""
            )


def branch(position: Position, limit: int = 80) -> str:
    """The branch of a position in words."""
    return "a detached HEAD" if position.branch == DETACHED else line(position.branch, limit) or "no branch"
