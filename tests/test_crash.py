"""Crashes, kills, half-done work: nothing acknowledged is lost, nothing is told twice, and there is always a way on."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitledger import allowance, discover, genesis, layout, pins, tasks, transaction, wal
from gitledger.errors import Blocked, CannotWrite, IOFailed, LedgerError, NotAllowed
from gitledger.ledger import Ledger
from tests.ledgers import again, begin, do
from tests.process.program import python, works
from tests.sealed import LONG, Repo


def journal(repo: Repo) -> list[dict[str, object]]:
    """Every event of the ledger's journal, in the order of its files."""
    names = repo.git("ls-tree", "-r", "--name-only", "ledger/main", "journal").splitlines()
    lines: list[dict[str, object]] = []
    for name in names:
        lines += [json.loads(line) for line in repo.git("show", f"ledger/main:{name}").splitlines()]
    return lines


def sound(repo: Repo) -> None:
    """See that the ledger is whole: documents, tree and signatures."""
    for words in (("fsck",), ("rebuild", "--check"), ("verify", "--full")):
        works(repo.path, *words)


def capture(book: Ledger, client: str, event: str, payload: bytes) -> str:
    """Log a payload as a client's hook does; the entry's id."""
    entry = wal.append(book.desk.home.wal, client, event, payload, now_ms=book.desk.mint.now_ms(), rand=os.urandom(10))
    return entry.id


CRASH = """
import os, sys
from gitledger import discover, transaction, wal
book = discover.open(sys.argv[1])
wal.forget = lambda *a: os._exit(9)
book.checkpoint()
"""


def crash_before_forgetting(repo: Repo) -> None:
    """Make a checkpoint in a process that dies between the commit and the forgetting of its lines."""
    done = python(repo.path, CRASH, str(repo.path))
    assert done.status == 9, done.err


# ── between commit and forgetting ────────────────────────────────────────────────────────────
@pytest.mark.process
def test_two_crashes_in_a_row_between_commit_and_forgetting_repeat_no_line(repo: Repo) -> None:
    book = begin(repo)
    do(book, tasks.add, "Before the first crash")
    crash_before_forgetting(repo)
    assert again(repo).view().manifest.numbers["T"] == 1
    do(again(repo), tasks.add, "Between the crashes")
    crash_before_forgetting(repo)
    do(again(repo), tasks.add, "After both")
    again(repo).view()
    again(repo).checkpoint()
    ids = [event["id"] for event in journal(repo)]
    assert len(ids) == len(set(ids))
    assert [e["type"] for e in journal(repo)].count("task.added") == 3
    assert wal.pending(book.desk.home.wal) == ([], [])


@pytest.mark.process
def test_a_crash_after_a_commit_of_several_parts_repeats_none_of_them(repo: Repo) -> None:
    book = begin(repo)
    for n in range(200):
        said = "".join(f"{n} {word} " for word in range(250))
        capture(book, "generic", "turn", json.dumps({"session_id": "s", "prompt": said, "answer": said[::-1]}).encode())
    crash_before_forgetting(repo)
    parts = repo.git("ls-tree", "-r", "--name-only", "ledger/main", "journal").splitlines()
    assert len(parts) > 2
    assert again(repo).view().need(layout.session_key("generic", "s")).get("turns") == 200
    assert again(repo).view().touched == {}  # nothing is pending
    do(again(repo), tasks.add, "After the crash")
    again(repo).checkpoint()
    ids = [event["id"] for event in journal(repo)]
    assert len(ids) == len(set(ids))
    sound(repo)


def test_what_cannot_be_forgotten_is_no_failed_checkpoint(repo: Repo) -> None:
    book = begin(repo)
    do(book, tasks.add, "Kept once")

    def stuck(*args: object) -> None:
        raise IOFailed("cannot forget; its entries will be read again, none twice")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wal, "forget", stuck)
        made = book.checkpoint()
        assert repo.git("rev-parse", "ledger/main") == made.commit
        assert any("none twice" in finding.what for finding in book.findings)
        tip = book.tip()
        with pytest.raises(Blocked, match="none twice"):  # a second one could repeat what the first one holds
            again(repo).checkpoint()
        assert again(repo).tip() == tip
    again(repo).checkpoint()
    assert [e["type"] for e in journal(repo)].count("task.added") == 1


def test_a_verdict_that_cannot_be_remembered_is_no_failed_checkpoint(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = begin(repo)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device", book.desk.home.pins)

    monkeypatch.setattr(pins, "save", full)
    made = book.checkpoint()
    assert repo.git("rev-parse", "ledger/main") == made.commit
    assert wal.pending(book.desk.home.wal) == ([], [])


# ── lines that cannot be what they say ───────────────────────────────────────────────────────
def big(count: int) -> bytes:
    files = [f"{'長' * 200}{n}" for n in range(count)]
    runs = [{"command": "長" * 300, "exit": 0, "output": "長" * 300} for _ in range(count)]
    text = json.dumps({"session_id": "s", "files": files, "commands": runs, "errors": files}, ensure_ascii=False)
    return text.encode()


TYPED = '{"session":null,"task":null,"records":%s,"data":{}}'


@pytest.mark.parametrize(
    ("client", "event", "payload"),
    [
        ("gitledger", "note.added", TYPED % '{"writer:../../x":{"set":{"a":1}}}'),
        ("gitledger", "note.added", TYPED % '{"../../etc/passwd":{"set":{"a":1}}}'),
        ("gitledger", "note.added", TYPED % "[]"),
        ("gitledger", "note.added", TYPED % '{"N-0001@abcdef":[]}'),
        ("gitledger", "note.added", '{"session":7,"task":[],"records":{},"data":[]}'),
        ("gitledger", "note.added", '{"v":2,"session":null,"task":null,"records":{},"data":{}}'),
        ("gitledger", "note.added", "[" * 100_000),
        ("generic", "turn", "{not json, but somebody said it}"),
        ("generic", "turn", big(1000)),
    ],
)
def test_a_line_that_cannot_be_an_event_is_kept_and_stands_in_nobodys_way(
    client: str, event: str, payload: str | bytes, repo: Repo
) -> None:
    book = begin(repo)
    data = payload.encode() if isinstance(payload, str) else payload
    ident = capture(book, client, event, data)
    do(book, tasks.add, "Still here")
    assert again(repo).view().manifest.numbers["T"] == 1
    book.checkpoint()
    found = {e["id"]: e for e in journal(repo)}
    kept = found[ident]
    assert kept["type"] == "unreadable"
    assert str(kept["data"]["text"])[:25] == data.decode()[:25]  # type: ignore[index]
    assert wal.pending(book.desk.home.wal) == ([], [])
    assert "Still here" in repo.git("show", "ledger/main:INDEX.md")


def test_a_typed_line_cannot_change_who_may_sign(repo: Repo) -> None:
    book = begin(repo)
    key = layout.writer_key(book.desk.writer.id)
    before = book.view().need(key)
    capture(book, "gitledger", "note.added", (TYPED % json.dumps({key: {"set": {"public_key": "x"}}})).encode())
    assert again(repo).view().need(key) == before


def test_a_hook_cannot_speak_as_gitledger_itself(repo: Repo) -> None:
    book = begin(repo)
    typed = TYPED % '{"T-0001@abcdef":{"set":{"title":"forged","status":"done"}}}'
    for event in ("turn", "prompt", "tool", "receipt", "task.added"):
        subprocess.run(
            [sys.executable, "-m", "gitledger", "hook", "gitledger", event],
            cwd=repo.path,
            input=typed.encode(),
            capture_output=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(discover.__file__).parent.parent)},
        )
    assert wal.pending(book.desk.home.wal) == ([], [])
    assert again(repo).view().manifest.numbers.get("T", 0) == 0


def test_a_line_of_a_newer_format_is_named_and_kept(repo: Repo) -> None:
    book = begin(repo)
    do(book, tasks.add, "Old format")
    line = b"GL2 00000000 something that only a newer gitledger reads\n"
    with open(f"{book.desk.home.wal}/current.wal", "ab") as f:
        f.write(line)
    book.view()
    assert [finding.rule for finding in book.findings] == ["wal.line"]
    book.checkpoint()
    kept = list(Path(book.desk.home.wal, "damaged").iterdir())
    assert [path.read_bytes() for path in kept] == [line]


# ── beginning ────────────────────────────────────────────────────────────────────────────────
INIT_CRASH = """
import os, sys
from gitledger import discover, genesis, pins, transaction, wal
step = sys.argv[2]
def die(*a, **k): os._exit(9)
if step == "writer": genesis._new_writer = die
if step == "wal": wal.create = die
if step == "commit": transaction.commit = die
if step == "swap":
    from gitledger.plumbing import PlumbingStore
    PlumbingStore.swap = die
if step == "forget": wal.forget = die
if step == "pins": pins.save = die
discover.init(sys.argv[1], "main", "Shop")
"""


@pytest.mark.process
@pytest.mark.parametrize("step", ["writer", "wal", "commit", "swap", "forget", "pins"])
def test_an_init_that_died_half_way_is_finished_by_the_next(step: str, repo: Repo) -> None:
    done = python(repo.path, INIT_CRASH, str(repo.path), step)
    assert done.status == 9, done.err
    begun = discover.init(str(repo.path), "main", "Shop")
    assert begun.writer == genesis.writer_id(again(repo).gitdir)
    made = again(repo).checkpoint()
    assert made.name == "C-000001"
    assert [e["type"] for e in journal(repo)].count("ledger.created") == 1
    view = again(repo).view()
    mine = pins.load(again(repo).desk.home.pins, "main")
    assert mine is not None
    assert mine.uuid == view.manifest.uuid
    assert mine.genesis == repo.git("rev-list", "--max-parents=0", "ledger/main")
    sound(repo)
    with pytest.raises(NotAllowed, match="exists here already"):
        discover.init(str(repo.path), "main", "Shop")


JOIN_CRASH = """
import os, sys
from gitledger import discover, transaction
def die(*a, **k): os._exit(9)
transaction.commit = die
discover.init(sys.argv[1], "main", "Shop")
"""


@pytest.mark.process
def test_a_join_that_died_half_way_is_finished_by_the_next(repo: Repo, tmp_path: Path) -> None:
    begin(repo)
    other = repo.clone(tmp_path / "other")
    other.git("branch", "-q", "ledger/main", "origin/ledger/main")
    done = python(other.path, JOIN_CRASH, str(other.path))
    assert done.status == 9, done.err
    begun = discover.init(str(other.path), "main", "Shop")
    assert begun.joined
    again(other).checkpoint()
    keys = other.git("ls-tree", "--name-only", "ledger/main", "keys/").split()
    assert f"keys/{begun.writer}.json" in keys
    sound(other)


def test_a_failed_init_keeps_what_a_hook_had_logged(repo: Repo) -> None:
    assert python(repo.path, INIT_CRASH, str(repo.path), "commit").status == 9
    folder = f"{repo.path}/.git/gitledger/wal/main"
    said = b'{"session_id":"s"}'
    ident = wal.append(folder, "generic", "turn", said, now_ms=1_790_000_000_000, rand=b"0123456789").id

    def broken(*args: object, **kwargs: object) -> None:
        raise LedgerError("the machine is broken")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction, "commit", broken)
        with pytest.raises(LedgerError, match="broken"):
            discover.init(str(repo.path), "main", "Shop")
    discover.init(str(repo.path), "main", "Shop")
    again(repo).checkpoint()
    assert ident in [e["id"] for e in journal(repo)]


INIT = """
import sys
import time
from gitledger import discover
from gitledger.errors import LedgerError
try:
    print(discover.init(sys.argv[1], "main", "Shop").uuid)
except LedgerError as e:
    print(f"refused: {e}")
"""


@pytest.mark.process
def test_of_inits_at_once_one_begins_the_ledger_and_the_others_are_refused(repo: Repo) -> None:
    for n in range(3 if LONG else 1):
        name = repo.path.parent / f"race{n}"
        repo.git("clone", "-q", str(repo.path), str(name))
        children = [
            subprocess.Popen([sys.executable, "-c", INIT, str(name)], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        said = [child.communicate(timeout=300)[0].strip() for child in children]
        assert sum(not words.startswith("refused") for words in said) == 1, said
        assert all("exists here already" in words for words in said if words.startswith("refused")), said
        there = Repo(name)
        book = discover.open(name)
        assert [e["type"] for e in journal(there)].count("ledger.created") == 1
        mine = pins.load(book.desk.home.pins, "main")
        assert mine is not None
        assert mine.uuid == book.view().manifest.uuid
        book.checkpoint()


# ── the way out ──────────────────────────────────────────────────────────────────────────────
def test_a_compaction_can_be_allowed_on_a_full_disk(repo: Repo) -> None:
    book = begin(repo)

    def full(*args: object) -> None:
        raise CannotWrite("cannot be written (No space left on device)")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pins, "write_private", full)
        allowance.grant(book.gitdir, "main", "the disk is full")
    assert allowance.use(book.gitdir, "main", "no space left")
    assert not allowance.use(book.gitdir, "main", "no space left")


# ── kill -9 ──────────────────────────────────────────────────────────────────────────────────
CAPTURES = """
import os, sys, time
from gitledger import wal
n = 0
while True:
    payload = b'{"session_id":"%s","prompt":"turn %d"}' % (sys.argv[2].encode(), n)
    now = time.time_ns() // 1_000_000
    print(wal.append(sys.argv[1], "generic", "turn", payload, now_ms=now, rand=os.urandom(10)).id, flush=True)
    n += 1
    time.sleep(0.02)
"""


def killed(child: subprocess.Popen[bytes]) -> None:
    """End a process, and what it started, as a machine does that runs out of memory."""
    pids = [child.pid]
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
                pids += map(int, text.split())
        except OSError:
            continue
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def survive(repo: Repo, kills: int, seed: int) -> None:
    """Kill commands at random moments beside captures, and see that nothing acknowledged is lost or told twice."""
    chance = random.Random(seed)
    book = discover.open(repo.path)
    env = {**os.environ, "PYTHONPATH": str(Path(discover.__file__).parent.parent)}

    def start(*words: str, **more: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, *words], cwd=repo.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=env,
        )  # fmt: skip

    began = time.monotonic()
    start("-m", "gitledger", "checkpoint").communicate(timeout=300)
    usual = time.monotonic() - began
    steady = start("-c", CAPTURES, book.desk.home.wal, "steady")
    shaky = start("-c", CAPTURES, book.desk.home.wal, "shaky")
    acknowledged: list[str] = []
    added: list[str] = []
    said: list[str] = []
    for n in range(kills):
        words, told = chance.choice(
            [
                (("checkpoint",), b""),
                (("task", "add", f"Task {n}"), b""),
                (("handover", "write"), b""),
                (("hook", "generic", "start"), b'{"session_id":"s%d","pid":1}' % (n % 5)),
                (("hook", "generic", "end"), b'{"session_id":"s%d"}' % (n % 5)),
                (("hook", "generic", "compact"), b'{"session_id":"s%d"}' % (n % 5)),
            ]
        )
        victim = start("-m", "gitledger", *words)
        assert victim.stdin is not None
        victim.stdin.write(told)
        victim.stdin.close()
        time.sleep(chance.uniform(0, usual * 1.2))
        killed(victim)
        assert victim.stdout is not None
        assert victim.stderr is not None
        out, err = victim.stdout.read().decode(), victim.stderr.read().decode()
        victim.wait(60)
        for stream in (victim.stdout, victim.stderr):
            stream.close()
        if words[:2] == ("task", "add") and out.strip():
            added.append(out.strip())
        if victim.returncode not in (0, -signal.SIGKILL):
            said.append(f"{words} exited {victim.returncode}: {err}")
        if chance.random() < 0.2:
            killed(shaky)
            acknowledged += shaky.communicate()[0].decode().split("\n")[:-1]
            shaky = start("-c", CAPTURES, book.desk.home.wal, "shaky")
    for child in (steady, shaky):
        killed(child)
        acknowledged += child.communicate()[0].decode().split("\n")[:-1]
    assert said == []

    book = discover.open(repo.path)
    view = book.view()
    written = [str(event["id"]) for event in journal(repo)]
    waiting = [event.id for event in book.pending]
    once = collections.Counter(written + waiting)
    assert [ident for ident, count in once.items() if count > 1] == []
    assert set(acknowledged) <= once.keys()
    assert len(added) == len(set(added))
    for name in added:
        view.resolve(name, layout.TASK, book.desk.writer.id)
    made = book.checkpoint()  # no lock is wedged
    assert repo.git("rev-parse", "ledger/main") == made.commit
    events = journal(repo)
    assert set(acknowledged) <= {str(event["id"]) for event in events}
    numbers = [key for event in events if event["type"] == "task.added" for key in event["records"]]  # type: ignore[attr-defined]
    assert len(numbers) == len(set(numbers))
    closed = [key for e in events if e["type"] == "handover.written" for key in e["records"]]  # type: ignore[attr-defined]
    assert len(closed) == len(set(closed))
    sound(repo)


@pytest.mark.process
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc to kill a whole tree of processes")
def test_kills_at_random_moments_lose_nothing_and_tell_nothing_twice(repo: Repo) -> None:
    begin(repo)
    survive(repo, kills=int(os.environ.get("KILLS", "24" if LONG else "8")), seed=int(os.environ.get("SEED", "1")))
