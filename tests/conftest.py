"""Every test runs sealed: no test can see, or touch, the home and the configuration of whoever runs it."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from tests.sealed import Repo, new_repo, sealed_environment

# The same examples in every run and no clock: a failure that comes and goes tells nobody anything.
hypothesis.settings.register_profile("sealed", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("sealed")


@pytest.fixture(scope="session", autouse=True)
def _sealed_libgit2(tmp_path_factory: pytest.TempPathFactory) -> None:
    """libgit2 keeps its search path for global configuration from when it was loaded: point it at nothing, once."""
    try:
        import pygit2
        from pygit2.enums import ConfigLevel
    except ImportError:
        return
    nowhere = tmp_path_factory.mktemp("no-config")
    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.settings.search_path[level] = str(nowhere)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that is this test's only one."""
    home = tmp_path_factory.mktemp("home")
    sealed = sealed_environment(home, os.environ)
    for name in [name for name in os.environ if name not in sealed]:
        monkeypatch.delenv(name)
    for name, value in sealed.items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository on `main` with one commit, `first`, and a local identity."""
    repo = new_repo(tmp_path / "repo")
    repo.commit("first", {"README.md": "# first\n"})
    return repo
