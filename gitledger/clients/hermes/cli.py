"""`hermes gitledger status` and `hermes gitledger doctor`: what a person is told by Hermes' own program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from gitledger import shims
from gitledger.clients import embedded
from gitledger.clients.hermes import health
from gitledger.errors import LedgerError

if TYPE_CHECKING:
    from gitledger.clients.embedded import Embedded

WORDS = ("status", "doctor")


def register_cli(subparser: Any) -> None:
    """Add our words to Hermes' own."""
    subparser.add_argument("what", nargs="?", choices=WORDS, default=WORDS[0], help="how the ledger fares here")
    subparser.set_defaults(func=gitledger_command)


def gitledger_command(args: Any) -> int:
    """Say it, and return the exit status: 1 where something is wrong."""
    text, status = report(str(getattr(args, "what", "") or WORDS[0]))
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    return status


def report(what: str) -> tuple[str, int]:
    """What is to be said of the ledger here, and whether something is wrong (1)."""
    folder = health.here()
    try:
        found = embedded.find(health.NAME, folder)
    except LedgerError as e:
        return f"gitledger: nothing is journalled: {e}", 1
    if found is None:
        return f"gitledger: {health.absent(folder)}", 1
    if what == "doctor":
        ran = found.run("doctor", timeout=120.0)
        return ran.text or f"gitledger: {ran.error}", int(bool(ran.status))
    rows = health.told(found)
    set_up, good = _set_up(found)
    rows.insert(2, ("set-up", set_up))
    wrong = not good or any(said.startswith(("FAILS", "CANNOT")) for _, said in rows)
    return "\n".join(f"{name + ':':17}{said}" for name, said in rows), int(wrong)


def set_up(hermes_home: str, config: dict[str, Any]) -> None:
    """Do what `gitledger hooks install --client hermes` does, for a person who chose us among Hermes' providers.

    The provider before us is replaced, as they said; another context engine is not, and that is said.
    """
    context = config.get("context")
    engine = context.get("engine") if isinstance(context, dict) else None
    instead = " --replace" if engine in ("", None, "compressor", f"{health.PROVIDER}-gate") else ""
    script = shims.program(f"hooks install --client {health.NAME}{instead}")
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        ran = subprocess.run(
            ["/bin/sh", "-c", script],
            env={**environ, "HERMES_HOME": hermes_home},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
        said = (
            ran.stdout + ran.stderr
        ).strip() or f"gitledger ended with {ran.returncode}: install it, and set up again"
    except (OSError, subprocess.SubprocessError) as e:
        said = f"gitledger: nothing was set up: {e}"
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()


def _set_up(found: Embedded) -> tuple[str, bool]:
    """What the program says of the plugins and the settings, and whether all is as it should be."""
    ran = found.run("hooks", "status", "--client", health.NAME, "--json")
    if ran.status:
        return f"CANNOT BE READ: {ran.error}", False
    said = json.loads(ran.text)
    wrong = [str(one["event"]) for one in said["hooks"] if one["state"] != "installed"]
    faults = [str(one) for one in said["findings"]]
    if wrong and not faults:
        faults = [f"missing or of another version: {', '.join(wrong)}; gitledger hooks install --client hermes"]
    return "; ".join(faults) or "provider and gate are selected", not faults
