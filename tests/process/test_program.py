"""The real program: what a new user does, what an agent's hooks do, and what bad input gets."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitledger import direct
from tests.process.program import begun, gitledger, refused, works
from tests.sealed import Repo, new_repo

pytestmark = pytest.mark.process


@pytest.fixture
def started(repo: Repo) -> Repo:
    """A repository with a ledger."""
    return begun(repo, ("init", "--project", "Shop"))


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# ── a whole cycle ────────────────────────────────────────────────────────────────────────────
def test_a_new_users_day(repo: Repo) -> None:
    out = works(repo.path, "init", "--project", "Shop")
    assert "Began the ledger on branch ledger/main" in out
    assert works(repo.path, "task", "add", "Discounts", "--accept", "TEN works") == "T-0001"
    assert "active" in works(repo.path, "task", "start", "T-0001", "--next", "Write discount()")
    assert works(repo.path, "decide", "Upper case", "--why", "paper") == "D-0001"
    assert "verified" in works(repo.path, "task", "evidence", "--criterion", "c1", "--run", "true")
    assert "T-0001 is done" in works(repo.path, "task", "done")
    pointer = works(repo.path, "checkpoint")
    assert re.fullmatch(
        r"Checkpoint: C-000001\nTask: none\nPath: checkpoints/0000xx/C-000001\.md\n"
        r"Digest: sha1:[0-9a-f]{40}\nNext action: none recorded",
        pointer,
    )
    assert works(repo.path, "verify") != ""
    works(repo.path, "fsck")
    works(repo.path, "rebuild", "--check")
    assert "Discounts" in works(repo.path, "search", "discounts")


def test_advanced_names_the_commits_that_came_on_top(started: Repo) -> None:
    works(started.path, "task", "add", "One")
    works(started.path, "task", "start", "T-0001", "--next", "Go on")
    works(started.path, "handover", "write")
    assert "exact" in works(started.path, "handover", "resolve")
    started.commit("second thing")
    briefing = works(started.path, "briefing")
    assert f"advanced: 1 commit since {started.git('rev-parse', 'HEAD~')[:9]}" in briefing
    assert "second thing" in briefing
    assert "Go on" in briefing


def test_where_the_handover_is_withheld_the_tasks_older_next_action_is_too(started: Repo) -> None:
    works(started.path, "task", "add", "One")
    works(started.path, "task", "start", "T-0001", "--next", "Delete the old table")
    works(started.path, "handover", "write")
    started.git("switch", "-q", "-c", "elsewhere")
    briefing = works(started.path, "briefing")
    assert "Delete the old table" not in briefing
    assert "different_context" in briefing
    assert "Delete the old table" not in works(started.path, "status")
    works(started.path, "task", "next", "Something for this branch")
    assert "Something for this branch" in works(started.path, "briefing")


def test_a_stale_handover_is_history(started: Repo) -> None:
    works(started.path, "handover", "write", "--next", "Old news")
    clone_config = started.path / ".git" / "gitledger" / "config.yaml"
    clone_config.write_text("freshness:\n  fresh_hours: 1\n  stale_hours: 1\n")
    assert "Old news" in works(started.path, "briefing")  # an hour has not passed


# ── hooks ────────────────────────────────────────────────────────────────────────────────────
def test_a_session_by_hooks_leaves_a_handover_for_the_next(started: Repo) -> None:
    said = {"session_id": "s1", "cwd": str(started.path), "pid": os.getpid()}
    first = works(started.path, "hook", "generic", "start", stdin={**said, "source": "startup"})
    assert "No relevant handover" in first
    works(started.path, "task", "add", "One")
    works(started.path, "task", "start", "T-0001", "--next", "Go on")
    assert works(started.path, "hook", "generic", "turn", stdin={**said, "prompt": "do it", "answer": "did it"}) == ""
    assert works(started.path, "hook", "generic", "compact", stdin=said).startswith("Checkpoint: C-000001")
    assert works(started.path, "hook", "generic", "end", stdin={**said, "reason": "exit"}) == ""
    second = works(started.path, "hook", "generic", "start", stdin={**said, "session_id": "s2"})
    assert "H-000001" in second
    assert "Go on" in second
    shown = works(started.path, "handover", "show", "H-000001")
    assert "do it" in shown or "did it" in shown


CLIENT = """
import json, os, subprocess, sys, time
say = json.dumps({"session_id": "crashing", "prompt": "half way", "answer": "so far"})
for event in ("start", "turn"):
    subprocess.run([sys.executable, "-m", "gitledger", "hook", "generic", event], input=say.encode(), check=True,
                   stdout=subprocess.DEVNULL)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_client_killed_without_any_end_hook_is_recovered_once_by_the_next_start(started: Repo) -> None:
    works(started.path, "task", "add", "One")
    works(started.path, "task", "start", "T-0001", "--next", "Go on")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT], cwd=started.path, stdout=subprocess.PIPE, text=True, env=env
    )
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n"
    alive = works(started.path, "hook", "generic", "start", stdin={"session_id": "other", "pid": os.getpid()})
    assert "No relevant handover" in alive  # the client still runs: nothing to recover
    client.kill()
    client.wait()
    client.stdout.close()
    after = works(started.path, "hook", "generic", "start", stdin={"session_id": "next", "pid": os.getpid()})
    assert "H-000001" in after
    assert "Go on" in after
    assert "so far" in works(started.path, "handover", "show", "H-000001")
    works(started.path, "hook", "generic", "start", stdin={"session_id": "after that", "pid": os.getpid()})
    assert len(json.loads(works(started.path, "handover", "list", "--json"))) == 1


@pytest.mark.parametrize("event", ["start", "prompt", "tool", "turn", "compact", "end"])
def test_a_repository_without_a_ledger_gets_no_write_and_no_word(event: str, repo: Repo, tmp_path: Path) -> None:
    before = snapshot(repo.path)
    for folder in (repo.path, tmp_path):
        ran = gitledger(folder, "hook", "generic", event, stdin={"session_id": "x", "cwd": str(folder)})
        assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert snapshot(repo.path) == before


@pytest.mark.parametrize("payload", [b"", b"not json", b"[1,2]", b'{"session_id": 7}', b"\xff\xfe", b'{"a":' * 5000])
@pytest.mark.parametrize("event", ["start", "turn", "end"])
def test_a_payload_that_is_none_fails_no_ones_work_and_is_kept(event: str, payload: bytes, started: Repo) -> None:
    ran = gitledger(started.path, "hook", "generic", event, stdin=payload)
    assert ran.status == 0
    assert "Traceback" not in ran.err
    works(started.path, "checkpoint")
    works(started.path, "fsck")


def test_a_broken_ledger_stops_no_session_but_does_stop_a_compaction(started: Repo) -> None:
    works(started.path, "checkpoint")
    for path in (started.path / ".git" / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"garbage")
    assert gitledger(started.path, "hook", "generic", "start", stdin={"session_id": "x"}).status == 0
    assert gitledger(started.path, "hook", "generic", "end", stdin={"session_id": "x"}).status == 0
    line = refused(started.path, "hook", "generic", "compact", stdin={"session_id": "x"}, status=69)
    assert "BLOCKED_MISSING_PREREQUISITE" in line
    assert "compaction allow --once" in line


def unplug_the_key(home: Path) -> Path:
    """Take the signing key away, as a broken machine would; the path it has now."""
    key = next(p for p in (home / ".local" / "share" / "gitledger").rglob("*") if p.is_file() and p.suffix != ".pub")
    return key.rename(key.with_name("away"))


def test_a_blocked_compaction_is_let_through_once_by_a_person_and_the_briefing_says_so(
    started: Repo, home: Path
) -> None:
    said = {"session_id": "s1", "pid": os.getpid()}
    works(started.path, "hook", "generic", "start", stdin=said)
    key = next((home / ".local" / "share" / "gitledger").rglob("id_*[!b]"))
    away = unplug_the_key(home)
    line = refused(started.path, "hook", "generic", "compact", stdin=said, status=69)
    assert line.startswith("gitledger: BLOCKED_MISSING_PREREQUISITE: ")
    works(started.path, "compaction", "allow", "--once", "--reason", "I know that the key is away")
    assert works(started.path, "hook", "generic", "compact", stdin=said) == ""
    refused(started.path, "hook", "generic", "compact", stdin=said, status=69)  # once means once
    assert "CHECKPOINT MISSING" in works(started.path, "briefing")
    assert "I know that the key is away" in works(started.path, "journal")
    away.rename(key)
    works(started.path, "checkpoint")
    assert "CHECKPOINT MISSING" not in works(started.path, "briefing")


def test_a_permission_is_not_used_up_by_a_compaction_that_needs_none(started: Repo, home: Path) -> None:
    works(started.path, "compaction", "allow", "--once", "--reason", "in case")
    assert works(started.path, "hook", "generic", "compact", stdin={"session_id": "s1"}).startswith("Checkpoint: ")
    works(started.path, "note", "something new")
    unplug_the_key(home)
    assert works(started.path, "hook", "generic", "compact", stdin={"session_id": "s1"}) == ""


def test_the_way_out_works_where_the_configuration_is_broken(started: Repo) -> None:
    (started.path / ".git" / "gitledger" / "config.yaml").write_text("nonsense: [\n")
    refused(started.path, "hook", "generic", "compact", stdin={"session_id": "s1"}, status=78)
    works(started.path, "compaction", "allow", "--once", "--reason", "will mend it later")
    assert works(started.path, "hook", "generic", "compact", stdin={"session_id": "s1"}) == ""


def test_a_turn_is_not_lost_while_a_stopped_process_holds_the_log(started: Repo) -> None:
    hold = (
        "import fcntl, os, sys, time\n"
        f"fd = os.open({str(started.path / '.git/gitledger/wal/main/current.wal')!r}, os.O_RDWR | os.O_CREAT, 0o600)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        works(started.path, "hook", "generic", "turn", stdin={"session_id": "x", "answer": "not lost"})
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()  # type: ignore[union-attr]
    works(started.path, "checkpoint")
    assert "not lost" in works(started.path, "journal")


def test_a_start_from_a_subfolder_and_a_linked_worktree_finds_the_ledger(started: Repo, tmp_path: Path) -> None:
    (started.path / "deep" / "er").mkdir(parents=True)
    linked = tmp_path / "with space"
    started.git("worktree", "add", "-q", "-b", "side", str(linked))
    for place in (started.path / "deep" / "er", linked):
        briefing = works(tmp_path, "hook", "generic", "start", stdin={"session_id": str(place), "cwd": str(place)})
        assert "Shop" in briefing


def test_git_variables_of_a_hook_do_not_send_events_elsewhere(started: Repo, tmp_path: Path) -> None:
    other = new_repo(tmp_path / "other")
    works(other.path, "init")
    env = {"GIT_DIR": str(other.path / ".git"), "GIT_WORK_TREE": str(other.path), "GIT_INDEX_FILE": "/nowhere"}
    works(started.path, "note", "here", env=env)
    works(started.path, "checkpoint", env=env)
    assert "here" in works(started.path, "search", "here")
    assert other.git("rev-list", "--count", "ledger/main") == "1"


# ── bad input ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("task", "start", "T-0099"), 65, "T-0099"),
        (("task", "show", "nonsense"), 65, "nonsense"),
        (("show", "C-000009"), 65, "C-000009"),
        (("handover", "show", "H-000009"), 65, "H-000009"),
        (("task", "add", ""), 65, "empty"),
        (("task", "add", "x" * 5_000), 65, "5,000 characters"),
        (("task", "add", "bell\x07"), 65, "U+0007"),
        (("task", "add", "bidi\u202e"), 65, "U+202E"),
        (("task", "add", "t", "--parent", "T-0500"), 65, "T-0500"),
        (("task", "done"), 65, "no task is active"),
        (("task", "evidence", "--claim", "x"), 65, "no task is active"),
        (("get", "../../../etc/passwd"), 65, ".."),
        (("get", "no/such/file"), 65, "no/such/file"),
        (("config", "set", "briefing.line", "3"), 78, "briefing.lines"),
        (("config", "set", "briefing.lines", "many"), 78, "many"),
        (("config", "get", "nope"), 78, "nope"),
        (("nosuchcommand",), 2, "nosuchcommand"),
        (("task",), 2, ""),
        (("hook", "generic", "lunch"), 2, "lunch"),
        (("--ledger", "other", "status"), 69, "other"),
        (("--ledger", "../evil", "status"), 65, "evil"),
        (("-C", "/nonexistent", "status"), 69, "/nonexistent"),
        (("schema", "nope"), 2, "nope"),
        (("compaction", "allow", "--reason", "x"), 2, "--once"),
    ],
)
def test_bad_words_get_one_clear_line_and_their_exit_code(
    words: tuple[str, ...], status: int, says: str, started: Repo
) -> None:
    before = started.git("rev-parse", "ledger/main")
    if words == ("task",):
        assert gitledger(started.path, *words).status == 2
        return
    line = refused(started.path, *words, status=status)
    assert says in line
    assert started.git("rev-parse", "ledger/main") == before


@pytest.mark.parametrize("name", ["a/b", "..", "", "Upper", "-x", "a" * 80, "a b", "a\x07"])
def test_a_ledger_cannot_be_called(name: str, repo: Repo) -> None:
    refused(repo.path, "init", "--name", name, status=65)
    assert not (repo.path / ".git" / "gitledger").exists()


def test_invalid_yaml_in_the_config_is_one_line_with_its_place(started: Repo) -> None:
    path = started.path / ".git" / "gitledger" / "config.yaml"
    path.write_text("briefing: [unclosed\n")
    assert "config.yaml" in refused(started.path, "status", status=78)
    path.write_text("briefing:\n  line: 3\n")
    assert "briefing.lines" in refused(started.path, "status", status=78)


def test_a_corrupt_wal_line_is_named_kept_and_hides_nothing(started: Repo) -> None:
    works(started.path, "task", "add", "Before")
    log = started.path / ".git" / "gitledger" / "wal" / "main" / "current.wal"
    with log.open("ab") as f:
        f.write(b"GL1 00000000 this is no line of ours\n")
    works(started.path, "task", "add", "After")
    listed = works(started.path, "task", "list")
    assert "Before" in listed
    assert "After" in listed
    assert gitledger(started.path, "fsck").status == 1
    works(started.path, "checkpoint")
    kept = (started.path / ".git" / "gitledger" / "wal" / "main" / "damaged").rglob("*")
    assert any(b"this is no line of ours" in p.read_bytes() for p in kept if p.is_file())
    assert "After" in works(started.path, "task", "list")


def test_a_foreign_file_in_the_ledgers_tree_is_named_by_fsck(started: Repo) -> None:
    blob = started.git("hash-object", "-w", "--stdin", input="foreign")
    listing = started.git("ls-tree", "ledger/main") + f"\n100644 blob {blob}\tFOREIGN.md\n"
    tree = started.git("mktree", input=listing)
    commit = started.git("commit-tree", tree, "-p", "ledger/main", "-m", "foreign")
    started.git("update-ref", "refs/heads/ledger/main", commit)
    ran = gitledger(started.path, "fsck")
    assert ran.status == 1
    assert "FOREIGN.md" in ran.out
    assert gitledger(started.path, "verify").status == 1
    assert gitledger(started.path, "briefing").status == 0


def test_a_read_only_ledger_can_be_read_by_everybody(started: Repo) -> None:
    works(started.path, "task", "add", "One")
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    state = started.path / ".git" / "gitledger"
    state.chmod(0o500)
    try:
        assert "One" in works(started.path, "task", "list")
        works(started.path, "briefing")
        refused(started.path, "checkpoint", status=73)
    finally:
        state.chmod(0o700)


def test_a_crash_of_ours_is_one_line_and_its_traceback_goes_to_the_log(started: Repo) -> None:
    script = (
        "import sys; from gitledger import cli, discover; discover.open = lambda *a, **k: 1 / 0\n"
        "sys.argv = ['gitledger', 'status']; sys.exit(cli.main())"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=started.path, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert len(done.stderr.splitlines()) == 1
    assert "ZeroDivisionError" in (started.path / ".git" / "gitledger" / "log").read_text()


def test_output_into_a_closed_pipe_is_no_error(started: Repo) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "gitledger", "status"], cwd=started.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    assert b"Traceback" not in child.stderr.read()
    child.stderr.close()
    child.wait(120)


def test_help_and_version_import_no_command_and_nothing_heavy(started: Repo) -> None:
    script = (
        "import sys; from gitledger import cli; sys.argv = ['gitledger', '--help']; cli.main()\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('pygit2', 'pydantic', 'yaml', 'cryptography') or m.startswith('gitledger.commands')))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=started.path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_briefing_imports_neither_pygit2_nor_pydantic_nor_yaml(started: Repo) -> None:
    works(started.path, "handover", "write")
    script = (
        "import sys; from gitledger import cli; sys.argv = ['gitledger', 'briefing']; cli.main()\n"
        "print(sorted({'pygit2', 'pydantic', 'yaml', 'cryptography', 'platformdirs', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=started.path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("asked", ["briefing", "capsule --query token"])
def test_what_a_session_waits_for_loads_nothing_that_it_could_do_without(started: Repo, asked: str) -> None:
    script = (
        "import os, sys; before, costly = set(sys.modules), set(sys.argv[2:])\n"
        "from gitledger.__main__ import main; sys.argv[1:] = sys.argv[1].split()\n"
        "os._exit = lambda status: print(status, *sorted(costly & set(sys.modules) - before)) or sys.exit()\n"
        "main()"
    )
    costly = ["_hashlib", "base64", "click", "dataclasses", "shutil", "sqlite3", "tempfile", "typing"]
    words = [sys.executable, "-c", script, asked, *costly, "gitledger.reading", "gitledger.search"]
    done = subprocess.run(words, cwd=started.path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_a_checkpoint_loads_no_openssl_for_the_little_that_it_hashes_and_proves(started: Repo) -> None:
    script = (
        "import os, sys; from gitledger.__main__ import main; sys.argv[1:] = ['checkpoint']\n"
        "os._exit = lambda status: print(status, *{'_hashlib', 'cryptography'} & set(sys.modules)) or sys.exit()\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=started.path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_a_plain_sync_says_the_same_without_click(started: Repo) -> None:
    script = (
        "import os, sys; from gitledger.__main__ import main; sys.argv[1:] = sys.argv[1].split()\n"
        "os._exit = lambda status: print(status, 'click' in sys.modules) or sys.exit()\n"
        "os._exit(main())"
    )
    for word in ("sync", "push", "pull"):
        done = [
            subprocess.run([sys.executable, "-c", script, words], cwd=started.path, capture_output=True, text=True)
            for words in (word, f"{word} --deadline 60")
        ]
        assert [one.stdout for one in done] == ["78 False\n", "78 True\n"]
        assert done[0].stderr == done[1].stderr
        assert "no remote is named" in done[0].stderr


def test_what_is_asked_in_plain_words_says_the_same_without_click(started: Repo) -> None:
    works(started.path, "task", "add", "Token refresh")
    hosts = ("-C", str(started.path), "--ledger", "main", "capsule", "--json", "--query=-")
    mark = f"--since={json.loads(works(started.path, *hosts))['mark']}"
    for words in (*ASKED, hosts, (*hosts, mark), ("-C", "nowhere", "briefing"), ("--ledger", "main", "briefing")):
        both = [gitledger(started.path, *first, *words, stdin=b"token refresh") for first in ((), ("-C.",))]
        assert both[0] == both[1], words
    assert all(
        direct.of(list(words)) for words in (hosts, (*hosts, mark), ("checkpoint", "--reason", "any"), ("sync",))
    )
    other = gitledger(started.path, "--ledger", "other", "checkpoint")
    assert other == gitledger(started.path, "-C.", "--ledger", "other", "checkpoint")
    assert "there are: main" in other.err
    made = [works(started.path, *first, "checkpoint", "--reason=asked for") for first in ((), ("-C.",))]
    told = [[line.partition(":")[0] for line in one.splitlines()] for one in made]
    assert told[0] == told[1]
    shown = [works(started.path, "show", one.split()[1]) for one in made]
    assert "asked for" in shown[0]
    assert "asked for" in shown[1]


ASKED = (
    ("briefing",),
    ("capsule",),
    ("capsule", "--json"),
    ("capsule", "--json", "--query=-"),
    ("capsule", "--query", "-", "--tokens=500"),
    ("capsule", "--query=T-0001", "--json", "--tokens", "400"),
    ("capsule", "--query", "--help"),
    ("capsule", "--query"),
    ("capsule", "--query=a", "--query=b"),
    ("capsule", "--tokens", ""),
    ("capsule", "--tokens=-5"),
    ("capsule", "--tokens", "7"),
    ("capsule", "--since", "no mark"),
    ("capsule", "--json=yes"),
    ("capsule", "more"),
    ("checkpoint", "--reason", ""),
    ("checkpoint", "--reason"),
    ("checkpoint", "--reason", "x" * 10_000),
    ("checkpoint", "--other"),
    ("sync",),
    ("push", "--pull"),
)


def test_ctrl_c_leaves_the_ledger_as_it_was(started: Repo) -> None:
    works(started.path, "task", "add", "One")
    before = started.git("rev-parse", "ledger/main")
    script = "import sys; from gitledger.__main__ import main; print('begun', flush=True); sys.exit(main())"
    child = subprocess.Popen(
        [sys.executable, "-c", script, "checkpoint"],
        cwd=started.path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"begun\n"  # as Python itself starts, it may say and return anything
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert b"Traceback" not in err or child.returncode < 0  # while it loads, Python itself speaks
    after = started.git("rev-parse", "ledger/main")
    assert after == before or child.returncode in (0, 130)
    works(started.path, "checkpoint")
    works(started.path, "fsck")
    assert "One" in works(started.path, "task", "list")
