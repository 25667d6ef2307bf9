"""What happens in a replayed project, session by session; what is worked on in each is left to chance."""

from __future__ import annotations

from dataclasses import dataclass

from tests.replay_agents import SPOKEN


@dataclass(frozen=True, slots=True)
class Chapter:
    """One session: in which clone, what happens in git `before` it, and what `befalls` it.

    It is killed in the middle (`crash`), or its last hook is (`killed`); or its context is compacted: `once`, announced
    `twice`, or `refused` for a key that is gone and then let through once.
    """

    clone: str = "ada"
    before: str = ""
    befalls: str = ""


LONG: tuple[Chapter, ...] = (
    Chapter(),
    Chapter(befalls="once"),
    Chapter(before="amend"),
    Chapter(clone="ben"),
    Chapter(befalls="crash"),
    Chapter(),
    Chapter(before="switch card"),
    Chapter(befalls="twice"),
    Chapter(before="reset"),
    Chapter(clone="ben"),
    Chapter(before="switch main", befalls="refused"),
    Chapter(),
    Chapter(before="switch card, rebase main"),
    Chapter(befalls="killed"),
    Chapter(before="switch main, merge card"),
    Chapter(clone="ben", befalls="crash"),
    Chapter(clone="ben"),
    Chapter(),
    Chapter(before="switch sale"),
    Chapter(),
    Chapter(before="switch main"),
    Chapter(before="amend"),
    Chapter(befalls="once"),
    Chapter(before="switch sale, rebase main"),
    Chapter(before="switch main, forward sale"),
    Chapter(clone="ben"),
    Chapter(befalls="crash"),
    Chapter(befalls="twice"),
    Chapter(clone="ben", befalls="once"),
    Chapter(),
)
SHORT: tuple[Chapter, ...] = (
    Chapter(befalls="twice"),
    Chapter(before="amend", befalls="crash"),
    Chapter(before="switch card", befalls="refused"),
    Chapter(before="switch main", befalls="killed"),
    Chapter(before="switch card, rebase main"),
    Chapter(before="switch main, merge card"),
)
COMPACTS = {"refused": ("claude-code", "codex"), "twice": ("claude-code", "codex"), "once": tuple(SPOKEN)}
"""Agents whose compaction is told as it is here: those that cannot be refused have a checkpoint at each turn's end."""
