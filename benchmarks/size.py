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
        if size / n >= 100:
            yield amount(f"of it {part}", size / n / 1024, "KiB")
    base, _, _ = peak(bare(), folder)
    commands = (["fsck"], ["rebuild", "--check"], ["briefing"])
    for words in commands:
        used, seconds, status = peak(ways(*words)["script"], folder)
        if status:  # an older gitledger built what was kept, and rendered otherwise
            grounds.say(f"{' '.join(words)} found faults: remove the kept folder to build the ledger anew")
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


# A process of its own, and a small one: on Linux a child's peak begins at what its parent held when it forked.
WATCH = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, status)
"""


def peak(command: list[str], folder: str) -> tuple[float, float, int]:
    """The largest resident size of a command (or of a child of its own) in MiB, its seconds, and its exit status."""
    begun = time.monotonic()
    watch = [sys.executable, "-I", "-c", WATCH, *command]
    said = subprocess.run(watch, cwd=folder, capture_output=True, text=True, check=True)
    largest, status = map(int, said.stdout.split())
    if status not in (0, 1):  # 1: a check found faults
        sys.exit(f"{' '.join(command)} exited {status}: {said.stderr}")
    scale = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return largest * scale / 2**20, time.monotonic() - begun, status
