"""Claude Code, in print mode."""

from __future__ import annotations

from tests.clients.agents import Agent, crowd
from tests.clients.lab import Lab
from tests.clients.models.anthropic import Messages
from tests.process.program import Ran

WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "60"}


def configure(lab: Lab) -> None:
    """No account, no traffic but the model's."""
    lab.env.update(
        WINDOW
        | {
            "ANTHROPIC_BASE_URL": lab.server.url,
            "ANTHROPIC_API_KEY": "dummy-not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
    )


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    line = [program, "-p", "--output-format", "json", "--allowedTools", "Bash"]
    return [*line, *(["--continue"] if resume else []), "--", prompt]


def compact(agent: Agent, lab: Lab) -> list[Ran]:
    """A person asks for it."""
    return [agent.turn(lab, "/compact", resume=True)]


AGENT = Agent(
    "claude-code",
    Messages,
    configure,
    words,
    {"manual": compact, "auto": crowd},
    tells=frozenset({"manual"}),
    hears=True,
)
