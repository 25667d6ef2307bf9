"""The tree is a function of the records: in pieces or at once, here or there, the same files, at a bounded cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import codec, layout
from gitledger.model import Change, Event, Json, Key
from gitledger.render import tree
from gitledger.view import View
from tests.sealed import LONG

A, B = "aaaaaa", "bbbbbb"
Tree = dict[str, bytes]


def commit(files: Tree, events: list[Event]) -> set[str]:
    """Fold events over a tree, write what changed into it, and say which paths those were."""
    view = View(files.get)
    for event in events:
        view.apply(event, codec.event_line(event))
    written = tree.changes(view)
    changed = {path for path, data in written.items() if files.get(path) != data}
    for path, data in written.items():
        if data is None:
            files.pop(path, None)
        else:
            files[path] = data
    return changed


@dataclass
class Clone:
    """One writer with its own tree; it learns of the other's events when they meet."""

    writer: str
    tick: int = 0
    lamport: int = 0
    seq: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    known: dict[str, list[Key]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    files: Tree = field(default_factory=dict)

    def at(self) -> str:
        # The two clocks differ: what bbbbbb makes looks older than what aaaaaa made before it.
        self.tick += 1
        hour = 9 if self.writer == A else 8
        return f"2026-11-30T{hour:02}:{self.tick // 60:02}:{self.tick % 60:02}.000Z"

    def new(self, kind: layout.Kind) -> Key:
        return layout.key_of(kind, self.numbers.get(kind.letter, 0) + 1, self.writer)

    def say(self, records: dict[Key, Change], type_: str = "test", **data: Json) -> Event:
        event = Event(
            1, f"{self.writer}-{self.seq + 1}", self.writer, self.seq + 1, self.lamport + 1, self.at(), type_, None,
            None, records, data, "",
        )  # fmt: skip
        self.hear([event])
        return event

    def hear(self, events: list[Event]) -> None:
        fresh = [event for event in events if event.id not in self.seen]
        for event in fresh:
            self.seen.add(event.id)
            self.events.append(event)
            self.lamport = max(self.lamport, event.lamport)
            if event.writer == self.writer:
                self.seq = event.seq
            for key in event.records:
                if found := layout.numbered(key):
                    self.numbers[found[0].letter] = max(self.numbers.get(found[0].letter, 0), found[1])
                    rows = self.known.setdefault(found[0].letter, [])
                    if key not in rows:
                        rows.append(key)
        if fresh:
            commit(self.files, fresh)


def genesis() -> tuple[Clone, Clone]:
    one, other = Clone(A), Clone(B)
    first = one.say(
        {
            "project": Change({"title": "Shop", "uuid": "0199", "name": "main", "at": one.at()}),
            "writer:aaaaaa": writer(A),
        },
        "ledger.created",
        uuid="0199",
        name="main",
    )
    other.hear([first])
    return one, other


def writer(name: str) -> Change:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPh5qkN3pKnTgYIvZ0q1o8sPjTqYx5cJvYt0bW2m8m2d laptop"
    return Change({"id": name, "public_key": key, "principal": f"{name}@ledger", "at": "2026-11-30T08:00:00.000Z"})


# ── random work ──────────────────────────────────────────────────────────────────────────────
TEXTS = st.one_of(st.sampled_from(["", "Login page", "a\n\n# b", "| x `y`", "é‮"]), st.text(max_size=12))


def add_task(draw: st.DrawFn, me: Clone) -> None:
    key, title = me.new(layout.TASK), draw(TEXTS)
    tasks = me.known.get("T", [])
    fields = {"title": title, "slug": draw(st.sampled_from(["", "login", "x-1"])), "status": "planned", "at": me.at()}
    items: dict[str, dict[str, dict[str, Json]]] = {"criteria": {f"c1@{me.writer}": {"text": draw(TEXTS)}}}
    if tasks and draw(st.booleans()):
        fields["parent"] = draw(st.sampled_from(tasks))
        items["depends"] = {draw(st.sampled_from(tasks)): {"live": True, "title": draw(TEXTS)}}
    me.say({key: Change({**fields, "by": me.writer}, items)})


def edit_task(draw: st.DrawFn, me: Clone) -> None:
    key = draw(st.sampled_from(me.known["T"]))
    what = draw(
        st.sampled_from(
            [
                Change({"status": draw(st.sampled_from(["active", "blocked", "done", "dropped"]))}),
                Change({"next": draw(TEXTS), "next_at": me.at()}),
                Change({"title": draw(TEXTS)}),
                Change({"slug": draw(st.sampled_from(["", "other", "x-1"]))}),
                Change(
                    {},
                    {
                        "evidence": {
                            layout.item_id("e", [], me.writer): {
                                "kind": "run", "command": draw(TEXTS), "exit": draw(st.integers(0, 1)), "at": me.at(),
                                "criterion": f"c1@{draw(st.sampled_from([A, B]))}",
                            }
                        }
                    },
                ),
            ]
        )
    )  # fmt: skip
    me.say({key: what})


def add_entry(draw: st.DrawFn, me: Clone) -> None:
    kind = draw(st.sampled_from([layout.DECISION, layout.BLOCKER, layout.QUESTION, layout.ARTIFACT, layout.NOTE]))
    key, title = me.new(kind), draw(TEXTS)
    task = draw(st.sampled_from([None, *me.known.get("T", [])]))
    fields = {"title": title, "text": draw(TEXTS), "at": me.at(), "by": me.writer, "task": task}
    if kind in (layout.BLOCKER, layout.QUESTION):
        fields["status"] = "open"
    records = {key: Change(fields)}
    if task:
        records[task] = Change({}, {"links": {key: {"kind": kind.word, "title": title, "open": True}}})
    if kind is layout.DECISION and me.known.get("D"):
        old = draw(st.sampled_from(me.known["D"]))
        fields["supersedes"] = old
        records[old] = Change({"status": "superseded", "superseded_by": key})
    me.say(records)


def close_entry(draw: st.DrawFn, me: Clone) -> None:
    key = draw(st.sampled_from(me.known.get("B", []) + me.known.get("Q", [])))
    me.say({key: Change({"status": "resolved" if key[0] == "B" else "answered", "resolution": draw(TEXTS)})})


def snapshot(draw: st.DrawFn, me: Clone) -> None:
    task = draw(st.sampled_from([None, *me.known.get("T", [])]))
    point, over, at = me.new(layout.CHECKPOINT), me.new(layout.HANDOVER), me.at()
    branch = draw(st.sampled_from(["main", "feature/x", "Ä"]))
    position = {"branch": branch, "head": "1a" * 20, "dirty": 0, "worktree": "main"}
    told: dict[str, Json] = {"title": draw(TEXTS), "task": task, "at": at, "by": me.writer, "position": position}
    name = point.partition("@")[0]
    records = {
        point: Change({**told, "number_name": name}),
        "project": Change({"checkpoint": {"name": name, "key": point, "at": at}}),
    }
    if task:
        records[task] = Change({"checkpoint": point, "checkpoint_at": at})
    if draw(st.booleans()):
        records[over] = Change({**told, "number_name": over.partition("@")[0], "next": draw(TEXTS)})
    me.say(records)


def session(draw: st.DrawFn, me: Clone) -> None:
    key = layout.session_key("claude", draw(st.sampled_from(["1", "2", "3"])))
    opened = Change({"client": "claude", "at": me.at(), "by": me.writer, "state": "open", "worktree": "main"})
    closed = Change({"state": "closed", "closed": {"at": me.at(), "reason": "exit", "turns": 3, "commits": []}})
    me.say({key: draw(st.sampled_from([opened, closed]))})


def settle(draw: st.DrawFn, me: Clone) -> None:
    change = draw(st.dictionaries(st.sampled_from(["briefing.lines", "briefing", "a.b.c"]), st.integers(), max_size=2))
    me.say({"config": Change(dict(change)), f"writer:{me.writer}": writer(me.writer)})


def needs(step: Callable[[st.DrawFn, Clone], None], me: Clone) -> bool:
    if step is edit_task:
        return bool(me.known.get("T"))
    return step is not close_entry or bool(me.known.get("B") or me.known.get("Q"))


STEPS = [add_task, add_task, edit_task, add_entry, close_entry, snapshot, session, settle]


@st.composite
def worked(draw: st.DrawFn) -> tuple[Clone, Clone]:
    """Two clones after some work apart, meeting now and then, and once at the end."""
    clones = genesis()
    one, other = clones
    for n in draw(st.lists(st.integers(0, 2 * len(STEPS)), max_size=14)):
        me, step = clones[n % 2], STEPS[n // 2 % len(STEPS)]
        if n == 2 * len(STEPS):
            one.hear(other.events)
            other.hear(one.events)
        elif needs(step, me):
            step(draw, me)
    one.hear(other.events)
    other.hear(one.events)
    return clones


def differing(a: Tree, b: Tree) -> list[tuple[str, bytes | None, bytes | None]]:
    return [(path, a.get(path), b.get(path)) for path in sorted(a.keys() | b.keys()) if a.get(path) != b.get(path)]


@settings(max_examples=300 if LONG else 30, deadline=None)
@given(worked())
def test_in_pieces_or_at_once_and_on_both_machines_the_tree_is_the_same(clones):
    one, other = clones
    rebuilt: Tree = {}
    commit(rebuilt, sorted(one.events, key=lambda e: e.stamp))
    assert differing(one.files, rebuilt) == []
    assert differing(other.files, rebuilt) == []


@pytest.mark.parametrize("whole", [0, 2, 4])
@settings(max_examples=100 if LONG else 12, deadline=None)
@given(data=st.data())
def test_so_it_is_where_shards_are_divided_on_either_side_or_in_between(whole: int, data: st.DataObject):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "WHOLE", whole)
        one, other = data.draw(worked())
        rebuilt: Tree = {}
        commit(rebuilt, sorted(one.events, key=lambda e: e.stamp))
        assert differing(one.files, rebuilt) == []
        assert differing(other.files, rebuilt) == []
        every_link_leads_somewhere(one.files)


@settings(max_examples=100 if LONG else 25, deadline=None)
@given(worked())
def test_every_link_of_every_document_leads_to_a_file_that_is_there(clones):
    every_link_leads_somewhere(clones[0].files)


def every_link_leads_somewhere(files: Tree) -> None:
    import posixpath
    import re

    folders = {posixpath.dirname(path) for path in files}
    for path, data in files.items():
        if not path.endswith(".md"):
            continue
        for target in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", data.decode()):
            file, _, anchor = target.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            assert there in files or (file.endswith("/") and any(f.startswith(there) for f in folders)), (path, target)
            divided = there.replace("README.md", "index/") in {f"{folder}/" for folder in folders}  # it lists numbers
            assert not anchor or divided or f'<a id="{anchor}">'.encode() in files[there], (path, target)


# ── shards that many writers fill ────────────────────────────────────────────────────────────
def crowd(writers: int, numbers: int, first: int = 0) -> list[Event]:
    """Checkpoints of writers that count apart, so that each number is given out by each of them."""
    clones = [Clone(f"w{n:03}") for n in range(first, first + writers)]
    for clone in clones:
        for n in range(1, numbers + 1):
            key = layout.key_of(layout.CHECKPOINT, n, clone.writer)
            clone.say({key: Change({"title": f"step {n}", "at": clone.at(), "by": clone.writer})})
    return [event for clone in clones for event in clone.events]


def test_a_shard_of_as_many_rows_as_one_file_may_list_is_whole_and_one_more_divides_it():
    files: Tree = {}
    commit(files, crowd(8, layout.WHOLE // 8))
    assert len(json.loads(files["checkpoints/0000xx/index.json"])["rows"]) == layout.WHOLE
    assert not [path for path in files if "/index/" in path]
    commit(files, crowd(1, 1, first=8))
    parts = json.loads(files["checkpoints/0000xx/index.json"])["parts"]
    assert sum(counts["closed"] for counts in parts.values()) == layout.WHOLE + 1
    assert len([path for path in files if "/index/" in path]) == 2 * len(parts) == 2 * layout.WHOLE // 8
    rows = json.loads(files["checkpoints/0000xx/index/01.json"])["rows"]
    assert rows.keys() == {f"C-000001@w{n:03}" for n in range(9)}
    assert b"](../C-000001.md)" in files["checkpoints/0000xx/index/01.md"]
    assert b"[C-000001](index/01.md) | 0 | 9 |" in files["checkpoints/0000xx/README.md"]
    view = View(files.get)
    assert (len(view.rows("checkpoints/0000xx")), len([*view.walk(layout.CHECKPOINT)])) == (layout.WHOLE + 1,) * 2


def test_what_a_change_reads_and_writes_of_a_shard_follows_the_rows_of_its_number():
    files: Tree = {}
    commit(files, crowd(20, 30))
    read: list[str] = []

    def get(path: str) -> bytes | None:
        read.append(path)
        return files.get(path)

    view = View(get)
    (event,) = crowd(1, 1, first=20)
    view.apply(event, codec.event_line(event))
    written = tree.changes(view)
    assert {path for path in read if path.startswith("checkpoints/0000xx/index")} == {
        "checkpoints/0000xx/index.json", "checkpoints/0000xx/index/01.json"
    }  # fmt: skip
    assert {path for path in written if path.startswith("checkpoints/0000xx/index")} == {
        "checkpoints/0000xx/index.json", "checkpoints/0000xx/index/01.json", "checkpoints/0000xx/index/01.md"
    }  # fmt: skip
    again = [path for path, data in written.items() if path.endswith("/C-000001.md") and data]
    assert len(again) <= 1  # who has the bare name may change, and nobody else's


def test_open_records_of_a_divided_shard_are_found_number_by_number_the_newest_first():
    files: Tree = {}
    events = []
    for n in range(40):
        clone = Clone(f"w{n:03}")
        for number in range(1, 11):
            key = layout.key_of(layout.QUESTION, number, clone.writer)
            clone.say({key: Change({"title": "?", "at": clone.at(), "status": "open" if number < 8 else "answered"})})
        events += clone.events
    commit(files, events)
    read: list[str] = []

    def get(path: str) -> bytes | None:
        read.append(path)
        return files.get(path)

    rows, total = View(get).open_rows(layout.QUESTION, 3)
    assert ([key for key, _ in rows], total) == ([f"Q-0007@w{n:03}" for n in (39, 38, 37)], 280)
    assert [path for path in read if "/index/" in path] == ["questions/00xx/index/07.json"]


# ── names that change ────────────────────────────────────────────────────────────────────────
def test_a_task_that_loses_its_bare_name_moves_with_its_checkpoints():
    one, other = genesis()
    task, point = "T-0001@aaaaaa", "C-000001@aaaaaa"
    one.say({task: Change({"title": "Mine", "slug": "mine", "status": "active", "at": one.at()})})
    one.say({point: Change({"title": "half", "task": task, "at": one.at()}), task: Change({"checkpoint": point})})
    assert "tasks/00xx/T-0001-mine/checkpoints/0000xx/C-000001.md" in one.files
    theirs = Change({"title": "Theirs", "slug": "theirs", "status": "planned", "at": "2026-11-30T07:00:00.000Z"})
    other.say({"T-0001@bbbbbb": theirs})
    one.hear(other.events)
    assert not [path for path in one.files if "T-0001-mine" in path]
    folder = "tasks/00xx/T-0001@aaaaaa-mine"
    assert {f"{folder}/checkpoints/0000xx/C-000001.md", f"{folder}/task.json", f"{folder}/TASK.md"} <= one.files.keys()
    assert "tasks/00xx/T-0001-theirs/TASK.md" in one.files
    assert b"](checkpoints/0000xx/C-000001.md)" in one.files[f"{folder}/STATE.md"]


def test_what_names_a_renamed_record_is_rendered_again():
    one, other = genesis()
    task, why = "T-0001@aaaaaa", "D-0001@aaaaaa"
    one.say({task: Change({"title": "Mine", "slug": "", "status": "active", "at": one.at()})})
    link = {"links": {why: {"kind": "decision", "title": "Use TLS", "open": True}}}
    one.say({why: Change({"title": "Use TLS", "task": task, "at": one.at()}), task: Change({}, link)})
    assert b"[D-0001](../../../decisions/00xx/D-0001.md)" in one.files["tasks/00xx/T-0001/TASK.md"]
    other.say({"D-0001@bbbbbb": Change({"title": "Use ink", "at": "2026-11-30T07:00:00.000Z"})})
    one.hear(other.events)
    assert b"[D-0001@aaaaaa](../../../decisions/00xx/D-0001@aaaaaa.md)" in one.files["tasks/00xx/T-0001/TASK.md"]
    assert b"Use ink" in one.files["decisions/00xx/D-0001.md"]


# ── what the files hold ──────────────────────────────────────────────────────────────────────
def test_open_sessions_are_listed_until_they_close():
    one, _ = genesis()
    key = layout.session_key("claude", "1")
    one.say({key: Change({"client": "claude", "at": one.at(), "by": A, "state": "open", "worktree": "main"})})
    assert json.loads(one.files[layout.OPEN_SESSIONS]).keys() == {key}
    assert f"sessions/{key[2:4]}/{key}.md" not in one.files
    one.say({key: Change({"state": "closed", "closed": {"at": one.at(), "reason": "exit", "turns": 2}})})
    assert json.loads(one.files[layout.OPEN_SESSIONS]) == {}
    assert b"exit" in one.files[f"sessions/{key[2:4]}/{key}.md"]


def hand_over(me: Clone, branch: str) -> Key:
    key = me.new(layout.HANDOVER)
    position = {"branch": branch, "head": "1a" * 20, "worktree": "main"}
    me.say({key: Change({"title": "h", "at": me.at(), "by": me.writer, "position": position, "ledger": "0199"})})
    return key


def test_a_branch_lists_its_newest_handovers_and_their_files():
    one, _ = genesis()
    keys = [hand_over(one, "feature/x") for _ in range(40)]
    listed = json.loads(one.files[layout.branch_index("feature/x")])
    assert listed["branch"] == "feature/x"
    assert [row["key"] for row in listed["rows"]] == keys[::-1][: tree.BRANCH_HANDOVERS]
    for row in listed["rows"]:
        assert f"{row['stem']}.json" in one.files
        assert (row["writer"], row["worktree"], row["ledger"]) == (A, "main", "0199")


def test_the_newest_branches_are_listed_with_their_newest_handover():
    one, _ = genesis()
    keys = {branch: hand_over(one, branch) for branch in [f"b{n}" for n in range(25)] + ["b0", "b1"]}
    listed = json.loads(one.files[layout.RECENT_BRANCHES])["rows"]
    assert [row["branch"] for row in listed] == ["b1", "b0", *(f"b{n}" for n in range(24, 6, -1))]
    assert all(row["key"] == keys[row["branch"]] for row in listed)


def test_signers_hold_a_line_for_each_writer_and_nothing_that_a_field_smuggles_in():
    one, other = genesis()
    other.say({"writer:bbbbbb": writer(B)})
    one.hear(other.events)
    lines = one.files["keys/allowed_signers"].decode().splitlines()
    assert [line.split()[0] for line in lines] == ["aaaaaa@ledger", "bbbbbb@ledger"]
    assert all(line.split()[1] == 'namespaces="git"' and len(line.split()) == 4 for line in lines)
    for name, value in (
        ("principal", "*"),
        ("principal", "x\n* "),
        ("public_key", "cert-authority ssh-ed25519 AAAA"),
        ("public_key", 5),
    ):
        one.say({"writer:bbbbbb": Change({name: value})})
        assert one.files["keys/allowed_signers"].decode().splitlines() == lines[:1]
        one.say({"writer:bbbbbb": writer(B)})


def test_a_revoked_key_is_good_for_what_it_signed_before_only():
    one, _ = genesis()
    one.say({"writer:aaaaaa": Change({"revoked": {"at": "2026-11-30T10:11:12.000Z", "by": "aaaaaa"}})})
    before = b'namespaces="git",valid-before="20261130111112Z" ssh-ed25519'
    assert before in one.files["keys/allowed_signers"]
    one.say({"writer:aaaaaa": Change({"revoked": True})})
    assert one.files["keys/allowed_signers"] == b""


def test_only_a_writer_itself_ends_its_key():
    one, other = genesis()
    before = one.files["keys/allowed_signers"]
    one.hear([other.say({"writer:aaaaaa": Change({"revoked": {"at": "2026-11-30T10:11:12.000Z", "by": "aaaaaa"}})})])
    assert one.files["keys/allowed_signers"] == before


def test_a_key_that_was_replaced_stays_for_what_it_signed_before():
    one, _ = genesis()
    old = {"public_key": "ssh-ed25519 " + "B" * 68, "fingerprint": "SHA256:x", "until": "2026-11-30T23:59:59.999Z"}
    one.say({"writer:aaaaaa": Change({}, {"keys": {"k1@aaaaaa": old, "k2@aaaaaa": {**old, "until": "soon"}}})})
    lines = one.files["keys/allowed_signers"].decode().splitlines()
    assert lines[0] == f'aaaaaa@ledger namespaces="git",valid-before="20261201005959Z" ssh-ed25519 {"B" * 68}'
    assert len(lines) == 2
    assert "valid-before" not in lines[1]


CONFIGS = st.dictionaries(
    st.one_of(st.sampled_from(["a.b", "a", "briefing.lines", "no", "x.y.z", "true.1"]), st.text(max_size=6)),
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text(max_size=4), max_size=3)),
    max_size=6,
)


@given(CONFIGS)
def test_the_configuration_reads_back_as_what_was_set(config):
    import yaml

    one, _ = genesis()
    one.say({"config": Change(dict(config))})
    read: dict[str, Json] = {}
    for key, value in (yaml.safe_load(one.files["config.yaml"]) or {}).items():
        if isinstance(value, dict):
            read |= {f"{key}.{rest}": inner for rest, inner in value.items()}
        else:
            read[key] = value
    assert read == {key: value for key, value in config.items() if value is not None}


def test_a_record_of_the_wrong_kinds_is_written_and_says_so():
    one, _ = genesis()
    one.say({"T-0001@aaaaaa": Change({"title": 5, "goal": {"a": 1}, "slug": [], "at": one.at(), "status": "active"})})
    one.say({"C-000001@aaaaaa": Change({"title": "x", "position": "nowhere", "state": 7, "at": None})})
    assert b"not of the kind" in one.files["tasks/00xx/T-0001/TASK.md"]
    assert b"not of the kind" in one.files["checkpoints/0000xx/C-000001.md"]
    assert json.loads(one.files["tasks/00xx/T-0001/task.json"])["fields"]["goal"][0] == {"a": 1}


# ── cost ─────────────────────────────────────────────────────────────────────────────────────
LARGE = 2000 if LONG else 500


def grown(tasks: int) -> tuple[Clone, list[str], set[str]]:
    """A ledger of many tasks, decisions and checkpoints; what one more checkpoint then reads and changes."""
    one = Clone(A)
    records: dict[Key, Change] = {"project": Change({"title": "Shop", "name": "main", "at": one.at()})}
    for n in range(1, tasks + 1):
        at = f"2026-11-{1 + n % 28:02}T08:00:00.000Z"
        status = "planned" if n % 4 else "done"
        task = layout.key_of(layout.TASK, n, A)
        records[task] = Change({"title": f"Task {n}", "slug": f"task-{n}", "status": status, "at": at})
        records[layout.key_of(layout.DECISION, n, A)] = Change(
            {"title": f"d {n}", "status": "accepted", "at": at, "task": task}
        )
        records[layout.key_of(layout.CHECKPOINT, n, A)] = Change({"title": f"c {n}", "task": task, "at": at})
    one.say(records)
    read: list[str] = []
    task, point, over = layout.key_of(layout.TASK, 1, A), one.new(layout.CHECKPOINT), one.new(layout.HANDOVER)
    position = {"branch": "main", "head": "1a" * 20, "worktree": "main"}
    told = {"title": "half", "task": task, "at": one.at(), "by": A, "position": position}
    event = Event(
        1, "last", A, one.seq + 1, one.lamport + 1, one.at(), "checkpoint", None, task,
        {
            point: Change(told), over: Change(told), task: Change({"checkpoint": point}),
            one.new(layout.DECISION): Change({"title": "last", "status": "accepted", "task": task, "at": one.at()}),
        }, {}, "",
    )  # fmt: skip

    def get(path: str) -> bytes | None:
        read.append(path)
        return one.files.get(path)

    view = View(get)
    view.apply(event, codec.event_line(event))
    written = {path for path, data in tree.changes(view).items() if one.files.get(path) != data}
    return one, read, written


@pytest.fixture(scope="module")
def small_and_large():
    return grown(10), grown(LARGE)


def test_what_a_checkpoint_reads_and_writes_does_not_grow_with_the_ledger(small_and_large):
    (_, small_reads, small_writes), (_, large_reads, large_writes) = small_and_large
    assert len(small_reads) == len(set(small_reads))
    assert len(large_reads) <= len(small_reads) + 4  # the shards that hold the newest forty
    assert len(large_writes) <= len(small_writes)


def test_no_index_document_grows_without_bound(small_and_large):
    files = small_and_large[1][0].files
    for path in ("INDEX.md", "DECISIONS.md", "BLOCKERS.md", "ARTIFACTS.md"):
        assert len(files[path]) < 16_000, path
    assert b"more open: [tasks/](tasks/)" in files["INDEX.md"]
    assert f"{LARGE - 40:,} more standing: [decisions/](decisions/)".encode() in files["DECISIONS.md"]
