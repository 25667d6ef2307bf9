"""What is put into somebody's settings and taken out again leaves every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import splice
from gitledger.errors import BadData

OURS = ": gitledger "
ADD = {
    "version": 1,
    "hooks": {
        "Start": [{"hooks": [{"type": "command", "command": f"{OURS}start", "timeout": 5}]}],
        "Stop": [{"hooks": [{"type": "command", "command": f"{OURS}turn"}]}],
    },
}


def ours(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("command", "")).startswith(OURS)


# ── documents as people write them ───────────────────────────────────────────────────────────
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
scalars = st.none() | st.booleans() | st.integers(-999, 999) | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)
groups = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.fixed_dictionaries({"command": words, "x": values}), max_size=2)}),
    max_size=2,
)
hooks = st.dictionaries(st.sampled_from(["Start", "Stop", "Other", "hooks"]), groups, max_size=3)
documents = st.builds(
    lambda rest, given, version: rest | given | version,
    st.dictionaries(words, values, max_size=3),
    st.just({}) | st.fixed_dictionaries({"hooks": hooks}),
    st.just({}) | st.just({"version": 3}),
)


@st.composite
def written(draw: st.DrawFn, *, comments: bool) -> tuple[str, dict[str, Any]]:
    """A document and its text in a form that nothing but a person would give it."""
    value = draw(documents)
    line = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    blanks = st.sampled_from(["", "", " ", "\t", line, line + "  ", line + line + "\t ", "  " + line])
    notes = ["/* a, } */", f"// b ]  {line}", f"//{line} /* {line} */"] if comments else [""]

    def gap() -> str:
        if comments and draw(st.integers(0, 5)) == 0:
            return draw(blanks) + draw(st.sampled_from(notes)) + draw(blanks)
        return draw(blanks)

    def put(value: Any) -> str:
        if not isinstance(value, (dict, list)):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        rows = (
            [f"{json.dumps(k)}{gap()}:{gap()}{put(v)}" for k, v in value.items()]
            if isinstance(value, dict)
            else [put(v) for v in value]
        )
        begin, end = "{}" if isinstance(value, dict) else "[]"
        body = ",".join(f"{gap()}{row}{gap()}" for row in rows) or gap()
        if comments and rows and draw(st.booleans()):
            body += "," + gap()
        return begin + body + end

    tidy = draw(st.sampled_from([None, None, 2, 4, "\t"]))
    if tidy is not None:
        return json.dumps(value, indent=tidy, ensure_ascii=False).replace("\n", line) + draw(blanks), value
    return gap() + put(value) + gap(), value


def check(text: str, value: dict[str, Any], comments: bool) -> None:
    added = splice.insert(text, ADD, comments=comments)
    assert splice.parse(added.text, comments=comments).root.plain() == splice.merged(value, ADD)
    assert splice.cut(added.text, added.spans) == text
    out = splice.remove(added.text, "hooks", ours, comments=comments, made=added.made)
    assert splice.parse(out, comments=comments).root.plain() == value
    # Where nothing was empty before, it comes out byte for byte without knowing what was put in.
    if not any("{}" in t or "[]" in t for t in [json.dumps(value)]) and ("hooks" not in value or value["hooks"]):
        assert out == text


@given(written(comments=False))
def test_what_goes_into_json_comes_out_again_byte_for_byte(case: tuple[str, dict[str, Any]]) -> None:
    check(*case, comments=False)


@given(written(comments=True))
def test_what_goes_into_json_with_comments_comes_out_again_byte_for_byte(case: tuple[str, dict[str, Any]]) -> None:
    check(*case, comments=True)


@given(written(comments=False))
def test_json_is_read_as_the_standard_library_reads_it(case: tuple[str, dict[str, Any]]) -> None:
    text, _ = case
    assert splice.parse(text, comments=False).root.plain() == json.loads(text)


@given(st.text('{}[]",:/* \n\\tru0e1.-', max_size=12))
def test_what_is_no_json_is_refused_as_the_standard_library_refuses_it(text: str) -> None:
    try:
        wanted = json.loads(text)
    except ValueError:
        with pytest.raises(BadData):
            splice.parse(text, comments=False)
    else:
        assert splice.parse(text, comments=False).root.plain() == wanted


# ── how it looks ─────────────────────────────────────────────────────────────────────────────
SMALL = {"hooks": {"Stop": [{"command": ": gitledger x"}]}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n    "a": 1\n}\n',
            '{\n    "a": 1,\n    "hooks": {\n        "Stop": [\n            {\n'
            '                "command": ": gitledger x"\n            }\n        ]\n    }\n}\n',
        ),
        ('{"a":1}', '{"a":1,"hooks":{"Stop":[{"command":": gitledger x"}]}}'),
        ('{"a": 1}', '{"a": 1, "hooks": {"Stop": [{"command": ": gitledger x"}]}}'),
        (
            "{}",
            '{\n  "hooks": {\n    "Stop": [\n      {\n        "command": ": gitledger x"\n      }\n    ]\n  }\n}',
        ),
        (
            '{\r\n\t"hooks": {"Stop": []}, // mine\r\n}\r\n',
            '{\r\n\t"hooks": {"Stop": [\r\n\t\t{'
            '\r\n\t\t\t"command": ": gitledger x"\r\n\t\t}\r\n\t]}, // mine\r\n}\r\n',
        ),
        (
            '{\n  "hooks": {\n    "Stop": [\n      {"command": "b"} // the last\n    ]\n  }\n}',
            '{\n  "hooks": {\n    "Stop": [\n      {"command": "b"}, // the last\n      {\n'
            '        "command": ": gitledger x"\n      }\n    ]\n  }\n}',
        ),
        ("", '{\n  "hooks": {\n    "Stop": [\n      {\n        "command": ": gitledger x"\n      }\n    ]\n  }\n}\n'),
    ],
)
def test_what_is_put_in_looks_like_what_is_there(before: str, after: str) -> None:
    assert splice.insert(before, SMALL, comments=True).text == after


@pytest.mark.parametrize(
    "text", ["[]", "7", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": null}', "{,}", "{'a': 1}", "{} {}"]
)
def test_a_document_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(BadData):
        splice.insert(text, SMALL, comments=True)


@pytest.mark.parametrize("text", ['{"a": 1,}', "{} // c", "/* c */ {}", "[1,]", "{/}"])
def test_comments_and_trailing_commas_are_no_json(text: str) -> None:
    with pytest.raises(BadData):
        splice.parse(text, comments=False)


def test_a_fault_is_told_by_its_line_and_column() -> None:
    with pytest.raises(BadData, match="line 2, column 8: a value is expected"):
        splice.parse('{\n  "a": oops\n}', comments=False)


def test_nesting_without_end_is_refused_and_not_a_crash() -> None:
    with pytest.raises(BadData, match="nested"):
        splice.parse("[" * 50_000, comments=False)


# ── taken out after somebody edited ──────────────────────────────────────────────────────────
def test_only_ours_goes_where_somebody_wrote_beside_it() -> None:
    before = '{\n  "model": "x",\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"command": "mine"}]}\n    ]\n  }\n}\n'
    added = splice.insert(before, ADD, comments=False)
    edited = added.text.replace('"model": "x"', '"model": "y",\n  "new": [1, 2]')
    out = splice.remove(edited, "hooks", ours, comments=False, made=added.made)
    assert out == before.replace('"model": "x"', '"model": "y",\n  "new": [1, 2]')


def test_a_hook_that_somebody_put_into_our_group_stays() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": ": gitledger a"}, {"command": "mine"}]}]}}'
    out = splice.remove(text, "hooks", ours, comments=False)
    assert out == '{"hooks": {"Stop": [{"hooks": [ {"command": "mine"}]}]}}'


def test_our_hook_that_was_given_a_matcher_goes_with_its_group() -> None:
    text = '{"a": 1, "hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": ": gitledger a"}]}], "B": []}}'
    assert splice.remove(text, "hooks", ours, comments=False) == '{"a": 1, "hooks": { "B": []}}'


def test_a_list_that_was_there_stays_though_it_is_empty() -> None:
    before = '{"hooks": {"Stop": []}}'
    added = splice.insert(before, SMALL, comments=False)
    assert splice.remove(added.text, "hooks", ours, comments=False, made=added.made) == before
    assert splice.remove(added.text, "hooks", ours, comments=False) == "{}"
