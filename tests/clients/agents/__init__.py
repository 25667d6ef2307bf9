"""The clients as the suite drives them: one module each, which knows how that client is set up and run headless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from tests.clients import install
from tests.clients.lab import Lab
from tests.clients.models.server import Handler
from tests.process.program import Ran


@dataclass(frozen=True, slots=True)
class Agent:
    """One client. `words` gives the command line of a turn, of a new session or of the newest one here."""

    name: str
    model: type[Handler]
    configure: Callable[[Lab], None]
    words: Callable[[str, str, bool], list[str]]
    """From the program, the prompt, and whether the newest session goes on."""
    presses: Mapping[str, Callable[[Agent, Lab], list[Ran]]] = field(default_factory=dict)
    """Ways to bring it to compaction, after a first turn; each returns the runs that it took."""
    full: int = 95_000
    """The usage to claim to drive it over its window, which every module sets to 100,000."""
    refuses: bool = True
    """Whether it leaves the context alone when the hook says so."""
    tells: frozenset[str] = frozenset()
    """The ways of `presses` in which a headless run shows its person why it did not compact."""
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

    def turn(self, lab: Lab, prompt: str, *, resume: bool = False, env: Mapping[str, str] | None = None) -> Ran:
        """One whole turn."""
        return lab.run(self.line(prompt, resume), env=env)

    def line(self, prompt: str, resume: bool) -> list[str]:
        """The command line of one turn."""
        return self.words(str(install.PACKAGES[self.name].path), prompt, resume)


def crowd(agent: Agent, lab: Lab) -> list[Ran]:
    """Go on with a model that claims a full window: by the second turn the client compacts of itself."""
    lab.server.script.claimed = agent.full
    runs = [agent.turn(lab, "second TOOLCALL " + "word " * 1500, resume=True)]
    runs.append(agent.turn(lab, "third " + "word " * 1500, resume=True))
    lab.server.script.claimed = 1_200
    return runs


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
