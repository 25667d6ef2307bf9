"""Hermes put in, looked at and taken out: two plugin folders, four values of config.yaml, copies of what was before."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace

from gitledger import pins, settingsfile, shims
from gitledger.clients.hermes import settings
from gitledger.clients.hermes.settings import GATE, PROVIDER
from gitledger.errors import BadData, CannotWrite
from gitledger.install import Outcome, Place, State, Wired, interpreter
from gitledger.model import Json
from gitledger.wiring import Client

MARK = "# Written by gitledger hooks install; gitledger hooks uninstall takes it out.\n"
GATED = "compress"
"""The one event that is the gate's; all others are the provider's."""
_SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins", "hermes")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_TRY = """
import importlib.metadata, os, sys
from plugins.memory import load_memory_provider
from hermes_cli.plugins import discover_plugins, get_plugin_context_engine
discover_plugins()
for what in (load_memory_provider("gitledger"), get_plugin_context_engine()):
    names = [one.__module__ for one in type(what).__mro__ if what is not None]
    print(next((name for name in names if name.startswith("gitledger.")), names[0] if names else ""))
print(importlib.metadata.version("hermes-agent"))
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What an install left: the configuration's digest before and after, what it said, folders made, where copies are.

    `before` is "" where there was no configuration.
    """

    digest: str
    before: str
    values: dict[str, Json]
    folders: tuple[str, ...]
    copies: str


# ── looking ──────────────────────────────────────────────────────────────────────────────────
def wired(at: Place) -> list[Wired]:
    """Each event as the folders and the configuration have it."""
    said = settings.said(settings.read(at.path, settingsfile.read(at.path)))
    states = {name: _folder(at, name) for name in (PROVIDER, GATE)}
    rows = []
    for theirs, ours in at.client.events:
        name = GATE if theirs == GATED else PROVIDER
        state = states[name]
        chosen = said.held[1] and said.enabled and not said.disabled if name == GATE else said.held[0]
        if theirs == "on_pre_compress":
            chosen = chosen and said.held[2]
        if (state == "installed") != chosen:  # in the folder alone, or in the configuration alone
            state = "outdated"
        rows.append(Wired(at, theirs, ours, state, at.client.shim(ours) if state != "absent" else ""))
    return rows


def faults(at: Place, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """What keeps Hermes from using what is there."""
    said = settings.said(settings.read(at.path, settingsfile.read(at.path)))
    again = "gitledger hooks install --client hermes"
    gone = [name for name in (PROVIDER, GATE) if _folder(at, name) == "absent"]
    found = []
    if said.held[0] and PROVIDER in gone:
        found.append(("memory.provider names gitledger, whose folder is gone: nothing is journalled", again))
    if said.held[1] and GATE in gone:
        found.append(
            (f"context.engine names {GATE}, whose folder is gone: Hermes compacts without a checkpoint", again)
        )
    if len(gone) == 2:
        return found
    if not said.held[0]:
        what = f"memory.provider is {said.provider or 'not set'}"
        found.append((f"the provider is there and not selected ({what}): nothing is journalled", f"{again} --replace"))
    if not said.held[1]:
        what = f"context.engine is {said.engine or 'not set'}"
        found.append((f"the gate is there and not selected ({what}): Hermes 0.19 compacts without a checkpoint", again))
    if said.disabled or not said.enabled:
        why = "plugins.disabled names it" if said.disabled else "plugins.enabled lacks it"
        mend = f"take {GATE} out of plugins.disabled in {at.path}" if said.disabled else again
        found.append((f"the gate is not enabled ({why}): Hermes 0.19 compacts without a checkpoint", mend))
    if not said.held[2]:
        found.append(("compression.checkpoint_required is not true: a newer Hermes compacts without one", again))
    place = _named(settingsfile.read(_file(at, PROVIDER, "found.py")) or "")
    if place and not os.path.isfile(os.path.join(place, "__init__.py")):
        found.append((f"the plugin loads gitledger from {place}, which is gone", again))
    return found


def attempts(at: Place, folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, bool, str]]:
    """Have Hermes' own Python load both plugins, and say which Hermes it is."""
    python = interpreter("hermes", environ)
    if not python:
        yield "Hermes loads the plugins", True, "not tried: no program hermes is on PATH"
        return
    env = {**environ, "HERMES_HOME": os.path.dirname(at.path), "GITLEDGER_DISABLE": "1"}
    try:
        ran = subprocess.run(
            [python, "-c", _TRY], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        rows = ran.stdout.split("\n")[-4:-1]
    except (OSError, subprocess.SubprocessError) as e:
        yield "Hermes loads the plugins", False, f"{python} did not run: {type(e).__name__}"
        return
    if len(rows) != 3:
        last = (ran.stderr.strip() or "nothing").splitlines()[-1]
        yield "Hermes loads the plugins", False, f"exit {ran.returncode}, it said: {last}"
        return
    for what, module in zip(("the memory provider", "the gate"), rows, strict=False):
        good = module.startswith("gitledger.clients.hermes.")
        told = (
            f"loaded as {module} by Hermes {rows[2]}" if good else f"Hermes {rows[2]} has {module or 'nothing'} there"
        )
        yield what, good, told


def to_paste(client: Client) -> str:
    """What config.yaml must say."""
    return settings.PASTE


# ── putting in ───────────────────────────────────────────────────────────────────────────────
def install(at: Place, *, instead: bool = False) -> Outcome:
    """Write both folders and the four values, after copies of what there was; nothing where all is there.

    Raises Missing where another provider or engine is configured, unless ours is to be there `instead`; BadData for
    what cannot be read or was edited, and CannotWrite; all is then as it was.
    """
    rows = wired(at)
    missing = tuple(row.theirs for row in rows if row.state == "absent")
    old = tuple(row.theirs for row in rows if row.state == "outdated")
    if not missing and not old:
        return Outcome(at, "current")
    files = _files(at)
    there = {path: settingsfile.read(path) for path in files}
    for path, text in there.items():
        _check(path, text)
    before = settingsfile.read(at.path)
    text, values = settings.put(at.path, settings.read(at.path, before), instead=instead)
    earlier = _load(at.receipt) if len(missing) < len(rows) else None
    kept = earlier or Kept("", settingsfile.digest(before) if before is not None else "", values, (), "")
    copies, notes = (kept.copies, []) if earlier else _copy(at, before)
    kept = replace(kept, digest=settingsfile.digest(text), copies=copies)
    made: list[str] = []
    written: list[str] = []
    there[at.path], files[at.path] = before, text  # the last: until then Hermes loads nothing of it
    settingsfile.keep(at.receipt, asdict(kept))
    try:
        for path, content in files.items():
            if content != there[path]:
                made += settingsfile.write(path, content, there[path])
                written.append(path)
    except BaseException:
        for path in reversed(written):
            settingsfile.write(path, there[path], files[path])
        settingsfile.drop_folders(tuple(made))
        if earlier:
            settingsfile.keep(at.receipt, asdict(earlier))
        else:
            shutil.rmtree(copies, ignore_errors=True)
            settingsfile.forget(at.receipt)
        raise
    settingsfile.keep(at.receipt, asdict(replace(kept, folders=(*kept.folders, *made))))
    first = len(missing) == len(rows)
    notes += _notes(at)
    return Outcome(at, "installed" if first else "updated", missing, old, tuple(notes))


def _notes(at: Place) -> list[str]:
    notes = ["a Hermes that runs now has it once it is started again; try it: gitledger hooks test --client hermes"]
    profile = os.path.join(os.path.dirname(at.path), "active_profile")
    try:
        with open(profile, encoding="utf-8") as f:
            name = f.read(200).strip()
    except (OSError, UnicodeDecodeError):
        name = ""
    if name and name != "default":
        home = os.path.join(os.path.dirname(at.path), "profiles", name)
        notes.append(f"profile {name} is active and has settings of its own: set HERMES_HOME={home} and install again")
    return notes


def _copy(at: Place, before: str | None) -> tuple[str, list[str]]:
    """Keep what there is of config.yaml and state.db, the latter as a whole one; raise CannotWrite, nothing left."""
    home = os.path.dirname(at.path)
    database = os.path.join(home, "state.db")
    kept = [
        name for name, there in (("config.yaml", before is not None), ("state.db", os.path.exists(database))) if there
    ]
    if not kept:
        return "", []
    names = ("gitledger", *(f"gitledger-{n}" for n in range(2, 1000)))  # what an earlier uninstall left stays
    places = (os.path.join(home, "backups", name) for name in names)
    folder = next((place for place in places if not os.path.lexists(place)), os.path.join(home, "backups", names[0]))
    try:
        os.makedirs(folder, mode=0o700)
        if before is not None:
            pins.write_private(os.path.join(folder, "config.yaml"), before.encode())
        if "state.db" in kept:
            _copy_database(database, os.path.join(folder, "state.db"))
    except (OSError, sqlite3.Error) as e:
        shutil.rmtree(folder, ignore_errors=True)
        raise CannotWrite(
            f"no copies of config.yaml and state.db could be kept in {folder} ({e}); all is as it was"
        ) from e
    return folder, [f"{' and '.join(kept)} as before, copied to {folder}"]


def _copy_database(path: str, target: str) -> None:
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        # What stands in its log beside it is in the copy; nobody who writes meanwhile is held up for long.
        with (
            closing(sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True)) as one,
            closing(sqlite3.connect(target)) as other,
        ):
            one.backup(other, pages=4096)
    except sqlite3.DatabaseError:
        if os.path.getsize(path) > 0 and _is_database(path):
            raise
        shutil.copyfile(path, target)


def _is_database(path: str) -> bool:
    with open(path, "rb") as f:
        return f.read(16) == b"SQLite format 3\0"


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


# ── taking out ───────────────────────────────────────────────────────────────────────────────
def uninstall(at: Place) -> Outcome:
    """Take both folders and the values out: the configuration is byte for byte what it was, where nobody else wrote.

    Else each value of ours is as it was before, and all else stays. Raises as `install` does.
    """
    files = _files(at)
    there = {path: text for path in files if (text := settingsfile.read(path)) is not None}
    for path, text in there.items():
        _check(path, text)
    before = settingsfile.read(at.path)
    known = _load(at.receipt)
    if not there and known is None and not any(row.state != "absent" for row in wired(at)):
        return Outcome(at, "absent")
    rest, exact = _without(at, before, known)
    if rest != before:
        settingsfile.write(at.path, rest, before)
    for path, text in there.items():
        settingsfile.write(path, None, text)
    for name in (PROVIDER, GATE):
        _drop(os.path.join(os.path.dirname(at.path), "plugins", name))
    notes = []
    if known and known.copies and os.path.isdir(known.copies):
        if exact:
            shutil.rmtree(known.copies, ignore_errors=True)
            settingsfile.drop_folders((os.path.dirname(known.copies),))
        else:
            notes.append(f"config.yaml was changed by others since; the copies of before stay in {known.copies}")
    if known:
        settingsfile.drop_folders(known.folders)
    settingsfile.forget(at.receipt)
    return Outcome(at, "removed", notes=tuple(notes))


def _without(at: Place, text: str | None, known: Kept | None) -> tuple[str | None, bool]:
    """The configuration without us, None for none, and whether it is byte for byte the one of before."""
    if text is None:
        return None, not (known and known.before)
    if known and settingsfile.digest(text) == known.digest:
        if not known.before:
            return None, True
        copied = settingsfile.read(os.path.join(known.copies, "config.yaml")) if known.copies else None
        if copied is not None and settingsfile.digest(copied) == known.before:
            return copied, True
    rest = settings.take(at.path, settings.read(at.path, text), known.values if known else {})
    same = bool(known and known.before == settingsfile.digest(rest))
    return (None, True) if known and not known.before and not rest.strip() else (rest, same)


def _drop(folder: str) -> None:
    shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)  # Hermes' Python made it
    settingsfile.drop_folders((folder,))


# ── the folders ──────────────────────────────────────────────────────────────────────────────
def _files(at: Place) -> dict[str, str]:
    """What belongs into the two folders, by path."""
    from gitledger import __version__

    found = _source("found.py")
    for name, value in (
        ("PLACE", _PACKAGE),
        ("FIND", shims.program("hooks package")),
        ("COMPACT", shims.script(at.client.name, "compact", at.client.refusal)),
    ):
        found = found.replace(f'{name} = ""  # filled in by gitledger hooks install', f"{name} = {json.dumps(value)}")
    about = {
        PROVIDER: "One project, one ledger: every turn journalled, checkpoints before a compaction, handovers.",
        GATE: "Keeps Hermes from compacting without a durable checkpoint, where there is a ledger.",
    }
    texts = {
        PROVIDER: {"__init__.py": _source("provider.py"), "cli.py": _source("cli.py"), "found.py": found},
        GATE: {"__init__.py": _source("gate.py"), "found.py": found},
    }
    files = {}
    for name, parts in texts.items():
        parts["plugin.yaml"] = f'name: {name}\nversion: {__version__}\ndescription: "{about[name]}"\n'
        for part, text in parts.items():
            files[_file(at, name, part)] = _sealed(text)
    return files


def _file(at: Place, name: str, part: str) -> str:
    return os.path.join(os.path.dirname(at.path), "plugins", name, part)


def _folder(at: Place, name: str) -> State:
    """Whether a folder is there, and all in it is today's."""
    folder = os.path.dirname(_file(at, name, ""))
    parts = {path: text for path, text in _files(at).items() if os.path.dirname(path) == folder}
    there = {path: settingsfile.read(path) for path in parts}
    if all(text is None or not text.startswith(MARK) for text in there.values()):
        return "absent"
    return "installed" if there == parts else "outdated"


def _source(name: str) -> str:
    with open(os.path.join(_SOURCES, name), encoding="utf-8") as f:
        return f.read()


def _sealed(text: str) -> str:
    return f"{MARK}# digest: {settingsfile.digest(text)[:16]}\n{text}"


def _check(path: str, text: str | None) -> None:
    """Raise BadData for a file that is none of ours, or is ours and was edited."""
    if text is None:
        return
    if not text.startswith(MARK):
        raise BadData(f"{path} is not gitledger's and was left alone; move it away and install again")
    first, _, rest = text[len(MARK) :].partition("\n")
    if first != f"# digest: {settingsfile.digest(rest)[:16]}":
        raise BadData(f"{path} was edited since it was installed, and was left alone; move it away")


def _named(text: str) -> str:
    """The package's folder as a plugin has it."""
    for row in text.splitlines():
        if row.startswith("PLACE = "):
            try:
                return str(json.loads(row.removeprefix("PLACE = ")))
            except ValueError:
                break
    return ""


# ── the receipt ──────────────────────────────────────────────────────────────────────────────
def _load(path: str) -> Kept | None:
    try:
        with open(path, "rb") as f:
            value = json.loads(f.read(settingsfile.BIGGEST))
        return Kept(
            str(value["digest"]),
            str(value["before"]),
            dict(value["values"]),
            tuple(map(str, value["folders"])),
            str(value["copies"]),
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
