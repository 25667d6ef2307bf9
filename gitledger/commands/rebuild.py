"""gitledger rebuild."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import json_option, opened, put, put_json
from gitledger.values import asdict

if TYPE_CHECKING:
    from gitledger.model import Finding

NAMED = 20
"""How many differing paths are named."""


@click.command()
@click.option("--check", is_flag=True, required=True, help="Compare with the tip's tree; nothing is ever written.")
@json_option
@click.pass_context
def command(ctx: click.Context, check: bool, as_json: bool) -> int:
    """Make the whole tree from the journal alone, and compare its id with the tip's tree.

    Exit code 0 where both are the same, 1 where not, with the first paths that differ.
    """
    from itertools import islice

    from gitledger import audit, objects, reading
    from gitledger.render.text import line

    ledger = opened(ctx)
    get, tip = ledger.desk.store.get, ledger.tip()
    root = objects.parse_commit(get(tip).data).tree
    with audit.rebuilt(ledger, root) as made:
        faults: list[Finding] = made.faults
        differing = list(islice(reading.differences(get, root, made.objects.get, made.tree, faults), NAMED + 1))
    same = made.tree == root
    paths = [row.path for row in differing[:NAMED]]
    if as_json:
        put_json(
            {
                "same": same,
                "tip": tip,
                "tree": root,
                "rebuilt": made.tree,
                "events": made.events,
                "differing": paths,
                "more": len(differing) > NAMED,
                "findings": [asdict(fault) for fault in faults],
            }
        )
    else:
        put(f"tip      {root}\nrebuilt  {made.tree}  from {made.events:,} events")
        for path in paths:
            put(f"differs: {line(path, 200)}")
        if len(differing) > NAMED:
            put("… and more: gitledger fsck")
        for fault in faults[:NAMED]:
            put(f"{line(fault.rule)}: {line(fault.where, 200)}: {line(fault.what, 300)}")
        put("The journal makes the same tree." if same else "The journal makes another tree; see: gitledger fsck")
    return 0 if same else 1
