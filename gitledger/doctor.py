"""This machine's set-up, looked at piece by piece: what works, what will bite, and what to do about it.

Nothing is written and no network is touched. Each check stands alone: one that cannot be made says so, and the others
are made all the same.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from gitledger import gitcli, githooks, identity, memorystate, objects, pins, remote, syncstate, wal
from gitledger.errors import LedgerError, NotAllowed
from gitledger.gitdir import GitDir
from gitledger.install import Place, Wired
from gitledger.ledger import Ledger
from gitledger.values import dataclass
from gitledger.view import View

State: TypeAlias = Literal["ok", "note", "warning", "fault"]

PENDING = 5_000
"""Lines of the log from which on every reading is slow."""
LOOSE = 5_000
"""Loose objects from which on git would like to be packed."""
LOG_TAIL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what it is, how it stands, and what to do; "" where there is nothing to do."""

    name: str
    state: State
    what: str
    mend: str = ""


def checks(ledger: Ledger) -> Iterator[Check]:
    """Every check, in the order in which they are shown."""
    for name, check in _CHECKS:
        try:
            yield from check(ledger)
        except (LedgerError, OSError, ValueError) as e:
            yield Check(name, "fault", f"cannot be looked at: {e}", "mend that and run gitledger doctor again")


# ── programs ─────────────────────────────────────────────────────────────────────────────────
def _programs(ledger: Ledger) -> Iterator[Check]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok", f"Python {python} at {sys.executable}")
    answer = gitcli.run(["--version"], cwd=ledger.gitdir.common).line
    yield Check("git", "ok", f"{answer} at {shutil.which('git')}")
    found = shutil.which("ssh-keygen")
    if found:
        yield Check("ssh-keygen", "ok", found)
    else:
        yield Check("ssh-keygen", "fault", "not on PATH, so nothing can be signed", "install OpenSSH")


# ── this clone ───────────────────────────────────────────────────────────────────────────────
def _ledger(ledger: Ledger) -> Iterator[Check]:
    desk, tip = ledger.desk, ledger.tip()
    branch = desk.store.ref.removeprefix("refs/heads/")
    yield Check("ledger", "ok", f"{branch} at {tip[:12]}, writer {desk.writer.id}")
    for lock in (os.path.join(ledger.gitdir.common, f"{desk.store.ref}.lock"), *_locks(ledger.gitdir.common)):
        if os.path.exists(lock):
            what = f"{lock} is there: a git process moves that ref now, or died over it"
            yield Check("ledger", "warning", what, "see with ps that no git runs here, then move that file away")
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is None:
        yield Check("trust", "fault", "this clone has pinned no key of this ledger", "join it: gitledger init")
    elif mine.remembers(tip):
        yield Check("trust", "ok", f"the whole history is verified, {len(mine.fingerprints)} keys are trusted")
    else:
        yield Check("trust", "note", "something is new since the last verification", "gitledger verify")
    me = identity.load(ledger.gitdir.common)
    key = desk.writer.key
    kept = f", {len(me.own(desk.home.name))} of its own" if me and me.own(desk.home.name) else ""
    yield Check("key", "ok", f"{key.fingerprint}{kept}")


def _locks(common: str) -> list[str]:
    """Lock files of the refs that a sync has for itself."""
    found = os.walk(os.path.join(common, "refs", "ledgers"))
    return sorted(os.path.join(folder, name) for folder, _, names in found for name in names if name.endswith(".lock"))


def _key_file(ledger: Ledger) -> Iterator[Check]:
    path = getattr(ledger.desk.writer.key, "path", "")
    if path and (mode := stat.S_IMODE(os.stat(path).st_mode)) & 0o077:
        what = f"{path} can be read by others (mode {mode:o})"
        yield Check("key", "fault", what, f"make it yours alone: chmod 600 {path}")


def _log(ledger: Ledger) -> Iterator[Check]:
    entries, faults = wal.pending(ledger.desk.home.wal)
    state: State = "ok" if len(entries) < PENDING else "warning"
    mend = "" if state == "ok" else "make a checkpoint: gitledger checkpoint"
    yield Check("log", state, f"{len(entries):,} pending lines", mend)
    for fault in faults:
        yield Check("log", "warning", f"{fault.where}: {fault.what}", fault.mend)
    damaged = os.path.join(ledger.desk.home.wal, wal.DAMAGED)
    if os.path.isdir(damaged) and os.listdir(damaged):
        what = f"{damaged} holds lines that could not be read"
        yield Check("log", "warning", what, "read what can be saved, then move the files away")
    path = os.path.join(ledger.desk.home.state, "log")
    if os.path.exists(path):
        with open(path, "rb") as f:
            f.seek(max(os.path.getsize(path) - LOG_TAIL, 0))
            rows = f.read().decode("utf-8", "backslashreplace").splitlines()
        if rows:
            yield Check("hooks' log", "note", f"{len(rows)} lines, the last: {rows[-1]}", f"see {path}")


def _hooks(ledger: Ledger) -> Iterator[Check]:
    from gitledger import firing, install

    fired = firing.last(ledger)
    found = False
    for at in install.places(ledger.gitdir, os.environ):
        name = f"{at.client.title} ({at.path})"
        mend = f"gitledger hooks install --client {at.client.name}{' --user' if at.scope == 'user' else ''}"
        try:
            rows = [row for row in install.wired(at) if row.state != "absent" or not at.client.own]
        except LedgerError as e:
            yield Check("hooks", "warning", str(e), f"mend it, then {mend}")
            found = True
            continue
        if all(row.state == "absent" for row in rows):
            continue
        found = True
        for what, way in install.faults(at, os.environ):
            yield Check("hooks", "warning", f"{name}: {what}", way)
        wrong = [row.theirs for row in rows if row.state != "installed"]
        silent = [row.theirs for row in rows if not fired.get((at.client.name, row.ours))]
        last = max((fired.get((at.client.name, row.ours), "") for row in rows), default="")
        if wrong:
            yield Check("hooks", "warning", f"{name}: missing or of another version: {', '.join(wrong)}", mend)
        elif held := _held_back(at, rows):
            yield Check(
                "hooks", "warning", f"{name}: {held}", "open Codex, trust the project, and look at them: /hooks"
            )
        elif not last:
            yield Check("hooks", "note", f"{name}: wired, and never fired here", "try them: gitledger hooks test")
        else:
            more = f"; never fired: {', '.join(silent)}" if silent else ""
            yield Check("hooks", "ok", f"{name}: fired last at {last}{more}")
    if not found:
        yield Check("hooks", "note", "no agent is wired here", "gitledger hooks install")


def _program(ledger: Ledger) -> Iterator[Check]:
    """Which program the hooks of agents will find; they run with a PATH of their own."""
    from gitledger import program

    path, (named, there) = shutil.which("gitledger"), program.named(ledger.gitdir.common)
    gone = f"{named}, which this clone names for a PATH without it, is gone" if named else "this clone names none"
    mend = "gitledger hooks install, said by the path of a program that is to stay"
    if there:
        yield Check("hooks' program", "ok", path or f"{named}, as this clone names it")
    elif path:
        yield Check("hooks' program", "note", f"{path}; {gone}", mend)
    else:
        what = f"none is on PATH, and {gone}: no turn is logged, and compactions are refused"
        yield Check("hooks' program", "warning", what, mend)


def _held_back(at: Place, rows: list[Wired]) -> str:
    """What Codex says of hooks that it does not run, "" where it runs all or cannot be asked."""
    from gitledger import trial

    if at.client.name != "codex":
        return ""
    said = trial.trust(os.path.dirname(os.path.dirname(at.path)))
    held = [f"{row.theirs} is {state}" for row in rows if (state := trial.trusted(row, said)) not in ("installed", "")]
    return f"Codex does not run them: {', '.join(held)}" if held else ""


def _memory(ledger: Ledger) -> Iterator[Check]:
    for finding in memorystate.standing(ledger.desk.home.state, ledger.desk.home.name):
        yield Check("memory", "warning", finding.what, finding.mend)


def _proposer(ledger: Ledger) -> Iterator[Check]:
    """Whether the command that proposes can be started as `proposer` starts it: in the work tree, by this PATH."""
    words = ledger.desk.config.proposer.command
    if not words:
        yield Check("proposer", "note", "none is named, so checkpoints are derived", "see docs/proposer.md")
        return
    name = words[0]
    where = os.path.join(_at(ledger.gitdir), name) if os.path.dirname(name) else name
    if found := shutil.which(where):
        yield Check("proposer", "ok", found)
    else:
        what = f"{name} is not on PATH" if where == name else f"{where} is no program that may be run"
        yield Check("proposer", "warning", what, "gitledger config set proposer.command 'COMMAND WORDS'")


def _notify(ledger: Ledger) -> Iterator[Check]:
    count = len(ledger.desk.config.notify.urls)
    if not count:
        return
    addresses = f"{count:,} address{'' if count == 1 else 'es'}"  # which hold passwords: never shown
    if importlib.util.find_spec("apprise"):
        yield Check("notify", "ok", f"reports go to {addresses}")
    else:
        what = f"notify.urls has {addresses}, and the library for them is not installed"
        yield Check("notify", "warning", what, "pip install 'gitledger-continuity[notify]'")


def _sizes(ledger: Ledger) -> Iterator[Check]:
    rows = gitcli.run(["count-objects", "-v"], cwd=_at(ledger.gitdir)).line.splitlines()
    said = {name: int(value) for name, _, value in (row.partition(": ") for row in rows) if value.isdigit()}
    packed, loose = said.get("size-pack", 0), said.get("count", 0)
    what = f"{packed:,} KiB in {said.get('packs', 0)} packs, {loose:,} loose objects, all of this repository"
    yield Check("size", "ok" if loose < LOOSE else "note", what, "" if loose < LOOSE else "git gc")


# ── the remote ───────────────────────────────────────────────────────────────────────────────
def _remote(ledger: Ledger) -> Iterator[Check]:
    name = ledger.desk.config.remote.name
    if not name:
        yield Check("remote", "note", "none is named, so nothing is backed up", "gitledger remote set NAME")
        return
    to = remote.read(name)
    where = remote.address(ledger.gitdir, to)
    if not where:
        yield Check("remote", "fault", f"git knows no remote {to.shown}", "gitledger remote set NAME")
        return
    home = ledger.desk.home
    state = syncstate.load(home.state, home.name)
    get = ledger.desk.store.get
    count = syncstate.unpushed(state, ledger.tip(), lambda oid: objects.parse_commit(get(oid).data).parents)
    if count:
        yield Check("remote", "note", f"{to.shown} ({where}): {count} commits not pushed", "gitledger sync")
    else:
        yield Check("remote", "ok", f"{to.shown} ({where}), last sync {state.at}")
    if state.failed:
        yield Check("remote", "warning", f"the last sync failed: {state.failed}", "try again: gitledger sync")
    for finding in syncstate.standing(state, View(lambda path: objects.read(get, ledger.tip(), path))):
        yield Check("remote", "warning", f"{finding.rule}: {finding.where}: {finding.what}", finding.mend)
    yield from _server(os.path.join(_at(ledger.gitdir), where.removeprefix("file://")))


def _server(path: str) -> Iterator[Check]:
    """What can be seen of a remote that is a folder here; of any other, only that it cannot be seen."""
    if not os.path.isdir(path):
        what = "whether it refuses force and deletion of ledger/* cannot be seen from here"
        yield Check("server", "note", what, "have it do so, see docs/server.md")
        return
    for key, what in (("receive.denyNonFastForwards", "forced pushes"), ("receive.denyDeletes", "deletions")):
        answer = gitcli.run([f"--git-dir={_bare(path)}", "config", "--type=bool", "--get", key], cwd=path, check=False)
        hooked = os.access(os.path.join(_bare(path), "hooks", "pre-receive"), os.X_OK)
        if answer.line == "true":
            yield Check("server", "ok", f"{path} refuses {what}")
        elif hooked:
            yield Check("server", "note", f"{path} has a pre-receive hook, and takes {what} as far as that lets it")
        else:
            yield Check("server", "warning", f"{path} takes {what}", f"set {key} there, see docs/server.md")


def _bare(path: str) -> str:
    inner = os.path.join(path, ".git")
    return inner if os.path.isdir(inner) else path


# ── what git itself would do to the ledger ───────────────────────────────────────────────────
def _pushes(ledger: Ledger) -> Iterator[Check]:
    rows = gitcli.run(
        ["config", "--null", "--get-regexp", r"^(push\.default|remote\..*\.(mirror|push|fetch|prune)|fetch\.prune)$"],
        cwd=_at(ledger.gitdir),
        check=False,
    ).line.split("\0")
    said = [(key, value) for key, _, value in (row.partition("\n") for row in rows) if key]
    ref = ledger.desk.store.ref
    warned = False
    for key, value in said:
        name = key.removeprefix("remote.").rpartition(".")[0]
        what = ""
        if key.endswith(".mirror") and value == "true":
            what = f"remote {name} is a mirror: a plain git push there deletes a ledger that is not in this clone"
        elif key.endswith(".push") and _takes(value, ref):
            what = (
                f"remote {name} pushes {value}, which takes the ledger along{' by force' if value[:1] == '+' else ''}"
            )
        elif key == "push.default" and value == "matching":
            what = "push.default is matching, so a plain git push takes the ledger along"
        if what:
            warned = True
            yield Check("git push", "warning", what, "leave the ledger to gitledger sync, see docs/server.md")
    if not warned:
        what = "a plain one leaves the ledger alone; --all and --mirror would publish it, or delete a remote's"
        yield Check("git push", "ok", what)


def _takes(refspec: str, ref: str) -> bool:
    source = refspec.lstrip("+").partition(":")[0]
    before, star, after = source.partition("*")
    if star:
        return ref.startswith(before) and ref.endswith(after)
    return source in (ref, ref.removeprefix("refs/heads/"), ":")


def _git_hooks(ledger: Ledger) -> Iterator[Check]:
    """Hooks of ours that git no longer calls, or calls in an older form; none at all is a person's own choice."""
    try:
        there = [hook for hook in githooks.status(ledger.gitdir) if hook.state != "absent"]
    except NotAllowed:
        return  # core.hooksPath is elsewhere, so none of ours is there
    wrong = [hook for hook in there if hook.state != "installed"]
    for hook in wrong:
        state: State = "warning" if hook.state == "broken" else "note"
        yield Check("git hooks", state, f"{hook.name} is {hook.state}: {hook.what}", "gitledger hooks install --git")
    if there and not wrong:
        yield Check("git hooks", "ok", f"{', '.join(hook.name for hook in there)}")


def _default_branch(ledger: Ledger) -> Iterator[Check]:
    at = _at(ledger.gitdir)
    for name in remote.names(ledger.gitdir):
        words = ["symbolic-ref", "--quiet", f"refs/remotes/{name}/HEAD"]
        if "/ledger/" in gitcli.run(words, cwd=at, check=False).line:
            what = f"the default branch of {name} is a ledger, which everybody who clones it then checks out"
            yield Check("default branch", "warning", what, "set another one there; push your own work first next time")
    head = gitcli.run(["symbolic-ref", "--quiet", "HEAD"], cwd=at, check=False).line
    if head.startswith("refs/heads/ledger/"):
        what = "the ledger's branch is checked out here, and moves under the work tree with each checkpoint"
        yield Check("work tree", "warning", what, "go back to your own branch: git switch NAME")


def _at(found: GitDir) -> str:
    return found.top or found.git_dir


_CHECKS: tuple[tuple[str, Callable[[Ledger], Iterator[Check]]], ...] = (
    ("programs", _programs),
    ("ledger", _ledger),
    ("key", _key_file),
    ("log", _log),
    ("hooks", _hooks),
    ("hooks' program", _program),
    ("memory", _memory),
    ("proposer", _proposer),
    ("notify", _notify),
    ("size", _sizes),
    ("remote", _remote),
    ("git push", _pushes),
    ("default branch", _default_branch),
    ("git hooks", _git_hooks),
)
