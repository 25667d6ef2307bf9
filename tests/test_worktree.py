"""Where a repository stands and how it came there, against real git."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gitledger import errors, fingerprint, gitcli, worktree
from gitledger.gitdir import GitDir, find
from gitledger.model import DETACHED, UNBORN, Position, Relation
from gitledger.trust import divergence
from tests.patience import begun, ended, until
from tests.sealed import Repo, identify, new_repo


def at(path: Path) -> GitDir:
    found = find(str(path))
    assert found is not None
    return found


def position(repo: Repo) -> Position:
    return worktree.position(at(repo.path))


def relate(repo: Repo, recorded: Position) -> Relation:
    return worktree.relate(at(repo.path), recorded, position(repo))


def label(repo: Repo, recorded: Position) -> tuple[str, str]:
    gitdir, present = at(repo.path), position(repo)
    found = divergence(
        recorded,
        present,
        worktree.relate(gitdir, recorded, present),
        same_ledger=True,
        merged=worktree.merged(gitdir, recorded, present),
    )
    return found.label, found.reason


def added_tree(repo: Repo, scratch: Path) -> str:
    """The tree that stock git would make of the whole work tree, by an index of its own."""
    index = {"GIT_INDEX_FILE": str(scratch / "index-of-its-own")}
    if (repo.path / ".git" / "index").exists():
        shutil.copy(repo.path / ".git" / "index", index["GIT_INDEX_FILE"])
    repo.git("add", "--all", env=index)
    return repo.git("write-tree", env=index)


# ── position ─────────────────────────────────────────────────────────────────────────────────
def test_a_clean_work_tree_has_its_heads_tree_as_fingerprint(repo: Repo) -> None:
    assert position(repo) == Position("main", repo.head(), repo.tree(), 0, repo.tree(), "main", "")


def test_a_branch_with_slashes_keeps_its_whole_name(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "feat/ä b".replace(" ", "-"))
    assert position(repo).branch == "feat/ä-b"


def test_detached_and_unborn_are_told(repo: Repo, tmp_path: Path) -> None:
    repo.git("switch", "-q", "--detach")
    assert position(repo).branch == DETACHED
    empty = new_repo(tmp_path / "empty")
    found = position(empty)
    assert (found.branch, found.head, found.tree, found.dirty) == ("main", UNBORN, "", 0)
    empty.write({"a": "1\n"})
    assert position(empty).fingerprint == added_tree(empty, tmp_path)


def test_the_caller_may_read_the_tree_itself(repo: Repo) -> None:
    assert worktree.position(at(repo.path), read_tree=lambda oid: "tree of " + oid).tree == "tree of " + repo.head()


def test_no_fingerprint_is_taken_where_none_is_wanted(repo: Repo) -> None:
    repo.write({"new": "1"})
    found = worktree.position(at(repo.path), fingerprint=False)
    assert (found.dirty, found.fingerprint) == (1, "")


def test_git_status_leaves_the_index_as_it_was(repo: Repo) -> None:
    index = repo.path / ".git" / "index"
    before = index.read_bytes(), index.stat().st_mtime_ns
    # A touched file makes plain `git status` write the index.
    os.utime(repo.path / "README.md", (1, 1))
    position(repo)
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
    repo.git("status")
    assert index.read_bytes() != before[0]


def test_each_operation_under_way_is_named(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "side")
    side = repo.commit("side", {"README.md": "side\n"})
    repo.git("switch", "-q", "main")
    ours = repo.commit("ours", {"README.md": "ours\n"})
    assert position(repo).operation == ""
    for command, word in [
        (("merge", "side"), "merge"),
        (("cherry-pick", side), "cherry-pick"),
        (("rebase", "side"), "rebase"),
    ]:
        with pytest.raises(AssertionError, match=r"CONFLICT|could not"):
            repo.git(*command)
        found = position(repo)
        assert (found.operation, found.dirty) == (word, 1)
        assert not found.fingerprint.startswith("~")
        repo.git(command[0], "--abort")
    repo.commit("more", {"README.md": "more\n"})
    with pytest.raises(AssertionError, match=r"CONFLICT|could not"):
        repo.git("revert", ours)
    assert position(repo).operation == "revert"
    repo.git("revert", "--abort")
    repo.git("bisect", "start")
    assert position(repo).operation == "bisect"


def test_a_hooks_environment_does_not_change_the_answer(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_repo(tmp_path / "other")
    other.commit("elsewhere")
    expected = position(repo)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "status.showUntrackedFiles")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "no")
    assert position(repo) == expected


def test_a_linked_worktree_stands_on_its_own(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "wt", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    head = linked.commit("in the worktree")
    found = position(linked)
    assert (found.branch, found.head, found.worktree, found.dirty) == ("wt", head, "linked", 0)
    assert position(repo).branch == "main"
    with pytest.raises(AssertionError):
        linked.git("cherry-pick", "-n", "--no-such")
    linked.write({"in the worktree.txt": "changed\n"})
    assert position(linked).dirty == 1
    assert position(repo).dirty == 0


def test_a_bare_repository_has_no_position(repo: Repo, tmp_path: Path) -> None:
    bare = repo.clone(tmp_path / "bare.git", "--bare")
    with pytest.raises(errors.NotARepository, match="work tree"):
        position(bare)


# ── fingerprint ──────────────────────────────────────────────────────────────────────────────
def file_to_folder(path: Path) -> None:
    (path / "README.md").unlink()
    Repo(path).write({"README.md/in": "in"})


def folder_to_file(path: Path) -> None:
    shutil.rmtree(path / "src")
    (path / "src").write_text("file")


def file_to_symlink(path: Path) -> None:
    (path / "README.md").unlink()
    (path / "README.md").symlink_to("src")


DIRT: dict[str, Callable[[Path], object]] = {
    "an edit": lambda p: (p / "README.md").write_text("edited\n"),
    "a deletion": lambda p: os.unlink(p / "README.md"),
    "a new file": lambda p: (p / "new").write_text("new\n"),
    "an executable": lambda p: os.chmod(p / "src" / "deep" / "code.py", 0o755),
    "a folder gone": lambda p: shutil.rmtree(p / "src"),
    "a new folder with ignored files": lambda p: Repo(p).write({"out/kept": "k", "out/x.o": "o"}),
    "a symlink": lambda p: os.symlink("nowhere/at all", p / "link"),
    "a file that became a folder": file_to_folder,
    "a folder that became a file": folder_to_file,
    "a file that became a symlink": file_to_symlink,
    "spaces, umlauts, quotes": lambda p: Repo(p).write({'ein Ordner ü/"quoted" 日本': "x"}),
    "a name with line ends": lambda p: (p / '"two\r\nlines').write_text("x"),
    "a name that is no UTF-8": lambda p: os.close(os.open(os.fsencode(p) + b"/caf\xe9", os.O_CREAT)),
    "crlf under text=auto": lambda p: Repo(p).write({".gitattributes": "* text=auto\n", "c": "a\r\n"}),
}


def furnished(repo: Repo) -> Repo:
    repo.commit("files", {"src/deep/code.py": "pass\n", "src.txt": "sorts beside src\n", ".gitignore": "*.o\n"})
    return repo


@pytest.mark.parametrize("kind", DIRT)
def test_the_fingerprint_is_the_tree_that_committing_all_would_make(kind: str, repo: Repo, tmp_path: Path) -> None:
    furnished(repo)
    clean = position(repo).fingerprint
    DIRT[kind](repo.path)
    found = position(repo)
    assert found.dirty
    assert found.fingerprint == added_tree(repo, tmp_path)
    assert found.fingerprint != clean
    assert found.tree == clean
    repo.git("add", "--all")
    assert position(repo).fingerprint == found.fingerprint
    repo.git("commit", "-q", "-m", "as it was")
    after = position(repo)
    assert (after.fingerprint, after.tree, after.dirty) == (found.fingerprint, found.fingerprint, 0)


def test_a_change_that_is_staged_and_taken_back_is_no_other_content(repo: Repo) -> None:
    clean = position(repo).fingerprint
    repo.write({"README.md": "other\n"})
    repo.git("add", "README.md")
    repo.write({"README.md": "# first\n"})
    repo.git("rm", "-q", "--cached", "--force", "README.md")
    found = position(repo)
    assert (found.dirty, found.fingerprint) == (1, clean)


def test_the_fingerprint_of_a_sha256_repository_is_its_own_kind_of_tree(tmp_path: Path) -> None:
    repo = furnished(new_repo(tmp_path / "sha256", "--object-format=sha256"))
    repo.write({"new": "1", "src/deep/more": "2"})
    found = position(repo)
    assert len(found.head) == 64
    assert found.fingerprint == added_tree(repo, tmp_path)
    assert worktree.object_format(at(repo.path)) == "sha256"


def test_a_fifo_never_blocks(repo: Repo) -> None:
    os.mkfifo(repo.path / "untracked")
    assert position(repo).dirty == 0  # git itself does not see it
    (repo.path / "README.md").unlink()
    os.mkfifo(repo.path / "README.md")
    found = position(repo)
    assert found.dirty == 1
    assert found.fingerprint.startswith("~")


def test_beyond_the_bounds_size_and_time_stand_for_the_content(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "MAX_BYTES", 10)
    repo.write({"big": "x" * 11})
    found = position(repo).fingerprint
    assert found.startswith("~")
    assert position(repo).fingerprint == found
    repo.write({"big": "x" * 12})
    assert position(repo).fingerprint not in ("", found)


def test_too_many_paths_are_not_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "MAX_PATHS", 2)
    repo.write({"many/1": "", "many/2": "", "many/3": ""})
    assert position(repo).fingerprint.startswith("~")


def test_a_submodule_counts_by_its_commit_and_never_exactly_when_dirty_inside(repo: Repo, tmp_path: Path) -> None:
    inner = new_repo(tmp_path / "inner")
    inner.commit("inner")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.path.as_uri(), "sub")
    repo.commit("with a submodule", {})
    assert position(repo).dirty == 0
    sub = identify(Repo(repo.path / "sub"))
    sub.commit("moved on")
    found = position(repo)
    assert found.dirty == 1
    assert found.fingerprint == added_tree(repo, tmp_path)
    sub.write({"inner.txt": "dirty\n"})
    assert position(repo).fingerprint.startswith("~")
    inside = position(sub)
    assert (inside.branch, inside.dirty) == ("main", 1)


def test_a_sparse_checkout_is_clean_and_whole(repo: Repo, tmp_path: Path) -> None:
    repo.commit("two folders", {"a/1": "1\n", "b/2": "2\n"})
    repo.git("sparse-checkout", "set", "a")
    assert not (repo.path / "b").exists()
    assert position(repo).fingerprint == repo.tree()
    repo.write({"a/1": "changed\n"})
    found = position(repo)
    assert found.dirty == 1
    assert found.fingerprint == added_tree(repo, tmp_path)


# ── the relation of two positions, row by row ────────────────────────────────────────────────
def test_the_same_head_is_exact_clean_or_dirty(repo: Repo) -> None:
    then = position(repo)
    assert label(repo, then) == ("exact", "")
    repo.write({"README.md": "dirty\n"})
    dirty = position(repo)
    assert label(repo, then) == ("exact", "")
    assert dirty.fingerprint != then.fingerprint
    repo.git("checkout", "-q", "README.md")
    assert label(repo, dirty) == ("exact", "")


def test_a_descendant_is_advanced_with_its_commits_newest_first(repo: Repo) -> None:
    then = position(repo)
    one, two = repo.commit("one"), repo.commit("zwei: größer")
    assert label(repo, then) == ("advanced", "")
    assert relate(repo, then) == Relation("descends", ((two, "zwei: größer"), (one, "one")), 2)


def test_only_twenty_commits_are_named_but_all_are_counted(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worktree, "COUNTED", 22)
    then = position(repo)
    for n in range(25):
        repo.commit(f"c{n}", {})
    found = relate(repo, then)
    assert (found.count, len(found.commits), found.commits[0][1]) == (25, 20, "c24")


def test_clocks_that_run_wild_do_not_hide_an_ancestor(repo: Repo) -> None:
    then = position(repo)
    for n in range(12):
        repo.write({"f": str(n)})
        repo.git("add", "f")
        repo.git("commit", "-q", "-m", f"c{n}", "--date", f"{10**9 - n * 10**7} +0000")
    assert label(repo, then) == ("advanced", "")


def test_reset_behind_is_rewound(repo: Repo) -> None:
    repo.commit("one")
    then = position(repo)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    assert label(repo, then) == ("diverged", "rewound")


@pytest.mark.parametrize("how", ["message only", "content", "of the first commit"])
def test_an_amended_commit_is_rewritten_and_named(repo: Repo, how: str) -> None:
    if how != "of the first commit":
        repo.commit("one")
    then = position(repo)
    if how != "message only":
        repo.write({"README.md": "more\n"})
    repo.git("commit", "-q", "-a", "--amend", "-m", "better")
    amended = repo.head()
    repo.commit("and on")
    assert label(repo, then) == ("diverged", "rewritten")
    assert relate(repo, then).successor == amended


def test_an_amendment_in_another_worktree_is_found_in_the_branchs_reflog(repo: Repo, tmp_path: Path) -> None:
    repo.git("switch", "-q", "-c", "topic")
    repo.commit("one")
    then = position(repo)
    repo.git("switch", "-q", "main")
    repo.git("worktree", "add", "-q", str(tmp_path / "wt"), "topic")
    elsewhere = Repo(tmp_path / "wt")
    elsewhere.write({"README.md": "more\n"})
    elsewhere.git("commit", "-q", "-a", "--amend", "-m", "better")
    repo.git("worktree", "remove", str(tmp_path / "wt"))
    repo.git("switch", "-q", "topic")
    assert relate(repo, then) == Relation("rewritten", successor=repo.head())


def forget(repo: Repo) -> None:
    """Without reflogs, as in a fresh clone that fetched the old commit."""
    repo.git("tag", "kept-by-a-tag", "ORIG_HEAD")
    repo.git("reflog", "expire", "--expire=all", "--all")


def test_a_rebased_commit_is_rewritten_by_its_patch(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "topic")
    repo.commit("work", {"work": "work\n"})
    then = position(repo)
    repo.git("switch", "-q", "main")
    repo.commit("meanwhile")
    repo.git("switch", "-q", "topic")
    repo.git("rebase", "-q", "main")
    rebased = repo.head()
    forget(repo)
    repo.commit("and on")
    assert label(repo, then) == ("diverged", "rewritten")
    assert relate(repo, then).successor == rebased


def test_a_squashed_commit_is_rewritten_by_its_tree(repo: Repo) -> None:
    base = repo.head()
    repo.commit("one")
    repo.commit("two")
    then = position(repo)
    repo.git("reset", "-q", "--soft", base)
    repo.git("commit", "-q", "-m", "squashed")
    squashed = repo.head()
    forget(repo)
    repo.commit("and on")
    assert label(repo, then) == ("diverged", "rewritten")
    assert relate(repo, then).successor == squashed


def rewrite_map(repo: Repo, text: str) -> None:
    folder = repo.path / ".git" / "gitledger"
    folder.mkdir(exist_ok=True)
    (folder / "rewrites").write_text(text)


def test_the_rewrite_map_is_followed_through_its_chain(repo: Repo) -> None:
    repo.commit("one")
    then = position(repo)
    middle = "5" * len(then.head)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    new = repo.commit("another content", {"other": "1\n"})
    repo.commit("and on")
    assert relate(repo, then) == Relation("forked")
    rewrite_map(repo, f"torn\n{then.head} {middle}\n{middle} {then.head}\n{middle} {new}\n{then.head}")
    assert relate(repo, then) == Relation("rewritten", successor=new)


def test_the_rewrite_map_proves_nothing_for_a_commit_outside_heads_history(repo: Repo) -> None:
    repo.commit("one")
    then = position(repo)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    gone = repo.commit("gone", {"gone": "1\n"})
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.commit("other", {"other": "1\n"})
    rewrite_map(repo, f"{then.head} {gone}\n")
    assert relate(repo, then) == Relation("forked")


def test_two_sides_with_commits_of_their_own_are_forked(repo: Repo) -> None:
    repo.commit("one")
    then = position(repo)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.commit("two")
    assert label(repo, then) == ("diverged", "forked")


def test_a_history_without_a_common_commit_is_unrelated(repo: Repo) -> None:
    then = position(repo)
    repo.git("tag", "kept")
    repo.git("switch", "-q", "--orphan", "fresh")
    repo.commit("root", {"root": "1\n"})
    repo.git("branch", "-q", "-M", "main")
    assert label(repo, then) == ("diverged", "unrelated")


def test_unborn_on_one_side_is_diverged_and_on_both_exact(tmp_path: Path) -> None:
    repo = new_repo(tmp_path / "r")
    unborn = position(repo)
    assert label(repo, unborn) == ("exact", "")
    repo.commit("first")
    born = position(repo)
    assert label(repo, unborn)[0] == "diverged"
    repo.git("update-ref", "-d", "HEAD")
    assert label(repo, born)[0] == "diverged"


def test_another_branch_at_the_same_commit_is_another_context(repo: Repo) -> None:
    then = position(repo)
    repo.git("switch", "-q", "-c", "other")
    assert label(repo, then) == ("different_context", "other branch")


def test_detached_at_the_same_commit_is_another_context(repo: Repo) -> None:
    then = position(repo)
    repo.git("switch", "-q", "--detach")
    detached = position(repo)
    assert label(repo, then) == ("different_context", "detached")
    assert label(repo, detached) == ("exact", "")
    repo.git("switch", "-q", "main")
    assert label(repo, detached) == ("different_context", "detached")


@pytest.mark.parametrize("how", ["--no-ff", "--ff-only"])
def test_a_branch_that_was_finished_is_merged(repo: Repo, how: str) -> None:
    repo.git("switch", "-q", "-c", "topic")
    repo.commit("work")
    then = position(repo)
    repo.git("switch", "-q", "main")
    assert label(repo, then) == ("different_context", "other branch")
    repo.git("merge", "-q", how, "-m", "done", "topic")
    assert label(repo, then) == ("different_context", "merged")


def test_a_commit_that_is_not_here_is_missing(repo: Repo, tmp_path: Path) -> None:
    repo.commit("one")
    then = position(repo)
    repo.commit("two")
    shallow = repo.clone(tmp_path / "shallow", "--depth=1")
    assert label(shallow, then) == ("diverged", "missing")
    other = Position("main", "1" * 40)
    assert relate(repo, other).ancestry == "missing"
    assert relate(repo, Position("main", "1" * 64)).ancestry == "missing"


def test_in_a_shallow_clone_a_no_is_unknown_and_a_yes_a_yes(repo: Repo, tmp_path: Path) -> None:
    old = repo.commit("one")
    then = position(repo)
    for n in range(3):
        repo.commit(f"c{n}")
    shallow = repo.clone(tmp_path / "shallow", "--depth=1")
    shallow.git("fetch", "-q", "--depth=1", repo.path.as_uri(), old)
    assert relate(shallow, then).ancestry == "unknown"
    assert worktree.is_ancestor(at(shallow.path), old, shallow.head()) is None
    here = position(shallow)
    shallow.commit("on top")
    assert relate(shallow, here).ancestry == "descends"


def test_neither_replace_refs_nor_grafts_bend_the_answer(repo: Repo) -> None:
    old = repo.commit("one")
    then = position(repo)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    other = repo.commit("other")
    expected = relate(repo, then)
    assert expected == Relation("forked")
    repo.git("replace", "--graft", other, old)
    (repo.path / ".git" / "info").mkdir(exist_ok=True)
    (repo.path / ".git" / "info" / "grafts").write_text(f"{other} {old}\n")
    assert repo.git("merge-base", old, other) == old  # stock git believes it
    assert relate(repo, then) == expected


def test_a_damaged_commit_is_unknown_not_missing(repo: Repo) -> None:
    repo.commit("one")
    then = position(repo)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.commit("two")
    present = position(repo)
    broken = repo.path / ".git" / "objects" / then.head[:2] / then.head[2:]
    broken.chmod(0o644)
    broken.write_bytes(b"not zlib")
    found = worktree.relate(at(repo.path), then, present)
    assert found.ancestry == "unknown"
    assert found.detail


@pytest.mark.parametrize("head", ["--all", "HEAD", "main", "a" * 39, "A" * 40, "", "a" * 40 + "\n"])
def test_a_recorded_head_that_is_no_id_never_reaches_git(repo: Repo, head: str) -> None:
    assert relate(repo, Position("main", head)).ancestry == "unknown"
    assert worktree.is_ancestor(at(repo.path), head, repo.head()) is None
    with pytest.raises(errors.BadData):
        worktree.commits_between(at(repo.path), head, repo.head(), 5)


def slow_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `git` on PATH that hangs, with a child of its own whose pid it writes down."""
    folder.mkdir()
    script = folder / "git"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {folder}/pid\nwait\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "pid"


def test_git_that_does_not_answer_is_unknown(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    then = position(repo)
    repo.commit("one")
    present = position(repo)
    slow_git(tmp_path / "bin", monkeypatch)
    monkeypatch.setattr(worktree, "DEADLINE", 0.3)
    found = worktree.relate(at(repo.path), then, present)
    assert found.ancestry == "unknown"
    assert "longer than" in found.detail


# ── one question each ────────────────────────────────────────────────────────────────────────
def test_revisions_resolve_to_commits_only(repo: Repo) -> None:
    gitdir = at(repo.path)
    head = repo.head()
    repo.git("tag", "-a", "v1", "-m", "v1")
    for rev in ("HEAD", "main", head, head[:12], "v1"):
        assert worktree.commit_exists(gitdir, rev) == head
    for rev in ("", "--all", "-h", "no-such", "1" * 40, repo.tree(), "HEAD:README.md", "a\nb", "HEAD\0"):
        assert worktree.commit_exists(gitdir, rev) is None


def test_branches_are_told_by_their_short_name(repo: Repo) -> None:
    gitdir = at(repo.path)
    repo.branches("feat/x")
    assert [worktree.branch_exists(gitdir, n) for n in ("main", "feat/x", "feat", "HEAD", "", "-x")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_ancestry_of_two_commits(repo: Repo) -> None:
    gitdir, first = at(repo.path), repo.head()
    second = repo.commit("second")
    assert worktree.is_ancestor(gitdir, first, second) is True
    assert worktree.is_ancestor(gitdir, first, first) is True
    assert worktree.is_ancestor(gitdir, second, first) is False
    assert worktree.is_ancestor(gitdir, "1" * 40, first) is None


def test_changed_files_are_named_exactly(repo: Repo) -> None:
    first = repo.head()
    repo.git("mv", "README.md", "LIES MICH ü.md")
    second = repo.commit("moved", {"two\nlines": "x"})
    assert worktree.changed_files(at(repo.path), first, second) == ("LIES MICH ü.md", "README.md", "two\nlines")


def test_a_blobs_id_is_what_git_would_store(repo: Repo, tmp_path: Path) -> None:
    repo.write({".gitattributes": "*.txt text\n", "a b.txt": "one\r\ntwo\r\n", "sub/x": b"\0\r\n"})
    (repo.path / "link").symlink_to("sub/x")
    (repo.path / "out").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    os.mkfifo(repo.path / "fifo")
    repo.git("add", "--all")
    gitdir = at(repo.path)
    for name in ("a b.txt", "sub/x", "link", "README.md"):
        assert worktree.blob_id(gitdir, name) == repo.git("rev-parse", ":" + name)
    for name in (
        "",
        "gone",
        "sub",
        "fifo",
        "/etc/passwd",
        "../secret",
        "sub/../README.md",
        "out/secret",
        "README.md/x",
    ):
        assert worktree.blob_id(gitdir, name) is None


def test_formats_of_an_ordinary_repository(repo: Repo) -> None:
    assert worktree.object_format(at(repo.path)) == "sha1"
    assert worktree.ref_storage(at(repo.path)) == "files"


# ── how git is run ───────────────────────────────────────────────────────────────────────────
def test_all_that_git_calls_local_to_a_repository_is_dropped(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = repo.git("rev-parse", "--local-env-vars").split()
    assert "GIT_DIR" in listed
    for name in [*listed, "GIT_TRACE", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_KEY_0", "GIT_NAMESPACE", "GIT_OF_TOMORROW"]:
        monkeypatch.setenv(name, "poison")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -v")
    inside = gitcli.environment({"GIT_AUTHOR_DATE": "1 +0000"})
    assert "poison" not in inside.values()
    assert inside["GIT_SSH_COMMAND"] == "ssh -v"
    assert inside["GIT_AUTHOR_DATE"] == "1 +0000"


def test_git_past_its_deadline_is_stopped_with_its_children(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = slow_git(tmp_path / "bin", monkeypatch)

    def attempt(seconds: float) -> None:
        with pytest.raises(errors.TryAgain, match="status"):
            gitcli.run(["status"], cwd=repo.path, deadline=seconds)

    begun(attempt, lambda _: pid_file.exists() and pid_file.read_text(), 0.5)
    assert ended(int(pid_file.read_text()))


def test_what_fails_beside_git_ends_git_and_its_children(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    answer = gitcli.run(["--version"], cwd=repo.path, meanwhile=lambda: done.append("x"))
    assert (answer.line[:12], done) == ("git version ", ["x"])
    pid_file = slow_git(tmp_path / "bin", monkeypatch)

    def beside() -> None:
        assert until(lambda: pid_file.exists() and pid_file.read_text().endswith("\n")), "git never started"
        raise errors.BadSignature("what is here is not good")

    with pytest.raises(errors.BadSignature, match="not good"):
        gitcli.run(["status"], cwd=repo.path, meanwhile=beside)
    assert ended(int(pid_file.read_text())), "it was not killed"


def test_no_git_on_path_says_so(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.Missing, match="install git"):
        gitcli.run(["status"], cwd=repo.path)


def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.Missing, match="no-such is not a folder"):
        gitcli.run(["status"], cwd=tmp_path / "no-such")
    with pytest.raises(errors.NotARepository, match="not a git repository"):
        gitcli.run(["status"], cwd=tmp_path)


def test_neither_hooks_nor_fsmonitor_run(repo: Repo, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    shutil.copy(trap, repo.path / ".git" / "hooks" / "reference-transaction")
    repo.git("config", "core.fsmonitor", str(trap))
    worktree.position(at(repo.path))
    gitcli.run(["update-ref", "refs/heads/new", "HEAD"], cwd=repo.path)
    assert not (tmp_path / "sprung").exists()
    repo.git("update-ref", "refs/heads/newer", "HEAD")
    assert (tmp_path / "sprung").exists()


def test_the_hooks_folder_is_still_told_truly(repo: Repo) -> None:
    repo.git("config", "core.hooksPath", "my-hooks")
    assert gitcli.run(["rev-parse", "--git-path", "hooks"], cwd=repo.path).line == "my-hooks"


def test_standard_input_is_closed_unless_given(repo: Repo) -> None:
    empty = hashlib.sha1(b"blob 0\0").hexdigest()
    assert gitcli.run(["hash-object", "--stdin"], cwd=repo.path).line == empty
    assert gitcli.run(["hash-object", "--stdin"], cwd=repo.path, input=b"x").line != empty


def test_an_answer_that_is_none_is_returned_where_the_caller_wants_it(repo: Repo) -> None:
    answer = gitcli.run(["rev-parse", "--verify", "no-such"], cwd=repo.path, check=False)
    assert answer.code == 128
    assert answer.err.startswith("fatal:")
    with pytest.raises(errors.LedgerError, match="fatal: Needed a single revision"):
        gitcli.run(["rev-parse", "--verify", "no-such"], cwd=repo.path)


def test_gits_word_on_ownership_is_passed_on_whole() -> None:
    said = "fatal: detected dubious ownership in repository at '/r'\nTo add an exception, call:\n\n\tgit config x"
    found = gitcli.failure(["status"], gitcli.Answer(128, b"", said), "/r")
    assert isinstance(found, errors.NotAllowed)
    assert "dubious ownership in repository at '/r' To add an exception, call: git config x" in str(found)
