"""Regular expressions that are compiled when they are first asked, by whoever asks.

A command loads fifty of them and asks ten; compiling one takes as long as loading a module.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from re import Pattern
    from typing import Any, AnyStr


def pattern(text: AnyStr) -> Pattern[AnyStr]:
    """What `re.compile(text)` gives, later; flags stand in the text, as in `(?m)^a`."""
    return _Later(text)  # type: ignore[return-value]  # it answers as one, and compiles as it does


class _Later:
    """Stands for a pattern, and has each of its methods itself once it was asked for that one."""

    def __init__(self, text: str | bytes) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        from re import compile as compiled  # it remembers the same text, and costs nothing where it was asked before

        found = getattr(compiled(self._text), name)
        setattr(self, name, found)
        return found
