"""Which task waits for which, and which is a part of which: by index rows alone, and never an endless walk. Pure.

No command makes a ring. Two machines can: each sets one half of it, and the merge holds both. Then it is a finding.
"""

from __future__ import annotations

from collections import deque

from gitledger import layout
from gitledger.errors import NotAllowed
from gitledger.model import Finding, Key
from gitledger.typed import Literal, TypeAlias
from gitledger.view import DEPENDS, View

Way: TypeAlias = 'Literal["depends", "parent"]'
_WAYS: tuple[Way, ...] = ("depends", "parent")
WALKED = 200
"""How many tasks are looked at for a ring where a session waits for the answer."""


def waits_for(view: View, key: Key) -> list[Key]:
    """The open tasks that a task depends on; one that is dropped holds nothing up."""
    return [other for other in _next(view, key, "depends") if (row := view.row(other)) and row["state"] == "open"]


def parts(view: View, key: Key, most: int = WALKED) -> list[Key]:
    """The open tasks that are parts of a task, oldest first, among the `most` newest open ones."""
    rows, _ = view.open_rows(layout.TASK, most)
    return [other for other, row in reversed(rows) if row.get("parent") == key]


def way(view: View, start: Key, goal: Key, along: Way, most: int | None = None) -> tuple[Key, ...]:
    """The shortest way of at least one step from `start` to `goal`, both named; () where there is none.

    With `most`, only so many tasks are looked at.
    """
    queue, seen = deque[tuple[Key, ...]]([(start,)]), {start}
    while queue and (most is None or len(seen) <= most):
        so_far = queue.popleft()
        for key in _next(view, so_far[-1], along):
            if key == goal:
                return (*so_far, key)
            if key not in seen:
                seen.add(key)
                queue.append((*so_far, key))
    return ()


def refuse_ring(view: View, key: Key, other: Key, along: Way) -> None:
    """Raise NotAllowed where `key` would come to depend on itself, or be a part of itself, by way of `other`."""
    found = (key,) if key == other else way(view, other, key, along)
    if not found:
        return
    name, second = view.name(key), view.name(other)
    word, held = ("depend on", "waits for it") if along == "depends" else ("be a part of", "is a part of it")
    if len(found) == 1:
        raise NotAllowed(f"{name} cannot {word} itself; name another task")
    leave = f"--undepend {view.name(found[1])}" if along == "depends" else "--parent -"
    raise NotAllowed(
        f"{name} cannot {word} {second}, which {held} already: {_drawn(view, found)}; take that out first: "
        f"gitledger task edit {second} {leave}"
    )


def refuse_many(view: View, key: Key, count: int) -> None:
    """Raise NotAllowed for more dependencies than a task may have."""
    if count > DEPENDS:
        raise NotAllowed(
            f"{view.name(key)} would depend on {count} tasks, at most {DEPENDS} are kept; make one task of some of them"
        )


def ring(view: View, key: Key, most: int | None = WALKED) -> Finding | None:
    """The ring that a task is in, as a finding with the way out."""
    for along in _WAYS:
        if found := way(view, key, key, along, most):
            return _ring(view, found, along)
    return None


def _ring(view: View, keys: tuple[Key, ...], along: Way) -> Finding:
    name = view.name(keys[0])
    what = "wait for each other" if along == "depends" else "are parts of each other"
    leave = f"--undepend {view.name(keys[1])}" if along == "depends" else "--parent -"
    return Finding("ring of tasks", name, f"these {what}: {_drawn(view, keys)}", f"gitledger task edit {name} {leave}")


def rings(view: View, keys: list[Key], most: int | None = None) -> list[Finding]:
    """Every ring that some tasks form, each once; what leads nowhere is put aside before any walk, of `most` tasks."""
    found: list[Finding] = []
    for along in _WAYS:
        known: set[Key] = set()
        for key in sorted(_without_ends(view, keys, along)):
            if key not in known and (loop := way(view, key, key, along, most)):
                known.update(loop)
                found.append(_ring(view, loop, along))
    return found


def _without_ends(view: View, keys: list[Key], along: Way) -> list[Key]:
    left = {
        key: {other for other in _next(view, key, along) if other in known} for known in [set(keys)] for key in keys
    }
    before: dict[Key, list[Key]] = {}
    for key, others in left.items():
        for other in others:
            before.setdefault(other, []).append(key)
    ends = [key for key, others in left.items() if not others]
    while ends:
        end = ends.pop()
        del left[end]
        for key in before.get(end, []):
            left[key].discard(end)
            if not left[key]:
                ends.append(key)
    return list(left)


def _drawn(view: View, keys: tuple[Key, ...]) -> str:
    names = [view.name(key) for key in keys]
    return " → ".join(names if len(names) < 9 else [*names[:4], "…", *names[-4:]])


def _next(view: View, key: Key, along: Way) -> list[Key]:
    row = view.row(key) or {}
    if along == "parent":
        return [row["parent"]] if row.get("parent") else []
    return list(row.get("depends", []))
