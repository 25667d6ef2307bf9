"""What a person sees in a terminal: the pointer to a checkpoint, and where the work stands. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitledger.render.divergence import branch, divergence_sentence, short
from gitledger.render.facts import (
    Briefing,
    Handover,
    dirtiness,
    finding_line,
    handover_line,
    pending,
    signature,
    work_tree,
)
from gitledger.render.text import line, visible

SHOWN = 5
"""How many lines of a kind a status shows before it says how many more there are."""
_MARGIN = 12


def pointer(name: str, task: str | None, path: str, digest: str, next_action: str) -> str:
    """The five lines that name a checkpoint: what a person, a compactor or a script needs to find it again.

    `digest` is the commit with its algorithm, `sha1:9f3c…`. A next action of many lines is on one here.
    """
    rows = (
        ("Checkpoint", name),
        ("Task", task or "none"),
        ("Path", path),
        ("Digest", digest),
        ("Next action", line(next_action, 2000) or "none recorded"),
    )
    return "".join(f"{word}: {line(value)}\n" for word, value in rows)


def status(facts: Briefing) -> str:
    """Where the work stands, for a person: the facts of a briefing without its fences, at most a screen long."""
    rows = ((word, visible(text).replace("\n", " ")) for word, text in _rows(facts))  # whoever wrote a name in it
    return "".join(f"{word:<{_MARGIN}}{text}".rstrip() + "\n" for word, text in rows)


def prompt_line(facts: Briefing, percent: int | None, advice: str) -> str:
    """One line for a prompt: task, checkpoint with what is in none, the handover's label, the context, the advice."""
    task, newest, found = facts.task, facts.checkpoint, facts.handover
    parts = [f"{task.name} {_text(task.title, 40)}" if task else "no task"]
    parts.append(
        (line(newest.name, 40) if newest else "no checkpoint") + (f" +{facts.pending:,}" if facts.pending else "")
    )
    if found:
        parts.append(found.verdict.divergence.label)
    if percent is not None:
        parts.append(f"{percent} %")
    if advice != "continue":
        parts.append(advice)
    return line(" · ".join(parts))


def _rows(facts: Briefing) -> Iterator[tuple[str, str]]:
    here = facts.position
    yield "Project", f"{_text(facts.project, 100) or 'no title'} (ledger/{line(facts.ledger, 63)})"
    where = [f"{branch(here)} at {short(here.head)}, {dirtiness(here)}"]
    if here.worktree != "main":
        where.append(f"work tree {line(here.worktree, 60)}")
    if here.operation:
        where.append(f"{line(here.operation, 40)} under way")
    yield "Branch", ", ".join(where)
    if facts.session:
        yield "Session", line(f"{facts.session} {facts.client}", 100)
    yield "", ""
    yield from _task(facts)
    yield from _waiting(facts)
    yield "", ""
    yield from _handover(facts)
    yield "", ""
    yield from _listed("Verified", facts.verified, "nothing yet")
    if facts.stale:
        yield from _listed("STALE", facts.stale, "")
    if facts.candidates:
        yield from _listed("Unverified", [f"seen in a turn: {row}" for row in facts.candidates], "")
    yield from _listed("Attention", [finding_line(finding) for finding in facts.findings], "nothing needs you")
    newest = facts.checkpoint
    said = f"{line(newest.name, 40)}, {line(newest.age, 40)}, {line(newest.digest, 80)}" if newest else "none yet"
    yield "Checkpoint", said
    if facts.pending:
        yield "", pending(facts.pending)
    if facts.advice:
        yield "Rollover", line(facts.advice, 240)


def _task(facts: Briefing) -> Iterator[tuple[str, str]]:
    task = facts.task
    if task is None:
        yield "Task", "none is active; start one with: gitledger task start ID"
        return
    yield "Task", f"{task.name} {_text(task.title, 120)} ({_text(task.status, 20)})"
    if task.withheld:
        yield "Next", f"withheld: {line(task.withheld, 160)}; shown by: gitledger task show {task.name}"
    else:
        nothing = f"none recorded; set it with: gitledger task next {task.name} TEXT"
        yield "Next", _text(task.next, 300) or nothing
    still = [criterion for criterion in task.criteria if not criterion.met]
    if task.criteria:
        yield "Acceptance", f"{len(task.criteria) - len(still):,} of {len(task.criteria):,} criteria met"
    if task.waits:
        yield "Waits for", line(", ".join(task.waits), 240)
    if task.strange:
        yield "", f"{task.strange:,} more by writers that are not trusted here"
    rows = [f"{c.name} {line(c.text, 120)} ({c.state})" for c in still]
    yield from (("", row) for _, row in _listed("", rows, "") if rows)
    if task.todos or task.todos_total:
        yield from _listed("To do", [f"{one.name} {line(one.text, 120)}" for one in task.todos], "", task.todos_total)


def _waiting(facts: Briefing) -> Iterator[tuple[str, str]]:
    total = max(facts.waiting_total, len(facts.waiting))
    rows = [f"{w.name} {line(w.kind, 20)}: {_text(w.text, 160)}" for w in facts.waiting]
    yield from _listed("Blocked", rows, "nothing is waiting", total)


def _handover(facts: Briefing) -> Iterator[tuple[str, str]]:
    found = facts.handover
    if found is None:
        yield "Handover", "no relevant one"
    else:
        yield from _found(facts, found)
    for row in facts.elsewhere[:SHOWN]:
        yield "", f"elsewhere: {line(row, 200)}"


def _found(facts: Briefing, found: Handover) -> Iterator[tuple[str, str]]:
    verdict = found.verdict
    yield "Handover", f"{found.name}, {'may be followed' if verdict.trusted else 'history, not to be followed'}"
    yield "", handover_line(found)
    yield "", line(divergence_sentence(verdict.divergence, found.recorded, facts.position), 240)
    yield "", f"{verdict.freshness} · {signature(verdict)} · {work_tree(found.recorded, facts.position)}"
    if found.over:
        yield "", f"its next action is over, {line(found.over, 160)}; shown by: gitledger handover show {found.name}"
    elif not verdict.trusted:
        yield from (("", f"withheld: {line(reason, 200)}") for reason in verdict.withheld)
        yield "", f"its next action is shown by: gitledger handover show {found.name}"
    elif not (facts.task and (facts.task.next or "").strip() == found.next.strip()):
        yield "", f"next action: {line(found.next, 300) or 'none'}"


def _listed(word: str, rows: Sequence[str], empty: str, total: int = 0) -> Iterator[tuple[str, str]]:
    shown = [line(row, 240) for row in rows[:SHOWN]]
    left = max(total, len(rows)) - len(shown)
    if left > 0:
        shown.append(f"and {left:,} more")
    for n, row in enumerate(shown or [empty]):
        yield (word if n == 0 else ""), row


def _text(text: str | None, limit: int) -> str:
    return "(withheld: its writer is not trusted here)" if text is None else line(text, limit)
