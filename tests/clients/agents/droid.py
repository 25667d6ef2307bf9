"""Factory Droid, by `droid exec` with a model of one's own."""

from __future__ import annotations

import json

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """A custom model, and no account that is one."""
    folder = lab.home / ".factory"
    folder.mkdir(exist_ok=True)
    model = {
        "model": "fake-model",
        "displayName": "fake",
        "id": "custom:fake-0",
        "index": 0,
        "baseUrl": lab.server.url + "/v1",
        "apiKey": "dummy-not-a-key",
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 4_000,
    }
    settings = {"customModels": [model], "cloudSessionSync": False, "compactionTokenLimit": 50_000}
    (folder / "settings.json").write_text(json.dumps(settings, indent=2))
    lab.env.update({"FACTORY_API_KEY": "fk-dummy-not-a-key", "DROID_DISABLE_AUTO_UPDATE": "1"})


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn, always of a new session: `droid exec` goes on only by a session's id."""
    return [program, "exec", "--model", "custom:fake-0", "--skip-permissions-unsafe", "-o", "json", prompt]


AGENT = Agent(
    "droid",
    OpenAI,
    configure,
    words,
    compacts=False,
    refuses=False,
    resumes=False,
    untold=frozenset({"prompt", "answer"}),
)
"""Compaction is not driven: in `droid exec` it never told its hook."""
