"""The second look for secrets: a scanner of hundreds of formats, over the texts of new events, before they are hashed.

It is an extra (`pip install gitledger-continuity[secrets]`) and this machine's to switch on (`secrets.scanner`). It
runs as a child of its own, so that neither a crash nor a hang of it takes a checkpoint with it; it is handed the texts
on stdin, reaches for no network, and proves in each run, on a made-up key, that it finds anything at all. Whatever
goes wrong is Unscanned, and nothing is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable

from gitledger.errors import Unscanned
from gitledger.redact import Known

DEADLINE = 30.0
"""Seconds that one run may take, start included."""
SHORTEST = 8
"""Characters of a finding that is taken out wherever it stands; a shorter one would stand in innocent words too."""

# Taken off the environment: what would make the scanner read other rules than its own, or ask providers about keys.
_PREFIX = "BETTERLEAKS_"
# The scanner is C to its caller: a text ends at the first NUL there.
_WORKER = """
import json, sys
import betterleaks
found = []
for text in json.load(sys.stdin):
    for one in betterleaks.scan_string(text.replace("\\0", " ")):
        found.append([one.rule_id, one.match.value])
    found.append(None)
json.dump(found, sys.stdout)
"""
_WORKERS = {"betterleaks": ("betterleaks", _WORKER)}
# Made up, and put together here so that no scanner takes this file for a leak.
_CANARY = "stripe_key = '" + "sk" + "_live_" + "7Qf2mX9cVb4Tn8Lw3Zr6Ky1H" + "'"


def secrets(name: str, texts: Iterable[str]) -> Known:
    """What the scanner finds in `texts`, each with the name to put in its place; longest first.

    Raises Unscanned where it is not installed, fails, takes too long, or does not find what it must.
    """
    package, worker = _WORKERS[name]
    read = [_CANARY, *dict.fromkeys(text for text in texts if len(text) >= SHORTEST)]
    answer = _run(name, package, worker, read)
    canary, rest = _split(name, answer, len(read))
    if not any(value in _CANARY and len(value) >= SHORTEST for _, value in canary):
        raise _failed(name, "it does not find a made-up key that it must find")
    found = {value: f"{name}-{_word(rule)}" for rule, value in rest if len(value) >= SHORTEST}
    return tuple(sorted(found.items(), key=lambda row: (-len(row[0]), row[0])))


def _run(name: str, package: str, worker: str, read: list[str]) -> object:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_PREFIX)}
    try:
        done = subprocess.run(
            # -P: a file of the scanner's name in the user's project must not be run in its place
            [sys.executable, "-P", "-c", worker],
            input=json.dumps(read).encode(),
            capture_output=True,
            cwd=os.sep,
            env=environment,
            timeout=DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise _failed(name, f"it did not end within {DEADLINE:g} seconds") from e
    except OSError as e:
        raise _failed(name, f"it cannot be started ({e.strerror})") from e
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]
        if f"No module named '{package}'" in last:
            raise _failed(name, "it is not installed; install it by: pip install 'gitledger-continuity[secrets]'")
        raise _failed(name, f"it ended with {done.returncode}")  # what it says may quote what it read
    try:
        return json.loads(done.stdout)
    except ValueError as e:
        raise _failed(name, "its answer is no JSON") from e


def _split(name: str, answer: object, texts: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What was found in the first text, and in all others; a mark ends each text's findings."""
    parts: list[list[tuple[str, str]]] = [[]]
    if not isinstance(answer, list) or answer.count(None) != texts:
        raise _failed(name, "it did not read every text")
    for row in answer:
        match row:
            case None:
                parts.append([])
            case [str(rule), str(value)]:
                parts[-1].append((rule, value))
            case _:
                raise _failed(name, "its answer has another shape than it should")
    return parts[0], [row for part in parts[1:] for row in part]


def _word(text: str) -> str:
    return "".join(c if c in "abcdefghijklmnopqrstuvwxyz0123456789" else "-" for c in text.lower())[:60]


def _failed(name: str, why: str) -> Unscanned:
    return Unscanned(
        f"the secret scanner {name} failed: {why}; mend that, or do without: gitledger config set secrets.scanner none"
    )
