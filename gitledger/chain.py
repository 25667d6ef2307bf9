"""A commit held against all that came before it: whose key it is, what comes next, and what was said already. Pure.

Who owns a writer's id is a walk over the chain: the first key by the commit that adds the writer, a later one by a
commit that the one before signed, and the end by a revocation. Positions count, dates never do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gitledger import codec, layout, objects, reading, signing, trust
from gitledger.errors import BadData, LedgerError, Missing, TryAgain
from gitledger.examine import Look
from gitledger.model import Finding, Json, Oid
from gitledger.objects import Get
from gitledger.values import dataclass, field, replace

JOINS = ("ledger.created", "writer.joined")
ROTATES = "key.rotated"
REVOKES = "key.revoked"
UNKNOWN = -1

_DATED = re.compile(r"(.*) [0-9]{1,12} \+0000\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a writer stands: how many commits, its last event's seq, and that line's hash."""

    n: int = 0
    seq: int = 0
    last: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """The key that owns a writer's id, and the name it signs under; `ended` once it was revoked in the ledger."""

    line: str
    fingerprint: str
    principal: str
    ended: bool = False


@dataclass(slots=True)
class State:
    """What is known at one commit of all that came before it, itself included; `lamport` may be UNKNOWN."""

    tails: dict[str, Tail] = field(default_factory=dict)
    owners: dict[str, Owner] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    lamport: int = 0

    def copy(self) -> State:
        """A state of its own."""
        return State(dict(self.tails), dict(self.owners), dict(self.numbers), self.lamport)

    def join(self, other: State) -> None:
        """Know what both know; of a writer that both know, the one that is further."""
        for writer, tail in other.tails.items():
            if tail.n > self.tails.get(writer, Tail()).n:
                self.tails[writer], self.owners[writer] = tail, other.owners[writer]
        for letter, n in other.numbers.items():
            self.numbers[letter] = max(n, self.numbers.get(letter, 0))
        self.lamport = max(self.lamport, other.lamport)


Standing = tuple[Tail, int, Owner]
"""Where a writer stands, the lamport of its last event, and who it is."""


def state_at(get: Get, tree: Oid, seen: dict[tuple[str, Oid, Oid], Standing] | None = None) -> State:
    """The state that a tree stands for, from its journals and its writers' records; for one that was found good.

    What was read for another tree is kept in `seen`: between two of them most writers stand where they stood.
    """
    faults: list[Finding] = []
    state = State()
    seen = {} if seen is None else seen
    keys = objects.entries(get, tree, "keys") or {}
    for writer, start in reading.writers(get, tree, faults).items():
        key = keys.get(f"{writer}.json")
        at = writer, start, key.oid if key else ""
        if at not in seen:
            newest = next(reading.segments(get, start, writer, faults, newest_first=True), None)
            if newest is None:
                continue
            line = reading.lines(get(newest.oid).data)[-1]
            event = codec.read_event(line, newest.path)
            tail = Tail(newest.n + 1, event.seq, codec.line_hash(line))
            seen[at] = tail, event.lamport, _owner_at(get, tree, writer)
        state.tails[writer], lamport, state.owners[writer] = seen[at]
        state.lamport = max(state.lamport, lamport)
    data = objects.read(get, tree, layout.MANIFEST)
    value = codec.parse(data, layout.MANIFEST) if data else {}
    state.numbers = {str(k): n for k, n in value.get("numbers", {}).items() if isinstance(n, int)}
    return state


def _owner_at(get: Get, tree: Oid, writer: str) -> Owner:
    path = f"keys/{writer}.json"
    data = objects.read(get, tree, path)
    if data is None:
        return Owner("", "", "")
    record = codec.read_record(data, path)
    key, ended = signing.parse_public_key(record.text("public_key")), trust.revocation(record) is not None
    return Owner(key.line, key.fingerprint, record.text("principal"), ended)


@dataclass(slots=True)
class Judge:
    """The rules, and what one walk has met: `newest` each writer's highest number, `ids` the events' identities.

    `ended` says of a key that this machine revoked which commits it counts for; `ledger` is uuid and name, `root` the
    pinned first commit. `prove` raises unless a signature that is none of SSH's is over a commit, by a key's line.
    """

    ledger: str
    root: Oid
    prove: Callable[[Oid, str, str], None]
    ended: Mapping[str, frozenset[Oid]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    ids: set[int] = field(default_factory=set)

    def judge(self, look: Look, state: State) -> list[tuple[str, str]]:
        """(rule, what) of everything that is wrong with a commit; `state` moves on to it, whatever it is worth."""
        found = list(look.faults)
        if look.ledger and look.ledger != self.ledger:
            found.append(("other ledger", f"it is signed for the ledger {_shown(look.ledger)}, not for {self.ledger}"))
        if not look.parents and look.tree and look.oid != self.root:
            found.append(("other root", f"it has no parent, and the pinned first commit is {self.root[:12]}"))
        if look.created not in ("", look.ledger) or (look.kind == "genesis" and not look.created):
            found.append(("other ledger", "its first event begins another ledger than its message names"))
        if not look.writer:
            return found
        found += self._numbers(look, state)
        before = state.owners.get(look.writer)
        found += _keys(look, state)
        found += self._signer(look, before or state.owners.get(look.writer))
        return found

    def _numbers(self, look: Look, state: State) -> list[tuple[str, str]]:
        """Which number comes next: of the writer's commits and events, of its checkpoints and handovers."""
        found = []
        writer, tail = look.writer, state.tails.get(look.writer, Tail())
        if look.kind == "merge":  # it adds no event, so it stands where its writer stood
            if (look.n, *look.journal) != (tail.n, tail.seq, tail.last):
                found.append(("seq", f"it is a merge that names commit {look.n} of writer {writer}, not {tail.n}"))
            return found
        highest = max(self.newest.get(writer, 0), tail.n)
        if look.n <= highest:
            found.append(("repeated", f"it is commit {look.n} of writer {writer}, which there is already"))
        elif look.n != tail.n + 1:
            found.append(("seq", f"it is commit {look.n} of writer {writer}, and the one before it is {tail.n}"))
        if look.first is not None and look.end is not None:
            seq, prev, lamport = look.first
            if seq != tail.seq + 1:
                found.append(("seq", f"its first event has seq {seq} after {tail.seq}"))
            if prev != tail.last:
                found.append(("chain", f"its first event does not follow the last line of writer {writer}"))
            if lamport != state.lamport + 1 and state.lamport != UNKNOWN:
                found.append(("order", f"its first event has lamport {lamport} after {state.lamport}"))
            state.lamport = max(state.lamport, look.end[2])
            state.tails[writer] = Tail(look.n, look.end[0], look.end[1])
        else:
            state.tails[writer] = Tail(look.n, *look.journal)
            state.lamport = UNKNOWN  # its events could not be read
        self.newest[writer] = max(highest, look.n)
        for key in look.numbers:
            named = layout.numbered(key)
            letter, n, by = (named[0].letter, named[1], named[2]) if named else ("", 0, "")
            if by != writer or n <= state.numbers.get(letter, 0):
                found.append(("repeated", f"it makes {key}, which is not the next one that {writer} can make"))
            state.numbers[letter] = max(n, state.numbers.get(letter, 0))
        again = len(look.ids) - len(set(look.ids)) + len(self.ids.intersection(look.ids))
        if again:
            found.append(("repeated", f"{again} of its events stood in the journal before"))
        self.ids.update(look.ids)
        return found

    def _signer(self, look: Look, owner: Owner | None) -> list[tuple[str, str]]:
        """Whether the key that signed is the writer's at this place, still counts, and signs under its own name."""
        if owner is None or not owner.fingerprint:
            return [("writer", f"the ledger has no key for writer {look.writer}")]
        found = []
        for word, who in zip(("author", "committer"), look.people, strict=True):
            named = _DATED.match(who)
            if not named or named[1] != f"gitledger {look.writer} <{owner.principal}>":
                found.append(("author", f"its {word} is {_shown(who)}, and its writer is {look.writer}"))
        if look.armored:
            try:
                self.prove(look.oid, look.armored, owner.line)
            except (Missing, TryAgain) as e:
                return [*found, ("unverifiable", str(e))]
            except LedgerError as e:
                return [*found, ("signature", str(e))]
        elif look.signer is None:
            return found
        signer = look.signer.fingerprint if look.signer else owner.fingerprint
        if signer != owner.fingerprint:
            what = f"it is signed by {signer}, and writer {look.writer} has the key {owner.fingerprint} at this place"
            return [*found, ("key", what)]
        if owner.ended:
            found.append(("revoked", f"the key {signer} of writer {look.writer} was revoked in the ledger before it"))
        elif signer in self.ended and look.oid not in self.ended[signer]:
            found.append(("revoked", f"this machine has revoked the key {signer} from an earlier commit on"))
        return found


def _keys(look: Look, state: State) -> list[tuple[str, str]]:
    """What a commit says of writers' keys: only its own writer's, only in a commit made for that, each in its order."""
    found = []
    for kind, writer, fields in look.keys:
        known = state.owners.get(writer)
        if look.kind not in ("genesis", "key"):
            found.append(("key", f"it says whose key {writer} has, which a {look.kind} may not"))
        elif writer != look.writer:
            found.append(("key", f"it says of writer {writer}'s key, and is {look.writer}'s"))
        elif kind == REVOKES and known:
            state.owners[writer] = replace(known, ended=True)
        elif (kind in JOINS and known is None) or (kind == ROTATES and known):
            try:
                state.owners[writer] = _owner(writer, fields, known)
            except LedgerError as e:
                found.append(("key", f"the key that it gives writer {writer} is none: {e}"))
        else:
            found.append(("key", f"{_shown(kind)} is nothing that can be said of writer {writer}'s key here"))
    return found


def _owner(writer: str, fields: Mapping[str, Json], known: Owner | None) -> Owner:
    line = fields.get("public_key")
    key = signing.parse_public_key(line if isinstance(line, str) else "")
    principal = fields.get("principal", known.principal if known else "")
    if fields.get("fingerprint") != key.fingerprint:
        raise BadData(f"its fingerprint is {key.fingerprint}")
    signing.allowed_signers_line(principal if isinstance(principal, str) else "", key.line)
    if fields.get("id", writer) != writer:
        raise BadData(f"it is in the name of {_shown(str(fields.get('id')))}")
    return Owner(key.line, key.fingerprint, principal)


def _shown(text: str) -> str:
    return repr(text[:100]) if not text.isprintable() or not text.isascii() else text[:100]
