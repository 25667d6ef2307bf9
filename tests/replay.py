"""A project of thirty short sessions, replayed: real git, the hooks that are installed, several agents, two clones.

`python -m tests.replay [--seed N] [--sessions N] [--log FILE]` plays one and prints a line for each start. What was
said and done is kept in a plain model (`replay_model.py`); after each start the briefing is held against it. The
hooks' commands are the ones that `hooks install` wrote, run by a shell below a process that stands for the agent, with
payloads as the agents sent them (`data/payloads/`). That process can be killed, and so can a hook.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests import sealed
from tests.process.program import gitledger
from tests.replay_agents import SETTLING, SPOKEN, Agent, Clone, Told, recorded
from tests.replay_machines import Machines
from tests.replay_model import Criterion, Expected, Place, Task
from tests.replay_seen import differences
from tests.replay_story import COMPACTS, LONG, Chapter


@dataclass
class Play(Machines):
    """The project as it is played, and what was written down of each start, which `heard` is told at once.

    A `quick` one has one turn in each session, and little in it.
    """

    rows: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    played: int = 0
    quick: bool = False
    heard: Callable[[str], None] = str
    _dead: dict[str, int] = field(default_factory=dict)

    # ── a session ────────────────────────────────────────────────────────────────────────────
    def open(self, clone: Clone, client: str) -> Agent:
        """An agent starts, and its briefing is held against the model."""
        agent = Agent(client, f"{client}-{self.played:02}", clone, recorded("claude-code") | recorded(client))
        place = self.project.places[clone.name]
        for _ in range(self._dead.pop(clone.name, 0)):
            self.project.hand_over(place, recovered=True)
        self.look(agent, agent.says("start"), "")
        return agent

    def look(self, agent: Agent, told: Told, how: str) -> Expected:
        """Write down a start, and every difference between its briefing and the model."""
        expected = self.project.expected(self.project.places[agent.clone.name])
        found = differences(told.context, expected)
        label = str(expected.label) if expected.label else "no handover here"
        self.rows.append(
            f"{self.played:>2} {agent.clone.name} {agent.client + how:<19} {expected.task or 'no task':<7} "
            f"{expected.lead[:46] or 'withheld' if expected.task else 'none':<46} "
            f"{expected.handover or '-':<8} {label}"
            f"{', recovered' if expected.recovered else ''}{''.join(f', {one}' for one in expected.needs)}"
            f"{' FAULTS: ' + '; '.join(found) if found else ''}"
        )
        self.heard(self.rows[-1])
        self.faults += [f"session {self.played}{how}: {one}" for one in found]
        return expected

    def turn(self, agent: Agent, *, killed: bool = False) -> None:
        """A turn: what was asked, a tool, what was answered; of a killed one the last hook dies wherever it is."""
        agent.says("prompt", prompt=f"Please {self.words()}")
        agent.says("tool")
        if killed:
            self._killed(agent)
            return
        answer = f"I did {self.words()}"
        agent.says("turn", last_assistant_message=answer, prompt_response=answer)
        if agent.client in SETTLING:
            self.project.checkpointed(self.project.places[agent.clone.name])

    def _killed(self, agent: Agent) -> None:
        child = subprocess.Popen(
            ["/bin/sh", "-c", agent.command("turn")],
            cwd=agent.clone.repo.path,
            env=agent.clone.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert child.stdin is not None
        child.stdin.write(agent.payload("turn"))
        child.stdin.close()
        time.sleep(self.chance.uniform(0, 0.15))
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        self.count("killed captures")

    def compact(self, agent: Agent, kind: str) -> None:
        """A compaction: once, announced twice, or refused for a key that is gone and then let through once."""
        if kind == "refused":
            with self._without_key(agent.clone):
                told = agent.says("compact")
                assert "BLOCKED_MISSING_PREREQUISITE" in told.out + told.err, told
                assert told.status == 2 or '"continue": false' in told.out, told
                agent.clone.ledger("compaction", "allow", "--once", "--reason", "the key is at home")
                told = agent.says("compact")
                assert (told.status, told.err) == (0, ""), told
            self.project.missing = True
        else:
            # Else the checkpoint behind the turn before may hold all there is, and is the one that is named.
            agent.clone.ledger("note", "The context is nearly full")
            for _ in range(2 if kind == "twice" else 1):
                told = agent.says("compact")
                assert told.status == 0, told
            self.project.checkpointed(self.project.places[agent.clone.name])
        self.count(f"compactions ({kind})")
        if "again" in SPOKEN[agent.client]:
            agent.says("compacted")
            self.look(agent, agent.says("again"), " again")

    @contextmanager
    def _without_key(self, clone: Clone) -> Iterator[None]:
        keys = Path(clone.env["XDG_DATA_HOME"]) / "gitledger"
        keys.rename(keys.with_name("away"))
        yield
        keys.with_name("away").rename(keys)

    def close(self, agent: Agent) -> None:
        """The session ends."""
        told = agent.says("end")
        assert told.status == 0, told
        self.project.hand_over(self.project.places[agent.clone.name])
        agent.goes()

    def crash(self, agent: Agent) -> None:
        """The agent is killed in the middle of its work."""
        agent.dies()
        self._dead[agent.clone.name] = self._dead.get(agent.clone.name, 0) + 1
        self.count("crashes")

    # ── what is said of the work ─────────────────────────────────────────────────────────────
    def ready(self, clone: Clone) -> Task:
        """The task at hand with a next action that may be followed: an agent's first steps where there is none."""
        place = self.project.places[clone.name]
        task = self.project.active(place)
        if task is None:
            planned = [one for one in self.project.tasks.values() if one.status == "planned"]
            running = [one for one in self.project.tasks.values() if one.status == "active"]
            task = self.chance.choice(running or planned) if running or planned else self.add(clone)
            self.take_up(clone, task)
        elif not self.project.expected(place).lead:
            self.next(clone, task)
        return task

    def add(self, clone: Clone, status: str = "planned") -> Task:
        """A new task with criteria."""
        texts = [self.words() for _ in range(self.chance.choice((1, 2, 2, 3)))]
        task = Task(self.number("T"), self.words(), self.words(), self.project.tick(), status)
        accept = [word for text in texts for word in ("--accept", text)]
        said = clone.ledger("task", "add", task.title, "--goal", task.goal, "--status", status, *accept)
        assert said.split()[0] == task.name, said
        task.criteria = [Criterion(text) for text in texts]
        self.project.tasks[task.name] = task
        return task

    def take_up(self, clone: Clone, task: Task) -> None:
        """A task is started, with its next action."""
        text = self.words()
        clone.ledger("task", "start", task.name, "--next", text)
        self.project.start(self.project.places[clone.name], task)
        self.project.say_next(task, text)

    def next(self, clone: Clone, task: Task) -> None:
        """The next action is another one."""
        text = self.words()
        clone.ledger("task", "next", task.name, text)
        self.project.say_next(task, text)

    def work(self, clone: Clone) -> None:
        """One thing that an agent, or the person, says or does."""
        place = self.project.places[clone.name]
        task = self.project.active(place)
        names = ["decide", "ask", "answer", "discover", "drop", "commit", "leave"]
        if task and task.status == "active":
            names += ["prove", "prove", "prove", "prove", "done", "done", "block", "next", "next", "handover"]
        elif task:
            names += ["resolve"] * 4
        name = self.chance.choice(names)
        getattr(self, f"_{name}")(clone, place, task)

    def _decide(self, clone: Clone, place: Place, task: Task | None) -> None:
        old = self.chance.choice([*self.project.standing, ""])
        name, text = self.number("D"), self.words()
        words = ["--supersedes", old] if old else []
        assert clone.ledger("decide", text, "--why", "it is simpler", *words).split()[0] == name
        self.project.standing[name] = text
        self.project.tick()
        if old:
            self.project.closed.append(self.project.standing.pop(old))
            self.count("superseded")

    def _ask(self, clone: Clone, place: Place, task: Task | None) -> None:
        if len(self.project.waiting) > 3:
            return
        name, text = self.number("Q"), f"Why {self.words()}?"
        assert clone.ledger("question", "ask", text).split()[0] == name
        self.project.waiting[name] = (text, "")

    def _answer(self, clone: Clone, place: Place, task: Task | None) -> None:
        for name in [one for one in self.project.waiting if one[0] == "Q"][:1]:
            clone.ledger("question", "answer", name, "because")
            self.project.closed.append(self.project.waiting.pop(name)[0])
            self.count("answered")

    def _block(self, clone: Clone, place: Place, task: Task) -> None:
        if len(self.project.waiting) > 3:
            return
        name, text = self.number("B"), f"Nobody can {self.words()}"
        assert clone.ledger("blocker", "open", text).split()[0] == name
        self.project.waiting[name] = (text, task.name)
        task.status = "blocked"

    def _resolve(self, clone: Clone, place: Place, task: Task) -> None:
        for name in [one for one, (_, about) in self.project.waiting.items() if about == task.name]:
            clone.ledger("blocker", "resolve", name, "--how", "it is there now")
            self.project.closed.append(self.project.waiting.pop(name)[0])
            self.count("resolved")
        clone.ledger("task", "unblock", task.name)
        task.status = "active" if place.active == task.name else "planned"

    def _discover(self, clone: Clone, place: Place, task: Task | None) -> None:
        self.add(clone, "discovered")

    def _drop(self, clone: Clone, place: Place, task: Task | None) -> None:
        for one in [one for one in self.project.tasks.values() if one.status == "discovered"][:1]:
            clone.ledger("task", "drop", one.name)
            self.project.finish(one, "dropped")
            self.count("dropped")

    def _commit(self, clone: Clone, place: Place, task: Task | None) -> None:
        self.commit(clone)

    def _leave(self, clone: Clone, place: Place, task: Task | None) -> None:
        self.leave(clone)

    def _next(self, clone: Clone, place: Place, task: Task) -> None:
        self.next(clone, task)

    def _handover(self, clone: Clone, place: Place, task: Task) -> None:
        text = self.words()
        clone.ledger("handover", "write", "--next", text)
        self.project.hand_over(place, text)

    def _prove(self, clone: Clone, place: Place, task: Task) -> None:
        for n, criterion in enumerate(task.criteria, 1):
            if not criterion.proven:
                if self.chance.random() < 0.6:
                    gitledger(clone.repo.path, *self._run(task, n), env=clone.plain)
                    criterion.failed = True
                    self.count("failed runs")
                    if self.chance.random() < 0.3:
                        return
                self._proof(task, n).write_text("x")
                self.commit(clone)
                clone.ledger(*self._run(task, n))
                criterion.proven, criterion.failed = True, False
                self.project.closed.append(criterion.text)
                self.count("proven")
                return

    def _proof(self, task: Task, n: int) -> Path:
        # Outside of the work tree, where no branch takes it away.
        return self.folder / f"{task.name}-{n}"

    def _run(self, task: Task, n: int) -> tuple[str, ...]:
        return ("task", "evidence", task.name, "--criterion", f"c{n}", "--run", f"test -e {self._proof(task, n)}")

    def _done(self, clone: Clone, place: Place, task: Task) -> None:
        while not all(one.proven for one in task.criteria):
            self._prove(clone, place, task)
        for n in range(1, len(task.criteria) + 1):  # of the code as it is now
            clone.ledger(*self._run(task, n))
        clone.ledger("task", "done", task.name)
        self.project.finish(task, "done")
        self.count("done")
        if self.chance.random() < 0.6:
            planned = [one for one in self.project.tasks.values() if one.status in ("planned", "discovered")]
            self.take_up(clone, self.chance.choice(planned) if planned else self.add(clone))


# ── the story ────────────────────────────────────────────────────────────────────────────────
def chapter(play: Play, told: Chapter, clients: tuple[str, ...], last: str, then: str) -> None:
    """Play one session; `then` is what happens in git after it."""
    play.played += 1
    clone, place = play.clones[told.clone], play.project.places[told.clone]
    if last != told.clone:
        play.go_over(play.clones[last], clone)
    for step in filter(None, told.before.split(", ")):
        _step(play, clone, step)
    if play.chance.random() < 0.3:
        play.commit(clone)  # the person's own work
    if play.chance.random() < 0.3 and play.project.active(place):
        play.work(clone)
    # A hook that is killed, and a compaction that is refused, are an agent's that makes no checkpoint behind a turn.
    able = COMPACTS.get(told.befalls, ("claude-code", "codex") if told.befalls == "killed" else tuple(SPOKEN))
    agent = play.open(clone, play.chance.choice([client for client in clients if client in able]))
    play.ready(clone)
    for _ in range(1 if play.quick else play.chance.choice((1, 1, 2))):
        play.turn(agent)
        for _ in range(play.chance.choice((1, 2) if play.quick else (1, 2, 3))):
            play.work(clone)
    if told.befalls in COMPACTS:
        play.compact(agent, told.befalls)
        play.work(clone)
    if told.befalls == "killed":
        play.turn(agent, killed=True)
    if then in ("amend", "reset") or (place.changed and play.chance.random() < 0.5):
        play.commit(clone)  # there is a commit of its own then, that something can happen to
    if told.befalls == "crash":
        play.crash(agent)
    else:
        play.close(agent)


def _step(play: Play, clone: Clone, step: str) -> None:
    word, _, branch = step.partition(" ")
    play.count(step if branch else word)
    place = play.project.places[clone.name]
    if place.changed:
        play.commit(clone)
    match word:
        case "amend":
            assert play.amend(clone)
        case "reset":
            assert play.reset(clone)
        case "switch":
            play.switch(clone, branch)
        case "rebase":
            play.rebase(clone, branch)
        case "merge" | "forward":
            play.merge(clone, branch, commit=word == "merge")


def replay(
    folder: Path,
    story: tuple[Chapter, ...],
    seed: int,
    clients: tuple[str, ...] = tuple(SPOKEN),
    *,
    quick: bool = False,
    heard: Callable[[str], None] = str,
) -> Play:
    """Play a story; `faults` of what it returns are the differences that were found."""
    play = Play(folder, random.Random(seed), quick=quick, heard=heard)
    play.begin(clients, any(one.clone == "ben" for one in story))
    last = story[0].clone
    for one, after in zip(story, [*story[1:], Chapter()], strict=True):
        chapter(play, one, clients, last, after.before)
        last = one.clone
    return play


def main() -> int:
    """One play, told."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--sessions", type=int, default=len(LONG))
    words.add_argument("--log", type=Path)
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sealed.seal_process(Path(folder))
        play = replay(Path(folder), LONG[: given.sessions], given.seed, heard=partial(print, flush=True))
    told = ", ".join(f"{name} {count}" for name, count in sorted(play.did.items()))
    summary = f"{play.played} sessions, {len(play.rows)} starts, {len(play.faults)} faults; {told}"
    print(summary)
    if given.log:
        given.log.write_text("".join(f"{row}\n" for row in [*play.rows, summary]), encoding="utf-8")
    return 1 if play.faults else 0


if __name__ == "__main__":
    sys.exit(main())
