"""What was said and done in a replayed project, as plain values, and what a starting session must be told of it.

Nothing here asks the ledger or git: whoever drives the project says each step, and the rules are those of
`docs/guide.md`, written once more. So a briefing that is held against it is not held against itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN = ("active", "blocked")
FOLLOWED = ("exact", "advanced")


@dataclass
class Criterion:
    """One acceptance criterion; `failed` says that its newest run did."""

    text: str
    proven: bool = False
    failed: bool = False


@dataclass
class Task:
    """A task; `said` is when its next action was set, or the task made."""

    name: str
    title: str
    goal: str
    said: int
    status: str = "planned"
    next: str = ""
    criteria: list[Criterion] = field(default_factory=list)
    place: str = ""

    def step(self) -> str:
        """The one next action: what was said, else the first criterion that is not proven."""
        still = next((one.text for one in self.criteria if not one.proven), "")
        return self.next or (f"Meet the first open criterion: {still}" if still else "")


@dataclass(frozen=True)
class Handover:
    """What a session, or somebody, left: where, when, for which task, and which next action."""

    name: str
    at: int
    clone: str
    branch: str
    head: str
    task: str
    next: str
    recovered: bool = False


@dataclass(frozen=True)
class Label:
    """How a recorded commit stands to HEAD, and how many commits are new since."""

    word: str
    reason: str = ""
    count: int = 0

    def __str__(self) -> str:
        return self.word + (f" ({self.reason})" if self.reason else f" {self.count}" if self.count else "")


@dataclass(frozen=True)
class Expected:
    """What a briefing must say. `lead` is the only text to be followed, "" for none; `closed` may nowhere be said."""

    task: str
    title: str
    lead: str
    criteria: tuple[tuple[str, str], ...]
    waiting: frozenset[tuple[str, str]]
    handover: str
    label: Label | None
    recovered: bool
    elsewhere: frozenset[tuple[str, str, str]]
    needs: tuple[str, ...]
    checkpoint: str
    changed: frozenset[str]
    closed: tuple[str, ...]


@dataclass
class Code:
    """The commits of all clones, and what became of those that were made again."""

    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    became: dict[str, str] = field(default_factory=dict)

    def history(self, head: str) -> set[str]:
        """A commit and all that came before it."""
        found: set[str] = set()
        waiting = [head]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.parents[one]
        return found

    def label(self, recorded: str, head: str) -> Label:
        """The label of a commit that was recorded on the branch whose head is `head`."""
        now, then = self.history(head), self.history(recorded)
        if recorded == head:
            return Label("exact")
        if recorded in now:
            return Label("advanced", count=len(now - then))
        if head in then:
            return Label("diverged", "rewound")
        successor = recorded
        while successor in self.became:
            successor = self.became[successor]
        if successor != recorded and successor in now:
            return Label("diverged", "rewritten")
        return Label("diverged", "forked" if now & then else "unrelated")


@dataclass
class Place:
    """A clone: its branches with their heads, which is checked out, and what is not committed.

    `unsent` says that checkpoints were made here since it met the remote. `forwarded` are branches that came to a
    commit by a merge of another one that made no commit: (branch, other, commit).
    """

    name: str
    branch: str
    heads: dict[str, str]
    active: str = ""
    changed: set[str] = field(default_factory=set)
    unsent: bool = False
    forwarded: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def head(self) -> str:
        """The commit that is checked out."""
        return self.heads[self.branch]


@dataclass
class Project:
    """All that was said, in the order it was said in."""

    code: Code = field(default_factory=Code)
    places: dict[str, Place] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    waiting: dict[str, tuple[str, str]] = field(default_factory=dict)
    standing: dict[str, str] = field(default_factory=dict)
    handovers: list[Handover] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    checkpoints: int = 0
    missing: bool = False
    now: int = 0
    shared: bool = False

    def tick(self) -> int:
        """The next moment."""
        self.now += 1
        return self.now

    # ── what is said ─────────────────────────────────────────────────────────────────────────
    def say_next(self, task: Task, text: str) -> None:
        """A next action takes the place of the one before, which is over."""
        if task.next and task.next != text:
            self.closed.append(task.next)
        task.next, task.said = text, self.tick()

    def start(self, place: Place, task: Task) -> None:
        """A task is taken up here; the one that was worked on here, if any, is set aside."""
        before = self.active(place)
        if before and before.place in ("", place.name) and before.status == "active":
            before.status = "planned"
        task.status, task.place, place.active = "active", place.name, task.name
        self.tick()

    def finish(self, task: Task, status: str) -> None:
        """A task is done or dropped, and nothing of it is to be done any more."""
        task.status = status
        self.closed += [text for text in (task.next, task.title, task.goal, *(c.text for c in task.criteria)) if text]
        task.next, task.said = "", self.tick()

    def active(self, place: Place) -> Task | None:
        """The task that this clone is at; where it was never at one, the project's only active one."""
        if place.active:
            own = self.tasks[place.active]
            return own if own.status in OPEN else None
        found = [task for task in self.tasks.values() if task.status == "active"]
        return found[0] if len(found) == 1 else None

    def checkpointed(self, place: Place) -> None:
        """A checkpoint was made."""
        self.checkpoints += 1
        self.missing = False
        place.unsent = self.shared

    def hand_over(self, place: Place, said: str = "", *, recovered: bool = False) -> None:
        """A checkpoint and a handover were made, whose next action is the task's, or what is said."""
        self.checkpointed(place)
        task = self.active(place)
        name = f"H-{len(self.handovers) + 1:06}"
        step = said or (task.step() if task else "")
        self.handovers.append(
            Handover(
                name, self.tick(), place.name, place.branch, place.head, task.name if task else "", step, recovered
            )
        )

    # ── what a session must be told ──────────────────────────────────────────────────────────
    def expected(self, place: Place) -> Expected:
        """What the next start in a clone must be told."""
        task = self.active(place)
        chosen = self.chosen(place)
        criteria = (
            [(one.text, "failed" if one.failed else "open") for one in task.criteria if not one.proven] if task else []
        )
        return Expected(
            task.name if task else "",
            task.title if task else "",
            self.lead(place, task, chosen),
            tuple(criteria),
            frozenset((name, title) for name, (title, _) in self.waiting.items()),
            chosen.name if chosen else "",
            self.code.label(chosen.head, place.head) if chosen else None,
            chosen.recovered if chosen else False,
            self._elsewhere(place),
            ("CHECKPOINT MISSING",) * self.missing + ("not pushed",) * place.unsent,
            f"C-{self.checkpoints:06}" if self.checkpoints else "",
            frozenset(place.changed),
            tuple(self.closed),
        )

    def _elsewhere(self, place: Place) -> frozenset[tuple[str, str, str]]:
        """The newest handover of each other branch; of the newest of them, whether its branch is merged here."""
        newest = {one.branch: one for one in self.handovers if one.branch != place.branch}
        last = max((one.at for one in newest.values()), default=0)
        history = self.code.history(place.head)

        def merged(one: Handover) -> bool:
            # A branch that was only just made at that commit has merged nothing.
            went_on = one.head != place.head or (place.branch, one.branch, one.head) in place.forwarded
            return one.at == last and one.head in history and went_on

        return frozenset((one.name, branch, " (merged)" if merged(one) else "") for branch, one in newest.items())

    def chosen(self, place: Place) -> Handover | None:
        """This clone's newest handover of its branch, else any clone's."""
        here = [one for one in self.handovers if one.branch == place.branch]
        own = [one for one in here if one.clone == place.name]
        return (own or here)[-1] if here else None

    def lead(self, place: Place, task: Task | None, chosen: Handover | None) -> str:
        """The one text that may be followed, "" where none may.

        What was said of a task counts until a handover is made, and from then on as much as that handover does.
        """
        followed = chosen is not None and self._followed(chosen, place)
        if task is None:
            if chosen is None or not followed:
                return ""
            about = self.tasks.get(chosen.task)
            return chosen.next if about is None or (about.status in OPEN and about.said <= chosen.at) else ""
        since = [one for one in self.handovers if one.at > task.said]
        if not since:
            return task.step()
        if chosen in since and followed and chosen is not None:
            return chosen.next if chosen.task == task.name else task.step()
        here = [one for one in since if one.branch == place.branch]
        return task.step() if here and self._followed(here[-1], place) else ""

    def _followed(self, one: Handover, place: Place) -> bool:
        return self.code.label(one.head, place.head).word in FOLLOWED
