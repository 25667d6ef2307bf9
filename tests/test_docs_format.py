"""`docs/format.md` holds: its examples read back, hash and verify, and its lists are those of a real ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from gitledger import codec, config, entries, frame, layout, memory, objects, reading, signing, tasks
from gitledger.ledger import Ledger
from gitledger.model import Change, Position
from tests import ledgers, test_tree
from tests.sealed import Repo
from tests.test_docs import block, coded, tables, text
from tests.test_layers import SOURCES

FORMAT = text("docs/format.md")


def test_the_line_of_the_log_reads_back() -> None:
    line = block(FORMAT, "wal").encode()
    entry = frame.decode(line)
    assert (entry.client, entry.event, entry.worktree) == ("generic", "turn", "main")
    assert json.loads(entry.payload)["prompt"] == "a \\ and\na line"
    assert frame.encode(entry) == line


def test_the_two_events_are_canonical_and_chained() -> None:
    first, second = block(FORMAT, "events").encode().splitlines(keepends=True)
    events = [codec.read_event(line, "format.md") for line in (first, second)]
    assert [codec.event_line(event) for event in events] == [first, second]
    assert events[1].prev == codec.line_hash(first)
    assert {row[0].strip("`") for row in tables(FORMAT)[3]} == set(json.loads(first))


def test_the_files_of_the_tree_read_back() -> None:
    record = codec.read_record(block(FORMAT, "record").encode(), "format.md")
    assert codec.record_bytes(record) == block(FORMAT, "record").encode()
    event = codec.read_event(block(FORMAT, "events").encode().splitlines(keepends=True)[0], "format.md")
    assert {name: value for name, (value, _) in record.fields.items()} == event.records[record.key].set
    for name in ("rows", "manifest"):
        assert codec.pretty(json.loads(block(FORMAT, name))) == block(FORMAT, name).encode()


def test_the_commit_has_the_id_that_is_named_and_its_signature_is_good() -> None:
    data = block(FORMAT, "commit").encode()
    named = re.search(r"commit `([0-9a-f]{40})`", FORMAT)
    assert named
    assert objects.oid("commit", data) == named[1]
    commit = objects.parse_commit(data)
    ((header, armored),) = commit.signatures
    signers = block(FORMAT, "signers").encode()
    assert header == "gpgsig"
    signing.verify(objects.signed_payload(data), armored, signers, signers.decode().split()[0])
    said = reading.trailers(commit)
    manifest = json.loads(block(FORMAT, "manifest"))
    last = manifest["writers"][said["Ledger-Writer"]]
    assert said["Ledger"] == f"{manifest['ledger']['uuid']} {manifest['ledger']['name']}"
    assert said["Ledger-Journal"] == f"{last['seq']} {last['last']}"
    assert said["Ledger-Seq"] == str(last["segments"])
    assert set(said) == {coded(row[0])[0] for table in tables(FORMAT) for row in table if "`Ledger" in row[0]}


_PARTS = {
    "<writer>": "[a-z0-9]{4,16}",
    "<name>": "[A-Z]-[0-9]{4,}",
    "<slug>": "[a-z0-9-]+",
    "<shard>": "[0-9]{2,}xx",
    "<2 digits>": "[0-9]{2}",
    "<2 hex digits>": "[0-9a-f]{2}",
    "<12 hex digits>": "[0-9a-f]{12}",
    "<kind>": "(?:tasks|decisions|blockers|questions|artifacts|notes|memory|checkpoints|handovers)",
    "<xx>": "[0-9a-f]{2}",
    "<yy>": "[0-9a-f]{2}",
    "<zz>": "[0-9a-f]{2}",
    "<part>": "[0-9]+",
}


def described() -> list[re.Pattern[str]]:
    """The paths that format.md gives to the ledger's tree, as patterns."""
    page = FORMAT[FORMAT.index("## The tree") :]
    found: list[str] = []
    for row in tables(page)[0]:
        names = coded(row[0])
        for name in names:
            base = next(n for n in reversed(names[: names.index(name) + 1]) if not n.startswith((".", "…", "<zz>")))
            if name.startswith("…/"):
                name = base.rpartition("/")[0] + name[1:]
            elif name.startswith("<zz>"):
                name = names[0].rpartition("/")[0] + "/" + name
            elif name.startswith("."):
                name = names[0].rpartition(".")[0] + name
            if name.endswith("/"):  # "in the same way"
                found += [f"{name}<shard>/<name>{ending}" for ending in (".json", ".md")]
            else:
                found.append(name)
    return [
        re.compile(re.sub(r"<[^>]+>", lambda m: f"(?:{_PARTS[m[0]]})", n.replace(".", r"\.")) + r"\Z") for n in found
    ]


def worked(repo: Repo) -> Ledger:
    """A ledger that holds every kind of record, and two checkpoints."""
    ledger = ledgers.begin(repo)
    ledger.checkpoint("without a task")
    key = ledgers.do(ledger, tasks.add, "Discount codes", accept=("TEN takes 10 % off",))
    ledgers.do(ledger, tasks.start, key)
    made: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (entries.decide, ("Cents", "Sums must be exact", key, None)),
        (entries.block, ("No prices", None)),
        (entries.ask, ("Do codes expire?", key)),
        (entries.artifact, ("README.md", "Read me", "", key)),
        (entries.note, ("Rounds down", key)),
    ]
    for step, words in made:
        ledgers.do(ledger, step, *words)
    ledger.record(
        lambda view, hand: (None, hand.draft("config.set", {layout.CONFIG: Change({"capture.text": "none"})}))
    )
    session = ledger.start_session("person", "s1")
    ledger.end_session(session, "done")
    ledger.start_session("person", "s2")
    ledger.checkpoint("with a task")
    _forgotten(repo, ledger)
    return ledger


def _forgotten(repo: Repo, ledger: Ledger) -> None:
    """One change to a memory file."""
    repo.write({"memory/MEMORY.md": "- old\n- new, and what else there is to know\n"})
    loaded = memory.present(ledger)[0]
    change = {"kind": "superseded", "original": ["- old"], "reason": "it is new"}
    data = json.dumps({"source_sha256": loaded.sha256, "changes": [change]}).encode()
    memory.apply(ledger, loaded, memory.accepted(ledger, loaded, data), "compact")


def test_every_path_of_a_ledger_is_described_and_every_description_is_met(repo: Repo) -> None:
    ledger = worked(repo)
    paths = repo.git("ls-tree", "-r", "--name-only", ledger.tip()).split("\n")
    divided: dict[str, bytes] = {}
    test_tree.commit(divided, test_tree.crowd(3, 99))
    paths += [path for path in divided if "/index/" in path]
    patterns = described()
    assert [path for path in paths if not any(p.match(path) for p in patterns)] == []
    unmet = [p.pattern for p in patterns if not any(p.match(path) for path in paths)]
    assert len(unmet) == 1, unmet  # the second part of a segment that passes 1 MiB
    assert "part" not in unmet[0]


def test_every_type_of_event_that_is_journalled_is_described(repo: Repo) -> None:
    listed = {name for table in tables(FORMAT) for row in table for name in coded(row[0])}
    drafts = set()
    for source in SOURCES.values():
        drafts |= set(re.findall(r"draft\(\s*\"([a-z.]+)\"", source))
    drafts |= {event.type for event in journalled(worked(repo))}
    drafts |= {f"task.{status}" for status in tasks.LEGAL if status != "discovered"}
    assert drafts - listed == set()


def journalled(ledger: Ledger) -> Iterator[Any]:
    faults: list[Any] = []
    for logged in reading.journal(ledger, faults):
        yield logged.event
    assert faults == []


def test_the_local_files_that_a_clone_has_are_described(repo: Repo) -> None:
    ledger = worked(repo)
    config.set_value(config.clone_path(ledger.gitdir.common), "capture.text", "none")
    ledgers.again(repo)
    listed = {name.rstrip("/") for table in tables(FORMAT) for row in table for name in coded(row[0])}
    there = {path.name for path in Path(ledger.gitdir.common, "gitledger").iterdir()} - {"wal"}
    assert there - listed == set()
    assert "wal/<name>" in listed


def test_the_versions_are_those_of_the_program() -> None:
    rows = {row[0]: row[2] for row in tables(FORMAT)[-1]}
    assert rows["format"] == str(layout.FORMAT)
    assert rows["event"] == str(codec.VERSION)
    assert rows["renderer"] == str(layout.RENDERER)


def test_a_position_has_the_fields_that_are_described() -> None:
    said = FORMAT[FORMAT.index("## A position") :]
    assert re.findall(r"\"(\w+)\"", coded(said)[0]) == [field.name for field in fields(Position)]
