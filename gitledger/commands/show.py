"""gitledger show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import json_option, opened, put, put_json

if TYPE_CHECKING:
    from gitledger.ledger import Ledger
    from gitledger.model import Finding, Oid
    from gitledger.objects import Commit

SHOWN = 40
"""How many events, and how many paths, of one commit are printed for a person."""


@click.command()
@click.argument("id", metavar="ID|COMMIT")
@json_option
@click.pass_context
def command(ctx: click.Context, id: str, as_json: bool) -> None:  # noqa: A002
    """Show a record or a commit of the ledger.

    A record's document is shown as it stands now, with what no checkpoint holds yet. ID is T-0007, C-000123, S-…,
    project or config; COMMIT is the beginning of a ledger commit's id, as `gitledger log` prints it.
    """
    from gitledger import reading
    from gitledger.errors import NoSuchRecord
    from gitledger.render.text import line, visible

    ledger = opened(ctx)
    if found := reading.find_commit(ledger.desk.store, ledger.tip(), id):
        value = commit_value(ledger, *found)
        put_json(value) if as_json else put(commit_text(value))
        return
    view = ledger.view()
    key = reading.record_key(view, id, ledger.desk.writer.id)
    if key is None:
        raise NoSuchRecord(
            f"{line(id, 60)!r} names no record and no commit of this ledger; see: gitledger log, gitledger search TEXT"
        )
    papers = reading.papers(view, key)
    if not as_json:  # of a task's documents the first two: what it is, and where it stands
        put("\n".join(visible(data.decode("utf-8", "backslashreplace")) for _, data in papers[:2]).rstrip("\n"))
        return
    record = view.need(key)
    put_json(
        {
            "id": view.name(key),
            "key": key,
            "path": papers[0][0],
            "fields": {name: value for name, (value, _) in sorted(record.fields.items())},
            "items": {name: record.listed(name) for name in sorted(record.items)},
        }
    )


def commit_value(ledger: Ledger, oid: Oid, commit: Commit) -> dict[str, Any]:
    """A commit of the ledger as plain JSON: its message, and the events and files that it added."""
    from gitledger import codec, frame, reading
    from gitledger.errors import LedgerError

    said = reading.trailers(commit)
    get = ledger.desk.store.get
    faults: list[Finding] = []
    files: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    events = []
    for row in reading.changed(ledger.desk.store, commit, faults):
        files["removed" if row.new is None else "changed" if row.old else "added"].append(row.path)
        if row.new is None or row.old or not row.path.startswith("journal/"):
            continue
        for n, line in enumerate(reading.lines(get(row.new.oid).data), 1):
            try:
                event = codec.read_event(line, f"{row.path} line {n}")
            except LedgerError:
                continue  # fsck names it
            events.append({"seq": event.seq, "at": event.at, "type": event.type, "task": event.task})
    return {
        "commit": oid,
        "parents": list(commit.parents),
        "at": frame.at(reading.seconds(commit) * 1000),
        "kind": said.get("Ledger-Kind", ""),
        "writer": said.get("Ledger-Writer", ""),
        "subject": commit.subject,
        "message": commit.message,
        "signed": len(commit.signatures) == 1,
        "events": sorted(events, key=lambda event: event["seq"]),
        **files,
    }


def commit_text(value: dict[str, Any]) -> str:
    """A commit for a person: its message, then what it added."""
    from gitledger.render.text import line, visible

    rows = [
        f"commit {value['commit']}",
        *(f"parent {parent}" for parent in value["parents"]),
        f"made   {value['at']}",
        "",
    ]
    rows += [f"    {row}".rstrip() for row in visible(value["message"]).rstrip("\n").split("\n")]
    rows += ["", f"Events: {len(value['events'])}"]
    rows += [
        f"  {e['seq']:>6}  {line(e['at'], 24)}  {line(e['type'], 30):<20} {line(e['task'] or '', 40)}".rstrip()
        for e in value["events"][:SHOWN]
    ]
    if len(value["events"]) > SHOWN:
        rows.append(f"  … and {len(value['events']) - SHOWN:,} more: gitledger show {value['commit'][:12]} --json")
    files = [
        (mark, path) for mark, name in (("+", "added"), ("~", "changed"), ("-", "removed")) for path in value[name]
    ]
    rows += [
        "",
        f"Files: {len(value['added'])} added, {len(value['changed'])} changed, {len(value['removed'])} removed",
    ]
    rows += [f"  {mark} {line(path)}" for mark, path in files[:SHOWN]]
    if len(files) > SHOWN:
        rows.append(f"  … and {len(files) - SHOWN:,} more: gitledger show {value['commit'][:12]} --json")
    return "\n".join(rows)
