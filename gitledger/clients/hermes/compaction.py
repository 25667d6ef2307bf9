"""The checkpoint without which Hermes may not compact: asked for once per compaction, and after a refusal not at once.

Hermes has two places that ask before a compaction, the memory provider and the context engine. Where both do, the
second takes the first one's answer: a person's permission lets one compaction through, and is gone once it was used.
What is kept here is kept for the whole process, for a gateway builds an agent anew for every message.
"""

from __future__ import annotations

import os
import shutil
import time

from gitledger import gitdir
from gitledger.clients import embedded
from gitledger.clients.embedded import Embedded, Ran
from gitledger.values import dataclass

CLIENT = "hermes"
BLOCKED = "BLOCKED_MISSING_PREREQUISITE: "
WAY_OUT = (
    "to let one compaction through say gitledger compaction allow --once --reason WHY, "
    "or start Hermes with GITLEDGER_DISABLE=1"
)
SAME, AT_ONCE = 60.0, 2.0
"""Seconds within which the engine asks for the same compaction as the provider did, who was let through, or refused."""
FIRST, LONGEST = 30.0, 1800.0
"""Seconds until a compaction that was refused is tried again by itself: doubled by each refusal that follows."""
MOST = 5_900
"""Characters that are handed to whoever writes the summary: Hermes cuts the middle out of what has more than 6,000."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether Hermes may compact: it may where `refusal` is "", and `text` is for whoever writes the summary."""

    text: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """A refusal that lasts until `until`, or until something of the ledger is no longer as `seen`."""

    until: float
    times: int
    seen: tuple[object, ...]
    refusal: str


_told: dict[tuple[str, str], tuple[float, Verdict]] = {}
_held: dict[str, Held] = {}


def before(folders: list[str], session: str, *, asked: bool = False, first: bool = False) -> Verdict:
    """Make the checkpoint of a compaction of `session`, in the first of `folders` that has a ledger; never raises.

    `asked` says that a person asked for this compaction. `first` is for the provider, whose answer the engine takes.
    """
    try:
        found = find(folders)
        if found is None:
            return Verdict()
        key = (found.found.common, session)
        at, verdict = _told.pop(key, (0.0, Verdict()))
        if not first and at and time.monotonic() - at < (AT_ONCE if verdict.refusal else SAME):
            return verdict
        verdict = _verdict(found.hook("compact", {"session_id": session, "trigger": "manual" if asked else "auto"}))
        _keep(found, verdict)
        if first:
            _told[key] = (time.monotonic(), verdict)
        return verdict
    except Exception as e:  # a ledger may well be there, and Hermes swallows what we raise
        return Verdict(refusal=f"{BLOCKED}no checkpoint was made ({type(e).__name__}: {_line(str(e))}); {WAY_OUT}")


def held(folders: list[str], now: float | None = None) -> str:
    """The refusal that still holds, "" where a compaction may be tried again; never raises."""
    try:
        found = find(folders)
        kept = _held.get(found.found.common) if found else None
        if found is None or kept is None:
            return ""
        late = (time.monotonic() if now is None else now) >= kept.until
        return "" if late or _seen(found) != kept.seen else kept.refusal
    except Exception:
        return ""  # then it is tried, and `before` says what is wrong


def find(folders: list[str]) -> Embedded | None:
    """The ledger of the first folder that has one; raises as `embedded.find` does."""
    for folder in dict.fromkeys(folders):
        if folder and (found := embedded.find(CLIENT, folder)):
            return found
    return None


def _verdict(ran: Ran) -> Verdict:
    if not ran.status:
        return Verdict(_fitted(ran.text))
    rows = [row.removeprefix("gitledger: ") for row in ran.error.splitlines()]
    said = next((row for row in rows if row.startswith(BLOCKED)), "")
    why = _line(ran.error) or f"exit {ran.status}"
    return Verdict(refusal=_line(said) or f"{BLOCKED}no checkpoint was made ({why}); {WAY_OUT}")


def _keep(found: Embedded, verdict: Verdict) -> None:
    """Remember a refusal, or forget the last one."""
    common = found.found.common
    if not verdict.refusal:
        _held.pop(common, None)
        return
    before = _held.get(common)
    times = before.times + 1 if before else 0
    wait = min(FIRST * 2**times, LONGEST)
    _held[common] = Held(time.monotonic() + wait, times, _seen(found), verdict.refusal)


def _seen(found: Embedded) -> tuple[object, ...]:
    """What a person who mends something changes: the ledger's branch, a permission, the program, the lock's holder."""
    common, state = found.found.common, gitdir.state(found.found.common)
    names = (
        os.path.join(common, "refs", "heads", "ledger", found.ledger),
        os.path.join(common, "packed-refs"),
        os.path.join(common, "reftable", "tables.list"),
        os.path.join(state, f"allow-{found.ledger}.json"),
        os.path.join(state, "config.yaml"),
        os.path.join(state, "trust.json"),
        os.path.join(state, "program"),
    )
    rows: list[object] = [_stamp(name) for name in names]
    rows.append(os.environ.get("PATH", ""))
    path = shutil.which("gitledger") or ""
    return (*rows, path, _stamp(path) if path else None)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _line(text: str) -> str:
    return " ".join(text.split())[:1000]


def _fitted(text: str) -> str:
    if len(text) <= MOST:
        return text
    more = "\n(cut here; all of it: gitledger capsule)"
    return text[: text.rfind("\n", 0, MOST - len(more)) + 1].rstrip("\n") + more
