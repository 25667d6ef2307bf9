"""Files that git's hooks, or those who manage them, are read from: changed whole, and only where they can be put back.

Three ways to get a hook in beside what is there: a file of our own that calls the one before it, lines in a shell
script, and an entry in `lefthook-local.yml`.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gitledger import gitshims
from gitledger.errors import BadData, CannotWrite, NotAllowed, TryAgain
from gitledger.gitshims import KEPT, NAMES

LEFTHOOK = "lefthook-local.yml"
BIGGEST = 1 << 20
"""Bytes of a hook that are looked at; a larger one is a program, and none of ours."""
NO_GUARD = "have this clone use a folder of its own for hooks, or do without"
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "ash")


def text_of(path: str) -> str:
    """A file's text, bytes that are none as surrogates; "" where there is no file."""
    try:
        with open(path, "rb") as f:
            return f.read(BIGGEST).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""
    except OSError as e:
        raise CannotWrite(f"{path} cannot be read ({e.strerror}); mend its permissions") from e


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        return sorted(os.listdir(folder)) if folder else []
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as e:
        raise CannotWrite(f"{folder} cannot be read ({e.strerror}); mend its permissions") from e


def replace(path: str, text: str | None, mode: int = 0o755) -> None:
    """Write `path` whole, its mode kept where it is there, `mode` where it is new; None removes it."""
    with _told(path):
        if text is None:
            os.unlink(path)
            return
        own = gitshims.ours(text) is not None
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
        except FileNotFoundError:
            pass  # or a symlink to nothing
        new = f"{path}.gitledger-new"
        try:
            with open(new, "wb") as f:
                f.write(text.encode("utf-8", "surrogateescape"))
                f.flush()
                os.fchmod(f.fileno(), mode | 0o111 if own else mode)
                os.fsync(f.fileno())
            # Lines go to the file that a symlink means; one of our own stands in the symlink's place.
            os.replace(new, path if own else os.path.realpath(path))
        except OSError:
            if os.path.lexists(new):
                os.unlink(new)
            raise


def by_hand(name: str) -> str:
    """What a person does where we do not."""
    return f"have its {name} run what this prints: gitledger hooks script {name}"


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise CannotWrite(f"{path} cannot be written ({e.strerror}); it is as it was") from e


# ── a file of our own ────────────────────────────────────────────────────────────────────────
def put(path: str, text: str) -> str:
    """Put our own file at `path`; the path at which what was there is kept, "" where there was nothing."""
    kept = ""
    with _told(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path) and gitshims.ours(text_of(path)) is None:
            kept = path + KEPT
            _keep(path, kept)
    replace(path, text)
    return kept


def _keep(path: str, kept: str) -> None:
    """Give a hook its second name before the swap: killed between, git still finds it under the first."""
    if os.path.lexists(kept):
        raise TryAgain(f"{kept} came while this was under way; see who else installs hooks, and install again")
    try:
        os.link(path, kept, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        shutil.copy2(path, kept, follow_symlinks=False)
    if gitshims.ours(text_of(kept)):  # somebody was faster; a hook that calls itself would never end
        os.unlink(kept)
        raise TryAgain(f"{path} came while this was under way; see who else installs hooks, and install again")


def take(path: str) -> str:
    """Take our own file at `path` out; what was done with it, for a person."""
    own = gitshims.ours(text_of(path))
    kept = os.path.join(os.path.dirname(path), own[2]) if own else path
    with _told(path):
        if kept != path and os.path.lexists(kept):
            os.replace(kept, path)
            return f"{path}: as it was before"
        os.unlink(path)
        return f"{path}: removed"


# ── lines in a shell script ──────────────────────────────────────────────────────────────────
def with_lines(path: str, name: str) -> str:
    """The text of a script with our lines for hook `name` in it, before its own; raises NotAllowed for no script."""
    there = os.path.lexists(path)
    rest = gitshims.without(text_of(path)) if there else None
    lines = gitshims.block(name)
    if rest is None:
        return gitshims.SHEBANG + gitshims.added("", lines, "", new=True)
    if not rest.startswith("#!"):
        return gitshims.added("", lines, rest)
    first, end, after = rest.partition("\n")
    words = first[2:].split(" -")[0].split()
    if not words or os.path.basename(words[-1]) not in _SHELLS:
        raise NotAllowed(f"{path} is no shell script, so lines cannot be added to it; {by_hand(name)}")
    return gitshims.added(first + end, lines, after)


# ── lefthook ─────────────────────────────────────────────────────────────────────────────────
def lefthook_names(top: str) -> list[str]:
    """The hooks that `lefthook-local.yml` has by us."""
    _, begin, rest = text_of(os.path.join(top, LEFTHOOK)).partition(gitshims.BEGIN)
    lines, end, _ = rest.partition(gitshims.END)
    found = {line[:-1] for line in lines.split("\n") if line.endswith(":")} if begin and end else set()
    return [name for name in NAMES if name in found]


def lefthook_lines(names: Sequence[str]) -> str:
    """Our entries, as they stand in `lefthook-local.yml`."""
    lines = [f"{gitshims.BEGIN} {gitshims.VERSION}; silent where gitledger is not installed"]
    for name in names:
        lines += [f"{name}:", "  jobs:", "    - name: gitledger", "      use_stdin: true", "      run: |"]
        lines += [f"        {line}" for line in f"set -- {{0}}\n{gitshims.command(name)}".rstrip("\n").split("\n")]
    return "\n".join([*lines, gitshims.END, ""])


def with_lefthook(top: str, names: Sequence[str]) -> tuple[str | None, str | None]:
    """The text of `lefthook-local.yml` now and with our entries for `names` and no other; None for no file.

    Raises BadData where it is no YAML, and NotAllowed where it has one of these hooks already: two of a name in one
    file are one too many.
    """
    import yaml

    path = os.path.join(top, LEFTHOOK)
    old = text_of(path) if os.path.lexists(path) else None
    rest = gitshims.without(old) if old is not None else None
    if not names:
        return old, rest
    try:
        held = yaml.safe_load(rest or "") or {}
    except yaml.YAMLError as e:
        raise BadData(f"{path} is no YAML, so nothing was added to it; mend it and install again") from e
    if not isinstance(held, dict):
        raise BadData(f"{path} is no table of hooks, so nothing was added to it; mend it and install again")
    for name in names:
        if name in held:
            raise NotAllowed(f"{path} has a {name} of its own, so nothing was added to it; {by_hand(name)}")
    return old, gitshims.added(rest or "", lefthook_lines(names), "", new=rest is None)
