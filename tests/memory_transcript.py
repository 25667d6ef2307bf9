"""The transcripts in `docs/memory.md`, played: `python -m tests.memory_transcript` prints them."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gitledger import discover
from tests.ledgers import Clock, mint
from tests.sealed import Repo, new_repo, sealed_environment
from tests.test_hostile_commands import run

MEMORY = """\
# Memory

## Project

### Servers
- staging is at 10.0.0.3
- staging moved to 10.0.0.9 in March
- production is at 10.0.0.4 [permanent]

### Release of last week
- waiting for the review by Ben
- the build of today is 1123

## People
- Ada likes short answers
- Ada prefers tabs over spaces

## How we work
- tests run before every push, and nobody pushes on a Friday afternoon
- the shop's opening hours are in shop/hours.yaml, and nowhere else
- prices are in cents, never in floats
"""
USER = "# Ada\n\n- likes short answers\n"
CHANGES = [
    {"kind": "superseded", "original": ["- staging is at 10.0.0.3"], "reason": "staging moved in March"},
    {
        "kind": "stale-section",
        "original": ["### Release of last week\n- waiting for the review by Ben\n- the build of today is 1123\n"],
        "reason": "that release is out",
    },
    {
        "kind": "duplicate",
        "original": ["- Ada likes short answers"],
        "held_at": {"file": "USER.md", "line": 3},
        "reason": "USER.md holds it",
    },
]
WRONG = [{"kind": "ephemeral", "original": ["- production is at 10.0.0.4 [permanent]"], "reason": "servers change"}]
PROPOSER = """\
import json, sys
prompt = sys.stdin.read()
sha256 = prompt.split("source_sha256: ")[1].split()[0]
print(json.dumps({"source_sha256": sha256, "changes": json.load(open(sys.argv[1]))}))
"""
STEPS: tuple[str | tuple[str, Any], ...] = (
    "# a person decides",
    ("answer", CHANGES),
    ("typed", ("gitledger memory audit", "keep 2")),
    "gitledger show M-0001",
    "gitledger memory undo M-0001",
    "# every night",
    "gitledger memory compact",
    "gitledger memory log",
    ("answer", WRONG),
    "gitledger memory compact",
    "cat log/memory-clean.log",
)
DAY = 1_796_083_200_000
"""Milliseconds since 1970 at which the transcript plays."""


def play(folder: Path) -> str:
    """What was typed and seen. Changes the process's home as it goes."""
    home = folder / "home"
    home.mkdir()
    sealed = sealed_environment(home, os.environ)
    for name in [name for name in os.environ if name not in sealed]:
        del os.environ[name]
    os.environ.update(sealed)
    said = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-12-01 02:00 UTC", "\n".join(_lines(folder)))
    said = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-12-01T02:00:07.412Z", said)
    said = re.sub(r"(?<=Commit: )[0-9a-f]{40}", "9fc84138ff7746260a810377e1074bd12a3b905c", said)
    return said.replace(discover.open(folder / "shop").desk.writer.id, "k3f9c2")


def _lines(folder: Path) -> Iterator[str]:
    shop = new_repo(folder / "shop")
    shop.commit("The shop", {"memory/MEMORY.md": MEMORY, "USER.md": USER})
    clock = Clock(DAY)
    discover.init(str(shop.path), "main", "Corner shop", mint=mint(clock))
    (folder / "propose.py").write_text(PROPOSER)
    answer = folder / "answer.json"
    words = shlex.join([sys.executable, str(folder / "propose.py"), str(answer)])
    for key, value in (("proposer.command", words), ("memory.log", "log/memory-clean.log")):
        run("-C", str(shop.path), "config", "set", key, value, terminal=False)
    for step in STEPS:
        if isinstance(step, tuple) and step[0] == "typed":
            command, typed = step[1]
            yield f"$ {command}"
            yield _typed(shop, command, typed)
        elif isinstance(step, tuple):
            answer.write_text(json.dumps(step[1]))
        elif step.startswith("#"):
            yield step
        else:
            yield f"$ {step}"
            if step.startswith("cat "):
                yield (shop.path / step[4:]).read_text().rstrip("\n")
            else:
                said = run("-C", str(shop.path), *shlex.split(step)[1:], terminal=False)
                yield (said.out + said.err).rstrip("\n")


class _Keys(io.StringIO):
    """What a person types at a terminal."""

    def isatty(self) -> bool:
        return True


def _typed(shop: Repo, command: str, typed: str) -> str:
    """What is seen of a command at a terminal that is answered when it asks."""
    before, sys.stdin = sys.stdin, _Keys(f"{typed}\n")
    try:
        said = run("-C", str(shop.path), *shlex.split(command)[1:])
    finally:
        sys.stdin = before
    return (said.out + said.err).replace("cancel > ", f"cancel > {typed}\n").rstrip("\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(play(Path(scratch)))
