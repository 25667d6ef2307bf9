"""The documentation holds: what it shows works, what it lists is whole, and what it links is there."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import click
import pytest

from gitledger import bounds, cli, config, discover, errors
from gitledger.errors import LedgerError
from gitledger.schema import MACHINE_ONLY, SECTIONS, Config
from tests import cli_reference
from tests.clients import moments
from tests.process.program import works
from tests.sealed import Repo, sealed_environment
from tests.test_layers import SOURCES, layer

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
COMMANDS = {name: (command, ctx) for name, command, ctx in cli_reference.commands()}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def project_files() -> list[str]:
    """Every file that belongs to the project: tracked, or new and not ignored."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    names = found.stdout.decode().split("\0") if found.returncode == 0 else []
    if not any(names):  # an unpacked archive
        hidden = re.compile(r"(^|/)(\.venv|\.git|__pycache__|\.[a-z]+_cache)/")
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if not hidden.search(name)]
    return sorted({name for name in names if name and (ROOT / name).is_file()})


FILES = project_files()
PAGES = [name for name in FILES if name.endswith(".md")]
SPOKEN = [name for name in PAGES if not name.startswith("docs/decisions/") and name != "CHANGELOG.md"]
"""Pages that say how things are now, not how they were when somebody decided them."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2], page[: m.start()].count("\n") + 1) for m in found]


def block(page: str, language: str) -> str:
    """The one block of a language."""
    (found,) = [b.text for b in blocks(page) if b.language == language]
    return found


def tables(page: str) -> list[list[list[str]]]:
    """Every table's rows as cells, its head left out."""
    found, rows = [], []
    for line in [*page.split("\n"), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))])
        elif rows:
            found.append(rows[2:])
            rows = []
    return found


def coded(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


# ── commands ─────────────────────────────────────────────────────────────────────────────────
def test_the_command_reference_is_what_the_program_says() -> None:
    assert text("docs/cli.md") == cli_reference.reference(), "run: python -m tests.cli_reference > docs/cli.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_what_it_does_and_is_documented(name: str) -> None:
    command, _ = COMMANDS[name]
    assert command.help
    assert re.search(rf"^##+ {re.escape(name)}$", text("docs/cli.md"), re.MULTILINE)


def test_the_help_that_is_printed_without_click_is_clicks_own() -> None:
    assert (ROOT / "gitledger" / "help.txt").read_text() == cli_reference.help_text()
    shown = subprocess.run(
        [sys.executable, "-m", "gitledger", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout == cli_reference.help_text()


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_lazy_table_says_what_the_command_itself_says(name: str) -> None:
    command, _ = COMMANDS[f"gitledger {name}"]
    own = cli_reference.paragraphs(command.help or "")[0]
    assert (command.short_help or own).startswith(cli.COMMANDS[name].rstrip(".")), own


def shown_commands(page: str) -> Iterator[list[str]]:
    """The words of every gitledger command line that a page shows, in a block or as code in a sentence."""
    lines = [
        line for b in blocks(page) if b.language in ("sh", "text") for line in b.text.replace("\\\n", " ").split("\n")
    ]
    lines += re.findall(r"^    (.*gitledger .*)$", page, re.MULTILINE)
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`(gitledger [^`]+)`", prose)
    for line in lines:
        for part in re.split(r"\s[|&]{1,2}\s", line.removeprefix("$ ").strip()):
            if part.startswith("gitledger ") and "[OPTIONS]" not in part:
                try:
                    words = shlex.split(part, comments=True)
                except ValueError:
                    continue  # a text that only begins like a command
                yield [word for word in words[1:] if word not in ("<", ">", "·")]


def wrong(words: list[str]) -> str:
    """What is wrong with a command line, "" where nothing is: the command exists, and so do its options."""
    command, _ = COMMANDS["gitledger"]
    name = "gitledger"
    known = {option for p in command.params for option in p.opts}
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            if word not in known and word not in ("--help", "-h"):
                return f"{name} has no option {word}"
            skip = any(word in p.opts and not getattr(p, "is_flag", False) for p in command.params)
        elif isinstance(command, click.Group):
            if word in ("COMMAND", "…"):
                return ""
            name = f"{name} {word}"
            if name not in COMMANDS:
                return f"there is no command {name}"
            command, _ = COMMANDS[name]
            known = {option for p in command.params for option in [*p.opts, *p.secondary_opts]}
    return ""


@pytest.mark.parametrize("name", SPOKEN)
def test_every_command_line_that_a_page_shows_exists(name: str) -> None:
    assert [f"{fault}: {words}" for words in shown_commands(text(name)) if (fault := wrong(words))] == []


def test_a_command_line_that_does_not_exist_is_found() -> None:
    page = "```sh\ngitledger frobnicate\ngitledger task add X --gaol Y | cat\n```\nor `gitledger -C there status`."
    found = [wrong(words) for words in shown_commands(page)]
    assert found == ["there is no command gitledger frobnicate", "gitledger task add has no option --gaol", ""]


# ── links, paths, hosts ──────────────────────────────────────────────────────────────────────
def anchors(page: str) -> set[str]:
    """The fragments that a git host gives to a page's headings."""
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(name: str, page: str) -> Iterator[str]:
    """The relative links of a page that lead nowhere."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page, flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        there = (ROOT / name).parent / path if path else ROOT / name
        if not there.exists() or (fragment and fragment not in anchors(there.read_text(encoding="utf-8"))):
            yield target


@pytest.mark.parametrize("name", PAGES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    assert list(broken_links(name, text(name))) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = "[a](docs/guide.md#privacy) [b](nowhere.md) [c](docs/guide.md#no-such-head) [d](https://example.org)"
    assert list(broken_links("README.md", page)) == ["nowhere.md", "docs/guide.md#no-such-head"]


_HOSTS = "|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "npmjs" + r"\.(?:org|com)", "artifac" + "tory"))
_FOLDERS = "|".join("/" + folder for folder in ("home/", "Users/", r"root\b", "work/", "tmp/"))
STRANGE = re.compile(rf"(?<![\w.])(?:{_FOLDERS})|(?:{_HOSTS})")
MADE_UP = frozenset(
    {"gitledger/secrets_rules.py", "tests/test_redact.py", "tests/hostile.py", "tests/data/secrets_development.py"}
)
"""Files whose subject is such text: what must not be taken for a secret."""


def test_no_file_names_a_machines_paths_or_a_package_index() -> None:
    found = []
    for name in FILES:
        data = (ROOT / name).read_bytes()
        if b"\0" in data[:8000] or name in MADE_UP or name.endswith(".xz"):
            continue
        found += [f"{name}: {m[0]}" for m in STRANGE.finditer(data.decode("utf-8", "replace"))]
    assert found == []


# ── what is listed is whole ──────────────────────────────────────────────────────────────────
def test_the_guide_lists_every_configuration_key_with_its_default_and_its_bounds() -> None:
    rows = {coded(row[0])[0]: row for table in tables(text("docs/guide.md")) for row in table if len(row) == 5}
    values = config.flat(Config())
    assert list(rows) == list(values)
    for key, value in values.items():
        _, default, may_be, in_ledger, _ = rows[key]
        section, _, name = key.partition(".")
        assert coded(default) == [value if isinstance(value, str) and value else json.dumps(value)], key
        assert in_ledger == ("no" if section in MACHINE_ONLY else "yes"), key
        hint = get_type_hints(SECTIONS[section], include_extras=True)[name]
        for bound in getattr(hint, "__metadata__", ()):
            if isinstance(bound, bounds.Number):
                assert may_be == f"{bound.least:,} to {bound.most:,}", key
        if all(isinstance(word, str) for word in get_args(hint)):
            assert may_be == ", ".join(get_args(hint) or [may_be]), key


def test_the_guide_names_every_environment_variable() -> None:
    said = text("docs/guide.md")
    wanted = {v for source in SOURCES.values() for v in re.findall(r"[\"'](GITLEDGER_[A-Z_]+)[\"']", source)}
    assert {v for v in wanted if f"`{v}`" not in said} == set()


def error_classes() -> Iterator[type[LedgerError]]:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, LedgerError):
            yield value


def test_troubleshooting_lists_every_error_with_its_exit_code() -> None:
    codes = {name: row[0] for row in tables(text("docs/troubleshooting.md"))[0] for name in coded(row[1])}
    wanted = {kind.__name__: kind.exit_code for kind in error_classes() if kind is not errors.Blocked}
    wanted["Blocked"] = errors.Blocked("what", "mend").exit_code
    assert codes == {name: str(code) for name, code in wanted.items()}


def test_the_reference_lists_every_exit_code() -> None:
    listed = {row[0] for row in tables(text("docs/cli.md"))[0]}
    assert listed == {row[0] for row in tables(text("docs/troubleshooting.md"))[0]}


def test_the_architecture_names_every_module_in_its_layer() -> None:
    rows = [(row[0], coded(row[1])[0]) for row in tables(text("docs/architecture.md"))[0]]
    packages = {"", "render"}
    named = {name for name in SOURCES if name not in packages and not name.startswith("commands.")}
    assert sorted(name for _, name in rows) == sorted(named)
    # One that has no layer yet is what tests/test_layers.py is about.
    assert [(n, name) for n, name in rows if layer(name) not in (None, int(n))] == []


def test_every_moment_of_what_we_run_within_names_tests_that_there_are() -> None:
    for client, rows in moments.MOMENTS.items():
        named = [test for tests in rows.values() for test in tests]
        assert set(named) <= set(moments.written(client)), client
        assert len(named) == len(set(named)), client


# ── README: the transcript ───────────────────────────────────────────────────────────────────
_VARYING = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"SHA256:[A-Za-z0-9+/]+", "FINGERPRINT"),
    (r"\b[0-9a-f]{7,40}\b", "OID"),
    (r"\b[a-z0-9]{6}@gitledger\.invalid", "WRITER@gitledger.invalid"),
    (r"· by [a-z0-9]{6} ", "· by WRITER "),
    (r"just now|\d+ min ago", "AGE"),
)


def fixed(said: str) -> str:
    """A text without what differs from run to run."""
    for pattern, name in _VARYING:
        said = re.sub(pattern, name, said)
    return said


def pieces(transcript: str) -> list[str]:
    """A transcript's runs of lines, cut where `…` stands for what was left out."""
    return [fixed(piece).strip("\n") for piece in re.split(r"^…$", transcript, flags=re.MULTILINE) if piece.strip()]


def missing(transcript: str, told: str) -> list[str]:
    """The pieces that are not in what was told, in their order."""
    at, lost = 0, []
    for piece in pieces(transcript):
        found = f"\n{fixed(told)}\n".find(f"\n{piece}\n", at)
        if found < 0:
            lost.append(piece)
        else:
            at = found + len(piece)
    return lost


@dataclass(frozen=True)
class Played:
    """What the demo printed, and the folders it was started in and with as a home."""

    out: str
    place: Path
    home: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    place, home = tmp_path_factory.mktemp("place"), tmp_path_factory.mktemp("home")
    return Played(works(place, "demo", env=sealed_environment(home, os.environ)), place, home)


@pytest.mark.process
def test_the_demo_plays_to_its_end_and_touches_no_home(played: Played) -> None:
    for word in ("exact: HEAD is still", "advanced: 1 commit since", "diverged (rewritten)", "No relevant handover"):
        assert word in played.out
    assert 'Good "git" signature' in played.out
    assert "The journal makes the same tree." in played.out
    assert list(played.home.iterdir()) == list(played.place.iterdir()) == []


@pytest.mark.process
def test_the_transcript_in_the_readme_is_what_the_demo_prints(played: Played) -> None:
    shown = re.search(r"<!-- transcript.*?<!-- end of transcript -->", text("README.md"), re.DOTALL)
    assert shown
    transcript = "".join(b.text + "…\n" for b in blocks(shown[0]))
    assert len(pieces(transcript)) >= 6
    assert missing(transcript, played.out) == []


def test_a_transcript_that_has_rotted_is_found() -> None:
    told = "a\nDigest: sha1:0123456789abcdef\nb\nc"
    assert missing("Digest: sha1:fedcba9876543210\n…\nc\n", told) == []
    assert missing("Digest: md5:fedcba9876543210\n…\nc\n", told) == ["Digest: md5:OID"]
    assert missing("c\n…\na\n", told) == ["a"]


# ── the library ──────────────────────────────────────────────────────────────────────────────
def test_the_library_page_runs(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    discover.init(str(repo.path), "main", "Corner shop")
    monkeypatch.chdir(repo.path)
    source = "\n".join(b.text for b in blocks(text("docs/library.md")) if b.language == "pycon")
    test = doctest.DocTestParser().get_doctest(source, {}, "library.md", "docs/library.md", 0)
    assert len(test.examples) > 20
    said: list[str] = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed == 0, "".join(said)
