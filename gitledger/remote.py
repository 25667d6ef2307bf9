"""The one remote that a ledger is backed up to, reached by git itself: a path, `git://`, http or ssh.

Only the remote that was named is ever contacted, by one explicit refspec each way, never forced. What git says when it
is refused is turned into one line by `refusal`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from gitledger import gitcli, refusal, store
from gitledger.errors import BadConfig, BadData, Missing, NotAllowed, TryAgain, Unsupported
from gitledger.gitdir import GitDir
from gitledger.model import Oid
from gitledger.patterns import pattern
from gitledger.values import dataclass, field

INCOMING = "refs/ledgers/incoming"
SEEN = "refs/ledgers/seen"
_COMPLETING = (("--refetch",), ("--depth=2147483646",))
"""What else is asked of git where objects are lacking, then where commits are: deepening alone leaves out the former.

The depth is not git's own infinity, which would make the user's branches whole as well.
"""
_USAGE = 129
_OWN_LOCK = pattern(rf"'[^']*/{INCOMING}/[^']*\.lock': File exists")
LEDGERS = "refs/heads/ledger/"

Meanwhile = Callable[[], object]
"""What is done beside a fetch."""

_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_URL = pattern(r"(?:(?:https?|ssh|git|file)://|(?:[A-Za-z0-9._]+@)?[A-Za-z0-9][A-Za-z0-9._-]*:(?!:|//)|\.{0,2}/).+\Z")
_ALIAS = ".gitledger"
"""What git calls the remote here: a name that has only the settings it is given, and no branch that tracks it."""
_REACHED_BY = ("uploadpack", "receivepack", "proxy", "proxyauthmethod", "vcs", "promisor")
_ROW = pattern(r"([0-9a-f]{40,64})\t(\S+)\Z")


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a ledger is backed up: what git is told (a remote's name, a URL or a path), and its name among our refs."""

    where: str
    slug: str

    @property
    def named(self) -> bool:
        """True where it is a name that git's configuration explains, not an address."""
        return self.where == self.slug

    @property
    def shown(self) -> str:
        """As messages name it: without a password or token that stands in an address."""
        return refusal.bare(self.where)


@dataclass(slots=True)
class Line:
    """One conversation with a remote: how long it may last in all, and who is told how it goes."""

    gitdir: GitDir
    remote: Remote
    name: str
    until: float
    heard: Callable[[str], None] | None = None
    refs: dict[str, Oid] = field(default_factory=dict)  # our own ones, as they were after the last fetch
    place: dict[str, str] = field(default_factory=dict)
    packs: list[str] = field(default_factory=list)  # what fetches brought, by paths without an ending

    @property
    def branch(self) -> str:
        """The ledger's branch as both sides call it."""
        return f"{LEDGERS}{self.name}"

    @property
    def incoming(self) -> str:
        """The ref that holds what was fetched last, accepted or not."""
        return f"{INCOMING}/{self.remote.slug}/{self.name}"

    @property
    def seen(self) -> str:
        """The ref that holds the highest tip ever accepted from this remote."""
        return f"{SEEN}/{self.remote.slug}/{self.name}"


def read(text: str) -> Remote:
    """A remote as a person names it; raise BadData for what git could take as an option or another transport.

    So for an address with a password in it: it would be kept in a file of ours.
    """
    if refusal.PASSWORD.search(text):
        raise BadData(
            f"{refusal.bare(text)[:80]!r} was given with a password, which would be kept in a file; leave it out and "
            "let git ask a credential helper: git help credentials"
        )
    if _NAME.match(text) and not text.endswith(".lock") and ".." not in text and not text.endswith("."):
        return Remote(text, text)
    if _URL.match(text) and not any(c < " " or c == "\x7f" for c in text):
        return Remote(text, f"url-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    raise BadData(
        f"{refusal.bare(text)[:80]!r} is neither a git remote's name nor an address; list the names with: git remote"
    )


def names(gitdir: GitDir) -> list[str]:
    """The remotes that this repository's git knows by name."""
    return gitcli.run(["remote"], cwd=_at(gitdir)).line.splitlines()


def address(gitdir: GitDir, remote: Remote) -> str:
    """Where git would go for a remote, without a password; "" for a name that git does not know."""
    if not remote.named:
        return remote.shown
    answer = gitcli.run(["remote", "get-url", remote.where], cwd=_at(gitdir), check=False)
    return refusal.bare(answer.line) if answer.code == 0 else ""


def place(gitdir: GitDir, remote: Remote) -> dict[str, str]:
    """How to get there, as git's configuration says it and nothing else of that remote: no refspec, mirror or tag rule.

    Raise Missing for a name that git does not know, BadConfig where fetch and push would go to different places or to
    several: what is pushed is to be what is fetched the next time.
    """
    return _reached(gitdir, remote, _settings(gitdir, remote))


_SSH = "core.sshcommand"  # as git tells it


def _settings(gitdir: GitDir, remote: Remote) -> dict[str, list[str]]:
    """What git's configuration says of a remote, by the last word, and of the ssh that it calls."""
    wanted = rf"{re.escape(_SSH)}|remote\.{re.escape(remote.where)}\.[^.]*" if remote.named else re.escape(_SSH)
    words = ["config", "--null", "--get-regexp", f"^({wanted})$"]
    rows = gitcli.run(words, cwd=_at(gitdir), check=False).line.split("\0")
    said: dict[str, list[str]] = {}
    for key, value in (row.partition("\n")[::2] for row in rows if row):
        said.setdefault(key if key == _SSH else key.rpartition(".")[2], []).append(value)
    return said


def _reached(gitdir: GitDir, remote: Remote, said: dict[str, list[str]]) -> dict[str, str]:
    found = {"url": remote.where}
    if remote.named:
        urls = said.get("url") or _unlisted(gitdir, remote)
        if {*urls, *said.get("pushurl", ())} != {urls[0]}:
            raise BadConfig(
                f"git's remote {remote.where} stands for several addresses, and a ledger is backed up to one; "
                "name that one: gitledger remote set ADDRESS"
            )
        found = {key: said[key][-1] for key in _REACHED_BY if key in said} | {"url": urls[0]}
    return found


def _unlisted(gitdir: GitDir, remote: Remote) -> list[str]:
    """A remote's addresses where `git config` has none: git has had other files for them."""
    answer = gitcli.run(["remote", "get-url", "--all", remote.where], cwd=_at(gitdir), check=False)
    if answer.code:
        # Git would take the name for a path, and go wherever that leads.
        known = ", ".join(names(gitdir)) or "none"
        raise Missing(
            f"git knows no remote {remote.where} here, only: {known}; add it, or name another: gitledger remote set"
        )
    return answer.line.splitlines()


def branches(line: Line) -> dict[str, Oid]:
    """Every branch of the remote with its tip; none for a remote that is empty."""
    answer = _talk(line, ["ls-remote", "--heads", _ALIAS])
    rows = (_ROW.match(row) for row in answer.line.splitlines())
    return {row[2]: row[1] for row in rows if row}


def fetch(line: Line, *, more: Sequence[str] = (), meanwhile: Meanwhile | None = None) -> Oid | None:
    """Fetch the remote's ledger into quarantine: its tip there, None where the remote has no such branch.

    No ref but the quarantine's moves, no tag comes along, and git checks every object that it takes in, and syncs it.
    `meanwhile` is done while git does; what that raises ends the fetch.
    """
    words = ["-c", "fetch.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    words += ["-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync"]  # a ref is to name it, which is synced
    words += ["-c", "fetch.writeCommitGraph=false", "-c", "submodule.recurse=false"]
    words += ["fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-filter", "--no-prune"]
    words += ["--refmap=", *more, *_told(line), _ALIAS]
    lock = os.path.join(line.gitdir.common, f"{line.incoming}.lock")
    was_there = os.path.lexists(lock)
    before = _packs(line.gitdir)
    try:
        answer = _talk(line, [*words, f"+{line.branch}:{line.incoming}"], check=False, meanwhile=meanwhile)
    except BaseException:
        if not was_there:  # git was killed with all its children, and this is what it leaves
            with suppress(OSError):
                os.unlink(lock)
        raise
    if answer.code:
        if os.path.lexists(lock) and _OWN_LOCK.search(answer.err):
            raise store.lock_is_held(lock)  # else it would be taken for the server's
        if answer.code == _USAGE:
            raise Unsupported("git cannot complete a shallow or partial clone's ledger before 2.36; update git")
        if f"couldn't find remote ref {line.branch}" in answer.err:
            return None
        raise refusal.of(_said(answer), line.remote.shown, "fetch")
    words = ["for-each-ref", "--format=%(refname) %(objectname)", line.incoming, line.seen]
    rows = gitcli.run(words, cwd=_at(line.gitdir)).line.splitlines()
    line.refs = {ref: oid for ref, _, oid in (row.partition(" ") for row in rows)}
    line.packs += sorted(_packs(line.gitdir) - before)
    return line.refs.get(line.incoming)


def _packs(gitdir: GitDir) -> set[str]:
    folder = os.path.join(gitdir.common, "objects", "pack")
    try:
        names = os.listdir(folder)
    except OSError:
        return set()
    return {os.path.join(folder, name.removesuffix(".idx")) for name in names if name.endswith(".idx")}


def seen(line: Line) -> Oid | None:
    """The highest tip ever accepted from the remote; None for none."""
    return line.refs.get(line.seen) if line.refs else tip(line, line.seen)


def fetch_whole(line: Line, known: Oid | None = None, meanwhile: Meanwhile | None = None) -> Oid | None:
    """As `fetch`, and what a shallow or partial clone lacks of the ledger behind `known`: nothing is fetched later.

    For everything but the ledger the clone stays as shallow or partial as it was. Raises Missing where the remote does
    not have all of it either.
    """
    found = fetch(line, meanwhile=meanwhile)
    if found is None or not _may_lack(line.gitdir):
        return found
    for more in _COMPLETING:
        if found is None or is_whole(line.gitdir, found, known):
            return found
        found = fetch(line, more=more)
    if found is not None and not is_whole(line.gitdir, found, known):
        raise Missing(f"{line.remote.shown} does not have the ledger whole: objects are missing; run git fsck there")
    return found


def is_whole(gitdir: GitDir, tip: Oid, known: Oid | None = None) -> bool:
    """True where all that `tip` reaches and `known` does not is here, and `.git/shallow` cuts none of it off."""
    words = ["rev-list", "--objects", "--missing=print", tip, *([f"^{known}"] if known else [])]
    answer = gitcli.run(words, cwd=_at(gitdir), deadline=120, check=False)
    if answer.code or b"\n?" in answer.out:
        return False
    try:
        with open(os.path.join(gitdir.common, "shallow"), encoding="ascii", errors="replace") as f:
            cut = set(f.read().split())
    except OSError:
        return True
    return cut.isdisjoint(row.partition(" ")[0] for row in answer.line.splitlines())


def _may_lack(gitdir: GitDir) -> bool:
    """True in a shallow or partial clone."""
    try:
        packs = os.listdir(os.path.join(gitdir.common, "objects", "pack"))
    except OSError:
        packs = []
    return os.path.exists(os.path.join(gitdir.common, "shallow")) or any(name.endswith(".promisor") for name in packs)


def push(line: Line, new: Oid) -> bool:
    """Push a commit as the remote's ledger; False where the remote has moved since it was fetched. Never forced."""
    words = ["-c", "push.followTags=false", "-c", "push.recurseSubmodules=no", "-c", "push.gpgSign=false"]
    words += ["-c", "push.pushOption=", "push", "--porcelain", "--no-verify", "--no-force"]
    words += [*_told(line), _ALIAS, f"{new}:{line.branch}"]
    answer = _talk(line, words, check=False)
    if answer.code == 0:
        return True
    if refusal.moved(_said(answer)):
        return False
    raise refusal.of(_said(answer), line.remote.shown, "push")


def tip(line: Line, ref: str) -> Oid | None:
    """Where one of our own refs is; None where it is not there."""
    answer = gitcli.run(["rev-parse", "--verify", "--quiet", ref], cwd=_at(line.gitdir), check=False)
    return answer.line or None


def move(line: Line, ref: str, new: Oid) -> None:
    """Set one of our own refs, durably enough: what it says can be found out again."""
    gitcli.run(["update-ref", "--no-deref", ref, new], cwd=_at(line.gitdir))


def accept(line: Line, new: Oid) -> None:
    """Remember `new` as the highest tip accepted from the remote, and end the quarantine."""
    told = f"update {line.seen} {new}\ndelete {line.incoming}\n".encode()
    gitcli.run(["update-ref", "--no-deref", "--stdin"], cwd=_at(line.gitdir), input=told)


def drop(line: Line, ref: str) -> None:
    """Take one of our own refs away; none is no fault."""
    gitcli.run(["update-ref", "--no-deref", "-d", ref], cwd=_at(line.gitdir), check=False)


# ── git ──────────────────────────────────────────────────────────────────────────────────────
def _place(line: Line) -> dict[str, str]:
    # By the environment: an address may hold a password, and every user sees a command line.
    if not line.place:
        said = _settings(line.gitdir, line.remote)
        found = _reached(line.gitdir, line.remote, said)
        line.place |= silent(said.get(_SSH, [""])[-1])
        line.place["GIT_CONFIG_COUNT"] = str(len(found))
        for i, (key, value) in enumerate(found.items()):
            line.place |= {f"GIT_CONFIG_KEY_{i}": f"remote.{_ALIAS}.{key}", f"GIT_CONFIG_VALUE_{i}": value}
    return line.place


def _at(gitdir: GitDir) -> str:
    return os.fspath(gitdir.top or gitdir.git_dir)


def _said(answer: gitcli.Answer) -> str:
    return f"{answer.line}\n{answer.err}"


def _told(line: Line) -> list[str]:
    return ["--progress"] if line.heard else ["--quiet"]


def _talk(line: Line, words: Sequence[str], *, check: bool = True, meanwhile: Meanwhile | None = None) -> gitcli.Answer:
    left = line.until - time.monotonic()
    if left <= 0:
        raise TryAgain(f"{line.remote.shown} did not answer within the time; nothing is lost here: try again")
    env = _place(line)
    try:
        answer = gitcli.run(
            words,
            cwd=_at(line.gitdir),
            deadline=left,
            check=False,
            extra_env=env,
            heard=line.heard,
            meanwhile=meanwhile,
        )
    except TryAgain:
        raise TryAgain(f"{line.remote.shown} did not answer within the time; nothing is lost here: try again") from None
    if check and answer.code:
        raise refusal.of(_said(answer), line.remote.shown, gitcli.subcommand(words))
    return answer


def silent(configured: str) -> dict[str, str]:
    """What keeps git, and the ssh that it is configured with, from asking anybody: who waits here waits for ever."""
    quiet = {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
    if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ:
        return quiet  # a program of the user's own, whose options nobody knows
    command = os.environ.get("GIT_SSH_COMMAND") or configured or "ssh"
    try:
        program = os.path.basename(shlex.split(command)[0])
    except (ValueError, IndexError):
        return quiet
    if program in ("ssh", "ssh.exe"):
        quiet["GIT_SSH_COMMAND"] = f"{command} -oBatchMode=yes -oConnectTimeout=15"
    return quiet


def refuse_default(line: Line) -> None:
    """Raise NotAllowed where the ledger would be the remote's first branch, which hosts then take as the default."""
    there = branches(line)
    if all(ref.startswith(LEDGERS) for ref in there):
        raise NotAllowed(
            f"{line.remote.shown} has no branch yet, and the first one pushed becomes its default; "
            "push your own work first: git push"
        )


def contains(line: Line, tip: Oid, commit: Oid) -> bool:
    """True where `tip` is `commit` or comes after it."""
    if tip == commit:
        return True
    words = ["merge-base", "--is-ancestor", commit, tip]
    return gitcli.run(words, cwd=_at(line.gitdir), deadline=60, check=False).code == 0
