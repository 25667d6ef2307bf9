"""A bit flipped in any byte of the repository's files is seen, or changes nothing that the ledger holds.

Two things make it hold: verification reads every object of the ledger, and every reading hashes what it read. So each
flip is held against the reading of the object whose bytes it hit. EVERY_BYTE=1 flips one bit in each byte of all;
without it, in every so many.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gitledger import discover, gitstore
from gitledger.errors import LedgerError
from gitledger.examine import Eye
from gitledger.model import Oid
from gitledger.objects import Kind
from gitledger.store import Store
from gitledger.verify import Ways, verify
from tests.attacks import REF, Field
from tests.test_attacks import field as field
from tests.test_verify import loosen

EVERY = 1 if os.environ.get("EVERY_BYTE") else 41


class Fresh:
    """A store that reads what is on disk now, past every cache, and notes what was read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ref, self.algorithm = store.ref, store.algorithm
        self.read: set[Oid] = set()

    def raw(self, oid: Oid) -> tuple[Kind, bytes]:
        self.read.add(oid)
        thing = self._store.get(oid, fresh=True)
        return thing.kind, thing.data

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def kinds(field: Field) -> dict[Oid, Kind]:
    """Every object that the branch reaches."""
    named = field.repo.git("rev-list", "--objects", "--no-object-names", REF)
    rows = field.repo.git("cat-file", "--batch-check=%(objectname) %(objecttype)", input=named + "\n").split("\n")
    return dict(row.split(" ") for row in rows)  # type: ignore[misc]


@contextmanager
def flipped(path: Path, at: int) -> Iterator[None]:
    """One bit of one byte of a file, turned over for a while."""
    fd = os.open(path, os.O_RDWR)
    try:
        byte = os.pread(fd, 1, at)
        os.pwrite(fd, bytes([byte[0] ^ 1 << at % 8]), at)
        yield
        os.pwrite(fd, byte, at)
    finally:
        os.close(fd)


def sound(eye: Eye, objects: dict[Oid, Kind]) -> bool:
    """True where every object reads as itself."""
    eye = Eye(eye.store)  # one keeps what it has read
    try:
        for oid, kind in objects.items():
            eye.read(oid, kind)
    except LedgerError:
        return False
    return True


def test_verification_reads_every_object_of_the_ledger(field: Field) -> None:
    store = Fresh(field.a.desk.store)
    desk = replace(field.a.desk, store=store)  # type: ignore[arg-type]
    assert verify(desk, field.tip, Ways(full=True)).verdict == "verified"
    assert store.read >= kinds(field).keys()


def test_a_bit_of_a_loose_object_is_seen(field: Field) -> None:
    objects = kinds(field)
    loosen(field)
    eye = Eye(Fresh(discover.open_store(field.a.gitdir, "main", "pygit2")))  # type: ignore[arg-type]
    seen = harmless = 0
    for n, (oid, kind) in enumerate(objects.items()):
        path = field.path / ".git" / "objects" / oid[:2] / oid[2:]
        path.chmod(0o600)
        size = path.stat().st_size
        for at in range(n % EVERY, size, EVERY):
            with flipped(path, at):
                # What reads as itself is as good as untouched: a few bits of zlib's header mean nothing.
                ok = sound(eye, {oid: kind})
            seen, harmless = seen + (not ok), harmless + ok
    assert seen > 100 // EVERY
    assert harmless < seen / 50
    assert sound(eye, objects)
    print(f"loose: {seen} seen, {harmless} harmless")


def test_a_bit_of_a_pack_is_seen(field: Field) -> None:
    objects = kinds(field)
    pack = packed(field)
    eye = Eye(Fresh(discover.open_store(field.a.gitdir, "main", "pygit2")))  # type: ignore[arg-type]
    starts = offsets(field, pack)
    seen = harmless = 0
    for at in range(0, pack.stat().st_size, EVERY):
        near = hit(starts, at)
        with flipped(pack, at):
            ok = sound(eye, {near: objects[near]} if near in objects else {}) and sound(eye, objects)
        seen, harmless = seen + (not ok), harmless + ok
    assert seen
    assert harmless < seen / 50 + 32 / EVERY + 1  # the checksum of the whole says nothing that the objects do not
    assert sound(eye, objects)
    print(f"pack: {seen} seen, {harmless} harmless of {pack.stat().st_size}")


def test_a_bit_of_a_pack_index_is_seen_before_libgit2_reads_it(field: Field) -> None:
    """It may crash of one: then git itself reads the objects, and says what it cannot find."""
    common = str(field.path / ".git")
    pack = packed(field)
    index = pack.with_suffix(".idx")
    index.chmod(0o600)
    assert gitstore.damaged_index(common) == ""
    for at in range(0, index.stat().st_size, EVERY):
        with flipped(index, at):
            assert gitstore.damaged_index(common) == str(index)
    desk, tip = field.a.desk, field.tip
    desk.store.close()
    named = 0
    for at in range(8, index.stat().st_size, index.stat().st_size // 12):
        with flipped(index, at):
            try:
                named += verify(desk, tip, Ways(full=True)).verdict != "verified"
            except LedgerError:
                named += 1
            desk.store.close()
    assert named


def packed(field: Field) -> Path:
    """All objects in one pack."""
    loosen(field)
    field.repo.git("repack", "-q", "-a", "-d")
    [pack] = (field.path / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    return pack


def offsets(field: Field, pack: Path) -> list[tuple[int, Oid]]:
    """Where each object begins in a pack."""
    done = subprocess.run(
        ["git", "show-index"], input=pack.with_suffix(".idx").read_bytes(), capture_output=True, check=True
    )
    rows = (row.split() for row in done.stdout.decode().splitlines())
    return sorted((int(at), oid) for at, oid, *_ in rows)


def hit(starts: list[tuple[int, Oid]], at: int) -> Oid:
    """The object that a byte belongs to."""
    return next((oid for begin, oid in reversed(starts) if begin <= at), starts[0][1])


@pytest.mark.parametrize("part", ["commit", "tree", "blob"])
def test_a_flipped_bit_is_named_by_verification(field: Field, part: str) -> None:
    objects = kinds(field)
    oid = [oid for oid, kind in objects.items() if kind == part][-1]
    loosen(field)
    path = field.path / ".git" / "objects" / oid[:2] / oid[2:]
    path.chmod(0o600)
    desk, tip = field.a.desk, field.tip
    desk.store.close()
    with flipped(path, path.stat().st_size // 2):
        for driver in discover.DRIVERS:
            other = replace(desk, store=discover.open_store(field.a.gitdir, "main", driver))
            found = verify(other, tip, Ways(full=True))
            other.store.close()
            assert found.verdict in ("bad", "partial")
            assert any(oid[:12] in fault.what or oid == fault.commit for fault in found.findings)
