"""Gemini CLI, with a prompt on its command line."""

from __future__ import annotations

import json

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.gemini import GenerateContent


def configure(lab: Lab) -> None:
    """A key that is none, and a threshold so low that a full window of ours is over it."""
    folder = lab.home / ".gemini"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "model": {"compressionThreshold": 0.01},
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2))
    lab.env.update(
        {
            "GEMINI_API_KEY": "dummy-not-a-key",
            "GOOGLE_GEMINI_BASE_URL": lab.server.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "NO_BROWSER": "1",
        }
    )


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    line = [program, "-m", "gemini-2.5-flash", "--yolo", "-o", "json", "-p", prompt]
    return [*line, *(["--resume", "latest"] if resume else [])]


AGENT = Agent("gemini", GenerateContent, configure, words, refuses=False, escapes=True)
