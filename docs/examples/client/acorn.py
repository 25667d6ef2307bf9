"""acorn: a whole coding agent in a hundred lines, which keeps a project ledger.

    ACORN_MODEL="any command that reads a prompt and prints an answer" acorn

You type, the model answers; a line of its answer that begins with `$ ` is run, and the model is told what it printed.
A conversation that grows too long is summarised, but never before a checkpoint stands.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field

from gitledger.clients.embedded import Embedded, Ran, find
from gitledger.errors import LedgerError

LIMIT = int(os.environ.get("ACORN_LIMIT", "20000"))
"""Characters of a conversation beyond which it is summarised."""
STEPS = 10
"""Commands that one request may run."""


@dataclass
class Chat:
    """One conversation: what was said by whom, and the ledger of the project, if it has one."""

    ledger: Embedded | None
    id: str
    said: list[tuple[str, str]] = field(default_factory=list)
    limit: int = LIMIT

    def size(self) -> int:
        """Its length in characters."""
        return sum(len(text) for _, text in self.said)


def log(chat: Chat, event: str, **what: str | int) -> None:
    """Log what happened, as acorn has it: on disk within milliseconds. What it means is said by acorn_ledger.py."""
    try:
        if chat.ledger:
            chat.ledger.log(event, {"conversation": chat.id, **what})
    except (LedgerError, OSError) as e:
        print(f"acorn: not logged: {e}", file=sys.stderr)


def ask(chat: Chat, event: str, **what: str | int) -> Ran:
    """Have gitledger do what belongs to an event; where there is no ledger nothing is said, and all is allowed."""
    return chat.ledger.hook(event, {"conversation": chat.id, "pid": os.getpid(), **what}) if chat.ledger else Ran(0)


def model(chat: Chat, request: str = "") -> str:
    """The model's answer to the conversation."""
    prompt = "\n\n".join(f"[{who}]\n{text}" for who, text in [*chat.said, ("person", request)] if text)
    words = ["/bin/sh", "-c", os.environ["ACORN_MODEL"]]
    return subprocess.run(words, input=prompt, capture_output=True, text=True, check=True).stdout.strip()


def turn(chat: Chat, request: str) -> str:
    """Answer one request, with as many commands as the model asks for."""
    log(chat, "prompt", text=request)
    chat.said.append(("person", request))
    for _ in range(STEPS):
        answer = model(chat)
        chat.said.append(("acorn", answer))
        command = next((line[2:] for line in answer.splitlines() if line.startswith("$ ")), None)
        if command is None:
            break
        ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, errors="replace", check=False)
        log(chat, "tool", ran=command, status=ran.returncode, printed=ran.stdout + ran.stderr)
        chat.said.append(("shell", f"{ran.stdout}{ran.stderr}[exit {ran.returncode}]"))
    log(chat, "turn", text=answer, size=chat.size(), limit=chat.limit)
    return answer


def compact(chat: Chat) -> None:
    """Replace the conversation by a summary; without a checkpoint it stays as it is, and acorn asks again later."""
    made = ask(chat, "compact")
    if made.status:
        print(f"acorn: the conversation goes on as it is. {made.error}", file=sys.stderr)
        chat.limit += LIMIT // 2
        return
    chat.said = [("summary", model(chat, "Summarise this conversation.")), ("project ledger", made.text)]
    chat.limit = LIMIT
    log(chat, "compacted")


def main() -> None:
    """Talk until the input ends."""
    chat = Chat(find("acorn", os.getcwd()), os.environ.get("ACORN_CONVERSATION") or str(uuid.uuid4()))
    briefing = ask(chat, "start", why="startup")
    chat.said.append(("project ledger", briefing.text))
    for line in sys.stdin:
        print(turn(chat, line.strip()), flush=True)
        if chat.size() > chat.limit:
            compact(chat)
    ask(chat, "end", why="quit")


if __name__ == "__main__":
    main()
