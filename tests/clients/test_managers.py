"""Git hooks beside the real husky, lefthook and pre-commit, which each go on, and are left as they were."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitledger import githooks, gitshims
from tests.clients import managers
from tests.githooks import ledger_in, place_of, program, snapshot, told
from tests.sealed import Repo, new_repo

pytestmark = pytest.mark.process


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with a ledger, and the program in front of PATH."""
    program(tmp_path / "bin", monkeypatch)
    repo = new_repo(tmp_path / "work shop" / "repo")
    repo.commit("first", {"README.md": "# first\n", ".gitignore": "/said\n/node_modules\n"})
    return ledger_in(repo)


def run(repo: Repo, name: str, *words: str) -> str:
    """Run a manager in the repository, or skip where it is not installed."""
    found = managers.program(name)
    if found is None:
        pytest.skip(f"{name} {managers.VERSIONS[name]} is not installed: run python -m tests.clients.managers")
    command = ["node", str(found)] if name == "husky" else [str(found)]
    done = subprocess.run([*command, *words], cwd=repo.path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def work(repo: Repo) -> tuple[str, str]:
    """A commit, its amending, a branch and a merge: what the commit was, and what it became."""
    repo.git("commit", "--quiet", "--allow-empty", "--message", "second")
    old = repo.head()
    repo.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "second, amended")
    new = repo.head()
    repo.git("switch", "--quiet", "--create", "topic", "HEAD~1")
    repo.git("merge", "--quiet", "main")
    return old, new


ALL = ["commit", "commit", "rewrite", "checkout", "merge"]


def kinds(repo: Repo) -> list[str]:
    return [kind for kind, _ in told(repo)]


def states(repo: Repo) -> dict[str, str]:
    return {hook.name: hook.state for hook in githooks.status(place_of(repo)) if hook.state != "absent"}


INSTALLED = dict.fromkeys(gitshims.USUAL, "installed")


def test_husky(ours: Repo) -> None:
    (ours.path / "package.json").write_text('{"private": true}')
    run(ours, "husky")
    (ours.path / ".husky" / "post-commit").write_text("echo husky >>said\n")
    before = snapshot(ours.path / ".husky")
    githooks.install(place_of(ours))
    assert states(ours) == INSTALLED
    old, new = work(ours)
    assert kinds(ours) == ALL
    assert told(ours)[2][1]["pairs"] == [f"{old} {new}"]
    assert (ours.path / "said").read_text() == "husky\n" * 2
    run(ours, "husky")  # as every npm install does
    assert states(ours) == INSTALLED
    ours.git("commit", "--quiet", "--allow-empty", "--message", "third")
    assert kinds(ours) == [*ALL, "commit"]
    githooks.uninstall(place_of(ours))
    assert snapshot(ours.path / ".husky") == before


def test_lefthook(ours: Repo) -> None:
    (ours.path / "lefthook.yml").write_text(
        "pre-commit:\n  jobs:\n    - run: 'true'\npost-commit:\n  jobs:\n    - run: echo lefthook >>said\n"
    )
    run(ours, "lefthook", "install")
    before = snapshot(ours.path)
    githooks.install(place_of(ours))
    run(ours, "lefthook", "install")
    assert states(ours) == INSTALLED
    old, new = work(ours)
    assert sorted(kinds(ours)) == sorted(ALL)
    [pairs] = [data["pairs"] for kind, data in told(ours) if kind == "rewrite"]
    assert pairs == [f"{old} {new}"]
    assert (ours.path / "said").read_text() == "lefthook\n" * 2
    githooks.uninstall(place_of(ours))
    run(ours, "lefthook", "install")
    assert not (ours.path / "lefthook-local.yml").exists()
    assert set(snapshot(ours.path / ".git" / "hooks")) >= {"pre-commit", "post-commit"}
    assert {name: row for name, row in snapshot(ours.path).items() if name in before and ".git/" not in name} == {
        name: row for name, row in before.items() if ".git/" not in name
    }
    ours.git("commit", "--quiet", "--allow-empty", "--message", "third")
    assert sorted(kinds(ours)) == sorted(ALL)


def test_pre_commit(ours: Repo) -> None:
    (ours.path / ".pre-commit-config.yaml").write_text(
        "repos:\n- repo: local\n  hooks:\n  - {id: said, name: said, language: system, always_run: true, "
        "entry: 'sh -c \"echo pre-commit >>said\"', stages: [post-commit]}\n"
    )
    run(ours, "pre-commit", "install", "--hook-type", "pre-commit", "--hook-type", "post-commit")
    hooks = ours.path / ".git" / "hooks"
    before = snapshot(hooks)
    githooks.install(place_of(ours))
    assert states(ours) == INSTALLED
    work(ours)
    assert kinds(ours) == ALL
    assert (ours.path / "said").read_text() == "pre-commit\n" * 2
    # Its own installation anew keeps ours, and moves ours aside where it takes one more hook.
    run(ours, "pre-commit", "install", "--hook-type", "post-commit", "--hook-type", "post-merge")
    assert states(ours) == INSTALLED
    ours.git("switch", "--quiet", "main")
    ours.git("commit", "--quiet", "--allow-empty", "--message", "third")
    ours.git("switch", "--quiet", "topic")
    ours.git("merge", "--quiet", "main")
    assert kinds(ours) == [*ALL, "checkout", "commit", "checkout", "merge"]
    run(ours, "pre-commit", "uninstall", "--hook-type", "post-merge")
    assert states(ours) == INSTALLED
    githooks.uninstall(place_of(ours))
    assert snapshot(hooks) == before
