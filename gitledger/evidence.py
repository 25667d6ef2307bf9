"""Evidence as it is gathered: a command that was run, a commit that exists, a file with its content's id."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time

from gitledger import gitcli, worktree
from gitledger.errors import BadData
from gitledger.gitdir import GitDir
from gitledger.model import Json, Position, Record
from gitledger.redact import ending, within

OUTPUT_KEPT = 4_000
"""Characters of a command's output that are kept: the last ones, where results stand."""
DEADLINE = 3600.0


def run(gitdir: GitDir, command: str, position: Position, *, deadline: float = DEADLINE) -> dict[str, Json]:
    """Run `command` by the user's shell in the work tree's root; its exit status, duration (ms) and last output.

    A person or an agent asked for it by name; nothing that a ledger carries is ever run.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        # A session of its own, so that a deadline ends it with all its children.
        child = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=gitdir.top,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in gitcli.KEPT
            },
        )
        try:
            status = child.wait(deadline)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
        size = out.seek(0, os.SEEK_END)
        out.seek(max(0, size - OUTPUT_KEPT * 4))
        tail = out.read()
        text = tail.decode("utf-8", "replace")
    return {
        "kind": "run",
        "command": within(command, 1_000),
        "exit": status,
        "ms": int((time.monotonic() - began) * 1000),
        "output": ending(text, OUTPUT_KEPT, cut=size > len(tail)),
        "head": position.head,
        "dirty": position.dirty,
    }


def commit(gitdir: GitDir, rev: str) -> dict[str, Json]:
    """A commit as evidence; raise BadData for one that does not exist here."""
    oid = worktree.commit_exists(gitdir, rev)
    if oid is None:
        raise BadData(f"no commit {rev[:60]!r} in this repository; evidence must name one that exists")
    return {"kind": "commit", "commit": oid}


def path(gitdir: GitDir, name: str) -> dict[str, Json]:
    """A file of the work tree as evidence, with its blob id; raise BadData where there is none."""
    full = os.path.realpath(os.path.join(os.getcwd(), name))
    inside = os.path.relpath(full, os.path.realpath(gitdir.top))
    if inside == ".." or inside.startswith("../"):
        raise BadData(f"{name[:80]!r} is outside of this work tree; evidence is a file of the project")
    blob = worktree.blob_id(gitdir, inside)
    if blob is None:
        raise BadData(f"no file {name[:80]!r} in this work tree; evidence must name one that exists")
    return {"kind": "path", "path": inside, "blob": blob}


def stale(gitdir: GitDir, pieces: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The pieces whose file has other content now, or is gone; the newest piece of a path speaks for its criterion."""
    newest = {(p.get("path", ""), p.get("criterion")): p for p in pieces if p.get("kind") == "path"}
    blobs = {name: worktree.blob_id(gitdir, name) for name, _ in newest}
    return [piece for (name, _), piece in newest.items() if blobs[name] != piece.get("blob")]


def stale_ids(gitdir: GitDir, task: Record) -> frozenset[str]:
    """The ids of a task's pieces of evidence that are stale in this work tree."""
    return frozenset(piece["id"] for piece in stale(gitdir, task.listed("evidence")))
