"""Git hooks: git's words reach the ledger, what was there goes on and comes back, and no commit ever fails."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from gitledger import gitdir, githooks, gitshims, hookfiles, rewrites, syncstate, worktree
from gitledger.errors import BadData, CannotWrite, NotAllowed, TryAgain, Usage
from tests.githooks import ledger_in, place_of, program, script, snapshot, told, tried
from tests.ledgers import again
from tests.process.program import gitledger, works
from tests.sealed import Repo, identify, new_repo

pytestmark = pytest.mark.process


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real program, in front of PATH."""
    return program(tmp_path / "bin", monkeypatch)


@pytest.fixture
def ours(tmp_path: Path) -> Repo:
    """A repository with a ledger, in a folder with a space."""
    repo = new_repo(tmp_path / "work shop" / "repo")
    repo.commit("first", {"README.md": "# first\n"})
    return ledger_in(repo)


def hooks(repo: Repo) -> Path:
    return repo.path / ".git" / "hooks"


def states(repo: Repo) -> dict[str, str]:
    return {hook.name: hook.state for hook in githooks.status(place_of(repo)) if hook.state != "absent"}


INSTALLED = dict.fromkeys(gitshims.USUAL, "installed")


# ── what reaches the ledger ──────────────────────────────────────────────────────────────────
def test_commits_checkouts_merges_and_rewrites_reach_the_ledger(ours: Repo, path: Path, tmp_path: Path) -> None:
    works(ours.path, "task", "add", "Renew tokens")
    works(ours.path, "task", "start", "T-0001")
    first = ours.head()
    githooks.install(place_of(ours))
    made = ours.commit("second: naïve", {"a": "1", "b c": "2", 'q"\nt': "3"})
    ours.git("switch", "--quiet", "--create", "topic")
    other = ours.commit("third", {"d": "4"})
    ours.git("commit", "--quiet", "--amend", "--message", "third, amended")
    amended = ours.head()
    ours.git("switch", "--quiet", "main")
    ours.git("merge", "--quiet", "--no-ff", "--message", "join", "topic")
    joined = ours.head()
    ours.git("switch", "--quiet", "--detach", "HEAD~1")
    ours.git("checkout", "--quiet", "HEAD", "--", "a")  # files only: nothing moved
    rows = told(ours)
    assert [kind for kind, _ in rows] == [
        "commit", "checkout", "commit", "commit", "rewrite", "checkout", "merge", "checkout",
    ]  # fmt: skip
    said = [data for _, data in rows]
    assert said[0] == {
        "commit": made, "branch": "main", "subject": "second: naïve", "changed": 3, "worktree": "main",
    }  # fmt: skip
    assert (said[1]["branch"], said[1]["before"], said[1]["commit"]) == ("topic", made, made)
    assert said[4] == {"by": "amend", "count": 1, "pairs": [f"{other} {amended}"], "worktree": "main"}
    assert (said[6]["commit"], said[6]["parents"], said[6]["changed"]) == (joined, 2, 1)
    assert (said[7]["branch"], said[7]["commit"]) == ("DETACHED", made)
    assert first not in str(said)
    assert works(ours.path, "journal", "--task", "T-0001", "--type", "commit").count("\n") == 2
    works(ours.path, "checkpoint")
    works(ours.path, "verify")
    works(ours.path, "fsck")
    assert told(ours) == rows


def test_the_ledger_is_the_one_of_the_repository_that_git_is_at(
    ours: Repo, path: Path, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Under an agent that works elsewhere; in a linked work tree, whose hooks inherit GIT_DIR; and by --git-dir alone.
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(ledger_in(repo).path))
    githooks.install(place_of(ours))
    linked = Repo(tmp_path / "linked one")
    ours.git("worktree", "add", "--quiet", "-b", "linked", str(linked.path))
    linked.commit("there")
    ours.git(
        f"--git-dir={ours.path}/.git", f"--work-tree={tmp_path}", "commit", "--quiet", "--allow-empty", "-m", "far"
    )
    rows = [(kind, data["worktree"]) for kind, data in told(ours)]
    assert rows == [("checkout", "linked-one"), ("commit", "linked-one"), ("commit", "main")]
    assert told(repo) == []


def test_a_commit_without_a_reflog_or_with_odd_settings_is_told(ours: Repo, path: Path) -> None:
    githooks.install(place_of(ours))
    for key, value in (
        ("core.logAllRefUpdates", "false"), ("log.showSignature", "true"), ("color.ui", "always"), ("log.date", "iso"),
        ("format.pretty", "oneline"), ("diff.noprefix", "true"), ("log.decorate", "full"),
    ):  # fmt: skip
        ours.git("config", key, value)
    (ours.path / ".git" / "logs").rename(ours.path / ".git" / "no-logs")
    made = ours.commit("quiet", {"x": "1"})
    assert told(ours) == [
        ("commit", {"commit": made, "branch": "", "subject": "quiet", "changed": 1, "worktree": "main"})
    ]


def test_of_a_commit_of_thousands_of_files_the_names_are_counted_as_far_as_they_are_kept(
    ours: Repo, path: Path
) -> None:
    githooks.install(place_of(ours))
    ours.commit("import", {f"folder/{'x' * 80}/{n}": "" for n in range(1_000)})
    [(_, data)] = told(ours)
    assert data["cut"] is True
    assert 500 < data["changed"] < 1_000


def test_words_that_no_hook_of_ours_says_are_kept_as_unreadable(ours: Repo) -> None:
    # The program itself: anybody can call it.
    for event, payload in (
        ("commit", b""), ("commit", b"id x"), ("merge", b"\0\xff" * 99), ("checkout", b"old 1\nnew 2\nbranch m\n"),
        ("rewrite", b"by amend\n"), ("rewrite", b"by rebase\nx y\n"),
    ):  # fmt: skip
        works(ours.path, "-C", ".", "hook", "git", event, stdin=payload)
    assert [kind for kind, _ in told(ours)] == ["unreadable"] * 6
    works(ours.path, "checkpoint")
    works(ours.path, "verify")


def test_git_has_its_own_events_and_no_other_client_has_them(ours: Repo) -> None:
    from gitledger.capture import _request

    assert _request(["hook", "git", "commit"])
    assert _request(["hook", "git", "turn"]) is None
    assert _request(["hook", "generic", "commit"]) is None


# ── the rewrite map ──────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("how", ["amend", "rebase"])
def test_what_a_handovers_commit_became_is_named_where_only_the_hook_can_tell(ours: Repo, path: Path, how: str) -> None:
    githooks.install(place_of(ours))
    base = ours.head()
    ours.commit("base", {"x": "1\n"})
    old = ours.commit("step", {"a": "1\n"})
    works(ours.path, "task", "add", "Renew tokens")
    works(ours.path, "task", "start", "T-0001")
    works(ours.path, "handover", "write")
    if how == "amend":
        ours.write({"a": "another content\n"})
        ours.git("commit", "--quiet", "--all", "--amend", "--message", "step, done otherwise")
    else:
        ours.git("reset", "--quiet", "--hard", base)
        ours.commit("another base", {"y": "2\n", "a": "0\n"})
        tried(ours, "rebase", "--onto", "HEAD", f"{old}~1", old)
        ours.write({"a": "resolved\n"})
        ours.git("add", "--all")
        ours.git("rebase", "--continue")
        ours.git("switch", "--quiet", "--force-create", "main")
    ours.git("reflog", "expire", "--expire=now", "--all")  # neither reflog nor patch nor tree tells it any more
    new = ours.head()
    kept = (ours.path / ".git" / "gitledger" / "rewrites").read_text()
    assert f"{old} {new}\n" in kept
    shown = works(ours.path, "handover", "resolve")
    assert "rewritten" in shown
    assert new[:7] in shown
    (ours.path / ".git" / "gitledger" / "rewrites").unlink()
    assert "rewritten" not in works(ours.path, "handover", "resolve")


def test_the_rewrite_map_takes_pairs_alone_and_stays_bounded(
    ours: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = str(ours.path / ".git")
    file = ours.path / ".git" / "gitledger" / rewrites.NAME
    a, b = "a" * 40, "b" * 64
    said = f"by rebase\n{a} {b}\n{a} {b} extra words\n{a.upper()} {b}\n{a}\n\n{a[:39]} {b}\n{b} {a}".encode()
    assert rewrites.add(common, said) == 3
    assert file.read_text() == f"{a} {b}\n{a} {b}\n{b} {a}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    os.link(file, other)
    rewrites.add(common, f"{a} {a}".encode())
    assert other.read_text().count("\n") == 3  # what has another name is not changed under it
    assert file.read_text().count("\n") == 4
    monkeypatch.setattr(rewrites, "KEPT", 200)
    for _ in range(20):
        rewrites.add(common, f"{b} {b}".encode())
    assert file.stat().st_size < 600
    assert set(file.read_text().splitlines()) == {f"{b} {b}"}
    file.unlink()
    file.symlink_to(other)
    with pytest.raises(CannotWrite):
        rewrites.add(common, f"{a} {a}".encode())
    assert worktree.REWRITES_BYTES == 4 << 20
    assert os.path.join("gitledger", rewrites.NAME) == worktree.REWRITES


# ── what was there ───────────────────────────────────────────────────────────────────────────
def test_hooks_that_were_there_run_first_keep_their_words_and_come_back(ours: Repo, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "said"
    script(hooks(ours) / "post-commit", f'echo "commit $0 $#" >>"{out}"')
    script(hooks(ours) / "post-checkout", f'echo "checkout $*" >>"{out}"\nexit 3', 0o700)
    script(hooks(ours) / "post-merge", "exit 9", 0o644)  # not executable: git does not run it, nor do we
    target = script(tmp_path / "shared hooks" / "rewrite.sh", f'cat >>"{out}"; echo "rewrite $1" >>"{out}"')
    (hooks(ours) / "post-rewrite").symlink_to(target)
    before = snapshot(hooks(ours))
    alone = tried(ours, "switch", "--quiet", "--create", "before")
    out.unlink()
    done = githooks.install(place_of(ours))
    assert len(done) == 4
    assert all("first" in line for line in done)
    assert states(ours) == INSTALLED
    ours.commit("second")
    switched = tried(ours, "switch", "--quiet", "--create", "topic")
    assert (switched.returncode, switched.stderr) == (alone.returncode, alone.stderr)
    assert alone.returncode != 0
    old = ours.commit("third")
    ours.git("commit", "--quiet", "--amend", "--message", "x")
    new = ours.head()
    said = out.read_text().splitlines()
    assert said[0].startswith("commit ")
    assert said[1].startswith("checkout ")
    assert f"{old} {new}" in said
    assert said[-1] == "rewrite amend"
    assert [kind for kind, _ in told(ours)] == ["commit", "checkout", "commit", "commit", "rewrite"]
    assert len(githooks.uninstall(place_of(ours))) == 4
    assert snapshot(hooks(ours)) == before
    assert githooks.uninstall(place_of(ours)) == []


def test_a_second_installation_changes_nothing_and_an_older_one_is_brought_up_to_date(ours: Repo) -> None:
    script(hooks(ours) / "post-commit", "exit 0")
    before = snapshot(hooks(ours))
    githooks.install(place_of(ours))
    once = snapshot(hooks(ours))
    assert githooks.install(place_of(ours)) == []
    assert snapshot(hooks(ours)) == once
    hook = hooks(ours) / "post-commit"
    hook.write_text(hook.read_text().replace("hook 1 ", "hook 0 ").replace("status=0", "status=0 # older"))
    (hooks(ours) / "post-merge").chmod(0o600)
    (hooks(ours) / "post-rewrite").write_text("#!/bin/sh\n# somebody else's\n")
    assert states(ours) == {"post-commit": "outdated", "post-checkout": "installed", "post-merge": "broken"}
    assert len(githooks.install(place_of(ours), ("post-commit", "post-merge"))) == 2
    assert snapshot(hooks(ours))["post-commit"] == once["post-commit"]
    assert states(ours)["post-merge"] == "installed"
    (hooks(ours) / "post-rewrite").unlink()
    githooks.uninstall(place_of(ours))
    assert snapshot(hooks(ours)) == before


def test_what_cannot_be_put_in_leaves_everything_as_it_was(ours: Repo) -> None:
    before = snapshot(hooks(ours))
    with pytest.raises(Usage, match="no git hook 'post-nothing'"):
        githooks.install(place_of(ours), ("post-commit", "post-nothing"))
    script(hooks(ours) / "post-merge", "exit 0")
    script(hooks(ours) / f"post-merge{gitshims.KEPT}", "exit 1")
    with pytest.raises(NotAllowed, match="earlier installation"):
        githooks.install(place_of(ours))
    (hooks(ours) / f"post-merge{gitshims.KEPT}").unlink()
    for text, whose in (("#!/usr/bin/env ruby\n# Overcommit\n", "overcommit's"), ("#!/bin/sh\n# husky\n", "husky's")):
        (hooks(ours) / "post-merge").write_text(text)
        with pytest.raises(NotAllowed, match=whose) as caught:
            githooks.install(place_of(ours))
        assert "\n" not in str(caught.value)
    (hooks(ours) / "post-merge").unlink()
    (hooks(ours) / "post-merge").mkdir()
    with pytest.raises(BadData, match="is a folder"):
        githooks.install(place_of(ours))
    (hooks(ours) / "post-merge").rmdir()
    assert snapshot(hooks(ours)) == before


def test_a_folder_of_hooks_outside_the_repository_is_refused_in_one_line(ours: Repo, tmp_path: Path) -> None:
    shared = tmp_path / "everybodys"
    script(shared / "post-commit", "exit 0")
    before = snapshot(tmp_path / "everybodys")
    for value in (str(shared), "/dev/null"):
        ours.git("config", "--global", "core.hooksPath", value)
        with pytest.raises(NotAllowed, match=r"core\.hooksPath is set, so .* every repository") as caught:
            githooks.install(place_of(ours))
        assert "\n" not in str(caught.value)
        with pytest.raises(NotAllowed):
            githooks.status(place_of(ours))
        assert githooks.uninstall(place_of(ours)) == []
    assert snapshot(shared) == before
    assert not (hooks(ours) / "post-commit").exists()


def test_our_own_hook_is_never_kept_for_the_one_before_it(ours: Repo) -> None:
    # Two installations at once: a hook that calls itself would never end.
    hook = script(hooks(ours) / "post-commit", "exit 0")
    path, new = githooks._file_plan(githooks.place(place_of(ours)), "post-commit")
    assert new is not None
    githooks.install(place_of(ours), ("post-commit",))
    before = snapshot(hooks(ours))
    assert hookfiles.put(path, new) == ""
    assert snapshot(hooks(ours)) == before
    hook.unlink()
    script(hook, "exit 1")
    with pytest.raises(TryAgain, match="came while"):
        hookfiles.put(path, new)


# ── nothing ever fails ───────────────────────────────────────────────────────────────────────
FAILING = {
    "missing": "",
    "exits": "echo noise; echo noise >&2; exit 70",
    "killed": "kill -9 $$",
    "reads nothing": "exec <&-; exit 0",
}


@pytest.mark.parametrize("how", FAILING)
def test_a_program_that_is_gone_or_fails_is_not_noticed(
    ours: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if FAILING[how]:
        program(tmp_path / "bin", monkeypatch, FAILING[how])
    else:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    names = [name for name in gitshims.NAMES if name != "reference-transaction"]
    githooks.install(place_of(ours), names)
    ours.git("init", "--quiet", "--bare", str(tmp_path / "remote"))
    for words in (
        ("commit", "--quiet", "--allow-empty", "--message", "made\n\nwith a body"),
        ("commit", "--quiet", "--amend", "--allow-empty", "--message", "again"),
        ("switch", "--quiet", "--create", "topic"),
        ("push", "--quiet", str(tmp_path / "remote"), "topic"),
    ):
        done = tried(ours, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words
    assert ours.git("log", "-1", "--format=%B").strip() == "again"


@pytest.mark.parametrize("how", ["no ledger", "log is a file", "log cannot be written", "full"])
def test_a_broken_ledger_is_not_noticed(ours: Repo, path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    githooks.install(place_of(ours))
    state = ours.path / ".git" / "gitledger"
    if how == "no ledger":
        state.rename(state.with_name("gone"))
    elif how == "log is a file":
        (state / "wal" / "main").rename(state / "gone")
        (state / "wal" / "main").write_text("")
    elif how == "log cannot be written":
        (state / "wal" / "main" / "current.wal").unlink(missing_ok=True)
        (state / "wal" / "main" / "current.wal").mkdir()
    else:
        # No file may grow: what a full disk does, to the program alone.
        text = path.read_text().replace("exec ", 'exec /bin/sh -c \'ulimit -f 0; exec "$0" "$@"\' ')
        path.write_text(text)
    done = tried(ours, "commit", "--quiet", "--allow-empty", "--message", "made")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if how == "no ledger":
        assert not state.exists()


def test_the_program_is_found_where_the_shell_has_a_bare_path(
    ours: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as inner:
        place = program(tmp_path / "far away" / "bin", inner)
    (ours.path / ".git" / "gitledger" / "program").write_text(f"{place}\n")
    githooks.install(place_of(ours))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ours.commit("from a window")
    assert [kind for kind, _ in told(ours)] == ["commit"]
    monkeypatch.setenv("GITLEDGER_DISABLE", "1")
    ours.commit("unheard")
    monkeypatch.delenv("GITLEDGER_DISABLE")
    assert len(told(ours)) == 1


def test_every_text_is_sh_alone(tmp_path: Path) -> None:
    texts = [gitshims.file(name, name + gitshims.KEPT) for name in gitshims.NAMES]
    texts += [gitshims.command(name) for name in gitshims.NAMES]
    texts += [gitshims.block(name) for name in gitshims.NAMES[:-1]]
    for text in texts:
        done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), text
    assert gitshims.ours(texts[0]) == (gitshims.VERSION, "post-commit", "post-commit.before-gitledger")
    assert gitshims.ours("#!/bin/sh\n# gitledger git hook x\n\n") is None


def test_the_commands_put_them_in_say_how_they_stand_and_take_them_out(
    ours: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert works(ours.path, "hooks", "install", "--git").count("post-") >= 4
    assert works(ours.path, "hooks", "install", "--git") == "git's hooks are all there already"
    works(ours.path, "hooks", "install", "--git", "--hook", "pre-push")
    assert states(ours) == INSTALLED | {"pre-push": "installed"}
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ours.commit("by what the installation wrote down")
    assert [kind for kind, _ in told(ours)] == ["commit"]
    script(hooks(ours) / "post-merge", "exit 0")
    (hooks(ours) / "post-merge").rename(hooks(ours) / "post-merge.new")
    githooks.install(place_of(ours))
    (hooks(ours) / "post-merge").rename(hooks(ours) / "post-merge.old")  # as another tool does
    (hooks(ours) / "post-merge.new").rename(hooks(ours) / "post-merge")
    shown = works(ours.path, "hooks", "status")
    assert "post-merge.old is called by nothing" in shown
    rows = {row["hook"]: row for row in json.loads(works(ours.path, "hooks", "status", "--json"))["git"]}
    assert {name: row["state"] for name, row in rows.items() if row["state"] != "absent"} == states(ours)
    assert [name for name, row in rows.items() if row["fired"]] == ["post-commit"]
    assert "post-merge.old is called by nothing" in gitledger(ours.path, "doctor").out
    assert works(ours.path, "hooks", "status", "--git") == shown[shown.index("git:") :]
    assert "git:" not in works(ours.path, "hooks", "status", "--user")
    assert gitshims.command("post-commit").strip() == works(ours.path, "hooks", "script", "post-commit")
    works(ours.path, "hooks", "uninstall", "--git")
    assert states(ours) == {}
    assert "hooks install --git" in works(ours.path, "hooks", "status", "--git")


# ── hook managers, by stand-ins of what they generate; the real ones: tests/clients ───────────
HUSKY = """\
s=$(dirname "$(dirname "$0")")/$(basename "$0")
[ ! -f "$s" ] && exit 0
sh -e "$s" "$@"
"""


def test_with_husky_our_lines_stand_in_its_scripts_and_go_without_a_trace(ours: Repo, path: Path) -> None:
    for name in gitshims.NAMES[:-1]:
        script(ours.path / ".husky" / "_" / name, HUSKY)
    ours.git("config", "core.hooksPath", ".husky/_")
    theirs = ours.path / ".husky"
    (theirs / "post-commit").write_text("echo theirs >said\nexit 1")  # no line end, and an early end
    script(theirs / "post-rewrite", "cat >pairs", 0o644)
    (theirs / "post-merge").write_text("")
    before = snapshot(theirs)
    assert len(githooks.install(place_of(ours))) == 4
    assert githooks.install(place_of(ours)) == []
    assert states(ours) == INSTALLED
    commit = theirs / "post-commit"
    commit.write_text(commit.read_text().replace("gitledger 1 ", "gitledger 0 ").replace("--no-renames", ""))
    assert states(ours)["post-commit"] == "outdated"
    assert githooks.install(place_of(ours)) == [f"post-commit: lines in {commit}"]
    assert states(ours) == INSTALLED
    assert snapshot(theirs / "_") == {k[2:]: v for k, v in before.items() if k.startswith("_/")}
    old = ours.commit("second")
    ours.git("commit", "--quiet", "--amend", "--message", "x")
    assert (ours.path / "said").read_text() == "theirs\n"
    assert (ours.path / "pairs").read_text() == f"{old} {ours.head()}\n"
    assert [kind for kind, _ in told(ours)] == ["commit", "commit", "rewrite"]
    with pytest.raises(NotAllowed, match="husky has none"):
        githooks.install(place_of(ours), ("reference-transaction",))
    assert len(githooks.uninstall(place_of(ours))) == 4
    assert snapshot(theirs) == before


def test_a_folder_of_hooks_in_the_work_tree_gets_lines_where_they_are_shell(ours: Repo, path: Path) -> None:
    folder = ours.path / ".githooks"
    ours.git("config", "core.hooksPath", ".githooks")
    script(folder / "post-commit", "exit 0")
    before = snapshot(folder)
    githooks.install(place_of(ours))
    ours.commit("second")
    assert [kind for kind, _ in told(ours)] == ["commit"]
    assert "which" not in (folder / "post-commit").read_text()
    assert str(ours.path) not in (folder / "post-commit").read_text()  # everybody's, so nothing of this machine
    githooks.uninstall(place_of(ours))
    assert snapshot(folder) == before
    for text, mode, why in (("#!/usr/bin/env python3\n", 0o755, "no shell script"), ("#!/bin/sh\n", 0o644, "executed")):
        (folder / "post-commit").write_text(text)
        (folder / "post-commit").chmod(mode)
        before = snapshot(folder)
        with pytest.raises(NotAllowed, match=why):
            githooks.install(place_of(ours))
        assert snapshot(folder) == before


PRE_COMMIT = """\
# File generated by pre-commit: https://pre-commit.com
[ -x "$0.legacy" ] && { PRE_COMMIT_RUNNING_LEGACY=1 "$0.legacy" "$@" </dev/null || exit; }
echo pre-commit >>said
"""


def test_with_pre_commit_ours_is_what_it_goes_on_calling(ours: Repo, path: Path) -> None:
    script(hooks(ours) / "post-commit", PRE_COMMIT)
    script(hooks(ours) / "post-checkout", PRE_COMMIT)
    script(hooks(ours) / "post-checkout.legacy", "echo legacy >>said")
    before = snapshot(hooks(ours))
    githooks.install(place_of(ours))
    assert githooks.install(place_of(ours)) == []
    assert states(ours) == INSTALLED
    for name in ("post-commit", "post-checkout"):
        assert snapshot(hooks(ours))[name] == before[name]
    ours.git("commit", "--quiet", "--allow-empty", "--message", "second")
    ours.git("switch", "--quiet", "--create", "topic")
    assert [kind for kind, _ in told(ours)] == ["commit", "checkout"]
    assert (ours.path / "said").read_text().split() == ["pre-commit", "legacy", "pre-commit"]
    # It takes one more hook, and moves ours aside as it does with any.
    (hooks(ours) / "post-merge").rename(hooks(ours) / "post-merge.legacy")
    script(hooks(ours) / "post-merge", PRE_COMMIT)
    assert states(ours) == INSTALLED
    (hooks(ours) / "post-merge").unlink()
    assert states(ours)["post-merge"] == "broken"
    githooks.uninstall(place_of(ours))
    assert snapshot(hooks(ours)) == before


LEFTHOOK = """\
call_lefthook() { sh -c "$(cat run-by-lefthook)"; }
call_lefthook
"""


def test_with_lefthook_its_local_file_gets_our_entries(ours: Repo, path: Path) -> None:
    import yaml

    local = ours.path / "lefthook-local.yml"
    script(hooks(ours) / "pre-commit", LEFTHOOK)
    (ours.path / "lefthook.yml").write_text("pre-commit:\n  jobs: []\n")
    for text in (None, "", "# mine\npre-push:\n  jobs:\n    - run: true", "pre-push:\n  parallel: true\n\n"):
        if text is not None:
            local.write_text(text)
        before = snapshot(ours.path)
        [line] = githooks.install(place_of(ours))
        assert "lefthook install" in line
        assert githooks.install(place_of(ours)) == []
        assert set(states(ours).values()) == {"broken"}  # lefthook does not know yet
        held = yaml.safe_load(local.read_text())
        assert ("pre-push" in held) == bool(text)
        for name in gitshims.USUAL:
            script(hooks(ours) / name, LEFTHOOK)
        assert states(ours) == INSTALLED
        for name in gitshims.USUAL:
            (hooks(ours) / name).unlink()
        githooks.install(place_of(ours), ("commit-msg",))
        assert set(yaml.safe_load(local.read_text())) == {
            *gitshims.USUAL,
            "commit-msg",
            *(["pre-push"] if text else []),
        }
        assert len(githooks.uninstall(place_of(ours))) == 1
        assert snapshot(ours.path) == before
    [job] = held["post-commit"]["jobs"]
    (ours.path / "run-by-lefthook").write_text(job["run"].replace("{0}", ""))
    (hooks(ours) / "pre-commit").rename(hooks(ours) / "post-commit")
    ours.git("commit", "--quiet", "--allow-empty", "--message", "second")
    assert [kind for kind, _ in told(ours)] == ["commit"]
    for text in ("post-commit:\n  jobs: []\n", "- a list\n", "{"):
        local.write_text(text)
        with pytest.raises((NotAllowed, BadData), match="nothing was added"):
            githooks.install(place_of(ours))
        assert local.read_text() == text


# ── the ones that are off by default ─────────────────────────────────────────────────────────
def test_a_commits_trailer_names_the_task_where_there_is_a_message(
    ours: Repo, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    githooks.install(place_of(ours), ("prepare-commit-msg", "commit-msg"))
    plain = "ours\n\nbody\n---\nmore\n"
    ours.git("commit", "--quiet", "--allow-empty", "--file", "-", input=plain)
    assert ours.git("log", "-1", "--format=%B").strip() == plain.strip()  # no task yet
    works(ours.path, "task", "add", "Renew tokens")
    works(ours.path, "task", "start", "T-0001")
    ours.git("commit", "--quiet", "--allow-empty", "--file", "-", input=plain)
    assert ours.git("log", "-1", "--format=%B").strip() == plain + "\nLedger-Task: T-0001"
    ours.git("commit", "--quiet", "--allow-empty", "--message", "fixup! ours")
    assert ours.git("log", "-1", "--format=%B").strip() == "fixup! ours"
    git = ["git", "commit", "--quiet", "--allow-empty", "--verbose"]
    for editor, status, body in (
        ("true", 1, "fixup! ours"),  # nothing was said, so there is no commit, as ever
        ("sed -i 1iedited", 0, "edited\n\nLedger-Task: T-0001"),
    ):
        env = {**os.environ, "GIT_EDITOR": editor}
        assert subprocess.run(git, cwd=ours.path, env=env, capture_output=True, check=False).returncode == status
        assert ours.git("log", "-1", "--format=%B").strip() == body
    ours.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "edited\n\nLedger-Task: T-0001")
    assert ours.git("log", "-1", "--format=%B").count("Ledger-Task") == 1


def test_a_push_of_the_users_takes_the_ledger_along_behind_its_back(
    ours: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, ended = tmp_path / "gate", tmp_path / "ended"
    slow = program(tmp_path / "bin", monkeypatch)
    held = f'n=0; while [ ! -e "{gate}" ] && [ $n -lt 900 ]; do sleep 0.1; n=$((n + 1)); done\n'
    text = slow.read_text().replace("exec ", "").replace("PYTHONPATH", f"{held}PYTHONPATH")
    slow.write_text(f'{text}echo >>"{ended}"\n')
    remote = tmp_path / "remote.git"
    ours.git("init", "--quiet", "--bare", str(remote))
    ours.git("remote", "add", "origin", str(remote))
    works(ours.path, "remote", "set", "origin")
    githooks.install(place_of(ours), ("pre-push",))
    state = gitdir.state(str(ours.path / ".git"))

    def push_and_wait(status: int) -> syncstate.SyncState:
        before = ended.read_text() if ended.exists() else ""
        gate.unlink(missing_ok=True)
        ours.commit("more")
        done = tried(ours, "push", "--quiet", "origin", "main")  # it has ended while the program is still held up
        assert done.returncode == status
        assert (done.stdout, done.stderr) == ("", "") or status
        gate.touch()
        until = time.monotonic() + 60
        while status == 0 and (ended.read_text() if ended.exists() else "") == before:
            assert time.monotonic() < until
            time.sleep(0.05)
        return syncstate.load(state, "main")

    assert push_and_wait(0).at == ""  # remote.push is off
    works(ours.path, "config", "set", "remote.push", "true")
    made = push_and_wait(0)
    assert (made.failed, made.tip) == ("", ours.git("rev-parse", "ledger/main"))
    assert ours.git("--git-dir", str(remote), "rev-parse", "ledger/main") == made.tip
    script(hooks(ours) / f"pre-push{gitshims.KEPT}", "exit 1")
    assert push_and_wait(1) == made  # the hook before ours refuses, as without us


def test_other_tools_may_add_to_a_ledger_and_nothing_else(ours: Repo, path: Path, tmp_path: Path) -> None:
    githooks.install(place_of(ours), ("reference-transaction",))
    old = ours.git("rev-parse", "ledger/main")
    for text in ("one", "two"):
        works(ours.path, "note", text)
        works(ours.path, "checkpoint")  # our own: nothing is asked
    tip = ours.git("rev-parse", "ledger/main")
    for packed in (False, True):
        if packed:
            ours.git("gc", "--quiet")
            ours.git("pack-refs", "--all", "--prune")
        for words in (
            ("branch", "-D", "ledger/main"),
            ("branch", "-m", "ledger/main", "elsewhere"),
            ("branch", "-f", "ledger/main", "HEAD"),
            ("update-ref", "refs/heads/ledger/main", old),
            ("update-ref", "-d", "refs/heads/ledger/main"),
            ("update-ref", "-d", "refs/heads/ledger/main", tip),
            ("push", ".", "+main:ledger/main"),
            ("push", ".", ":ledger/main"),
            ("fetch", ".", "+main:ledger/main"),
        ):
            done = tried(ours, *words)
            assert done.returncode != 0, words
            assert "ledger/main would" in done.stderr, done.stderr
            assert ours.git("rev-parse", "ledger/main") == tip
    works(ours.path, "verify")
    # A clone is ahead: what only adds may come by anybody's fetch.
    other = identify(ours.clone(tmp_path / "other"))
    works(other.path, "init", "--remote", "origin")
    works(other.path, "note", "three")
    works(other.path, "checkpoint")
    ours.git("fetch", "--quiet", str(other.path), "ledger/main:ledger/main")
    assert ours.git("rev-parse", "ledger/main") == other.git("rev-parse", "ledger/main")
    ours.commit("any other branch is free")
    ours.git("branch", "topic")
    ours.git("branch", "-D", "topic")
    ours.git("reset", "--quiet", "--hard", "HEAD~1")
    assert githooks.install(place_of(ours), ("reference-transaction",)) == []
    again(ours).desk.store.close()
