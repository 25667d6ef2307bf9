"""nanobot, by what we give its SDK, its program and its gateway, in its process.

`attach(bot)` is all that a program on nanobot's SDK calls; `nanobot agent` and the gateway load `tool` by the
entry points `nanobot.tools`. Only the standard library and nanobot itself are imported, but by `adapter` and `setup`,
which are our own program's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from gitledger.clients.nanobot.attached import Attached as Attached
    from gitledger.clients.nanobot.gate import Blocked as Blocked
    from gitledger.clients.nanobot.joined import attach as attach

__all__ = ["Attached", "Blocked", "attach"]


def __getattr__(name: str) -> object:
    # Our own program imports this package for its adapter, where there is no nanobot.
    if name == "attach":
        from gitledger.clients.nanobot.joined import attach

        return attach
    if name == "Attached":
        from gitledger.clients.nanobot.attached import Attached

        return Attached
    if name == "Blocked":
        from gitledger.clients.nanobot.gate import Blocked

        return Blocked
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
