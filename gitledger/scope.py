"""Which files of the ledger's tree an event may change. Pure.

A path belongs to something, and a record's key gives a few somethings; a commit may change what its events' keys give,
its writer's next journal segments, and the manifest. Two records of one number by two writers share a something: which
of them shows the bare name is for a rendering to say, not for this.
"""

from __future__ import annotations

import re
from functools import lru_cache

from gitledger import layout
from gitledger.errors import BadData
from gitledger.model import Key

MANIFEST = "manifest"
_WHOLE = {
    layout.MANIFEST: MANIFEST,
    "README.md": "project",
    "PROJECT.md": "project",
    "project.json": "project",
    "config.json": "config",
    "config.yaml": "config",
    "INDEX.md": "list of tasks",
    "DECISIONS.md": "list of decisions",
    "BLOCKERS.md": "list of blockers",
    "ARTIFACTS.md": "list of artifacts",
    "keys/allowed_signers": "signers",
    layout.OPEN_SESSIONS: "sessions",
    layout.RECENT_BRANCHES: "branches",
}
_LISTS = {"T": "tasks", "D": "decisions", "B": "blockers", "Q": "blockers", "A": "artifacts"}
_NAMED = r"[TDBQANMCH]-[0-9]{4,12}"
_TAIL = r"(?:@[a-z0-9]{4,16})?"
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(form), what)
    for form, what in (
        (rf"tasks/[0-9]+xx/(T-[0-9]+){_TAIL}(?:-[a-z0-9-]*)?/(?:task\.json|(?:TASK|STATE|TODO|SOURCES)\.md)", "{}"),
        (rf"tasks/[0-9]+xx/T-[^/]+/checkpoints/[0-9]+xx/(C-[0-9]+){_TAIL}\.(?:json|md)", "{}"),
        (rf"[a-z]+/[0-9]+xx/({_NAMED}){_TAIL}\.(?:json|md)", "{}"),
        (r"([a-z]+/[0-9]+xx)/(?:index\.json|README\.md|index/[0-9]{2}\.(?:json|md))", "{}"),
        (r"([a-z]+)/index\.json", "{}/"),
        (r"sessions/[0-9a-f]{2}/(S-[0-9a-f]{12})\.(?:json|md)", "{}"),
        (r"worktrees/([a-z0-9]{4,16}/[0-9a-f]{12})\.json", "worktree {}"),
        (r"keys/([a-z0-9]{4,16})\.json", "writer {}"),
        (r"handovers/branches/[0-9a-f]{2}/[0-9a-f]{12}\.json", "branches"),
    )
)
_KEEPER = re.compile(rb'\n  "by": \[\n   (.*),\n')  # as a record's file has it


def owner(path: str) -> str | None:
    """What a file belongs to; None for one that no event accounts for, the journal's segments among them."""
    found = _WHOLE.get(path)
    if found is not None:
        return found
    for form, what in _FORMS:
        if match := form.fullmatch(path):
            return what.format(*match.groups())
    return None


@lru_cache(maxsize=4096)
def owned(key: Key) -> frozenset[str]:
    """What an event that says something of `key` may change; BadData for what is no record's key."""
    found = layout.numbered(key)
    if found is None:
        return _plain(key)
    kind, n, _ = found
    more = {f"list of {_LISTS[kind.letter]}"} if kind.letter in _LISTS else set()
    if kind is layout.HANDOVER:
        more.add("branches")
    return frozenset((kind.number(n), f"{kind.folder}/{kind.shard(n)}", f"{kind.folder}/", *more))


def is_others(key: Key, writer: str) -> bool:
    """True for what one clone alone says: what a work tree of another writer's is at."""
    return key.startswith("worktree:") and not key.startswith(f"worktree:{writer}:")


def is_anothers(path: str, data: bytes, writer: str) -> bool:
    """True for a session's record that says it is another writer's: who speaks in a session takes it over."""
    if not path.startswith("sessions/") or not path.endswith(".json"):
        return False
    found = _KEEPER.search(data)
    return found is not None and found[1] != b'"%b"' % writer.encode()


def _plain(key: Key) -> frozenset[str]:
    layout.plain_stem(key)  # raises for what is no key
    if layout.is_session(key):
        return frozenset((key, "sessions"))
    if key == layout.PROJECT:
        return frozenset(("project", *(f"list of {name}" for name in _LISTS.values())))
    if key == layout.CONFIG:
        return frozenset(("config",))
    kind, _, rest = key.partition(":")
    if kind == "writer":
        return frozenset((f"writer {rest}", "signers"))
    if kind == "worktree":
        return frozenset((f"worktree {rest.replace(':', '/')}",))
    raise BadData(f"{key[:60]!r} is no record's key")
