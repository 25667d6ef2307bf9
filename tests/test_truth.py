"""Nothing is said that is not so: of sessions, of evidence, of what is open, done and superseded, and of times."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gitledger import (
    allowance,
    authority,
    briefing,
    changeset,
    config,
    entries,
    evidence,
    handovers,
    layout,
    objects,
    tasks,
    wal,
)
from gitledger.errors import LedgerError, NotAllowed
from gitledger.ledger import Ledger
from gitledger.model import Draft, Key, Record
from gitledger.redact import redact
from gitledger.render import tree
from gitledger.tasks import Hand
from gitledger.transaction import Plan
from gitledger.view import View
from tests.ledgers import Clock, again, begin, do
from tests.process.program import works
from tests.sealed import LONG, Repo


def sound(repo: Repo) -> None:
    """See that the ledger is whole: documents, tree and signatures."""
    for words in (("fsck",), ("rebuild", "--check"), ("verify", "--full")):
        works(repo.path, *words)


def capture(book: Ledger, event: str, session: str, **said: object) -> None:
    """Log a generic event of a session as its hook does."""
    payload = json.dumps({"session_id": session, **said}).encode()
    now, folder = book.desk.mint.now_ms(), book.desk.home.wal
    wal.append(folder, "generic", event, payload, now_ms=now, rand=os.urandom(10), worktree=book.gitdir.worktree)


def started(book: Ledger, title: str, *accept: str) -> Key:
    """A task made the active one."""
    key = str(do(book, tasks.add, title, accept=accept))
    do(book, tasks.start, key)
    return key


def checkpointed(book: Ledger) -> Record:
    """The record of a checkpoint made now."""
    made = book.checkpoint()
    return book.view().need(made.key)


def ran(book: Ledger, key: Key, command: str, status: int, criterion: str = "") -> None:
    """Evidence of a run that ended with `status`, at the head as it is now."""
    piece = {"kind": "run", "command": command, "exit": status, "head": book.position().head, "dirty": 0}
    do(book, tasks.evidence, key, piece, criterion)


def document(repo: Repo, path: str) -> str:
    """A file of the ledger's tree."""
    return repo.git("show", f"ledger/main:{path}")


def section(text: str, title: str) -> str:
    """What stands below a heading that begins with `title`."""
    found = re.search(rf"^## {re.escape(title)}[^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else ""


# ── what a session did ───────────────────────────────────────────────────────────────────────
def test_commits_that_others_made_meanwhile_are_never_a_sessions_own(repo: Repo) -> None:
    book = begin(repo)
    book.checkpoint()
    session = book.start_session("generic", "s", pid=os.getpid())
    capture(book, "turn", "s", prompt="just looking", files=["README.md"])
    for n in range(30):
        repo.commit(f"somebody elses work {n}")
    made = book.end_session(session, "exit")
    assert made is not None
    record = document(repo, f"{layout.plain_stem(session)}.md")
    assert "somebody elses work" not in record
    assert "README.md" in record
    assert "somebody elses work" not in document(repo, f"{layout.plain_stem(session)}.json")
    told = document(repo, made.path)
    assert "somebody elses work 29" in section(told, "Commits since the session began, by whomever")
    assert "and 10 earlier" in told
    assert "somebody elses work 9\n" not in told


def test_a_checkpoint_on_another_branch_does_not_claim_that_branchs_history(repo: Repo) -> None:
    book = begin(repo)
    repo.git("checkout", "-q", "-b", "old")
    repo.commit("years ago on old")
    repo.git("checkout", "-q", "main")
    book.checkpoint()
    repo.git("checkout", "-q", "old")
    made = book.checkpoint()
    text = document(repo, made.path)
    assert "by whomever" in text.split("years ago on old")[0].rpartition("## ")[2]


# ── evidence ─────────────────────────────────────────────────────────────────────────────────
def verified_lines(book: Ledger) -> str:
    return "\n".join(briefing.gather(book).verified)


def test_a_run_that_failed_later_is_nowhere_called_verified(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "tests pass")
    ran(book, key, "make test", 0, "c1")
    assert "`make test` exited 0" in verified_lines(book)
    ran(book, key, "make test", 2, "c1")
    assert verified_lines(book) == ""
    made = book.checkpoint()
    fields = {name: value for name, (value, _) in book.view().need(made.key).fields.items()}
    assert [row["met"] for row in fields["criteria"]] == [False]
    assert [row["state"] for row in fields["evidence"]] == ["overtaken", "failed"]
    state = section(document(repo, "tasks/00xx/T-0001-task/STATE.md"), "Verified state")
    assert "exited 0" not in state
    with pytest.raises(NotAllowed, match=r"c1 \(failed\)"):
        do(book, tasks.done, key)
    assert "verified" not in re.sub(r"Nothing is verified|signature verified", "", briefing.briefing(book))


def test_a_run_without_a_criterion_is_overtaken_by_the_same_command(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "tests pass")
    ran(book, key, "make test", 0)
    ran(book, key, "make lint", 0)
    ran(book, key, "make test", 1)
    assert "make test" not in verified_lines(book)
    assert "`make lint` exited 0" in verified_lines(book)


def test_a_run_says_which_code_it_ran_on(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    head = repo.head()
    ran(book, key, "make test", 0)
    assert "`make test` exited 0, at this head" in verified_lines(book)
    repo.commit("more", {"NOTES.md": "prose"})
    assert f"`make test` exited 0, at another head, {head[:12]}, of the same content" in verified_lines(book)
    repo.write({"dirty.txt": "x"})
    do(book, tasks.evidence, key, evidence.run(book.gitdir, "true", book.look()))
    assert "`true` exited 0, at this head, in a dirty tree" in verified_lines(book)


def test_a_file_that_changed_since_proves_nothing(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "is documented")
    repo.write({"doc.md": "one"})
    os.chdir(repo.path)
    do(book, tasks.evidence, key, evidence.path(book.gitdir, "doc.md"), "c1")
    assert [row["met"] for row in checkpointed(book).get("criteria")] == [True]
    repo.write({"doc.md": "two"})
    told = checkpointed(book)
    assert [(row["met"], row["proof"][:6]) for row in told.get("criteria")] == [(False, "doc.md")]
    assert [row["state"] for row in told.get("evidence")] == ["STALE"]
    assert "0 of 1 acceptance criteria met." in told.get("state")
    facts = briefing.gather(book)
    assert facts.verified == ()
    assert facts.stale == ("doc.md has changed since",)
    assert facts.task is not None
    assert [c.state for c in facts.task.criteria] == ["STALE"]
    stale = book.stale(book.view().need(key))
    with pytest.raises(NotAllowed, match=r"c1 \(STALE: doc.md has changed since\)"):
        do(book, tasks.done, key, stale=stale)
    data = {"source_digest": book.tip(), "ledger_updates": [{"op": "task_set", "task": "T-0001", "status": "done"}]}
    with pytest.raises(LedgerError, match="STALE"):
        changeset.checkpoint(book, json.dumps({**CHANGES, **data}).encode(), "test")


CHANGES = {"handoff_summary": "done", "active_task": None, "next_action": None}


def test_a_fresh_look_at_a_file_for_one_criterion_does_not_prove_another(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "first", "second")
    os.chdir(repo.path)
    repo.write({"doc.md": "one"})
    do(book, tasks.evidence, key, evidence.path(book.gitdir, "doc.md"), "c1")
    repo.write({"doc.md": "two"})
    do(book, tasks.evidence, key, evidence.path(book.gitdir, "doc.md"), "c2")
    told = checkpointed(book)
    assert [row["met"] for row in told.get("criteria")] == [False, True]


def test_a_criterion_that_is_dropped_and_asked_again_needs_new_evidence(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "tests pass")
    ran(book, key, "make test", 0, "c1")
    do(book, tasks.edit, key, fields={}, drop=("c1",), accept=("tests pass on every platform",))
    told = checkpointed(book)
    assert [(row["text"], row["met"]) for row in told.get("criteria")] == [("tests pass on every platform", False)]


def test_a_claim_never_shows_as_verified(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "works")
    do(book, tasks.evidence, key, {"kind": "claim", "text": "it works"}, "c1", "wrote it")
    made = book.checkpoint()
    assert "UNVERIFIED" in section(document(repo, made.path), "Evidence")
    assert "- [ ] works" in section(document(repo, made.path), "Acceptance criteria")
    assert verified_lines(book) == ""
    assert "UNVERIFIED" in section(document(repo, "tasks/00xx/T-0001-task/STATE.md"), "Completed")


# ── done, open, superseded ───────────────────────────────────────────────────────────────────
def test_a_task_done_without_proof_says_so_and_no_longer_once_it_is_proven(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task", "works")
    do(book, tasks.done, key, "the machine is gone")
    book.checkpoint()
    text = document(repo, "tasks/00xx/T-0001-task/TASK.md")
    assert "the machine is gone" in text
    assert "- [ ] works" in text
    do(book, tasks.start, key)
    told = checkpointed(book)
    assert not [line for line in told.get("state") if "unproven" in line]
    ran(book, key, "make test", 0, "c1")
    do(book, tasks.done, key)
    book.checkpoint()
    text = document(repo, "tasks/00xx/T-0001-task/TASK.md")
    assert "the machine is gone" not in text
    assert "- [x] works" in text


def test_the_done_set_only_grows_over_many_compactions(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    session = book.start_session("generic", "s", pid=os.getpid())
    done: list[str] = []
    for n in range(26):
        do(book, tasks.edit, key, fields={}, completed=(f"step {n}",))
        made = book.before_compaction(session)
        fields = {name: value for name, (value, _) in book.view().need(made.key).fields.items()}
        left = fields["left_out"].get("completed", 0)
        done.append(f"step {n}")
        assert fields["completed"] == done[left:]
        assert left + len(fields["completed"]) == n + 1
    assert "and 6 earlier" in section(document(repo, made.path), "Completed")
    state = document(repo, "tasks/00xx/T-0001-task/STATE.md")
    assert all(f"step {n} " in state for n in range(26))


def test_a_superseded_decision_is_nowhere_shown_as_standing(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    other = str(do(book, tasks.add, "Other"))
    old = do(book, entries.decide, "Use Redis", "fast", other, None)
    new = do(book, entries.decide, "Use Postgres", "simple", key, old)
    newest = do(book, entries.decide, "Use SQLite", "simpler", key, new)
    made = book.checkpoint()
    told = book.view().need(made.key)
    assert [row["title"] for row in told.get("decisions")] == ["Use SQLite"]
    assert newest is not None
    for path in ("tasks/00xx/T-0001-task/TASK.md", "tasks/00xx/T-0002-other/TASK.md"):
        for line in document(repo, path).splitlines():
            if "Redis" in line or "Postgres" in line:
                assert "superseded" in line
    index = document(repo, "DECISIONS.md")
    standing = index.partition("uperseded")[0]
    assert "SQLite" in standing
    assert "superseded" in document(repo, "decisions/00xx/D-0001.md")
    with pytest.raises(NotAllowed, match="superseded already"):
        do(book, entries.decide, "Use Redis after all", "?", key, old)


def test_a_task_keeps_its_own_old_blocker_whatever_else_is_open(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    do(book, entries.block, "The licence is missing", key)
    for n in range(25):
        do(book, entries.block, f"Something else {n}", None)
    told = checkpointed(book)
    assert told.get("task") == key
    assert told.get("blockers")[0]["text"] == "The licence is missing"
    assert told.get("left_out")["blockers"] == 6
    waiting = briefing.gather(book)
    assert waiting.waiting[0].text == "The licence is missing"
    assert waiting.waiting_total == 26


def test_a_task_whose_blocker_is_resolved_says_blocked_until_it_is_unblocked_and_names_none_open(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    blocker = do(book, entries.block, "No network", key)
    do(book, entries.resolve, blocker, "it is back")
    told = checkpointed(book)
    assert "The task is blocked." in told.get("state")
    assert told.get("blockers") == []
    do(book, tasks.unblock, key)
    told = checkpointed(book)
    assert "The task is active." in told.get("state")


def test_a_finished_task_never_comes_back_as_the_next_action(repo: Repo) -> None:
    book = begin(repo)
    key = started(book, "Task")
    do(book, tasks.set_next, key, "Finish it")
    do(book, tasks.done, key)
    session = book.start_session("generic", "s", pid=os.getpid())
    made = book.end_session(session, "exit")
    assert made is not None
    assert (made.task, made.next) == ("", "")
    assert "Finish it" not in briefing.briefing(book)


def test_an_only_active_task_is_only_one_where_there_is_no_older_one(repo: Repo) -> None:
    book = begin(repo)
    for n in range(2):
        do(book, tasks.add, f"Task {n}")
    view = book.view()
    keys = [view.resolve(name, layout.TASK, book.desk.writer.id) for name in ("T-0001", "T-0002")]

    def both(view: View, hand: Hand) -> tuple[None, Draft]:
        drafts = [tasks.move(view, hand, key, "active") for key in keys]
        return None, hand.draft("task.active", {**drafts[0].records, **drafts[1].records})

    book.record(both)
    assert tasks.active(book.view(), book.desk.writer.id, "main") is None
    do(book, tasks.move, keys[1], "planned")
    for n in range(120):
        do(book, tasks.add, f"Later {n}")
    assert tasks.active(book.view(), book.desk.writer.id, "main") == keys[0]
    assert book.view().having(layout.TASK, "planned", 3) == [f"T-0{n}@{book.desk.writer.id}" for n in (122, 121, 120)]


# ── times ────────────────────────────────────────────────────────────────────────────────────
def chosen(book: Ledger) -> tuple[str, str]:
    view, here = book.view(), book.position()
    judged, _, _, _ = handovers.selected(book, view, here, authority.assess(book.desk, book.tip()))
    assert judged is not None
    return view.name(judged.key), judged.verdict.freshness


def ended(book: Ledger, name: str) -> None:
    session = book.start_session("generic", name, pid=os.getpid())
    book.end_session(session, "exit")


def test_a_clock_that_was_in_the_future_once_hides_no_later_handover(repo: Repo) -> None:
    clock = Clock()
    book = begin(repo, clock)
    then = clock.now
    clock.forward(hours=24 * 365)
    for n in range(tree.BRANCH_HANDOVERS + 1):
        ended(book, f"from the future {n}")
    clock.now = then
    future = f"H-{tree.BRANCH_HANDOVERS + 1:06}"
    assert chosen(book) == (future, "invalid")
    clock.forward(minutes=1)
    ended(book, "after the clock was mended")
    assert chosen(book) == (f"H-{tree.BRANCH_HANDOVERS + 2:06}", "fresh")
    sound(repo)


def test_a_clock_that_goes_back_between_two_events_loses_nothing(repo: Repo) -> None:
    clock = Clock()
    book = begin(repo, clock)
    key = started(book, "Task")
    do(book, tasks.set_next, key, "first")
    clock.now -= 3_600_000
    do(book, tasks.set_next, key, "second, by an earlier clock")
    capture(book, "turn", "s", prompt="earlier still")
    assert book.view().need(key).get("next") == "second, by an earlier clock"
    book.checkpoint()
    assert again(repo, clock).view().need(key).get("next") == "second, by an earlier clock"
    sound(repo)


def test_two_events_of_one_millisecond_keep_their_order(repo: Repo) -> None:
    book = begin(repo)
    frozen = Clock()
    still = again(repo)
    now = frozen.now
    object.__setattr__(still.desk.mint, "now_ms", lambda: now)
    key = str(do(still, tasks.add, "Task"))
    for n in range(20):
        do(still, tasks.set_next, key, f"step {n}")
    assert again(repo).view().need(key).get("next") == "step 19"
    still.checkpoint()
    assert book.view().need(key).get("next") == "step 19"
    for n in range(3):
        ended(still, f"s{n}")
    assert book.view().name(f"H-000003@{book.desk.writer.id}") == "H-000003"
    assert chosen(still)[0] == "H-000003"


# ── capture.text ─────────────────────────────────────────────────────────────────────────────
SECRET = "the persons own words 7261"


def objects_with(repo: Repo, text: str) -> list[str]:
    """The objects of the whole database that hold a text."""
    rows = repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
    found = []
    for row in rows:
        oid, kind = row.split()
        if kind != "tree" and text in repo.git("cat-file", kind, oid):
            found.append(oid)
    return found


@pytest.mark.parametrize("level", ["none", "bounded", "full"])
def test_what_was_said_is_kept_only_as_the_policy_says(level: str, repo: Repo) -> None:
    begin(repo)
    path = Path(config.clone_path(str(repo.path / ".git")))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"capture:\n  text: {level}\n  limit: 100\n")
    book = again(repo)
    session = book.start_session("generic", "s", pid=os.getpid())
    long = SECRET + " " + "word " * 100 + "the very end"
    capture(book, "prompt", "s", prompt=long)
    capture(book, "turn", "s", prompt=long, answer=long, commands=[{"command": "x", "exit": 0, "output": long}])
    for payload in (f'{{"prompt": "{long}"', f'["{long}"]', f'{{"prompt": ["{long}"]}}', f"\xff{long}"):
        now, folder = book.desk.mint.now_ms(), book.desk.home.wal
        wal.append(folder, "generic", "turn", payload.encode("latin-1"), now_ms=now, rand=os.urandom(10))
        wal.append(folder, "stranger", "turn", payload.encode("latin-1"), now_ms=now, rand=os.urandom(10))
    made = again(repo).end_session(session, "exit")
    assert made is not None
    assert bool(objects_with(repo, SECRET)) == (level != "none")
    assert bool(objects_with(repo, "the very end")) == (level == "full")
    last = again(repo).view().need(made.key).get("last_prompt")
    assert {"none": last == "", "bounded": 20 < len(last) < 200, "full": last == long}[level]


# ── the log on top ───────────────────────────────────────────────────────────────────────────
def random_step(book: Ledger, chance: random.Random, n: int) -> None:
    """One step that a person, an agent or a hook may take; a refusal is a step too."""
    view = book.view()
    known = [key for key, _ in view.walk(layout.TASK)]
    task = chance.choice(known) if known and chance.random() < 0.8 else None
    blockers = [key for key, _ in view.walk(layout.BLOCKER)]
    decisions = [key for key, _ in view.walk(layout.DECISION)]
    steps: list[Callable[[], object]] = [
        lambda: do(
            book, tasks.add, f"Task {n}", accept=("one", "two")[: chance.randrange(3)], area=chance.choice("ab")
        ),
        lambda: do(book, tasks.start, str(task)),
        lambda: do(book, tasks.set_next, str(task), f"next {n} " + "é\u202e*_`" * chance.randrange(3)),
        lambda: ran(book, str(task), chance.choice(("make", "test")), chance.randrange(2), "c1"),
        lambda: do(book, tasks.done, str(task), chance.choice(("", "because"))),
        lambda: do(book, tasks.move, str(task), chance.choice(list(tasks.LEGAL))),
        lambda: do(book, tasks.edit, str(task), fields={"title": f"Renamed {n}"}, completed=(f"work {n}",)),
        lambda: do(book, entries.decide, f"Decision {n}", "why", task, chance.choice([*decisions, None])),
        lambda: do(book, entries.block, f"Blocker {n}", task),
        lambda: do(book, entries.resolve, chance.choice(blockers), "how"),
        lambda: do(book, entries.ask, f"Question {n}", task),
        lambda: do(book, entries.note, f"Note {n}", task),
        lambda: do(book, entries.artifact, f"https://example.org/{n}", "there", "", task),
        lambda: book.start_session("generic", f"s{chance.randrange(3)}", pid=os.getpid()),
        lambda: capture(book, chance.choice(("turn", "prompt", "tool")), f"s{chance.randrange(3)}", prompt=f"p{n}"),
        lambda: capture(book, "turn", f"s{chance.randrange(3)}", files=[f"f{n}"], errors=["broke"]),
    ]
    try:
        chance.choice(steps)()
    except (LedgerError, IndexError, AttributeError):
        pass


@pytest.mark.parametrize("seed", range(int(os.environ.get("SEEDS", "4" if LONG else "2"))))
def test_what_is_read_with_the_log_on_top_is_what_the_next_commit_holds(seed: int, repo: Repo) -> None:
    chance = random.Random(seed)
    clock = Clock()
    book = begin(repo, clock)
    for n in range(60):
        random_step(book, chance, n)
        if chance.random() > 0.1:
            continue
        before = tree.changes(book.view())
        if not book.pending:
            continue
        book.commit(lambda view: Plan("checkpoint", (), redact("What the log holds")))
        tip, get = book.tip(), book.desk.store.get
        for path, data in before.items():
            if path != layout.MANIFEST:  # that one counts the commit's own segment
                assert objects.read(get, tip, path) == data, path
        kind = chance.randrange(3)
        if kind == 0:
            book.checkpoint()
        elif kind == 1:
            book.end_session(layout.session_key("generic", f"s{chance.randrange(3)}"), "exit")
    book.checkpoint()
    sound(repo)


# ── across a compaction ──────────────────────────────────────────────────────────────────────
def test_after_a_compaction_goal_task_next_action_and_last_result_are_all_there(repo: Repo) -> None:
    begin(repo)
    works(repo.path, "task", "add", "Sync", "--goal", "Two laptops agree", "--accept", "no record is lost")
    works(repo.path, "task", "start", "T-0001", "--next", "Retry the push three times")
    for event in ("start", "turn"):
        works(repo.path, "hook", "generic", event, stdin={"session_id": "s", "prompt": "go on", "answer": "half way"})
    works(repo.path, "task", "evidence", "--run", "true", "--criterion", "c1")
    pointer = works(repo.path, "hook", "generic", "compact", stdin={"session_id": "s"})
    assert "Next action: Retry the push three times" in pointer
    told = works(repo.path, "hook", "generic", "start", stdin={"session_id": "s", "source": "compact"})
    for words in ("Two laptops agree", "T-0001", "Sync", "Retry the push three times", "`true` exited 0, at this head"):
        assert words in told
    assert again(repo).view().need(layout.session_key("generic", "s")).get("state") == "open"


def test_what_happened_with_no_task_at_all_is_written_down_all_the_same(repo: Repo) -> None:
    begin(repo)
    works(repo.path, "hook", "generic", "start", stdin={"session_id": "s"})
    works(repo.path, "hook", "generic", "turn", stdin={"session_id": "s", "prompt": "just asking", "answer": "42"})
    works(repo.path, "hook", "generic", "end", stdin={"session_id": "s", "reason": "exit"})
    told = document(repo, "handovers/0000xx/H-000001.md")
    assert "just asking" in section(told, "Last request")
    assert "42" in section(told, "Last answer")


def test_a_checkpoint_after_a_compaction_without_one_says_so_for_good(repo: Repo) -> None:
    book = begin(repo)
    allowance.grant(book.gitdir, "main", "the key is at home")
    assert allowance.use(book.gitdir, "main", "no key")
    assert "CHECKPOINT MISSING" in briefing.briefing(again(repo))
    first = again(repo).checkpoint()
    assert "the key is at home" in document(repo, first.path).partition("CHECKPOINT MISSING")[2]
    assert "CHECKPOINT MISSING" not in briefing.briefing(again(repo))
    second = again(repo).checkpoint()
    assert "CHECKPOINT MISSING" not in document(repo, second.path)
