"""OpenCode, by `opencode run`."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients import install
from tests.clients.agents import Agent, Press
from tests.clients.lab import PATIENCE, Lab, kill
from tests.clients.models.openai import OpenAI


def configure(lab: Lab) -> None:
    """A provider of our own, and nothing fetched."""
    folder = lab.home / ".config" / "opencode"
    # It fetches a package for plugins, which ours does not need, and offline waits a minute for it at each start,
    # unless it takes it for installed.
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    lock = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (folder / "package-lock.json").write_text(json.dumps(lock))
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


@contextmanager
def pressing(agent: Agent, lab: Lab) -> Iterator[Press]:
    """A person asks its server for it, which is one process for all; what the server says is no reason."""
    program, which = str(install.PACKAGES["opencode"].path), {"providerID": "fake", "modelID": "fake-model"}
    child = lab.start([program, "serve", "--port", "0", "--hostname", "127.0.0.1"])
    try:
        assert child.stdout is not None
        with lab.patience(child):
            found = next(found for line in child.stdout if (found := re.search(r"http://\S+", line)))
            session = json.loads(_post(f"{found[0]}/session", {}))["id"]
            said = {"model": which, "parts": [{"type": "text", "text": "hello first"}]}
            _post(f"{found[0]}/session/{session}/message", said)
        yield lambda: _post(f"{found[0]}/session/{session}/summarize", which)
    finally:
        kill(child)
        child.communicate()


def _post(url: str, body: object) -> str:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as e:
        return e.read().decode()


AGENT = Agent("opencode", OpenAI, configure, words, pressing, full=99_000, hears=True)
