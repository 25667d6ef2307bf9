"""The memory commands as people, cron and scripts run them: a proposal, a decision, the nightly run and its report."""

from __future__ import annotations

import email
import http.server
import json
import os
import pty
import re
import shlex
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitledger import memoryfile, notify, schedule
from gitledger.errors import CannotWrite, NotAllowed, Usage
from tests.ledgers import begin
from tests.process.program import gitledger, python, works
from tests.sealed import Repo

# What the library imports says so as it is loaded.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

TEXT = "# Memory\n\n### Facts\n" + "".join(f"- fact number {n} of this file\n" for n in range(1, 31))

PROPOSER = """\
import json, os, sys
prompt = sys.stdin.read()
folder = os.path.dirname(os.path.abspath(__file__))
n = len([name for name in os.listdir(folder) if name.startswith("asked-")]) + 1
open(f"{folder}/asked-{n}", "w").write(prompt)
sha256 = prompt.split("source_sha256: ")[1].split()[0]
answers = json.load(open(f"{folder}/answers.json"))
answer = answers[min(n, len(answers)) - 1]
if isinstance(answer, str):
    print(answer)
    sys.exit(0)
found = json.dumps({"source_sha256": sha256, "changes": answer})
print("Here is what I propose:\\n```json\\n" + found + "\\n```\\nDone.")
"""


@pytest.fixture
def file(repo: Repo) -> Path:
    begin(repo)
    path = repo.path / "memory" / "MEMORY.md"
    path.parent.mkdir()
    path.write_text(TEXT)
    return path


def fact(n: int) -> str:
    return f"- fact number {n} of this file"


def change(n: int, **more: Any) -> dict[str, Any]:
    return {"kind": "ephemeral", "original": [fact(n)], "reason": f"fact {n} was of a day", **more}


def proposer(repo: Repo, tmp_path: Path, *answers: Any) -> Path:
    """Configure a proposer that gives these answers in turn; the folder that holds what it was asked."""
    folder = tmp_path / "proposer"
    folder.mkdir(exist_ok=True)
    (folder / "proposer.py").write_text(PROPOSER)
    (folder / "answers.json").write_text(json.dumps(answers))
    works(repo.path, "config", "set", "proposer.command", shlex.join([sys.executable, str(folder / "proposer.py")]))
    return folder


def asked(folder: Path) -> list[str]:
    return [(folder / f"asked-{n}").read_text() for n in range(1, 1 + len(list(folder.glob("asked-*"))))]


def document(file: Path, *changes: dict[str, Any]) -> bytes:
    return json.dumps({"source_sha256": memoryfile.digest(file.read_bytes()), "changes": list(changes)}).encode()


# ── a person decides ─────────────────────────────────────────────────────────────────────────
def test_a_change_set_by_hand_is_shown_numbered_and_applied_in_part(repo: Repo, file: Path) -> None:
    shown = works(repo.path, "memory", "propose", "--from", "-", stdin=document(file, change(2), change(5), change(9)))
    assert "memory/MEMORY.md: 3 changes proposed" in shown
    assert f"2. ephemeral, line 8: fact 5 was of a day\n   < {fact(5)}" in shown
    assert "gitledger memory apply [--keep 2,5 | --delete 3 | --cancel]" in shown
    assert file.read_text() == TEXT
    refused = gitledger(repo.path, "memory", "apply", "--keep", "4")
    assert (refused.status, "there is no change 4 in the proposal; it has 1 to 3" in refused.err) == (2, True)
    told = works(repo.path, "memory", "apply", "--keep", "2")
    assert "M-0001: 2 changes applied to memory/MEMORY.md" in told
    assert file.read_text() == TEXT.replace(f"{fact(2)}\n", "").replace(f"{fact(9)}\n", "")
    assert gitledger(repo.path, "memory", "apply").status == 69  # it is decided
    assert "M-0001" in works(repo.path, "memory", "log")
    assert works(repo.path, "memory", "undo", "M-0001").startswith("M-0002: 2 lines put back into memory/MEMORY.md")
    assert file.read_text() == TEXT
    rows = json.loads(works(repo.path, "memory", "log", "--json"))
    assert [(row["id"], row["status"]) for row in rows] == [("M-0002", "applied"), ("M-0001", "undone")]


def test_delete_applies_those_alone_and_cancel_none(repo: Repo, file: Path) -> None:
    data = document(file, change(2), change(5), change(9))
    works(repo.path, "memory", "propose", "--from", "-", stdin=data)
    assert "nothing was changed" in works(repo.path, "memory", "apply", "--cancel")
    works(repo.path, "memory", "propose", "--from", "-", stdin=data)
    assert json.loads(works(repo.path, "memory", "apply", "--cancel", "--json")) is None
    assert file.read_text() == TEXT
    assert gitledger(repo.path, "memory", "apply").status == 69
    works(repo.path, "memory", "propose", "--from", "-", stdin=data)
    made = json.loads(works(repo.path, "memory", "apply", "--delete", "2-3", "--json"))
    assert [(row["change"], row["line"], row["removed"]) for row in made["changes"]] == [
        (2, 8, f"{fact(5)}\n"),
        (3, 12, f"{fact(9)}\n"),
    ]


def test_a_proposal_of_a_file_that_changed_meanwhile_is_refused_whole(repo: Repo, file: Path) -> None:
    works(repo.path, "memory", "propose", "--from", "-", stdin=document(file, change(2)))
    file.write_text(TEXT + "- new\n")
    ran = gitledger(repo.path, "memory", "apply")
    assert ran.status == 65
    assert "source_sha256: is not that of memory/MEMORY.md as it is now" in ran.err
    assert file.read_text() == TEXT + "- new\n"


def test_of_several_files_the_digest_tells_which_one_is_meant(repo: Repo, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text(TEXT.replace("fact", "other"))
    works(repo.path, "config", "set", "memory.files", json.dumps(["memory/MEMORY.md", str(other)]))
    data = document(other, {"kind": "ephemeral", "original": ["- other number 2 of this file"], "reason": "old"})
    assert works(repo.path, "memory", "propose", "--from", "-", stdin=data).startswith(f"{other}: 1 change proposed")
    works(repo.path, "memory", "apply")
    assert "other number 2 " not in other.read_text()
    ran = gitledger(repo.path, "memory", "propose", "--from", "-", stdin=data)
    assert ran.status == 65
    assert f"source_sha256: is that of no memory file as it is now (memory/MEMORY.md, {other})" in ran.err


def test_what_is_chosen_is_checked_by_itself(repo: Repo, file: Path) -> None:
    file.write_text(TEXT + "\n```\ncode\n```\n")
    first = {"kind": "detail", "original": ["```\ncode"], "reason": "a"}
    both = [first, {"kind": "detail", "original": ["```"], "reason": "b"}]
    ran = gitledger(repo.path, "memory", "propose", "--from", "-", stdin=document(file, *both))
    assert ran.status == 65  # three backticks stand twice
    assert "stands in the file 2 times" in ran.err


def test_audit_without_a_proposer_says_what_to_do(repo: Repo, file: Path) -> None:
    ran = gitledger(repo.path, "memory", "audit")
    assert ran.status == 69
    assert "no proposer is configured" in ran.err
    prompt = works(repo.path, "memory", "audit", "--prompt")
    assert memoryfile.digest(TEXT.encode()) in prompt
    assert f" 4|{fact(1)}" in prompt


def test_what_a_proposer_would_be_asked_goes_through_a_pipe_as_it_is(repo: Repo, file: Path) -> None:
    line = "- the family \U0001f468\u200d\U0001f469 and a zero\u200bwidth"
    file.write_text(TEXT + f"{line}\n")
    prompt = works(repo.path, "memory", "audit", "--prompt")
    shown = next(row for row in prompt.splitlines() if "family" in row).partition("|")[2]
    made = {"kind": "ephemeral", "original": [shown], "reason": "copied from it"}
    works(repo.path, "memory", "propose", "--from", "-", stdin=document(file, made))
    works(repo.path, "memory", "apply")
    assert file.read_text() == TEXT


def audited_at_a_terminal(folder: Path, typed: bytes) -> tuple[int, bytes]:
    """The exit code of an audit that a person sits before, and all that the terminal showed."""
    parent, child = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "TERM": "dumb"}
    words = [sys.executable, "-m", "gitledger", "memory", "audit"]
    running = subprocess.Popen(words, cwd=folder, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)
    os.write(parent, typed)
    out = b""
    try:
        while chunk := os.read(parent, 4096):
            out += chunk
    except OSError:
        pass  # its end is closed
    os.close(parent)
    return running.wait(60), out


def test_audit_asks_on_a_terminal_and_does_what_it_is_told(repo: Repo, file: Path, tmp_path: Path) -> None:
    proposer(repo, tmp_path, [change(2), change(5)])
    status, out = audited_at_a_terminal(repo.path, b"what\nkeep 9\nkeep 1\n")
    assert status == 0, out
    assert b"say apply, keep 2,5, delete 3 or cancel" in out
    assert b"there is no change 9" in out
    assert b"M-0001: 1 change applied" in out
    assert file.read_text() == TEXT.replace(f"{fact(5)}\n", "")


def keys(text: str) -> str:
    """The keys of a JSON value as `docs/json.md` has them in a line."""
    value = json.loads(text)
    rows = value if isinstance(value, list) else [value]
    return ", ".join(f'"{key}"' for key in rows[0])


def test_json_has_the_keys_that_its_page_names(repo: Repo, file: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs/json.md").read_text()

    def named(command: str) -> str:
        form = page.partition(f"memory {command}")[2].partition("```text\n")[2].partition("\n```")[0]
        outer = re.sub(r"(?s)(?<=: )\[\{.*\}\]", "", form)
        return ", ".join(re.findall(r'"\w+"(?=[,:}])', outer.replace('"applied" or "undone"', "")))

    proposer(repo, tmp_path, [change(5)])
    proposed = works(repo.path, "memory", "propose", "--from", "-", "--json", stdin=document(file, change(2)))
    assert keys(proposed) == named("propose") == '"file", "source_sha256", "changes"'
    row = json.dumps(json.loads(proposed)["changes"][0])
    assert keys(row) == '"change", "kind", "reason", "line", "lines", "removed", "put", "held_at"'
    assert all(f"{key}" in page for key in keys(row).split(", "))
    assert keys(works(repo.path, "memory", "apply", "--json")) == named("apply")
    assert keys(works(repo.path, "memory", "undo", "M-0001", "--json")) == named("apply")
    assert keys(works(repo.path, "memory", "compact", "--json")) == named("compact")
    assert keys(works(repo.path, "memory", "log", "--json")) == named("log")


def test_a_question_that_nobody_answers_leaves_the_proposal_waiting(repo: Repo, file: Path, tmp_path: Path) -> None:
    proposer(repo, tmp_path, [change(2), change(5)])
    status, out = audited_at_a_terminal(repo.path, b"\x04")  # as Ctrl-D at the beginning of a line
    assert status == 130, out
    assert b"Nothing was changed. The proposal waits: gitledger memory apply" in out
    assert file.read_text() == TEXT
    assert "M-0001: 1 change applied" in works(repo.path, "memory", "apply", "--keep", "2")


def test_an_undo_tells_of_what_was_cut_off_before(repo: Repo, file: Path) -> None:
    works(repo.path, "memory", "propose", "--from", "-", stdin=document(file, change(2)))
    code = "import os, sys\nfrom gitledger import memory\nmemory._commit = lambda *words: os._exit(9)\n"
    code += "sys.argv = ['gitledger', 'memory', 'apply']\nfrom gitledger.__main__ import main\nmain()"
    assert python(repo.path, code).status == 9
    ran = gitledger(repo.path, "memory", "undo", "M-0001")
    assert (ran.status, "a change of it was cut off; it is M-0001 now" in ran.err) == (0, True)
    assert file.read_text() == TEXT


# ── every night ──────────────────────────────────────────────────────────────────────────────
def test_compact_sends_refusals_back_and_applies_what_is_accepted(repo: Repo, file: Path, tmp_path: Path) -> None:
    (repo.path / "USER.md").write_text("# User\n- likes tabs\n")
    folder = proposer(repo, tmp_path, "no JSON at all", [{**change(2), "original": ["- fact 2"]}], [change(2)])
    report = works(repo.path, "memory", "compact")
    assert report == (
        "Memory compact: memory/MEMORY.md: 1 change, 29 of 911 bytes less (M-0001)\n"
        "1. ephemeral, line 5: fact 2 was of a day"
    )
    assert file.read_text() == TEXT.replace(f"{fact(2)}\n", "")
    prompts = asked(folder)
    assert len(prompts) == 3
    assert "2|- likes tabs" in prompts[0]
    assert "the answer holds no JSON object" in prompts[1]
    assert "- changes[0].original[0]: is not in the file character for character" in prompts[2]


def test_a_proposal_that_is_refused_three_times_changes_nothing(repo: Repo, file: Path, tmp_path: Path) -> None:
    folder = proposer(repo, tmp_path, [{**change(2), "original": ["- fact 2"]}])
    tip = repo.git("rev-parse", "ledger/main")
    ran = gitledger(repo.path, "memory", "compact")
    assert ran.status == 77
    assert ran.err.startswith("gitledger: Memory compact: ERROR — after 3 attempts: its document was refused")
    assert "memory/MEMORY.md is as it was" in ran.err
    assert len(asked(folder)) == 3
    assert (file.read_text(), repo.git("rev-parse", "ledger/main")) == (TEXT, tip)
    assert "memory compact: after 3 attempts" in (repo.path / ".git/gitledger/log").read_text()


def test_compact_with_nothing_to_do_says_so(repo: Repo, file: Path, tmp_path: Path) -> None:
    proposer(repo, tmp_path, [])
    assert works(repo.path, "memory", "compact") == "Memory compact: memory/MEMORY.md: nothing to do"
    assert file.read_text() == TEXT


def test_each_of_several_files_is_compacted_by_itself(repo: Repo, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "agent" / "MEMORY.md"
    other.parent.mkdir()
    other.write_text(TEXT.replace("fact", "other fact"))
    works(repo.path, "config", "set", "memory.files", f"memory/MEMORY.md {other}")
    proposer(repo, tmp_path, [change(2)])
    ran = gitledger(repo.path, "memory", "compact")
    assert ran.status == 77  # the second file has no such line
    assert "(M-0001)" in ran.out
    assert f"ERROR — {other}: after 3 attempts" in ran.err
    assert fact(2) not in file.read_text()
    assert other.read_text() == TEXT.replace("fact", "other fact")


def test_a_file_that_cannot_be_read_keeps_no_other_one_from_being_compacted(
    repo: Repo, file: Path, tmp_path: Path
) -> None:
    broken, other = tmp_path / "broken.md", tmp_path / "other.md"
    broken.write_bytes(b"- caf\xe9\n")
    other.write_text(TEXT)
    names = [str(broken), str(tmp_path / "missing.md"), "memory/MEMORY.md", str(other)]
    works(repo.path, "config", "set", "memory.files", json.dumps(names))
    proposer(repo, tmp_path, [change(2)])
    ran = gitledger(repo.path, "memory", "compact")
    assert ran.status == 65
    assert ran.err.startswith(f"gitledger: Memory compact: ERROR — {broken}: {broken} is not UTF-8 text")
    assert [line.split()[-1] for line in ran.out.splitlines() if " bytes less " in line] == ["(M-0001)", "(M-0002)"]
    assert fact(2) not in file.read_text() + other.read_text()


def test_each_file_is_read_when_its_turn_comes(repo: Repo, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text(TEXT)
    works(repo.path, "config", "set", "memory.files", json.dumps(["memory/MEMORY.md", str(other)]))
    folder = proposer(repo, tmp_path, [change(2)])
    writes = (
        f"open({str(other)!r}, 'w').write(open({str(file)!r}).read() + '- new\\n')\n"  # the other's agent, meanwhile
    )
    (folder / "proposer.py").write_text(PROPOSER.replace("sha256 =", f"if n == 1: {writes}sha256 ="))
    assert works(repo.path, "memory", "compact").count(" bytes less ") == 2
    assert other.read_text() == TEXT.replace(f"{fact(2)}\n", "") + "- new\n"


def test_what_a_proposer_said_of_its_failure_is_in_the_log(repo: Repo, file: Path, tmp_path: Path) -> None:
    folder = proposer(repo, tmp_path, [change(2)])
    (folder / "proposer.py").write_text("import sys\nprint('quota is used up\\nsee the bill', file=sys.stderr)\n")
    assert gitledger(repo.path, "memory", "compact").status == 77
    log = (repo.path / ".git/gitledger/log").read_text()
    assert "memory: the proposer said: quota is used up\\nsee the bill" in log


# ── the report ───────────────────────────────────────────────────────────────────────────────
class Received(http.server.BaseHTTPRequestHandler):
    """A server that keeps what it is sent, and answers as Telegram does."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))  # type: ignore[attr-defined]
        answer = b'{"ok": true, "result": {"message_id": 1}}'
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def web(status: int = 200) -> Iterator[tuple[int, list[tuple[str, bytes]]]]:
    """A web server on loopback: its port, and what it has received."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Received) as server:
        server.received = []  # type: ignore[attr-defined]
        server.status = status  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, server.received  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


class Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as a mail needs."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                rows = []
                while (row := self.rfile.readline()) != b".\r\n":
                    rows.append(row)
                self.server.received.append(b"".join(rows))  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
            if word == b"QUIT":
                return


@contextmanager
def mail() -> Iterator[tuple[int, list[bytes]]]:
    """A mail server on loopback: its port, and the mails that it has received."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox) as server:
        server.received = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], server.received  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


REPORT = (
    "Memory compact: memory/MEMORY.md: 1 change, 29 of 911 bytes less (M-0001)\n1. ephemeral, line 5: of a day_ *x*"
)


def test_a_report_reaches_telegram_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    from apprise.plugins.telegram import NotifyTelegram

    with web() as (port, received):
        monkeypatch.setattr(NotifyTelegram, "notify_url", f"http://127.0.0.1:{port}/bot")
        assert (
            notify.send(["tgram://123456789:abcdefghijklmnopqrstuvwxyz012345678/987654321/"], "Memory compact", REPORT)
            == ()
        )
    path, body = received[-1]
    assert path.endswith("/sendMessage")
    sent = json.loads(body)
    assert sent["chat_id"] == 987654321
    assert "1 change, 29 of 911 bytes less (M-0001)" in sent["text"]
    assert "ephemeral, line 5: of a day_ *x*" in sent["text"]


def test_a_report_reaches_a_mailbox_and_a_webhook() -> None:
    pytest.importorskip("apprise")
    with mail() as (port, mails), web() as (hook, received):
        urls = [
            f"mailto://127.0.0.1:{port}/?from=ledger@example.org&to=ada@example.org&mode=insecure",
            f"json://127.0.0.1:{hook}/in",
        ]
        assert notify.send(urls, "Memory compact", REPORT) == ()
    read = email.message_from_bytes(mails[0])
    assert read["To"].endswith("ada@example.org")
    body = next(part for part in read.walk() if part.get_content_type() == "text/plain").get_payload(decode=True)
    assert isinstance(body, bytes)
    assert "1 change, 29 of 911 bytes less (M-0001)" in body.decode()
    assert json.loads(received[0][1])["message"] == REPORT


def test_an_address_that_fails_is_told_without_its_password() -> None:
    pytest.importorskip("apprise")
    with web(500) as (port, _):
        faults = notify.send([f"json://user:verysecretword@127.0.0.1:{port}/in", "nonsense://x"], "t", "text")
    assert faults[0].startswith("the json address did not take the message")
    assert "verysecretword" not in "".join(faults)
    assert faults[1] == "the nonsense address is no address that apprise knows; mend notify.urls"


def test_what_speaks_to_one_service_may_break_and_the_next_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    apprise = pytest.importorskip("apprise")
    real = apprise.Apprise.notify

    def notified(self: Any, **words: Any) -> Any:
        if "user" in self.urls()[0]:
            raise TypeError("no message of verysecretword")
        return real(self, **words)

    monkeypatch.setattr(apprise.Apprise, "notify", notified)
    with web() as (port, received):
        urls = [f"json://user:verysecretword@127.0.0.1:{port}/in", f"json://127.0.0.1:{port}/in"]
        faults = notify.send(urls, "t", "text")
    assert faults == ("the json address did not take the message (TypeError: no message of …)",)
    assert len(received) == 1


def test_the_nightly_report_is_sent_and_a_failure_begins_with_error(repo: Repo, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    proposer(repo, tmp_path, [change(2)], [{**change(2), "reason": "gone"}])
    with web() as (port, received):
        works(repo.path, "config", "set", "notify.urls", f"json://127.0.0.1:{port}/in")
        report = works(repo.path, "memory", "compact")
        assert gitledger(repo.path, "memory", "compact").status == 77
    messages = [json.loads(body)["message"] for _, body in received]
    assert messages[0] == report.rstrip("\n")
    assert messages[1].startswith(
        "Memory compact: ERROR — after 3 attempts: its document was refused: 1 error, at changes[0].original[0]; "
        "memory/MEMORY.md is as it was; details are in "
    )
    assert "fact number" not in messages[1]  # the error quotes a line that is like it, and a line is no report's
    assert "is like it: - fact number" in (repo.path / ".git/gitledger/log").read_text()


def test_a_report_that_cannot_be_sent_undoes_nothing(repo: Repo, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    proposer(repo, tmp_path, [change(2)])
    works(repo.path, "config", "set", "notify.urls", "nonsense://x")
    ran = gitledger(repo.path, "memory", "compact")
    assert ran.status == 0
    assert "the report was not sent" in ran.err
    assert "the report was not sent" in (repo.path / ".git/gitledger/log").read_text()
    assert fact(2) not in file.read_text()


FAULTS = """\
import os, sys
from gitledger import memory, memoryfile, proposer
def fails(*words, **more):
    raise eval(os.environ["FAULT"])
owner, name = {"asked": (proposer, "propose"), "commit": (memory, "_commit"), "gone": (memoryfile, "look")}[sys.argv[1]]
setattr(owner, name, fails)
sys.argv = ["gitledger", "memory", "compact"]
from gitledger.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("where", "fault", "status", "words"),
    [
        ("asked", "KeyError('x')", 70, "KeyError: 'x' (this is a fault in gitledger"),
        ("commit", "KeyError('x')", 70, "KeyError: 'x' (this is a fault in gitledger"),
        ("commit", "OSError(28, 'No space left on device')", 74, "No space left on device; memory/MEMORY.md is as it"),
        ("gone", "OSError(5, 'Input/output error', '/disk')", 74, "/disk: Input/output error; mend that"),
    ],
)
def test_whatever_fails_at_night_is_reported_and_leaves_the_file(
    repo: Repo,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    fault: str,
    status: int,
    words: str,
) -> None:
    pytest.importorskip("apprise")
    proposer(repo, tmp_path, [change(2)])
    monkeypatch.setenv("FAULT", fault)
    with web() as (port, received):
        works(repo.path, "config", "set", "notify.urls", f"json://127.0.0.1:{port}/in")
        ran = python(repo.path, FAULTS, where)
    message = json.loads(received[0][1])["message"]
    assert (ran.status, len(received)) == (status, 1)
    assert message.startswith("Memory compact: ERROR — ")
    assert words in message
    assert ran.err.startswith("gitledger: Memory compact: ERROR — ")
    assert ran.err.count("\n") == 1
    assert (file.read_text(), os.listdir(file.parent)) == (TEXT, [file.name])


# ── the line of cron, the timer of systemd ───────────────────────────────────────────────────
CRONTAB = """\
#!/bin/sh
# as cron's own: the table is a file
case "$1" in
  -l) [ -f "$TABLE" ] && cat "$TABLE" || { echo "no crontab for ada" >&2; exit 1; } ;;
  -r) rm "$TABLE" ;;
  -) cat > "$TABLE" ;;
esac
"""


def crontab(tmp_path: Path, before: str | None) -> tuple[dict[str, str], Path]:
    """A crontab program on PATH, over a table that a test can read; the environment with it."""
    programs, table = tmp_path / "programs", tmp_path / "table"
    programs.mkdir()
    (programs / "crontab").write_text(CRONTAB)
    (programs / "crontab").chmod(0o755)
    if before is not None:
        table.write_text(before)
    return {"PATH": f"{programs}:{os.environ['PATH']}", "TABLE": str(table)}, table


@pytest.mark.parametrize("before", [None, "", "# mine\n0 1 * * * backup\n", "0 1 * * * no-newline-at-the-end\n"])
def test_the_cron_line_goes_in_once_and_out_again_as_if_it_had_not_been(
    repo: Repo, file: Path, tmp_path: Path, before: str | None
) -> None:
    environment, table = crontab(tmp_path, before)
    for at in ("02:00", "3:30"):  # put in anew, it takes the old one's place
        works(repo.path, "memory", "schedule", "--at", at, "--install", env=environment)
    lines = table.read_text().splitlines()
    mine = [line for line in lines if schedule.MARK in line]
    assert len(mine) == 1
    assert mine[0].startswith("30 3 * * * PATH=")
    assert f" -C {repo.path} --ledger main memory compact >/dev/null {schedule.MARK} " in mine[0]
    assert [line for line in lines if line not in mine] == (before or "").splitlines()
    other = f"0 5 * * * x {schedule.MARK} 000000000000\n"  # another clone's
    table.write_text(table.read_text() + other)
    assert "Removed the cron line" in works(repo.path, "memory", "schedule", "--remove", env=environment)
    assert table.read_text() == (before or "") + other
    assert "Nothing of ours" in works(repo.path, "memory", "schedule", "--remove", env=environment)


def test_the_lines_of_others_stay_byte_for_byte(repo: Repo, file: Path, tmp_path: Path) -> None:
    environment, table = crontab(tmp_path, "")
    before = b'# caf\xe9 \xe2\x80\xa8 x\x0b\r\n0 1 * * * echo a\rb %x\r\n\n \t@daily y\x0c\nMAILTO=""\n'
    table.write_bytes(before)
    works(repo.path, "memory", "schedule", "--install", env=environment)
    assert table.read_bytes().startswith(before)
    works(repo.path, "memory", "schedule", "--remove", env=environment)
    assert table.read_bytes() == before


def test_what_a_proposer_needs_to_reach_its_model_is_in_the_line_and_no_password() -> None:
    kept = {"PATH": "/bin", "SSL_CERT_DIR": "/c", "NANOBOT_CONFIG": "/n.json", "https_proxy": "http://proxy:3128"}
    lost = {"HTTPS_PROXY": "http://ada:verysecret@proxy:3128", "ANTHROPIC_API_KEY": "verysecret", "SSH_AUTH_SOCK": "/s"}
    run = schedule.nightly("02:00", ["x"], "/c", "main", kept | lost)
    assert dict(run.environment) == kept


def test_the_line_runs_in_the_environment_that_cron_gives(repo: Repo, file: Path, tmp_path: Path) -> None:
    proposer(repo, tmp_path, [change(2)])
    line = works(repo.path, "memory", "schedule", "--at", "02:00").rstrip("\n")
    command = line.split(" ", 5)[5].replace("\\%", "%")
    bare = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    done = subprocess.run(["/bin/sh", "-c", command], cwd="/", env=bare, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert fact(2) not in file.read_text()


def test_a_folder_with_a_percent_sign_or_a_quote_comes_through(tmp_path: Path) -> None:
    folder = tmp_path / "it's 100% mine"
    folder.mkdir()
    run = schedule.nightly("23:59", ["/bin/echo", "-C", str(folder)], "/c", "main", {"PATH": f"{folder}:/bin"})
    line = schedule.cron_line(run)
    assert "100\\% mine" in line
    said = subprocess.run(
        ["/bin/sh", "-c", line.split(" ", 5)[5].replace("\\%", "%").replace(">/dev/null", "")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"-C {folder}\n"
    assert schedule.units(run)[f"gitledger-memory-{run.id}.service"].count("100%% mine") == 2


def test_what_is_no_time_or_no_line_is_refused() -> None:
    with pytest.raises(Usage, match="no time of day"):
        schedule.nightly("25:00", ["x"], "/c", "main", {})
    with pytest.raises(NotAllowed, match="no line of cron can hold"):
        schedule.nightly("02:00", ["a\nb"], "/c", "main", {})
    with pytest.raises(NotAllowed, match="cron takes 990"):
        schedule.cron_line(schedule.nightly("02:00", ["x" * 1_000], "/c", "main", {}))


SYSTEMCTL = (
    '#!/bin/sh\necho "$*" >> "$CALLS"\ncase "$FAIL" in "$2") echo "Failed to connect to bus" >&2; exit 1;; esac\n'
)


def test_the_timer_is_put_in_started_and_taken_out(repo: Repo, file: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    calls = tmp_path / "calls"
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls)}
    units = Path(os.environ["XDG_CONFIG_HOME"]) / "systemd/user"
    told = works(repo.path, "memory", "schedule", "--install", "--systemd", env=environment)
    names = sorted(path.name for path in units.iterdir())
    assert len(names) == 2
    assert all(str(units / name) in told for name in names)
    assert "OnCalendar=*-*-* 02:00:00" in (units / names[1]).read_text()
    ran = gitledger(
        repo.path,
        "memory",
        "schedule",
        "--at",
        "03:00",
        "--install",
        "--systemd",
        env={**environment, "FAIL": "enable"},
    )
    assert (ran.status, "nothing was put in" in ran.err) == (CannotWrite.exit_code, True)
    assert "OnCalendar=*-*-* 02:00:00" in (units / names[1]).read_text()  # the one before stays
    calls.write_text("\n".join(calls.read_text().splitlines()[:2]) + "\n")
    works(repo.path, "memory", "schedule", "--remove", env=environment)
    assert list(units.iterdir()) == []
    assert calls.read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable --now {names[1]}",
        f"--user disable --now {names[1]}",
        "--user daemon-reload",
    ]
    ran = gitledger(repo.path, "memory", "schedule", "--install", "--systemd", env={**environment, "FAIL": "enable"})
    assert (ran.status, "nothing was put in" in ran.err, list(units.iterdir())) == (CannotWrite.exit_code, True, [])


def test_what_went_is_found_by_search(repo: Repo, file: Path) -> None:
    from gitledger import search
    from gitledger.commands.search import WORDS

    assert WORDS == search.KINDS
    works(repo.path, "memory", "propose", "--from", "-", stdin=document(file, change(17)))
    works(repo.path, "memory", "apply")
    assert works(repo.path, "search", "--kind", "memory", fact(17)[2:]).startswith("M-0001")
