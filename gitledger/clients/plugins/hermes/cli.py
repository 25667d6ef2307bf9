"""`hermes gitledger status` and `hermes gitledger doctor`; all of it is in gitledger's own package."""

from __future__ import annotations

import sys

from .found import load


def register_cli(subparser) -> None:
    """Add our words to Hermes' own."""
    subparser.add_argument("what", nargs="?", choices=("status", "doctor"), default="status")
    subparser.set_defaults(func=gitledger_command)


def gitledger_command(args) -> None:
    """What `hermes gitledger …` does."""
    why = load()
    if why:
        sys.exit(f"gitledger: {why}")
    from gitledger.clients.hermes import cli

    sys.exit(cli.gitledger_command(args))
