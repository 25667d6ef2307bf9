"""What stands between the program and the terminal: safe output, and the one place that turns errors into exit codes.

Without click, because a session's start goes through here and may not wait for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from gitledger.errors import IOFailed, LedgerError

LONGEST = 20_000
"""Characters of an error's line."""


def run(program: Callable[[], int | None]) -> int:
    """Run `program`; its exit status. An error is one line on stderr; a traceback goes to the log, never here."""
    _streams()
    try:
        status = program() or 0
    except LedgerError as e:
        status = say(str(e), e.exit_code)
    except KeyboardInterrupt:
        status = say("stopped", 130)
    except BrokenPipeError:
        status = 0  # the reader of our output has gone (`| head`): nothing to say, and nobody to say it to
    except Exception as e:
        status = _crash(e)
    try:
        sys.stdout.flush()
    except OSError as e:
        # Python would try once more as it ends, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if status == 0 and not isinstance(e, BrokenPipeError):
            return say(f"the output cannot be written ({e.strerror}); what was asked for is done", 74)
    return status


def put(text: str) -> None:
    """Print text as UTF-8, whatever the locale says; what a terminal would obey or nobody could see is written out.

    Text of records goes through `render.text` before, so that it stays on its line and within its place.
    """
    from gitledger.render.text import visible

    try:
        sys.stdout.buffer.write(visible(text).encode() + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as e:
        # What did not fit is still buffered: without a place for it, the end of the program would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise IOFailed(f"the output cannot be written ({e.strerror}); what was asked for is done") from e


def put_json(value: object) -> None:
    """Print a value as JSON for programs, with every non-ASCII character escaped."""
    import json

    put(json.dumps(value, indent=1, sort_keys=False))


def counted(n: int, word: str) -> str:
    """`1 finding`, `1,234 findings`."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def say(text: str, status: int) -> int:
    """One line on stderr; gives `status` back."""
    from gitledger.render.text import line

    if len(text) > LONGEST:  # it may quote what was given, and ends with the next step
        text = f"{text[: LONGEST - 1_000]} … {text[-1_000:]}"
    print(f"gitledger: {line(text)}", file=sys.stderr)
    return status


def _streams() -> None:
    """Give every standard stream that the caller closed a place: without one, a hook's `print` is a crash."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115 (they live as long as the process does)
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115


def _crash(error: Exception) -> int:
    import traceback

    from gitledger import capture, gitdir

    where = "set GITLEDGER_TRACEBACK=1 to see where"
    found = gitdir.find(".")
    try:
        ours = bool(found and gitdir.ledgers(found.common))
    except LedgerError:
        ours = False
    if found and ours:
        capture.log(found.common, "".join(traceback.format_exception(error)).replace("\n", " ⏎ "))
        where = f"details in {gitdir.state(found.common)}/log"
    if os.environ.get("GITLEDGER_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, OSError):  # the disk, a permission: this machine's, not ours
        place = f"{error.filename}: " if error.filename else ""
        return say(f"{place}{error.strerror or error}; mend that and try again ({where})", 74)
    return say(f"{type(error).__name__}: {error} (this is a fault in gitledger; {where})", 70)
