"""What a starting session is given, gathered: the ledger, git and the signatures asked once each, then rendered.

Best effort: what cannot be read is a finding in the briefing, and the session still opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from gitledger import authority, handovers, layout, objects, proof, relations, splitting, tasks, todo, trust, worktree
from gitledger.authority import Assessment
from gitledger.errors import LedgerError
from gitledger.fingerprint import Dirty
from gitledger.ledger import Ledger
from gitledger.model import DETACHED, UNBORN, Field, Finding, Json, Key, Oid, Position, Record
from gitledger.render import briefing as rendered
from gitledger.render.facts import ActiveTask, Briefing, Checkpoint, Finished, Handover, Waiting
from gitledger.typed import TypeAlias, TypeVar
from gitledger.values import dataclass, replace
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
DECISIONS_NAMED = 3
LOOKED_BACK = 200
"""Commits that are searched for the one that brought the newest checkpoint."""


@dataclass(frozen=True, slots=True)
class Survey:
    """One moment of a ledger: its facts, the records behind them, and whom this clone believes.

    `task` is the active task, `record` what trusted writers said of it.
    """

    facts: Briefing
    view: View
    assessment: Assessment
    task: Key | None
    record: Record | None

    def believed(self, record: Record) -> Record:
        """What trusted writers said of a record."""
        return _believed(self.assessment, record)


def briefing(
    ledger: Ledger,
    *,
    session: Key = "",
    client: str = "",
    source: str = "",
    advice: str = "",
    faults: Iterable[str] = (),
) -> str:
    """The briefing's text within the configured budgets."""
    policy = ledger.desk.config.briefing
    facts = gather(ledger, session=session, client=client, source=source, advice=advice, faults=faults)
    return rendered.briefing(facts, policy.lines, policy.chars)


def gather(
    ledger: Ledger,
    *,
    session: Key = "",
    client: str = "",
    source: str = "",
    advice: str = "",
    faults: Iterable[str] = (),
) -> Briefing:
    """All that a briefing or a status says; a part that cannot be read is named among the findings."""
    return survey(ledger, session=session, client=client, source=source, advice=advice, faults=faults).facts


def survey(
    ledger: Ledger,
    *,
    session: Key = "",
    client: str = "",
    source: str = "",
    advice: str = "",
    faults: Iterable[str] = (),
) -> Survey:
    """The facts of a briefing with what they were read from, for whoever says more of the same moment."""
    found = [Finding("could not be done", "session start", fault, "see the log") for fault in faults]
    tip = ledger.tip()
    view = ledger.view()
    found += ledger.findings
    look = ledger.look()
    here = look.position
    assessment = _try(found, "signatures", lambda: authority.assess(ledger.desk, tip), Assessment("unverifiable"))
    found += assessment.findings
    believe = partial(_believed, assessment)
    found += _try(found, "configuration", lambda: _of_config(view, ledger.faults, believe), [])
    key = _try(found, "active task", lambda: tasks.active(view, ledger.desk.writer.id, here.worktree), None)
    whole = _try(found, "active task", lambda: view.record(key), None) if key else None
    record = believe(whole) if whole else None
    nothing: Selected = (None, None, [], [])
    selected = _try(found, "handovers", lambda: handovers.selected(ledger, view, here, assessment), nothing)
    chosen, tier, choices, broken = selected
    found += broken
    found += _try(found, "hooks", lambda: handovers.unheard(view, choices, ledger.desk.writer.id), [])
    idle: tuple[tuple[Waiting, ...], int] = ((), 0)
    waiting, total = _try(found, "blockers", lambda: _waiting(view, key, believe), idle)
    unchecked: dict[str, str] = {}
    stale = _try(found, "evidence", lambda: ledger.stale(record, look), unchecked) if record else unchecked
    about = _try(found, "project", lambda: view.record(layout.PROJECT), None) or Record(layout.PROJECT)
    project = believe(about)
    if about.get("missing"):
        text = "a compaction went through without one, says a writer that is not trusted here"
        if missing := project.get("missing"):
            text = f"a compaction went through without one at {missing.get('at')}: {missing.get('reason')}"
        found.append(Finding("CHECKPOINT MISSING", "compaction", text, "gitledger checkpoint"))
    found += _try(found, "sync", lambda: _synced(ledger, view, tip), [])
    found += _try(found, "proposer", lambda: _proposer(ledger), [])
    found += _try(found, "memory files", lambda: _memory(ledger), [])
    found += _try(found, "tasks", lambda: _of_task(view, key), []) if key else []
    said = handovers.spoken(record) if record else None
    withheld = ""
    if said and not (chosen and chosen.verdict.trusted and chosen.stamp > said):
        ask = partial(handovers.worth, ledger, view, here, assessment, said, chosen, choices)
        withheld = _try(found, "handovers", ask, "it cannot be told what was left")
    over = ""
    if chosen and chosen.verdict.trusted:
        over = _try(found, "handovers", partial(handovers.over, view, key, chosen, believe), "")
    same: tuple[tuple[str, ...], str] = ((), "")
    differing, diff = _try(found, "work tree", lambda: _changed(ledger, look.dirty), same)
    facts = Briefing(
        position=here,
        ledger=view.manifest.name,
        project=_said(about, project, "title"),
        session=session,
        client=client,
        source=source,
        task=_task(view, whole, record, withheld, stale) if whole and record else None,
        waiting=waiting,
        waiting_total=total,
        handover=_handover(ledger, view, chosen, tier or 0, here, over) if chosen else None,
        elsewhere=_try(found, "handovers", lambda: handovers.elsewhere(ledger, view, choices, here, assessment), ()),
        verified=_verified(whole, record, stale, here) if whole and record else (),
        stale=_stale(record, stale) if record else (),
        candidates=tuple(proof.seen(one) for one in proof.candidates(record) if not one.taken) if record else (),
        finished=None if key else _try(found, "tasks", lambda: _finished(ledger, view, here, believe), None),
        findings=tuple(found),
        checkpoint=_try(found, "checkpoint", lambda: _checkpoint(ledger, tip, about, project), None),
        pending=len(ledger.pending),
        changed=differing,
        diff=diff,
        documents=_try(found, "documents", lambda: _documents(view, key, record), ()) if key and record else (),
        advice=advice,
        more=MORE,
    )
    return Survey(facts, view, assessment, key, record)


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


def _synced(ledger: Ledger, view: View, tip: Oid) -> list[Finding]:
    """How this clone stands with its remote, as far as the last sync found out; nothing is contacted."""
    name = ledger.desk.config.remote.name
    if not name:
        return []
    from gitledger import syncstate  # nobody without a remote pays for it

    store, home = ledger.desk.store, ledger.desk.home
    state = syncstate.load(home.state, home.name)
    found = syncstate.standing(state, view)
    if state.failed:
        found.append(Finding("sync failed", state.remote, state.failed, "try again: gitledger sync"))
    count = syncstate.unpushed(state, tip, lambda oid: objects.parse_commit(store.get(oid).data).parents)
    if count:
        more = "or more " if count >= syncstate.COUNTED else ""
        what = (
            f"{count} {more}commit{'' if count == 1 else 's'} of this ledger {'is' if count == 1 else 'are'} here only"
        )
        found.append(Finding("not pushed", state.remote or "remote", what, "push it: gitledger sync"))
    return found


def _proposer(ledger: Ledger) -> list[Finding]:
    if not ledger.desk.config.documenter.every_turns:
        return []
    from gitledger import proposerstate  # nobody without one pays for it

    return proposerstate.standing(ledger.desk.home.state, ledger.desk.home.name, ledger.desk.config)


def _memory(ledger: Ledger) -> list[Finding]:
    from gitledger import memorystate

    return memorystate.standing(ledger.desk.home.state, ledger.desk.home.name)


def _try(found: list[Finding], where: str, ask: Callable[[], T], otherwise: T) -> T:
    # One broken record must not keep a session from opening; everything it may raise is data, not a fault of ours.
    try:
        return ask()
    except (LedgerError, OSError, KeyError, TypeError, ValueError, AttributeError) as e:
        found.append(Finding("cannot be read", where, f"{type(e).__name__}: {e}", "run: gitledger fsck"))
        return otherwise


def _believed(assessment: Assessment, record: Record) -> Record:
    """What trusted writers said of a record: every field goes by the writer of its own stamp.

    Of a criterion or to-do its text decides, and what others set of it is left out; any other item is one statement,
    and stands whole or not at all.
    """

    def good(field: Field) -> bool:
        return assessment.of(field[1].writer) == "verified"

    items: dict[str, dict[str, dict[str, Field]]] = {}
    for name, listed in record.items.items():
        items[name] = {}
        for item, fields in listed.items():
            kept = {one: field for one, field in fields.items() if good(field)}
            if "text" in kept if name in ("criteria", "todos") else len(kept) == len(fields):
                items[name][item] = kept
    return Record(record.key, {name: field for name, field in record.fields.items() if good(field)}, items)


def _said(whole: Record, believed: Record, name: str) -> str | None:
    """A field's text; None where it is there and whoever set it is not believed."""
    return None if name in whole.fields and name not in believed.fields else believed.text(name)


def _of_config(view: View, faults: Iterable[Finding], believe: Callable[[Record], Record]) -> list[Finding]:
    """What is wrong with the configuration, without the names that a stranger gave its keys."""
    policy = view.record(layout.CONFIG) or Record(layout.CONFIG)
    known = believe(policy).fields.keys()
    kept = []
    for fault in faults:
        key = fault.where.partition(": ")[2]
        if not any(key == name or key.startswith((f"{name}.", f"{name}[")) for name in known):
            what = "a setting by a writer that is not trusted here is wrong, so it is not used"
            kept.append(Finding(fault.rule, "the ledger's configuration", what, "list all with: gitledger config list"))
        else:
            kept.append(fault)
    return list(dict.fromkeys(kept))


def _changed(ledger: Ledger, dirty: Sequence[Dirty]) -> tuple[tuple[str, ...], str]:
    """The first paths that differ from HEAD, and git's own line on them, where there are any."""
    rows = [f"{worktree.how(one)} {os.fsdecode(one.path)}" for one in dirty[: rendered.LISTED]]
    return tuple(rows), worktree.shortstat(ledger.gitdir) if any(one.mode for one in dirty) else ""


def _documents(view: View, task: Key, record: Record) -> tuple[str, ...]:
    """What `gitledger get` prints of a task: its documents, and the decisions that bear on it.

    A path holds words of the title, so where nobody trusted set that the task is named by its number.
    """
    stem = view.tip_stem(task) if "slug" in record.fields else None
    folder = stem.rpartition("/")[0] if stem else ""
    listed = [f"{folder}/{name}.md" for name in ("STATE", "TODO", "SOURCES")] if folder else [view.name(task)]
    links = [link for link in record.listed("links") if link.get("open") and link.get("kind") == layout.DECISION.word]
    keys = [str(link["id"]) for link in links if layout.numbered(str(link["id"]))]
    return (*listed, *(view.name(key) for key in keys[: -DECISIONS_NAMED - 1 : -1]))


def _task(view: View, whole: Record, record: Record, withheld: str, stale: proof.Stale) -> ActiveTask:
    strange = whole.items.get("criteria", {}).keys() - record.items.get("criteria", {}).keys()
    return ActiveTask(
        view.name(whole.key),
        _said(whole, record, "title"),
        _said(whole, record, "status"),
        _said(whole, record, "goal"),
        tuple(proof.criteria(record, stale)),
        None if _said(whole, record, "next") is None else tasks.next_action(record),
        len(strange),
        withheld,
        tuple(todo.still_open(record)),
        len(todo.still_open(whole)),
        tuple(_status(view, other) for other in relations.waits_for(view, whole.key)),
    )


def _status(view: View, key: Key) -> str:
    status = (view.row(key) or {}).get("status")
    return f"{view.name(key)} ({status if status in tasks.LEGAL else 'open'})"


def _of_task(view: View, key: Key) -> list[Finding]:
    """That a task is in a ring, or has grown too large; neither says a word that anybody wrote."""
    return [fault for fault in (relations.ring(view, key), splitting.wanted(view, key)) if fault]


def _waiting(view: View, task: Key | None, believe: Callable[[Record], Record]) -> tuple[tuple[Waiting, ...], int]:
    rows: list[tuple[bool, str, Key, str]] = []
    total = 0
    record = view.record(task) if task else None
    links = [link for link in record.listed("links") if link.get("open")] if record else []
    for kind in (layout.BLOCKER, layout.QUESTION):
        listed, count = view.open_rows(kind, rendered.BLOCKED_SHOWN)
        total += count
        own = [str(link["id"]) for link in links if link.get("kind") == kind.word]  # however old
        for key, row in {**{one: found for one in own if (found := view.row(one))}, **dict(listed)}.items():
            rows.append((row.get("task") == task, row["at"], key, kind.word))
    rows.sort(key=lambda r: (r[0], r[1]), reverse=True)  # the task's own first, then the newest
    shown = []
    for _, _, key, word in rows[: rendered.BLOCKED_SHOWN]:
        try:
            whole = view.need(key)
            shown.append(Waiting(view.name(key), _said(whole, believe(whole), "title"), word))
        except LedgerError:  # damaged, which fsck names; the others are not hidden by it
            shown.append(Waiting(view.name(key), None, word))
    return tuple(shown), total


def _handover(ledger: Ledger, view: View, chosen: handovers.Judged, tier: int, here: Position, over: str) -> Handover:
    known = chosen.verdict.authenticity == "verified"
    fields = chosen.fields if known else {}
    at = str(chosen.fields.get("at", "")) if known or trust.milliseconds(str(chosen.fields.get("at"))) else ""
    named = str(chosen.fields.get("task_name", ""))
    return Handover(
        name=view.name(chosen.key),
        tier=tier,
        at=at,
        age=trust.age_words(at, ledger.desk.mint.now_ms()),
        client=str(fields.get("client", "")),
        writer=chosen.writer,
        task_name=named if known or layout.parse_id(named) else "",
        objective=str(fields.get("objective", "")),
        state=tuple(map(str, state)) if isinstance(state := fields.get("state"), list) else (),
        next=str(fields.get("next", "")),
        verdict=chosen.verdict,
        recorded=chosen.recorded if known else _plain(chosen.recorded, here),
        recovered=fields.get("recovered") is True,
        over=over,
    )


def _plain(recorded: Position, here: Position) -> Position:
    """A stranger's position without the names that it could have chosen as it liked."""
    branch = recorded.branch if recorded.branch in (here.branch, DETACHED) else "another branch"
    head = recorded.head if objects.is_oid(recorded.head) or recorded.head == UNBORN else ""
    return replace(recorded, branch=branch, head=head, worktree="", operation="")


def _verified(whole: Record, record: Record, stale: proof.Stale, here: Position) -> tuple[str, ...]:
    rows = [proof.words(p) + _where(p, here) for p, shown in proof.states(record, stale) if shown == "verified"][-5:]
    strange = len(whole.items.get("evidence", {})) - len(record.items.get("evidence", {}))
    if strange:
        rows.append(f"{strange:,} more by writers that are not trusted here, which shows nothing")
    return tuple(rows)


def _finished(ledger: Ledger, view: View, here: Position, believe: Callable[[Record], Record]) -> Finished | None:
    key = tasks.finished(view, ledger.desk.writer.id, here.worktree)
    if key is None:
        return None
    whole = view.need(key)
    known = believe(whole)
    return Finished(view.name(key), _said(whole, known, "title"), _said(whole, known, "accept_unproven"))


def _stale(record: Record, stale: proof.Stale) -> tuple[str, ...]:
    shown = [(piece, stale[piece["id"]]) for piece, state in proof.states(record, stale) if state == "STALE"]
    return tuple(dict.fromkeys(f"{proof.words(p)}: {why}" if p.get("kind") == "run" else why for p, why in shown))


def _where(piece: dict[str, Json], here: Position) -> str:
    # What a command showed, it showed of the code it ran on.
    if not piece.get("head"):
        return ""
    same = piece["head"] == here.head
    at = "at this head" if same else f"at another head, {str(piece['head'])[:12]}, of the same content"
    return f", {at}{', in a dirty tree' if piece.get('dirty') else ''}"


def _checkpoint(ledger: Ledger, tip: Oid, whole: Record, project: Record) -> Checkpoint | None:
    pointer = whole.get("checkpoint")
    if not pointer:
        return None
    known = "checkpoint" in project.fields
    commit = introduced(ledger, tip, pointer["path"])
    name = str(pointer["name"])
    return Checkpoint(
        name=name if known or layout.parse_id(name) else "by a writer that is not trusted here",
        path=pointer["path"] if known else None,
        digest=f"{ledger.desk.store.algorithm}:{commit}" if commit else "",
        at=pointer["at"],
        age=trust.age_words(pointer["at"], ledger.desk.mint.now_ms()),
    )
