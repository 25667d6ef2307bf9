"""How far a long thing is: one line on a terminal's stderr, from the first second on, and nothing anywhere else."""

from __future__ import annotations

import sys
import time

from gitledger.render.text import line

QUIET = 1.0
"""Seconds before a person at a terminal is told how far it is."""
_AGAIN = 0.1  # seconds between two words, but where the phase has changed


class Progress:
    """One line that is written over, and taken away at the end."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()
        self._next = time.monotonic() + QUIET
        self._shown = False
        self._phase = ""

    def heard(self, said: str) -> None:
        """What git says of its own progress."""
        rows = [row.strip() for row in said.replace("\r", "\n").split("\n") if row.strip()]
        if rows:
            self._say("git", rows[-1])

    def tell(self, phase: str, done: int, total: int) -> None:
        """How far verification is."""
        counted = f"{done:,} of {total:,} commits checked"
        self._say(phase, counted if phase == "commits" else "comparing the tip with its journals")

    def _say(self, phase: str, text: str) -> None:
        now = time.monotonic()
        if not self.on or (now < self._next and not (self._shown and phase != self._phase)):
            return
        self._next, self._shown, self._phase = now + _AGAIN, True, phase
        sys.stderr.write(f"\r\x1b[K{line(text, 100)}")
        sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
