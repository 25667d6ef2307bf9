"""Random work on several clones of one ledger, with pushes, pulls, races and partitions between: they end in one tree.

`python -m tests.convergence --runs 300` tells how many runs of how many steps held; the default suite makes a few.
Every clone is a real repository with a real remote by path, every signature is real.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gitledger import audit, discover, entries, layout, objects, reading, remote, sync, syncing, tasks, verify, wal
from gitledger.errors import BadData, NotAllowed, TryAgain
from gitledger.ledger import Ledger
from gitledger.mint import Mint
from gitledger.model import Finding
from tests import sealed
from tests.ledgers import Clock, do
from tests.sealed import Repo, new_repo

CLONES = 5
STEPS = 40
ACTIONS = (
    *("add", "add", "edit", "next", "start", "decide", "note", "ask", "answer", "block", "turn", "turn", "session"),
    *("checkpoint", "handover", "sync", "sync", "sync", "pull", "push", "part", "meet", "code"),
)


@dataclass
class Fleet:
    """Clones of one project, the remote between them, and every event that one of them acknowledged."""

    folder: Path
    chance: random.Random
    remote: Path
    clones: list[Repo] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    said: dict[str, int] = field(default_factory=dict)
    did: dict[str, int] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)
    _race: bool = False

    # ── one step ─────────────────────────────────────────────────────────────────────────────
    def step(self) -> None:
        """One random thing on one random clone."""
        n = self.chance.randrange(len(self.clones))
        name = self.chance.choice(ACTIONS)
        self.did[name] = self.did.get(name, 0) + 1
        try:
            getattr(self, f"_{name}")(n, self.ledgers[n])
        except (NotAllowed, BadData):
            self.did["refused"] = self.did.get("refused", 0) + 1  # a step that is not legal now; nothing was said

    def _log(self, n: int, ledger: Ledger, step: object, *args: object, **kwargs: object) -> None:
        do(ledger, step, *args, **kwargs)  # type: ignore[arg-type]
        for entry in wal.pending(ledger.desk.home.wal)[0]:
            self.said.setdefault(entry.id, n)

    def _task(self, ledger: Ledger) -> str:
        keys = [key for key, _ in ledger.view().walk(layout.TASK)]
        if not keys:
            raise NotAllowed("no task yet")
        return self.chance.choice(keys)

    def _add(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, tasks.add, f"Task {self.chance.randrange(10**6)}")

    def _edit(self, n: int, ledger: Ledger) -> None:
        title = f"Title {self.chance.randrange(10**6)}"
        self._log(n, ledger, tasks.edit, self._task(ledger), fields={"title": title})

    def _next(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, tasks.set_next, self._task(ledger), f"Do {self.chance.randrange(10**6)}")

    def _start(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, tasks.start, self._task(ledger))

    def _decide(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, entries.decide, f"Decide {self.chance.randrange(10**6)}", "because", None, None)

    def _note(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, entries.note, f"Note {self.chance.randrange(10**6)}", None)

    def _ask(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, entries.ask, f"Why {self.chance.randrange(10**6)}?", self._task(ledger))

    def _answer(self, n: int, ledger: Ledger) -> None:
        rows = [key for key, row in ledger.view().walk(layout.QUESTION) if row["state"] == "open"]
        if not rows:
            raise NotAllowed("no question")
        self._log(n, ledger, entries.answer, self.chance.choice(rows), "so")

    def _block(self, n: int, ledger: Ledger) -> None:
        self._log(n, ledger, entries.block, f"Blocked {self.chance.randrange(10**6)}", self._task(ledger))

    def _turn(self, n: int, ledger: Ledger) -> None:
        at = ledger.desk.mint.at()
        ident = ledger.desk.mint.id()
        payload = b'{"session_id":"s%d","prompt":"turn %d"}' % (n, self.chance.randrange(10**6))
        wal.append_entry(ledger.desk.home.wal, ident, at, "generic", "turn", payload, "main")
        self.said[ident] = n

    def _session(self, n: int, ledger: Ledger) -> None:
        # Two clones may well hold a session of one id: a shared home, a copied transcript.
        client = f"c{self.chance.randrange(3)}"
        key = ledger.start_session("generic", client, pid=os.getpid())
        if self.chance.random() < 0.6:
            ledger.end_session(key, "done")

    def _checkpoint(self, n: int, ledger: Ledger) -> None:
        ledger.checkpoint("random")

    def _handover(self, n: int, ledger: Ledger) -> None:
        ledger.write_handover("random")

    def _code(self, n: int, ledger: Ledger) -> None:
        self.clones[n].commit(f"work {self.chance.randrange(10**6)}")

    def _sync(self, n: int, ledger: Ledger, *, pull: bool = True, push: bool = True) -> None:
        if n in self.cut:
            return
        ways = syncing.Ways(pull=pull, push=push, pause=lambda tried: None)
        try:
            with self._raced(n):
                sync.sync(ledger, remote.read("origin"), ways)
        except TryAgain:
            self.did["gave up"] = self.did.get("gave up", 0) + 1

    def _pull(self, n: int, ledger: Ledger) -> None:
        self._sync(n, ledger, push=False)

    def _push(self, n: int, ledger: Ledger) -> None:
        self._sync(n, ledger, pull=False)

    def _part(self, n: int, ledger: Ledger) -> None:
        self.cut.add(n)

    def _meet(self, n: int, ledger: Ledger) -> None:
        self.cut.clear()

    @contextmanager
    def _raced(self, n: int) -> Iterator[None]:
        """Now and then another clone pushes, or this one commits, between this one's fetch and its push."""
        real = remote.push

        def push(line: remote.Line, new: str) -> bool:
            if not self._race and self.chance.random() < 0.3:
                self._race = True
                try:
                    if self.chance.random() < 0.5:
                        other = self.chance.randrange(len(self.clones))
                        if other not in self.cut | {n}:
                            self.did["raced"] = self.did.get("raced", 0) + 1
                            self._sync(other, self.ledgers[other])
                    else:
                        self.did["overtaken"] = self.did.get("overtaken", 0) + 1
                        self.ledgers[n].checkpoint("meanwhile")
                except NotAllowed:
                    pass
                finally:
                    self._race = False
            return real(line, new)

        remote.push = push
        try:
            yield
        finally:
            remote.push = real

    # ── the end ──────────────────────────────────────────────────────────────────────────────
    def settle(self) -> None:
        """Everybody syncs until nobody has news."""
        self.cut.clear()
        for _ in range(3):
            for ledger in self.ledgers:
                sync.sync(ledger, remote.read("origin"))

    def check(self) -> None:
        """One tip everywhere, verified; every acknowledged event in it, once; the tree is what the journal makes."""
        tips = {ledger.tip() for ledger in self.ledgers}
        assert len(tips) == 1, f"the clones ended at {len(tips)} tips"
        (tip,) = tips
        there = remote.branches(self._line())["refs/heads/ledger/main"]
        assert there == tip, "the remote is elsewhere"
        ledger = self.ledgers[0]
        faults: list[Finding] = []
        journalled = [logged.event.id for logged in reading.events(ledger.desk.store.get, tip, faults)]
        assert not faults, faults
        assert len(journalled) == len(set(journalled)), "an event stands in the journal twice"
        lost = self.said.keys() - set(journalled)
        assert not lost, f"{len(lost)} acknowledged events are lost"
        made = verify.verify(ledger.desk, tip, verify.Ways(full=True))
        assert made.verdict == "verified", made.findings
        root = objects.parse_commit(ledger.desk.store.get(tip).data).tree
        with audit.rebuilt(ledger, root) as again:
            assert again.tree == root, "the tree is not what the journal makes"

    def _line(self) -> remote.Line:
        return remote.Line(self.ledgers[0].gitdir, remote.read("origin"), "main", time.monotonic() + 60)

    def close(self) -> None:
        """Let go of children."""
        for ledger in self.ledgers:
            ledger.desk.store.close()


def fleet(folder: Path, seed: int, clones: int) -> Fleet:
    """A project with a bare remote, a ledger begun in its first clone, and the others joined to it."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    bare = folder / "remote.git"
    made = Fleet(folder, chance, bare)
    first = new_repo(folder / "clone0")
    first.commit("first")
    first.git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    first.git("remote", "add", "origin", str(bare))
    first.git("push", "--quiet", "origin", "main")
    for n in range(clones):
        repo = first if n == 0 else first.clone(folder / f"clone{n}")
        if n:
            repo.git("remote", "set-url", "origin", str(bare))
            repo.git("fetch", "--quiet", "origin", "refs/heads/ledger/main:refs/heads/ledger/main")
        clock = Clock()
        clock.forward(minutes=chance.randrange(60))  # no two clocks agree
        mint = Mint(clock, chance.randbytes)
        discover.init(str(repo.path), "main", "Random project", mint=mint)
        ledger = discover.open(repo.path, mint=mint)
        made.clones.append(repo)
        made.ledgers.append(ledger)
        sync.sync(ledger, remote.read("origin"))
    return made


@functools.cache
def _settled(seed: int) -> tuple[Fleet, Path]:
    """Two clones that have the same ledger, to be copied, and their home."""
    folder = sealed.keep(tempfile.TemporaryDirectory(prefix="gitledger-pair-"))
    before = dict(os.environ)
    os.environ.update(sealed.sealed_environment(folder / "home", before))
    try:
        made = fleet(folder / "fleet", seed, 2)
        made.settle()
        made.close()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return made, folder / "home"


def pair(folder: Path, seed: int) -> Fleet:
    """Two clones that have the same ledger, and their key in this home: copies of two that were made once."""
    made, home = _settled(seed)
    shutil.copytree(made.folder, folder, symlinks=True)
    shutil.copytree(home, os.environ["HOME"], dirs_exist_ok=True)
    chance = random.Random()
    chance.setstate(made.chance.getstate())
    copy = Fleet(folder, chance, folder / made.remote.name)
    for repo, ledger in zip(made.clones, made.ledgers, strict=True):
        there = Repo(folder / repo.path.name, [repo._clock[0]])
        config = there.path / ".git" / "config"
        config.write_text(config.read_text().replace(str(made.remote), str(copy.remote)))
        there.git("update-index", "-q", "--refresh")
        clock = ledger.desk.mint.now_ms
        assert isinstance(clock, Clock)
        copy.clones.append(there)
        copy.ledgers.append(discover.open(there.path, mint=Mint(Clock(clock.now), chance.randbytes)))
    return copy


def run(folder: Path, seed: int, clones: int | None = None, steps: int = STEPS) -> Fleet:
    """One run; AssertionError where the clones do not end in one tree that holds everything."""
    made = fleet(folder, seed, clones or 2 + seed % (CLONES - 1))
    try:
        for _ in range(steps):
            made.step()
        made.settle()
        made.check()
    finally:
        made.close()
    return made


def main() -> int:
    """Many runs, told."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--runs", type=int, default=100)
    words.add_argument("--first", type=int, default=0, help="the first run's seed")
    words.add_argument("--steps", type=int, default=STEPS)
    given = words.parse_args()
    total: dict[str, int] = {}
    begun = time.monotonic()
    for seed in range(given.first, given.first + given.runs):
        with tempfile.TemporaryDirectory() as folder:
            sealed.seal_process(Path(folder))
            try:
                made = run(Path(folder) / "work", seed, steps=given.steps)
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"convergence-{seed}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept, symlinks=True)
                print(f"run {seed} failed; its clones are kept in {kept}", file=sys.stderr)
                raise
        for name, count in [*made.did.items(), ("events", len(made.said))]:
            total[name] = total.get(name, 0) + count
        if (seed - given.first) % 10 == 9:
            print(f"{seed - given.first + 1} runs in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(total.items()))
    print(f"{given.runs:,} runs of {given.steps} steps ended in one tree each: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
