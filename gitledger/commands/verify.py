"""gitledger verify."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from gitledger.commands import counted, json_option, put, put_json
from gitledger.values import asdict, replace

if TYPE_CHECKING:
    from gitledger.cli import Words
    from gitledger.ledger import Ledger
    from gitledger.store import Store

PRINTED = 1_000
"""How many findings are printed; beyond that they are counted."""


@click.command()
@click.option("--full", is_flag=True, help="Check all commits, whatever was found good before.")
@json_option
@click.pass_context
def command(ctx: click.Context, full: bool, as_json: bool) -> int:
    """Check every commit, and the tip against its journals.

    Of every commit since the last verified tip, by the parents that stand in it: exactly one signature, good, of the
    key that owns its writer's id at that place; author, committer and message bound to that writer and this ledger; it
    only adds its writer's next journal segment, whose events follow those before; it touches only what its events say.
    A merge is what its parents make. The tip comes after the last verified one, and its documents, records and indexes
    are what its journals make.

    PARTIAL means that a part of the history is not here. Exit code 1 where anything is found.
    """
    from gitledger import verify
    from gitledger.progress import Progress
    from gitledger.render.text import line

    words: Words = ctx.obj
    ledger = words.open()
    reopen = partial(_store, ledger, alone=True)
    desk = replace(ledger.desk, store=_store(ledger))
    progress = Progress()
    made = verify.verify(desk, ledger.tip(), verify.Ways(full=full, reopen=reopen, progress=progress.tell))
    progress.end()
    if as_json:
        put_json(
            {
                "verdict": made.verdict,
                "tip": made.tip,
                "checked": made.checked,
                "since": made.since or None,
                "total": len(made.findings),
                "findings": [asdict(finding) for finding in made.findings[:PRINTED]],
            }
        )
        return 1 if made.findings else 0
    for f in made.findings[:PRINTED]:
        who = f" by writer {line(f.writer, 16)}" if f.writer else ""
        put(f"{line(f.rule)}: {line(f.where, 100)}{who}: {line(f.what, 300)}; {line(f.mend, 200)}")
    whence = f"since {made.since[:12]}, found good before" if made.since else "to the first one"
    more = f", {PRINTED:,} of them printed" if len(made.findings) > PRINTED else ""
    word = {"partial": "PARTIAL, ", "bad": "BAD, "}.get(made.verdict, "")
    what = f"{word}{counted(len(made.findings), 'finding')}{more}" if made.findings else "verified"
    put(f"{made.tip[:12]}: {what}; {counted(made.checked, 'commit')} checked {whence}.")
    return 1 if made.findings else 0


def _store(ledger: Ledger, *, alone: bool = False) -> Store:
    """The ledger's store by the driver that reads fastest here: libgit2 where it can, and may, open the repository.

    `alone` is for a process that does nothing but verify, which hashes every object itself.
    """
    from gitledger import discover, gitstore
    from gitledger.errors import LedgerError

    if not gitstore.damaged_index(ledger.gitdir.common):
        try:
            store = discover.open_store(ledger.gitdir, ledger.desk.home.name, "pygit2")
            if alone:
                gitstore.trust_ids()
            return store
        except (LedgerError, ImportError):
            pass  # sha256, a reftable: git itself opens what libgit2 cannot
    return discover.open_store(ledger.gitdir, ledger.desk.home.name)
