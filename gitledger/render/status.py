"""What a person sees in a terminal: the pointer to a checkpoint, and where the work stands. Pure."""

from __future__ import annotations

from gitledger.render.text import line


def pointer(name: str, task: str | None, path: str, digest: str, next_action: str) -> str:
    """The five lines that name a checkpoint: what a person, a compactor or a script needs to find it again.

    `digest` is the commit with its algorithm, `sha1:9f3c…`. A next action of many lines is on one here.
    """
    rows = (
        ("Checkpoint", name),
        ("Task", task or "none"),
        ("Path", path),
        ("Digest", digest),
        ("Next action", line(next_action, 2000) or "none recorded"),
    )
    return "".join(f"{word}: {line(value)}\n" for word, value in rows)
