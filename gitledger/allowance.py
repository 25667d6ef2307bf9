"""The way out when no checkpoint can be made: one compaction let through by a person, journalled, and shown.

The permission is a file of its own, because the ledger or its log may be what is broken.
"""

from __future__ import annotations

import json
import os

from gitledger import capture, discover, gitdir, layout, pins
from gitledger.errors import CannotWrite, LedgerError
from gitledger.gitdir import GitDir
from gitledger.model import Change, Draft
from gitledger.tasks import Hand
from gitledger.view import View


def grant(place: GitDir, name: str, reason: str) -> None:
    """Allow the next compaction of ledger `name` without a checkpoint, once."""
    try:
        pins.write_private(_path(place, name), json.dumps({"reason": reason}).encode() + b"\n")
    except CannotWrite as e:
        # The disk may be full, which may be what blocks the checkpoint; an empty file still fits, and allows as much.
        try:
            os.close(gitdir.open_own(_path(place, name), os.O_WRONLY | os.O_CREAT))
        except OSError:
            raise e from None
    _say(place, name, "compaction.allowed", reason)


def use(place: GitDir, name: str, what_failed: str) -> bool:
    """Take the permission where there is one: True lets this compaction through, and it is gone."""
    try:
        reason = str(json.loads(gitdir.read_own(_path(place, name)))["reason"])
    except (FileNotFoundError, CannotWrite):
        return False
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        reason = "(unreadable)"
    try:
        os.unlink(_path(place, name))
    except OSError:
        return False  # what cannot be taken back could be used twice
    _say(place, name, "checkpoint.missing", reason, failed=what_failed)
    return True


def _say(place: GitDir, name: str, kind: str, reason: str, failed: str = "") -> None:
    def build(view: View, hand: Hand) -> tuple[None, Draft]:
        missing = {"at": hand.mint.at(), "reason": reason, "failed": failed}
        changes = {layout.PROJECT: Change({"missing": missing})} if kind == "checkpoint.missing" else {}
        return None, hand.draft(kind, changes, reason=reason, failed=failed)

    try:
        discover.open(place.top or place.common, ledger=name).record(build)
    except (LedgerError, OSError) as e:
        # Ledger, log or configuration may be what is broken; the person's way out must not depend on them.
        capture.log(place.common, f"{kind} ({reason}) could not be journalled: {e}")


def _path(place: GitDir, name: str) -> str:
    return f"{gitdir.state(place.common)}/allow-{layout.ledger_name(name)}.json"
