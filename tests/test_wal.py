"""The write-ahead log: what was acknowledged is read back, once, whatever died, filled up or got in the way."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
import time
import tracemalloc
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import frame, wal
from gitledger.errors import BadData, CannotWrite, IOFailed, LockHeld, NoLedger

NOW = 1_796_050_151_123
ZERO = bytes(10)


@pytest.fixture
def log(tmp_path: Path) -> str:
    folder = str(tmp_path / "gitledger" / "wal" / "main")
    wal.create(folder)
    return folder


def put(folder: str, payload: bytes, *, event: str = "turn", wait: float = 0.25) -> frame.Entry:
    return wal.append(folder, "generic", event, payload, now_ms=NOW, rand=os.urandom(10), wait=wait)


def payloads(folder: str) -> list[bytes]:
    entries, findings = wal.pending(folder)
    assert findings == []
    return [entry.payload for entry in entries]


def current(folder: str) -> Path:
    return Path(folder) / wal.CURRENT


def child(script: str, *args: str) -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}\n{script}"
    return subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stdin=subprocess.PIPE)


# ── values ───────────────────────────────────────────────────────────────────────────────────
def test_uuid7_holds_its_time_and_randomness_where_the_rfc_puts_them() -> None:
    # The example of RFC 9562, appendix A.6.
    rand = (0xCC3 << 68 | 0x18C4DC0C0C07398F & (1 << 62) - 1).to_bytes(10, "big")
    assert frame.uuid7(0x017F22E279B0, rand) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(st.integers(0, (1 << 48) - 2), st.binary(min_size=10, max_size=10))
def test_every_uuid7_is_canonical_and_sorts_by_time(ms: int, rand: bytes) -> None:
    text = frame.uuid7(ms, rand)
    parsed = uuid.UUID(text)
    assert (str(parsed), parsed.version, parsed.variant) == (text, 7, uuid.RFC_4122)
    assert parsed.int >> 80 == ms
    assert frame.uuid7(ms + 1, ZERO) > text


def test_uuid7_wants_its_ten_random_bytes() -> None:
    with pytest.raises(ValueError, match="ten random bytes"):
        frame.uuid7(NOW, b"short")


def test_times_are_utc_text_of_fixed_width() -> None:
    assert frame.at(0) == "1970-01-01T00:00:00.000Z"
    assert frame.at(1_796_050_151_023) == "2026-11-30T14:49:11.023Z"


@given(st.binary())
def test_any_payload_is_one_line_and_comes_back(payload: bytes) -> None:
    line = frame.encode(frame.Entry(frame.uuid7(NOW, ZERO), frame.at(NOW), "generic", "turn", payload))
    assert line.count(b"\n") == 1
    entry = frame.decode(line)
    assert (entry.client, entry.event, entry.payload) == ("generic", "turn", payload)


@pytest.mark.parametrize("name", ["main", "", "a b", "50%", "ä/%25\n", "\udcff", "MiXed"])
def test_a_worktree_of_any_name_comes_back(name: str) -> None:
    line = frame.encode(frame.Entry("i", "t", "c", "e", b"a b", name))
    assert line.count(b" ") == 8
    entry = frame.decode(line)
    assert (entry.worktree, entry.payload) == (name, b"a b")


@given(st.lists(st.sampled_from([b"\\", b"\n", b"n", b"\r", b" "])).map(b"".join))
def test_escapes_are_undone_exactly_even_where_they_meet(payload: bytes) -> None:
    assert frame.decode(frame.encode(frame.Entry("i", "t", "c", "e", payload))).payload == payload


def test_the_frame_is_what_the_format_says(log: str) -> None:
    wal.append(log, "generic", "turn", b'{"a":\n"\\"}', now_ms=NOW, rand=ZERO)
    line = b'01a22cee-66d3-7000-8000-000000000000 2026-11-30T14:49:11.123Z generic turn main {"a":\\n"\\\\"}\n'
    assert current(log).read_bytes() == b"GL1 d22072a3 " + line


@given(st.data())
def test_a_changed_byte_is_never_read_as_an_entry(data: st.DataObject) -> None:
    line = bytearray(frame.encode(frame.Entry(frame.uuid7(NOW, ZERO), frame.at(NOW), "generic", "turn", b"payload")))
    place = data.draw(st.integers(0, len(line) - 2))
    line[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"\w"):
        frame.decode(bytes(line))


@pytest.mark.parametrize("word", ["", "two words", "Turn", "a\n", "ä", "a/b"])
def test_a_client_or_event_that_is_no_word_is_refused(log: str, word: str) -> None:
    with pytest.raises(ValueError, match="words"):
        wal.append(log, word, "turn", b"", now_ms=NOW, rand=ZERO)
    with pytest.raises(ValueError, match="words"):
        wal.append(log, "generic", word, b"", now_ms=NOW, rand=ZERO)
    with pytest.raises(ValueError, match="words"):
        wal.append_entry(log, word, frame.at(NOW), "generic", "turn", b"")
    with pytest.raises(ValueError, match="words"):
        wal.append_entry(log, frame.uuid7(NOW, ZERO), f"{word} ", "generic", "turn", b"")
    assert os.listdir(log) == []


# ── one writer ───────────────────────────────────────────────────────────────────────────────
def test_entries_come_back_in_order_from_sealed_files_and_the_current_one(log: str) -> None:
    put(log, b"one")
    put(log, b"two")
    wal.seal(log)
    put(log, b"three")
    assert payloads(log) == [b"one", b"two", b"three"]
    [(path, entries, findings)] = wal.sealed(log)
    assert [entry.payload for entry in entries] == [b"one", b"two"]
    assert findings == []
    wal.forget(log, [path])
    assert payloads(log) == [b"three"]


def test_folders_and_files_are_the_users_alone(log: str) -> None:
    put(log, b"x")
    for path in (Path(log), Path(log).parent, Path(log).parent.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(current(log).stat().st_mode) == 0o600
    wal.create(log)
    assert payloads(log) == [b"x"]


def test_sealing_an_empty_or_missing_log_makes_no_file(log: str) -> None:
    wal.seal(log)
    assert os.listdir(log) == []
    current(log).touch()
    wal.seal(log)
    assert os.listdir(log) == [wal.CURRENT]


def test_an_event_that_has_its_id_and_time_keeps_them(log: str) -> None:
    wal.append_entry(log, frame.uuid7(7, ZERO), frame.at(7), "gitledger", "note", b"{}", "side")
    [entry] = wal.pending(log)[0]
    assert (entry.id, entry.at, entry.worktree) == (frame.uuid7(7, ZERO), "1970-01-01T00:00:00.007Z", "side")


def test_an_entry_that_is_there_twice_is_returned_once(log: str) -> None:
    put(log, b"a")
    put(log, b"b")
    (Path(log) / f"{frame.uuid7(NOW, ZERO)}.wal").write_bytes(current(log).read_bytes())
    assert payloads(log) == [b"a", b"b"]


def test_forgetting_twice_is_harmless_and_the_current_file_cannot_be_forgotten(log: str) -> None:
    put(log, b"a")
    wal.seal(log)
    [(path, _, _)] = wal.sealed(log)
    wal.forget(log, [path])
    wal.forget(log, [path])
    put(log, b"b")
    with pytest.raises(ValueError, match="not a sealed file"):
        wal.forget(log, [str(current(log))])
    assert payloads(log) == [b"b"]


def test_a_log_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoLedger, match="gitledger init"):
        put(str(tmp_path / "none"), b"")


def test_a_payload_over_the_limit_is_refused_and_one_below_is_kept(log: str) -> None:
    with pytest.raises(BadData, match="too large"):
        put(log, b"\n" * (wal.MAX_LINE // 2))
    assert os.listdir(log) == []
    put(log, b"x" * 5_000_000)
    assert payloads(log) == [b"x" * 5_000_000]


# ── damage ───────────────────────────────────────────────────────────────────────────────────
def test_a_crash_at_any_byte_loses_no_complete_entry_and_hides_none_that_follows(log: str) -> None:
    for payload in (b'{"n":1}', b"two\nlines\\", b'{"n":3}'):
        put(log, payload)
    whole = current(log).read_bytes()
    for cut in range(len(whole) + 1):
        current(log).write_bytes(whole[:cut])
        lines = whole[:cut].split(b"\n")
        # A last line that lacks nothing but its line end is complete: its checksum says so.
        complete = len(lines) - 1 + (whole[cut : cut + 1] == b"\n")
        torn = whole[:cut] != b"" and whole[cut - 1 : cut] != b"\n" and whole[cut : cut + 1] != b"\n"
        entries, findings = wal.pending(log)
        assert len(entries) == complete, cut
        assert len(findings) == torn, cut
        if torn:
            assert (findings[0].where, findings[0].what) == (f"{log}/current.wal:{complete + 1}", "ends in the middle")
        put(log, b"after")
        entries, findings = wal.pending(log)
        assert [entry.payload for entry in entries[complete:]] == [b"after"], cut
        assert len(findings) == torn, cut


def test_one_bad_line_is_a_finding_and_its_bytes_outlive_its_file(log: str) -> None:
    put(log, b"first")
    put(log, b"second")
    put(log, b"third")
    lines = current(log).read_bytes().splitlines(keepends=True)
    bad = lines[1].replace(b"second", b"sEcond")
    current(log).write_bytes(lines[0] + bad + b"\n" + b"GL2 something newer\n" + lines[2] + b"torn")
    wal.seal(log)
    entries, findings = wal.pending(log)
    assert [entry.payload for entry in entries] == [b"first", b"third"]
    [(path, _, _)] = wal.sealed(log)
    assert [(f.where, f.what) for f in findings] == [
        (f"{path}:2", "does not match its checksum"),
        (f"{path}:4", "is not a line of this log"),
        (f"{path}:6", "ends in the middle"),
    ]
    wal.forget(log, [path])
    assert os.listdir(log) == [wal.DAMAGED]
    kept = Path(log) / wal.DAMAGED / os.path.basename(path)
    assert kept.read_bytes() == bad + b"GL2 something newer\n" + b"torn"
    assert wal.pending(log) == ([], [])


def test_an_endless_line_is_one_finding_and_is_kept_whole(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(log, b"before")
    monkeypatch.setattr(wal, "MAX_LINE", 200)
    with current(log).open("ab") as file:
        file.write(b"x" * 777)
    put(log, b"after")
    entries, findings = wal.pending(log)
    assert [entry.payload for entry in entries] == [b"before", b"after"]
    assert [(f.where, f.what) for f in findings] == [(f"{log}/current.wal:2", "is longer than any line of this log")]
    wal.seal(log)
    [(path, _, _)] = wal.sealed(log)
    wal.forget(log, [path])
    assert (Path(log) / wal.DAMAGED / os.path.basename(path)).read_bytes() == b"x" * 777 + b"\n"


def test_a_spill_file_of_a_dead_writer_is_taken_in_and_a_young_one_left_alone(log: str) -> None:
    put(log, b"x")
    line = current(log).read_bytes()
    for name, age in (("old", 4000), ("young", 10)):
        path = Path(log) / f"{name}.wal.tmp"
        path.write_bytes(line)
        os.utime(path, (time.time() - age, time.time() - age))
    current(log).unlink()
    wal.seal(log)
    assert sorted(os.listdir(log)) == ["old.wal", "young.wal.tmp"]
    assert payloads(log) == [b"x"]


@pytest.mark.parametrize("name", [wal.CURRENT, "0.wal"])
@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder"])
def test_what_is_no_plain_file_is_never_followed_nor_waited_for(log: str, tmp_path: Path, kind: str, name: str) -> None:
    put(log, b"good")
    wal.seal(log)
    path, target = Path(log) / name, tmp_path / "target"
    target.write_bytes(b"mine\n")
    if kind == "symlink":
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    if name == wal.CURRENT:
        with pytest.raises(CannotWrite, match="not a plain file"):
            put(log, b"x")
        with pytest.raises(CannotWrite, match="not a plain file"):
            wal.seal(log)
    entries, findings = wal.pending(log)
    assert [entry.payload for entry in entries] == [b"good"]
    assert [f.where for f in findings] == [str(path)]
    assert [e.payload for _, found, _ in wal.sealed(log) for e in found] == [b"good"]
    assert target.read_bytes() == b"mine\n"


def test_a_log_folder_that_is_a_symlink_is_refused(log: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(log)
    for folder in (tmp_path / "link", f"{tmp_path}/link/"):
        with pytest.raises(CannotWrite, match="folder of your own"):
            put(str(folder), b"x")
    assert os.listdir(log) == []


# ── what is on disk when ──────────────────────────────────────────────────────────────────────
@pytest.fixture
def steps(log: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The writes, renames, removals and syncs that reach the disk, in order."""
    found: list[str] = []
    write, rename, unlink, mkdir, fsync = os.write, os.rename, os.unlink, os.mkdir, os.fsync

    def what(fd: int) -> str:
        return "folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file"

    def spy(name: str, call: Any) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            result = call(*args, **named)
            found.append(f"{name} {what(args[0])}" if isinstance(args[0], int) else name)
            return result

        return called

    for name, call in (("write", write), ("rename", rename), ("unlink", unlink), ("mkdir", mkdir), ("fsync", fsync)):
        monkeypatch.setattr(os, name, spy(name, call))
    return found


@pytest.mark.skipif(sys.platform == "darwin", reason="syncs by fcntl there")
def test_an_entry_and_the_name_of_its_file_are_synced_before_it_is_acknowledged(log: str, steps: list[str]) -> None:
    put(log, b"first")
    assert steps == ["fsync folder", "write file", "fsync file"]
    steps.clear()
    put(log, b"second")
    assert steps == ["write file", "fsync file"]
    steps.clear()
    wal.seal(log)
    assert steps == ["rename", "fsync folder"]
    put(log, b"third")
    with open(current(log), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        steps.clear()
        put(log, b"spilled", wait=0)
    assert steps == ["write file", "fsync file", "rename", "fsync folder"]


@pytest.mark.skipif(sys.platform == "darwin", reason="syncs by fcntl there")
def test_damaged_lines_are_on_disk_before_their_file_is_removed(log: str, steps: list[str]) -> None:
    (Path(log) / "0.wal").write_bytes(b"bad\n")
    steps.clear()
    wal.forget(log, [f"{log}/0.wal"])
    assert steps == [
        "mkdir",
        "write file",
        "fsync file",
        "rename",
        "fsync folder",
        "fsync folder",
        "unlink",
        "fsync folder",
    ]


@pytest.mark.skipif(sys.platform == "darwin", reason="syncs by fcntl there")
def test_new_folders_are_synced_into_their_parents(tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / "common").mkdir()
    steps.clear()
    wal.create(str(tmp_path / "common" / "gitledger" / "wal" / "main"))
    assert steps == ["mkdir", "fsync folder"] * 3


# ── a full disk, no rights ───────────────────────────────────────────────────────────────────
FILL = """
import os, resource, signal
from gitledger import frame, wal
from gitledger.errors import IOFailed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    wal.append(sys.argv[1], "generic", "turn", b"x" * 2000, now_ms=1, rand=os.urandom(10))
except IOFailed as e:
    print(e)
wal.append(sys.argv[1], "generic", "turn", b"small", now_ms=1, rand=os.urandom(10))
"""


@pytest.mark.process
def test_a_write_that_stops_half_way_leaves_the_log_as_it_was(log: str) -> None:
    put(log, b"before")
    with current(log).open("ab") as file:
        file.write(b"torn")
    before = current(log).read_bytes()
    process = child(FILL, log)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert out.startswith(f"cannot write {log}: ".encode())
    assert current(log).read_bytes().startswith(before + b"\nGL1 ")
    entries, findings = wal.pending(log)
    assert [entry.payload for entry in entries] == [b"before", b"small"]
    assert len(findings) == 1


def test_reading_needs_no_right_to_write(log: str) -> None:
    put(log, b"one")
    wal.seal(log)
    put(log, b"two")
    for path in Path(log).iterdir():
        path.chmod(0o444)
    Path(log).chmod(0o555)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in Path(log).iterdir())
    # Root writes everywhere: the child that reads is nobody, where that is possible.
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            found = os.open(log, os.O_RDONLY)
            if os.geteuid() == 0:
                os.setuid(65534)
            os.chdir(found)
            os._exit(0 if len(wal.pending(".")[0]) == 2 else 1)
        os._exit(2)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    Path(log).chmod(0o700)
    assert status == 0
    assert sorted((path.name, path.stat().st_mtime_ns) for path in Path(log).iterdir()) == before


def test_another_users_log_is_not_written_to(log: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make another user's folder")
    os.chown(log, 65533, 65533)
    Path(log).chmod(0o777)
    pid = os.fork()
    if pid == 0:
        status = 1
        with contextlib.suppress(BaseException):
            place = os.open(log, os.O_RDONLY)
            os.setuid(65534)
            os.chdir(place)
            try:
                put(".", b"mine")
            except CannotWrite as e:
                status = 0 if "another user" in str(e) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.listdir(log) == []
    put(log, b"root may")
    assert payloads(log) == [b"root may"]


def test_a_sealed_file_that_cannot_be_removed_is_said_and_read_again(log: str) -> None:
    if os.geteuid() == 0:
        # Root is stopped by nothing but the kernel: give the name to a folder that is not empty.
        put(log, b"x")
        wal.seal(log)
        [(path, _, _)] = wal.sealed(log)
        data = Path(path).read_bytes()
        (Path(log) / wal.DAMAGED).write_text("in the way")
        Path(path).write_bytes(data + b"bad\n")
    else:
        put(log, b"x")
        wal.seal(log)
        [(path, _, _)] = wal.sealed(log)
        Path(log).chmod(0o500)
    try:
        with pytest.raises(IOFailed, match="cannot forget"):
            wal.forget(log, [path])
    finally:
        Path(log).chmod(0o700)
    assert [entry.payload for entry in wal.pending(log)[0]] == [b"x"]


# ── many processes ───────────────────────────────────────────────────────────────────────────
HOLD = """
import fcntl, os, signal
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()
"""


@pytest.mark.process
def test_a_stopped_holder_of_the_lock_wedges_nobody_and_loses_nothing(log: str) -> None:
    put(log, b"before")
    holder = child(HOLD, str(current(log)))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        spilled = put(log, b"while stopped", wait=0.05)
        assert sorted(os.listdir(log)) == [f"{spilled.id}.wal", wal.CURRENT]
        assert sorted(payloads(log)) == [b"before", b"while stopped"]
        with pytest.raises(LockHeld, match=f"process {holder.pid}" if sys.platform == "linux" else "held by"):
            wal.seal(log, wait=0.05)
    finally:
        holder.kill()
        holder.communicate()
    wal.seal(log)
    assert len(wal.sealed(log)) == 2
    assert sorted(payloads(log)) == [b"before", b"while stopped"]


@pytest.mark.process
def test_a_line_that_somebody_is_writing_is_no_damage_until_he_is_gone(log: str) -> None:
    put(log, b"before")
    with current(log).open("ab") as file:
        file.write(b"GL1 half")
    holder = child(HOLD, str(current(log)))
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert payloads(log) == [b"before"]
    finally:
        holder.kill()
        holder.communicate()
    entries, findings = wal.pending(log)
    assert (len(entries), [f.what for f in findings]) == (1, ["ends in the middle"])


def _append_many(folder: str, who: int, count: int) -> None:
    for number in range(count):
        put(folder, b"%d.%d\n\\" % (who, number))


@pytest.mark.process
def test_eight_writers_and_a_sealer_lose_tear_and_repeat_nothing(log: str) -> None:
    writers, count = 8, 100
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_append_many, args=(log, who, count)) for who in range(writers)]
    for process in processes:
        process.start()
    taken: list[bytes] = []
    files = 0
    while True:
        alive = any(process.is_alive() for process in processes)
        wal.seal(log)
        for path, entries, findings in wal.sealed(log):
            assert findings == []
            taken += [entry.payload for entry in entries]
            wal.forget(log, [path])
            files += 1
        assert wal.pending(log)[1] == []
        if not alive:
            break
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert files > 1
    assert sorted(taken) == sorted(b"%d.%d\n\\" % (w, n) for w in range(writers) for n in range(count))
    for who in range(writers):
        mine = [int(p[2:-2]) for p in taken if p.startswith(b"%d." % who)]
        assert len(mine) == count


FLOOD = """
import os
from gitledger import frame, wal
number = 0
while True:
    payload = b"%s.%d " % (sys.argv[2].encode(), number) + b"y" * 50000
    wal.append(sys.argv[1], "generic", "turn", payload, now_ms=1, rand=os.urandom(10))
    os.write(1, b"%d\\n" % number)
    number += 1
"""


@pytest.mark.process
def test_what_was_acknowledged_before_a_kill_is_read_after_it(log: str) -> None:
    rng = random.Random(7)
    acknowledged: set[bytes] = set()
    for run in range(12):
        process = child(FLOOD, log, str(run))
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(rng.random() * 0.03)
        process.kill()
        rest, _ = process.communicate()
        acknowledged |= {b"%d.%s" % (run, line) for line in (first + rest).split()}
    put(log, b"last ")
    entries, _ = wal.pending(log)
    read = [entry.payload.split(b" ")[0] for entry in entries]
    assert acknowledged <= set(read)
    assert len(read) == len(set(read))
    assert read[-1] == b"last"


def test_memory_does_not_hold_the_log_twice(log: str) -> None:
    for _ in range(8):
        put(log, b"z" * 4_000_000)
    tracemalloc.start()
    try:
        entries, _ = wal.pending(log)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = sum(len(entry.payload) for entry in entries)
    assert size == 32_000_000
    assert peak < size + 24_000_000  # the line at hand and its parts


def test_a_good_log_is_read_without_importing_the_model(log: str) -> None:
    put(log, b"x")
    script = """
from gitledger import frame, wal
wal.pending(sys.argv[1]); wal.sealed(sys.argv[1])
print("gitledger.model" in sys.modules)
"""
    assert child(script, log).communicate(timeout=300)[0] == b"False\n"
