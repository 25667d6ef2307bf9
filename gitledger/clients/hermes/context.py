"""How much of its context a session has used, where Hermes says so."""

from __future__ import annotations

from typing import Any

_told: dict[str, tuple[int, int]] = {}
KEPT = 200


def tell(session: str, used: Any, limit: Any) -> None:
    """Keep what a context engine was told of a session: tokens used, and how many there are; for the whole process."""
    if session and _counts(used) and _counts(limit):
        _told.pop(session, None)
        _told[session] = (used, limit)
        while len(_told) > KEPT:
            _told.pop(next(iter(_told)))


def figures(session: str, callback: Any = None) -> dict[str, int]:
    """`{"used", "limit"}` of a session in tokens; {} where nobody says.

    `callback` is a method of the agent, which a provider is given for what it has to say: the agent's own compressor
    knows its last request.
    """
    engine = getattr(getattr(callback, "__self__", None), "context_compressor", None)
    used: Any = getattr(engine, "last_prompt_tokens", None)
    limit: Any = getattr(engine, "context_length", None)
    if not (_counts(used) and _counts(limit)):
        used, limit = _told.get(session, (0, 0))
    return {"used": used, "limit": limit} if _counts(used) and _counts(limit) else {}


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
