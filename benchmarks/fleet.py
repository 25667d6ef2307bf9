"""A day's work of many writers over one remote, on a clock of its own: what is tried again, and when all are one.

Repositories, keys, signatures and `sync.sync` are real; time is not. A sync takes the processor time that it took here,
and what a server far away would add. While it waits, other writers' syncs go on, so that a push is refused where it
would be. Nothing is asserted of time. A clone that ends elsewhere, or an event that was acknowledged and is lost, ends
it with an error.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import re
import resource
import shutil
import statistics
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks import grounds as ground
from benchmarks.clock import Row, amount
from benchmarks.grounds import Grounds, git
from benchmarks.verify import signing_in_process
from gitledger import audit, discover, entries, objects, reading, remote, sync, syncing, tasks, verify, wal
from gitledger.errors import TryAgain
from gitledger.ledger import Ledger
from gitledger.mint import Mint
from gitledger.model import Draft, Finding, Key
from gitledger.tasks import Hand
from gitledger.view import View

MORNING = 1_790_000_000.0
HOUR, MINUTE = 3600.0, 60.0
START = 0.3
"""Seconds that a process takes to begin, which is spared here."""
TALK = 1.0
"""Seconds from a word to a server far away until it answers: a name looked up, ssh or TLS agreed, git's greeting."""
SPEED = 1_000_000.0
"""Bytes a second."""
DEADLINE = 120.0
EVERY = (15 * MINUTE, 30 * MINUTE)
PATIENCE = 6 * HOUR
"""How long after the day's end all are waited for."""

_SIZE = re.compile(r"(?:Receiving|Unpacking|Writing) objects: 100% \((\d+)/\d+\), ([\d.]+) (bytes|KiB|MiB)")
_UNIT = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def rows(grounds: Grounds) -> Iterator[Row]:
    """A day of fifty, or two hours of ten."""
    yield from told(grounds, *((50, 8.0) if grounds.long else (10, 2.0)))


def told(grounds: Grounds, writers: int, hours: float) -> Iterator[Row]:
    """What the end of such a day tells."""
    folder = os.path.join(grounds.folder, "fleet")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    grounds.say(f"{writers} writers join")
    with signing_in_process():
        day = Day(folder, writers, hours * HOUR, grounds.say)
        with ground.hurried(day.people[0].ledger), day.patched():
            day.play()
            before = size(day.bare)
            ground.pack(day.bare)
            events, commits, merges = day.check()
    made = [one for one in day.syncs if one.done]
    pushes = sum(one.pushes for one in day.syncs)
    again = sum(one.refused for one in day.syncs)
    after = size(day.bare)
    yield said(f"{writers} writers, {hours:g} hours: syncs, given up", f"{len(day.syncs):,}, {day.given_up:,}")
    yield said("events, commits, of them merges", f"{events:,}, {commits:,}, {merges:,}")
    yield said("pushes tried, refused and tried again", f"{pushes:,}, {again:,} ({again / pushes:.1%})")
    yield said("most attempts of one sync", f"{max(one.attempts for one in day.syncs)}")
    yield spread("from a fetch to its push, s", [window for one in day.syncs for window in one.windows], 2)
    yield said("until all had one tip, after the day's end", f"{day.settled / MINUTE:.0f} min, {day.rounds} rounds")
    for what in ("fetched", "pushed"):
        carried = [getattr(one, what) for one in made if getattr(one, what)[0]]
        yield spread(f"objects {what} by a sync that {what} any", [n for n, _ in carried], 0)
        yield spread(f"KiB {what} by it", [n / 1024 for _, n in carried], 1)
    yield amount("the remote before gc", before / 2**20, "MiB")
    yield amount("the remote after gc", after / 2**20, "MiB")
    yield said("objects there", f"{int(git(day.bare, 'rev-list', '--objects', '--count', 'ledger/main')):,}")
    yield amount("per event, after gc", after / events, "bytes")
    first, last = (
        statistics.median(one.cost for one in made if low <= one.begun < low + day.length / 8)
        for low in (MORNING, MORNING + day.length * 7 / 8)
    )
    yield Row(
        "processor time of a sync, last eighth of the day / first",
        f"{last * 1000:.0f} ms",
        f"{first * 1000:.0f} ms",
        f"{last / first:.2f} ×",
        "–",
        None,
    )


def said(what: str, value: str) -> Row:
    """A line that is only told."""
    return Row(what, value, "–", "–", "–", None)


def spread(what: str, values: list[float], digits: int) -> Row:
    """The middle one, and the one that one in twenty exceeds."""
    ordered = sorted(values) or [0]
    middle, high = statistics.median(ordered), ordered[min(len(ordered) * 95 // 100, len(ordered) - 1)]
    return said(f"{what}: median, p95", f"{middle:,.{digits}f}, {high:,.{digits}f}")


def size(bare: str) -> int:
    """Bytes of a repository's objects."""
    walked = os.walk(os.path.join(bare, "objects"))
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in walked for name in names)


# ── who is there ─────────────────────────────────────────────────────────────────────────────
@dataclass(slots=True)
class Person:
    """One writer: a clone, the task it is at, and whether a sync of it is under way."""

    n: int
    ledger: Ledger
    task: Key = ""
    session: Key = ""
    syncs_after: int = 0
    busy: bool = False


@dataclass(slots=True)
class Errand:
    """One sync: how it went, and what lets its thread go on."""

    person: Person
    begun: float
    go: threading.Semaphore = field(default_factory=partial(threading.Semaphore, 0))
    since: float = 0.0
    read: float = 0.0
    cost: float = 0.0
    attempts: int = 0
    pushes: int = 0
    refused: int = 0
    done: bool = False
    windows: list[float] = field(default_factory=list)
    fetched: tuple[int, int] = (0, 0)
    pushed: tuple[int, int] = (0, 0)
    heard: str = ""
    fault: BaseException | None = None

    def carried(self) -> tuple[int, int]:
        """Objects and bytes that git has told of since this was asked last."""
        found = [(int(n), int(float(many) * _UNIT[unit])) for n, many, unit in _SIZE.findall(self.heard)]
        self.heard = ""
        return found[-1] if found else (0, 0)

    def hear(self, words: str) -> None:
        """What git says of its progress."""
        self.heard += words


class Day:
    """The queue of what happens when. One thread runs at a time, so only the order of the queue decides."""

    def __init__(self, folder: str, writers: int, length: float, say: Callable[[str], None]) -> None:
        self.folder, self.length, self.say = folder, length, say
        self.chance = random.Random(writers)
        self.now = MORNING
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.order = 0
        self.back = threading.Semaphore(0)
        self.here: Errand | None = None
        self.said: set[str] = set()
        self.syncs: list[Errand] = []
        self.given_up = 0
        self.settled = -1.0
        self.rounds = 0
        self.bare = os.path.join(folder, "remote.git")
        self.people = [self._join(n) for n in range(writers)]

    @property
    def end(self) -> float:
        """When nobody works any more."""
        return MORNING + self.length

    # ── the clock ────────────────────────────────────────────────────────────────────────────
    def at(self, when: float, what: Callable[[], None]) -> None:
        """Have something done at a time; what comes first is done first."""
        self.order += 1
        heapq.heappush(self.queue, (when, self.order, what))

    def play(self) -> None:
        """The whole day, and after it until all have one tip."""
        for person in self.people:
            for when, kind in working_day(self.chance, self.end):
                self.at(when, partial(getattr(self, f"_{kind}"), person))
            self.at(MORNING + self.chance.uniform(0, EVERY[1]), partial(self._sync, person))
        quarter = 1
        while self.settled < 0:
            self.now, _, what = heapq.heappop(self.queue)
            if self.now > MORNING + quarter * 15 * MINUTE:
                self.say(f"{quarter / 4:.2f} h: {self.so_far()}")
                quarter += 1
            if self.now > self.end + PATIENCE:
                sys.exit(f"{PATIENCE / HOUR:g} hours after the day's end the clones still have {len(self.tips())} tips")
            what()

    def so_far(self) -> str:
        """How it goes: the last hundred syncs' share too, so that growth shows."""
        late = [one for one in self.syncs[-100:] if one.cost]
        waits = sorted(window for one in late for window in one.windows) or [0.0]
        pushes, refused, cost = (sum(getattr(one, name) for one in late) for name in ("pushes", "refused", "cost"))
        told = f"{len(self.said):,} events, {len(self.syncs):,} syncs; of the last {len(late)}: {pushes} pushes"
        wait = f"{waits[len(waits) // 2]:.1f} s from fetch to push"
        return f"{told}, {refused} refused, {wait}, {cost / max(len(late), 1):.2f} s of processor each"

    def rest(self, seconds: float) -> None:
        """Let a sync wait, and everybody else go on meanwhile; what it took until here passes as well."""
        errand = self.here
        assert errand is not None
        self.at(self.now + self._worked(errand) + seconds, partial(self._resume, errand))
        self.back.release()
        errand.go.acquire()

    def _resume(self, errand: Errand) -> None:
        self.here, errand.since = errand, processor()
        errand.go.release()
        self.back.acquire()
        self.here = None
        if errand.fault:
            raise errand.fault

    def _worked(self, errand: Errand) -> float:
        took = processor() - errand.since
        errand.cost += took
        return took

    # ── the work ─────────────────────────────────────────────────────────────────────────────
    def _join(self, n: int) -> Person:
        clone = os.path.join(self.folder, f"clone{n}")
        if n == 0:
            git(self.folder, "init", "--quiet", "--bare", "--initial-branch=main", self.bare)
            git(self.bare, "config", "receive.autogc", "false")
            git(self.folder, "init", "--quiet", "--initial-branch=main", clone)
        else:
            git(self.folder, "clone", "--quiet", self.bare, clone)
        git(clone, "config", "user.name", f"Writer {n}")
        git(clone, "config", "user.email", f"w{n}@example.invalid")
        if n == 0:
            git(clone, "commit", "--quiet", "--allow-empty", "-m", "first")
            git(clone, "remote", "add", "origin", self.bare)
            git(clone, "push", "--quiet", "origin", "main")
        skew = self.chance.uniform(-2, 2)
        mint = Mint(lambda: int((self.now + skew) * 1000), os.urandom)
        discover.init(clone, "main", "Shop", remote="origin", mint=mint)
        opened = discover.open(clone, mint=mint, driver="pygit2")
        with ground.hurried(opened):
            sync.sync(opened, remote.read("origin"))
        self.now += MINUTE / 60
        return Person(n, ground.Still(opened))

    def _log(self, person: Person, step: Callable[[View, Hand], tuple[Key, Draft]]) -> Key:
        key = person.ledger.record(step)
        self.said.update(entry.id for entry in wal.pending(person.ledger.desk.home.wal)[0])
        return key

    def _begin(self, person: Person) -> None:
        ledger = person.ledger
        person.session = ledger.start_session("generic", f"s{person.n}-{self.order}-{int(self.now)}", pid=os.getpid())
        if not person.task or self.chance.random() < 0.3:
            goal, criteria = ground.text(person.n, 20), ("it works", "it is fast")
            title = f"Part {int(self.now) % 1000} of writer {person.n}"
            person.task = self._log(person, lambda v, h: tasks.add(v, h, title, goal=goal, accept=criteria))
            self._log(person, lambda v, h: ("", tasks.start(v, h, person.task)[0]))
        self._next(person)

    def _next(self, person: Person) -> None:
        step = f"Write step {int(self.now) % 10_000} in auth/session.py"
        self._log(person, lambda v, h: ("", tasks.set_next(v, h, person.task, step)))

    def _turn(self, person: Person) -> None:
        salt = self.order + int(self.now)
        said = {"session_id": f"s{person.n}", "prompt": ground.text(salt, 12), "answer": ground.text(salt + 7, 30)}
        mint = person.ledger.desk.mint
        ident = mint.id()
        payload = json.dumps(said).encode()
        wal.append_entry(person.ledger.desk.home.wal, ident, mint.at(), "generic", "turn", payload, "main")
        self.said.add(ident)

    def _checkpoint(self, person: Person) -> None:
        if self.chance.random() < 0.2:
            why = ground.text(int(self.now), 15)
            self._log(person, lambda v, h: entries.decide(v, h, f"Decided by {person.n}", why, person.task, None))
        self._next(person)
        person.ledger.checkpoint()

    def _finish(self, person: Person) -> None:
        person.ledger.end_session(person.session, "exit")

    # ── the syncs ────────────────────────────────────────────────────────────────────────────
    def _sync(self, person: Person) -> None:
        errand = Errand(person, self.now)
        self.syncs.append(errand)
        threading.Thread(target=self._run, args=(errand,), daemon=True).start()
        self._resume(errand)

    def _run(self, errand: Errand) -> None:
        errand.go.acquire()
        try:
            self._go(errand)
        except BaseException as e:  # told by the thread that waits
            errand.fault = e
        self.back.release()

    def _go(self, errand: Errand) -> None:
        person = errand.person
        person.busy = True
        self.rest(START)
        ways = syncing.Ways(
            deadline=1e6, heard=errand.hear, pause=lambda tried: self.rest(syncing.backoff(tried, self.chance.uniform))
        )
        try:
            errand.attempts = sync.sync(person.ledger, remote.read("origin"), ways).attempts
            errand.done = True
        except TryAgain:
            self.given_up += 1
            errand.attempts = max(errand.pushes, errand.attempts)
        self._worked(errand)
        person.busy = False
        person.syncs_after += self.now >= self.end
        if self.now >= self.end and len(self.tips()) == 1 and not any(self._has_news(one) for one in self.people):
            self.settled, self.rounds = self.now - self.end, max(one.syncs_after for one in self.people)
        self.at(self.now + self.chance.uniform(*EVERY), partial(self._sync, person))

    def _has_news(self, person: Person) -> bool:
        return person.busy or bool(wal.pending(person.ledger.desk.home.wal)[0])

    def tips(self) -> set[str]:
        """Where the clones are, and the remote."""
        return {person.ledger.tip() for person in self.people} | {git(self.bare, "rev-parse", "ledger/main")}

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Every word with the remote takes its time."""
        fetch, push = remote.fetch_whole, remote.push

        def fetched(
            line: remote.Line, known: str | None = None, meanwhile: remote.Meanwhile | None = None
        ) -> str | None:
            errand = self._here(line)
            self.rest(TALK)
            errand.read = self.now
            found = fetch(line, known, meanwhile)
            n, carried = errand.carried()
            errand.fetched = (errand.fetched[0] + n, errand.fetched[1] + carried)
            self.rest(carried / SPEED)
            return found

        def pushed(line: remote.Line, new: str) -> bool:
            errand = self._here(line)
            self.rest(TALK)
            errand.pushes += 1
            errand.windows.append(self.now - errand.read)
            went = push(line, new)
            n, carried = errand.carried()
            if went:
                errand.pushed = (errand.pushed[0] + n, errand.pushed[1] + carried)
            errand.refused += not went
            return went

        remote.fetch_whole, remote.push = fetched, pushed
        try:
            yield
        finally:
            remote.fetch_whole, remote.push = fetch, push

    def _here(self, line: remote.Line) -> Errand:
        errand = self.here
        assert errand is not None
        if self.now - errand.begun > DEADLINE:
            line.until = 0.0  # as the clock on the wall would have it
        return errand

    # ── the end ──────────────────────────────────────────────────────────────────────────────
    def check(self) -> tuple[int, int, int]:
        """One verified tree with every acknowledged event in it, once: how many events, commits and merges it has."""
        ledger = self.people[0].ledger
        tip = ledger.tip()
        faults: list[Finding] = []
        there = [logged.event.id for logged in reading.events(ledger.desk.store.get, tip, faults)]
        lost = self.said - set(there)
        if faults or lost or len(there) != len(set(there)):
            sys.exit(f"{len(lost)} acknowledged events are lost, {len(there) - len(set(there))} repeated: {faults[:3]}")
        self.say("verifying all of it")
        made = verify.verify(ledger.desk, tip, verify.Ways(full=True))
        if made.verdict not in ("verified", "unknown signer"):
            sys.exit(f"the ledger ended as {made.verdict}: {made.findings[:3]}")
        root = objects.parse_commit(ledger.desk.store.get(tip).data).tree
        with audit.rebuilt(ledger, root) as again:
            if again.tree != root:
                sys.exit(f"the tree {root} is not what the journal makes, which is {again.tree}")
        commits, merges = (int(git(self.bare, "rev-list", "--count", *how, tip)) for how in ((), ("--merges",)))
        return len(there), commits, merges


def processor() -> float:
    """Seconds of processor time of this process and the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def working_day(chance: random.Random, end: float) -> Iterator[tuple[float, str]]:
    """When one writer does what: sessions with pauses, a turn every three minutes, a checkpoint every twenty."""
    at = MORNING + chance.uniform(0, 20 * MINUTE)
    while at < end - 5 * MINUTE:
        last = min(at + chance.uniform(40, 90) * MINUTE, end - 1)
        yield at, "begin"
        due = at + chance.uniform(15, 25) * MINUTE
        while (at := at + chance.expovariate(1 / (3 * MINUTE))) < last:
            if at >= due:
                yield at, "checkpoint"
                due = at + chance.uniform(15, 25) * MINUTE
            else:
                yield at, "turn"
        yield last, "finish"
        at = last + chance.uniform(10, 30) * MINUTE
