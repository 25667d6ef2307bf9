"""Git hooks put in beside what a repository has, and taken out without a trace.

Where the hooks lie is git's to say. A hook that is there is kept under another name, called first, and put back on
uninstall byte for byte. Where a hook manager owns the folder its own way is taken: lines in husky's scripts (or in any
folder of shell hooks in the work tree), `lefthook-local.yml`, and the `*.legacy` hooks that pre-commit goes on calling.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypeAlias

from gitledger import gitcli, gitshims, hookfiles
from gitledger.errors import BadData, NotAllowed, Usage
from gitledger.gitdir import GitDir
from gitledger.gitshims import NAMES, USUAL
from gitledger.hookfiles import text_of
from gitledger.values import dataclass

State: TypeAlias = Literal["absent", "installed", "outdated", "broken"]
Way: TypeAlias = Literal["file", "lines", "husky", "lefthook"]

LEFTHOOK_CONFIGS = tuple(f"{dot}lefthook.{kind}" for dot in ("", ".") for kind in ("yml", "yaml", "toml", "json"))
_BY_NAME = ("overcommit", "husky")  # the latter before its version 5; a newer one has a folder of its own
_MOVED = ("", ".legacy", ".old")  # where pre-commit and lefthook put what they find
_GUARDING = (2, 28)  # the first git that asks before it moves a ref


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook as it stands: `what` says for a person where it is or what is wrong with it, "" where it is absent."""

    name: str
    state: State
    path: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where hooks of a repository are put, and in which way."""

    folder: str
    way: Way


# ── what a caller asks for ───────────────────────────────────────────────────────────────────
def install(found: GitDir, names: Sequence[str] = USUAL) -> list[str]:
    """Put the hooks `names` in; what was done, one line each, nothing where all was there already.

    Every hook is looked at before the first is written: raises NotAllowed or BadData, with nothing changed, where one
    cannot be put in beside what is there. Hooks of ours that are not in `names` stay as they are.
    """
    for name in names:
        if name not in NAMES:
            raise Usage(f"gitledger has no git hook {name!r}; it has {', '.join(NAMES)}")
    at = place(found)
    if "reference-transaction" in names:
        _check_guard(found, at)
    if at.way == "lefthook":
        wanted = {*names, *hookfiles.lefthook_names(found.top)}
        return _write_lefthook(found.top, [name for name in NAMES if name in wanted])
    plans = [_lines_plan(at, name) if at.way in ("lines", "husky") else _file_plan(at, name) for name in names]
    done = []
    for name, (path, new) in zip(names, plans, strict=True):
        if new is None:
            continue
        if at.way == "file":
            kept = hookfiles.put(path, new)
            done.append(f"{name}: {path}{f', which calls {kept} first' if kept else ''}")
        else:
            hookfiles.replace(path, new)
            done.append(f"{name}: lines in {path}")
    return done


def uninstall(found: GitDir) -> list[str]:
    """Take every hook of ours out, wherever it stands, and put back what was there; what was done, one line each."""
    done = []
    if found.top and hookfiles.lefthook_names(found.top):
        done += _write_lefthook(found.top, [])
    folder = _folder(found)
    for one in dict.fromkeys((folder, os.path.join(found.common, "hooks"))):
        if _within(one, found.common):
            done += [hookfiles.take(path) for path in _ours(one)]
    for path in _scripts(found, folder):
        text = text_of(path)
        if (rest := gitshims.without(text)) != text:
            hookfiles.replace(path, rest)
            done.append(f"{path}: removed" if rest is None else f"{path}: our lines removed")
    return done


def status(found: GitDir) -> list[Hook]:
    """How each hook stands, the usual ones first; raises NotAllowed where hooks are not ours to put in."""
    at = place(found)
    look = {"lefthook": _lefthook_state, "file": _file_state}.get(at.way, _lines_state)
    return [look(found, at, name) for name in NAMES]


def place(found: GitDir) -> Place:
    """Where this repository's hooks go and how; raises NotAllowed where that is not this repository's own."""
    folder = _folder(found)
    if found.top and _within(folder, found.top) and not _within(folder, found.common):
        if os.path.basename(folder) == "_" and os.path.basename(os.path.dirname(folder)) == ".husky":
            return Place(os.path.dirname(folder), "husky")  # what lies in `_` is husky's, and made anew by it
        return Place(folder, "lines")
    if _within(folder, found.common):
        return Place(folder, "lefthook" if found.top and _is_lefthook(found.top, folder) else "file")
    what = "no hooks run here" if folder == os.devnull else f"hooks run from {folder}, outside this repository,"
    raise NotAllowed(
        f"core.hooksPath is set, so {what} and one there would run in every repository that uses it; to let this one "
        'use its own: git config core.hooksPath "$(git rev-parse --git-common-dir)/hooks"'
    )


# ── where things are ─────────────────────────────────────────────────────────────────────────
def _folder(found: GitDir) -> str:
    at = found.top or found.git_dir
    return os.path.normpath(os.path.join(at, gitcli.run(["rev-parse", "--git-path", "hooks"], cwd=at).line))


def _within(path: str, folder: str) -> bool:
    real, outer = os.path.realpath(path), os.path.realpath(folder)
    return real == outer or real.startswith(outer.rstrip("/") + "/")


def _ours(folder: str) -> list[str]:
    there = set(hookfiles.names_in(folder))
    paths = [os.path.join(folder, name + moved) for name in NAMES for moved in _MOVED if name + moved in there]
    return [path for path in paths if gitshims.ours(text_of(path))]


def _scripts(found: GitDir, folder: str) -> list[str]:
    """Scripts in the work tree that lines of ours may stand in."""
    if not found.top:
        return []
    folders = dict.fromkeys((folder, os.path.dirname(folder), os.path.join(found.top, ".husky")))
    inside = [one for one in folders if _within(one, found.top) and not _within(one, found.common)]
    return [os.path.join(one, name) for one in inside for name in hookfiles.names_in(one) if name in NAMES]


def _is_lefthook(top: str, folder: str) -> bool:
    if not any(name in LEFTHOOK_CONFIGS for name in hookfiles.names_in(top)):
        return False
    names = [name for name in hookfiles.names_in(folder) if not name.endswith(".sample")]
    return any("call_lefthook" in text_of(os.path.join(folder, name)) for name in names)


# ── a file of our own ────────────────────────────────────────────────────────────────────────
def _file_plan(at: Place, name: str) -> tuple[str, str | None]:
    """Where a hook of ours goes and its new text, None where it is there already."""
    path = os.path.join(at.folder, name)
    there = _called(path)
    own = gitshims.ours(text_of(there)) if there else None
    if there and own:
        new = gitshims.file(name, own[2])
        return there, None if new == text_of(there) and os.access(there, os.X_OK) else new
    text = text_of(path)
    if _is_pre_commit(text):
        path += ".legacy"  # which it calls first; in its own place it would take ours for its own, and call it anew
    elif who := next((tool for tool in _BY_NAME if tool in text.lower()), ""):
        raise NotAllowed(f"{path} is {who}'s, which tells hooks by their files' names; {hookfiles.by_hand(name)}")
    kept = path + gitshims.KEPT
    if os.path.lexists(path):
        if os.path.isdir(path):
            raise BadData(f"{path} is a folder; move it away and install again")
        if os.path.lexists(kept):
            raise NotAllowed(
                f"{kept} is there from an earlier installation, and {path} has come since; compare the two, move the "
                "older one away, and install again"
            )
    return path, gitshims.file(name, os.path.basename(kept))


def _called(path: str) -> str:
    """Where our own file for a hook stands so that it is called, "" where none does."""
    if gitshims.ours(text_of(path)):
        return path
    legacy = path + ".legacy"
    return legacy if _is_pre_commit(text_of(path)) and gitshims.ours(text_of(legacy)) else ""


def _is_pre_commit(text: str) -> bool:
    return "File generated by pre-commit" in text


def _file_state(found: GitDir, at: Place, name: str) -> Hook:
    path = os.path.join(at.folder, name)
    there = _called(path)
    own = gitshims.ours(text_of(there)) if there else None
    if own is None:
        lost = [path + moved for moved in (*_MOVED, gitshims.KEPT) if gitshims.ours(text_of(path + moved))]
        if lost:
            return Hook(name, "broken", lost[0], f"{lost[0]} is called by nothing: another tool took {path}")
        return Hook(name, "absent", path)
    if not os.access(there, os.X_OK):
        return Hook(name, "broken", there, f"{there} may not be executed, so git does not run it")
    kept = os.path.join(at.folder, own[2])
    after = f", after {kept}" if os.path.lexists(kept) else ""
    current = gitshims.file(name, own[2]) == text_of(there)
    return Hook(name, "installed" if current else "outdated", there, f"{there}{after}")


def _check_guard(found: GitDir, at: Place) -> None:
    said = gitcli.run(["--version"], cwd=found.common).line.split(" ")[2].split(".")
    if tuple(int(part) for part in said[:2] if part.isdigit()) < _GUARDING:
        raise NotAllowed("reference-transaction needs git 2.28 or newer: an older one never asks; do without")
    if at.way != "file":
        what = {"husky": "husky has none", "lefthook": "lefthook has none"}.get(at.way, f"{at.folder} is everybody's")
        raise NotAllowed(f"reference-transaction guards one clone, and {what}; {hookfiles.NO_GUARD}")


# ── lines in scripts ─────────────────────────────────────────────────────────────────────────
def _lines_plan(at: Place, name: str) -> tuple[str, str | None]:
    path = os.path.join(at.folder, name)
    new = hookfiles.with_lines(path, name)
    if at.way == "lines" and os.path.exists(path) and not os.access(path, os.X_OK):
        raise NotAllowed(f"{path} may not be executed, so git does not run it; make it executable, or move it away")
    return path, None if new == text_of(path) else new


def _lines_state(found: GitDir, at: Place, name: str) -> Hook:
    path = os.path.join(at.folder, name)
    text = text_of(path)
    if gitshims.BEGIN not in text:
        return Hook(name, "absent", path)
    if at.way == "husky" and not os.path.exists(os.path.join(at.folder, "_", name)):
        return Hook(name, "broken", path, f"{path} is called by nothing: husky is not installed in this clone")
    if at.way == "lines" and not os.access(path, os.X_OK):
        return Hook(name, "broken", path, f"{path} may not be executed, so git does not run it")
    current = hookfiles.with_lines(path, name) == text
    return Hook(name, "installed" if current else "outdated", path, f"lines in {path}")


# ── lefthook ─────────────────────────────────────────────────────────────────────────────────
def _write_lefthook(top: str, names: Sequence[str]) -> list[str]:
    path = os.path.join(top, hookfiles.LEFTHOOK)
    old, new = hookfiles.with_lefthook(top, names)
    if new == old:
        return []
    hookfiles.replace(path, new, 0o644)
    did = f"{', '.join(names)} by lines" if names else "our lines removed"
    return [f"{path}: {did}; let lefthook know: lefthook install"]


def _lefthook_state(found: GitDir, at: Place, name: str) -> Hook:
    path = os.path.join(found.top, hookfiles.LEFTHOOK)
    names = hookfiles.lefthook_names(found.top)
    if name not in names:
        return Hook(name, "absent", path)
    if "call_lefthook" not in text_of(os.path.join(at.folder, name)):
        return Hook(name, "broken", path, f"{path} has it, and lefthook does not call it yet: lefthook install")
    old, new = hookfiles.with_lefthook(found.top, names)
    return Hook(name, "installed" if new == old else "outdated", path, f"lines in {path}")
