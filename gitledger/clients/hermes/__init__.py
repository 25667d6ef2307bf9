"""Hermes, by a memory provider and a context engine of ours in its process.

Only the standard library and Hermes itself are imported, but by `adapter`, `setup` and `settings`, which are our own
program's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # our own program loads this for every hook of Hermes
if TYPE_CHECKING:
    from typing import Any


def register(ctx: Any) -> None:
    """Give Hermes the provider: what the entry point names, where gitledger is installed beside Hermes."""
    from gitledger.clients.hermes.provider import register as given

    given(ctx)
