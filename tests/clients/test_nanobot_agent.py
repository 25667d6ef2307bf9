"""nanobot with a ledger, as its SDK, its own program and its gateway run it; a model on loopback answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import install, lab
from tests.clients.lab import ROOT, Lab, kill
from tests.clients.models.openai import OpenAI
from tests.clients.models.server import CALL, serving
from tests.clients.test_nanobot import OFFLINE
from tests.sealed import Repo

SDK = """
import asyncio, json, sys
from nanobot import Nanobot
from gitledger.clients.nanobot import Blocked, attach

async def main():
    async with Nanobot.from_config() as bot:
        kept = attach(bot)
        async def say(text, key="sdk:default"):
            return (await bot.run(text, session_key=key)).content
{body}
asyncio.run(main())
"""
"""A program on nanobot's SDK."""


def sdk(ours: Lab, body: str) -> str:
    """Run a program on the SDK; what it prints."""
    text = SDK.format(body=textwrap.indent(textwrap.dedent(body), " " * 8))
    ran = ours.run([install.PACKAGES["nanobot"].path, "-c", text])
    assert ran.status == 0, ran.err
    return ran.out


@pytest.fixture
def ours(request: pytest.FixtureRequest, tmp_path: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """A repository with a ledger which is nanobot's workspace; its Python finds gitledger without what that needs."""
    if not {"nanobot", "all"} & set(request.config.getoption("--client")):
        pytest.skip("nanobot is run where it is named: ./dev clients nanobot, or ./dev clients all")
    if why := install.missing("nanobot"):
        pytest.skip(why)
    with serving(OpenAI) as server:
        built = lab.build(tmp_path, home, repo, server)
        site = tmp_path / "site"
        site.mkdir()
        (site / "gitledger").symlink_to(ROOT / "gitledger")
        built.env.update({**OFFLINE, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"})
        config = {
            "providers": {"custom": {"apiKey": "none", "apiBase": f"{server.url}/v1"}},
            "agents": {"defaults": {"workspace": str(repo.path), "provider": "custom", "model": "fake-model"}},
        }
        (home / ".nanobot").mkdir()
        (home / ".nanobot" / "config.json").write_text(json.dumps(config))
        lab.begin(built)
        yield built


def test_a_turn_is_briefed_and_journalled(ours: Lab) -> None:
    sdk(ours, 'print(await say("let us look at discounts"))')
    [asked] = ours.asked("turn")
    assert lab.NEXT in asked.text
    assert [event["data"].get("answer") for event in ours.journal("turn")] == ["FAKE-REPLY it is done."]
