"""One adapter per agent: its events, its payloads, its way to answer. Loaded one by one, when one is spoken to.

An adapter is a module with the names of `Adapter`. What its payloads have in common with others' is in `shape`, what
their events do in `events`, and how an event is made of what was said in `generic`. What is none of ours is in `guest`.
"""

from __future__ import annotations

from importlib import import_module

from gitledger import frame
from gitledger.typed import TYPE_CHECKING, Protocol, cast

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
RESERVED = ("git", "gitledger", "person")
"""Names of what is no agent: git's own hooks, the program's lines, a person's session."""
LONGEST = 40
"""Characters of a client's name."""
DOCUMENTED = ("cursor", "kiro")
"""Clients that were written for from their documentation, and not run."""
EVENTS = ("start", "prompt", "tool", "turn", "compact", "compacted", "end", "receipt")
"""What any client's events are called here; a receipt says that one fired which means nothing else to a ledger."""


class Adapter(Protocol):
    """What each client's module has, and what the adapter of another package has (docs/clients/your-own.md)."""

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


def is_name(name: str) -> bool:
    """True for what a client may be called: one of NAMES, or a word of `[a-z0-9-]` that is not RESERVED."""
    if name in MODULES:
        return True
    word = frame.is_word(name) and "_" not in name and "." not in name and name[0] != "-"
    return word and len(name) <= LONGEST and name not in RESERVED


def adapter(name: str) -> Adapter:
    """The adapter of one of NAMES, which nobody else can bring; or that of another client, whatever it is worth.

    KeyError for what is no name.
    """
    if name in MODULES:
        return cast("Adapter", import_module(f"gitledger.clients.{MODULES[name]}"))
    if not is_name(name):
        raise KeyError(name)
    from gitledger.clients import guest

    return cast("Adapter", guest.adapter(name))  # frozen, and so read-only, which a Protocol cannot say


def read(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    """The event of one captured payload of any client; raise BadData where nothing of it can be read.

    Where the adapter of another package failed that is so, too: what it says is not guessed at.
    """
    from gitledger.clients import generic

    if not is_name(entry.client):
        from gitledger.errors import BadData

        raise BadData(f"no client can be called {entry.client}")
    said, faults = adapter(entry.client).translate(entry.event, entry.payload)
    if entry.client in MODULES:
        return generic.draft(view, entry, said, faults, config, writer)
    from gitledger.clients import guest

    return guest.kept(generic.draft(view, entry, said, guest.sound(faults), config, writer), entry, faults, config)


def _git(view: View, entry: Entry, config: Config, writer: str) -> Draft:
    from gitledger.clients import git

    return git.read(view, entry, config, writer)


READERS: Mapping[str, Reader] = {**dict.fromkeys(NAMES, read), "git": _git, "*": read}
"""What turns a captured payload into an event, by client; "*" is every other one."""
