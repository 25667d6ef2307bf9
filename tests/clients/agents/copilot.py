"""Copilot CLI, offline with a provider of one's own."""

from __future__ import annotations

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """All by its environment."""
    lab.env.update(
        {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": lab.server.url + "/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy-not-a-key",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
        }
    )


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    return [program, "-p", prompt, "--allow-all-tools", "--no-color", *(["--continue"] if resume else [])]


AGENT = Agent("copilot", OpenAI, configure, words, refuses=False, untold=frozenset({"answer"}))
