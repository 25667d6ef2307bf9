"""The generic client: any program that can run a command and print one JSON object. Its payload is ours to define.

See docs/clients/generic.md. Every other client's payload is translated into this one's, so the event is made here for
all.
"""

from __future__ import annotations

from gitledger import episode, layout, schema, tasks
from gitledger.clients import answers
from gitledger.clients.answers import Answer
from gitledger.errors import BadData
from gitledger.frame import Entry
from gitledger.ingest import permitted
from gitledger.model import Change, Draft, Finding, Json, Record
from gitledger.schema import Config
from gitledger.view import View

NAME = "generic"
CAN_REFUSE = True
SETTLES = False
ANNOUNCES_ALWAYS = False
FILES_KEPT = 50
FAULTS_KEPT = 20
IDS_KEPT = 200
ID = 80
"""Characters of one id of what a client tells."""
UNDONE_KEPT = 50
RECEIPTS = frozenset(("start", "compact", "compacted", "end", "receipt"))
TWICE = 5_000
"""Milliseconds within which a session's second start, for the same reason and with nothing between, is the same one.

So is one for a compaction: Codex, resumed over its limit, compacts first, and then starts for both reasons at once.
"""
MOST = 1 << 40
"""Tokens beyond which no figure of a context is believed."""


def translate(event: str, payload: bytes) -> tuple[schema.GenericPayload, list[Finding]]:
    """What a payload says."""
    return schema.read_generic(payload)


def answer(event: str, text: str) -> Answer:
    """The text as it is."""
    return answers.plain(text) if event in answers.ASKED else answers.NOTHING


def refusal(text: str, status: int = 69) -> Answer:
    """The exit status of what stood in the way, its reason on stderr."""
    return Answer(stderr=text, code=status)


def draft(
    view: View, entry: Entry, payload: schema.GenericPayload, faults: list[Finding], config: Config, writer: str
) -> Draft:
    """The event of a captured payload; a faulty field is named in the event and the rest is kept.

    Raises BadData where nothing of it can be read.
    """
    if faults and payload == schema.GenericPayload():
        raise BadData(f"{faults[-1].where} {faults[-1].what}")  # it says nothing: it is kept whole, and in no session
    key = layout.session_key(entry.client, payload.session_id)
    known = view.record(key)
    fields: dict[str, Json] = {"last_at": entry.at}
    if known is None:  # a turn whose start was never heard still belongs to a session
        fields |= {
            "client": entry.client,
            "client_session": payload.session_id,
            "at": entry.at,
            "by": writer,
            "turns": 0,
            "state": "open",
            "worktree": entry.worktree,
        }
    data: dict[str, Json] = {"client": entry.client, "event": entry.event}
    if faults:
        told = [f"{f.where}: {f.what}" for f in faults[:FAULTS_KEPT]]
        data["faults"] = told + ([f"and {len(faults) - len(told):,} more"] if len(faults) > len(told) else [])
    if known is not None and known.text("by") != writer:
        fields["by"] = writer  # another clone's session that speaks here is this one's from now on
    fields |= _started(known, entry, payload.source)
    if payload.parent and payload.parent != payload.session_id and not (known and known.get("parent")):
        fields["parent"] = layout.session_key(entry.client, payload.parent)
    if (usage := _usage(payload)) is not None:
        fields["usage"] = data["usage"] = usage
    kind = "receipt" if entry.event in RECEIPTS else entry.event
    if kind != "receipt":
        data |= _said(payload, config)
        fields |= _memory(payload, config, known.get("files", []) if known else [])
        if kind == "prompt" and payload.prompt and known is not None and known.get("errors"):
            fields["errors"] = []  # what failed in the turn before is told by what was run since
        if known is not None and known.text("worktree") != entry.worktree:
            fields["worktree"] = entry.worktree  # a session is where it spoke last
        if known is not None and known.get("state") != "open" and entry.at > _closed_at(known):
            fields |= {"state": "open", "closed": None}  # it was taken for gone, and here it speaks
    if payload.undone and kind != "receipt":
        # The turns' number is said anew, so that what was taken back is not taken for a request without an answer.
        fields |= {"last_prompt": "", "last_answer": "", "turns": known.get("turns", 0) if known else 0}
    if kind == "turn":
        fields["turns"] = (known.get("turns", 0) if known else 0) + 1
    task = tasks.active(view, writer, entry.worktree)
    items = episode.remembered(payload, known, config, writer, entry.at) if kind != "receipt" else {}
    records = {key: Change(fields, items)}
    if kind != "receipt" and any(run.output for run in payload.commands):
        from gitledger import candidates  # most events have no output to look at

        about = view.record(task) if task else None
        told, seen = candidates.seen(payload.commands, about, writer, entry.at, key)
        if told:
            data["results"] = told
        if task and seen:
            records[task] = Change({}, {"candidates": seen})
    return Draft(entry.id, entry.at, kind, key, task, records, data)


def same(known: Record, entry_id: str) -> bool:
    """True where the session's newest start is that of another hook than `entry_id`: the client fired twice."""
    heard = known.get("heard")
    return isinstance(heard, dict) and isinstance(heard.get("id"), str) and heard["id"] != entry_id


def _started(known: Record | None, entry: Entry, source: str) -> dict[str, Json]:
    # The order of the log decides which of two starts was first, so that of two processes exactly one prints.
    heard = known.get("heard") if known else None
    if entry.event != "start":
        return {"heard": None} if heard else {}
    if isinstance(heard, dict) and source in (heard.get("source"), "compact"):
        first, now = _ms(heard.get("id")), _ms(entry.id)
        if first is not None and now is not None and abs(now - first) <= TWICE:
            return {}
    return {"heard": {"id": entry.id, "source": source}}


def _ms(ident: Json) -> int | None:
    """The milliseconds that a UUIDv7 begins with."""
    try:
        return int(str(ident).replace("-", "")[:12], 16)
    except ValueError:
        return None


def _usage(payload: schema.GenericPayload) -> dict[str, Json] | None:
    told = {name: n for name, n in (("used", payload.used), ("limit", payload.limit)) if n and 0 < n <= MOST}
    return told or None


def _closed_at(known: Record) -> str:
    closed = known.get("closed")
    return str(closed.get("at") or "") if isinstance(closed, dict) else ""


def _said(payload: schema.GenericPayload, config: Config) -> dict[str, Json]:
    said: dict[str, Json] = {}
    for name, text in (("prompt", payload.prompt), ("answer", payload.answer)):
        if text and (kept := permitted(text, config)):
            said[name] = kept
    if payload.tool:
        said["tool"] = payload.tool
    if payload.files:
        said["files"] = list(payload.files)
    if payload.commands:
        said["commands"] = [
            {"command": c.command, "exit": c.exit, "output": permitted(c.output, config)} for c in payload.commands
        ]
    if payload.errors:
        said["errors"] = list(payload.errors)
    if payload.note and (kept := permitted(payload.note, config)):
        said["note"] = kept
    if payload.ids:
        said["ids"] = [one[:ID] for one in payload.ids[:IDS_KEPT]]
    if payload.undone:
        said["undone"] = [episode.one_line(permitted(one, config)) for one in payload.undone[:UNDONE_KEPT]]
    return said


def _memory(payload: schema.GenericPayload, config: Config, files: list[str]) -> dict[str, Json]:
    # What the session's own record remembers of its last turn, so that a crash leaves a handover.
    kept: dict[str, Json] = {}
    if payload.prompt and (text := permitted(payload.prompt, config)):
        kept["last_prompt"] = text
    if payload.answer and (text := permitted(payload.answer, config)):
        kept["last_answer"] = text
    # What a command ended with is remembered with the command, and taken back when it succeeds.
    ends = {lines[-1].strip() for run in payload.commands if (lines := run.output.strip().splitlines())}
    if errors := [error for error in payload.errors if error.strip() not in ends]:
        kept["errors"] = errors[-5:]
    named = list(dict.fromkeys([*files, *payload.files]))[-FILES_KEPT:]
    if named != files:
        kept["files"] = named
    return kept
