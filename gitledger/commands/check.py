"""gitledger check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import counted, json_option, opened, put, put_json, task_key

if TYPE_CHECKING:
    from gitledger.checking import Report
    from gitledger.model import Json

WITHHELD = "withheld: written by a writer that this machine does not trust"


@click.command()
@click.argument("id", required=False)
@click.option("--all", "everything", is_flag=True, help="Every task that is open.")
@click.option("--rerun", is_flag=True, help="Run again what is stale or failed, where this clone ran it itself.")
@click.option(
    "--deadline", type=click.IntRange(1, 86_400), default=3600, show_default=True, help="Seconds for each command."
)
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    id: str | None,  # noqa: A002
    everything: bool,
    rerun: bool,
    deadline: int,
    as_json: bool,
) -> int:
    """Check what a task's claims rest on: verified, STALE, failed, UNVERIFIED.

    Held against this work tree as it is now. A run stands while the content that it depends on is the same, a file
    while its content is, a commit while it is in the history of HEAD. Exit code 1 where a claim does not hold; that
    nothing was claimed for a criterion yet is no fault.

    With --rerun, commands that this clone ran as evidence and that are stale or failed are run again by the shell in
    the work tree's root, each shown before, and what they show is recorded. What another writer ran, or came in that
    writer's name, is never run.
    """
    from gitledger import checking, layout
    from gitledger.errors import Usage
    from gitledger.render.text import line

    if id and everything:
        raise Usage("name a task or give --all, not both")
    ledger = opened(ctx)
    view = ledger.view()
    keys = [k for k, row in view.walk(layout.TASK) if row["state"] == "open"] if everything else []
    keys = keys or ([] if everything else [task_key(ledger, view, id)])
    found = checking.report(ledger, view, keys)
    ran: list[dict[str, Json]] = []
    if rerun:
        for one in found:
            ran += checking.rerun(ledger, one, lambda text: _tell(text, as_json), deadline)
        found = checking.report(ledger, ledger.view(), keys) if ran else found
    faults = sum(one.faults for one in found)
    if as_json:
        put_json({"faults": faults, "tasks": [_value(one) for one in found], "ran": ran})
        return 1 if faults else 0
    for row in ran:
        put(f"`{line(row['command'], 200)}` exited {row['exit']}")
    for one in found:
        put("\n".join(_lines(one)))
    put(_verdict(found, faults))
    return 1 if faults else 0


def _tell(text: str, quietly: bool) -> None:
    from gitledger.render.text import line

    click.echo(f"$ {line(text, 1_000)}", err=quietly)


def _verdict(found: list[Report], faults: int) -> str:
    bare = sum(one.state == "open" for report in found for one, _ in report.criteria)
    left = f"; {bare:,} {'criterion has' if bare == 1 else 'criteria have'} no evidence yet" if bare else ""
    if not found:
        return "No task is open."
    if not faults:
        return f"No claim fails{left}." if bare else "All claims hold."
    return f"{counted(faults, 'claim')} {'does' if faults == 1 else 'do'} not hold{left}."


def _lines(found: Report) -> list[str]:
    from gitledger import proof
    from gitledger.render.text import line

    rows = [f"{found.name} {_told(found.title, 100)} ({_told(found.status, 12)})"]
    if found.unproven is None or found.unproven:
        rows.append(f"  accepted without proof: {_told(found.unproven, 200)}")
    for one, text in found.criteria:
        proved = f" - {line(one.proof, 200)}" if one.proof else ""
        why = f" ({line(one.why, 200)})" if one.why else ""
        rows.append(f"  {line(one.name, 40)} {one.state}: {_told(text, 200)}{proved}{why}")
    shown = {one.piece for one, _ in found.criteria}
    for piece in found.pieces:
        if piece.fields["id"] not in shown:
            why = f" ({line(piece.why, 200)})" if piece.why else ""
            rows.append(f"  {line(piece.name, 40)} {piece.state}: {line(proof.words(piece.fields), 200)}{why}")
    rows += [f"  work without evidence: {line(text, 200)}" for text in found.unproved]
    for candidate in found.candidates[:5]:
        rows.append(f"  {line(candidate.name, 40)} seen in a turn, not verified: {line(proof.seen(candidate), 200)}")
    if found.strange:
        rows.append(f"  {found.strange:,} more by writers that are not trusted here, which shows nothing")
    left = [p for p in found.pieces if p.fields.get("kind") == "run" and p.state in ("STALE", "failed")]
    if left:
        again = sum(piece.again for piece in left)
        rows.append(f"  {again:,} of {counted(len(left), 'run')} can be run again here: gitledger check --rerun")
    return rows


def _told(text: str | None, limit: int) -> str:
    from gitledger.render.text import line

    return WITHHELD if text is None else line(text, limit)


def _value(found: Report) -> dict[str, Any]:
    from gitledger import proof

    named = {piece.fields["id"]: piece.name for piece in found.pieces}
    return {
        "id": found.name,
        "key": found.key,
        "title": found.title,
        "status": found.status,
        "accept_unproven": found.unproven,
        "faults": found.faults,
        "criteria": [
            {
                "id": one.name,
                "text": text,
                "state": one.state,
                "met": one.met,
                "evidence": named.get(one.piece, ""),
                "proof": one.proof,
                "why": one.why,
            }
            for one, text in found.criteria
        ],
        "evidence": [
            {
                "id": piece.name,
                "kind": piece.fields.get("kind", ""),
                "state": piece.state,
                "text": proof.words(piece.fields),
                "why": piece.why,
                "criterion": str(piece.fields.get("criterion") or "").partition("@")[0],
                "at": piece.fields.get("at", ""),
                "writer": piece.writer,
                "again": piece.again,
            }
            for piece in found.pieces
        ],
        "candidates": [
            {"id": one.name, "command": one.command, "text": one.text, "exit": one.exit, "at": one.at}
            for one in found.candidates
        ],
        "strange": found.strange,
    }
