"""The change set: what a model may propose. Plain types with their bounds; `schema.read_change_set` reads one.

What is checked here is the form alone. Whether a task exists or may become `done` is for whoever applies it to say.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from gitledger.bounds import Number, Tagged, Text
from gitledger.values import dataclass

Id: TypeAlias = Annotated[str, Text(1, 100)]
"""What people call a record: `T-0007`, or `T-0007@k3f9c2`."""
Title: TypeAlias = Annotated[str, Text(1, 200)]
Body: TypeAlias = Annotated[str, Text(1, 4_000)]
Optional: TypeAlias = Annotated[str, Text(0, 4_000)]
Titles: TypeAlias = Annotated[tuple[Title, ...], Text(0, 50)]
Ids: TypeAlias = Annotated[tuple[Id, ...], Text(0, 50)]
Items: TypeAlias = Annotated[tuple[Annotated[str, Text(1, 100)], ...], Text(0, 50)]
"""Items of a task as people name them: `t2`, or `t2@k3f9c2`."""


class _Closed:
    __slots__ = ()
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 (pydantic reads a plain dict)


@dataclass(frozen=True, slots=True)
class Evidence(_Closed):
    """What a claim rests on: a command with its exit status, a commit, or a path; for one criterion, where named."""

    command: Annotated[str, Text(0, 2_000)] = ""
    exit: Annotated[int, Number(-(2**31), 2**32)] | None = None
    commit: Annotated[str, Text(0, 64)] = ""
    path: Annotated[str, Text(0, 1_000)] = ""
    criterion: Annotated[str, Text(0, 100)] = ""

    def __post_init__(self) -> None:
        if [bool(self.command), bool(self.commit), bool(self.path)].count(True) != 1:
            raise ValueError("is exactly one of command, commit, path")
        if bool(self.command) != (self.exit is not None):
            raise ValueError("has an exit status with a command, and only there")


@dataclass(frozen=True, slots=True)
class TaskAdd(_Closed):
    """A new task; it never becomes the active one by itself."""

    op: Literal["task_add"]
    title: Title
    goal: Optional = ""
    accept: Titles = ()
    area: Annotated[str, Text(0, 200)] = ""
    parent: Id | None = None
    depends: Ids = ()
    todos: Titles = ()


@dataclass(frozen=True, slots=True)
class TaskSet(_Closed):
    """Fields of a task set anew; None leaves a field as it is, and `parent` "" takes the task out of the one it is in.

    Criteria are added only: to drop one, or to accept a task unproven, is a person's to say.
    """

    op: Literal["task_set"]
    task: Id
    title: Title | None = None
    goal: Optional | None = None
    scope: Optional | None = None
    non_goals: Optional | None = None
    area: Annotated[str, Text(0, 200)] | None = None
    summary: Annotated[str, Text(0, 200)] | None = None
    next: Body | None = None
    status: Literal["discovered", "planned", "active", "blocked", "done", "dropped"] | None = None
    accept: Titles = ()
    parent: Annotated[str, Text(0, 100)] | None = None
    depends: Ids = ()
    undepend: Ids = ()

    def __post_init__(self) -> None:
        fields = (self.title, self.goal, self.scope, self.non_goals, self.area, self.summary, self.next, self.status)
        lists = (self.accept, self.depends, self.undepend)
        if all(field is None for field in (*fields, self.parent)) and not any(lists):
            raise ValueError("sets nothing; name a field besides op and task")


@dataclass(frozen=True, slots=True)
class Todo(_Closed):
    """To-dos of a task added, done, dropped; one that is closed stays so."""

    op: Literal["todo"]
    task: Id
    add: Titles = ()
    done: Items = ()
    drop: Items = ()

    def __post_init__(self) -> None:
        if not (self.add or self.done or self.drop):
            raise ValueError("changes nothing; name what to add, what is done, or what to drop")


@dataclass(frozen=True, slots=True)
class Complete(_Closed):
    """A piece of work done; without evidence it shows as UNVERIFIED."""

    op: Literal["complete"]
    task: Id
    text: Title
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Decide(_Closed):
    """A decision, and why; the one that it supersedes stays, marked."""

    op: Literal["decide"]
    title: Title
    why: Body
    task: Id | None = None
    supersedes: Id | None = None


@dataclass(frozen=True, slots=True)
class Blocker(_Closed):
    """What a task cannot go on without."""

    op: Literal["blocker"]
    task: Id
    text: Body


@dataclass(frozen=True, slots=True)
class Resolve(_Closed):
    """A blocker that is gone, and how."""

    op: Literal["resolve"]
    blocker: Id
    text: Body


@dataclass(frozen=True, slots=True)
class Question(_Closed):
    """What a person has to answer."""

    op: Literal["question"]
    text: Body
    task: Id | None = None


@dataclass(frozen=True, slots=True)
class Answer(_Closed):
    """The answer to a question."""

    op: Literal["answer"]
    question: Id
    text: Body


@dataclass(frozen=True, slots=True)
class Artifact(_Closed):
    """A file that matters, by its path in the repository."""

    op: Literal["artifact"]
    path: Annotated[str, Text(1, 1_000)]
    title: Annotated[str, Text(0, 200)] = ""
    task: Id | None = None


@dataclass(frozen=True, slots=True)
class Note(_Closed):
    """Anything else worth keeping."""

    op: Literal["note"]
    text: Body
    task: Id | None = None


Update: TypeAlias = Annotated[
    TaskAdd | TaskSet | Todo | Complete | Decide | Blocker | Resolve | Question | Answer | Artifact | Note, Tagged("op")
]


@dataclass(frozen=True, slots=True)
class ChangeSet(_Closed):
    """A proposal made from the ledger's tip `source_digest`; it is applied whole or not at all."""

    source_digest: Annotated[str, Text(1, 100)]
    ledger_updates: Annotated[tuple[Update, ...], Text(0, 200)] = ()
    handoff_summary: Annotated[str, Text(0, 8_000)] = ""
    active_task: Id | None = None
    next_action: Annotated[str, Text(1, 1_000)] | None = None
