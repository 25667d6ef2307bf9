"""`docs/handovers.md`, what sessions leave that no model wrote: `python -m tests.session_example > docs/handovers.md`.

Each session is the payloads of a real client, in its order, through the hooks' own program, in a real repository.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gitledger import discover, reading
from tests.process.program import works
from tests.sealed import Repo, new_repo, seal_process

PAGE = """\
# What a session leaves

Handovers, checkpoints and briefings as nobody wrote them: composed from what was journalled, from records and from git.
`python -m tests.session_example` made them of sessions in Claude Code's own payloads, and a test keeps them true.
Some ids and all times are made up.

A model can be asked to say more ([proposer.md](proposer.md)); nothing depends on it.
"""
WRITER = "k3f9c2"
FAILED = "1 failed, 3 passed in 0.42s"
PASSED = "4 passed in 0.40s"
SHOP = "def price(cents: int) -> str:\n    return f'{cents / 100:.2f}'\n"
CODE = "def discount(code: str, cents: int) -> int:\n    return cents // 10 if code == 'TEN' else 0\n"


class Session:
    """One session of Claude Code in a repository."""

    def __init__(self, repo: Repo, name: str) -> None:
        self.repo, self.name = repo, name

    def say(self, event: str, hook: str, **more: object) -> str:
        """One event, as the client tells it; what the hook printed."""
        head = {
            "session_id": self.name,
            "cwd": str(self.repo.path),
            "hook_event_name": hook,
            "permission_mode": "default",
        }
        return works(self.repo.path, "hook", "claude-code", event, stdin={**head, **more})

    def start(self, source: str = "startup", pid: int | None = None) -> str:
        """It starts; its briefing."""
        return self.say("start", "SessionStart", source=source, **({"pid": pid} if pid else {}))

    def ask(self, prompt: str) -> None:
        """A person asks."""
        self.say("prompt", "UserPromptSubmit", prompt=prompt)

    def write(self, path: str, text: str) -> None:
        """It writes a file."""
        self.repo.write({path: text})
        given = {"file_path": str(self.repo.path / path), "content": text}
        self.say("tool", "PostToolUse", tool_name="Write", tool_input=given, tool_response={"type": "create"})

    def run(self, command: str, output: str, status: int = 0) -> None:
        """It runs a command."""
        given = {"command": command, "description": "run it"}
        if status:
            error = f"Exit code {status}\n{output}"
            self.say("tool", "PostToolUseFailure", tool_name="Bash", tool_input=given, error=error, is_interrupt=False)
        else:
            answer = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
            self.say("tool", "PostToolUse", tool_name="Bash", tool_input=given, tool_response=answer)

    def answer(self, text: str) -> None:
        """It has done what it was asked."""
        self.say("turn", "Stop", last_assistant_message=text, stop_hook_active=False)

    def compact(self) -> str:
        """Its context is compacted; what the compactor is told."""
        return self.say("compact", "PreCompact", trigger="auto", custom_instructions=None)

    def end(self, reason: str = "prompt_input_exit") -> None:
        """It ends."""
        self.say("end", "SessionEnd", reason=reason)


def without_a_task(repo: Repo) -> None:
    """Somebody who has never heard of tasks: two turns, a compaction between them, and an end."""
    one = Session(repo, "one")
    one.start()
    one.ask("The shop shows 5.5 as a price. Write price() so that it always has two digits, with a test.")
    one.write("shop.py", SHOP)
    one.write("tests/test_shop.py", "from shop import price\n\ndef test_price():\n    assert price(550) == '5.50'\n")
    one.run("python -m pytest -q", PASSED)
    one.answer("price() is in shop.py and always prints two digits; its test passes.\n\nShall I commit it?")
    one.compact()
    one.ask("Yes, and then add discount codes: TEN takes ten percent off.")
    one.run("git add -A && git commit -qm 'Prices with two digits'", "")
    repo.git("add", "-A")
    repo.git("commit", "--quiet", "--message", "Prices with two digits")
    one.write("discount.py", CODE)
    one.run("python -m pytest -q", f"FAILED tests/test_discount.py::test_ten - assert 99 == 100\n{FAILED}", 1)
    one.answer("discount() is there, but one test fails: TEN on 999 cents rounds down to 99, the test wants 100.")
    one.end()


def crashed_in_a_task(repo: Repo) -> None:
    """A task with criteria; the client is killed in the middle of its second turn."""
    works(
        repo.path, "task", "add", "Discount codes", "--goal", "Codes from the paper list can be typed in at the till",
        "--accept", "TEN takes ten percent off", "--accept", "an unknown code changes nothing",
        "--todo", "read codes from codes.csv", "--todo", "say which code was taken",
    )  # fmt: skip
    works(repo.path, "task", "start", "T-0001", "--next", "Round half up in discount(), so that test_ten passes")
    works(repo.path, "decide", "Whole cents, rounded half up", "--why", "The tax office does so")
    two = Session(repo, "two")
    client = subprocess.Popen(["sleep", "600"])
    two.start(pid=client.pid)
    two.ask("Go on.")
    two.write("discount.py", CODE.replace("cents // 10", "(cents + 5) // 10"))
    two.run("python -m pytest -q", PASSED)
    works(repo.path, "task", "evidence", "T-0001", "--path", "discount.py", "--criterion", "c1")
    two.answer("test_ten passes: half a cent is rounded up.")
    two.ask("Now read the codes from codes.csv instead of the if.")
    two.write("codes.csv", "TEN,10\n")
    two.run("python -m pytest -q", f"FAILED tests/test_discount.py::test_ten - KeyError: 'TEN'\n{FAILED}", 1)
    client.kill()
    client.wait()


def tell(folder: Path) -> str:
    """The whole page."""
    repo = new_repo(folder / "shop")
    repo.commit("The shop")
    works(repo.path, "init", "--project", "Corner shop")
    without_a_task(repo)
    parts = [PAGE, *_shown(repo, "A session without a task", "H-000001", "C-000001")]
    third = Session(repo, "three")
    parts += ["## What the next session is told\n", _fenced(third.start())]
    third.end("other")
    crashed_in_a_task(repo)
    Session(repo, "four").start()
    parts += _shown(repo, "A session with a task, killed in its second turn", "H-000003")
    return _steady("\n".join(parts), repo)


def _shown(repo: Repo, title: str, *names: str) -> Iterator[str]:
    ledger = discover.open(repo.path)
    view = ledger.view()
    yield f"## {title}\n"
    for name in names:
        _, text = reading.document(view, view.resolve(name))
        yield f"### {name}\n"
        yield _fenced(text.decode(), "markdown")


def _fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def _steady(text: str, repo: Repo) -> str:
    """The text with fixed ids and times in the place of those that another run has others of."""
    text = text.replace(discover.open(repo.path).desk.writer.id, WRITER).replace(str(repo.path), "shop")
    text = re.sub(r"\bsha1:[0-9a-f]{40}", "sha1:" + "9f3c" * 10, text)
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d UTC", "2026-11-30 14:02 UTC", text)
    text = re.sub(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-11-30T14:02:11.123Z", text)
    return re.sub(r"\b\d+ (?:s|min) ago|just now", "just now", text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        seal_process(Path(scratch))
        print(tell(Path(scratch)), end="")
