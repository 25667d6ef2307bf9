"""Qwen Code, with a prompt on its command line."""

from __future__ import annotations

import json

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """OpenAI's API at our address, and a window that is soon full."""
    folder = lab.home / ".qwen"
    folder.mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "model": {
            "generationConfig": {"contextWindowSize": 100_000},
            "chatCompression": {"contextPercentageThreshold": 0.3},
        },
    }
    (folder / "settings.json").write_text(json.dumps(settings, indent=2))
    lab.env.update(
        {
            "OPENAI_API_KEY": "dummy-not-a-key",
            "OPENAI_BASE_URL": lab.server.url + "/v1",
            "OPENAI_MODEL": "fake-model",
            "NO_BROWSER": "1",
        }
    )


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    return [program, "--yolo", "-o", "json", "-p", prompt, *(["--continue"] if resume else [])]


AGENT = Agent("qwen", OpenAI, configure, words, refuses=False, ends=False, escapes=True)
