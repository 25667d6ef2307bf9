"""The tree's own lists, checked as they are read: indexes, open sessions, the handovers of a branch. Pure.

They are made from events and never read back into any, so only a tree that somebody else made can hold another shape.
Whoever reads one may then rely on its keys and on the kinds of its values.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import itemgetter

from gitledger import layout
from gitledger.errors import BadData
from gitledger.model import Json, Key
from gitledger.patterns import pattern

_PART = pattern(r"[0-9]{2}\Z")
_SHARD = pattern(r"[0-9]{2,10}xx\Z")
_SLUG = pattern(r"[a-z0-9-]{0,60}\Z")
_TEXTS = ("state", "status", "title", "at")
_ALL_TEXT, _MAYBE = [str] * len(_TEXTS), (str, type(None))
_OF_TEXTS, _OF_TASK, _OF_BORN = itemgetter(*_TEXTS), itemgetter("task"), itemgetter("born")
_OF_SLUG, _OF_AREA, _BORN = itemgetter("slug"), itemgetter("area"), frozenset(((), (int, str, int)))


def shard(value: Json, folder: str) -> dict[Key, dict[str, Json]]:
    """The rows of a shard's `index.json` by key; raise BadData where it is another thing."""
    rows = value.get("rows") if isinstance(value, dict) else None
    if isinstance(rows, dict) and (_are_plain(rows, folder) or all(_is_row(k, row, folder) for k, row in rows.items())):
        return rows
    raise _no_list(f"{folder}/index.json")


def divided(value: Json, folder: str) -> dict[str, dict[str, int]] | None:
    """Of a shard's `index.json` the counts of each number, where each has a file of its own; None where it has not."""
    if not isinstance(value, dict) or "parts" not in value:
        return None
    parts = value["parts"]
    if not isinstance(parts, dict) or not all(_PART.match(name) and _is_part(here) for name, here in parts.items()):
        raise _no_list(f"{folder}/index.json")
    return parts


def part(value: Json, folder: str, name: str) -> dict[Key, dict[str, Json]]:
    """The rows of one number of a divided shard; raise BadData where it is another thing."""
    rows = value.get("rows") if isinstance(value, dict) else None
    if isinstance(rows, dict) and all(
        _is_row(key, row, folder) and layout.part(key)[1] == name for key, row in rows.items()
    ):
        return rows
    raise _no_list(f"{layout.part_stem(folder, name)}.json")


def checked(path: str, value: Json) -> Json:
    """`value` itself, where it is the list that lies at `path`; raise BadData otherwise."""
    is_one = _form(path)
    if is_one and not is_one(value):
        raise _no_list(path)
    return value


def _are_plain(rows: dict[Key, Json], folder: str) -> bool:
    """True only where `_is_row` is of each: nearly every row is like the next, and a hundred are asked at once."""
    values = rows.values()
    try:
        if any(layout.part(key)[0] != folder for key in rows):
            return False
        found = set(map(type, chain.from_iterable(map(_OF_TEXTS, values)))) <= {str}
        found = found and set(map(type, map(_OF_TASK, values))) <= {str, type(None)}
        found = found and set(map(type, map(_OF_BORN, values))) <= {list}
        found = found and {tuple(map(type, born)) for born in map(_OF_BORN, values)} <= _BORN
        if found and any(key[0] == layout.TASK.letter for key in rows):
            found = all(map(_SLUG.match, map(_OF_SLUG, values))) and set(map(type, map(_OF_AREA, values))) == {str}
            found = found and not any("depends" in row or "parent" in row for row in values)
    except (KeyError, TypeError, BadData):
        return False
    return found


def _is_row(key: Key, row: Json, folder: str) -> bool:
    return (
        layout.numbered(key) is not None
        and layout.part(key)[0] == folder
        and isinstance(row, dict)
        and [type(row.get(name)) for name in _TEXTS] == _ALL_TEXT
        and isinstance(row.get("task"), _MAYBE)
        and (row.get("born") == [] or _is_stamp(row.get("born")))
        and (key[0] != layout.TASK.letter or _is_task(row))
    )


def _is_task(row: dict[str, Json]) -> bool:
    slug = row.get("slug")
    depends, parent = row.get("depends", []), row.get("parent")
    return (
        isinstance(row.get("area"), str)
        and isinstance(slug, str)
        and bool(_SLUG.match(slug))
        and isinstance(depends, list)
        and (parent is None or layout.is_task(parent))
        and (not depends or all(layout.is_task(key) for key in depends))
    )


def _is_stamp(value: Json) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [int, str, int]


def _is_counts(value: Json) -> bool:
    shards = value.get("shards") if isinstance(value, dict) else None
    return isinstance(shards, dict) and all(_SHARD.match(name) and _is_count(counts) for name, counts in shards.items())


def _is_count(value: Json) -> bool:
    return isinstance(value, dict) and all(type(n) is int for n in value.values())


def _is_part(value: Json) -> bool:
    return _is_count(value) and {"open", "closed"} <= value.keys()


def _is_sessions(value: Json) -> bool:
    return isinstance(value, dict) and all(
        layout.is_session(key) and isinstance(row, dict) for key, row in value.items()
    )


def _is_handovers(value: Json) -> bool:
    rows = value.get("rows") if isinstance(value, dict) else None
    return isinstance(rows, list) and all(isinstance(row, dict) and _is_handover(row) for row in rows)


def _is_handover(row: dict[str, Json]) -> bool:
    found = layout.numbered(row["key"]) if isinstance(row.get("key"), str) else None
    return found is not None and found[0] is layout.HANDOVER and "at" in row and _is_stamp(row.get("stamp"))


def _is_branches(value: Json) -> bool:
    return _is_handovers(value) and all(isinstance(row.get("branch"), str) for row in value["rows"])


def _form(path: str) -> Callable[[Json], bool] | None:
    if path == layout.OPEN_SESSIONS:
        return _is_sessions
    if path == layout.RECENT_BRANCHES:
        return _is_branches
    if path.startswith("handovers/branches/"):
        return _is_handovers
    return _is_counts if path.count("/") == 1 and path.endswith("/index.json") else None


def _no_list(path: str) -> BadData:
    return BadData(f"{path} is not the list that belongs there; run: gitledger fsck")
