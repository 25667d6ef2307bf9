"""`docs/memory.md` holds: the transcript is what the program says, and every rule, key and refusal is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from gitledger import memoryfile, memoryset
from gitledger.schema import Memory
from tests import memory_transcript
from tests.test_docs import blocks, fixed, text

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


def test_every_kind_and_every_key_is_explained() -> None:
    for kind in get_args(memoryset.Kind):
        assert f"`{kind}`" in PAGE
    for name in Memory._fields:
        assert f"`memory.{name}`" in PAGE
    assert f"{memoryfile.BIGGEST >> 10} KiB" in PAGE
    assert blocks(PAGE)
