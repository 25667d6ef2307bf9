"""nanobot and gitledger on one memory file: its Dream job as its own program runs it, and nothing is lost by either.

The Dream is asked for by `/dream` in the real `nanobot agent`, the command of the job that its gateway starts by the
clock; a model on loopback answers with calls of its file tools. nanobot writes in place, whenever it likes, unlocked.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.clients import install, lab
from tests.clients.lab import ROOT, Lab, program, put_down, put_gitledger, put_program
from tests.clients.models.openai import OpenAI
from tests.clients.models.server import serving
from tests.clients.test_memory import TEXT, proposal
from tests.process.program import Ran
from tests.sealed import Repo

Call: TypeAlias = tuple[str, dict[str, Any]]
NAME = "memory/MEMORY.md"
OFFLINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"}
"""It asks the internet for a table of tokens, and goes on without."""
READ: Call = ("read_file", {"path": NAME})
LATE = """
import pathlib, time
from gitledger import memoryfile
real = memoryfile.exchange
def exchange(one, other):
    memoryfile.exchange = real
    pathlib.Path({at!r}).touch()
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.02)
    return real(one, other)
memoryfile.exchange = exchange
"""
"""The file was compared, and is exchanged in the next moment, which lasts until the test says so."""


def fact(n: int) -> str:
    return f"- fact number {n} of this file"


def without(n: int, text: str = TEXT) -> str:
    return text.replace(f"{fact(n)}\n", "")


def edit(old: str, new: str) -> Call:
    return ("edit_file", {"path": NAME, "old_text": old, "new_text": new})


def write(text: str) -> Call:
    return ("write_file", {"path": NAME, "content": text})


@dataclass(frozen=True, slots=True)
class Pause:
    """Between what a Dream read and what it writes: `reached` once it is there, `over` once it may go on."""

    reached: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Bot:
    """The real program at its prompt, in a repository that is its workspace."""

    lab: Lab
    child: subprocess.Popen[str]
    said: Path

    @property
    def file(self) -> Path:
        """The memory file of both."""
        return self.lab.repo.path / NAME

    def dreams(self) -> list[str]:
        """How each Dream so far ended, as it tells its person."""
        return re.findall(r"Dream (?:completed|did not|failed)[^\n]*", self.said.read_text(errors="replace"))

    def begin(self, *calls: Call, pause: Pause | None = None) -> None:
        """Begin a Dream with something to think about, whose model makes these calls, and pauses before the last."""

        def call(body: Any) -> Call | None:
            made = sum(message.get("role") == "tool" for message in body["messages"])
            if made == len(calls) - 1 and pause is not None:
                pause.reached.set()
                pause.over.wait(lab.PATIENCE)
            return calls[made] if made < len(calls) else None

        self.lab.server.script.call = call
        history = self.file.with_name("history.jsonl")
        cursor = len(history.read_text().splitlines()) + 1 if history.exists() else 1
        with history.open("a") as f:
            told = {"cursor": cursor, "timestamp": "2026-11-30 10:00", "content": "[durable] Ada drinks tea"}
            f.write(json.dumps(told) + "\n")
        self.say("/dream")

    def end(self, n: int) -> None:
        """Wait until the `n`th Dream is over; it must have gone well, and changed the file."""
        self.lab.wait_for(f"the end of Dream {n}", lambda: len(self.dreams()) >= n, self.child)
        assert re.match(r"Dream completed in [\d.]+s\. \(commit ", self.dreams()[n - 1]), self.said.read_text()

    def say(self, line: str) -> None:
        """Type a line."""
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\r")
        self.child.stdin.flush()


@pytest.fixture
def ours(tmp_path: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """A repository with a ledger and a memory file, which is nanobot's workspace; its model is ours."""
    if why := install.missing("nanobot"):
        pytest.skip(why)
    with serving(OpenAI) as server:
        built = lab.build(tmp_path, home, repo, server)
        built.env.update(OFFLINE)
        (repo.path / "memory").mkdir()
        (repo.path / NAME).write_text(TEXT)
        config = {
            "providers": {"custom": {"apiKey": "none", "apiBase": f"{server.url}/v1"}},
            "agents": {"defaults": {"workspace": str(repo.path), "provider": "custom", "model": "fake-model"}},
            "modelPresets": {"tidy": {"model": "tidy-model", "provider": "custom"}},
        }
        (home / ".nanobot").mkdir()
        (home / ".nanobot" / "config.json").write_text(json.dumps(config))
        built.ledger("init", "--project", "Shop")
        yield built


@pytest.fixture
def bot(ours: Lab) -> Iterator[Bot]:
    said = ours.folder / "said"
    words = [str(install.PACKAGES["nanobot"].path), "-m", "nanobot", "agent", "--classic"]
    script = 'said=$1; shift; exec "$@" >"$said" 2>&1'
    child = ours.start(["sh", "-c", script, "sh", str(said), *words], stdin=subprocess.PIPE)
    try:
        ours.wait_for("its prompt", lambda: said.exists() and "Interactive mode" in said.read_text(), child)
        yield Bot(ours, child, said)
    finally:
        put_down(child)


def propose(bot: Bot, *original: str) -> None:
    """Have a proposal that these blocks go wait for its person."""
    sha256 = hashlib.sha256(bot.file.read_bytes()).hexdigest()
    changes = [{"kind": "ephemeral", "original": [block], "reason": "it was of a day"} for block in original]
    (bot.lab.folder / "changes.json").write_text(json.dumps({"source_sha256": sha256, "changes": changes}))
    bot.lab.ledger("memory", "propose", "--from", str(bot.lab.folder / "changes.json"))


def gitledger(bot: Bot, *words: str) -> Ran:
    return bot.lab.run([bot.lab.bin / "gitledger", *words])


def refused(bot: Bot, ran: Ran, why: str, tip: str, wanted: str) -> None:
    """See that nothing was done, and that what the Dream wrote stands."""
    assert ran.status != 0, ran.out
    assert why in ran.err
    assert bot.file.read_text() == wanted
    assert bot.lab.tip() == tip
    whole(bot)


def whole(bot: Bot) -> None:
    """See that nothing of gitledger's waits beside the file, and that the ledger is sound beside nanobot's commits."""
    assert [path.name for path in bot.file.parent.iterdir() if "MEMORY" in path.name or "gitledger" in path.name] == [
        bot.file.name
    ]
    bot.lab.ledger("verify")
    assert "dream: manual run" in bot.lab.repo.git("log", "--format=%s")


def test_a_dream_between_a_proposal_and_its_application_stands(bot: Bot) -> None:
    propose(bot, fact(4))
    bot.begin(READ, edit(fact(7), "- fact number 7, and Ada drinks tea"))
    bot.end(1)
    dreamt = TEXT.replace(fact(7), "- fact number 7, and Ada drinks tea")
    refused(bot, gitledger(bot, "memory", "apply"), "source_sha256", bot.lab.tip(), dreamt)


@pytest.mark.parametrize("how", ["an edit", "the whole file"])
def test_a_dream_in_the_moment_of_the_exchange_stands(bot: Bot, how: str) -> None:
    propose(bot, fact(4))
    tip = bot.lab.tip()
    at, go, late = (bot.lab.folder / name for name in ("at", "go", "late.py"))
    late.write_text(LATE.format(at=str(at), go=str(go)))
    put_program(bot.lab, program(f"exec(open({str(late)!r}).read())"))
    child = bot.lab.start([bot.lab.bin / "gitledger", "memory", "apply"])
    with bot.lab.patience(child):
        bot.lab.wait_for("the moment of the exchange", at.exists, child)
        dreamt = TEXT.replace(fact(7), "- fact number 7, and Ada drinks tea")
        bot.begin(READ, edit(fact(7), "- fact number 7, and Ada drinks tea") if how == "an edit" else write(dreamt))
        bot.end(1)
        go.touch()
        out, err = child.communicate()
    put_gitledger(bot.lab)
    refused(bot, Ran(child.returncode, out, err), "was changed by somebody else meanwhile", tip, dreamt)


def test_a_dream_goes_on_from_the_changed_file_and_the_undo_puts_back_what_it_left_room_for(bot: Bot) -> None:
    propose(bot, fact(4))
    bot.lab.ledger("memory", "apply")
    bot.begin(READ, edit(fact(7), "- fact number 7, and Ada drinks tea"))
    bot.end(1)
    seen = [request.text for request in bot.lab.server.requests if "You are running Dream" in request.text]
    assert fact(5) in seen[-1]
    assert fact(4) not in seen[-1]
    tea = TEXT.replace(fact(7), "- fact number 7, and Ada drinks tea")
    assert bot.file.read_text() == without(4, tea)
    bot.lab.ledger("memory", "undo", "M-0001")
    assert bot.file.read_text() == tea
    # The next one has the lines around rewritten: there is no place left to put anything back.
    propose(bot, fact(2))
    bot.lab.ledger("memory", "apply")
    short = "# Memory\n\n- of ten facts, some; and Ada drinks tea\n"
    bot.begin(READ, write(short))
    bot.end(2)
    refused(bot, gitledger(bot, "memory", "undo", "M-0003"), "by something else than gitledger", bot.lab.tip(), short)
    shown = bot.lab.ledger("show", "M-0003")
    assert fact(2) in shown


def test_a_dream_that_read_before_the_change_and_writes_after_it_loses_nobody_a_byte(bot: Bot) -> None:
    propose(bot, fact(4))
    pause = Pause()
    stale = TEXT + "- Ada drinks tea\n"
    bot.begin(READ, write(stale), pause=pause)
    bot.lab.wait_for("its reading", pause.reached.is_set, bot.child)
    bot.lab.ledger("memory", "apply")
    assert bot.file.read_text() == without(4)
    pause.over.set()
    bot.end(1)
    # It wrote all that it had read, and so took the change back: that is said, and nothing is put in twice.
    assert bot.file.read_text() == stale
    tip = bot.lab.tip()
    refused(bot, gitledger(bot, "memory", "undo", "M-0001"), "stand in the file again, at line 6", tip, stale)
    propose(bot, fact(4))
    bot.lab.ledger("memory", "apply")
    assert bot.file.read_text() == without(4, stale)
    whole(bot)


def test_it_proposes_by_its_model_preset_what_is_compacted(ours: Lab) -> None:
    script = ROOT / "docs" / "examples" / "proposers" / "nanobot_propose.py"
    words = json.dumps([str(install.PACKAGES["nanobot"].path), str(script), "tidy"])
    ours.ledger("config", "set", "proposer.command", words)
    ours.server.script.reply = proposal
    ran = ours.run([ours.bin / "gitledger", "memory", "compact"])
    assert ran.status == 0, ran.err
    assert "1. ephemeral, line 6: it was of a day" in ran.out
    assert (ours.repo.path / NAME).read_text() == without(4)
    asked = [one for one in ours.server.requests if "You are asked which lines of an agent's memory" in one.text]
    assert [one.body["model"] for one in asked] == ["tidy-model"] * 2


def test_its_agent_is_offered_the_skill_and_does_by_it_what_its_person_says(bot: Bot) -> None:
    skill = "skills/gitledger-memory/SKILL.md"
    shutil.copytree(ROOT / "docs/examples/nanobot/skills", bot.lab.repo.path / "skills", dirs_exist_ok=True)
    # Its shell knows nothing of nanobot's own PATH, and of the person's where it is asked to be a login shell.
    (bot.lab.home / ".profile").write_text(f"PATH={bot.lab.bin}:$PATH\n")
    offered: list[bool] = []
    results: list[str] = []

    def call(body: Any) -> Call | None:
        messages = body["messages"]
        asked = max((n for n, one in enumerate(messages) if one["role"] == "user"), default=0)
        said = str(messages[asked]["content"])
        got = [str(one["content"]) for one in messages[asked:] if one["role"] == "tool"]
        if "Tidy the memory" in said:
            offered.append("gitledger-memory" in str(messages[0]["content"]))
            changes = [{"kind": "ephemeral", "original": [fact(n)], "reason": "it was of a day"} for n in (4, 7)]
            digest = re.search(r"source_sha256: ([0-9a-f]{64})", got[1]) if len(got) > 1 else None
            document = json.dumps({"source_sha256": digest[1] if digest else "", "changes": changes})
            calls: list[Call] = [
                ("exec", {"command": f"cat {skill}"}),  # its read_file reads nothing below /dev, as this may lie
                ("exec", {"command": "gitledger memory audit --prompt", "login": True}),
                ("write_file", {"path": "changes.json", "content": document}),
                ("exec", {"command": "gitledger memory propose --from changes.json", "login": True}),
            ]
        elif "keep the second" in said:
            calls = [("exec", {"command": "gitledger memory apply --keep 2", "login": True})]
        else:
            return None
        results[:] = got
        return calls[len(got)] if len(got) < len(calls) else None

    bot.lab.server.script.call = call
    bot.say("Tidy the memory")
    bot.lab.wait_for("the proposal", lambda: len(results) == 4, bot.child)
    assert offered
    assert all(offered)
    assert "name: gitledger-memory" in results[0]
    assert "2. ephemeral, line 9: it was of a day" in results[3]
    assert bot.file.read_text() == TEXT
    bot.say("keep the second")
    bot.lab.wait_for("the change", lambda: results and "M-0001" in results[-1], bot.child)
    assert bot.file.read_text() == without(4)
    bot.lab.ledger("verify")
