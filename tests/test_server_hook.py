"""`hooks/pre-receive` on a real bare server: what it refuses, and that it leaves everything else alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gitledger import discover, remote, sync, syncing, tasks
from gitledger.errors import NotAllowed
from tests.ledgers import do
from tests.sealed import Repo, identify, new_repo

pytestmark = pytest.mark.process
BRANCH = "refs/heads/ledger/main"
HOOK = Path(__file__).parent.parent / "hooks" / "pre-receive"
TOOLS = ("git", "sh", "sed", "mktemp", "rm")


@pytest.fixture
def bare(tmp_path: Path) -> Repo:
    """A bare server with the hook and one ledger, pushed there by `a`."""
    a = new_repo(tmp_path / "a")
    a.commit("first")
    made = Repo(tmp_path / "bare.git")
    a.git("clone", "--quiet", "--bare", str(a.path), str(made.path))
    shutil.copy(HOOK, made.path / "hooks" / "pre-receive")
    a.git("remote", "add", "origin", str(made.path))
    discover.init(str(a.path), "main", "Test project")
    assert synced(a).pushed
    return made


@pytest.fixture
def a(bare: Repo) -> Repo:
    return Repo(bare.path.parent / "a")


def synced(repo: Repo) -> syncing.Outcome:
    return sync.sync(discover.open(repo.path), remote.read("origin"))


def add(repo: Repo, title: str) -> None:
    do(discover.open(repo.path), tasks.add, title)


def key(path: Path) -> Path:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def pushed(repo: Repo, *words: str) -> str:
    """What the hook says of a push; "" where it was taken."""
    done = subprocess.run(
        ["git", "push", "--quiet", "origin", *words],
        cwd=repo.path,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert done.returncode == 0 or "pre-receive hook declined" in done.stderr, done.stderr
    said = [row.removeprefix("remote: ").strip() for row in done.stderr.splitlines() if "error: gitledger:" in row]
    assert len(said) == (1 if done.returncode else 0), done.stderr
    return said[0] if said else ""


def test_it_is_a_posix_script() -> None:
    text = HOOK.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert HOOK.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(HOOK)], check=True)
    for word in ("[[", "local ", "function ", "source ", "<<<", "pipefail", "$'"):
        assert word not in text


def test_a_ledger_of_two_writers_with_keys_of_their_own_passes(
    bare: Repo, a: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = Repo(bare.path.parent / "b")
    bare.git("clone", "--quiet", str(bare.path), str(b.path))
    identify(b).git("branch", "--no-track", "ledger/main", "origin/ledger/main")
    with monkeypatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(bare.path.parent / "data"))
        discover.init(str(b.path), "main", "Test project")
        add(b, "Of b's")
        assert synced(b).pushed
    add(a, "Of a's")
    made = synced(a)
    assert made.merged
    assert made.tip == bare.git("rev-parse", BRANCH)
    keys = {
        row.split("ssh-ed25519 ")[1].split()[0]
        for row in bare.git("show", f"{BRANCH}:keys/allowed_signers").splitlines()
    }
    assert len(keys) == 2


def test_an_unsigned_commit_is_refused_wherever_it_stands(bare: Repo, a: Repo) -> None:
    before = bare.git("rev-parse", BRANCH)
    tree = a.tree(BRANCH)
    unsigned = a.git("commit-tree", tree, "-p", BRANCH, "-m", "unsigned")
    assert f"commit {unsigned} is not signed" in pushed(a, f"{unsigned}:{BRANCH}")
    # Below one that claims a signature in its message, and with another branch that has it already.
    text = "x\n\ngpgsig -----BEGIN SSH SIGNATURE-----\n"
    above = a.git("commit-tree", tree, "-p", unsigned, "-m", text)
    assert pushed(a, f"{unsigned}:refs/heads/aside") == ""
    assert "is not signed" in pushed(a, f"{above}:{BRANCH}")
    assert "is not signed" in pushed(a, f"{unsigned}:{BRANCH}")
    assert "is not signed" in pushed(a, f"{unsigned}:refs/heads/ledger/new")
    assert bare.git("rev-parse", BRANCH) == before


def test_a_replace_ref_does_not_hide_an_unsigned_commit(bare: Repo, a: Repo) -> None:
    add(a, "One")
    sync.journal(discover.open(a.path))
    unsigned = a.git("commit-tree", a.tree(BRANCH), "-p", bare.git("rev-parse", BRANCH), "-m", "x")
    assert pushed(a, f"{a.git('rev-parse', BRANCH)}:refs/replace/{unsigned}") == ""
    assert "is not signed" in pushed(a, f"{unsigned}:{BRANCH}")


@pytest.mark.parametrize("how", ["a stranger's key", "another commit's signature"])
def test_a_signature_that_is_not_good_is_refused(how: str, bare: Repo, a: Repo) -> None:
    if how == "a stranger's key":
        stranger = key(bare.path.parent / "stranger")
        config = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={stranger}")
        new = a.git(*config, "commit-tree", "-S", a.tree(BRANCH), "-p", BRANCH, "-m", "mine")
    else:
        raw = a.git("cat-file", "commit", BRANCH)
        new = a.git("hash-object", "-w", "-t", "commit", "--stdin", input=raw.replace("\n\n", "\n\nNot ", 1) + "\n")
        bare.git("update-ref", "-d", BRANCH)
    assert f"commit {new} has no good signature" in pushed(a, f"{new}:{BRANCH}")


def test_what_is_no_ledger_is_refused_as_one(bare: Repo, a: Repo) -> None:
    stranger = key(bare.path.parent / "stranger")
    config = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={stranger}")
    new = a.git(*config, "commit-tree", "-S", a.tree("main"), "-m", "no ledger")
    assert "has no keys/allowed_signers" in pushed(a, f"{new}:refs/heads/ledger/other")


def test_a_server_can_say_itself_whose_keys_may_sign(bare: Repo, a: Repo) -> None:
    named = bare.path.parent / "signers"
    named.write_text("nobody@example.org " + key(bare.path.parent / "other").with_suffix(".pub").read_text())
    bare.git("config", "gitledger.allowedSigners", str(named))
    add(a, "One")
    sync.journal(discover.open(a.path))
    assert "no good signature of a key that may sign" in pushed(a, BRANCH)
    named.write_text(named.read_text() + bare.git("show", f"{BRANCH}:keys/allowed_signers") + "\n")
    assert pushed(a, BRANCH) == ""


def test_a_rewritten_or_deleted_ledger_is_refused_and_any_other_branch_is_free(bare: Repo, a: Repo) -> None:
    add(a, "One")
    first, tip = bare.git("rev-parse", BRANCH), synced(a).tip
    assert "is only added to, never rewritten" in pushed(a, "--force", f"{first}:{BRANCH}")
    assert "is never deleted" in pushed(a, "--delete", BRANCH)
    assert "is never deleted" in pushed(a, "--delete", BRANCH, "main")  # taken whole or not at all
    assert bare.git("rev-parse", BRANCH) == tip
    other = a.commit("other")
    assert pushed(a, f"{other}:refs/heads/topic") == ""
    assert pushed(a, "--force", f"{a.git('rev-parse', 'HEAD^')}:refs/heads/topic") == ""
    assert pushed(a, "--delete", "topic") == ""


def test_without_ssh_keygen_a_signature_must_still_be_there(
    bare: Repo, a: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(a, "One")
    sync.journal(discover.open(a.path))
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    unsigned = a.git("commit-tree", a.tree(BRANCH), "-p", BRANCH, "-m", "unsigned")
    monkeypatch.setenv("PATH", str(tools))
    assert "is not signed" in pushed(a, f"{unsigned}:{BRANCH}")
    bare.git("config", "gitledger.allowedSigners", str(tmp_path / "signers"))
    assert "cannot be held against gitledger.allowedSigners" in pushed(a, BRANCH)
    bare.git("config", "--unset", "gitledger.allowedSigners")
    assert pushed(a, BRANCH) == ""


def test_another_kind_of_signature_is_no_way_round_the_servers_own_list(bare: Repo, a: Repo) -> None:
    raw = a.git("cat-file", "commit", BRANCH)
    forged = re.sub(r"gpgsig .*?END SSH SIGNATURE-----\n", PGP, raw, flags=re.DOTALL) + "\n"
    new = a.git("hash-object", "-w", "-t", "commit", "--stdin", input=forged)
    bare.git("config", "gitledger.allowedSigners", "/dev/null")
    assert "cannot be held against gitledger.allowedSigners" in pushed(a, f"{new}:refs/heads/ledger/other")
    bare.git("config", "--unset", "gitledger.allowedSigners")
    assert pushed(a, f"{new}:refs/heads/ledger/other") == ""


PGP = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iHUE\n -----END PGP SIGNATURE-----\n"


def test_sync_tells_what_the_hook_says(bare: Repo, a: Repo) -> None:
    bare.git("config", "gitledger.allowedSigners", "/dev/null")
    add(a, "One")
    with pytest.raises(NotAllowed, match=r"declined the push by a rule .*no good signature .*docs/server\.md"):
        synced(a)
