"""Steps of tasks: what is legal, and what a refusal says."""

from __future__ import annotations

import re

import pytest

from gitledger import entries, layout, proof, relations, splitting, tasks, todo
from gitledger.errors import BadData, NotAllowed
from gitledger.mint import Mint
from gitledger.model import Change, Key, Position
from gitledger.render import task as rendered
from gitledger.render.briefing import briefing
from gitledger.render.facts import ActiveTask, Briefing
from gitledger.render.status import status
from gitledger.view import DEPENDS, View
from tests.ledgers import START, again, begin, do
from tests.sealed import Repo
from tests.test_hostile_commands import run, write
from tests.test_tree import A, B, Clone, genesis


def test_only_a_blocked_task_is_unblocked_and_it_is_active_only_where_it_was(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    with pytest.raises(NotAllowed, match="is planned, not blocked"):
        do(book, tasks.unblock, one)
    do(book, tasks.start, one)
    do(book, entries.block, "no network", one)
    do(book, entries.block, "no licence", two)
    do(book, tasks.unblock, one)
    do(book, tasks.unblock, two)
    view = again(repo).view()
    assert [view.need(str(k)).get("status") for k in (one, two)] == ["active", "planned"]


def test_a_discovered_task_never_displaces_the_active_one(repo: Repo) -> None:
    book = begin(repo)
    one = do(book, tasks.add, "One")
    do(book, tasks.start, one)
    do(book, tasks.add, "Found on the way", status="discovered")
    assert tasks.active(book.view(), book.desk.writer.id, "main") == one


def test_a_task_that_becomes_blocked_is_still_the_one_at_hand(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    do(book, tasks.start, one)
    do(book, entries.block, "no network", None)
    do(book, entries.block, "no licence", one)
    assert book.checkpoint().task == "T-0001"
    do(book, tasks.start, two)
    view = book.view()
    assert view.need(str(one)).get("status") == "blocked"  # set aside, it still waits for the licence
    assert tasks.active(view, book.desk.writer.id, "main") == two


def test_starting_another_task_plans_the_first_again_and_keeps_its_next_action(repo: Repo) -> None:
    book = begin(repo)
    one, two = do(book, tasks.add, "One"), do(book, tasks.add, "Two")
    do(book, tasks.start, one)
    do(book, tasks.set_next, one, "Half way")
    do(book, tasks.start, two)
    view = book.view()
    assert tasks.active(view, book.desk.writer.id, "main") == two
    assert (view.need(str(one)).get("status"), view.need(str(one)).get("next")) == ("planned", "Half way")


@pytest.mark.parametrize(("status", "to"), [("discovered", "done"), ("planned", "done"), ("dropped", "active")])
def test_an_illegal_step_names_what_is_legal(status: str, to: str, repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", status="discovered" if status == "discovered" else "planned")
    if status == "dropped":
        do(book, tasks.move, key, "dropped")
    with pytest.raises(NotAllowed, match="legal from here: " + ", ".join(tasks.LEGAL[status])):
        do(book, tasks.move, key, to)


def test_done_needs_evidence_for_every_criterion_or_a_reason_that_stays(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", accept=("works", "is documented"))
    do(book, tasks.start, key)
    do(book, tasks.evidence, key, {"kind": "run", "command": "true", "exit": 0}, "c1")
    do(book, tasks.evidence, key, {"kind": "claim", "text": "I wrote it"}, "c2")
    with pytest.raises(NotAllowed, match=r"c2 \(UNVERIFIED\)"):
        do(book, tasks.done, key)
    do(book, tasks.done, key, "the documents come with the release")
    record = book.view().need(str(key))
    assert (record.get("status"), record.get("accept_unproven")) == ("done", "the documents come with the release")


def test_a_later_failing_run_takes_the_proof_back(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", accept=("works",))
    do(book, tasks.start, key)
    do(book, tasks.evidence, key, {"kind": "run", "command": "make test", "exit": 0}, "c1")
    do(book, tasks.evidence, key, {"kind": "run", "command": "make test", "exit": 1}, "c1")
    with pytest.raises(NotAllowed, match=r"c1 \(failed\)"):
        do(book, tasks.done, key)


def test_a_task_that_is_started_again_is_not_done_any_more(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One")
    do(book, tasks.start, key)
    do(book, tasks.done, key)
    do(book, tasks.start, key)
    record = book.view().need(str(key))
    assert (record.get("status"), record.get("done_at")) == ("active", None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" ", "empty"),
        ("x" * 10_000_000, "10,000,000 characters"),
        ("a\nb", "U\\+000A"),
        ("a\0", "U\\+0000"),
    ],
)
def test_a_title_that_is_none_is_refused_with_what_is_wrong(text: str, says: str, repo: Repo) -> None:
    book = begin(repo)
    with pytest.raises(BadData, match=says):
        do(book, tasks.add, text)
    assert book.view().manifest.numbers.get("T") is None


# ── which waits for which ────────────────────────────────────────────────────────────────────
def test_a_ring_of_dependencies_or_parts_is_refused_with_the_way_it_would_go(repo: Repo) -> None:
    book = begin(repo)
    one = do(book, tasks.add, "One")
    two = do(book, tasks.add, "Two", depends=(one,))
    three = do(book, tasks.add, "Three", depends=(two,), parent=two)
    with pytest.raises(NotAllowed, match="T-0003 → T-0002 → T-0001; take that out first: gitledger task edit T-0003 "):
        do(book, tasks.edit, one, fields={}, depends=(three,))
    with pytest.raises(NotAllowed, match="T-0002 cannot be a part of T-0003, which is a part of it already"):
        do(book, tasks.edit, two, fields={}, parent=three)
    for refused in ({"depends": (one,)}, {"parent": one}):
        with pytest.raises(NotAllowed, match="itself"):
            do(book, tasks.edit, one, fields={}, **refused)
    do(book, tasks.edit, three, fields={}, undepend=(two,), parent="")
    do(book, tasks.edit, one, fields={}, depends=(three,), parent=three)
    assert again(repo).view().need(str(one)).get("parent") == three


def test_what_a_task_does_not_depend_on_is_not_taken_out_and_twenty_are_enough(repo: Repo) -> None:
    book = begin(repo)
    keys = [do(book, tasks.add, f"Task {n}") for n in range(DEPENDS + 2)]
    with pytest.raises(BadData, match="T-0001 does not depend on T-0002"):
        do(book, tasks.edit, keys[0], fields={}, undepend=(keys[1],))
    do(book, tasks.edit, keys[0], fields={}, depends=tuple(keys[1 : DEPENDS + 1]))
    with pytest.raises(NotAllowed, match=f"at most {DEPENDS}"):
        do(book, tasks.edit, keys[0], fields={}, depends=(keys[-1],))
    do(book, tasks.edit, keys[0], fields={}, depends=(keys[-1],), undepend=(keys[1],))


def test_a_task_waits_for_open_ones_only_and_starting_it_says_so(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    one, two, three = (do(book, tasks.add, name) for name in ("One", "Two", "Three"))
    do(book, tasks.edit, three, fields={}, depends=(one, two))
    do(book, tasks.move, two, "dropped")
    assert relations.waits_for(book.view(), str(three)) == [one]
    monkeypatch.chdir(repo.path)
    said = run("task", "start", "T-0003").out
    assert said == "T-0003 is active; it depends on T-0001 (planned), not done yet\n"
    for words in ("status", "briefing"):
        assert "T-0001 (planned)" in run(words).out
    assert "(waits for T-0001)" in run("task", "list").out
    do(book, tasks.start, one)
    do(book, tasks.done, one)
    assert run("task", "start", "T-0003").out == "T-0003 is active\n"


def test_finishing_a_task_names_its_parts_that_are_open(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    whole = do(book, tasks.add, "Whole")
    parts = [do(book, tasks.add, f"Part {n}", parent=whole) for n in range(8)]
    do(book, tasks.move, parts[0], "dropped")
    do(book, tasks.start, parts[1])
    do(book, tasks.start, whole)
    monkeypatch.chdir(repo.path)
    said = run("task", "done", "T-0001", "--accept-unproven", "for this test").out.splitlines()
    assert said[0] == "T-0001 is done"
    assert said[1] == (
        "Parts of T-0001 are open: T-0003 (planned), T-0004 (planned), T-0005 (planned), T-0006 (planned), "
        "T-0007 (planned) and 2 more"
    )
    assert run("task", "start", "T-0004").status == 0
    assert "Parts" not in run("task", "done", "T-0004", "--accept-unproven", "for this test").out


def halves() -> tuple[Clone, list[Key]]:
    """Two machines that each make one half of a ring, of dependencies and of parts, and then meet."""
    me, other = genesis()
    keys = []
    for n in range(3):
        keys.append(me.new(layout.TASK))
        fields = {"title": f"Task {n}", "slug": "", "status": "planned", "at": me.at(), "by": A}
        me.say({keys[-1]: Change(fields)})
    me.say({keys[0]: Change({}, {"depends": {keys[1]: {"live": True}}}), keys[1]: Change({"parent": keys[2]})})
    other.hear(me.events[:-1])
    other.say({keys[1]: Change({}, {"depends": {keys[0]: {"live": True}}}), keys[2]: Change({"parent": keys[1]})})
    me.hear(other.events)
    other.hear(me.events)
    assert me.files == other.files
    return me, keys


def test_a_ring_that_a_merge_made_is_a_finding_in_every_list_and_no_endless_walk() -> None:
    me, keys = halves()
    view = View(me.files.get)
    assert [view.name(key) for key in relations.way(view, keys[0], keys[0], "depends")] == [
        "T-0001",
        "T-0002",
        "T-0001",
    ]
    found = relations.rings(view, keys)
    assert [(fault.where, fault.mend) for fault in found] == [
        ("T-0001", "gitledger task edit T-0001 --undepend T-0002"),
        ("T-0002", "gitledger task edit T-0002 --parent -"),
    ]
    assert relations.ring(view, keys[2]) is not None
    text = me.files["INDEX.md"].decode()
    assert "these wait for each other: T-0001 → T-0002 → T-0001" in text
    assert "T0001_aaaaaa --> T0002_aaaaaa" in text
    assert "T0002_aaaaaa --> T0001_aaaaaa" in text
    assert B not in text


def test_a_ring_shows_to_whoever_is_at_it_and_is_ended_by_the_command_that_it_names(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = begin(repo)
    one, two = str(do(book, tasks.add, "One")), str(do(book, tasks.add, "Two"))
    do(book, tasks.start, one)
    rings = {one: Change({"parent": two}, {"depends": {two: {"live": True}}})}
    write(book, "task.edited", {**rings, two: Change({"parent": one}, {"depends": {one: {"live": True}}})})
    monkeypatch.chdir(repo.path)
    drawn = "T-0001 → T-0002 → T-0001"
    assert run("task", "list").err.endswith(
        "to end it: gitledger task edit T-0001 --undepend T-0002; and 1 more such\n"
    )
    for words in (("status",), ("briefing",)):
        assert drawn in run(*words).out
    assert any(drawn in one for one in run("task", "show", "--json", terminal=False).json()["findings"])
    for _ in range(2):
        fault = relations.ring(again(repo).view(), one)
        assert fault is not None
        run(*fault.mend.split()[1:])
    assert relations.ring(again(repo).view(), one) is None


# ── to-dos ───────────────────────────────────────────────────────────────────────────────────
def test_a_todo_that_is_done_never_comes_back(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", todos=("Write it", "Test it"))
    assert tasks.next_action(book.view().need(str(key))) == "Do the first open to-do: Write it"
    do(book, tasks.set_todos, key, done=("t1",), new=("Describe it",))
    do(book, tasks.set_todos, key, drop=("2",))
    for refused in ({"done": ("t1",)}, {"drop": ("t1",)}, {"done": ("t2",)}, {"new": (" write IT",)}):
        with pytest.raises(NotAllowed, match="already"):
            do(book, tasks.set_todos, key, **refused)
    with pytest.raises(NotAllowed, match="named twice"):
        do(book, tasks.set_todos, key, done=("t3",), drop=("t3",))
    with pytest.raises(BadData, match="there are: t1, t2, t3"):
        do(book, tasks.set_todos, key, done=("t9",))
    record = again(repo).view().need(str(key))
    assert [(one.name, one.state) for one in todo.todos(record)] == [("t1", "done"), ("t2", "dropped"), ("t3", "open")]
    do(book, tasks.set_todos, key, new=("Test it",))  # what was dropped may be wanted after all
    do(book, tasks.start, key)
    do(book, tasks.done, key)
    with pytest.raises(NotAllowed, match="start it again first"):
        do(book, tasks.set_todos, key, new=("More",))


def test_a_todo_that_one_machine_did_and_another_dropped_is_done_on_both() -> None:
    me, other = genesis()
    key = me.new(layout.TASK)
    fields = {"title": "One", "slug": "", "status": "planned", "at": me.at()}
    me.say({key: Change(fields, {"todos": {"t1@aaaaaa": {"text": "Write it", "at": me.at()}}})})
    other.hear(me.events)
    other.say({key: Change({}, {"todos": {"t1@aaaaaa": {"dropped": True}}})})
    me.say({key: Change({}, {"todos": {"t1@aaaaaa": {"done_at": me.at()}, "t2@aaaaaa": {"text": "And this"}}})})
    other.say({key: Change({}, {"todos": {"t2@bbbbbb": {"text": "And that"}}})})
    me.hear(other.events)
    other.hear(me.events)
    assert me.files == other.files
    text = me.files["tasks/00xx/T-0001/TODO.md"].decode()
    assert "- [x] Write it" in text
    assert re.findall(r"- \[ \] (\S+) ", text) == ["t2@aaaaaa", "t2@bbbbbb"]


def test_todos_are_in_each_document_and_in_what_a_session_is_given(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "One", todos=("Write it", "Test it"))
    do(book, tasks.start, key)
    monkeypatch.chdir(repo.path)
    assert run("task", "todo", "--done", "t1").out == "T-0001 t1 done\n"
    assert run("task", "todo").out == "t2   Test it\n"
    assert run("task", "todo", "T-0001", "Describe it").out == "T-0001 t3 added\n"
    name = book.checkpoint().name
    run("handover", "write")
    for words in (("status",), ("briefing",), ("show", name), ("get", "T-0001"), ("handover", "show")):
        said = run(*words).out
        assert "t2 " in said, words
        assert "Write it" not in said or "[x] Write it" in said, words
    assert "1 of 3 to-dos done." in run("show", name).out
    assert "left undone: t2, t3" in run("task", "done").out


def test_todos_by_strangers_are_counted_and_not_quoted() -> None:
    facts = Briefing(Position("main", "1" * 40), task=ActiveTask("T-0001", "One", todos_total=2))
    assert "To do:\n- 2 not shown: gitledger task todo T-0001\n" in briefing(facts)
    assert "To do       and 2 more\n" in status(facts)


# ── cut in two ───────────────────────────────────────────────────────────────────────────────
def cut(book, key, text, **chosen):  # type: ignore[no-untyped-def]
    """`splitting.split` as a command does it."""

    def build(view, hand):  # type: ignore[no-untyped-def]
        made = splitting.split(view, hand, key, text, **chosen)
        return made, made.draft

    return book.record(build)


def test_a_split_carries_criteria_todos_and_own_evidence_over_and_each_says_where_the_other_is(repo: Repo) -> None:
    book = begin(repo)
    above = do(book, tasks.add, "Shop")
    key = do(
        book,
        tasks.add,
        "Cart",
        accept=("sums", "discounts"),
        todos=("a", "b"),
        area="web",
        parent=above,
        depends=(above,),
    )
    do(book, tasks.start, key)
    do(book, tasks.evidence, key, {"kind": "run", "command": "true", "exit": 0}, "c2")
    before = book.view().manifest.lamport
    made = cut(book, key, "Discounts", criteria=("c2",), todos=("t2",))
    assert book.view().manifest.lamport == before + 1  # one event
    view = book.view()
    old, new = view.need(str(key)), view.need(made.key)
    assert [(c.text, c.state) for c in proof.criteria(new)] == [("discounts", "verified")]
    assert [c.text for c in proof.criteria(old)] == ["sums"]
    assert len(old.listed("evidence")) == 1
    assert [one.text for one in todo.still_open(new)] == ["b"]
    assert [(one.text, one.state) for one in todo.todos(old)] == [("a", "open"), ("b", "moved")]
    assert (new.get("status"), new.get("area"), new.get("parent")) == ("planned", "web", above)
    assert tasks.active(view, book.desk.writer.id, "main") == key
    book.checkpoint()
    files = {name: run("-C", str(repo.path), "get", name).out for name in ("T-0002", "T-0003")}
    assert "**Split from:** [T-0002](../T-0002-cart/TASK.md)" in files["T-0003"]
    assert files["T-0002"].count("moved to [T-0003](../T-0003-discounts/TASK.md)") == 2
    assert "## Split off\n\n- [T-0003]" in files["T-0002"]


def test_two_machines_that_split_the_same_off_end_in_the_same_tree_and_nothing_is_lost() -> None:
    me, other = genesis()
    key = me.new(layout.TASK)
    fields = {"title": "Cart", "slug": "", "status": "active", "at": me.at(), "by": A}
    me.say({key: Change(fields, {"criteria": {"c1@aaaaaa": {"text": "sums"}}, "todos": {"t1@aaaaaa": {"text": "a"}}})})
    other.hear(me.events)
    for one, text in ((me, "Sums"), (other, "Totals")):
        hand = tasks.Hand(Mint(lambda: START, lambda n: bytes(n)), one.writer)
        made = splitting.split(View(one.files.get), hand, key, text, criteria=("c1",), todos=("t1",))
        one.say(made.draft.records, made.draft.type)
    me.hear(other.events)
    other.hear(me.events)
    assert me.files == other.files
    names = [path for path in me.files if path.startswith("tasks/00xx/T-0002") and path.endswith("TASK.md")]
    assert len(names) == 2
    for name in names:
        assert "**Split from:** [T-0001]" in me.files[name].decode()
        assert "sums" in me.files[name].decode()
    text = me.files["tasks/00xx/T-0001/TASK.md"].decode()
    assert text.count("- [T-0002") == 2  # links to both
    assert text.count("moved to [T-0002") == 2  # each once, to the later of the two
    assert "[ ]" not in text


def test_only_what_is_open_is_split_off(repo: Repo) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "Cart", accept=("sums", "discounts"), todos=("a", "b"))
    do(book, tasks.set_todos, key, done=("t1",))
    do(book, tasks.edit, key, fields={}, drop=("c1",))
    for chosen, says in (
        ({}, "nothing to carry over"),
        ({"criteria": ("c1",)}, "c1 is dropped"),
        ({"todos": ("t1",)}, "t1 is closed"),
        ({"todos": ("t7",)}, "there are: t1, t2"),
    ):
        with pytest.raises((BadData, NotAllowed), match=says):
            cut(book, key, "Discounts", **chosen)
    do(book, tasks.move, key, "dropped")
    with pytest.raises(NotAllowed, match="only an open task is split"):
        cut(book, key, "Discounts", todos=("t2",))
    assert book.view().manifest.numbers["T"] == 1


def test_another_writers_evidence_stays_and_a_strangers_words_are_not_made_ours(repo: Repo) -> None:
    book = begin(repo)
    key = str(do(book, tasks.add, "Cart", accept=("sums", "discounts")))
    me, other = genesis()
    view, hand = book.view(), book.hand()
    record = view.need(key)
    from gitledger.fold import apply
    from gitledger.model import Stamp

    piece = {"kind": "run", "command": "rm -rf .", "exit": 0, "criterion": f"c2@{hand.writer}"}
    theirs = Change({}, {"evidence": {"e1@bbbbbb": piece}, "criteria": {"c3@bbbbbb": {"text": "theirs"}}})
    view._records[key] = apply(record, key, theirs, Stamp(99, other.writer, 1))
    assert me.writer != other.writer
    made = splitting.split(view, hand, key, "Discounts", criteria=("c2",))
    assert made.left == 1
    assert "evidence" not in made.draft.records[made.key].items
    with pytest.raises(NotAllowed, match="by writer bbbbbb, which is not trusted here"):
        splitting.split(view, hand, key, "Discounts", criteria=("c3",), believed=lambda writer: writer == hand.writer)
    assert splitting.split(view, hand, key, "Discounts", criteria=("c3",)).key


def test_a_task_whose_state_outgrew_its_budget_says_so_until_it_is_split(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = begin(repo)
    key = do(book, tasks.add, "Cart", accept=("sums", "discounts"))
    do(book, tasks.start, key)
    assert splitting.wanted(book.view(), str(key)) is None
    do(book, tasks.edit, key, fields={}, completed=tuple(f"Step {n}" for n in range(rendered.STATE_LINES)))
    fault = splitting.wanted(book.view(), str(key))
    assert fault is not None
    assert re.search(r"has \d+ lines and [\d,]+ characters, over its 80 and 8,000", fault.what)
    monkeypatch.chdir(repo.path)
    for words in ("status", "briefing", "task show", "get T-0001"):
        assert "wants splitting" in run(*words.split()).out, words
    assert run("task", "split", "--title", "Discounts", "--criterion", "c2").out == "T-0002\n"
    assert splitting.wanted(again(repo).view(), str(key)) is None
    for words in ("status", "briefing", "task show"):
        assert "wants splitting" not in run(*words.split()).out, words
    state = run("get", "tasks/00xx/T-0001-cart/STATE.md")
    assert state.status != 0 or "before it was split" in state.out
    book.checkpoint()
    assert f"*and {rendered.STATE_LINES} before it was split" in run("get", "tasks/00xx/T-0001-cart/STATE.md").out


def test_long_entries_outgrow_a_state_as_many_do() -> None:
    me, _ = genesis()
    key = me.new(layout.TASK)
    works = {f"d{n}@aaaaaa": {"text": f"{n} " + "x" * 195, "at": me.at()} for n in range(45)}
    me.say({key: Change({"title": "One", "status": "active", "at": me.at()}, {"completed": works})})
    assert "wants splitting" in me.files["tasks/00xx/T-0001/STATE.md"].decode()
    me.say({key: Change({"status": "done"})})
    assert "wants splitting" not in me.files["tasks/00xx/T-0001/STATE.md"].decode()


# ── lists ────────────────────────────────────────────────────────────────────────────────────
def test_a_list_is_cut_down_by_status_area_part_and_words(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    book = begin(repo)
    shop = do(book, tasks.add, "The shop", area="web")
    do(book, tasks.add, "Cart of the shop", area="Web", parent=shop)
    do(book, tasks.add, "Letters", area="mail", parent=shop, status="discovered")
    monkeypatch.chdir(repo.path)

    def ids(*words: str) -> list[str]:
        return re.findall(r"^T-\d+", run("task", "list", *words).out, re.MULTILINE)

    assert ids() == ["T-0001", "T-0002", "T-0003"]
    assert ids("--area", "WEB") == ["T-0001", "T-0002"]
    assert ids("--parent", "T-0001") == ["T-0002", "T-0003"]
    assert ids("--text", "SHOP", "--parent", "T-0001") == ["T-0002"]
    assert ids("--status", "discovered") == ["T-0003"]
    assert "No such tasks" in run("task", "list", "--area", "nowhere").out
    rows = run("task", "list", "--json", "--text", "cart", terminal=False).json()
    assert [(row["id"], row["area"], row["parent"], row["waits_for"]) for row in rows] == [
        ("T-0002", "Web", "T-0001", [])
    ]
