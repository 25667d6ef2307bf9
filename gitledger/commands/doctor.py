"""gitledger doctor."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Look at this machine's set-up: programs, key, trust, log, sizes, remote, and what git would do to the ledger.

    Nothing is written and nothing is contacted. Exit code 1 where there is a warning or a fault.
    """
    from gitledger import doctor
    from gitledger.clients import guest
    from gitledger.render.text import line
    from gitledger.values import asdict

    ledger = opened(ctx)
    found = [*doctor.checks(ledger), *guest.checks(ledger)]
    if as_json:
        put_json([asdict(check) for check in found])
    else:
        for check in found:
            mend = f"; {line(check.mend, 200)}" if check.mend else ""
            put(f"{check.state:8}{check.name:15}{line(check.what, 300)}{mend}")
    return int(any(check.state in ("warning", "fault") for check in found))
