"""The program: help, version and a hook that only logs are done here, everything else by the command line."""

from __future__ import annotations

import os
import sys

from gitledger import __version__

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from typing import NoReturn

    from gitledger.gitdir import GitDir


def main() -> int:
    """Run the words of `sys.argv`; the exit status."""
    words = sys.argv[1:]
    if "hook" in words:
        if os.environ.get("GITLEDGER_PROBE"):
            from gitledger import probe

            return probe.main(words)
        from gitledger import capture

        status = capture.main(words, _behind, _answer)
        if status is not None:
            # Past Python's own shutdown, a tenth of the whole: nothing is buffered, all was synced.
            os._exit(status)
        if words[-2:-1] == ["git"]:
            from gitledger import gitevents

            status = gitevents.main(words)
            if status is not None:
                return status
    import gc

    # Python looks for rings of values at every 700 that stay: a fifteenth of a briefing, which makes hardly any. A
    # capsule of a large ledger has some 25,000 values when it ends.
    gc.set_threshold(50_000)
    quick = _quick(words)
    if quick:
        try:
            os.write(1, quick)
            return 0
        except OSError:
            pass  # the command line knows what to say, and to whom
    from gitledger import direct

    does = direct.of(words)
    if does:
        from gitledger import terminal

        _leave(terminal.run(does))
    from gitledger.cli import main as cli

    return cli()


def _behind(place: GitDir, ledger: str, client: str, payload: bytes) -> None:
    # The client waits for this process and whatever holds its pipes: the child has its own session and none of them.
    if os.fork():
        return
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 1 << 16)
        from gitledger import hooks

        hooks.settle(place, ledger, client, payload)
    finally:
        os._exit(0)


def _answer(place: GitDir, ledger: str, client: str, payload: bytes) -> None:
    from gitledger import hooks

    hooks.answer(place, ledger, client, payload)


def _leave(status: int) -> NoReturn:
    # Python takes down all that it loaded, a twelfth of a briefing; whoever asked to be told of the end is told.
    import atexit

    atexit._run_exitfuncs()
    os._exit(status)


def _quick(words: list[str]) -> bytes:
    # click costs three times the start of Python, and what it would print here never changes: a test compares help.txt.
    if words == ["--version"]:
        return f"gitledger {__version__}\n".encode()
    if words in (["--help"], ["-h"]):
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), "rb") as f:
            return f.read()
    return b""


if __name__ == "__main__":
    sys.exit(main())
