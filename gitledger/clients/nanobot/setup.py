"""nanobot's agent plugin put in, looked at and taken out: a folder in a workspace, with a skill, and enabled.

The plugin tells the model how to work with the ledger. What hears nanobot's turns is the package itself, in nanobot's
own Python, where nanobot finds it by its entry points; whether it is there is looked at here, and said.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from glob import glob

from gitledger import guidance, settingsfile
from gitledger.errors import BadData
from gitledger.guidance import Sheet
from gitledger.install import Outcome, Place, State, Wired, interpreter
from gitledger.model import Json
from gitledger.settingsfile import Receipt
from gitledger.wiring import Client

NAME = "gitledger"
SKILL = "skills/gitledger/SKILL.md"
PACKAGE = "gitledger-continuity"
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
ASKED = frozenset(("start", "compact", "end"))
"""The events for which a child is run; all others are a line that is logged in nanobot's process."""
_WRITTEN = "gitledger hooks install"
_ENABLE = """
import sys
from pathlib import Path
from nanobot.agent.plugins import set_agent_plugin_enabled
set_agent_plugin_enabled(Path(sys.argv[1]), "gitledger", sys.argv[2] == "on")
"""
_TRY = """
from importlib.metadata import entry_points, version
print(version("nanobot-ai"), *sorted(ep.load().__name__ for ep in entry_points(group="nanobot.tools")
      if ep.value.startswith("gitledger.")))
"""


# ── looking ──────────────────────────────────────────────────────────────────────────────────
def wired(at: Place) -> list[Wired]:
    """Each event, by whether the folder is there and is today's."""
    there = settingsfile.read(at.path)
    state: State = "absent"
    if there is not None and _ours(there):
        whole = there == _manifest() and guidance.state(_sheet(at)) == "installed"
        state = "installed" if whole else "outdated"
    run = {ours: at.client.shim(ours) for ours in ASKED} if state != "absent" else {}
    return [Wired(at, theirs, ours, state, run.get(ours, "")) for theirs, ours in at.client.events]


def faults(at: Place, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """What keeps nanobot from using what is there."""
    there = settingsfile.read(at.path)
    if there is None or not _ours(there):
        return []
    found = []
    if not os.path.isfile(_marker(at, environ)):
        again = f"gitledger hooks install --client nanobot{' --user' if at.scope == 'user' else ''}"
        found.append(("the plugin is not enabled: a changed file disables it, and so does a person", again))
    python = interpreter("nanobot", environ)
    if python and not _has_package(python):
        what = f"{python} has no {PACKAGE}: nothing is journalled, and no compaction is held up"
        found.append((what, _pip(python)))
    if other := _elsewhere(at, environ):
        found.append(other)
    return found


def attempts(at: Place, folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, bool, str]]:
    """Have nanobot's own Python load the tools, and say which nanobot it is."""
    what = "nanobot loads the tools"
    python = interpreter("nanobot", environ)
    if not python:
        yield what, True, "not tried: no program nanobot is on PATH"
        return
    try:
        env = {**environ, "GITLEDGER_DISABLE": "1"}
        ran = subprocess.run(
            [python, "-c", _TRY], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
        )
    except (OSError, subprocess.SubprocessError) as e:
        yield what, False, f"{python} did not run: {type(e).__name__}"
        return
    version, *names = ran.stdout.split() or [""]
    last = (ran.stderr.strip() or "nothing").splitlines()[-1]
    good = ran.returncode == 0 and bool(names)
    told = f"{len(names)} tools, by nanobot {version}" if good else f"none; it said: {last}; {_pip(python)}"
    yield what, good, told


def to_paste(client: Client) -> str:
    """What the plugin's manifest must say."""
    return _manifest()


# ── putting in, taking out ───────────────────────────────────────────────────────────────────
def install(at: Place, *, instead: bool = False) -> Outcome:
    """Write the folder and have nanobot enable it; nothing where all is there.

    Raises BadData for a folder of that name that is none of ours, and CannotWrite; all is then as it was.
    """
    before = settingsfile.read(at.path)
    if before is not None and not _ours(before):
        raise BadData(f"{at.path} is not gitledger's and was left alone; move the folder away and install again")
    rows = wired(at)
    missing = tuple(row.theirs for row in rows if row.state == "absent")
    old = tuple(row.theirs for row in rows if row.state == "outdated")
    if missing or old:
        folders = settingsfile.write(at.path, _manifest(), before) if before != _manifest() else ()
        try:
            guidance.install(_sheet(at))
        except BaseException:
            settingsfile.write(at.path, before, _manifest())
            settingsfile.drop_folders(folders)
            raise
        known = settingsfile.load(at.receipt)
        kept = (*known.folders, *folders) if known else folders
        settingsfile.save(at.receipt, Receipt(at.path, "", existed=False, folders=kept))
    notes = _enabled(at, os.environ)
    python = interpreter("nanobot", os.environ)
    if not python:
        notes.append(f"nothing is journalled before nanobot's own Python has it, too: {_pip('python')}")
    elif not _has_package(python):
        notes.append(f"nothing is journalled before nanobot's own Python has it, too: {_pip(python)}")
    if other := _elsewhere(at, os.environ):
        notes.append("; ".join(other))
    done = "installed" if missing else "updated" if old else "current"
    return Outcome(at, done, missing, old, tuple(notes))  # type: ignore[arg-type]


def uninstall(at: Place) -> Outcome:
    """Disable the plugin and remove its folder; raises as `install` does, and BadData for a skill that was edited."""
    before = settingsfile.read(at.path)
    known = settingsfile.load(at.receipt)
    if before is None or not _ours(before):
        settingsfile.forget(at.receipt)
        return Outcome(at, "absent")
    guidance.uninstall(_sheet(at))
    settingsfile.write(at.path, None, before)
    folder = os.path.dirname(at.path)
    settingsfile.drop_folders((folder, *(os.path.join(folder, name) for name in ("skills", "skills/gitledger"))))
    if known:
        settingsfile.drop_folders(known.folders)
    settingsfile.forget(at.receipt)
    marker = _marker(at, os.environ)
    if os.path.isfile(marker):
        os.unlink(marker)
    inner = os.path.dirname(marker)
    middle = os.path.dirname(inner)
    settingsfile.drop_folders((os.path.dirname(middle), middle, inner))
    return Outcome(at, "removed")


def _enabled(at: Place, environ: Mapping[str, str]) -> list[str]:
    """Have nanobot itself enable the plugin as it is now; what the person has to do where that cannot be."""
    python = interpreter("nanobot", environ)
    if not python:
        return ["no program nanobot is on PATH: enable the plugin gitledger in nanobot's own list of plugins"]
    marker = _marker(at, environ)
    try:
        words = [python, "-c", _ENABLE, _workspace(at), "on"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        said = (ran.stderr.strip() or "nothing").splitlines()[-1]
    except (OSError, subprocess.SubprocessError) as e:
        said = type(e).__name__
    return [] if os.path.isfile(marker) else [f"nanobot did not enable the plugin, and said: {said}"]


# ── where it is ──────────────────────────────────────────────────────────────────────────────
def _manifest() -> str:
    about = "How to work with the project's ledger in git: tasks, evidence, checkpoints, handovers."
    value: dict[str, Json] = {
        "$schema": SCHEMA,
        "name": NAME,
        "description": about,
        "extensions": {"dev.nanobot": {"displayName": NAME, "category": "Development"}},
        "written_by": _WRITTEN,
    }
    return json.dumps(value, indent=2) + "\n"


def _ours(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("written_by") == _WRITTEN


def _sheet(at: Place) -> Sheet:
    """The skill: the guidance, which stands there as it does in any other client's file of instructions."""
    path = os.path.join(os.path.dirname(at.path), SKILL)
    return Sheet(at.client, at.scope, path, at.receipt.removesuffix(".json") + "-skill.json")


def _workspace(at: Place) -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(at.path)))


def _marker(at: Place, environ: Mapping[str, str]) -> str:
    """The file by which nanobot 0.3.5 knows that this plugin is enabled in this workspace."""
    place = os.path.realpath(_workspace(at))
    ident = hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return os.path.join(environ.get("HOME", ""), ".nanobot", "plugin-data", ident, NAME, "enabled")


def _elsewhere(at: Place, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Where nanobot's own settings name another workspace than the one that is meant by --user."""
    if at.scope != "user":
        return None
    try:
        text = settingsfile.read(os.path.join(environ.get("HOME", ""), ".nanobot", "config.json"))
        named = json.loads(text or "{}")["agents"]["defaults"]["workspace"]
        other = os.path.realpath(os.path.expanduser(str(named)))
    except (BadData, ValueError, LookupError, TypeError, RecursionError):
        return None
    if other == os.path.realpath(_workspace(at)):
        return None
    return f"nanobot's settings name another workspace, {named}", f"gitledger -C {named} hooks install --client nanobot"


def _has_package(python: str) -> bool:
    folder = os.path.join(os.path.dirname(os.path.dirname(python)), "lib", "python3*", "site-packages")
    return bool(glob(os.path.join(folder, "gitledger_continuity-*.dist-info")))


def _pip(python: str) -> str:
    return f"{python} -m pip install {PACKAGE}"
