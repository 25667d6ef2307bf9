"""The suite of real clients: `./dev clients [NAME…]`. Not part of the default run, because it installs them.

Each test is of one client and one column of the table in docs/clients/results.md, which is made from what the
last run left in the cache.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients import agents, install, results, story
from tests.clients.agents import Agent
from tests.clients.hooks import install_hooks
from tests.clients.lab import Lab, begin, build
from tests.clients.models.server import serving
from tests.clients.story import Story
from tests.sealed import Repo, first_repo


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--client", action="append", default=[], help="a client to run; may be given more than once")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "agent" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--client") or list(install.DEFAULT)
    # What gitledger runs within is no client with hooks, and has tests of its own.
    names = [name for name in agents.MODULES if chosen == ["all"] or name in chosen]
    only = metafunc.definition.get_closest_marker("only")
    names = [name for name in names if only is None or name in only.args]
    metafunc.parametrize("agent", [agents.named(name) for name in names], ids=names)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of a client that was not chosen; one that is not installed says so itself."""
    chosen = config.getoption("--client") or list(install.DEFAULT)
    apart = [item for item in items if chosen != ["all"] and (its := results.within(item.nodeid)) and its not in chosen]
    if apart:
        config.hook.pytest_deselected(items=apart)
        items[:] = [item for item in items if item not in apart]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Share tests out so that what one story shows is read by the process that told it; groups of ours go first."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    # Not by --dist loadgroup: xdist 3.8 marks groups where pytest 9.2 does not look.
    class Stories(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("[")[2] if "/test_session.py" in nodeid else nodeid

    return Stories(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    column = item.get_closest_marker("column")
    agent = getattr(item, "callspec", None) and item.callspec.params.get("agent")  # type: ignore[attr-defined]
    if column is not None and isinstance(agent, Agent):  # it is none where no client was chosen
        report.user_properties += [("client", agent.name), ("column", column.args[0])]
    return report


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "column(name): the column of the table that the test fills")
    config.addinivalue_line("markers", "only(name, ...): the clients that the test is for")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(results.Collector(), "gitledger-client-results")


@contextmanager
def opened(agent: Agent, folder: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """The client's lab, without a ledger; skips where the client is not installed."""
    if why := install.missing(agent.name):
        pytest.skip(why)
    with serving(agent.model) as server:
        lab = build(folder, home, repo, server)
        agent.configure(lab)
        yield lab


@pytest.fixture
def lab(agent: Agent, tmp_path: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """The client's lab, without a ledger."""
    with opened(agent, tmp_path, home, repo) as lab:
        yield lab


@pytest.fixture
def started(agent: Agent, lab: Lab) -> Lab:
    """The same, with a ledger and the client's hooks."""
    begin(lab)
    install_hooks(lab, agent.name)
    return lab


_told: dict[str, Story | Exception] = {}


@pytest.fixture
def told(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The client's story, told once for all tests of it."""
    if agent.name not in _told:
        folder = tmp_path_factory.mktemp("story")
        (folder / "home").mkdir()
        with opened(agent, folder, folder / "home", first_repo(folder / "repo")) as lab:
            try:
                begin(lab)
                install_hooks(lab, agent.name)
                _told[agent.name] = story.tell(agent, lab)
            except Exception as e:
                _told[agent.name] = e
    found = _told[agent.name]
    if isinstance(found, Exception):
        raise found
    return found
