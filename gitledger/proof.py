"""What a task's acceptance criteria rest on. Pure.

A criterion is met by standing evidence that proves something (a command that exited 0, a commit, a path with its blob)
or by a person's word; a bare claim proves nothing and shows as UNVERIFIED. `stale` are the ids of pieces whose file is
known to have other content now; where nobody looked, what was recorded stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gitledger.model import Json, Record

State = Literal["verified", "accepted", "UNVERIFIED", "failed", "open", "STALE", "overtaken"]
FRESH: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Criterion:
    """One acceptance criterion with what it rests on: the newest piece of evidence, or a person's word."""

    id: str
    name: str
    text: str
    state: State
    proof: str = ""

    @property
    def met(self) -> bool:
        """True where nothing is left to show."""
        return self.state in ("verified", "accepted")


def item_names(ids: Iterable[str]) -> dict[str, str]:
    """What people see of item ids: `c1`, or `c1@k3f9c2` where two writers made a `c1`."""
    listed = list(ids)
    bare = [i.partition("@")[0] for i in listed]
    return {i: b if bare.count(b) == 1 else i for i, b in zip(listed, bare, strict=True)}


def criteria(task: Record, stale: frozenset[str] = FRESH) -> list[Criterion]:
    """A task's criteria in the order they were added, dropped ones left out."""
    rows = [row for row in task.listed("criteria") if not row.get("dropped")]
    names = item_names(row["id"] for row in rows)
    evidence = task.listed("evidence")
    found = []
    for row in rows:
        own = [piece for piece in evidence if piece.get("criterion") == row["id"]]
        state, proof = _standing(own, stale)
        if row.get("met") and state != "verified":
            state, proof = "accepted", "on a person's word"
        found.append(Criterion(row["id"], names[row["id"]], row.get("text", ""), state, proof))
    return found


def words(piece: dict[str, Json]) -> str:
    """One piece of evidence in one line, unescaped."""
    match piece.get("kind"):
        case "run":
            return f"`{piece.get('command', '')}` exited {piece.get('exit')}"
        case "commit":
            return f"commit {str(piece.get('commit', ''))[:12]}"
        case "path":
            return f"{piece.get('path', '')} at blob {str(piece.get('blob', ''))[:12]}"
        case _:
            return f"claimed: {piece.get('text', '')}"


def state(piece: dict[str, Json]) -> State:
    """What one piece of evidence shows on its own."""
    match piece.get("kind"):
        case "run":
            return "verified" if piece.get("exit") == 0 else "failed"
        case "commit" | "path":
            return "verified"
        case _:
            return "UNVERIFIED"


def states(task: Record, stale: frozenset[str] = FRESH) -> list[tuple[dict[str, Json], State]]:
    """Every piece of a task's evidence, oldest first, with what it shows now.

    A run is `overtaken` by a newer one of the same command or for the same criterion, and a file by a newer look at it
    for the same criterion, whatever those showed: nothing that was found otherwise since is called verified.
    """
    found: list[tuple[dict[str, Json], State]] = []
    newer: set[tuple[Json, ...]] = set()
    for piece in reversed(task.listed("evidence")):
        kind, criterion = piece.get("kind"), piece.get("criterion")
        same: set[tuple[Json, ...]] = set()
        if kind == "run":
            same = {("command", str(piece.get("command"))), *([("criterion", str(criterion))] if criterion else [])}
        elif kind == "path":
            same = {("path", str(piece.get("path")), str(criterion))}
        shown = state(piece)
        if same & newer:
            shown = "overtaken"
        elif piece["id"] in stale:
            shown = "STALE"
        newer |= same
        found.append((piece, shown))
    return found[::-1]


def _standing(pieces: list[dict[str, Json]], stale: frozenset[str]) -> tuple[State, str]:
    # The newest run speaks for all runs before it; a claim never outweighs a proof.
    proofs = [p for p in pieces if state(p) != "UNVERIFIED"]
    for piece in reversed(proofs or pieces):
        return "STALE" if piece["id"] in stale else state(piece), words(piece)
    return "open", ""
