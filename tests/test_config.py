"""Configuration: three sources, one answer, and files that a person keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger import config, yamlfile
from gitledger.errors import BadConfig, CannotWrite, Missing
from gitledger.schema import Briefing, Config, Remote
from gitledger.values import replace


class Place:
    """A common git folder with a ledger's local folder, and a user's home."""

    def __init__(self, root: Path) -> None:
        self.common = root / "repo" / ".git"
        self.clone = self.common / "gitledger" / "config.yaml"
        self.cache = self.common / "gitledger" / "config.cache"
        self.user = root / "home" / ".config" / "gitledger" / "config.yaml"
        self.clone.parent.mkdir(parents=True)
        self.user.parent.mkdir(parents=True)
        self.environ = {"HOME": str(root / "home")}

    def load(self, **ledger: object) -> tuple[Config, list[config.Finding]]:
        values = {name.replace("__", "."): value for name, value in ledger.items()}
        return config.load(values, str(self.common), self.environ)

    def refused(self, text: str | bytes) -> str:
        self.clone.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(BadConfig) as caught:
            self.load()
        assert caught.value.exit_code == 78
        assert "\n" not in str(caught.value)
        return str(caught.value).replace(str(self.clone), "FILE")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ── sources ──────────────────────────────────────────────────────────────────────────────────
def test_without_any_source_the_defaults_hold(place: Place):
    assert place.load() == (Config(), [])
    assert config.flat(Config()) == {
        "capture.text": "bounded",
        "capture.limit": 2000,
        "briefing.lines": 60,
        "briefing.chars": 9000,
        "briefing.on_start": True,
        "capsule.tokens": 3000,
        "capsule.on_prompt": False,
        "freshness.fresh_hours": 12,
        "freshness.stale_hours": 48,
        "session.idle_minutes": 30,
        "rollover.checkpoint_percent": 35,
        "rollover.fresh_percent": 45,
        "rollover.emergency_percent": 80,
        "signing.mode": "key",
        "signing.key": "",
        "remote.name": "",
        "remote.push": False,
        "remote.deadline": 120,
        "proposer.command": [],
        "proposer.deadline": 600,
        "documenter.every_turns": 0,
        "notify.urls": [],
        "memory.files": ["memory/MEMORY.md"],
        "memory.companions": ["USER.md", "SOUL.md", "keep.md"],
        "memory.backup": "",
        "memory.log": "",
        "secrets.scanner": "none",
    }


def test_the_clone_beats_the_ledger_and_the_user_beats_the_clone(place: Place):
    place.clone.write_text("briefing:\n  lines: 20\n  chars: 3000\n")
    place.user.write_text("briefing:\n  lines: 30\n")
    found, findings = place.load(briefing__lines=16, briefing__chars=2800, capture__limit=500)
    assert (found.briefing.lines, found.briefing.chars, found.capture.limit) == (30, 3000, 500)
    assert findings == []
    origins = config.origins({"briefing.lines": 16, "capture.limit": 500}, str(place.common), place.environ)
    assert origins["briefing.lines"] == str(place.user)
    assert origins["briefing.chars"] == str(place.clone)
    assert origins["capture.limit"] == "the ledger"
    assert origins["briefing.on_start"] == "default"
    assert origins.keys() == config.flat(found).keys()


def test_the_ledger_may_speak_in_tables_or_dotted_keys_and_null_is_not_set(place: Place):
    found, findings = place.load(briefing={"lines": 20, "chars": None}, session__idle_minutes=5, capture=None)
    assert (found.briefing.lines, found.briefing.chars, found.session.idle_minutes) == (20, 9000, 5)
    assert findings == []


def test_a_ledger_cannot_start_a_program_or_reach_a_network(place: Place):
    hostile = {
        "signing.mode": "git",
        "signing.key": "/k",
        "remote": {"name": "evil", "push": True},
        "proposer.command": ["sh", "-c", "x"],
        "notify.urls": ["https://x"],
        "memory": {"files": ["~/.bashrc"], "companions": ["~/.ssh/id_rsa"], "backup": "/b", "log": "/l"},
    }
    found, findings = config.load(hostile, str(place.common), place.environ)
    assert found == Config()
    keys = ["signing.mode", "signing.key", "remote.name", "remote.push", "proposer.command", "notify.urls"]
    keys += ["memory.files", "memory.companions", "memory.backup", "memory.log"]
    assert [f.where.rpartition(": ")[2] for f in findings] == keys
    place.clone.write_text("remote: {name: origin, push: true}\nproposer:\n  command: [claude, -p]\n")
    found, _ = place.load(remote__name="evil")
    assert (found.remote.name, found.remote.push, found.proposer.command) == ("origin", True, ("claude", "-p"))


def test_what_is_wrong_in_a_ledger_is_a_finding_and_the_rest_of_it_holds(place: Place):
    found, findings = place.load(
        briefing__lines="many", briefing__chars=2700, capture__text="all", new__key=1, freshness=[], session__x=1
    )
    assert found == replace(Config(), briefing=replace(Config().briefing, chars=2700))
    where = {f.where.rpartition(": ")[2] for f in findings}
    assert where == {"briefing.lines", "capture.text", "new", "freshness", "session.x"}


def test_values_that_contradict_each_other_are_refused_in_files_and_dropped_from_a_ledger(place: Place):
    found, findings = place.load(freshness__fresh_hours=100)
    assert found == Config()
    assert len(findings) == 1
    assert "freshness.fresh_hours exceeds freshness.stale_hours" in place.refused("freshness: {fresh_hours: 49}")
    place.clone.write_text("freshness: {stale_hours: 24}")
    found, findings = place.load(freshness__fresh_hours=36)
    assert (found.freshness, len(findings)) == (replace(Config().freshness, stale_hours=24), 1)


# ── what is refused ──────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# hi\nbriefing:\n  line: 60\n", "FILE: line 3: unknown key briefing.line (did you mean briefing.lines?)"),
        ("brifing:\n  lines: 60\n", "line 1: unknown key brifing"),
        ("lines: 60\n", "line 1: unknown key lines (did you mean briefing.lines?)"),
        ("briefing:\n  lines: '60'\n", "line 2: briefing.lines input should be a valid integer"),
        ("briefing:\n  lines: 5\n", "line 2: briefing.lines input should be greater than or equal to 16"),
        ("briefing:\n  on_start: 1\n", "line 2: briefing.on_start"),
        ("briefing: 60\n", "line 1: briefing input should be an object"),
        ("remote:\n  name: --upload-pack=x\n", "line 2: remote.name"),
        ("proposer:\n  command: claude -p\n", "line 2: proposer.command input should be a valid array"),
        ("proposer:\n  command: [claude, 5]\n", "line 2: proposer.command[1]"),
        ("capture:\n  limit: 2026-01-01\n", "line 2: capture.limit"),
        ("capture:\n  limit: 2026-13-45\n", "FILE is not readable YAML"),
        ("briefing: [\n", "FILE: line 2 is not YAML"),
        ("briefing:\n\tlines: 1\n", "FILE: line 2 is not YAML"),
        ("briefing: {lines: 60}\nbriefing: {chars: 2900}\n", "line 2: briefing stands here again, after line 1"),
        ("briefing:\n  lines: 60\n  lines: 61\n", "line 3: briefing.lines stands here again, after line 2"),
        ("- a\n", "FILE is no table of keys"),
        ("a: &x 1\nb: *x\n", "aliases"),
        ("? [a]\n: 1\n", "line 1: a key is a word"),
        ("x: !!python/object/apply:os.system [id]\n", "FILE: line 1 is not YAML"),
        ("--- {}\n--- {}\n", "is not YAML"),
        (b"\xff\xfe", "FILE is not readable YAML"),
        ("a: \x00\n", "FILE is not readable YAML"),
        ("[" * 5000, "FILE"),
        ("#" * 300_000, "larger than 256 KiB"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place_and_the_next_step(place: Place, text: str, words: str):
    assert words in place.refused(text)


def test_every_fault_of_a_file_is_named_at_once(place: Place):
    told = place.refused("briefing:\n  line: 1\n  chars: x\nfoo: 1\n")
    assert [f"line {n}:" in told for n in (2, 3, 4)] == [True, True, True]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "briefing:\n", "briefing:\n  lines:\n", "{}"])
def test_a_file_that_says_nothing_changes_nothing(place: Place, text: str):
    place.clone.write_text(text)
    assert place.load() == (Config(), [])


def test_a_file_may_say_dotted_keys_too(place: Place):
    place.clone.write_text("briefing.lines: 20\nbriefing: {chars: 2900}\n")
    assert place.load()[0].briefing == Briefing(20, 2900, True)
    assert "briefing.lines stands here again" in place.refused("briefing.lines: 20\nbriefing: {lines: 30}\n")


def test_a_file_that_cannot_be_read_is_named(place: Place):
    place.clone.mkdir()
    with pytest.raises(CannotWrite, match=r"config\.yaml is not a plain file"):
        place.load()


# ── the cache ────────────────────────────────────────────────────────────────────────────────
def test_the_cache_answers_as_the_files_do_and_follows_them(place: Place):
    place.clone.write_text("proposer: {command: [a, b]}\n")
    first = place.load(new__key=1)
    assert place.cache.stat().st_mode & 0o777 == 0o600
    assert place.load(new__key=1) == first
    assert first[0].proposer.command == ("a", "b")
    place.clone.write_text("proposer: {command: [c]}\n")
    assert place.load(new__key=1)[0].proposer.command == ("c",)
    assert place.load()[1] == []
    place.clone.unlink()
    assert place.load() == (Config(), [])
    assert [p.name for p in place.cache.parent.iterdir()] == ["config.cache"]


def test_the_cache_is_what_answers_while_nothing_changes(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.clone.write_text("briefing: {lines: 20}\n")
    expected = place.load()
    monkeypatch.setattr(yamlfile, "parse", None)  # whoever called it would fail
    assert place.load() == expected


@pytest.mark.parametrize("damage", [b"", b"x", b"\x00" * 99, b'{"key": 1}', b"cut"])
def test_a_damaged_cache_is_ignored_and_mended(place: Place, damage: bytes):
    place.clone.write_text("briefing: {lines: 20}\n")
    expected = place.load()
    whole = place.cache.read_bytes()
    place.cache.write_bytes(whole[:-9] if damage == b"cut" else damage)
    assert place.load() == expected
    assert place.cache.read_bytes() == whole
    place.cache.write_bytes(whole.replace(b"20", b"99"))
    assert place.load() == expected


def test_nothing_is_written_where_there_is_no_ledger(place: Place):
    place.clone.parent.rmdir()
    place.user.write_text("briefing: {lines: 20}\n")
    assert place.load()[0].briefing.lines == 20
    assert list(place.common.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_costs_only_the_cache(place: Place):
    place.clone.write_text("briefing: {lines: 20}\n")
    place.clone.parent.chmod(0o500)
    try:
        assert place.load()[0].briefing.lines == 20
    finally:
        place.clone.parent.chmod(0o700)
    assert not place.cache.exists()


def loaded(place: Place) -> set[str]:
    """The heavy modules that a process has loaded after it read its configuration."""
    script = (
        "import sys; from gitledger import config; "
        f"config.load({{}}, {str(place.common)!r}, {place.environ!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {"yaml", "pydantic", "platformdirs", "difflib", "gitledger.proposal"} & set(done.stdout.split())


def test_without_files_or_with_known_ones_neither_yaml_nor_pydantic_is_loaded(place: Place):
    assert loaded(place) == set()
    place.clone.write_text("briefing: {lines: 20}\n")
    assert {"yaml", "pydantic"} <= loaded(place)
    assert loaded(place) == set()


# ── where the user's file is ─────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("xdg", ["/x/config", "", "relative"])
@pytest.mark.parametrize("home", ["/h/me", "", "relative"])
def test_the_users_file_is_where_platformdirs_says(platform: str, xdg: str, home: str, monkeypatch: pytest.MonkeyPatch):
    from platformdirs.macos import MacOS
    from platformdirs.unix import Unix

    monkeypatch.setenv("XDG_CONFIG_HOME", xdg)
    monkeypatch.setenv("HOME", home)
    kind = MacOS if platform == "darwin" else Unix
    assert config.user_path(os.environ, platform) == f"{kind('gitledger').user_config_dir}/config.yaml"


# ── get and set ──────────────────────────────────────────────────────────────────────────────
def test_a_key_is_got_by_its_dotted_name_and_an_unknown_one_names_the_nearest():
    assert config.get(Config(), "briefing.lines") == 60
    assert config.get(Config(), "notify.urls") == []
    with pytest.raises(BadConfig, match=r"unknown key briefing\.line \(did you mean briefing\.lines\?\)"):
        config.get(Config(), "briefing.line")


@pytest.mark.parametrize(
    ("before", "dotted", "text", "after"),
    [
        ("", "briefing.lines", "20", "briefing:\n  lines: 20\n"),
        ("# mine\n", "briefing.lines", "20", "# mine\nbriefing:\n  lines: 20\n"),
        ("briefing:\n  lines: 60 # few\n", "briefing.lines", "20", "briefing:\n  lines: 20 # few\n"),
        ("briefing:\n  lines:\n", "briefing.lines", "20", "briefing:\n  lines: 20\n"),
        (
            "briefing: # b\n    chars: 2900 # c\n# end\nsession: {idle_minutes: 5}\n",
            "briefing.lines",
            "20",
            "briefing: # b\n    chars: 2900 # c\n    lines: 20\n# end\nsession: {idle_minutes: 5}\n",
        ),
        ("briefing:\n# later\nsession:\n", "briefing.lines", "20", "briefing:\n  lines: 20\n# later\nsession:\n"),
        ("session: {idle_minutes: 5}", "capture.text", "none", "session: {idle_minutes: 5}\ncapture:\n  text: none\n"),
        ("remote: {name: a}\n", "remote.name", "up/stream", "remote: {name: up/stream}\n"),
        ("remote:\r\n  name: 'a'\r\n", "remote.push", "yes", "remote:\r\n  name: 'a'\r\n  push: true\r\n"),
        (
            "proposer:\n  command: [a,\n    b] # x\n",
            "proposer.command",
            "claude -p 'a b'",
            'proposer:\n  command: ["claude", "-p", "a b"] # x\n',
        ),
        (
            "proposer:\n  command:\n    - a\n    - b\n# x\n",
            "proposer.command",
            '["c"]',
            'proposer:\n  command:\n    ["c"]\n# x\n',
        ),
        ("signing:\n  key: /a\n", "signing.key", "on", 'signing:\n  key: "on"\n'),
        ("signing:\n  key: /a\n", "signing.key", "~/k: #1 é", 'signing:\n  key: "~/k: #1 é"\n'),
        (
            "unknown: 1\nbriefing: {}\n",
            "session.idle_minutes",
            "7",
            "unknown: 1\nbriefing: {}\nsession:\n  idle_minutes: 7\n",
        ),
        (
            "briefing: {chars: 2900}  # mine\n",
            "briefing.lines",
            "20",
            "briefing: {chars: 2900, lines: 20}  # mine\n",
        ),
        ("briefing: {}\n", "briefing.lines", "20", "briefing: {lines: 20}\n"),
    ],
)
def test_setting_a_key_changes_its_own_line_only(place: Place, before: str, dotted: str, text: str, after: str):
    if before:
        place.clone.write_bytes(before.encode())
    config.set_value(str(place.clone), dotted, text)
    assert place.clone.read_bytes().decode() == after


@pytest.mark.parametrize(
    "before",
    [
        "{briefing: {chars: 2900}}\n",
        "briefing: null\n",
        "--- {}\n",
        "session: {idle_minutes: 5}\n...\n# x\n",
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_alone(place: Place, before: str):
    place.clone.write_text(before)
    place_before = place.clone.stat()
    with pytest.raises(BadConfig, match=r"set briefing\.lines in it by hand"):
        config.set_value(str(place.clone), "briefing.lines", "20")
    assert place.clone.read_text() == before
    assert place.clone.stat().st_ino == place_before.st_ino


@pytest.mark.parametrize(
    ("dotted", "text", "words"),
    [
        ("briefing.lines", "many", "whole number"),
        ("briefing.lines", "5", "greater than or equal to 16"),
        ("briefing.on_start", "maybe", "true or false"),
        ("capture.text", "all", "capture.text cannot be 'all'"),
        ("remote.name", "--evil", "remote.name cannot be"),
        ("proposer.command", "['a'", "is a list"),
        ("proposer.command", "it's", "is a list"),
        ("briefing.line", "5", "did you mean briefing.lines"),
        ("briefing", "5", "unknown key briefing"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_anything_is_written(
    place: Place, dotted: str, text: str, words: str
):
    with pytest.raises(BadConfig, match=words):
        config.set_value(str(place.clone), dotted, text)
    assert not place.clone.exists()


def test_what_was_set_is_what_is_loaded(place: Place):
    for dotted, text in [("remote.name", "origin"), ("remote.push", "on"), ("notify.urls", "tgram://a mailto://b")]:
        config.set_value(str(place.clone), dotted, text)
    found, _ = place.load()
    assert (found.remote, found.notify.urls) == (Remote("origin", True, 120), ("tgram://a", "mailto://b"))
    assert place.clone.stat().st_mode & 0o777 == 0o600
    assert {p.name for p in place.clone.parent.iterdir()} == {"config.yaml", "config.cache"}


def test_a_link_to_a_file_elsewhere_stays_a_link_and_modes_stay(place: Place, tmp_path: Path):
    real = tmp_path / "dotfiles.yaml"
    real.write_text("briefing:\n  lines: 30\n")
    real.chmod(0o640)
    place.user.symlink_to(real)
    config.set_value(str(place.user), "briefing.lines", "20", users=True)
    assert place.user.is_symlink()
    assert place.load()[0].briefing.lines == 20
    assert real.read_text() == "briefing:\n  lines: 20\n"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_folder_is_made_only_where_that_is_asked_for(place: Place, tmp_path: Path):
    path = tmp_path / "new" / "gitledger" / "config.yaml"
    with pytest.raises(Missing, match="gitledger init"):
        config.set_value(str(path), "briefing.lines", "20")
    assert not path.parent.parent.exists()
    config.set_value(str(path), "briefing.lines", "20", users=True)
    assert path.read_text() == "briefing:\n  lines: 20\n"
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_file_that_cannot_be_written_stays_as_it_was(place: Place):
    place.clone.write_text("briefing:\n  lines: 30\n")
    place.clone.parent.chmod(0o500)
    try:
        with pytest.raises(CannotWrite):
            config.set_value(str(place.clone), "briefing.lines", "20")
    finally:
        place.clone.parent.chmod(0o700)
    assert place.clone.read_text() == "briefing:\n  lines: 30\n"
    assert [p.name for p in place.clone.parent.iterdir()] == ["config.yaml"]
