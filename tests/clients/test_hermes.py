"""Hermes itself, of the pinned release, on a model server of our own: what reaches the ledger, what the model is given.

Each test is whole runs of the real agent; behind each stand the checks of `sound`. Hermes' own clean-up takes eleven
seconds and is left out, but where it is the point.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.clients import install
from tests.clients.lab import NEXT, ROOT, Lab, begin, build, kill
from tests.clients.models.openai import OpenAI
from tests.clients.models.server import serving
from tests.sealed import Repo

BEGIN, END = "[PROJECT LEDGER CAPSULE]", "[/PROJECT LEDGER CAPSULE]"
HANDOVER = "## Handover H-"
FAILED = "printf 'FAILED test_x\\n==== 1 failed, 3 passed in 0.1s ====\\n'; exit 1"


@pytest.fixture
def hermes(tmp_path: Path, home: Path, repo: Repo) -> Iterator[Lab]:
    """A ledger, a Hermes that has our plugins, and the model that it talks to."""
    if why := install.missing("hermes"):
        pytest.skip(why)
    with serving(OpenAI) as server:
        lab = build(tmp_path, home, repo, server)
        lab.env["HERMES_HOME"] = str(home / ".hermes")
        lab.env.update({"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"})
        server.script.limit = 400
        configure(lab)
        begin(lab)
        put_in(lab)
        yield lab


def configure(lab: Lab, *, in_place: bool = True) -> None:
    """Hermes' configuration as a person has it who answers no questions."""
    folder = Path(lab.env["HERMES_HOME"])
    folder.mkdir(parents=True, exist_ok=True)
    text = f"""model:
  provider: custom
  base_url: {lab.server.url}/v1
  api_key: dummy
  default: fake-model
  context_length: 131072
compression:
  in_place: {str(in_place).lower()}
approvals:
  destructive_slash_confirm: false
"""
    (folder / "config.yaml").write_text(text)


def put_in(lab: Lab) -> None:
    """Put our plugins in, as a person does."""
    lab.ledger("hooks", "install", "--client", "hermes")


def words(steps: Sequence[Sequence[str]]) -> list[str]:
    return [str(install.PACKAGES["hermes"].path), str(ROOT / "tests" / "clients" / "hermes_talk.py"), json.dumps(steps)]


def talk(lab: Lab, *steps: Sequence[str], status: int = 0) -> list[list[Any]]:
    """What came of each step of one process."""
    ran = lab.run(words(steps))
    assert ran.status == status, f"{ran.status}: {ran.out[-3000:]}\n{ran.err[-3000:]}"
    return told(ran.out)


def told(out: str) -> list[list[Any]]:
    return [json.loads(line.partition("STEP ")[2]) for line in out.splitlines() if "STEP [" in line]


def say(*prompts: str) -> list[list[str]]:
    return [step for prompt in prompts for step in (["say", prompt], ["flush"])]


def turns(lab: Lab) -> list[dict[str, Any]]:
    """What the turns' events say."""
    return [event["data"] for event in lab.journal("turn")]


def asked(lab: Lab, prompt: str) -> str:
    """All that the model read with one prompt, its newest request of that."""
    found = [r for r in lab.asked("turn") if str(r.body["messages"][-1].get("content")).startswith(prompt)]
    assert found, f"no request with {prompt!r}"
    return str(found[-1].body["messages"][-1]["content"])


def summaries(lab: Lab) -> list[str]:
    """What the model read where it was to write a summary."""
    found = [r.text for r in lab.server.requests if r.kind in ("turn", "summary")]
    return [text for text in found if "summarization agent" in text[:200]]


def sound(lab: Lab, turns_told: int) -> None:
    """Check what holds after any of it: each turn once, and a ledger that verifies and can be made anew."""
    ids = Counter(one for event in lab.journal("turn", "tool") for one in event["data"].get("ids", ()))
    assert [one for one, n in ids.items() if n > 1] == []
    assert len(turns(lab)) == turns_told
    lab.ledgers(["checkpoint"], ["verify", "--full"], ["rebuild", "--check"])
    assert lab.journal("unreadable") == []
    assert [event["data"]["faults"] for event in lab.journal() if event["data"].get("faults")] == []
    assert BEGIN not in json.dumps([data.get("prompt") for data in turns(lab)])


def errors(lab: Lab) -> str:
    path = lab.repo.path / ".git" / "gitledger" / "log"
    return path.read_text() if path.exists() else ""


def record(lab: Lab, key: str) -> dict[str, Any]:
    return dict(json.loads(lab.ledger("show", key, "--json"))["fields"])


def sessions(lab: Lab) -> dict[str, str]:
    """The ledger's keys of the sessions, by Hermes' own ids."""
    found = {}
    for event in lab.journal():
        for key, change in event["records"].items():
            if ident := change.get("set", {}).get("client_session"):
                found[ident] = key
    return found


def terminal(lab: Lab, command: str, when: str) -> None:
    """Have the model run a command once, for a prompt that holds `when`."""

    def call(body: Any) -> tuple[str, dict[str, Any]] | None:
        last = body["messages"][-1]
        if last.get("role") == "user" and when in str(last.get("content")):
            return "terminal", {"command": command}
        return None

    lab.server.script.call = call


# ── a day's work ─────────────────────────────────────────────────────────────────────────────
def test_a_turn_is_journalled_with_what_it_ran_and_the_first_prompt_is_given_where_things_stand(hermes: Lab) -> None:
    terminal(hermes, FAILED, "run the tests")
    steps = [*say("hello", "run the tests", "nothing new"), ["leave"]]
    talk(hermes, *steps)
    first, _, third = turns(hermes)
    assert first["answer"] == "FAKE-REPLY it is done."
    ran = turns(hermes)[1]
    assert ran["tool"] == "terminal"
    assert ran["commands"][0]["exit"] == 1
    assert "1 failed, 3 passed" in ran["commands"][0]["output"]
    assert ran["results"][0]["results"][0]["failed"] == 1
    assert ran["errors"] == ["==== 1 failed, 3 passed in 0.1s ===="]
    assert ran["usage"]["limit"] == 131_072
    assert "commands" not in third
    begun = asked(hermes, "hello")
    assert begun.index("# gitledger briefing") < begun.index(BEGIN)
    assert NEXT in begun
    assert BEGIN not in asked(hermes, "run the tests").partition("hello")[2]
    assert "memory-context" not in asked(hermes, "nothing new"), "nothing has changed, and nothing is said"
    system = str(hermes.asked("turn")[0].body["messages"][0]["content"])
    assert system.count("# Project ledger") == 1
    assert {r.body["messages"][0]["content"] for r in hermes.asked("turn")} == {system}
    assert {tool["function"]["name"] for tool in hermes.asked("turn")[0].body["tools"]} >= {
        "ledger_get", "ledger_search", "ledger_task", "ledger_decide", "ledger_checkpoint",
    }  # fmt: skip
    handover = hermes.ledger("handover", "show")
    assert "1 failed" in handover
    assert "run the tests" in handover
    assert record(hermes, next(iter(sessions(hermes).values())))["state"] == "closed"
    assert errors(hermes) == ""
    sound(hermes, 3)


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "by a new id"])
def test_twelve_turns_and_two_compactions_leave_each_turn_once_and_the_capsule_behind_each(
    hermes: Lab, in_place: bool
) -> None:
    text = (Path(hermes.env["HERMES_HOME"]) / "config.yaml").read_text()
    (Path(hermes.env["HERMES_HOME"]) / "config.yaml").write_text(
        text.replace("in_place: true", f"in_place: {str(in_place).lower()}")
    )
    long = " and what belongs to it" * 40
    terminal(hermes, "echo tool-ran", "turn 5 ")
    prompts = [f"turn {n} {long}" for n in range(1, 13)]
    steps = [*say(*prompts[:6]), ["compact"], ["settle"], *say(*prompts[6:10]), ["compact"], ["settle"]]
    steps += [*say(*prompts[10:]), ["leave"]]
    done = talk(hermes, *steps)
    compactions = [said for step, said, _ in done if step == "compact"]
    assert all(after < before for before, after in compactions), compactions
    ids = list(dict.fromkeys(ident for _, _, ident in done))
    assert len(ids) == (1 if in_place else 3)
    for before in ("turn 7 ", "turn 11 "):
        given = asked(hermes, before)
        assert BEGIN in given
        assert NEXT in given
        assert "# gitledger briefing" not in given
    for other in ("turn 8 ", "turn 9 ", "turn 12 "):
        assert BEGIN not in asked(hermes, other)
    assert len(summaries(hermes)) == 2
    for text in summaries(hermes):
        assert "Checkpoint: C-0000" in text
        assert NEXT in text
    keys = sessions(hermes)
    assert [record(hermes, keys[ident])["state"] for ident in ids] == ["closed"] * len(ids)
    for parent, child in pairwise(ids):
        assert record(hermes, keys[child])["parent"] == keys[parent]
    made = [event["data"]["reason"] for event in hermes.journal("checkpoint.made")]
    assert made.count("compact") == 2, made
    assert errors(hermes) == ""
    sound(hermes, 12)


def test_another_talk_a_resumed_one_and_an_undone_turn_are_told_as_such(hermes: Lab) -> None:
    first = talk(hermes, *say("the first talk"), ["leave"])[-1][2]
    steps = [*say("to be kept", "to be taken back"), ["command", "/undo"], ["settle"], *say("instead of it")]
    steps += [["command", "/new"], *say("a new talk"), ["settle"], ["command", f"/resume {first}"]]
    done = talk(hermes, *steps, *say("once more"), ["command", "/branch"], *say("on a branch"), ["settle"], ["leave"])
    second, new, resumed, branch = dict.fromkeys(ident for _, _, ident in done)
    assert resumed == first
    talk(hermes, *say("the last"), ["leave"])
    keys = sessions(hermes)
    assert record(hermes, keys[new])["parent"] == keys[second]
    assert record(hermes, keys[branch])["parent"] == keys[first]
    assert "parent" not in record(hermes, keys[first])
    [back] = [event["data"]["undone"] for event in hermes.journal("prompt") if event["data"].get("undone")]
    assert back == ["to be taken back"]
    [ended] = [event for event in hermes.journal("handover.written") if event["session"] == keys[second]]
    fields = next(change["set"] for key, change in ended["records"].items() if key.startswith("H-"))
    assert fields["asked"] == ["to be kept", "instead of it"]
    assert any("Taken back by the person" in line and "to be taken back" in line for line in fields["state"])
    assert HANDOVER in asked(hermes, "a new talk"), "a fresh talk is handed what the one before left"
    assert BEGIN in asked(hermes, "a new talk")
    assert "# gitledger briefing" in asked(hermes, "once more")
    assert BEGIN in asked(hermes, "instead of it"), "what it was given may have been taken back with the turn"
    assert {record(hermes, key)["state"] for key in keys.values()} == {"closed"}
    assert errors(hermes) == ""
    sound(hermes, 8)


# ── cut off ──────────────────────────────────────────────────────────────────────────────────
def test_what_a_kill_kept_from_the_ledger_is_made_good_once_by_whoever_starts_next(hermes: Lab) -> None:
    session = talk(hermes, *say("before"), ["say", "right before the end"], ["kill"], status=-9)[0][2]
    terminal(hermes, "echo half-done", "in the middle")
    script = hermes.server.script
    begun = script.call

    def call(body: Any) -> tuple[str, dict[str, Any]] | None:
        if body["messages"][-1].get("role") == "tool":
            script.hang.set()
        return begun(body)

    script.call = call
    child = hermes.start(words([["command", f"/resume {session}"], ["say", "in the middle"]]))
    hermes.wait_for("a request that hangs", script.hang.is_set, child)
    hermes.wait_for("what it did", lambda: "half-done" in json.dumps(hermes.asked("turn")[-1].body), child)
    kill(child)
    child.communicate()
    script.hang.clear()
    script.call = lambda _: None
    both = [hermes.start(words([*say(f"afterwards {n}"), ["settle"], ["leave"]])) for n in (1, 2)]
    for one in both:
        out, err = one.communicate(timeout=200)
        assert one.returncode == 0, f"{out[-2000:]} {err[-2000:]}"
    answers = [data.get("answer") for data in turns(hermes)]
    assert len(answers) == 4
    key = sessions(hermes)[session]
    mine = [event["data"] for event in hermes.journal("prompt", "turn", "tool") if event["session"] == key]
    prompts = [data["prompt"] for data in mine if data.get("prompt")]
    assert prompts == ["before", "right before the end", "in the middle"]
    assert [data["commands"][0]["command"] for data in mine if data.get("commands")] == ["echo half-done"]
    left = [event for event in hermes.journal("handover.written") if event["session"] == key]
    last = next(change["set"] for name, change in left[-1]["records"].items() if name.startswith("H-"))
    assert any("cut off" in line for line in last["state"]), last["state"]
    assert last["last_prompt"] == "in the middle"
    assert errors(hermes) == ""
    sound(hermes, 4)


def test_a_compaction_by_an_agent_without_memory_makes_its_checkpoint_and_is_no_session_of_its_own(hermes: Lab) -> None:
    long = " and what belongs to it" * 40
    prompts = [f"turn {n} {long}" for n in range(1, 9)]
    done = talk(hermes, *say(*prompts), ["gateway"], *say("and on it goes"), ["leave"])
    before, after = next(said for step, said, _ in done if step == "gateway")
    assert after < before
    assert "compact" in [event["data"]["reason"] for event in hermes.journal("checkpoint.made")]
    assert len(sessions(hermes)) == 1
    assert "Checkpoint: C-0000" in summaries(hermes)[-1]
    sound(hermes, 9)


def test_at_the_thresholds_the_person_is_told_once_what_to_do_and_a_fresh_talk_is_handed_all(hermes: Lab) -> None:
    (hermes.repo.path / "left.txt").write_text("not committed")
    hermes.server.script.claimed = 52_000
    steps = [*say("much was read", "and more"), ["command", "/new"], ["settle"], *say("afresh"), ["settle"]]
    ran = hermes.run(words(steps), env={"QUIET": "0"})
    assert ran.status == 0, ran.err[-2000:]
    rows = [row for row in ran.out.splitlines() if row.startswith(("gitledger: ", "STEP "))]
    advised = [n for n, row in enumerate(rows) if row.startswith("gitledger: checkpoint: 40 % of the context is used")]
    assert len(advised) == 2, rows  # once in each of the two talks
    assert len({event["session"] for event in hermes.journal("rollover.advised")}) == 2
    given = asked(hermes, "afresh")
    for part in (HANDOVER, NEXT, BEGIN, "Read by `gitledger get`", "left.txt"):
        assert part in given, part
    sound(hermes, 3)


# ── as a person runs it ──────────────────────────────────────────────────────────────────────
def test_one_question_on_the_command_line_is_a_session_from_its_start_to_its_end(hermes: Lab) -> None:
    python = str(install.PACKAGES["hermes"].path)
    ran = hermes.run([python, "-m", "hermes_cli.main", "chat", "-q", "hello", "-Q"])
    assert ran.status == 0, ran.err
    assert "FAKE-REPLY it is done." in ran.out
    [key] = sessions(hermes).values()
    assert record(hermes, key)["state"] == "closed"
    assert record(hermes, key)["closed"]["reason"] == "exit"
    assert NEXT in asked(hermes, "hello")
    sound(hermes, 1)


def test_a_folder_without_a_repository_or_without_a_ledger_gets_nothing(hermes: Lab, tmp_path: Path) -> None:
    plain, bare = tmp_path / "plain", tmp_path / "bare"
    for folder in (plain, bare):
        folder.mkdir()
    subprocess.run(["git", "init", "-q", str(bare)], check=True)
    for folder in (plain, bare):
        ran = hermes.run(words([*say("hello"), ["leave"]]), cwd=folder, env={"QUIET": "0"})
        assert ran.status == 0, ran.err[-2000:]
        assert ("is in no git repository" in ran.out + ran.err) == (folder is plain)
    assert list(plain.iterdir()) == []
    assert not (bare / ".git" / "gitledger").exists()
    assert "ledger_get" not in json.dumps(hermes.asked("turn")[-1].body)
    sound(hermes, 0)
