"""The map of tasks: what is drawn, what is left out and named, and that no title leaves its label."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import layout
from gitledger.model import Change, Key
from gitledger.render import graph, indexes
from gitledger.render.graph import NODES, TITLE, label
from gitledger.view import View
from tests.hostile import CORPUS
from tests.test_tree import A, Clone, genesis

ROW = re.compile(
    r'    (T\d+_[a-z0-9]+\["[^"\]\[`<>{}|;@\\*~$!&%=^?]*(#\d+;[^"\]\[`<>{}|;@\\*~$!&%=^?]*)*"\](:::[a-z]+)?'
    r"|T\d+_[a-z0-9]+ (-->|-\.-) T\d+_[a-z0-9]+"
    r"|classDef [a-z]+ [a-z0-9: -]+)"
)
"""Every line that a block may hold between its first two and its last."""


def board(*tasks: tuple[str, dict[str, object], tuple[int, ...]]) -> Clone:
    """A ledger of tasks: title, more fields, and the numbers of those that each depends on."""
    me, _ = genesis()
    for title, more, needs in tasks:
        fields = {"title": title, "slug": "", "status": "planned", "at": me.at(), "by": A, **more}
        depends = {"depends": {key(n): {"live": True, "title": ""} for n in needs}} if needs else {}
        me.say({me.new(layout.TASK): Change(fields, depends)})
    return me


def key(n: int) -> Key:
    return layout.key_of(layout.TASK, n, A)


def drawn(me: Clone) -> list[str]:
    """The lines of the block in INDEX.md, its fence left out."""
    text = me.files["INDEX.md"].decode()
    found = re.findall(r"^```mermaid\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    assert len(found) == 1
    return found[0].split("\n")


def test_a_map_joins_each_task_with_what_it_waits_for_and_is_a_part_of():
    me = board(
        ("Shop", {"status": "active"}, ()),
        ("Cart", {"parent": key(1)}, ()),
        ("Payment", {"status": "blocked"}, (2,)),
        ("Old", {"status": "done"}, ()),
        ("Alone", {}, (4,)),
    )
    assert drawn(me) == [
        "flowchart LR",
        '    T0001_aaaaaa["T-0001 Shop"]:::active',
        '    T0002_aaaaaa["T-0002 Cart"]',
        '    T0003_aaaaaa["T-0003 Payment"]:::blocked',
        "    T0002_aaaaaa --> T0003_aaaaaa",
        "    T0001_aaaaaa -.- T0002_aaaaaa",
        "    classDef active stroke-width:4px",
        "    classDef blocked stroke-dasharray:5 4",
    ]
    me.say({key(2): Change({"status": "done"})})
    assert "mermaid" not in me.files["INDEX.md"].decode()  # nobody waits any more


def test_open_tasks_stand_by_area_with_what_each_waits_for():
    me = board(
        ("Cart", {"area": "web"}, ()),
        ("Letters", {"area": "Mail", "parent": key(1)}, (1,)),
        ("Loose", {}, ()),
        ("Pay", {"area": "web", "status": "active"}, (2,)),
    )
    text = me.files["INDEX.md"].decode()
    assert re.findall(r"^\*\*(.*)\*\*$", text, re.MULTILINE) == ["Mail", "web", "No area"]
    assert (
        "- [T-0002](tasks/00xx/T-0002/TASK.md) Letters · **planned** · waits for [T-0001](tasks/00xx/T-0001/TASK.md) "
        "· part of [T-0001](tasks/00xx/T-0001/TASK.md) · 2026-11-30" in text
    )
    web = text[text.index("**web**") : text.index("**No area**")]
    assert re.findall(r"^- \[(T-\d+)\]", web, re.MULTILINE) == ["T-0004", "T-0001"]  # the active one first


def test_a_map_of_many_is_bounded_and_names_what_it_leaves_out():
    many = NODES + 12
    me = board(*((f"Task {n}", {}, (n - 1,) if n > 1 else ()) for n in range(1, many + 1)))
    rows = drawn(me)
    assert sum('["' in row for row in rows) == NODES
    text = me.files["INDEX.md"].decode()
    gone = re.search(r"^\*Not drawn: (.*)\*$", text, re.MULTILINE)
    assert gone
    shown = {row[4:9] for row in rows if '["' in row}
    left = {name.replace("-", "") for name in re.findall(r"T-\d+", gone[1].replace("/T-", "/"))}
    assert not shown & left
    # What waits for one that is in no list of open tasks is drawn with it, or named: none goes unsaid.
    listed = {name.replace("-", "") for name in re.findall(r"^- \[(T-\d+)\]", text, re.MULTILINE)}
    assert listed <= shown | left
    assert len(text) < 30_000


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
def test_no_title_leaves_its_label_its_line_or_the_block(text: str):
    text = text.encode("utf-8", "replace").decode()  # no event holds a lone surrogate
    me = board((text[:200], {"area": text[:100]}, ()), (text[-200:], {}, (1,)))
    rows = drawn(me)
    assert rows[0] == "flowchart LR"
    assert [row for row in rows[1:] if not ROW.fullmatch(row)] == []
    assert len(rows) == 4


@given(st.text(max_size=60))
def test_a_label_keeps_letters_and_digits_and_writes_the_rest_by_number(text: str):
    shown = label(text)
    assert re.fullmatch(r"(?:[\w ,.()/+-]|#\d+;|…)*", shown)
    assert "_" not in shown
    assert len(re.sub(r"#\d+;", "x", shown)) <= TITLE


def test_a_task_that_depends_on_none_that_is_here_is_drawn_alone_nowhere():
    me = board(("One", {"parent": "T-0009@bbbbbb"}, (7,)), ("Two", {"parent": "nonsense"}, (2,)))
    assert graph.graph(View(me.files.get), [key(1), key(2)]).text == ""
    assert "waits for" not in indexes.index(View(me.files.get)).decode().replace("these wait for", "")
