"""What `gitledger hooks test` hears from a hook's command: that this program was reached, and for which ledger.

With GITLEDGER_PROBE in the environment a hook says so in one line, and does nothing else.
"""

from __future__ import annotations

import os

from gitledger import __version__, capture, gitdir
from gitledger.trial import HEARD


def main(words: list[str]) -> int:
    """Say what `… hook CLIENT EVENT` would be taken for; nothing is written."""
    payload, _ = capture.read_stdin(capture.LIMIT, capture.DEADLINE)
    found = capture.locate(payload, os.environ, os.getcwd())
    name = gitdir.choose(found.common, os.environ.get("GITLEDGER_LEDGER")) if found else None
    where = f"for ledger {name} in {found.common}" if found and name else "and there is no ledger here"
    os.write(
        1, f"{HEARD} {' '.join(words[-2:])} by version {__version__} {where}\n".encode("utf-8", "backslashreplace")
    )
    return 0
