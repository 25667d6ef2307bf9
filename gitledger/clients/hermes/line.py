"""Work that is done behind the agent's back, one piece after the other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]


class Line:
    """Jobs in the order in which they came, by a thread that lives while there are any and dies with the process.

    What a job raises goes to `failed`.
    """

    def __init__(self, name: str, failed: Callable[[Exception], None]) -> None:
        self._name = name
        self._failed = failed
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._busy = False

    def add(self, job: Job) -> None:
        """Have a job done behind those that wait; returns at once."""
        with self._changed:
            self._jobs.append(job)
            if not self._busy:
                self._busy = True
                threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def idle(self) -> bool:
        """True where nothing waits and nothing is being done."""
        with self._changed:
            return not self._busy

    def wait(self, seconds: float) -> bool:
        """Wait until that is so, at most so many seconds; whether it is."""
        until = time.monotonic() + seconds
        with self._changed:
            while self._busy and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            return not self._busy

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._jobs:
                    self._busy = False
                    self._changed.notify_all()
                    return
                job = self._jobs.popleft()
            try:
                job()
            except Exception as e:
                self._failed(e)
