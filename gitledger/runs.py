"""`<common>/gitledger/runs`: which commands this clone ran as evidence. Local, and the only word on what may run again.

A ledger travels, and whoever copies a writer's id can write anything in that writer's name: so a command is run again
only where it stands here as it is in the record, put here by this clone when a person or an agent named it on its
command line. It stands here as a digest, so that a secret that is taken out of the ledger later is not kept here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence

from gitledger import gitdir, rewrites

NAME = "runs"
READ = 4 << 20
"""Bytes of it that are read, its end; what stood before is only not run again."""


def digest(at: str, command: str, covers: Sequence[str] = ()) -> str:
    """What stands for one run, whichever task it comes to belong to: when it was given, the command and its paths."""
    said = json.dumps([at, command, list(covers)], ensure_ascii=True)
    return hashlib.sha256(said.encode()).hexdigest()


def add(common: str, ran: str) -> None:
    """Keep a run. Raises OSError, or CannotWrite where something else than this user's plain file stands there."""
    rewrites.append(common, NAME, ran.encode() + b"\n")


def load(common: str) -> frozenset[str]:
    """The digests of the runs of this clone; CannotWrite where something else than this user's file stands there."""
    try:
        fd = gitdir.open_own(os.path.join(gitdir.state(common), NAME))
    except OSError:
        return frozenset()
    with open(fd, "rb") as file:
        file.seek(max(0, os.fstat(fd).st_size - READ))
        return frozenset(file.read().decode("ascii", "replace").split("\n"))
