"""gitledger memory."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import counted, json_option, memory_nightly, named, opened, put, put_json, warn
from gitledger.commands.get import put_bytes
from gitledger.commands.memory_asking import asked, file_option, tell

if TYPE_CHECKING:
    from gitledger.ledger import Ledger
    from gitledger.memory import Applied, Loaded
    from gitledger.memorycheck import Edit


@click.group()
def command() -> None:
    """Have stale lines of agents' memory files proposed, checked, removed and brought back.

    A model or a person proposes, the validator decides what is allowed, and the file is touched only by apply and
    compact. Files are named by memory.files, by default memory/MEMORY.md.
    """


command.add_command(memory_nightly.compact)
command.add_command(memory_nightly.scheduled)


# ── proposing ────────────────────────────────────────────────────────────────────────────────
@command.command()
@file_option
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
    tell(memory.recover(ledger))
    loaded = _one(ledger, file)
    if only_prompt:
        held = memory.companions(ledger, loaded.target)
        asks = memoryprompt.prompt(loaded.target.name, loaded.text, loaded.sha256, held)
        put_bytes(asks.encode())  # as it is: from it blocks are copied character for character
        return
    data, edits = asked(ledger, loaded)
    _shown(ledger, loaded, data, edits, as_json)


@command.command()
@click.option("--from", "source", required=True, metavar="FILE|-", help="The change set; - is stdin.")
@file_option
@json_option
@click.pass_context
def propose(ctx: click.Context, source: str, file: str, as_json: bool) -> None:
    """Check a change set made by hand or by a script, and show it as audit does.

    Its schema is printed by `gitledger schema memory`. Which of several files it is for is told by its source_sha256.
    """
    from gitledger import memory, schema

    ledger = opened(ctx)
    tell(memory.recover(ledger))
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
    from gitledger import memory, memoryheld, schema
    from gitledger.errors import Usage

    if bool(keep) + bool(delete) + cancel > 1:
        raise Usage("say one of --keep, --delete and --cancel")
    ledger = opened(ctx)
    tell(memory.recover(ledger))
    if cancel:
        memoryheld.held(ledger)
        memoryheld.let_go(ledger)
        put_json(None) if as_json else put("Cancelled; nothing was changed.")
        return
    loaded, data = memoryheld.held(ledger)
    chosen = _chosen(len(schema.read_memory_set(data).changes), keep, delete)
    _applied(ledger, loaded, memory.accepted(ledger, loaded, data, chosen), as_json)


# ── taking back, telling ─────────────────────────────────────────────────────────────────────
@command.command()
@click.argument("id")
@json_option
@click.pass_context
def undo(ctx: click.Context, id: str, as_json: bool) -> None:  # noqa: A002
    """Put back byte for byte what the change ID removed.

    Later changes elsewhere in the file stay. Where one touched the same lines, it is named and nothing is changed.
    """
    from gitledger import memory, memoryundo

    ledger = opened(ctx)
    tell(memory.recover(ledger))
    made = memoryundo.undo(ledger, id)
    tell(made.findings)
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
    tell(memory.recover(ledger))
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
    from gitledger import memory, memorycheck
    from gitledger.schema import BadChangeSet

    found = memory.present(ledger, file)
    meant = [loaded for loaded in found if loaded.sha256 == sha256]
    if not meant and len(found) > 1:
        names = ", ".join(loaded.target.name for loaded in found)
        what = f"source_sha256: is that of no memory file as it is now ({names}); read the file again and propose anew"
        raise BadChangeSet((what,), memorycheck.SCHEMA)
    return (meant or found)[0]


def _shown(ledger: Ledger, loaded: Loaded, data: bytes, edits: tuple[Edit, ...], as_json: bool) -> None:
    from gitledger import memoryheld, memoryprompt

    if not edits:
        memoryheld.let_go(ledger)
        put_json({"file": loaded.target.name, "changes": []}) if as_json else put(
            f"{loaded.target.name}: nothing to do."
        )
        return
    memoryheld.hold(ledger, loaded, data)
    if as_json:
        put_json({"file": loaded.target.name, "source_sha256": loaded.sha256, "changes": _rows(loaded, edits)})
        return
    put(memoryprompt.proposal(loaded.target.name, loaded.text, edits))
    if sys.stdin.isatty() and sys.stdout.isatty():
        _decided(ledger, loaded, data)
    else:
        put("\nNothing was changed. Decide by: gitledger memory apply [--keep 2,5 | --delete 3 | --cancel]")


def _decided(ledger: Ledger, loaded: Loaded, data: bytes) -> None:
    from gitledger import memory, memoryheld, schema
    from gitledger.errors import BadData, Usage

    count = len(schema.read_memory_set(data).changes)

    while True:
        try:
            words = click.prompt("\napply, keep 2,5, delete 3, cancel", prompt_suffix=" > ").strip().lower()
        except click.Abort:
            put(
                "\nNothing was changed. The proposal waits: gitledger memory apply [--keep 2,5 | --delete 3 | --cancel]"
            )
            raise
        verb, _, rest = words.partition(" ")
        try:
            if verb == "cancel" and not rest:
                memoryheld.let_go(ledger)
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
    from gitledger import memory, memoryheld

    made = memory.apply(ledger, loaded, edits, "audit")
    memoryheld.let_go(ledger)
    tell(made.findings)
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
