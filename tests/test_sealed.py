"""The seal itself: what the other tests rely on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sealed import Repo, new_repo, sealed_environment


def test_no_trace_of_the_person_at_the_machine_gets_in(tmp_path: Path) -> None:
    outside = {
        "PATH": "/bin",
        "GIT_DIR": "/x",
        "GITLEDGER_HOME": "/x",
        "SSH_AUTH_SOCK": "/x",
        "HOME": "/x",
        "LANG": "de",
    }
    inside = sealed_environment(tmp_path, outside)
    assert inside["PATH"] == "/bin"
    assert "/x" not in inside.values()
    assert "LANG" not in inside


def test_this_process_is_sealed(home: Path) -> None:
    assert os.environ["HOME"] == str(home)
    assert "SSH_AUTH_SOCK" not in os.environ
    assert not [name for name in os.environ if name.startswith("GITLEDGER_")]
    shown = subprocess.run(["git", "config", "--list", "--global"], capture_output=True, check=False)
    assert shown.stdout == b""


def test_libgit2_sees_no_configuration_of_the_person_either(home: Path, repo: Repo) -> None:
    import pygit2

    (home / ".gitconfig").write_text("[user]\n\tname = Somebody Else\n")
    repo.git("config", "--unset", "user.name")
    assert "user.name" not in pygit2.Repository(str(repo.path)).config


def test_a_repository_that_is_put_somewhere_is_as_git_left_it(repo: Repo, home: Path) -> None:
    index = repo.path / ".git/index"
    before = index.read_bytes()
    assert repo.git("diff-files") == ""  # which believes what the index says of a file, and does not look into it
    assert repo.git("status", "--porcelain") == ""
    assert index.read_bytes() == before
    assert repo.git("log", "--format=%s") == "first"
    repo.git("fsck", "--strict")
    repo.write({"README.md": "# other\n"})
    assert repo.git("status", "--porcelain") == " M README.md"


def test_random_examples_are_the_same_whatever_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []

        @given(st.text(), st.integers())
        @settings(max_examples=100)
        def look(text: str, number: int) -> None:
            seen.append((text, number))

        look()
        return seen

    before = drawn()
    more = ModuleType("more")
    more.__file__ = str(tmp_path / "more.py")
    Path(more.__file__).write_text('"""More."""\nTEXTS = ["one of ours", "another"]\nNUMBERS = [123456, 7654321]\n')
    monkeypatch.setitem(sys.modules, "more", more)
    assert drawn() == before


def test_the_same_steps_give_the_same_commits(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b"):
        repo = new_repo(tmp_path / name)
        ids.append([repo.commit("one"), repo.commit("two", {"x": "1\n"})])
    assert ids[0] == ids[1]
    assert ids[0][0] != ids[0][1]
