"""pi, in print mode."""

from __future__ import annotations

import json

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """A provider of our own, which keeps little when it compacts."""
    folder = lab.home / ".pi" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"id": "fake-model", "contextWindow": 100_000, "maxTokens": 4_000}
    provider = {"baseUrl": lab.server.url + "/v1", "apiKey": "dummy-not-a-key", "api": "openai-completions"}
    (folder / "models.json").write_text(json.dumps({"providers": {"fake": {**provider, "models": [model]}}}))
    settings = {
        "defaultProvider": "fake",
        "defaultModel": "fake-model",
        "compaction": {"keepRecentTokens": 200, "reserveTokens": 16_384},
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2))
    lab.env.update({"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"})


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    line = [program, "--provider", "fake", "--model", "fake-model", "-p"]
    return [*line, *(["--continue"] if resume else []), prompt]


AGENT = Agent("pi", OpenAI, configure, words)
