"""A proposal for a memory file that waits until a person has decided. One for each ledger: the next takes its place."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from gitledger import gitdir, memoryfile, pins
from gitledger.errors import BadData, Missing
from gitledger.ledger import Ledger
from gitledger.memory import Loaded, load, targets
from gitledger.memorykept import folder
from gitledger.memorystate import PROPOSAL
from gitledger.model import Json


def hold(ledger: Ledger, loaded: Loaded, data: bytes) -> None:
    """Keep a proposal until a person has decided; the one before goes."""
    value = {"format": 1, "name": loaded.target.name, "document": data.decode("utf-8", "replace")}
    pins.write_private(os.path.join(folder(ledger), PROPOSAL), json.dumps(value).encode() + b"\n")


def held(ledger: Ledger) -> tuple[Loaded, bytes]:
    """The proposal that waits, with the file as it is now; Missing where none does."""
    try:
        value: Mapping[str, Json] = json.loads(gitdir.read_own(os.path.join(folder(ledger), PROPOSAL)))
        name, data = str(value["name"]), str(value["document"]).encode()
    except FileNotFoundError as e:
        raise Missing("no proposal waits here; make one with: gitledger memory audit") from e
    except (OSError, ValueError, LookupError, TypeError) as e:
        raise BadData(
            f"the proposal that waits cannot be read ({e}); make a new one with: gitledger memory audit"
        ) from e
    found = [loaded for target in targets(ledger) if target.name == name and (loaded := load(target)) is not None]
    if not found:
        raise Missing(
            f"{name}, which the waiting proposal is for, is not there; make a new one with: gitledger memory audit"
        )
    return found[0], data


def let_go(ledger: Ledger) -> None:
    """Drop the proposal that waits."""
    memoryfile.remove(os.path.join(folder(ledger), PROPOSAL))
