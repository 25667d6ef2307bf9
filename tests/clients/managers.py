"""Hook managers, each in a pinned version, in the cache of the clients' suite: `python -m tests.clients.managers`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("GITLEDGER_CLIENTS_CACHE") or Path.home() / ".cache" / "gitledger-clients")
"""Read once, when the module is loaded: the tests themselves run in another home."""
VERSIONS = {"husky": "9.1.7", "lefthook": "2.2.2", "pre-commit": "4.7.0"}


def folder(name: str) -> Path:
    """Where a manager lies once it is installed."""
    return CACHE / f"{name}-{VERSIONS[name]}"


def program(name: str) -> Path | None:
    """Its program, or None where it is not installed."""
    if name == "pre-commit":
        path = folder(name) / "bin" / "pre-commit"
        return path if path.exists() else None
    if name == "husky":
        path = folder(name) / "node_modules" / "husky" / "bin.js"
        return path if path.exists() and shutil.which("node") else None
    # The package for this machine, without the Node script that looks for it.
    return next(iter(folder(name).glob("node_modules/lefthook-*/bin/lefthook")), None)


def install(name: str) -> str:
    """Install a manager that is not there yet; "" once it is there, else why it cannot be."""
    if program(name):
        return ""
    place = folder(name)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    pinned = f"{name}@{VERSIONS[name]}".replace("pre-commit@", "pre-commit==")
    if name == "pre-commit":
        steps = [[sys.executable, "-m", "venv", "."], ["bin/python", "-m", "pip", "install", "--quiet", pinned]]
    else:
        (place / "package.json").write_text("{}", encoding="utf-8")
        steps = [["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", pinned]]
    for step in steps:
        try:
            done = subprocess.run(step, cwd=place, capture_output=True, text=True, check=False, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as e:
            return f"{step[0]}: {e}"
        if done.returncode:
            return " ".join((done.stderr or done.stdout).split())[:300]
    found = program(name)
    if found is None:
        return f"there is no {name} for this machine in it, or no Node to run it"
    found.chmod(found.stat().st_mode | 0o111)
    return ""


def main() -> int:
    """Install all of them; 1 where one cannot be."""
    status = 0
    for name in VERSIONS:
        why = install(name)
        print(f"{name} {VERSIONS[name]}: {why or 'installed'}", flush=True)
        status = status or int(bool(why))
    return status


if __name__ == "__main__":
    sys.exit(main())
