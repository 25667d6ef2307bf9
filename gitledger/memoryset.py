"""The change set of a memory file: what a model may propose. Plain types with their bounds; `schema` reads one.

What is checked here is the form alone; whether the file allows it is for `memorycheck` to say.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from gitledger.bounds import Number, Text
from gitledger.values import dataclass

Kind: TypeAlias = Literal["superseded", "detail", "duplicate", "ephemeral", "stale-section", "merge"]
Block: TypeAlias = Annotated[str, Text(1, 100_000)]
"""Whole lines joined by newlines, whatever line ends the file has."""

_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2009\u202f\u3000", " "))
"""Spaces that are no less printable than the one: French and Chinese are written with them."""


class _Closed:
    __slots__ = ()
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 (pydantic reads a plain dict)


@dataclass(frozen=True, slots=True)
class HeldAt(_Closed):
    """Where the fact of a duplicate is held: a file by the name it was shown under, and a line of it, from 1."""

    file: Annotated[str, Text(1, 1_000)]
    line: Annotated[int, Number(1, 10_000_000)]


@dataclass(frozen=True, slots=True)
class Change(_Closed):
    """Blocks that go, and what stands in the first one's place, if anything."""

    kind: Kind
    original: Annotated[tuple[Block, ...], Text(1, 50)]
    reason: Annotated[str, Text(1, 200)]
    replacement: Annotated[str, Text(1, 20_000)] | None = None
    held_at: HeldAt | None = None

    def __post_init__(self) -> None:
        if not self.reason.translate(_SPACES).isprintable():
            raise ValueError("has a reason that is not one line of printable text")
        if (self.kind == "duplicate") != (self.held_at is not None):
            raise ValueError(
                "has held_at, the file and line with the same fact, where it is a duplicate, and only there"
            )
        if self.kind == "merge" and self.replacement is None:
            raise ValueError("is a merge, and has no replacement")
        if self.replacement is not None and self.kind not in ("merge", "detail", "superseded"):
            raise ValueError(f"is of kind {self.kind}, which has no replacement")


@dataclass(frozen=True, slots=True)
class MemorySet(_Closed):
    """A proposal made from the file whose bytes have this SHA-256 (hex); it is applied whole or not at all."""

    source_sha256: Annotated[str, Text(64, 64, r"^[0-9a-f]{64}$")]
    changes: Annotated[tuple[Change, ...], Text(0, 200)] = ()
