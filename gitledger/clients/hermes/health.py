"""How the ledger fares under Hermes, for a person: read anew each time, from what is on the disk.

Hermes swallows what its plugins raise, so nothing here rests on what the provider believes of itself.
"""

from __future__ import annotations

import json
import os

from gitledger import capture, gitdir, wal
from gitledger.clients.embedded import Embedded
from gitledger.errors import LedgerError

NAME = "hermes"
PROVIDER = "gitledger"
"""What `memory.provider` selects."""
TAIL = 64 << 10
"""Bytes of the hooks' log that are looked at, from its end."""
LOOK_BACK = 500
"""Journalled events that are looked at: what is older counts as nothing heard."""


def told(embedded: Embedded) -> list[tuple[str, str]]:
    """What a person is told, as (what, how it is): the ledger, the program, last event, last checkpoint, last error."""
    version = embedded.run("--version", timeout=10.0)
    return [
        ("ledger", f"{embedded.ledger} of {embedded.folder}"),
        ("program", version.text if not version.status else f"FAILS: {version.error}"),
        ("last event", _event(embedded)),
        ("last checkpoint", _checkpoint(embedded)),
        ("last error", last_error(embedded.found.common) or "none"),
    ]


def absent(folder: str) -> str:
    """Why nothing of `folder` reaches a ledger, in one line with the next step."""
    if capture.silenced():
        return "switched off by GITLEDGER_DISABLE: nothing is journalled, and no compaction is held up"
    found = gitdir.find(folder)
    if found is None:
        return f"{folder} is in no git repository: nothing is written; make one with git init, then gitledger init"
    if not gitdir.ledgers(found.common):
        return f"{found.top or found.common} has no ledger: nothing is written; make one with gitledger init"
    return f"{found.top or found.common} has no ledger of the name asked for; see GITLEDGER_LEDGER"


def here() -> str:
    """Where the agent works: Hermes' own answer, which differs from the process' folder under a gateway."""
    try:
        from agent.runtime_cwd import resolve_agent_cwd

        return str(resolve_agent_cwd())
    except Exception:
        try:
            return os.environ.get("TERMINAL_CWD") or os.getcwd()
        except OSError:
            return ""


def last_error(common: str) -> str:
    """The newest line that the hooks' log of a clone has of Hermes, with its time; "" where it has none."""
    path = os.path.join(gitdir.state(common), "log")
    for name in (path, f"{path}.1"):
        try:
            data = gitdir.read_own(name, capture.LOG_LIMIT * 2)
        except (OSError, LedgerError):
            continue
        for row in reversed(data[-TAIL:].decode("utf-8", "replace").splitlines()):
            at, _, text = row.partition(" ")
            if text.startswith((f"{NAME}: ", f"hook {NAME} ", f"start {NAME}: ")):
                return f"{at} {text}"
    return ""


def _event(embedded: Embedded) -> str:
    try:
        entries, _ = wal.pending(os.path.join(gitdir.state(embedded.found.common), "wal", embedded.ledger))
    except (LedgerError, OSError) as e:
        return f"CANNOT BE READ: {e}"
    for entry in reversed(entries):
        if entry.client == NAME:
            return f"{entry.event} at {entry.at}, in the log"
    # This clone's own events: a fetched ledger holds what Hermes did elsewhere, too.
    ran = embedded.run("journal", "--json", "--writer", _writer(embedded.found.common), "--limit", str(LOOK_BACK))
    if ran.status:
        return f"CANNOT BE READ: {ran.error}"
    for line in reversed(ran.text.splitlines()):
        event = json.loads(line)
        if event["data"].get("client") == NAME:
            return f"{event['data'].get('event', event['type'])} at {event['at']}, journalled"
    return "none: nothing that Hermes did was heard here"


def _writer(common: str) -> str:
    try:
        return str(json.loads(gitdir.read_own(os.path.join(gitdir.state(common), "writer.json")))["id"])
    except (OSError, LedgerError, ValueError, KeyError, TypeError):
        return "?"  # which the program refuses, and says so


def _checkpoint(embedded: Embedded) -> str:
    ran = embedded.run("status", "--json")
    if ran.status:
        return f"CANNOT BE READ: {ran.error}"
    made = json.loads(ran.text).get("checkpoint")
    if not made:
        return "none yet"
    at = f" at {made['at']}" if made.get("at") else ""
    return f"{made.get('name', '')}{at}, {made.get('digest', '')}".rstrip(", ")
