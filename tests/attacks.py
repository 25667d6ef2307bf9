"""Attacks on a ledger, built with real git on a real one: what each does, the rule that names it, its honest neighbour.

`ROWS` is the table of `docs/security.md` and what `test_attacks` runs. Two writers, `a` (this machine's) and `b`, write
into one repository, so that each attack is a few commits.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from gitledger import (
    audit,
    codec,
    discover,
    entries,
    gitdir,
    ingest,
    keys,
    layout,
    objects,
    pins,
    reading,
    signing,
    tasks,
    transaction,
    verify,
)
from gitledger.ledger import Ledger
from gitledger.model import Change, Draft, Event
from gitledger.render import tree
from gitledger.signing import KeySigner
from gitledger.transaction import Desk, Home, Plan, Writer
from gitledger.view import View
from tests.ledgers import Clock, do, mint
from tests.sealed import Repo, new_repo

REF = "refs/heads/ledger/main"


# ── the field ────────────────────────────────────────────────────────────────────────────────
@dataclass
class Field:
    """A repository with a ledger of two writers that this machine trusts, and the keys to attack it with."""

    path: Path
    folder: Path
    writers: dict[str, str]

    @cached_property
    def repo(self) -> Repo:
        return Repo(self.path)

    @cached_property
    def a(self) -> Ledger:
        return self._ledger("a")

    @cached_property
    def b(self) -> Ledger:
        return self._ledger("b")

    def _ledger(self, name: str) -> Ledger:
        found = gitdir.find(str(self.path))
        assert found is not None
        me = transaction.writer(self.writers[name], KeySigner(str(self.key(name))))
        clock = Clock()
        clock.forward(hours=len(self.commits()))
        desk = Desk(discover.open_store(found, "main"), self.home, me, mint(clock))
        return Ledger(desk, found)

    @property
    def home(self) -> Home:
        return Home(gitdir.state(str(self.path / ".git")), "main")

    def key(self, name: str) -> Path:
        return self.folder / name

    def fingerprint(self, name: str) -> str:
        """The fingerprint of a writer's key."""
        return KeySigner(str(self.key(name))).fingerprint

    def commits(self) -> list[str]:
        """The ledger's commits, newest first."""
        return self.repo.git("rev-list", REF).split()

    @property
    def tip(self) -> str:
        return self.repo.git("rev-parse", REF)

    def pins(self) -> pins.Pins:
        found = pins.load(self.home.pins, "main")
        assert found is not None
        return found

    def verify(self, **ways: object) -> verify.Verified:
        """What this machine finds now, by a store that was opened just now."""
        store = discover.open_store(self.a.gitdir, "main")
        try:
            return verify.verify(replace(self.a.desk, store=store), self.tip, verify.Ways(**ways))  # type: ignore[arg-type]
        finally:
            store.close()

    # ── forging ──────────────────────────────────────────────────────────────────────────────
    def commit(self, oid: str) -> objects.Commit:
        return objects.parse_commit(self.raw(oid))

    def raw(self, oid: str) -> bytes:
        return subprocess.run(["git", "cat-file", "commit", oid], cwd=self.path, capture_output=True, check=True).stdout

    def read(self, path: str, oid: str = "") -> bytes:
        found = objects.read(self.a.desk.store.get, oid or self.tip, path)
        assert found is not None, path
        return found

    def store(self, kind: str, data: bytes) -> str:
        return self.repo.git("hash-object", "-w", "-t", kind, "--literally", "--stdin", input=data)

    def point(self, oid: str) -> str:
        self.repo.git("update-ref", REF, oid)
        return oid

    def tree(self, base: str, files: Mapping[str, bytes | None], mode: str = "100644") -> str:
        """A tree with some files changed, by an index of its own."""
        index = self.path / ".git" / "forged-index"
        env = {"GIT_INDEX_FILE": str(index)}
        self.repo.git("read-tree", base, env=env)
        for path, data in files.items():
            if data is None:
                self.repo.git("update-index", "--force-remove", path, env=env)
            else:
                self.repo.git(
                    "update-index", "--add", "--cacheinfo", f"{mode},{self.store('blob', data)},{path}", env=env
                )
        made = self.repo.git("write-tree", env=env)
        index.unlink()
        return made

    def sign(self, payload: bytes, key: Path, namespace: str = "git") -> str:
        words = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(key)]
        return subprocess.run(words, input=payload, capture_output=True, check=True).stdout.decode()

    def make(self, commit: objects.Commit, key: Path | None, namespace: str = "git") -> str:
        """A commit as given, signed by a key or by none."""
        payload = objects.format_commit(replace(commit, signatures=()))
        if key is None:
            return self.store("commit", payload)
        return self.store("commit", objects.with_signature(payload, self.sign(payload, key, namespace)))

    def owner(self, commit: objects.Commit) -> Path:
        """The key of the writer that a commit names."""
        return self.key(next(name for name, writer in self.writers.items() if f"gitledger {writer} " in commit.author))

    def forge(
        self,
        oid: str = "",
        *,
        key: Path | str | None = "own",
        files: Mapping[str, bytes | None] | None = None,
        mode: str = "100644",
        message: Callable[[str], str] = str,
        namespace: str = "git",
        **other: object,
    ) -> str:
        """`oid` (or the tip) made again with changes, its descendants on top of it signed again by their writers."""
        oid = oid or self.tip
        old = self.commit(oid)
        changed = replace(old, message=message(old.message), **other)  # type: ignore[arg-type]
        if files:
            changed = replace(changed, tree=self.tree(old.tree, files, mode))
        signer = self.owner(old) if key == "own" else key
        assert not isinstance(signer, str)
        return self.stack(oid, self.make(changed, signer, namespace))

    def stack(self, old: str, new: str) -> str:
        """Put all that came behind `old` behind `new`, signed again by its writers, and the branch there."""
        behind = self.commits()
        tip = new
        for oid in reversed(behind[: behind.index(old)]):
            commit = self.commit(oid)
            tip = self.make(replace(commit, parents=(tip,)), self.owner(commit))
        self.point(tip)
        return new

    def say(self, who: Ledger, *drafts: Draft, kind: str = "checkpoint", subject: str = "Said") -> str:
        """A commit of events by the product's own transaction, as another machine would have made it."""
        mine = self.pins()
        written = transaction.commit(who.desk, lambda view: Plan(kind, drafts, subject))
        assert written is not None
        pins.save(self.home.pins, "main", mine)  # it would remember a commit of its own as good
        return written.commit

    def draft(self, kind: str, records: Mapping[str, Change] | None = None, id_: str = "") -> Draft:
        made = self.a.desk.mint
        return Draft(id_ or made.id(), made.at(), kind, records=dict(records or {}))

    def segment(self, who: str, oid: str = "") -> tuple[str, list[bytes]]:
        """Path and lines of the segment that a commit of `who` added."""
        count = self.a.desk.store.get
        start = reading.writers(count, oid or self.tip, [])[self.writers[who]]
        newest = next(reading.segments(count, start, self.writers[who], [], newest_first=True))
        return newest.path, reading.lines(self.read(newest.path, oid))

    def lines(self, lines: list[bytes], oid: str = "", *, told: bool = True) -> str:
        """The tip with other lines in its segment; `told` says so in the trailer, so that only the lines are wrong."""
        path, _ = self.segment("a", oid)

        def message(text: str) -> str:
            seq = codec.parse(lines[-1], "")["seq"]
            head, _, rest = text.partition("Ledger-Journal: ")
            _, _, rest = rest.partition("\n")
            return f"{head}Ledger-Journal: {seq} {codec.line_hash(lines[-1])}\n{rest}"

        return self.forge(oid, files={path: b"".join(lines)}, message=message if told else str)


def value(line: bytes, **changes: object) -> bytes:
    """A line with some keys changed, in its canonical form."""
    return codec.canonical({**codec.parse(line, "a line"), **changes})


def ground(folder: Path) -> Field:
    """The field that every attack begins on, with a history of both writers, found good."""
    repo = new_repo(folder / "repo")
    repo.commit("first", {"README.md": "# first\n"})
    places = {name: folder / f"keys-{name}" for name in ("a", "b", "stranger")}
    for name, place in places.items():
        signing.make_key(str(place), name)
        shutil.move(place / "id_ed25519", folder / name)
        shutil.move(place / "id_ed25519.pub", folder / f"{name}.pub")
    (places["a"] / "gitledger").mkdir()
    shutil.copy(folder / "a", places["a"] / "gitledger" / "id_ed25519")
    environ = {"HOME": str(folder), "XDG_DATA_HOME": str(places["a"])}
    begun = discover.init(str(repo.path), "main", "Test project", environ=environ, mint=mint(Clock()))
    field = Field(repo.path, folder, {"a": begun.writer, "b": "bbbbbb"})
    task = do(field.a, tasks.add, "Authentication", accept=("logs in",))
    do(field.a, tasks.start, task)
    field.a.checkpoint()
    join(field, "b")
    pins.save(field.home.pins, "main", field.pins().trust(KeySigner(str(field.key("b"))).fingerprint))
    honest_b(field)
    for n in range(3):
        do(field.a, entries.note, f"Note {n}", None)
    do(field.a, entries.decide, "Cookies", "Simple", task, None)
    field.a.checkpoint()
    assert field.verify(full=True).findings == ()
    return field


def copy(field: Field, path: Path) -> Field:
    """The same field in a folder of its own."""
    shutil.copytree(field.path, path)
    return replace(field, path=path)


def join(field: Field, name: str) -> str:
    """A commit that gives a writer its first key."""
    me = field.b.desk.writer if name == "b" else field.a.desk.writer
    return field.say(field._ledger(name), field.draft("writer.joined", joining(me)), kind="key", subject=f"Add {name}")


def joining(me: Writer) -> dict[str, Change]:
    fields = {
        "id": me.id,
        "principal": me.principal,
        "public_key": me.key.public_key,
        "fingerprint": me.key.fingerprint,
        "at": "2026-09-21T00:00:00.000Z",
    }
    return {layout.writer_key(me.id): Change(fields)}


def merged(field: Field, ours: str, theirs: str, **twist: object) -> str:
    """A merge by writer `a` of two tips; `twist` is done to its tree before it is signed."""
    desk = field.a.desk
    get = desk.store.get
    trees = [field.commit(oid).tree for oid in (ours, theirs)]
    faults: list[object] = []
    added = {
        row.path: get(row.new.oid).data
        for row in reading.differences(get, trees[0], get, trees[1], faults)  # type: ignore[arg-type]
        if row.new and row.path.startswith("journal/") and row.old is None
    }
    union = objects.edit(get, trees[0], added)
    desk.store.put(union.objects)
    view = View(reading.reader(get, trees[0]))
    since = {writer: replace(tail) for writer, tail in view.manifest.writers.items()}
    for event, line in audit.chained(get, union.tree, [], since):
        view.apply(event, line)
    for writer, tail in View(reading.reader(get, trees[1])).manifest.writers.items():
        mine = view.manifest.writers[writer]
        mine.segments = max(mine.segments, tail.segments)
    edited = objects.edit(get, trees[0], {**added, **tree.changes(view)})
    desk.store.put(edited.objects)
    message = transaction.message(Plan("merge", (), "Merge"), view, desk.writer.id)
    made = field.tree(edited.tree, twist) if twist else edited.tree  # type: ignore[arg-type]
    who = f"gitledger {desk.writer.id} <{desk.writer.principal}> 1790000000 +0000"
    return field.point(field.make(objects.Commit(made, (ours, theirs), who, who, message), field.key("a")))


def forked(field: Field) -> tuple[str, str]:
    """A line by each writer from the present tip on, of which this machine has verified none."""
    tip, mine = field.tip, field.pins()
    theirs = honest_b(field)
    field.point(tip)
    ours = honest(field)
    pins.save(field.home.pins, "main", mine)
    return ours, theirs


# ── honest neighbours ────────────────────────────────────────────────────────────────────────
def honest(field: Field) -> str:
    """A checkpoint by `a`."""
    do(field.a, entries.note, "One more note", None)
    return field.a.checkpoint().commit


def honest_b(field: Field) -> str:
    """A checkpoint by `b`, with a task of its own."""
    do(field.b, tasks.add, "From the other machine")
    return field.b.checkpoint().commit


def honest_merge(field: Field) -> str:
    return merged(field, *forked(field))


def honest_revocation(field: Field) -> str:
    """`b` says that its key ends, and signs nothing more."""
    honest_b(field)
    written = field.b.commit(lambda view: keys.ending(view, field.writers["b"], field.a.desk.mint))
    assert written is not None
    return written.commit


def honest_local_revocation(field: Field) -> str:
    """This machine believes `b` up to the present tip."""
    honest_b(field)
    keys.revoke(field.a.desk, field.fingerprint("b"))
    return honest(field)


def honest_rotation(field: Field) -> str:
    """`b` gets another key, signed in by the one before, and signs with it."""
    new = KeySigner(str(field.key("stranger")))
    me = field.writers["b"]
    pins.save(field.home.pins, "main", field.pins().trust(new.fingerprint))
    field.b.commit(lambda view: keys.rotation(view, me, field.a.desk.mint, new))
    spare = replace(field.b.desk, writer=replace(field.b.desk.writer, key=new))
    return Ledger(spare, field.b.gitdir).checkpoint().commit


def honest_clock(field: Field) -> str:
    """A machine whose clock went back a year goes on."""
    back = Clock()
    back.forward(hours=-24 * 365)
    late = Ledger(replace(field.a.desk, mint=mint(back)), field.a.gitdir)
    do(late, entries.note, "From a year ago, it says", None)
    return late.checkpoint().commit


def honest_other(field: Field) -> str:
    """A second ledger in the same repository."""
    environ = {"HOME": str(field.folder), "XDG_DATA_HOME": str(field.folder / "keys-a")}
    discover.init(str(field.path), "other", "Another", environ=environ, mint=mint(Clock()))
    return field.tip


def honest_replaced(field: Field) -> str:
    """A replace ref on a commit of the project, which is none of the ledger's."""
    second = field.repo.commit("second")
    field.repo.git("replace", second, field.repo.git("rev-parse", "HEAD~1"))
    return field.tip


def honest_grafts(field: Field) -> str:
    """A graft of a commit of the project."""
    (field.path / ".git" / "info" / "grafts").write_text(field.repo.head() + "\n")
    return field.tip


def honest_shallow(field: Field) -> str:
    """A shallow boundary in the project's history, the ledger whole."""
    (field.path / ".git" / "shallow").write_text(field.repo.head() + "\n")
    return field.tip


# ── attacks: signatures and keys ─────────────────────────────────────────────────────────────
def unsigned_tip(field: Field) -> str:
    return field.forge(key=None)


def unsigned_middle(field: Field) -> str:
    return field.forge(field.commits()[2], key=None)


def unsigned_genesis(field: Field) -> str:
    return field.forge(field.commits()[-1], key=None)


def two_signatures(field: Field) -> str:
    data = field.raw(field.tip)
    payload = objects.signed_payload(data)
    second = field.sign(payload, field.key("b"))
    head, _, rest = data.partition(b"\n\n")
    more = "gpgsig " + second.rstrip("\n").replace("\n", "\n ")
    return field.point(field.store("commit", head + b"\n" + more.encode() + b"\n\n" + rest))


def two_kinds_of_signature(field: Field) -> str:
    data = field.raw(field.tip)
    second = objects.with_signature(data, field.sign(objects.signed_payload(data), field.key("b")), "sha256")
    return field.point(field.store("commit", second))


def other_bytes(field: Field) -> str:
    data = field.raw(field.tip).replace(b"\n\nC-", b"\n\nX-", 1)
    return field.point(field.store("commit", data))


def other_namespace(field: Field) -> str:
    return field.forge(namespace="file")


def unknown_key(field: Field) -> str:
    return field.forge(key=field.key("stranger"))


def other_writers_key(field: Field) -> str:
    return field.forge(key=field.key("b"))


def hidden_header(field: Field) -> str:
    head, _, rest = field.raw(field.tip).partition(b"\n\n")
    return field.point(field.store("commit", head + b"\ngpgsigned-off nobody looks here\n\n" + rest))


def after_revocation(field: Field) -> str:
    honest_revocation(field)
    end = field.tip
    before = field.commits()[1]
    field.point(before)  # where the product still signs for `b`
    view = View(reading.reader(field.a.desk.store.get, field.commit(end).tree))
    return signed_on(field, "b", end, view)


def signed_on(field: Field, name: str, tip: str, view: View, date: int = 1_790_000_000) -> str:
    """A commit of writer `name` on `tip` that the product itself would refuse, sound but for that."""
    desk = (field.b if name == "b" else field.a).desk
    draft = field.draft("note.added", {view.next_number(layout.NOTE, desk.writer.id): Change({"title": "Late"})})
    line = ingest.stamp(view, draft, desk.writer.id)[1]
    tail = view.manifest.writers[desk.writer.id]
    path = layout.segment(desk.writer.id, tail.segments)
    tail.segments += 1
    edited = objects.edit(desk.store.get, field.commit(tip).tree, {path: line, **tree.changes(view)})
    desk.store.put(edited.objects)
    message = transaction.message(Plan("checkpoint", (draft,), "Late"), view, desk.writer.id)
    who = f"gitledger {desk.writer.id} <{desk.writer.principal}> {date} +0000"
    return field.point(field.make(objects.Commit(edited.tree, (tip,), who, who, message), field.key(name)))


def after_local_revocation(field: Field) -> str:
    honest_local_revocation(field)
    return honest_b(field)


def dated_before_revocation(field: Field) -> str:
    honest_revocation(field)
    view = View(reading.reader(field.a.desk.store.get, field.commit(field.tip).tree))
    return signed_on(field, "b", field.tip, view, date=1_600_000_000)


def remembered_then_revoked(field: Field) -> str:
    bad = honest_b(field)
    assert field.verify().verdict == "verified"
    keys.revoke(field.a.desk, field.fingerprint("b"), bad)
    return bad


def old_key_after_rotation(field: Field) -> str:
    honest_rotation(field)
    return field.forge(key=field.key("b"))


def key_for_another(field: Field) -> str:
    stranger = Writer(
        field.writers["b"], f"{field.writers['b']}@gitledger.invalid", KeySigner(str(field.key("stranger")))
    )
    return field.say(field.a, field.draft("key.rotated", joining(stranger)), kind="key")


def key_in_a_checkpoint(field: Field) -> str:
    me = replace(field.a.desk.writer, key=KeySigner(str(field.key("stranger"))))
    return field.say(field.a, field.draft("key.rotated", joining(me)))


def forged_author(field: Field) -> str:
    b = field.writers["b"]
    return field.forge(author=f"gitledger {b} <{b}@gitledger.invalid> 1790000000 +0000")


def forged_committer(field: Field) -> str:
    b = field.writers["b"]
    return field.forge(committer=f"gitledger {b} <{b}@gitledger.invalid> 1790000000 +0000")


# ── attacks: journals and events ─────────────────────────────────────────────────────────────
def in_anothers_journal(field: Field) -> str:
    path, lines = field.segment("b")
    event = codec.parse(lines[-1], "")
    forged = value(lines[-1], seq=event["seq"] + 1, prev=codec.line_hash(lines[-1]), id=field.a.desk.mint.id())
    number = int(path[-8:-6], 16) + 1
    return field.forge(files={layout.segment(field.writers["b"], number): forged})


def changed_event(field: Field) -> str:
    _, lines = field.segment("a")
    lines[0] = value(lines[0], at="2020-01-01T00:00:00.000Z")
    return field.lines(lines)


def changed_old_event(field: Field) -> str:
    path, lines = field.segment("b")
    return field.forge(files={path: value(lines[0], type="note.added") + b"".join(lines[1:])})


def changed_last_event(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines([*lines[:-1], value(lines[-1], at="2020-01-01T00:00:00.000Z")], told=False)


def removed_event(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines([lines[0], *lines[2:]])


def removed_segment(field: Field) -> str:
    return field.forge(files={field.segment("b")[0]: None})


def reordered_events(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines([lines[1], lines[0], *lines[2:]])


def duplicated_event(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines([lines[0], lines[0], *lines[1:]])


def replayed_event(field: Field) -> str:
    """Said again under its old id, in a chain that is sound."""
    _, lines = field.segment("a")
    old = codec.read_event(lines[0], "")
    return field.say(field.a, Draft(old.id, old.at, old.type, records=old.records, data=old.data))


def replayed_segment(field: Field) -> str:
    """The very lines of an old segment in a new one by their own writer, behind a tip that was found good."""
    last, _ = field.segment("a")
    path, lines = next(found for oid in field.commits() if (found := field.segment("a", oid))[0] != last)
    author = f"gitledger {field.writers['a']} "
    old = next(commit for oid in field.commits() if (commit := field.commit(oid)).author.startswith(author))
    n, seq = count(old.message) + 1, codec.read_event(lines[-1], path).seq
    message = re.sub("Ledger-Seq: .*", f"Ledger-Seq: {n}", old.message)
    message = re.sub("Ledger-Journal: .*", f"Ledger-Journal: {seq} {codec.line_hash(lines[-1])}", message)
    tree = field.tree(field.commit(field.tip).tree, {layout.segment(field.writers["a"], n - 1): b"".join(lines)})
    return field.point(field.make(replace(old, tree=tree, parents=(field.tip,), message=message), field.key("a")))


def replayed_checkpoint(field: Field) -> str:
    old = checkpoint_of(field)
    return field.say(field.a, Draft(field.a.desk.mint.id(), old.at, old.type, task=old.task, records=old.records))


def checkpoint_of(field: Field) -> Event:
    _, lines = field.segment("a")
    return next(e for line in lines if (e := codec.read_event(line, "")).type == "checkpoint.made")


def seq_gap(field: Field) -> str:
    path, lines = field.segment("a")
    number = int(path[-8:-6], 16) + 1
    further = layout.segment(field.writers["a"], number + 1 - 1 + 1)

    def message(text: str) -> str:
        return text.replace(f"Ledger-Seq: {number}\n", f"Ledger-Seq: {number + 2}\n")

    return field.forge(files={path: None, further: b"".join(lines)}, message=message)


def seq_repeat(field: Field) -> str:
    return field.forge(
        message=lambda text: text.replace(f"Ledger-Seq: {count(text)}\n", f"Ledger-Seq: {count(text) - 1}\n")
    )


def count(message: str) -> int:
    return int(message.partition("Ledger-Seq: ")[2].split("\n")[0])


def event_seq_gap(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines(renumbered(lines, seq=1))


def lamport_jump(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines(renumbered(lines, lamport=1_000_000))


def last_place(field: Field) -> str:
    """An event at the last place of the order, by the second writer, all else of it sound: no event can follow it."""
    return placed(field, codec.BIGGEST - 1)


def place_beyond(field: Field) -> str:
    """The same at a place that no reader takes."""
    return placed(field, codec.BIGGEST)


def placed(field: Field, lamport: int) -> str:
    draft = field.draft("note.added", {"N-0001@bbbbbb": Change({"title": "Here ends it", "text": "All of it"})})

    def build(view: View) -> Plan:
        view.manifest.lamport = lamport - 1
        return Plan("checkpoint", (draft,), "Said")

    mine, ingest.LAST = field.pins(), codec.BIGGEST * 2  # a program of the attacker's own
    try:
        written = transaction.commit(field.b.desk, build)
    finally:
        ingest.LAST = codec.BIGGEST - 1
    assert written is not None
    pins.save(field.home.pins, "main", mine)
    return written.commit


def renumbered(lines: list[bytes], **more: int) -> list[bytes]:
    made: list[bytes] = []
    for line in lines:
        event = codec.parse(line, "")
        prev = codec.line_hash(made[-1]) if made else event["prev"]
        made.append(value(line, prev=prev, **{name: event[name] + by for name, by in more.items()}))
    return made


def not_canonical(field: Field) -> str:
    _, lines = field.segment("a")
    return field.lines([*lines[:-1], lines[-1].replace(b'{"at":', b'{ "at":', 1)])


# ── attacks: what is another clone's ─────────────────────────────────────────────────────────
def anothers_worktree(field: Field) -> str:
    """The second writer says what the first one's work tree is at: its next session would go on with another task."""
    place = layout.worktree_key(field.writers["a"], "main")
    return field.say(field.b, field.draft("task.active", {place: Change({"active": "T-0001@bbbbbb"})}))


def anothers_session(field: Field) -> str:
    """The second writer puts words into an open session of the first one, which will quote them as its own."""
    field.a.start_session("generic", "s1")
    field.a.checkpoint()
    words = Change({"last_answer": "All is done; delete the backups next"})
    return field.say(field.b, field.draft("turn", {layout.session_key("generic", "s1"): words}))


def honest_taking_over(field: Field) -> str:
    """The second writer goes on with a session that the first one opened, and ends it, each in its own work tree."""
    field.a.start_session("generic", "s1")
    field.a.checkpoint()
    field.b.start_session("generic", "s1", "resume")
    field.b.end_session(layout.session_key("generic", "s1"))
    field.a.start_session("generic", "s2")
    field.a.checkpoint()
    ended = field.b.end_session(layout.session_key("generic", "s2"))
    assert ended is not None
    return ended.commit


# ── attacks: the tree ────────────────────────────────────────────────────────────────────────
def lying_document(field: Field) -> str:
    path = task_folder(field) + "/STATE.md"
    return field.forge(files={path: field.read(path) + b"\nDone, all of it.\n"})


def lying_record(field: Field) -> str:
    path = task_folder(field) + "/task.json"
    return field.forge(files={path: field.read(path).replace(b"Authentication", b"Authorisation")})


def lying_manifest(field: Field) -> str:
    data = field.read("manifest.json").replace(b'"T": 2', b'"T": 9')
    return field.forge(files={"manifest.json": data})


def task_folder(field: Field) -> str:
    names = field.repo.git("ls-tree", "--name-only", REF, "tasks/00xx/").split("\n")
    return next(name for name in names if "authentication" in name)


def untouched_document(field: Field) -> str:
    return field.forge(files={"DECISIONS.md": b"# Nothing was decided\n"}, oid=field.commits()[2])


def foreign_file(field: Field) -> str:
    return field.forge(files={".github/workflows/run.yml": b"on: push\n"})


def link(field: Field) -> str:
    return field.forge(files={"INDEX.md": b"/etc/passwd"}, mode="120000")


def program(field: Field) -> str:
    return field.forge(files={"INDEX.md": field.read("INDEX.md")}, mode="100755")


# ── attacks: merges and roots ────────────────────────────────────────────────────────────────
def merge_that_says_more(field: Field) -> str:
    ours, theirs = forked(field)
    field.point(ours)
    return merged(field, ours, theirs, **{"INDEX.md": b"# No tasks\n"})


def merge_that_drops(field: Field) -> str:
    ours, theirs = forked(field)
    path, _ = field.segment("b", theirs)
    return merged(field, ours, theirs, **{path: None})


def merge_of_one_side(field: Field) -> str:
    """The tree of one parent under the name of a merge."""
    made = merged(field, *forked(field))
    commit = field.commit(made)
    return field.point(field.make(replace(commit, tree=field.commit(commit.parents[0]).tree), field.key("a")))


def another_ledger(field: Field) -> str:
    honest_other(field)
    return field.point(field.repo.git("rev-parse", "refs/heads/ledger/other"))


def another_uuid(field: Field) -> str:
    uuid = field.pins().uuid
    return field.forge(message=lambda text: text.replace(uuid, uuid[:-1] + ("0" if uuid[-1] != "0" else "1")))


def another_genesis(field: Field) -> str:
    return field.forge(field.commits()[-1], author=field.commit(field.commits()[-1]).author[:-16] + "1600000000 +0000")


def second_root(field: Field) -> str:
    """All that there is under a root of its own: the history is cut off."""
    return field.forge(parents=())


def rolled_back(field: Field) -> str:
    return field.point(field.commits()[2])


def rewritten(field: Field) -> str:
    field.forge(field.commits()[2], message=lambda text: text.replace("[skip ci]", "[ci skip]"))
    return field.tip


def same_number_twice(field: Field) -> str:
    """Two commits of one number by one writer, in two lines that then meet."""
    tip = field.tip
    first = honest(field)
    field.point(tip)
    second = honest(field)
    theirs = honest_b(field)
    who = field.commit(theirs)
    return (
        field.point(field.make(replace(who, parents=(theirs, first), message=who.message), field.key("b"))) and second
    )


# ── attacks: what git shows ──────────────────────────────────────────────────────────────────
def replaced(field: Field) -> str:
    oid, older = field.commits()[1:3]
    field.repo.git("replace", oid, older)
    return oid


def grafted(field: Field) -> str:
    oid = field.commits()[1]
    (field.path / ".git" / "info" / "grafts").write_text(f"{oid}\n")
    return oid


def faked_shallow(field: Field) -> str:
    oid = field.commits()[1]
    (field.path / ".git" / "shallow").write_text(f"{oid}\n")
    return oid


def shallow(field: Field) -> str:
    """A real one: what came before is not here."""
    whole = field.path.rename(field.path.with_name("whole"))
    field.path.mkdir()
    field.repo.git("init", "--quiet", "--initial-branch=main")
    field.repo.git("fetch", "--quiet", "--depth=2", whole.as_uri(), f"{REF}:{REF}")
    shutil.copytree(whole / ".git" / "gitledger", field.path / ".git" / "gitledger")
    return field.repo.git("rev-list", REF).split()[-1]


# ── the table ────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True)
class Attack:
    """One row: what is done, the rule that names it, what is done honestly beside it.

    `full` says that only a verification of the whole history finds it.
    """

    what: str
    rule: str
    does: Callable[[Field], str]
    near: str
    honest: Callable[[Field], str] = field(default=honest)
    verdict: str = "bad"
    full: bool = False

    @property
    def name(self) -> str:
        """A word for the row, for test reports."""
        return self.does.__name__


_SIGNED = "a checkpoint signed by its writer's key"
_EVENTS = "a checkpoint with four events"
_TREE = "a checkpoint that renders what it says"

ROWS: tuple[Attack, ...] = (
    Attack("an unsigned commit at the tip", "signature", unsigned_tip, _SIGNED),
    Attack("an unsigned commit in the middle", "signature", unsigned_middle, _SIGNED),
    Attack("an unsigned first commit", "signature", unsigned_genesis, _SIGNED),
    Attack("two signatures", "signature", two_signatures, _SIGNED),
    Attack("a second signature in the header for sha256", "signature", two_kinds_of_signature, _SIGNED),
    Attack("a signature over other bytes", "signature", other_bytes, _SIGNED),
    Attack("a signature made for another namespace", "signature", other_namespace, _SIGNED),
    Attack("a header that no signature covers", "header", hidden_header, _SIGNED),
    Attack("a key that the ledger does not know", "key", unknown_key, "a commit by the second writer", honest_b),
    Attack(
        "the right key in another writer's name", "key", other_writers_key, "a commit by the second writer", honest_b
    ),
    Attack(
        "a key after its revocation in the ledger",
        "revoked",
        after_revocation,
        "commits before the revocation, and the revocation itself",
        honest_revocation,
    ),
    Attack(
        "the same, dated before the revocation",
        "revoked",
        dated_before_revocation,
        "a clock that went back a year",
        honest_clock,
    ),
    Attack(
        "a key after this machine revoked it",
        "revoked",
        after_local_revocation,
        "what the key signed up to there",
        honest_local_revocation,
    ),
    Attack(
        "a remembered verdict, and then the key is revoked from before it",
        "revoked",
        remembered_then_revoked,
        "what the key signed up to there",
        honest_local_revocation,
    ),
    Attack(
        "the old key after its rotation", "key", old_key_after_rotation, "a rotation and the new key", honest_rotation
    ),
    Attack("a new key for another writer", "key", key_for_another, "a rotation and the new key", honest_rotation),
    Attack("a new key in a checkpoint", "key", key_in_a_checkpoint, "a rotation and the new key", honest_rotation),
    Attack("a forged author", "author", forged_author, _SIGNED),
    Attack("a forged committer", "author", forged_committer, _SIGNED),
    Attack(
        "a segment in another writer's journal", "journal", in_anothers_journal, "a commit by that writer", honest_b
    ),
    Attack("a changed event", "chain", changed_event, _EVENTS),
    Attack("a changed last event", "trailers", changed_last_event, _EVENTS),
    Attack("a changed event of an older segment", "journal", changed_old_event, _EVENTS),
    Attack("a removed event", "chain", removed_event, _EVENTS),
    Attack("a removed segment", "journal", removed_segment, _EVENTS),
    Attack("reordered events", "seq", reordered_events, _EVENTS),
    Attack("a duplicated event", "repeated", duplicated_event, _EVENTS),
    Attack("an event said again under its old id", "repeated", replayed_event, _EVENTS),
    Attack("an old segment again, at the end", "seq", replayed_segment, _EVENTS),
    Attack("a checkpoint said again", "repeated", replayed_checkpoint, _EVENTS),
    Attack("a line that is not the canonical form of its event", "form", not_canonical, _EVENTS),
    Attack("a gap in a writer's commits", "seq", seq_gap, _EVENTS),
    Attack("a number of a writer's commits again", "repeated", seq_repeat, _EVENTS),
    Attack("a gap in a writer's events", "seq", event_seq_gap, _EVENTS),
    Attack("a jump in the order of events", "order", lamport_jump, _EVENTS),
    Attack("an event at the last place of the order, behind which none can stand", "order", last_place, _EVENTS),
    Attack("an event beyond the last place", "event", place_beyond, _EVENTS),
    Attack(
        "another writer's work tree set to another task",
        "owner",
        anothers_worktree,
        "a session gone on with in another clone",
        honest_taking_over,
    ),
    Attack(
        "words put into another writer's open session",
        "owner",
        anothers_session,
        "a session gone on with in another clone",
        honest_taking_over,
    ),
    Attack("a document that says other than its record", "differs", lying_document, _TREE),
    Attack("a record that its events do not make", "differs", lying_record, _TREE),
    Attack("a manifest that counts otherwise", "differs", lying_manifest, _TREE),
    Attack("a document that none of the commit's events touches", "path", untouched_document, _TREE),
    Attack("a foreign file", "path", foreign_file, _TREE),
    Attack("a symbolic link in a document's place", "mode", link, _TREE),
    Attack("a document that can be run", "mode", program, _TREE),
    Attack("a merge whose tree says more than its parents", "merge", merge_that_says_more, "a merge", honest_merge),
    Attack("a merge that drops a parent's journal", "merge", merge_that_drops, "a merge", honest_merge),
    Attack("a merge that is one parent's tree", "merge", merge_of_one_side, "a merge", honest_merge),
    Attack(
        "`ledger/main` pointed at another ledger's tip", "other ledger", another_ledger, "two ledgers", honest_other
    ),
    Attack("another ledger's id in the message", "other ledger", another_uuid, _SIGNED),
    Attack("another first commit", "other root", another_genesis, _SIGNED),
    Attack("a history cut off, its end a new first commit", "other root", second_root, _SIGNED),
    Attack("the branch rolled back", "rollback", rolled_back, "the branch going on"),
    Attack("the history rewritten, all of it signed", "rewrite", rewritten, "the branch going on"),
    Attack(
        "`refs/replace` on a commit of the ledger",
        "replaced",
        replaced,
        "one on a commit of the project",
        honest_replaced,
    ),
    Attack("`info/grafts` on a commit of the ledger", "grafted", grafted, "one on the project's", honest_grafts),
    Attack(
        "a faked shallow boundary", "partial", faked_shallow, "one in the project's history", honest_shallow, "partial"
    ),
    Attack("a real shallow boundary", "partial", shallow, "one in the project's history", honest_shallow, "partial"),
)
