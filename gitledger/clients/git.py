"""Git itself as a client: what its hooks say of commits, checkouts, merges and rewrites, as lines of `name value`.

No session is theirs: who made a commit, git does not say, and two sessions may be open in one work tree. The task is
the one that the work tree was at.
"""

from __future__ import annotations

import re

from gitledger import tasks
from gitledger.errors import BadData
from gitledger.frame import Entry
from gitledger.model import DETACHED, Draft, Json
from gitledger.redact import within
from gitledger.schema import Config
from gitledger.view import View

NAME = "git"
LIMIT = 64 << 10
"""Bytes of a payload that are kept, as capture has it: what a commit changed is counted as far as that goes."""
SUBJECT = 200
PAIRS_KEPT = 20

_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def read(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    """The event of what a git hook said; raises BadData for words that no hook of ours says."""
    text = entry.payload.decode("utf-8", "replace")
    told = {"commit": _commit, "merge": _commit, "checkout": _checkout, "rewrite": _rewrite}.get(entry.event)
    if told is None:
        raise BadData(f"git has no event {entry.event}")
    data = told(text, len(entry.payload) >= LIMIT)
    task = tasks.active(view, writer, entry.worktree)
    data |= {"client": NAME, "event": entry.event, "worktree": entry.worktree}
    return Draft(entry.id, entry.at, entry.event, None, task, {}, data)


def _commit(text: str, cut: bool) -> dict[str, Json]:
    head, _, names = text.partition("\n\n")
    said = _said(head)
    data: dict[str, Json] = {"commit": _oid(said, "id"), "branch": _branch(said.get("branch", ""))}
    parents = said.get("parents", "").split()
    if len(parents) != 1:
        data["parents"] = len(parents)
    if said.get("squash") == "1":
        data["squash"] = True  # nothing was committed yet: HEAD is what it was
    data["subject"] = within(said.get("subject", ""), SUBJECT)
    # One name a line; a name with a line end in it is quoted by git.
    data["changed"] = len([name for name in names.split("\n") if name])
    if cut:
        data["cut"] = True  # there were more
    return data


def _checkout(text: str, cut: bool) -> dict[str, Json]:
    said = _said(text)
    return {"commit": _oid(said, "new"), "before": _oid(said, "old"), "branch": _branch(said.get("branch", ""))}


def _rewrite(text: str, cut: bool) -> dict[str, Json]:
    first, _, rest = text.partition("\n")
    rows = [line.split(" ") for line in rest.split("\n")]
    pairs = [row[:2] for row in rows if len(row) >= 2 and all(_OID.fullmatch(word) for word in row[:2])]
    if not pairs:
        raise BadData("it names no commit that was rewritten")
    data: dict[str, Json] = {
        "by": within(first.removeprefix("by "), 20),
        "count": len(pairs),
        "pairs": [" ".join(pair) for pair in pairs[-PAIRS_KEPT:]],
    }
    if cut:
        data["cut"] = True
    return data


def _said(text: str) -> dict[str, str]:
    rows = (line.partition(" ") for line in text.split("\n"))
    said: dict[str, str] = {}
    for name, _, value in rows:
        said.setdefault(name, value)  # a subject is one line, and the last
    return said


def _oid(said: dict[str, str], name: str) -> str:
    found = said.get(name, "")
    if not _OID.fullmatch(found):
        raise BadData(f"it has no commit id as {name}")
    return found


def _branch(ref: str) -> str:
    """The short name of a ref, with a reflog's `@{0}` or without; DETACHED for HEAD, "" where it is not known."""
    name = ref.partition("@{")[0]
    if name == "HEAD":
        return DETACHED
    return within(name.removeprefix("refs/heads/"), SUBJECT)
