"""Which handover the next worker continues from, and how far it may be trusted."""

from __future__ import annotations

from collections.abc import Callable

from gitledger import layout, trust, worktree
from gitledger.authority import Assessment
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger, read_position
from gitledger.model import DETACHED, Finding, Json, Key, Position, Record, Relation, Stamp, Verdict
from gitledger.trust import Candidate, Choice
from gitledger.values import dataclass
from gitledger.view import View

SILENT = 3
"""Sessions in a row without the end of a turn from which on a person is told."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A handover with its verdict at this moment; `writer` is who wrote it by its stamps, "" for more than one.

    `stamp` is when it was written, in the order of all events.
    """

    key: Key
    fields: dict[str, Json]
    recorded: Position
    verdict: Verdict
    writer: str
    stamp: Stamp


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
        max((stamp for _, stamp in record.fields.values()), default=Stamp(0, "", 0)),
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


def worth(
    ledger: Ledger,
    view: View,
    here: Position,
    assessment: Assessment,
    said: Stamp,
    chosen: Judged | None,
    choices: list[Choice],
) -> str:
    """Why what was said of a task at `said` may not be followed now, "" where it may.

    It counts as it stands until a handover is made; from then on it is worth what the selected handover is, or the
    newest of this branch, where that was made since. A stranger's handover says nothing of it.
    """
    made = [
        one for one in choices if one.candidate.stamp > said and assessment.of(one.candidate.stamp.writer) == "verified"
    ]
    if not made:
        return ""
    judged = {chosen.key: chosen} if chosen else {}
    near = [one.candidate for one in made if one.tier is not None]
    vouching = {one.key for one in near if chosen and one.key == chosen.key}
    vouching |= {max(near, key=lambda one: one.stamp).key} if near else set()
    for key in vouching:
        found = judged[key] = judged.get(key) or judge(ledger, view, key, here, assessment)
        if found.verdict.trusted:
            return ""
    newest = max((one.candidate for one in made), key=lambda one: one.stamp)
    if newest.key in judged:
        return judged[newest.key].verdict.withheld[0]
    return f"different_context: last worked on {newest.branch or 'no branch'}"


def unheard(view: View, choices: list[Choice], writer: str) -> list[Finding]:
    """That an agent's turns end unheard here: SILENT sessions of it in a row did something, and none ended a turn.

    Told by what this writer's newest handovers say; no more is read than up to the first with a turn. A session that
    was opened and left says nothing, and one that was stopped in its first turn nothing by itself.
    """
    own = [one.candidate for one in choices if one.candidate.writer == writer]
    client, heard = "", set[str]()
    for one in sorted(own, key=lambda one: one.stamp, reverse=True)[: SILENT * 2]:
        try:
            said = view.need(one.key)
        except LedgerError:  # damaged, which fsck names
            continue
        if client and said.text("client") != client:
            continue
        if not any(said.get(name) for name in ("turns", "asked", "ran", "files")):
            continue
        client = said.text("client")
        if not client or said.get("turns"):
            return []
        heard.add(said.text("session"))
        if len(heard) == SILENT:
            break
    if len(heard) < SILENT:
        return []
    from gitledger import wiring  # nobody whose hooks fire pays for it

    if client not in wiring.BY_NAME:
        return []
    what = f"no turn's end of {client} was heard in its last {SILENT} sessions, and its other events were"
    return [Finding("hooks have not fired", client, what, "see which: gitledger hooks status")]


def spoken(task: Record) -> Stamp | None:
    """When a task's next action was said; where none was, when the task was made."""
    return (task.fields.get("next") or task.fields.get("at") or (None, None))[1]


def over(view: View, task: Key | None, chosen: Judged, believe: Callable[[Record], Record]) -> str:
    """Why a handover's next action is nothing to follow any more although the handover is; "" where it is."""
    about = chosen.fields.get("task")
    if task is not None and about != task:
        return f"the work is at {view.name(task)} now"
    whole = view.record(about) if isinstance(about, str) and layout.numbered(about) else None
    if whole is None:
        return ""
    record = believe(whole)
    status = record.text("status")
    if status not in ("", "active", "blocked"):
        return f"{view.name(whole.key)} is {status} now"
    said = spoken(record)
    return "another one was set since" if said and said > chosen.stamp else ""


def elsewhere(
    ledger: Ledger, view: View, choices: list[Choice], here: Position, assessment: Assessment
) -> tuple[str, ...]:
    """What other branches have, each in one line; of the newest it is said whether its branch is merged here."""
    rows: list[str] = []
    for one in (choice.candidate for choice in choices if choice.tier is None):
        if assessment.of(one.stamp.writer) != "verified":
            rows.append(f"{view.name(one.key)} of writer {one.stamp.writer}, which is not trusted here")
            continue
        merged = not rows and judge(ledger, view, one.key, here, assessment).verdict.divergence.reason == "merged"
        said = "different_context (merged)" if merged else "different_context"
        rows.append(f"{view.name(one.key)} on {one.branch or 'no branch'}: {said}")
    return tuple(rows)


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
