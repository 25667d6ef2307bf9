"""Whatever comes from outside is a value, or an error of ours that says so: no bytes end in a traceback or a hang.

What stands with its module's own tests is not repeated here: trees (test_objects), SSH signatures (test_sshsig), single
lines of the log (test_wal), change sets made of JSON values (test_schema).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import capture, codec, frame, gitdir, ingest, objects, openpgp, signing, sshsig, wal, yamlfile
from gitledger.clients import READERS
from gitledger.errors import BadConfig, BadData, BadSignature, LedgerError
from gitledger.frame import Entry
from gitledger.model import Change, Event, Json
from gitledger.render import tree
from gitledger.schema import Config, read_change_set, read_settings
from gitledger.view import View, read_manifest
from tests.process.program import gitledger
from tests.sealed import LONG, Repo

FUZZ = settings(max_examples=100 if LONG else 25)

ID, AT = "01a22d27-78fc-7c7c-85de-0039977620c9", "2026-11-30T15:51:31.324Z"
DEEP = 10_000
PAYLOADS: dict[str, bytes] = {
    "nothing": b"",
    "a NUL": b"\0",
    "white space": b" \n\t\r\n",
    "null": b"null",
    "a number": b"17",
    "a list": b'[{"session_id": "s1"}]',
    "half an object": b'{"session_id": "s1", "prompt": "cut o',
    "two objects": b'{"session_id": "s1"}{"session_id": "s2"}',
    "a comment": b'{"session_id": "s1" /* c */}',
    "a byte order mark": b'\xef\xbb\xbf{"session_id": "s1", "prompt": "x"}',
    "UTF-16": '{"session_id": "s1"}'.encode("utf-16"),
    "invalid UTF-8": b'{"session_id": "s1", "prompt": "caf\xe9 \xff\xc0\x80\xed\xa0\x80"}',
    "lone surrogates": rb'{"session_id": "\udc00", "prompt": "\ud800 x \udfff", "files": ["\ud800"], "cwd": "\udcff"}',
    "surrogates as keys": rb'{"session_id": "s1", "\ud800": 1, "commands": [{"command": "\udfff", "exit": 0}]}',
    "NULs": rb'{"session_id": "s\u0000", "cwd": "/\u0000", "prompt": "\u0000", "files": ["\u0000"], "pid": 1}',
    "raw controls": b'{"session_id": "s1", "prompt": "\x00\x1b[31m\x07\r\n"}',
    "duplicate keys": b'{"session_id": "s1", "session_id": "s2", "prompt": "a", "prompt": "b"}',
    "other types": json.dumps(
        {name: [{"x": 1}] for name in ("session_id", "cwd", "prompt", "answer", "reason", "source", "pid", "trigger")}
    ).encode(),
    "items of other types": b'{"session_id": "s1", "files": [1, null, [], {}], "commands": [1, {}, {"command": []}]}',
    "an endless whole number": b'{"session_id": "s1", "pid": 1' + b"0" * 400 + b', "turn": 1' + b"0" * 9000 + b"}",
    "an endless fraction": b'{"session_id": "s1", "pid": 1e400, "x": 0.' + b"1" * 9000 + b"}",
    "no numbers": b'{"session_id": "s1", "pid": NaN, "commands": [{"command": "c", "exit": -Infinity}]}',
    "processes that are none": b'{"session_id": "s1", "pid": -1}',
    "a process beyond all": b'{"session_id": "s1", "pid": 999999999999999999}',
    "deep lists": b'{"session_id": "s1", "x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"session_id": "s1", "files": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep and unclosed": b"[" * 100_000,
    "a folder beyond every limit": json.dumps({"session_id": "s1", "cwd": "/" + "a/" * 100_000}).encode(),
    "a folder above all": b'{"session_id": "s1", "cwd": "' + b"../" * 2_000 + b'"}',
    "ten thousand files": json.dumps({"session_id": "s1", "files": [f"f{n}" for n in range(10_000)]}).encode(),
    "five megabytes of text": b'{"session_id": "s1", "prompt": "' + b"x " * 2_499_980 + b'"}',
    "five megabytes of zeros": b"0" * 5_000_000,
    "a hundred thousand keys": b"{" + b",".join(b'"k%d": %d' % (n, n) for n in range(100_000)) + b"}",
}
"""What a client may send that is no payload, or an odd one."""


def one_line(error: type[Exception], read: Callable[..., object], *given: object) -> str:
    """What `read` refuses these with, which is an `error` of one line; "" where it takes them."""
    try:
        read(*given)
    except error as e:
        said = str(e)
        assert said
        assert len(said.splitlines()) == 1
        return said
    return ""


# ── payloads ─────────────────────────────────────────────────────────────────────────────────
def taken(payload: bytes, event: str, client: str = "generic") -> Event:
    """The one event that a payload is worth: journalled, read back, folded, rendered within a blob's limit."""
    view = View(lambda path: None)
    entry = Entry(ID, AT, client, event, payload)
    got = ingest.ingest(view, [entry], writer="aaaaaa", readers=READERS, config=Config())
    ((made, line),) = got.lines
    assert codec.read_event(line, "the line") == made
    assert len(line) <= ingest.EVENT_LIMIT + 4_096
    assert made.id == ID
    for path, data in tree.changes(view).items():
        assert len(data or b"") <= objects.BLOB_LIMIT, path
    return made


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_payload_is_one_event_that_can_be_journalled_and_rendered(name: str) -> None:
    for event in ("start", "prompt", "tool", "turn", "compact", "end"):
        made = taken(PAYLOADS[name], event)
        assert made.type in (event, "receipt", "unreadable")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
FIELDS = ("session_id", "cwd", "prompt", "answer", "files", "commands", "errors", "reason", "source", "pid", "trigger")


@FUZZ
@given(
    st.binary(max_size=60) | st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda v: json.dumps(v).encode()),
    st.sampled_from(("start", "prompt", "tool", "turn", "end", "no such event", "")),
    st.sampled_from(("generic", "gitledger", "nobody", "")),
)
def test_any_payload_of_any_client_is_one_event(payload: bytes, event: str, client: str) -> None:
    taken(payload, event, client)


def test_a_typed_line_that_no_command_wrote_is_kept_and_changes_nothing() -> None:
    texts: list[Json] = [{}, [], None, {"session": None, "task": None, "records": {}, "data": {}, "more": 1}]
    for key in ("writer:aaaaaa", "T-1", "T-0001@aaaaaa/../x", "", "\0", "manifest", "C-000001", "S-x", "worktree:a:b"):
        texts.append({"session": None, "task": None, "records": {key: {"set": {"title": "x"}}}, "data": {}})
    for change in ([], {"x": {}}, {"set": []}, {"items": {"a": []}}, {"items": {"a": {"b": 1}}}):
        texts.append({"session": None, "task": None, "records": {"T-0001@aaaaaa": change}, "data": {}})
    for value in texts:
        made = taken(json.dumps(value).encode(), "task.added", "gitledger")
        assert (made.type, made.records) == ("unreadable", {}), value


@FUZZ
@given(
    st.sampled_from(sorted(PAYLOADS)).map(PAYLOADS.__getitem__)
    | st.binary(max_size=60)
    | JSON.map(repr).map(str.encode)
)
def test_capture_finds_a_folder_or_none_in_any_payload(payload: bytes) -> None:
    found = capture._cwd_of(payload)
    assert found is None or isinstance(found, str)
    assert capture._whole(payload) in (True, False)
    assert capture.locate(payload, {"CLAUDE_PROJECT_DIR": "\0"}, "") is None


# ── payloads through the real program ────────────────────────────────────────────────────────
THROUGH = (
    ("nothing", "start"), ("NULs", "start"), ("lone surrogates", "prompt"), ("invalid UTF-8", "turn"),
    ("a folder beyond every limit", "turn"), ("deep lists", "compact"), ("deep and unclosed", "tool"),
    ("an endless whole number", "start"), ("a process beyond all", "start"), ("other types", "end"),
    ("duplicate keys", "compact"), ("five megabytes of text", "turn"), ("five megabytes of zeros", "end"),
)  # fmt: skip


@pytest.mark.process
def test_the_real_program_takes_every_payload_and_its_log_still_reads(repo: Repo) -> None:
    assert gitledger(repo.path, "init").status == 0
    folder = os.path.join(gitdir.state(str(repo.path / ".git")), "wal", "main")
    for name, event in THROUGH:
        ran = gitledger(repo.path, "hook", "generic", event, stdin=PAYLOADS[name])
        assert (ran.status, ran.err) == (0, ""), (name, event, ran.err)
        assert ran.out == "" or event in ("start", "compact"), (name, event)
        entries, findings = wal.pending(folder)
        assert findings == []
        if event in capture.FAST:
            assert entries[-1].payload == PAYLOADS[name], name
    assert gitledger(repo.path, "checkpoint").status == 0
    assert gitledger(repo.path, "fsck").status == 0
    journal = [json.loads(row) for row in gitledger(repo.path, "journal", "--json").out.splitlines()]
    heard = [row for row in journal if row["type"] in ("prompt", "tool", "turn", "receipt", "unreadable")]
    assert len(heard) == len(THROUGH)
    assert not (repo.path / ".git" / "gitledger" / "log").exists()


# ── the log ──────────────────────────────────────────────────────────────────────────────────
@FUZZ
@given(st.binary(max_size=120), st.booleans(), st.binary(max_size=60))
def test_any_line_is_an_entry_or_says_why_not(data: bytes, framed: bool, head: bytes) -> None:
    if framed:
        import zlib

        body = head + data
        data = b"GL1 %08x %b\n" % (zlib.crc32(body), body)
    if not one_line(ValueError, frame.decode, data):
        assert isinstance(frame.decode(data).payload, bytes)


@FUZZ
@given(data=st.data())
def test_damage_at_any_place_of_the_log_keeps_every_entry_that_it_did_not_touch(data: st.DataObject) -> None:
    import io

    said = [b"payload %d" % n for n in range(5)]
    lines = [frame.encode(Entry(ID, AT, "generic", "turn", payload)) for payload in said]
    whole = b"".join(lines)
    at = data.draw(st.integers(0, len(whole)))
    gone = data.draw(st.integers(0, 40))
    put = data.draw(st.binary(max_size=40) | st.sampled_from([b"\n", b"\0" * 4096, b"GL1 ", lines[0], lines[0][:-5]]))
    hurt = whole[:at] + put + whole[at + gone :]
    entries, findings = wal._load(io.BytesIO(hurt), len(hurt), "the log")  # type: ignore[arg-type]
    assert all(finding.rule == "wal.line" for finding in findings)
    found = [entry.payload for entry in entries]
    ends = [sum(map(len, lines[: n + 1])) for n in range(5)]
    for n, payload in enumerate(said):
        before, behind = ends[n] <= at, ends[n] - len(lines[n]) > at + gone
        if before or behind:
            assert payload in found


# ── values ───────────────────────────────────────────────────────────────────────────────────
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@FUZZ
@given(PLAIN)
def test_canonical_bytes_come_back_as_the_value_and_are_the_only_ones(value: Json) -> None:
    data = codec.canonical(value)
    assert codec.parse(data, "it") == value
    assert codec.canonical(codec.parse(data, "it")) == data
    assert data.count(b"\n") == 1
    assert codec.parse(codec.pretty(value), "it") == value


EVENTS = st.builds(
    Event,
    v=st.just(codec.VERSION),
    id=st.text("ab-", max_size=4),
    writer=st.text("ab", max_size=4),
    seq=st.integers(0, codec.BIGGEST - 1),
    lamport=st.integers(0, codec.BIGGEST - 1),
    at=st.text(max_size=4).filter(str.isascii),
    type=st.just("x"),
    session=st.none() | st.just("S-1"),
    task=st.none() | st.just("T-1"),
    records=st.dictionaries(
        st.text("TD-@1", max_size=4),
        st.builds(
            Change,
            st.dictionaries(st.text("abc", max_size=3), PLAIN, min_size=1, max_size=3),
            st.dictionaries(
                st.text("ab", max_size=2),
                st.dictionaries(st.text("cd", max_size=2), st.dictionaries(st.text("ef", max_size=2), PLAIN)),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
    data=st.dictionaries(st.text("ab", max_size=3), PLAIN, max_size=3),
    prev=st.just(""),
)


ODD: tuple[Json, ...] = (
    True, -1, codec.BIGGEST, codec.BIGGEST - 1, 10**400,
    {"K": {"set": {}}}, {"K": {"items": {"a": {"b": 1}}}}, {"K": []},
)  # fmt: skip
"""What an event's key may not hold, or just still."""


@FUZZ
@given(EVENTS)
def test_an_event_comes_back_from_its_line_by_both_readers(event: Event) -> None:
    line = codec.event_line(event)
    assert codec.read_event(line, "it") == event
    assert codec.event_value(line, "it")["seq"] == event.seq
    assert codec.read_line(line, "it") == (event, True)


READS = (
    codec.read_event,
    codec.read_line,
    codec.event_value,
    codec.read_record,
    codec.parse,
    lambda data, where: read_manifest(data),
)


@FUZZ
@given(
    EVENTS,
    PLAIN | st.sampled_from(ODD),
    st.sampled_from(("v", "writer", "seq", "lamport", "at", "type", "task", "records", "data", "")),
)
def test_a_line_with_any_value_anywhere_is_an_event_or_bad_data(event: Event, value: Json, key: str) -> None:
    told = json.loads(codec.event_line(event))
    data = codec.canonical({**told, key: value})
    if one_line(BadData, codec.read_event, data, "it"):
        assert one_line(BadData, codec.event_value, data, "it")
        assert one_line(BadData, codec.read_line, data, "it")


@FUZZ
@given(st.binary(max_size=80) | PLAIN.map(codec.canonical))
def test_any_bytes_are_a_value_or_bad_data(data: bytes) -> None:
    for read in READS:
        one_line(BadData, read, data, "it")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * codec.NESTING * 2 + b"]" * codec.NESTING * 2,
        b"1" + b"0" * 400_000,
        b"1e400",
        b"NaN",
        b"-Infinity",
        b'{"a":1,"a":2}',
        rb'"\ud800"',
        b"\xff",
        b"",
        b"\0",
        b"\xef\xbb\xbf{}",
    ],
    ids=repr,
)
def test_what_no_ledger_holds_is_bad_data_to_every_reader(data: bytes) -> None:
    for read in READS:
        with pytest.raises(BadData):
            read(data, "it")


COMMIT = (
    b"tree " + b"a" * 40 + b"\nparent " + b"b" * 40 + b"\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n"
    b"gpgsig -----BEGIN SSH SIGNATURE-----\n x\n -----END SSH SIGNATURE-----\n\nsubject\n\nLedger: x main\n"
)


@FUZZ
@given(data=st.data())
def test_any_bytes_are_a_commit_or_bad_data(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(COMMIT)))
    put = data.draw(st.binary(max_size=20) | st.sampled_from([b"\n\n", b"\n ", b"\0", b"tree ", b"gpgsig \n"]))
    gone = data.draw(st.integers(0, 60))
    for raw in (COMMIT[:at] + put + COMMIT[at + gone :], put):
        objects.signed_payload(raw)
        try:
            commit = objects.parse_commit(raw)
        except BadData:
            continue
        assert commit.subject in commit.message


# ── armour ───────────────────────────────────────────────────────────────────────────────────
ARMOURED = st.binary(max_size=80).map(lambda raw: raw.decode("utf-8", "surrogateescape"))


@FUZZ
@given(ARMOURED | st.text(max_size=60))
def test_any_text_is_a_signature_a_key_or_an_error_of_ours(text: str) -> None:
    wrapped = f"-----BEGIN SSH SIGNATURE-----\n{text}\n-----END SSH SIGNATURE-----\n"
    for armored in (text, wrapped):
        with pytest.raises(BadSignature):
            sshsig.read(armored)
    for line in (text, f"{openpgp.WORD} {text}"):
        with pytest.raises(BadData):
            openpgp.exported(line)
    for line in (text, f"ssh-ed25519 {text}", f"{openpgp.WORD} {text}"):
        with pytest.raises(LedgerError):
            signing.parse_public_key(line)
    with pytest.raises(LedgerError):
        signing.allowed_signers_line(text + "\n", text)


@FUZZ
@given(
    st.binary(max_size=80),
    st.sampled_from([b"", b"\x99", b"\xc6", b"\xc6\xff\x00\x00\x00\x10\x04", b"\x9a\x00\x00\x00\x06\x04"]),
)
def test_any_bytes_are_an_openpgp_key_or_bad_data(data: bytes, head: bytes) -> None:
    if not one_line(BadData, openpgp.fingerprint, head + data):
        assert re.fullmatch("[0-9A-F]{40}", openpgp.fingerprint(head + data))
        assert openpgp.exported(openpgp.line(head + data)) == head + data


# ── configuration ────────────────────────────────────────────────────────────────────────────
YAML = {
    "aliases": b"a: &a [x]\nb: [*a, *a]\n",
    "a bomb of aliases": b"a: &a [x,x]\n" + b"".join(b"b%d: &b%d [*a,*a]\n" % (n, n) for n in range(99)),
    "an alias of itself": b"a: &a [*a]\n",
    "merged": b"a: &a {x: 1}\nb:\n  <<: *a\n",
    "deep": b"[" * 2_000,
    "deep and closed": b"a: " + b"[" * 500 + b"]" * 500,
    "deep tables": b"".join(b" " * n + b"a:\n" for n in range(500)),
    "no bool": b"briefing: {on_start: !!bool maybe}",
    "no number": b"briefing: {lines: !!int ''}",
    "no fraction": b"briefing: {lines: !!float ''}",
    "no time": b"a: !!timestamp x",
    "no binary": b"a: !!binary '*'",
    "no pairs": b"a: !!pairs [1]\n",
    "no ordered map": b"a: !!omap x\n",
    "a set": b"a: !!set {x, y}\n",
    "an object": b"a: !!python/object/apply:os.system ['false']\n",
    "an unknown tag": b"a: !x y\n",
    "a list as key": b"? [a]\n: b\n",
    "a table as key": b"briefing:\n  ? {a: b}\n  : c\n",
    "a key twice": b"briefing: {lines: 60}\nbriefing: {lines: 61}\n",
    "an endless number": b"briefing: {lines: 1" + b"0" * 5_000 + b"}",
    "a number of sixties": b"briefing: {lines: " + b"59:" * 3_000 + b"0}",
    "infinite": b"briefing: {lines: .inf}",
    "no number at all": b"briefing: {lines: .nan}",
    "two documents": b"a: 1\n---\nb: 2\n",
    "a list": b"- a\n",
    "a word": b"hello\n",
    "a tab": b"a:\n\tb: 1\n",
    "controls": b"a: \x00\x01\n",
    "an escape": b"a: '\x1b[31m'\n",
    "half a character": b'a: "\\ud800"\n',
    "invalid UTF-8": b"a: \xff\n",
    "UTF-16": "a: 1\n".encode("utf-16"),
    "a directive": b"%YAML 9.9\n---\na: 1\n",
    "a line of 200,000 characters": b"a: " + b"x" * 200_000,
}


def settled(data: bytes) -> None:
    """`data` as a file's settings: values that fit, or one line that says why not."""
    refused = one_line(BadConfig, yamlfile.parse, "config.yaml", data)
    if refused:
        assert refused.startswith("config.yaml")
        return
    for where, what in read_settings(yamlfile.parse("config.yaml", data).values):
        assert isinstance(where, str)
        assert what


@pytest.mark.parametrize("name", YAML)
def test_a_configuration_file_of_any_kind_is_read_or_refused_in_one_line(name: str) -> None:
    settled(YAML[name])


TAGS = ("bool", "int", "float", "timestamp", "binary", "null", "omap", "pairs", "set", "seq", "map", "str", "merge")


@FUZZ
@given(
    st.text(max_size=40)
    | st.builds(
        "briefing: {{lines: !!{} {}}}".format, st.sampled_from(TAGS), st.text("019:-_.abxe'\"[]{} ", max_size=8)
    )
    | st.text("ab:-?&*!|>'\"%@`[]{},# \n\t<=~1.", max_size=40)
)
def test_any_text_is_settings_or_one_line_that_says_why_not(text: str) -> None:
    settled(text.encode("utf-8", "surrogatepass"))


# ── change sets ──────────────────────────────────────────────────────────────────────────────
SET = {
    "source_digest": "sha1:0",
    "ledger_updates": [
        {"op": "task_add", "title": "t", "goal": "g", "accept": ["a"], "area": "x", "parent": "T-0001"},
        {"op": "task_set", "task": "T-0001", "status": "active", "next": "n"},
        {"op": "complete", "task": "T-0001", "text": "c", "evidence": {"command": "true", "exit": 0}},
        {"op": "decide", "title": "d", "why": "w"},
    ],
    "handoff_summary": "s",
    "active_task": "T-0001",
    "next_action": "n",
}


@FUZZ
@given(data=st.data())
def test_a_change_set_with_any_value_anywhere_is_read_or_refused_with_its_place(data: st.DataObject) -> None:
    value = json.loads(json.dumps(SET))
    spot = value
    while True:
        key = data.draw(st.sampled_from(list(spot) if isinstance(spot, dict) else list(range(len(spot)))))
        if not isinstance(spot[key], (dict, list)) or not spot[key] or data.draw(st.booleans()):
            break
        spot = spot[key]
    spot[key] = data.draw(JSON)
    raw = json.dumps(value).encode()
    cut = data.draw(st.integers(0, len(raw)))
    for one in (raw, raw[:cut], raw[:cut] + b"\xff" + raw[cut:], raw[:cut] + b"[" * 3_000 + raw[cut:]):
        one_line(BadData, read_change_set, one)
