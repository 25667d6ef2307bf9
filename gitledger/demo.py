"""A whole cycle in a temporary repository, told as it goes: real git, real signatures, the real program.

Every line that begins with `$` was run, and what follows is what it printed. HOME is a temporary folder too, so
nothing of the user's is read or written.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

from gitledger import gitcli
from gitledger.errors import LedgerError
from gitledger.values import dataclass

SESSION = "demo-session-1"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo plays: its repository, its environment, and whom it tells."""

    folder: str
    environment: dict[str, str]
    tell: Callable[[str], None]

    def say(self, text: str) -> None:
        """A paragraph for the reader."""
        self.tell(f"\n── {text}\n")

    def git(self, *args: str) -> str:
        """Run git and show it."""
        return self._show(["git", *args], gitcli.command(args))

    def gitledger(self, *args: str, stdin: dict[str, object] | None = None, status: int = 0) -> str:
        """Run the program and show it; a payload is shown as what is piped in."""
        return self._show(["gitledger", *args], [sys.executable, "-m", "gitledger", *args], stdin, status)

    def write(self, name: str, text: str) -> None:
        """Put a file into the work tree."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def _show(
        self, shown: Sequence[str], argv: Sequence[str], stdin: dict[str, object] | None = None, status: int = 0
    ) -> str:
        piped = json.dumps(stdin, ensure_ascii=False) if stdin is not None else None
        self.tell((f"$ echo {shlex.quote(piped)} | " if piped else "$ ") + shlex.join(shown))
        done = subprocess.run(
            argv, cwd=self.folder, env=self.environment, input=piped or "", capture_output=True, text=True, timeout=120
        )
        out = (done.stdout + done.stderr).rstrip("\n")
        if out:
            self.tell(out)
        if done.returncode != status:
            raise LedgerError(
                f"the demo stopped: {shlex.join(shown)} exited {done.returncode}, not {status}; please report it"
            )
        return done.stdout


def play(tell: Callable[[str], None], keep: str | None = None) -> None:
    """Play the whole cycle; `keep` names a folder that does not exist yet, where the repository stays."""
    with tempfile.TemporaryDirectory(prefix="gitledger-demo-") as scratch:
        home = os.path.join(scratch, "home")
        folder = os.path.join(scratch, "shop")
        os.makedirs(home)
        os.makedirs(folder)
        stage = Stage(folder, _environment(home), tell)
        _begin(stage)
        _work(stage)
        _checkpoint(stage)
        _end_and_return(stage)
        _labels(stage)
        _close(stage)
        if keep:
            shutil.copytree(folder, keep, symlinks=True)
            tell(f"\nThe repository is kept in {keep}")


def _environment(home: str) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "GITLEDGER_", "XDG_", "SSH_"))}
    identity = {"NAME": "Robin Demo", "EMAIL": "robin@example.invalid"}
    names = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in identity.items()}
    return (
        kept
        | names
        | {
            "HOME": home,
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )


def _payload(**more: object) -> dict[str, object]:
    # The demo is the client here, and it lives until its last line.
    return {"session_id": SESSION, **more}


def _begin(stage: Stage) -> None:
    stage.say("A small project, and a ledger in it. One command, nothing to configure.")
    stage.git("init", "-q", "-b", "main", ".")
    stage.write("shop/cart.py", "def total(items):\n    return sum(price for _, price in items)\n")
    stage.git("add", ".")
    stage.git("commit", "-q", "-m", "A cart that adds up")
    stage.gitledger("init", "--project", "Shop")
    stage.say("An agent's session starts: its hook is handed a briefing. Nothing to continue from yet, and it says so.")
    stage.gitledger("hook", "generic", "start", stdin=_payload(source="startup", pid=os.getpid()))


def _work(stage: Stage) -> None:
    stage.say("Work is cut into tasks with acceptance criteria. Discovering a second one does not displace the first.")
    stage.gitledger(
        "task", "add", "Discount codes", "--goal", "A customer can enter a code and pay less",
        "--accept", "10 % off with code TEN", "--accept", "an unknown code changes nothing",
    )  # fmt: skip
    stage.gitledger("task", "start", "T-0001", "--next", "Write discount() in shop/cart.py")
    stage.gitledger("task", "add", "Totals are floats, should be cents", "--status", "discovered")
    stage.gitledger("decide", "Codes are upper case", "--why", "Customers type them from paper; case is noise")
    stage.say("Every turn is journalled by the agent's hook, synced to disk, whether or not a model remembers to.")
    stage.gitledger(
        "hook", "generic", "turn",
        stdin=_payload(prompt="add discount codes", answer="discount() is in place", files=["shop/cart.py"]),
    )  # fmt: skip
    stage.write(
        "shop/cart.py",
        "def total(items, code=''):\n    full = sum(price for _, price in items)\n"
        "    return full * 9 // 10 if code == 'TEN' else full\n",
    )
    stage.say("A criterion is met by evidence: a command with its exit status, a commit, or a file with its blob id.")
    stage.gitledger(
        "task", "evidence", "--criterion", "c1", "--completed", "Code TEN takes 10 % off", "--run",
        "python3 -c 'from shop.cart import total; assert total([(1, 1000)], code=\"TEN\") == 900'",
    )  # fmt: skip
    stage.say("Not everything is proved, so it is not done.")
    stage.gitledger("task", "done", status=77)
    stage.gitledger("task", "next", "Prove that an unknown code changes nothing")


def _checkpoint(stage: Stage) -> None:
    stage.say(
        "Before the client compacts, a checkpoint is made: signed, synced, read back. Announced twice, made once."
    )
    stage.gitledger("hook", "generic", "compact", stdin=_payload(trigger="auto"))
    stage.gitledger("hook", "generic", "compact", stdin=_payload(trigger="auto"))


def _end_and_return(stage: Stage) -> None:
    stage.say("The session ends. What it leaves is composed from records.")
    stage.gitledger("hook", "generic", "end", stdin=_payload(reason="exit"))
    stage.say(
        "The next session starts at the same commit: the handover is `exact`, and its next action is to be followed."
    )
    stage.gitledger("briefing")


def _labels(stage: Stage) -> None:
    stage.say(
        "Somebody commits. The handover is `advanced`: trust it, expect part of it to be done; the commits are named."
    )
    stage.git("commit", "-q", "-a", "-m", "Discount codes")
    stage.gitledger("briefing")
    stage.say(
        "A session ends here, and then its commit is amended: `diverged`, rewritten. The next action is withheld."
    )
    stage.gitledger("hook", "generic", "start", stdin={"session_id": "demo-session-2", "pid": os.getpid()})
    stage.gitledger("hook", "generic", "end", stdin={"session_id": "demo-session-2", "reason": "exit"})
    stage.git("commit", "-q", "--amend", "-m", "Discount codes: TEN takes 10 % off")
    stage.gitledger("briefing")
    stage.say("On another branch it is not your work: `different_context`, named but never quoted.")
    stage.git("switch", "-q", "-c", "experiment")
    stage.gitledger("briefing")
    stage.git("switch", "-q", "main")


def _close(stage: Stage) -> None:
    stage.say(
        "Nobody has to believe any of this: stock git checks the signatures, and the journal alone makes the same tree."
    )
    signers = os.path.join(stage.folder, ".git", "signers")
    with open(signers, "w", encoding="utf-8") as f:
        f.write(stage.git("show", "ledger/main:keys/allowed_signers") + "\n")
    stage.git(
        "-c", f"gpg.ssh.allowedSignersFile={os.path.relpath(signers, stage.folder)}", "verify-commit", "ledger/main"
    )
    stage.gitledger("rebuild", "--check")
    stage.gitledger("fsck")
    stage.git("log", "--format=%h %s", "ledger/main")
