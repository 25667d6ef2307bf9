"""nanobot with a ledger, as its SDK, its own program and its gateway run it; a model on loopback answers.

gitledger is found by nanobot's Python without anything that it depends on, as the entry point of an installed package.
"""

from __future__ import annotations

import json
import socket
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients import install
from tests.clients import lab as labs
from tests.clients.lab import NEXT, ROOT, Lab, called, kill, put_down
from tests.clients.models.openai import OpenAI
from tests.clients.models.server import REPLY, SUMMARY, Request, serving
from tests.clients.test_nanobot import OFFLINE, Call
from tests.clients.test_refusal import FAULTS, WHY, missed
from tests.sealed import Repo, new_repo

SDK = """
import asyncio, json, os, signal, sys
from nanobot import Nanobot
from gitledger.clients.nanobot import Blocked, attach, gate

async def main():
    async with Nanobot.from_config() as bot:
        kept = attach(bot)
        async def say(text, key="sdk:default"):
            return (await bot.run(text, session_key=key)).content
        async def compact(key="sdk:default"):
            return len((await bot.runtime.compact_session(key)).messages)
        async def patience(seconds):
            gate.PATIENCE = float(seconds)
{body}
asyncio.run(main())
"""
"""A program on nanobot's SDK."""
LINES = """
while line := await asyncio.to_thread(sys.stdin.readline):
    word, *words = json.loads(line)
    try:
        said = await {"say": say, "compact": compact, "patience": patience}[word](*words)
        print(json.dumps({"said": said}), flush=True)
    except Exception as e:
        print(json.dumps({"raised": type(e).__name__, "why": str(e)}), flush=True)
"""
"""One that does what it is told line by line, and answers each."""
CAPSULE = "[PROJECT LEDGER CAPSULE]"
SMALL = 75_000
"""Tokens of a context that holds one long message, and not two; nanobot counts a character as one."""


@pytest.fixture
def ours(tmp_path: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """A repository with a ledger which is nanobot's workspace."""
    if why := install.missing("nanobot"):
        pytest.skip(why)
    with serving(OpenAI) as server:
        built = labs.build(tmp_path, home, repo, server)
        built.env.update({**OFFLINE, "PYTHONPATH": str(site(tmp_path)), "PYTHONDONTWRITEBYTECODE": "1"})
        configure(built)
        labs.begin(built)
        yield built


def site(folder: Path) -> Path:
    """A folder of packages as pip leaves it: gitledger, and what it is known by. None of its dependencies are there."""
    found = folder / "site"
    known = found / "gitledger_continuity-0.dist-info"
    known.mkdir(parents=True)
    (found / "gitledger").symlink_to(ROOT / "gitledger")
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: gitledger-continuity\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    rows = [f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in its.items()) for group, its in groups.items()]
    (known / "entry_points.txt").write_text("\n".join(rows))
    return found


def configure(ours: Lab, port: int = 0, **defaults: Any) -> None:
    """Write nanobot's settings; with a `port` its gateway has a channel there."""
    agents = {"workspace": str(ours.repo.path), "provider": "custom", "model": "fake-model", **defaults}
    config: dict[str, Any] = {
        "providers": {"custom": {"apiKey": "none", "apiBase": f"{ours.server.url}/v1"}},
        "agents": {"defaults": agents},
    }
    if port:
        its = {"enabled": True, "host": "127.0.0.1", "port": port, "websocketRequiresToken": False}
        config["channels"] = {"websocket": its}
    (ours.home / ".nanobot").mkdir(exist_ok=True)
    (ours.home / ".nanobot" / "config.json").write_text(json.dumps(config))


def program(body: str) -> list[str | Path]:
    """The words that run a program on the SDK."""
    text = SDK.format(body=textwrap.indent(textwrap.dedent(body), " " * 8))
    return [install.PACKAGES["nanobot"].path, "-c", text]


def sdk(ours: Lab, body: str) -> list[Any]:
    """Run a program on the SDK to its end; each of the lines that it prints is JSON."""
    ran = ours.run(program(body))
    assert ran.status == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


@contextmanager
def living(ours: Lab) -> Iterator[Talk]:
    """A program on the SDK that lives until the block ends, or is killed in it."""
    child = ours.start(program(LINES), stdin=subprocess.PIPE)
    try:
        with ours.patience(child):
            yield Talk(child)
            if child.poll() is None:
                _, err = child.communicate()
                assert child.returncode == 0, err
    finally:
        put_down(child)


@dataclass(frozen=True, slots=True)
class Talk:
    """A program that lives."""

    child: subprocess.Popen[str]

    def begin(self, *words: str) -> None:
        """Have it do something."""
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps(words) + "\n")
        self.child.stdin.flush()

    def do(self, *words: str) -> dict[str, Any]:
        """Have it do something, and what came of it."""
        self.begin(*words)
        assert self.child.stdout is not None
        answer: dict[str, Any] = json.loads(self.child.stdout.readline())
        return answer


def calls(ours: Lab, *made: Call, hang: bool = False) -> None:
    """Have the next requests be answered by these calls, and what comes then as any other, or never where it hangs."""
    left = list(made)

    def call(body: Any) -> Call | None:
        if hang and not left:
            ours.server.script.hang.set()
        return left.pop(0) if left else None

    ours.server.script.call = call


def told(ours: Lab, *kinds: str) -> list[dict[str, Any]]:
    """What is journalled of nanobot by events of these kinds."""
    return [event["data"] for event in ours.journal(*kinds) if event["data"].get("client") == "nanobot"]


def turns(ours: Lab) -> list[str]:
    """The answers that are journalled."""
    return [str(data.get("answer")) for data in told(ours, "turn")]


def prompts(ours: Lab) -> list[str]:
    """What the person said, as it is journalled, whether by the prompt or by its turn."""
    return [str(data["prompt"]) for data in told(ours, "prompt", "turn") if "prompt" in data]


def handovers(ours: Lab) -> list[dict[str, Any]]:
    """The handovers that were written, oldest first."""
    rows = [event["records"] for event in ours.journal("handover.written")]
    return [record["set"] for row in rows for key, record in row.items() if key.startswith("H-")]


def fresh(request: Request) -> str:
    """The person's last message with what was added to it."""
    said = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
    return said[-1] if isinstance(said[-1], str) else json.dumps(said[-1])


def test_a_talk_on_the_sdk_from_its_start_over_a_compaction_to_its_end(ours: Lab) -> None:
    write = ("write_file", {"path": "discount.py", "content": "def discount(): ...\n"})
    calls(ours, write, ("exec", {"command": "echo tool-ran; exit 3"}), ("read_file", {"path": "nowhere.py"}))
    ours.server.script.look = lambda: ours.repo.git("log", "-1", "--format=%s", "ledger/main")
    sdk(
        ours,
        """
        await say("let us look at discounts")
        await say("go on")
        ours = await bot.runtime.compact_session("sdk:default")
        await say("where were we")
        """,
    )
    first, *_, second, summary, third = ours.server.requests
    assert NEXT in fresh(first), "the first request is not briefed"
    assert fresh(first).count(CAPSULE) == 1
    # What was said once stands in the history; it is not said again where nothing has changed.
    assert CAPSULE not in fresh(second)
    assert len(fresh(second)) < len(fresh(first)) / 4
    assert (summary.kind, summary.seen[:2]) == ("summary", "C-"), "it was compacted before there was a checkpoint"
    assert SUMMARY in third.text
    assert CAPSULE in fresh(third)
    assert NEXT in fresh(third)
    system = third.text.partition("where were we")[0]
    assert "Next action: " + NEXT[:30] in system, "the summary does not lead to the checkpoint"

    assert prompts(ours) == ["let us look at discounts", "go on", "where were we"]
    assert turns(ours) == [REPLY] * 3
    turn = told(ours, "turn")[0]
    assert turn["tool"] == "write_file, exec, read_file"
    assert turn["files"] == ["discount.py"]
    assert turn["commands"] == [{"command": "echo tool-ran; exit 3", "exit": 3, "output": "tool-ran"}]
    assert turn["errors"] == [
        message["content"].partition("\n\n")[0]
        for message in second.body["messages"]
        if message["role"] == "tool" and message["content"].startswith("Error")
    ]
    assert [data["event"] for data in told(ours, "receipt")].count("compacted") == 1
    [end] = handovers(ours)
    assert (end["reason"], end["turns"]) == ("exit", 3)
    assert ours.ledger("session", "list", "--json").strip() == "[]"
    ours.ledger("verify")
    ours.ledger("rebuild", "--check")


def test_without_a_checkpoint_nothing_is_compacted_but_what_a_person_lets_through(ours: Lab) -> None:
    with living(ours) as talk:
        talk.do("say", "a word to be kept")
        talk.do("patience", "0")
        before = transcript(ours)
        for fault, broken in FAULTS.items():
            tip, so_far, asked = ours.tip(), len(ours.server.requests), len(called(ours))
            with broken(ours):
                refused = talk.do("compact")
            assert refused["raised"] == "Blocked", f"it compacted although {fault}: {refused}"
            assert WHY in refused["why"], f"it does not say why when {fault}: {refused}"
            assert len(ours.server.requests) == so_far, f"a model was asked although {fault}"
            assert (transcript(ours), ours.tip()) == (before, tip), f"something was changed although {fault}"
            assert ("hook nanobot compact" in called(ours)[asked:]) == (fault != "the program is missing")
        # Just after a refusal nobody tries again, until a person lets one through, which holds once.
        talk.do("patience", "300")
        with labs.signature_bad(ours):
            talk.do("compact")
            asked = len(called(ours))
            assert WHY in talk.do("compact")["why"]
            assert len(called(ours)) == asked
            ours.ledger("compaction", "allow", "--once", "--reason", "the key is in another house")
            assert "said" in talk.do("compact")
            assert len(ours.asked("summary")) == 1
            talk.do("say", "and on")
            assert WHY in talk.do("compact")["why"], "a second one went through on the same permission"
        assert missed(ours), "the next briefing does not say that a checkpoint is missing"


def transcript(ours: Lab) -> list[str]:
    """nanobot's own session files, line by line."""
    files = sorted((ours.home / ".nanobot" / "sessions").rglob("*.jsonl"))
    assert files
    return [line for path in files for line in path.read_text().splitlines()]


def test_a_request_that_has_grown_too_long_is_compacted_behind_a_checkpoint_or_not_sent(ours: Lab) -> None:
    configure(ours, contextWindowTokens=SMALL, maxTokens=2_000)
    ours.server.script.look = lambda: ours.repo.git("log", "-1", "--format=%s", "ledger/main")
    long = "word " * 3_000
    with living(ours) as talk:
        talk.do("patience", "0")
        assert talk.do("say", f"one {long}") == {"said": REPLY}
        assert talk.do("say", f"two {long}") == {"said": REPLY}
        summary, turn = ours.server.requests[1:]
        assert (summary.kind, summary.seen[:2]) == ("summary", "C-"), "it was compacted before there was a checkpoint"
        assert "Next action: " + NEXT[:30] in turn.text, "the turn is not led on"
        with labs.signature_bad(ours):
            refused = talk.do("say", f"three {long}")
        assert (refused["raised"], WHY in refused["why"]) == ("Blocked", True)
        assert len(ours.server.requests) == 3, "it asked on without a checkpoint"
        assert sum("three word" in line for line in transcript(ours)) == 1, "what the person said is not kept"
        assert "said" in talk.do("compact")
        talk.do("say", "four")
        assert CAPSULE in fresh(ours.server.requests[-1])
    # The one that was refused is told of as well, and each once.
    assert [prompt.split()[0] for prompt in prompts(ours)] == ["one", "two", "three", "four"]
    assert [answer.startswith("Error: Task interrupted") for answer in turns(ours)] == [False, False, True, False]
    ours.ledger("verify")


def test_a_turn_that_was_killed_is_there_at_the_next_start(ours: Lab) -> None:
    with living(ours) as talk:
        talk.do("say", "the first one")
        calls(ours, ("exec", {"command": "echo tool-ran"}), hang=True)
        talk.begin("say", "begin KILLED-MARK")
        ours.wait_for("the model was asked again", ours.server.script.hang.is_set, talk.child)
        kill(talk.child)
    calls(ours)
    ours.server.script.hang.clear()
    # Another talk is told of it by the handover that is recovered for it …
    sdk(ours, 'await say("where were we", key="sdk:other")')
    [recovered] = [one for one in handovers(ours) if one["recovered"]]
    assert "KILLED-MARK" in recovered["last_prompt"]
    assert "## Handover H-000001" in fresh(ours.server.requests[-1]), "the next start was not told of it"
    # … and its own one goes on behind it, with what ran until then.
    sdk(ours, 'await say("and on")')
    assert "KILLED-MARK" in ours.server.requests[-1].text
    assert prompts(ours) == ["the first one", "begin KILLED-MARK", "where were we", "and on"]
    assert len(turns(ours)) == 4
    [ran] = [data["commands"] for data in told(ours, "turn") if "commands" in data]
    assert ran == [{"command": "echo tool-ran", "exit": 0, "output": "tool-ran"}]
    ours.ledger("verify")


def test_a_turn_after_which_the_process_died_before_it_was_told_of_is_journalled_once(ours: Lab) -> None:
    die = """
    async def dies(*words, **given):
        os.kill(os.getpid(), signal.SIGKILL)
    await say("the first one")
    bot._loop.runtime_event_publisher.session_turn_persisted = dies
    await say("the last one", key=sys.argv[1])
    """
    for key in ("sdk:default", "sdk:other"):
        ran = ours.run([*program(die), key])
        assert ran.status == -9
    lost = [turn for turn in told(ours, "turn") if "prompt" in turn]
    assert lost == []
    assert turns(ours) == [REPLY, REPLY, REPLY], "the second start did not take up what the first one had lost"
    # Another talk than the one that was lost, and again: each turn is there, and none twice.
    for n in range(2):
        sdk(ours, 'await say("and on", key="sdk:third")')
        assert turns(ours) == [REPLY] * (5 + n)
    assert prompts(ours) == ["the first one", "the last one"] * 2 + ["and on"] * 2
    ours.ledger("verify")


def test_two_talks_at_once_are_two_sessions_with_a_handover_each(ours: Lab) -> None:
    sdk(
        ours,
        """
        async def talk(name):
            for n in range(3):
                await say(f"{name} {n}", key=f"sdk:{name}")
        await asyncio.gather(talk("one"), talk("two"))
        """,
    )
    told_by = [(event["session"], event["data"]["prompt"]) for event in ours.journal("prompt")]
    sessions = {session for session, _ in told_by}
    assert len(sessions) == 2
    for session in sessions:
        [name, *_] = [prompt.split()[0] for one, prompt in told_by if one == session]
        assert [prompt for one, prompt in told_by if one == session] == [f"{name} {n}" for n in range(3)]
    assert len(turns(ours)) == 6
    assert [end["reason"] for end in handovers(ours)] == ["exit"] * 2
    ours.ledger("verify")


# ── its own program ──────────────────────────────────────────────────────────────────────────
def agent(*words: str) -> list[str | Path]:
    """The words that run `nanobot agent`."""
    return [install.PACKAGES["nanobot"].path, "-m", "nanobot", "agent", *words]


@contextmanager
def typing(ours: Lab) -> Iterator[Prompt]:
    """`nanobot agent` at its prompt, until the block ends or kills it."""
    said = ours.folder / "said"
    script = 'said=$1; shift; exec "$@" >"$said" 2>&1'
    words = ["sh", "-c", script, "sh", str(said), *agent("--classic")]
    child = ours.start(words, stdin=subprocess.PIPE)
    prompt = Prompt(ours, child, said)
    try:
        with ours.patience(child):
            ours.wait_for("its prompt", lambda: "Interactive mode" in prompt.text(), child)
            yield prompt
            if child.poll() is None:
                prompt.type("exit")
                child.wait()
    finally:
        put_down(child)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The program at its prompt."""

    lab: Lab
    child: subprocess.Popen[str]
    said: Path

    def text(self) -> str:
        """All that it said so far."""
        return self.said.read_text(errors="replace") if self.said.exists() else ""

    def type(self, line: str) -> None:
        """Type a line."""
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\r")
        self.child.stdin.flush()

    def say(self, line: str) -> None:
        """Say something, and wait for the turn to be journalled."""
        asked = len(self.lab.asked("turn"))  # a summary may be asked for meanwhile
        self.type(line)
        self.lab.wait_for("the question", lambda: len(self.lab.asked("turn")) > asked, self.child)
        self.lab.wait_for(f"the turn of {line}", lambda: settled(self.lab), self.child)


def settled(ours: Lab) -> bool:
    """True where of every session each prompt has its turn in the log, by the marks of what is there."""
    marks = (ours.repo.path / ".git" / "gitledger" / "nanobot-main").iterdir()
    return all(json.loads(path.read_text())["prompted"] == [] for path in marks if not path.name.startswith("."))


def test_one_message_by_its_own_program_is_a_session_from_the_briefing_to_the_handover(ours: Lab) -> None:
    calls(ours, ("ledger_decide", {"title": "Cents, not floats", "why": "sums are exact"}))
    ran = ours.run(agent("-m", "let us look at discounts"))
    assert (ran.status, REPLY in ran.out) == (0, True), ran
    first, second = ours.server.requests
    assert NEXT in fresh(first)
    assert fresh(first).count(CAPSULE) == 1
    assert {tool["function"]["name"] for tool in first.body["tools"]} >= {"ledger_get", "ledger_task", "ledger_search"}
    assert "D-0001" in second.body["messages"][-1]["content"]
    assert "Cents, not floats" in ours.ledger("show", "D-0001")
    assert (prompts(ours), turns(ours)) == (["let us look at discounts"], [REPLY])
    assert [end["reason"] for end in handovers(ours)] == ["exit"]
    # The next one goes on in the same session, and is told what the last one left.
    ours.run(agent("-m", "and on"))
    assert "H-000001" in fresh(ours.server.requests[-1])
    assert len({event["session"] for event in ours.journal("turn")}) == 1
    assert [end["turns"] for end in handovers(ours)] == [1, 2]
    ours.ledger("verify")


def test_at_its_prompt_a_compaction_waits_for_the_checkpoint_and_a_new_talk_is_handed_the_last_one(ours: Lab) -> None:
    with typing(ours) as prompt:
        prompt.say("the first one")
        with labs.signature_bad(ours):
            prompt.type("/compact")
            ours.wait_for("the refusal", lambda: WHY in prompt.text(), prompt.child)
        assert ours.asked("summary") == []
        ours.ledger("compaction", "allow", "--once", "--reason", "the key is in another house")
        prompt.type("/compact")
        ours.wait_for("the summary", lambda: bool(ours.asked("summary")), prompt.child)
        ours.wait_for("its end", lambda: any(SUMMARY in line for line in transcript(ours)), prompt.child)
        prompt.say("the second one")
        assert NEXT in fresh(ours.asked("turn")[-1])
        prompt.type("/new")
        ours.wait_for("the new talk", lambda: "New session started" in prompt.text(), prompt.child)
        prompt.say("the third one")
        assert "## Handover H-000001" in fresh(ours.asked("turn")[-1])
    assert [end["reason"] for end in handovers(ours)] == ["new", "exit"]
    assert prompts(ours) == ["the first one", "the second one", "the third one"]
    assert turns(ours) == [REPLY] * 3
    ours.ledger("verify")


def test_its_own_program_killed_in_a_turn_and_right_behind_one(ours: Lab) -> None:
    with typing(ours) as prompt:
        prompt.say("the first one")
        kill(prompt.child)
    with typing(ours) as prompt:
        prompt.say("the second one")
        calls(ours, ("exec", {"command": "echo tool-ran"}), hang=True)
        prompt.type("begin KILLED-MARK")
        ours.wait_for("the model was asked again", ours.server.script.hang.is_set, prompt.child)
        kill(prompt.child)
    calls(ours)
    ours.server.script.hang.clear()
    ours.run(agent("-m", "where were we", "-s", "cli:other"))
    [recovered] = [one for one in handovers(ours) if one["recovered"]]
    assert "KILLED-MARK" in recovered["last_prompt"]
    assert f"## Handover {recovered['number_name']}" in fresh(ours.server.requests[-1]), "the next start is not told"
    ours.run(agent("-m", "and on"))
    assert prompts(ours) == ["the first one", "the second one", "begin KILLED-MARK", "where were we", "and on"]
    assert len(turns(ours)) == 5
    ours.ledger("verify")


# ── its gateway ──────────────────────────────────────────────────────────────────────────────
CHAT = """
import asyncio, sys
from websockets.asyncio.client import connect
async def main():
    async with connect(f"ws://127.0.0.1:{sys.argv[1]}/?client_id=ada") as line:
        await line.recv()
        for text in sys.argv[2:]:
            await line.send(text)
            while "FAKE-REPLY" not in (said := await line.recv()) and "BLOCKED" not in said:
                pass
            print(said)
asyncio.run(main())
"""
"""A person at a channel of the gateway, who waits for each answer."""


def test_its_gateway_journals_every_talk_and_hands_them_over_at_its_end(ours: Lab) -> None:
    port, health = free(), free()
    configure(ours, port)
    said = ours.folder / "said"
    words = [install.PACKAGES["nanobot"].path, "-m", "nanobot", "gateway", "--foreground", "--port", str(health)]
    child = ours.start(["sh", "-c", 'said=$1; shift; exec "$@" >"$said" 2>&1', "sh", str(said), *words])
    try:
        with ours.patience(child):
            ours.wait_for("its channel", lambda: listening(port), child)
            for texts in (("one 1", "one 2"), ("two 1",)):
                ran = ours.run([install.PACKAGES["nanobot"].path, "-c", CHAT, str(port), *texts])
                assert ran.status == 0, ran.err
            ours.wait_for("all turns", lambda: settled(ours), child)
            assert NEXT in fresh(ours.server.requests[0])
            # The second word comes while the first one's answer is on its way: nanobot takes both into one turn.
            assert prompts(ours) == ["one 1", "one 2", "two 1"]
            assert turns(ours) == [REPLY] * 3
            child.terminate()
            child.wait()
    finally:
        put_down(child)
    assert [(end["reason"], end["turns"]) for end in handovers(ours)] == [("exit", 2), ("exit", 1)]
    ours.ledger("verify")


# ── what a person puts in ────────────────────────────────────────────────────────────────────
def test_the_program_of_the_examples_keeps_a_ledger(ours: Lab) -> None:
    script = ROOT / "docs" / "examples" / "nanobot" / "shop.py"
    ran = ours.run([install.PACKAGES["nanobot"].path, str(script), str(ours.repo.path), "hello", "and on"])
    assert (ran.status, ran.out.splitlines()) == (0, [REPLY] * 3), ran.err
    assert prompts(ours) == ["hello", "and on", "What is the next action?"]
    assert [(end["reason"], end["turns"]) for end in handovers(ours)] == [("exit", 3)]


def test_the_plugin_is_enabled_by_nanobot_itself_and_its_skill_is_there_until_a_file_changes(ours: Lab) -> None:
    python = install.PACKAGES["nanobot"].path
    nanobot = ours.bin / "nanobot"
    nanobot.write_text(f"#!{python}\n")
    nanobot.chmod(0o755)
    put = ours.ledger("hooks", "install", "--client", "nanobot")
    assert "6 events wired" in put
    assert f"{python} -m pip install gitledger-continuity" in put, "its Python has no such package, in its own folder"
    tried = ours.run([ours.bin / "gitledger", "hooks", "test", "--client", "nanobot"])
    assert "5 tools, by nanobot 0.3.5" in tried.out
    look = f"""
        from pathlib import Path
        from nanobot.agent.plugins import enabled_agent_plugin_skills
        print(json.dumps([name for name, _ in enabled_agent_plugin_skills(Path({str(ours.repo.path)!r}))]))
    """
    assert sdk(ours, look) == [["gitledger"]]
    assert "not enabled" not in ours.run([ours.bin / "gitledger", "hooks", "status"]).err
    skill = ours.repo.path / "plugins" / "gitledger" / "skills" / "gitledger" / "SKILL.md"
    text = skill.read_text()
    skill.write_text(text + "more\n")
    assert sdk(ours, look) == [[]]
    assert "not enabled" in ours.run([ours.bin / "gitledger", "hooks", "status"]).err
    skill.write_text(text)
    ours.ledger("hooks", "install", "--client", "nanobot")
    assert sdk(ours, look) == [["gitledger"]]
    ours.ledger("hooks", "uninstall", "--client", "nanobot")
    assert ours.repo.git("status", "--porcelain", "--ignored") == "?? .nanobot/", "but what nanobot makes for itself"
    assert not (ours.repo.path / "plugins").exists()
    assert not (ours.home / ".nanobot" / "plugin-data").exists()


def test_a_repository_without_a_ledger_is_not_touched_and_compacts_as_it_always_did(ours: Lab) -> None:
    bare = new_repo(ours.folder / "bare")
    configure(ours, workspace=str(bare.path))
    before = bare.git("for-each-ref")
    sdk(ours, 'await say("hello")\nawait compact()\nawait say("and on")')
    assert [request.kind for request in ours.server.requests] == ["turn", "summary", "turn"]
    assert fresh(ours.server.requests[0]) == "hello"
    assert not (bare.path / ".git" / "gitledger").exists()
    assert bare.git("for-each-ref") == before


def free() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def listening(port: int) -> bool:
    """True where somebody answers at a port of loopback."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
