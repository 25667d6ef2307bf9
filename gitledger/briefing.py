"""What a starting session is given, gathered: the ledger, git and the signatures asked once each, then rendered.

Best effort: what cannot be read is a finding in the briefing, and the session still opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from gitledger import authority, evidence, handovers, layout, objects, proof, tasks, trust
from gitledger.authority import Assessment
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Finding, Json, Key, Oid, Position, Record
from gitledger.render import briefing as rendered
from gitledger.render.briefing import ActiveTask, Briefing, Checkpoint, Handover, Waiting
from gitledger.view import View

T = TypeVar("T")
Selected: TypeAlias = tuple[handovers.Judged | None, int | None, list[trust.Choice], list[Finding]]

MORE = (
    "gitledger status",
    "gitledger task show",
    "gitledger handover explain",
    "gitledger log",
    "gitledger search TEXT",
)
LOOKED_BACK = 200
"""Commits that are searched for the one that brought the newest checkpoint."""


def briefing(
    ledger: Ledger, *, session: Key = "", client: str = "", source: str = "", faults: Iterable[str] = ()
) -> str:
    """The briefing's text within the configured budgets."""
    policy = ledger.desk.config.briefing
    facts = gather(ledger, session=session, client=client, source=source, faults=faults)
    return rendered.briefing(facts, policy.lines, policy.chars)


def gather(
    ledger: Ledger, *, session: Key = "", client: str = "", source: str = "", faults: Iterable[str] = ()
) -> Briefing:
    """All that a briefing or a status says; a part that cannot be read is named among the findings."""
    found = [Finding("could not be done", "session start", fault, "see the log") for fault in faults]
    found += ledger.faults
    tip = ledger.tip()
    view = ledger.view()
    found += ledger.findings
    here = ledger.position()
    assessment = _try(found, "signatures", lambda: authority.assess(ledger.desk, tip), Assessment("unverifiable"))
    found += assessment.findings
    key = _try(found, "active task", lambda: tasks.active(view, ledger.desk.writer.id, here.worktree), None)
    record = _try(found, "active task", lambda: view.record(key), None) if key else None
    nothing: Selected = (None, None, [], [])
    selected = _try(found, "handovers", lambda: handovers.selected(ledger, view, here, assessment), nothing)
    chosen, tier, choices, broken = selected
    found += broken
    idle: tuple[tuple[Waiting, ...], int] = ((), 0)
    waiting, total = _try(found, "blockers", lambda: _waiting(view, key, assessment), idle)
    pieces = record.listed("evidence") if record else []
    unchecked: list[dict[str, Json]] = []
    changed = _try(found, "evidence", lambda: evidence.stale(ledger.gitdir, pieces), unchecked)
    stale = tuple(dict.fromkeys(f"{piece['path']} has changed since" for piece in changed))
    stale_ids = frozenset(str(piece["id"]) for piece in changed)
    project = _try(found, "project", lambda: view.record(layout.PROJECT), None)
    if project and (missing := project.get("missing")):
        text = f"a compaction went through without one at {missing.get('at')}: {missing.get('reason')}"
        found.append(Finding("CHECKPOINT MISSING", "compaction", text, "gitledger checkpoint"))
    return Briefing(
        position=here,
        ledger=view.manifest.name,
        project=project.text("title") if project else "",
        session=session,
        client=client,
        source=source,
        task=_task(view, record, assessment, _overtaken(record, chosen, choices), stale_ids) if record else None,
        waiting=waiting,
        waiting_total=total,
        handover=_handover(ledger, view, chosen, tier or 0) if chosen else None,
        elsewhere=_elsewhere(view, choices),
        verified=_verified(record, stale_ids, here) if record else (),
        stale=stale,
        findings=tuple(found),
        checkpoint=_try(found, "checkpoint", lambda: _checkpoint(ledger, tip, project), None),
        pending=len(ledger.pending),
        more=MORE,
    )


def introduced(ledger: Ledger, tip: Oid, path: str) -> Oid | None:
    """The commit that brought `path` into the ledger, looking back at most LOOKED_BACK commits."""
    store = ledger.desk.store
    at = tip
    for _ in range(LOOKED_BACK):
        parents = objects.parse_commit(store.get(at).data).parents
        before = next((p for p in parents if objects.read(store.get, p, path) is not None), None)
        if before is None:
            return at if objects.read(store.get, at, path) is not None else None
        at = before
    return None


def _try(found: list[Finding], where: str, ask: Callable[[], T], otherwise: T) -> T:
    # One broken record must not keep a session from opening; everything it may raise is data, not a fault of ours.
    try:
        return ask()
    except (LedgerError, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        found.append(Finding("cannot be read", where, f"{type(e).__name__}: {e}", "run: gitledger fsck"))
        return otherwise


def _trusted(record: Record, names: Iterable[str], assessment: Assessment) -> bool:
    writers = {record.fields[name][1].writer for name in names if name in record.fields}
    return all(assessment.of(writer) == "verified" for writer in writers)


def _overtaken(record: Record, chosen: handovers.Judged | None, choices: list[trust.Choice]) -> str:
    # A next action that was set before the newest handover stood beside it then, and is worth no more than it is.
    if not choices or (chosen and chosen.verdict.trusted):
        return ""
    newest = max((choice.candidate for choice in choices), key=lambda one: one.created_at)
    if str(record.get("next_at") or record.get("at") or "") > newest.created_at:
        return ""
    if chosen:
        return chosen.verdict.withheld[0]
    return f"different_context: last worked on {newest.branch or 'no branch'}"


def _task(view: View, record: Record, assessment: Assessment, withheld: str, stale: frozenset[str]) -> ActiveTask:
    writers = {s.writer for fields in record.items.get("criteria", {}).values() for _, s in fields.values()}
    trusted = all(assessment.of(writer) == "verified" for writer in writers)
    return ActiveTask(
        view.name(record.key),
        record.text("title"),
        record.text("status"),
        record.text("goal"),
        tuple(proof.criteria(record, stale)),
        tasks.next_action(record),
        trusted and _trusted(record, ("title", "goal", "next"), assessment),
        withheld,
    )


def _waiting(view: View, task: Key | None, assessment: Assessment) -> tuple[tuple[Waiting, ...], int]:
    rows: list[tuple[bool, str, Waiting]] = []
    total = 0
    record = view.record(task) if task else None
    links = [link for link in record.listed("links") if link.get("open")] if record else []
    for kind in (layout.BLOCKER, layout.QUESTION):
        listed, count = view.open_rows(kind, rendered.BLOCKED_SHOWN)
        total += count
        own = [str(link["id"]) for link in links if link.get("kind") == kind.word]  # however old
        for key, row in {**{one: found for one in own if (found := view.row(one))}, **dict(listed)}.items():
            trusted = assessment.of(row["born"][1]) == "verified" if row["born"] else False
            rows.append(
                (row.get("task") == task, row["at"], Waiting(view.name(key), str(row["title"]), kind.word, trusted))
            )
    rows.sort(key=lambda r: (r[0], r[1]), reverse=True)  # the task's own first, then the newest
    return tuple(w for _, _, w in rows[: rendered.BLOCKED_SHOWN]), total


def _handover(ledger: Ledger, view: View, chosen: handovers.Judged, tier: int) -> Handover:
    fields = chosen.fields
    return Handover(
        name=view.name(chosen.key),
        tier=tier,
        at=str(fields.get("at", "")),
        age=trust.age_words(str(fields.get("at", "")), ledger.desk.mint.now_ms()),
        client=str(fields.get("client", "")),
        writer=str(fields.get("by", "")),
        task_name=str(fields.get("task_name", "")),
        objective=str(fields.get("objective", "")),
        state=tuple(str(row) for row in fields.get("state", ())),
        next=str(fields.get("next", "")),
        verdict=chosen.verdict,
        recorded=chosen.recorded,
    )


def _elsewhere(view: View, choices: list[trust.Choice]) -> tuple[str, ...]:
    rows = [c.candidate for c in choices if c.tier is None]
    return tuple(f"{view.name(one.key)} on {one.branch or 'no branch'}" for one in rows)


def _verified(record: Record, stale: frozenset[str], here: Position) -> tuple[str, ...]:
    rows = [proof.words(p) + _where(p, here) for p, shown in proof.states(record, stale) if shown == "verified"]
    return tuple(rows[-5:])


def _where(piece: dict[str, Json], here: Position) -> str:
    # What a command showed, it showed of the code it ran on.
    if not piece.get("head"):
        return ""
    at = "at this head" if piece["head"] == here.head else f"at another head, {str(piece['head'])[:12]}"
    return f", {at}{', in a dirty tree' if piece.get('dirty') else ''}"


def _checkpoint(ledger: Ledger, tip: Oid, project: Record | None) -> Checkpoint | None:
    pointer = project.get("checkpoint") if project else None
    if not pointer:
        return None
    commit = introduced(ledger, tip, pointer["path"])
    return Checkpoint(
        name=pointer["name"],
        path=pointer["path"],
        digest=f"{ledger.desk.store.algorithm}:{commit}" if commit else "",
        at=pointer["at"],
        age=trust.age_words(pointer["at"], ledger.desk.mint.now_ms()),
    )
