"""The one way to run git: no repository variables of the caller, no prompt, no hook, no pager, and a deadline."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from gitledger import errors
from gitledger.values import dataclass

KEPT = (
    "GIT_ALLOW_PROTOCOL",
    "GIT_ASKPASS",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "GIT_SSL_VERSION",
    "GIT_TEMPLATE_DIR",
)
"""The only `GIT_*` variables that a child inherits: how to reach a remote, who the user is, where configuration lies.

Everything else goes, by name or not: a hook's `GIT_DIR` makes `git -C elsewhere` answer for the wrong repository,
and the list that `git rev-parse --local-env-vars` prints grows with git.
"""

FIXED = {
    "GIT_GRAFT_FILE": os.devnull,  # info/grafts can fake any ancestry
    "GIT_NO_LAZY_FETCH": "1",  # a read in a partial clone would reach for the network
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
TALKS_TO_REMOTES = ("clone", "fetch", "ls-remote", "push")
NAMES_HOOKS = ("config", "hook", "rev-parse")
"""Subcommands that report where hooks lie, and run none: hiding the folder would make them lie."""

# Read from git's words, which LC_ALL=C keeps in English; the first that fits wins.
_WORDS: tuple[tuple[str, type[errors.LedgerError]], ...] = (
    ("dubious ownership", errors.NotAllowed),
    ("not a git repository", errors.NotARepository),
    ("must be run in a work tree", errors.NotARepository),
    (".lock': File exists", errors.LockHeld),
    ("cannot lock ref", errors.TryAgain),
    ("unknown repository extension", errors.Unsupported),
    ("No space left on device", errors.IOFailed),
    ("Permission denied", errors.CannotWrite),
    ("Read-only file system", errors.CannotWrite),
    ("Not a valid object name", errors.MissingObject),
    ("Not a valid commit name", errors.MissingObject),
    ("bad object", errors.MissingObject),
    ("bad revision", errors.MissingObject),
    ("unknown revision", errors.MissingObject),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What git said. `out` is bytes, because names and contents need not be text."""

    code: int
    out: bytes
    err: str

    @property
    def line(self) -> str:
        """`out` as text without its last line end; bytes that are not UTF-8 survive as surrogates."""
        return self.out.decode("utf-8", "surrogateescape").removesuffix("\n")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every git child: the user's own, without what would point git elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in KEPT}
    return kept | FIXED | dict(extra or {})


def command(args: Sequence[str]) -> list[str]:
    """The whole argv for `args` (which may begin with `-c name=value`)."""
    # An fsmonitor may be any program, and the built-in one leaves a daemon behind that holds our pipes.
    argv = ["git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "color.ui=false"]
    if subcommand(args) not in NAMES_HOOKS:
        argv += ["-c", f"core.hooksPath={os.devnull}"]
    return [*argv, *args]


def subcommand(args: Sequence[str]) -> str:
    """The first word of `args` that is no option of git itself."""
    words = iter(args)
    for word in words:
        if word in ("-c", "-C"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def run(
    args: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    input: bytes | None = None,  # noqa: A002 (the word that subprocess has for it)
    deadline: float = 30.0,
    check: bool = True,
    extra_env: Mapping[str, str] | None = None,
    heard: Callable[[str], None] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Answer:
    """What git answered in `cwd`; with `check`, a non-zero exit raises with git's own words.

    `deadline` is in seconds: after it git and all its children are killed and TryAgain is raised. Clean filters that
    the user configured (LFS, autocrlf) do run where git needs them to compare contents; hooks and fsmonitor do not.
    `heard` is told what git says of its progress, while it runs. `meanwhile` is done beside it, and nothing is read of
    git before it is over, nor does the deadline count; what it raises is raised, and git is killed.
    """
    env = environment(extra_env)
    if subcommand(args) in TALKS_TO_REMOTES:
        env.pop("GIT_NO_LAZY_FETCH", None)
    try:
        # A session of its own: no terminal to prompt on, and one group to kill with all its children.
        child = subprocess.Popen(
            command(args),
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as e:
        if not os.path.isdir(cwd):
            raise errors.Missing(f"{os.fspath(cwd)} is not a folder: name one inside a git repository") from e
        raise errors.Missing(f"git cannot be started ({e.strerror}): install git and see that it is on PATH") from e
    try:
        if meanwhile is not None:
            meanwhile()
        if heard is None:
            out, err = child.communicate(input, timeout=deadline)
        else:
            out, err = _heard(child, deadline, heard)
    except subprocess.TimeoutExpired as e:
        kill(child)
        raise errors.TryAgain(
            f"git {subcommand(args)} in {os.fspath(cwd)} took longer than {deadline:g} s and was stopped: try again"
        ) from e
    except BaseException:
        kill(child)
        raise
    answer = Answer(child.returncode, out, err.decode("utf-8", "backslashreplace").strip())
    if check and answer.code:
        raise failure(args, answer, cwd)
    return answer


def _heard(child: subprocess.Popen[bytes], deadline: float, heard: Callable[[str], None]) -> tuple[bytes, bytes]:
    """What a child without input says until it ends; each piece of its stderr is told as it comes."""
    assert child.stdout is not None  # noqa: S101 (the caller asked for both)
    assert child.stderr is not None  # noqa: S101
    until = time.monotonic() + deadline
    said: dict[int, list[bytes]] = {child.stdout.fileno(): [], child.stderr.fileno(): []}
    with selectors.DefaultSelector() as pipes:
        for fd in said:
            pipes.register(fd, selectors.EVENT_READ)
        while pipes.get_map():
            ready = pipes.select(max(until - time.monotonic(), 0))
            if not ready:
                raise subprocess.TimeoutExpired(child.args, deadline)
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                said[key.fd].append(data)
                if not data:
                    pipes.unregister(key.fd)
                elif key.fd == child.stderr.fileno():
                    heard(data.decode("utf-8", "backslashreplace"))
    child.wait(max(until - time.monotonic(), 0.1))
    out, err = (b"".join(parts) for parts in said.values())
    child.stdout.close()
    child.stderr.close()
    return out, err


def failure(args: Sequence[str], answer: Answer, cwd: str | os.PathLike[str]) -> errors.LedgerError:
    """The error for an answer that is none: git's first line of complaint, and for ownership all of it."""
    kind = next((kind for words, kind in _WORDS if words in answer.err), errors.IOFailed)
    lines = [line.strip() for line in answer.err.splitlines() if line.strip()]
    if "dubious ownership" not in answer.err:
        # Hints and warnings come before the complaint that ended it.
        lines = [line for line in lines if line.startswith(("fatal:", "error:"))][:1] or lines[:1]
    words = " ".join(lines) or f"exit code {answer.code}"
    return kind(f"git {subcommand(args)} in {os.fspath(cwd)}: {words}")


def kill(child: subprocess.Popen[bytes]) -> None:
    """End a child that leads a session of its own, with all its children, and let go of its pipes."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it ended between the deadline and here; macOS has the second word for a group of which nothing runs
    child.wait()
    # Not communicate(): a grandchild that left the group may hold the pipes for ever.
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                pass  # what was still buffered for git has no reader any more
