"""nanobot, by what we give its SDK, its program and its gateway, in its process.

`attach(bot)` is all that a program on nanobot's SDK calls; `nanobot agent` and the gateway load `tool.Ledger` by the
entry point `nanobot.tools`. Only the standard library and nanobot itself are imported, but by `adapter` and `setup`,
which are our own program's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from gitledger.clients.nanobot.attached import Attached as Attached
    from gitledger.clients.nanobot.attached import attach as attach
    from gitledger.clients.nanobot.gate import Blocked as Blocked

__all__ = ["Attached", "Blocked", "attach"]


def __getattr__(name: str) -> object:
    # Our own program imports this package for its adapter, where there is no nanobot.
    if name in ("Attached", "attach"):
        from gitledger.clients.nanobot import attached

        return getattr(attached, name)
    if name == "Blocked":
        from gitledger.clients.nanobot import gate

        return gate.Blocked
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
