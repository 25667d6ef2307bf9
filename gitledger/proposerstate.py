"""`proposer-<ledger>.json`: when the proposer was asked last behind a turn's end, and how that went. Local.

Nothing rests on this file: without it the count of turns begins anew.
"""

from __future__ import annotations

import json
import os

from gitledger import gitdir, pins
from gitledger.errors import LedgerError
from gitledger.model import Finding, Key
from gitledger.schema import Config
from gitledger.values import dataclass, replace

FORMAT = 1
BIGGEST = 64 << 10
SAID = 300
"""Characters of a reason that are kept."""
REPEATED = 2
"""Failures in a row from which on a person is told."""
MARK = "documenter"


@dataclass(frozen=True, slots=True)
class ProposerState:
    """The session and its turn that the proposer was asked at last; failures in a row, and why the last one failed."""

    session: Key = ""
    turns: int = 0
    failures: int = 0
    why: str = ""
    at: str = ""

    def due(self, session: Key, turns: int, every: int) -> bool:
        """True where `every` turns of the session have passed since; `every` 0 is never."""
        before = self.turns if session == self.session else 0
        return every > 0 and turns - before >= every

    def asked(self, session: Key, turns: int, at: str, why: str) -> ProposerState:
        """After one more try; `why` is what came in the way, "" for nothing."""
        return replace(
            self, session=session, turns=turns, at=at, why=why[:SAID], failures=self.failures + 1 if why else 0
        )


def load(state: str, name: str) -> ProposerState:
    """What is known of ledger `name` in a clone's folder `state`; nothing where the file is absent or no such file."""
    try:
        value = json.loads(gitdir.read_own(_path(state, name), BIGGEST))
        if value["format"] != FORMAT:
            return ProposerState()
        session, why, at = (str(value[field]) for field in ("session", "why", "at"))
        return ProposerState(session, int(value["turns"]), int(value["failures"]), why, at)
    except (OSError, LedgerError, ValueError, KeyError, TypeError, RecursionError):
        return ProposerState()


def save(state: str, name: str, what: ProposerState) -> None:
    """Keep it; harmless where the file cannot be written."""
    value = {
        "format": FORMAT,
        "session": what.session,
        "turns": what.turns,
        "failures": what.failures,
        "why": what.why,
        "at": what.at,
    }
    try:
        pins.write_private(_path(state, name), json.dumps(value, indent=1).encode() + b"\n")
    except LedgerError:
        pass  # the next turn's end counts anew


def standing(state: str, name: str, config: Config) -> list[Finding]:
    """What a person should look at: a proposer that is asked behind turns' ends, and failed again and again."""
    known = load(state, name) if every(config) else ProposerState()
    if known.failures < REPEATED:
        return []
    what = f"it failed {known.failures} times in a row, so checkpoints are derived: {known.why}"
    return [Finding("proposer", "documenter", what, "try it: gitledger checkpoint --propose")]


def lock(state: str, name: str) -> str:
    """The file whose lock whoever asks behind a turn's end holds."""
    return os.path.join(state, f"proposer-{name}.lock")


def every(config: Config) -> int:
    """After how many turns the proposer is asked behind a turn's end; 0 for never, as where there is none."""
    return config.documenter.every_turns if config.proposer.command else 0


def mark(state: str, config: Config) -> None:
    """Leave the mark by which a turn's end knows, at the price of one look, that the proposer may be due; or take it.

    Harmless where it cannot be done: the next session's start says it again.
    """
    path = os.path.join(state, MARK)
    try:
        there, wanted = os.path.lexists(path), every(config) > 0
        if wanted and not there:
            os.close(gitdir.open_own(path, os.O_WRONLY | os.O_CREAT))
        elif there and not wanted:
            os.unlink(path)
    except (OSError, LedgerError):
        pass


def _path(state: str, name: str) -> str:
    return os.path.join(state, f"proposer-{name}.json")
