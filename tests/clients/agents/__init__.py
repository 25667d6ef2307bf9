"""The clients as the suite drives them: one module each, which knows how that client is set up and run headless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from tests.clients import install
from tests.clients.lab import Lab
from tests.clients.models.server import Handler
from tests.process.program import Ran

Press: TypeAlias = Callable[[], str]
"""Brings a session to compaction, once more at each call, and returns what its person is told."""
WORDS = "word " * 1500
"""So much that a client finds something to leave out."""


@contextmanager
def by_turns(agent: Agent, lab: Lab) -> Iterator[Press]:
    """Each call is a turn of the same session, with a model that claims a full window."""
    script = lab.server.script
    script.claimed = agent.full if agent.late else script.claimed
    agent.turn(lab, "hello first")
    script.claimed = agent.full

    def press() -> str:
        ran = agent.turn(lab, "second TOOLCALL " + WORDS, resume=True)
        return ran.out + ran.err

    yield press


@dataclass(frozen=True, slots=True)
class Agent:
    """One client. `words` gives the command line of a turn, of a new session or of the newest one here."""

    name: str
    model: type[Handler]
    configure: Callable[[Lab], None]
    words: Callable[[str, str, bool], list[str]]
    """From the program, the prompt, and whether the newest session goes on."""
    pressing: Callable[[Agent, Lab], AbstractContextManager[Press]] = by_turns
    compacts: bool = True
    """Whether it can be brought to compaction."""
    full: int = 95_000
    """The usage to claim to drive it over its window, which every module sets to 100,000."""
    late: bool = False
    """Whether only the next run sees that the window is full."""
    refuses: bool = True
    """Whether it leaves the context alone when the hook says so."""
    tells: bool = False
    """Whether a headless run shows its person why it did not compact."""
    escapes: bool = False
    """Whether it shows its model a hook's `<` and `>` as `&lt;` and `&gt;`."""
    hears: bool = False
    """Whether what the hook says before a compaction reaches whoever writes the summary."""
    ends: bool = True
    """Whether a headless run tells its end."""
    untold: frozenset[str] = frozenset()
    """What of a turn no hook of a headless run is told: `prompt`, `answer`."""
    resumes: bool = True
    """Whether a headless run can go on with the newest session."""

    def turn(self, lab: Lab, prompt: str, *, resume: bool = False, cwd: Path | None = None) -> Ran:
        """One whole turn."""
        return lab.run(self.line(prompt, resume), cwd=cwd)

    def line(self, prompt: str, resume: bool = False) -> list[str]:
        """The command line of one turn."""
        return self.words(str(install.PACKAGES[self.name].path), prompt, resume)


MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "pi": "pi",
    "qwen": "qwen",
    "copilot": "copilot",
    "droid": "droid",
}


def named(name: str) -> Agent:
    """The agent of that name."""
    agent = import_module(f"tests.clients.agents.{MODULES[name]}").AGENT
    assert isinstance(agent, Agent)
    return agent
