"""Every test runs sealed: no test can see, or touch, the home and the configuration of whoever runs it."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from tests import ledgers
from tests.sealed import LONG, Repo, first_repo, sealed_environment

sys.dont_write_bytecode = False  # pytest rewrites 4,500 assertions, and keeps them for the next run if it may

collect_ignore = ["clients"]  # a suite of its own, which installs what it drives: ./dev clients

# What is synced is waited for, thousands of times: so where there is room, in memory. The long form goes to the disk.
MEMORY, ROOM = "/dev/shm", 2 << 30
if not LONG and os.path.isdir(MEMORY):
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize > ROOM and not there.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
        tempfile.tempdir = MEMORY

# The same examples in every run and no clock: a failure that comes and goes tells nobody anything.
hypothesis.settings.register_profile(
    "sealed", derandomize=True, database=None, deadline=None, max_examples=100 if LONG else 40
)
hypothesis.settings.load_profile("sealed")
# It would draw from the constants of whichever modules are loaded by then, and so of the tests that ran before.
providers._get_local_constants = lambda: providers._local_constants


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


def pytest_collection_finish() -> None:
    """What was collected stays until the end: Python need not look through all of it for rings, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)  # as the program has it


_homes = itertools.count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that is this test's only one."""
    # Not by mktemp: that reads the whole folder for the next number, and there are thousands.
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    home.mkdir(parents=True)
    monkeypatch.chdir(Path(__file__).parent.parent)  # and so back there, whatever folder the test goes to
    sealed = sealed_environment(home, os.environ)
    for name in [name for name in os.environ if name not in sealed]:
        monkeypatch.delenv(name)
    for name, value in sealed.items():
        if os.environ.get(name) != value:
            monkeypatch.setenv(name, value)
    ledgers.Unused.home = str(home)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository on `main` with one commit, `first`, and a local identity."""
    return first_repo(tmp_path / "repo")


@pytest.fixture
def gnupg(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty GnuPG home with an agent of its own, ended afterwards."""
    folder = home / "g"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(folder))
    yield folder
    # By name: a test may have set the environment to another home.
    subprocess.run(["gpgconf", "--homedir", str(folder), "--kill", "all"], check=False, capture_output=True)
