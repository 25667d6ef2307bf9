"""What one tip has and another lacks, held against the plain answer, whatever dates and lamports anybody claims."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import ancestry, codec, objects
from gitledger.model import Oid
from gitledger.objects import Object
from gitledger.redact import of_events
from gitledger.store import MemoryStore
from tests.sealed import LONG


class Graph:
    """Commits with their heights in the manifests of their trees."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.parents: dict[Oid, tuple[Oid, ...]] = {}
        self.height: dict[Oid, int] = {}

    def add(self, parents: tuple[Oid, ...], height: int, date: int = 0) -> Oid:
        """One more commit."""
        manifest = of_events(codec.pretty({"lamport": height}))
        tree = objects.edit(self.store.get, None, {"manifest.json": manifest})
        who = f"gitledger abcdef <abcdef@gitledger.invalid> {date} +0000"
        data = objects.format_commit(objects.Commit(tree.tree, parents, who, who, f"{len(self.parents)}\n"))
        oid = objects.oid("commit", data)
        self.store.put([*tree.objects, (oid, Object("commit", data))])
        self.parents[oid], self.height[oid] = parents, height
        return oid

    def reached(self, tip: Oid) -> set[Oid]:
        """The plain answer."""
        found: set[Oid] = set()
        pending = [tip]
        while pending:
            oid = pending.pop()
            if oid not in found:
                found.add(oid)
                pending += self.parents[oid]
        return found


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, list[Oid]]:
    graph = Graph()
    made: list[Oid] = []
    for _ in range(draw(st.integers(2, 14))):
        many = min(len(made), draw(st.sampled_from((1, 1, 1, 2))))
        parents = tuple(draw(st.permutations(made))[:many]) if made else ()
        least = max((graph.height[parent] for parent in parents), default=0)
        made.append(graph.add(parents, least + draw(st.integers(0, 2)), draw(st.integers(0, 9))))
    return graph, made


@settings(max_examples=200 if LONG else 30, deadline=None, derandomize=True)
@given(graphs(), st.data())
def test_it_is_what_one_reaches_and_the_other_does_not(made: tuple[Graph, list[Oid]], data: st.DataObject) -> None:
    graph, commits = made
    tip, known = data.draw(st.sampled_from(commits)), data.draw(st.sampled_from(commits))
    found = ancestry.beyond(graph.store.get, tip, known)
    assert set(found.new) == graph.reached(tip) - graph.reached(known)
    assert len(set(found.new)) == len(found.new)
    for n, oid in enumerate(found.new):  # parents come first
        assert not set(graph.parents[oid]) & set(found.new[n:])
    assert set(found.known) <= graph.reached(known)
    stands = {parent for oid in found.new for parent in graph.parents[oid]} - set(found.new)
    assert stands <= set(found.known) | ({known} if known in stands else set())


@pytest.mark.parametrize("claimed", [0, 5, 10**9])
def test_a_false_height_of_a_new_commit_changes_nothing(claimed: int) -> None:
    graph = Graph()
    first = graph.add((), 1)
    known = graph.add((first,), 5)
    forged = graph.add((first,), claimed)
    tip = graph.add((forged, known), 6)
    found = ancestry.beyond(graph.store.get, tip, known)
    assert set(found.new) == {forged, tip}
    assert set(found.known) == {first, known}


def test_what_is_read_follows_the_news_and_not_the_ledger() -> None:
    graph = Graph()
    tip = graph.add((), 1)
    for height in range(2, 300):
        tip = graph.add((tip,), height)
    new = graph.add((tip,), 300)
    asked: list[Oid] = []

    def get(oid: Oid) -> Object:
        asked.append(oid)
        return graph.store.get(oid)

    assert ancestry.beyond(get, new, tip).new == (new,)
    assert len(set(asked) & set(graph.parents)) <= 4


def test_all_is_new_where_nothing_is_known() -> None:
    graph = Graph()
    first = graph.add((), 1)
    second = graph.add((first,), 2)
    assert ancestry.beyond(graph.store.get, second, None).new == (first, second)
    assert ancestry.count(graph.store.get, second, None) == 2
