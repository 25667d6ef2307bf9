"""`docs/sync.md` and `docs/server.md` hold: the transcript is what two clones see, and every refusal is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitledger import refusal
from gitledger.schema import Remote
from tests import sync_transcript
from tests.test_docs import blocks, coded, fixed, tables, text

SYNC, SERVER = text("docs/sync.md"), text("docs/server.md")
HOOK = text("hooks/pre-receive")


def section(page: str, head: str) -> str:
    """What stands below a heading of the second level."""
    return page.partition(f"\n## {head}\n")[2].partition("\n## ")[0]


@pytest.mark.process
def test_the_transcript_is_what_two_clones_and_a_real_server_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the play changes it, and this puts it back
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    shown = re.search(r"<!-- transcript.*?<!-- end of transcript -->", SYNC, re.DOTALL)
    assert shown
    (block,) = blocks(shown[0])
    told = sync_transcript.play(tmp_path)
    assert fixed(block.text).rstrip("\n") == fixed(told), "run: python -m tests.sync_transcript"
    assert "merged" in told
    assert told.count("$ gitledger") == len(sync_transcript.STEPS)


def test_every_refusal_of_a_server_is_explained_with_its_code() -> None:
    rows = {says: row[1] for row in tables(section(SYNC, "What a server refuses"))[0] for says in coded(row[0])}
    for known in refusal._KNOWN:
        says = next((says for says in rows if known.what.startswith(says)), "")
        assert says, known.what
        assert rows[says] == str(known.kind.exit_code)


def test_every_finding_that_a_refused_sync_leaves_is_explained() -> None:
    said = text("gitledger/reconcile.py")
    rules = set(re.findall(r"_refused\(\s*\"([^\"]+)\"", said))
    assert {"went back", "rewritten", "vanished", "another root", "no ledger"} <= rules
    listed = {rule for row in tables(section(SYNC, "What is refused"))[0] for rule in coded(row[0])}
    assert rules - listed == set()


def test_the_page_says_how_long_a_sync_may_take_and_how_often_it_tries() -> None:
    from gitledger import sync

    assert f"`remote.deadline` seconds ({Remote().deadline})" in SYNC
    assert sync.ATTEMPTS == 10
    assert "ten times at most" in SYNC
    assert f"`was busy, or had moved on, each of {sync.ATTEMPTS} times`" in SYNC


def test_the_server_page_has_every_message_of_the_hook_and_no_other() -> None:
    said = {words for row in tables(section(SERVER, "The hook"))[0] for words in coded(row[1])}
    for words in said:
        for piece in words.split("…"):
            assert piece.strip() in HOOK, piece
    refusals = re.findall(r"refuse \"(.*)\"", HOOK)
    assert len(refusals) == len(said) + 1  # and that git itself could not list the commits
