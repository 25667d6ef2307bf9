"""`hermes gitledger status` and `hermes gitledger doctor`."""

from __future__ import annotations

import sys

from .found import load


def register_cli(subparser) -> None:
    """Add our words to Hermes' own."""
    why = load()
    if not why:
        from gitledger.clients.hermes import cli

        cli.register_cli(subparser)
        return
    subparser.add_argument("what", nargs="?", choices=("status", "doctor"), default="status")
    subparser.set_defaults(func=lambda args: sys.exit(f"gitledger: {why}"))


def gitledger_command(args) -> None:
    """What `hermes gitledger …` does, for a Hermes that asks for it by this name."""
    args.func(args)
