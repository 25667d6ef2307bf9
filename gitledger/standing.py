"""Whether recorded evidence still shows what it showed, in the work tree of now.

A run speaks of the content that it ran on, not of a commit's id: committing what was dirty, amending a message or
rebasing leaves it standing, and one changed line takes it back. What it depends on are the paths that were named with
it, else everything but prose. What cannot be compared here does not stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitledger import objects, proof, worktree
from gitledger.errors import LedgerError
from gitledger.gitdir import GitDir
from gitledger.model import UNBORN, Json, Oid, Position, Record
from gitledger.objects import Get
from gitledger.values import dataclass
from gitledger.worktree import Look

EXPLAINED = 5
"""Commits given as evidence of which git is asked what became of them; of more it is only said that they are gone."""
READ = 4_000
"""Folders that one comparison of two commits reads at most."""


def stale(gitdir: GitDir, get: Get, look: Look, task: Record) -> dict[str, str]:
    """The ids of a task's evidence that does not stand any more, each with the reason.

    `get` reads the repository's objects, `look` is where its work tree stands. Only pieces that show something are
    looked at: what failed, was overtaken or is a claim says so by itself.
    """
    pieces = [piece for piece, shown in proof.states(task) if shown == "verified"]
    here = _Here(gitdir, get, look)
    return {**_files(here, pieces), **_commits(here, pieces), **_runs(here, pieces)}


@dataclass(frozen=True, slots=True)
class _Here:
    gitdir: GitDir
    get: Get
    look: Look

    @property
    def position(self) -> Position:
        return self.look.position


# ── files ────────────────────────────────────────────────────────────────────────────────────
def _files(here: _Here, pieces: list[dict[str, Json]]) -> dict[str, str]:
    named = {p["id"]: proof.files(p) for p in pieces if p.get("kind") == "path"}
    now = worktree.blob_ids(here.gitdir, sorted({path for files in named.values() for path in files}))
    found = {}
    for item, files in named.items():
        for path, blob in files.items():
            if now[path] != blob:
                found[item] = f"{path} has changed since" if now[path] else f"{path} is gone"
                break
    return found


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def _commits(here: _Here, pieces: list[dict[str, Json]]) -> dict[str, str]:
    named = {p["id"]: str(p.get("commit")) for p in pieces if p.get("kind") == "commit"}
    wanted = sorted({oid for oid in named.values() if oid != here.position.head})
    if not wanted:
        return {}
    there = [oid for oid in wanted if _tree(here.get, oid) is not None]
    outside = set(wanted) - set(there)
    if there and here.position.head == UNBORN:
        outside |= set(there)
    elif there:
        outside |= worktree.outside(here.gitdir, there, here.position.head)
    why = {oid: _gone(here, oid, explain=n < EXPLAINED) for n, oid in enumerate(sorted(outside))}
    return {item: why[oid] for item, oid in named.items() if oid in why}


def _gone(here: _Here, oid: Oid, *, explain: bool) -> str:
    short = oid[:12]
    if not explain:
        return f"commit {short} is not in the history of HEAD"
    relation = worktree.relate(here.gitdir, Position("", oid), here.position)
    if relation.ancestry == "rewritten":
        return f"commit {short} was rewritten and lives on as {relation.successor[:12]}"
    if relation.ancestry == "missing":
        return f"commit {short} is not in this repository"
    if relation.ancestry == "rewound":
        return f"HEAD is behind commit {short}"
    return f"commit {short} is not in the history of HEAD, but on another branch or on none"


# ── runs ─────────────────────────────────────────────────────────────────────────────────────
def _runs(here: _Here, pieces: list[dict[str, Json]]) -> dict[str, str]:
    found = {}
    for piece in pieces:
        if piece.get("kind") == "run" and (why := _run(here, piece)):
            found[piece["id"]] = why
    return found


def _run(here: _Here, piece: dict[str, Json]) -> str:
    now, then = here.position, str(piece.get("fingerprint") or "")
    if then and then == now.fingerprint:
        return ""
    head = piece.get("head")
    if not head:
        return "it does not say which commit it ran on"
    changed = proof.changed(piece)
    if piece.get("dirty") and changed is None:
        return "it ran in a dirty tree, which is not the one here"
    if here.look.differs is None:
        return "the work tree differs from HEAD in more than can be compared"
    old = "" if head == UNBORN else _tree(here.get, str(head))
    if old is None:
        return f"it ran on commit {str(head)[:12]}, which is not in this repository"
    try:
        path = _first(here, piece, old, changed or {})
    except _TooFarError:
        return f"more has changed since commit {str(head)[:12]} than can be compared"
    except LedgerError:
        return f"commit {str(head)[:12]} cannot be read here whole"
    return f"{path} has changed since" if path else ""


def _first(here: _Here, piece: dict[str, Json], old: Oid, changed: Mapping[str, Oid]) -> str:
    """The first path that the run depends on and whose content is another one now; "" for none."""
    made = proof.made(piece)
    differs = here.look.differs or {}
    # What lay beside the commit then and what lies beside HEAD now decide before the commits do.
    beside = changed.keys() | differs.keys()
    for path in sorted(beside):
        if proof.depends(piece, path) and not (path not in changed and _below(path, made)):
            then = changed[path] if path in changed else _blob(here.get, old, path)
            now = differs[path] if path in differs else _blob(here.get, here.position.tree, path)
            if then != now:
                return path
    for path in _differing(here.get, old, here.position.tree):
        if path not in beside and proof.depends(piece, path):
            return path
    return ""


def _below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


# ── trees ────────────────────────────────────────────────────────────────────────────────────
class _TooFarError(Exception):
    """Two trees differ in more folders than are read."""


def _tree(get: Get, commit: Oid) -> Oid | None:
    """A commit's tree; None where it is not here."""
    try:
        found = get(commit)
        return objects.parse_commit(found.data).tree if found.kind == "commit" else None
    except LedgerError:
        return None


def _blob(get: Get, tree: Oid, path: str) -> Oid:
    folder, _, name = path.rpartition("/")
    entry = (objects.entries(get, tree, folder) or {}).get(name) if tree else None
    return "" if entry is None or entry.is_folder else entry.oid


def _differing(get: Get, old: Oid, new: Oid) -> Iterator[str]:
    """The paths that two trees do not have alike, as they are found; equal folders are never read."""

    def rows(tree: Oid) -> dict[str, objects.TreeEntry]:
        return objects.entries(get, tree) or {} if tree else {}

    pending = [("", old, new)]
    read = 0
    while pending:
        where, before, after = pending.pop()
        if before == after:
            continue
        read += 1
        if read > READ:
            raise _TooFarError
        then, now = rows(before), rows(after)
        for name in sorted(then.keys() | now.keys()):
            one, other = then.get(name), now.get(name)
            if one and other and one.oid == other.oid:
                continue
            sides = [entry.oid if entry and entry.is_folder else "" for entry in (one, other)]
            if any(sides):
                pending.append((f"{where}{name}/", *sides))  # type: ignore[arg-type]
            if any(entry is not None and not entry.is_folder for entry in (one, other)):
                yield where + name
