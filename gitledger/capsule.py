"""What a single request is given, chosen: the active task, what the request names, and what bears on both.

Chosen in this order: the active task; records that the query names by id, and tasks by a path; at most two more tasks,
by the query's words and by dependency; decisions, blockers, questions and documents of these, and those that the words
are about. What was superseded, resolved or answered is never among them, and no more is read than is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitledger import briefing, layout, relations
from gitledger.briefing import Survey
from gitledger.errors import LedgerError, Usage
from gitledger.layout import Kind
from gitledger.ledger import Ledger
from gitledger.model import Key, Record
from gitledger.patterns import pattern
from gitledger.render import capsule as rendered
from gitledger.render.capsule import Capsule, Count, Entry, Next, Rendered
from gitledger.render.facts import WITHHELD
from gitledger.render.tokens import estimate
from gitledger.typed import TYPE_CHECKING
from gitledger.values import dataclass, replace
from gitledger.view import View, is_open

if TYPE_CHECKING:
    from gitledger import fulltext

NAMED = 6
"""Records that a query names and that are shown at most."""
RELATED = 2
OF_A_KIND = 12
"""Decisions, and things that wait, that are read at most: as many as are ever shown."""
PROJECTS_OWN = 3
"""Standing decisions of no task that are shown where no query chooses among them."""
OWN, BESIDE = 0.6, 0.1
"""What it adds that a record belongs to the active or a named task, or to one beside it; to fit the words best is 1."""
FAR = 0.35
"""A record that fits the query less well than this part of the best does not bear on it."""
_ID = pattern(r"(?<![A-Za-z0-9-])([TDBQANMCH]-[0-9]{4,12}(?:@[a-z0-9]{4,16})?)(?![0-9])")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The tasks that a capsule is about, and the records and tasks that the query's words fit, the best first.

    How well is said as a part of the best, which is 1.
    """

    survey: Survey
    active: Key | None
    named: tuple[Key, ...]
    by_words: Mapping[Key, float]
    tasks: Mapping[Key, float]
    unknown: tuple[str, ...] = ()


def compose(
    ledger: Ledger,
    query: str = "",
    tokens: int = 3_000,
    since: str | None = None,
    *,
    chars: int = rendered.CHARS,
    count: Count = estimate,
) -> Rendered:
    """The capsule for a request, in at most `tokens` tokens by `count` and `chars` characters.

    `since` is the mark of an earlier one: then it says only what has changed, and nothing where nothing has. Raises
    Usage for a mark that is none, and for fewer tokens than any capsule needs.
    """
    if tokens < rendered.LEAST_TOKENS:
        raise Usage(f"a capsule needs {rendered.LEAST_TOKENS} tokens, {tokens} are too few; give more")
    mark = None if since is None else rendered.read_mark(since)
    if since is not None and mark is None:
        raise Usage("that is no mark of a capsule; take the one that gitledger capsule --json printed, or none")
    facts = gather(ledger, query)
    if mark is not None:
        facts = replace(facts, gone=tuple(_gone(ledger, mark, rendered.units(facts))))
    return rendered.capsule(facts, tokens, chars, mark, count)


def is_mark(text: str) -> bool:
    """True for the mark of a capsule."""
    return rendered.read_mark(text) is not None


def gather(ledger: Ledger, query: str = "") -> Capsule:
    """All that a capsule may say."""
    survey = briefing.survey(ledger)
    chosen = _choose(ledger, survey, query)
    tasks = [key for key in dict.fromkeys((chosen.active, *_tasks(chosen.named))) if key]
    related = tuple(_related(chosen, tasks))
    beside = [*tasks, *(key for key, _ in related)]
    decisions, fewer = _standing(chosen, beside, (layout.DECISION,))
    waiting, fewer_waiting = _standing(chosen, beside, (layout.BLOCKER, layout.QUESTION))
    record = survey.record
    open_tasks = survey.view.open_rows(layout.TASK, 0)[1]
    others = (
        ("decisions", fewer, "gitledger get DECISIONS.md"),
        ("blockers and questions", fewer_waiting, "gitledger get BLOCKERS.md"),
        ("open tasks", max(open_tasks - sum(_is_open(survey, key) for key in beside), 0), "gitledger task list"),
        *((f"{name} (not in this ledger)", 0, "gitledger search TEXT") for name in chosen.unknown),
    )
    return Capsule(
        facts=survey.facts,
        next=_next(survey),
        scope=_said(survey, "scope"),
        non_goals=_said(survey, "non_goals"),
        asked=tuple(_named(chosen, key) for key in chosen.named if key != chosen.active),
        decisions=tuple(decisions),
        todos=_todos(survey),
        completed=tuple(_completed(record)) if record else (),
        waiting=tuple(waiting),
        related=tuple(_task(chosen, key, why) for key, why in related),
        documents=tuple(_documents(chosen, beside)),
        others=tuple(row for row in others if row[1] or "not in" in row[0]),
    )


# ── choosing ─────────────────────────────────────────────────────────────────────────────────
def _choose(ledger: Ledger, survey: Survey, query: str) -> _Chosen:
    view, me = survey.view, ledger.desk.writer.id
    named: dict[Key, None] = {}
    unknown: dict[str, None] = {}
    for text in dict.fromkeys(_ID.findall(query) if query else ()):
        try:
            named[view.resolve(text, None, me)] = None
        except LedgerError:
            unknown[text] = None
    found: list[fulltext.Match] = []
    if query:
        from gitledger import fulltext  # a capsule without a query asks no index, and loads none

        asked = fulltext.read(_ID.sub(" ", query))
        trusted = [one for one in view.manifest.writers if survey.assessment.of(one) == "verified"]
        found = fulltext.matches(ledger, view, asked, trusted)
        for key in _by_path(survey, found, asked.paths):
            named[key] = None
    near = {one.key: one.score for one in found if one.score >= found[0].score * FAR}
    keys, more = tuple(named)[:NAMED], map(view.name, tuple(named)[NAMED:])
    return _Chosen(survey, survey.task, keys, _parts(near), _parts(_spoken_of(view, near)), (*unknown, *more))


def _spoken_of(view: View, found: Mapping[Key, float]) -> dict[Key, float]:
    """The tasks that matches are of: what is said of one in several records counts together."""
    votes: dict[Key, float] = {}
    for key, score in found.items():
        if task := key if key.startswith(layout.TASK.letter) else _task_of(view, key):
            votes[task] = votes.get(task, 0.0) + score
    return votes


def _task_of(view: View, key: Key) -> Key | None:
    row = view.row(key)
    return row["task"] if row else None


def _parts(scores: Mapping[Key, float]) -> dict[Key, float]:
    best = max(scores.values(), default=0.0) or 1.0
    return {key: scores[key] / best for key in sorted(scores, key=lambda key: -scores[key])}


def _by_path(survey: Survey, found: list[fulltext.Match], paths: tuple[str, ...]) -> Iterator[Key]:
    """The tasks whose evidence or documents are at one of the paths that the query names."""
    for one in found if paths else ():
        record = survey.view.record(one.key)
        said = survey.believed(record) if record else None
        if said is None:
            continue
        places = [said.text("path"), *(str(piece.get("path", "")) for piece in said.listed("evidence"))]
        if any(place and (place == path or place.endswith(f"/{path}")) for place in places for path in paths):
            key = one.key if one.key.startswith(layout.TASK.letter) else said.text("task")
            if key and survey.view.row(key):
                yield key


def _tasks(keys: tuple[Key, ...]) -> Iterator[Key]:
    yield from (key for key in keys if (found := layout.numbered(key)) and found[0] is layout.TASK)


def _related(chosen: _Chosen, tasks: list[Key]) -> Iterator[tuple[Key, str]]:
    """At most RELATED open tasks with the reason: by words and by dependency in turn."""
    view = chosen.survey.view
    words = [(key, "by the words of the request") for key in chosen.tasks if key not in tasks]
    ties: list[tuple[Key, str]] = []
    for key in tasks:
        name = view.name(key)
        ties += [(other, f"{name} waits for it") for other in relations.waits_for(view, key)]
        if parent := (view.row(key) or {}).get("parent"):
            ties.append((parent, f"{name} is a part of it"))
    seen = set(tasks)
    turns = [one for pair in zip(words, ties, strict=False) for one in pair]
    for key, why in [*turns, *words[len(ties) :], *ties[len(words) :]][: RELATED * 4]:
        if key not in seen and _is_open(chosen.survey, key):
            seen.add(key)
            yield key, why
            if len(seen) == len(tasks) + RELATED:
                return


def _standing(chosen: _Chosen, tasks: list[Key], kinds: tuple[Kind, ...]) -> tuple[list[Entry], int]:
    """What stands of some kinds and bears on the tasks or the query, and how many more the project has.

    The order is by what its own words fit and by whose it is: of the active task, of one that is named, of one that the
    words are about; among equals the newest first, and the project's own last.
    """
    survey, view = chosen.survey, chosen.survey.view
    letters = {kind.letter for kind in kinds}
    weighed = {key: score for key, score in chosen.by_words.items() if key[:1] in letters}
    for key in weighed:
        weighed[key] += chosen.tasks.get(_task_of(view, key) or "", 0.0)
    for n, task in enumerate(tasks):
        if whole := view.record(task):
            links = survey.believed(whole).listed("links")
            worth = OWN if n == 0 or task in chosen.named else BESIDE
            for link in reversed(links):
                if link["id"][:1] in letters and link.get("open"):
                    weighed[link["id"]] = weighed.get(link["id"], chosen.tasks.get(task, 0.0)) + worth
    keys = sorted(weighed, key=lambda key: -weighed[key])
    total = 0
    for kind in kinds:
        rows, count = view.open_rows(kind, 0 if chosen.by_words else PROJECTS_OWN * 4)
        total += count
        keys += [key for key, row in rows if not row["task"]][:PROJECTS_OWN]
    entries: list[Entry] = []
    for key in dict.fromkeys(key for key in keys if key not in chosen.named):
        if len(entries) == OF_A_KIND:
            break
        if (entry := _entry(chosen, key)) is not None:
            entries.append(entry)
    return entries, max(total - len(entries), 0)


def _is_open(survey: Survey, key: Key) -> bool:
    row = survey.view.row(key)
    return row is not None and row["state"] == "open"


# ── saying ───────────────────────────────────────────────────────────────────────────────────
def _next(survey: Survey) -> Next:
    """The one next action, by the briefing's own rule: that of a handover that may be followed, or else the task's."""
    task, handover = survey.facts.task, survey.facts.handover
    if handover and handover.verdict.trusted and not handover.over and handover.next.strip():
        return Next(handover.next, handover.name, "", f"gitledger handover show {handover.name}")
    if task is None:
        if handover is None or not handover.verdict.withheld:
            return Next()
        why = f"that of {handover.name} is withheld: {handover.verdict.withheld[0]}"
        return Next("", "", why, f"gitledger handover show {handover.name}")
    show = f"gitledger task show {task.name}"
    if task.next is None:
        return Next("", task.name, WITHHELD, show)
    if task.withheld:
        return Next("", task.name, f"withheld, nobody set it since: {task.withheld}", show)
    return Next(task.next, task.name, "", show)


def _said(survey: Survey, name: str) -> str | None:
    """A text of the active task; None where it is there and its writer is not believed."""
    whole = survey.view.record(survey.task) if survey.task else None
    return _text(whole, survey.record, name) if whole and survey.record else ""


def _text(whole: Record, believed: Record, name: str) -> str | None:
    return None if name in whole.fields and name not in believed.fields else believed.text(name)


def _todos(survey: Survey) -> tuple[Entry, ...]:
    task = survey.facts.task
    return tuple(Entry(one.name, "", one.text) for one in task.todos) if task else ()


def _completed(record: Record) -> Iterator[Entry]:
    for row in reversed(record.listed("completed")):
        yield Entry(str(row["id"]).partition("@")[0], "", str(row.get("text", "")))


def _entry(chosen: _Chosen, key: Key) -> Entry | None:
    """A record that stands, as its own latest state says; None for any other."""
    view, survey = chosen.survey.view, chosen.survey
    found = layout.numbered(key)
    try:
        whole = view.record(key)
    except LedgerError:  # damaged, which fsck names
        return None
    if whole is None or found is None or not is_open(found[0], whole):
        return None
    said = survey.believed(whole)
    title = _text(whole, said, "title")
    more = said.text("why") or said.text("text")
    if title and len(more) <= len(title) + 1 and more.strip().startswith(title.rstrip("…")):
        more = ""  # a blocker's text begins with its title, and often ends there
    task = said.text("task")
    of = view.name(task) if task and task != chosen.active else ""
    return Entry(view.name(key), found[0].word, title, more, f"of {of}" if of else "")


def _task(chosen: _Chosen, key: Key, why: str) -> Entry:
    view, survey = chosen.survey.view, chosen.survey
    whole = view.record(key) or Record(key)
    said = survey.believed(whole)
    status = _text(whole, said, "status")
    following = said.text("next")
    goal = said.text("goal")
    more = f"next: {following}" if following else f"goal: {goal}" if goal else ""
    kind = "task" if status is None else f"task {status}"
    return Entry(view.name(key), kind, _text(whole, said, "title"), more, why)


def _named(chosen: _Chosen, key: Key) -> Entry:
    """A record that the query names: what it says where it stands, else only what became of it."""
    view = chosen.survey.view
    found = layout.numbered(key)
    name = view.name(key)
    if found is None:
        return Entry(name, "session", "", "", f"gitledger show {name}")
    if found[0] is layout.TASK:
        return _task(chosen, key, "")
    if found[0] is not layout.MEMORY and (entry := _entry(chosen, key)) is not None:
        return entry
    try:
        whole = view.record(key) or Record(key)
    except LedgerError:
        return Entry(name, found[0].word, "", "", "cannot be read; run: gitledger fsck")
    if found[0] is layout.MEMORY:  # what it removed is history, and stands in no file: that it happened is all
        done = "undone" if whole.text("status") == "undone" else "applied"
        title = _text(whole, chosen.survey.believed(whole), "title")
        return Entry(name, found[0].word, title, "", f"{done}; gitledger show {name}")
    if found[0].letter in layout.IMMUTABLE:
        return Entry(name, found[0].word, "", "", f"of {whole.text('at')[:16]}; gitledger show {name}")
    return Entry(name, found[0].word, "", "", _fate(view, whole))


def _fate(view: View, whole: Record) -> str:
    """What became of a record that is not open any more, in words that nobody else wrote."""
    status = whole.text("status")
    word = status if status in ("superseded", "resolved", "answered", "done", "dropped") else "closed"
    by = whole.text("superseded_by")
    return f"superseded by {view.name(by)}" if word == "superseded" and layout.numbered(by) else word


def _documents(chosen: _Chosen, tasks: list[Key]) -> Iterator[Entry]:
    """Where more of it stands: the task's own documents, what its people linked, and what the words fit."""
    survey, view = chosen.survey, chosen.survey.view
    letters = (layout.ARTIFACT.letter, layout.NOTE.letter)
    keys = [key for key in chosen.by_words if key[:1] in letters]
    for task in tasks:
        if whole := view.record(task):
            links = survey.believed(whole).listed("links")
            keys += [link["id"] for link in reversed(links) if link["id"][:1] in letters]
    for key in dict.fromkeys(keys[:OF_A_KIND]):
        whole = view.record(key)
        if whole is not None and key not in chosen.named:
            said = survey.believed(whole)
            where = said.text("path")
            title = _text(whole, said, "title")
            yield Entry(view.name(key), where or "note", "" if title == where else title)
    if chosen.active and (whole := view.record(chosen.active)):
        # Its folder is named by whoever named the task.
        known = "slug" in survey.believed(whole).fields or "slug" not in whole.fields
        folder = view.folder(chosen.active) if known else None
        if folder:
            yield Entry(f"{folder}/STATE.md", "TASK.md TODO.md SOURCES.md", "")
        else:
            yield Entry(f"gitledger get {view.name(chosen.active)}", "", "")


# ── what has changed ─────────────────────────────────────────────────────────────────────────
def _gone(ledger: Ledger, mark: Mapping[str, str], now: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Records that were shown as standing and stand no more, each with what became of it."""
    view = ledger.view()
    for unit in mark:
        ref = layout.parse_id(unit)
        if unit in now or ref is None:
            continue
        try:
            key = view.resolve(unit, None, None)
            whole = view.record(key)
        except LedgerError:
            continue
        found = layout.numbered(key)
        if whole is not None and found and found[0].letter not in layout.IMMUTABLE and not is_open(found[0], whole):
            yield unit, f"{unit} {found[0].word} is {_fate(view, whole)}"
