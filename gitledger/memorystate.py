"""`memory/<ledger>/` in the clone's own folder: the changes of memory files that are under way. Local.

The names alone tell of them, so that whoever only asks reads no file, no Markdown and no schema.
"""

from __future__ import annotations

import os

from gitledger.model import Finding

PROPOSAL = "proposal.json"
"""The proposal that waits for a person, among what is kept."""


def under_way(folder: str) -> list[str]:
    """The files that tell of a change each that was begun and not ended, oldest first; none where the folder is not."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(".json") and name != PROPOSAL]


def standing(state: str, name: str) -> list[Finding]:
    """What a person should look at: changes of ledger `name` in a clone's folder `state` that nobody ended."""
    count = len(under_way(os.path.join(state, "memory", name)))
    if not count:
        return []
    changes = "a change of a memory file was" if count == 1 else f"{count:,} changes of memory files were"
    what = f"{changes} cut off, or under way just now; the ledger may not tell of it yet"
    return [Finding("memory", "memory files", what, "end it, and see what became of it: gitledger memory log")]
