"""Bounds of values from outside, written beside the type that they bound: `Annotated[str, Text(1, 200)]`.

pydantic asks each for its core schema, so a bound is checked and stands in the JSON Schema as well. Nothing of pydantic
is imported here: a type may say its bounds without costing a session's start a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Callable

from gitledger.typed import Any

Core = Callable[[Any], dict[str, Any]]


class Text:
    """A text of `least` to `most` characters, or a list of as many items; with a `least`, a text is not blank."""

    __slots__ = ("least", "most", "pattern")

    def __init__(self, least: int, most: int, pattern: str = "") -> None:
        self.least = least
        self.most = most
        self.pattern = pattern

    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> dict[str, Any]:
        bounded = {**handler(source), "max_length": self.most}
        if self.least:
            bounded["min_length"] = self.least
        if pattern := self.pattern or (r"\S" if self.least and bounded["type"] == "str" else ""):
            bounded["pattern"] = pattern
        return bounded


class Number:
    """A whole number from `least` to `most`."""

    __slots__ = ("least", "most")

    def __init__(self, least: int, most: int) -> None:
        self.least = least
        self.most = most

    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> dict[str, Any]:
        return {**handler(source), "ge": self.least, "le": self.most}


class Tagged:
    """One of several classes, told apart by the field `tag`."""

    __slots__ = ("tag",)

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __get_pydantic_core_schema__(self, source: Any, handler: Core) -> dict[str, Any]:
        from typing import Annotated

        from pydantic import Field

        return handler(Annotated[source, Field(discriminator=self.tag)])
