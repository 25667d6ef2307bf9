"""The tree that a work tree's content amounts to: equal for equal content, whatever commit HEAD is.

An exact fingerprint is the id of the tree that `git add --all && git write-tree` would make, worked out without
writing anything: so committing what was dirty keeps the fingerprint, and it then equals that commit's tree.
Where that cannot be had within bounds, it is `~` and a digest of what is known (size and time of files beyond the
bounds, flags of submodules with changes inside): two of those are equal if nothing changed between them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence

from gitledger import errors, objects
from gitledger.gitcli import run
from gitledger.model import Oid
from gitledger.objects import TreeEntry
from gitledger.values import dataclass

MAX_BYTES = 64 * 1024 * 1024
MAX_PATHS = 2_000
SYMLINK = 0o120000
EXECUTABLE = 0o100755
GONE = "000000"


@dataclass(frozen=True, slots=True)
class Dirty:
    """One path that differs from HEAD or the index, as `git status` names it.

    `mode` and `oid` are what the work tree holds where git knows it: mode "" for an untracked path, `GONE` for a
    deleted one, oid "" where the content must be read. `submodule` holds status's own flags, such as `SC..`.
    """

    path: bytes
    mode: str = ""
    oid: Oid = ""
    submodule: str = ""


class _NotExactError(Exception):
    """The content cannot be told within bounds."""


def look(top: str, tree: Oid, dirty: Sequence[Dirty], *, deadline: float = 10.0) -> tuple[str, dict[str, Oid] | None]:
    """The fingerprint of the work tree at `top` whose HEAD has `tree` ("" for none) and differs in `dirty`.

    With it comes what each path that differs holds: its id, "" where it is gone; None where the fingerprint is not
    exact.
    """
    if not dirty and tree:
        return tree, {}
    try:
        gone, known, algorithm = _contents(top, tree, dirty, deadline)
        exact = _overlay(top, tree, gone, known, algorithm, deadline)
        return exact, {_text(p): "" for p in gone} | {_text(p): oid for p, (_, oid) in known.items()}
    except (_NotExactError, errors.LedgerError, OSError, ValueError):
        return _approximate(top, tree, dirty), None


def _contents(
    top: str, tree: Oid, dirty: Sequence[Dirty], deadline: float
) -> tuple[list[bytes], dict[bytes, tuple[int, Oid]], str]:
    """Which paths are gone, the mode and id of the others that differ, and the repository's hash."""
    wanted = _expand(top, dirty, deadline)
    algorithm = _algorithm(top, [tree, *(one.oid for one in wanted)], deadline)
    gone = [one.path for one in wanted if one.mode == GONE]
    known = {one.path: (int(one.mode, 8), one.oid) for one in wanted if one.oid}
    regular: dict[bytes, int] = {}
    total = 0
    for one in wanted:
        if one.oid or one.mode == GONE:
            continue
        if one.submodule:
            known[one.path] = (objects.GITLINK, _submodule_head(top, one, deadline))
            continue
        place = os.path.join(os.fsencode(top), one.path)
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            known[one.path] = (SYMLINK, objects.oid("blob", os.readlink(place), algorithm))
        elif stat.S_ISREG(found.st_mode):
            total += found.st_size
            # git's own word on the mode wins: it knows core.fileMode.
            mode = EXECUTABLE if found.st_mode & stat.S_IXUSR else objects.FILE
            regular[one.path] = int(one.mode, 8) if one.mode else mode
        else:
            raise _NotExactError  # a FIFO or a device: never opened
    if total > MAX_BYTES:
        raise _NotExactError
    oids = hash_files(top, list(regular), deadline=deadline)
    known |= {path: (mode, oid) for (path, mode), oid in zip(regular.items(), oids, strict=True)}
    return gone, known, algorithm


def _expand(top: str, dirty: Sequence[Dirty], deadline: float) -> list[Dirty]:
    """`dirty` with each untracked folder replaced by its files, an ignored one never among them."""
    folders = [one.path for one in dirty if one.path.endswith(b"/")]
    # git status says only "deleted" of a file in whose place there is a folder, and nothing of what is in it.
    folders += [one.path + b"/" for one in dirty if one.mode == GONE and _is_folder(top, one.path)]
    wanted = [one for one in dirty if not one.path.endswith(b"/")]
    if folders and len(dirty) <= MAX_PATHS:
        shown = ["--literal-pathspecs", "ls-files", "-z", "--others", "--exclude-standard", "--"]
        inside = run([*shown, *map(os.fsdecode, folders)], cwd=top, deadline=deadline)
        wanted += [Dirty(path) for path in inside.out.split(b"\0") if path]
    if len(wanted) > MAX_PATHS or len(dirty) > MAX_PATHS:
        raise _NotExactError
    if any(one.path.endswith(b"/") for one in wanted):
        raise _NotExactError  # a repository within the repository
    return wanted


def _is_folder(top: str, path: bytes) -> bool:
    place = os.path.join(os.fsencode(top), path)
    return os.path.isdir(place) and not os.path.islink(place)


def _submodule_head(top: str, one: Dirty, deadline: float) -> Oid:
    if "M" in one.submodule or "U" in one.submodule:
        raise _NotExactError
    inside = os.path.join(top, os.fsdecode(one.path))
    return run(["rev-parse", "--verify", "HEAD"], cwd=inside, deadline=deadline).line


def hash_files(top: str, paths: Sequence[bytes], *, deadline: float = 10.0) -> list[Oid]:
    """The blob ids of regular files as `git add` would store them, filters and line ends included; writes nothing.

    One known difference: under `core.autocrlf` git keeps CRLF of a file whose stored version already has them;
    here such a file is hashed as converted.
    """
    if not paths:
        return []
    asked = b"".join(_quoted(path) + b"\n" for path in paths)
    answer = run(["hash-object", "--stdin-paths"], cwd=top, input=asked, deadline=deadline)
    oids = answer.out.decode().split()
    if len(oids) != len(paths):
        raise errors.IOFailed(f"git hash-object in {top} answered {len(oids)} of {len(paths)} paths: run git fsck")
    return oids


def _quoted(path: bytes) -> bytes:
    """The path in git's C quoting, which is what carries a line end through a line-based protocol."""
    if path.startswith(b'"') or b"\n" in path or b"\r" in path:
        return b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
    return path


def _algorithm(top: str, oids: Iterable[Oid], deadline: float) -> str:
    """The repository's hash, by the ids at hand; git is asked only where there is none."""
    for oid in oids:
        if oid:
            return "sha256" if len(oid) == 64 else "sha1"
    return run(["rev-parse", "--show-object-format"], cwd=top, deadline=deadline).line


# ── trees ────────────────────────────────────────────────────────────────────────────────────
def _overlay(
    top: str, tree: Oid, gone: Iterable[bytes], known: Mapping[bytes, tuple[int, Oid]], algorithm: str, deadline: float
) -> Oid:
    """The id of `tree` without `gone` and with `known` put in."""
    touched = {""}
    for path in map(_text, [*gone, *known]):
        parts = path.split("/")[:-1]
        touched |= {"/".join(parts[: n + 1]) for n in range(len(parts))}
    folders = _read_trees(top, tree, sorted(touched), algorithm, deadline) if tree else {}
    for folder in touched:
        folders.setdefault(folder, {})
    # Everything goes before anything comes: a file may have become a folder, or the other way round.
    for path in map(_text, gone):
        folder, _, name = path.rpartition("/")
        folders[folder].pop(name, None)
    for raw, (mode, oid) in known.items():
        folder, _, name = _text(raw).rpartition("/")
        folders[folder][name] = TreeEntry(mode, name, oid)
    for folder in sorted((f for f in folders if f), key=lambda f: f.count("/"), reverse=True):
        above, _, name = folder.rpartition("/")
        entries = folders[folder]
        if entries:
            tree_id = objects.oid("tree", objects.format_tree(entries.values()), algorithm)
            folders[above][name] = TreeEntry(objects.FOLDER, name, tree_id)
        elif name in folders[above] and folders[above][name].is_folder:
            del folders[above][name]  # git has no empty folders
    return objects.oid("tree", objects.format_tree(folders[""].values()), algorithm)


def _read_trees(
    top: str, tree: Oid, folders: Sequence[str], algorithm: str, deadline: float
) -> dict[str, dict[str, TreeEntry]]:
    """The entries of those of `folders` that `tree` has, by one child."""
    if any("\n" in folder for folder in folders):
        raise _NotExactError  # cat-file reads names by the line
    asked = b"".join(f"{tree}:{folder}\n".encode("utf-8", "surrogateescape") for folder in folders)
    out = run(["cat-file", "--batch"], cwd=top, input=asked, deadline=deadline).out
    found: dict[str, dict[str, TreeEntry]] = {}
    at = 0
    for folder in folders:
        end = out.index(b"\n", at)
        head = out[at:end].split(b" ")
        at = end + 1
        if head[-1] == b"missing":
            continue
        length = int(head[2])
        if head[1] == b"tree":
            found[folder] = {one.name: one for one in objects.parse_tree(out[at : at + length], algorithm)}
        at += length + 1
    if "" not in found:
        raise _NotExactError
    return found


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


# ── beyond the bounds ────────────────────────────────────────────────────────────────────────
def _approximate(top: str, tree: Oid, dirty: Sequence[Dirty]) -> str:
    import hashlib  # costs milliseconds that a clean work tree need not pay

    digest = hashlib.sha256(tree.encode())
    for one in sorted(dirty, key=lambda one: one.path)[: MAX_PATHS * 10]:
        try:
            found = os.lstat(os.path.join(os.fsencode(top), one.path))
            seen = f"{stat.S_IFMT(found.st_mode):o} {found.st_size} {found.st_mtime_ns}"
        except OSError:
            seen = "gone"
        digest.update(b"\0%s\0%s" % (one.path, f"{one.mode} {one.oid} {one.submodule} {seen}".encode()))
    digest.update(b"\0%d" % len(dirty))
    return "~" + digest.hexdigest()
