"""What a session's record remembers of its turns: what was asked, what was run and how that ended, what failed. Pure.

A session that dies leaves nothing else, and a checkpoint or handover is composed of it. Each event writes one small
item into one of a few places, so that neither the record nor the journal grows by what is remembered.
"""

from __future__ import annotations

from gitledger import layout, results
from gitledger.ingest import permitted
from gitledger.model import Json, Record
from gitledger.redact import Clean, ending, redact, shortened, within
from gitledger.schema import CommandRun, Config, GenericPayload
from gitledger.values import dataclass

ASKED_KEPT = 8
"""Requests of a session that are kept: the first one, which says what it is about, and the newest."""
RAN_KEPT = 8
"""Commands of a session that are kept, each with how it ended last."""
LINE = 240
"""Characters of a request, a command or its last line that are kept."""
READ = 20_000
"""Characters of a command or of an output's end that are looked at."""

_FAILURES = ("FAILED ", "FAIL: ", "ERROR: ", "--- FAIL: ", "\N{BLACK CIRCLE} ", "\u2715 ", "\u00d7 ", "not ok ")
"""How a line begins by which pytest, unittest, go test, jest, vitest and TAP name a test that failed."""

Items = dict[str, dict[str, dict[str, Json]]]


def remembered(payload: GenericPayload, known: Record | None, config: Config, writer: str, at: str) -> Items:
    """The items that an event leaves in its session's record."""
    items: Items = {}
    if payload.prompt and (text := one_line(permitted(payload.prompt, config))):
        slot = _slot(known, {}, "asked", "a", writer, ASKED_KEPT, keep_first=True)
        items["asked"] = {slot: {"text": text, "at": at}}
        if _rows(known, "asked", writer).get(slot, {}).get("undone"):
            items["asked"][slot]["undone"] = False  # the place of one that was taken back
    for taken in payload.undone:
        back = one_line(permitted(taken, config))
        for slot, row in reversed(_rows(known, "asked", writer).items()):
            if row.get("text") == back and not row.get("undone") and slot not in items.get("asked", {}):
                items.setdefault("asked", {})[slot] = {"undone": True}
                break
    for run in payload.commands[-RAN_KEPT:]:
        if command := one_line(within(run.command, READ)):
            new = items.setdefault("ran", {})
            same = next((i for i, row in _rows(known, "ran", writer).items() if row.get("command") == command), "")
            slot = same or _slot(known, new, "ran", "r", writer, RAN_KEPT)
            new[slot] = {"command": command, "exit": run.exit, "at": at, **_outcome(run, config)}
    return items


@dataclass(frozen=True, slots=True)
class Ran:
    """A command with how it ended last: its status where that is known, what it said, and whether its tests failed."""

    command: str
    exit: int | None = None
    said: str = ""
    tests: str = ""

    def value(self) -> dict[str, Json]:
        """As JSON."""
        return {"command": self.command, "exit": self.exit, "said": self.said, "tests": self.tests}


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a session's record remembers, oldest first; `unanswered` where no turn has ended since the last request.

    `undone` are requests that the person took back, with their turns.
    """

    client: str = ""
    turns: int = 0
    asked: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()
    files: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""
    unanswered: bool = False
    undone: tuple[str, ...] = ()

    @property
    def busy(self) -> bool:
        """True where anything was asked, run or answered in it."""
        return bool(self.turns or self.prompt or self.asked or self.ran or self.files)

    def failing(self) -> tuple[str, ...]:
        """What failed last: commands that nobody has seen succeed since, then what tools said."""
        return (*(words(one) for one in self.ran if one.exit or one.tests == "failed"), *self.errors)


def recalled(record: Record | None) -> Recalled:
    """What is remembered of a session; nothing where there is none."""
    if record is None:
        return Recalled()
    ran = [
        Ran(
            row["command"],
            code if type(code := row.get("exit")) is int else None,
            _text(row, "said"),
            _text(row, "tests"),
        )
        for row in record.listed("ran")
        if isinstance(row.get("command"), str)
    ]
    rows = [row for row in record.listed("asked") if isinstance(row.get("text"), str)]
    asked = [row["text"] for row in rows if not row.get("undone")]
    # By the order of events: a turn's end after the last request is its answer, whether or not its words were kept.
    when = {name: record.fields[name][1] for name in ("last_prompt", "turns") if name in record.fields}
    files, errors = record.get("files", []), record.get("errors", [])
    return Recalled(
        record.text("client"),
        record.get("turns", 0),
        tuple(asked),
        tuple(ran),
        tuple(files),
        tuple(errors),
        record.text("last_prompt"),
        record.text("last_answer"),
        "last_prompt" in when and when["last_prompt"] > when.get("turns", when["last_prompt"]),
        tuple(row["text"] for row in rows if row.get("undone")),
    )


def words(one: Ran) -> str:
    """A command with how it ended: `make test (exited 1: 2 failed)`."""
    ended = "" if one.exit is None else f"exited {one.exit}"
    told = ": ".join(word for word in (ended, one.said) if word)
    return f"{one.command} ({told})" if told else one.command


def one_line(text: str) -> Clean:
    """A text on one line, bounded; "" for an empty one."""
    return shortened(redact(" ".join("".join(c if c.isprintable() else " " for c in text).split())), LINE)


def _outcome(run: CommandRun, config: Config) -> dict[str, Json]:
    found = [one.value() for one in results.read(run.output)] if run.output else []
    tests = ("failed" if results.failed(found) or run.exit else "passed") if found else ""
    counted = "; ".join(results.listed(found))
    if tests == "failed" and config.capture.text != "none":
        rows = (row.strip() for row in run.output[-READ:].splitlines())
        first = next((row for row in rows if row.startswith(_FAILURES)), "")
        counted = f"{counted}; {first}" if first else counted
    return {"said": one_line(counted) if counted else _last_line(run, config), "tests": tests}


def _last_line(run: CommandRun, config: Config) -> Clean:
    if config.capture.text == "none":
        return redact("")
    text = ending(run.output[-READ:], LINE * 4, cut=len(run.output) > READ)
    rows = [row.strip() for row in text.splitlines() if row.strip()]
    return one_line(rows[-1] if rows else "")


def _rows(known: Record | None, name: str, writer: str) -> dict[str, dict[str, Json]]:
    """The items of a list that this writer made; another's stay as they are."""
    found = known.items.get(name, {}) if known else {}
    own = {item: fields for item, fields in found.items() if item.endswith(f"@{writer}")}
    return {item: {field: value for field, (value, _) in fields.items()} for item, fields in own.items()}


def _text(row: dict[str, Json], name: str) -> str:
    found = row.get(name)
    return found if isinstance(found, str) else ""


def _slot(
    known: Record | None, new: dict[str, dict[str, Json]], name: str, letter: str, writer: str, most: int, *,
    keep_first: bool = False,
) -> str:  # fmt: skip
    """A place for one more item: a new one, or that of the oldest."""
    rows = {**_rows(known, name, writer), **new}
    if len(rows) < most:
        return layout.item_id(letter, rows, writer)
    aged = sorted(rows, key=lambda item: (str(rows[item].get("at", "")), item))
    return aged[1 if keep_first else 0]
