"""The lock: one holder at a time, named to who waits, and free again however the holder ends."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gitledger import lock
from gitledger.errors import CannotWrite, LockHeld

HOLD = """
import signal
from gitledger import lock
with lock.held(sys.argv[1], deadline=10):
    print("held", flush=True)
    signal.pause()
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}\n{HOLD}"
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.mark.process
def test_a_held_lock_is_refused_with_the_holders_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    try:
        with (
            pytest.raises(LockHeld, match=f"is held by process {process.pid}; try again"),
            lock.held(str(path), deadline=0.05),
        ):
            pytest.fail("two holders")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.process
def test_a_holder_that_is_killed_frees_the_lock_and_its_file_is_harmless(tmp_path: Path, end: int) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    process.send_signal(end)
    process.communicate()
    assert path.read_text() == f"{process.pid}\n"
    with lock.held(str(path), deadline=0):
        assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.process
def test_a_waiter_gets_the_lock_when_it_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = holder(path)
    pid = os.fork()
    if pid == 0:
        with lock.held(str(path), deadline=60):
            os._exit(0)
    process.kill()
    process.communicate()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_lock_is_free_after_its_block_even_after_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with pytest.raises(ZeroDivisionError), lock.held(path, deadline=0):
        raise ZeroDivisionError
    with lock.held(path, deadline=0), pytest.raises(LockHeld), lock.held(path, deadline=0):
        pytest.fail("held twice")


def _count(path: str, counter: str, times: int) -> None:
    for _ in range(times):
        with lock.held(path, deadline=60):
            number = int(Path(counter).read_text())
            Path(counter).write_text(str(number + 1))


@pytest.mark.process
def test_many_processes_take_turns(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    context = multiprocessing.get_context("fork")
    arguments = (str(tmp_path / "lock"), str(counter), 25)
    processes = [context.Process(target=_count, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert counter.read_text() == "100"


def test_a_lock_file_removed_by_hand_does_not_let_two_in(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.held(str(path), deadline=0):
        path.unlink()
        # The next holder makes a new file; it must not believe in a lock on the nameless one.
        with lock.held(str(path), deadline=0):
            assert path.read_text() == f"{os.getpid()}\n"
            with pytest.raises(LockHeld), lock.held(str(path), deadline=0):
                pytest.fail("held twice")


def test_a_lock_file_removed_between_opening_and_locking_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    real = fcntl.flock
    calls: list[int] = []

    def flock(fd: int, how: int) -> None:
        if not calls:
            path.unlink()
        calls.append(how)
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with lock.held(str(path), deadline=1):
        assert path.read_text() == f"{os.getpid()}\n"


def test_the_file_is_the_users_alone_and_not_inherited(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.held(str(path), deadline=0):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with lock.held(str(path), deadline=0):
            pass
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("kind", ["symlink", "fifo", "folder", "no folder"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "symlink":
        (tmp_path / "target").write_text("mine")
        path.symlink_to(tmp_path / "target")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / "none" / "lock"
    why = "cannot open the lock" if kind == "no folder" else "is not a plain file"
    with pytest.raises(CannotWrite, match=why), lock.held(str(path), deadline=0):
        pytest.fail("held")
    if kind == "symlink":
        assert (tmp_path / "target").read_text() == "mine"
