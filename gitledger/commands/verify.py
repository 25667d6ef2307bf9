"""gitledger verify."""

from __future__ import annotations

from dataclasses import asdict

import click

from gitledger.commands import counted, json_option, opened, put, put_json


@click.command()
@click.option("--full", is_flag=True, help="Check all commits, whatever was found good before.")
@json_option
@click.pass_context
def command(ctx: click.Context, full: bool, as_json: bool) -> int:
    """Check signatures from the tip to the first commit.

    Of every commit it checks that it carries exactly one signature, that this is good and of the key that the ledger
    has for the commit's writer, that the message is signed for this ledger's uuid, that the only first commit is the
    pinned one, and that this machine has pinned the key. It stops at the commit that was found good before. What the
    commits hold is checked by gitledger fsck; that each one only adds is not checked yet.

    Exit code 1 where anything is found.
    """
    from gitledger import audit
    from gitledger.render.text import line

    made = audit.verify(opened(ctx), full=full)
    verdict = "bad" if made.findings else "verified"
    if as_json:
        put_json(
            {
                "verdict": verdict,
                "tip": made.tip,
                "checked": made.checked,
                "since": made.since or None,
                "findings": [asdict(finding) for finding in made.findings],
            }
        )
    else:
        for f in made.findings:
            put(f"{line(f.rule)}: {line(f.where, 100)}: {line(f.what, 300)}; {line(f.mend, 200)}")
        whence = f"since {made.since[:12]}, found good before" if made.since else "to the first one"
        what = counted(len(made.findings), "finding") if made.findings else "verified"
        put(f"{made.tip[:12]}: {what}; {counted(made.checked, 'commit')} checked {whence}.")
    return 1 if made.findings else 0
