"""gitledger handover."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import json_option, opened, put, put_json, warn

if TYPE_CHECKING:
    from gitledger.ledger import Ledger
    from gitledger.model import Key
    from gitledger.view import View


_STRANGER = {
    "unknown signer": "Written by {}, whose key this machine does not trust; see: gitledger trust list",
    "bad": "The ledger does not verify, so anybody may have written this in the name of {}; see: gitledger verify",
    "unverifiable": "Nobody can tell here whether {} wrote this; see: gitledger verify",
}
"""What stands above a handover that is not to be followed."""


@click.group()
def command() -> None:
    """Write, show and choose what the next worker continues from."""


@command.command()
@click.option("--summary", default="", metavar="TEXT", help="One line on the state, in place of the derived one.")
@click.option("--next", "next_action", default="", metavar="TEXT", help="The next action, in place of the task's.")
@json_option
@click.pass_context
def write(ctx: click.Context, summary: str, next_action: str, as_json: bool) -> None:
    """Make a checkpoint and a handover in one commit. The session goes on."""
    from gitledger import tasks
    from gitledger.derive import Told

    ledger = opened(ctx)
    told = None
    if summary or next_action:
        told = Told(
            tasks.title(summary, "summary") if summary else "", tasks.body(next_action, "next action"), derived=False
        )
    made = ledger.write_handover(told=told)
    if as_json:
        put_json({"handover": made.name, "task": made.task or None, "path": made.path, "digest": made.digest})
    else:
        put(f"Handover: {made.name}\nTask: {made.task or 'none'}\nPath: {made.path}\nDigest: {made.digest}")


@command.command()
@click.argument("id", required=False)
@json_option
@click.pass_context
def show(ctx: click.Context, id: str | None, as_json: bool) -> None:  # noqa: A002
    """Show a handover whole, its Next Action too. Without ID, the one that would be continued from."""
    from gitledger import layout
    from gitledger.errors import NoSuchRecord

    ledger = opened(ctx)
    view = ledger.view()
    if id:
        key: Key | None = view.resolve(id, layout.HANDOVER, ledger.desk.writer.id)
    else:
        key = _selected(ledger, view)
    if key is None:
        raise NoSuchRecord("no relevant handover; see what there is with: gitledger handover list")
    from gitledger import authority, reading

    record = view.need(key)
    writers = sorted({stamp.writer for _, stamp in record.fields.values()})
    standing = authority.assess(ledger.desk, ledger.tip())
    worth = next((found for found in map(standing.of, writers) if found != "verified"), "verified")
    if as_json:
        fields = {name: value for name, (value, _) in record.fields.items()}
        put_json({**fields, "id": view.name(key), "key": key, "authenticity": worth})
        return
    if worth != "verified":
        put(_STRANGER[worth].format(", ".join(writers)) + "\n")
    put(reading.document(view, key)[1].decode().rstrip("\n"))


@command.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="How many at most.")
@json_option
@click.pass_context
def list_(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List handovers, newest first."""
    from collections import deque

    from gitledger import layout
    from gitledger.render.text import line

    view = opened(ctx).view()
    newest = deque(view.walk(layout.HANDOVER), maxlen=limit)
    rows = [{"id": view.name(key), "at": row["at"], "title": row["title"]} for key, row in reversed(newest)]
    if as_json:
        put_json(rows)
    elif rows:
        put("\n".join(f"{r['id']}  {line(str(r['at']))}  {line(str(r['title']), 90)}" for r in rows))
    else:
        put("No handovers yet. One is made when a session ends, or by: gitledger handover write")


@command.command()
@json_option
@click.pass_context
def resolve(ctx: click.Context, as_json: bool) -> None:
    """Say which handover is continued from. With its label, freshness and authenticity."""
    from gitledger import authority, handovers
    from gitledger.render.divergence import divergence_sentence

    ledger = opened(ctx)
    view = ledger.view()
    here = ledger.position()
    judged, tier, _, faults = handovers.selected(ledger, view, here, authority.assess(ledger.desk, ledger.tip()))
    for fault in faults:
        warn(f"{fault.where}: {fault.what}; {fault.mend}")
    if judged is None:
        if as_json:
            put_json(None)
        else:
            put("No relevant handover.")
        return
    verdict = judged.verdict
    if as_json:
        put_json({"id": view.name(judged.key), "key": judged.key, "tier": tier, **_verdict(verdict)})
        return
    put(
        f"{view.name(judged.key)}  tier {tier}\n"
        f"{divergence_sentence(verdict.divergence, judged.recorded, here)}\n"
        f"{verdict.freshness}, {verdict.authenticity}\n"
        + (
            "Next action: to be followed"
            if verdict.trusted
            else "Next action: withheld (" + "; ".join(verdict.withheld) + ")"
        )
    )


@command.command()
@json_option
@click.pass_context
def explain(ctx: click.Context, as_json: bool) -> None:
    """List every candidate and why. Each is selected, superseded or rejected."""
    from gitledger import handovers
    from gitledger.render.text import line

    ledger = opened(ctx)
    view = ledger.view()
    choices = handovers.choose(ledger, view, ledger.position(fingerprint=False))
    if as_json:
        put_json(
            [
                {
                    "id": view.name(c.candidate.key),
                    "key": c.candidate.key,
                    "outcome": c.outcome,
                    "tier": c.tier,
                    "reason": _named(view, c.reason),
                    "branch": c.candidate.branch,
                    "worktree": c.candidate.worktree,
                    "writer": c.candidate.writer,
                    "at": c.candidate.created_at,
                }
                for c in choices
            ]
        )
    elif choices:
        put(
            "\n".join(
                f"{c.outcome:<10}  {line(view.name(c.candidate.key), 40)}  {line(_named(view, c.reason))}"
                for c in choices
            )
        )
    else:
        put("No handovers yet. One is made when a session ends, or by: gitledger handover write")


def _named(view: View, reason: str) -> str:
    # A reason names another candidate by its key; people know it by its name.
    return re.sub(r"H-\d+@\w+", lambda found: view.name(found[0]), reason)


def _selected(ledger: Ledger, view: View) -> Key | None:
    from gitledger import handovers

    choices = handovers.choose(ledger, view, ledger.position(fingerprint=False))
    return choices[0].candidate.key if choices and choices[0].outcome == "selected" else None


def _verdict(verdict: Any) -> dict[str, Any]:
    relation = verdict.divergence.relation
    return {
        "label": verdict.divergence.label,
        "reason": verdict.divergence.reason,
        "commits": [{"oid": oid, "subject": text} for oid, text in relation.commits] if relation else [],
        "count": relation.count if relation else 0,
        "successor": relation.successor if relation else "",
        "freshness": verdict.freshness,
        "authenticity": verdict.authenticity,
        "withheld": list(verdict.withheld),
    }
