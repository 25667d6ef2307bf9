"""What a briefing and a status tell of, as plain values, and the sentences that both make of them. Pure.

The caller gathers; nothing here looks anything up. Texts are as the records hold them: whoever shows one escapes it. A
text that is None is there and withheld, because its writer is not trusted here.
"""

from __future__ import annotations

from gitledger.model import Finding, Position, Verdict
from gitledger.proof import Criterion
from gitledger.render.text import line
from gitledger.todo import Todo
from gitledger.values import dataclass

WITHHELD = "withheld: written by a writer that this machine does not trust; see: gitledger trust list"


@dataclass(frozen=True, slots=True)
class ActiveTask:
    """The task that this work tree is at; `strange` criteria more are by writers that are not trusted here.

    `withheld` says why its next action is not to be followed: it is older than a handover that is not, or "". `todos`
    are those left to do, of `todos_total` with those by writers that are not trusted here, `waits` names the open tasks
    that it depends on, each with its status.
    """

    name: str
    title: str | None
    status: str | None = "active"
    goal: str | None = ""
    criteria: tuple[Criterion, ...] = ()
    next: str | None = ""
    strange: int = 0
    withheld: str = ""
    todos: tuple[Todo, ...] = ()
    todos_total: int = 0
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open blocker or question; `kind` is its word."""

    name: str
    text: str | None
    kind: str = "blocker"


@dataclass(frozen=True, slots=True)
class Handover:
    """The handover that was resolved, its verdict, and what it says. `age` is its age in words, `3 h ago`.

    `recovered` says that its session ended without saying so. `over` says why its next action is nothing to follow
    although the handover is, or "".
    """

    name: str
    tier: int
    at: str
    age: str
    client: str
    writer: str
    task_name: str
    objective: str
    state: tuple[str, ...]
    next: str
    verdict: Verdict
    recorded: Position
    recovered: bool = False
    over: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest checkpoint; `digest` is its commit with the algorithm, `sha1:9f3c…`."""

    name: str
    path: str | None
    digest: str
    at: str
    age: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The task that was finished here last; `unproven` is why it was accepted without proof, "" where it was proved."""

    name: str
    title: str | None
    unproven: str | None = ""


@dataclass(frozen=True, slots=True)
class Briefing:
    """All that a briefing or a status may say, as plain values.

    `waiting` holds the newest open blockers and questions, `waiting_total` how many there are. `elsewhere` are lines
    on handovers of other branches, `verified`, `stale` and `candidates` lines on evidence, as the caller composed
    them. `finished` is told where no task is active. `pending`
    counts events that are journalled but not yet in a commit. `changed` are paths of the work tree that differ from
    HEAD, each with a word for how, `diff` is git's own line on them. `documents` name what to read of the active task.
    `advice` is what to do next with this session, "" where it may just go on.
    """

    position: Position
    ledger: str = "main"
    project: str | None = ""
    session: str = ""
    client: str = ""
    source: str = ""
    task: ActiveTask | None = None
    waiting: tuple[Waiting, ...] = ()
    waiting_total: int = 0
    handover: Handover | None = None
    elsewhere: tuple[str, ...] = ()
    verified: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    finished: Finished | None = None
    findings: tuple[Finding, ...] = ()
    checkpoint: Checkpoint | None = None
    pending: int = 0
    changed: tuple[str, ...] = ()
    diff: str = ""
    documents: tuple[str, ...] = ()
    advice: str = ""
    more: tuple[str, ...] = (
        "gitledger status",
        "gitledger capsule",
        "gitledger handover explain",
        "gitledger search TEXT",
    )


# ── sentences ────────────────────────────────────────────────────────────────────────────────
def dirtiness(position: Position) -> str:
    """`clean`, or `dirty (3 paths)`."""
    return f"dirty ({position.dirty:,} {'path' if position.dirty == 1 else 'paths'})" if position.dirty else "clean"


def work_tree(then: Position, now: Position) -> str:
    """The work tree beside the label: as it was then, as it is now, and whether its content is the same."""
    known = then.fingerprint and now.fingerprint
    same = ("same content" if then.fingerprint == now.fingerprint else "other content") if known else ""
    return f"work tree then {dirtiness(then)}, now {dirtiness(now)}{', ' + same if same else ''}"


def signature(verdict: Verdict) -> str:
    """Its authenticity in words."""
    return "signature verified" if verdict.authenticity == "verified" else f"signature: {verdict.authenticity}"


def handover_line(found: Handover) -> str:
    """Which handover it is: tier, age and time, who made it, for which task."""
    tier = "tier 0, this work tree and branch" if found.tier == 0 else f"tier {found.tier}, this branch elsewhere"
    words = (
        tier,
        f"{line(found.age, 30)} ({line(found.at, 24)})",
        f"by {line(found.writer, 20)}{' in ' + line(found.client, 20) if found.client else ''}",
        f"task {line(found.task_name, 24)}" if found.task_name else "no task",
        "recovered: its session ended without saying so" if found.recovered else "",
    )
    return " · ".join(word for word in words if word)


def finding_line(finding: Finding) -> str:
    """A finding in one line: rule, where, what, and the next step."""
    said = f"{line(finding.rule, 40)}: {line(finding.what, 160)} ({line(finding.where, 80)})"
    return f"{said}; {line(finding.mend, 120)}" if finding.mend else said


def pending(count: int) -> str:
    """How many events wait for a commit."""
    noun = "event is" if count == 1 else "events are"
    return f"{count:,} {noun} journalled and in no commit yet; the next checkpoint takes them along."
