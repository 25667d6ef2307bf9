"""A memory file on the disk: found, read as it is, and replaced whole while it still is what was read.

Agents write such files at any time, without a lock and in place. So the new text waits in a file beside, the two change
places in one step where the system can do that, and what then lies aside is read once more: if somebody wrote in
between, theirs goes back.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys

from gitledger.errors import BadData, CannotWrite, IOFailed, Missing, NotAllowed, TryAgain

BIGGEST = 512 << 10
"""Bytes of a memory file; a larger one is no agent's memory, and would not fit into one record."""
PREFIX = ".gitledger-memory-"
"""How the name of a file begins that waits beside a memory file."""
_SWAPS = (".#{}", "#{}#", ".~lock.{}#", ".{}.kate-swp")
_BACKUP = re.compile(r"_memory\.backup(?:\.[0-9]+)?\.md\Z")
_VIM = re.compile(r"\.s[a-w][a-z]")
"""How the name of vim's swap file ends: `.swp` is the first one, `.swo` the next, down to `.saa`."""


def digest(data: bytes) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def locate(top: str, name: str) -> str:
    """Where the file of a configured name lies, no symlink left; NotAllowed for one that leads out of the work tree.

    A path that is absolute, or begins with `~`, is whoever configured it's own affair; any other lies in the work tree
    `top`, where a checkout of somebody's branch may have left a link to anywhere.
    """
    path = os.path.expanduser(name)
    if os.path.isabs(path):
        return os.path.realpath(path)
    if not top:
        raise Missing(f"{name} would lie in a work tree, and there is none here; name it by an absolute path")
    root = os.path.realpath(top)
    found = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath((root, found)) != root:
        raise NotAllowed(f"{name} leads out of the work tree, to {found}; name it by an absolute path in memory.files")
    return found


def listed(folder: str) -> list[str]:
    """The names of a folder's own Markdown files, by name; no copies of ours, and nothing that leads elsewhere."""
    try:
        with os.scandir(folder) as rows:
            names = [row.name for row in rows if row.name.endswith(".md") and row.is_file(follow_symlinks=False)]
    except OSError as e:
        raise CannotWrite(f"{folder} cannot be listed ({e.strerror}); mend its permissions") from e
    return sorted(name for name in names if not name.startswith(".") and not _BACKUP.search(name))


def read(path: str) -> bytes | None:
    """The bytes of a memory file, None where there is none; raises for what is no plain file of a memory's size."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise CannotWrite(f"{path} cannot be read ({e.strerror}); mend its permissions") from e
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise CannotWrite(f"{path} is no plain file; name another one in memory.files")
    with open(fd, "rb") as f:
        data = f.read(BIGGEST + 1)
    if len(data) > BIGGEST:
        raise BadData(
            f"{path} has more than {BIGGEST >> 10} KiB, too much for one memory file; divide it by hand first"
        )
    return data


def look(path: str) -> None:
    """Raise where the file at `path` is not to be changed now: open in an editor, read-only, or of two names."""
    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder)
        found = os.stat(path)
    except FileNotFoundError as e:
        raise TryAgain(f"{path} is not there any more; look where it went and run this again") from e
    except OSError as e:
        raise CannotWrite(f"{path} cannot be looked at ({e.strerror}); mend its folder's permissions") from e
    swaps = {form.format(name) for form in _SWAPS}
    for other in sorted(there):
        if other in swaps or (other.startswith(f".{name}.") and _VIM.fullmatch(other, len(name) + 1)):
            swap = os.path.join(folder, other)
            raise TryAgain(
                f"{path} is open in an editor ({swap} is there), which would save over it; close it there first"
            )
    if not found.st_mode & 0o222:
        raise CannotWrite(f"{path} is read-only and was left alone; make it writable and run this again")
    if found.st_nlink > 1:
        raise CannotWrite(f"{path} has a second name (a hard link), which a new file would lose; give it one name")


def stage(path: str, data: bytes, name: str) -> str:
    """Write `data` beside the file at `path`, synced, with that file's owner, mode and access list; where it waits."""
    folder = os.path.dirname(path)
    temp = os.path.join(folder, f"{PREFIX}{name}")
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as f:
                there = os.stat(path)
                if (there.st_uid, there.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, there.st_uid, there.st_gid)
                _attributes(path, fd)
                os.fchmod(fd, stat.S_IMODE(there.st_mode))
                f.write(data)
                f.flush()
                os.fsync(fd)
        except BaseException:
            os.unlink(temp)
            raise
    except OSError as e:
        raise CannotWrite(f"{path} cannot be replaced ({e.strerror or e}); it is as it was") from e
    return temp


def _attributes(path: str, fd: int) -> None:
    """Give an open file what else is said of the one at `path`: who may do what with it, and a person's own marks."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(path)
    except OSError as e:
        if e.errno == errno.ENOTSUP:
            return
        raise
    for name in names:
        try:
            os.setxattr(fd, name, os.getxattr(path, name))
        except OSError:
            if name.startswith(("user.", "system.posix_acl")):
                raise
            # The rest is the system's own: a label, say, which the new file has by its folder.
    access = "system.posix_acl_access"
    if access not in names and access in os.listxattr(fd):
        os.removexattr(fd, access)  # the folder's list for new files, which this one is not


def swap(path: str, temp: str, expected: str) -> None:
    """Have the file that waits at `temp` take the place of the one at `path`, if that has still the digest `expected`.

    The old file then lies at `temp`, or nothing does where the system cannot exchange two files. Raises TryAgain, with
    the file at `path` as somebody else left it, where that is another one by now.
    """
    other = f"{path} was changed by somebody else meanwhile and was left alone; look at it and run this again"
    data = read(path)
    if data is None or digest(data) != expected:
        raise TryAgain(other)
    try:
        if not exchange(temp, path):
            os.replace(temp, path)
        elif digest(read(temp) or b"") != expected:
            exchange(temp, path)
            raise TryAgain(other)
        sync_folder(os.path.dirname(path))
    except OSError as e:
        raise IOFailed(f"{path} cannot be replaced ({e.strerror or e})") from e


def exchange(one: str, other: str) -> bool:
    """Let two files change their names in one step; False where the system or the file system cannot."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            status = libc.renamex_np(a, b, 2)
        else:
            status = libc.renameat2(-100, a, -100, b, 2)
    except AttributeError:
        return False
    if status == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), other)


def sync_folder(path: str) -> None:
    """Have a folder's names on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def append(path: str, lines: list[str]) -> None:
    """Append lines to a log, in one write that nobody's comes between; its folder is made where there is none."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(fd).st_size
        cut_off = size and os.pread(fd, 1, size - 1) != b"\n"  # a crash, or a full disk, in the middle of a line
        data = ("\n" if cut_off else "").encode() + "".join(f"{line}\n" for line in lines).encode()
        while data:  # once, but where the disk is just full: then the second one says so
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def backup(folder: str, day: str, data: bytes) -> str:
    """Keep `data` as `<day>_memory.backup.md` in a folder, numbered from the second one of a day on; its path."""
    os.makedirs(folder, exist_ok=True)
    n = 1
    while True:
        path = os.path.join(folder, f"{day}_memory.backup{'' if n == 1 else f'.{n}'}.md")
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            n += 1
            continue
        with open(fd, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(fd)
        return path
