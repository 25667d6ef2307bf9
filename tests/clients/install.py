"""The clients of the suite, each in the version of versions.json, in a cache outside the checkout.

`python -m tests.clients.install [NAME…]` installs what is missing and says what could not be had, and why.
The cache is `~/.cache/gitledger-clients`, or the folder that GITLEDGER_CLIENTS_CACHE names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("GITLEDGER_CLIENTS_CACHE") or Path.home() / ".cache" / "gitledger-clients")
"""Read once, when the module is loaded: the tests themselves run in another home."""
NODE = 22
"""The oldest Node that will do: with an older one npm takes older clients than were asked for, and says nothing."""
DEFAULT = ("claude-code", "codex", "gemini", "opencode", "pi")
"""The clients that run where none are named."""


@dataclass(frozen=True, slots=True)
class Package:
    """A pinned npm package and the program in it."""

    name: str
    package: str
    version: str
    program: str

    @property
    def folder(self) -> Path:
        """Where it lies once it is installed."""
        return CACHE / f"{self.name}-{self.version}"

    @property
    def path(self) -> Path:
        """The program."""
        return self.folder / "node_modules" / ".bin" / self.program

    @property
    def reason(self) -> Path:
        """The file that says why it could not be installed."""
        return CACHE / f"{self.name}-{self.version}.failed"


def _read() -> Mapping[str, Package]:
    pinned = json.loads(Path(__file__).with_name("versions.json").read_text(encoding="utf-8"))
    return {name: Package(name, **fields) for name, fields in pinned.items()}


PACKAGES = _read()


def node() -> Path | None:
    """The folder of a Node that is new enough: the machine's, or the cache's; None where there is neither."""
    found = shutil.which("node")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        if (version := re.match(r"v(\d+)", said)) and int(version[1]) >= NODE:
            return Path(found).parent
    kept = PACKAGES["node"].folder / "node_modules" / "node" / "bin"
    return kept if (kept / "node").exists() else None


def install(package: Package) -> str:
    """Install what is not there yet; "" once it is there, else why it cannot be."""
    if package.path.exists():
        return ""
    scratch = package.folder.with_name(f"{package.folder.name}.{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    (scratch / "package.json").write_text("{}", encoding="utf-8")
    words = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", f"{package.package}@{package.version}"]
    newer = node()
    path = os.pathsep.join([*([str(newer)] if newer else []), os.environ.get("PATH", os.defpath)])
    why = ""
    try:
        done = subprocess.run(
            words,
            cwd=scratch,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode:
            why = " ".join(done.stderr.split())[:300] or f"npm exited {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as e:
        why = f"npm: {e}"
    if not why:
        shutil.rmtree(package.folder, ignore_errors=True)
        scratch.rename(package.folder)
        why = "" if package.path.exists() else f"{package.package} has no program {package.program}"
    shutil.rmtree(scratch, ignore_errors=True)
    if why:
        package.reason.write_text(why, encoding="utf-8")
    else:
        package.reason.unlink(missing_ok=True)
    return why


def missing(name: str) -> str:
    """Why a client cannot run here; "" where it can."""
    package = PACKAGES[name]
    if not package.path.exists():
        why = package.reason.read_text(encoding="utf-8") if package.reason.exists() else "run ./dev clients " + name
        return f"{name} {package.version} is not installed: {why}"
    return "" if node() else f"no Node {NODE} or newer, which {name} needs"


def main(names: list[str]) -> int:
    """Install the named clients, and a Node where this machine's is too old; 2 for a name that nobody has."""
    clients = [name for name in PACKAGES if name != "node"]
    wanted = clients if names == ["all"] else names or list(DEFAULT)
    if unknown := [name for name in wanted if name not in clients]:
        print(f"no client {', '.join(unknown)}; there are {', '.join(clients)}, and all", file=sys.stderr)
        return 2
    for name in [*([] if node() else ["node"]), *wanted]:
        package = PACKAGES[name]
        known = package.path.exists()
        if not known:
            print(f"installing {name} {package.version} into {package.folder}", flush=True)
        if why := install(package):
            print(f"NOT INSTALLED, and so not tried: {name} {package.version}: {why}", flush=True)
        elif not known:
            print(f"installed {name} {package.version}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
