"""Clients that are none of ours: the example of the documents, whole, and adapters that are missing or broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger import capture, clients, layout, wal
from gitledger.clients import guest
from gitledger.clients.answers import Answer
from gitledger.ledger import Ledger
from gitledger.model import Event
from tests.ledgers import again, begin
from tests.process.program import Ran, gitledger, works
from tests.sealed import Repo

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "docs" / "examples" / "client"
GOOD = (EXAMPLE / "acorn_ledger.py").read_text()
BARE = "/usr/bin:/bin"


def installed(site: Path, package: str, points: dict[str, str], *sources: Path) -> Path:
    """A package in `site`, as pip leaves one; without pip, which would ask an index."""
    known = site / f"{package.replace('-', '_')}-1.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    rows = "".join(f"{name} = {value}\n" for name, value in points.items())
    (known / "entry_points.txt").write_text(f"[{guest.GROUP}]\n{rows}")
    for source in sources:
        shutil.copy(source, site)
    return site


def adapter(site: Path, client: str, code: str, package: str = "") -> str:
    """A package whose adapter for `client` is this source; the client's name."""
    package = package or f"{client}-adapter"
    module = package.replace("-", "_")
    installed(site, package, {client: module})
    (site / f"{module}.py").write_text(code)
    return client


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where packages are installed beside gitledger, for this process and for what it starts."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    guest._adapter.cache_clear()
    yield folder
    guest._adapter.cache_clear()


@pytest.fixture
def ledger(repo: Repo) -> Ledger:
    return begin(repo)


def logged(ledger: Ledger, client: str, event: str = "turn", **payload: object) -> str:
    data = json.dumps(payload).encode()
    return wal.append(ledger.desk.home.wal, client, event, data, now_ms=1_796_000_000_000, rand=os.urandom(10)).id


def read(ledger: Ledger) -> dict[str, Event]:
    """The events that the log holds, by id; `ledger.findings` are what was faulty."""
    ledger.view()
    return {event.id: event for event in ledger.pending}


def run(ledger: Ledger, site: Path, *words: str, stdin: object = None) -> Ran:
    env = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    return gitledger(Path(ledger.gitdir.top), *words, stdin=stdin, env=env)


# ── the example ──────────────────────────────────────────────────────────────────────────────
MODEL = """\
#!/bin/sh
cat >"$PROMPTS/$(ls "$PROMPTS" | wc -l)"
newest=$(ls -t "$PROMPTS" | head -1)
if grep -q 'Summarise this' "$PROMPTS/$newest"; then echo SUMMARY-MARK
elif grep -q RUNCMD "$PROMPTS/$newest" && ! grep -q '^.shell.$' "$PROMPTS/$newest"; then echo '$ echo tool-ran; exit 3'
else echo ANSWER-MARK; fi
"""


class Acorn:
    """The example, running: what is said to it, and what it asked its model."""

    def __init__(self, folder: Path, scratch: Path, site: Path, limit: int = 10) -> None:
        self.prompts = scratch / f"prompts-{len(list(scratch.iterdir()))}"
        self.prompts.mkdir()
        model = scratch / "model"
        model.write_text(MODEL)
        model.chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", "import acorn; acorn.main()"],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{scratch / 'bin'}:{BARE}",
                "PYTHONPATH": f"{site}{os.pathsep}{ROOT}",
                "ACORN_MODEL": str(model),
                "ACORN_LIMIT": str(limit),
                "ACORN_CONVERSATION": "talk-1",
                "PROMPTS": str(self.prompts),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def say(self, text: str) -> str:
        """Its answer."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def complaint(self) -> str:
        """The next line of what it complains of."""
        assert self.process.stderr
        return self.process.stderr.readline()

    def leave(self) -> str:
        """What else it complained of; it has ended by itself."""
        _, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return err

    def asked(self) -> list[str]:
        """What its model was asked so far."""
        return [(self.prompts / str(n)).read_text() for n in range(len(list(self.prompts.iterdir())))]


@pytest.mark.process
def test_the_example_is_briefed_journalled_refused_compacted_and_handed_over(
    ledger: Ledger, site: Path, tmp_path: Path
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["gitledger.clients"]
    installed(site, project["name"], points, EXAMPLE / "acorn.py", EXAMPLE / "acorn_ledger.py")
    top = Path(ledger.gitdir.top)
    scratch = tmp_path / "scratch"
    (scratch / "bin").mkdir(parents=True)
    program = scratch / "bin" / "gitledger"
    load = f"import sys; sys.path[:0] = [{str(site)!r}, {str(ROOT)!r}]; from gitledger.__main__ import main"
    program.write_text(f"#!{sys.executable} -P\n{load}\nsys.exit(main())\n")
    program.chmod(0o755)
    (key,) = [p for p in (Path(os.environ["HOME"]) / ".local/share/gitledger").rglob("id_*") if p.suffix != ".pub"]

    acorn = Acorn(top, scratch, site)
    key.rename(key.with_name("away"))
    assert acorn.say("please do PROMPT-MARK RUNCMD") == "ANSWER-MARK"
    assert acorn.asked()[0].count("# gitledger briefing") == 1
    assert "BLOCKED_MISSING_PREREQUISITE" in acorn.complaint()
    assert not any("Summarise" in prompt for prompt in acorn.asked())
    key.with_name("away").rename(key)
    assert acorn.say("go on") == "ANSWER-MARK", "a refused compaction keeps nobody from working"
    assert "PROMPT-MARK" in acorn.asked()[2], "and takes nothing away"
    assert acorn.say("further") == "ANSWER-MARK"
    assert "SUMMARY-MARK" in acorn.asked()[-1]
    assert "PROMPT-MARK" not in acorn.asked()[-1]
    assert "Checkpoint: C-0000" in acorn.asked()[-1]
    assert acorn.leave() == ""

    events = [json.loads(line) for line in works(top, "journal", "--json").splitlines()]
    said = [event["data"] for event in events if event["data"].get("client") == "acorn"]
    assert next(one["prompt"] for one in said if "prompt" in one) == "please do PROMPT-MARK RUNCMD"
    assert [one["commands"] for one in said if "commands" in one] == [
        [{"command": "echo tool-ran; exit 3", "exit": 3, "output": "tool-ran\n"}]
    ]
    assert {one["answer"] for one in said if "answer" in one} == {"ANSWER-MARK"}
    assert "unreadable" not in {event["type"] for event in events}
    assert works(top, "session", "list") == "No session is open."
    assert works(top, "rebuild", "--check"), "by a program that knows nothing of acorn"
    handover = works(top, "handover", "list")

    other = Acorn(top, scratch, site, limit=100_000)
    assert other.say("hello again") == "ANSWER-MARK"
    assert handover.split()[0] in other.asked()[0], "the next session is told what the last one left"
    other.leave()


def test_the_example_is_as_short_as_it_is_said_to_be() -> None:
    assert len((EXAMPLE / "acorn.py").read_text().splitlines()) <= 110


# ── an adapter that is missing ───────────────────────────────────────────────────────────────
def test_a_client_without_an_adapter_speaks_the_generic_clients_words(ledger: Ledger, site: Path) -> None:
    ident = logged(ledger, "stray", session_id="s1", answer="done", files=["a.py"])
    event = read(ledger)[ident]
    assert (event.type, event.session) == ("turn", layout.session_key("stray", "s1"))
    assert event.data == {"client": "stray", "event": "turn", "answer": "done", "files": ["a.py"]}
    assert ledger.findings == []


def test_what_a_missing_adapter_would_have_read_is_kept_and_named(ledger: Ledger, site: Path) -> None:
    ident = logged(
        ledger, "stray", session_id="s1", message={"text": "WORDS"}, token="sk_live_" + "7Qf2mX9cVb4Tn8Lw3Zr6Ky1H"
    )
    event = read(ledger)[ident]
    assert event.session == layout.session_key("stray", "s1")
    assert "WORDS" in event.data["text"]
    assert "7Qf2mX9c" not in event.data["text"]
    assert event.data["faults"] == ["payload: client stray has no adapter here, and nothing else reads message, token"]
    nothing = logged(ledger, "stray", message="MORE WORDS")
    assert read(ledger)[nothing].type == "unreadable"
    assert "MORE WORDS" in read(ledger)[nothing].data["text"]
    assert ledger.checkpoint().name == "C-000001"


@pytest.mark.process
def test_hooks_of_a_client_without_an_adapter_are_answered_as_the_generic_clients(ledger: Ledger, home: Path) -> None:
    top = Path(ledger.gitdir.top)
    said = {"session_id": "s1", "cwd": str(top), "pid": os.getpid(), "theirs": 1}
    assert works(top, "hook", "stray", "start", stdin=said).startswith("# gitledger briefing")
    assert works(top, "hook", "stray", "turn", stdin=said) == ""
    assert works(top, "hook", "stray", "compact", stdin=said).startswith("Checkpoint: C-000001")
    (key,) = [p for p in (home / ".local" / "share" / "gitledger").rglob("id_*") if p.suffix != ".pub"]
    key.rename(key.with_name("away"))
    assert works(top, "hook", "stray", "turn", stdin=said) == ""
    ran = gitledger(top, "hook", "stray", "compact", stdin=said)
    assert ran.status == 69
    assert "BLOCKED_MISSING_PREREQUISITE" in ran.err
    log = (Path(ledger.gitdir.common) / "gitledger" / "log").read_text()
    assert "client stray has no adapter here, and nothing else reads theirs" in log


def test_a_name_of_ours_is_nobody_elses_and_neither_is_a_reserved_one(site: Path, tmp_path: Path) -> None:
    for name in (*clients.NAMES, *clients.RESERVED, "a.b", "a_b", "-x", "", "x" * 41, "A"):
        module = f"taken_{len(list(site.iterdir()))}"
        installed(site, module, {name: module})
        (site / f"{module}.py").write_text(f"open({str(tmp_path / 'loaded')!r}, 'w')\n" + GOOD)
        if name in clients.NAMES:
            assert clients.adapter(name).__name__.startswith("gitledger.clients.")  # type: ignore[attr-defined]
        else:
            assert not clients.is_name(name)
            with pytest.raises(KeyError):
                clients.adapter(name)
    assert not (tmp_path / "loaded").exists()


def test_nothing_in_the_folder_that_is_worked_in_is_an_adapter(
    repo: Repo, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter(repo.path, "planted", f"open({str(tmp_path / 'loaded')!r}, 'w')\n" + GOOD.replace("acorn", "planted"))
    monkeypatch.chdir(repo.path)
    for place in ("", ".", str(repo.path)):
        monkeypatch.setattr(sys, "path", [place, *sys.path])
        assert isinstance(guest.adapter("planted"), guest.Plain)
        guest._adapter.cache_clear()
    assert not (tmp_path / "loaded").exists()


# ── an adapter that is broken ────────────────────────────────────────────────────────────────
def broken(line: str, of: str = "translate") -> str:
    """The good adapter with a function that does something else."""
    return GOOD.replace('"acorn"', '"bad"') + f"\n\ndef {of}(*_):\n    {line}\n"


BROKEN = [
    (broken("raise ZeroDivisionError('oh')"), "ZeroDivisionError: oh"),
    (broken("raise SystemExit(0)"), "SystemExit"),
    (broken("import os; os._exit(0)"), "its process ended"),
    (broken("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), "its process ended"),
    (broken("import time; time.sleep(60)"), "did not answer in time"),
    (broken("import re; re.match('(a*)*b', 'a' * 99)"), "did not answer in time"),
    (broken("return None"), "translate gave NoneType"),
    (broken("return {}, []"), "translate gave (dict, list)"),
    (broken("return GenericPayload(prompt=object()), []"), "not JSON serializable"),
    ("raise ImportError('no such thing')", "ImportError: no such thing"),
    ("NAME = 'bad'", "AttributeError"),
    (GOOD, "its NAME is another one"),
    (broken("pass").replace("CAN_REFUSE = True", "CAN_REFUSE = 'yes'"), "neither true nor false"),
]


@pytest.mark.parametrize(("code", "why"), BROKEN, ids=[why for _, why in BROKEN])
def test_a_broken_adapter_is_named_and_its_events_are_kept(
    code: str, why: str, ledger: Ledger, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "in time" in why:
        monkeypatch.setattr(guest, "PATIENCE", 1.0)
    adapter(site, "bad", code)
    ids = [logged(ledger, "bad", session_id="s1", message="KEPT-MARK") for _ in range(3)]
    after = logged(ledger, "claude-code", session_id="s2", last_assistant_message="fine")
    events = read(ledger)
    assert [events[ident].type for ident in ids] == ["unreadable"] * 3
    assert all("KEPT-MARK" in events[ident].data["text"] for ident in ids)
    assert events[after].data["answer"] == "fine"
    assert {finding.rule for finding in ledger.findings} == {"unreadable"}
    told = str(ledger.findings[0].what)
    assert "the adapter of client bad (package bad-adapter 1.0) failed: " in told
    assert why in told
    assert ledger.checkpoint().name == "C-000001"


def test_fields_of_the_wrong_type_are_faults_and_the_rest_is_kept(ledger: Ledger, site: Path) -> None:
    adapter(site, "bad", broken("return GenericPayload(session_id='s1', prompt=7, answer='yes', files=3), []"))
    ident = logged(ledger, "bad")
    event = read(ledger)[ident]
    assert event.data["answer"] == "yes"
    assert [fault.partition(":")[0] for fault in event.data["faults"]] == ["payload", "payload"]
    assert "prompt is a number, not a text" in str(event.data["faults"]).replace(":", "")


def test_what_an_adapter_prints_and_what_it_answers_wrongly_reaches_nobody(site: Path) -> None:
    code = (
        broken("print('noise'); return 'text'", "answer") + "\n\ndef refusal(*_):\n    return Answer('', 'no', 4711)\n"
    )
    adapter(site, "bad", code)
    found = clients.adapter("bad")
    assert found.answer("start", "TEXT") == Answer("TEXT")
    assert found.refusal("TEXT", 75) == Answer(stderr="TEXT", code=75)
    adapter(site, "good", GOOD.replace('"acorn"', '"good"') + "\nprint('noise')\n")
    good = clients.adapter("good")
    assert good.answer("start", "žluť\n\ud800") == Answer("žluť\n\ud800")
    assert good.refusal("TEXT", 75) == Answer(stderr="TEXT", code=2)
    assert (good.CAN_REFUSE, good.SETTLES, good.ANNOUNCES_ALWAYS) == (True, False, False)


def test_two_packages_with_an_adapter_for_one_client_are_both_refused(ledger: Ledger, site: Path) -> None:
    for package in ("one", "two"):
        adapter(site, "twice", GOOD.replace('"acorn"', '"twice"'), package)
    logged(ledger, "twice", conversation="c")
    read(ledger)
    assert "(package one 1.0, two 1.0) failed: several packages have one; remove all but one" in ledger.findings[0].what


@pytest.mark.process
def test_the_hooks_of_a_broken_adapter_open_close_and_checkpoint_all_the_same(ledger: Ledger, site: Path) -> None:
    adapter(site, "bad", broken("raise ZeroDivisionError('oh')"))
    said = {"session_id": "s1", "cwd": ledger.gitdir.top, "pid": os.getpid()}
    started = run(ledger, site, "hook", "bad", "start", stdin=said)
    assert started.out.startswith("# gitledger briefing")
    made = run(ledger, site, "hook", "bad", "compact", stdin=said)
    assert (made.status, made.out.partition("\n")[0]) == (0, "Checkpoint: C-000001")
    assert run(ledger, site, "hook", "bad", "end", stdin=said).status == 0
    assert "ZeroDivisionError: oh" in (Path(ledger.gitdir.common) / "gitledger" / "log").read_text()
    assert works(Path(ledger.gitdir.top), "session", "list") == "No session is open."


# ── what a hook costs ────────────────────────────────────────────────────────────────────────
@pytest.mark.process
def test_a_client_whose_turns_end_makes_a_checkpoint_leaves_word_of_it_at_its_start(ledger: Ledger, site: Path) -> None:
    adapter(site, "settler", GOOD.replace('"acorn"', '"settler"').replace("SETTLES = False", "SETTLES = True"))
    mark = Path(ledger.gitdir.common) / "gitledger" / f"{guest.SETTLES}settler"
    said = {"conversation": "s1", "cwd": ledger.gitdir.top, "pid": os.getpid()}
    run(ledger, site, "hook", "settler", "start", stdin=said)
    assert mark.exists()
    assert capture._settles(ledger.gitdir.common, "settler")
    guest.flag(ledger.gitdir.common, "settler", settles=False)
    assert not mark.exists()


def test_logging_for_a_client_of_another_package_looks_for_no_package(
    ledger: Ledger, site: Path, tmp_path: Path
) -> None:
    adapter(site, "acorn", f"open({str(tmp_path / 'loaded')!r}, 'w')\n" + GOOD)
    code = (
        "import os, sys\nfrom gitledger import capture\n"
        "for event in sorted(capture.FAST):\n"
        "    r, w = os.pipe(); os.write(w, b'{}'); os.close(w); os.dup2(r, 0); os.close(r)\n"
        "    assert capture.main(['hook', 'acorn', event], lambda *_: None) == 0\n"
        "print(*sorted(sys.modules))\n"
    )
    words = [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(site)!r}]\n{code}"]
    done = subprocess.run(words, cwd=ledger.gitdir.top, capture_output=True, check=True, timeout=60)
    loaded = set(done.stdout.decode().split())
    assert not {name for name in loaded if name.startswith(("gitledger.clients", "importlib.metadata"))}
    assert not (tmp_path / "loaded").exists()
    entries, _ = wal.pending(again(Repo(Path(ledger.gitdir.top))).desk.home.wal)
    assert len(entries) == len(capture.FAST)
    for words in (["--help"], ["hook", "claude-code", "turn"]):
        code = f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = {words!r}\n"
        code += "os._exit = sys.exit\nfrom gitledger.__main__ import main\n"
        code += "try:\n    main()\nfinally:\n    print('LOADED', *sys.modules)"
        done = subprocess.run(
            [sys.executable, "-I", "-c", code],
            cwd=ledger.gitdir.top,
            input=b"{}",
            capture_output=True,
            check=True,
            timeout=60,
        )
        loaded = set(done.stdout.decode().partition("LOADED ")[2].split())
        assert loaded
        assert not {name for name in loaded if name.startswith(("gitledger.clients", "importlib.metadata"))}, words


def test_the_doctor_says_how_each_adapter_fares(ledger: Ledger, site: Path) -> None:
    adapter(site, "good", GOOD.replace('"acorn"', '"good"'))
    adapter(site, "bad", "raise ImportError('no such thing')")
    for client in ("good", "bad", "stray", "claude-code"):
        logged(ledger, client, session_id="s1")
    told = {check.what.partition(":")[0]: check for check in guest.checks(ledger)}
    assert told.keys() == {"good", "bad", "stray"}
    assert told["good"].what == "good: the adapter of package good-adapter 1.0"
    assert "no adapter is installed" in told["stray"].what
    assert (told["bad"].state, told["good"].state, told["stray"].state) == ("warning", "ok", "ok")
    assert "fails: ImportError: no such thing" in told["bad"].what
