"""The border: payloads that never raise, change sets that name every error, schemas that say the same."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import proposal, schema
from gitledger.errors import BadData, Usage
from gitledger.schema import CommandRun, GenericPayload, json_schema, read_change_set, read_generic


def told(data: bytes) -> list[str]:
    return [f"{f.where.removeprefix('payload').removeprefix(': ')}: {f.what}" for f in read_generic(data)[1]]


# ── the generic payload ──────────────────────────────────────────────────────────────────────
def test_a_payload_is_read_whole():
    said = {
        "session_id": "s1",
        "cwd": "/w",
        "prompt": "do it",
        "answer": "done 😀",
        "files": ["a.py", "b.py"],
        "commands": [{"command": "make", "exit": 0, "output": "ok"}, {"command": "x"}],
        "errors": ["e"],
        "reason": "r",
        "source": "s",
        "pid": 42,
        "trigger": "auto",
        "something_of_theirs": {"x": [1.5]},
    }
    expected = GenericPayload(
        "s1",
        "/w",
        "do it",
        "done 😀",
        ("a.py", "b.py"),
        (CommandRun("make", 0, "ok"), CommandRun("x")),
        ("e",),
        "r",
        "s",
        42,
        "auto",
    )
    assert read_generic(json.dumps(said).encode()) == (expected, [])


@pytest.mark.parametrize("data", [b"", b" \n", b"\0\0", b"{}", b"\xef\xbb\xbf{}", b'{"pid": null, "files": null}'])
def test_nothing_said_is_an_empty_payload_without_a_fault(data: bytes):
    assert read_generic(data) == (GenericPayload(), [])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b'{"cwd": 1}', "cwd: is a number, not a text"),
        (b'{"pid": true}', "pid: is true or false, not a whole number"),
        (b'{"pid": 1.0}', "pid: is a number, not a whole number"),
        (b'{"pid": "1"}', "pid: is a text, not a whole number"),
        (b'{"files": "a"}', "files: is a text, not a list"),
        (b'{"files": ["a", {}]}', "files[1]: is an object, not a text"),
        (b'{"commands": [[]]}', "commands[0]: is a list, not an object"),
        (b'{"commands": [{"exit": 1}]}', "commands[0].command: is missing, not a text"),
        (b'{"commands": [{"command": "x", "exit": "1"}]}', "commands[0].exit: is a text, not a whole number"),
        (b'{"cwd": "a", "cwd": "b"}', "cwd: stands twice; the last one counts"),
        (b'{"pid": ' + b"9" * 5000 + b"}", "pid: has too many digits"),
        (b"[1]", ": is a list, not an object"),
        (b"nonsense", ": is not JSON (Expecting value: line 1 column 1 (char 0))"),
        (b"[" * 100_000, ": is nested too deep"),
        (b'{"x":' * 100_000, ": is nested too deep"),
        (b'{"cwd": "\xff"}', ": is not UTF-8 at byte 9; such bytes are shown as U+FFFD"),
    ],
)
def test_a_fault_is_named_by_its_path(data: bytes, fault: str):
    assert told(data) == [fault]


def test_what_is_wrong_does_not_take_the_rest_with_it():
    payload, faults = read_generic(b'{"cwd": 1, "prompt": "p", "commands": [3, {"command": "c", "exit": []}]}')
    assert payload == GenericPayload(prompt="p", commands=(CommandRun("c"),))
    assert len(faults) == 3


def test_a_flood_of_items_is_cut_and_said():
    payload, faults = read_generic(json.dumps({"files": ["f"] * 5000}).encode())
    assert (len(payload.files), len(faults)) == (1000, 1)


def test_a_lone_surrogate_can_be_encoded_and_a_pair_stays_one_character():
    payload, _ = read_generic(rb'{"prompt": "\ud83d\ude00 \ud800 \udfff", "files": ["\udc00"]}')
    assert (payload.prompt, payload.files) == ("😀 \ufffd \ufffd", ("\ufffd",))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.binary(max_size=40)
    | st.dictionaries(st.sampled_from([*GenericPayload.__slots__, "x"]), JSON).map(lambda v: json.dumps(v).encode())
    | st.dictionaries(
        st.just("commands"), st.lists(st.dictionaries(st.sampled_from(["command", "exit", "output"]), JSON))
    ).map(lambda v: json.dumps(v).encode())
)
def test_no_payload_raises_and_every_text_of_one_can_be_encoded(data: bytes):
    payload, _ = read_generic(data)
    assert payload.pid is None or type(payload.pid) is int
    texts = [payload.session_id, payload.cwd, payload.prompt, payload.answer, *payload.files, *payload.errors]
    texts += [text for run in payload.commands for text in (run.command, run.output)]
    assert all(isinstance(text, str) for text in texts)
    "".join(texts).encode()


def test_reading_a_payload_loads_no_pydantic_and_no_change_set():
    script = (
        "import sys; from gitledger import schema; schema.read_generic(b'{\"cwd\": 1}'); schema.Config(); "
        "print(*{'pydantic', 'yaml', 'gitledger.proposal'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# ── change sets ──────────────────────────────────────────────────────────────────────────────
UPDATES = [
    {"op": "task_add", "title": "t", "goal": "g", "accept": ["a", "b"], "area": "x", "parent": "T-0001"},
    {"op": "task_set", "task": "T-0001", "next": "n", "status": "active"},
    {"op": "todo", "task": "T-0001", "add": ["x"]},
    {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"command": "make", "exit": 1, "criterion": "c1"}},
    {"op": "complete", "task": "T-0001", "text": "x", "evidence": {"path": "a/b"}},
    {"op": "complete", "task": "T-0001", "text": "x"},
    {"op": "decide", "title": "t", "why": "w", "task": None},
    {"op": "blocker", "task": "T-0001", "text": "x"},
    {"op": "resolve", "blocker": "B-0001", "text": "x"},
    {"op": "question", "text": "x?"},
    {"op": "answer", "question": "Q-0001", "text": "x"},
    {"op": "artifact", "path": "a/b", "title": "t"},
    {"op": "note", "text": "x\ny"},
]


def change_set(*updates: object, **more: object) -> bytes:
    return json.dumps({"source_digest": "sha1:" + "0" * 40, "ledger_updates": updates, **more}).encode()


def errors(data: bytes) -> tuple[str, ...]:
    with pytest.raises(BadData) as caught:
        read_change_set(data)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, schema.BadChangeSet)
    assert all(error in str(caught.value) for error in caught.value.errors)
    return caught.value.errors


def test_a_change_set_of_every_kind_is_read():
    found = read_change_set(change_set(*UPDATES, handoff_summary="s", active_task="T-0001", next_action="n"))
    assert [update.op for update in found.ledger_updates] == [update["op"] for update in UPDATES]
    assert {type(update) for update in found.ledger_updates} == {
        proposal.TaskAdd,
        proposal.TaskSet,
        proposal.Todo,
        proposal.Complete,
        proposal.Decide,
        proposal.Blocker,
        proposal.Resolve,
        proposal.Question,
        proposal.Answer,
        proposal.Artifact,
        proposal.Note,
    }
    first, _, _, third = found.ledger_updates[:4]
    assert first == proposal.TaskAdd("task_add", "t", "g", ("a", "b"), "x", "T-0001")
    assert third.evidence == proposal.Evidence("make", 1, criterion="c1")
    assert (found.handoff_summary, found.active_task, found.next_action) == ("s", "T-0001", "n")


def test_an_empty_list_of_updates_is_a_change_set():
    assert read_change_set(b'{"source_digest": "x"}') == proposal.ChangeSet("x")
    assert read_change_set(b'\xef\xbb\xbf{"source_digest": "x"}') == schema.ChangeSet("x")


@pytest.mark.parametrize(
    ("update", "error"),
    [
        ({"op": "nope"}, "ledger_updates[0]: input tag 'nope' found using 'op' does not match"),
        ({}, "ledger_updates[0]: unable to extract tag using discriminator 'op'"),
        (3, "ledger_updates[0]: input should be an object"),
        ({"op": "note", "text": "x", "txt": 1}, "ledger_updates[0].txt: unknown key"),
        ({"op": "note"}, "ledger_updates[0].text: is missing"),
        ({"op": "note", "text": " \n"}, "ledger_updates[0].text: is blank"),
        ({"op": "note", "text": ""}, "ledger_updates[0].text: string should have at least 1 character"),
        ({"op": "note", "text": "x" * 4001}, "ledger_updates[0].text: string should have at most 4000 characters"),
        ({"op": "note", "text": 1}, "ledger_updates[0].text: input should be a valid string"),
        ({"op": "task_add", "title": "t", "accept": ["a", 2]}, "ledger_updates[0].accept[1]: input should be"),
        ({"op": "task_add", "title": "t", "accept": ["a"] * 51}, "ledger_updates[0].accept: "),
        ({"op": "task_set", "task": "T-1"}, "ledger_updates[0]: sets nothing; name a field besides op and task"),
        ({"op": "todo", "task": "T-1"}, "ledger_updates[0]: changes nothing; name what to add, what is done, or what"),
        ({"op": "todo", "task": "T-1", "done": [""]}, "ledger_updates[0].done[0]: string should have at least 1"),
        ({"op": "task_set", "task": "T-1", "status": "finished"}, "ledger_updates[0].status: input should be"),
        (
            {"op": "complete", "task": "T-1", "text": "x", "evidence": {}},
            "ledger_updates[0].evidence: is exactly one of command, commit, path",
        ),
        (
            {"op": "complete", "task": "T-1", "text": "x", "evidence": {"command": "x"}},
            "ledger_updates[0].evidence: has an exit status with a command, and only there",
        ),
        (
            {"op": "complete", "task": "T-1", "text": "x", "evidence": {"command": "x", "exit": True}},
            "ledger_updates[0].evidence.exit: input should be a valid integer",
        ),
    ],
)
def test_an_update_that_does_not_fit_is_named_by_its_path(update: object, error: str):
    (found,) = errors(change_set(update))
    assert found.startswith(error)


def test_every_error_is_named_at_once():
    found = errors(change_set({"op": "note"}, {"op": "decide", "title": ""}, next_action=5, extra=1))
    assert [error.partition(":")[0] for error in found] == [
        "ledger_updates[0].text",
        "ledger_updates[1].title",
        "ledger_updates[1].why",
        "next_action",
        "extra",
    ]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "the document is not JSON"),
        (b"{", "the document is not JSON"),
        (b"\xff", "the document is not JSON"),
        (b"[]", "input should be an object"),
        (b"[" * 100_000, "the document is nested too deep"),
        (b"{}", "source_digest: is missing"),
        (b'{"source_digest": "a", "source_digest": "b"}', "source_digest: stands twice in one object"),
        (rb'{"source_digest": "\ud800"}', "invalid JSON"),
        (b'{"source_digest": "x", "next_action": ' + b"9" * 5000 + b"}", "invalid JSON: number out of range"),
        (b'{"source_digest": NaN}', "source_digest: input should be a valid string"),
        (change_set(*[{"op": "note", "text": "x"}] * 201), "ledger_updates: "),
    ],
)
def test_a_document_that_is_no_change_set_is_refused(data: bytes, error: str):
    (found,) = errors(data)
    assert found.startswith(error)


@given(JSON)
def test_no_document_raises_anything_but_bad_data(value: object):
    for data in (json.dumps(value).encode(), change_set(value), change_set({"op": "task_set", "x": value}, value)):
        with pytest.raises(BadData):
            read_change_set(data)


# ── schemas ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("name", schema.SCHEMAS)
def test_every_schema_is_json_with_a_name(name: str):
    found = json_schema(name)
    assert json.loads(json.dumps(found)) == found
    assert found["$id"] == f"urn:gitledger:{name}:1"
    assert found["type"] == "object"


def test_the_schemas_hold_the_bounds_and_refuse_unknown_keys():
    found = json_schema("changeset")
    assert found["additionalProperties"] is False
    assert found["required"] == ["source_digest"]
    assert found["properties"]["ledger_updates"]["maxItems"] == 200
    assert len(found["properties"]["ledger_updates"]["items"]["oneOf"]) == 11
    assert found["$defs"]["Note"]["properties"]["text"] == {
        "maxLength": 4000, "minLength": 1, "pattern": "\\S", "title": "Text", "type": "string",
    }  # fmt: skip
    capture = json_schema("config")["$defs"]["Capture"]
    assert capture["additionalProperties"] is False
    assert capture["properties"]["limit"]["minimum"] == 100
    assert "additionalProperties" not in json_schema("generic-payload")


def test_a_schema_that_is_not_there_names_those_that_are():
    with pytest.raises(Usage, match="changeset, config, generic-payload"):
        json_schema("nope")


def test_the_module_has_no_names_but_its_own_and_the_change_sets():
    assert schema.ChangeSet is proposal.ChangeSet
    assert schema.TaskAdd is proposal.TaskAdd
    with pytest.raises(AttributeError):
        schema.Nothing  # noqa: B018
