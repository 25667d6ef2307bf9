"""The ledger of one project, as one clone works with it: record, checkpoint, end, read.

This is the library's surface; the command line and every client's adapter are built on it. It knows a Store and
nothing of what stands behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitledger import (
    gitdir,
    ingest,
    layout,
    lock,
    objects,
    standing,
    tasks,
    transaction,
    wal,
    worktree,
)
from gitledger.errors import BadData, Blocked, CannotWrite, IOFailed, LedgerError, LockHeld, Missing, NoLedger, TryAgain
from gitledger.gitdir import GitDir
from gitledger.model import UNBORN, Draft, Event, Finding, Json, Key, Oid, Position, Record
from gitledger.tasks import Hand
from gitledger.transaction import Desk, Plan, Written
from gitledger.typed import TYPE_CHECKING, TypeVar
from gitledger.values import dataclass, replace
from gitledger.view import View

if TYPE_CHECKING:
    from gitledger.derive import Facts, Told  # as `sessions` is, loaded by who writes: a briefing and a capsule read

T = TypeVar("T")

COUNTED = 50_000
"""Commits between two checkpoints that are counted at most."""
QUIET = frozenset(("receipt", "rollover.advised"))
"""Events that say nothing of the work."""
MIDDLE = frozenset(("prompt", "tool"))
"""What a turn is made of before it ends."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a checkpoint or handover lies: what the caller is told, and the compactor is handed."""

    name: str
    task: str
    path: str
    commit: Oid
    algorithm: str
    next: str
    key: Key
    again: bool = False

    @property
    def digest(self) -> str:
        """`sha1:<commit>`."""
        return f"{self.algorithm}:{self.commit}"


class Ledger:
    """One ledger in one work tree. Make one with `gitledger.open(path)`."""

    def __init__(self, desk: Desk, gitdir: GitDir) -> None:
        self.desk = desk
        self.gitdir = gitdir
        self.faults: tuple[Finding, ...] = ()
        self.findings: list[Finding] = []
        self.pending: tuple[Event, ...] = ()
        self._last: tuple[Oid, list[tuple[str, str, str, str, str, bytes]], View, ingest.Ingested] | None = None

    # ── reading ──────────────────────────────────────────────────────────────────────────
    def tip(self) -> Oid:
        """The commit that the ledger's branch is at; raise NoLedger where it has none."""
        tip = self.desk.store.tip()
        if tip is None:
            raise NoLedger(f"the branch {self.desk.store.ref} is gone; bring it back from a remote or another clone")
        return tip

    def view(self) -> View:
        """The records at the tip with the write-ahead log folded on top.

        `findings` then holds what was faulty in the log, and `pending` its events; `faults` is what discovery met.
        """
        view, taken, faults = self._folded()
        self.findings = [*faults, *taken.findings]
        self.pending = tuple(event for event, _ in taken.lines)
        return view

    def _folded(self) -> tuple[View, ingest.Ingested, list[Finding]]:
        tip = self.tip()
        for _ in range(20):
            entries, faults = wal.pending(self.desk.home.wal)
            before, tip = tip, self.tip()
            if before == tip:  # else a commit may have taken some of these lines with it
                break
        # A command asks several times, and what is in the log is read and redacted for each of its lines.
        lines = [(one.id, one.at, one.client, one.event, one.worktree, one.payload) for one in entries]
        if self._last is None or self._last[:2] != (tip, lines):
            view = transaction.view_at(self.desk, tip)
            self._last = (tip, lines, view, transaction.fold_pending(self.desk, view, entries))
        return self._last[2].fork(), self._last[3], faults

    def position(self, *, fingerprint: bool = True, place: GitDir | None = None) -> Position:
        """Where the work tree stands now, or the one at `place`."""
        return worktree.position(place or self.gitdir, fingerprint=fingerprint, read_tree=self._tree_of)

    def look(self, place: GitDir | None = None, *, meanwhile: Callable[[], object] | None = None) -> worktree.Look:
        """Where the work tree stands now, or the one at `place`, and what differs from HEAD in it."""
        return worktree.look(place or self.gitdir, read_tree=self._tree_of, meanwhile=meanwhile)

    def stale(self, task: Record, look: worktree.Look | None = None, place: GitDir | None = None) -> dict[str, str]:
        """The ids of a task's evidence that does not stand any more in this work tree, each with the reason."""
        where = place or self.gitdir
        return standing.stale(where, self.desk.store.get, look or self.look(place), task) if where.top else {}

    def hand(self, session: Key | None = None) -> Hand:
        """Who writes from this work tree."""
        return Hand(self.desk.mint, self.desk.writer.id, self.gitdir.worktree, session)

    def facts(self, view: View, place: GitDir | None = None) -> Facts:
        """The position and what git says happened since the newest checkpoint of this work tree, or that at `place`."""
        from gitledger.derive import Facts

        look = self.look(place, meanwhile=transaction.load)
        here = look.position
        before = view.record(layout.worktree_key(self.desk.writer.id, here.worktree))
        old = before.get("head") if before else None
        plain = Facts(here, stale=self._stale(view, look, place), uncommitted=tuple(sorted(look.differs or ())))
        if not old or old == here.head or UNBORN in (old, here.head):
            return plain
        try:
            return replace(
                plain,
                commits=worktree.commits_between(self.gitdir, old, here.head, COUNTED),
                changed=worktree.changed_files(self.gitdir, old, here.head),
                since=old,
            )
        except LedgerError:
            return plain  # the old head is gone (rewritten, pruned): the position alone is certain

    def _stale(self, view: View, look: worktree.Look, place: GitDir | None) -> dict[tuple[Key, str], str]:
        """The active task's pieces of evidence that do not stand any more."""
        key = tasks.active(view, self.desk.writer.id, look.position.worktree)
        record = view.record(key) if key else None
        if key is None or record is None:
            return {}
        return {(key, item): why for item, why in self.stale(record, look, place).items()}

    # ── writing ──────────────────────────────────────────────────────────────────────────
    def record(self, build: Callable[[View, Hand], tuple[T, Draft]]) -> T:
        """Log what `build` says of the present ledger, synced, and return what else it gives.

        `build` runs under the clone's lock, so that two processes never hand out the same number.
        """
        from gitledger import sessions

        with lock.held(self.desk.home.lock, deadline=self.desk.wait):
            view = self.view()
            hand = self.hand()
            result, draft = build(view, replace(hand, session=sessions.current(view, hand)))
            self._log(draft)
        return result

    def _log(self, draft: Draft) -> None:
        payload = ingest.typed_payload(ingest.clean(draft))  # refuses now what no commit could take later
        wal.append_entry(self.desk.home.wal, draft.id, draft.at, "gitledger", draft.type, payload, self.gitdir.worktree)

    def checkpoint(self, reason: str = "manual", *, session: Key | None = None, told: Told | None = None) -> Pointer:
        """Make a checkpoint, read back and verified; raise Blocked and change nothing when it cannot be made."""
        return self.make(lambda view: self._checkpoint(view, reason, session, told))

    def _checkpoint(self, view: View, reason: str, session: Key | None, told: Told | None = None) -> Plan:
        from gitledger import derive, sessions

        hand = self.hand(session)
        hand = replace(hand, session=session or sessions.current(view, hand))
        facts = self.facts(view)
        key, draft = derive.checkpoint(view, hand, facts, reason=reason, session=hand.session, told=told)
        capsule = derive.capsule(draft.records[key].set)
        return Plan("checkpoint", (draft,), derive.subject(view, key, draft), capsule, facts.position)

    def make(self, build: Callable[[View], Plan]) -> Pointer:
        """The commit of a plan that holds a checkpoint or handover; raise Blocked and change nothing otherwise."""
        return self._pointer(self._durably(build))

    def before_compaction(self, session: Key, reason: str = "compact", *, often: bool = False) -> Pointer:
        """A checkpoint before a compaction, or at a turn's end: one, however often the same one is announced.

        Announced again with nothing said or done in between (no event but receipts, no other commit, the same
        position), the checkpoint that is there is named again: under the lock, as clients announce it several times
        at once. `often` is for a client that announces one before each of its requests: only a turn's end is news then.
        """
        made: list[Pointer] = []

        def build(view: View) -> Plan | None:
            made[:] = self._made_already(view, session, often)
            return None if made else self._checkpoint(view, reason, session)

        written = self._durably(build)
        return made[0] if written is None else self._pointer(written)

    def write_handover(self, reason: str = "written", told: Told | None = None) -> Pointer:
        """A checkpoint and a handover in one commit; the session goes on. Raise Blocked, nothing changed, otherwise."""
        from gitledger import derive, sessions

        def build(view: View) -> Plan:
            hand = self.hand()
            hand = replace(hand, session=sessions.current(view, hand))
            facts = self.facts(view)
            c_key, c_draft = derive.checkpoint(view, hand, facts, reason="handover", session=hand.session, told=told)
            name = c_draft.records[c_key].set["number_name"]
            key, draft = derive.handover(
                view, hand, facts, session=hand.session, reason=reason, checkpoint_name=name, told=told
            )
            fields = draft.records[key].set
            return Plan(
                "handover", (c_draft, draft), derive.subject(view, key, draft), derive.capsule(fields), facts.position
            )

        return self.make(build)

    def start_session(self, client: str, client_session: str, source: str = "", pid: int | None = None) -> Key:
        """Open a session, or keep one that goes on; its line is in the WAL when this returns."""
        from gitledger import sessions
        from gitledger.derive import Facts

        key = layout.session_key(client, client_session)

        def build(view: View, hand: Hand) -> tuple[Key, Draft]:
            return key, sessions.opened(view, hand, client, client_session, Facts(self.position()), source, pid)

        return self.record(build)

    def end_session(self, session: Key, reason: str = "") -> Pointer | None:
        """Checkpoint, handover and close in one commit; None where the session is closed or unknown already."""
        from gitledger import sessions

        def build(view: View) -> Plan | None:
            return sessions.end(view, self.hand(session), session, self._facts_of(view, session), reason)

        return self._pointer_or_none(self._durably(build))

    def recover_sessions(self, own: Key | None = None) -> list[Pointer]:
        """Handovers for this writer's sessions that ended without saying so, each exactly once; never `own`."""
        from gitledger import sessions

        made = []
        now = self.desk.mint.now_ms()
        idle = self.desk.config.session.idle_minutes
        for key in sessions.interrupted(self.view(), self.desk.writer.id, own, now, idle):

            def build(view: View, key: Key = key) -> Plan | None:
                # Asked again under the lock: it may have been recovered, or gone on, in the meantime.
                if key not in sessions.interrupted(view, self.desk.writer.id, own, now, idle):
                    return None
                return sessions.recover(view, self.hand(key), key, self._facts_of(view, key))

            if pointer := self._pointer_or_none(self._durably(build)):
                made.append(pointer)
        return made

    def commit(self, build: Callable[[View], Plan | None]) -> Written | None:
        """One commit through the whole transaction, for what is not a checkpoint; errors pass as they are."""
        return transaction.commit(self.desk, build)

    # ── inside ───────────────────────────────────────────────────────────────────────────
    def _facts_of(self, view: View, session: Key) -> Facts:
        from gitledger.derive import Facts

        record = view.record(session)
        name = (record.text("worktree") if record else "") or self.gitdir.worktree
        place = self.gitdir if name == self.gitdir.worktree else gitdir.worktree(self.gitdir.common, name)
        then = record.get("position") if record else None
        if place:
            return self._since_it_began(self.facts(view, place), then)
        # That work tree is gone: where it stood when the session started there is what is known of it.
        if isinstance(then, dict) and then.get("worktree") == name:
            return Facts(read_position(then))
        return Facts(Position("", "", worktree=name))

    def _since_it_began(self, facts: Facts, then: Json) -> Facts:
        """The facts of a session's end with the commits since its start, which may be before the newest checkpoint."""
        began = read_position(then).head if isinstance(then, dict) else ""
        here = facts.position.head
        if not isinstance(began, str) or began in ("", UNBORN, here) or here in ("", UNBORN):
            return facts
        if began == facts.since:
            return replace(facts, began=began, made=facts.commits)
        try:
            return replace(facts, began=began, made=worktree.commits_between(self.gitdir, began, here, COUNTED))
        except LedgerError:
            return facts  # that head is gone

    def _durably(self, build: Callable[[View], Plan | None]) -> Written | None:
        try:
            return transaction.commit(self.desk, build)
        except LedgerError as e:
            raise blocked(e) from e
        except OSError as e:
            raise blocked(IOFailed(f"{e.strerror or e}{f' at {e.filename}' if e.filename else ''}")) from e

    def _pointer(self, written: Written | None) -> Pointer:
        pointer = self._pointer_or_none(written)
        if pointer is None:
            raise AssertionError("a checkpoint's plan always makes a commit")
        return pointer

    def _pointer_or_none(self, written: Written | None) -> Pointer | None:
        if written is None:
            return None
        self.findings = list(written.findings)
        kinds = [layout.CHECKPOINT.letter, layout.HANDOVER.letter]
        made = [key for event in written.events for key in event.records if key[:1] in kinds and key[1:2] == "-"]
        newest = [key for key in made if key[:1] == "H"] or made
        key = newest[-1]
        record = written.view.need(key)
        return Pointer(
            written.view.name(key),
            record.text("task_name"),
            f"{written.view.stem(key)}.md",
            written.commit,
            self.desk.store.algorithm,
            record.text("next"),
            key,
        )

    def _made_already(self, view: View, session: Key, often: bool) -> list[Pointer]:
        """The tip's own checkpoint, where it was made for this session as it goes on and nothing happened since."""
        project = view.record(layout.PROJECT)
        pointer: Json = project.get("checkpoint") if project else None
        record = view.record(str(pointer.get("key"))) if isinstance(pointer, dict) else None
        ours = record is not None and record.get("session") == session and record.get("reason") in ("compact", "turn")
        if record is None or not ours or self._news(QUIET | MIDDLE if often else QUIET):
            return []
        tip, get = self.tip(), self.desk.store.get
        older = objects.parse_commit(get(tip).data).parents
        if any(objects.read(get, one, pointer["path"]) is not None for one in older):
            return []
        here, then = self.position(), read_position(record.get("position") or {"branch": "", "head": ""})
        where = [(p.branch, p.head, p.fingerprint, p.worktree, p.operation) for p in (here, then)]
        if where[0] != where[1] and not often:
            return []
        name, task, following = (record.text(field) for field in ("number_name", "task_name", "next"))
        algorithm = self.desk.store.algorithm
        return [Pointer(name, task, pointer["path"], tip, algorithm, following, pointer["key"], again=True)]

    def _news(self, quiet: frozenset[str]) -> bool:
        """True where events of other types than `quiet` have been logged since the tip."""
        _, taken, faults = self._folded()
        return bool(faults) or any(event.type not in quiet for event, _ in taken.lines)

    def _tree_of(self, head: Oid) -> Oid:
        return objects.parse_commit(self.desk.store.get(head).data).tree


def read_position(value: Mapping[str, Json]) -> Position:
    """A recorded position; unknown fields, and those that another program set to another kind, are left out."""
    empty = Position("", "")
    given = {name: value[name] for name in Position.__match_args__ if name in value}
    fitting = {n: v for n, v in given.items() if isinstance(v, type(getattr(empty, n))) and not isinstance(v, bool)}
    return replace(empty, **fitting)


def blocked(cause: LedgerError) -> Blocked:
    """The one line that says why no checkpoint could be made, how to mend it, and the audited way out."""
    return cause if isinstance(cause, Blocked) else Blocked(" ".join(str(cause).split()), _way_out(cause), cause=cause)


def _way_out(error: LedgerError) -> str:
    once = 'or let one compaction through with: gitledger compaction allow --once --reason "…"'
    if isinstance(error, LockHeld | TryAgain):
        return f"try again in a moment, {once}"
    if isinstance(error, CannotWrite | IOFailed):
        return f"free disk space or mend the permissions and try again, {once}"
    if isinstance(error, BadData):
        return f"run gitledger fsck to see what is wrong, {once}"
    if isinstance(error, Missing):
        return f"put it in place and try again, {once}"
    return f"mend that and try again, {once}"
