"""The user's repository, read through git's command line: where it stands, and how it came there. Writes nothing.

Ancestry is read without replace refs and grafts (gitcli turns both off). A shallow boundary hides history, so in a
shallow repository only a yes counts: what looks unrelated or forked there is `unknown`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from gitledger import errors, objects
from gitledger.fingerprint import GONE, Dirty, hash_files
from gitledger.fingerprint import look as look_at
from gitledger.gitcli import Answer, run
from gitledger.gitdir import open_own
from gitledger.model import DETACHED, UNBORN, Oid, Position, Relation
from gitledger.patterns import pattern
from gitledger.typed import TYPE_CHECKING
from gitledger.values import dataclass

if TYPE_CHECKING:
    from gitledger.gitdir import GitDir

DEADLINE = 10.0
"""Seconds that any one question to git may take."""
LISTED = 20
COUNTED = 2_000
SAME_TREE_LIMIT = 500
SAME_PATCH_LIMIT = 200
PATCHES_AT_ONCE = 50  # bounds the memory that their text takes
REFLOG_LIMIT = 2_000
REWRITES = "gitledger/rewrites"
REWRITES_BYTES = 4 * 1024 * 1024
_OID = pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)


def _at(gitdir: GitDir) -> str:
    # By place, not by --git-dir: with that option git skips its check of who owns the repository.
    return os.fspath(gitdir.top or gitdir.git_dir)


def _ask(
    gitdir: GitDir,
    *args: str,
    input: bytes | None = None,  # noqa: A002
    check: bool = True,
    meanwhile: Callable[[], object] | None = None,
) -> Answer:
    return run(args, cwd=_at(gitdir), input=input, deadline=DEADLINE, check=check, meanwhile=meanwhile)


# ── position ─────────────────────────────────────────────────────────────────────────────────
def seen(gitdir: GitDir, path: str) -> bool:
    """True where git knows a file at or below `path`, or would take one in: a change there is one of the work tree."""
    shown = ("--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", path)
    return bool(_ask(gitdir, *shown).out)


def untracked(gitdir: GitDir, within: Sequence[str] = ()) -> list[str]:
    """The untracked files that git does not ignore, a folder of nothing else as one, with a `/` behind it.

    With folders to look `within`, every file in those by itself.
    """
    shown = ["--literal-pathspecs", "ls-files", "-z", "--others", "--exclude-standard"]
    shown += ["--", *within] if within else ["--directory", "--no-empty-directory"]
    return [os.fsdecode(path) for path in _ask(gitdir, *shown).out.split(b"\0") if path]


@dataclass(frozen=True, slots=True)
class Look:
    """Where a work tree stands, and the id of what each path that differs from HEAD holds, "" where it is gone.

    `differs` is None where that was not asked for, or cannot be told within bounds. `dirty` are the same paths as
    `git status` tells them, the untracked ones last.
    """

    position: Position
    differs: dict[str, Oid] | None
    dirty: tuple[Dirty, ...] = ()


def position(
    gitdir: GitDir,
    *,
    fingerprint: bool = True,
    read_tree: Callable[[Oid], Oid] | None = None,
) -> Position:
    """Where the repository stands now; see `look`."""
    return look(gitdir, fingerprint=fingerprint, read_tree=read_tree).position


def look(
    gitdir: GitDir,
    *,
    fingerprint: bool = True,
    read_tree: Callable[[Oid], Oid] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Look:
    """Where the repository stands now, by one `git status`; the index stays byte for byte as it was.

    `read_tree` gives a commit's tree where the caller can do that cheaper than by a child of its own. The fingerprint
    costs nothing in a clean work tree; see fingerprint.py for what it promises in a dirty one. `meanwhile` is done
    while git looks.
    """
    status = _ask(
        gitdir,
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--no-renames",
        "--no-ahead-behind",
        meanwhile=meanwhile,
    )
    branch, head, dirty = _parse_status(status.out)
    tree = ""
    if head != UNBORN:
        tree = read_tree(head) if read_tree else _ask(gitdir, "rev-parse", "--verify", head + "^{tree}").line
    # Once per path: a file staged as deleted and there again is named twice, and what lies there is what counts.
    once = list({one.path: one for one in sorted(dirty, key=lambda one: not one.mode)}.values())
    seen, differs = look_at(_at(gitdir), tree, once, deadline=DEADLINE) if fingerprint else ("", None)
    stands = Position(
        branch=branch,
        head=head,
        tree=tree,
        dirty=len(once),
        fingerprint=seen,
        worktree=gitdir.worktree,
        operation=operation(gitdir),
    )
    return Look(stands, differs, tuple(once))


def how(one: Dirty) -> str:
    """In a word how a path differs from HEAD."""
    return "untracked" if not one.mode else "deleted" if one.mode == GONE else "changed"


def shortstat(gitdir: GitDir) -> str:
    """How much of the tracked files differs from HEAD, in git's own line; "" where nothing does."""
    told = _ask(gitdir, "diff-index", "--shortstat", "--no-ext-diff", "--no-textconv", "HEAD", "--", check=False)
    return told.line if told.code == 0 else ""


def _parse_status(out: bytes) -> tuple[str, str, list[Dirty]]:
    branch, head, dirty = DETACHED, UNBORN, []
    for row in out.split(b"\0"):
        kind = row[:2]
        if row.startswith(b"# branch.oid "):
            said = row[13:].decode()
            head = UNBORN if said == "(initial)" else said
        elif row.startswith(b"# branch.head "):
            # A record is UTF-8 text: a name that is not must still be a name that can be recorded.
            said = row[14:].decode("utf-8", "backslashreplace")
            branch = DETACHED if said == "(detached)" else said
        elif kind == b"? ":
            dirty.append(Dirty(row[2:]))
        elif kind == b"1 ":
            _, xy, sub, _, m_index, m_work, _, h_index, path = row.split(b" ", 8)
            submodule = sub.decode() if sub.startswith(b"S") else ""
            if xy[1:] == b".":  # the work tree holds what the index holds
                mode, oid = m_index.decode(), h_index.decode()
            else:
                mode, oid = m_work.decode(), ""
            dirty.append(Dirty(path, mode, "" if mode == GONE else oid, submodule))
        elif kind == b"u ":
            _, _, _, _, _, _, m_work, _, _, _, path = row.split(b" ", 10)
            dirty.append(Dirty(path, m_work.decode()))
    return branch, head, dirty


def operation(gitdir: GitDir) -> str:
    """The operation under way (merge, rebase, cherry-pick, revert or bisect), else ""."""
    for name, word in _OPERATIONS:
        if os.path.lexists(os.path.join(os.fspath(gitdir.git_dir), name)):
            return word
    return ""


# ── one question each ────────────────────────────────────────────────────────────────────────
def commit_exists(gitdir: GitDir, rev: str) -> Oid | None:
    """The full id of the commit that `rev` names, or None where it names none here."""
    if not rev or rev.startswith("-") or "\n" in rev or "\0" in rev:
        return None
    answer = _ask(gitdir, "rev-parse", "--verify", "--quiet", rev + "^{commit}", check=False)
    return answer.line if answer.code == 0 else None


def branch_exists(gitdir: GitDir, name: str) -> bool:
    """True where `name` (a branch's short name) has a commit."""
    if not name or name.startswith("-"):
        return False
    return _ask(gitdir, "show-ref", "--verify", "--quiet", f"refs/heads/{name}", check=False).code == 0


def is_ancestor(gitdir: GitDir, a: Oid, b: Oid) -> bool | None:
    """True where commit `a` is `b` or in its history; None where git cannot know (missing, shallow, failing)."""
    if not (_OID.fullmatch(a) and _OID.fullmatch(b)) or len(a) != len(b):
        return None
    try:
        code = _ask(gitdir, "merge-base", "--is-ancestor", a, b, check=False).code
    except errors.LedgerError:
        return None
    if code == 0:
        return True
    return False if code == 1 and not is_shallow(gitdir) else None


def outside(gitdir: GitDir, commits: Sequence[Oid], head: Oid) -> set[Oid]:
    """Those of `commits`, all of them here, that `head`'s history lacks; one that cannot be told counts as lacking."""
    wanted = [_checked(oid) for oid in commits]
    asked = "\n".join([*wanted, "^" + _checked(head)]).encode() + b"\n"
    listed = set(_ask(gitdir, "rev-list", "--stdin", input=asked).line.split())
    # rev-list goes by dates and may name too many where clocks disagree; never too few.
    return {oid for oid in wanted if oid in listed and is_ancestor(gitdir, oid, head) is not True}


def is_shallow(gitdir: GitDir) -> bool:
    """True where history may be cut off, so that "no" says nothing about ancestry."""
    try:
        return os.path.getsize(os.path.join(os.fspath(gitdir.common), "shallow")) > 0
    except OSError:
        return False


def commits_between(gitdir: GitDir, old: Oid, new: Oid, limit: int = LISTED) -> tuple[tuple[Oid, str], ...]:
    """(id, subject) of the commits in `new`'s history that `old`'s lacks, newest first, at most `limit`."""
    return _listed(gitdir, [_checked(new), "^" + _checked(old)], limit)


def changed_files(gitdir: GitDir, old: Oid, new: Oid) -> tuple[str, ...]:
    """The paths that differ between two commits or trees, sorted; a rename is its two names.

    Bytes that are not UTF-8 come as surrogates (`os.fsencode` gives them back).
    """
    args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", _checked(old), _checked(new), "--")
    return tuple(sorted(os.fsdecode(path) for path in _ask(gitdir, *args).out.split(b"\0") if path))


def blob_id(gitdir: GitDir, path: str) -> Oid | None:
    """The id that the work tree's file would have in git (filters and line ends applied), or None where none is.

    `path` is relative to the top of the work tree. A symlink is what it points to, as git stores it; a folder, a
    FIFO, or a path that leaves the work tree or leads through a symlink has no id.
    """
    return blob_ids(gitdir, [path])[path]


def blob_ids(gitdir: GitDir, paths: Sequence[str]) -> dict[str, Oid | None]:
    """`blob_id` of several paths, by one child for all regular files among them."""
    found: dict[str, Oid | None] = {}
    regular = []
    for path in paths:
        found[path] = None
        place = _inside(gitdir, path)
        if place and os.path.islink(place):
            found[path] = objects.oid("blob", os.fsencode(os.readlink(place)), object_format(gitdir))
        elif place and os.path.isfile(place):
            regular.append(path)
    return found | _hashed(os.fspath(gitdir.top), regular)


def _hashed(top: str, paths: Sequence[str]) -> dict[str, Oid | None]:
    try:
        return dict(zip(paths, hash_files(top, [os.fsencode(path) for path in paths]), strict=True))
    except errors.TryAgain:
        raise
    except errors.LedgerError:  # one is unreadable, or gone since: the others are asked for without it
        return {} if len(paths) < 2 else {name: oid for path in paths for name, oid in _hashed(top, [path]).items()}


def _inside(gitdir: GitDir, path: str) -> str | None:
    """Where a path of the work tree lies, or None for one that leaves it or leads through a symlink."""
    top = gitdir.top
    parts = path.split("/")
    if not top or not path or os.path.isabs(path) or ".." in parts or "\0" in path:
        return None
    place = os.path.join(os.fspath(top), path)
    inside = os.path.realpath(os.path.dirname(place))
    return place if inside == os.path.normpath(os.path.join(os.path.realpath(top), *parts[:-1])) else None


def object_format(gitdir: GitDir) -> str:
    """`sha1` or `sha256`."""
    return _ask(gitdir, "rev-parse", "--show-object-format").line


def ref_storage(gitdir: GitDir) -> str:
    """`files` or `reftable`."""
    return _ask(gitdir, "config", "--get", "extensions.refStorage", check=False).line.lower() or "files"


def _checked(oid: str) -> Oid:
    if not _OID.fullmatch(oid):
        raise errors.BadData(f"{oid!r} is not a full commit id: name it by all its hex digits")
    return oid


def _listed(gitdir: GitDir, revs: Sequence[str], limit: int) -> tuple[tuple[Oid, str], ...]:
    args = ("rev-list", f"--max-count={limit}", "--encoding=UTF-8", "--format=%s", *revs, "--")
    lines = _ask(gitdir, *args).out.decode("utf-8", "replace").split("\n")
    return tuple((lines[n][7:], lines[n + 1]) for n in range(0, len(lines) - 1, 2))


def _kinds(gitdir: GitDir, oids: Sequence[Oid]) -> list[str]:
    """The type of each object, `missing`, or `damaged` where git cannot read what is there."""
    answer = _ask(
        gitdir, "cat-file", "--batch-check=%(objecttype)", input="\n".join(oids).encode() + b"\n", check=False
    )
    kinds = [line.split(" ")[-1] for line in answer.line.split("\n")] if answer.out else []
    kinds += ["damaged"] * (len(oids) - len(kinds))
    return ["damaged" if kind == "missing" and "error:" in answer.err else kind for kind in kinds]


# ── relation ─────────────────────────────────────────────────────────────────────────────────
def relate(gitdir: GitDir, recorded: Position, present: Position) -> Relation:
    """How the recorded head relates to the present one; never raises for what git cannot answer.

    A repository without a commit has no history to be in: one side UNBORN is `unrelated`.
    """
    old, new = recorded.head, present.head
    if old == new:
        return Relation("same")
    if UNBORN in (old, new):
        return Relation("unrelated", detail=f"{'the record' if old == UNBORN else 'HEAD'} has no commit")
    if not _OID.fullmatch(old):
        return Relation("unknown", detail="the record's head is not a commit id")
    try:
        return _relate(gitdir, recorded, present)
    except errors.LedgerError as e:
        return Relation("unknown", detail=str(e))


def _relate(gitdir: GitDir, recorded: Position, present: Position) -> Relation:
    old, new = recorded.head, present.head
    if len(old) != len(new):
        return Relation("missing", detail="the record's head is of another object format")
    # merge-base, not rev-list's counts: it is right under any clock skew.
    answer = _ask(gitdir, "merge-base", old, new, "--", check=False)
    base = answer.line if answer.code == 0 else ""
    if base == old:
        found = _listed(gitdir, [new, "^" + old], COUNTED)
        count = len(found)
        if count == COUNTED:
            count = int(_ask(gitdir, "rev-list", "--count", new, "^" + old, "--").line)
        return Relation("descends", found[:LISTED], count)
    if base == new:
        return Relation("rewound")
    gone = False
    if answer.code not in (0, 1):
        kinds = _kinds(gitdir, [old, new])
        gone = kinds == ["missing", "commit"]
        if not gone:
            return Relation("unknown", detail=answer.err.split("\n")[0] or f"objects are {' and '.join(kinds)}")
    successor = _successor(gitdir, recorded, present, base, gone)
    if successor:
        return Relation("rewritten", successor=successor)
    if gone:
        return Relation("missing", detail="the history here is shallow" if is_shallow(gitdir) else "")
    if is_shallow(gitdir):
        return Relation("unknown", detail="the history here is shallow")
    return Relation("forked" if base else "unrelated")


def _successor(gitdir: GitDir, recorded: Position, present: Position, base: Oid, gone: bool) -> Oid:
    """The commit in HEAD's own history that the recorded one became, by the first proof found, or ""."""
    old, new = recorded.head, present.head
    revs = [new, "^" + base] if base else [new]
    rows = _ask(gitdir, "rev-list", f"--max-count={SAME_TREE_LIMIT}", "--format=%H %T", *revs, "--").line.split("\n")
    trees = dict(row.split(" ") for row in rows if not row.startswith("commit "))
    for pairs in (_rewrites(gitdir), _amended(gitdir, present.branch)):
        for heir in _heirs(old, pairs):
            if heir in trees or (len(trees) == SAME_TREE_LIMIT and is_ancestor(gitdir, heir, new)):
                return heir
    tree = recorded.tree if gone or recorded.tree else _ask(gitdir, "rev-parse", "--verify", old + "^{tree}").line
    for oid, its_tree in trees.items():
        if its_tree == tree:
            return oid
    return "" if gone else _same_patch(gitdir, old, revs)


def _heirs(old: Oid, pairs: dict[Oid, list[Oid]]) -> Iterator[Oid]:
    """What `old` became, and what that became …, the last ones first; a ring ends."""
    seen = {old}
    order: list[Oid] = []
    wave = [old]
    while wave:
        wave = [heir for one in wave for heir in reversed(pairs.get(one, ())) if heir not in seen]
        seen.update(wave)
        order += wave
    return reversed(order)


def _rewrites(gitdir: GitDir) -> dict[Oid, list[Oid]]:
    """The rewrite map that the post-rewrite hook keeps: old id to new ones, later ones last."""
    pairs: dict[Oid, list[Oid]] = {}
    try:
        with open(open_own(os.path.join(os.fspath(gitdir.common), REWRITES)), "rb") as file:
            file.seek(max(0, os.path.getsize(file.fileno()) - REWRITES_BYTES))
            text = file.read().decode("ascii", "replace")
    except (OSError, errors.CannotWrite):
        return pairs
    for line in text.splitlines():
        words = line.split(" ")
        # A torn or foreign line is no proof of anything.
        if len(words) == 2 and all(_OID.fullmatch(word) for word in words):
            pairs.setdefault(words[0], []).append(words[1])
    return pairs


def _amended(gitdir: GitDir, branch: str) -> dict[Oid, list[Oid]]:
    """What `git commit --amend` replaced, as the reflogs of HEAD and the branch tell it."""
    logs = ["HEAD"] if branch == DETACHED else ["HEAD", f"refs/heads/{branch}"]
    shown = ("-c", "log.showSignature=false", "log", "--walk-reflogs", "--format=%gD %H %gs")
    answer = _ask(gitdir, *shown, f"--max-count={REFLOG_LIMIT}", "--no-color", *logs, "--", check=False)
    pairs: dict[Oid, list[Oid]] = {}
    newer: dict[str, tuple[Oid, str]] = {}
    for row in answer.out.decode("utf-8", "replace").split("\n"):
        selector, _, rest = row.partition(" ")
        oid, _, subject = rest.partition(" ")
        log = selector.rpartition("@{")[0]
        if log in newer and newer[log][1].startswith("commit (amend)"):
            pairs.setdefault(oid, []).append(newer[log][0])
        newer[log] = (oid, subject)
    return pairs


def _same_patch(gitdir: GitDir, old: Oid, revs: Sequence[str]) -> Oid:
    """The newest commit of `revs` that makes the same change as `old`, or ""; a merge makes none of its own."""
    wanted = list(_patch_ids(gitdir, [old]))
    if not wanted:
        return ""
    listed = _ask(gitdir, "rev-list", f"--max-count={SAME_PATCH_LIMIT}", "--no-merges", *revs, "--").line.split()
    for n in range(0, len(listed), PATCHES_AT_ONCE):
        found = _patch_ids(gitdir, listed[n : n + PATCHES_AT_ONCE])
        if wanted[0] in found:
            return found[wanted[0]]
    return ""


def _patch_ids(gitdir: GitDir, oids: Sequence[Oid]) -> dict[str, Oid]:
    shown = ("diff-tree", "--stdin", "-p", "--root", "--no-ext-diff", "--no-textconv", "--full-index", "--no-renames")
    patches = _ask(gitdir, *shown, input="\n".join(oids).encode() + b"\n").out
    rows = _ask(gitdir, "patch-id", "--stable", input=patches).line.split("\n")
    found: dict[str, Oid] = {}
    for row in rows:
        patch, _, oid = row.partition(" ")
        if oid:
            found.setdefault(patch, oid)
    return found


def merged(gitdir: GitDir, recorded: Position, present: Position) -> bool:
    """True where the recorded branch was finished: its recorded head is in HEAD's history, and HEAD went on from it.

    At the very same commit this is true only if the present branch came there by a fast-forward merge, as its reflog
    tells: a branch just made there has merged nothing.
    """
    if UNBORN in (recorded.head, present.head):
        return False
    if recorded.head != present.head:
        return bool(is_ancestor(gitdir, recorded.head, present.head))
    if present.branch == DETACHED:
        return False
    shown = (
        "-c",
        "log.showSignature=false",
        "log",
        "--walk-reflogs",
        "--format=%H %gs",
        "--max-count=50",
        "--no-color",
    )
    answer = _ask(gitdir, *shown, f"refs/heads/{present.branch}", "--", check=False)
    rows = answer.out.decode("utf-8", "surrogateescape").split("\n")
    return any(row.startswith(f"{present.head} merge {recorded.branch}:") for row in rows)
