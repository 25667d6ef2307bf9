"""Hooks go into people's settings, are brought up to date, and come out again without a trace."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import capture, gitdir, hooks, install, program, settingsfile, shims, wiring
from gitledger.errors import BadData, CannotWrite
from gitledger.install import Place
from gitledger.wiring import BY_NAME, CLIENTS, Client, Scope
from tests.ledgers import begin
from tests.sealed import LONG, Repo
from tests.test_hostile_commands import run
from tests.test_splice import written

JSON = [client for client in CLIENTS if client.shape not in ("plugin", "module")]
SHARED = [client for client in JSON if not client.own]
PLUGINS = [client for client in CLIENTS if client.shape == "plugin"]


def at(client: Client | str, repo: Repo, scope: Scope = "project") -> Place:
    found = install.place(
        BY_NAME[client] if isinstance(client, str) else client, scope, gitdir.find(str(repo.path)), os.environ
    )
    assert found is not None
    return found


def tree(*folders: Path) -> dict[str, bytes | None]:
    """Every file and folder, but for git's."""
    found: dict[str, bytes | None] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if ".git" not in path.relative_to(folder).parts:
                found[str(path)] = path.read_bytes() if path.is_file() else None
    return found


def put(place: Place, text: str | bytes) -> Path:
    path = Path(place.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# ── in and out ───────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("client", "scope"),
    [pytest.param(client, scope, id=f"{client.name}-{scope}") for client in CLIENTS for scope in client.scopes],
)
def test_where_there_was_nothing_there_is_nothing_again(repo: Repo, home: Path, client: Client, scope: Scope) -> None:
    place = at(client, repo, scope)
    before = tree(repo.path, home)
    assert install.install(place).done == "installed"
    assert {row.state for row in install.wired(place)} == {"installed"}
    once = tree(repo.path, home)
    assert install.install(place).done == "current"
    assert tree(repo.path, home) == once
    assert install.uninstall(place).done == "removed"
    assert {name: data for name, data in tree(repo.path, home).items() if data is not None} == before
    assert not Path(place.path).parent.exists()
    assert install.uninstall(place).done == "absent"


DOCUMENTS = [
    "",
    "\n \n",
    "{}",
    "{ }\n",
    "{\n}",
    '{"a":1}',
    '{\n    "model" : "x",\n\n    "hooks": {}\n}',
    '\ufeff{\r\n\t"permissions": {\r\n\t\t"allow": ["Bash(ls:*)", "\\u00e9"]\r\n\t}\r\n}\r\n',
    '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "mine"}]}]}, "z": 1.50}',
    '{\n  "hooks": {\n    "Stop": [],\n    "PreCompact": [\n    ]\n  }\n}',
]


@pytest.mark.parametrize("client", SHARED, ids=lambda client: client.name)
def test_settings_come_out_byte_for_byte(repo: Repo, client: Client) -> None:
    place = at(client, repo)
    for text in DOCUMENTS:
        path = put(place, text)
        install.install(place)
        assert {row.state for row in install.wired(place)} == {"installed"}, text
        once = path.read_bytes()
        assert install.install(place).done == "current"
        assert path.read_bytes() == once
        install.uninstall(place)
        assert path.read_bytes() == text.encode(), text


@given(written(comments=True), st.booleans())
@settings(max_examples=60 if LONG else 25)
def test_settings_of_any_form_come_out_byte_for_byte(case: tuple[str, Any], bom: bool) -> None:
    text = ("\ufeff" if bom else "") + case[0]
    client = BY_NAME["gemini"]
    with tempfile.TemporaryDirectory() as folder:
        place = Place(client, "user", f"{folder}/settings.json", f"{folder}/state/wiring/x.json")
        path = put(place, text)
        install.install(place)
        once = path.read_bytes()
        assert {row.state for row in install.wired(place)} == {"installed"}
        assert install.install(place).done == "current"
        assert path.read_bytes() == once
        install.uninstall(place)
        assert path.read_bytes() == text.encode()
        assert sorted(os.listdir(folder)) in (["settings.json"], ["settings.json", "state"])


def test_what_a_person_wrote_since_stays_and_all_else_goes(repo: Repo) -> None:
    place = at("claude-code", repo)
    path = put(place, '{\n  "model": "a"\n}\n')
    install.install(place)
    edited = path.read_text().replace('"model": "a"', '"model": "b",\n  "env": {"X": "1"}')
    edited = edited.replace('"SessionStart": [', '"SessionStart": [\n      {"hooks": [{"command": "mine"}]},')
    path.write_text(edited)
    assert {row.state for row in install.wired(place)} == {"installed"}
    install.uninstall(place)
    assert path.read_text() == (
        '{\n  "model": "b",\n  "env": {"X": "1"},\n  "hooks": {\n    "SessionStart": [\n'
        '      {"hooks": [{"command": "mine"}]}\n    ]\n  }\n}\n'
    )


def test_a_file_of_ours_that_somebody_wrote_into_stays_with_that(repo: Repo) -> None:
    place = at("claude-code", repo)
    install.install(place)
    path = Path(place.path)
    path.write_text(path.read_text().replace("{\n", '{\n  "model": "b",\n', 1))
    install.uninstall(place)
    assert json.loads(path.read_text()) == {"model": "b"}


def test_a_file_of_ours_that_was_only_laid_out_anew_is_gone(repo: Repo) -> None:
    place = at("claude-code", repo)
    install.install(place)
    path = Path(place.path)
    path.write_text(json.dumps(json.loads(path.read_text())))
    install.uninstall(place)
    assert not path.parent.exists()


@pytest.mark.parametrize("client", [one for one in CLIENTS if "project" in one.scopes], ids=lambda client: client.name)
def test_what_came_with_the_repository_is_taken_out_by_another_clone(
    repo: Repo, client: Client, tmp_path: Path
) -> None:
    install.install(at(client, repo))
    repo.commit("wired", {})
    other = repo.clone(tmp_path / "other")
    assert install.install(at(client, other)).done == "current"
    install.uninstall(at(client, other))
    assert not Path(at(client, other).path).exists()


# ── older versions ───────────────────────────────────────────────────────────────────────────
def test_an_older_install_is_brought_up_to_date_and_says_what_was_missing(repo: Repo) -> None:
    place = at("claude-code", repo)
    before = (
        '{\n  "model": "a",\n  "hooks": {\n    "Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]\n  }\n}\n'
    )
    path = put(place, before)
    install.install(place)
    value = json.loads(path.read_text())
    del value["hooks"]["PostCompact"]
    value["hooks"]["Stop"][1]["hooks"][0]["command"] = "/bin/sh -c ': gitledger claude-code turn; old'"
    value["hooks"]["Gone"] = [{"hooks": [{"command": "/bin/sh -c ': gitledger claude-code gone; old'"}]}]
    path.write_text(json.dumps(value, indent=2) + "\n")
    Path(place.receipt).unlink()  # it came with the repository, say
    done = install.install(place)
    assert (done.done, done.missing, done.old) == ("updated", ("PostCompact",), ("Stop", "Gone"))
    assert {row.state for row in install.wired(place)} == {"installed"}
    assert "old" not in path.read_text()
    install.uninstall(place)
    assert json.loads(path.read_text()) == json.loads(before)


def test_an_event_that_is_wired_twice_is_wired_once_again(repo: Repo) -> None:
    place = at("claude-code", repo)
    install.install(place)
    path = Path(place.path)
    value = json.loads(path.read_text())
    value["hooks"]["Stop"] *= 2
    path.write_text(json.dumps(value))
    assert install.install(place).old == ("Stop",)
    assert len(json.loads(path.read_text())["hooks"]["Stop"]) == 1


def test_a_time_limit_that_a_person_set_stays(repo: Repo) -> None:
    place = at("claude-code", repo)
    install.install(place)
    path = Path(place.path)
    path.write_text(path.read_text().replace('"timeout": 30', '"timeout": 99'))
    assert install.install(place).done == "current"


# ── what is left alone ───────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "text",
    [b"{oops", b"[]", b'{"hooks": []}', b'{"a": 1} // c', b"\xff\xfe{\0}\0", b'{"hooks": {"Stop": 1}}'],
)
def test_settings_that_cannot_be_read_are_left_alone(repo: Repo, text: bytes) -> None:
    place = at("claude-code", repo)
    path = put(place, text)
    with pytest.raises(BadData) as caught:
        install.install(place)
    assert "\n" not in str(caught.value)
    assert place.path in str(caught.value)
    assert path.read_bytes() == text
    assert not Path(place.receipt).exists()


def test_a_plugin_that_is_none_of_ours_or_was_edited_is_left_alone(repo: Repo) -> None:
    for client in PLUGINS:
        place = at(client, repo)
        path = put(place, "// mine\n")
        with pytest.raises(BadData):
            install.install(place)
        assert install.uninstall(place).done == "absent"
        assert path.read_text() == "// mine\n"
        path.unlink()
        install.install(place)
        path.write_text(path.read_text() + "// and mine\n")
        with pytest.raises(BadData):
            install.install(place)
        with pytest.raises(BadData):
            install.uninstall(place)
        assert path.read_text().endswith("// and mine\n")


def test_a_plugin_of_another_version_is_brought_up_to_date(repo: Repo) -> None:
    place = at("pi", repo)
    old = install._sealed("// Written by gitledger of old\nold\n")
    path = put(place, old)
    assert {row.state for row in install.wired(place)} == {"outdated"}
    assert install.install(place).done == "updated"
    assert path.read_text() == install.to_paste(BY_NAME["pi"])


def test_a_read_only_file_is_refused_in_one_line(repo: Repo) -> None:
    place = at("claude-code", repo)
    path = put(place, "{}")
    path.chmod(0o444)
    with pytest.raises(CannotWrite, match="read-only"):
        install.install(place)
    assert path.read_text() == "{}"
    assert not Path(place.receipt).exists()


def test_a_symlink_stays_one_and_its_target_keeps_its_mode(repo: Repo, tmp_path: Path, home: Path) -> None:
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_text('{"a": 1}')
    target.chmod(0o640)
    place = at("claude-code", repo, "user")
    Path(place.path).parent.mkdir()
    Path(place.path).symlink_to(target)
    install.install(place)
    assert Path(place.path).is_symlink()
    assert ": gitledger claude-code turn;" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    install.uninstall(place)
    assert Path(place.path).is_symlink()
    assert target.read_text() == '{"a": 1}'


def test_a_file_that_changed_under_us_is_left_alone(repo: Repo) -> None:
    place = at("claude-code", repo)
    put(place, '{"a": 1}')
    with pytest.raises(CannotWrite, match="changed"):
        settingsfile.write(place.path, "{}", '{"a": 2}')
    assert Path(place.path).read_text() == '{"a": 1}'


def test_a_damaged_receipt_costs_nothing_but_exactness(repo: Repo) -> None:
    place = at("claude-code", repo)
    path = put(place, '{"a": 1}')
    install.install(place)
    for junk in (b"", b"{", b"[]", b'{"path": 1}'):
        Path(place.receipt).write_bytes(junk)
        assert install.install(place).done == "current"
    install.uninstall(place)
    assert path.read_text() == '{"a": 1}'


def test_a_receipt_holds_none_of_the_persons_text(repo: Repo) -> None:
    place = at("claude-code", repo)
    put(place, '{"env": {"KEY": "planted-secret"}}')
    install.install(place)
    assert "planted" not in Path(place.receipt).read_text()
    assert stat.S_IMODE(Path(place.receipt).stat().st_mode) == 0o600


# ── the table ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_client_is_given_what_its_adapter_takes(client: Client) -> None:
    from gitledger import clients

    assert {ours for _, ours in client.events} <= set(clients.EVENTS)
    assert {"start", "prompt", "turn", "compact"} <= {ours for _, ours in client.events}
    assert bool(client.refusal) == clients.adapter(client.name).CAN_REFUSE
    assert (client.name in wiring.DOCUMENTED) == (client.name in clients.DOCUMENTED)


def test_every_adapter_but_the_generic_one_is_wired() -> None:
    from gitledger import clients

    assert set(BY_NAME) == set(clients.NAMES) - {"generic"}


def test_a_client_waits_longer_than_the_shell_and_the_shell_longer_than_the_program() -> None:
    from gitledger import capture, hooks

    assert hooks.DEADLINE + capture.DEADLINE + 2 < shims.WATCH < wiring.TIMEOUTS["compact"]
    assert wiring.TIMEOUTS["start"] > hooks.START + capture.DEADLINE + 2
    assert hooks.PATIENCE < hooks.END < wiring.TIMEOUTS["end"] - 2
    assert min(wiring.TIMEOUTS.values()) > capture.ALARM


def test_time_limits_are_in_each_clients_own_unit() -> None:
    def hook(name: str, event: str) -> dict[str, Any]:
        value: Any = BY_NAME[name].settings()["hooks"]
        first = value[event][0]
        return dict(first["hooks"][0] if "hooks" in first else first)

    assert hook("claude-code", "SessionEnd")["timeout"] == 10
    assert hook("gemini", "SessionEnd")["timeout"] == 10_000
    assert hook("qwen", "SessionEnd")["timeout"] == 10
    assert hook("copilot", "sessionEnd")["timeoutSec"] == 10


def test_a_program_that_hangs_under_a_plugin_is_ended_and_its_client_goes_on(tmp_path: Path) -> None:
    node = shutil.which("node")
    if not node:
        pytest.skip("there is no node")
    text = install.to_paste(BY_NAME["opencode"]).replace("15000", "200").replace("60000", "200")
    start = text.index("const commands = ") + len("const commands = ")
    end = text.index("\n}\n", start) + 2
    hangs = "sleep 600; exit 0"  # the shell waits for what holds the pipes
    path = tmp_path / "plugin.mjs"
    path.write_text(text[:start] + json.dumps({"tool": hangs, "compact": hangs}) + text[end:])
    asks = """
const { GitledgerPlugin } = await import(process.argv[1])
const hooks = await GitledgerPlugin({ client: {}, directory: process.cwd() })
await hooks["tool.execute.after"]({ sessionID: "s", tool: "bash", args: {} }, {})
await hooks["experimental.session.compacting"]({ sessionID: "s" }, { context: [] }).catch((e) => console.log(e.message))
"""
    words = [node, "--input-type=module", "-e", asks, str(path)]
    ran = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "gitledger: BLOCKED_MISSING_PREREQUISITE: the hook did not run\n"


@pytest.mark.parametrize("client", PLUGINS, ids=lambda client: client.name)
def test_a_plugin_is_a_program_and_holds_its_commands(client: Client, tmp_path: Path) -> None:
    text = install.to_paste(client)
    for _, ours in client.events:
        script = client.shim(ours).removeprefix("/bin/sh -c '").removesuffix("'")
        assert json.dumps(script) in text
    node = shutil.which("node")
    if node and client.name == "opencode":
        path = tmp_path / "plugin.mjs"
        path.write_text(text)
        subprocess.run([node, "--check", str(path)], check=True, capture_output=True, timeout=60)


# ── the commands ─────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def here(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    begin(repo)
    monkeypatch.chdir(repo.path)
    return repo


def test_install_status_test_and_uninstall_as_a_person_says_them(here: Repo, home: Path) -> None:
    said = run("hooks", "install", "--client", "claude-code", "--client", "codex")
    assert (said.status, said.err) == (0, "")
    assert "claude-code: 8 events wired in" in said.out
    assert "/hooks" in said.out
    assert "all is there already" in run("hooks", "install", "--client", "claude-code").out
    rows = run("hooks", "status", "--json").json()["hooks"]
    assert {(row["client"], row["scope"], row["state"], row["fired"]) for row in rows} == {
        ("claude-code", "project", "installed", None),
        ("codex", "project", "installed", None),
    }
    shown = run("hooks", "status", "--user", "--json").json()
    assert {row["scope"] for row in shown["hooks"]} <= {"user"}
    assert shown["git"] == []
    assert run("hooks", "test", "--user").status == 69  # nothing is wired there
    before = tree(here.path, home)
    log = Path(gitdir.state(str(here.path / ".git"))) / "wal" / "main"
    logged = {path.name: path.read_bytes() for path in log.iterdir()}
    said = run("hooks", "test")
    assert said.status == 0, said.out
    assert said.out.count(" ok ") == 15
    assert tree(here.path, home) == before
    assert {path.name: path.read_bytes() for path in log.iterdir()} == logged
    assert run("hooks", "uninstall").status == 0
    assert not any(name.startswith(str(here.path / ".c")) for name in tree(here.path))


def test_a_hook_that_cannot_reach_the_program_fails_its_test(here: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    run("hooks", "install", "--client", "claude-code")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert run("hooks", "test").status == 0  # the clone says where the program is
    (here.path / ".git/gitledger/program").write_text("/nowhere/gitledger\n")
    said = run("hooks", "test")
    assert said.status == 1
    assert said.out.count(" failed  ") == 8


def test_status_tells_when_a_hook_fired(here: Repo) -> None:
    from gitledger import wal

    run("hooks", "install", "--client", "claude-code")
    place = str(here.path / ".git/gitledger/wal/main")
    wal.append(place, "claude-code", "turn", b"{}", now_ms=1_790_000_000_000, rand=bytes(10), worktree="main")

    def fired() -> dict[str, str | None]:
        rows = run("hooks", "status", "--json").json()["hooks"]
        return {row["event"]: row["fired"] for row in rows}

    at = fired()["Stop"]
    assert at == "2026-09-21T14:13:20.000Z"
    assert fired()["SessionStart"] is None
    assert run("checkpoint").status == 0
    assert fired()["Stop"] == at


def test_settings_that_were_left_alone_are_said_with_what_to_paste(here: Repo) -> None:
    put(at("claude-code", here), "{oops")
    said = run("hooks", "install", "--client", "claude-code", "--client", "gemini")
    assert said.status == BadData.exit_code
    assert said.err.count("\n") == 1
    assert "gemini: 6 events wired" in said.out
    pasted = said.out[said.out.index("{") : said.out.rindex("gemini: ")]
    assert json.loads(pasted) == BY_NAME["claude-code"].settings()


def test_without_a_name_those_agents_are_wired_that_are_used_here(here: Repo, home: Path) -> None:
    assert run("hooks", "install").status != 0  # none is
    (home / ".claude").mkdir()
    (here.path / ".gemini").mkdir()
    (home / ".kiro").mkdir()  # known from documentation alone: only by its name
    run("hooks", "install")
    assert {row["client"] for row in run("hooks", "status", "--json").json()["hooks"]} == {"claude-code", "gemini"}


def test_installed_for_the_user_and_for_the_project_is_said(here: Repo) -> None:
    run("hooks", "install", "--user", "--client", "claude-code")
    assert "one of the two is enough" in run("hooks", "install", "--client", "claude-code").out


def test_where_a_client_does_not_look_above_is_said_once(here: Repo) -> None:
    told = "for one below it"
    assert told in run("hooks", "install", "--client", "claude-code").out
    assert told not in run("hooks", "install", "--client", "claude-code").out
    assert told not in run("hooks", "install", "--client", "codex").out
    assert told not in run("hooks", "install", "--client", "pi", "--user").out


def test_the_doctor_tells_of_hooks(here: Repo) -> None:
    def told() -> list[dict[str, str]]:
        return [check for check in run("doctor", "--json").json() if check["name"] == "hooks"]

    assert told()[0]["state"] == "note"
    place = at("claude-code", here)
    run("hooks", "install", "--client", "claude-code")
    assert "never fired" in told()[0]["what"]
    path = Path(place.path)
    path.write_text(path.read_text().replace("claude-code turn; ", "claude-code turn; old; "))
    assert (told()[0]["state"], "hooks install" in told()[0]["mend"]) == ("warning", True)
    path.write_text("{oops")
    assert told()[0]["state"] == "warning"


# ── where the program is ─────────────────────────────────────────────────────────────────────
def test_a_clone_says_where_its_program_is(here: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = here.path / ".git/gitledger/program"
    assert os.access(named.read_text().rstrip("\n"), os.X_OK)
    mine = tmp_path / "my bin" / "gitledger"
    mine.parent.mkdir()
    mine.write_text("#!/bin/sh\n")
    mine.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(mine), "init"])
    program.remember(str(here.path / ".git"))
    assert named.read_text() == f"{mine}\n"
    assert stat.S_IMODE(named.stat().st_mode) == 0o600


def test_a_program_without_a_script_is_given_one_that_runs(here: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "script", lambda: "")
    program.remember(str(here.path / ".git"))
    wrapper = (here.path / ".git/gitledger/program").read_text().rstrip("\n")
    ran = subprocess.run([wrapper, "--version"], capture_output=True, check=True, timeout=60)
    assert ran.stdout.startswith(b"gitledger ")


def test_a_program_that_was_moved_is_told_by_the_doctor_and_named_anew_at_a_start(
    here: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> tuple[str, str]:
        [check] = [check for check in run("doctor", "--json").json() if check["name"] == "hooks' program"]
        return check["state"], check["what"]

    def start() -> None:
        monkeypatch.setattr(capture, "read_stdin", lambda *_: (b'{"session_id": "s1"}', False))
        assert hooks.take("claude-code", "start", str(here.path)) == 0

    named = here.path / ".git/gitledger/program"
    first = named.read_text()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert told()[0] == "ok"
    start()
    assert named.read_text() == first, "one that is there is nobody's to change"
    named.write_text(f"{tmp_path}/old venv/bin/gitledger\n")
    state, what = told()
    assert (state, "is gone" in what, "compactions are refused" in what) == ("warning", True, True)
    start()
    assert told()[0] == "ok"
    named.write_text(f"{tmp_path}/old venv/bin/gitledger\n")
    run("hooks", "install", "--client", "claude-code")
    assert told()[0] == "ok"


def test_a_repository_without_a_ledger_is_told_nothing(repo: Repo) -> None:
    program.remember(str(repo.path / ".git"))
    assert not (repo.path / ".git/gitledger").exists()


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_each_clients_page_names_its_file_and_its_events(client: Client) -> None:
    page = (Path(__file__).parent.parent / "docs" / "clients" / f"{client.name}.md").read_text()
    assert client.project in page
    for theirs, ours in client.events:
        assert f"| `{theirs}` | `{ours}` |" in page
    assert ("cannot be refused" in page) != bool(client.refusal)
    assert ("not run" in page) == (client.name in wiring.DOCUMENTED)


def test_what_codex_says_of_its_hooks_is_told(here: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("hooks", "install", "--client", "codex")
    place = at("codex", here)
    commands = [row.command for row in install.wired(place)]
    listed = [
        {"sourcePath": place.path, "command": command, "trustStatus": "trusted", "enabled": n != 1}
        for n, command in enumerate(commands[:-1])
    ]
    listed[0]["trustStatus"] = "modified"
    answer = json.dumps({"id": 2, "result": {"data": [{"hooks": listed}]}})
    codex = tmp_path / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text(
        f"#!/bin/sh\nread -r a; read -r b; read -r c; echo note; cat <<'EOT'\n{answer}\nEOT\nexec sleep 60\n"
    )
    codex.chmod(0o755)
    monkeypatch.setenv("PATH", f"{codex.parent}:{os.environ['PATH']}")
    rows = run("hooks", "status", "--client", "codex", "--json").json()["hooks"]
    states = [row["state"] for row in rows if row["scope"] == "project"]
    assert states == ["modified", "disabled", "installed", "installed", "installed", "installed", "untrusted"]
    (told,) = [check for check in run("doctor", "--json").json() if check["name"] == "hooks"]
    assert (told["state"], "SessionStart is modified" in told["what"]) == ("warning", True)
