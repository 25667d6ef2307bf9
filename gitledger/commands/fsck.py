"""gitledger fsck."""

from __future__ import annotations

import click

from gitledger.commands import counted, json_option, opened, put, put_json
from gitledger.values import asdict

PRINTED = 1_000
"""How many findings are printed; beyond that they are counted."""


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Check documents and journals against records.

    Reads every journal segment at the tip: lines, canonical form, hash chain, numbers without gap or repeat. Folds all
    events and compares every record, index and document, byte for byte, with the tree. Names files that no event
    accounts for, objects that are missing, and damaged lines of this clone's log. Where another renderer made the
    documents, those are not compared. Changes nothing; exit code 1 where anything is found.
    """
    from gitledger import audit
    from gitledger.render.text import line

    rows = []
    total = 0
    for f in audit.fsck(opened(ctx)):
        total += 1
        if total > PRINTED:
            continue
        if as_json:
            rows.append(asdict(f))
        else:
            put(f"{line(f.rule)}: {line(f.where, 200)}: {line(f.what, 300)}; {line(f.mend, 200)}")
    if as_json:
        put_json({"clean": not total, "total": total, "findings": rows})
    elif total:
        more = f", {PRINTED:,} of them printed" if total > PRINTED else ""
        put(f"{counted(total, 'finding')}{more}.")
    else:
        put("The ledger is clean.")
    return 1 if total else 0
