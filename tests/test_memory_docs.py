"""`docs/memory.md` holds: the transcript is what the program says, and every rule, key and refusal is named."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import get_args

import click
import pytest

from gitledger import memoryfile, memoryset, notify
from gitledger.commands.memory import command
from gitledger.schema import Memory
from tests import memory_transcript
from tests.test_docs import blocks, fixed, text
from tests.test_memory_command import web

PAGE = text("docs/memory.md")


@pytest.mark.process
def test_the_transcript_is_what_the_program_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the play changes it, and this puts it back
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    shown = re.search(r"<!-- transcript.*?<!-- end of transcript -->", PAGE, re.DOTALL)
    assert shown
    # It shows a record, whose own fences are in it.
    block = shown[0].partition("```console\n")[2].rpartition("```\n<!-- end")[0]
    told = memory_transcript.play(tmp_path)
    assert fixed(block).rstrip("\n") == fixed(told), "run: python -m tests.memory_transcript"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_the_message_is_what_telegram_received(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    from apprise.plugins.telegram import NotifyTelegram

    report = PAGE.partition("$ gitledger memory compact\n")[2].partition("\n$ ")[0]
    shown = json.loads(re.findall(r"```json\n(\{\"chat_id.*)\n```", PAGE)[0])
    with web() as (port, received):
        monkeypatch.setattr(NotifyTelegram, "notify_url", f"http://127.0.0.1:{port}/bot")
        address = "tgram://123456789:abcdefghijklmnopqrstuvwxyz012345678/987654321/"
        assert notify.send([address], "Memory compact", report) == ()
    sent = json.loads(received[-1][1])
    assert {key: sent[key] for key in shown} == shown


def test_every_kind_and_every_key_is_explained() -> None:
    for kind in get_args(memoryset.Kind):
        assert f"`{kind}`" in PAGE
    for name in Memory.__match_args__:
        assert f"`memory.{name}`" in PAGE
    assert f"{memoryfile.BIGGEST >> 10} KiB" in PAGE
    assert blocks(PAGE)


EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"


def test_the_skill_names_commands_and_options_that_there_are() -> None:
    skill = (EXAMPLES / "nanobot/skills/gitledger-memory/SKILL.md").read_text()
    lines = [words.split() for words in re.findall(r"`gitledger memory ([^`]+)`", skill)]
    assert {words[0] for words in lines} >= {"audit", "propose", "apply", "undo", "log", "schedule"}
    for name, *rest in lines:
        found = command.commands[name]
        options = {word for one in found.params if isinstance(one, click.Option) for word in one.opts}
        assert {word for word in rest if word.startswith("--")} <= options, name


def test_the_examples_of_proposers_can_be_read_by_what_runs_them() -> None:
    scripts = sorted(path.name for path in (EXAMPLES / "proposers").iterdir() if path.is_file())
    assert scripts
    for name in scripts:
        path = EXAMPLES / "proposers" / name
        if name.endswith(".py"):
            compile(path.read_text(), name, "exec")
        else:
            subprocess.run(["sh", "-n", str(path)], check=True)
        assert f"examples/proposers/{name}" in PAGE
