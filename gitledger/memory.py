"""A memory file changed by a validated change set, and the ledger that tells of it: never one without the other.

The steps, and what a crash behind each leaves; whatever comes next in `recover` finds it.

1 the new text is written beside the file           the file as it was, and a file to be swept away
2 what is about to be done is kept, with the bytes  the same, and told
3 the two files change places                       the file changed; kept: what was, and all that the ledger is to say
4 a signed commit tells of it                       the same, in the ledger too
5 a line for each change goes into the log          the same
6 what was kept goes                                all done

A step that fails leaves the file as it was: up to the third nothing has happened, and where the fourth fails the files
change places once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

from gitledger import layout, lock, memoryfile, memoryrecord, pins, schema, sessions
from gitledger.blocks import Lines, split
from gitledger.errors import IOFailed, LedgerError, Missing, TryAgain
from gitledger.ledger import Ledger
from gitledger.memorycheck import Edit, check, edited
from gitledger.memorykept import DEADLINE, CutOff, beside, cut_off, folder, forget, keep, kept_path, sweep, waits
from gitledger.memoryrecord import Made
from gitledger.model import Finding, Key
from gitledger.redact import Known, redact
from gitledger.render.text import line as one_line
from gitledger.transaction import Plan, Written
from gitledger.values import dataclass, replace
from gitledger.view import View

LOOKED_AT = 50
"""The newest changes of this writer among which one that was cut off is looked for."""


@dataclass(frozen=True, slots=True)
class Target:
    """A memory file: its name as it is configured, and where it lies."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A memory file as it was read."""

    target: Target
    data: bytes
    sha256: str
    text: Lines


@dataclass(frozen=True, slots=True)
class Applied:
    """A change that was made: its record, the commit that tells of it, and what was not as it should be besides."""

    key: Key
    name: str
    commit: str
    made: Made
    before: Lines
    findings: tuple[Finding, ...] = ()
    backup: str = ""


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def targets(ledger: Ledger, named: str = "") -> list[Target]:
    """The configured memory files, or the one that `named` says; raise Missing for one that is not configured."""
    names = ledger.desk.config.memory.files
    found = [target for name in dict.fromkeys(names) for target in _of(ledger, name)]
    if named:
        path = os.path.realpath(named)
        found = [target for target in found if named == target.name or path == target.path]
        if not found:
            raise Missing(f"{named} is no memory file here, there are: {', '.join(names) or 'none'}; see memory.files")
    return found


def _of(ledger: Ledger, name: str) -> Iterator[Target]:
    """The file of a configured name; a folder stands for the Markdown files in it."""
    path = memoryfile.locate(ledger.gitdir.top, name)
    if not os.path.isdir(path):
        yield Target(name, path)
        return
    for one in memoryfile.listed(path):
        yield Target(os.path.join(name, one), os.path.join(path, one))


def present(ledger: Ledger, named: str = "") -> list[Loaded]:
    """The memory files that are there; raise Missing where none is."""
    asked = targets(ledger, named)
    found = [loaded for target in asked if (loaded := load(target)) is not None]
    if not found:
        raise none_there(ledger)
    return found


def none_there(ledger: Ledger) -> Missing:
    """The error that none of the configured memory files is there."""
    top, names = ledger.gitdir.top, ledger.desk.config.memory.files
    paths = ", ".join(memoryfile.locate(top, name) for name in names) or "none is configured"
    return Missing(f"there is no memory file ({paths}); name one by: gitledger config set memory.files PATH")


def load(target: Target) -> Loaded | None:
    """A memory file as it is now, None where there is none."""
    data = memoryfile.read(target.path)
    return None if data is None else Loaded(target, data, memoryfile.digest(data), split(data, target.name))


def companions(ledger: Ledger, besides: Target) -> dict[str, Lines]:
    """What is read only to find duplicates, by its name in a change set; what cannot be read is left out."""
    config = ledger.desk.config.memory
    found: dict[str, Lines] = {}
    for name in dict.fromkeys((*config.companions, *config.files)):
        try:
            there = list(_of(ledger, name))
        except LedgerError:
            continue  # a proposal may then name nothing in it
        for target in there:
            try:
                if target.path != besides.path and (loaded := load(target)) is not None:
                    found[target.name] = loaded.text
            except LedgerError:
                continue  # nor in this one
    return found


def accepted(ledger: Ledger, loaded: Loaded, data: bytes, only: frozenset[int] | None = None) -> tuple[Edit, ...]:
    """The edits of the change set in `data`, or of `only` some of its changes; BadChangeSet with every refusal."""
    proposed = schema.read_memory_set(data)
    return check(loaded.text, loaded.sha256, proposed, loaded.target.name, companions(ledger, loaded.target), only)


# ── changing ─────────────────────────────────────────────────────────────────────────────────
def apply(ledger: Ledger, loaded: Loaded, edits: tuple[Edit, ...], how: str, undoes: Key | None = None) -> Applied:
    """Make the edits of a file, whole, and commit what was done; raise a LedgerError with the file as it was."""
    path, mint = loaded.target.path, ledger.desk.mint
    after = edited(loaded.text, edits).data()
    made = Made(mint.id(), mint.at(), loaded.target.name, how, edits, loaded.sha256, memoryfile.digest(after), undoes)
    with _held(path):
        recover(ledger, locked=path)
        memoryfile.look(path)
        temp = memoryfile.stage(path, after, waits(ledger, made.id))  # 1
        try:
            keep(ledger, made, path, loaded.data)  # 2
            kept = _backup(ledger, made, loaded.data)
            memoryfile.swap(path, temp, loaded.sha256)  # 3
        except BaseException:
            memoryfile.remove(temp)
            forget(ledger, made.id)
            raise
        try:
            written, key = _commit(ledger, made, loaded.text)  # 4
        except Exception as e:  # also a fault of ours: a file that changed and no word of it would be worse
            if not _put_back(ledger, made, path, temp, loaded.data):
                raise IOFailed(
                    f"{e}; somebody wrote into {made.name} since, so the change stands in it, and the ledger does not "
                    "tell of it yet; mend that, then end it by: gitledger memory log"
                ) from e
            if isinstance(e, OSError):
                raise IOFailed(f"{e.strerror or e}; {made.name} is as it was") from e
            raise
        findings = _end(ledger, made, written.view, key, path, loaded.data)
    return Applied(key, written.view.name(key), written.commit, made, loaded.text, (*written.findings, *findings), kept)


def _held(path: str) -> AbstractContextManager[None]:
    return lock.folder(os.path.dirname(path), deadline=DEADLINE)


def _commit(ledger: Ledger, made: Made, before: Lines) -> tuple[Written, Key]:
    known = _secrets(ledger, made, before)
    keys: list[Key] = []

    def build(view: View) -> Plan:
        hand = ledger.hand()
        hand = replace(hand, session=sessions.current(view, hand))
        key, said = memoryrecord.drafts(view, hand, made, before, known)
        keys[:] = [key]
        title = said[0].records[key].set["title"]
        rows = [redact(_row(edit), known) for edit in made.edits[:40]]
        return Plan("memory", said, redact(f"{key.partition('@')[0]} {title}"), tuple(rows))

    written = ledger.commit(build)
    if written is None:
        raise AssertionError("a memory's plan always makes a commit")
    return written, keys[0]


def _row(edit: Edit) -> str:
    lines = f"line {edit.first + 1}" if edit.lines < 2 else f"lines {edit.first + 1} to {edit.first + edit.lines}"
    return f"{edit.kind}, {lines}: {edit.reason}"


def _secrets(ledger: Ledger, made: Made, before: Lines) -> Known:
    # Before the events are made: whether the file travels exactly must be known by then.
    if ledger.desk.config.secrets.scanner == "none":
        return ()
    from gitledger import scanner

    texts = ["".join(before.lines), *(edit.put for edit in made.edits), *(edit.reason for edit in made.edits)]
    return scanner.secrets(ledger.desk.config.secrets.scanner, texts)


def _put_back(ledger: Ledger, made: Made, path: str, temp: str, before: bytes) -> bool:
    """The file as it was, after the ledger could not be told; False where somebody wrote meanwhile and theirs stays."""
    try:
        if not os.path.lexists(temp):
            memoryfile.stage(path, before, waits(ledger, made.id))
        memoryfile.swap(path, temp, made.result)
    except (LedgerError, OSError):
        return False  # what was kept tells the next command, which tries once more
    _drop(path, temp, made.result)
    forget(ledger, made.id)
    return True


def _backup(ledger: Ledger, made: Made, before: bytes) -> str:
    folder = ledger.desk.config.memory.backup
    if not folder:
        return ""
    path = memoryfile.locate(ledger.gitdir.top, folder)
    try:
        return memoryfile.backup(path, made.at[:10], before)
    except OSError as e:
        raise IOFailed(f"the copy in {path} cannot be written ({e.strerror}); {made.name} is as it was") from e


def _end(ledger: Ledger, made: Made, view: View, key: Key, path: str, before: bytes) -> list[Finding]:
    """The last steps: what fails in them is told, and is no change that failed."""
    findings = []
    try:
        # As the tree has it now: a file that held a secret has none, and one too big for a record is cut in it.
        if memoryrecord.told(ledger.view(), key).before is None:
            pins.write_private(kept_path(ledger, key), before)
        _log(ledger, made, view.name(key), before)  # 5
    except (LedgerError, OSError) as e:
        findings.append(
            Finding("after the commit", log_path(ledger), str(e), "the change itself is made and committed")
        )
    findings += _drop(path, beside(ledger, path, made), made.source)
    forget(ledger, made.id)  # 6
    return findings


def _drop(path: str, temp: str, expected: str) -> list[Finding]:
    """Remove what lies aside; what somebody wrote into it since (with the file open all the while) is kept and told."""
    data = memoryfile.read(temp)
    if data is None or memoryfile.digest(data) == expected:
        memoryfile.remove(temp)
        return []
    kept = f"{path}.kept-{memoryfile.digest(data)[:8]}"
    os.replace(temp, kept)
    what = f"somebody wrote into the file that was just replaced; what they wrote is kept as {kept}"
    return [Finding("memory", path, what, "take over by hand what is missing")]


def log_path(ledger: Ledger) -> str:
    """Where the log of all changes lies."""
    named = ledger.desk.config.memory.log
    return memoryfile.locate(ledger.gitdir.top, named) if named else os.path.join(folder(ledger), "memory-clean.log")


def _log(ledger: Ledger, made: Made, name: str, before: bytes) -> None:
    text = split(before, made.name)
    lines = []
    for edit in made.edits:
        gone = "".join(text.lines[edit.first : edit.first + edit.lines]) or edit.put
        place = f"{memoryrecord.shown(made.name)}:{edit.first + 1}"
        shown = one_line(redact(gone), 80)
        lines.append(one_line(redact(f'{made.at} {name} {edit.kind} {place} "{shown}": {edit.reason}')))
    memoryfile.append(log_path(ledger), lines)


# ── ending what was cut off ────────────────────────────────────────────────────────────────
def recover(ledger: Ledger, locked: str = "") -> list[Finding]:
    """End every change that was cut off, one way or the other, and say which; `locked` is a file whose folder is held.

    Where the file had been changed, the ledger is told of it; where it had not, what waited is swept away.
    """
    findings = []
    for cut in list(cut_off(ledger)):
        base = os.path.dirname(cut.path)
        if base == os.path.dirname(locked or "/"):
            findings.append(_recovered(ledger, cut))
            continue
        try:
            with _held(cut.path) if os.path.isdir(base) else lock.folder(folder(ledger), deadline=DEADLINE):
                if any(
                    again.made.id == cut.made.id for again in cut_off(ledger)
                ):  # else its process has ended it by now
                    findings.append(_recovered(ledger, cut))
        except TryAgain:
            continue  # it is under way
    if locked:
        sweep(ledger, locked)
    return findings


def _recovered(ledger: Ledger, cut: CutOff) -> Finding:
    made, path, name = cut.made, cut.path, cut.made.name
    temp = beside(ledger, path, made)
    waiting, now = memoryfile.read(temp), memoryfile.read(path)
    state = memoryfile.digest(waiting) if waiting is not None else ""
    view = ledger.view()
    key = _told_already(view, ledger.desk.writer.id, made)
    strange = key is None and state not in ("", made.source, made.result)
    if strange and memoryfile.exchange(temp, path):
        # It was killed as it was about to put back what somebody wrote in the moment of the exchange.
        state = made.result
    swapped = state != made.result if waiting is not None else now is None or memoryfile.digest(now) != made.source
    if key is None and not swapped:
        memoryfile.remove(temp)
        forget(ledger, made.id)
        return Finding("memory", name, "a change of it was cut off before the file was touched", "make it again")
    if key is None:
        written, key = _commit(ledger, made, split(cut.before, name))
        view = written.view
    told = [] if _logged(ledger, made, view.name(key)) else _end(ledger, made, view, key, path, cut.before)
    told += _drop(path, temp, made.source)
    forget(ledger, made.id)
    mend = "; ".join(f"{one.what}; {one.mend}" for one in told) or "nothing is left to do"
    return Finding("memory", name, f"a change of it was cut off; it is {view.name(key)} now", mend)


def _told_already(view: View, writer: str, made: Made) -> Key | None:
    newest = view.manifest.numbers.get(layout.MEMORY.letter, 0)
    for n in range(newest, max(newest - LOOKED_AT, 0), -1):
        key = layout.key_of(layout.MEMORY, n, writer)
        record = view.record(key) if view.row(key) else None
        if record is not None and record.text("id") == made.id:
            return key
    return None


def _logged(ledger: Ledger, made: Made, name: str) -> bool:
    try:
        with open(log_path(ledger), "rb") as f:
            return f"{made.at} {name} ".encode() in f.read()
    except OSError:
        return False
