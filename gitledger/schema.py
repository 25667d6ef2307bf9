"""The border: what comes from outside, as types, and how it is read.

Two of them are read on the way into a session, so they cost nothing to import: the configuration is made of values
whose bounds only pydantic looks at, and the generic client's payload is checked by hand. pydantic, a tenth of a second
to load, is for change sets, for configuration files that are new, and for the JSON Schemas.
"""

from __future__ import annotations

import json
from functools import partial

from gitledger.bounds import Number, Text
from gitledger.errors import BadData, Usage
from gitledger.model import Finding, Json
from gitledger.typed import TYPE_CHECKING, Annotated, Any, Literal
from gitledger.values import dataclass

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

    from gitledger.memoryset import MemorySet
    from gitledger.proposal import ChangeSet as ChangeSet

SCHEMAS = ("changeset", "config", "generic-payload", "memory")
ITEMS_KEPT = 1_000
"""How many files, commands or errors of one payload are read."""


# ── configuration ────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Capture:
    """How much of what is said is journalled."""

    text: Literal["none", "bounded", "full"] = "bounded"
    limit: Annotated[int, Number(100, 200_000)] = 2_000


@dataclass(frozen=True, slots=True)
class Briefing:
    """How much a starting session is given; the least are what the briefing itself can keep (`render.briefing`)."""

    lines: Annotated[int, Number(16, 1_000)] = 60
    chars: Annotated[int, Number(2_400, 100_000)] = 9_000
    on_start: bool = True


@dataclass(frozen=True, slots=True)
class Capsule:
    """How many tokens a capsule may have, by the estimate; whether a prompt is given what has changed since the last.

    The least is what a capsule needs for what it never leaves out (`render.capsule`).
    """

    tokens: Annotated[int, Number(300, 100_000)] = 3_000
    on_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Freshness:
    """From which age on, in hours, a handover is no longer fresh, and when it is stale."""

    fresh_hours: Annotated[int, Number(1, 10_000)] = 12
    stale_hours: Annotated[int, Number(1, 10_000)] = 48


@dataclass(frozen=True, slots=True)
class Session:
    """After how many silent minutes a session counts as gone."""

    idle_minutes: Annotated[int, Number(1, 100_000)] = 30


@dataclass(frozen=True, slots=True)
class Rollover:
    """At how many percent of a context a checkpoint, a fresh session, and the end of this one are advised."""

    checkpoint_percent: Annotated[int, Number(1, 100)] = 35
    fresh_percent: Annotated[int, Number(1, 100)] = 45
    emergency_percent: Annotated[int, Number(1, 100)] = 80


@dataclass(frozen=True, slots=True)
class Signing:
    """This machine only: our own key (its path, "" for the usual place), or the user's git set-up."""

    mode: Literal["key", "git"] = "key"
    key: Annotated[str, Text(0, 4_096)] = ""


@dataclass(frozen=True, slots=True)
class Remote:
    """This machine only: where the ledger is backed up, "" for nowhere; how many seconds that may take in all.

    `push` has the ledger pushed behind each push of the user's own, where the git hook for that is installed.
    """

    name: Annotated[str, Text(0, 4_096, r"^(?:[A-Za-z0-9./~][^\x00-\x1f\x7f]*)?$")] = ""
    push: bool = False
    deadline: Annotated[int, Number(1, 86_400)] = 120


@dataclass(frozen=True, slots=True)
class Proposer:
    """This machine only: the command that proposes, as a list of words, and how many seconds its attempts may take."""

    command: Annotated[tuple[Annotated[str, Text(1, 4_096)], ...], Text(0, 100)] = ()
    deadline: Annotated[int, Number(1, 86_400)] = 600


@dataclass(frozen=True, slots=True)
class Documenter:
    """This machine only: after how many turns of a session the proposer is asked behind a turn's end; 0 for never."""

    every_turns: Annotated[int, Number(0, 1_000)] = 0


@dataclass(frozen=True, slots=True)
class Notify:
    """This machine only: where reports are sent, as addresses of the apprise library."""

    urls: Annotated[tuple[Annotated[str, Text(1, 4_096)], ...], Text(0, 100)] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """This machine only: the agents' memory files, what is read beside them for duplicates, and where copies go.

    A path that is not absolute lies in the work tree; a folder stands for its `.md` files. `backup` is a folder, ""
    for none; `log` a file, "" for one beside the clone's other local files.
    """

    files: Annotated[tuple[Annotated[str, Text(1, 4_096)], ...], Text(0, 100)] = ("memory/MEMORY.md",)
    companions: Annotated[tuple[Annotated[str, Text(1, 4_096)], ...], Text(0, 100)] = ("USER.md", "SOUL.md", "keep.md")
    backup: Annotated[str, Text(0, 4_096)] = ""
    log: Annotated[str, Text(0, 4_096)] = ""


@dataclass(frozen=True, slots=True)
class Secrets:
    """This machine only: a program that looks for secrets once more, after the built-in rules, before each commit."""

    scanner: Literal["none", "betterleaks"] = "none"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be configured, with its defaults."""

    capture: Capture = Capture()
    briefing: Briefing = Briefing()
    capsule: Capsule = Capsule()
    freshness: Freshness = Freshness()
    session: Session = Session()
    rollover: Rollover = Rollover()
    signing: Signing = Signing()
    remote: Remote = Remote()
    proposer: Proposer = Proposer()
    documenter: Documenter = Documenter()
    notify: Notify = Notify()
    memory: Memory = Memory()
    secrets: Secrets = Secrets()


_DEFAULT = Config()
SECTIONS: dict[str, Any] = {name: type(getattr(_DEFAULT, name)) for name in Config.__match_args__}
MACHINE_ONLY = frozenset({"signing", "remote", "proposer", "documenter", "notify", "memory", "secrets"})
"""What can start a program, reach a network or change a file: never read from a ledger, which may be anybody's."""


# ── the generic client's payload ─────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command that a client ran; `exit` is None where it did not say."""

    command: str
    exit: int | None = None
    output: str = ""


@dataclass(frozen=True, slots=True)
class GenericPayload:
    """What any client may say of an event; every field may be left out."""

    session_id: str = ""
    cwd: str = ""
    prompt: str = ""
    answer: str = ""
    files: tuple[str, ...] = ()
    commands: tuple[CommandRun, ...] = ()
    errors: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    pid: int | None = None
    trigger: str = ""
    tool: str = ""
    transcript: str = ""
    used: int | None = None
    limit: int | None = None
    parent: str = ""
    note: str = ""
    ids: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()


def read_generic(data: bytes) -> tuple[GenericPayload, list[Finding]]:
    """The payload in `data` with what was wrong with it; what is wrong is left out, and the rest is kept.

    Never raises. Nothing at all is an empty payload; keys that we do not know are other programs' business.
    Every text can be encoded: a lone surrogate becomes U+FFFD.
    """
    value, faults = read_object(data)
    return generic(value, faults), faults


def read_object(data: bytes) -> tuple[dict[str, Json], list[Finding]]:
    """The JSON object in a payload, {} where it holds none, with what was wrong with it; never raises."""
    faults: list[Finding] = []
    return _object(data, faults), faults


def generic(value: dict[str, Json], faults: list[Finding]) -> GenericPayload:
    """The payload that an object's fields make; what is wrong with one is added to `faults`, and it is left out."""
    read: dict[str, Any] = {}
    for name in GenericPayload.__match_args__:
        given = value.get(name)
        if given is None:
            continue
        if name in ("pid", "used", "limit"):
            read[name] = _whole(given, name, faults)
        elif name == "commands":
            runs = (_command(item, where, faults) for item, where in _listed(given, "commands", faults))
            read["commands"] = tuple(run for run in runs if run)
        elif name in ("files", "errors", "ids", "undone"):
            texts = (_text(item, where, faults) for item, where in _listed(given, name, faults))
            read[name] = tuple(text for text in texts if text)
        else:
            read[name] = _text(given, name, faults) or ""
    return GenericPayload(**read)


def _object(data: bytes, faults: list[Finding]) -> dict[str, Json]:
    twice: list[str] = []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        faults.append(_fault("", f"is not UTF-8 at byte {e.start}; such bytes are shown as U+FFFD"))
        text = data.decode("utf-8-sig", errors="replace")
    if not text.strip("\0 \t\r\n"):
        return {}
    try:
        # a number of thousands of digits takes time by its square, and Python refuses it: no field of ours needs one
        value = json.loads(
            text, object_pairs_hook=partial(_noting, twice), parse_int=lambda s: int(s) if len(s) < 19 else float("inf")
        )
    except RecursionError:
        faults.append(_fault("", "is nested too deep"))
        return {}
    except ValueError as e:
        faults.append(_fault("", f"is not JSON ({e})"))
        return {}
    if not isinstance(value, dict):
        faults.append(_fault("", f"is {_kind(value)}, not an object"))
        return {}
    faults.extend(_fault(name, "stands twice; the last one counts") for name in dict.fromkeys(twice))
    return value


def _noting(twice: list[str], pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """The object of `pairs`; a key that stands in it twice is noted."""
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                twice.append(name)
            seen.add(name)
    return value


def _listed(value: Json, where: str, faults: list[Finding]) -> list[tuple[Json, str]]:
    if not isinstance(value, list):
        faults.append(_fault(where, f"is {_kind(value)}, not a list"))
        return []
    if len(value) > ITEMS_KEPT:
        faults.append(_fault(where, f"has {len(value):,} items; the first {ITEMS_KEPT:,} are read"))
    return [(item, f"{where}[{n}]") for n, item in enumerate(value[:ITEMS_KEPT])]


def _command(value: Json, where: str, faults: list[Finding]) -> CommandRun | None:
    if not isinstance(value, dict):
        faults.append(_fault(where, f"is {_kind(value)}, not an object"))
        return None
    command = _text(value.get("command"), f"{where}.command", faults)
    if not command:
        return None
    given = value.get("exit")
    status = None if given is None else _whole(given, f"{where}.exit", faults)
    given = value.get("output")
    return CommandRun(command, status, "" if given is None else _text(given, f"{where}.output", faults) or "")


def _text(value: Json, where: str, faults: list[Finding]) -> str | None:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    faults.append(_fault(where, f"is {_kind(value)}, not a text"))
    return None


def _whole(value: Json, where: str, faults: list[Finding]) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    what = "has too many digits" if value == float("inf") else f"is {_kind(value)}, not a whole number"
    faults.append(_fault(where, what))
    return None


def _kind(value: Json) -> str:
    kinds = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), "missing")


def _fault(where: str, what: str) -> Finding:
    return Finding(
        "payload", f"payload: {where}" if where else "payload", what, "see: gitledger schema generic-payload"
    )


# ── by pydantic ──────────────────────────────────────────────────────────────────────────────
LONGEST = 16 << 20
"""Bytes of a change set."""


class BadChangeSet(BadData):
    """A change set that is not one; `errors` holds every fault, each with its path in the document."""

    def __init__(self, errors: tuple[str, ...], form: str = "changeset") -> None:
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(
            f"the change set has {count}: {'; '.join(errors)}; nothing was applied, see: gitledger schema {form}"
        )
        self.errors = errors


def read_change_set(data: bytes) -> ChangeSet:
    """The change set in `data`; raise BadChangeSet with every error and its path in the document."""
    found: ChangeSet = _read(data, _change_sets(), "changeset")
    return found


def read_memory_set(data: bytes) -> MemorySet:
    """The change set of a memory file in `data`; raise BadChangeSet as `read_change_set` does."""
    found: MemorySet = _read(data, _memory_sets(), "memory")
    return found


def _read(data: bytes, form: TypeAdapter[Any], name: str) -> Any:
    from pydantic import ValidationError

    if len(data) > LONGEST:
        raise BadChangeSet((f"the document has more than {LONGEST:,} bytes",), name)
    twice: list[str] = []
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        json.loads(data, object_pairs_hook=partial(_noting, twice), parse_int=lambda _: 0)
    except RecursionError as e:
        raise BadChangeSet(("the document is nested too deep",), name) from e
    except ValueError as e:  # UnicodeDecodeError is one
        raise BadChangeSet((f"the document is not JSON ({e})",), name) from e
    errors = [f"{key}: stands twice in one object" for key in twice]
    found = None
    try:
        found = form.validate_json(data, strict=True)
    except ValidationError as e:
        errors += [f"{where}: {what}" if where else what for where, what in faults_of(e)]
    if errors:
        raise BadChangeSet(tuple(errors), name)
    return found


def read_settings(values: dict[str, Json]) -> list[tuple[str, str]]:
    """What is wrong with nested configuration values, as (dotted key, what); [] where every one fits."""
    from pydantic import ValidationError

    try:
        text = json.dumps(values, allow_nan=False, default=lambda value: {"": str(type(value).__name__)})
    except (ValueError, RecursionError) as e:
        return [("", f"cannot be read ({e})")]
    try:
        _settings().validate_json(text, strict=True)
    except ValidationError as e:
        return faults_of(e)
    return []


def json_schema(name: str) -> dict[str, Json]:
    """The JSON Schema (2020-12) of one of SCHEMAS; raise Usage for another name."""
    from pydantic import TypeAdapter

    found: TypeAdapter[Any]
    match name:
        case "changeset":
            found = _change_sets()
        case "config":
            found = _settings()
        case "generic-payload":
            found = TypeAdapter(GenericPayload)
        case "memory":
            found = _memory_sets()
        case _:
            raise Usage(f"there is no schema {name!r}; there are: {', '.join(SCHEMAS)}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:gitledger:{name}:1",
        **found.json_schema(),
    }


def faults_of(error: ValidationError) -> list[tuple[str, str]]:
    """(path, what) of everything that pydantic found, in words for whoever wrote the document."""
    found = []
    for fault in error.errors(include_url=False, include_context=True):
        path = ""
        for n, step in enumerate(fault["loc"]):
            if isinstance(step, int):
                path += f"[{step}]"
            elif not (n == 2 and fault["loc"][0] == "ledger_updates"):  # there it is the tag, not a key
                path += f".{step}" if path else step
        what = fault["msg"].removeprefix("Value error, ")
        if fault["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            what = "unknown key"
        elif fault["type"] in ("missing", "missing_argument"):
            what = "is missing"
        elif fault["type"] == "string_pattern_mismatch" and not str(fault["input"]).strip():
            what = "is blank"
        found.append((path, what[:1].lower() + what[1:]))
    return found


def _change_sets() -> TypeAdapter[ChangeSet]:
    from pydantic import TypeAdapter

    from gitledger import proposal

    return TypeAdapter(proposal.ChangeSet)


def _memory_sets() -> TypeAdapter[MemorySet]:
    from pydantic import TypeAdapter

    from gitledger import memoryset

    return TypeAdapter(memoryset.MemorySet)


def _settings() -> TypeAdapter[Any]:
    """A model of `Config`: they say the keys and bounds once, and pydantic reads tables only into models."""
    from typing import get_type_hints

    from pydantic import ConfigDict, TypeAdapter, create_model

    closed = ConfigDict(extra="forbid")
    sections: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        hints = get_type_hints(section, include_extras=True)
        keys: dict[str, Any] = {key: (hint, getattr(section(), key)) for key, hint in hints.items()}
        model = create_model(section.__name__, __config__=closed, __doc__=section.__doc__, **keys)
        sections[name] = (model, model())
    return TypeAdapter(create_model("Config", __config__=closed, __doc__=Config.__doc__, **sections))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        # the change set's types are imported from here as well, but only a change set pays for them
        if not name.startswith("_"):
            from gitledger import proposal

            if hasattr(proposal, name):
                return getattr(proposal, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
