"""What makes stock git show another history than the one that was signed: shallow files, replace refs, grafts.

None of it deceives gitledger, which reads parents from the commits themselves; but `git log` and `git show` believe it,
so a person who looks with them sees something else than what was verified.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from gitledger import gitcli, objects
from gitledger.errors import LedgerError
from gitledger.model import Finding, Oid
from gitledger.store import Store

_LARGEST = 1 << 20  # bytes of such a file; more of it is not read


def hiding(store: Store, common: str, tip: Oid, cut: frozenset[Oid]) -> Iterator[Finding]:
    """A finding, its `where` the object's whole id, for each object of the ledger that git is told to show otherwise.

    `cut` are the commits whose parents are not here, which a shallow file names rightly.
    """
    shallow = _words(os.path.join(common, "shallow"))
    grafts = _words(os.path.join(common, "info", "grafts"))
    replaced = _replaced(common)
    if not (shallow or grafts or replaced):
        return
    ours = _commits(store, tip)
    for oid in sorted(shallow & ours - cut):
        what = "the file .git/shallow names it, so git shows nothing before it, though its parents are here"
        yield Finding("partial", oid, what, "fetch the whole history: git fetch --unshallow; look at .git/shallow")
    for oid in sorted(grafts & ours):
        what = "the file .git/info/grafts gives it other parents than it was signed with"
        yield Finding("grafted", oid, what, "look at .git/info/grafts, and who wrote it; git log believes it")
    if others := replaced - ours:
        ours |= {oid for oid in _below(store, objects.parse_commit(store.get(tip).data).tree) if oid in others}
    for oid in sorted(replaced & ours):
        what = f"git shows another object in its place, by refs/replace/{oid[:12]}"
        yield Finding(
            "replaced", oid, what, "list them with git replace -l; git --no-replace-objects shows what is signed"
        )


def _words(path: str) -> set[Oid]:
    """The first word of each line of a file that may not be there."""
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return {line.split()[0] for line in f.read(_LARGEST).splitlines() if line.split()}
    except OSError:
        return set()


def _replaced(common: str) -> set[Oid]:
    # Where neither a folder nor the packed refs can hold one, no git needs to be started.
    try:
        with open(os.path.join(common, "packed-refs"), "rb") as f:
            packed = b"refs/replace/" in f.read()
    except OSError:
        packed = False
    if (
        not packed
        and not os.path.isdir(os.path.join(common, "refs", "replace"))
        and not os.path.isdir(os.path.join(common, "reftable"))
    ):
        return set()
    asked = [f"--git-dir={common}", "for-each-ref", "--format=%(refname)", "refs/replace/"]
    return {ref.rpartition("/")[2] for ref in gitcli.run(asked, cwd=common).line.splitlines()}


def _commits(store: Store, tip: Oid) -> set[Oid]:
    seen: set[Oid] = set()
    pending = [tip]
    while pending:
        oid = pending.pop()
        if oid not in seen:
            try:
                parents = objects.parse_commit(store.get(oid).data).parents
            except LedgerError:
                continue  # not here, or damaged: said elsewhere
            seen.add(oid)
            pending += parents
    return seen


def _below(store: Store, tree: Oid) -> Iterator[Oid]:
    yield tree
    try:
        entries = objects.entries(store.get, tree) or {}
    except LedgerError:
        return
    for entry in entries.values():
        if entry.is_folder:
            yield from _below(store, entry.oid)
        else:
            yield entry.oid
