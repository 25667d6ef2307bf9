"""Sync over real servers: nothing but the ledger moves, and what a server refuses is one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gitledger import briefing, config, discover, layout, remote, sync, syncing, tasks
from gitledger.errors import BadConfig, BadData, LedgerError, Missing, NotAllowed, TryAgain, Unsupported
from gitledger.ledger import Ledger
from gitledger.render import briefing as page
from gitledger.render import status
from tests import servers
from tests.ledgers import do
from tests.patience import begun, until
from tests.sealed import Repo, identify, new_repo, sealed_environment
from tests.servers import Server
from tests.test_hostile_commands import Said, run

pytestmark = pytest.mark.process
BRANCH = "refs/heads/ledger/main"


@dataclass
class Seed:
    """What every test begins with a copy of: two clones of one ledger, and the bare repository that both came from."""

    folder: Path
    home: Path
    root: Path


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seed]:
    folder = tmp_path_factory.mktemp("seed")
    home = folder / "home"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        sealed = sealed_environment(home, os.environ)
        for name in [name for name in os.environ if name not in sealed]:
            patch.delenv(name)
        for name, value in sealed.items():
            patch.setenv(name, value)
        (folder / "srv").mkdir()
        bare = Repo(folder / "bare.git")
        a = new_repo(folder / "a")
        a.commit("first", {"README.md": "# first\n"})
        a.git("clone", "--quiet", "--bare", str(a.path), str(bare.path))
        a.git("remote", "add", "origin", str(bare.path))
        a.git("fetch", "--quiet", "origin")
        discover.init(str(a.path), "main", "Test project")
        a.git("push", "--quiet", "origin", BRANCH)
        a.git("clone", "--quiet", str(bare.path), str(folder / "b"))
        b = identify(Repo(folder / "b"))
        b.git("branch", "--no-track", "ledger/main", "origin/ledger/main")
        discover.init(str(b.path), "main", "Test project")
        for repo in (a, b):
            (repo.path / ".git" / "FETCH_HEAD").unlink(missing_ok=True)
        yield Seed(folder, home, folder / "srv")


@pytest.fixture(scope="module")
def running(seed: Seed) -> Iterator[dict[str, Server]]:
    """One server of each kind, all on one folder."""
    folder = seed.folder / "servers"
    folder.mkdir(mode=0o700)
    with ExitStack() as stack:
        there = {"path": Server(str(seed.root))}
        there["git"] = stack.enter_context(servers.git_daemon(seed.root, folder))
        there["http"] = stack.enter_context(servers.http(seed.root))
        if servers.SSHD:
            there["ssh"] = stack.enter_context(servers.ssh(seed.root, folder))
        yield there


@pytest.fixture(autouse=True)
def at_home(seed: Seed, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home in which the seed was made, with the key of its writers."""
    for name, value in sealed_environment(seed.home, {}).items():
        monkeypatch.setenv(name, value)


@dataclass
class Pair:
    """Two clones and the bare repository between them."""

    a: Repo
    b: Repo
    bare: Repo

    def remotes(self, url: str) -> None:
        """Both clones have `origin` at an address."""
        for repo in (self.a, self.b):
            repo.git("remote", "set-url", "origin", url)

    def tips(self) -> set[str]:
        """The ledger's tip in all three."""
        return {repo.git("rev-parse", BRANCH) for repo in (self.a, self.b, self.bare)}


@pytest.fixture
def pair(seed: Seed, tmp_path: Path) -> Iterator[Pair]:
    for name in ("a", "b"):
        shutil.copytree(seed.folder / name, tmp_path / name, symlinks=True)
    bare = seed.root / f"{tmp_path.name}.git"
    shutil.copytree(seed.folder / "bare.git", bare, symlinks=True)
    made = Pair(Repo(tmp_path / "a"), Repo(tmp_path / "b"), Repo(bare))
    made.remotes(str(bare))
    yield made
    shutil.rmtree(bare)


def at(repo: Repo) -> Ledger:
    return discover.open(repo.path)


def synced(repo: Repo, to: str = "origin", **ways: Any) -> syncing.Outcome:
    """Sync a clone in this process."""
    return sync.sync(at(repo), remote.read(to), syncing.Ways(**{"pause": lambda tried: None, **ways}))


def level(made: syncing.Outcome) -> bool:
    """True where both sides have the same tip now."""
    return bool(made.there) and made.tip == made.there


def add(repo: Repo, title: str) -> None:
    do(at(repo), tasks.add, title)


def standing(repo: Repo) -> dict[str, bytes]:
    """Every file of a repository but its objects, its ledger, and what is gitledger's own."""
    top = repo.path / ".git" if (repo.path / ".git").is_dir() else repo.path
    ours = ("objects", "gitledger", "refs/heads/ledger", "refs/ledgers", "logs/refs/heads/ledger", "logs/refs/ledgers")
    found = {}
    for path in top.rglob("*"):
        name = path.relative_to(top).as_posix()
        if path.is_file() and not any(name == one or name.startswith(f"{one}/") for one in ours):
            found[name] = path.read_bytes()
    return found


def differing(now: dict[str, bytes], then: dict[str, bytes]) -> list[str]:
    """The files of which only one side has these bytes."""
    return sorted({name for name, _ in now.items() ^ then.items()})


def kept(pair: Pair) -> list[object]:
    """All that a refused sync must leave alone, on both sides."""
    refs = [repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads") for repo in (pair.a, pair.bare)]
    return [*refs, standing(pair.a), standing(pair.bare)]


def refused(pair: Pair, kind: type[LedgerError], *words: str, to: str = "origin", **ways: Any) -> str:
    """Sync `a` where that must be refused with one line of such words, and nothing may change on either side."""
    before = kept(pair)
    with pytest.raises(LedgerError) as raised:
        synced(pair.a, to, **ways)
    line = str(raised.value)
    assert type(raised.value) is kind, repr(raised.value)
    for word in words:
        assert word in line
    assert "\n" not in line
    assert len(line) < 500
    assert not re.search(r"--force|-f\b|push --delete|reset --hard|\brm -", line)
    assert kept(pair) == before
    return line


def said(repo: Repo, *words: str, status: int = 0) -> Said:
    """What a command says in a clone, in this process; one line where it is to be refused."""
    made = run("-C", str(repo.path), *words, terminal=False)
    assert made.status == status, made
    assert status == 0 or (made.out, made.err.count("\n")) == ("", 1), made
    return made


# ── which remote ─────────────────────────────────────────────────────────────────────────────
ADDRESSES = ("/srv/x.git", "./x", "../x", "ada@example.org:x.git", "work:x.git", "https://example.org/x.git")
STRANGE = (
    "",
    "-x",
    "--upload-pack=x",
    "-oX:x",
    "ext::sh -c x",
    "fd::3",
    "a b",
    "x\ny",
    "..",
    "a..b",
    "x.lock",
    "ftp://x/y",
)


def test_a_remote_is_a_name_or_an_address_and_nothing_that_git_would_take_for_more() -> None:
    assert remote.read("origin").named
    for text in (*ADDRESSES, "ssh://git@example.org:22/x.git", "http://[::1]:80/x", "file:///srv/x.git"):
        assert not remote.read(text).named
        assert remote.read(text).slug.startswith("url-")
    for text in STRANGE:
        with pytest.raises(BadData, match="neither a git remote's name nor an address"):
            remote.read(text)


# ── both ways ────────────────────────────────────────────────────────────────────────────────
KINDS = ("path", "git", "http", "ssh")


def reach(kind: str, running: dict[str, Server], pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The pair's repository by a server of some kind."""
    if kind not in running:
        pytest.skip("sshd IS NOT INSTALLED: sync over a real ssh server was NOT tried")
    server = running[kind]
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    pair.remotes(server.url(pair.bare.path.name))
    return server


@pytest.mark.parametrize("kind", KINDS)
def test_two_clones_sync_both_ways_and_nothing_else_of_them_moves(
    kind: str, running: dict[str, Server], pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach(kind, running, pair, monkeypatch)
    for repo in (pair.a, pair.b):
        hook = repo.path / ".git" / "hooks" / "pre-push"
        hook.write_text("#!/bin/sh\ntouch ../ran; exit 1\n")
        hook.chmod(0o755)
        repo.git("tag", "-m", "mine", f"mine-{repo.path.name}", BRANCH)
        repo.git("branch", "private")
    pair.bare.git("tag", "-m", "theirs", "theirs", BRANCH, env=ADA)
    pair.bare.git("branch", "news", "main")
    with servers.black_hole() as trap:
        for repo in (pair.a, pair.b):
            widen(repo, f"git://{trap.base}/trap.git")
        before = [standing(repo) for repo in (pair.a, pair.b, pair.bare)]
        add(pair.b, "Of b's")
        assert synced(pair.b).pushed
        add(pair.a, "Of a's")
        made = synced(pair.a)
        assert made.merged
        assert made.fetched
        assert made.pushed
        assert synced(pair.b).fetched
        assert len(pair.tips()) == 1
        for repo, then in zip((pair.a, pair.b, pair.bare), before, strict=True):
            assert differing(standing(repo), then) == [], repo.path
        assert trap.log == []
    assert not (pair.a.path.parent / "ran").exists()
    assert not (pair.a.path / "ran").exists()


ADA = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def widen(repo: Repo, trap: str) -> None:
    """Settings that have a plain `git fetch` or `git push` move more than it is told to, or elsewhere."""
    repo.git("remote", "add", "trap", trap)
    for key, value in (
        ("remote.origin.push", "+refs/heads/*:refs/heads/*"),
        ("remote.origin.mirror", "true"),
        ("remote.origin.prune", "true"),
        ("remote.origin.pruneTags", "true"),
        ("remote.origin.tagOpt", "--tags"),
        ("remote.pushDefault", "trap"),
        ("branch.main.remote", "trap"),
        ("branch.main.pushRemote", "trap"),
        ("branch.ledger/main.remote", "trap"),
        ("push.default", "matching"),
        ("push.followTags", "true"),
        ("push.pushOption", "ci.variable=x"),
        ("push.autoSetupRemote", "true"),
        ("push.recurseSubmodules", "on-demand"),
        ("fetch.prune", "true"),
        ("fetch.all", "true"),
        ("fetch.writeCommitGraph", "true"),
        ("gc.auto", "1"),
    ):
        repo.git("config", key, value)
    repo.git("config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/heads/taken/*")


def test_a_short_name_by_insteadof_is_gone_by(pair: Pair) -> None:
    pair.a.git("config", f"url.{pair.bare.path.parent}/.insteadOf", "work:")
    pair.a.git("remote", "set-url", "origin", f"work:{pair.bare.path.name}")
    assert synced(pair.a).tip == pair.bare.git("rev-parse", BRANCH)
    assert level(synced(pair.a, f"work:{pair.bare.path.name}"))


def test_a_remote_of_several_addresses_is_refused_and_none_is_contacted(pair: Pair) -> None:
    with servers.black_hole() as trap:
        for key in ("url", "pushurl"):
            pair.a.git("config", "--add", f"remote.origin.{key}", f"git://{trap.base}/trap.git")
            refused(pair, BadConfig, "origin stands for several addresses", "gitledger remote set")
            pair.a.git("config", "--unset", f"remote.origin.{key}", "trap")
        assert trap.log == []


def test_a_remote_that_is_gone_from_gits_configuration_is_not_taken_for_a_folder(pair: Pair) -> None:
    shutil.copytree(pair.bare.path, pair.a.path / "elsewhere")
    line = refused(pair, Missing, "git knows no remote elsewhere here, only: origin", to="elsewhere")
    assert "gitledger remote set" in line


def test_ssh_is_started_as_the_user_has_set_it(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    log = pair.a.path.parent / "asked"
    fake = pair.a.path.parent / "fake ssh"
    fake.write_text(f'#!/bin/sh\necho "$0 $*" >> {log}\nfor last; do :; done\neval "$last"\n')
    fake.chmod(0o755)
    shutil.copy(fake, named := pair.a.path.parent / "ssh")
    pair.remotes(f"ssh://nowhere.invalid{pair.bare.path}")
    pair.a.git("config", "core.sshCommand", f"'{fake}' -4")
    assert level(synced(pair.a))
    assert "-4 nowhere.invalid" in log.read_text() or "-4 -o" in log.read_text()
    log.unlink()
    monkeypatch.setenv("GIT_SSH_COMMAND", f"'{named}' -6")
    assert level(synced(pair.a))
    first = log.read_text().splitlines()[0]
    assert "ssh -6 " in first
    assert "-oBatchMode=yes" in first
    log.unlink()
    monkeypatch.delenv("GIT_SSH_COMMAND")
    pair.a.git("config", "--unset", "core.sshCommand")
    monkeypatch.setenv("GIT_SSH", str(fake))
    assert level(synced(pair.a))
    assert "nowhere.invalid" in log.read_text()


# ── what a server refuses ────────────────────────────────────────────────────────────────────
def hook(bare: Repo, name: str, text: str) -> None:
    top = bare.path / ".git"
    path = (top if top.is_dir() else bare.path) / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_clone_that_pushes_in_between_is_merged_with_and_nothing_is_lost(pair: Pair) -> None:
    add(pair.a, "Of a's")
    add(pair.b, "Of b's")
    at(pair.b)
    sync.journal(at(pair.b))
    new = pair.b.git("rev-parse", BRANCH)
    pack = pair.a.path.parent / "receive"
    pack.write_text(
        f"#!/bin/sh\nmkdir {pack}.once 2>/dev/null && git -C {pair.b.path} push -q {pair.bare.path} {BRANCH} >&2\n"
        'exec git-receive-pack "$@"\n'
    )
    pack.chmod(0o755)
    pair.a.git("config", "remote.origin.receivepack", str(pack))
    made = synced(pair.a)
    assert (made.attempts, made.merged) == (2, True)
    pair.a.git("merge-base", "--is-ancestor", new, BRANCH)
    synced(pair.b)
    assert len(pair.tips()) == 1


def test_a_ref_that_moves_while_the_server_takes_a_push_is_tried_again(pair: Pair) -> None:
    add(pair.a, "Of a's")
    add(pair.b, "Of b's")
    sync.journal(at(pair.b))
    pair.b.git("push", "--quiet", "origin", f"{BRANCH}:refs/heads/aside")
    hook(
        pair.bare,
        "pre-receive",
        f"mkdir {pair.bare.path}/once 2>/dev/null || exit 0\nunset GIT_QUARANTINE_PATH\n"
        f"git update-ref {BRANCH} refs/heads/aside",
    )
    made = synced(pair.a)
    assert (made.attempts, made.merged) == (2, True)
    assert level(synced(pair.b))
    assert len(pair.tips()) == 1


def test_a_remote_that_stays_locked_is_given_up_with_all_kept(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "ATTEMPTS", 3)
    add(pair.a, "Of a's")
    sync.journal(at(pair.a))
    stale = pair.bare.path / f"{BRANCH}.lock"
    stale.parent.mkdir(parents=True, exist_ok=True)
    stale.touch()
    with pytest.raises(TryAgain, match=r"busy, or had moved on, each of 3 times .* its commits are kept here"):
        synced(pair.a)
    stale.unlink()
    assert "Of a's" in titles(pair.a)
    assert synced(pair.a).pushed


def titles(repo: Repo) -> set[str]:
    return {str(row["title"]) for _, row in at(repo).view().walk(layout.TASK)}


DECLINED = {
    "a hook": ("echo 'no pushes today' >&2; exit 1", "declined the push by a rule"),
    "github": (
        "echo 'error: GH006: Protected branch update failed for refs/heads/ledger/main.' >&2\n"
        "echo 'error: Changes must be made through a pull request.' >&2; exit 1",
        "GH006",
    ),
    "github rules": (
        "echo 'error: GH013: Repository rule violations found for refs/heads/ledger/main.' >&2\n"
        "echo '- Commits must have verified signatures.' >&2; exit 1",
        "GH013",
    ),
    "gitlab": (
        "echo 'GitLab: You are not allowed to push code to protected branches on this project.' >&2; exit 1",
        "GitLab: You are not allowed",
    ),
    "gitea": ("echo 'Gitea: Not allowed to push to protected branch ledger/main' >&2; exit 1", "Gitea: Not allowed"),
    "bitbucket": (
        "echo 'Branch refs/heads/ledger/main can only be modified through pull requests.' >&2; exit 1",
        "declined the push by a rule",
    ),
}


@pytest.mark.parametrize("host", DECLINED)
def test_a_host_that_declines_is_told_in_its_own_words_with_the_next_step(host: str, pair: Pair) -> None:
    script, words = DECLINED[host]
    hook(pair.bare, "pre-receive", script)
    add(pair.a, "Of a's")
    sync.journal(at(pair.a))
    refused(pair, NotAllowed, words, "declined the push", "docs/server.md")
    hook(pair.bare, "pre-receive", "exit 0")
    assert synced(pair.a).pushed


def test_a_server_that_takes_no_pushes_is_told_as_that(pair: Pair, running: dict[str, Server]) -> None:
    add(pair.a, "Of a's")
    sync.journal(at(pair.a))
    pair.bare.git("config", "daemon.receivepack", "false")
    pair.remotes(running["git"].url(pair.bare.path.name))
    refused(pair, NotAllowed, "does not let this user in, or not write")
    pair.remotes(running["http"].url(f"403/{pair.bare.path.name}"))
    refused(pair, NotAllowed, "does not let this user in, or not write", "403")
    pair.bare.git("config", "--unset", "daemon.receivepack")
    pair.bare.git("config", "http.receivepack", "false")
    pair.remotes(running["http"].url(pair.bare.path.name))
    refused(pair, NotAllowed, "does not let this user in, or not write")


def test_nobody_is_asked_for_a_user_name(
    pair: Pair, running: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pair.a.path.parent / "asked"
    ask = pair.a.path.parent / "ask"
    ask.write_text(f"#!/bin/sh\ntouch {asked}\necho x\n")
    ask.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(ask))
    monkeypatch.setenv("DISPLAY", ":0")
    pair.a.git("config", "core.askPass", str(ask))
    pair.remotes(running["http"].url(f"401/{pair.bare.path.name}"))
    refused(pair, NotAllowed, "wants a user name and password", "git help credentials")
    assert not asked.exists()


def test_a_password_in_an_address_is_never_shown(pair: Pair, running: dict[str, Server]) -> None:
    secret = "hunter2hunter2"
    for path in ("401", "403", "500", "none"):
        url = running["http"].url(f"{path}/{pair.bare.path.name}").replace("//", f"//ada:{secret}@")
        pair.remotes(url)
        add(pair.a, path)
        with pytest.raises(LedgerError) as raised:
            synced(pair.a)
        assert secret not in str(raised.value)
    pair.remotes(f"http://ghp_{secret}@127.0.0.1:{servers.free_port()}/x.git?token={secret}")
    with pytest.raises(TryAgain) as raised:
        synced(pair.a)
    assert secret not in str(raised.value)
    said(pair.a, "remote", "set", "origin")
    told = "".join(said(pair.a, *words).out for words in (("remote", "show"), ("status",), ("briefing",)))
    assert "sync failed" in told
    assert secret not in told
    for words in (("remote", "set"), ("config", "set", "remote.name")):
        address = f"https://ada:{secret}@example.org/x.git"
        ran = run("-C", str(pair.a.path), *words, address, terminal=False)
        assert secret not in ran.out + ran.err
    assert secret not in said(pair.a, "config", "list").out + said(pair.a, "config", "get", "remote.name", "--json").out
    assert secret not in said(pair.a, "sync", status=65).err
    for kept_file in (pair.a.path / ".git" / "gitledger").glob("sync-*"):
        assert secret not in kept_file.read_text()


@pytest.mark.parametrize("scheme", ["git", "http", "ssh"])
def test_a_server_that_says_nothing_is_left_at_the_deadline_with_no_child(
    scheme: str, pair: Pair, running: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers.black_hole() as hole:
        word = f"{os.getpid()}-{pair.a.path.parent.name}-hole"  # another process may run this test of another scheme
        pair.remotes(f"{scheme}://{hole.base}/{word}.git")
        over = threading.Event()

        def look(under_way: list[str]) -> None:
            while not (under_way or over.wait(0.05)):
                under_way.extend(servers.children(word))

        def attempt(seconds: float) -> list[str]:
            under_way: list[str] = []
            over.clear()
            looking = threading.Thread(target=look, args=(under_way,))
            looking.start()
            try:
                refused(pair, TryAgain, "did not answer within the time", deadline=seconds)
            finally:
                over.set()
                looking.join()
            return under_way

        begun(attempt, lambda seen: hole.log and (seen or not sys.platform.startswith("linux")), 1.0)
        assert until(lambda: servers.children(word) == [])


def test_a_host_that_cannot_be_reached_is_told_as_that(pair: Pair) -> None:
    port = servers.free_port()
    for url in (
        f"git://127.0.0.1:{port}/x.git",
        f"http://127.0.0.1:{port}/x.git",
        f"ssh://127.0.0.1:{port}/x.git",
        "git://x.invalid/x.git",
        "http://x.invalid/x.git",
        "ssh://x.invalid/x.git",
        "x.invalid:x.git",
    ):
        pair.remotes(url)
        refused(pair, TryAgain, "cannot be reached", "sync when the network is back")


def test_what_is_no_repository_is_told_as_that(
    pair: Pair, running: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, server in running.items():
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        pair.remotes(server.url("nothing.git"))
        refused(pair, Missing, "is no git repository", "git remote -v"), kind
    pair.remotes(running["http"].url("500/x.git"))
    refused(pair, TryAgain, "cannot be reached")


def test_ssh_that_would_ask_is_refused_with_the_next_step(
    pair: Pair, running: dict[str, Server], seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach("ssh", running, pair, monkeypatch)
    folder = seed.folder / "servers"
    ask = pair.a.path.parent / "ask"
    ask.write_text("#!/bin/sh\ntouch asked\necho x\n")
    ask.chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(ask))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("GIT_SSH_COMMAND", servers.ssh_command(folder, "locked"))
    refused(pair, NotAllowed, "ssh-add")
    monkeypatch.setenv("GIT_SSH_COMMAND", servers.ssh_command(folder, "stranger"))
    refused(pair, NotAllowed, "does not let this user in")
    monkeypatch.setenv("GIT_SSH_COMMAND", servers.ssh_command(folder, "id", known="nobody"))
    refused(pair, NotAllowed, "is not known to ssh by its host key", "compare the fingerprint")
    assert not (pair.a.path / "asked").exists()


def test_a_repository_of_another_object_format_is_told_as_that(
    pair: Pair, running: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = new_repo(pair.a.path.parent / "other", "--object-format=sha256")
    other.commit("first")
    shutil.rmtree(pair.bare.path)
    other.git("clone", "--quiet", "--bare", str(other.path), str(pair.bare.path))
    for kind in ("path", "http"):
        reach(kind, running, pair, monkeypatch)
        refused(pair, Unsupported, "another object format", "sha1 against sha256")


def test_an_empty_remote_is_not_begun_with_a_ledger(pair: Pair) -> None:
    shutil.rmtree(pair.bare.path)
    pair.bare.path.mkdir()
    pair.bare.git("init", "--quiet", "--bare")
    refused(pair, NotAllowed, "has no branch yet", "its default", "git push")
    pair.a.git("push", "--quiet", "origin", f"{BRANCH}:refs/heads/ledger/other")
    refused(pair, NotAllowed, "has no branch yet")
    pair.a.git("push", "--quiet", "origin", "main")
    assert synced(pair.a).pushed


# ── a remote that is not what it was ─────────────────────────────────────────────────────────
def told(repo: Repo) -> str:
    """What the status and the briefing say, without the findings that only one of them has."""
    config.set_value(config.clone_path(str(repo.path / ".git")), "remote.name", "origin")
    facts = briefing.gather(at(repo))
    pages = page.briefing(facts), status.status(facts)
    return "\n".join(
        f"{fault.rule}: {fault.what}" for fault in facts.findings if all(fault.rule in said for said in pages)
    )


def incoming(repo: Repo) -> str:
    return repo.git("rev-parse", "refs/ledgers/incoming/origin/main")


def test_a_remote_that_went_back_is_refused_until_a_person_accepts_that_very_commit(pair: Pair) -> None:
    first = pair.bare.git("rev-parse", BRANCH)
    add(pair.a, "Of a's")
    tip = synced(pair.a).tip
    pair.bare.git("update-ref", BRANCH, first)
    refused(pair, syncing.Refused, "went back to", first[:12], "docs/sync.md, What is refused")
    assert pair.a.git("rev-parse", BRANCH) == tip
    assert incoming(pair.a) == first
    assert "went back: " in told(pair.a)
    assert "went back to" in said(pair.a, "sync", status=77).err
    refused(pair, syncing.Refused, "went back to")
    for wrong, code in ((first[:12], 65), (tip, 77), ("HEAD", 65), ("0" * 40, 77)):
        said(pair.a, "remote", "accept", wrong, status=code)
    refused(pair, syncing.Refused, "went back to")
    assert first[:12] in said(pair.a, "remote", "show").out
    assert f"Accepted {first[:12]}" in said(pair.a, "remote", "accept", first).out
    assert synced(pair.a).pushed
    assert pair.bare.git("rev-parse", BRANCH) == tip
    assert "went back" not in told(pair.a)
    assert pair.a.git("for-each-ref", "refs/ledgers/incoming") == ""


def test_a_remote_that_was_rewritten_is_refused_and_merged_once_it_was_accepted(pair: Pair) -> None:
    first = pair.bare.git("rev-parse", BRANCH)
    add(pair.a, "Of a's")
    tip = synced(pair.a).tip
    pair.bare.git("update-ref", BRANCH, first)
    add(pair.b, "Of b's")
    other = synced(pair.b).tip
    refused(pair, syncing.Refused, "its history was rewritten", tip[:12])
    assert "rewritten" in told(pair.a)
    assert incoming(pair.a) == other
    said(pair.a, "remote", "accept", other)
    assert synced(pair.a).merged
    assert {"Of a's", "Of b's"} <= titles(pair.a)


def test_a_remote_whose_ledger_vanished_is_refused_until_a_person_says_it_may_begin_again(pair: Pair) -> None:
    synced(pair.a)
    pair.bare.git("update-ref", "-d", BRANCH)
    refused(pair, syncing.Refused, "the remote's ledger is gone")
    assert "vanished" in told(pair.a)
    said(pair.a, "remote", "accept", "gone")
    assert synced(pair.a).pushed
    assert "vanished" not in told(pair.a)


def test_accepting_says_what_it_leaves_and_takes(pair: Pair) -> None:
    said(pair.a, "remote", "accept", "0" * 40, status=78)
    said(pair.a, "remote", "set", "origin")
    said(pair.a, "remote", "accept", "0" * 40, status=69)
    said(pair.a, "remote", "accept", "gone", status=69)


def test_another_root_is_refused_and_stays_so(pair: Pair, tmp_path: Path) -> None:
    other = new_repo(tmp_path / "other")
    other.commit("first")
    discover.init(str(other.path), "main", "Another")
    new = other.git("rev-parse", BRANCH)
    other.git("push", "--quiet", "--force", str(pair.bare.path), BRANCH)
    refused(pair, syncing.Refused, "another ledger", "begun apart")
    assert "another root" in told(pair.a)
    said(pair.a, "remote", "accept", new, status=69)
    refused(pair, syncing.Refused, "another ledger")


FOREIGN = {
    "unsigned": "is not taken in (signature): it is not signed",
    "signed by a stranger": "is not taken in (trailers)",
    "no ledger's files": "holds no ledger",
}


@pytest.mark.parametrize("how", FOREIGN)
def test_a_commit_that_stock_git_pushed_is_refused_until_it_is_gone(how: str, pair: Pair, tmp_path: Path) -> None:
    synced(pair.a)
    first = pair.bare.git("rev-parse", BRANCH)
    work = tmp_path / "work"
    pair.bare.git("clone", "--quiet", "--branch", "ledger/main", str(pair.bare.path), str(work))
    stock = identify(Repo(work))
    if how == "signed by a stranger":
        key = tmp_path / "stranger"
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key)), ("commit.gpgsign", "true")):
            stock.git("config", name, value)
    if how == "no ledger's files":
        stock.git("rm", "--quiet", "-r", ".")
    new = stock.commit("an edit by hand", {"PROJECT.md": "mine now\n"})
    stock.git("push", "--quiet", "origin", BRANCH)
    add(pair.a, "Of a's")
    sync.journal(at(pair.a))
    refused(pair, syncing.Refused, FOREIGN[how])
    assert incoming(pair.a) == new
    assert FOREIGN[how] in told(pair.a)
    said(pair.a, "remote", "accept", new, status=77)
    pair.bare.git("update-ref", BRANCH, first)
    assert synced(pair.a).pushed
    assert FOREIGN[how] not in told(pair.a)
