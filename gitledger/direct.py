"""Commands without click: what sessions, agents' hosts and compactions wait for, and what cron runs all day.

click and what it loads take twice as long as Python's own start. Only plain words are read here, each once and in full;
whatever else is asked, and all that is wrong, is the command line's, which does and says the same.
"""

from __future__ import annotations

import sys
from functools import partial

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitledger.ledger import Ledger

    Open = Callable[[], Ledger]
    Said = dict[str, str]

LONGEST = 1 << 20
"""Bytes of a query that are read from stdin."""


def of(words: list[str]) -> Callable[[], int | None] | None:
    """What does the command that `words` ask for, or None where it is for the command line."""
    if len(words) == 3 and words[0] == "hook":
        from gitledger import clients, hooks

        if clients.is_name(words[1]) and words[2] in hooks.EVENTS:
            return lambda: hooks.take(words[1], words[2])
        return None
    where = {}
    while len(words) > 2 and words[0] in ("-C", "--ledger") and words[0] not in where:
        where[words[0]], words = words[1], words[2:]
    takes = _TAKES.get(words[0]) if words else None
    said = None if takes is None else _plain(words[1:], takes)
    if said is None or not _is_text(*said.values(), where.get("--ledger", "")):
        return None
    tokens = said.get("--tokens", "0")
    if not tokens.isdecimal() or len(tokens) > 7:
        return None
    return partial(_DOES[words[0]], partial(_opened, where), said)


_TAKES: dict[str, tuple[str, ...]] = {
    "briefing": (),
    "capsule": ("--query", "--tokens", "--since", "--json"),
    "checkpoint": ("--reason",),
    "pull": (),
    "push": (),
    "sync": (),
}
_FLAGS = ("--json",)


def _plain(words: list[str], takes: tuple[str, ...]) -> Said | None:
    # `--name TEXT` or `--name=TEXT`, and the flags
    said: Said = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in takes or name in said or (equals and name in _FLAGS):
            return None
        text = value if equals or name in _FLAGS else next(rest, None)
        if text is None or text == "--help":
            return None
        said[name] = text
    return said


def _is_text(*words: str) -> bool:
    return all(word.isascii() or not any("\ud800" <= c <= "\udfff" for c in word) for word in words)


def _opened(where: dict[str, str]) -> Ledger:
    from gitledger import discover

    return discover.open(where.get("-C", "."), ledger=where.get("--ledger"))


# ── what they do ─────────────────────────────────────────────────────────────────────────────
def _briefing(opened: Open, said: Said) -> None:
    from gitledger import briefing, terminal

    terminal.put(briefing.briefing(opened()).rstrip("\n"))


def _capsule(opened: Open, said: Said) -> None:
    tokens = said.get("--tokens")
    capsule(opened, said.get("--query", ""), int(tokens) if tokens else None, said.get("--since"), "--json" in said)


def capsule(opened: Open, query: str, tokens: int | None, since: str | None, as_json: bool) -> None:
    """Print a capsule of `opened()`, as the command's options have it; a query of "-" is read from stdin."""
    from gitledger import capsule, terminal

    if query == "-":  # what was typed is nothing for a list of processes
        query = sys.stdin.buffer.read(LONGEST).decode("utf-8", "replace")
    ledger = opened()
    made = capsule.compose(ledger, query, ledger.desk.config.capsule.tokens if tokens is None else tokens, since)
    if as_json:
        left = [{"what": what, "count": number, "command": how} for what, number, how in made.left]
        terminal.put_json({"text": made.text, "tokens": made.tokens, "mark": made.mark, "left": left})
    elif made.text:
        terminal.put(made.text.rstrip("\n"))


def _checkpoint(opened: Open, said: Said) -> None:
    from gitledger import tasks, terminal
    from gitledger.render.status import pointer

    ledger = opened()
    made = ledger.checkpoint(tasks.title(said.get("--reason", "manual"), "reason"))
    terminal.put(pointer(made.name, made.task, made.path, made.digest, made.next).rstrip())


def _sync(opened: Open, said: Said, *, pull: bool = True, push: bool = True) -> None:
    from gitledger import synced, terminal

    where, made = synced.run(opened(), pull=pull, push=push)
    terminal.put(synced.told(made, where))


_DOES: dict[str, Callable[[Open, Said], None]] = {
    "briefing": _briefing,
    "capsule": _capsule,
    "checkpoint": _checkpoint,
    "pull": partial(_sync, push=False),
    "push": partial(_sync, pull=False),
    "sync": _sync,
}
