"""A second machine: `git clone`, then `gitledger init`, finds the ledger at the remote, verifies and joins it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from gitledger import (
    adopt,
    discover,
    gitcli,
    gitdir,
    layout,
    pins,
    remote,
    signing,
    sync,
    syncing,
    tasks,
    transaction,
    verify,
)
from gitledger.errors import BadConfig, BadSignature, IOFailed, LedgerError, Missing, NotAllowed, TryAgain, Usage
from tests import attacks
from tests.attacks import Field
from tests.ledgers import again, begin, do
from tests.process.program import python
from tests.sealed import Repo, git, identify, new_repo
from tests.test_config_command import run

STRANGER = "SHA256:" + "A" * 43
GONE = "file:///nowhere/at/all.git"


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """A project whose ledger has two writers; nobody changes it."""
    made = attacks.ground(tmp_path_factory.mktemp("field"))
    made.repo.commit("second")
    return made


@pytest.fixture(scope="module")
def origin(field: Field, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its bare remote, which nobody changes."""
    return bare(field.repo, tmp_path_factory.mktemp("origin"))


def bare(repo: Repo, folder: Path) -> Path:
    path = folder / "origin.git"
    repo.git("clone", "--quiet", "--bare", str(repo.path), str(path))
    git(path, "config", "uploadpack.allowFilter", "true")
    return path


def clone(origin: Path, path: Path, *options: str) -> Repo:
    git(path.parent, "clone", "--quiet", *options, origin.as_uri(), str(path))
    return identify(Repo(path))


def init(repo: Repo, **ways: object) -> object:
    return discover.init(str(repo.path), "main", None, **ways)  # type: ignore[arg-type]


def users(repo: Repo) -> dict[str, bytes]:
    """All that a person's git keeps, its objects and folders apart."""
    folder = repo.path / ".git"
    files = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {str(path): data for path, data in files.items() if path.parts[0] not in ("objects", "gitledger")}


def not_ours(files: dict[str, bytes]) -> dict[str, bytes]:
    ours = ("refs/heads/ledger/", "logs/refs/heads/ledger/", "refs/ledgers/seen/")
    return {path: data for path, data in files.items() if not path.startswith(ours)}


def keys(home: Path) -> list[Path]:
    return list(home.rglob("id_ed25519*"))


# ── a ledger that is there ───────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "kind",
    [
        "",
        "--single-branch",
        "--depth=1",
        "--depth=1 --no-single-branch",
        "--filter=blob:none",
        "--filter=tree:0 --single-branch",
        "--depth=1 --filter=blob:none --no-single-branch",
    ],
)
def test_after_any_kind_of_clone_the_remotes_ledger_is_found_whole_and_joined(
    kind: str, field: Field, origin: Path, tmp_path: Path
) -> None:
    served = shutil.copytree(origin, tmp_path / "served.git")
    other = clone(served, tmp_path / "clone", *kind.split())
    before, depth = users(other), other.git("rev-list", "--count", "HEAD")
    begun = discover.init(str(other.path), "main", None)
    assert (begun.adopted, begun.asked, begun.remote, begun.named) == ("origin ledger/main", True, "origin", False)
    assert begun.joined
    assert begun.checked == len(field.commits())
    assert begun.founder.writer == field.writers["a"]
    assert begun.founder.fingerprint == signing.KeySigner(str(field.key("a"))).fingerprint

    after = users(other)
    assert {path: data for path, data in before.items() if path != "shallow"} == {
        path: data for path, data in not_ours(after).items() if path != "shallow"
    }
    assert "FETCH_HEAD" not in after
    assert set(after.get("shallow", b"").split()) <= set(before.get("shallow", b"").split())
    assert other.git("rev-list", "--count", "HEAD") == depth
    assert other.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/ledgers") == (
        f"refs/ledgers/seen/origin/main {field.tip}"
    )

    served.rename(tmp_path / "away.git")
    book = again(other)
    assert remote.is_whole(book.gitdir, book.tip())
    made = verify.verify(book.desk, book.tip(), verify.Ways(full=True))
    assert made.verdict == "unknown signer"
    assert made.trusted == {begun.writer}
    assert book.view().manifest.writers.keys() == {*field.writers.values(), begun.writer}


def test_what_was_found_good_is_not_checked_again(origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone")
    init(other)
    book = again(other)
    assert verify.verify(book.desk, book.tip()).checked == 0


def test_a_linked_work_tree_joins_for_its_repository(field: Field, origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone", "--single-branch")
    other.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    begun = discover.init(str(tmp_path / "linked"), "main", None)
    assert begun.adopted
    assert again(other).view().manifest.uuid == begun.uuid == field.pins().uuid


def test_what_a_partial_clones_own_fetch_left_out_is_completed_by_sync(tmp_path: Path, repo: Repo) -> None:
    book = begin(repo)
    served = bare(repo, tmp_path)
    repo.git("remote", "add", "origin", served.as_uri())
    other = clone(served, tmp_path / "clone", "--filter=blob:none")
    init(other, remote="origin")
    do(book, tasks.add, "Said on the first machine")
    sync.sync(book, remote.read("origin"))
    other.git("fetch", "--quiet")  # brings the commit under the clone's own filter
    mine = again(other)
    sync.sync(mine, remote.read("origin"))
    assert remote.is_whole(mine.gitdir, mine.tip())
    assert [row["title"] for _, row in mine.view().walk(layout.TASK)] == ["Said on the first machine"]


def test_expect_is_compared_before_anything_is_written(field: Field, origin: Path, tmp_path: Path, home: Path) -> None:
    other = clone(origin, tmp_path / "clone")
    before = users(other)
    with pytest.raises(NotAllowed, match=r"origin ledger/main was begun with .* nothing was written"):
        init(other, expect=STRANGER)
    with pytest.raises(NotAllowed, match=r"no branch ledger/docs here nor at origin"):
        discover.init(str(other.path), "docs", None, expect=STRANGER)
    assert users(other) == before
    assert not (other.path / ".git" / "gitledger").exists()
    assert keys(home) == []
    assert init(other, expect=signing.KeySigner(str(field.key("a"))).fingerprint).adopted  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["unsigned_tip", "unsigned_middle", "unsigned_genesis", "other_writers_key", "other_bytes", "last_place"]
)
def test_a_ledger_that_is_not_found_good_is_refused_and_nothing_is_written(
    name: str, field: Field, tmp_path: Path, home: Path
) -> None:
    hostile = attacks.copy(field, tmp_path / "hostile")
    attack = next(row for row in attacks.ROWS if row.does.__name__ == name)
    attack.does(hostile)
    other = clone(hostile.path / ".git", tmp_path / "clone", "--single-branch")
    before = users(other)
    with pytest.raises(LedgerError, match="origin ledger/main") as e:
        init(other)
    assert e.value.exit_code in (65, 77)
    assert users(other) == before
    assert not (other.path / ".git" / "gitledger").exists()
    assert keys(home) == []


def test_the_refusal_names_the_commit_and_the_rule(field: Field, tmp_path: Path) -> None:
    hostile = attacks.copy(field, tmp_path / "hostile")
    named = attacks.unsigned_tip(hostile)
    other = clone(hostile.path / ".git", tmp_path / "clone")
    with pytest.raises(
        BadSignature,
        match=rf"origin ledger/main is not taken over: commit {named[:12]}.*\(signature\): it is not signed",
    ):
        init(other)


def test_a_branch_that_is_no_ledger_or_another_name_of_one_is_refused(
    repo: Repo, field: Field, origin: Path, tmp_path: Path
) -> None:
    repo.git("branch", "ledger/main")
    with pytest.raises(NotAllowed, match="origin ledger/main is there and holds no ledger"):
        init(clone(repo.path / ".git", tmp_path / "one"))
    renamed = Path(shutil.copytree(origin, tmp_path / "renamed.git"))
    git(renamed, "update-ref", "refs/heads/ledger/docs", field.tip)
    with pytest.raises(NotAllowed, match="holds the ledger 'main', not 'docs'"):
        discover.init(str(clone(renamed, tmp_path / "two").path), "docs", None)


# ── none is there ────────────────────────────────────────────────────────────────────────────
def test_a_root_is_made_where_the_remote_was_asked_and_has_none(origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone")
    begun = discover.init(str(other.path), "docs", None)
    assert (begun.adopted, begun.asked, begun.joined, begun.remote) == ("", True, False, "origin")
    empty = new_repo(tmp_path / "empty")
    empty.git("init", "--quiet", "--bare", "far.git")
    empty.git("remote", "add", "only", str(empty.path / "far.git"))
    begun = discover.init(str(empty.path), "main", None)
    assert (begun.asked, begun.remote) == (True, "only")
    assert empty.git("for-each-ref", "refs/ledgers") == ""


def test_without_a_remote_nobody_is_asked_at_the_cost_of_one_child(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    real = gitcli.run

    def heard(args: list[str], **ways: object) -> gitcli.Answer:
        said.append(" ".join(args[:2]))
        return real(args, **ways)  # type: ignore[arg-type]

    monkeypatch.setattr(gitcli, "run", heard)
    begun = discover.init(str(repo.path), "main", None)
    assert (begun.asked, begun.remote) == (False, "")
    assert [words for words in said if words.split()[0] in (*gitcli.TALKS_TO_REMOTES, "remote", "for-each-ref")] == [
        "remote",
        "for-each-ref --format=%(refname) %(objectname)",
    ]


def test_a_remote_that_cannot_be_asked_is_no_reason_to_begin_apart(origin: Path, tmp_path: Path, home: Path) -> None:
    other = clone(origin, tmp_path / "clone", "--single-branch")
    other.git("remote", "set-url", "origin", GONE)
    before = users(other)
    with pytest.raises(Missing, match=r"try again, or begin without asking.*--no-remote"):
        init(other)
    assert users(other) == before
    assert not (other.path / ".git" / "gitledger").exists()
    assert keys(home) == []
    begun = discover.init(str(other.path), "main", None, ask=False)
    assert (begun.adopted, begun.asked, begun.remote) == ("", False, "origin")


def test_without_asking_what_git_fetched_before_is_taken_over(field: Field, origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone")
    other.git("remote", "set-url", "origin", GONE)
    with pytest.raises(Missing, match=r"try again, or take over what git fetched of it before.*--no-remote"):
        init(other)
    begun = discover.init(str(other.path), "main", None, ask=False)
    assert (begun.adopted, begun.checked) == ("origin/ledger/main", len(field.commits()))

    thin = clone(origin, tmp_path / "thin", "--depth=1", "--no-single-branch")
    with pytest.raises(Missing, match=r"not here wholly.*without --no-remote"):
        init(thin, ask=False)

    several = clone(origin, tmp_path / "several")
    several.git("update-ref", "refs/remotes/other/ledger/main", "HEAD")
    several.git("remote", "rename", "origin", "first")
    several.git("remote", "add", "other", GONE)
    with pytest.raises(Usage, match="2 remotes"):
        init(several, ask=False)
    assert init(several, ask=False, remote="first").adopted == "first/ledger/main"  # type: ignore[attr-defined]


# ── whom to ask ──────────────────────────────────────────────────────────────────────────────
def test_the_remote_is_the_named_one_else_the_configured_one_else_origin_else_the_only_one(repo: Repo) -> None:
    found = gitdir.find(str(repo.path))
    assert found is not None
    assert adopt.which(found, "", "") is None
    assert adopt.which(found, "", "backup") is None  # a user's own configuration, for repositories that have one
    assert adopt.which(found, "", "../far.git") == remote.read("../far.git")
    repo.git("remote", "add", "backup", GONE)
    assert adopt.which(found, "", "") == remote.read("backup")
    repo.git("remote", "add", "fork", GONE)
    with pytest.raises(Usage, match=r"2 remotes \(backup, fork\).*--remote NAME"):
        adopt.which(found, "", "")
    assert adopt.which(found, "fork", "backup") == remote.read("fork")
    assert adopt.which(found, "", "backup") == remote.read("backup")
    repo.git("remote", "add", "origin", GONE)
    assert adopt.which(found, "", "") == remote.read("origin")
    for words in (("none", ""), ("", "none")):
        with pytest.raises(Missing, match="git knows no remote none here, only: backup, fork, origin"):
            adopt.which(found, *words)


def test_only_a_remote_that_was_named_is_pushed_to(field: Field, origin: Path, tmp_path: Path) -> None:
    served = Path(shutil.copytree(origin, tmp_path / "served.git"))
    other = clone(served, tmp_path / "clone")
    other.git("remote", "set-url", "origin", GONE)
    with pytest.raises(LedgerError):
        init(other)
    begun = discover.init(str(other.path), "main", None, remote=str(served))
    assert begun.adopted
    assert begun.named
    book = again(other)
    assert book.desk.config.remote.name == str(served)
    sync.sync(book, remote.read(str(served)))
    assert git(served, "rev-parse", "ledger/main").decode().strip() == begun.commit

    second = clone(served, tmp_path / "second")
    init(second)
    assert again(second).desk.config.remote.name == ""


def test_a_remote_that_stands_for_several_places_is_not_asked(origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone")
    other.git("remote", "set-url", "--add", "origin", GONE)
    with pytest.raises(BadConfig, match=r"several addresses.*gitledger init --remote ADDRESS"):
        init(other)


def test_two_roots_begun_apart_are_never_merged_and_the_refusal_says_how_to_go_on(repo: Repo, tmp_path: Path) -> None:
    far = bare(repo, tmp_path)
    repo.git("remote", "add", "origin", far.as_uri())
    other = clone(far, tmp_path / "clone")
    one, two = begin(repo), begin(other)
    sync.sync(one, remote.read("origin"))
    tip = two.tip()
    with pytest.raises(syncing.Refused, match=r"begun apart.*nothing was changed.*git clone, then gitledger init"):
        sync.sync(two, remote.read("origin"))
    assert two.tip() == tip
    assert git(far, "rev-parse", "ledger/main").decode().strip() == one.tip()
    assert discover.init(str(clone(far, tmp_path / "fresh").path), "main", None).uuid == one.view().manifest.uuid


# ── failing under way ────────────────────────────────────────────────────────────────────────
KILLED = """
import os, sys
from gitledger import adopt, discover, pins, remote, transaction
from gitledger.plumbing import PlumbingStore
def die(*a, **k): os._exit(9)
step = sys.argv[2]
if step == "fetched": adopt._proved = die
if step == "swap": PlumbingStore.swap = die
if step == "pins": pins.save = die
if step == "commit": transaction.commit = die
if step == "seen": remote.move = die
discover.init(sys.argv[1], "main", None)
"""


@pytest.mark.process
@pytest.mark.parametrize("step", ["fetched", "swap", "pins", "commit", "seen"])
def test_an_init_that_was_killed_is_finished_by_the_next(step: str, field: Field, origin: Path, tmp_path: Path) -> None:
    other = clone(origin, tmp_path / "clone", "--single-branch")
    done = python(other.path, KILLED, str(other.path), step)
    assert done.status == 9, done.err
    if step == "seen":  # it was joined by then
        with pytest.raises(NotAllowed, match="exists here already"):
            init(other)
    else:
        assert discover.init(str(other.path), "main", None).joined
    book = again(other)
    book.checkpoint()
    mine = pins.load(book.desk.home.pins, "main")
    assert mine is not None
    assert (mine.uuid, mine.genesis) == (field.pins().uuid, field.pins().genesis)
    assert len(book.view().manifest.writers) == 3
    assert verify.verify(book.desk, book.tip(), verify.Ways(full=True)).verdict == "unknown signer"


def test_a_join_that_fails_leaves_no_branch_behind(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = clone(origin, tmp_path / "clone")
    before = users(other)

    def broken(payload: bytes, key: signing.KeySigner) -> str:
        raise IOFailed("no space left on device; free some")

    with monkeypatch.context() as patch:
        patch.setattr(transaction.signing, "sign", broken)
        with pytest.raises(IOFailed):
            init(other)
    assert not_ours(users(other)) == before
    assert other.git("for-each-ref", "refs/heads/ledger", "refs/ledgers") == ""
    assert not (other.path / ".git" / "gitledger").exists()
    assert discover.init(str(other.path), "main", None).adopted


def test_a_remote_that_does_not_answer_is_given_up_in_time(
    origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = clone(origin, tmp_path / "clone", "--single-branch")
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    other.git("config", "remote.origin.uploadpack", str(slow))
    folder = Path(os.environ["XDG_CONFIG_HOME"]) / "gitledger"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("remote:\n  deadline: 1\n")
    with pytest.raises(TryAgain, match="did not answer within the time, so nobody knows whether it has a ledger"):
        init(other)
    (folder / "config.yaml").unlink()
    with pytest.raises(TryAgain, match="did not answer within the time, so nobody knows whether it has a ledger"):
        discover.init(str(other.path), "main", None, deadline=1)


# ── what a person is told ────────────────────────────────────────────────────────────────────
def test_what_was_found_and_what_comes_next_is_told(
    field: Field, origin: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def told(repo: Repo, *words: str) -> str:
        capfd.readouterr()
        run(repo.path, "init", *words)
        return capfd.readouterr().out

    founder = signing.KeySigner(str(field.key("a"))).fingerprint
    said = told(clone(origin, tmp_path / "one"))
    assert said.startswith("Joined the ledger on branch ledger/main\n")
    assert f"Found at: origin ledger/main, {len(field.commits())} commits, all of them verified\n" in said
    assert f"Begun by: {field.writers['a']} with the key {founder}\n" in said
    assert "gitledger remote set origin" in said

    two = clone(origin, tmp_path / "two")
    row = json.loads(told(two, "--remote", "origin", "--json"))
    assert {name: row[name] for name in ("joined", "adopted", "asked", "remote", "remote_named")} == {
        "joined": True,
        "adopted": "origin ledger/main",
        "asked": True,
        "remote": "origin",
        "remote_named": True,
    }
    assert row["checked"] == len(field.commits())

    said = told(two, "--name", "docs", "--no-remote")
    assert "Asked:    nobody; if a remote has a ledger already, the two can never be merged\n" in said
    said = told(clone(origin, tmp_path / "three"), "--name", "docs")
    assert "Asked:    origin, which has no ledger of this name\n" in said
    assert "gitledger remote set origin" in said
