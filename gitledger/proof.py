"""What a task's acceptance criteria rest on. Pure, and the one place that says verified, STALE or UNVERIFIED.

A criterion is met by standing evidence that proves something (a command that exited 0, a commit, a path with its blob)
or by a person's word; a bare claim proves nothing and shows as UNVERIFIED. `stale` holds the ids of pieces that do not
stand any more, each with the reason (`standing` finds them); where nobody looked, what was recorded stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gitledger import results
from gitledger.model import Json, Oid, Record
from gitledger.typed import Literal, TypeAlias
from gitledger.values import dataclass

State: TypeAlias = 'Literal["verified", "accepted", "UNVERIFIED", "failed", "open", "STALE", "overtaken"]'
Stale: TypeAlias = Mapping[str, str]
FRESH: Stale = MappingProxyType({})
PROSE = (".adoc", ".markdown", ".md", ".org", ".rst")
"""Endings of files that say something about the code and are no part of it, unless a run names them."""
CACHES = frozenset(
    ".coverage .hypothesis .mypy_cache .nox .nyc_output .pytest_cache .ruff_cache .tox __pycache__".split()  # noqa: SIM905
)
"""Files and folders that tools write as they run: where git does not ignore them, each run would take itself back."""
_PROSE_NAMES = ("AUTHORS", "CHANGELOG", "CHANGES", "CODEOWNERS", "COPYING", "LICENSE", "NOTICE", "README")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One acceptance criterion with what it rests on: a piece of evidence, or a person's word; `why` it is STALE."""

    id: str
    name: str
    text: str
    state: State
    proof: str = ""
    piece: str = ""
    why: str = ""

    @property
    def met(self) -> bool:
        """True where nothing is left to show."""
        return self.state in ("verified", "accepted")


def item_names(ids: Iterable[str]) -> dict[str, str]:
    """What people see of item ids: `c1`, or `c1@k3f9c2` where two writers made a `c1`."""
    listed = list(ids)
    bare = [i.partition("@")[0] for i in listed]
    return {i: b if bare.count(b) == 1 else i for i, b in zip(listed, bare, strict=True)}


def criteria(task: Record, stale: Stale = FRESH) -> list[Criterion]:
    """A task's criteria in the order they were added, dropped ones left out."""
    rows = [row for row in task.listed("criteria") if not row.get("dropped")]
    names = item_names(row["id"] for row in rows)
    newest: dict[Json, dict[str, Json]] = {}
    own: dict[Json, list[dict[str, Json]]] = {}
    for given in task.listed("evidence"):
        if given.get("kind") == "run":
            newest[given.get("command")] = given
        own.setdefault(given.get("criterion"), []).append(given)
    found = []
    for row in rows:
        # The newest run of a command speaks for it, whatever it was run for.
        pieces = own.get(row["id"], [])
        piece = _standing([newest[p.get("command")] if p.get("kind") == "run" else p for p in pieces])
        shown: State = "open" if piece is None else "STALE" if piece["id"] in stale else state(piece)
        told = (words(piece), piece["id"], stale.get(piece["id"], "")) if piece else ("", "", "")
        if row.get("met") and shown != "verified":
            shown, told = "accepted", ("on a person's word", "", "")
        found.append(Criterion(row["id"], names[row["id"]], row.get("text", ""), shown, *told))
    return found


def words(piece: dict[str, Json]) -> str:
    """One piece of evidence in one line, unescaped."""
    match piece.get("kind"):
        case "run":
            counted = "".join(f", {told}" for told in results.listed(piece.get("results")))
            return f"`{piece.get('command', '')}` exited {piece.get('exit')}{counted}"
        case "commit":
            return f"commit {str(piece.get('commit', ''))[:12]}"
        case "path":
            more = len(files(piece)) - 1
            beside = f" and {more:,} more file{'' if more == 1 else 's'}" if more > 0 else ""
            return f"{piece.get('path', '')} at blob {str(piece.get('blob', ''))[:12]}{beside}"
        case _:
            return f"claimed: {piece.get('text', '')}"


def state(piece: dict[str, Json]) -> State:
    """What one piece of evidence shows on its own."""
    match piece.get("kind"):
        case "run":
            # A pipe's exit status is that of its last command: what the tests themselves said counts as well.
            return "failed" if piece.get("exit") != 0 or results.failed(piece.get("results")) else "verified"
        case "commit" | "path":
            return "verified"
        case _:
            return "UNVERIFIED"


def states(task: Record, stale: Stale = FRESH) -> list[tuple[dict[str, Json], State]]:
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


def _standing(pieces: list[dict[str, Json]]) -> dict[str, Json] | None:
    """The piece that speaks for a criterion: a claim never outweighs a proof, nor a file or commit a failing run."""
    proofs = [p for p in pieces if state(p) != "UNVERIFIED"]
    runs = [p for p in proofs if p.get("kind") == "run"]
    if runs and state(runs[-1]) == "failed":
        return runs[-1]
    return next(reversed(proofs or pieces), None)


# ── test results that were seen ──────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Candidate:
    """A test result that a turn's tool printed: nobody has checked it, and it shows nothing until somebody does."""

    id: str
    name: str
    command: str
    text: str
    at: str
    exit: int | None = None
    taken: str = ""
    session: str = ""


def candidates(task: Record) -> list[Candidate]:
    """What was seen in the turns of a task, newest first, what was taken as evidence too."""
    names = item_names(task.items.get("candidates", {}))
    found = []
    for row in task.listed("candidates"):
        told = "; ".join(results.listed(row.get("results")))
        if told and isinstance(row.get("command"), str):
            status = row.get("exit") if type(row.get("exit")) is int else None
            texts = [row.get(name) or "" for name in ("taken", "session")]
            found.append(
                Candidate(row["id"], names[row["id"]], row["command"], told, row.get("at") or "", status, *texts)
            )
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def seen(one: Candidate) -> str:
    """A candidate in one line, unescaped."""
    status = "" if one.exit is None else f", exit {one.exit}"
    return f"`{one.command}` printed {one.text}{status}"


# ── what a piece says it rests on ────────────────────────────────────────────────────────────
def files(piece: dict[str, Json]) -> dict[str, Oid]:
    """The files of a piece of kind `path`, each with the blob that it was."""
    return {str(piece.get("path", "")): str(piece.get("blob", "")), **(_blobs(piece.get("more")) or {})}


def changed(piece: dict[str, Json]) -> dict[str, Oid] | None:
    """What each path held that differed from its head where a run ran, "" for one that was gone; None: not recorded."""
    return _blobs(piece.get("changed"))


def covers(piece: dict[str, Json]) -> tuple[str, ...]:
    """The paths that a run was said to depend on; none where nobody said."""
    found = piece.get("covers")
    return tuple(found) if isinstance(found, list) else ()


def made(piece: dict[str, Json]) -> tuple[str, ...]:
    """Files and folders that came while it ran and are in no commit: what a run leaves takes nothing back."""
    found = piece.get("made")
    return tuple(found) if isinstance(found, list) else ()


def depends(piece: dict[str, Json], path: str) -> bool:
    """True where what a run showed may depend on `path`: one that was named with it, else all but prose and caches."""
    if named := covers(piece):
        return any(one in (".", path) or path.startswith(f"{one}/") for one in named)
    if not CACHES.isdisjoint(path.split("/")):
        return False
    name = path.rpartition("/")[2]
    return not name.lower().endswith(PROSE) and name.partition(".txt")[0].upper() not in _PROSE_NAMES


def _blobs(rows: Json) -> dict[str, Oid] | None:
    if not isinstance(rows, list):
        return None
    held = [row for row in rows if isinstance(row, dict)]
    return {str(row.get("path", "")): str(row.get("blob", "")) for row in held}
