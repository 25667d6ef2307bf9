"""gitledger memory."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import counted, json_option, named, opened, put, put_json, warn

if TYPE_CHECKING:
    from gitledger.errors import LedgerError
    from gitledger.ledger import Ledger
    from gitledger.memory import Applied, Loaded
    from gitledger.memorycheck import Edit
    from gitledger.model import Finding

_FILE = click.option(
    "--file", "file", default="", metavar="PATH", help="Which memory file, where several are configured."
)


@click.group()
def command() -> None:
    """Have stale lines of agents' memory files proposed, checked, removed and brought back.

    A model or a person proposes, the validator decides what is allowed, and the file is touched only by apply and
    compact. Files are named by memory.files, by default memory/MEMORY.md.
    """


# ── proposing ────────────────────────────────────────────────────────────────────────────────
@command.command()
@_FILE
@click.option("--prompt", "only_prompt", is_flag=True, help="Print what a proposer would be asked, and ask none.")
@json_option
@click.pass_context
def audit(ctx: click.Context, file: str, only_prompt: bool, as_json: bool) -> None:
    """Ask the proposer what may go, and show it numbered.

    On a terminal it then asks what to do: apply, keep 2,5, delete 3 or cancel. Elsewhere the proposal waits for
    `gitledger memory apply`. Nothing is changed before.
    """
    from gitledger import memory, memoryprompt

    ledger = opened(ctx)
    _recovered(memory.recover(ledger))
    loaded = _one(ledger, file)
    if only_prompt:
        held = memory.companions(ledger, loaded.target)
        put(memoryprompt.prompt(loaded.target.name, loaded.text, loaded.sha256, held).rstrip("\n"))
        return
    data, edits = _asked(ledger, loaded)
    _shown(ledger, loaded, data, edits, as_json)


@command.command()
@click.option("--from", "source", required=True, metavar="FILE|-", help="The change set; - is stdin.")
@_FILE
@json_option
@click.pass_context
def propose(ctx: click.Context, source: str, file: str, as_json: bool) -> None:
    """Check a change set made by hand or by a script, and show it as audit does.

    Its schema is printed by `gitledger schema memory`. Which of several files it is for is told by its source_sha256.
    """
    from gitledger import memory, schema

    ledger = opened(ctx)
    _recovered(memory.recover(ledger))
    data = named(source, schema.LONGEST + 1, "a change set")
    loaded = _of_digest(ledger, schema.read_memory_set(data).source_sha256, file)
    _shown(ledger, loaded, data, memory.accepted(ledger, loaded, data), as_json)


@command.command()
@click.option("--keep", default="", metavar="N,N", help="Apply all but these.")
@click.option("--delete", "delete", default="", metavar="N,N", help="Apply these alone.")
@click.option("--cancel", is_flag=True, help="Drop the proposal instead.")
@json_option
@click.pass_context
def apply(ctx: click.Context, keep: str, delete: str, cancel: bool, as_json: bool) -> None:
    """Apply the proposal that waits, or a part of it.

    It is checked once more against the file as it is now; one that no longer fits is refused whole.
    """
    from gitledger import memory, schema
    from gitledger.errors import Usage

    if bool(keep) + bool(delete) + cancel > 1:
        raise Usage("say one of --keep, --delete and --cancel")
    ledger = opened(ctx)
    _recovered(memory.recover(ledger))
    if cancel:
        memory.held(ledger)
        memory.let_go(ledger)
        put("Cancelled; nothing was changed.")
        return
    loaded, data = memory.held(ledger)
    chosen = _chosen(len(schema.read_memory_set(data).changes), keep, delete)
    _applied(ledger, loaded, memory.accepted(ledger, loaded, data, chosen), as_json)


# ── the nightly run ──────────────────────────────────────────────────────────────────────────
@command.command()
@_FILE
@json_option
@click.pass_context
def compact(ctx: click.Context, file: str, as_json: bool) -> int:
    """Ask the proposer and apply what the validator accepts, unattended.

    Three attempts with the errors sent back, ten minutes in all. A report goes to notify.urls. One that begins with
    "Memory compact: ERROR" means that nothing was applied; details are in the log.
    """
    from gitledger import memory
    from gitledger.errors import LedgerError

    ledger = opened(ctx)
    rows: list[dict[str, Any]] = []
    status = 0
    try:
        _recovered(memory.recover(ledger))
        files = memory.present(ledger, file)
    except LedgerError as e:
        raise _failed(ledger, e) from e
    for loaded in files:
        try:
            rows.append(_compacted(ledger, loaded))
        except LedgerError as e:
            failed = _failed(ledger, e, loaded.target.name if len(files) > 1 else "")
            if len(files) == 1:
                raise failed from e
            warn(str(failed))
            status = failed.exit_code
    if as_json:
        put_json(rows)
    elif rows:
        put("\n\n".join(row["report"] for row in rows))
    return status


def _compacted(ledger: Ledger, loaded: Loaded) -> dict[str, Any]:
    from gitledger import memory, memorycheck, memoryprompt

    _, edits = _asked(ledger, loaded)
    size = len(loaded.data)
    row: dict[str, Any] = {
        "file": loaded.target.name,
        "id": None,
        "changes": 0,
        "bytes_before": size,
        "bytes_after": size,
    }
    if not edits:
        row["report"] = f"Memory compact: {loaded.target.name}: nothing to do"
    else:
        made = memory.apply(ledger, loaded, edits, "compact")
        _told(made.findings)
        after = len(memorycheck.edited(loaded.text, edits).data())
        report = memoryprompt.report(loaded.target.name, made.name, size, after, edits)
        row |= {"id": made.name, "changes": len({e.n for e in edits}), "bytes_after": after, "report": report}
    _notify(ledger, "Memory compact", row["report"])
    return row


def _failed(ledger: Ledger, error: LedgerError, name: str = "") -> LedgerError:
    """The error as the nightly run reports it, after it was reported and logged."""
    from gitledger import capture
    from gitledger.errors import LedgerError

    what = f"{name}: {error}" if name else str(error)
    capture.log(ledger.gitdir.common, f"memory compact: {what}")
    short = what if len(what) <= 1_500 else f"{what[:1_400]} … (all of it is in {ledger.desk.home.state}/log)"
    _notify(ledger, "Memory compact", f"Memory compact: ERROR — {short}")
    said = LedgerError(f"Memory compact: ERROR — {what}")
    said.exit_code = error.exit_code
    return said


def _notify(ledger: Ledger, title: str, text: str) -> None:
    from gitledger import notify
    from gitledger.errors import LedgerError

    try:
        faults = notify.send(ledger.desk.config.notify.urls, title, text)
    except LedgerError as e:
        faults = (str(e),)
    for fault in faults:
        warn(f"the report was not sent: {fault}")


# ── taking back, telling ─────────────────────────────────────────────────────────────────────
@command.command()
@click.argument("id")
@json_option
@click.pass_context
def undo(ctx: click.Context, id: str, as_json: bool) -> None:  # noqa: A002
    """Put back byte for byte what the change ID removed.

    Later changes elsewhere in the file stay. Where one touched the same lines, it is named and nothing is changed.
    """
    from gitledger import memoryundo

    ledger = opened(ctx)
    made = memoryundo.undo(ledger, id)
    _told(made.findings)
    if as_json:
        put_json(_made(made))
    else:
        back = sum(edit.put.count("\n") or 1 for edit in made.made.edits if edit.put)
        put(f"{made.name}: {counted(back, 'line')} put back into {made.made.name}\nCommit: {made.commit}")


@command.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="How many at most.")
@json_option
@click.pass_context
def log(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List changes to memory files, newest first. One of them whole: gitledger show ID."""
    from collections import deque

    from gitledger import layout, memory
    from gitledger.render.text import line

    ledger = opened(ctx)
    _recovered(memory.recover(ledger))
    view = ledger.view()
    newest = deque(view.walk(layout.MEMORY), maxlen=limit)
    rows = [
        {
            "id": view.name(key),
            "at": row["at"],
            "status": row["status"],
            "title": row["title"],
            "by": key.partition("@")[2],
        }
        for key, row in reversed(newest)
    ]
    if as_json:
        put_json(rows)
    elif rows:
        put(
            "\n".join(
                f"{r['id']}  {line(r['at'], 30)}  {line(r['status'], 10):<8} {line(r['title'], 100)}" for r in rows
            )
        )
    else:
        put("No memory file was changed yet. Begin with: gitledger memory audit")


# ── every night ──────────────────────────────────────────────────────────────────────────────
@command.command()
@click.option("--at", default="02:00", show_default=True, metavar="HH:MM", help="When, by this machine's clock.")
@click.option("--install", is_flag=True, help="Put it in: into the crontab, or with --systemd as a timer.")
@click.option("--remove", is_flag=True, help="Take out what --install put in, and nothing else.")
@click.option("--systemd", is_flag=True, help="A systemd timer of the user instead of a line of cron.")
@click.pass_context
def schedule(ctx: click.Context, at: str, install: bool, remove: bool, systemd: bool) -> None:
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


# ── what they share ──────────────────────────────────────────────────────────────────────────
def _one(ledger: Ledger, file: str) -> Loaded:
    from gitledger import memory
    from gitledger.errors import Usage

    found = memory.present(ledger, file)
    if len(found) > 1:
        names = ", ".join(loaded.target.name for loaded in found)
        raise Usage(f"there are several memory files, {names}; say which one by --file")
    return found[0]


def _of_digest(ledger: Ledger, sha256: str, file: str) -> Loaded:
    from gitledger import memory

    found = memory.present(ledger, file)
    return next((loaded for loaded in found if loaded.sha256 == sha256), found[0])


def _asked(ledger: Ledger, loaded: Loaded) -> tuple[bytes, tuple[Edit, ...]]:
    """What the proposer says of a file, and the edits that the validator made of it."""
    from gitledger import memory, memoryprompt, proposer
    from gitledger.errors import Missing, NotAllowed

    config = ledger.desk.config.proposer
    if not config.command:
        raise Missing(
            "no proposer is configured; name one by: gitledger config set proposer.command 'COMMAND WORDS', or give a "
            "change set to: gitledger memory propose --from FILE"
        )
    held = memory.companions(ledger, loaded.target)

    def prompt(errors: tuple[str, ...]) -> str:
        return memoryprompt.prompt(loaded.target.name, loaded.text, loaded.sha256, held, errors)

    def accept(data: bytes) -> tuple[bytes, tuple[Edit, ...]]:
        return data, memory.accepted(ledger, loaded, data)

    cwd = ledger.gitdir.top or ledger.gitdir.common
    got = proposer.propose(config.command, prompt, accept, cwd=cwd, deadline=_deadline(config), key="source_sha256")
    if got.value is None:
        raise NotAllowed(f"{got.why}; {loaded.target.name} is as it was")
    return got.value


def _deadline(config: Any) -> float:
    return float(getattr(config, "deadline", 600))


def _shown(ledger: Ledger, loaded: Loaded, data: bytes, edits: tuple[Edit, ...], as_json: bool) -> None:
    from gitledger import memory, memoryprompt

    if not edits:
        memory.let_go(ledger)
        put_json({"file": loaded.target.name, "changes": []}) if as_json else put(
            f"{loaded.target.name}: nothing to do."
        )
        return
    memory.hold(ledger, loaded, data)
    if as_json:
        put_json({"file": loaded.target.name, "source_sha256": loaded.sha256, "changes": _rows(loaded, edits)})
        return
    put(memoryprompt.proposal(loaded.target.name, loaded.text, edits))
    if sys.stdin.isatty() and sys.stdout.isatty():
        _decided(ledger, loaded, data)
    else:
        put("\nNothing was changed. Decide by: gitledger memory apply [--keep 2,5 | --delete 3 | --cancel]")


def _decided(ledger: Ledger, loaded: Loaded, data: bytes) -> None:
    from gitledger import memory, schema
    from gitledger.errors import BadData, Usage

    count = len(schema.read_memory_set(data).changes)

    while True:
        words = click.prompt("\napply, keep 2,5, delete 3, cancel", prompt_suffix=" > ").strip().lower()
        verb, _, rest = words.partition(" ")
        try:
            if verb == "cancel" and not rest:
                memory.let_go(ledger)
                put("Cancelled; nothing was changed.")
                return
            if (verb == "apply" and not rest) or (verb in ("keep", "delete") and rest.strip()):
                chosen = _chosen(count, rest if verb == "keep" else "", rest if verb == "delete" else "")
                _applied(ledger, loaded, memory.accepted(ledger, loaded, data, chosen), False)
                return
        except (Usage, BadData) as e:
            warn(str(e))
            continue
        warn("say apply, keep 2,5, delete 3 or cancel")


def _chosen(count: int, keep: str, delete: str) -> frozenset[int]:
    """The numbers of the changes that are to be applied, of so many."""
    from gitledger.errors import Usage

    said = _numbers(keep or delete)
    if strange := sorted(n for n in said if not 0 < n <= count):
        raise Usage(f"there is no change {strange[0]} in the proposal; it has 1 to {count}")
    there = frozenset(range(1, count + 1))
    chosen = there - said if keep else there & said if delete else there
    if not chosen:
        raise Usage("that leaves nothing to apply; drop the proposal by: gitledger memory apply --cancel")
    return chosen


def _numbers(text: str) -> set[int]:
    from gitledger.errors import Usage

    found: set[int] = set()
    for word in filter(None, re.split(r"[,\s]+", text)):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", word)
        if match is None or (match[2] and not 0 <= int(match[2]) - int(match[1]) < 1_000):
            raise Usage(f"{word!r} is no number of a change; say them like 2,5 or 2-4")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def _applied(ledger: Ledger, loaded: Loaded, edits: tuple[Edit, ...], as_json: bool) -> None:
    from gitledger import memory

    made = memory.apply(ledger, loaded, edits, "audit")
    memory.let_go(ledger)
    _told(made.findings)
    if as_json:
        put_json(_made(made))
        return
    backup = f"\nBackup: {made.backup}" if made.backup else ""
    done = f"{counted(len({edit.n for edit in edits}), 'change')} applied to {loaded.target.name}"
    put(f"{made.name}: {done}{backup}\nCommit: {made.commit}\nUndo by: gitledger memory undo {made.name}")


def _made(made: Applied) -> dict[str, Any]:
    return {
        "id": made.name,
        "file": made.made.name,
        "commit": made.commit,
        "undoes": made.made.undoes,
        "changes": _edits(made.before, made.made.edits),
        "backup": made.backup or None,
    }


def _rows(loaded: Loaded, edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    return _edits(loaded.text, edits)


def _edits(text: Any, edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    return [
        {
            "change": edit.n,
            "kind": edit.kind,
            "reason": edit.reason,
            "line": edit.first + 1,
            "lines": edit.lines,
            "removed": "".join(text.lines[edit.first : edit.first + edit.lines]),
            "put": edit.put,
            "held_at": edit.held_at or None,
        }
        for edit in edits
    ]


def _recovered(findings: list[Finding]) -> None:
    _told(tuple(findings))


def _told(findings: tuple[Finding, ...]) -> None:
    for finding in findings:
        warn(f"{finding.where}: {finding.what}; {finding.mend}")
