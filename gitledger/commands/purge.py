"""gitledger purge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import counted, named, opened, put

if TYPE_CHECKING:
    from gitledger.ledger import Ledger
    from gitledger.needle import Needle
    from gitledger.purge import Found

SHOWN = 20
_FIRST = (
    "Revoke the secret where it was issued, before anything else: whoever fetched or read this ledger has it, and "
    "nothing done here changes that."
)
_ELSEWHERE = (
    "Remotes and other clones still have the old commits. The branch at each remote must be replaced by force by\n"
    "somebody who may do that, and each other clone must drop its own copy and join anew: see docs/secrets.md.\n"
    "The commits have other ids now: what quotes an old one (a message, an issue) names a commit that is gone."
)


@click.command()
@click.option("--secret-from", metavar="FILE|-", help="The file that holds the secret and nothing else; - is stdin.")
@click.option("--from", "start", default="", metavar="COMMIT", help="Write anew from this commit on, if earlier.")
@click.option("--yes", is_flag=True, help="Do it; without this it is only said what would be done.")
@click.option("--confirm", is_flag=True, help="Let go of the old commits that an earlier purge has kept.")
@click.pass_context
def command(ctx: click.Context, secret_from: str | None, start: str, yes: bool, confirm: bool) -> None:
    """Take a secret that got through out of this clone's ledger, by writing its commits anew.

    From the first commit that holds the secret on, every commit is made and signed again without it; this clone's log
    is cleaned too. The old commits stay under a rescue ref until you say --confirm. It takes back nothing from remotes
    and other clones, so revoke the secret where it was issued first. The secret is read from a file or stdin, never
    from the command line.
    """
    from gitledger.errors import Usage

    if confirm == bool(secret_from):
        raise Usage("say either --secret-from FILE, or --confirm; see: gitledger purge --help")
    ledger = opened(ctx)
    if confirm:
        _confirm(ledger)
        return
    needle = _needle(secret_from or "-")
    if not yes:
        _show(ledger, needle, start)
        return
    from gitledger import purge

    done = purge.carry_out(ledger.desk, ledger.gitdir.common, needle, start)
    rows = [f"{counted(n, 'line')} cleaned in {path}" for path, n in done.local]
    if done.rescue:
        rows.insert(0, f"{counted(done.commits, 'commit')} written anew; the ledger's tip is {done.tip[:12]}")
        rows += [f"The old commits are kept under {done.rescue}", _FIRST, _ELSEWHERE]
        rows += _holding(purge.holding(ledger.desk, ledger.gitdir.common, done.tip))
        rows.append("Look at the ledger as it is now, then let go of the old commits: gitledger purge --confirm")
    elif not done.local:
        rows = ["The secret stands in no commit of this ledger and in no log of this clone; nothing was changed."]
    put("\n".join(rows))


def _show(ledger: Ledger, needle: Needle, start: str) -> None:
    from gitledger import purge

    found = purge.look(ledger.desk, needle, start)
    if not found.hits and not found.local and not found.others:
        put("The secret stands in no commit of this ledger and in no file of gitledger in this clone.")
        return
    rows = [_FIRST, ""]
    if found.hits:
        rows.append(f"It stands in {counted(len(found.hits), 'commit')} of {ledger.desk.store.ref}, oldest first:")
        rows += _hits(ledger, found)
        rows.append(f"To be written anew: {counted(len(found.stretch), 'commit')}, from {found.stretch[0][:12]} on.")
    rows += [f"In this clone's log: {counted(n, 'line')} in {path}" for path, n in found.local]
    rows += [f"Also in {path}, which is yours to edit" for path in found.others]
    rows += ["", "Nothing was changed. Do it by the same command with --yes."]
    put("\n".join(rows))


def _hits(ledger: Ledger, found: Found) -> list[str]:
    from gitledger.render.text import line

    view = ledger.view()
    rows = []
    for hit in found.hits[:SHOWN]:
        names = ", ".join(line(view.name(key), 40) for key in hit.records[:6])
        where = "; ".join(line(one, 80) for one in hit.where[:6])
        events = f"{counted(hit.events, 'event')} on {names}" if hit.events else ""
        rows.append(f"  {hit.commit[:12]} {line(hit.subject, 60)}: {'; '.join(filter(None, (events, where)))}")
    if len(found.hits) > SHOWN:
        rows.append(f"  and {len(found.hits) - SHOWN} more")
    return rows


def _confirm(ledger: Ledger) -> None:
    from gitledger import purge

    gone = purge.confirm(ledger.desk, ledger.gitdir.common)
    rows = [f"Let go of {ref}" for ref in gone.refs]
    rows.append(
        f"{counted(gone.packs, 'pack')} of this ledger left to git, and the branch's reflog tells only of what is"
    )
    rows += _holding(gone.holding)
    rows.append(
        "Git has the old objects until it collects what nothing names, by default two weeks after they were made, and\n"
        "until then they can be read here by their ids; `git help gc` says under --prune how that can be sooner."
    )
    put("\n".join(rows))


def _holding(refs: tuple[str, ...]) -> list[str]:
    return [f"Still held by {ref}: while that is there, git keeps the old commits" for ref in refs]


def _needle(source: str) -> Needle:
    from gitledger import needle

    return needle.read(named(source, needle.LONGEST + 1, "the secret alone"))
