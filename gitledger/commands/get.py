"""gitledger get."""

from __future__ import annotations

import click

from gitledger.commands import opened, send


@click.command()
@click.argument("id", metavar="ID|PATH")
@click.pass_context
def command(ctx: click.Context, id: str) -> None:  # noqa: A002
    """Print a record's document or a file of the ledger.

    ID is a record, and its document is made as it stands now, with what no checkpoint holds yet; PATH is a file at the
    ledger's tip, such as journal/k3f9c2/00/00/2a.jsonl. Its exact bytes go to a pipe or a file; on a terminal unseen
    characters are written out.
    """
    from gitledger import reading

    ledger = opened(ctx)
    if "/" not in id:
        view = ledger.view()
        if key := reading.record_key(view, id, ledger.desk.writer.id):
            put_bytes(reading.document(view, key)[1])
            return
    put_bytes(reading.file(ledger.desk.store.get, ledger.tip(), id))


def put_bytes(data: bytes) -> None:
    """Print bytes as they are, except on a terminal: there unseen characters are written out."""
    import sys

    if sys.stdout.buffer.isatty():
        from gitledger.render.text import visible

        data = visible(data.decode("utf-8", "backslashreplace")).encode()
    send(data)  # not flushed: a journal has many lines
