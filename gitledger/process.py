"""Which process a session belongs to, and whether it still lives: how a crash is told from a session at work.

A hook runs below its client, often behind a shell. The client is the nearest ancestor that is no shell; its pid
counts only together with its start time and this boot, since pids are used again.
"""

from __future__ import annotations

import os
import sys

from gitledger.model import Json

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "gitledger"))
DEPTH = 12


def client(start: int | None = None) -> dict[str, Json] | None:
    """The nearest ancestor that is no shell, as `{pid, started, boot}`; None where it cannot be told."""
    pid = start or os.getppid()
    for _ in range(DEPTH):
        found = _stat(pid)
        if found is None or pid <= 1:
            return None
        name, parent, started = found
        if name not in SHELLS:
            return {"pid": pid, "started": started, "boot": _boot()}
        pid = parent
    return None


def named(pid: int) -> dict[str, Json] | None:
    """The process of a pid that a client names itself; None where there is none."""
    found = _stat(pid)
    return {"pid": pid, "started": found[2], "boot": _boot()} if found else None


def alive(process: Json) -> bool | None:
    """True or False where this machine can tell whether the recorded process still runs; None where it cannot."""
    pid = process.get("pid") if isinstance(process, dict) else None
    if not isinstance(pid, int):
        return None  # another writer may have recorded anything
    if not _boot() or process.get("boot") != _boot():
        return False if _boot() and process.get("boot") else None
    found = _stat(pid)
    return found is not None and found[2] == process.get("started")


def lineage() -> list[dict[str, Json]]:
    """This process and those above it, nearest first, each as `client` gives them."""
    found: list[dict[str, Json]] = []
    pid = os.getpid()
    while pid > 1 and len(found) < DEPTH and (row := _stat(pid)):
        found.append({"pid": pid, "started": row[2], "boot": _boot()})
        pid = row[1]
    return found


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return sys.platform if os.path.isdir("/Library") else ""


def _stat(pid: int) -> tuple[str, int, str] | None:
    """(name, parent, start time) of a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            text = f.read()
        name = text[text.index("(") + 1 : text.rindex(")")]
        rest = text[text.rindex(")") + 2 :].split()
        if rest[0] in ("Z", "X"):
            return None  # dead, its parent has not looked yet
        return name, int(rest[1]), rest[19]
    except (OSError, ValueError, IndexError):
        pass  # no /proc: macOS
    if os.path.isdir("/proc/self"):
        return None
    import subprocess

    try:
        out = subprocess.run(
            ["ps", "-o", "ppid=,lstart=,comm=", "-p", str(pid)],
            capture_output=True, text=True, timeout=5, check=True, stdin=subprocess.DEVNULL,
        ).stdout.split(None, 6)  # fmt: skip
        return os.path.basename(out[6].strip()), int(out[0]), " ".join(out[1:6])
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None
