"""A command that proposes: a prompt on its stdin, one JSON document somewhere in what it prints, and no more than that.

A model may propose, code decides. Each attempt is a new process with nothing of the session around it: no repository
variable of git's, no mark by which a client knows that it runs inside another one, and none of our hooks at work. Its
prose is never read; what is refused goes back to the next attempt, in the words of whoever refused it.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Generic, TypeVar

from gitledger import gitcli
from gitledger.errors import Missing, NotAllowed
from gitledger.schema import BadChangeSet
from gitledger.values import dataclass

T = TypeVar("T")

ATTEMPTS = 3
DEADLINE = 600.0
"""Seconds for all attempts together."""
LIMIT = 1 << 20
"""Bytes that one attempt may print; one that prints more is ended."""
HEARD = 4_000
"""Characters of its stderr that are kept, the last ones."""
DEEPEST = 16 << 20
"""Characters that are looked at for the document, the same ones counted as often as they are looked at."""

MARKED = (
    "CLAUDE_CODE_",
    "CODEX_",
    "COPILOT_AGENT",
    "COPILOT_CLI",
    "CURSOR_",
    "GEMINI_CLI",
    "PI_CODING_AGENT",
    "QWEN_CODE",
)
"""How the variables begin that clients give to what they start; nobody lists them all, so the beginning counts."""
MARKS = frozenset(
    {
        "AI_AGENT",
        "CLAUDECODE",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PROJECT_DIR",
        "FACTORY_PROJECT_DIR",
        "GEMINI_CWD",
        "GEMINI_PROJECT_DIR",
        "GEMINI_SESSION_ID",
        "GITLEDGER_PROJECT_DIR",
        "OPENCODE",
        "OPENCODE_CALLER",
        "OPENCODE_PID",
        "OPENCODE_PROCESS_ROLE",
        "OPENCODE_RUN_ID",
        "QWEN_PROJECT_DIR",
    }
)
"""Those that are known by their whole name."""
# Where a client's settings lie, who the user is to it, and how it reaches its model: the user's own, not the session's.
_OWN = re.compile(
    r"_(?:HOME|DIR|PATH|CONFIG|CERT|KEY|CERTIFICATE|TOKEN|PASSPHRASE|MODEL|EFFORT|TTL_MS)$"
    r"|^CLAUDE_CODE_(?:USE|SKIP|DISABLE|ENABLE|MAX|AUTO|EFFORT|EXTRA|SUBAGENT)_"
    r"|_(?:API|BASE|AUTH|OAUTH|PROXY)_"
)

_PLACE = re.compile(r"[a-z_0-9]+(?:\[\d+\]|\.[a-z_0-9]+)*(?=: )")


@dataclass(frozen=True, slots=True)
class Proposed(Generic[T]):
    """What came of it: the accepted value, or None and why not in one line; `heard` is what it said on stderr.

    `brief` is why not without a word of what the document, or what it is about, says.
    """

    value: T | None
    attempts: int
    why: str = ""
    heard: str = ""
    brief: str = ""


class NotProposed(NotAllowed):
    """No proposal came of it; `brief` says so to those who need not read what it was about."""

    def __init__(self, got: Proposed[Any], behind: str) -> None:
        super().__init__(f"{got.why}; {behind}")
        self.brief = f"{got.brief}; {behind}"


def propose(
    command: Sequence[str],
    prompt: Callable[[tuple[str, ...]], str],
    accept: Callable[[bytes], T],
    *,
    cwd: str | os.PathLike[str],
    attempts: int = ATTEMPTS,
    deadline: float = DEADLINE,
    key: str = "",
) -> Proposed[T]:
    """What `accept` makes of the document that `command` prints for a prompt, after as many attempts as it takes.

    `prompt` is given the errors of the attempt before, () at first. `accept` is given the document alone, and raises
    BadChangeSet for one that does not fit; whatever else it raises goes through. `key` is one that every document has,
    as `document` takes it. `deadline` is in seconds, for all attempts: then the command and all its children are
    killed. A command that cannot be started is Missing.
    """
    until = time.monotonic() + deadline
    errors: tuple[str, ...] = ()
    why = brief = "it was given no time"
    heard = ""
    for n in range(1, attempts + 1):
        left = until - time.monotonic()
        if left <= 0:
            over = f"then the {deadline:g} seconds for all attempts were over"
            return Proposed(None, n - 1, f"{why}; {over}", heard, f"{brief}; {over}")
        ran = _run(command, prompt(errors).encode("utf-8", "backslashreplace"), cwd, left)
        heard = f"{heard}{ran.heard}"[-HEARD:]
        if ran.fault:
            why = brief = ran.fault
            errors = ()
            continue
        try:
            return Proposed(accept(document(ran.out, key)), n, "", heard)
        except BadChangeSet as e:
            errors = e.errors
            why, brief = (f"its document was refused: {what}" for what in ("; ".join(errors), _places(errors)))
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return Proposed(None, attempts, f"after {tries}: {why}", heard, f"after {tries}: {brief}")


def _places(errors: Sequence[str]) -> str:
    """How many errors, and where: an error may quote what it is about, its place in the document quotes nothing."""
    places = [found[0] for error in errors if (found := _PLACE.match(error))]
    shown = list(dict.fromkeys(places))
    where = f", at {', '.join(shown[:5])}{' and elsewhere' if len(shown) > 5 else ''}" if shown else ""
    return f"{len(errors)} error{'' if len(errors) == 1 else 's'}{where}"


def document(out: bytes, key: str = "") -> bytes:
    """The one JSON object in what a proposer printed; raise BadChangeSet where there is none.

    It is the last object that stands in no other one and has `key`; where none has it, the last one. So prose, fences
    of Markdown and an example before the answer do not matter. A client that prints an object of its own with the
    answer as the text `result`, as `claude -p --output-format json` does, is taken at that text.
    """
    text = out.decode("utf-8", "replace")
    found = _objects(text)
    whole = found[-1][1] if found else {}
    if whole.get("type") == "result" and isinstance(inner := whole.get("result"), str):
        text, found = inner, _objects(inner)
    if not found:
        raise BadChangeSet(("the answer holds no JSON object",))
    chosen = next((row for row in reversed(found) if key in row[1]), found[-1])
    return text[chosen[0]].encode("utf-8", "replace")


def environment() -> dict[str, str]:
    """The environment of a proposer: the user's own, without what would join it to the session that asks.

    Our hooks do nothing in it. Of git's variables those go that point to a repository, and nothing is added.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if (not name.startswith("GIT_") or name in gitcli.KEPT) and not _marks(name)
    }
    # The second one for hooks that were installed before the first had a meaning.
    return kept | {"GITLEDGER_PROPOSING": "1", "GITLEDGER_DISABLE": "1"}


def _marks(name: str) -> bool:
    return name in MARKS or (name.startswith(MARKED) and ("_SESSION" in name or not _OWN.search(name)))


def _objects(text: str) -> list[tuple[slice, dict[str, object]]]:
    """Every JSON object of a text that stands in no other one, in order, with where it is."""
    read = json.JSONDecoder(strict=False, parse_int=lambda _: 0).raw_decode
    found: list[tuple[slice, dict[str, object]]] = []
    at, left = text.find("{"), DEEPEST
    while at >= 0 and left > 0:
        try:
            value, end = read(text, at)
        except json.JSONDecodeError as e:
            left -= max(e.pos - at, 1)
            at = text.find("{", at + 1)
        except RecursionError:
            break  # each of its braces would be tried in turn
        else:
            found.append((slice(at, end), value))
            at = text.find("{", end)
    return found


@dataclass(frozen=True, slots=True)
class _Ran:
    """What one attempt printed, or what was wrong with it as a process."""

    out: bytes
    heard: str
    fault: str = ""


def _run(command: Sequence[str], prompt: bytes, cwd: str | os.PathLike[str], seconds: float) -> _Ran:
    name = shlex.join(command[:1])
    try:
        # A session of its own: no terminal to ask on, and one group to kill with all its children.
        child = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as e:
        what = getattr(e, "strerror", None) or e
        raise Missing(
            f"the proposer {name or '(no command)'} cannot be started ({what}); "
            "name one by: gitledger config set proposer.command 'COMMAND WORDS'"
        ) from e
    try:
        with _ended_first():
            out, err, fault = _talk(child, prompt, seconds)
    finally:
        gitcli.kill(child)  # with what it may have left running
    heard = err.decode("utf-8", "backslashreplace")
    status = child.returncode
    if not fault and status:
        fault = f"it ended with {status}" if status > 0 else f"it was ended by signal {-status}"
        last = (heard.strip().splitlines() or [""])[-1].strip()
        fault += f" ({last[:200]})" if last else ""
    return _Ran(out, heard, fault)


@contextmanager
def _ended_first() -> Iterator[None]:
    """Let a signal that would end this process at once be a KeyboardInterrupt, so that the child is ended before."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    deadly = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) == signal.SIG_DFL]
    try:
        for one in deadly:
            signal.signal(one, stop)
        yield
    finally:
        for one in deadly:
            signal.signal(one, signal.SIG_DFL)


def _talk(child: subprocess.Popen[bytes], prompt: bytes, seconds: float) -> tuple[bytes, bytes, str]:
    """Its stdout, the end of its stderr, and what went wrong, once it has ended or may not go on."""
    assert child.stdin is not None  # noqa: S101 (the caller asked for all three)
    assert child.stdout is not None  # noqa: S101
    assert child.stderr is not None  # noqa: S101
    until = time.monotonic() + seconds
    out, err = bytearray(), bytearray()
    stdin, stdout = child.stdin.fileno(), child.stdout.fileno()
    unsaid = memoryview(prompt)
    with selectors.DefaultSelector() as pipes:
        for fd in (stdin, stdout, child.stderr.fileno()):
            os.set_blocking(fd, False)
            pipes.register(fd, selectors.EVENT_WRITE if fd == stdin else selectors.EVENT_READ)
        ended = False
        while pipes.get_map():
            left = until - time.monotonic()
            if left <= 0:
                return bytes(out), bytes(err), "it did not end in time"
            # A child of its own may hold the pipes for ever: what is in them once it has ended is all.
            ready = pipes.select(0 if ended else min(left, 0.1))
            if not ready and ended:
                break
            ended = ended or _ended(child)
            for one, _ in ready:
                fd = one.fd
                if fd == stdin:
                    try:
                        unsaid = unsaid[os.write(fd, unsaid[: 1 << 16]) :]
                    except BrokenPipeError:
                        unsaid = unsaid[:0]  # it reads no further, which is its own affair
                    if not unsaid:
                        pipes.unregister(fd)
                        child.stdin.close()
                    continue
                data = os.read(fd, 1 << 16)
                if not data:
                    pipes.unregister(fd)
                elif fd == stdout:
                    out += data
                else:
                    err = (err + data)[-4 * HEARD :]
            if len(out) > LIMIT:
                return b"", bytes(err), f"it printed more than {LIMIT >> 20} MiB"
        while not ended:
            if time.monotonic() >= until:
                return bytes(out), bytes(err), "it did not end in time"
            time.sleep(0.02)
            ended = _ended(child)
    return bytes(out), bytes(err), ""


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """True once it has ended; where the system can tell without forgetting it, its number stays its own until then."""
    if not hasattr(os, "waitid"):
        return child.poll() is not None
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
