"""The files of a tip held against its journals: records, indexes and documents as the events make them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from gitledger import audit, layout, objects, reading
from gitledger.errors import LedgerError, MissingObject
from gitledger.folders import Folders
from gitledger.model import Finding, Oid
from gitledger.objects import Get
from gitledger.reading import Segment
from gitledger.view import read_manifest

_ID = re.compile(rb'"id":"([0-9a-f-]{36})"')  # of an event's line in its canonical form


def differing(read: Folders, tip: Oid, base: Oid = "") -> list[Finding]:
    """The files of the tip that its journals do not make, `where` their path.

    With `base`, a commit that is known to be good, only the events behind it are folded, over its tree. Documents are
    compared where this renderer made them, records and indexes always.
    """
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


def event_ids(get: Get, tree: Oid) -> Iterator[str]:
    """The ids of all events in a tree's journals that were found good, and of what else calls itself an id there."""
    for segment in _segments(get, tree):
        for found in _ID.findall(get(segment.oid).data):
            yield found.decode("utf-8", "replace")


def newest_id(get: Get, tree: Oid) -> str:
    """The greatest id of an event in the writers' last segments, "" for none: ids begin with their time."""
    ends = _segments(get, tree, last=True)
    return max((found.decode() for end in ends for found in _ID.findall(get(end.oid).data)), default="")


def _segments(get: Get, tree: Oid, *, last: bool = False) -> Iterator[Segment]:
    faults: list[Finding] = []
    for writer, start in reading.writers(get, tree, faults).items():
        yield from islice(reading.segments(get, start, writer, faults, newest_first=last), 1 if last else None)
    if faults:
        raise MissingObject(f"{faults[0].where} of a commit that was found good: {faults[0].what}")


def _of_its_file(fault: Finding) -> Finding:
    path, found, line = fault.where.partition(" line ")
    return Finding(fault.rule, path, f"line {line}: {fault.what}" if found else fault.what)
