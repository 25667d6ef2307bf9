"""Hostile text and hostile records through every command, every briefing and every commit, on real git."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from gitledger import cli, layout
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Json, Key
from gitledger.tasks import Hand
from gitledger.view import View
from tests.hostile import CORPUS, MIX, TYPES, records, unseen
from tests.ledgers import Clock, begin, do
from tests.sealed import Repo, new_repo

BRANCH = "feature/\u202e\u200b>>>`x`<img>@someone\u2028Ledger-Writer=evil"
FILES = {
    b"caf\xe9 \xff.txt": "latin",
    "\u202efdp.exe".encode(): "bidi",
    b"new\nline \x1b[31m": "controls",
    b"<script>`|.md": "markup",
    b"--option": "option",
}


@dataclass
class Said:
    """What a command left."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Screen(io.BytesIO):
    """What a terminal is given."""

    def isatty(self) -> bool:
        return True


def run(*words: str, terminal: bool = True) -> Said:
    """One command in this process, as the program's own entry point runs it, with its streams caught."""
    out, err = Screen() if terminal else io.BytesIO(), Screen()
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv = ["gitledger", *words]
    sys.stdout = io.TextIOWrapper(out, "utf-8", errors="backslashreplace", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", errors="backslashreplace", write_through=True)
    try:
        status = cli.main()
        return Said(status, out.getvalue().decode(), err.getvalue().decode())
    finally:
        sys.argv, sys.stdout, sys.stderr = before


def write(ledger: Ledger, type_: str, changes: dict[Key, Change], task: Key | None = None, **data: Json) -> None:
    """Record what no command would: any fields of any records."""

    def build(view: View, hand: Hand) -> tuple[None, Draft]:
        return None, hand.draft(type_, changes, task, **data)

    ledger.record(build)


def fill(ledger: Ledger, text: Json, *, most: int = 200) -> None:
    """Put `text` into every field of every kind of record, as the active task and as the handover of this branch."""
    me, here = ledger.desk.writer.id, ledger.position()
    at = ledger.desk.mint.at()
    if isinstance(text, str):
        text = text[:most].encode("utf-8", "backslashreplace").decode()
    made = records(text, at)
    pointer = {"key": "C-000001@aaaaaa", "name": text, "task_name": text, "at": text, "path": text}
    made["H-000001@aaaaaa"].set.update(position=asdict(here), ledger=ledger.view().manifest.uuid, at=at, by=me)
    made[layout.PROJECT].set.update(checkpoint=pointer, missing={"at": text, "reason": text, "failed": text})
    made[layout.CONFIG] = Change({"briefing.lines": text, str(text)[:200]: text, "proposer.command": text})
    made[layout.worktree_key(me, here.worktree)] = Change({"active": "T-0001@aaaaaa", "head": text, "checkpoint": text})
    write(ledger, "test", made, "T-0001@aaaaaa", text=text, **{str(text)[:100]: text})


# ── every command ────────────────────────────────────────────────────────────────────────────
IDS = ("T-0001", "D-0001", "B-0001", "Q-0001", "A-0001", "N-0001", "C-000001", "H-000001", "S-0123456789ab", "project")
READING = (
    ("status",),
    ("briefing",),
    ("task", "list", "--all"),
    ("task", "show", "T-0001"),
    *(("show", id_) for id_ in IDS),
    ("log",),
    ("search", "x"),
    ("journal",),
    ("handover", "list"),
    ("handover", "show", "H-000001"),
    ("handover", "resolve"),
    ("handover", "explain"),
    ("session", "list"),
    ("project", "show"),
    ("config", "list"),
    ("config", "get", "briefing.lines"),
    ("verify", "--full"),
    ("fsck",),
    ("rebuild", "--check"),
)
"""Commands that read and have `--json`."""
PRINTING = (
    *(("get", id_) for id_ in IDS),
    *(("get", path) for path in ("manifest.json", "project.json", "sessions/open.json", "INDEX.md", "config.json")),
)
