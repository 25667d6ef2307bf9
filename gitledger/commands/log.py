"""gitledger log."""

from __future__ import annotations

import click

from gitledger.commands import json_option, opened, put, put_json


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="At most so many; 0 for all.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the ledger's commits, newest first."""
    from itertools import islice

    from gitledger import frame, reading
    from gitledger.render.text import line

    ledger = opened(ctx)
    rows = []
    more = False
    for n, (oid, commit) in enumerate(
        islice(reading.commits(ledger.desk.store, ledger.tip()), limit + 1 if limit else None)
    ):
        if limit and n == limit:
            more = True
            break
        said = reading.trailers(commit)
        row = {
            "commit": oid,
            "at": frame.at(reading.seconds(commit) * 1000),
            "kind": said.get("Ledger-Kind", ""),
            "writer": said.get("Ledger-Writer", ""),
            "subject": commit.subject,
        }
        if as_json:
            rows.append(row)
        else:
            who = f"{line(row['kind'], 10):<10} {line(row['writer'], 16):<7}"
            put(f"{oid[:12]}  {row['at'][:16].replace('T', ' ')}  {who} {line(commit.subject, 100)}")
    if as_json:
        put_json({"commits": rows, "more": more})
    elif more:
        put(f"… and older ones: gitledger log --limit {limit * 5}")
