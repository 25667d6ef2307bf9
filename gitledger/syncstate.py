"""`sync-<ledger>.json`: how the last sync of this clone went, and what it left for a person to look at. Local.

Nothing rests on this file: without it a sync begins as the first one, and what stands in it is told again by the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from gitledger import gitdir, pins
from gitledger.errors import LedgerError
from gitledger.model import Finding, Key, Oid, Stamp
from gitledger.values import dataclass, replace
from gitledger.view import View

FORMAT = 1
KEPT = 100
"""Conflicts that are kept; the oldest give way."""
BIGGEST = 1 << 20
COUNTED = 99
"""Unpushed commits that are counted; more are as many."""


@dataclass(frozen=True, slots=True)
class Twice:
    """A field that two writers set apart: the stamp that shows, the other one, and how that one's text begins."""

    key: Key
    field: str
    shown: Stamp
    lost: Stamp
    text: str


@dataclass(frozen=True, slots=True)
class SyncState:
    """How the last sync went. `refused` is a finding of its own until a sync passes; "" times are never.

    `tip` is what this clone and the remote were known to share last; `together` pairs a task with two writers that
    were active on it at once.
    """

    remote: str = ""
    at: str = ""
    tip: Oid = ""
    refused: tuple[Finding, ...] = ()
    twice: tuple[Twice, ...] = ()
    together: tuple[tuple[Key, str, str], ...] = ()
    failed: str = ""

    def add(self, twice: tuple[Twice, ...], together: tuple[tuple[Key, str, str], ...]) -> SyncState:
        """With what a merge found; what it says of a field replaces what was said of that one before."""
        new = {(one.key, one.field): one for one in (*self.twice, *twice)}
        pairs = dict.fromkeys((*self.together, *together))
        return replace(self, twice=tuple(new.values())[-KEPT:], together=tuple(pairs)[-KEPT:])


def path(state: str, name: str) -> str:
    """The file of ledger `name` in a clone's folder `state`."""
    return os.path.join(state, f"sync-{name}.json")


def load(state: str, name: str) -> SyncState:
    """What is known of the last sync; nothing where the file is absent or no such file."""
    try:
        value = json.loads(gitdir.read_own(path(state, name), BIGGEST))
        if value["format"] != FORMAT:
            return SyncState()
        return SyncState(
            str(value["remote"]),
            str(value["at"]),
            str(value["tip"]),
            tuple(Finding(*map(str, row)) for row in value["refused"]),
            tuple(Twice(str(k), str(f), Stamp(*a), Stamp(*b), str(t)) for k, f, a, b, t in value["twice"]),
            tuple((str(k), str(a), str(b)) for k, a, b in value["together"]),
            str(value["failed"]),
        )
    except (OSError, LedgerError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return SyncState()


def save(state: str, name: str, what: SyncState) -> None:
    """Keep it; harmless where the file cannot be written."""
    value = {
        "format": FORMAT,
        "remote": what.remote,
        "at": what.at,
        "tip": what.tip,
        "failed": what.failed,
        "refused": [[f.rule, f.where, f.what, f.mend] for f in what.refused],
        "twice": [[t.key, t.field, _stamp(t.shown), _stamp(t.lost), t.text] for t in what.twice],
        "together": [list(row) for row in what.together],
    }
    try:
        pins.write_private(path(state, name), json.dumps(value, indent=1).encode() + b"\n")
    except LedgerError:
        pass  # the next sync tells it again


# ── what a person should look at ─────────────────────────────────────────────────────────────
def standing(state: SyncState, view: View) -> list[Finding]:
    """What syncs have left for a person to look at and nobody has settled since; nothing is contacted."""
    found = list(state.refused)
    for one in state.twice:
        if _still(view, one):
            name = view.name(one.key)
            what = f"{one.lost.writer} set it too, not knowing of {one.shown.writer}, whose value shows"
            mend = "look at both with gitledger journal, and set it again if the wrong one shows"
            found.append(Finding("set twice", f"{name} {one.field}", what, mend))
    for task, a, b in state.together:
        record = view.record(task)
        if record is not None and record.get("status") == "active":
            what = f"writers {a} and {b} are both active on it, in work trees of their own"
            found.append(Finding("active twice", view.name(task), what, "agree who goes on with it"))
    return found


def unpushed(state: SyncState, tip: Oid, parents: Callable[[Oid], tuple[Oid, ...]]) -> int:
    """How many commits the remote was not known to have at the last sync; at most COUNTED are counted."""
    if tip == state.tip:
        return 0
    seen, pending = {state.tip}, [tip]
    while pending and len(seen) <= COUNTED:
        oid = pending.pop()
        if oid not in seen:
            seen.add(oid)
            pending += parents(oid)
    return len(seen) - 1


def _still(view: View, one: Twice) -> bool:
    """True while the field still has the value that won."""
    record = view.record(one.key)
    if record is None:
        return False
    if one.field in record.fields:
        return record.fields[one.field][1] == one.shown
    listed, _, rest = one.field.partition(".")
    item, _, name = rest.rpartition(".")
    found = record.items.get(listed, {}).get(item, {}).get(name)
    return found is not None and found[1] == one.shown


def _stamp(stamp: Stamp) -> list[int | str]:
    return [stamp.lamport, stamp.writer, stamp.seq]
