"""What a change set may do to a memory file: each rule from both sides, and random files and change sets."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gitledger import blocks, memorycheck, schema
from gitledger.blocks import split, structure
from gitledger.errors import BadData
from gitledger.memorycheck import Edit, check, edited
from gitledger.memoryfile import digest
from gitledger.schema import BadChangeSet

FILE = """\
---
name: memory
---
# Memory

## Facts

### Servers
- staging is at 10.0.0.3
- staging moved to 10.0.0.9 in March
- prod is at 10.0.0.4 [permanent]
  - and has a child
- the backup runs at 03:00
  and is kept a week
  - on tape

### Old plan
We meant to rewrite it all
in another language.

- step one

## Notes
- the user likes tabs
- the build number of today is 55

```sh
# not a heading
make
```

<!-- a comment
of two lines -->

Nothing else is known of this project, and this line is here so that half of the file is more than a few lines.
"""
USER = "# User\n\n- likes tabs, not spaces\n- port 8080\n"


def propose(*changes: dict[str, Any], text: str = FILE, sha256: str = "") -> tuple[Edit, ...]:
    """The edits of these changes; BadChangeSet with every refusal."""
    data = text.encode()
    document = {"source_sha256": sha256 or digest(data), "changes": list(changes)}
    read = schema.read_memory_set(json.dumps(document).encode())
    return check(
        split(data, "MEMORY.md"), digest(data), read, "MEMORY.md", {"USER.md": split(USER.encode(), "USER.md")}
    )


def change(kind: str, *original: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "original": list(original), "reason": "a reason", **more}


def after(*changes: dict[str, Any], text: str = FILE) -> str:
    return edited(split(text.encode(), ""), propose(*changes, text=text)).data().decode()


MOVED = "- staging moved to 10.0.0.9 in March"
PLAN = "### Old plan\nWe meant to rewrite it all\nin another language."
HELD = {"file": "USER.md", "line": 3}
MERGE = {"replacement": "- staging is at 10.0.0.9"}

ACCEPTED = {
    "nothing": ([], FILE),
    "a line": ([change("superseded", "- staging is at 10.0.0.3")], FILE.replace("- staging is at 10.0.0.3\n", "")),
    "an item with its children": (
        [change("ephemeral", "- the backup runs at 03:00\n  and is kept a week\n  - on tape")],
        FILE.replace("- the backup runs at 03:00\n  and is kept a week\n  - on tape\n", ""),
    ),
    "a replacement": (
        [change("detail", "- the build number of today is 55", replacement="- the build is 55")],
        FILE.replace("the build number of today is 55", "the build is 55"),
    ),
    "a merge": (
        [change("merge", "- staging is at 10.0.0.3", "- staging moved to 10.0.0.9 in March", **MERGE)],
        FILE.replace("- staging is at 10.0.0.3\n- staging moved to 10.0.0.9 in March\n", "- staging is at 10.0.0.9\n"),
    ),
    "a section": (
        [change("stale-section", "### Old plan\nWe meant to rewrite it all\nin another language.\n\n- step one\n")],
        FILE.replace("### Old plan\nWe meant to rewrite it all\nin another language.\n\n- step one\n\n", ""),
    ),
    "a section without the blank line behind it": (
        [change("stale-section", "### Old plan\nWe meant to rewrite it all\nin another language.\n\n- step one")],
        FILE.replace("### Old plan\nWe meant to rewrite it all\nin another language.\n\n- step one\n", ""),
    ),
    "a duplicate": (
        [change("duplicate", "- the user likes tabs", held_at=HELD)],
        FILE.replace("- the user likes tabs\n", ""),
    ),
    "a comment": (
        [change("ephemeral", "<!-- a comment\nof two lines -->")],
        FILE.replace("<!-- a comment\nof two lines -->\n", ""),
    ),
    "a line of code": ([change("detail", "make")], FILE.replace("make\n", "")),
    "several": (
        [change("superseded", "- staging is at 10.0.0.3"), change("ephemeral", "- the build number of today is 55")],
        FILE.replace("- staging is at 10.0.0.3\n", "").replace("- the build number of today is 55\n", ""),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_rules_allow_is_made_and_changes_nothing_else(name: str) -> None:
    changes, wanted = ACCEPTED[name]
    assert after(*changes) == wanted


REFUSED = {
    "not in the file": (
        [change("detail", "- staging is at 10.0.0.33")],
        "changes[0].original[0]: is not in the file character for character; line 9 is",
    ),
    "other white space": ([change("detail", "- staging is at  10.0.0.3")], "character for character"),
    "half a line": ([change("detail", "staging is at 10.0.0.3")], "character for character"),
    "a carriage return": (
        [change("detail", "- staging is at 10.0.0.3\r\n- x")],
        "changes[0].original[0]: holds a carriage return",
    ),
    "twice in a set": (
        [change("detail", "make"), change("ephemeral", "make")],
        "changes[1]: overlaps changes[0] at line 29",
    ),
    "overlapping": (
        [change("detail", f"- staging is at 10.0.0.3\n{MOVED}", MOVED)],
        "overlaps",
    ),
    "a permanent item": (
        [change("superseded", "- prod is at 10.0.0.4 [permanent]\n  - and has a child")],
        "holds line 11, which is [permanent]",
    ),
    "its child": ([change("superseded", "  - and has a child")], "[permanent]"),
    "around a permanent item": (
        [change("stale-section", FILE[FILE.index("### Servers") : FILE.index("### Old") - 1])],
        "[permanent]",
    ),
    "the front matter": ([change("detail", "name: memory")], "which is the front matter"),
    "no reason": ([{**change("detail", "make"), "reason": " "}], "changes[0].reason: is blank"),
    "a long reason": (
        [{**change("detail", "make"), "reason": "x" * 201}],
        "changes[0].reason: string should have at most 200",
    ),
    "a reason of two lines": ([{**change("detail", "make"), "reason": "a\nb"}], "not one line"),
    "another kind": ([change("boring", "make")], "changes[0].kind: "),
    "an unknown key": ([{**change("detail", "make"), "line": 3}], "changes[0].line: unknown key"),
    "no block": ([change("detail")], "changes[0].original: "),
    "a blank block": ([change("detail", " ")], "changes[0].original[0]: is blank"),
    "a merge without replacement": ([change("merge", "make")], "has no replacement"),
    "a merge of two subsections": (
        [change("merge", "- staging is at 10.0.0.3", "- step one", replacement="- one")],
        "changes[0]: is a merge, and does not stay within one ### subsection",
    ),
    "a merge outside of any subsection": (
        [change("merge", "- the user likes tabs", replacement="- tabs")],
        "### subsection",
    ),
    "a merge of a heading": ([change("merge", "### Servers", replacement="- s")], "is a merge, and takes the heading"),
    "a merge that is no shorter": (
        [change("merge", "- staging is at 10.0.0.3", replacement="- staging is at: 10.0.0.3")],
        "changes[0].replacement: is not shorter",
    ),
    "a replacement that invents a number": (
        [change("detail", "- the build number of today is 55", replacement="- build 56")],
        "says 56, which stands in none of the blocks",
    ),
    "a replacement that makes a heading": (
        [change("detail", "- the user likes tabs", replacement="## tabs")],
        "makes a heading",
    ),
    "a replacement that hides": (
        [change("detail", "- the user likes tabs", replacement="<!-- tabs -->")],
        "makes a comment or HTML block",
    ),
    "a replacement that opens a fence": (
        [change("detail", "- the user likes tabs", replacement="```")],
        "without it line",
    ),
    "a replacement nobody can see": ([change("detail", "- the user likes tabs", replacement="- ta\u202ebs")], "U+202E"),
    "a replacement that is blank": ([change("detail", "- the user likes tabs", replacement=" ")], "blank"),
    "a replacement that is permanent": (
        [change("detail", "- the user likes tabs", replacement="- [permanent]")],
        "only a person may write",
    ),
    "a replacement of the wrong kind": ([change("ephemeral", "make", replacement="m")], "which has no replacement"),
    "a part of a section": ([change("stale-section", PLAN)], "and not line 21 of its section"),
    "a section and more": (
        [change("stale-section", f"{PLAN}\n\n- step one\n\n## Notes\n- the user likes tabs")],
        "changes[0]: ",
    ),
    "a section of two blocks": (
        [change("stale-section", PLAN, "- step one")],
        "is not one block that begins with the section's heading",
    ),
    "no section": ([change("stale-section", "- step one")], "begins with the section's heading"),
    "a heading alone": ([change("ephemeral", "### Old plan")], "takes the heading at line 17 away, and not line 18"),
    "half a paragraph": (
        [change("detail", "in another language.")],
        "takes a part of the paragraph at line 18, and not line 18",
    ),
    "half an item": ([change("detail", "- the backup runs at 03:00")], "takes a part of the"),
    "an item without its children": (
        [change("detail", "- the backup runs at 03:00\n  and is kept a week")],
        "takes a part of the list item at line 13, and not line 15",
    ),
    "a fence's first line": ([change("detail", "```sh")], "without it line"),
    "a comment's first line": ([change("detail", "<!-- a comment")], "without it line"),
    "a duplicate without a place": ([change("duplicate", "- the user likes tabs")], "has held_at"),
    "a place without a duplicate": ([change("detail", "- the user likes tabs", held_at=HELD)], "has held_at"),
    "a duplicate in an unknown file": (
        [change("duplicate", "- the user likes tabs", held_at={"file": "X.md", "line": 3})],
        "changes[0].held_at.file: names no file",
    ),
    "a duplicate of an empty line": (
        [change("duplicate", "- the user likes tabs", held_at={"file": "USER.md", "line": 2})],
        "changes[0].held_at.line: names no text",
    ),
    "a duplicate beyond the file": (
        [change("duplicate", "- the user likes tabs", held_at={"file": "USER.md", "line": 99})],
        "names no text",
    ),
    "a duplicate of another fact": (
        [change("duplicate", "- step one", held_at=HELD)],
        "does not hold the same fact: they share 0 of 2 words",
    ),
    "a duplicate with another number": (
        [change("duplicate", "- the build number of today is 55", held_at={"file": "USER.md", "line": 4})],
        "it lacks 55",
    ),
    "a duplicate of itself": (
        [change("duplicate", "- the user likes tabs", held_at={"file": "MEMORY.md", "line": 24})],
        "which goes as well",
    ),
    "a duplicate of what goes too": (
        [
            change("duplicate", "- the user likes tabs", held_at={"file": "MEMORY.md", "line": 9}),
            change("detail", "- staging is at 10.0.0.3"),
        ],
        "which goes as well",
    ),
    "another file": ([], "source_sha256: is not that of MEMORY.md as it is now"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_rules_forbid_is_refused_with_its_place(name: str) -> None:
    changes, words = REFUSED[name]
    with pytest.raises(BadChangeSet) as caught:
        propose(*changes, sha256="0" * 64 if name == "another file" else "")
    assert any(words in error for error in caught.value.errors), caught.value.errors


def test_a_block_that_stands_twice_is_refused_until_a_neighbour_tells_it_apart() -> None:
    text = "## A\n- same\n- one\n\n## B\n- same\n- two\n- three, which is long enough to be more than a half\n"
    with pytest.raises(BadChangeSet, match="stands in the file 2 times, at lines 2, 6; add a line"):
        propose(change("detail", "- same"), text=text)
    assert after(change("detail", "- same\n- two"), text=text) == text.replace("- same\n- two\n", "")


def test_of_a_block_that_stands_very_often_no_more_places_are_looked_for_than_are_of_use() -> None:
    text = "- same\n" * 3_000
    with pytest.raises(BadChangeSet, match="stands in the file 100 times and more, at lines 1, 2, 3, 4, 5; add"):
        propose(change("detail", *["\n".join(["- same"] * 900)] * 3), text=text)


def test_at_most_half_of_the_file_goes() -> None:
    text = "- aaaa\n- bbbb\n- cccc\n- dddd\n"
    assert after(change("detail", "- aaaa\n- bbbb"), text=text) == "- cccc\n- dddd\n"
    with pytest.raises(BadChangeSet, match="at most half of the file may go"):
        propose(change("detail", "- aaaa\n- bbbb\n- cccc"), text=text)


CHINESE = """\
# 记忆

### 服务器
- 端口8080上的服务每晚重启
- 端口8080上的服务每晚三点重启,版本2.1
- 端口9090上的服务每晚重启
- 用户喜欢简短的回答,所有的说明都写在这里,这样一半以上的文件会留下来,不会被删除。
- 테스트 서버는 8080에서 실행됩니다
- 테스트 서버는 “8080” 포트에서 실행됩니다
- เซิร์ฟเวอร์อยู่ที่พอร์ต8080ครับ
"""


def test_a_number_is_found_in_a_script_without_spaces_between_words() -> None:
    pair = CHINESE.splitlines()[3:5]
    merged = "- 端口 8080 的服务每晚三点重启(2.1)"
    assert merged in after(change("merge", *pair, replacement=merged), text=CHINESE)
    place = {"file": "MEMORY.md", "line": 5}
    assert pair[0] not in after(change("duplicate", pair[0], held_at=place), text=CHINESE).splitlines()
    korean = "- 테스트 서버는 8080에서 실행됩니다"
    assert korean not in after(change("duplicate", korean, held_at={**place, "line": 9}), text=CHINESE)
    thai = CHINESE.splitlines()[9]
    assert "- พอร์ต8080\n" in after(change("detail", thai, replacement="- พอร์ต8080"), text=CHINESE)
    for one, words in (
        (change("merge", *pair, replacement="- 端口8081的服务每晚重启"), "says 8081, which stands in none"),
        (change("detail", thai, replacement="- พอร์ต8081"), "says 8081"),
        (change("duplicate", "- 端口9090上的服务每晚重启", held_at=place), "it lacks 9090"),
    ):
        with pytest.raises(BadChangeSet, match=words):
            propose(one, text=CHINESE)


def test_a_long_line_is_read_once_and_not_from_each_of_its_characters_anew() -> None:
    # Half an hour, if it were.
    assert memorycheck._exact("=" * 400_000 + " 8080 " + "字" * 100_000) == {"8080": "8080"}


def test_a_reason_may_have_the_spaces_of_its_language() -> None:
    found = propose({**change("detail", "make"), "reason": "d\u00e9pass\u00e9\u202f: vieux\u3000\u00a0x"})
    assert found[0].reason == "dépassé : vieux x"


def test_every_refusal_is_listed_not_only_the_first() -> None:
    changes = [REFUSED[name][0][0] for name in ("not in the file", "a permanent item", "a heading alone")]
    with pytest.raises(BadChangeSet) as caught:
        propose(*changes)
    assert [error.partition(":")[0].partition(".")[0] for error in caught.value.errors] == [
        f"changes[{n}]" for n in range(3)
    ]


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("a\r\n\r\nb\r\n\r\nc c c c\r\n", "b", "a\r\n\r\n\r\nc c c c\r\n"),
        ("\ufeffa a a a\n\nb", "b", "\ufeffa a a a\n\n"),
        ("a a a a\n\n\tb\n", "\tb", "a a a a\n\n"),
        ("a a a a\r\rb\r", "b", "a a a a\r\r"),
        ("ж и д a a a\n\n日本\n", "日本", "ж и д a a a\n\n"),
        ("a a a\x0b a\u2028a\n\nb\n", "b", "a a a\x0b a\u2028a\n\n"),
    ],
)  # fmt: skip
def test_line_ends_marks_tabs_and_letters_stay_as_they_are(text: str, gone: str, left: str) -> None:
    assert after(change("detail", gone), text=text) == left


def test_a_replacement_has_the_line_ends_of_its_place() -> None:
    head = "# A\r\n\r\nA text that is as long as all the rest, so that less than half of the file goes here.\r\n\r\n"
    text = f"{head}### S\r\n- one two three\r\n- four five six\r\n- the rest of it"
    made = after(change("merge", "- one two three", "- four five six", replacement="- one two\n- four"), text=text)
    assert made == f"{head}### S\r\n- one two\r\n- four\r\n- the rest of it"
    assert after(change("detail", "- the rest of it", replacement="- rest"), text=text).endswith("six\r\n- rest")


def test_what_is_no_text_is_no_memory_file() -> None:
    with pytest.raises(BadData, match="not UTF-8 text"):
        split(b"a\xff", "MEMORY.md")


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("## A [permanent]\nx\n### B\ny\n\n## C\nz\n", [(0, 5)]),
        ("A [PERMANENT]\n===\nx\n\nB\n---\n", [(0, 6)]),
        ("- a\n  - b [permanent]\n    - c\n  - d\n", [(1, 3)]),
        ("one\ntwo [permanent]\n\nthree\n", [(0, 2)]),
        ("```\n[permanent]\n```\nx\n", [(0, 3)]),
        ("---\na: [b]\n---\nx\n", [(0, 3)]),
        ("---\nno front matter\n", []),
    ],
)
def test_what_is_permanent_is_held_with_all_that_belongs_to_it(text: str, held: list[tuple[int, int]]) -> None:
    assert list(structure(split(text.encode(), "")).permanent) == held


# ── any file, any change set ─────────────────────────────────────────────────────────────────
rows = st.sampled_from(
    [
        "",
        "",
        "- a fact",
        "- b",
        "  - nested",
        "    deeper",
        "# One",
        "## Two",
        "### Three",
        "text of a paragraph",
        "more",
        "```",
        "~~~ py",
        "<!--",
        "-->",
        "| a | b |",
        "|---|---|",
        "1. one",
        "> quoted",
        "---",
        "===",
        "\ttab",
        "[permanent]",
        "- x [permanent]",
        "\ufeff",
        "日本語 の 事実",
        "é",
        "* * *",
        "[ref]: /u",
        "   ",
        "- ",
        "+ plus",
        "\x00",
        "\\",
        "port 8080",
        "- same",
        "- same",
        "~~~",
        "    code",
        "lazy",
        "> - q [permanent]",
        "   2. two",
        "<details>",
        "[^1]: a note",
        "[long]:",
        "\x0c",
        "x\u2028- y",
        "cafe\u0301",
    ]
)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


@st.composite
def files(draw: st.DrawFn) -> str:
    lines = draw(st.lists(rows | st.text(max_size=6), min_size=1, max_size=25))
    end = draw(ends)
    text = draw(st.sampled_from(["", "", "\ufeff", f"---{end}k: v{end}---{end}"])) + "".join(
        line + draw(st.sampled_from([end, end, end, "\n", "\r\n"])) for line in lines
    )
    text = text.encode("utf-8", "ignore").decode()
    return text.rstrip("\r\n") if draw(st.booleans()) else text


@st.composite
def sets(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    text = draw(files())
    lines = split(text.encode(), "").lines
    made = []
    for _ in range(draw(st.integers(1, 4))):
        blocks_ = []
        for _ in range(draw(st.integers(1, 2))):
            low = draw(st.integers(0, max(len(lines) - 1, 0)))
            high = draw(st.integers(low + 1, min(low + 4, len(lines)))) if lines else 0
            blocks_.append("\n".join(line.rstrip("\r\n") for line in lines[low:high]))
        kind = draw(st.sampled_from(["superseded", "detail", "duplicate", "ephemeral", "stale-section", "merge"]))
        more: dict[str, Any] = {}
        if kind == "duplicate":
            more["held_at"] = {"file": "MEMORY.md", "line": draw(st.integers(1, len(lines) + 2))}
        if kind == "merge" or (kind == "detail" and draw(st.booleans())):
            more["replacement"] = draw(rows | st.just("- a\n- b"))
        made.append(change(kind, *blocks_, **more))
    return text, made


@st.composite
def gentle(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A file with room in it, and change sets of single lines: most of these are accepted."""
    end = draw(ends)
    body = draw(
        st.lists(rows.filter(lambda row: row not in ("```", "~~~ py", "<!--", "\x00")), min_size=4, max_size=20)
    )
    numbered = [f"{row} {n}" if row.strip() else row for n, row in enumerate(body)]
    text = end.join(
        ["# Head", "", "A paragraph of some length, so that what goes is less than half of it all.", "", *numbered]
    )
    lines = [row for row in numbered if row.strip() and "[permanent]" not in row]
    made = (
        [
            change(draw(st.sampled_from(["superseded", "ephemeral", "detail"])), line)
            for line in draw(st.lists(st.sampled_from(lines), min_size=1, max_size=2, unique=True))
        ]
        if lines
        else []
    )
    for one in made:
        if one["kind"] == "detail" and draw(st.booleans()):
            one["replacement"] = one["original"][0][:3] + "x"
    return text, made


@given(gentle() | sets())
def test_what_is_accepted_changes_the_named_bytes_alone_and_what_is_refused_none(
    made: tuple[str, list[dict[str, Any]]],
) -> None:
    text, changes = made
    source = split(text.encode(), "")
    assert source.data().decode() == text
    try:
        edits = propose(*changes, text=text)
    except BadChangeSet:
        return
    whole = edited(source, edits)
    # What was kept and what went are the file, and the blocks are those that were named.
    gone = {n for edit in edits for n in range(*edit.span)}
    named = [block for one in changes for block in one["original"]]
    shown = ["\n".join(source.bare(n) for n in range(*edit.span)) for edit in edits]
    assert sorted(shown) == sorted(named)
    kept = [line for n, line in enumerate(source.lines) if n not in gone]
    spans = {edit.first: edit for edit in edits}
    rebuilt, expected = [], [source.mark]
    for n, line in enumerate(source.lines):
        if n in spans and spans[n].put:
            expected.append(spans[n].put)
        expected += [line] if n not in gone else []
        rebuilt.append(line)
    assert whole.data().decode() == "".join(expected)
    assert len(kept) + len(gone) == len(rebuilt)
    assert not any("[permanent]" in source.lines[n].lower() for n in gone)
    assert sum(len(source.lines[n].encode()) for n in gone) * 2 <= len(text.encode())
    # And Markdown reads every line that stayed as it read it before.
    old, new = structure(source), structure(split(whole.data(), ""))
    puts = set(_put_lines(source, edits))
    assert [new.roles[k] for k in range(len(new.roles)) if k not in puts] == [
        old.roles[n] for n in range(len(old.roles)) if n not in gone
    ]


def _put_lines(source: blocks.Lines, edits: tuple[Edit, ...]) -> list[int]:
    found, at, k = [], 0, 0
    for edit in edits:
        k += edit.first - at
        count = len(split(edit.put.encode(), "").lines)
        found += range(k, k + count)
        k, at = k + count, edit.first + edit.lines
    return found


@given(files())
@example("\x0c\n")
@example("- a\n\u2028\n\u00a0\n")
def test_every_line_of_any_file_is_something(text: str) -> None:
    lines = split(text.encode(), "")
    shape = structure(lines)
    assert len(shape.roles) == len(lines.lines)
    assert all(0 <= low < high <= len(lines.lines) for low, high in (*shape.permanent, *shape.items, *shape.blocks))


def test_the_yardstick_of_memory_files_finds_nothing_wrong_and_errs_in_every_way_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from benchmarks.memory import SHAPES, run, written

    assert all(200 <= len(split(written(shape).text.encode(), "").lines) <= 2_000 for shape in SHAPES)
    real = memorycheck._Trial.refuse
    lines: set[int] = set()

    def refuse(self: Any, where: str, what: str) -> None:
        lines.add(sys._getframe(1).f_lineno)
        real(self, where, what)

    monkeypatch.setattr(memorycheck._Trial, "refuse", refuse)
    said: list[str] = []
    assert run(said.append, SHAPES[2:4], real=False) == 0, said
    page = (Path(__file__).parent.parent / "docs/memory.md").read_text()
    files = [row for row in said if row.startswith(tuple(f"| {shape.name} |" for shape in SHAPES))]
    assert [row.rsplit("|", 2)[0] in page for row in files] == [True, True], "run: python -m benchmarks.memory"
    kinds = [row.split(" | ")[0] for row in said if row not in files and row.startswith("| ")]
    assert len(kinds) > 50
    assert [kind for kind in kinds if f"\n{kind} | " not in page] == [], "run: python -m benchmarks.memory"
    source = Path(memorycheck.__file__).read_text()
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    refusals = [node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "refuse"]
    missed = [one for one in refusals if lines.isdisjoint(range(one.lineno, (one.end_lineno or 0) + 1))]
    # No file of that size is nothing but blank lines for its half.
    assert [ast.get_source_segment(source, one) for one in missed] == [
        'self.refuse("changes", "leave nothing of the file")'
    ]
    with pytest.raises(BadChangeSet, match="changes: leave nothing of the file"):
        propose(change("detail", "- x"), text="\n\n\n- x\n\n\n\n")
