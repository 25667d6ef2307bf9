"""What gives way where not everything fits, for a briefing and a capsule alike: in order, and never unnamed. Pure.

Whoever has a budget makes parts, says of a plan whether it fits, and is given the plan that shows the most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gitledger.render.text import fenced, visible
from gitledger.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Part:
    """One section: `head` and the `lead` text stand as long as it does, `items` give way from the last one on.

    `name` and `rest` say, when something gave way, what it was and which command prints it; a part without a name goes
    unnamed. `rank` is the order of giving way, the lowest first; a part without one never does.
    """

    head: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    total: int = 0
    name: str = ""
    rest: str = ""
    rank: int = 0
    lead: str = ""
    label: str = ""

    def plain(self) -> Part:
        """The same with each head, item and name visible and on one line: whoever wrote a name, it makes no line."""
        head, items = tuple(map(_one, self.head)), tuple(map(_one, self.items))
        return replace(self, head=head, items=items, name=_one(self.name), rest=_one(self.rest))

    def count(self) -> int:
        """How many items there are, those that were never handed in too."""
        return max(self.total, len(self.items))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of each part is shown: how many items, which parts are only named, how much of the lead text."""

    shown: tuple[int, ...]
    named: frozenset[int] = frozenset()
    airy: bool = True
    lead: int | None = None


def give_way(parts: Sequence[Part], plan: Plan, fits: Callable[[Plan], bool], most: int) -> Plan:
    """The plan after what had to give way: items, then whole parts, and last the lead text, of `most` characters."""
    giving = sorted((n for n, part in enumerate(parts) if part.rank), key=lambda n: parts[n].rank)
    for n in giving:
        if fits(plan):
            return plan
        plan = _most(_fewer(plan, n), plan.shown[n], fits)
    for n in giving:
        if fits(plan):
            return plan
        plan = replace(plan, named=plan.named | {n})
    if not fits(plan):
        plan = _most(_shorter(plan), min(most, max((len(part.lead) for part in parts), default=0)), fits)
    return plan


def led(part: Part, most: int | None) -> list[str]:
    """The lead text of a part in its fence, its first `most` characters with a line that says how many those are."""
    if not part.lead:
        return []
    if most is None or most >= len(part.lead):
        return [fenced(part.lead, part.label)]
    return [
        fenced(part.lead[:most], part.label),
        f"[cut: {most:,} of {len(part.lead):,} characters are shown; the whole: {part.rest}]",
    ]


def _fewer(plan: Plan, n: int) -> Callable[[int], Plan]:
    return lambda k: replace(plan, shown=(*plan.shown[:n], k, *plan.shown[n + 1 :]))


def _shorter(plan: Plan) -> Callable[[int], Plan]:
    return lambda k: replace(plan, lead=k)


def _most(plan_of: Callable[[int], Plan], most: int, fits: Callable[[Plan], bool]) -> Plan:
    """The plan that shows the most and fits; the one that shows nothing where none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(plan_of(middle)) else (low, middle - 1)
    return plan_of(low)


def _one(text: str) -> str:
    return visible(text).replace("\n", " ")
