"""The files of a tip held against its journals: records, indexes and documents as the events make them."""

from __future__ import annotations

from gitledger import audit, layout, objects, reading
from gitledger.errors import BadData, LedgerError
from gitledger.model import Finding, Oid
from gitledger.objects import Object
from gitledger.store import Store
from gitledger.view import read_manifest


def differing(store: Store, tip: Oid, base: Oid = "") -> list[Finding]:
    """The files of the tip that its journals do not make, `where` their path.

    With `base`, a commit that is known to be good, only the events behind it are folded, over its tree. Documents are
    compared where this renderer made them, records and indexes always.
    """
    read = _Read(store)
    get = read.get
    root = objects.parse_commit(get(tip).data).tree
    before = objects.parse_commit(get(base).data).tree if base else None
    try:
        data = objects.read(get, root, layout.MANIFEST)
        renderer = read_manifest(data).renderer if data is not None else layout.RENDERER
    except LedgerError as e:
        return [Finding("differs", layout.MANIFEST, str(e))]
    same = renderer == layout.RENDERER
    with audit.remade(read, root, before if same else None, renderer=renderer) as made:
        found = [
            audit.wrong(difference)
            for difference in reading.differences(get, root, made.objects.get, made.tree, made.faults)
            if same or not audit.is_document(difference.path)
        ]
        return found + [_of_its_file(fault) for fault in made.faults]


class _Read:
    """A store's objects the quick way, each hashed again."""

    def __init__(self, store: Store) -> None:
        self.algorithm = store.algorithm
        self._raw = store.raw

    def get(self, oid: Oid) -> Object:
        """One object, proved to be the one that its id names."""
        kind, data = self._raw(oid)
        if objects.oid(kind, data, self.algorithm) != oid:
            raise BadData(f"{kind} {oid} reads as other bytes than its id says: run `git fsck` to see what is hurt")
        return Object(kind, data)


def _of_its_file(fault: Finding) -> Finding:
    path, found, line = fault.where.partition(" line ")
    return Finding(fault.rule, path, f"line {line}: {fault.what}" if found else fault.what)
