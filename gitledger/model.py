"""The words of the ledger as values: frozen, plain, without I/O and without imports of ours.

Times are UTC text of fixed width, `2026-11-30T14:49:11.123Z`, so that they sort as text.
Ids: inside, an event has a UUIDv7. A record has a key, number and creating writer (`T-0007@k3f9c2`),
which no second writer can ever allocate; people see the bare number where it is unambiguous.
"""

from __future__ import annotations

from gitledger.typed import TYPE_CHECKING, Any, Literal, TypeAlias
from gitledger.values import dataclass, field

Oid: TypeAlias = str
"""A git object id in lower-case hex: 40 digits in a sha1 repository, 64 in a sha256 one."""
Key: TypeAlias = str
"""A record's name that is unique across all writers, such as `T-0007@k3f9c2`."""
Json: TypeAlias = Any
"""None, bool, int, str, list or dict with str keys: what canonical JSON holds; never a float."""

DETACHED = "DETACHED"
UNBORN = "UNBORN"


# ── the journal ──────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    """Where an event stands in the order of all events; the later one wins a field."""

    lamport: int
    writer: str
    seq: int


@dataclass(frozen=True, slots=True)
class Change:
    """What one event does to one record: fields to set, and items (list → id → fields) to add or set."""

    set: dict[str, Json] = field(default_factory=dict)
    items: dict[str, dict[str, dict[str, Json]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before it is stamped: what a command or an adapter has to say."""

    id: str
    at: str
    type: str
    session: Key | None = None
    task: Key | None = None
    records: dict[Key, Change] = field(default_factory=dict)
    data: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """One journalled fact. `prev` is the SHA-256 (hex) of this writer's previous line, "" for the first."""

    v: int
    id: str
    writer: str
    seq: int
    lamport: int
    at: str
    type: str
    session: Key | None
    task: Key | None
    records: dict[Key, Change]
    data: dict[str, Json]
    prev: str

    @property
    def stamp(self) -> Stamp:
        """Its place in the order of all events."""
        return Stamp(self.lamport, self.writer, self.seq)


Field: TypeAlias = tuple[Json, Stamp]


_TEXTS = frozenset(
    """
    accept_unproven active answer answered_at area at began blob branch by carried checkpoint_at checkpoint_name
    client client_session command commit criterion description done_at fingerprint goal head held_at how id kind
    last_answer last_at last_prompt ledger moved name next next_at non_goals number_name objective output parent
    path previous principal public_key put reason resolution resolved_at result_sha256 said scope session slug
    source source_sha256 split_at split_from status summary superseded_by supersedes taken task task_name
    task_title tests text title undoes undone_by unproposed uuid why worktree writer
    """.split()  # noqa: SIM905 (reads as one list)
)
"""Fields that are text wherever they stand, a record's key included."""
_LISTS = frozenset(("asked", "covers", "errors", "files", "made", "uncommitted"))
"""Fields that are lists of texts."""


def _kept(name: str, value: Json) -> bool:
    return not (
        (name in _TEXTS and not isinstance(value, str))
        or (name == "turns" and not isinstance(value, int))
        or (name in _LISTS and not (isinstance(value, list) and all(isinstance(one, str) for one in value)))
    )


@dataclass(frozen=True, slots=True)
class Record:
    """What events add up to: every field with the stamp of the event that set it.

    `items` are lists as sets: list name → item id → fields. An item is never removed; a field of its
    own closes it. So two versions merge field by field and nothing is dropped.

    Another program may have set a field to anything. `get`, `values` and `listed` take one of another kind than it has
    for one that is not set, so that whoever reads a title reads a text; `fields` and `items` hold what is there.
    """

    key: Key
    fields: dict[str, Field] = field(default_factory=dict)
    items: dict[str, dict[str, dict[str, Field]]] = field(default_factory=dict)

    def get(self, name: str, default: Json = None) -> Json:
        """The value of a field without its stamp."""
        found = self.fields.get(name)
        return found[0] if found is not None and _kept(name, found[0]) else default

    def values(self) -> dict[str, Json]:
        """Every field's value without its stamp."""
        return {name: value for name, (value, _) in self.fields.items() if _kept(name, value)}

    def text(self, name: str) -> str:
        """A field as text; "" where it is absent or something else, which another writer may have set."""
        found = self.get(name, "")
        return found if isinstance(found, str) else ""

    def is_odd(self) -> bool:
        """True where a field is of another kind than it has."""
        held = [self.fields, *(fields for items in self.items.values() for fields in items.values())]
        # None is how a field that was set is taken back: a checkpoint of no task has that as its task.
        said = ((name, value) for fields in held for name, (value, _) in fields.items() if value is not None)
        return not all(_kept(name, value) for name, value in said)

    def listed(self, name: str) -> list[dict[str, Json]]:
        """The items of a list as plain values with their `id`, oldest first."""
        rows = []
        for item, fields in self.items.get(name, {}).items():
            if fields:  # an event can name an item and say nothing of it
                born = min(stamp for _, stamp in fields.values())
                said = {n: v for n, (v, _) in fields.items() if _kept(n, v) and (n != "evidence" or isinstance(v, str))}
                rows.append((born, item, {**said, "id": item}))
        return [row for _, _, row in sorted(rows, key=lambda r: (r[0], r[1]))]


# ── git's side ───────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Position:
    """Where a repository stands.

    `branch` is the short name or `DETACHED`; `head` a commit or `UNBORN`; `tree` the head's tree or "".
    `dirty` counts paths that differ from HEAD (untracked ones included). `fingerprint` is equal for equal
    content of the work tree, whatever the commit; "" where it was not taken. `worktree` is `main` or the linked
    worktree's own name. `operation` names a merge, rebase, cherry-pick, revert or bisect under way, else "".
    """

    branch: str
    head: str
    tree: str = ""
    dirty: int = 0
    fingerprint: str = ""
    worktree: str = "main"
    operation: str = ""


if TYPE_CHECKING:
    Ancestry = Literal[
        "same",  # the recorded head is HEAD (or both are unborn)
        "descends",  # HEAD is a descendant of the recorded head
        "rewound",  # HEAD is an ancestor of the recorded head
        "rewritten",  # the recorded commit lives on under another id in HEAD's history
        "forked",  # both have commits that the other lacks
        "unrelated",  # no common ancestor
        "missing",  # the recorded object is not in this repository
        "unknown",  # git could not answer
    ]
else:
    Ancestry = str


@dataclass(frozen=True, slots=True)
class Relation:
    """How a recorded head relates to HEAD, as git answered.

    `commits` are (oid, subject) from the recorded head (exclusive) to HEAD, newest first and at most twenty;
    `count` is how many there are. `successor` is the commit that a rewritten one became. `detail` is git's word on
    `unknown`.
    """

    ancestry: Ancestry
    commits: tuple[tuple[Oid, str], ...] = ()
    count: int = 0
    successor: Oid = ""
    detail: str = ""


Label: TypeAlias = 'Literal["exact", "advanced", "diverged", "different_context"]'
if TYPE_CHECKING:
    Reason = Literal[
        "",
        "rewound",
        "rewritten",
        "forked",
        "unrelated",
        "missing",
        "unknown",
        "other branch",
        "merged",
        "detached",
        "other ledger",
    ]
else:
    Reason = str


@dataclass(frozen=True, slots=True)
class Divergence:
    """The label of a recorded position against the present one, and what it rests on."""

    label: Label
    reason: Reason = ""
    relation: Relation | None = None


Freshness: TypeAlias = 'Literal["fresh", "aging", "stale", "invalid"]'
Authenticity: TypeAlias = 'Literal["verified", "unknown signer", "bad", "unverifiable"]'


@dataclass(frozen=True, slots=True)
class Verdict:
    """May it be followed? `withheld` holds the reasons why its Next Action is history; empty means trust it."""

    divergence: Divergence
    freshness: Freshness
    authenticity: Authenticity
    withheld: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """True where the handover may be followed."""
        return not self.withheld


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault found in data: a value, so that one bad record never hides the rest."""

    rule: str
    where: str
    what: str
    mend: str = ""
