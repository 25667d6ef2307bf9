"""What agents are told: it says nothing that is not so, goes where each reads it, and comes out without a trace."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from gitledger import cli, gitdir, guidance
from gitledger.errors import BadData
from gitledger.guidance import Sheet
from gitledger.wiring import BY_NAME, CLIENTS, Scope
from tests.sealed import Repo
from tests.test_hostile_commands import run
from tests.test_install import tree


def at(name: str, repo: Repo, scope: Scope = "project") -> Sheet | None:
    return guidance.sheet(BY_NAME[name], scope, gitdir.find(str(repo.path)), os.environ)


def one(name: str, repo: Repo) -> Sheet:
    found = at(name, repo)
    assert found is not None
    return found


# ── what it says ─────────────────────────────────────────────────────────────────────────────
def commands() -> list[str]:
    return re.findall(r"`(gitledger [^`]+)`", guidance.text())


@pytest.mark.parametrize("told", commands())
def test_every_command_that_it_names_is_one_and_takes_those_words(told: str) -> None:
    words = shlex.split(told)[1:]
    command: click.Command = cli.group
    context = click.Context(command, **command.context_settings)
    while isinstance(command, click.Group):
        name, *words = words
        if name == "--help":
            return
        found = command.get_command(context, name)
        assert found is not None, told
        command, context = found, click.Context(found, parent=context, **found.context_settings)
    if words != ["--help"]:
        command.parse_args(context, words)  # raises for an option or a word too many


def test_every_option_that_it_names_alone_is_one_of_a_task_command() -> None:
    task = cli.group.get_command(click.Context(cli.group), "task")
    assert isinstance(task, click.Group)
    known = {option for one in task.commands.values() for p in one.params for option in p.opts}
    named = {words.split()[0] for words in re.findall(r"`(--[^`]+)`", guidance.text())}
    assert len(named) >= 4
    assert named <= known


def test_it_is_short_enough_to_be_read_and_says_when_a_task_is_a_new_one() -> None:
    rows = guidance.text().split("\n")
    assert len(rows) <= 60
    assert max(map(len, rows)) <= 130
    flat = " ".join(rows)
    for said in ("30 to 90 minutes", "acceptance criteria of its own", "another subsystem", "tested separately",
                 "blocked", "handed to somebody else", "one next action", "Git is the truth"):  # fmt: skip
        assert said in flat


# ── in and out ───────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("name", BY_NAME)
def test_where_there_was_nothing_there_is_nothing_again(repo: Repo, home: Path, name: str, scope: Scope) -> None:
    place = at(name, repo, scope)
    if place is None:
        assert (name, scope) in (("cursor", "user"), ("hermes", "user"), ("nanobot", "user"))
        return
    before = tree(repo.path, home)
    assert guidance.state(place) == "absent"
    assert guidance.install(place) == "installed"
    assert guidance.state(place) == "installed"
    assert guidance.install(place) == "current"
    text = Path(place.path).read_text()
    assert text.count("# Working with the project ledger") == 1
    if text.startswith("---\n"):  # a head that a client reads
        assert yaml.safe_load(text.split("---\n")[1])
    assert guidance.uninstall(place) == "removed"
    # The user's data folder, where it was remembered what was made, stays.
    assert {path for path in tree(repo.path, home) if ".local" not in path} == before.keys()
    assert guidance.uninstall(place) == "absent"


def test_a_skill_has_the_name_of_its_folder_and_a_description(repo: Repo) -> None:
    place = one("claude-code", repo)
    guidance.install(place)
    head = yaml.safe_load(Path(place.path).read_text().split("---\n")[1])
    assert head["name"] == Path(place.path).parent.name
    assert 50 < len(head["description"]) < 500


OWN = ("", "# Rules\n\nBe kind.\n", "no line end", "# Rules\r\n\r\nBe kind.\r\n", "\ufeffmarked", "a\n\n\n", "\n")


@pytest.mark.parametrize("text", OWN, ids=repr)
def test_what_a_person_wrote_is_there_byte_for_byte_before_and_after(repo: Repo, text: str) -> None:
    path = repo.path / "AGENTS.md"
    path.write_bytes(text.encode())
    for order in (("codex", "pi"), ("pi", "codex")):
        for name in ("codex", "pi"):
            guidance.install(one(name, repo))
        held = path.read_bytes()
        assert held.startswith(text.encode())
        assert held.count(b"# Working with the project ledger") == 1
        assert b"\r\n" not in held or held.count(b"\n") == held.count(b"\r\n")
        assert guidance.uninstall(one(order[0], repo)) == "updated"
        assert guidance.state(one(order[1], repo)) == "installed"
        assert guidance.uninstall(one(order[1], repo)) == "removed"
        assert path.read_bytes() == text.encode()


def test_what_was_written_around_it_since_stays(repo: Repo) -> None:
    path = repo.path / "AGENTS.md"
    path.write_text("above\n")
    guidance.install(one("codex", repo))
    path.write_text("new above\n" + path.read_text() + "below\n")
    guidance.install(one("droid", repo))
    for name in ("codex", "droid"):
        guidance.uninstall(one(name, repo))
    assert path.read_text() == "new above\nabove\nbelow\n"
    path.unlink()
    guidance.install(one("codex", repo))
    path.write_text(path.read_text() + "mine\n")
    guidance.uninstall(one("codex", repo))
    assert path.read_text() == "mine\n"


def test_a_text_that_somebody_edited_is_left_alone_and_an_older_one_brought_up_to_date(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = one("gemini", repo)
    path = Path(place.path)
    guidance.install(place)
    with monkeypatch.context() as older:
        older.setattr(guidance, "text", lambda: "# What it said once\n")
        guidance.uninstall(place)
        guidance.install(place)
    assert guidance.state(place) == "outdated"
    assert guidance.install(place) == "updated"
    path.write_text(path.read_text().replace("Git is the truth", "I am the truth"))
    edited = path.read_bytes()
    for step in (guidance.install, guidance.uninstall):
        with pytest.raises(BadData, match="was edited since it was installed"):
            step(place)
    path.write_bytes(edited * 2)
    with pytest.raises(BadData, match="twice"):
        guidance.install(place)
    assert path.read_bytes() == edited * 2


def test_hooks_install_puts_it_in_where_asked_and_uninstall_takes_it_out(
    repo: Repo, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.path)
    (repo.path / "AGENTS.md").write_text("mine\n")
    before = tree(repo.path, home)
    assert "guidance" not in run("hooks", "install", "--client", "codex").out
    assert (repo.path / "AGENTS.md").read_text() == "mine\n"
    clients = [word for client in CLIENTS for word in ("--client", client.name)]
    said = run("hooks", "install", "--guidance", *clients)
    assert said.status == 0, said
    assert said.out.count("guidance") == len(CLIENTS)
    rows = run("hooks", "status", "--json", terminal=False).json()["guidance"]
    assert {(row["client"], row["scope"], row["state"]) for row in rows} == {
        (client.name, "project", "installed") for client in CLIENTS
    }
    assert "guidance:\n  claude-code  project  installed " in run("hooks", "status").out
    once = run("hooks", "uninstall", "--client", "codex")
    assert "codex: guidance stays for others in" in once.out
    run("hooks", "uninstall")
    run("hooks", "uninstall", "--user")
    assert {name: data for name, data in tree(repo.path, home).items() if data is not None} == {
        name: data for name, data in before.items() if data is not None
    }
    assert "leave out --user" in run("hooks", "install", "--guidance", "--user", "--client", "cursor").err
