"""The generic client: any program that can run a command and print one JSON object. Its payload is ours to define.

Events: `start`, `prompt`, `tool`, `turn`, `compact`, `end`. See docs/clients/generic.md.
"""

from __future__ import annotations

from gitledger import layout, schema, tasks
from gitledger.errors import BadData
from gitledger.frame import Entry
from gitledger.ingest import permitted
from gitledger.model import Change, Draft, Json, Record
from gitledger.schema import Config
from gitledger.view import View

NAME = "generic"
FILES_KEPT = 50
FAULTS_KEPT = 20
RECEIPTS = frozenset(("start", "compact", "end", "receipt"))


def read(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    """The event of one captured payload; a faulty field is named in the event and the rest is kept.

    Raises BadData where nothing of it can be read.
    """
    payload, faults = schema.read_generic(entry.payload)
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
    kind = "receipt" if entry.event in RECEIPTS else entry.event
    if kind != "receipt":
        data |= _said(payload, config)
        fields |= _memory(payload, config, known.get("files", []) if known else [])
        if known is not None and known.text("worktree") != entry.worktree:
            fields["worktree"] = entry.worktree  # a session is where it spoke last
        if known is not None and known.get("state") != "open" and entry.at > _closed_at(known):
            fields |= {"state": "open", "closed": None}  # it was taken for gone, and here it speaks
    if kind == "turn":
        fields["turns"] = (known.get("turns", 0) if known else 0) + 1
    task = tasks.active(view, writer, entry.worktree)
    return Draft(entry.id, entry.at, kind, key, task, {key: Change(fields)}, data)


def _closed_at(known: Record) -> str:
    closed = known.get("closed")
    return str(closed.get("at") or "") if isinstance(closed, dict) else ""


def _said(payload: schema.GenericPayload, config: Config) -> dict[str, Json]:
    said: dict[str, Json] = {}
    for name, text in (("prompt", payload.prompt), ("answer", payload.answer)):
        if text and (kept := permitted(text, config)):
            said[name] = kept
    if payload.files:
        said["files"] = list(payload.files)
    if payload.commands:
        said["commands"] = [
            {"command": c.command, "exit": c.exit, "output": permitted(c.output, config)} for c in payload.commands
        ]
    if payload.errors:
        said["errors"] = list(payload.errors)
    return said


def _memory(payload: schema.GenericPayload, config: Config, files: list[str]) -> dict[str, Json]:
    # What the session's own record remembers of its last turn, so that a crash leaves a handover.
    kept: dict[str, Json] = {}
    if payload.prompt and (text := permitted(payload.prompt, config)):
        kept["last_prompt"] = text
    if payload.answer and (text := permitted(payload.answer, config)):
        kept["last_answer"] = text
    if payload.errors:
        kept["errors"] = list(payload.errors)[-5:]
    named = list(dict.fromkeys([*files, *payload.files]))[-FILES_KEPT:]
    if named != files:
        kept["files"] = named
    return kept
