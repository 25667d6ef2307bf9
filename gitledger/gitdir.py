"""Which git repository a folder is in, found on the file system alone: no git child, no environment.

`GIT_*` variables are ignored on purpose: a hook inherits `GIT_DIR`, and in a linked worktree's hook that
names another repository than the folder does. HEAD, refs and config are never read, so reftable and
sha256 repositories are found like any other; for the same reason `core.worktree` is not seen.
"""

from __future__ import annotations

import errno
import os
import stat

from gitledger.errors import CannotWrite

_LINKED_MAIN = "main (linked)"
LEVELS = 512  # a walk ends even where a file system answers with endless parents


class GitDir:
    """One repository as seen from one of its work trees; paths are absolute and without symlinks.

    `top` is the work tree's root, "" where there is none (bare). `common` is shared by all work trees; `git_dir`
    is this one's own. `worktree` is `main`, or the name git gave to a linked worktree; a linked one that git calls
    `main` is `main (linked)`, a name that git gives to none.
    """

    __slots__ = ("common", "git_dir", "top", "worktree")

    def __init__(self, top: str, git_dir: str, common: str) -> None:
        self.top = top
        self.git_dir = git_dir
        self.common = common
        name = os.path.basename(git_dir)
        self.worktree = "main" if git_dir == common else _LINKED_MAIN if name == "main" else name

    def __repr__(self) -> str:
        return f"GitDir(top={self.top!r}, git_dir={self.git_dir!r}, common={self.common!r})"


def find(start: str) -> GitDir | None:
    """The repository that `start` lies in, or None: no repository, a broken one, or a folder that is gone.

    Like git, it ends at a file system's border, and at a `.git` that is there but cannot be followed:
    going on would give an outer repository what belongs to an inner one.
    """
    try:
        os.stat(start)  # the kernel bounds a path's length; realpath would take time by the square of it
        folder = os.path.realpath(start)
        device = os.stat(folder).st_dev
        for _ in range(LEVELS):
            if os.stat(folder).st_dev != device:
                return None
            found = _at(folder)
            if found is not None:
                return found
            parent = os.path.dirname(folder)
            if parent == folder:
                return None
            folder = parent
    except (OSError, ValueError):  # ValueError: a NUL in the path, or a gitfile that is none
        return None
    return None


def worktree(common: str, name: str) -> GitDir | None:
    """The work tree of a repository that has this name, or None where it is gone or has none."""
    git_dir = common
    if name != "main":
        git_dir = os.path.join(common, "worktrees", "main" if name == _LINKED_MAIN else name)
        if os.path.dirname(git_dir) != os.path.join(common, "worktrees"):
            return None
    try:
        top = _top(git_dir, common)
    except (OSError, ValueError):
        return None
    found = find(top) if top else None
    return found if found and (found.common, found.worktree) == (common, name) else None


def state(common: str) -> str:
    """The folder of gitledger's local files in a repository, whether or not it exists."""
    return os.path.join(common, "gitledger")


# Whatever lies below `state` is a plain file or folder of this user's own: a symlink would let somebody else decide
# where our files are written, a FIFO would hold us up, and another user's file must not say whom we trust or what runs.
def check_state(common: str) -> None:
    """Raise CannotWrite where a symlink, a file or another user's folder stands for one of ours; none is fine."""
    for path in (state(common), os.path.join(state(common), "wal")):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return
        except OSError as e:
            raise CannotWrite(f"{path} cannot be looked at ({e.strerror}); mend its permissions") from e
        if not stat.S_ISDIR(found.st_mode):
            raise CannotWrite(f"{path} is not a folder (a symlink, a file); move it away")
        _check_owner(path, found)


def open_own(path: str, flags: int = os.O_RDONLY, folder: int | None = None, *, follow: bool = False) -> int:
    """A local file, opened, and made with mode 0600 where `flags` say so; OSError as open(2) has it.

    Raises CannotWrite for what is not a plain file of this user's own. `folder` is the path's own folder where that is
    open already. `follow` allows a symlink, which keepers of dotfiles use.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path if folder is None else os.path.basename(path), flags, 0o600, dir_fd=folder)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise CannotWrite(f"{path} is not a plain file; move it away") from e
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise CannotWrite(f"{path} is not a plain file; move it away")
        _check_owner(path, found)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_own(path: str, most: int = 1 << 24, *, follow: bool = False) -> bytes:
    """The bytes of a local file, the first `most` of them; raises as `open_own` does."""
    with open(open_own(path, follow=follow), "rb") as f:
        return f.read(most)


def _check_owner(path: str, found: os.stat_result) -> None:
    # Root may use what is another user's: in containers it works on a user's mounted files.
    if os.geteuid() not in (0, found.st_uid) and found.st_uid != 0:
        raise CannotWrite(f"{path} belongs to another user; run as that user or use a clone of your own")


def ledgers(common: str) -> list[str]:
    """The names of the ledgers that were initialised in this clone, sorted; raise CannotWrite as `check_state` does."""
    check_state(common)
    path = os.path.join(state(common), "wal")
    try:
        with os.scandir(path) as found:
            # One behind a symlink is there too, and opening it says what is wrong.
            return sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False) or entry.is_symlink())
    except FileNotFoundError:
        return []
    except OSError as e:
        raise CannotWrite(f"{path} cannot be read ({e.strerror}); see who owns it with `ls -ld`") from e


def choose(common: str, wanted: str | None) -> str | None:
    """The ledger to use: `wanted`, else the only one, else `main`; None where that one is not initialised."""
    names = ledgers(common)
    if wanted:
        return wanted if wanted in names else None
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


def _at(folder: str) -> GitDir | None:
    """The repository whose root or git folder is `folder`; None sends the walk on, ValueError ends it."""
    dot_git = os.path.join(folder, ".git")
    try:
        mode = os.stat(dot_git).st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = 0
    if stat.S_ISDIR(mode):
        found = _opened(dot_git, folder)
        if found is not None:
            return found
    elif stat.S_ISREG(mode):
        text = _line(dot_git)
        if not text.startswith("gitdir:"):
            raise ValueError(dot_git)
        found = _opened(os.path.join(folder, text[len("gitdir:") :].strip(" ")), folder)
        if found is None:
            raise ValueError(dot_git)
        return found
    # A hook may start inside the git folder: git runs post-receive there.
    return _opened(folder, None)


def _opened(git_dir: str, top: str | None) -> GitDir | None:
    """The repository at `git_dir` by git's own test (HEAD, objects, refs), or None."""
    try:
        os.lstat(os.path.join(git_dir, "HEAD"))
        git_dir = os.path.realpath(git_dir)
        common = git_dir
        linked = os.path.join(git_dir, "commondir")
        if os.path.lexists(linked):
            common = os.path.realpath(os.path.join(git_dir, _line(linked)))
        for name in ("objects", "refs"):
            if not stat.S_ISDIR(os.stat(os.path.join(common, name)).st_mode):
                return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    if top is None:
        top = _top(git_dir, common)
    return GitDir(top, git_dir, common)


def _top(git_dir: str, common: str) -> str:
    """The work tree of a git folder that the walk met from inside, "" for a bare one."""
    if git_dir != common:
        return os.path.dirname(os.path.join(git_dir, _line(os.path.join(git_dir, "gitdir"))))
    return os.path.dirname(git_dir) if os.path.basename(git_dir) == ".git" else ""


def _line(path: str) -> str:
    """The text of one of git's one-line files, without its line end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # NONBLOCK: a FIFO there must not hang us
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(path)
        return os.fsdecode(os.read(fd, 1 << 16).rstrip(b"\r\n"))
    finally:
        os.close(fd)
