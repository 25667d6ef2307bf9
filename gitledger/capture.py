"""What a hook does on every turn: read stdin, find the ledger, log the bytes. Nothing else is imported here.

It knows nothing of a payload but its top-level `cwd`, prints nothing, and never fails the work it watches:
what goes wrong is one line in `<common>/gitledger/log`.
"""

from __future__ import annotations

import os
import select
import time

from gitledger import frame, gitdir, wal
from gitledger.errors import CannotWrite

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FAST = frozenset({"compacted", "prompt", "receipt", "tool", "turn"})
"""Events that are logged and no more; every other one needs the whole program."""
SETTLING = frozenset({"copilot", "cursor", "droid", "gemini", "kiro", "qwen"})
"""Clients whose turn's end makes a checkpoint behind the hook's back, as their adapters say; those are not loaded.

Of a client that is none of ours its start leaves a mark that says so."""
GIT = frozenset({"checkout", "commit", "merge", "rewrite"})
"""What git's own hooks tell, logged and no more; nobody but client `git` has these words, and it has no other."""
GIT_LIMIT = 64 << 10
"""Bytes of what git tells that are kept: the names of a large commit's files are not."""
LIMIT = 5_000_000
"""Bytes of a payload that are kept; the rest is read and dropped."""
DEADLINE = 5.0
ALARM = 8.0
"""Seconds after which the kernel ends a hook that hangs. Clients wait ten, git for ever."""
LOG_LIMIT = 256 << 10
_QUIET = 0.1  # seconds without a byte, after which a whole JSON value is taken for the end


def main(
    argv: list[str],
    settle: Callable[[gitdir.GitDir, str, str, bytes], None] | None = None,
    answer: Callable[[gitdir.GitDir, str, str, bytes], None] | None = None,
) -> int | None:
    """Log the event of `[-C PATH] [--ledger NAME] hook CLIENT EVENT` and return 0, whatever happens.

    None, before anything was read, says that these words are not for the fast path. `settle` is called with place,
    ledger, client and payload once a turn is on disk, of one of SETTLING or where a proposer may be due; `answer` once
    a prompt is, where prompts are answered.
    """
    request = _request(argv)
    if request is None:
        return None
    client, event, folder, ledger = request
    found = None
    _alarm(ALARM)
    try:
        # All of stdin before anything else: a client whose pipe breaks shows that to its user.
        payload, cut = read_stdin(LIMIT, DEADLINE)
        whole = payload
        if client == "git":
            payload, cut = payload[:GIT_LIMIT], False
        if silenced():
            return 0
        found = gitdir.find(folder) if folder is not None else locate(payload, os.environ, _cwd())
        if found is None:
            return 0
        wanted = ledger or os.environ.get("GITLEDGER_LEDGER")
        name = gitdir.choose(found.common, wanted)
        if name is None:
            if gitdir.ledgers(found.common):  # else this repository is none of ours, and gets no log either
                log(found.common, f"hook {client} {event}: no ledger {wanted or 'main'} here; name one by --ledger")
            return 0
        place = os.path.join(gitdir.state(found.common), "wal", name)
        now = time.time_ns() // 1_000_000
        try:
            wal.append(place, client, event, payload, now_ms=now, rand=os.urandom(10), worktree=found.worktree)
        finally:
            if event == "rewrite":
                from gitledger import rewrites

                rewrites.add(found.common, whole)
        if cut:
            log(found.common, f"hook {client} {event}: the payload was cut at {LIMIT} bytes")
        if settle and event == "turn" and _settles(found.common, client):
            settle(found, name, client, payload)
        if answer and event == "prompt" and _marked(found.common, "prompted"):
            answer(found, name, client, payload)
    except (Exception, KeyboardInterrupt) as e:
        if found is not None:
            log(found.common, f"hook {client} {event}: {type(e).__name__}: {e}")
    finally:
        _alarm(0)
    return 0


def silenced() -> bool:
    """True where every hook does nothing: the user switched them off, or this is a proposer's own session."""
    return bool(os.environ.get("GITLEDGER_DISABLE") or os.environ.get("GITLEDGER_PROPOSING"))


def read_stdin(limit: int, deadline: float) -> tuple[bytes, bool]:
    """The first `limit` bytes of stdin, and whether there were more; all of it is read.

    Takes at most `deadline` seconds, because a client may never close the pipe; a whole JSON object
    followed by silence ends it sooner. A terminal is not read.
    """
    until = time.monotonic() + deadline
    chunks: list[bytes] = []
    size = tried = 0
    try:
        if os.isatty(0):
            return b"", False
        while (left := until - time.monotonic()) > 0:
            if not select.select([0], [], [], min(left, _QUIET))[0]:
                if size != tried and size <= limit and _whole(b"".join(chunks)):
                    break
                tried = size
                continue
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            if size < limit:
                chunks.append(chunk)
            size += len(chunk)
    except OSError:
        pass  # closed: there is no payload then
    return b"".join(chunks)[:limit], size > limit


def locate(payload: bytes, environ: Mapping[str, str], cwd: str) -> gitdir.GitDir | None:
    """The first repository with a ledger: by the payload's `cwd`, the client's environment, then `cwd`.

    In that order because a client may run its hooks in another folder than its session works in.
    """
    for start in (
        _cwd_of(payload),
        environ.get("CLAUDE_PROJECT_DIR"),
        environ.get("GEMINI_PROJECT_DIR"),
        environ.get("GITLEDGER_PROJECT_DIR"),
        cwd,
    ):
        found = gitdir.find(start) if start else None
        if found is not None and gitdir.ledgers(found.common):
            return found
    return None


def log(common: str, text: str) -> None:
    """Add one line to the log of what went wrong in hooks, which stays bounded; never raises."""
    path = os.path.join(gitdir.state(common), "log")
    if len(text) > 8000:
        text = f"{text[:1000]} … {text[-7000:]}"  # a traceback says what went wrong at its end
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    line = f"{frame.at(time.time_ns() // 1_000_000)} {shown}\n".encode("utf-8", "backslashreplace")
    try:
        gitdir.check_state(common)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        fd = gitdir.open_own(path, flags)
        if os.fstat(fd).st_nlink > 1:  # by `cp -al`, say: what is added would be added under the other name too
            os.close(fd)
            os.unlink(path)
            fd = gitdir.open_own(path, flags)
        try:
            os.write(fd, line)
            if os.fstat(fd).st_size > LOG_LIMIT:
                os.replace(path, path + ".1")
        finally:
            os.close(fd)
    except (OSError, CannotWrite):
        pass  # a full disk or a read-only one: there is nowhere left to say so


def _request(argv: list[str]) -> tuple[str, str, str | None, str | None] | None:
    """Client, event, `-C` and `--ledger` of a fast hook; None for any other words."""
    folder = ledger = None
    words = iter(argv)
    for word in words:
        if word == "-C":
            folder = next(words, None)
        elif word == "--ledger":
            ledger = next(words, None)
        elif word.startswith("--ledger="):
            ledger = word[len("--ledger=") :]
        else:
            rest = list(words)
            # `gitledger` is the client of its own commands' lines: nothing that comes by a hook may pass for one.
            known = len(rest) == 2 and rest[1] in (GIT if rest[0] == "git" else FAST)
            known = known and frame.is_word(rest[0]) and rest[0] != "gitledger"
            if word == "hook" and known:
                return rest[0], rest[1], folder, ledger
            return None
    return None


def _settles(common: str, client: str) -> bool:
    return client in SETTLING or _marked(common, "documenter") or _marked(common, f"settles-{client}")


def _marked(common: str, name: str) -> bool:
    # proposerstate, prompted and clients.guest leave such a mark, so that a clone that has none pays for looks.
    return os.path.lexists(os.path.join(gitdir.state(common), name))


def _alarm(seconds: float) -> None:
    """Let the kernel end this process, and none that it forks, in so many seconds; 0 calls that off."""
    try:
        # `signal` takes longer to load than a line takes to log.
        from _signal import ITIMER_REAL, setitimer  # type: ignore[import-not-found]
    except ImportError:  # another Python than CPython
        return
    setitimer(ITIMER_REAL, seconds)


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # deleted under us
        return ""


# ── just enough JSON ─────────────────────────────────────────────────────────────────────────
def _cwd_of(payload: bytes) -> str | None:
    """The top-level `cwd` of a JSON object, even of one that was cut after it."""
    text = payload.decode("utf-8", "replace")
    try:
        scan = _scanner()
        at = _skip(text, 0)
        if text[at : at + 1] != "{":
            return None
        while True:
            key, at = scan(text, _skip(text, at + 1))
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                return None
            value, at = scan(text, _skip(text, at + 1))
            if key == "cwd":
                return value if isinstance(value, str) else None
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                return None
    except _NOT_JSON:
        return None


def _whole(payload: bytes) -> bool:
    text = payload.decode("utf-8", "replace").strip()
    if not text.endswith("}"):
        return False
    try:
        return _scanner()(text, 0)[1] == len(text)
    except _NOT_JSON:
        return False


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


# SystemError: to CPython before 3.12 the scanner has no error to raise while `json` is not imported.
_NOT_JSON = (ValueError, StopIteration, RecursionError, SystemError)


class _Rules:
    """What the C scanner asks its owner for; the values are `json`'s own but for `strict`."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    """`scan(text, at)` → value and where it ended; without importing `json`, which costs as much again."""
    try:
        from _json import make_scanner
    except ImportError:  # another Python than CPython
        import json

        return json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined, no-any-return]
    return make_scanner(_Rules)  # type: ignore[arg-type]  # any object with these attributes does
