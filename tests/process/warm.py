"""A process that has the program loaded, and forks one that runs it each time it is asked.

Starting Python and importing the program is four fifths of what a command costs. What is forked here has a pid,
streams, an environment and an end of its own, like one that was started; how a start itself goes is for the tests that
start one.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import pkgutil
import runpy
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent.parent
HEADER = struct.Struct("!Q")
LATE = (
    "cryptography.hazmat.primitives.asymmetric.ec", "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.serialization", "dataclasses", "pydantic", "pygit2", "yaml",
)  # fmt: skip
"""What the program loads within a function: most of what a command that verifies, or reads a configuration, costs."""


class Nursery:
    """The asking side: one process that forks, for as long as this one lives; words are those that Python is given."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.process.warm", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def run(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """The exit status (negative for a signal), stdout and stderr of one run; raise TimeoutExpired."""
        pipes = [os.pipe() for _ in range(3)]
        (in_, feed), (from_out, out), (from_err, err) = pipes
        body = json.dumps([list(words), str(cwd), dict(env)]).encode()
        socket.send_fds(self.line, [HEADER.pack(len(body))], [in_, out, err])
        self.line.sendall(body)
        for fd in (in_, out, err):
            os.close(fd)
        pid = HEADER.unpack(exactly(self.line, HEADER.size))[0]
        said: dict[int, bytes] = {}
        readers = [threading.Thread(target=lambda fd=fd: said.update({fd: drain(fd)})) for fd in (from_out, from_err)]
        for reader in readers:
            reader.start()
        try:
            with os.fdopen(feed, "wb") as pipe:
                pipe.write(stdin)
        except BrokenPipeError:
            pass  # it had read enough
        for reader in readers:
            reader.join(timeout)
        late = any(reader.is_alive() for reader in readers)
        if late:
            os.kill(pid, 9)
        status = struct.unpack("!q", exactly(self.line, 8))[0]
        if late:
            raise subprocess.TimeoutExpired(["gitledger", *words], timeout)
        return status, said[from_out], said[from_err]

    def close(self) -> None:
        """Let the process end."""
        self.line.close()
        self.process.wait(10)


@functools.cache
def nursery() -> Nursery:
    """The one of this process."""
    made = Nursery()
    atexit.register(made.close)
    return made


def drain(fd: int) -> bytes:
    """All that comes out of a pipe."""
    with os.fdopen(fd, "rb") as pipe:
        return pipe.read()


def exactly(line: socket.socket, size: int) -> bytes:
    """So many bytes; b"" where the other side has gone."""
    data = b""
    while len(data) < size:
        more = line.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data


def serve(line: socket.socket) -> list[str]:
    """Fork for each request; returns the words in the process that is to run them."""
    while True:
        header, fds, _, _ = socket.recv_fds(line, HEADER.size, 3)
        if len(header) < HEADER.size:
            os._exit(0)  # whoever asked has ended
        words, cwd, env = json.loads(exactly(line, HEADER.unpack(header)[0]))
        pid = os.fork()
        if pid == 0:
            line.close()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            os.environ.clear()
            os.environ.update(env)
            os.chdir(cwd)
            at_home()
            return list(words)
        for fd in fds:
            os.close(fd)
        line.sendall(HEADER.pack(pid))
        _, status = os.waitpid(pid, 0)
        line.sendall(struct.pack("!q", os.waitstatus_to_exitcode(status)))


def at_home() -> None:
    """Have libgit2 ask the environment again where a person's configuration lies, as it does when it is loaded."""
    import pygit2
    from pygit2.enums import ConfigLevel

    for level in (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL):
        pygit2.settings.search_path[level] = None  # type: ignore[assignment]  # asks again


def main() -> NoReturn:
    """Load all of the program, then serve."""
    prepare()
    gc.collect()
    gc.freeze()
    status: list[int] = []
    atexit.register(leave, status)  # the first to be registered is the last to be called
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    how, what, *sys.argv[1:] = words
    try:
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            status.append(e.code or 0)
        raise
    status.append(0)
    sys.exit(0)


def prepare() -> None:
    """Load all that a run may load, and make what would be made at first use: the methods of values, and patterns."""
    import gitledger

    for found in pkgutil.walk_packages(gitledger.__path__, "gitledger."):
        if found.name != "gitledger.__main__":  # that is what is run
            try:
                import_module(found.name)
            except ModuleNotFoundError as e:  # what runs within an agent needs that agent's own modules
                if str(e.name).startswith("gitledger"):
                    raise
    for name in LATE:
        import_module(name)
    from gitledger import patterns, replacing, secrets_rules

    for rule in (*secrets_rules.RULES, *secrets_rules.KEYWORDS):
        replacing._compiled(rule.pattern)
    later = type(patterns.pattern(""))
    for module in [module for name, module in sys.modules.items() if name.startswith("gitledger.")]:
        for value in vars(module).values():
            if isinstance(value, later):
                _ = value.search, value.match, value.fullmatch, value.sub
            elif hasattr(value, "__values__"):
                _ = value.__init__, value.__eq__, value.__hash__


def leave(status: list[int]) -> None:
    """End where Python would begin to take apart all that is loaded: of most commands, that is half of what they cost.

    Threads have been waited for and the program's own last calls made; where output is lost, Python itself says so.
    """
    if not status:
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # it was closed before
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            return
    os._exit(status[0] & 0xFF)


if __name__ == "__main__":
    main()
