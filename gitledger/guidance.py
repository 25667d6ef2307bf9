"""What an agent is told of working with a ledger: one text, put where each client reads instructions, and out again.

It stands between two marks, beside whatever a person wrote in that file. The first mark says for whom it is there, what
was put before it, and the digest of the text: so it comes out byte for byte without anything remembered elsewhere, and
one that somebody edited is theirs and is left alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping

from gitledger import gitdir, settingsfile, signing, wiring
from gitledger.errors import BadData
from gitledger.gitdir import GitDir
from gitledger.install import Done, State
from gitledger.settingsfile import Receipt
from gitledger.values import dataclass, replace
from gitledger.wiring import Client, Scope

_FILES: Mapping[str, tuple[str, str]] = {
    "claude-code": (".claude/skills/gitledger/SKILL.md", "skills/gitledger/SKILL.md"),
    "codex": ("AGENTS.md", "AGENTS.md"),
    "gemini": ("GEMINI.md", ".gemini/GEMINI.md"),
    "qwen": ("QWEN.md", "QWEN.md"),
    "copilot": (".github/instructions/gitledger.instructions.md", "copilot-instructions.md"),
    "opencode": ("AGENTS.md", "opencode/AGENTS.md"),
    "pi": ("AGENTS.md", "AGENTS.md"),
    "droid": ("AGENTS.md", "AGENTS.md"),
    "kiro": (".kiro/steering/gitledger.md", "steering/gitledger.md"),
    "cursor": (".cursor/rules/gitledger.mdc", ""),
    "hermes": ("AGENTS.md", ""),
    "nanobot": ("AGENTS.md", ""),
}
"""Where each client reads instructions: below the work tree's root, and in the user's folder ("": nowhere)."""

_ABOUT = (
    "How to work with this repository's gitledger, its tasks, next action, evidence, checkpoints and handover. "
    "Use it at the start of work, when a step is done, and when something new turns up."
)
_HEADS: Mapping[str, str] = {
    "SKILL.md": f"---\nname: gitledger\ndescription: {_ABOUT}\n---\n\n",
    "gitledger.instructions.md": '---\napplyTo: "**"\n---\n\n',
    "gitledger.md": "---\ninclusion: always\n---\n\n",
    "gitledger.mdc": f'---\ndescription: "{_ABOUT}"\nalwaysApply: true\n---\n\n',
}
"""What a file of ours alone begins with, by its name."""

_WAY_OUT = "taken out by gitledger hooks uninstall"
_END = "<!-- end of gitledger guidance -->"
_MARK = re.compile(
    r"<!-- gitledger guidance for ([a-z, -]+) \((made|[012]) ([0-9a-f]{16})\)[^\r\n]*-->\r?\n"
    rf"(.*?){re.escape(_END)}(?:\r?\n)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """One client's file of instructions in one scope, and where it is remembered which folders were made for it."""

    client: Client
    scope: Scope
    path: str
    receipt: str


@dataclass(frozen=True, slots=True)
class _Found:
    """Our part of a file: for which clients, what stood before it, and where it is."""

    clients: tuple[str, ...]
    seam: str
    whole: bool
    start: int
    end: int


def sheet(client: Client, scope: Scope, found: GitDir | None, environ: Mapping[str, str]) -> Sheet | None:
    """Where a client reads instructions in a scope; None where it has no such file: no work tree, no home."""
    project, user = _FILES[client.name]
    if (scope == "project" and (found is None or not found.top)) or not (project if scope == "project" else user):
        return None
    path = replace(client, project=project, user=user).path(scope, found.top if found else "", environ)
    if not path:
        return None
    folder = gitdir.state(found.common) if scope == "project" and found else signing.key_folder(environ)
    name = hashlib.sha256(os.path.abspath(path).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return Sheet(client, scope, path, os.path.join(folder, "wiring", f"guidance-{name}.json"))


def sheets(found: GitDir | None, environ: Mapping[str, str]) -> Iterator[Sheet]:
    """Every file of every client."""
    for client in wiring.CLIENTS:
        for scope in ("project", "user"):
            at = sheet(client, scope, found, environ)
            if at is not None:
                yield at


def text() -> str:
    """The guidance itself, the same for every client."""
    with open(os.path.join(os.path.dirname(__file__), "clients", "guidance.md"), encoding="utf-8") as f:
        return f.read()


def state(at: Sheet) -> State:
    """Whether the guidance is there for this client, and is today's; one that was edited is outdated."""
    before = settingsfile.read(at.path)
    ours = _find(at, before or "")
    if before is None or ours is None or at.client.name not in ours.clients:
        return "absent"
    return "installed" if ours.whole and before[ours.start : ours.end] == _part(ours, before) else "outdated"


def install(at: Sheet) -> Done:
    """Put the guidance into a file, or bring it up to date; BadData, and nothing changed, where somebody edited it."""
    before = settingsfile.read(at.path)
    ours = _find(at, before or "")
    if ours is None:
        head = _HEADS.get(os.path.basename(at.path), "") if before is None else ""
        lacks = 0 if not before else 1 if before.endswith("\n") else 2
        ours = _Found((at.client.name,), "made" if before is None else str(lacks), True, 0, 0)
        old = before or ""
        new = head + old + _eol(old) * lacks + _part(ours, old)
        done: Done = "installed"
    else:
        _whole(at, ours)
        old = before or ""
        ours = replace(ours, clients=tuple(sorted({*ours.clients, at.client.name})))
        new = old[: ours.start] + _part(ours, old) + old[ours.end :]
        if new == before:
            return "current"
        done = "updated"
    folders = settingsfile.write(at.path, new, before)
    if folders:
        settingsfile.save(at.receipt, Receipt(at.path, "", folders=folders))
    return done


def uninstall(at: Sheet) -> Done:
    """Take the guidance out for one client, its text with the last; the file is as it was, or gone where we made it."""
    before = settingsfile.read(at.path)
    ours = _find(at, before or "")
    if before is None or ours is None or at.client.name not in ours.clients:
        return "absent"
    _whole(at, ours)
    left = tuple(name for name in ours.clients if name != at.client.name)
    if left:
        new = before[: ours.start] + _part(replace(ours, clients=left), before) + before[ours.end :]
        settingsfile.write(at.path, new, before)
        return "updated"
    rest: str | None = _without(before, ours)
    if ours.seam == "made" and rest in ("", _HEADS.get(os.path.basename(at.path))):
        rest = None
    settingsfile.write(at.path, rest, before)
    receipt = settingsfile.load(at.receipt)
    if rest is None and receipt:
        settingsfile.drop_folders(receipt.folders)
    settingsfile.forget(at.receipt)
    return "removed"


def _find(at: Sheet, whole: str) -> _Found | None:
    found = list(_MARK.finditer(whole))
    if len(found) > 1:
        raise BadData(f"{at.path} holds gitledger's guidance twice, and was left alone; take one of them out")
    if not found:
        return None
    one = found[0]
    clients = tuple(name.strip() for name in one[1].split(","))
    return _Found(clients, one[2], _digest(one[4]) == one[3], one.start(), one.end())


def _whole(at: Sheet, ours: _Found) -> None:
    if not ours.whole:
        raise BadData(
            f"the guidance in {at.path} was edited since it was installed, and was left alone; take it out by hand, "
            "its first and last line too"
        )


def _part(ours: _Found, around: str) -> str:
    """The marked text, with the line ends of the file around it."""
    body = text()
    mark = f"<!-- gitledger guidance for {', '.join(ours.clients)} ({ours.seam} {_digest(body)}): {_WAY_OUT} -->"
    return f"{mark}\n{body}{_END}\n".replace("\n", _eol(around))


def _without(whole: str, ours: _Found) -> str:
    head, eol = whole[: ours.start], _eol(whole)
    for _ in range(0 if ours.seam == "made" else int(ours.seam)):
        head = head.removesuffix(eol)
    return head + whole[ours.end :]


def _eol(around: str) -> str:
    return "\r\n" if "\r\n" in around else "\n"


def _digest(body: str) -> str:
    return settingsfile.digest(body.replace("\r\n", "\n"))[:16]
