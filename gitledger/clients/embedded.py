"""gitledger within another program's process: what an agent's plugin, an SDK or a client of your own calls.

Only the standard library is imported here and by what this imports, so that it runs beside whatever else is installed
there. An event that is only logged is one synced line, written in this process; everything else is asked of the
program, as a child, by its own Python: it is found on PATH, or where the clone says that it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

from gitledger import capture, gitdir, program, shims, wal
from gitledger.clients import is_name
from gitledger.gitdir import GitDir

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitledger.model import Json

MISSING = 127
"""The status of a program that is nowhere to be found, as a shell has it."""
LATE = 124
"""The status of a program that did not end in time, and was ended."""
CUTS = ((200_000, 200_000), (50_000, 50_000), (2_000, 0))
"""Where a payload is too large: how long a text may be, and how much is kept of one that is longer; the first that is
enough. What is kept is more than is ever shown, or nothing, for a secret that was cut in two is known to no rule."""


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

    def log(self, event: str, payload: Mapping[str, Json], *, once: str = "", now_ms: int | None = None) -> str:
        """Log one event of `clients.EVENTS` and return its id; when this returns, a crash cannot lose it.

        It is logged and no more: events that are answered go by `hook`. Logged again with the same `once` and time,
        as after a crash, it is one event as long as the log holds it. Raises what `wal.append` does.
        """
        data = self._data(payload).encode("ascii")
        folder = os.path.join(gitdir.state(self.found.common), "wal", self.ledger)
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        rand = hashlib.sha256(once.encode("utf-8", "surrogatepass")).digest()[:10] if once else os.urandom(10)
        entry = wal.append(folder, self.client, event, data, now_ms=now, rand=rand, worktree=self.found.worktree)
        return entry.id

    def hook(self, event: str, payload: Mapping[str, Json], timeout: float = shims.WATCH + 5.0) -> Ran:
        """Have an event logged and answered: a start by the briefing, a compaction by its checkpoint's pointer.

        A compaction whose checkpoint was not made, for whatever reason, has another status than 0 and says why in
        `error`: then the client may not compact. Of every other event the status is of no account.
        """
        script = shims.script(self.client, event, "status" if event == "compact" else "")
        return self._child(["/bin/sh", "-c", script], self._data(payload), timeout)

    def run(self, *words: str, given: str = "", timeout: float = 30.0) -> Ran:
        """Run `gitledger WORDS` for this ledger, with `given` on its standard input."""
        path = shutil.which("gitledger") or self._named()
        if not path:
            return Ran(MISSING, error="the program gitledger is neither on PATH nor where this clone says that it is")
        return self._child([path, "-C", self.folder, "--ledger", self.ledger, *words], given, timeout)

    def capsule(self, query: str, since: str = "", timeout: float = 30.0) -> tuple[Ran, str]:
        """What a request is given, and its mark: given as `since` with the next one, only what has changed comes.

        Where the program failed, the mark is "".
        """
        ran = self.run(
            "capsule", "--json", "--query=-", *([f"--since={since}"] if since else []), given=query, timeout=timeout
        )
        if ran.status:
            return ran, ""
        made = json.loads(ran.text)
        return Ran(0, str(made["text"]).rstrip("\n")), str(made["mark"])

    def complain(self, what: str) -> None:
        """Add one line to the hooks' log, which `gitledger doctor` shows; never raises."""
        capture.log(self.found.common, f"{self.client}: {what}")

    def _data(self, payload: Mapping[str, Json]) -> str:
        said = {"cwd": self.folder, **payload}
        data = json.dumps(said)
        for longest, kept in CUTS:
            if len(data) <= capture.LIMIT:
                break
            data = json.dumps(_cut(said, longest, kept))  # half an object would be no object
        return data

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

    Raises CannotWrite for a clone whose own folder cannot be trusted: a ledger may well be there; ValueError for a
    client's name that is no word of `[a-z0-9-]`.
    """
    if not is_name(client):
        raise ValueError(f"{client!r} cannot be a client's name: take a word of a-z, 0-9 and -")
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
    try:
        child.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:  # somebody of another session has its pipes: nobody waits for him
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream:
                stream.close()
        child.wait()


def _cut(value: Json, longest: int, kept: int) -> Json:
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:kept]} … {len(value) - kept:,} more characters"
    if isinstance(value, dict):
        return {key: _cut(inner, longest, kept) for key, inner in value.items()}
    return [_cut(inner, longest, kept) for inner in value] if isinstance(value, list | tuple) else value
