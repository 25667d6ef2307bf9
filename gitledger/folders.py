"""Commits and trees of one store read by their own bytes, each object hashed again, and trees compared by their ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from gitledger import objects
from gitledger.errors import BadData, IOFailed
from gitledger.model import Oid
from gitledger.objects import Kind, Object
from gitledger.store import Store

KEPT_FOLDERS = 512
"""Folders in memory: those of the commit before are those of the next but for a dozen."""
KEPT_BYTES = 4 << 20
"""Bytes of objects in memory: each of many commits is made again over folders and lists that the one before had."""
KEPT_OBJECT = 256 << 10
"""Bytes of the largest object that is kept."""
FILE, FOLDER = b"100644", b"40000"
"""Modes as a tree holds them."""

_KEPT_COMMITS = 64
_HEAD = re.compile(rb"tree ([0-9a-f]{40,64})\n((?:parent [0-9a-f]{40,64}\n)*)author ")
_ROWS = {
    "sha1": re.compile(rb"[1-7][0-7]{4,5} [^\0/]+\0.{20}", re.DOTALL),
    "sha256": re.compile(rb"[1-7][0-7]{4,5} [^\0/]+\0.{32}", re.DOTALL),
}
_HEADS: dict[Kind, bytes] = {"commit": b"commit %d\0", "tree": b"tree %d\0", "blob": b"blob %d\0", "tag": b"tag %d\0"}
_NOTHING: frozenset[bytes] = frozenset()


class File(NamedTuple):
    """A file that a commit changes: mode and id as it was and as it is; None where it was or is not."""

    path: str
    old: tuple[bytes, bytes] | None
    new: tuple[bytes, bytes] | None


class Folders:
    """What reads one store; every object is hashed again."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._sha = hashlib.sha1 if store.algorithm == "sha1" else hashlib.sha256
        self._row, self._size = _ROWS[store.algorithm], 20 if store.algorithm == "sha1" else 32
        self._folders: dict[bytes, frozenset[bytes]] = {}
        self._trees: dict[Oid, Oid] = {}
        self._kept: dict[Oid, Object] = {}
        self._kept_bytes = 0

    @property
    def algorithm(self) -> str:
        """`sha1` or `sha256`."""
        return self.store.algorithm

    def get(self, oid: Oid) -> Object:
        """An object, proved to be the one that its id names; MissingObject, or BadData for other bytes."""
        kept = self._kept.get(oid)
        if kept is not None:
            return kept
        try:
            found, data = self.store.raw(oid)
        except IOFailed as e:
            raise BadData(f"{oid} cannot be read: {e}") from e
        if self._sha(_HEADS[found] % len(data) + data).hexdigest() != oid:
            raise BadData(f"{found} {oid} reads as other bytes than its id says: run `git fsck` to see what is hurt")
        thing = Object(found, data)
        if len(data) <= KEPT_OBJECT:
            self._kept_bytes += len(data)
            if self._kept_bytes > KEPT_BYTES:
                self._kept.clear()
                self._kept_bytes = len(data)
            self._kept[oid] = thing
        return thing

    def ahead(self, oids: Iterable[Oid]) -> None:
        """These are asked for next, each once."""
        wanted = [oid for oid in oids if oid not in self._kept]
        if len(wanted) > 1:
            self.store.ahead(wanted)

    def take(self, oids: Iterable[Oid]) -> None:
        """Read these now, as far as they can be had together and are kept: most of them are asked for, some time."""
        for oid in list(self.store.ahead(oids)):
            self.get(oid)

    def read(self, oid: Oid, kind: Kind) -> bytes:
        """An object's bytes, proved to be those that its id names; MissingObject, or BadData for other bytes."""
        thing = self.get(oid)
        if thing.kind != kind:
            raise BadData(f"{oid} is a {thing.kind} where a {kind} is named")
        return thing.data

    def parents(self, oid: Oid) -> tuple[Oid, ...]:
        """A commit's parents from its own bytes, whatever replace refs, grafts or a shallow file say."""
        data = self.read(oid, "commit")
        head = _HEAD.match(data)
        if head is None:
            raise BadData(f"commit {oid} does not begin as a commit does")
        self.know(oid, head[1].decode())
        return tuple(row[7:].decode() for row in head[2].splitlines())

    def tree(self, commit: Oid) -> Oid:
        """A commit's tree."""
        if commit not in self._trees:
            self.know(commit, objects.parse_commit(self.read(commit, "commit")).tree)
        return self._trees[commit]

    def know(self, commit: Oid, tree: Oid) -> None:
        """Remember a commit's tree, for its children."""
        if len(self._trees) >= _KEPT_COMMITS:
            self._trees.clear()
        self._trees[commit] = tree

    def _rows(self, tree: bytes) -> frozenset[bytes]:
        found = self._folders.get(tree)
        if found is None:
            data = self.read(tree.hex(), "tree")
            rows = self._row.findall(data)
            if b"".join(rows) != data:
                raise BadData(f"tree {tree.hex()} is damaged")
            found = frozenset(rows)
            if len(self._folders) >= KEPT_FOLDERS:
                for old in list(self._folders)[: KEPT_FOLDERS // 2]:
                    del self._folders[old]
            self._folders[tree] = found
        return found

    def _split(self, rows: frozenset[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        size, found = self._size, {}
        for row in rows:
            mode, _, name = row[: -size - 1].partition(b" ")
            found[name] = (mode, row[-size:])
        return found

    def changed(self, old: bytes | None, new: bytes | None, path: str = "") -> list[File]:
        """The files that two trees do not have alike; equal folders are never read."""
        found: list[File] = []
        pending, below = [(old, new, path)], list[tuple[bytes | None, bytes | None, str]]()
        known, rows, size = self._folders.get, self._rows, self._size
        while pending or below:
            if not pending:  # folder by folder, but all that are as deep are asked for together
                pending, below = below[::-1], []
                self.ahead(oid.hex() for pair in pending for oid in pair[:2] if oid and oid not in self._folders)
            old, new, path = pending.pop()
            before = (known(old) or rows(old)) if old else _NOTHING
            after = (known(new) or rows(new)) if new else _NOTHING
            come = self._split(after - before)
            for row in before - after:
                mode, _, name = row[: -size - 1].partition(b" ")
                was = (mode, row[-size:])
                now = come.pop(name, None)
                where = path + name.decode("utf-8", "surrogateescape")
                if mode == FOLDER:
                    if now is None or now[0] == FOLDER:
                        below.append((was[1], now and now[1], where + "/"))
                    else:
                        below.append((was[1], None, where + "/"))
                        found.append(File(where, None, now))
                elif now is not None and now[0] == FOLDER:
                    below.append((None, now[1], where + "/"))
                    found.append(File(where, was, None))
                else:
                    found.append(File(where, was, now))
            for name, now in come.items():
                where = path + name.decode("utf-8", "surrogateescape")
                if now[0] == FOLDER:
                    below.append((None, now[1], where + "/"))
                else:
                    found.append(File(where, None, now))
        return found

    def journal(self, tree: Oid) -> bytes | None:
        """The folder that holds a tree's journals."""
        mode, oid = self._split(self._rows(bytes.fromhex(tree))).get(b"journal", (b"", b""))
        return oid if mode == FOLDER else None
