"""The codec's quick ways say what its plain ways say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gitledger import codec
from gitledger.errors import BadData
from gitledger.model import Change, Event, Field, Record, Stamp

EVENT = Event(1, "0-1", "aaaaaa", 3, 7, "2026-01-01T00:00:00Z", "note.added", None, "T-1", {}, {"é": ['"\n\x7f']}, "ab")
VALUES: tuple[object, ...] = (
    {},
    [],
    {"a": [], "b": {}},
    {"b": [1, -2, True, None, ["é\\\x00\u2028"]], "a": {"c": {"": "x"}}},
    "",
    0,
    [[]],
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_indented_text_is_what_the_standard_library_makes(value: object) -> None:
    assert codec.pretty(value) == (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()


@pytest.mark.parametrize("value", [1.5, {"a": [1.0]}, {1: 2}, {"a": {2: 3}}, {"a": object()}, {"a": "\ud800"}])
def test_what_is_no_canonical_json_is_no_indented_text(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        codec.pretty(value)


def test_a_record_s_bytes_are_its_indented_value() -> None:
    fields: dict[str, Field] = {"b": ([{"x": 1}], Stamp(4, "w", 2)), "a": ("é", Stamp(9, "v", 1))}
    record = Record("T-0001@w", fields, {"links": {"j": fields, "i": {}}, "done": {}})
    plain = {name: [value, [stamp.lamport, stamp.writer, stamp.seq]] for name, (value, stamp) in fields.items()}
    value = {"key": record.key, "fields": plain, "items": {"links": {"j": plain, "i": {}}, "done": {}}}
    assert codec.record_bytes(record) == codec.pretty(value)
    assert codec.record_bytes(Record("T-0001@w")) == codec.pretty({"key": "T-0001@w", "fields": {}, "items": {}})
    assert codec.read_record(codec.record_bytes(record), "it") == record


def test_a_line_is_read_alike_and_told_from_the_canonical_one() -> None:
    records = {"N-0001@aaaaaa": Change({"title": "é"}, {"links": {"i": {"why": "w"}}}), "S-1": Change({"x": 1})}
    event = replace(EVENT, records=records)
    line = codec.event_line(event)
    assert codec.read_line(line, "it") == (event, True)
    others = (
        line.replace(b'"v":1', b'"v": 1'),
        line.replace("é".encode(), b"\\u00e9"),
        b" " + line,
        line[:-1],
        line[:-1] + b" \n",
        b"{" + line[line.index(b'"data"') : -2] + b"," + line[1 : line.index(b',"data"')] + b"}\n",
    )
    for other in others:
        assert codec.read_line(other, "it") == (codec.read_event(other, "it"), False), other
    bad = (
        line.replace(b'"v":1', b'"v":1,"v":1'),
        line.replace(b'"seq":3', b'"seq":3.0'),
        line.replace("é".encode(), b"\\ud800"),
        line.replace(b'["\\"', b"[" * 70 + b"]" * 69 + b',"\\"'),
        line + line,
        b"[" * 100_000,
        b"",
    )
    for other in bad:
        with pytest.raises(BadData):
            codec.read_line(other, "it")
