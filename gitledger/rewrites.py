"""`<common>/gitledger/rewrites`: what became of which commit, as git's post-rewrite hook is told it. Local.

Nothing rests on it alone: without a line an amended commit is found by its reflog, a rebased one by its patch. Imports
the standard library only, because a hook does.
"""

from __future__ import annotations

import os

from gitledger import gitdir

NAME = "rewrites"
KEPT = 4 << 20
"""Bytes of it that are read, and that stay when it has grown to twice as much."""


def add(common: str, said: bytes) -> int:
    """Keep the lines of `said` that are `old new`, whatever follows them on the line; how many there were.

    Raises OSError, or CannotWrite where something else than a plain file of this user's stands there.
    """
    rows = [line.split(b" ")[:2] for line in said.split(b"\n")]
    lines = [b" ".join(row) + b"\n" for row in rows if len(row) == 2 and all(map(_is_oid, row))]
    if not lines:
        return 0
    append(common, NAME, b"".join(lines))
    return len(lines)


def append(common: str, name: str, data: bytes) -> None:
    """Add whole lines to a local file that stays within twice `KEPT` bytes; raises as `add` does."""
    path = os.path.join(gitdir.state(common), name)
    gitdir.check_state(common)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    fd = gitdir.open_own(path, flags)
    try:
        found = os.fstat(fd)
        if found.st_nlink > 1 or found.st_size > 2 * KEPT:  # another name's too (`cp -al`), or grown long enough
            fresh = _anew(path, fd, found.st_size)
            os.close(fd)
            fd = fresh
        # One write, so that two rebases at once do not mix their lines.
        os.write(fd, data)
    finally:
        os.close(fd)


def _anew(path: str, fd: int, size: int) -> int:
    """The end of the file as a file of its own in its place, open to be added to."""
    start = max(size - KEPT, 0)
    data = os.pread(fd, KEPT, start)
    if start:
        data = data.partition(b"\n")[2]
    new = f"{path}.new"
    try:
        os.unlink(new)
    except FileNotFoundError:
        pass
    fresh = gitdir.open_own(new, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL)
    try:
        os.write(fresh, data)
        os.replace(new, path)
    except BaseException:
        os.close(fresh)
        raise
    return fresh


def _is_oid(word: bytes) -> bool:
    return len(word) in (40, 64) and not word.strip(b"0123456789abcdef")
