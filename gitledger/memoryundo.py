"""A change to a memory file taken back: the bytes that went, where they were, whatever was changed elsewhere since.

The lines of the file behind the change are followed through every state of it that is known, up to now. Where a later
change touched what this one left, it is named, and nothing is put back.
"""

from __future__ import annotations

from gitledger import authority, gitdir, layout, memory, memoryfile, memorykept, memoryrecord
from gitledger.blocks import Lines, Span, end_of, split
from gitledger.errors import BadData, Missing, NotAllowed
from gitledger.ledger import Ledger
from gitledger.memory import Applied, Loaded
from gitledger.memorycheck import Edit, edited
from gitledger.memoryrecord import Told
from gitledger.model import Key
from gitledger.values import dataclass
from gitledger.view import View


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one edit left: the lines that it put, or the place where lines were, in the file behind the change."""

    edit: Edit
    span: Span


def undo(ledger: Ledger, text: str) -> Applied:
    """Take the change back that `text` names, and commit that; raise a LedgerError with the file as it is."""
    memory.recover(ledger)
    view = ledger.view()
    key = view.resolve(text, layout.MEMORY, ledger.desk.writer.id)
    told = memoryrecord.told(view, key)
    if told.status == "undone":
        by = view.name(told.undone_by) if told.undone_by else "another change"
        raise NotAllowed(f"{told.name} is undone already, by {by}; undo that one to have it back")
    standing = authority.assess(ledger.desk, ledger.tip()).of(told.by)
    if standing != "verified":
        raise NotAllowed(
            f"{told.name} was written by {told.by} ({standing}), whose text is put into no file here; "
            "see: gitledger trust list"
        )
    loaded = _file(ledger, told)
    before = _before(ledger, told)
    after = edited(before, told.edits)
    if told.result and memoryfile.digest(after.data()) != told.result:
        raise BadData(f"{told.name} does not say what it did; run: gitledger fsck")
    pieces = _pieces(told, after)
    now = _mapped(pieces, after, loaded.text)
    if now is None:
        raise NotAllowed(f"{told.name} cannot be undone: {_in_the_way(ledger, view, told, pieces, after, loaded)}")
    if (row := _there_again(before, pieces, after, loaded.text)) is not None:
        raise NotAllowed(
            f"{told.name} cannot be undone: lines that it took away stand in the file again, at line {row + 1}; "
            "take them out there, or put the others back by hand"
        )
    back = tuple(
        Edit(n, "undo", f"{told.name} undone: {piece.edit.reason}"[:200], low, high - low, put)
        for n, (piece, (low, high)) in enumerate(zip(pieces, now, strict=True), 1)
        for put in (_fitted(_gone(before, piece.edit), loaded.text, low, high),)
    )
    return memory.apply(ledger, loaded, back, "undo", key)


def _gone(before: Lines, edit: Edit) -> str:
    return "".join(before.lines[edit.first : edit.first + edit.lines])


def _fitted(put: str, text: Lines, low: int, high: int) -> str:
    """Lines that go between two others, with the line ends that keep them apart: a last line may have had none."""
    if put and high < len(text.lines) and put[-1] not in "\r\n":
        put += end_of(text.lines)
    if put and low > 0 and text.lines[low - 1][-1] not in "\r\n":
        put = end_of(text.lines) + put
    return put


def _file(ledger: Ledger, told: Told) -> Loaded:
    for target in memory.targets(ledger):
        if told.path in (target.name, memoryrecord.shown(target.name)):
            loaded = memory.load(target)
            if loaded is None:
                raise Missing(f"{target.path} is not there, so nothing can be put back into it")
            return loaded
    if any(told.path.startswith(f"{memoryrecord.shown(name)}/") for name in ledger.desk.config.memory.files):
        raise Missing(f"{told.path} is not there, so nothing can be put back into it")
    raise Missing(
        f"{told.name} is of {told.path}, which is no memory file here; "
        "name it by: gitledger config set memory.files PATH"
    )


def _before(ledger: Ledger, told: Told) -> Lines:
    if told.before is not None:
        return told.before
    try:
        return split(gitdir.read_own(memorykept.kept_path(ledger, told.key)), told.path)
    except FileNotFoundError as e:
        why = f"its file held a secret, so its bytes are where {told.by} made it, if they were not purged"
        if told.exact:
            why = f"its file is cut in the ledger, and whole where {told.by} made it"
        raise Missing(f"{told.name} cannot be undone here: {why}; see what went by: gitledger show {told.name}") from e


def _pieces(told: Told, after: Lines) -> list[_Piece]:
    """Where each edit's lines are in the file behind the change."""
    found = []
    shift = 0
    for edit in told.edits:
        rows = len(split(edit.put.encode(), "").lines)
        at = edit.first + shift
        found.append(_Piece(edit, (at, at + rows)))
        shift += rows - edit.lines
    return found


def _mapped(pieces: list[_Piece], old: Lines, new: Lines) -> list[Span] | None:
    """Where these pieces are in another state of the file; None where one of them was touched."""
    if old.mark != new.mark:
        return None
    found = []
    hunks = _hunks(old.lines, new.lines)
    for piece in pieces:
        low, high = piece.span
        shift = 0
        for i1, i2, j1, j2 in hunks:
            if low == high:
                if i1 < low < i2:
                    return None
                if i2 <= low and not (i1 == i2 == low):
                    shift += (j2 - j1) - (i2 - i1)
            else:
                if i1 < high and i2 > low:
                    return None
                if i2 <= low:
                    shift += (j2 - j1) - (i2 - i1)
        found.append((low + shift, high + shift))
    return found


def _there_again(before: Lines, pieces: list[_Piece], old: Lines, new: Lines) -> int | None:
    """Where in `new` the lines that a piece lacks stand again, put beside it since `old`; None where none do."""
    hunks = _hunks(old.lines, new.lines)
    for piece in pieces:
        gone = before.lines[piece.edit.first : piece.edit.first + piece.edit.lines]
        low, high = piece.span
        for i1, i2, j1, j2 in hunks:
            # Where what came is like what stands beside it, its place in the difference is off by as much.
            if i1 > high + len(gone) or i2 < low - len(gone) or j1 == j2:
                continue
            for row in range(max(j1 - len(gone) + 1, 0), j2):
                if gone and new.lines[row : row + len(gone)] == gone and any(line.strip() for line in gone):
                    return row
    return None


def _hunks(old: tuple[str, ...], new: tuple[str, ...]) -> list[tuple[int, int, int, int]]:
    """What changed between two lists of lines, as places in the first and in the second, in order."""
    from difflib import SequenceMatcher

    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return [(i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in codes if tag != "equal"]


def _in_the_way(ledger: Ledger, view: View, told: Told, pieces: list[_Piece], after: Lines, loaded: Loaded) -> str:
    """Which later change stands in the way: one of ours by its name, or an edit that somebody else made."""
    state, here = after, pieces
    since = f"since {told.name}"
    for key, _ in view.walk(layout.MEMORY):
        later = _later(view, key, told)
        if later is None:
            continue
        try:
            before = _before(ledger, later)
        except (Missing, BadData):
            continue
        behind = edited(before, later.edits)
        spans = _mapped(here, state, before)
        if spans is None:
            return _edited_by_hand(here, state, before, f"{since} and before {later.name}")
        here = [_Piece(piece.edit, span) for piece, span in zip(here, spans, strict=True)]
        spans = _mapped(here, before, behind)
        if spans is None:
            return f"{later.name} changed the same lines later ({later.at}); undo that one first, if it is not to stay"
        here = [_Piece(piece.edit, span) for piece, span in zip(here, spans, strict=True)]
        state, since = behind, f"since {later.name}"
    return _edited_by_hand(here, state, loaded.text, since)


def _later(view: View, key: Key, told: Told) -> Told | None:
    """The change of `key`, if it is a later one of the same file."""
    record = view.record(key)
    if key == told.key or record is None or record.text("path") != told.path or record.text("at") < told.at:
        return None
    try:
        return memoryrecord.told(view, key)
    except BadData:
        return None


def _edited_by_hand(pieces: list[_Piece], old: Lines, new: Lines, since: str) -> str:
    for piece in pieces:
        if _mapped([piece], old, new) is None:
            place = f"line {piece.edit.first + 1} of the file as it was then"
            return f"the lines at {place} were changed {since} by something else than gitledger; put them back by hand"
    return f"the file was changed {since} by something else than gitledger; put the lines back by hand"
