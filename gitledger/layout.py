"""Where everything lies in the ledger's tree: keys, numbers, shards and paths. Pure.

A numbered record's key is number and creating writer (`T-0007@k3f9c2`). Its display name is the bare
number, unless another writer created that number earlier; then it shows with its writer, in every clone alike.
No folder grows without bound: numbered records lie a hundred to a folder, sessions in 256 folders by hash, journal
segments in a 256-way tree by number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from gitledger.digests import sha256
from gitledger.errors import BadData
from gitledger.model import Json, Key
from gitledger.patterns import pattern
from gitledger.values import dataclass

FORMAT = 1
RENDERER = 1

WHOLE = 256
"""Rows that a shard lists in one file at most; where there are more, the rows of each number are a file."""

MANIFEST = "manifest.json"
PROJECT = "project"
CONFIG = "config"
OPEN_SESSIONS = "sessions/open.json"
RECENT_BRANCHES = "handovers/branches.json"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of numbered record: its letter, its word, its folder and the least number of digits."""

    letter: str
    word: str
    folder: str
    digits: int

    def number(self, n: int) -> str:
        """The bare name people see: `T-0007`."""
        return f"{self.letter}-{n:0{self.digits}d}"

    def shard(self, n: int) -> str:
        """The folder of a hundred that holds number `n`: `00xx`, `0001xx`."""
        return f"{n // 100:0{self.digits - 2}d}xx"


TASK = Kind("T", "task", "tasks", 4)
DECISION = Kind("D", "decision", "decisions", 4)
BLOCKER = Kind("B", "blocker", "blockers", 4)
QUESTION = Kind("Q", "question", "questions", 4)
ARTIFACT = Kind("A", "artifact", "artifacts", 4)
NOTE = Kind("N", "note", "notes", 4)
CHECKPOINT = Kind("C", "checkpoint", "checkpoints", 6)
HANDOVER = Kind("H", "handover", "handovers", 6)
MEMORY = Kind("M", "memory", "memory", 4)
KINDS = {k.letter: k for k in (TASK, DECISION, BLOCKER, QUESTION, ARTIFACT, NOTE, MEMORY, CHECKPOINT, HANDOVER)}

IMMUTABLE = frozenset((CHECKPOINT.letter, HANDOVER.letter))
"""Kinds that one event says all of: the first statement stands, a later one changes nothing."""

_NUMBERED = pattern(r"([TDBQANMCH])-([0-9]{4,12})(?:@([a-z0-9]{4,16}))?\Z")
_WRITER = pattern(r"[a-z0-9]{4,16}\Z")
_WORKTREE = pattern(r"[a-z0-9]{4,16}:[0-9a-f]{12}\Z")
_SESSION = pattern(r"S-[0-9a-f]{12}\Z")
_NAME = pattern(r"[a-z0-9][a-z0-9-]{0,62}\Z")


# ── names and keys ───────────────────────────────────────────────────────────────────────────
def ledger_name(text: str) -> str:
    """`text` itself where it may name a ledger; raise BadData otherwise."""
    if not _NAME.match(text):
        shown = text[:40].encode("unicode_escape").decode()
        raise BadData(f"{shown!r} cannot name a ledger: use a-z, 0-9 and -, beginning with a letter or digit")
    return text


@dataclass(frozen=True, slots=True)
class Ref:
    """An id as it was written: kind, number and, where it was named, the creating writer."""

    kind: Kind
    n: int
    writer: str | None


def parse_id(text: str) -> Ref | None:
    """What `T-0007` or `T-0007@k3f9c2` names, or None where it is no id of a numbered record."""
    found = _NUMBERED.match(text)
    return Ref(KINDS[found[1]], int(found[2]), found[3]) if found else None


@lru_cache(maxsize=4096)
def numbered(key: Key) -> tuple[Kind, int, str] | None:
    """Kind, number and writer of a numbered record's key, or None for another key."""
    found = _NUMBERED.match(key)
    return (KINDS[found[1]], int(found[2]), found[3]) if found and found[3] else None


def key_of(kind: Kind, n: int, writer: str) -> Key:
    """The key of record `n` that `writer` creates."""
    return f"{kind.number(n)}@{writer}"


def is_task(key: Json) -> bool:
    """True for the key of a task."""
    return isinstance(key, str) and (found := numbered(key)) is not None and found[0] is TASK


def session_key(client: str, client_session: str) -> Key:
    """A session's key: from the client and the client's own id alone, so that two windows never share one."""
    return "S-" + sha256(f"{client}\0{client_session}".encode("utf-8", "backslashreplace")).hexdigest()[:12]


def is_session(key: str) -> bool:
    """True for a session's key."""
    return bool(_SESSION.match(key))


def worktree_key(writer: str, worktree: str) -> Key:
    """The key of what one work tree is at: its active task."""
    return f"worktree:{writer}:{sha256(worktree.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def writer_key(writer: str) -> Key:
    """The key of a writer's own record: its public key."""
    return f"writer:{writer}"


def names(rows: Mapping[Key, Mapping[str, Json]]) -> dict[Key, str]:
    """Display names of all records of a shard, or of one number: who created a number first keeps it bare."""
    first: dict[str, tuple[tuple[str, list[Json]], Key]] = {}
    for key, row in rows.items():
        bare, order = key.partition("@")[0], (row.get("at", ""), row.get("born", []))
        if bare not in first or (order, key) < first[bare]:
            first[bare] = (order, key)
    winners = {key for _, key in first.values()}
    return {key: key.partition("@")[0] if key in winners else key for key in rows}


# ── paths ────────────────────────────────────────────────────────────────────────────────────
def shard_folder(key: Key) -> str | None:
    """The folder whose `index.json` lists this numbered record, or None for another key."""
    found = numbered(key)
    return f"{found[0].folder}/{found[0].shard(found[1])}" if found else None


@lru_cache(maxsize=4096)
def part(key: Key) -> tuple[str, str]:
    """The shard folder of a numbered record, and the last two digits of its number."""
    found = numbered(key)
    if found is None:
        raise BadData(f"{key[:60]!r} is no numbered record's key; run: gitledger fsck")
    return part_of(found[0], found[1])


def part_of(kind: Kind, n: int) -> tuple[str, str]:
    """The shard folder of a number of some kind, and the number's last two digits."""
    return f"{kind.folder}/{kind.shard(n)}", f"{n % 100:02d}"


def part_stem(folder: str, part: str) -> str:
    """Where a divided shard lists the rows of one number, without ending: `tasks/00xx/index/07`."""
    return f"{folder}/index/{part}"


def task_folder(key: Key, name: str, slug: str) -> str:
    """`tasks/00xx/T-0007-authentication`."""
    return f"{shard_folder(key)}/{name}{'-' + slug if slug else ''}"


def checkpoint_stem(key: Key, name: str, task: str | None) -> str:
    """A checkpoint's path without ending: below its task's folder, or beside the index where it has none."""
    folder = f"{task}/checkpoints" if task else CHECKPOINT.folder
    return f"{folder}/{(shard_folder(key) or '').rpartition('/')[2]}/{name}"


def stem(key: Key, name: str) -> str:
    """The path, without ending, of a numbered record that is neither a task nor a checkpoint."""
    return f"{shard_folder(key)}/{name}"


def plain_stem(key: Key) -> str:
    """The path, without ending, of a record that has no number: project, config, session, writer, work tree."""
    if is_session(key):
        return f"sessions/{key[2:4]}/{key}"
    if key in (PROJECT, CONFIG):
        return key
    kind, _, rest = key.partition(":")
    if kind == "writer" and _WRITER.match(rest):
        return f"keys/{rest}"
    if kind == "worktree" and _WORKTREE.match(rest):
        return f"worktrees/{rest.replace(':', '/')}"
    raise BadData(f"{key[:60]!r} is no record's key; run: gitledger fsck")


def segment(writer: str, n: int, part: int = 0) -> str:
    """The path of a writer's journal segment number `n`, from 0: `journal/k3f9c2/00/00/2a.jsonl`.

    One segment per commit; what passes a blob's limit goes on in parts: `2a.1.jsonl`, `2a.2.jsonl`.
    """
    if n >= 1 << 24:
        raise BadData(f"writer {writer} has used all 16,777,216 journal segments; start a new clone's writer")
    return f"journal/{writer}/{n >> 16:02x}/{n >> 8 & 255:02x}/{n & 255:02x}{f'.{part}' if part else ''}.jsonl"


def branch_index(branch: str) -> str:
    """The path of the list of a branch's newest handovers."""
    digest = sha256(branch.encode("utf-8", "backslashreplace")).hexdigest()
    return f"handovers/branches/{digest[:2]}/{digest[2:14]}.json"


def item_id(letter: str, taken: Iterable[str], writer: str) -> str:
    """An item id that no other writer can make: one above the highest of `taken`, and the writer."""
    numbers = [int(found[1]) for t in taken if (found := re.match(r"[a-z]([0-9]+)@", t))]
    return f"{letter}{max(numbers, default=0) + 1}@{writer}"
