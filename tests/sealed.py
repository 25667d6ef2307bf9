"""Real git repositories in a sealed home: what every test is built on.

`seal` makes a process look as if nobody lived on this machine: an empty home, no git configuration, no agent,
no `GIT_*` or `GITLEDGER_*` variable, one locale, one time zone. `Repo` is a real repository whose commits get
fixed, increasing dates, so that the same steps give the same commit ids everywhere.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

EPOCH = 1_790_000_000
"""The date of the first commit that a test makes, in seconds; each later one is a minute younger."""
STEP = 60
LONG = bool(os.environ.get("GITLEDGER_LONG"))
"""True where the long forms of tests run too, as `.ci/run` has it: more kills, and every program started anew."""
DROPPED_PREFIXES = ("GIT_", "GITLEDGER_", "XDG_", "LC_")
DROPPED = (
    "SSH_AUTH_SOCK", "SSH_ASKPASS", "EDITOR", "VISUAL", "PAGER", "LANGUAGE", "LANG", "EMAIL",
    "PYTHONDONTWRITEBYTECODE",  # some shells have it: every program would be compiled at each of its starts
)  # fmt: skip


def sealed_environment(home: Path, outside: Mapping[str, str]) -> dict[str, str]:
    """What a process in the sealed home sees: `outside` without a person's traces, and folders in `home`."""
    kept = {
        name: value for name, value in outside.items() if not name.startswith(DROPPED_PREFIXES) and name not in DROPPED
    }
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_RUNTIME_DIR": str(home / ".run"),
        "GIT_CONFIG_NOSYSTEM": "1",
        # A home lies beside the test's folder, or one deeper.
        "GIT_CEILING_DIRECTORIES": f"{home.parent}{os.pathsep}{home.parent.parent}",
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def seal_process(folder: Path) -> None:
    """Let this whole process, and its children, live in a new home in `folder`: for what runs outside of pytest."""
    home = folder / "home"
    home.mkdir()
    sealed = sealed_environment(home, os.environ)
    os.environ.clear()
    os.environ.update(sealed)


def git(
    cwd: Path,
    *args: str,
    input: str | bytes | None = None,  # noqa: A002 (the word that subprocess has for it)
    when: int = EPOCH,
    env: Mapping[str, str] | None = None,
) -> bytes:
    """What git printed in `cwd`; a failure raises with git's own words. Dates are fixed at `when` (seconds)."""
    date = f"{when} +0000"
    done = subprocess.run(
        ["git", *args],
        cwd=cwd,
        input=input.encode() if isinstance(input, str) else input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        env={**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_EDITOR": "true", **(env or {})},
        check=False,
        timeout=300,
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")
        raise AssertionError(f"git {' '.join(args)} ended with {done.returncode}: {words.strip()}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Repo:
    """A real repository at `path`; every date that git needs comes from a clock of its own."""

    path: Path
    _clock: list[int] = field(default_factory=lambda: [EPOCH], repr=False, compare=False)

    def git(self, *args: str, input: str | bytes | None = None, env: Mapping[str, str] | None = None) -> str:  # noqa: A002
        """What git printed, as text without the last line end."""
        self._clock[0] += STEP
        out = git(self.path, *args, input=input, when=self._clock[0], env=env)
        return out.decode(errors="surrogateescape").removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Put files into the work tree; nothing is staged."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, subject: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit `files` (default: one file named by the subject) with everything else staged; returns the commit."""
        self.write({f"{subject}.txt": f"{subject}\n"} if files is None else files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.head()

    def head(self) -> str:
        """The full id of HEAD's commit."""
        return self.git("rev-parse", "--verify", "HEAD")

    def tree(self, rev: str = "HEAD") -> str:
        """The full id of a commit's tree."""
        return self.git("rev-parse", "--verify", rev + "^{tree}")

    def clone(self, path: Path, *options: str) -> Repo:
        """A clone at `path` over the file transport, with the same identity."""
        self.git("clone", "--quiet", *options, self.path.as_uri(), str(path))
        return identify(Repo(path))

    def branches(self, *names: str) -> None:
        """Make branches at HEAD without leaving the present one."""
        for name in names:
            self.git("branch", name)


def identify(repo: Repo, name: str = "Ada Tester", email: str = "ada@example.org") -> Repo:
    """The same repository, with a user of its own in its local configuration."""
    repo.git("config", "user.name", name)
    repo.git("config", "user.email", email)
    return repo


def new_repo(path: Path, *options: Sequence[str] | str) -> Repo:
    """An empty repository on branch `main` with a local identity; `options` go to `git init`."""
    path.mkdir(parents=True, exist_ok=True)
    if not options and _git_is_as_it_comes() and not (path / ".git").exists():
        return template().put(path)
    return _init(path, *options)


def _init(path: Path, *options: Sequence[str] | str) -> Repo:
    repo = Repo(path)
    repo.git("init", "--quiet", "--initial-branch=main", *map(str, options))
    return identify(repo)


def first_repo(path: Path) -> Repo:
    """A new repository with one commit, `first`."""
    if _git_is_as_it_comes():
        path.mkdir(parents=True, exist_ok=True)
        return template("first").put(path)
    repo = new_repo(path)
    repo.commit("first", {"README.md": "# first\n"})
    return repo


def _git_is_as_it_comes() -> bool:
    """True where no configuration and no variable of a test changes what `git init` makes."""
    home = Path(os.environ["HOME"])
    configured = (home / ".gitconfig").exists() or (home / ".config/git").exists()
    return not configured and not any(
        name.startswith("GIT_") and name not in ("GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES")
        for name in os.environ
    )


@dataclass(frozen=True, slots=True)
class Files:
    """Folders (None) and files with their modes, by the name that each has in the folder they were taken from."""

    all: Mapping[str, tuple[int, bytes | None]]

    @classmethod
    def of(cls, folder: Path) -> Files:
        """All that lies in a folder, which holds no link."""
        found: dict[str, tuple[int, bytes | None]] = {}
        for path in sorted(folder.rglob("*")):
            content = None if path.is_dir() else path.read_bytes()
            found[str(path.relative_to(folder))] = (path.stat().st_mode & 0o777, content)
        return cls(found)

    def put(self, folder: Path) -> None:
        """Write them into a folder that is there; a file that is there already is written anew."""
        top = str(folder)
        for name, (mode, content) in self.all.items():
            path = os.path.join(top, name)
            if content is None:
                try:
                    os.mkdir(path, mode)
                except FileExistsError:
                    pass  # a repository that a ledger is put into has some of its folders
                continue
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            try:
                os.write(fd, content)
            finally:
                os.close(fd)


@dataclass(frozen=True, slots=True)
class Template:
    """A repository to be put anywhere, as often as it is wanted; its clock goes on from `now`."""

    files: Files
    now: int

    def put(self, path: Path) -> Repo:
        """The repository at `path`, a folder that is there."""
        self.files.put(path)
        readme = path / "README.md"
        if readme.exists():
            os.utime(readme, (WRITTEN, WRITTEN))
            index = path / ".git/index"
            index.write_bytes(_index(index.read_bytes(), readme.stat()))
        return Repo(path, [self.now])


WRITTEN = 1_700_000_000
"""When the file of a repository's first commit was written: long before its index, which git reads it anew for else."""


def _index(data: bytes, at: os.stat_result) -> bytes:
    """An index of one file, whose times and place are those of the file as it lies now."""
    times = (n for both in (at.st_ctime_ns, at.st_mtime_ns) for n in divmod(both, 1_000_000_000))
    numbers = (*times, at.st_dev, at.st_ino, 0o100644, at.st_uid, at.st_gid, at.st_size)
    data = data[:12] + struct.pack("!10I", *(n & 0xFFFFFFFF for n in numbers)) + data[52:-20]
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


@functools.cache
def template(commit: str = "") -> Template:
    """A repository to be copied, made once: empty, or with one commit."""
    with tempfile.TemporaryDirectory(prefix="gitledger-template-") as folder:
        repo = _init(Path(folder))
        if commit:
            repo.commit(commit, {"README.md": f"# {commit}\n"})
        for sample in sorted(repo.path.glob(".git/hooks/*.sample"))[1:]:
            sample.unlink()  # one shows that there may be some
        return Template(Files.of(repo.path), repo._clock[0])


def keep(folder: tempfile.TemporaryDirectory[str]) -> Path:
    """The path of a folder that stays until this process ends."""
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
