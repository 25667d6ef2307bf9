"""What people and agents do to tasks: each function checks one step against the ledger and says it as a Draft.

Nothing is written here. A refusal names what is legal instead.
"""

from __future__ import annotations

from gitledger import layout, proof, relations, todo
from gitledger.errors import BadData, NotAllowed
from gitledger.mint import Mint
from gitledger.model import Change, Draft, Json, Key, Record
from gitledger.redact import Clean, redact
from gitledger.render.text import slug
from gitledger.values import dataclass
from gitledger.view import View

TITLE_LIMIT = 200
TEXT_LIMIT = 20_000

LEGAL: dict[str, tuple[str, ...]] = {
    "discovered": ("planned", "active", "dropped"),
    "planned": ("active", "blocked", "dropped"),
    "active": ("planned", "blocked", "done", "dropped"),
    "blocked": ("planned", "active", "dropped"),
    "done": ("active",),
    "dropped": ("planned",),
}
"""From each status, where a task may go. Only a person's or an explicit `task start` makes one active."""


@dataclass(frozen=True, slots=True)
class Hand:
    """Who is writing, when, in which work tree and session."""

    mint: Mint
    writer: str
    worktree: str = "main"
    session: Key | None = None

    def draft(self, type_: str, records: dict[Key, Change], task: Key | None = None, **data: Json) -> Draft:
        """A draft of this hand, now."""
        return Draft(self.mint.id(), self.mint.at(), type_, self.session, task, records, data)


# ── texts ────────────────────────────────────────────────────────────────────────────────────
def title(text: str, what: str = "title") -> Clean:
    """`text` as one line of at most TITLE_LIMIT characters, redacted; raise BadData with what is wrong."""
    text = " ".join(text.split(" ")).strip()
    if not text:
        raise BadData(f"the {what} is empty; say in a few words what it is")
    if len(text) > TITLE_LIMIT:
        raise BadData(f"the {what} has {len(text):,} characters, at most {TITLE_LIMIT} are kept; shorten it")
    for char in text:
        if not char.isprintable():
            raise BadData(f"the {what} holds the control character U+{ord(char):04X}; take it out")
    return redact(text)


def body(text: str, what: str) -> Clean:
    """`text` of at most TEXT_LIMIT characters, line breaks and tabs allowed, redacted; raise BadData otherwise."""
    if len(text) > TEXT_LIMIT:
        raise BadData(f"the {what} has {len(text):,} characters, at most {TEXT_LIMIT:,} are kept; put it into a file")
    if "\0" in text:
        raise BadData(f"the {what} holds a NUL character; take it out")
    return redact(text)


# ── reading ──────────────────────────────────────────────────────────────────────────────────
def active(view: View, writer: str, worktree: str) -> Key | None:
    """The task that this work tree is at, blocked or not; else the ledger's only active one; else None."""
    here = view.record(layout.worktree_key(writer, worktree))
    key = here.get("active") if here else None
    if key and layout.numbered(key) and (record := view.record(key)) and record.get("status") in ("active", "blocked"):
        return str(key)
    if here and here.fields.get("active"):
        return None  # it was at one, and that one is finished: not somebody else's task instead
    found = view.having(layout.TASK, "active", 2)
    return found[0] if len(found) == 1 else None


def finished(view: View, writer: str, worktree: str) -> Key | None:
    """The task that this work tree was at last, where that is done."""
    here = view.record(layout.worktree_key(writer, worktree))
    key = here.get("active") if here else None
    if not isinstance(key, str) or layout.numbered(key) is None:
        return None
    record = view.record(key)
    return key if record is not None and record.get("status") == "done" else None


def next_action(task: Record) -> str:
    """The one next action; where none is recorded, the first to-do that is open, else the first criterion."""
    recorded = task.get("next", "")
    if recorded:
        return str(recorded)
    for one in todo.still_open(task):
        return f"Do the first open to-do: {one.text}"
    for criterion in proof.criteria(task):
        if not criterion.met:
            return f"Meet the first open criterion: {criterion.text}"
    return ""


# ── steps ────────────────────────────────────────────────────────────────────────────────────
def add(
    view: View,
    hand: Hand,
    text: str,
    *,
    goal: str = "",
    accept: tuple[str, ...] = (),
    area: str = "",
    parent: Key | None = None,
    depends: tuple[Key, ...] = (),
    todos: tuple[str, ...] = (),
    status: str = "planned",
) -> tuple[Key, Draft]:
    """A new task, `discovered` or `planned`; never the active one."""
    if status not in ("discovered", "planned"):
        raise BadData(f"a new task is discovered or planned, not {status}; add it, then run: gitledger task start ID")
    named = title(text)
    key = view.next_number(layout.TASK, hand.writer)
    fields: dict[str, Json] = {
        "title": named,
        "slug": slug(named),
        "status": status,
        "at": hand.mint.at(),
        "by": hand.writer,
    }
    for name, value in (
        ("goal", body(goal, "goal")),
        ("area", title(area, "area") if area else ""),
        ("parent", parent),
    ):
        if value:
            fields[name] = value
    items: dict[str, dict[str, dict[str, Json]]] = {}
    for n, criterion in enumerate(accept, 1):
        items.setdefault("criteria", {})[f"c{n}@{hand.writer}"] = {"text": title(criterion, "acceptance criterion")}
    for n, one in enumerate(todos, 1):
        items.setdefault("todos", {})[f"t{n}@{hand.writer}"] = {"text": title(one, "to-do"), "at": hand.mint.at()}
    relations.refuse_many(view, key, len(set(depends)))
    for other in depends:
        items.setdefault("depends", {})[other] = {"live": True, "title": view.need(other).get("title")}
    if parent:
        view.need(parent)
    return key, hand.draft("task.added", {key: Change(fields, items)}, key)


def move(view: View, hand: Hand, key: Key, status: str, **fields: Json) -> Draft:
    """A task to another status, where that is legal; NotAllowed names what is."""
    task = view.need(key)
    now = task.get("status")
    if now == status:
        raise NotAllowed(f"{view.name(key)} is {status} already; look at it with: gitledger task show {view.name(key)}")
    if status not in LEGAL[now]:
        raise NotAllowed(
            f"{view.name(key)} is {now} and cannot become {status}; legal from here: {', '.join(LEGAL[now])}"
        )
    return hand.draft(f"task.{status}", {key: Change({"status": status, **fields})}, key)


def unblock(view: View, hand: Hand, key: Key) -> tuple[str, Draft]:
    """A blocked task taken up again, with the status it gets: active where this work tree is at it, else planned."""
    task = view.need(key)
    if task.get("status") != "blocked":
        raise NotAllowed(f"{view.name(key)} is {task.get('status')}, not blocked; legal from here: "
                         f"{', '.join(LEGAL[task.get('status')])}")  # fmt: skip
    here = view.record(layout.worktree_key(hand.writer, hand.worktree))
    status = "active" if here and here.get("active") == key else "planned"
    return status, move(view, hand, key, status)


def start(view: View, hand: Hand, key: Key) -> tuple[Draft, Key | None]:
    """A task made the active one of this work tree; the one it takes the place of goes back to planned.

    One that is active in another work tree is worked on here from now on.
    """
    before = active(view, hand.writer, hand.worktree)
    place = layout.worktree_key(hand.writer, hand.worktree)
    if before and view.need(before).get("active_in", place) != place:
        before = None  # it is being worked on in another work tree, and goes on there
    task = view.need(key)
    if task.get("status") == "active" and task.get("active_in", place) != place:
        draft = hand.draft("task.active", {key: Change({"active_in": place})}, key)
    else:
        draft = move(view, hand, key, "active", active_in=place)
    records = dict(draft.records)
    if view.need(key).get("done_at"):
        records[key] = Change({**records[key].set, "done_at": None, "accept_unproven": ""})
    set_aside = before and before != key and view.need(before).get("status") == "active"
    if before and set_aside:
        records[before] = Change({"status": "planned"})
    records[place] = Change({"name": hand.worktree, "writer": hand.writer, "active": key, "at": draft.at})
    return hand.draft("task.active", records, key), before if set_aside else None


def set_next(view: View, hand: Hand, key: Key, text: str) -> Draft:
    """The one next action of a task; the one before it is replaced."""
    task = view.need(key)
    if task.get("status") in ("done", "dropped"):
        raise NotAllowed(f"{view.name(key)} is {task.get('status')} and has no next action; start it again first")
    return hand.draft(
        "task.next", {key: Change({"next": body(text.strip(), "next action"), "next_at": hand.mint.at()})}, key
    )


def done(view: View, hand: Hand, key: Key, accept_unproven: str = "", stale: proof.Stale = proof.FRESH) -> Draft:
    """A task finished: every criterion met with evidence, or a reason that is recorded and shows.

    `stale` are the ids of evidence that does not stand any more, with why.
    """
    task = view.need(key)
    unmet = [c for c in proof.criteria(task, stale) if not c.met]
    fields: dict[str, Json] = {"done_at": hand.mint.at(), "next": ""}
    if accept_unproven:
        fields["accept_unproven"] = title(accept_unproven, "reason")
    elif unmet:
        names = ", ".join(f"{c.name} ({c.state}{': ' if c.why else ''}{c.why[:80]})" for c in unmet[:5])
        more = f" and {len(unmet) - 5} more" if len(unmet) > 5 else ""
        raise NotAllowed(
            f"{view.name(key)} has criteria without standing evidence: {names}{more}; add it with: gitledger task "
            f"evidence {view.name(key)} --criterion {unmet[0].name} --run CMD, or give --accept-unproven REASON"
        )
    return move(view, hand, key, "done", **fields)


def evidence(
    view: View, hand: Hand, key: Key, piece: dict[str, Json], criterion: str = "", completed: str = ""
) -> Draft:
    """One piece of evidence for a task, for one of its criteria where named, with the work it completes."""
    task = view.need(key)
    if criterion:
        piece = {**piece, "criterion": find_item(task, "criteria", criterion, view.name(key))}
    item = layout.item_id("e", task.items.get("evidence", {}), hand.writer)
    items = {"evidence": {item: {**piece, "at": hand.mint.at()}}}
    if completed:
        work = layout.item_id("d", task.items.get("completed", {}), hand.writer)
        items["completed"] = {
            work: {"text": title(completed, "completed work"), "at": hand.mint.at(), "evidence": item}
        }
    return hand.draft("task.evidence", {key: Change({}, items)}, key, kind=piece.get("kind"))


def edit(
    view: View,
    hand: Hand,
    key: Key,
    *,
    fields: dict[str, str],
    accept: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    completed: tuple[str, ...] = (),
    parent: Key | None = None,
    depends: tuple[Key, ...] = (),
    undepend: tuple[Key, ...] = (),
) -> Draft:
    """Fields of a task set anew, criteria added or dropped, completed work noted, its place among the tasks changed.

    `parent` "" takes it out of the one it is a part of. NotAllowed where it would come to wait for itself.
    """
    task = view.need(key)
    change: dict[str, Json] = {}
    if parent is not None:
        if parent:
            view.need(parent)
            relations.refuse_ring(view, key, parent, "parent")
        change["parent"] = parent
    for name, text in fields.items():
        change[name] = title(text, name) if name in ("title", "area", "summary") else body(text, name)
    items: dict[str, dict[str, dict[str, Json]]] = {}
    for text in accept:
        taken = [*task.items.get("criteria", {}), *items.get("criteria", {})]
        items.setdefault("criteria", {})[layout.item_id("c", taken, hand.writer)] = {
            "text": title(text, "acceptance criterion")
        }
    for text in drop:
        items.setdefault("criteria", {})[find_item(task, "criteria", text, view.name(key))] = {"dropped": True}
    for text in completed:
        taken = [*task.items.get("completed", {}), *items.get("completed", {})]
        work = layout.item_id("d", taken, hand.writer)
        items.setdefault("completed", {})[work] = {"text": title(text, "completed work"), "at": hand.mint.at()}
    if depends or undepend:
        items["depends"] = _depends(view, key, depends, undepend)
    if not change and not items:
        raise BadData("nothing to change; name a field, for example --goal TEXT")
    return hand.draft("task.edited", {key: Change(change, items)}, key)


def _depends(view: View, key: Key, depends: tuple[Key, ...], undepend: tuple[Key, ...]) -> dict[str, dict[str, Json]]:
    now = {row["id"] for row in view.need(key).listed("depends") if row.get("live")}
    for other in undepend:
        if other not in now:
            raise BadData(f"{view.name(key)} does not depend on {view.name(other)}; see: gitledger task show")
    for other in depends:
        relations.refuse_ring(view, key, other, "depends")
    relations.refuse_many(view, key, len((now - set(undepend)) | set(depends)))
    gone = {other: {"live": False} for other in undepend}
    return gone | {other: {"live": True, "title": view.need(other).get("title")} for other in depends}


def set_todos(
    view: View,
    hand: Hand,
    key: Key,
    *,
    new: tuple[str, ...] = (),
    done: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
) -> Draft:
    """To-dos of a task added, done, dropped; one that is closed stays so, and NotAllowed says it."""
    task, name = view.need(key), view.name(key)
    if new and task.get("status") in ("done", "dropped"):
        raise NotAllowed(f"{name} is {task.get('status')} and has nothing to do; start it again first")
    known = {one.id: one for one in todo.todos(task)}
    items: dict[str, dict[str, Json]] = {}
    said = {one.text.casefold(): one for one in known.values() if one.state in ("open", "done")}
    for text in new:
        clean = title(text, "to-do")
        if same := said.get(clean.casefold()):  # what was done shall not come back by being said again
            raise NotAllowed(f"{name} {same.name} says that already and is {same.state}; say what is left of it")
        items[layout.item_id("t", [*known, *items], hand.writer)] = {"text": clean, "at": hand.mint.at()}
    for word, chosen in (("done", done), ("dropped", drop)):
        for text in chosen:
            one = known[find_item(task, "todos", text, name)]
            if one.state != "open" or one.id in items:
                state = one.state if one.state != "open" else "named twice"
                raise NotAllowed(
                    f"{name} {one.name} is {state} already; add another one: gitledger task todo {name} TEXT"
                )
            items[one.id] = {"done_at": hand.mint.at()} if word == "done" else {"dropped": True}
    if not items:
        raise BadData("nothing to change; name a to-do, or give a text")
    return hand.draft("task.todo", {key: Change({}, {"todos": items})}, key)


def find_item(task: Record, listed: str, text: str, name: str) -> str:
    """The id of an item that people name `c1`, `1` or `c1@k3f9c2`; raise BadData with those there are."""
    names = proof.item_names(task.items.get(listed, {}))
    for item, shown in names.items():
        if text in (item, shown, shown.lstrip("abcdefghijklmnopqrstuvwxyz")):
            return item
    there = ", ".join(sorted(names.values())) or "none"
    raise BadData(f"{name} has no {listed} item {text[:40]!r}; there are: {there}")
