"""The commands for configuration, schemas and completion, as they are typed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import click
import pytest

from gitledger import cli
from gitledger.errors import BadConfig, NotAllowed, NotARepository, Usage
from tests.ledgers import again, begin
from tests.sealed import Repo


def run(place: Path, *words: str) -> int:
    """A command, in this process."""
    return cli.group.main(["-C", str(place), *words], "gitledger", standalone_mode=False) or 0


def listed(repo: Repo, capfd: pytest.CaptureFixture[str]) -> dict[str, tuple[object, str]]:
    """Every key with its value and origin."""
    capfd.readouterr()
    run(repo.path, "config", "list", "--json")
    return {row["key"]: (row["value"], row["from"]) for row in json.loads(capfd.readouterr().out)["values"]}


def test_a_value_comes_from_the_nearest_place_that_says_it(
    repo: Repo, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    book = begin(repo)
    assert listed(repo, capfd)["briefing.lines"] == (60, "default")
    run(repo.path, "config", "set", "briefing.lines", "50", "--ledger")
    assert listed(repo, capfd)["briefing.lines"] == (60, "default"), "the project's policy is what is committed"
    book.checkpoint()
    assert listed(repo, capfd)["briefing.lines"] == (50, "the ledger")
    run(repo.path, "config", "set", "briefing.lines", "40")
    clone = repo.path / ".git" / "gitledger" / "config.yaml"
    assert listed(repo, capfd)["briefing.lines"] == (40, str(clone))
    run(repo.path, "config", "set", "briefing.lines", "30", "--user")
    assert listed(repo, capfd)["briefing.lines"] == (30, str(home / ".config" / "gitledger" / "config.yaml"))
    run(repo.path, "config", "get", "briefing.lines")
    assert capfd.readouterr().out == "30\n"
    run(repo.path, "config", "list")
    assert "briefing.lines" in capfd.readouterr().out


@pytest.mark.parametrize("key", ["proposer.command", "notify.urls", "remote.name", "remote.push", "signing.key"])
def test_what_starts_programs_or_reaches_a_network_is_never_put_into_a_ledger(repo: Repo, key: str) -> None:
    book = begin(repo)
    with pytest.raises(NotAllowed, match="this machine's to say") as caught:
        run(repo.path, "config", "set", key, "x", "--ledger")
    assert caught.value.exit_code == 77
    assert again(repo).view().record("config") is None
    assert book.view().record("config") is None


@pytest.mark.parametrize("place", ["--ledger", "--clone", "--user"])
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(repo: Repo, place: str) -> None:
    begin(repo)
    for key, value in (("briefing.lines", "many"), ("briefing.lines", "0"), ("briefing.line", "60")):
        with pytest.raises(BadConfig, match=key):
            run(repo.path, "config", "set", key, value, place)
    again(repo).view()
    assert again(repo).pending == ()
    assert not (repo.path / ".git" / "gitledger" / "config.yaml").exists()


def test_the_users_file_needs_no_repository_and_a_clones_does(tmp_path: Path, home: Path) -> None:
    run(tmp_path, "config", "set", "notify.urls", '["mailto://x"]', "--user")
    assert "mailto://x" in (home / ".config" / "gitledger" / "config.yaml").read_text()
    with pytest.raises(NotARepository, match="--user"):
        run(tmp_path, "config", "set", "briefing.lines", "40")


@pytest.mark.parametrize("name", ["changeset", "config", "generic-payload"])
def test_a_schema_is_printed_anywhere(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, "schema", name)
    value = json.loads(capfd.readouterr().out)
    assert value["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert value["properties"]


def test_an_unknown_schema_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="changeset, config, generic-payload"):
        run(tmp_path, "schema", "nothing")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_gitledger_itself(
    tmp_path: Path, shell: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, "completion", shell)
    script = capfd.readouterr().out
    assert "_GITLEDGER_COMPLETE" in script
    assert script.startswith("# ")
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True, timeout=300)
    with pytest.raises(click.BadParameter):
        run(tmp_path, "completion", "tcsh")
