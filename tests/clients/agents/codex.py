"""Codex, by `codex exec`."""

from __future__ import annotations

from tests.clients.agents import Agent
from tests.clients.lab import Lab
from tests.clients.models.openai import OpenAI

CONFIG = """\
model = "fake-model"
model_provider = "fake"
model_auto_compact_token_limit = 50000
model_context_window = 200000
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."{repo}"]
trust_level = "trusted"
"""


def configure(lab: Lab) -> None:
    """A provider of our own, in a project that is trusted."""
    folder = lab.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CONFIG.format(url=lab.server.url, repo=lab.repo.path))
    lab.env.update({"CODEX_HOME": str(folder), "FAKE_KEY": "dummy-not-a-key"})


def words(program: str, prompt: str, resume: bool) -> list[str]:
    """One turn. The hooks run without a person having looked at them, which only a test may do."""
    line = [program, "exec", "--dangerously-bypass-approvals-and-sandbox", "--json", "--dangerously-bypass-hook-trust"]
    return [*line, *(["resume", "--last"] if resume else []), prompt]


AGENT = Agent("codex", OpenAI, configure, words, late=True)
