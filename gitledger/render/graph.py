"""Open tasks as a Mermaid graph, which git hosts draw: who waits for whom, what is a part of what. Pure, bounded.

A title is data here as everywhere: in a label, whatever Mermaid, HTML or Markdown could read as more than a letter is
written by its number, so that no title ends its label, its line or the block.
"""

from __future__ import annotations

from collections.abc import Sequence

from gitledger.model import Key
from gitledger.patterns import pattern
from gitledger.render.text import line
from gitledger.values import dataclass
from gitledger.view import View

NODES = 30
"""How many tasks are drawn at most: beyond that hosts draw a wall, and those that are left out are named."""
TITLE = 40
"""How many characters of a title a label shows."""

# What is only itself in a label, in quotes, in any version of Mermaid that a host may have; letters of any script are.
_PLAIN = pattern(r"[^\w ,.()/+-]|_")
_STYLES = {"active": "stroke-width:4px", "blocked": "stroke-dasharray:5 4", "discovered": "stroke-dasharray:1 3"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """The block, "" where no two tasks have to do with each other, and the tasks that had no room in it."""

    text: str
    left_out: tuple[Key, ...] = ()


def graph(view: View, keys: Sequence[Key]) -> Drawn:
    """Those of `keys` that wait for an open task or are a part of one, with it, and what joins them."""
    waits: list[tuple[Key, Key]] = []
    parts: list[tuple[Key, Key]] = []
    shown: dict[Key, None] = {}
    left: dict[Key, None] = {}
    for key in keys:
        row = view.row(key) or {}
        ties = [(other, waits) for other in row.get("depends", [])]
        ties += [(row["parent"], parts)] if row.get("parent") else []
        for other, ways in ties:
            if other == key or not _is_open(view, other):
                continue
            if len(shown.keys() | {key, other}) > NODES:
                left.update(dict.fromkeys(one for one in (key, other) if one not in shown))
                continue
            shown.update({key: None, other: None})
            ways.append((other, key))
    if not shown:
        return Drawn("")
    rows = ["```mermaid", "flowchart LR"]
    order = sorted(shown, key=lambda key: (len(key.partition("@")[0]), key))
    rows += [f'    {_node(key)}["{_label(view, key)}"]{_style(view, key)}' for key in order]
    rows += [f"    {_node(other)} --> {_node(key)}" for other, key in waits]
    rows += [f"    {_node(other)} -.- {_node(key)}" for other, key in parts]
    statuses = {(view.row(key) or {}).get("status") for key in shown}
    rows += [f"    classDef {status} {style}" for status, style in _STYLES.items() if status in statuses]
    return Drawn("\n".join([*rows, "```"]), tuple(left))


def label(text: str) -> str:
    """`text` as it may stand between the quotes of a label."""
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", line(text, TITLE))


def _label(view: View, key: Key) -> str:
    row = view.row(key) or {}
    # The name comes first: a label that begins with a number and a dot is read as a list.
    return f"{label(view.name(key))} {label(row.get('title', ''))}".strip()


def _node(key: Key) -> str:
    return key.replace("-", "").replace("@", "_")


def _style(view: View, key: Key) -> str:
    status = (view.row(key) or {}).get("status")
    return f":::{status}" if status in _STYLES else ""


def _is_open(view: View, key: Key) -> bool:
    row = view.row(key)
    return row is not None and row["state"] == "open"
