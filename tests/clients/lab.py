"""A person's machine in small: a sealed home, a repository with a ledger, one client, and the model it talks to."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import install
from tests.clients.models.server import Request, Server
from tests.process.program import Ran
from tests.sealed import Repo, sealed_environment

ROOT = Path(__file__).parent.parent.parent
USUAL = ("/usr/local/bin", "/usr/bin", "/bin")
PATIENCE = 300.0
"""Seconds that a client may take for one run, on a slow machine too."""
NEXT = "Write discount() so that NEXT-MARK holds"
RESUMED = "Write shipping() so that RESUMED-MARK holds"
GOAL = "Codes of discount are read from paper: "


@dataclass(frozen=True, slots=True)
class Lab:
    """Where one test happens. `settings` is for the client's own: what it needs in its environment."""

    folder: Path
    home: Path
    repo: Repo
    server: Server
    env: dict[str, str] = field(repr=False)

    @property
    def bin(self) -> Path:
        """The folder on PATH that holds gitledger and nothing else."""
        return self.folder / "bin"

    def run(self, words: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Ran:
        """Run a client to its end; one that does not end is killed with all it started, and fails the test."""
        child = self.start(words, cwd=cwd, env=env)
        try:
            out, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            kill(child)
            out, err = child.communicate()
            raise AssertionError(f"{words[0]} did not end in {PATIENCE} s: {out[-2000:]} {err[-2000:]}") from None
        return Ran(child.returncode, out, err)

    def start(
        self,
        words: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:
        """Start a client in a process group of its own, because some start themselves again as a child."""
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=cwd or self.repo.path,
            env={**self.env, **(env or {})},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def ledger(self, *words: str, cwd: Path | None = None) -> str:
        """What gitledger prints, run as the person would; it must succeed."""
        ran = self.run([self.bin / "gitledger", *words], cwd=cwd)
        assert ran.status == 0, f"gitledger {' '.join(words)} exited {ran.status}: {ran.err}"
        return ran.out

    def ledgers(self, *commands: Sequence[str]) -> None:
        """Several of gitledger's commands in one process, which is what takes the time; each must succeed."""
        load = f"""import json, sys
sys.path.insert(0, {str(ROOT)!r})
from gitledger.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv[:] = [{str(self.bin / "gitledger")!r}, *words]
    if status := main():
        sys.exit(f"{{words}} exited {{status}}")
"""
        ran = self.run([sys.executable, "-P", "-c", load, json.dumps(commands)])
        assert ran.status == 0, ran.err

    def journal(self, *kinds: str) -> list[dict[str, Any]]:
        """The journalled events of some types, or of all, oldest first."""
        events = [json.loads(line) for line in self.ledger("journal", "--json").splitlines()]
        return [event for event in events if not kinds or event["type"] in kinds]

    def tip(self) -> str:
        """The commit that the ledger's branch stands at."""
        return self.repo.git("rev-parse", "refs/heads/ledger/main")

    def asked(self, kind: str, since: int = 0) -> list[Request]:
        """The requests of one kind that the model got, the first `since` requests of any kind left out."""
        return [request for request in self.server.requests[since:] if request.kind == kind]

    @contextmanager
    def patience(self, child: subprocess.Popen[str]) -> Iterator[None]:
        """Kill a client that takes longer than PATIENCE over the block, so that reading from it comes to an end."""
        timer = threading.Timer(PATIENCE, kill, [child])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def wait_for(self, what: str, holds: Callable[[], bool], child: subprocess.Popen[str]) -> None:
        """Wait until something holds, as long as the client lives."""
        until = time.monotonic() + PATIENCE
        while not holds():
            assert child.poll() is None, f"the client ended before {what}: {child.communicate()}"
            assert time.monotonic() < until, f"never: {what}"
            time.sleep(0.05)


def kill(child: subprocess.Popen[str]) -> None:
    """End a client and all that it started, as a power cut would."""
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def put_down(child: subprocess.Popen[str]) -> None:
    """Leave nothing of a client: end it where it lives, and let go of its streams."""
    if child.poll() is None:
        kill(child)
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def build(folder: Path, home: Path, repo: Repo, server: Server) -> Lab:
    """A lab in `folder` without a ledger yet; gitledger is the one of this checkout."""
    node = install.node()
    lab = Lab(folder, home, repo, server, sealed_environment(home, {}))
    lab.bin.mkdir()
    (folder / "tmp").mkdir()
    lab.env.update(
        {
            "PATH": os.pathsep.join([str(lab.bin), *([str(node)] if node else []), *USUAL]),
            "TMPDIR": str(folder / "tmp"),
            "TERM": "dumb",
            "SHELL": "/bin/bash",
            "LC_ALL": "C.UTF-8",
        }
    )
    put_gitledger(lab)
    return lab


def put_gitledger(lab: Lab) -> None:
    """Put gitledger on the lab's PATH, or back there."""
    put_program(lab, program())


def program(first: str = "", shell: str = "") -> str:
    """A shell script that runs gitledger; `first` is Python to run before it, `shell` what the shell does first."""
    load = f"import sys; sys.argv[0] = sys.argv.pop(1); sys.path.insert(0, {str(ROOT)!r}); {first or 'pass'}"
    load += "; from gitledger.__main__ import main; sys.exit(main())"
    return f'{shell}\nexec {shlex.quote(sys.executable)} -P -c {shlex.quote(load)} "$0" "$@"'


def put_program(lab: Lab, text: str) -> None:
    """Put a shell script on the lab's PATH as gitledger; which words it was called with is kept in `called`."""
    script = lab.bin / "gitledger"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{shlex.quote(str(lab.folder / "called"))}\n{text}\n')
    script.chmod(0o755)


def called(lab: Lab) -> list[str]:
    """The words of each call of gitledger so far."""
    path = lab.folder / "called"
    return path.read_text().splitlines() if path.exists() else []


def begin(lab: Lab) -> None:
    """A ledger with so much in it that the briefing is as long as one may be."""
    criteria = [word for n in range(9) for word in ("--accept", f"Criterion {n} holds: " + "as it is written, " * 9)]
    long = "of the list on paper, and the test that names it, " * 4
    steps = "\n".join(f"Step {n:02}: code {n:02} {long}" for n in range(18))
    lab.ledgers(
        ["init", "--project", "Shop"],
        ["task", "add", "Discounts", "--goal", GOAL + "upper case, five letters; " * 30, *criteria],
        ["task", "start", "T-0001", "--next", f"{NEXT}\n{steps}"],
        *(["question", "ask", f"Question {n}: " + "is it written so, " * 15] for n in range(5)),
    )


def briefing(lab: Lab) -> list[str]:
    """The lines of the briefing as it stands, but for those that say when it was asked for and by whom."""
    lines = [line for line in lab.ledger("briefing").splitlines() if line.strip()]
    return [line for line in lines if not line.startswith("session ") and "journalled" not in line]


# ── what can be wrong with a ledger ──────────────────────────────────────────────────────────
@contextmanager
def program_missing(lab: Lab) -> Iterator[None]:
    """gitledger was removed from this machine."""
    (lab.bin / "gitledger").unlink()
    yield
    put_gitledger(lab)


@contextmanager
def _another_program(lab: Lab, text: str) -> Iterator[None]:
    put_program(lab, text)
    yield
    put_gitledger(lab)


def crash(lab: Lab) -> AbstractContextManager[None]:
    """gitledger ends by a signal, whatever it is asked for."""
    return _another_program(lab, "kill -SEGV $$")


def disk_full(lab: Lab) -> AbstractContextManager[None]:
    """No file may grow: what a full disk does, to the program alone."""
    return _another_program(lab, program(shell="ulimit -f 0"))


@contextmanager
def deadline_passed(lab: Lab) -> Iterator[None]:
    """The checkpoint takes longer than the program gives it."""
    hurry = "from gitledger import hooks; hooks.DEADLINE = 0.5"
    with _another_program(lab, program(hurry)), _held(lab):
        yield


@contextmanager
def lock_held(lab: Lab) -> Iterator[None]:
    """Another process works on the ledger, and does not come to an end; nobody waits long for it here."""
    hurry = "from gitledger import hooks, transaction; hooks.PATIENCE = transaction.LOCK_DEADLINE = 0.5"
    with _another_program(lab, program(hurry)), _held(lab):
        yield


@contextmanager
def ledger_broken(lab: Lab) -> Iterator[None]:
    """The tree of the ledger's newest commit is gone."""
    name = lab.repo.git("rev-parse", lab.tip() + "^{tree}")
    path = lab.repo.path / ".git" / "objects" / name[:2] / name[2:]
    kept = [path] if path.exists() else sorted((lab.repo.path / ".git" / "objects" / "pack").iterdir())
    away = lab.folder / "away"
    away.mkdir(exist_ok=True)
    for file in kept:
        shutil.move(file, away / file.name)
    yield
    for file in kept:
        shutil.move(away / file.name, file)


@contextmanager
def signature_bad(lab: Lab) -> Iterator[None]:
    """The key that signs for this user is another one than the ledger knows."""
    keys = lab.home / ".local" / "share" / "gitledger"
    kept = lab.folder / "keys"
    keys.rename(kept)
    keys.mkdir(mode=0o700)
    [key] = [path for path in kept.iterdir() if path.with_name(f"{path.name}.pub").exists()]
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / key.name)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    yield
    shutil.rmtree(keys)
    kept.rename(keys)


@contextmanager
def _held(lab: Lab) -> Iterator[None]:
    path = lab.repo.path / ".git" / "gitledger" / "lock"
    words = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(1, flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", words, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
