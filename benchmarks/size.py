"""What a ledger takes: bytes per checkpoint after `git gc`, and the memory of the commands that read all of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.clock import Row, amount, bare, ways
from benchmarks.grounds import Grounds, git, pack

BYTES = 4.0
"""KiB per checkpoint."""
MEMORY = 128.0
"""MiB."""


def rows(grounds: Grounds) -> Iterator[Row]:
    """The whole ledger by its checkpoints, its parts, and each command's peak."""
    n = grounds.checkpoints
    folder = grounds.ledger("size", n)
    pack(folder)
    refs = ["refs/heads/ledger/main"]
    whole = on_disk(folder, refs)
    yield amount(f"{n:,} checkpoints and {n * 10:,} events after gc, per checkpoint", whole / n / 1024, "KiB", BYTES)
    for part, size in parts(folder, refs[0]).items():
        yield amount(f"of it {part}", size / n / 1024, "KiB")
    base, _ = peak(bare(), folder)
    commands = (["fsck"], ["rebuild", "--check"], ["briefing"])
    for words in commands:
        used, seconds = peak(ways(*words)["script"], folder)
        what = f"{' '.join(words)} on {n * 10:,} events, peak of memory ({seconds:.1f} s)"
        yield amount(what, used, "MiB", MEMORY, f"{base:.1f} MiB")


def on_disk(folder: str, revs: list[str]) -> int:
    """Bytes that what `revs` reach takes in the packs, shared deltas and all."""
    return int(git(folder, "rev-list", "--objects", "--disk-usage", *revs))


def parts(folder: str, ref: str) -> dict[str, int]:
    """Bytes in the packs by what they hold: commits, trees, and blobs by their place in the ledger's tree."""
    listed = git(folder, "rev-list", "--objects", "--in-commit-order", ref)
    names = {row.partition(" ")[0]: row.partition(" ")[2] for row in listed.splitlines()}
    asked = "\n".join(names).encode() + b"\n"
    rows = git(folder, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize:disk)", data=asked)
    found: dict[str, int] = {}
    for row in rows.splitlines():
        oid, kind, size = row.split(" ")
        part = f"{kind}s" if kind != "blob" else place(names[oid])
        found[part] = found.get(part, 0) + int(size)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def place(path: str) -> str:
    """The kind of file at a path of the ledger's tree."""
    first = path.split("/", 1)[0]
    if "/checkpoints/" in path:
        return f"checkpoints, *{os.path.splitext(path)[1]}"
    return f"{first}/" if "/" in path else "files at the top"


def peak(command: list[str], folder: str) -> tuple[float, float]:
    """The largest resident size of a command in MiB, and its seconds; its own children's are not added to it."""
    begun = time.monotonic()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as started:
        said = started.stdout.read() if started.stdout else b""
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        sys.exit(f"{' '.join(command)} exited {started.returncode}: {said.decode(errors='replace')[:500]}")
    scale = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return usage.ru_maxrss * scale / 2**20, time.monotonic() - begun
