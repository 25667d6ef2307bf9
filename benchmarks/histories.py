"""Made-up projects of many tasks, for what finds records again: seeded, on real ledgers, in words of a few trades.

A history is what people and agents say over some weeks: tasks are added, started, finished and dropped, decisions
supersede each other, blockers are opened and resolved, questions asked and answered, checkpoints made in between. It
knows what of that stands in the end and what does not, by its own account and not by asking the ledger.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from gitledger import derive, entries, ingest, tasks
from gitledger.derive import Facts
from gitledger.ledger import Ledger
from gitledger.model import Draft, Key
from gitledger.tasks import Hand
from gitledger.transaction import Plan
from gitledger.view import View

T = TypeVar("T")

Kind: TypeAlias = Literal["task", "decision", "blocker", "question"]


class Trade(NamedTuple):
    """What one part of a project is about: its parts, what is chosen among, and what people call it when they ask."""

    name: str
    parts: tuple[str, ...]
    choices: tuple[str, ...]
    troubles: tuple[str, ...]
    said: tuple[str, ...]


TRADES: tuple[Trade, ...] = (
    Trade("sign-in", ("password reset", "session cookie", "second factor", "invite mail"),
          ("bcrypt", "argon2", "signed cookies", "opaque tokens", "a magic link"),
          ("the identity provider's sandbox", "the mail relay", "the cookie jar on Safari"),
          ("people who cannot log in", "authentication", "credentials")),
    Trade("billing", ("invoice run", "tax table", "dunning letter", "refund path"),
          ("whole cents", "decimal fractions", "the bank's file format", "a ledger of postings"),
          ("the bank's certificate", "a rate for Austria", "the accountant's reply"),
          ("money that customers owe", "payments", "charging cards")),
    Trade("search", ("synonym list", "ranking formula", "facet filter", "index rebuild"),
          ("trigrams", "stemming", "a nightly rebuild", "edge grams"),
          ("a dump of the catalogue", "licences for the dictionaries", "the staging cluster"),
          ("finding articles", "relevance", "lookup")),
    Trade("import", ("spreadsheet reader", "duplicate check", "column mapping", "retry queue"),
          ("streaming rows", "one transaction each file", "a staging table", "checksums for rows"),
          ("a sample from the supplier", "the encoding of old files", "the limit of uploads"),
          ("loading supplier data", "ingestion", "feeds")),
    Trade("reports", ("monthly summary", "PDF layout", "chart legend", "export button"),
          ("server side rendering", "vector charts", "comma separated files", "fixed columns"),
          ("the brand fonts", "figures from finance", "a printer profile"),
          ("statistics for managers", "downloads", "printing")),
    Trade("notifications", ("digest mail", "push message", "quiet hours", "unsubscribe page"),
          ("one mail a day", "a queue in the database", "local time zones", "plain text only"),
          ("the push certificate", "spam scores", "the sender domain"),
          ("telling users what happened", "alerts", "reminders")),
    Trade("maps", ("tile cache", "route planner", "address lookup", "marker cluster"),
          ("vector tiles", "raster tiles", "a hexagon grid", "straight line distance"),
          ("the tile licence", "a key for geocoding", "wrong house numbers"),
          ("where things are", "locations", "geography")),
    Trade("uploads", ("image resizer", "virus scan", "resumable transfer", "thumbnail store"),
          ("object storage", "chunks of five megabytes", "lossy previews", "content hashes as names"),
          ("the scanner's signatures", "a bucket policy", "camera raw files"),
          ("pictures and files of users", "attachments", "media")),
    Trade("mobile", ("offline sync", "deep link", "battery budget", "crash report"),
          ("last writer wins", "a local database", "delta updates", "background fetch"),
          ("the store review", "a test device", "the signing profile"),
          ("the phone app", "handsets", "working without a network")),
    Trade("access", ("role matrix", "audit trail", "admin console", "impersonation banner"),
          ("roles for teams", "deny by default", "append only tables", "two person approval"),
          ("legal's opinion", "the list of departments", "an export of old roles"),
          ("who may do what", "permissions", "privileges")),
    Trade("speed", ("slow query", "page cache", "asset bundle", "warm start"),
          ("a read replica", "stale while revalidate", "fewer joins", "precomputed counts"),
          ("a trace from production", "the profiler's licence", "noisy neighbours"),
          ("why everything takes so long", "latency", "performance")),
    Trade("translation", ("plural rules", "message catalogue", "right to left layout", "date format"),
          ("message keys", "source text as keys", "a translation memory", "fallback to English"),
          ("the Hebrew translator", "strings from marketing", "a font with Arabic"),
          ("other languages", "localisation", "wording")),
)  # fmt: skip
_AIMS = (
    "works for every tenant", "survives a restart", "is covered by a test", "answers within a second",
    "is described in the handbook", "refuses bad input", "can be turned off", "keeps the old data readable",
)  # fmt: skip
_VERBS = ("is built on", "goes with", "relies on", "is kept to", "takes")
_REASONS = (
    "measured twice as fast", "the team knows it", "support asked for it", "nothing else passed the audit",
    "it is the cheapest to run", "the old way lost data",
)  # fmt: skip
_PLACES = ("north", "south", "east", "west", "upper", "lower", "first", "second", "third", "inner", "outer")


@dataclass(frozen=True, slots=True)
class Said:
    """One record as its history knows it: `stands` is False once it was superseded, resolved, answered, finished."""

    key: Key
    kind: Kind
    title: str
    text: str
    task: Key | None
    stands: bool


@dataclass(frozen=True, slots=True)
class Question:
    """What a request is about: its words, and the task whose records it needs; `how` is where the words are from."""

    text: str
    task: Key
    how: Literal["title", "body", "other words"]


@dataclass(slots=True)
class History:
    """One made-up project: its records by key in the order they were made, and what is active in the end."""

    seed: int
    said: dict[Key, Said] = field(default_factory=dict)
    trades: dict[Key, tuple[Trade, str]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    active: Key | None = None

    def close(self, key: Key) -> None:
        """From now on a record does not stand."""
        was = self.said[key]
        self.said[key] = Said(was.key, was.kind, was.title, was.text, was.task, False)

    def of(self, task: Key) -> list[Said]:
        """What stands and belongs to a task, itself among them."""
        return [one for one in self.said.values() if one.stands and task in (one.task, one.key)]


class Scribe:
    """Whoever tells a history: what is said is kept, and goes into the ledger with the next checkpoint.

    So nothing waits for a log that is read again at each step; the events are the same.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.here = Facts(ledger.position())
        self.view = ledger.view()
        self._said: list[Draft] = []

    def record(self, build: Callable[[View, Hand], tuple[T, Draft]]) -> T:
        """What `build` says of the ledger as it would stand now, and what else it gives."""
        result, draft = build(self.view, self.ledger.hand())
        ingest.stamp(self.view, draft, self.ledger.desk.writer.id)
        self._said.append(draft)
        return result

    def checkpoint(self) -> None:
        """Bring all that was said into the ledger."""

        def build(view: View) -> Plan:
            hand, folded = self.ledger.hand(), view.fork()
            for draft in self._said:
                ingest.stamp(folded, draft, hand.writer)
            key, draft = derive.checkpoint(folded, hand, self.here, reason="manual", session=None)
            return Plan("checkpoint", (*self._said, draft), derive.subject(folded, key, draft), (), self.here.position)

        self.ledger.make(build)
        self._said.clear()
        self.view = self.ledger.view()


def play(ledger: Ledger, seed: int) -> History:
    """Tell one history to a ledger, with a checkpoint every now and then and one in the end."""
    dice = random.Random(seed)
    told, scribe = History(seed), Scribe(ledger)
    for _ in range(dice.randint(8, 20)):
        add(scribe, told, dice)
    for n in range(dice.randint(80, 320)):
        _step(scribe, told, dice)
        if n % 80 == 79:
            scribe.checkpoint()
    if told.active is None:
        _start(scribe, told, dice)
    scribe.checkpoint()
    return told


def questions(told: History, count: int = 3) -> list[Question]:
    """Requests about open tasks of a history: in words of titles, of other texts, or in words that stand nowhere."""
    dice = random.Random(told.seed + 1_000_003)
    tasks_ = [one for one in told.said.values() if one.kind == "task" and one.stands]
    found = []
    for n in range(count):
        one = told.said[told.active] if n == 0 and told.active else dice.choice(tasks_)
        trade, part = told.trades[one.key]
        bodies = [record.text for record in told.of(one.key) if record.text]
        way = dice.random()
        if way < 0.4:
            found.append(Question(f"Please go on with the {one.title}, what is left?", one.key, "title"))
        elif way < 0.8 and bodies:
            body = dice.choice(bodies).split()
            at = dice.randrange(max(1, len(body) - 6))
            found.append(Question(f"I heard that {' '.join(body[at : at + 7])}, is it so?", one.key, "body"))
        else:
            word = dice.choice(part.split())
            found.append(Question(f"Something with {dice.choice(trade.said)}, the {word}", one.key, "other words"))
    return found


# ── steps ────────────────────────────────────────────────────────────────────────────────────
def _note(told: History, key: Key | None, kind: Kind, title: str, text: str, task: Key | None) -> Key:
    assert key is not None
    told.said[key] = Said(key, kind, title, text, task, True)
    told.texts += [title, text]
    return key


def add(scribe: Scribe, told: History, dice: random.Random, *, alone: bool = False) -> Key:
    """One more task; `alone` it depends on no other one."""
    trade = dice.choice(TRADES)
    part = dice.choice(trade.parts)
    title = _new(
        told, lambda: f"{dice.choice(_PLACES).capitalize()} {part} {dice.choice(('rework', 'rollout', 'design'))}"
    )
    goal = (
        f"The {part} of {trade.name} {dice.choice(_AIMS)} and {dice.choice(_AIMS)}, with {dice.choice(trade.choices)}"
    )
    criteria = tuple(
        _new(told, lambda: f"{part} {dice.choice(_AIMS)} in the {dice.choice(_PLACES)} {dice.choice(_PLACES)} case")
        for _ in range(dice.randint(1, 4))
    )
    waits = [one.key for one in told.said.values() if one.kind == "task" and one.stands]
    depends = (dice.choice(waits),) if waits and not alone and dice.random() < 0.2 else ()
    key = scribe.record(lambda v, h: tasks.add(v, h, title, goal=goal, accept=criteria, depends=depends))
    told.trades[key] = (trade, part)
    told.texts += criteria
    return _note(told, key, "task", title, goal, None)


def _new(told: History, make: Callable[[], str]) -> str:
    """A text that is in no other one: two alike could not be told apart in what is shown."""
    for n in range(1_000):
        text = make() + (f" {n}" if n > 5 else "")
        if not any(text in other or (other and other in text) for other in told.texts):
            return text
    raise AssertionError("the words ran out")


def _open(told: History, kind: Kind) -> list[Said]:
    return [one for one in told.said.values() if one.kind == kind and one.stands]


def _step(scribe: Scribe, told: History, dice: random.Random) -> None:
    what = dice.choices(
        ("decide", "supersede", "block", "resolve", "ask", "answer", "next", "start", "finish", "complete", "add"),
        (6, 4, 4, 3, 4, 3, 3, 2, 1, 3, 1),
    )[0]
    at = dice.choice(_open(told, "task")).key if _open(told, "task") else None
    if at is None:
        add(scribe, told, dice)
        return
    trade, part = told.trades[at]
    where = dice.choice(_PLACES)
    if what in ("decide", "supersede"):
        _decide(scribe, told, dice, at, supersede=what == "supersede")
    elif what == "block":
        title = _new(told, lambda: f"The {dice.choice(_PLACES)} {part} waits for {dice.choice(trade.troubles)}")
        _note(told, scribe.record(lambda v, h: entries.block(v, h, title, at)), "blocker", title, "", at)
    elif what == "ask":
        title = _new(
            told,
            lambda: f"Should the {dice.choice(_PLACES)} {part} use {' or '.join(dice.sample(trade.choices, 2))}?",
        )
        _note(told, scribe.record(lambda v, h: entries.ask(v, h, title, at)), "question", title, "", at)
    elif what == "resolve" and (found := _open(told, "blocker")):
        key = dice.choice(found).key
        scribe.record(lambda v, h: (None, entries.resolve(v, h, key, "it came")))
        told.close(key)
    elif what == "answer" and (found := _open(told, "question")):
        key = dice.choice(found).key
        scribe.record(lambda v, h: (None, entries.answer(v, h, key, "as it is")))
        told.close(key)
    elif what == "next" and told.active:
        active, text = told.active, f"Write the {where} {told.trades[told.active][1]} and run its tests"
        scribe.record(lambda v, h: (None, tasks.set_next(v, h, active, text)))
        told.texts.append(text)
    elif what == "start":
        _start(scribe, told, dice)
    elif what == "finish" and len(_open(told, "task")) > 3:
        _finish(scribe, told, dice, at)
    elif what == "complete":
        done = _new(told, lambda: f"{part} moved to the {dice.choice(_PLACES)} {dice.choice(_PLACES)} module")
        scribe.record(lambda v, h: (None, tasks.edit(v, h, at, fields={}, completed=(done,))))
        told.texts.append(done)
    elif what == "add" and len(told.trades) < 40:
        add(scribe, told, dice)


def _decide(scribe: Scribe, told: History, dice: random.Random, at: Key, *, supersede: bool) -> None:
    trade, part = told.trades[at]
    own: Key | None = at if dice.random() < 0.85 else None
    old: Key | None = None
    if supersede and (found := _open(told, "decision")):
        before = dice.choice(found)
        old, own = before.key, before.task
        if own:
            trade, part = told.trades[own]
    title = _new(told, lambda: f"The {dice.choice(_PLACES)} {part} {dice.choice(_VERBS)} {dice.choice(trade.choices)}")
    why = f"For {trade.name}, {dice.choice(_REASONS)}, and {dice.choice(trade.troubles)} is no obstacle"
    key = scribe.record(lambda v, h: entries.decide(v, h, title, why, own, old))
    if old:
        told.close(old)
    _note(told, key, "decision", title, why, own)


def _start(scribe: Scribe, told: History, dice: random.Random) -> None:
    status = ("planned", "blocked")
    view = scribe.view
    startable = [one.key for one in _open(told, "task") if view.need(one.key).get("status") in status]
    if startable:
        key = dice.choice(startable)
        scribe.record(lambda v, h: (None, tasks.start(v, h, key)[0]))
        told.active = key


def _finish(scribe: Scribe, told: History, dice: random.Random, at: Key) -> None:
    status = scribe.view.need(at).get("status")
    if status == "active" and dice.random() < 0.7:
        scribe.record(lambda v, h: (None, tasks.done(v, h, at, "seen by a person")))
    elif status in ("planned", "blocked", "active"):
        scribe.record(lambda v, h: (None, tasks.move(v, h, at, "dropped")))
    else:
        return
    told.close(at)
    if told.active == at:
        told.active = None
