"""What a briefing says, read back from its text, and where that is not what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.replay_model import FOLLOWED, Expected

_FENCED = re.compile(r"^<<< Next Action of (\S+)\n(.*?)\n>>> Next Action of \1$", re.DOTALL | re.MULTILINE)
_WAITING = re.compile(r"^- ([BQ]-\d{4}) (?:blocker|question): \"(.*)\"$", re.MULTILINE)
_CRITERION = re.compile(r"^- c\d+ \"(.*?)\" (open|failed|STALE|UNVERIFIED)", re.MULTILINE)
_ELSEWHERE = re.compile(r"^- (H-\d{6}) on (\S+?): different_context((?: \(merged\))?)$", re.MULTILINE)
_SAID_TO_BE_OVER = re.compile(
    r'^(?:T-\d{4} ".*" was finished here\.|State: "T-\d{4} is done: .*"|- c\d+ ".*" STALE.*)$', re.MULTILINE
)
_CHANGED = re.compile(r"^- (?:untracked|changed|deleted) (\S+)$", re.MULTILINE)


def differences(text: str, expected: Expected) -> list[str]:
    """Every way in which a briefing is not what it must be; none where it is right."""
    if not text.startswith("# gitledger briefing"):
        return [f"there is no briefing but {text[:80]!r}"]
    return [
        f"{what}: {said!r} for {wanted!r}" for what, said, wanted in _pairs(text, expected) if said != wanted
    ] + _closed(text, expected)


def _pairs(text: str, expected: Expected) -> Iterator[tuple[str, object, object]]:
    """What is said and what must be, by what it is."""
    task = re.search(r'^## Active task (\S+) "(.*)" \(', text, re.MULTILINE)
    yield "active task", task.groups() if task else ("", ""), (expected.task, expected.title)
    yield (
        "what may be followed",
        [found[1] for found in _FENCED.findall(text)],
        [expected.lead] if expected.lead else [],
    )
    head = _section(text, "## Active task")
    yield (
        "open criteria",
        {row for row in _CRITERION.findall(head) if row[1] != "STALE"},
        set(expected.criteria),
    )
    yield "what waits", frozenset(_WAITING.findall(_section(text, "## BLOCKED"))), expected.waiting
    yield from _handover(text, expected)
    needs = re.findall(r"^- (.*?): ", _section(text, "## Needs a person"), re.MULTILINE)
    yield "what needs a person", tuple(needs), expected.needs
    newest = re.search(r"^## Newest checkpoint (\S+?),", text, re.MULTILINE)
    yield "newest checkpoint", newest[1] if newest else "", expected.checkpoint
    yield "changed files", frozenset(_CHANGED.findall(_section(text, "## Work tree"))), expected.changed


def _handover(text: str, expected: Expected) -> Iterator[tuple[str, object, object]]:
    named = re.search(r"^## Handover (\S+?): (.*)$", text, re.MULTILINE)
    yield "handover", named[1] if named else "", expected.handover
    yield "no handover is said", "## No relevant handover." in text, not expected.handover
    said = _section(text, "## Handover")
    if named and expected.label:
        label = expected.label
        reason = re.escape(f" ({label.reason})") if label.reason else ""
        pattern = rf"^{label.word}{reason}:(?: (\d+) commits?)?"
        found = re.search(pattern, said, re.MULTILINE)
        yield "label", said.splitlines()[2] if not found else "", ""
        yield "commits since", int(found[1] or 0) if found and label.count else 0, label.count
        yield "may be followed", named[2].startswith("may be followed"), label.word in FOLLOWED
        yield "recovered", "recovered" in said.splitlines()[1], expected.recovered
    rows = text.partition("On other branches:\n")[2].split("\n\n")[0]
    yield "elsewhere", frozenset(_ELSEWHERE.findall(rows)), expected.elsewhere


def _closed(text: str, expected: Expected) -> list[str]:
    # What was finished may be said to be, and that a proof does not stand any more.
    text = _SAID_TO_BE_OVER.sub("", text)
    return [
        f"{one!r} is over, and is said again: {row}"
        for one in expected.closed
        for row in text.splitlines()
        if re.search(rf"{re.escape(one)}\b", row)
    ]


def _section(text: str, title: str) -> str:
    """From a heading to the next one."""
    found = re.search(rf"^{re.escape(title)}.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""
