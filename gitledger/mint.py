"""Time, randomness and identity as arguments: what makes an event's id and its time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from gitledger import frame
from gitledger.values import dataclass


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Mint:
    """Where ids and times come from. `now_ms` is milliseconds since 1970; `rand(n)` gives n random bytes."""

    now_ms: Callable[[], int] = _now_ms
    rand: Callable[[int], bytes] = os.urandom

    def at(self) -> str:
        """The present time as the journal writes it."""
        return frame.at(self.now_ms())

    def id(self) -> str:
        """A new UUIDv7."""
        return frame.uuid7(self.now_ms(), self.rand(10))

    def short(self) -> str:
        """A new writer id: six characters that are hard to confuse, 30 bits."""
        alphabet = "abcdefghjkmnpqrstuvwxyz23456789x"  # 32 of them: no i, l, o, 0, 1
        return "".join(alphabet[b & 31] for b in self.rand(6))
