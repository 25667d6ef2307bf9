"""The index rows of all shards at a tip and as events change them, read as far as they are asked for. Pure.

The rows of one number stand together: which of them shows the bare name depends on nothing else. A shard of few rows
holds them in one file; where writers that count apart share its numbers many times over, each number has a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from gitledger import codec, layout, listing
from gitledger.model import Json, Key

Row = dict[str, Json]
Rows = dict[Key, Row]
Counts = dict[str, int]
Read = Callable[[str], bytes | None]


class Shards:
    """A value under construction, owned by one call. A part is the rows of one number, named by its last two digits."""

    def __init__(self, read: Read) -> None:
        self._read = read
        # Rows are replaced, never changed, so that a fork needs to copy only what holds them.
        self._tip: dict[str, Rows] = {}  # by part, those of a whole shard all at once
        self._now: dict[str, Rows] = {}  # parts that differ from the tip
        self._whole: dict[str, list[str]] = {}  # the parts that a whole shard has at the tip
        self._divided: dict[str, dict[str, Counts]] = {}  # those of a divided one, counted
        self._changed: dict[str, dict[str, None]] = {}
        self._names: dict[str, dict[Key, str]] = {}
        self._tip_names: dict[str, dict[Key, str]] = {}

    def fork(self) -> Shards:
        """The same as a value of its own."""
        other = Shards(self._read)
        other._tip, other._now = dict(self._tip), dict(self._now)
        other._whole, other._divided = dict(self._whole), dict(self._divided)
        other._changed = {folder: dict(parts) for folder, parts in self._changed.items()}
        other._names, other._tip_names = dict(self._names), dict(self._tip_names)
        return other

    def put(self, key: Key, row: Row) -> None:
        """Set the row of a numbered record."""
        folder, part = layout.part(key)
        place = layout.part_stem(folder, part)
        self._now[place] = {**self.rows(folder, part), key: row}
        self._changed.setdefault(folder, {})[part] = None
        self._names.pop(place, None)

    def rows(self, folder: str, part: str) -> Rows:
        """The rows of one number as they stand now; do not change them."""
        found = self._now.get(layout.part_stem(folder, part))
        return self.tip_rows(folder, part) if found is None else found

    def tip_rows(self, folder: str, part: str) -> Rows:
        """The rows of one number as the tip has them; do not change them."""
        place = layout.part_stem(folder, part)
        if place not in self._tip:
            self._tip[place] = self._load(folder, part, place)
        return self._tip[place]

    def names(self, folder: str, part: str) -> dict[Key, str]:
        """The names that the records of one number show, as they stand now; do not change them."""
        place = layout.part_stem(folder, part)
        if place not in self._names:
            self._names[place] = layout.names(self.rows(folder, part))
        return self._names[place]

    def tip_names(self, folder: str, part: str) -> dict[Key, str]:
        """The names that the records of one number show at the tip; do not change them."""
        place = layout.part_stem(folder, part)
        if place not in self._tip_names:
            self._tip_names[place] = layout.names(self.tip_rows(folder, part))
        return self._tip_names[place]

    def parts(self, folder: str) -> dict[str, Counts]:
        """The parts of a shard that have rows now, in order, and how many of each state they have."""
        changed, before = self._changed.get(folder, {}), {}
        if self.is_divided(folder):
            before = self._divided[folder]
        else:
            changed = {**changed, **dict.fromkeys(self._whole[folder])}
        found = {**before, **{part: count_states(self.rows(folder, part).values()) for part in changed}}
        return dict(sorted(found.items()))

    def changed(self, folder: str) -> list[str]:
        """The parts of a shard whose rows may differ from the tip's."""
        return sorted(self._changed.get(folder, {}))

    def changed_folders(self, kind: layout.Kind) -> list[str]:
        """The shards of a kind whose rows may differ from the tip's."""
        return [folder for folder in self._changed if folder.startswith(f"{kind.folder}/")]

    def is_divided(self, folder: str) -> bool:
        """True where the tip has a file for each number of a shard."""
        if folder in self._whole:
            return False
        if folder not in self._divided:
            path = f"{folder}/index.json"
            data = self._read(path)
            value = codec.parse(data, path) if data is not None else {"rows": {}}
            parts = listing.divided(value, folder)
            if parts is None:
                self._take(folder, listing.shard(value, folder))
                return False
            self._divided[folder] = parts
        return True

    def _take(self, folder: str, rows: Rows) -> None:
        found: dict[str, Rows] = {}
        for key, row in rows.items():
            found.setdefault(layout.part(key)[1], {})[key] = row
        self._whole[folder] = list(found)
        self._tip.update((layout.part_stem(folder, part), here) for part, here in found.items())

    def _load(self, folder: str, part: str, place: str) -> Rows:
        if not self.is_divided(folder):
            return self._tip.get(place, {})
        data = self._read(f"{place}.json") if part in self._divided[folder] else None
        return listing.part(codec.parse(data, f"{place}.json"), folder, part) if data is not None else {}


def count_states(rows: Iterable[Row]) -> Counts:
    """How many rows are open and closed, how many have each status, and how many are done without proof."""
    counts = {"open": 0, "closed": 0}
    for row in rows:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
        if row["status"]:
            counts[f"status:{row['status']}"] = counts.get(f"status:{row['status']}", 0) + 1
        if row.get("unproven"):
            counts["unproven"] = counts.get("unproven", 0) + 1
    return counts


def total(parts: Iterable[Counts]) -> Counts:
    """The counts of several parts together."""

    def add(one: Counts, other: Counts) -> Counts:
        return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}

    return reduce(add, parts, {"open": 0, "closed": 0})
