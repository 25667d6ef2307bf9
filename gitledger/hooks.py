"""What the clients' shims call, with the payload on stdin.

Most events are only captured, by the fast path in `__main__`. A start prints the briefing, a compaction makes a
checkpoint or is refused, an end closes the session; every other event prints nothing.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from gitledger import capture, clients, gitdir, wal
from gitledger.errors import CannotWrite, LedgerError, TryAgain
from gitledger.terminal import put, say
from gitledger.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from gitledger.clients.answers import Answer
    from gitledger.model import Finding

EVENTS = clients.EVENTS
DEADLINE = 25.0
"""Seconds for a checkpoint before a compaction. Clients let it go on when a hook takes longer than they allow."""
START, END = 20.0, 7.0
"""Seconds for a start and for an end: Gemini CLI waits for a program that has its pipe, whatever limit it was given."""
PATIENCE = 5.0
"""Seconds that a start or an end waits for the clone's lock: a session opens, and a client is left, all the same."""


def take(client: str, event: str, path: str = ".", ledger: str | None = None) -> int:
    """Take an agent's event; the exit status. Only a compaction can fail: it needs a durable checkpoint."""
    payload, _ = capture.read_stdin(capture.LIMIT, capture.DEADLINE)
    if capture.silenced():
        return 0
    try:
        found = _place(path, payload)
        name = gitdir.choose(found.common, ledger or os.environ.get("GITLEDGER_LEDGER")) if found else None
    except CannotWrite as e:
        # A ledger that cannot be looked at may well be there.
        return _refused(client, e) if event == "compact" else 0
    if found is None or name is None:
        return 0
    receipt = ""
    try:
        # The receipt comes before any guard, so that "did not fire" and "fired and failed" can be told apart.
        folder = os.path.join(gitdir.state(found.common), "wal", name)
        now = time.time_ns() // 1_000_000
        logged = wal.append(folder, client, event, payload, now_ms=now, rand=os.urandom(10), worktree=found.worktree)
        receipt = logged.id
    except Exception as e:
        # A full disk, say: for a compaction the checkpoint will meet it too, and refuse.
        capture.log(found.common, f"hook {client} {event}: {type(e).__name__}: {e}")
    if event in capture.FAST:
        return 0
    try:
        text = _said(found, name, client, event, payload, receipt)
        answer = clients.adapter(client).answer(event, _shown(text))
    except Exception as e:
        capture.log(found.common, f"hook {client} {event}: {type(e).__name__}: {e}")
        return _unless_allowed(found, name, client, e) if event == "compact" else 0
    try:
        return _give(answer)
    except LedgerError as e:
        # What was asked for is done: a client that cannot be told must not take it for a refusal.
        capture.log(found.common, f"hook {client} {event}: {e}")
        return 0


def answer(found: gitdir.GitDir, name: str, client: str, payload: bytes) -> None:
    """Give a prompt what has changed for its session, where its client can be told; what goes wrong is one line."""
    from gitledger import discover
    from gitledger.clients import events

    try:
        adapter = clients.adapter(client)
        if not adapter.answer("prompt", "any").stdout:
            return  # nobody would hear it
        said, _ = adapter.translate("prompt", payload)
        text = events.prompt(discover.open(found.top or found.common, ledger=name), client, said)
        _give(adapter.answer("prompt", _shown(text)))
    except Exception as e:
        capture.log(found.common, f"hook {client} prompt: {type(e).__name__}: {e}")


def settle(found: gitdir.GitDir, name: str, client: str, payload: bytes) -> None:
    """Do what a turn's end leaves to be done behind it: a checkpoint, a proposer to be asked.

    Whatever goes wrong is one line in the log, and the next turn's end tries again.
    """
    from gitledger import discover, documenter, layout
    from gitledger.clients import events

    try:
        adapter = clients.adapter(client)
        said, _ = adapter.translate("turn", payload)
        ledger = discover.open(found.top or found.common, ledger=name)
        try:
            if adapter.SETTLES:
                events.settle(ledger, client, said)
        finally:
            documenter.behind(ledger, layout.session_key(client, said.session_id))
    except Exception as e:
        capture.log(found.common, f"hook {client} turn: no checkpoint: {type(e).__name__}: {e}")


def _said(found: gitdir.GitDir, name: str, client: str, event: str, payload: bytes, receipt: str) -> str:
    from gitledger import discover
    from gitledger.clients import events
    from gitledger.values import replace

    adapter = clients.adapter(client)
    said, faults = adapter.translate(event, payload)
    if client not in clients.MODULES:
        _guest(found, adapter, event, faults)
    if event == "compact":
        with _within(DEADLINE, "the checkpoint was not made"):
            return events.compact(discover.open(found.top or found.common, ledger=name), adapter, said)
    limit, what = (START, "the session was not opened") if event == "start" else (END, "the session was not closed")
    with _within(limit, what):
        ledger = discover.open(found.top or found.common, ledger=name)
        ledger.desk = replace(ledger.desk, patience=PATIENCE)
        if event == "end":
            return events.end(ledger, client, said)
        try:
            from gitledger import program

            program.refresh(found.common)
        except (LedgerError, OSError) as e:
            capture.log(found.common, f"hook {client} start: {e}")
        return events.start(ledger, client, said, receipt)


def _guest(found: gitdir.GitDir, adapter: clients.Adapter, event: str, faults: list[Finding]) -> None:
    """What is to be done for a client that is none of ours: say how its adapter fares, and whether it settles."""
    from gitledger.clients import guest

    for fault in faults:
        if fault.rule in (guest.FAILED, guest.UNREAD):
            capture.log(found.common, f"hook {adapter.NAME} {event}: {fault.what}; {fault.mend}")
    if event == "start":
        guest.flag(found.common, adapter.NAME, adapter.SETTLES)


def _shown(text: str) -> str:
    # Before an adapter puts it into JSON: whoever reads that would turn an escape into what it stands for.
    from gitledger.render.text import visible

    return visible(text)


def _give(answer: Answer) -> int:
    if answer.stdout:
        put(answer.stdout)
    return say(answer.stderr, answer.code) if answer.stderr else answer.code


def _unless_allowed(found: gitdir.GitDir, name: str, client: str, error: Exception) -> int:
    """Refuse for whatever stood in the way of the checkpoint, unless a person let this compaction through."""
    from gitledger import allowance
    from gitledger.errors import IOFailed

    cause = error if isinstance(error, LedgerError) else IOFailed(f"{type(error).__name__}: {error}")
    return 0 if allowance.use(found, name, str(cause)) else _refused(client, cause)


def _refused(client: str, cause: LedgerError) -> int:
    from gitledger.ledger import blocked
    from gitledger.render.text import line

    error = blocked(cause)
    return _give(clients.adapter(client).refusal(line(str(error)), error.exit_code))


def _place(path: str, payload: bytes) -> gitdir.GitDir | None:
    if path != ".":
        return gitdir.find(path)
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    return capture.locate(payload, os.environ, here)


@contextmanager
def _within(seconds: float, what: str) -> Iterator[None]:
    """Raise TryAgain, which says `what`, after `seconds`; a process that is stuck elsewhere is ended soon after."""
    import faulthandler
    import signal

    def late(signum: int, frame: FrameType | None) -> None:
        raise TryAgain(f"{what} within {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with open(os.devnull, "wb") as nowhere:
        faulthandler.dump_traceback_later(seconds + 2, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
