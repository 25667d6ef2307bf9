"""Finding the repository: the same answer as git's own, from the file system alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gitledger import gitdir
from tests.sealed import Repo, git, new_repo


def as_git_says(folder: Path) -> tuple[str, str, str]:
    """Work tree, git folder and common folder by `git rev-parse`."""
    words = ["rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"]
    return tuple(os.path.realpath(line) for line in git(folder, *words).decode().splitlines())  # type: ignore[return-value]


def as_found(folder: Path | str) -> tuple[str, str, str]:
    found = gitdir.find(str(folder))
    assert found is not None
    return found.top, found.git_dir, found.common


def test_a_work_tree_is_found_from_its_root_and_from_any_folder_in_it(repo: Repo) -> None:
    deep = repo.path / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (repo.path, deep):
        assert as_found(folder) == as_git_says(folder)
    found = gitdir.find(str(deep))
    assert found is not None
    assert found.worktree == "main"


def test_a_linked_worktree_has_a_git_folder_and_a_name_of_its_own_and_shares_the_common_one(repo: Repo) -> None:
    linked = repo.path.parent / "elsewhere"
    repo.git("worktree", "add", "-q", str(linked))
    assert as_found(linked) == as_git_says(linked)
    found = gitdir.find(str(linked))
    assert found is not None
    assert (found.worktree, found.common) == ("elsewhere", str(repo.path / ".git"))


def test_a_submodule_is_a_repository_of_its_own(repo: Repo, tmp_path: Path) -> None:
    inner = new_repo(tmp_path / "inner")
    inner.commit("inner")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "sub")
    assert as_found(repo.path / "sub") == as_git_says(repo.path / "sub")
    found = gitdir.find(str(repo.path / "sub"))
    assert found is not None
    assert (found.worktree, found.common) == ("main", str(repo.path / ".git" / "modules" / "sub"))


def test_a_bare_repository_has_no_top_and_its_worktrees_have_one(repo: Repo, tmp_path: Path) -> None:
    bare = repo.path.parent / "bare.git"
    repo.git("clone", "--quiet", "--bare", str(repo.path), str(bare))
    linked = tmp_path / "wt"
    Repo(bare).git("worktree", "add", "-q", str(linked))
    assert as_found(bare) == ("", str(bare), str(bare))
    assert as_found(bare / "objects") == ("", str(bare), str(bare))
    assert as_found(linked) == as_git_says(linked)


def test_a_bare_repository_behind_a_gitfile_is_followed(repo: Repo, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    repo.git("clone", "--quiet", "--bare", str(repo.path), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    assert as_found(project) == (str(project), str(project / ".bare"), str(project / ".bare"))


def test_a_hook_that_starts_inside_the_git_folder_finds_its_work_tree(repo: Repo) -> None:
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", str(linked))
    assert as_found(repo.path / ".git" / "hooks") == as_git_says(repo.path)
    assert as_found(repo.path / ".git" / "worktrees" / "linked") == as_git_says(linked)


def test_a_symlink_leads_to_the_repository_behind_it(repo: Repo, tmp_path: Path) -> None:
    (repo.path / "deep").mkdir()
    (tmp_path / "link").symlink_to(repo.path / "deep")
    assert as_found(tmp_path / "link") == as_git_says(repo.path)


@pytest.mark.parametrize("options", [["--object-format=sha256"], ["--separate-git-dir=apart"]])
def test_other_kinds_of_repository_are_found(tmp_path: Path, options: list[str]) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    git(folder, "init", "--quiet", *options)
    assert as_found(folder) == as_git_says(folder)


def test_no_repository_and_no_folder_are_none(tmp_path: Path) -> None:
    assert gitdir.find(str(tmp_path)) is None
    assert gitdir.find(str(tmp_path / "never")) is None
    assert gitdir.find("with\0nul") is None


def test_a_folder_deleted_under_the_process_is_none(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = repo.path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    shutil.rmtree(gone)
    assert gitdir.find(".") is None
    assert gitdir.find(str(gone)) is None


def test_an_inner_repository_that_is_broken_does_not_give_its_work_to_the_outer_one(repo: Repo) -> None:
    inner = repo.path / "inner"
    inner.mkdir()
    for text in ("gitdir: ../nowhere\n", "rubbish\n", ""):
        (inner / ".git").write_text(text)
        assert gitdir.find(str(inner)) is None


def test_a_git_folder_without_a_repository_in_it_is_passed_by_as_git_does(repo: Repo) -> None:
    inner = repo.path / "inner"
    (inner / ".git").mkdir(parents=True)
    assert as_found(inner) == as_git_says(inner)


def test_an_unreadable_inner_repository_is_none_and_not_the_outer_one() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        Path(folder).chmod(0o755)
        new_repo(Path(folder))
        inner = new_repo(Path(folder) / "inner").path
        (inner / ".git").chmod(0)
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                if os.geteuid() == 0:
                    os.setuid(65534)
                os._exit(0 if gitdir.find(folder) is not None and gitdir.find(str(inner)) is None else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        (inner / ".git").chmod(0o755)


def test_a_fifo_in_the_place_of_a_git_file_does_not_hang(repo: Repo) -> None:
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", str(linked))
    common = repo.path / ".git" / "worktrees" / "linked" / "commondir"
    common.unlink()
    os.mkfifo(common)
    assert gitdir.find(str(linked)) is None


def test_the_environment_of_a_hook_does_not_change_the_answer(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    other = new_repo(repo.path.parent / "other")
    expected = as_git_says(repo.path)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    assert as_found(repo.path) == expected


def test_the_walk_ends_at_the_border_of_a_file_system(repo: Repo) -> None:
    inside = repo.path / "mounted"
    inside.mkdir()
    script = f"import sys; sys.path[:] = {sys.path!r}; from gitledger import gitdir; print(gitdir.find('mounted'))"
    words = [
        "unshare",
        "-rm",
        "sh",
        "-c",
        'mount -t tmpfs none mounted && exec "$@"',
        "-",
        sys.executable,
        "-c",
        script,
    ]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    done = subprocess.run(words, cwd=repo.path, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    assert done.stdout == "None\n"
    assert as_found(inside) == as_git_says(repo.path)


def test_ledgers_are_the_initialised_ones_and_the_choice_never_guesses(repo: Repo) -> None:
    common = str(repo.path / ".git")
    assert gitdir.ledgers(common) == []
    assert gitdir.choose(common, None) is None
    folder = Path(gitdir.state(common)) / "wal"
    (folder / "side").mkdir(parents=True)
    (folder / "a-file").write_text("")
    assert gitdir.ledgers(common) == ["side"]
    assert gitdir.choose(common, None) == "side"
    assert gitdir.choose(common, "main") is None
    assert gitdir.choose(common, "../wal/side") is None
    (folder / "other").mkdir()
    assert gitdir.choose(common, None) is None
    (folder / "main").mkdir()
    assert gitdir.choose(common, None) == "main"
    assert gitdir.choose(common, "other") == "other"
