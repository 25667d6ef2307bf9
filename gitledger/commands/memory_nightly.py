"""gitledger memory compact, gitledger memory schedule: what runs at night."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import json_option, opened, put, put_json, warn
from gitledger.commands.memory_asking import asked, file_option, tell

if TYPE_CHECKING:
    from gitledger.errors import LedgerError
    from gitledger.ledger import Ledger
    from gitledger.memory import Applied, Loaded


# ── the nightly run ──────────────────────────────────────────────────────────────────────────
@click.command("compact")
@file_option
@json_option
@click.pass_context
def compact(ctx: click.Context, file: str, as_json: bool) -> int:
    """Ask the proposer and apply what the validator accepts, unattended.

    Three attempts with the errors sent back, ten minutes in all. A report goes to notify.urls. One that begins with
    "Memory compact: ERROR" means that nothing was applied; details are in the log.
    """
    from gitledger import memory

    ledger = opened(ctx)
    rows: list[dict[str, Any]] = []
    status = 0
    try:
        tell(memory.recover(ledger))
        files = memory.targets(ledger, file)
    except Exception as e:
        raise _failed(ledger, e) from e
    several = len(files) > 1
    looked = 0
    for target in files:
        try:
            loaded = memory.load(target)  # no sooner: the one before may have taken minutes
            if loaded is None:
                continue
            looked += 1
            _, edits = asked(ledger, loaded)
            made = memory.apply(ledger, loaded, edits, "compact") if edits else None
        except Exception as e:
            failed = _failed(ledger, e, target.name if several else "")
            if not several:
                raise failed from e
            looked += 1
            warn(str(failed))
            status = failed.exit_code
        else:
            rows.append(_told(ledger, loaded, made))
    if not looked:
        raise _failed(ledger, memory.none_there(ledger))
    if as_json:
        put_json(rows)
    elif rows:
        put("\n\n".join(row["report"] for row in rows))
    return status


def _told(ledger: Ledger, loaded: Loaded, made: Applied | None) -> dict[str, Any]:
    """What came of a file, reported; `made` is the change to it, None where nothing had to be done."""
    from gitledger import memorycheck, memoryprompt

    name, size = loaded.target.name, len(loaded.data)
    row: dict[str, Any] = {"file": name, "id": None, "changes": 0, "bytes_before": size, "bytes_after": size}
    if made is None:
        row["report"] = f"Memory compact: {name}: nothing to do"
    else:
        tell(made.findings)
        edits = made.made.edits
        after = len(memorycheck.edited(loaded.text, edits).data())
        report = memoryprompt.report(name, made.name, size, after, edits)
        row |= {"id": made.name, "changes": len({e.n for e in edits}), "bytes_after": after, "report": report}
    _notify(ledger, "Memory compact", row["report"])
    return row


def _failed(ledger: Ledger, error: Exception, name: str = "") -> LedgerError:
    """The error as the nightly run reports it, after it was reported and logged; nobody sits before a traceback."""
    from gitledger import capture, proposer
    from gitledger.errors import IOFailed, LedgerError

    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        error = IOFailed(f"{place}{error.strerror or error}; mend that and run it again")
    elif not isinstance(error, LedgerError):
        import traceback

        capture.log(ledger.gitdir.common, "".join(traceback.format_exception(error)))
        error = LedgerError(f"{type(error).__name__}: {error} (this is a fault in gitledger, please report it)")
    what = f"{name}: {error}" if name else str(error)
    capture.log(ledger.gitdir.common, f"memory compact: {what}")
    short = what
    if isinstance(error, proposer.NotProposed):
        short = f"{f'{name}: ' if name else ''}{error.brief}; details are in {ledger.desk.home.state}/log"
    elif len(what) > 1_500:
        short = f"{what[:1_400]} … (all of it is in {ledger.desk.home.state}/log)"
    _notify(ledger, "Memory compact", f"Memory compact: ERROR — {short}")
    said = LedgerError(f"Memory compact: ERROR — {what}")
    said.exit_code = error.exit_code
    return said


def _notify(ledger: Ledger, title: str, text: str) -> None:
    from gitledger import capture, notify
    from gitledger.errors import LedgerError

    try:
        faults = notify.send(ledger.desk.config.notify.urls, title, text)
    except LedgerError as e:
        faults = (str(e),)
    for fault in faults:
        warn(f"the report was not sent: {fault}")
        capture.log(ledger.gitdir.common, f"memory compact: the report was not sent: {fault}")


# ── every night ──────────────────────────────────────────────────────────────────────────────
@click.command("schedule")
@click.option("--at", default="02:00", show_default=True, metavar="HH:MM", help="When, by this machine's clock.")
@click.option("--install", is_flag=True, help="Put it in: into the crontab, or with --systemd as a timer.")
@click.option("--remove", is_flag=True, help="Take out what --install put in, and nothing else.")
@click.option("--systemd", is_flag=True, help="A systemd timer of the user instead of a line of cron.")
@click.pass_context
def scheduled(ctx: click.Context, at: str, install: bool, remove: bool, systemd: bool) -> None:
    """Print the cron line that runs compact every night, or put it in.

    It runs this program by its full path, with the PATH and the folders of configuration that hold now.
    """
    from gitledger import program, schedule
    from gitledger.errors import Usage

    if install and remove:
        raise Usage("say --install or --remove, not both")
    ledger = opened(ctx)
    common, name = ledger.gitdir.common, ledger.desk.home.name
    if remove:
        id = schedule.identity(common, name)  # noqa: A001
        rows = [
            what
            for what, done in (
                ("the cron line", schedule.remove_cron(id)),
                ("the timer", schedule.remove_systemd(id, os.environ)),
            )
            if done
        ]
        put(f"Removed {' and '.join(rows)}." if rows else "Nothing of ours was there.")
        return
    program.remember(common)
    words = (program.named(common)[0], "-C", ledger.gitdir.top or common, "--ledger", name, "memory", "compact")
    run = schedule.nightly(at, words, common, name, os.environ)
    if install and systemd:
        put("\n".join(["Put in and started:", *schedule.install_systemd(run, os.environ)]))
    elif install:
        put(f"Put into the crontab:\n{schedule.install_cron(run)}")
    elif systemd:
        put("\n\n".join(f"# {name}\n{text.rstrip()}" for name, text in schedule.units(run).items()))
    else:
        put(schedule.cron_line(run))
    if not ledger.desk.config.proposer.command:
        warn("no proposer is configured yet; name one by: gitledger config set proposer.command 'COMMAND WORDS'")
