"""What a remote that refuses says, as one line with the next step: read from git's and ssh's words, in English. Pure.

Hosts word it as they like, so the most telling words come first, and what nothing fits is passed on as it was said.
"""

from __future__ import annotations

import re

from gitledger.errors import CannotWrite, IOFailed, LedgerError, Missing, NotAllowed, TryAgain, Unsupported
from gitledger.redact import redact
from gitledger.values import dataclass

PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]*@")
"""A password in an address, as a person types it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Words that git, ssh or a host says, what they mean, and what a person does about it."""

    words: str
    kind: type[LedgerError]
    what: str
    mend: str


_EMPTY = (
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
)
"""What git adds whatever happened."""

_KNOWN = (
    _Known(
        r"mismatched algorithms|unsupported object format|hash algorithm",
        Unsupported,
        "uses another object format (sha1 against sha256)",
        "name a remote of this repository's own format",
    ),
    _Known(
        r"[Pp]rotected branch|GH006|GH013|GL-HOOK-ERR|hook declined|hook failed|branch is locked",
        NotAllowed,
        "declined the push by a rule of its own",
        "allow pushes to ledger/* there without force, see docs/server.md",
    ),
    _Known(
        r"Enter passphrase|passphrase|agent refused|sign_and_send_pubkey|communication with agent failed",
        NotAllowed,
        "wants a passphrase, and nobody is asked here",
        "unlock the key first: ssh-add",
    ),
    _Known(
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED|No .* host key is known",
        NotAllowed,
        "is not known to ssh by its host key",
        "connect once by hand, compare the fingerprint, and sync again",
    ),
    _Known(
        r"Permission denied \([\w,-]*publickey",
        NotAllowed,
        "does not let this user in",
        "unlock the key if it has a passphrase (ssh-add), and see that the host knows it",
    ),
    _Known(
        r"Permission denied \(|Permission to .* denied|(?:error:|HTTP) 40[13]\b|access denied|not allowed to push|"
        r"remote: HTTP Basic: Access denied|DENIED|read access|write access|service not enabled|access not permitted",
        NotAllowed,
        "does not let this user in, or not write",
        "check the key or token, and who may push there",
    ),
    _Known(
        r"could not read (?:Username|Password)|terminal prompts disabled|Authentication failed",
        NotAllowed,
        "wants a user name and password, and nobody is asked here",
        "set up a credential helper: git help credentials",
    ),
    _Known(
        r"does not appear to be a git repository|no such repository|repository not exported|[Rr]epository .*not found|"
        r"No such remote|(?:error:|HTTP) 404\b|^fatal: .*not found$|'.*' does not exist",
        Missing,
        "is no git repository, or not one that this user may see",
        "check its address: git remote -v",
    ),
    _Known(
        r"SSL certificate|certificate verif|[Ss]elf[- ]signed certificate|server certificate|SSL: no alternative",
        NotAllowed,
        "cannot prove by its certificate who it is",
        "have the certificate mended, or its issuer known: git help config, http.sslCAInfo",
    ),
    _Known(
        r"Could not resolve host|Name or service not known|Temporary failure in name resolution|"
        r"Connection refused|Connection timed out|Operation timed out|unable to connect|Couldn't connect|"
        r"Failed to connect|Network is unreachable|No route to host|Connection reset|Connection closed|"
        r"early EOF|hung up unexpectedly|(?:error:|HTTP) (?:429|50[0-9])\b|unable to access",
        TryAgain,
        "cannot be reached",
        "the ledger here is complete: sync when the network is back",
    ),
    _Known(r"[Nn]o space left|disk quota", IOFailed, "has no space left", "free some there"),
    _Known(
        r"insufficient permission|unable to create|unpacker error|Read-only file system|Permission denied",
        CannotWrite,
        "cannot be written by this user",
        "mend its permissions",
    ),
    _Known(
        r"fsck|bad object|corrupt|index-pack failed|missing",
        IOFailed,
        "sends objects that git refuses",
        "run git fsck there",
    ),
    _Known(r"cannot lock ref|failed to update ref|\block\b", TryAgain, "is busy", "try again"),
)


def moved(said: str) -> bool:
    """True where a push was refused because somebody else was faster: fetch, merge and try again."""
    return bool(
        re.search(r"\[rejected\] \((?:fetch first|non-fast-forward|stale info)\)", said)
        or re.search(r"\[remote rejected\] \((?:failed to update ref|cannot lock ref|.*incorrect old value)", said)
        or "reference already exists" in said
        or ("cannot lock ref" in said and ("is at" in said or "File exists" in said))
    )


def of(said: str, remote: str, word: str) -> LedgerError:
    """The error for a conversation that failed: what is known of such words, and git's own complaint behind it."""
    known = next((one for one in _KNOWN if re.search(one.words, said, re.MULTILINE)), None)
    theirs = bare(complaint(said))
    if known is None:
        return IOFailed(f"git {word} with {remote} failed: {theirs}; nothing is lost here: mend that and sync again")
    return known.kind(f"{remote} {known.what} ({theirs}); {known.mend}")


def bare(text: str) -> str:
    """`text` with every web address in it without user, password and query, every other one without its password."""
    text = re.sub(r"\b(https?://)[^/@\s]*@", r"\1", text)
    text = re.sub(r"\b(https?://[^\s?'\"]*)\?[^\s'\"]*", r"\1", text)
    return redact(re.sub(r"://([^/:@\s]*):[^/@\s]*@", r"://\1@", text))


def complaint(said: str) -> str:
    """The line of git's output that says most: what the host says of a push it declined, a rejection, a complaint."""
    rows = [row.strip() for row in said.replace("\r", "\n").splitlines() if row.strip()]
    rows = [row for row in rows if row not in _EMPTY] or rows
    hosts = ("remote: error:", "remote: GitLab:", "remote: Gitea:") if "[remote rejected]" in said else ()
    begins = (*hosts, "!", "fatal:", "error:", "ERROR:", "remote:")
    for begin in begins:
        for row in rows:
            if row.startswith(begin):
                return " ".join(row.removeprefix("remote:").lstrip("!\t ").split())[:200]
    return " ".join(rows[-1].split())[:200] if rows else "nothing was said"
