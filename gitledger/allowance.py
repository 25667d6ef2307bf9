"""The way out when no checkpoint can be made: one compaction let through by a person, journalled, and shown.

The permission is a file of its own, because the ledger or its log may be what is broken.
"""

from __future__ import annotations

import json
import os

from gitledger import layout, pins
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft
from gitledger.tasks import Hand
from gitledger.view import View


def grant(ledger: Ledger, reason: str) -> None:
    """Allow the next compaction without a checkpoint, once."""
    value = {"at": ledger.desk.mint.at(), "reason": reason}
    pins.write_private(_path(ledger), json.dumps(value).encode() + b"\n")
    _say(ledger, "compaction.allowed", reason)


def use(ledger: Ledger, what_failed: str) -> bool:
    """Take the permission where there is one: True lets this compaction through, and it is gone."""
    try:
        with open(_path(ledger), encoding="utf-8") as f:
            reason = str(json.load(f).get("reason", ""))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        reason = "(unreadable)"
    try:
        os.unlink(_path(ledger))
    except OSError:
        return False  # what cannot be taken back could be used twice
    _say(ledger, "checkpoint.missing", reason, failed=what_failed)
    return True


def _say(ledger: Ledger, kind: str, reason: str, failed: str = "") -> None:
    def build(view: View, hand: Hand) -> tuple[None, Draft]:
        missing = {"at": hand.mint.at(), "reason": reason, "failed": failed}
        changes = {layout.PROJECT: Change({"missing": missing})} if kind == "checkpoint.missing" else {}
        return None, hand.draft(kind, changes, reason=reason, failed=failed)

    try:
        ledger.record(build)
    except (LedgerError, OSError) as e:
        # The log may be what is broken; the person's way out must not depend on it.
        from gitledger import capture

        capture.log(ledger.gitdir.common, f"{kind} could not be journalled: {e}")


def _path(ledger: Ledger) -> str:
    return f"{ledger.desk.home.state}/allow-{ledger.desk.home.name}.json"
