"""Hermes put in and taken out: its config.yaml to the byte, copies first, nothing of anybody else's replaced."""

from __future__ import annotations

import importlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import gitdir, install, yamlfile
from gitledger.clients.hermes import cli, setup
from gitledger.clients.hermes import settings as said
from gitledger.errors import BadData, CannotWrite, Missing
from gitledger.install import Place
from gitledger.ledger import Ledger
from gitledger.wiring import BY_NAME
from tests.ledgers import begin
from tests.sealed import LONG, Repo
from tests.test_hermes import ledger
from tests.test_hostile_commands import run
from tests.test_install import tree

__all__ = ["ledger"]  # the fixture
HERMES = BY_NAME["hermes"]
WRITTEN = [
    "",
    "# mine\n",
    "model: x\n",
    "model: x",
    "model:\r\n  default: x  # this one\r\n  api_key: ${KEY}\r\n",
    "memory:\n  # who remembers\n  provider: ''   # nobody\n  char_limit: 2200\n\nmodel: {default: x}\n",
    "memory:\n    provider: null\nplugins:\n    enabled: []\n    disabled: [other]\n",
    "plugins:\n  enabled:\n    - one\n    - two  # the second\n  extra: 1\ncontext:\n  engine: compressor\n",
    "plugins:\n  enabled:\n  - one\ncompression:\n  checkpoint_required: false\n  threshold: 0.6\n",
    "plugins:\n  enabled: [one, two]\ncompression: {}\n",
    "compression:\n  enabled: true\n# the end\n",
    "a: |\n  text: of\n  many lines\nplugins:\n",
]


@pytest.fixture
def at(home: Path) -> Place:
    place = install.place(HERMES, "user", None, os.environ)
    assert place is not None
    assert place.path == str(home / ".hermes" / "config.yaml")
    return place


def write(place: Place, text: str) -> Path:
    path = Path(place.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def values(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_bytes()) or {})


# ── the configuration ────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("text", WRITTEN)
def test_it_comes_out_byte_for_byte_and_all_that_was_there_stays_meanwhile(at: Place, home: Path, text: str) -> None:
    path = write(at, text)
    before = tree(home)
    assert install.install(at).done == "installed"
    now, then = path.read_text(), values_of(text)
    comments = [[line.partition("#")[2] for line in one.splitlines() if "#" in line] for one in (text, now)]
    assert comments[0] == comments[1]
    for name, value in values(path).items():
        kept = then.get(name)
        if isinstance(kept, dict):
            assert {k: v for k, v in value.items() if k in kept and k not in OURS} == {
                k: v for k, v in kept.items() if k not in OURS
            }
        elif name not in ("memory", "context", "compression", "plugins"):
            assert value == kept
    assert values(path)["memory"]["provider"] == "gitledger"
    assert values(path)["context"]["engine"] == "gitledger-gate"
    assert values(path)["compression"]["checkpoint_required"] is True
    assert values(path)["plugins"]["enabled"][-1] == "gitledger-gate"
    assert {row.state for row in install.wired(at)} == {"installed"}
    assert install.faults(at, os.environ) == []
    once = tree(home)
    assert install.install(at).done == "current"
    assert tree(home) == once
    assert install.uninstall(at).done == "removed"
    assert {n: d for n, d in tree(home).items() if d is not None} == {n: d for n, d in before.items() if d is not None}


OURS = ("provider", "engine", "checkpoint_required", "enabled")


def values_of(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text) or {})


@pytest.mark.parametrize("text", WRITTEN)
def test_where_somebody_wrote_to_it_since_only_ours_goes(at: Place, text: str) -> None:
    path = write(at, text)
    install.install(at)
    path.write_text(path.read_text() + "\nlater: 1\n")
    done = install.uninstall(at)
    assert done.done == "removed"
    assert "stay in" in done.notes[0]
    left = values(path)
    assert left.pop("later") == 1
    assert bare(left) == bare(values_of(text))
    assert (Path(at.path).parent / "backups" / "gitledger" / "config.yaml").read_bytes() == text.encode()


def bare(found: dict[str, Any]) -> dict[str, Any]:
    found = {name: bare(value) if isinstance(value, dict) else value for name, value in found.items()}
    return {name: value for name, value in found.items() if value not in ({}, None, [])}


def test_what_hermes_wrote_anew_is_taken_out_all_the_same(at: Place) -> None:
    path = write(at, "memory: {provider: honcho}  # mine\nplugins:\n  enabled: [b, a]\n")
    install.install(at, instead=True)
    path.write_text(yaml.safe_dump(values(path)))
    install.uninstall(at)
    assert bare(values(path)) == {"memory": {"provider": "honcho"}, "plugins": {"enabled": ["b", "a"]}}
    left = path.read_text()
    assert "backups/gitledger-2" in install.install(at, instead=True).notes[0], "the first copies stay"
    install.uninstall(at)
    assert path.read_text() == left
    assert sorted(one.name for one in (path.parent / "backups").iterdir()) == ["gitledger"]


def test_where_all_was_removed_by_hand_it_begins_anew(at: Place, home: Path) -> None:
    path = write(at, "model: x\n")
    install.install(at)
    shutil.rmtree(path.parent / "plugins")
    path.write_text("model: y\n")
    assert install.install(at).done == "installed"
    install.uninstall(at)
    assert path.read_text() == "model: y\n"
    install.install(at)
    path.unlink()
    assert "stay in" in install.uninstall(at).notes[0], "nobody has it but us"
    assert not path.exists()


WORDS = st.text("abcxyz", min_size=1, max_size=6)


@given(st.lists(WORDS, max_size=4, unique=True), st.booleans(), st.dictionaries(WORDS, WORDS, max_size=3))
@settings(max_examples=60 if LONG else 25)
def test_an_item_goes_into_a_list_of_any_form_and_out_again(names: list[str], flow: bool, more: dict[str, str]) -> None:
    text = yaml.safe_dump({"plugins": {"enabled": names, **more}, "z": 1}, default_flow_style=flow, sort_keys=False)
    document = yamlfile.parse("config.yaml", text.encode())
    put = yamlfile.with_item(document, "plugins", "enabled", "ours")
    if not put:
        assert flow  # a table on one line is left alone
        return
    after = yamlfile.parse("config.yaml", put.encode())
    assert after.values == {"plugins": {"enabled": [*names, "ours"], **more}, "z": 1}
    out = yamlfile.without_item(after, "plugins", "enabled", "ours")
    if names:
        assert out == text


# ── what is left alone ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("text", ["a: [", "a: *b\n", "- one\n", "memory: &m {provider: ''}\nx: *m\n", "a: 1\na: 2\n"])
def test_what_cannot_be_read_is_left_alone_with_what_to_paste(at: Place, home: Path, text: str) -> None:
    write(at, text)
    before = tree(home)
    ran = run("hooks", "install", "--client", "hermes")
    assert ran.status == BadData.exit_code
    assert "was left alone" in ran.err
    pasted = yaml.safe_load(ran.out.partition("config.yaml:\n")[2])
    assert pasted["memory"]["provider"] == "gitledger"
    assert tree(home) == before


@pytest.mark.parametrize("text", ["memory: {provider: honcho}\n", "context:\n  engine: lcm\n"])
def test_another_providers_place_is_taken_only_where_it_is_said(at: Place, home: Path, text: str) -> None:
    path = write(at, text)
    before = tree(home)
    ran = run("hooks", "install", "--client", "hermes")
    assert (ran.status, ran.out) == (Missing.exit_code, "")
    assert "--replace" in ran.err
    assert tree(home) == before
    assert run("hooks", "install", "--client", "hermes", "--replace").status == 0
    assert values(path)["memory"]["provider"] == "gitledger"
    assert run("hooks", "uninstall", "--client", "hermes").status == 0
    assert path.read_text() == text


def test_a_gate_that_a_person_disabled_stays_disabled(at: Place, home: Path) -> None:
    write(at, "plugins:\n  disabled: [gitledger-gate]\n")
    before = tree(home)
    with pytest.raises(Missing, match=r"plugins\.disabled"):
        install.install(at, instead=True)
    assert tree(home) == before


def test_a_folder_that_is_none_of_ours_or_was_edited_is_left_alone(at: Place, home: Path) -> None:
    theirs = home / ".hermes" / "plugins" / "gitledger" / "__init__.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine\n")
    before = tree(home)
    with pytest.raises(BadData, match="not gitledger's"):
        install.install(at)
    assert tree(home) == before
    theirs.unlink()
    install.install(at)
    theirs.write_text(theirs.read_text() + "# and mine\n")
    before = tree(home)
    assert {row.state for row in install.wired(at)} == {"outdated", "installed"}
    for step in (install.install, install.uninstall):
        with pytest.raises(BadData, match="was edited"):
            step(at)
    assert tree(home) == before


def test_a_failure_halfway_leaves_all_as_it_was(at: Place, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gitledger import settingsfile

    write(at, "model: x\n")
    before = tree(home)
    real = settingsfile.write

    def full(path: str, text: str | None, was: str | None) -> tuple[str, ...]:
        if path == at.path:
            raise CannotWrite("no space")
        return real(path, text, was)

    monkeypatch.setattr(settingsfile, "write", full)
    with pytest.raises(CannotWrite):
        install.install(at)
    assert {n: d for n, d in tree(home).items() if d is not None} == {n: d for n, d in before.items() if d is not None}
    assert not (home / ".hermes" / "plugins").exists()


# ── copies ───────────────────────────────────────────────────────────────────────────────────
def test_copies_are_kept_before_anything_is_changed_and_go_with_a_clean_uninstall(at: Place, home: Path) -> None:
    write(at, "model: x\n")
    database = home / ".hermes" / "state.db"
    with sqlite3.connect(database) as db:
        db.execute("pragma journal_mode=wal")
        db.execute("create table messages (content)")
        db.execute("insert into messages values ('in the log only')")
        db.commit()
        assert (home / ".hermes" / "state.db-wal").stat().st_size > 0
        done = install.install(at)
    db.close()
    folder = home / ".hermes" / "backups" / "gitledger"
    assert str(folder) in done.notes[0]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "config.yaml").read_text() == "model: x\n"
    with sqlite3.connect(folder / "state.db") as copy:
        assert copy.execute("select content from messages").fetchall() == [("in the log only",)]
    copy.close()
    assert stat.S_IMODE((folder / "state.db").stat().st_mode) == 0o600
    for path in home.glob(".hermes/plugins/*"):  # as Hermes' Python leaves them
        (path / "__pycache__").mkdir()
        (path / "__pycache__" / "x.pyc").write_bytes(b"x")
    install.uninstall(at)
    assert not folder.exists()
    assert not (home / ".hermes" / "plugins").exists()


# ── what is said ─────────────────────────────────────────────────────────────────────────────
def test_what_keeps_hermes_from_using_it_is_named(repo: Repo, at: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(repo)
    monkeypatch.chdir(repo.path)
    install.install(at)
    path = Path(at.path)
    good = path.read_text()
    cases = {
        "not selected (memory.provider is honcho)": good.replace("provider: gitledger", "provider: honcho"),
        "not selected (context.engine is lcm)": good.replace("engine: gitledger-gate", "engine: lcm"),
        "plugins.enabled lacks it": good.replace('enabled: ["gitledger-gate"]', "enabled: []"),
        "plugins.disabled names it": f"{good}  disabled: [gitledger-gate]\n",
        "checkpoint_required is not true": good.replace("required: true", "required: false"),
    }
    for told, text in cases.items():
        path.write_text(text)
        assert any(told in what for what, _ in install.faults(at, os.environ)), told
        assert "outdated" in {row.state for row in install.wired(at)}
        assert told in run("hooks", "status", "--client", "hermes").err
        rows = [row for row in run("doctor", "--json").json() if row["name"] == "hooks" and told in row["what"]]
        assert [row["state"] for row in rows] == ["warning"], told
    path.write_text(good)
    shutil.rmtree(path.parent / "plugins")
    for told in ("memory.provider names gitledger, whose folder is gone", "context.engine names gitledger-gate, whose"):
        assert told in run("hooks", "status").err
        assert [row["state"] for row in run("doctor", "--json").json() if told in row["what"]] == ["warning"]
    assert install.install(at).done == "updated"
    for plugin in path.parent.glob("plugins/*/found.py"):
        plugin.write_text(plugin.read_text().replace(os.path.dirname(setup._PACKAGE), "/nowhere"))
    assert any("which is gone" in what for what, _ in install.faults(at, os.environ))


def test_it_is_the_persons_own_whatever_project_it_is_said_in(repo: Repo, home: Path, tmp_path: Path) -> None:
    bare_folder = tmp_path / "no repository"
    bare_folder.mkdir()
    told = run("-C", str(bare_folder), "hooks", "install", "--client", "hermes")
    assert told.status == 0
    assert "git init" in told.out
    assert "your own settings" in told.out
    assert list(bare_folder.iterdir()) == []
    assert run("-C", str(repo.path), "hooks", "install", "--client", "hermes", "--user").status == 0
    assert [Path(name).name for name in tree(repo.path)] == ["README.md"]
    assert "hermes: nothing" not in run("-C", str(repo.path), "hooks", "uninstall", "--client", "hermes").out


def test_hermes_home_is_where_its_variable_says(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "my hermes home"
    monkeypatch.setenv("HERMES_HOME", str(other))
    assert run("hooks", "install", "--client", "hermes").status == 0
    assert (other / "plugins" / "gitledger" / "plugin.yaml").exists()
    assert not (home / ".hermes").exists()


def test_without_a_name_it_is_not_put_in_but_named(repo: Repo, home: Path) -> None:
    (home / ".hermes").mkdir()
    (home / ".claude").mkdir()
    told = run("-C", str(repo.path), "hooks", "install")
    assert "gitledger hooks install --client hermes" in told.out
    assert "gitledger hooks install --client hermes" in run("hooks", "install", "--user").out
    assert list((home / ".hermes").iterdir()) == []


def test_a_profile_that_is_active_is_named(at: Place, home: Path) -> None:
    (home / ".hermes").mkdir()
    (home / ".hermes" / "active_profile").write_text("work\n")
    assert any(f"HERMES_HOME={home}/.hermes/profiles/work" in note for note in install.install(at).notes)


def test_hermes_own_words_tell_how_it_fares(
    ledger: Ledger, at: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, status = cli.report("status")
    assert ("missing or of another version" in text, status) == (True, 1)
    install.install(at)
    text, status = cli.report("status")
    assert status == 0, text
    assert "set-up:          provider and gate are selected" in text
    assert "last event:      none" in text
    text, status = cli.report("doctor")
    assert ("never fired here" in text, status) == (True, 0)
    monkeypatch.setenv("TERMINAL_CWD", str(tmp_path))
    text, status = cli.report("status")
    assert ("git init" in text, status) == (True, 1)


def test_hermes_own_setup_does_the_same_and_asks_nothing(
    repo: Repo, at: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(repo)
    monkeypatch.chdir(repo.path)
    path = write(at, "context: {engine: lcm}\n")
    cli.set_up(str(path.parent), values(path))
    assert "context.engine is lcm" in capsys.readouterr().out
    path = write(at, "memory: {provider: honcho}\n")
    cli.set_up(str(path.parent), values(path))
    assert "8 events wired" in capsys.readouterr().out
    assert {row.state for row in install.wired(at)} == {"installed"}
    (repo.path / ".git" / "gitledger" / "program").unlink()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    cli.set_up(str(path.parent), values(path))
    assert "gitledger ended with 127: install it" in capsys.readouterr().out
    install.uninstall(at)
    assert path.read_text() == "memory: {provider: honcho}\n"


# ── the folders ──────────────────────────────────────────────────────────────────────────────
HOST = """
import sys, types
class Base:
    pass
class Compressor:
    def __init__(self, **given):
        self._session_id = "s1"
    def compress(self, messages, *given):
        return messages[:1]
for name, base in (("agent.memory_provider", "MemoryProvider"), ("agent.context_compressor", "ContextCompressor")):
    sys.modules.setdefault("agent", types.ModuleType("agent"))
    module = sys.modules[name] = types.ModuleType(name)
    setattr(module, base, Compressor if "context" in name else Base)
import importlib.util
def load(folder):
    path = folder + "/__init__.py"
    spec = importlib.util.spec_from_file_location("plugin", path, submodule_search_locations=[folder])
    module = sys.modules["plugin"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    class Context:
        def register_memory_provider(self, given):
            self.given = given
        register_context_engine = register_memory_provider
    context = Context()
    module.register(context)
    return context.given
given = load(sys.argv[1])
"""
"""A stand-in for Hermes: its two base classes, and a plugin loaded as it loads one, in a Python without gitledger."""


def host(folder: Path, more: str, cwd: Path, path: str = "/usr/bin:/bin") -> str:
    words = [sys.executable, "-I", "-S", "-c", HOST + more, str(folder)]
    env = {"PATH": path, "HOME": str(cwd)}
    ran = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_plugin_loads_our_package_from_where_it_is_and_nothing_else_of_its_environment(
    repo: Repo, at: Place, home: Path
) -> None:
    install.install(at)
    asked = "print(type(given).__module__, [p for p in sys.path if 'site-packages' in p], 'pygit2' in sys.modules)"
    told = host(home / ".hermes" / "plugins" / "gitledger", asked, repo.path)
    assert told == "gitledger.clients.hermes.provider [] False"


def test_a_package_that_moved_is_found_by_the_program_on_path(
    repo: Repo, at: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_PACKAGE", "/nowhere/gitledger")
    install.install(at)
    folder = home / ".hermes" / "plugins" / "gitledger"
    assert host(folder, "print(type(given).__name__)", repo.path) == "Gone"
    program = tmp_path / "bin" / "gitledger"
    program.parent.mkdir()
    root = Path(__file__).parent.parent
    load = f"import sys; sys.path.insert(0, {str(root)!r}); from gitledger.__main__ import main; sys.exit(main())"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -P -c '{load.replace(chr(39), chr(34))}' \"$@\"\n")
    program.chmod(0o755)
    told = host(folder, "print(type(given).__module__)", repo.path, f"{program.parent}:/usr/bin:/bin")
    assert told == "gitledger.clients.hermes.provider"


GONE = """
def tried():
    try:
        return given.on_pre_compress([], require_checkpoint=True)
    except RuntimeError as e:
        return str(e)
"""


def test_where_the_package_is_gone_the_provider_says_so_and_nothing_is_compacted_in_a_clone_with_a_ledger(
    repo: Repo, at: Place, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "_PACKAGE", "/nowhere/gitledger")
    install.install(at)
    provider, gate = (home / ".hermes" / "plugins" / name for name in ("gitledger", "gitledger-gate"))
    held = "print(given.compress([1, 2, 3]), getattr(given, '_last_summary_error', ''))"
    assert host(provider, f"{GONE}print(tried())", repo.path) == ""
    assert host(gate, held, repo.path) == "[1]"
    begin(repo)
    (repo.path / ".git" / "gitledger" / "program").write_text("/nowhere/gitledger\n")
    told = host(provider, f"{GONE}print(given.system_prompt_block(), tried())", repo.path)
    assert "is missing" in told
    assert "BLOCKED_MISSING_PREREQUISITE: no checkpoint was made" in told
    told = host(gate, held, repo.path)
    assert told.startswith("[1, 2, 3] BLOCKED_MISSING_PREREQUISITE: ")


def test_a_folder_is_what_hermes_takes_it_for(at: Place, home: Path) -> None:
    install.install(at)
    first = {name: (home / ".hermes/plugins" / name / "__init__.py").read_text()[:8192] for name in said_names()}
    assert "MemoryProvider" in first["gitledger"]
    assert "register_memory_provider" not in first["gitledger-gate"]
    assert "MemoryProvider" not in first["gitledger-gate"]
    for name in said_names():
        assert yaml.safe_load((home / ".hermes/plugins" / name / "plugin.yaml").read_text())["name"] == name


def said_names() -> tuple[str, str]:
    return said.PROVIDER, said.GATE


def test_a_package_that_is_installed_beside_hermes_says_what_to_register(at: Place) -> None:
    with (Path(__file__).parent.parent / "pyproject.toml").open("rb") as f:
        groups = tomllib.load(f)["project"]["entry-points"]
    module, _, name = groups["hermes_agent.memory_providers"][said.PROVIDER].partition(":")
    package = importlib.import_module(module)
    assert callable(getattr(package, name))
    beside = Path(str(package.__file__)).parent / "cli.py"  # where Hermes looks for more words of its own
    assert "def register_cli(" in beside.read_text()


def test_a_place_is_found_without_a_repository(home: Path) -> None:
    assert install.place(HERMES, "project", gitdir.find("."), os.environ) is None
