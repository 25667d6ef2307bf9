"""Which handover the next worker continues from, and how far it may be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from gitledger import layout, trust, worktree
from gitledger.authority import Assessment
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger, read_position
from gitledger.model import DETACHED, Finding, Json, Key, Position, Relation, Stamp, Verdict
from gitledger.trust import Candidate, Choice
from gitledger.view import View


@dataclass(frozen=True, slots=True)
class Judged:
    """A handover with its verdict at this moment; `writer` is who wrote it by its stamps, "" for more than one."""

    key: Key
    fields: dict[str, Json]
    recorded: Position
    verdict: Verdict
    writer: str = ""


def candidates(view: View, branch: str) -> list[Candidate]:
    """The newest handovers of a branch, and the newest one of every other branch."""
    rows = list(view.json(layout.branch_index(branch), {"rows": []})["rows"])
    found = {row["key"]: _candidate(view, row, branch) for row in rows}
    for row in view.json(layout.RECENT_BRANCHES, {"rows": []})["rows"]:
        if row["branch"] != branch:
            found.setdefault(row["key"], _candidate(view, row, row["branch"]))
    return list(found.values())


def choose(ledger: Ledger, view: View, here: Position) -> list[Choice]:
    """Every candidate as selected, superseded or rejected, with the reason."""
    return trust.resolve(
        candidates(view, here.branch),
        ledger=view.manifest.uuid,
        writer=ledger.desk.writer.id,
        worktree=here.worktree,
        branch=here.branch,
        now_ms=ledger.desk.mint.now_ms(),
    )


def judge(ledger: Ledger, view: View, key: Key, here: Position, assessment: Assessment) -> Judged:
    """A handover's (or checkpoint's) verdict: divergence, freshness and authenticity, each on its own."""
    record = view.need(key)
    fields = record.values()
    recorded = read_position(fields["position"])
    same = fields.get("ledger") == view.manifest.uuid
    relation: Relation | None = None
    merged = False
    if trust.needs_relation(recorded, here, same_ledger=same):
        relation = worktree.relate(ledger.gitdir, recorded, here)
    elif same and recorded.branch != here.branch and DETACHED not in (recorded.branch, here.branch):
        merged = worktree.merged(ledger.gitdir, recorded, here)
    writers = {stamp.writer for _, stamp in record.fields.values()}
    writer = writers.pop() if len(writers) == 1 else ""
    policy = ledger.desk.config.freshness
    return Judged(
        key,
        fields,
        recorded,
        trust.verdict(
            trust.divergence(recorded, here, relation, same_ledger=same, merged=merged),
            trust.freshness(
                fields.get("at", ""),
                ledger.desk.mint.now_ms(),
                fresh_hours=policy.fresh_hours,
                stale_hours=policy.stale_hours,
            ),
            assessment.of(writer),
        ),
        writer,
    )


def selected(
    ledger: Ledger, view: View, here: Position, assessment: Assessment
) -> tuple[Judged | None, int | None, list[Choice], list[Finding]]:
    """The handover to continue from with its tier, all choices, and records too broken to be judged.

    A broken one is named and the next candidate takes its place, so that one bad record never hides the rest.
    """
    faults: list[Finding] = []
    choices = choose(ledger, view, here)
    for choice in choices:
        if choice.tier is None:
            break
        key = choice.candidate.key
        try:
            return judge(ledger, view, key, here, assessment), choice.tier, choices, faults
        except (LedgerError, AttributeError, KeyError, TypeError, ValueError) as e:
            faults.append(Finding("broken record", view.name(key), str(e), "run: gitledger fsck"))
    return None, None, choices, faults


def _candidate(view: View, row: Json, branch: str) -> Candidate:
    lamport, writer, seq = row["stamp"]

    def text(name: str, default: str = "") -> str:
        found = row.get(name, default)  # as the handover's own event set it: to anything
        return found if isinstance(found, str) else ""

    return Candidate(
        row["key"],
        text("ledger", view.manifest.uuid),
        text("writer", writer),
        text("worktree"),
        branch,
        text("at"),
        Stamp(lamport, writer, seq),
    )
