"""What is about to be pushed, looked through by the second scanner: what was said before it was switched on, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitledger import codec, layout, objects, reading
from gitledger.errors import NotAllowed
from gitledger.model import Oid
from gitledger.redact import unmarked
from gitledger.transaction import Desk, texts_of

LOT = 4 << 20
"""Characters that one run of the scanner is given; each run has its own deadline."""


def scan(desk: Desk, commits: Iterable[Oid]) -> None:
    """Raise NotAllowed where the scanner knows a secret in what this clone's writer said in `commits`.

    Unscanned where it cannot look; nothing where none is switched on. What others said is theirs to look through, since
    only they can take it out again.
    """
    name = desk.config.secrets.scanner
    if name == "none":
        return
    from gitledger import scanner  # what it needs is not on the way of those who have none

    lot: list[tuple[Oid, str, str]] = []
    size = 0
    for row in _said(desk, commits):
        lot.append(row)
        size += len(row[2])
        if size > LOT:
            _refuse(name, lot, scanner.secrets(name, (text for _, _, text in lot)))
            lot, size = [], 0
    if lot:
        _refuse(name, lot, scanner.secrets(name, (text for _, _, text in lot)))


def _said(desk: Desk, commits: Iterable[Oid]) -> Iterator[tuple[Oid, str, str]]:
    """(commit, event, text) of all that the writer said; the event is "" for the commit's own message."""
    get, me = desk.store.get, desk.writer.id
    for oid in commits:
        commit = objects.parse_commit(get(oid).data)
        told = reading.trailers(commit)
        if told.get("Ledger-Writer") != me:
            continue
        yield oid, "", unmarked(commit.message)
        if told.get("Ledger-Kind") == "merge":  # it adds no event
            continue
        n, part = int(told["Ledger-Seq"]) - 1, 0
        while (data := objects.read(get, oid, path := layout.segment(me, n, part))) is not None:
            for line in reading.lines(data):
                event = codec.read_event(line, path)
                yield from ((oid, event.id, unmarked(text)) for text in texts_of(event))
            part += 1


def _refuse(name: str, lot: list[tuple[Oid, str, str]], found: tuple[tuple[str, str], ...]) -> None:
    places = dict.fromkeys((oid, event, rule) for value, rule in found for oid, event, text in lot if value in text)
    if not places:
        return
    oid, event, rule = min(places, key=lambda place: not place[1])  # an event rather than what quotes it
    where = f"event {event} in commit {oid[:12]}" if event else f"the message of commit {oid[:12]}"
    more = f" (and {len(places) - 1} more places)" if len(places) > 1 else ""
    raise NotAllowed(
        f"{where} holds what {name} takes for a secret, by its rule {rule.removeprefix(name + '-')}{more}; nothing was "
        "pushed: take it out with gitledger purge --secret-from FILE, see docs/secrets.md"
    )
