"""What to do when a secret got through: this clone's ledger written anew without it, and the old one kept aside.

The commits from the first one that holds it are made again: the same events in the same order without the secret,
their chain, documents and signatures new. Only the writer whose key it is can sign a commit again, so a stretch in
which somebody else wrote, or merged, is refused. All of it is made and checked before the branch moves, in one step;
what fails before that leaves the old ledger, and the old one stays under a rescue ref until it is let go of.

Nothing here makes a secret safe again. Whoever fetched the ledger has it: it must be revoked where it was issued.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence

from gitledger import (
    codec,
    frame,
    fulltext,
    gitcli,
    layout,
    lock,
    objects,
    packs,
    pins,
    reading,
    rewriting,
    transaction,
    wal,
)
from gitledger.errors import BadData, LedgerError, NoLedger, NotAllowed
from gitledger.model import Event, Finding, Key, Oid
from gitledger.needle import Needle
from gitledger.rewriting import EVENT, KIND
from gitledger.store import history
from gitledger.transaction import Desk
from gitledger.values import dataclass, replace
from gitledger.view import View

RESCUE = "refs/ledgers/rescue"


@dataclass(frozen=True, slots=True)
class Hit:
    """A commit that holds the secret: its subject without it, the records its events speak of, where else it stands."""

    commit: Oid
    subject: str
    events: int
    records: tuple[Key, ...]
    where: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Where the secret is: commits, oldest first; what would be made again; local files with counts, and others."""

    tip: Oid
    hits: tuple[Hit, ...]
    stretch: tuple[Oid, ...]
    local: tuple[tuple[str, int], ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What a purge did: the new tip, the ref that keeps the old one ("" where no commit held it), the files changed."""

    tip: Oid
    rescue: str
    commits: int
    local: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What was let go, rescue refs and kept packs; and the refs that still hold old commits, for a person to see."""

    refs: tuple[str, ...]
    packs: int
    holding: tuple[str, ...]


# ── looking ──────────────────────────────────────────────────────────────────────────────────
def look(desk: Desk, needle: Needle, start: str = "") -> Found:
    """Find the secret in every commit, and in this clone's own files; nothing is changed.

    `start` names the commit from which on everything is to be made again, "" the first that holds it. Raises NotAllowed
    where that cannot be done, and BadData where the named commit is none, or comes after the first that holds it.
    """
    tip = _tip(desk)
    hits = tuple(
        reversed([hit for oid, commit in history(desk.store, tip) if (hit := _hit(desk, oid, commit, needle))])
    )
    return Found(tip, hits, _stretch(desk, tip, hits, start), *_local(desk, needle, dry=True))


def _tip(desk: Desk) -> Oid:
    tip = desk.store.tip()
    if tip is None:
        raise NoLedger(f"the branch {desk.store.ref} is gone; bring it back from a remote, another clone or its reflog")
    return tip


def _hit(desk: Desk, oid: Oid, commit: objects.Commit, needle: Needle) -> Hit | None:
    where: dict[str, None] = {}
    records: dict[Key, None] = {}
    count = 0
    if needle.holds(commit.message) or needle.holds(commit.author + commit.committer):
        where["its message"] = None
    faults: list[Finding] = []
    for difference in reading.changed(desk.store, commit, faults):
        if difference.new is None:
            continue
        path = difference.path
        named = needle.holds_name(path)
        shown = needle.scrub(path) if not named else f"{path.partition('/')[0]}/…"
        if named:
            where[f"the name of a file in {shown}"] = None
        data = desk.store.get(difference.new.oid).data
        if path.startswith("journal/"):
            for line in reading.lines(data):
                if (event := _event(line, path)) is None:
                    if needle.in_bytes(line):
                        where[path] = None
                elif rewriting.holds(needle, event):
                    count += 1
                    records.update(dict.fromkeys(event.records))
        elif needle.in_bytes(data):
            where[shown] = None
    if not where and not count:
        return None
    return Hit(oid, needle.scrub(commit.subject), count, tuple(records), tuple(where))


def _event(line: bytes, path: str) -> Event | None:
    try:
        return codec.read_event(line, path)
    except BadData:
        return None


def _stretch(desk: Desk, tip: Oid, hits: Sequence[Hit], start: str) -> tuple[Oid, ...]:
    """The commits to make again, oldest first; each must be this writer's own, on one line."""
    wanted = {hit.commit for hit in hits}
    first = ""
    if not wanted:
        return ()
    if start:
        found = reading.find_commit(desk.store, tip, start)
        if found is None:
            raise BadData(f"{start[:64]!r} is no commit of this ledger; list them with: gitledger log")
        first = found[0]
        wanted.add(first)
    stretch: list[Oid] = []
    at = tip
    while wanted:
        commit = objects.parse_commit(desk.store.get(at).data)
        stretch.append(at)
        wanted.discard(at)
        if wanted and at == first:
            raise BadData(
                f"{first[:12]} comes after the first commit that holds it; name that one, or leave --from out"
            )
        writer = reading.trailers(commit).get("Ledger-Writer", "")
        if writer != desk.writer.id or len(commit.parents) > 1:
            what = f"is writer {writer}'s" if writer != desk.writer.id else "merges two lines"
            raise NotAllowed(
                f"commit {at[:12]} {what}, and only its own writer can sign a commit again, so this ledger cannot be "
                "written anew without the secret; revoke it where it was issued, and see docs/secrets.md on beginning "
                "another ledger"
            )
        if not commit.parents:
            break
        at = commit.parents[0]
    return tuple(reversed(stretch))


# ── this clone's own files ───────────────────────────────────────────────────────────────────
def _local(desk: Desk, needle: Needle, *, dry: bool) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """The log and the hooks' log with how many lines of each held it, gone unless `dry`; other files that do."""
    state = desk.home.state
    changed = [(desk.home.wal, wal.rewrite(desk.home.wal, lambda line: _line(line, needle), dry=dry))]
    others = []
    for folder, _, names in os.walk(state):
        for name in names:
            path = os.path.join(folder, name)
            if path.startswith(desk.home.wal + os.sep) or os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                data = f.read()
            if not needle.in_bytes(data):
                continue
            if os.path.dirname(path) == state and name in fulltext.names(desk.home.name):
                changed.append((path, 1))  # it goes whole, below: it is made anew when it is asked
            elif os.path.dirname(path) == state and name in ("log", "log.1"):
                changed.append((path, sum(needle.in_bytes(line) for line in data.splitlines())))
                if not dry:
                    pins.write_private(path, needle.scrub_bytes(data))
            else:
                others.append(path)
    if not dry:
        fulltext.forget(state, desk.home.name)  # whether or not its bytes tell: it holds words, and pages that are free
    return tuple(row for row in changed if row[1]), tuple(sorted(others))


def _line(line: bytes, needle: Needle) -> bytes:
    """One line of the log without the secret; one that is no entry any more only by its bytes."""
    if not line:
        return line
    try:
        entry = frame.decode(line + b"\n")
    except ValueError:
        return needle.scrub_bytes(line)
    payload = _payload(entry.payload, needle)
    worktree = needle.scrub(entry.worktree)
    if (payload, worktree) == (entry.payload, entry.worktree):
        return line
    clean = frame.Entry(entry.id, entry.at, entry.client, entry.event, payload, worktree)
    return frame.encode(clean).removesuffix(b"\n")


def _payload(payload: bytes, needle: Needle) -> bytes:
    clean = needle.scrub_bytes(payload)
    try:
        value = json.loads(clean)
    except (ValueError, RecursionError):
        text = clean.decode("utf-8", "surrogateescape")
        return needle.scrub(text).encode("utf-8", "surrogateescape") if needle.holds(text) else clean
    scrubbed = needle.scrub_json(value)
    # Written again only where it must be: what it says twice, or in another order, is kept as it came.
    return clean if scrubbed == value else json.dumps(scrubbed, ensure_ascii=False).encode("utf-8", "surrogatepass")


# ── writing anew ─────────────────────────────────────────────────────────────────────────────
def carry_out(
    desk: Desk, common: str, needle: Needle, start: str = "", told: Callable[[int], None] = lambda done: None
) -> Done:
    """Write this clone's ledger anew without the secret, and its own files; the old one is kept under a rescue ref.

    Raises a LedgerError, the branch as it was, when any step fails; saying it again is harmless.
    """
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
        finish(desk)
        wal.seal(desk.home.wal)
        found = look(desk, needle, start)
        tip, rescue, commits = found.tip, "", 0
        if found.stretch:
            made = rewriting.written(desk, needle, tip, found.stretch, told)
            _local(desk, needle, dry=False)
            rescue = _rescue(desk, common, tip)
            before = _forget_verdict(desk)
            desk.store.swap(made.tip, tip, f"gitledger: {KIND}")
            if before is not None:
                pins.save(desk.home.pins, desk.home.name, _moved(before, made, tip))
            tip, commits = made.tip, len(found.stretch)
        else:
            _local(desk, needle, dry=False)
        return Done(tip, rescue, commits, found.local)


# ── refs and pins ────────────────────────────────────────────────────────────────────────────
def _rescue(desk: Desk, common: str, tip: Oid) -> str:
    """The ref that keeps the old commits; one that a purge made for the same tip before it was cut off is used."""
    refs = _rescued(desk, common)
    for ref, oid in refs.items():
        if oid == tip:
            return ref
    stem = f"{RESCUE}/{desk.home.name}/" + "".join(c for c in desk.mint.at() if c.isalnum())
    ref, n = stem, 2
    while ref in refs:
        ref, n = f"{stem}-{n}", n + 1
    words = ["-c", "core.fsync=all", "update-ref", "--no-deref", "-m", "gitledger: purge", ref, tip, "0" * len(tip)]
    _git(common, words)
    return ref


def _rescued(desk: Desk, common: str) -> dict[str, Oid]:
    """The rescue refs of this ledger, each with its commit."""
    words = ["for-each-ref", "--format=%(refname) %(objectname)", f"{RESCUE}/{desk.home.name}/"]
    rows = (row.partition(" ") for row in _git(common, words).line.splitlines())
    return {ref: oid for ref, _, oid in rows}


def _forget_verdict(desk: Desk) -> pins.Pins | None:
    """This clone's pins, with no verified tip on disk: a crash must not leave one that calls the new line a forgery."""
    mine = pins.load(desk.home.pins, desk.home.name)
    if mine is not None:
        pins.save(desk.home.pins, desk.home.name, replace(mine, verified="", under=""))
    return mine


def _moved(mine: pins.Pins, made: rewriting.Rewritten, old: Oid) -> pins.Pins:
    """The same trust in the new line: each commit that the pins name is what it became."""
    moved = replace(
        mine,
        genesis=made.oids.get(mine.genesis, mine.genesis),
        verified=made.tip if mine.verified == old else made.oids.get(mine.verified, mine.verified),
        revoked=tuple((key, made.oids.get(oid, oid)) for key, oid in mine.revoked),
    )
    return replace(moved, under=moved.digest() if mine.under == mine.digest() else "")


def finish(desk: Desk) -> None:
    """Pin the first commit that a purge has made, where it was cut off before; on this writer's own signed word."""
    mine, tip = pins.load(desk.home.pins, desk.home.name), _tip(desk)
    first = rewriting.root(desk.store, tip)
    if mine is None or mine.genesis == first:
        return
    for oid, commit in _purges(desk, tip):
        if _purged(desk, commit).get("genesis") != mine.genesis:
            continue
        record = View(reading.reader(desk.store.get, commit.tree)).record(layout.writer_key(desk.writer.id))
        _, public = transaction.signer(desk, record)
        payload = objects.signed_payload(desk.store.get(oid).data)
        transaction.verify(payload, commit.signatures[0][1], public.line, desk.writer.principal)
        pins.save(desk.home.pins, desk.home.name, replace(mine, genesis=first, verified="", under=""))
        return


def _purges(desk: Desk, tip: Oid) -> Iterator[tuple[Oid, objects.Commit]]:
    """This writer's commits that say of a purge, newest first."""
    for oid, commit in history(desk.store, tip):
        trailers = reading.trailers(commit)
        if trailers.get("Ledger-Kind") == KIND and trailers.get("Ledger-Writer") == desk.writer.id:
            yield oid, commit


def _purged(desk: Desk, commit: objects.Commit) -> dict[str, object]:
    n = int(reading.trailers(commit)["Ledger-Seq"]) - 1
    data = objects.read(desk.store.get, commit.tree, layout.segment(desk.writer.id, n)) or b""
    for line in reading.lines(data):
        event = _event(line, "segment")
        if event is not None and event.type == EVENT:
            return event.data
    return {}


def confirm(desk: Desk, common: str) -> Confirmed:
    """Let go of what keeps the old commits here: rescue refs, the branch's reflog, and our mark on packs.

    Git itself removes them when it collects garbage and nothing else names them.
    """
    with lock.held(desk.home.lock, deadline=transaction.LOCK_DEADLINE):
        finish(desk)
        tip = _tip(desk)
        rescued = _rescued(desk, common)
        if not rescued and next(_purges(desk, tip), None) is None:
            raise BadData(f"nothing was purged from the ledger {desk.home.name}, so there is nothing to let go of")
        for ref, oid in rescued.items():
            _git(common, ["-c", "core.fsync=all", "update-ref", "--no-deref", "-d", ref, oid])
        words = ["reflog", "expire", "--expire=never", "--expire-unreachable=now", desk.store.ref]
        gitcli.run([f"--git-dir={common}", *words], cwd=common, check=False)  # fails where the branch has no reflog
        return Confirmed(tuple(rescued), packs.let_go(common), holding(desk, common, tip))


def holding(desk: Desk, common: str, tip: Oid) -> tuple[str, ...]:
    """The refs, but for our rescue refs, that still reach a commit which a purge has replaced."""
    found: dict[str, None] = {}
    for _, commit in _purges(desk, tip):
        first = str(_purged(desk, commit).get("from"))
        try:
            answer = _git(common, ["for-each-ref", "--format=%(refname)", f"--contains={first}"])
        except LedgerError:
            continue  # that commit is gone, so nothing holds it
        found.update(dict.fromkeys(ref for ref in answer.line.splitlines() if not ref.startswith(f"{RESCUE}/")))
    return tuple(found)


def _git(common: str, words: list[str]) -> gitcli.Answer:
    return gitcli.run([f"--git-dir={common}", *words], cwd=common)
