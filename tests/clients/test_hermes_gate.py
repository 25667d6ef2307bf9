"""Hermes' compactions held at the gate: without a durable checkpoint not a message, a session or an id changes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import install, lab
from tests.clients.lab import NEXT, ROOT, Lab
from tests.clients.test_hermes import configure, hermes, put_in, summaries
from tests.clients.test_refusal import FAULTS, WHY

__all__ = ["hermes"]  # the fixture
ASKED = "hook hermes compact"


@dataclass(frozen=True, slots=True)
class Talk:
    """One process of Hermes, told what to do step by step; `said` is all it printed besides."""

    lab: Lab
    child: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)

    def step(self, *words: str) -> tuple[Any, str]:
        """What came of a step, and the session's id after it."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(words) + "\n")
        self.child.stdin.flush()
        for line in self.child.stdout:
            if "STEP [" in line:
                _, came, session = json.loads(line.partition("STEP ")[2])
                return came, session
            self.said.append(line)
        raise AssertionError(f"Hermes ended: {''.join(self.said)[-3000:]} {self.child.communicate()[1][-3000:]}")

    def heard(self) -> str:
        """What it printed since the last time."""
        text = "".join(self.said)
        self.said.clear()
        return text


@contextmanager
def talking(lab: Lab) -> Iterator[Talk]:
    words = [str(install.PACKAGES["hermes"].path), str(ROOT / "tests" / "clients" / "hermes_talk.py")]
    # What it logs comes with what it prints, and nobody reads a second pipe meanwhile.
    child = lab.start(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *words], stdin=subprocess.PIPE, env={"QUIET": "0"})
    try:
        with lab.patience(child):
            yield Talk(lab, child)
    finally:
        if child.poll() is None:
            lab_kill(child)
        child.communicate()


lab_kill = lab.kill


def asked(at: Lab) -> int:
    """How often the program was asked for the checkpoint of a compaction."""
    return lab.called(at).count(ASKED)


def full(talk: Talk) -> None:
    for n in range(9):
        talk.step("say", f"message {n}")
    talk.step("flush")


def test_nothing_changes_without_a_checkpoint_and_all_is_handed_over_with_one(hermes: Lab) -> None:
    with talking(hermes) as talk:
        full(talk)
        talk.step("settle")
        before, session = talk.step("state")
        assert len(before[0]) == 18
        for fault, broken in FAULTS.items():
            tip = hermes.tip()
            talk.heard()
            with broken(hermes):
                assert talk.step("compact") == ([18, 18], session), fault
                told = talk.heard()
                assert talk.step("gateway") == ([18, 18], session), fault
            assert WHY in told, f"{fault}: {told[-2000:]}"
            assert "gitledger compaction allow --once" in told or "gitledger" in told.partition(WHY)[2], told[-2000:]
            assert talk.step("state") == (before, session), fault
            assert hermes.tip() == tip, fault
            assert summaries(hermes) == [], fault
        # A person lets one through, by the provider and the gate alike, and only one.
        with lab.signature_bad(hermes):
            hermes.ledger("compaction", "allow", "--once", "--reason", "the key is in another house")
            (was, now), after = talk.step("compact")
            assert (was, after, len(summaries(hermes))) == (18, session, 1)
            assert now < 18
            full(talk)
            (was, now), _ = talk.step("compact")
            assert was == now
            assert len(summaries(hermes)) == 1
        talk.step("settle")
        (was, now), _ = talk.step("compact")
        assert now < was
        handed = summaries(hermes)[1]
        assert "Checkpoint: C-" in handed
        assert NEXT in handed
        full(talk)
        tip = hermes.tip()
        (was, now), _ = talk.step("gateway")  # where no provider is asked
        assert now < was
        assert hermes.tip() != tip
        assert "Checkpoint: C-" in summaries(hermes)[2]
    hermes.ledgers(["verify", "--full"], ["rebuild", "--check"])


def test_by_a_new_id_none_is_made_and_the_person_who_says_compress_is_told_why(hermes: Lab) -> None:
    configure(hermes, in_place=False)
    put_in(hermes)
    with talking(hermes) as talk:
        full(talk)
        talk.step("settle")
        before, session = talk.step("state")
        talk.heard()
        with lab.signature_bad(hermes):
            _, after = talk.step("command", "/compress")
            told = talk.heard()
            assert (talk.step("state"), after) == ((before, session), session)
        assert "Compression aborted: 18 messages preserved" in told
        assert WHY in told
        _, after = talk.step("command", "/compress")
        assert after != session
        assert len(summaries(hermes)) == 1
        assert "Checkpoint: C-" in summaries(hermes)[0]


def test_a_block_that_lasts_is_not_tried_again_at_every_turn(hermes: Lab) -> None:
    with talking(hermes) as talk:
        full(talk)
        talk.step("settle")
        hermes.server.script.claimed = 125_000
        with lab.signature_bad(hermes):
            before = asked(hermes)
            for n in range(12):
                talk.step("say", f"full {n} {'of words ' * (50_000 if not n else 1)}")  # from now on it is full
            tried = asked(hermes) - before
            assert 1 <= tried <= 2, tried
            assert summaries(hermes) == []
            talk.step("compact")
            assert asked(hermes) == before + tried + 1, "a person who asks is heard at once"
            talk.step("auto")
            assert asked(hermes) == before + tried + 1
            hermes.ledger("compaction", "allow", "--once", "--reason", "let it through")
            (was, now), _ = talk.step("auto")
            assert now < was, "what changes in the ledger is seen at once"


def test_where_our_package_is_gone_hermes_says_so_and_compacts_nothing(hermes: Lab) -> None:
    home = Path(hermes.env["HERMES_HOME"])
    for path in home.glob("plugins/gitledger*/found.py"):
        text = path.read_text()
        path.write_text(text.replace(str(ROOT), "/nowhere"))
    with lab.program_missing(hermes), talking(hermes) as talk:
        (hermes.repo.path / ".git" / "gitledger" / "program").unlink()
        full(talk)
        assert "gitledger's program is missing" in talk.heard()
        before, session = talk.step("state")
        assert talk.step("compact") == ([18, 18], session)
        assert WHY in talk.heard()
        assert talk.step("state") == (before, session)
        assert summaries(hermes) == []


def test_a_clone_without_a_ledger_compacts_as_it_always_did(hermes: Lab, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    script = str(ROOT / "tests" / "clients" / "hermes_talk.py")
    steps = [*(["say", f"message {n}"] for n in range(9)), ["compact"]]
    ran = hermes.run([install.PACKAGES["hermes"].path, script, json.dumps(steps)], cwd=other)
    came = [json.loads(line.partition("STEP ")[2]) for line in ran.out.splitlines() if "STEP [" in line]
    was, now = came[-1][1]
    assert now < was == 18
    assert list(other.iterdir()) == []


def test_a_person_puts_it_in_looks_at_it_and_takes_it_out(hermes: Lab) -> None:
    hermes.ledger("hooks", "uninstall", "--client", "hermes")
    home = Path(hermes.env["HERMES_HOME"])
    python = install.PACKAGES["hermes"].path
    program = hermes.bin / "hermes"  # the package's own names the folder in which it was made
    program.write_text(f"#!{python}\nimport sys\nfrom hermes_cli.main import main\nsys.exit(main())\n")
    program.chmod(0o755)

    def says(*words: str) -> str:
        ran = hermes.run([program, *words])
        assert ran.status == 0, f"{words}: {ran.out[-2000:]} {ran.err[-2000:]}"
        return ran.out + ran.err

    says("chat", "-q", "before", "-Q")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert "state.db as before" in hermes.ledger("hooks", "install", "--client", "hermes")
    tried = hermes.ledger("hooks", "test", "--client", "hermes")
    assert "loaded as gitledger.clients.hermes.provider" in tried
    assert "loaded as gitledger.clients.hermes.engine" in tried
    assert " failed " not in tried
    says("chat", "-q", "hello TOOLCALL", "-Q")
    told = says("gitledger")
    assert "set-up:          provider and gate are selected" in told
    assert "last event:      end at" in told
    assert "last checkpoint: C-000001" in told
    assert "last error:      none" in told
    assert "hooks' program" in hermes.run([program, "gitledger", "doctor"]).out
    assert "all is there already" in says("memory", "setup", "gitledger")
    assert "Status:    available" in says("memory", "status")
    assert "is as it was before" in hermes.ledger("hooks", "uninstall", "--client", "hermes")
    config = home / "config.yaml"
    assert config.read_bytes() == before[config]
    assert {path for path in home.rglob("*") if "gitledger" in path.name} == set()
