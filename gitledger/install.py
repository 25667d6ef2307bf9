"""Hooks put into a client's settings, brought up to date, looked at, and taken out again without a trace."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Literal, Protocol, TypeAlias, cast

from gitledger import gitdir, settingsfile, shims, signing, splice, wiring
from gitledger.errors import BadData
from gitledger.gitdir import GitDir
from gitledger.model import Json
from gitledger.settingsfile import BOM, Receipt
from gitledger.values import dataclass, replace
from gitledger.wiring import Client, Scope

State: TypeAlias = Literal["absent", "installed", "outdated"]
Done: TypeAlias = Literal["installed", "current", "updated", "removed", "absent"]

_PLUGIN = "// Written by gitledger "
_DIGEST = re.compile(r"// digest: ([0-9a-f]{16})\n")


@dataclass(frozen=True, slots=True)
class Place:
    """One client's settings in one scope, and where it is remembered what was put there."""

    client: Client
    scope: Scope
    path: str
    receipt: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done at a place; `missing` and `old` are the client's events that were not there, or not as now.

    `notes` are lines that a person is told besides.
    """

    place: Place
    done: Done
    missing: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wired:
    """One of the client's events as its settings have it."""

    place: Place
    theirs: str
    ours: str
    state: State
    command: str = ""


class Setup(Protocol):
    """What the module of a client has whose hooks are more than one settings file: `Client.setup` names it.

    Each of its functions holds what the one of the same name here does. A receipt at `Place.receipt` is its own, in a
    form of its own.
    """

    def wired(self, at: Place) -> list[Wired]: ...

    def install(self, at: Place, *, instead: bool = False) -> Outcome:
        """As `install`; `instead` of another program's that holds a place which only one can have."""

    def uninstall(self, at: Place) -> Outcome: ...

    def to_paste(self, client: Client) -> str: ...

    def faults(self, at: Place, environ: Mapping[str, str]) -> list[tuple[str, str]]: ...

    def attempts(self, at: Place, folder: str, environ: Mapping[str, str]) -> list[tuple[str, bool, str]]:
        """What can be tried besides the commands of `wired`, as (what, whether it went well, what came of it)."""


def setup(client: Client) -> Setup | None:
    """The module that puts a client in, None where that is one settings file, and done here."""
    return cast("Setup", import_module(client.setup)) if client.setup else None


# ── which places there are ───────────────────────────────────────────────────────────────────
def place(client: Client, scope: Scope, found: GitDir | None, environ: Mapping[str, str]) -> Place | None:
    """Where a client's settings are in a scope; None where there is no such place: no work tree, no home, no scope."""
    if scope not in client.scopes or (scope == "project" and (found is None or not found.top)):
        return None
    path = client.path(scope, found.top if found else "", environ)
    if not path:
        return None
    if scope == "project" and found:
        key, folder = f"{found.worktree}:{client.project}", gitdir.state(found.common)
    else:
        key, folder = os.path.abspath(path), signing.key_folder(environ)
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return Place(client, scope, path, os.path.join(folder, "wiring", f"{client.name}-{name}.json"))


def places(found: GitDir | None, environ: Mapping[str, str]) -> Iterator[Place]:
    """Every place of every client."""
    for client in wiring.CLIENTS:
        for scope in ("project", "user"):
            at = place(client, scope, found, environ)
            if at is not None:
                yield at


def is_used(client: Client, found: GitDir | None, environ: Mapping[str, str]) -> bool:
    """True where something tells that a client is used here: its program, or a folder of its settings."""
    if any(shutil.which(program, path=environ.get("PATH")) for program in client.programs):
        return True
    project = found and client.project and os.path.join(found.top, client.project.split("/")[0])
    user = client.path("user", "", environ)
    base = os.path.dirname(user) if not client.own else os.path.dirname(os.path.dirname(user))
    shared = client.project.startswith(".github/")  # every second repository has that folder
    return bool((project and not shared and os.path.isdir(project)) or (user and os.path.isdir(base)))


def interpreter(name: str, environ: Mapping[str, str]) -> str:
    """The Python of a client's program, as that one's first line names it; "" where that cannot be told."""
    program = shutil.which(name, path=environ.get("PATH"))
    if not program:
        return ""
    try:
        with open(program, "rb") as f:
            first = f.readline(4096).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    return words[0] if words and "python" in os.path.basename(words[0]) else ""


# ── looking ──────────────────────────────────────────────────────────────────────────────────
def wired(at: Place) -> list[Wired]:
    """Each event that is wired, or should be; raise BadData for settings that cannot be read."""
    its = setup(at.client)
    return its.wired(at) if its else _wired(at, _read(at))


def faults(at: Place, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is wrong at a place besides the state of its events: each what it is, and how it is mended."""
    its = setup(at.client)
    return its.faults(at, environ) if its else []


def _wired(at: Place, text: str | None) -> list[Wired]:
    client = at.client
    state: State = "absent"
    if client.shape == "plugin":
        if text is not None and text.startswith(_PLUGIN):
            state = "installed" if text == _sealed(client.plugin()) else "outdated"
        scripts = _scripts(text or "") if state != "absent" else {}
        return [Wired(at, t, o, state, _run(scripts.get(o, ""))) for t, o in client.events]
    found = list(_ours(_parse(at, text)))
    rows = []
    for theirs, ours in client.events:
        mine = [command for event, command in found if event == theirs]
        good = mine == [client.shim(ours)]
        rows.append(
            Wired(at, theirs, ours, "installed" if good else "outdated" if mine else "absent", "".join(mine[:1]))
        )
    known = {theirs for theirs, _ in client.events}
    for event, command in found:
        if event not in known:
            mark = shims.mark(command)
            rows.append(Wired(at, event, mark.event if mark else "", "outdated", command))
    return rows


def _ours(root: Json) -> Iterator[tuple[str, str]]:
    """(the client's event, the command) of each hook of ours in settings."""
    hooks = root.get("hooks") if isinstance(root, dict) else None
    if isinstance(hooks, list):
        for hook in hooks:
            if isinstance(hook, dict) and wiring.ours(hook):
                yield str(hook.get("trigger", "")), wiring.command(hook)
    elif isinstance(hooks, dict):
        for event, value in hooks.items():
            for command in _commands(value):
                yield event, command


def _commands(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if wiring.ours(value):
            yield wiring.command(value)
        else:
            yield from _commands(value.get("hooks"))
    elif isinstance(value, list):
        for one in value:
            yield from _commands(one)


# ── putting in, taking out ───────────────────────────────────────────────────────────────────
def install(at: Place, *, instead: bool = False) -> Outcome:
    """Wire every event of a client at a place; nothing is written where all is there as it should be.

    Raises BadData for settings that cannot be read or are of another shape, Missing where another program's holds a
    place which only one can have, unless it is to be ours `instead`, and CannotWrite; all is then as it was.
    """
    if its := setup(at.client):
        return its.install(at, instead=instead)
    before = _read(at)
    rows = _wired(at, before)
    missing = tuple(row.theirs for row in rows if row.state == "absent")
    old = tuple(row.theirs for row in rows if row.state == "outdated")
    receipt = settingsfile.load(at.receipt)
    if before is not None and not missing and not old:
        return Outcome(at, "current")
    if at.client.shape == "plugin":
        if before is not None:
            _check_plugin(at, before)
        text = _sealed(at.client.plugin())
        added = splice.Added(text, ((0, len(text)),))
        had = False
    else:
        base, had = _without(at, before, receipt)
        added = _into(at, base or "")
    kept = receipt.folders if receipt and not had else ()
    new = Receipt(at.path, settingsfile.digest(added.text), added.spans, added.made, had, kept)
    settingsfile.save(at.receipt, new)  # first: what was put in without one could not come out byte for byte
    try:
        folders = settingsfile.write(at.path, added.text, before)
    except BaseException:
        settingsfile.save(at.receipt, receipt) if receipt else settingsfile.forget(at.receipt)
        raise
    if folders:
        settingsfile.save(at.receipt, replace(new, folders=(*kept, *folders)))
    return Outcome(at, "updated" if len(missing) < len(rows) else "installed", missing, old)


def uninstall(at: Place) -> Outcome:
    """Take everything of ours out of a place: byte for byte what was there before, where nobody wrote to it since.

    Raises as `install` does.
    """
    if its := setup(at.client):
        return its.uninstall(at)
    before = _read(at)
    receipt = settingsfile.load(at.receipt)
    if before is None:
        settingsfile.forget(at.receipt)
        return Outcome(at, "absent")
    if at.client.shape == "plugin":
        if not before.startswith(_PLUGIN):
            return Outcome(at, "absent")
        _check_plugin(at, before)
        base: str | None = None
    else:
        if not any(True for _ in _ours(_parse(at, before))) and not (receipt and receipt.fits(before)):
            settingsfile.forget(at.receipt)
            return Outcome(at, "absent")
        base, _ = _without(at, before, receipt)
    settingsfile.write(at.path, base, before)
    if base is None and receipt:
        settingsfile.drop_folders(receipt.folders)
    settingsfile.forget(at.receipt)
    return Outcome(at, "removed")


def to_paste(client: Client) -> str:
    """What a person puts into settings that were left alone."""
    if its := setup(client):
        return its.to_paste(client)
    if client.shape == "plugin":
        return _sealed(client.plugin())
    return splice.fresh(client.settings())


def _without(at: Place, text: str | None, receipt: Receipt | None) -> tuple[str | None, bool]:
    """The settings without anything of ours, None where there is no file then; and whether there was one before us."""
    if text is None:
        return None, False
    if receipt and receipt.fits(text):
        rest = splice.cut(text, receipt.spans)
        return (rest, True) if receipt.existed else (None, False)
    body, bom = _bare(text)
    if not any(True for _ in _ours(_parse(at, text))):
        return text, True
    if receipt is None and body == splice.fresh(at.client.settings()):
        return None, False
    made = receipt.made if receipt else None
    rest = splice.remove(body, "hooks", wiring.ours, comments=at.client.comments, made=made)
    left = _parse(at, rest)
    alone = not receipt.existed if receipt else at.client.own
    if alone and isinstance(left, dict) and left.items() <= dict(at.client.top).items() and "/" not in rest:
        return None, False
    return bom + rest, True


def _into(at: Place, base: str) -> splice.Added:
    body, bom = _bare(base)
    try:
        added = splice.insert(body, at.client.settings(), comments=at.client.comments)
    except BadData as e:
        raise BadData(f"{at.path} was left alone: {e}") from e
    spans = tuple((start + len(bom), length) for start, length in added.spans)
    return splice.Added(bom + added.text, spans, added.made)


def _bare(text: str) -> tuple[str, str]:
    return (text[1:], BOM) if text.startswith(BOM) else (text, "")


def _read(at: Place) -> str | None:
    return settingsfile.read(at.path)


def _parse(at: Place, text: str | None) -> Json:
    body, _ = _bare(text or "")
    if not body.strip():
        return {}
    try:
        return splice.parse(body, comments=at.client.comments).root.plain()
    except BadData as e:
        raise BadData(f"{at.path} was left alone, for it cannot be read: {e}") from e


# ── plugins ──────────────────────────────────────────────────────────────────────────────────
def _sealed(text: str) -> str:
    """A plugin with a digest of itself below its first line, by which one that was edited is told."""
    first, end, rest = text.partition("\n")
    return f"{first}{end}// digest: {settingsfile.digest(rest)[:16]}\n{rest}"


def _check_plugin(at: Place, text: str) -> None:
    """Raise BadData for a file that is none of ours, or is ours and was edited."""
    if not text.startswith(_PLUGIN):
        raise BadData(f"{at.path} is not gitledger's and was left alone; move it away and install again")
    found = _DIGEST.match(text, text.find("\n") + 1)
    if found is None or settingsfile.digest(text[found.end() :])[:16] != found[1]:
        raise BadData(f"{at.path} was edited since it was installed, and was left alone; move it away")


def _scripts(text: str) -> dict[str, str]:
    """The commands in a plugin, by our events; {} where they cannot be found."""
    start = text.find("= {\n")
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start + 2)
        return {str(k): str(v) for k, v in found.items()} if start >= 0 else {}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _run(script: str) -> str:
    return f"/bin/sh -c '{script}'" if script else ""


def also(done: Iterable[Outcome], found: GitDir | None, environ: Mapping[str, str]) -> Iterator[str]:
    """What is to be said of clients that are wired now: in both scopes, or where they do not always look."""
    for outcome in done:
        at = outcome.place
        if at.scope == "project" and not at.client.below and outcome.done != "current":
            yield f"{at.client.title} runs them where it is started in this folder; for one below it say --user"
        other = place(at.client, "user" if at.scope == "project" else "project", found, environ)
        try:
            twice = other is not None and any(row.state != "absent" for row in wired(other))
        except BadData:
            continue
        if twice and other:
            yield f"{at.client.title} is wired in {other.path} too; one of the two is enough"
