"""gitledger: a git-native continuity ledger for people who work with coding agents."""

from __future__ import annotations

TYPE_CHECKING = False  # the name is what type checkers look for; `typing` itself would double the start

__version__ = "0.1.0"
__all__ = ["__version__", "open"]

if TYPE_CHECKING:
    from typing import Any

    from gitledger.discover import open


def __getattr__(name: str) -> Any:
    # Lazy, because the capture path imports this package and may import nothing else.
    if name == "open":
        from gitledger.discover import open

        return open
    raise AttributeError(f"module 'gitledger' has no attribute {name!r}")
