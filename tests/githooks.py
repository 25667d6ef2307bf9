"""Git hooks for tests: the program on a PATH of its own, repositories whose hooks are ours, what they logged."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitledger import capture, gitdir, reading
from gitledger.model import Finding
from tests.ledgers import again, begin
from tests.sealed import Repo

ROOT = Path(__file__).parent.parent


def place_of(repo: Repo) -> gitdir.GitDir:
    """The repository as hooks are installed into it."""
    found = gitdir.find(str(repo.path))
    assert found is not None
    return found


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = "") -> Path:
    """A folder with `gitledger` in it, the real one or what `text` says, put in front of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gitledger"
    real = f'PYTHONPATH={str(ROOT)!r} exec {sys.executable!r} -m gitledger "$@"'
    path.write_text(f"#!/bin/sh\n{text or real}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return path


def ledger_in(repo: Repo) -> Repo:
    """The same repository, with a ledger."""
    begin(repo).desk.store.close()
    return repo


def told(repo: Repo) -> list[tuple[str, dict[str, Any]]]:
    """What git told, in order: each event's type and data, without what says that it was git."""
    ledger = again(repo)
    faults: list[Finding] = []
    rows = [(logged.event.type, logged.event.data) for logged in reading.journal(ledger, faults)]
    ledger.desk.store.close()
    assert {fault.rule for fault in faults} <= {"unreadable"}
    told = [(kind, dict(data)) for kind, data in rows if kind in {*capture.GIT, "unreadable"}]
    for kind, data in told:
        assert data.pop("client") == "git"
        assert data.pop("event") == kind or kind == "unreadable"
    return told


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: its mode, its bytes, or where a symlink goes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (0, os.readlink(path).encode())
        elif path.is_file():
            found[str(path.relative_to(folder))] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
    return found


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    """A shell script at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def tried(repo: Repo, *words: str) -> subprocess.CompletedProcess[str]:
    """What git did, whether or not it succeeded."""
    return subprocess.run(
        ["git", *words],
        cwd=repo.path,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=300,
    )
