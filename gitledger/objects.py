"""Git's nouns as values: blobs, trees and commits as bytes, and how a tree is read and edited.

Pure: objects come in through a `get` that the caller owns and go out as values, so every store writes
the same bytes. Names and commit lines are str, decoded as UTF-8 with surrogateescape, so that what was
stored in any encoding comes out byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from gitledger import digests
from gitledger.errors import BadData
from gitledger.model import Oid
from gitledger.patterns import pattern
from gitledger.redact import CleanBytes
from gitledger.typed import Literal, TypeAlias
from gitledger.values import dataclass

Kind: TypeAlias = 'Literal["blob", "tree", "commit", "tag"]'
FILE = 0o100644
FOLDER = 0o040000
GITLINK = 0o160000
BLOB_LIMIT = 1 << 20
"""No blob above this is ever made; the caller cuts before, and says so in the text."""

_DIGITS = {"sha1": 40, "sha256": 64}
_HEX = frozenset("0123456789abcdef")
# All of a tree in one go, so that bytes which are none cost no more than a look at each of them; then its entries.
_ENTRIES = {
    "sha1": pattern(rb"(?s)(?:[1-7][0-7]{0,5} [^\0/]++\0.{20})*"),
    "sha256": pattern(rb"(?s)(?:[1-7][0-7]{0,5} [^\0/]++\0.{32})*"),
}
_ENTRY = {
    "sha1": pattern(rb"(?s)([1-7][0-7]{0,5}) ([^\0/]+)\0(.{20})"),
    "sha256": pattern(rb"(?s)([1-7][0-7]{0,5}) ([^\0/]+)\0(.{32})"),
}
# Characters that HFS+ drops when it compares names: `.g\u200cit` is `.git` there, and git refuses it.
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


@dataclass(frozen=True, slots=True)
class Object:
    """One git object without its header; a tag is only ever read."""

    kind: Kind
    data: bytes


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree: a mode such as 0o100644, one path part, and what it names."""

    mode: int
    name: str
    oid: Oid

    @property
    def is_folder(self) -> bool:
        """True where the entry names a tree."""
        return self.mode == FOLDER


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with all that it holds.

    `author` and `committer` are lines as stored: `Name <mail> 1700000000 +0000`. `signatures` are (header, armored
    text) for each `gpgsig` and `gpgsig-sha256`, in order; `extra` is every other header, its continuation lines
    joined by newlines.
    """

    tree: Oid
    parents: tuple[Oid, ...]
    author: str
    committer: str
    message: str
    extra: tuple[tuple[str, str], ...] = ()
    signatures: tuple[tuple[str, str], ...] = ()

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]


@dataclass(frozen=True, slots=True)
class Edited:
    """An edited tree: its id, the objects that the base did not hold, and which of those are trees, root last."""

    tree: Oid
    objects: tuple[tuple[Oid, Object], ...]
    rewritten: tuple[Oid, ...]


Get: TypeAlias = Callable[[Oid], Object]


def oid(kind: Kind, data: bytes, algorithm: str = "sha1") -> Oid:
    """The id that git gives to these bytes."""
    return digests.of(algorithm, b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()


def is_oid(text: str, algorithm: str = "sha1") -> bool:
    """True for a full lower-case object id."""
    return len(text) == _DIGITS[algorithm] and _HEX.issuperset(text)


# ── trees ────────────────────────────────────────────────────────────────────────────────────
def parse_tree(data: bytes, algorithm: str = "sha1") -> tuple[TreeEntry, ...]:
    """The entries of a tree in stored order; BadData unless `format_tree` could give the same modes and names."""
    whole = _ENTRIES[algorithm].match(data)
    at = whole.end() if whole else 0
    if at != len(data):
        raise BadData(f"a tree is damaged at byte {at}: run `git fsck` to see which objects are hurt")
    rows = _ENTRY[algorithm].findall(data)
    if len({name for _, name, _ in rows}) != len(rows):
        raise BadData("a tree names one path twice: run `git fsck` to see which")
    return tuple([TreeEntry(int(mode, 8), _text(name), named.hex()) for mode, name, named in rows])


def differing(old: bytes, new: bytes, algorithm: str = "sha1") -> list[tuple[TreeEntry | None, TreeEntry | None]]:
    """The entries, by name, that two trees' bytes do not have alike: each as it was and as it is, None for neither.

    What both begin and end with is not parsed: of a folder's hundred names one has changed, as a rule. So damage there
    is not noticed.
    """
    size = _DIGITS[algorithm] // 2
    begin = _boundary(old, 0, _alike(old, new, min(len(old), len(new))), size)
    rest = _alike(old, new, min(len(old), len(new)) - begin, from_end=True)
    was = _boundary(old, begin, len(old) - rest, size, over=True)
    now = _boundary(new, begin, len(new) - rest, size, over=True)
    # An id may hold what looks like an entry's end: what follows is the same only where both have as far to go.
    while len(old) - was != len(new) - now:
        if len(old) - was > len(new) - now:
            was = _boundary(old, was, was + 1, size, over=True)
        else:
            now = _boundary(new, now, now + 1, size, over=True)
    before = {entry.name: entry for entry in parse_tree(old[begin:was], algorithm)}
    after = {entry.name: entry for entry in parse_tree(new[begin:now], algorithm)}
    pairs = [(before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after))]
    return [pair for pair in pairs if pair[0] != pair[1]]


def _alike(one: bytes, other: bytes, most: int, *, from_end: bool = False) -> int:
    """How many bytes, up to `most`, both begin with, or end with."""
    low, high, ends, other_ends = 0, most, len(one), len(other)
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            same = one[ends - middle : ends - low] == other[other_ends - middle : other_ends - low]
        else:
            same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _boundary(data: bytes, at: int, end: int, size: int, *, over: bool = False) -> int:
    """Where the last whole entry before `end` stops, or with `over` the first to reach it; one begins at `at`."""
    find, length = data.find, len(data)
    while at < end:
        null = find(b"\0", at)
        stop = null + size + 1
        if null < 0 or stop > length:
            stop = length
        if stop > end and not over:
            break
        at = stop
    return at


def format_tree(entries: Iterable[TreeEntry]) -> bytes:
    """The bytes of a tree, in git's order: a folder sorts as if its name ended in `/`."""
    rows: dict[bytes, tuple[bytes, bytes]] = {}
    for entry in entries:
        name = _raw(entry.name)
        if not name or b"/" in name or b"\0" in name:
            raise BadData(f"{entry.name!r} cannot be a name in a git tree: use one path part without NUL")
        if name in rows:
            raise BadData(f"{entry.name!r} stands twice in one tree: keep one of the two")
        row = b"%o %s\0%s" % (entry.mode, name, bytes.fromhex(entry.oid))
        rows[name] = (name + b"/" if entry.is_folder else name, row)
    return b"".join(row for _, row in sorted(rows.values()))


def entries(get: Get, tree: Oid, path: str = "") -> dict[str, TreeEntry] | None:
    """The entries of the folder at `path` by name, or None where there is no such folder; `tree` may be a commit."""
    at = _root(get, tree)
    for part in path.split("/") if path else ():
        found = _children(get, at).get(part)
        if found is None or not found.is_folder:
            return None
        at = found.oid
    return _children(get, at)


def read(get: Get, tree: Oid, path: str) -> bytes | None:
    """The bytes of the file at `path`, or None where there is no such file; `tree` may be a commit."""
    folder, _, name = path.rpartition("/")
    found = (entries(get, tree, folder) or {}).get(name)
    if found is None or found.is_folder or found.mode == GITLINK:
        return None
    return get(found.oid).data


def edit(get: Get, base: Oid | None, changes: Mapping[str, CleanBytes | None], algorithm: str = "sha1") -> Edited:
    """Apply path → bytes (None deletes) to a tree, reading and making only what lies on the changed paths.

    A deleted path that is not there is no change, and a folder left empty vanishes. BadData, and no objects, for a
    path that git would not check out, for a file where a folder is needed or the reverse, and for a blob over 1 MiB.
    """
    plan: _Plan = {}
    for path, data in changes.items():
        if data is not None and len(data) > BLOB_LIMIT:
            raise BadData(f"{path} would be {len(data)} bytes: cut it to {BLOB_LIMIT} before it is stored")
        at = plan
        *folders, name = check_path(path)
        for folder in folders:
            at = at.setdefault(folder, _Step()).below
        step = at.setdefault(name, _Step())
        step.named, step.data = True, data
    made: dict[Oid, Object] = {}
    tree = _edit(get, base, plan, algorithm, made, "")
    if tree is None:
        empty = Object("tree", b"")
        tree = oid("tree", b"", algorithm)
        if tree != base:
            made[tree] = empty
    rewritten = tuple(name for name, thing in made.items() if thing.kind == "tree")
    return Edited(tree, tuple(made.items()), rewritten)


def check_path(path: str) -> list[str]:
    """The parts of a path that is safe to check out anywhere; BadData for any other."""
    parts = path.split("/")
    bad = "\0" in path or "\\" in path or any(part in ("", ".", "..") or _is_dot_git(part) for part in parts)
    if not bad:
        try:
            path.encode()
        except UnicodeEncodeError:
            bad = True
    if bad:
        raise BadData(f"{path!r} is no path for a ledger: use relative parts without `..`, `.git`, backslash or NUL")
    return parts


class _Step:
    """What is to happen at one name: a file's new bytes or its end, and what is to happen below."""

    __slots__ = ("below", "data", "named")

    def __init__(self) -> None:
        self.named = False
        self.data: bytes | None = None
        self.below: _Plan = {}


_Plan: TypeAlias = dict[str, _Step]


def _edit(get: Get, base: Oid | None, plan: _Plan, algorithm: str, made: dict[Oid, Object], where: str) -> Oid | None:
    rows = {} if base is None else _children(get, base)
    before = dict(rows)
    for name, step in plan.items():
        path = where + name
        row = rows.get(name)
        if step.named and step.data is None and row is not None:
            if row.is_folder:
                raise BadData(f"{path} is a folder where a file is meant: name the files in it")
            del rows[name]
            row = None
        if step.below and (row is None or row.is_folder):
            below = _edit(get, row.oid if row else None, step.below, algorithm, made, path + "/")
            rows.pop(name, None)
            if below is not None:
                rows[name] = TreeEntry(FOLDER, name, below)
        elif step.below and not _only_deletes(step.below):
            raise BadData(f"{path} is a file where a folder is needed: choose another path")
        if step.data is not None:
            row = rows.get(name)
            if row is not None and row.is_folder:
                raise BadData(f"{path} is a folder where a file is meant: name the files in it")
            blob = oid("blob", step.data, algorithm)
            if row is None or row.oid != blob:
                made[blob] = Object("blob", step.data)
            rows[name] = TreeEntry(FILE, name, blob)
    if not rows:
        return None
    if rows == before and base is not None:
        return base
    data = format_tree(rows.values())
    tree = oid("tree", data, algorithm)
    made[tree] = Object("tree", data)
    return tree


def _only_deletes(plan: _Plan) -> bool:
    return all(step.data is None and _only_deletes(step.below) for step in plan.values())


def _children(get: Get, tree: Oid) -> dict[str, TreeEntry]:
    thing = get(tree)
    if thing.kind != "tree":
        raise BadData(f"{tree} is a {thing.kind} where a tree is named: run `git fsck` to see what is hurt")
    return dict(_by_name(thing.data, "sha1" if len(tree) == 40 else "sha256"))


@lru_cache(maxsize=128)
def _by_name(data: bytes, algorithm: str) -> Mapping[str, TreeEntry]:
    # By its bytes, not its id: what one store has under an id another may not.
    return {entry.name: entry for entry in parse_tree(data, algorithm)}


def _root(get: Get, tree: Oid) -> Oid:
    thing = get(tree)
    return parse_commit(thing.data).tree if thing.kind == "commit" else tree


def _is_dot_git(part: str) -> bool:
    # NTFS ignores trailing dots and spaces, knows streams (`.git::$INDEX_ALLOCATION`) and short names (`git~1`).
    plain = part.translate(_HFS_IGNORED).split(":", 1)[0].rstrip(" .").lower()
    return plain in (".git", "git~1")


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def parse_commit(data: bytes) -> Commit:
    """A commit's headers, signatures and message with nothing lost; BadData where git would not read it either."""
    headers, message = _split(data)
    names = [name for name, _ in headers]
    parents = tuple(value for name, value in headers if name == "parent")
    n = len(parents)
    if names[: n + 3] != ["tree", *["parent"] * n, "author", "committer"] or names.count("tree") != 1:
        raise BadData("a commit's headers are not tree, parents, author, committer: run `git fsck` to see which")
    tree = headers[0][1]
    algorithm = "sha256" if len(tree) == 64 else "sha1"
    if not all(is_oid(name, algorithm) for name in (tree, *parents)):
        raise BadData("a commit names a tree or parent that is no object id: run `git fsck` to see which")
    rest = headers[n + 3 :]
    return Commit(
        tree=tree,
        parents=parents,
        author=headers[n + 1][1],
        committer=headers[n + 2][1],
        message=message,
        extra=tuple(row for row in rest if not _is_signature(row[0])),
        signatures=tuple((name, value + "\n") for name, value in rest if _is_signature(name)),
    )


def format_commit(commit: Commit) -> bytes:
    """The bytes of a commit as `git commit-tree` writes them, signatures after all other headers."""
    lines = [f"tree {commit.tree}"]
    lines += [f"parent {parent}" for parent in commit.parents]
    for name, value in (("author", commit.author), ("committer", commit.committer)):
        if "\n" in value or "\0" in value:
            raise BadData(f"the {name} line of a commit must be one line: {value!r}")
        lines.append(f"{name} {value}")
    signatures = [(name, armored.rstrip("\n")) for name, armored in commit.signatures]
    for name, value in (*commit.extra, *signatures):
        lines.append(f"{name} " + value.replace("\n", "\n "))
    if "\0" in commit.message:
        raise BadData("a commit message holds a NUL: take it out")
    return _raw("\n".join(lines) + "\n\n" + commit.message)


def signed_payload(data: bytes) -> bytes:
    """What a commit's signature is over: its bytes without every header that begins with `gpgsig`, as git takes it."""
    kept: list[bytes] = []
    at, dropping = 0, False
    while at < len(data):
        if data[at : at + 1] == b"\n":
            kept.append(data[at:])
            break
        end = data.find(b"\n", at) + 1 or len(data)
        if data[at : at + 1] != b" ":
            dropping = data.startswith(b"gpgsig", at)
        if not dropping:
            kept.append(data[at:end])
        at = end
    return b"".join(kept)


def with_signature(payload: bytes, armored: str, algorithm: str = "sha1") -> bytes:
    """A commit's bytes with a signature as its last header, where git puts it."""
    head, gap, message = payload.partition(b"\n\n")
    if not gap:
        raise BadData("a commit without an empty line after its headers cannot be signed")
    header = "gpgsig" if algorithm == "sha1" else "gpgsig-sha256"
    return head + _raw(f"\n{header} " + armored.rstrip("\n").replace("\n", "\n ")) + gap + message


def _split(data: bytes) -> tuple[list[tuple[str, str]], str]:
    head, _, message = data.partition(b"\n\n")
    headers: list[tuple[str, str]] = []
    for line in _text(head).removesuffix("\n").split("\n"):
        if line.startswith(" ") and headers:
            name, value = headers[-1]
            headers[-1] = (name, f"{value}\n{line[1:]}")
        else:
            name, space, value = line.partition(" ")
            if not name or not space:
                raise BadData(f"a commit has a header without a value, {line[:40]!r}: run `git fsck` to see which")
            headers.append((name, value))
    return headers, _text(message)


def _is_signature(header: str) -> bool:
    return header in ("gpgsig", "gpgsig-sha256")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _raw(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        raise BadData(f"{text[e.start : e.end]!r} is no text that git can store: take it out") from e
