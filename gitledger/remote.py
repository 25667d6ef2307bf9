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
from dataclasses import dataclass, field

from gitledger import gitcli, refusal
from gitledger.errors import BadData, NotAllowed, TryAgain
from gitledger.gitdir import GitDir
from gitledger.model import Oid
from gitledger.redact import redact

INCOMING = "refs/ledgers/incoming"
SEEN = "refs/ledgers/seen"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_URL = re.compile(r"(?:(?:https?|ssh|git|file)://|[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:|\.{0,2}/).+\Z")
_ROW = re.compile(r"([0-9a-f]{40,64})\t(\S+)\Z")


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a ledger is backed up: what git is told (a remote's name, a URL or a path), and its name among our refs."""

    where: str
    slug: str

    @property
    def shown(self) -> str:
        """As messages name it: without a password that stands in a URL."""
        return redact(self.where)


@dataclass(slots=True)
class Line:
    """One conversation with a remote: how long it may last in all, and who is told how it goes."""

    gitdir: GitDir
    remote: Remote
    name: str
    until: float
    heard: Callable[[str], None] | None = None
    contacted: int = field(default=0)

    @property
    def branch(self) -> str:
        """The ledger's branch as both sides call it."""
        return f"refs/heads/ledger/{self.name}"

    @property
    def incoming(self) -> str:
        """The ref that holds what was fetched last, accepted or not."""
        return f"{INCOMING}/{self.remote.slug}/{self.name}"

    @property
    def seen(self) -> str:
        """The ref that holds the highest tip ever accepted from this remote."""
        return f"{SEEN}/{self.remote.slug}/{self.name}"


def read(text: str) -> Remote:
    """A remote as a person names it; raise BadData for what git could take as an option or another transport."""
    if _NAME.match(text) and not text.endswith(".lock") and ".." not in text and not text.endswith("."):
        return Remote(text, text)
    if _URL.match(text) and not any(c < " " or c == "\x7f" for c in text):
        return Remote(text, f"url-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    raise BadData(
        f"{redact(text)[:80]!r} is neither a git remote's name nor an address; list the names with: git remote"
    )


def names(gitdir: GitDir) -> list[str]:
    """The remotes that this repository's git knows by name."""
    return gitcli.run(["remote"], cwd=_at(gitdir)).line.splitlines()


def address(gitdir: GitDir, remote: Remote) -> str:
    """Where git would go for a remote, without a password; "" for a name that git does not know."""
    if remote.where != remote.slug:
        return remote.shown
    answer = gitcli.run(["remote", "get-url", remote.where], cwd=_at(gitdir), check=False)
    return redact(answer.line) if answer.code == 0 else ""


def branches(line: Line) -> dict[str, Oid]:
    """Every branch of the remote with its tip; none for a remote that is empty."""
    answer = _talk(line, ["ls-remote", "--heads", line.remote.where])
    rows = (_ROW.match(row) for row in answer.line.splitlines())
    return {row[2]: row[1] for row in rows if row}


def fetch(line: Line) -> Oid | None:
    """Fetch the remote's ledger into quarantine: its tip there, None where the remote has no such branch.

    No ref but the quarantine's moves, no tag comes along, and git checks every object that it takes in.
    """
    words = ["-c", "fetch.fsckObjects=true", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    words += ["-c", "fetch.writeCommitGraph=false", "-c", "submodule.recurse=false"]
    words += ["fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-filter"]
    words += ["--refmap=", *_told(line), line.remote.where, f"+{line.branch}:{line.incoming}"]
    answer = _talk(line, words, check=False)
    if answer.code:
        if f"couldn't find remote ref {line.branch}" in answer.err:
            return None
        raise refusal.of(_said(answer), line.remote.shown, "fetch")
    return tip(line, line.incoming)


def push(line: Line, new: Oid) -> bool:
    """Push a commit as the remote's ledger; False where the remote has moved since it was fetched. Never forced."""
    words = ["-c", "push.followTags=false", "-c", "push.recurseSubmodules=no", "-c", "push.gpgSign=false"]
    words += ["push", "--porcelain", "--no-verify", *_told(line), line.remote.where, f"{new}:{line.branch}"]
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


def drop(line: Line, ref: str) -> None:
    """Take one of our own refs away; none is no fault."""
    gitcli.run(["update-ref", "--no-deref", "-d", ref], cwd=_at(line.gitdir), check=False)


# ── git ──────────────────────────────────────────────────────────────────────────────────────
def _at(gitdir: GitDir) -> str:
    return os.fspath(gitdir.top or gitdir.git_dir)


def _said(answer: gitcli.Answer) -> str:
    return f"{answer.line}\n{answer.err}"


def _told(line: Line) -> list[str]:
    return ["--progress"] if line.heard else ["--quiet"]


def _talk(line: Line, words: Sequence[str], *, check: bool = True) -> gitcli.Answer:
    left = line.until - time.monotonic()
    if left <= 0:
        raise TryAgain(f"{line.remote.shown} did not answer within the time; nothing is lost here: try again")
    line.contacted += 1
    try:
        answer = gitcli.run(
            words, cwd=_at(line.gitdir), deadline=left, check=False, extra_env=silent(line.gitdir), heard=line.heard
        )
    except TryAgain:
        raise TryAgain(f"{line.remote.shown} did not answer within the time; nothing is lost here: try again") from None
    if check and answer.code:
        raise refusal.of(_said(answer), line.remote.shown, gitcli.subcommand(words))
    return answer


def silent(gitdir: GitDir) -> dict[str, str]:
    """What keeps git and ssh from asking anybody anything: whoever waits for an answer here waits for ever."""
    quiet = {"GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
    if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ:
        return quiet  # a program of the user's own, whose options nobody knows
    configured = gitcli.run(["config", "--get", "core.sshCommand"], cwd=_at(gitdir), check=False).line
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
    if not any(ref != line.branch for ref in there):
        raise NotAllowed(
            f"{line.remote.shown} has no branch yet, and the first one pushed becomes its default; "
            "push your own work first: git push"
        )


def news(line: Line, tip: Oid, known: Oid) -> tuple[list[Oid], list[Oid]]:
    """The commits that `tip` reaches and `known` does not, oldest first, and those of `known` that they stand on.

    By git, which is fast; that nothing is left out of it is for whoever verifies them to see.
    """
    words = ["rev-list", "--topo-order", "--reverse", "--boundary", tip, f"^{known}"]
    rows = gitcli.run(words, cwd=_at(line.gitdir), deadline=120).line.splitlines()
    return [row for row in rows if not row.startswith("-")], [row[1:] for row in rows if row.startswith("-")]


def count(line: Line, tip: Oid, known: Oid | None) -> int:
    """How many commits `tip` reaches that `known` does not; all where that is none."""
    words = ["rev-list", "--count", tip, *([f"^{known}"] if known else [])]
    return int(gitcli.run(words, cwd=_at(line.gitdir), deadline=120).line)


def contains(line: Line, tip: Oid, commit: Oid) -> bool:
    """True where `tip` is `commit` or comes after it."""
    if tip == commit:
        return True
    words = ["merge-base", "--is-ancestor", commit, tip]
    return gitcli.run(words, cwd=_at(line.gitdir), deadline=60, check=False).code == 0
