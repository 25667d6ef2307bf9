"""gitledger within another program's process: what an agent's plugin, an SDK or a client of your own calls.

Only the standard library is imported here and by what this imports, so that it runs beside whatever else is installed
there. An event that is only logged is one synced line, written in this process; everything else is asked of the
program, as a child, by its own Python: it is found on PATH, or where the clone says that it is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

from gitledger import capture, gitdir, program, shims, wal
from gitledger.gitdir import GitDir

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitledger.model import Json

MISSING = 127
"""The status of a program that is nowhere to be found, as a shell has it."""
LATE = 124
"""The status of a program that did not end in time, and was ended."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What the program said. `error` is one line for a person, "" where all went well."""

    status: int
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One clone's ledger, as client `client` uses it from another program. Holds no file open and keeps no state."""

    client: str
    found: GitDir
    ledger: str

    @property
    def folder(self) -> str:
        """The work tree's root, or the git folder of a repository without one."""
        return self.found.top or self.found.git_dir

    def log(self, event: str, payload: Mapping[str, Json]) -> str:
        """Log one event of `clients.EVENTS` and return its id; when this returns, a crash cannot lose it.

        It is logged and no more: events that are answered go by `hook`. Raises what `wal.append` does.
        """
        data = json.dumps({"cwd": self.folder, **payload}).encode("ascii")
        folder = os.path.join(gitdir.state(self.found.common), "wal", self.ledger)
        now = time.time_ns() // 1_000_000
        entry = wal.append(
            folder, self.client, event, data, now_ms=now, rand=os.urandom(10), worktree=self.found.worktree
        )
        return entry.id

    def hook(self, event: str, payload: Mapping[str, Json], timeout: float = shims.WATCH + 5.0) -> Ran:
        """Have an event logged and answered: a start by the briefing, a compaction by its checkpoint's pointer.

        A compaction whose checkpoint was not made, for whatever reason, has another status than 0 and says why in
        `error`: then the client may not compact. Of every other event the status is of no account.
        """
        data = json.dumps({"cwd": self.folder, **payload})
        script = shims.script(self.client, event, "status" if event == "compact" else "")
        return self._child(["/bin/sh", "-c", script], data, timeout)

    def run(self, *words: str, given: str = "", timeout: float = 30.0) -> Ran:
        """Run `gitledger WORDS` for this ledger, with `given` on its standard input."""
        path = shutil.which("gitledger") or self._named()
        if not path:
            return Ran(MISSING, error="the program gitledger is neither on PATH nor where this clone says that it is")
        return self._child([path, "-C", self.folder, "--ledger", self.ledger, *words], given, timeout)

    def complain(self, what: str) -> None:
        """Add one line to the hooks' log, which `gitledger doctor` shows; never raises."""
        capture.log(self.found.common, f"{self.client}: {what}")

    def _named(self) -> str:
        path, there = program.named(self.found.common)
        return path if there else ""

    def _child(self, words: Sequence[str], given: str, timeout: float) -> Ran:
        environ = {**os.environ, "GITLEDGER_LEDGER": self.ledger}
        environ.pop("PYTHONPATH", None)  # the program's Python is another one than this
        environ.pop("PYTHONHOME", None)
        try:
            child = subprocess.Popen(
                words,
                cwd=self.folder,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as e:
            return Ran(MISSING, error=f"{words[0]} cannot be run: {e.strerror}")
        try:
            out, err = child.communicate(given.encode("utf-8", "surrogateescape"), timeout)
        except subprocess.TimeoutExpired:
            _end(child)
            return Ran(LATE, error=f"gitledger did not end within {timeout:g} seconds")
        text, said = out.decode("utf-8", "replace"), err.decode("utf-8", "replace").strip()
        if child.returncode and not said:
            said = f"gitledger exited {child.returncode}"
        return Ran(child.returncode, text.rstrip("\n"), said)


def find(client: str, folder: str, ledger: str | None = None) -> Embedded | None:
    """The ledger that `client` works with in `folder`; None where there is none, or hooks are switched off.

    Raises CannotWrite for a clone whose own folder cannot be trusted: a ledger may well be there.
    """
    if capture.silenced():
        return None
    found = gitdir.find(folder)
    if found is None:
        return None
    name = gitdir.choose(found.common, ledger or os.environ.get("GITLEDGER_LEDGER"))
    return None if name is None else Embedded(client, found, name)


def _end(child: subprocess.Popen[bytes]) -> None:
    # With all that it started: a child of its own session, so its group has its number.
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.communicate()
