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
DEFAULT = ("claude-code", "codex", "gemini", "hermes", "nanobot", "opencode", "pi")
"""The clients that run where none are named."""


@dataclass(frozen=True, slots=True)
class Package:
    """A pinned package and the program in it; `source` is npm, or pip for a virtual environment of its own."""

    name: str
    package: str
    version: str
    program: str
    source: str = "npm"

    @property
    def folder(self) -> Path:
        """Where it lies once it is installed."""
        return CACHE / f"{self.name}-{self.version}"

    @property
    def path(self) -> Path:
        """The program."""
        return self.folder / (f"bin/{self.program}" if self.source == "pip" else f"node_modules/.bin/{self.program}")

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
    if package.source == "pip":
        # Only Python itself is run of it: the scripts in its bin name the folder in which they were made.
        # What is never imported need not be compiled, and that takes as long as the download.
        pip = ["bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        steps = [[sys.executable, "-m", "venv", "."], [*pip, f"{package.package}=={package.version}"]]
    else:
        (scratch / "package.json").write_text("{}", encoding="utf-8")
        npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        steps = [[*npm, f"{package.package}@{package.version}"]]
    why = next((why for step in steps if (why := _run(step, scratch, package.source))), "")
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


def _run(words: list[str], folder: Path, what: str) -> str:
    # "" where it succeeded, else why not.
    newer = node()
    path = os.pathsep.join([*([str(newer)] if newer else []), os.environ.get("PATH", os.defpath)])
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{what}: {e}"
    if not done.returncode:
        return ""
    said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING:")]  # pip says much besides
    return " ".join(" ".join(said).split())[:300] or f"{what} exited {done.returncode}"


def missing(name: str) -> str:
    """Why a client cannot run here; "" where it can."""
    package = PACKAGES[name]
    if not package.path.exists():
        why = package.reason.read_text(encoding="utf-8") if package.reason.exists() else "run ./dev clients " + name
        return f"{name} {package.version} is not installed: {why}"
    return "" if package.source == "pip" or node() else f"no Node {NODE} or newer, which {name} needs"


def main(names: list[str]) -> int:
    """Install the named clients, and a Node where this machine's is too old; 2 for a name that nobody has."""
    clients = [name for name in PACKAGES if name != "node"]
    wanted = clients if names == ["all"] else names or list(DEFAULT)
    if unknown := [name for name in wanted if name not in clients]:
        print(f"no client {', '.join(unknown)}; there are {', '.join(clients)}, and all", file=sys.stderr)
        return 2
    needed = not node() and any(PACKAGES[name].source == "npm" for name in wanted)
    for name in [*(["node"] if needed else []), *wanted]:
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
