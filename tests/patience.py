"""Waiting for other processes: nothing here fails because a loaded machine gave them little of its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
LONGEST = 120.0
"""Seconds after which what was waited for is not going to come."""


def until(asked: Callable[[], T]) -> T:
    """The first answer that is true, or the last one where none is."""
    end = time.monotonic() + LONGEST
    while True:
        answer = asked()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.01)


def ended(pid: int) -> bool:
    """True once a process has ended; whoever started it may still have to look at it."""

    def gone() -> bool:
        try:
            os.kill(pid, 0)
            return sys.platform == "linux" and Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return until(gone)


def agent_ended() -> None:
    """GnuPG's agent of this home, told to end, has ended: on its way out it still answers, in words of its own."""
    asked = ["gpg-connect-agent", "--no-autostart", "getinfo pid", "/bye"]
    said = subprocess.run(asked, check=False, capture_output=True, text=True).stdout
    subprocess.run(["gpgconf", "--kill", "all"], check=True, capture_output=True)
    words = said.split()
    assert words[:1] != ["D"] or ended(int(words[1]))


def begun(attempt: Callable[[float], T], sign: Callable[[T], object], seconds: float) -> T:
    """What an attempt with a deadline gave, the first that lasted until there was a sign of what it had started.

    Each begins anew, with twice the seconds of the one before.
    """
    while True:
        made = attempt(seconds)
        if sign(made):
            return made
        assert seconds < LONGEST, "what was started never got so far"
        seconds *= 2
