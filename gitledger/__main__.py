"""The program: a hook that only logs is done here, everything else by the command line."""

from __future__ import annotations

import os
import sys

from gitledger import capture


def main() -> int:
    """Run the words of `sys.argv`; the exit status."""
    status = capture.main(sys.argv[1:])
    if status is not None:
        # Past Python's own shutdown, a tenth of the whole: nothing is buffered, all was synced.
        os._exit(status)
    from gitledger.cli import main as cli

    return cli()


if __name__ == "__main__":
    sys.exit(main())
