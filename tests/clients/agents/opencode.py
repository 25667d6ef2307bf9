"""OpenCode, by `opencode run`."""

from __future__ import annotations

import json

from tests.clients.agents import Agent, crowd
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """A provider of our own, and nothing fetched: offline it would wait a minute for its own plugin package."""
    folder = lab.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"name": "fake", "tool_call": True, "limit": {"context": 100_000, "output": 4_000}}
    options = {"baseURL": lab.server.url + "/v1", "apiKey": "dummy-not-a-key"}
    settings = {
        "$schema": "https://opencode.ai/config.json",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["fake"],
        "permission": "allow",
        "provider": {
            "fake": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "fake",
                "options": options,
                "models": {"fake-model": model},
            }
        },
    }
    (folder / "opencode.json").write_text(json.dumps(settings, indent=2))
    lab.env.update(
        {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "npm_config_fetch_retries": "0",
            "npm_config_registry": "http://127.0.0.1:9/",
        }
    )


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn."""
    line = [program, "run", "--print-logs", "--log-level", "WARN"]
    return [*line, *(["--continue"] if resume else []), prompt]


AGENT = Agent("opencode", OpenAI, configure, words, {"auto": crowd}, full=99_000, hears=True)
