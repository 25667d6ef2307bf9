"""gitledger's own code, loaded from where it is: nothing else of its environment comes onto Hermes' path."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys

PLACE = ""  # filled in by gitledger hooks install
FIND = ""  # filled in by gitledger hooks install
COMPACT = ""  # filled in by gitledger hooks install


def load() -> str:
    """Make `gitledger` importable; "" once it is, else why it is not, in one line with what to do."""
    if "gitledger.clients.hermes" in sys.modules:
        return ""
    _forget()  # another part of an older one
    why = f"{PLACE} is gone"
    for folder in _folders():
        name = os.path.join(folder, "__init__.py")
        if not os.path.isfile(name):
            continue
        try:
            spec = importlib.util.spec_from_file_location("gitledger", name, submodule_search_locations=[folder])
            module = importlib.util.module_from_spec(spec)
            sys.modules["gitledger"] = module
            spec.loader.exec_module(module)
            importlib.import_module("gitledger.clients.hermes")
            return ""
        except Exception as e:
            _forget()
            why = f"{folder} cannot be loaded ({type(e).__name__}: {e})"
    try:  # last, for a folder of that name may lie wherever Hermes was started
        importlib.import_module("gitledger.clients.hermes")
        return ""
    except ImportError:
        _forget()
    return f"gitledger's program is missing: {why}; install it again, then say gitledger hooks install --client hermes"


def checkpoint(session: str, trigger: str) -> tuple[str, str]:
    """What a compaction is told without our code: (text, ""), or why it may not happen, where there is a ledger."""
    try:
        folder = os.environ.get("TERMINAL_CWD") or os.getcwd()
        said = json.dumps({"session_id": session, "trigger": trigger, "cwd": folder})
        ran = _run(COMPACT, said, 60, folder)
    except (OSError, subprocess.SubprocessError) as e:
        return "", f"BLOCKED_MISSING_PREREQUISITE: no checkpoint was made ({e}); install gitledger again"
    if not ran.returncode:
        return ran.stdout.strip(), ""
    return "", " ".join(ran.stderr.split()).removeprefix("gitledger: ")


def _folders() -> list[str]:
    found = [PLACE]
    try:
        found.append(_run(FIND, "", 20, None).stdout.strip())
    except (OSError, subprocess.SubprocessError):
        pass  # then it is only where it was
    return [folder for folder in found if folder]


def _run(script: str, said: str, limit: float, folder: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return subprocess.run(
        ["/bin/sh", "-c", script],
        input=said,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit,
        cwd=folder,
        env=env,
        check=False,
    )


def _forget() -> None:
    for name in [name for name in sys.modules if name == "gitledger" or name.startswith("gitledger.")]:
        del sys.modules[name]
