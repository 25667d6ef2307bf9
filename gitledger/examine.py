"""One commit looked at by itself: its bytes, its signature, its message, what it changes and the events it adds.

Nothing here depends on any commit but this one and its parents' trees, so commits can be looked at in any order and by
several processes; what depends on the chain (whose key it is, which number comes next) is `verify`'s.
"""

from __future__ import annotations

import hashlib
import io
import re
from functools import lru_cache
from typing import Any

from gitledger import audit, codec, layout, objects, scope, sshsig
from gitledger.errors import BadData, BadSignature, LedgerError, MissingObject
from gitledger.folders import FILE, File, Folders
from gitledger.model import Json, Oid
from gitledger.signing import PublicKey
from gitledger.store import Store
from gitledger.values import dataclass, field

KINDS = frozenset(("genesis", "checkpoint", "handover", "journal", "merge", "key", "memory", "purge"))
_TRAILERS = ("Ledger", "Ledger-Kind", "Ledger-Writer", "Ledger-Seq", "Ledger-Journal")
_WRITER = re.compile(r"[a-z0-9]{4,16}\Z")
_COUNT = re.compile(r"[1-9][0-9]{0,8}\Z")
_JOURNAL = re.compile(r"([1-9][0-9]{0,17}) ([0-9a-f]{64})\Z")
_PLAIN = {  # a commit as gitledger writes it, up to its message; any other is read by `objects`
    name: re.compile(
        rb"tree (%(id)s)\n((?:parent %(id)s\n)*)author ([^\n]+)\ncommitter ([^\n]+)\n"
        rb"(%(header)s (-----BEGIN SSH SIGNATURE-----\n(?: [!-~]+\n)+ -----END SSH SIGNATURE-----\n))\n"
        % {b"id": b"[0-9a-f]{%d}" % digits, b"header": header.encode()}
    )
    for name, digits, header in (("sha1", 40, "gpgsig"), ("sha256", 64, "gpgsig-sha256"))
}
_OTHERS = ("-----BEGIN PGP SIGNATURE-----", "-----BEGIN SIGNED MESSAGE-----")
"""What signatures begin with that only whoever knows the writer's key can check."""


@dataclass(slots=True)
class Look:
    """What one commit says and shows. `faults` are (rule, what), of what is wrong whatever came before it.

    `first` and `end` are of its events: (seq, prev, lamport) of the first, (seq, hash, lamport) of the last. `oldest`
    is the least of their ids. `keys` are what they say of writers' keys: (type, writer, fields); `numbers` the
    checkpoints and handovers that they make. `signer` is the key that an SSH signature proves; any other signature is
    `armored`, for whoever knows its key.
    """

    oid: Oid
    parents: tuple[Oid, ...] = ()
    tree: Oid = ""
    people: tuple[str, str] = ("", "")
    writer: str = ""
    kind: str = ""
    ledger: str = ""
    n: int = 0
    journal: tuple[int, str] = (0, "")
    signer: PublicKey | None = None
    armored: str = ""
    first: tuple[int, str, int] | None = None
    end: tuple[int, str, int] | None = None
    ids: tuple[int, ...] = ()
    oldest: str = ""
    keys: tuple[tuple[str, str, Json], ...] = ()
    numbers: tuple[str, ...] = ()
    created: str = ""
    faults: list[tuple[str, str]] = field(default_factory=list)
    paths: tuple[str, ...] = ()


class Eye(Folders):
    """What looks at commits of one store."""

    def __init__(self, store: Store, *, again: bool = False) -> None:
        super().__init__(store)
        self._again = again  # the lines that it looks at are folded by this process next
        self._plain = _PLAIN[store.algorithm]

    # ── a commit ─────────────────────────────────────────────────────────────────────────────
    def look(self, oid: Oid, *, alone: bool = False) -> Look:
        """All that can be said of one commit; `alone` where its parents are not here to compare it with."""
        look = Look(oid)
        try:
            data = self.read(oid, "commit")
            message = self._quick(look, data) or self._parsed(look, data)
        except LedgerError as e:
            look.faults.append((_unread(e), str(e)))
            return look
        self.know(oid, look.tree)
        _message(look, message)
        if not look.writer or not look.n:
            return look  # what it may change cannot be said
        try:
            if alone:
                return look
            if len(look.parents) > 1:
                self._merge(look)
            else:
                self._change(look)
        except LedgerError as e:
            look.faults.append((_unread(e), str(e)))
        return look

    def _quick(self, look: Look, data: bytes) -> str:
        """As `_parsed`, for a commit of the form that gitledger writes; "" for any other."""
        found = self._plain.match(data)
        if found is None:
            return ""
        look.tree = found[1].decode()
        look.parents = tuple(found[2].decode().replace("parent ", "").split())
        look.people = (found[3].decode("utf-8", "surrogateescape"), found[4].decode("utf-8", "surrogateescape"))
        payload = data[: found.start(5)] + data[found.end(5) :]
        self._signed(look, payload, found[6].decode().replace("\n ", "\n"))
        return data[found.end() :].decode("utf-8", "surrogateescape")

    def _parsed(self, look: Look, data: bytes) -> str:
        """Note what a commit's headers say, and what is wrong with its signature; its message."""
        commit = objects.parse_commit(data)
        look.parents, look.tree = commit.parents, commit.tree
        look.people = (commit.author, commit.committer)
        if commit.extra:
            look.faults.append(("header", f"it has a header {commit.extra[0][0][:40]!r} that no ledger's commit has"))
        self._signature(look, commit, data)
        return commit.message

    def _signature(self, look: Look, commit: objects.Commit, data: bytes) -> None:
        found = commit.signatures
        if len(found) != 1:
            what = "it is not signed" if not found else f"it carries {len(found)} signatures instead of one"
            look.faults.append(("signature", what))
            return
        if found[0][0] != ("gpgsig" if self.store.algorithm == "sha1" else "gpgsig-sha256"):
            look.faults.append(("signature", f"its signature is in the header {found[0][0]}"))
            return
        if found[0][1].startswith(_OTHERS):
            look.armored = found[0][1]
            return
        self._signed(look, objects.signed_payload(data), found[0][1])

    def _signed(self, look: Look, payload: bytes, armored: str) -> None:
        try:
            look.signer = sshsig.check(payload, armored)
        except BadSignature as e:
            look.faults.append(("signature", str(e)))

    def _change(self, look: Look) -> None:
        old = bytes.fromhex(self.tree(look.parents[0])) if look.parents else None
        segments: dict[str, bytes] = {}
        paths = []
        first = layout.segment(look.writer, look.n - 1)
        read = self.read
        files = self.changed(old, bytes.fromhex(look.tree))
        self.ahead(file.new[1].hex() for file in files if file.new is not None and file.new[0] == FILE)
        for file in files:
            data = b""
            if file.new is not None:
                if file.new[0] != FILE:
                    look.faults.append(("mode", f"{_shown(file.path)} is no plain file"))
                    continue
                data = read(file.new[1].hex(), "blob")
                if len(data) > objects.BLOB_LIMIT:
                    look.faults.append(("size", f"{_shown(file.path)} has {len(data):,} bytes, more than any may"))
            if not file.path.startswith("journal/"):
                paths.append(file.path)
                if scope.is_anothers(file.path, data, look.writer):
                    look.faults.append(("owner", f"it changes {file.path}, the session of another writer"))
            elif file.old is not None:
                did = "changes" if file.new else "removes"
                look.faults.append(("journal", f"it {did} {_shown(file.path)}, and a segment never changes"))
            elif not file.path.startswith(f"journal/{look.writer}/"):
                what = f"it adds {_shown(file.path)} to a journal that is not its writer's"
                look.faults.append(("journal", what))
            else:
                segments[file.path] = data
        touched = self._events(look, _parts(look, first, segments))
        strange = sorted(path for path in paths if _owner(path) not in touched)
        if strange and not self._exact(look):
            look.faults += [("path", f"it changes {_shown(path)}, which none of its events says") for path in strange]
            look.paths = tuple(strange)

    def _exact(self, look: Look) -> bool:
        """True where a rendering of this commit's events over its parent's tree makes this very tree."""
        if look.faults or not look.parents:
            return False
        with audit.remade(self, look.tree, self.tree(look.parents[0])) as made:
            return made.tree == look.tree and not made.faults

    def _merge(self, look: Look) -> None:
        if len(look.parents) > 2 or len(set(look.parents)) != len(look.parents):
            look.faults.append(("merge", f"it has {len(look.parents)} parents, and a merge joins two"))
            return
        trees = [self.tree(parent) for parent in look.parents]
        journals = [self.journal(tree) for tree in (look.tree, *trees)]
        added: list[dict[str, File]] = []
        for parent, journal in zip(look.parents, journals[1:], strict=True):
            files = {file.path: file for file in self.changed(journal, journals[0], "journal/")}
            for file in files.values():
                if file.old is not None:
                    did = "changes" if file.new else "loses"
                    look.faults.append(("merge", f"it {did} {_shown(file.path)} of its parent {parent[:12]}"))
            added.append(files)
        # What is new against one parent only is the other one's; a merge says nothing of its own.
        for path in sorted(added[0].keys() & added[1].keys()):
            if added[0][path].new is not None:
                look.faults.append(("merge", f"it adds {_shown(path)}, which is in neither parent"))
        if look.faults:
            return
        # Over the parent that lacks less of it, which of many writers' parents is the other ones'.
        base = trees[0] if len(added[0]) <= len(added[1]) else trees[1]
        with audit.remade(self, look.tree, base) as made:
            if made.faults:
                look.faults.append(("merge", f"its journals cannot be folded: {made.faults[0].what}"))
            elif made.tree != look.tree:
                look.faults.append(("merge", "its tree is not what merging its parents makes"))

    # ── events ───────────────────────────────────────────────────────────────────────────────
    def _events(self, look: Look, parts: list[tuple[str, bytes]]) -> frozenset[str]:
        """Check the lines that a commit adds against each other, and say what they may change."""
        touched: set[frozenset[str]] = set()
        ids: list[str] = []
        keys: list[tuple[str, str, Json]] = []
        numbers: list[str] = []
        seq, lamport, prev, sha256 = 0, 0, "", hashlib.sha256
        for path, data in parts:
            for at, line in enumerate(io.BytesIO(data), 1):
                try:
                    event = codec.event_value(line, f"{path} line {at}", again=self._again)
                    for key in event["records"]:
                        touched.add(scope.owned(key))
                except BadData as e:
                    look.faults.append(("event", str(e)))
                    continue
                if event["writer"] != look.writer:
                    look.faults.append(("event", f"{path} line {at} is in the name of another writer"))
                if look.first is None:
                    look.first = (event["seq"], event["prev"], event["lamport"])
                elif event["seq"] != seq + 1 or event["prev"] != prev or event["lamport"] != lamport + 1:
                    _follows(look, event, f"{path} line {at}", seq, lamport, prev)
                seq, lamport, prev = event["seq"], event["lamport"], sha256(line).hexdigest()
                ids.append(event["id"])
                _remarkable(look, event, keys, numbers)
        if look.first is not None:
            look.end = (seq, prev, lamport)
            if (seq, prev) != look.journal:
                look.faults.append(("trailers", "Ledger-Journal names another line than its segment ends with"))
        elif not look.faults:
            look.faults.append(("journal", "it adds no event"))
        look.ids, look.keys, look.numbers = tuple(map(identity, ids)), tuple(keys), tuple(numbers)
        look.oldest = min(ids, default="")
        return _union(frozenset(touched))


def _unread(e: LedgerError) -> str:
    return "missing object" if isinstance(e, MissingObject) else "object"


def _parts(look: Look, first: str, found: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """The parts of the one segment that a commit adds, in order; anything else beside them is a fault."""
    parts: list[tuple[str, bytes]] = []
    stem = first.removesuffix(".jsonl")
    path = first
    while path in found:
        parts.append((path, found[path]))
        path = f"{stem}.{len(parts)}.jsonl"
    for stray in sorted(found.keys() - {path for path, _ in parts}):
        look.faults.append(("journal", f"it adds {_shown(stray)}, and its next segment is {first}"))
    return parts


def _follows(look: Look, event: dict[str, Any], where: str, seq: int, lamport: int, prev: str) -> None:
    if event["seq"] != seq + 1:
        look.faults.append(("seq", f"{where} has seq {event['seq']} after {seq}"))
    if event["prev"] != prev:
        look.faults.append(("chain", f"{where} does not follow the line before it"))
    if event["lamport"] != lamport + 1:
        look.faults.append(("order", f"{where} has lamport {event['lamport']} after {lamport}"))


def _remarkable(look: Look, event: dict[str, Any], keys: list[Any], numbers: list[str]) -> None:
    for key, change in event["records"].items():
        if key[:7] == "writer:":
            keys.append((event["type"], key[7:], change.get("set", {})))
        elif key[:2] in ("C-", "H-"):
            numbers.append(key)
        elif scope.is_others(key, look.writer):
            look.faults.append(("owner", f"it says what {_shown(key)} is at, a work tree of another writer"))
    if event["type"] == "ledger.created":
        look.created = f"{event['data'].get('uuid')} {event['data'].get('name')}"


def _message(look: Look, message: str) -> None:
    """Read the trailers, which are the last paragraph of the message and nothing else."""
    found: dict[str, str] = {}
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        name, colon, value = line.partition(": ")
        if not colon or not name.startswith("Ledger") or name in found:
            what = f"its last paragraph holds {line[:60]!r}, which is no trailer, or one twice"
            look.faults.append(("trailers", what))
            return
        found[name] = value
    missing = [name for name in _TRAILERS if name not in found]
    if missing:
        look.faults.append(("trailers", f"it has no trailer {missing[0]}"))
        return
    look.ledger, look.kind = found["Ledger"], found["Ledger-Kind"]
    journal = _JOURNAL.match(found["Ledger-Journal"])
    if look.kind not in KINDS:
        look.faults.append(("trailers", f"{look.kind[:40]!r} is no kind of commit"))
    if not _WRITER.match(found["Ledger-Writer"]):
        look.faults.append(("trailers", f"{found['Ledger-Writer'][:40]!r} is no writer's id"))
    elif not _COUNT.match(found["Ledger-Seq"]) or int(found["Ledger-Seq"]) > 1 << 24 or not journal:
        look.faults.append(("trailers", "Ledger-Seq or Ledger-Journal does not hold what it should"))
    else:
        look.writer, look.n = found["Ledger-Writer"], int(found["Ledger-Seq"])
        look.journal = (int(journal[1]), journal[2])
    if (look.kind == "merge") != (len(look.parents) > 1) and look.kind in KINDS:
        look.faults.append(("trailers", f"it is of kind {look.kind} and has {len(look.parents)} parents"))
    if (look.kind == "genesis") != (not look.parents) and look.kind in KINDS:
        look.faults.append(("trailers", f"it is of kind {look.kind} and has {len(look.parents)} parents"))


_owner = lru_cache(maxsize=2048)(scope.owner)


@lru_cache(maxsize=1024)
def _union(some: frozenset[frozenset[str]]) -> frozenset[str]:
    return frozenset((scope.MANIFEST,)).union(*some)


def identity(event: str) -> int:
    """An event's id in 8 bytes, of its 62 random bits and two more."""
    try:
        return int(event[-18:].replace("-", ""), 16)
    except ValueError:
        return int.from_bytes(hashlib.sha256(event.encode("utf-8", "backslashreplace")).digest()[:8], "big")


def _shown(path: str) -> str:
    return path[:120].encode("utf-8", "backslashreplace").decode() if path.isprintable() else repr(path[:120])
