"""What a task's claims rest on, as this clone sees it now: criterion by criterion, and what of it may be run again.

A ledger that was fetched cannot make this machine do anything: a command is run again only where every field of its
item is by this clone's own writer and the clone remembers that it ran that very command itself (`runs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gitledger import authority, evidence, proof, runs, tasks
from gitledger.errors import BadData, LedgerError, NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Field, Json, Key, Record
from gitledger.tasks import Hand
from gitledger.values import dataclass, replace
from gitledger.view import View

FAULTS = ("failed", "STALE", "UNVERIFIED")
"""What is claimed and does not hold. That nothing was claimed yet is no fault, nor what a newer run has overtaken."""


_SHOWN = ("title", "status", "accept_unproven")


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence as it stands here; `again` says that this clone may run it again."""

    name: str
    fields: dict[str, Json]
    state: proof.State
    why: str
    writer: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A task's claims. `strange` counts what writers gave that are not trusted here, which shows nothing.

    A text is None where such a writer said it.
    """

    key: Key
    name: str
    title: str | None
    status: str | None
    unproven: str | None
    criteria: tuple[tuple[proof.Criterion, str | None], ...]
    pieces: tuple[Piece, ...]
    candidates: tuple[proof.Candidate, ...]
    unproved: tuple[str, ...]
    strange: int

    @property
    def faults(self) -> int:
        """How many claims do not hold."""
        criteria = sum(one.state in FAULTS for one, _ in self.criteria)
        shown = {one.piece for one, _ in self.criteria}
        loose = [p for p in self.pieces if p.fields["id"] not in shown and not p.fields.get("criterion")]
        return criteria + sum(piece.state in FAULTS for piece in loose)


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def report(ledger: Ledger, view: View, keys: Iterable[Key]) -> list[Report]:
    """How the claims of these tasks stand in this work tree."""
    look = ledger.look()
    known = _known(ledger)
    here = runs.load(ledger.gitdir.common)
    made = []
    for key in keys:
        whole = view.need(key)
        task = _believed(whole, known)
        made.append(_report(ledger, view, whole, task, ledger.stale(task, look), here))
    return made


def doubts(ledger: Ledger, task: Record) -> dict[str, str]:
    """The ids of a task's evidence that proves nothing here, each with the reason: stale, or a stranger's."""
    known = _known(ledger)
    found = {}
    for item, fields in task.items.get("evidence", {}).items():
        if strangers := sorted(_writers(fields) - known):
            found[item] = f"given by writer {strangers[0]}, who is not trusted here"
    return {**ledger.stale(task), **found}


def _report(
    ledger: Ledger, view: View, whole: Record, task: Record, stale: dict[str, str], here: frozenset[str]
) -> Report:
    names = proof.item_names(whole.items.get("evidence", {}))
    held = task.items.get("evidence", {})
    pieces = tuple(
        Piece(
            names[fields["id"]],
            fields,
            state,
            stale.get(fields["id"], "") if state == "STALE" else "",
            min(_writers(held[fields["id"]])),
            _may_run(ledger, whole, fields, here),
        )
        for fields, state in proof.states(task, stale)
    )
    texts = task.items.get("criteria", {})
    strange = sum(len(whole.items.get(n, {})) - len(task.items.get(n, {})) for n in ("evidence", "candidates"))
    rest = [row for row in task.listed("completed") if not row.get("evidence")]
    said = {n: None if n in whole.fields and n not in task.fields else task.text(n) for n in _SHOWN}
    return Report(
        whole.key,
        view.name(whole.key),
        said["title"],
        said["status"],
        said["accept_unproven"],
        tuple((one, one.text if "text" in texts.get(one.id, {}) else None) for one in proof.criteria(task, stale)),
        pieces,
        tuple(one for one in proof.candidates(task) if not one.taken),
        tuple(str(row.get("text", "")) for row in rest),
        strange,
    )


def _known(ledger: Ledger) -> frozenset[str]:
    """The writers whose evidence counts here; this clone's own always does."""
    try:
        assessment = authority.assess(ledger.desk, ledger.tip())
    except LedgerError:
        return frozenset((ledger.desk.writer.id,))
    trusted = assessment.trusted if assessment.chain not in ("bad", "unverifiable") else frozenset()
    return trusted | {ledger.desk.writer.id}


def _believed(task: Record, known: frozenset[str]) -> Record:
    """A task without what strangers gave as evidence; of a criterion of theirs the text is withheld, not the demand."""

    def kept(items: dict[str, dict[str, Field]]) -> dict[str, dict[str, Field]]:
        return {item: fields for item, fields in items.items() if _writers(fields) <= known}

    fields = {name: field for name, field in task.fields.items() if field[1].writer in known}
    items = {name: kept(listed) for name, listed in task.items.items()}
    items["criteria"] = {
        item: {name: field for name, field in fields.items() if name != "met" or field[1].writer in known}
        for item, fields in task.items.get("criteria", {}).items()
    }
    for row in items["criteria"].values():
        if "text" in row and row["text"][1].writer not in known:
            row["by"] = row.pop("text")
    return replace(task, fields=fields, items=items)


def _writers(fields: dict[str, Field]) -> frozenset[str]:
    return frozenset(stamp.writer for _, stamp in fields.values())


# ── writing ──────────────────────────────────────────────────────────────────────────────────
def give(ledger: Ledger, key: Key, piece: dict[str, Json], criterion: str = "", completed: str = "") -> str:
    """Record a piece of evidence, and remember a run as this clone's own; one line on what was recorded."""
    made: list[Draft] = []

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        made[:] = [tasks.evidence(view, hand, key, piece, criterion, completed)]
        return f"{view.name(key)} {proof.state(piece)}: {proof.words(piece)}", made[0]

    said = ledger.record(build)
    if piece.get("kind") == "run" and piece.get("whole") is not False:
        (fields,) = made[0].records[key].items["evidence"].values()
        try:
            runs.add(ledger.gitdir.common, _digest(fields))
        except (OSError, LedgerError):
            pass  # it is recorded; that it cannot be run again is what `check` will say
    return said


def take(ledger: Ledger, key: Key, wanted: str, criterion: str = "", completed: str = "") -> str:
    """Record a candidate as what it is, a claim with its source; one line on what was recorded.

    NotAllowed where a writer saw it who is not trusted here: its words would become this writer's own.
    """
    known = _known(ledger)

    def build(view: View, hand: Hand) -> tuple[str, Draft]:
        task = view.need(key)
        item = tasks.find_item(task, "candidates", wanted, view.name(key))
        one = next((c for c in proof.candidates(task) if c.id == item), None)
        if strangers := sorted(_writers(task.items["candidates"][item]) - known):
            raise NotAllowed(
                f"candidate {wanted[:40]!r} was seen by writer {strangers[0]}, who is not trusted here; run the tests"
            )
        if one is None:
            raise BadData(f"{view.name(key)} candidate {wanted[:40]!r} holds no test result; run the tests instead")
        seen = f"a tool's output in {one.session or 'a turn'}, {one.at}"
        piece = {"kind": "claim", "text": proof.seen(one), "source": seen}
        draft = tasks.evidence(view, hand, key, piece, criterion, completed)
        change = draft.records[key]
        (given,) = change.items["evidence"]
        taken = Change(change.set, {**change.items, "candidates": {item: {"taken": given}}})
        said = f"{view.name(key)} UNVERIFIED: {proof.words(piece)}; run it with --run to prove it"
        return said, replace(draft, records={**draft.records, key: taken})

    return ledger.record(build)


def rerun(
    ledger: Ledger, found: Report, tell: Callable[[str], None], deadline: float = evidence.DEADLINE
) -> list[dict[str, Json]]:
    """Run again what is stale or failed and this clone ran itself, each command once, and record what it shows now.

    `tell` is given each command before it runs.
    """
    wanted: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for piece in found.pieces:
        if piece.again and piece.state in ("STALE", "failed"):
            run = (str(piece.fields["command"]), proof.covers(piece.fields))
            wanted.setdefault(run, []).append(str(piece.fields.get("criterion") or ""))
    ran = []
    for (command, covers), criteria in wanted.items():
        tell(command)
        made = evidence.run(ledger.gitdir, command, ledger.look(), covers=covers, deadline=deadline)
        for criterion in dict.fromkeys(criteria):
            give(ledger, found.key, made, criterion)
        ran.append({"task": found.name, "command": command, "exit": made["exit"], "ms": made["ms"]})
    return ran


def _may_run(ledger: Ledger, task: Record, piece: dict[str, Json], here: frozenset[str]) -> bool:
    if piece.get("kind") != "run" or piece.get("whole") is False or not piece.get("command"):
        return False
    own = _writers(task.items["evidence"][piece["id"]]) == {ledger.desk.writer.id}
    return own and _digest(piece) in here


def _digest(piece: dict[str, Json]) -> str:
    return runs.digest(str(piece.get("at")), str(piece.get("command")), proof.covers(piece))
