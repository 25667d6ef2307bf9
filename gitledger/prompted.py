"""What a session's prompts were given already, so that the next one is given only what has changed. Local.

`prompted` in the clone's own folder says that prompts are answered at all, for the hook that looks no further where it
is not there; `prompted-LEDGER/` holds a mark for each session. Nothing rests on them: without a mark a prompt is given
the whole capsule once more.
"""

from __future__ import annotations

import os

from gitledger import gitdir, pins
from gitledger.errors import LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Key
from gitledger.schema import Config

FLAG = "prompted"
BIGGEST = 64 << 10
KEPT = 50
"""Sessions whose marks are kept, the newest."""


def flag(state: str, config: Config) -> None:
    """Leave word for the hooks whether prompts are answered, by the configuration that holds now; never raises."""
    path = os.path.join(state, FLAG)
    try:
        if config.capsule.on_prompt:
            os.close(gitdir.open_own(path, os.O_WRONLY | os.O_CREAT))
        else:
            os.unlink(path)
    except (OSError, LedgerError):
        pass  # as it was: the next start tries again


def told(ledger: Ledger, session: Key, prompt: str) -> str:
    """What has changed for a session since its last prompt, and what bears on this one; "" where that is nothing."""
    policy = ledger.desk.config.capsule
    if not policy.on_prompt:
        return ""
    from gitledger import capsule  # a start, which asks for the rest of this, pays for no capsule

    path = _path(ledger.desk.home.state, ledger.desk.home.name, session)
    before = _read(path)
    if before is not None and not capsule.is_mark(before):
        before = None
    made = capsule.compose(ledger, prompt, policy.tokens, before)
    if made.text:
        _write(path, made.mark)
    return made.text


def forget(ledger: Ledger, session: Key) -> None:
    """Take what a session was given for forgotten: its context begins anew, or is about to be compacted."""
    try:
        os.unlink(_path(ledger.desk.home.state, ledger.desk.home.name, session))
    except OSError:
        pass


def _path(state: str, name: str, session: Key) -> str:
    return os.path.join(state, f"{FLAG}-{name}", session)


def _read(path: str) -> str | None:
    try:
        return gitdir.read_own(path, BIGGEST).decode("ascii")
    except (OSError, LedgerError, UnicodeDecodeError):
        return None


def _write(path: str, mark: str) -> None:
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    names = sorted(os.listdir(folder), key=lambda name: os.lstat(os.path.join(folder, name)).st_mtime)
    for name in names[:-KEPT]:
        os.unlink(os.path.join(folder, name))
    pins.write_private(path, mark.encode("ascii"))
