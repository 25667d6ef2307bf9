"""The tools by which nanobot's own program and its gateway come to keep a ledger: nanobot loads them by entry points.

Being loaded is what attaches: nanobot has no other place where a package may hear of its turns. To the model they are
what reads the ledger and writes to it.
"""

from __future__ import annotations

import asyncio
import json

from nanobot.agent.tools.base import Tool, ToolResult
from nanobot.agent.tools.context import current_request_context

from gitledger.clients import tools
from gitledger.clients.nanobot import joined

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from gitledger.clients.nanobot.attached import Attached

_SCHEMAS = {schema["name"]: schema for schema in tools.SCHEMAS}


class Ledger(Tool):  # type: ignore[misc]
    """One tool of the ledger, for the model of one nanobot."""

    _plugin_discoverable = False
    called: ClassVar[str] = ""

    def __init__(self, found: Attached) -> None:
        self._found = found

    @classmethod
    def enabled(cls, ctx: Any) -> bool:
        """True where there are turns to hear of."""
        return ctx.bus is not None and ctx.sessions is not None

    @classmethod
    def create(cls, ctx: Any) -> Ledger:
        """The tool of one nanobot, which from now on is heard."""
        return cls(joined.join(ctx.bus, ctx.sessions, str(ctx.workspace)))

    def runtime_context_provider(self) -> Any:
        """What the ledger has to say at each turn; asked of every tool, it is said once."""
        return self._found.context

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.called

    @property
    def description(self) -> str:
        """What the model is told of it."""
        return str(_SCHEMAS[self.called]["description"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return dict(_SCHEMAS[self.called]["parameters"])

    async def execute(self, **given: Any) -> Any:
        """What the tool says; a ToolResult that is an error where it failed."""
        request = current_request_context()
        folder = str(request.workspace) if request is not None and request.workspace else ""
        said = await asyncio.to_thread(lambda: tools.call(self._found.at(folder), self.called, given))
        failed = json.loads(said).get("error")
        return ToolResult.error(f"Error: {failed}") if failed else said


class Get(Ledger):
    """Reads a record or a document."""

    _plugin_discoverable = True
    called = "ledger_get"


class Search(Ledger):
    """Finds records by their words."""

    _plugin_discoverable = True
    called = "ledger_search"


class Task(Ledger):
    """Works on tasks."""

    _plugin_discoverable = True
    called = "ledger_task"


class Decide(Ledger):
    """Records a decision."""

    _plugin_discoverable = True
    called = "ledger_decide"


class Checkpoint(Ledger):
    """Makes a checkpoint."""

    _plugin_discoverable = True
    called = "ledger_checkpoint"
