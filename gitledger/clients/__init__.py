"""One adapter per agent: its events, its payloads, its way to answer. Loaded one by one, when one is spoken to.

An adapter is a module with the names of `Adapter`. What its payloads have in common with others' is in `shape`, what
their events do in `events`, and how an event is made of what was said in `generic`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitledger.clients.answers import Answer
    from gitledger.frame import Entry
    from gitledger.ingest import Reader
    from gitledger.model import Draft, Finding
    from gitledger.schema import Config, GenericPayload
    from gitledger.view import View

MODULES: Mapping[str, str] = {
    "generic": "generic",
    "claude-code": "claude_code",
    "codex": "codex",
    "copilot": "copilot",
    "cursor": "cursor",
    "droid": "droid",
    "gemini": "gemini",
    "hermes": "hermes.adapter",
    "kiro": "kiro",
    "nanobot": "nanobot.adapter",
    "opencode": "opencode",
    "pi": "pi",
    "qwen": "qwen",
}
"""The adapter's module, by the client's name on the command line and in the journal."""
NAMES = tuple(MODULES)
DOCUMENTED = ("cursor", "kiro")
"""Clients that were written for from their documentation, and not run."""
EVENTS = ("start", "prompt", "tool", "turn", "compact", "compacted", "end", "receipt")
"""What any client's events are called here; a receipt says that one fired which means nothing else to a ledger."""


class Adapter(Protocol):
    """What each client's module has."""

    NAME: str
    CAN_REFUSE: bool
    """Compaction does not happen where `refusal` is what this client was told."""
    SETTLES: bool
    """A turn's end makes a checkpoint, because no refusal can be relied on to hold up a compaction."""
    ANNOUNCES_ALWAYS: bool
    """A compaction is announced before every request, whether or not one follows."""

    def translate(self, event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
        """What a payload says, in the generic client's words, without text of ours; with its faults. Never raises."""

    def answer(self, event: str, text: str) -> Answer:
        """How this client is told `text` at `event`: nothing where it has no channel there, or there is no text."""

    def refusal(self, text: str, status: int = 69) -> Answer:
        """How this client is told that it may not compact, or, where it cannot refuse, that no checkpoint was made.

        `status` is that of what stood in the way, for a client whose rules are ours.
        """


def adapter(name: str) -> Adapter:
    """The adapter of one of NAMES; KeyError for any other."""
    return cast("Adapter", import_module(f"gitledger.clients.{MODULES[name]}"))


def read(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    """The event of one captured payload of any client; raise BadData where nothing of it can be read."""
    from gitledger.clients import generic

    said, faults = adapter(entry.client).translate(entry.event, entry.payload)
    return generic.draft(view, entry, said, faults, config, writer)


def _git(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    from gitledger.clients import git

    return git.read(view, entry, config, writer)


READERS: Mapping[str, Reader] = {**dict.fromkeys(NAMES, read), "git": _git}
"""What turns a captured payload into an event, by client."""
