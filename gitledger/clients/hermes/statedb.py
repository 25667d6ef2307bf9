"""What Hermes kept of a session in its own database, read only, and what of it never reached the ledger.

Hermes writes a person's message before it asks the model, and the rest of a turn as it comes; the provider is told at a
turn's end, by a thread that dies with the process. So what a kill, a power cut or an exit kept from it is made good
here, at the next start: whatever the database has and the journal has not.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from gitledger.clients.embedded import Embedded
from gitledger.clients.hermes import turns
from gitledger.clients.hermes.claims import Claim
from gitledger.clients.hermes.turns import Turn

NAME = "state.db"
BUSY = 2.0
"""Seconds that a database which is being written is waited for."""
GENERATIONS = 50
"""Sessions that one may go on from, one after the other, that are looked at."""
_JSON = "\0json:"  # how Hermes marks a content that is no text

Said: TypeAlias = tuple[str, dict[str, Any]]
"""An event and its payload."""


def read(home: str, session: str) -> tuple[list[Turn], bool]:
    """A session's turns, oldest first, without those that were taken back; and whether some may stand there twice.

    A compaction writes what it keeps once more. What others said beside the talk, in a group, is no turn of it.
    Raises sqlite3.Error.
    """
    with closing(_opened(home)) as db:
        words = "SELECT {} FROM messages WHERE session_id = ? AND (active = 1 OR compacted = 1) "
        words += "AND NOT COALESCE(observed, 0) ORDER BY id"
        rows = db.execute(
            words.format("role, content, tool_call_id, tool_calls, timestamp, compacted"), (session,)
        ).fetchall()
        parents = _lineage(db, session)
    copied = len(parents) > 1 or any(row["compacted"] for row in rows)
    return turns.split([_message(row) for row in rows]), copied


def taken_back(home: str, session: str) -> dict[int, str]:
    """The requests of a session that the person took back, by their rows, oldest first; raises as `read` does."""
    with closing(_opened(home)) as db:
        rows = db.execute(
            "SELECT id, content FROM messages WHERE session_id = ? AND role = 'user' AND active = 0 AND compacted = 0"
            " ORDER BY id",
            (session,),
        ).fetchall()
    said = {row["id"]: turns.text(_content(row["content"])) for row in rows}
    return {row: words for row, words in said.items() if words and not words.startswith(turns.NOT_ASKED)}


def lineage(home: str, session: str) -> list[str]:
    """A session, and those that it goes on from; raises as `read` does."""
    with closing(_opened(home)) as db:
        return _lineage(db, session)


def standing(home: str, session: str) -> str:
    """How a session's messages stand, in one word: another one wherever one came or went; raises as `read` does."""
    words = "SELECT COUNT(*), MAX(id), SUM(active), SUM(compacted) FROM messages WHERE session_id = ?"
    with closing(_opened(home)) as db:
        return "-".join(str(n or 0) for n in db.execute(words, (session,)).fetchone())


def reconcile(at: Embedded, home: str, claim: Claim) -> int:
    """Journal what the database has of a session and the journal has not; how many turns that were.

    Whoever calls this has the session. Raises OSError, sqlite3.Error and LedgerError, and RuntimeError where the
    journal cannot be read: then nothing is settled, and the next start looks again.
    """
    if not os.path.exists(os.path.join(home, NAME)):
        return 0
    now = standing(home, claim.session)
    if now == claim.settled:
        return 0
    found, copied = read(home, claim.session)
    found = [turn for turn in found if not turn.at or turn.at * 1000 >= claim.since]
    known = journalled(at, lineage(home, claim.session)) if found else Counter()
    lost = 0
    for turn in found:
        said = missing(turn, known, copied=copied, cwd=at.folder)
        for event, payload in said:
            at.log(event, {"session_id": claim.session, **payload})
        lost += bool(said)
    claim.settle(now)
    return lost


def missing(turn: Turn, known: Counter[str], *, copied: bool, cwd: str = "") -> list[Said]:
    """The events of a turn of which `known` has not the ids; what is found there, or made, is no longer looked for."""
    calls = [turns.call_id(call) for call in turn.calls]
    asked = turns.prompt_id(turn.prompt)
    own = turns.turn_id(turn)
    if turn.answer and (known[own] or any(known[_ended(one)] for one in calls)):
        if not copied:
            known[own] -= 1
            known[asked] -= 1
        return []
    said: list[Said] = []
    if known[asked] <= 0:
        said.append(("prompt", {"prompt": turn.prompt, "ids": [asked]}))
        known[asked] += 1
    if not copied:
        known[asked] -= 1
    told = turns.payload(turn, [one for one in calls if known[one]], cwd)
    new = [one for one in calls if not known[one]]
    known.update(new)
    if turn.answer:
        said.append(("turn", {**told, "answer": turn.answer, "ids": [own, *new]}))
        known[own] += copied
        known.update(map(_ended, calls))
    elif new:
        said.append(("tool", {**told, "ids": new}))
    return said


def journalled(at: Embedded, sessions: Iterable[str]) -> Counter[str]:
    """How often each id of what Hermes tells is in the ledger, for some sessions; RuntimeError where that fails.

    A call that a turn's end told of stands there once more, as such: one told while its turn was under way does not say
    that this ended.
    """
    from gitledger import layout

    found: Counter[str] = Counter()
    for session in sessions:
        key = layout.session_key(at.client, session)
        ran = at.run("journal", "--json", "--session", key)
        if ran.status:
            raise RuntimeError(f"the journal of {key} cannot be read: {ran.error}")
        for line in ran.text.splitlines():
            event = json.loads(line)
            ids = _ids(event["data"].get("ids"))
            found.update(ids)
            if event["type"] == "turn":
                found.update(_ended(one) for one in ids if one.startswith("c"))
    return found


def _ended(call: str) -> str:
    return f"ended {call}"


def _ids(value: Any) -> Sequence[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _opened(home: str) -> sqlite3.Connection:
    # Read only by SQLite itself: what another process writes there at the same moment is seen, and nothing is changed.
    path = Path(os.path.abspath(os.path.join(home, NAME)))
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY)
    db.row_factory = sqlite3.Row
    return db


def _lineage(db: sqlite3.Connection, session: str) -> list[str]:
    found = {session: None}
    while len(found) < GENERATIONS:
        row = db.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (next(reversed(found)),)).fetchone()
        parent = row["parent_session_id"] if row else None
        if not isinstance(parent, str) or not parent or parent in found:
            break
        found[parent] = None
    return list(found)


def _message(row: sqlite3.Row) -> Mapping[str, Any]:
    said = {key: row[key] for key in ("role", "tool_call_id", "tool_calls", "timestamp")}
    return {**said, "content": _content(row["content"])}


def _content(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_JSON):
        try:
            return json.loads(value[len(_JSON) :])
        except ValueError:
            return value
    return value
