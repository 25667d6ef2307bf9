"""What Hermes' config.yaml must say for gitledger, put in and taken out with every other byte left as it is."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from gitledger import yamlfile
from gitledger.errors import BadConfig, BadData, Missing
from gitledger.model import Json
from gitledger.yamlfile import Document

PROVIDER = "gitledger"
GATE = "gitledger-gate"
SET: tuple[tuple[str, str, Json], ...] = (
    ("memory", "provider", PROVIDER),
    ("context", "engine", GATE),
    ("compression", "checkpoint_required", True),
)
_ONLY_ONE = {"memory": ("provider", ("", None)), "context": ("engine", ("", None, "compressor"))}
"""Where Hermes takes one name, and which names stand for its own."""
PASTE = f"""memory:
  provider: {PROVIDER}
context:
  engine: {GATE}
compression:
  checkpoint_required: true
plugins:
  enabled:
    - {GATE}
# and then once more: gitledger hooks install --client hermes
"""


@dataclass(frozen=True, slots=True)
class Said:
    """What a config.yaml says of us: each of SET that is as it should be, whether the gate is enabled, or disabled."""

    held: tuple[bool, bool, bool] = (False, False, False)
    enabled: bool = False
    disabled: bool = False
    provider: str = ""
    engine: str = ""


def read(path: str, text: str | None) -> Document:
    """The configuration, empty for no file; raise BadData for what is no YAML of tables."""
    try:
        return yamlfile.parse(path, (text or "").encode())
    except BadConfig as e:
        raise BadData(f"{path} was left alone, for it cannot be read: {e}") from e


def said(document: Document) -> Said:
    """What it says of us."""
    first, second, third = (_value(document.values, section, key) == value for section, key, value in SET)
    return Said(
        (first, second, third),
        GATE in _listed(document.values, "enabled"),
        GATE in _listed(document.values, "disabled"),
        str(_value(document.values, "memory", "provider") or ""),
        str(_value(document.values, "context", "engine") or ""),
    )


def put(path: str, document: Document, *, instead: bool) -> tuple[str, dict[str, Json]]:
    """The text that says all of it, and what stood there before, by dotted key: nothing for a key that was not there.

    Raises Missing where another program's name stands in a place for one, unless it is to be ours `instead`, and
    BadData where the text cannot be edited here.
    """
    if said(document).disabled:
        raise Missing(f"{path} was left alone: plugins.disabled names {GATE}; take it out there, and install again")
    before: dict[str, Json] = {}
    for section, key, value in SET:
        old = _value(document.values, section, key)
        only, free = _ONLY_ONE.get(section, ("", ()))
        if only and old not in (*free, value) and not instead:
            raise Missing(
                f"{path} was left alone: {section}.{key} is {old}, and Hermes takes one; to put gitledger in its "
                "place say gitledger hooks install --client hermes --replace"
            )
        if key in _section(document.values, section):
            before[f"{section}.{key}"] = old
        if old != value:
            document = _step(path, document, yamlfile.with_value(document, section, key, value), section, key, value)
    names = _listed(document.values, "enabled")
    if "enabled" in _section(document.values, "plugins"):
        before["plugins.enabled"] = [*names]
    if GATE not in names:
        text = yamlfile.with_item(document, "plugins", "enabled", GATE)
        document = _step(path, document, text, "plugins", "enabled", [*names, GATE])
    return document.text, before


def take(path: str, document: Document, before: dict[str, Json]) -> str:
    """The text with each value of ours as it was before, or gone; a value that is not ours any more stays.

    Raises BadData where the text cannot be edited here.
    """
    for section, key, value in SET:
        if _value(document.values, section, key) != value:
            continue
        name = f"{section}.{key}"
        if name in before and before[name] != value:
            text = yamlfile.with_value(document, section, key, before[name])
            document = _step(path, document, text, section, key, before[name])
        elif name not in before:
            text = yamlfile.without_value(document, section, key)
            document = _step(path, document, text, section, key, None, gone=True)
    names, then = _listed(document.values, "enabled"), before.get("plugins.enabled")
    if GATE in names and GATE not in (then if isinstance(then, list) else ()):
        left: list[Json] = [name for name in names if name != GATE]
        made = not left and "plugins.enabled" not in before
        text = (
            yamlfile.without_value(document, "plugins", "enabled")
            if made
            else yamlfile.without_item(document, "plugins", "enabled", GATE)
        )
        document = _step(path, document, text, "plugins", "enabled", left)
    return document.text


def _step(
    path: str, document: Document, text: str, section: str, key: str, value: Json, *, gone: bool = False
) -> Document:
    """The document of an edited text, once it says exactly what was meant; BadData otherwise."""
    wanted = copy.deepcopy(document.values)
    table = dict(_section(wanted, section))
    if gone:
        table.pop(key, None)
    else:
        table[key] = value
    wanted[section] = table
    try:
        after = yamlfile.parse(path, text.encode())
    except BadConfig:
        after = Document("", {}, {}, None)
    if _bare(after.values) != _bare(wanted):
        what = "taken out" if gone else f"set to {yamlfile._shown(value)}"
        raise BadData(f"{path} was left alone: {section}.{key} cannot be {what} there by a program; do it by hand")
    return after


def _bare(values: dict[str, Json]) -> dict[str, Json]:
    """Without what says nothing: empty tables and lists."""
    found = {name: _bare(value) if isinstance(value, dict) else value for name, value in values.items()}
    return {name: value for name, value in found.items() if value not in ({}, None, [])}


def _section(values: dict[str, Json], section: str) -> dict[str, Json]:
    found = values.get(section)
    return found if isinstance(found, dict) else {}


def _value(values: dict[str, Json], section: str, key: str) -> Json:
    return _section(values, section).get(key)


def _listed(values: dict[str, Json], key: str) -> list[Json]:
    found = _value(values, "plugins", key)
    return found if isinstance(found, list) else []
