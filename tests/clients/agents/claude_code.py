"""Claude Code, in print mode."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients import install
from tests.clients.agents import Agent, Press
from tests.clients.lab import Lab, kill
from tests.clients.models.anthropic import Messages

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


class Talk:
    """A session of Claude Code in one process, spoken to in lines of JSON: each word of a person costs no start."""

    def __init__(self, lab: Lab, child: subprocess.Popen[str]) -> None:
        self.lab = lab
        self.child = child

    def say(self, text: str) -> str:
        """Say something, a turn or a command, and return all that it printed until it was done."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n")
        self.child.stdin.flush()
        said = []
        with self.lab.patience(self.child):
            for line in self.child.stdout:
                said.append(line)
                if json.loads(line).get("type") == "result":
                    return "".join(said)
        raise AssertionError(f"it ended before {text} was done: {''.join(said)[-3000:]}")


@contextmanager
def talk(lab: Lab) -> Iterator[Talk]:
    """A new session, which ends with the block as one that its person leaves."""
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    line = [str(install.PACKAGES["claude-code"].path), "-p", *streams, "--allowedTools", "Bash"]
    child = lab.start(line, stdin=subprocess.PIPE)
    try:
        yield Talk(lab, child)
        with lab.patience(child):
            child.communicate()
    finally:
        if child.poll() is None:
            kill(child)
            child.communicate()


@contextmanager
def pressing(agent: Agent, lab: Lab) -> Iterator[Press]:
    """A person asks for it, again and again, in one session."""
    with talk(lab) as session:
        session.say("hello first")
        yield lambda: session.say("/compact")


AGENT = Agent("claude-code", Messages, configure, words, pressing, tells=True, hears=True)
