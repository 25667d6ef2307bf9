"""gitledger search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import json_option, opened, put, put_json
from gitledger.values import asdict

if TYPE_CHECKING:
    from gitledger.model import Finding

WORDS = (
    "project",
    "task",
    "decision",
    "blocker",
    "question",
    "artifact",
    "note",
    "memory",
    "checkpoint",
    "handover",
    "session",
)


@click.command()
@click.argument("text")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(WORDS), help="Only this kind; may be given several times."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Print at most so many."
)
@json_option
@click.pass_context
def command(ctx: click.Context, text: str, kinds: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find records that hold a text.

    All the words of TEXT are looked for, in any case, in ids, titles and texts.
    """
    from gitledger import search
    from gitledger.render.text import line

    ledger = opened(ctx)
    view = ledger.view()
    faults: list[Finding] = []
    hits = []
    total = 0
    for hit in search.search(ledger, view, text, faults, kinds or WORDS):
        total += 1
        if total <= limit:
            hits.append(hit)
    if as_json:
        put_json(
            {"query": text, "hits": [asdict(h) for h in hits], "total": total, "findings": [asdict(f) for f in faults]}
        )
        return
    for hit in hits:
        put(f"{line(hit.name, 40):<12} {line(hit.kind):<10} {line(hit.status, 12):<10} {line(hit.title, 100)}".rstrip())
        if hit.text:
            put(f"{'':<12} {line(hit.field, 20)}: {line(hit.text, 220)}")
    if not hits:
        put("No record holds that. The journal's own texts: gitledger journal")
    if total > limit:
        put(f"… and {total - limit:,} more, oldest last: add --limit {total}, or --kind {WORDS[1]}")
    for fault in faults:
        put(f"not searched: {line(fault.where, 80)}: {line(fault.what, 200)}; {line(fault.mend, 80)}")
