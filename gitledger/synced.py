"""A sync as the command line asks for one, and what came of it in a few lines; without click, which not all pay for."""

from __future__ import annotations

from functools import partial

from gitledger import discover, sync, syncing
from gitledger import remote as remotes
from gitledger.errors import BadConfig
from gitledger.ledger import Ledger
from gitledger.progress import Progress
from gitledger.render.text import line
from gitledger.terminal import counted


def named(ledger: Ledger) -> remotes.Remote:
    """The remote that this clone's configuration names; raise BadConfig where it names none."""
    name = ledger.desk.config.remote.name
    if not name:
        raise BadConfig(
            "no remote is named for this ledger, so nothing is contacted; name one: gitledger remote set NAME"
        )
    return remotes.read(name)


def run(
    ledger: Ledger, deadline: int | None = None, *, pull: bool = True, push: bool = True, renew: bool = False
) -> tuple[str, syncing.Outcome]:
    """Sync with the remote that is named, or do half of it; where that was, as it is shown, and what it did."""
    to = named(ledger)
    progress = Progress()
    ways = syncing.Ways(
        pull=pull,
        push=push,
        renew=renew,
        deadline=deadline or ledger.desk.config.remote.deadline,
        heard=progress.heard if progress.on else None,
        progress=progress.tell,
        reopen=partial(discover.open_store, ledger.gitdir, ledger.desk.home.name),
    )
    try:
        return to.shown, sync.sync(ledger, to, ways)
    finally:
        progress.end()


def told(made: syncing.Outcome, where: str) -> str:
    """What a sync did, in a few lines."""
    did = [f"{counted(made.journalled, 'pending event')} committed"] if made.journalled else []
    if made.parted:
        again = counted(made.parted.events, "event")
        did.append(
            f"{again} said again as the new writer {made.parted.writer}, the line as it was is {made.parted.kept}"
        )
    did += [f"{counted(made.fetched, 'commit')} taken in"] if made.fetched else []
    did += ["merged"] if made.merged else []
    did += [f"{counted(made.pushed, 'commit')} pushed"] if made.pushed else []
    rows = [f"{made.tip[:12]}: {', '.join(did) or 'nothing was new'}; {where} and this clone have the same ledger."]
    if made.there != made.tip:
        rows = [f"{made.tip[:12]}: {', '.join(did) or 'nothing was new'}; this clone has more than {where}."]
    rows += [f"{line(f.rule)}: {line(f.where, 100)}: {line(f.what, 300)}; {line(f.mend, 200)}" for f in made.findings]
    return "\n".join(rows)
