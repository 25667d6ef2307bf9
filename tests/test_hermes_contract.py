"""Hermes' compactions beside stand-ins for its host: the published contract (checkpoint API 2), and the gate of ours.

The first stand-in does what the guide for memory providers says of `compression.checkpoint_required`, to the letter;
the second what Hermes 0.19 does, which knows no such contract. The real one is tried by tests/clients/test_hermes_gate.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gitledger import allowance
from gitledger.clients.embedded import Embedded, Ran
from gitledger.clients.hermes import compaction
from gitledger.ledger import Ledger
from gitledger.render.capsule import BEGIN
from tests.ledgers import again
from tests.sealed import Repo
from tests.test_hermes import Host, Message, ledger

__all__ = ["ledger"]  # the fixture
BLOCKED = "BLOCKED_MISSING_PREREQUISITE: "
TALK: list[Message] = [
    {"role": "system", "content": "the system's prompt"},
    {"role": "user", "content": "make the invoice a PDF"},
    {"role": "assistant", "content": "looking at it", "tool_calls": [{"id": "t1"}]},
    {"role": "tool", "content": "the tool's output", "tool_call_id": "t1"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "t2"}]},
    {"role": "assistant", "content": "an earlier summary", "_compressed_summary": True},
    {"role": "assistant", "content": "it is one now"},
]
EVIDENCE = ["make the invoice a PDF", "looking at it", "it is one now"]


class CompressionCheckpointUnavailable(RuntimeError):
    """What the contract's host raises."""


class Contract:
    """A host of the contract: it compacts `talk` only once a checkpoint provider returned. `written` is the summary's
    request."""

    def __init__(self, provider: Any, *, required: bool = True) -> None:
        self.provider, self.required = provider, required
        self.talk: list[Message] = copy.deepcopy(TALK)
        self.session = "one"
        self.written: list[str] = []
        self.handed: list[Any] = []

    def compress(self) -> None:
        before = copy.deepcopy(self.talk)
        told = self.before()
        assert self.talk == before, "a provider changed the talk"
        self.written.append(told)
        self.talk = [{"role": "user", "content": "the summary", "_compressed_summary": True}, self.talk[-1]]

    def before(self) -> str:
        version = int(getattr(self.provider, "pre_compress_checkpoint_api_version", 1))
        if self.required and version < 2:
            raise CompressionCheckpointUnavailable(f"{BLOCKED}no active provider implements checkpoint API v2")
        evidence = [
            {"role": one["role"], "content": one["content"]}
            for one in self.talk
            if one["role"] in ("user", "assistant") and one["content"].strip() and not one.get("_compressed_summary")
        ]
        self.handed = evidence if version >= 2 else self.talk
        taken = inspect.signature(self.provider.on_pre_compress).parameters
        kwargs = {"require_checkpoint": self.required} if version >= 2 and "require_checkpoint" in taken else {}
        try:
            return str(self.provider.on_pre_compress(self.handed, **kwargs) or "")
        except Exception as e:
            if not self.required:
                return ""
            what = f"{BLOCKED}required pre-compress checkpoint unavailable: {e}"
            raise CompressionCheckpointUnavailable(what) from e


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """What the process remembers of compactions is each test's own."""
    compaction._told.clear()
    compaction._held.clear()
    yield
    compaction._told.clear()
    compaction._held.clear()


@pytest.fixture
def asked(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The events that the program was asked about."""
    seen: list[str] = []
    real = Embedded.hook

    def hook(self: Embedded, event: str, *rest: Any) -> Ran:
        seen.append(event)
        return real(self, event, *rest)

    monkeypatch.setattr(Embedded, "hook", hook)
    return seen


# ── the contract ─────────────────────────────────────────────────────────────────────────────
def test_what_is_returned_is_durable_and_for_whoever_writes_the_summary(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    host.turn("hello")
    contract = Contract(host.provider)
    contract.compress()
    assert [one["content"] for one in contract.handed] == EVIDENCE
    [told] = contract.written
    assert told.startswith("Checkpoint: C-000001\n")
    assert BEGIN in told
    assert len(told) <= 6_000, "Hermes would cut the middle out of it"
    made = again(repo)
    assert f"sha1:{made.tip()}" in told
    host.leave()


def test_a_failure_raises_keeps_the_talk_and_is_made_good_by_the_same_evidence_later(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    host.turn("hello")
    contract = Contract(host.provider)
    tip = again(repo).tip()
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    for _ in range(2):
        with pytest.raises(CompressionCheckpointUnavailable, match=rf"^{BLOCKED}required pre-compress .*{BLOCKED}"):
            contract.compress()
        assert (contract.talk, contract.written) == (TALK, [])
    repo.git("update-ref", "refs/heads/ledger/main", str(tip))
    contract.compress()
    assert contract.written[0].startswith("Checkpoint: C-000001\n")
    contract.talk = copy.deepcopy(TALK)  # the host sends overlapping evidence again
    contract.compress()
    assert contract.written[1].startswith("Checkpoint: C-000001\n")
    host.turn("and more")
    contract.compress()
    assert contract.written[2].startswith("Checkpoint: C-000002\n")
    host.leave()


def test_where_no_checkpoint_is_required_a_failure_is_told_and_raises_nothing(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h")
    tip = again(repo).tip()
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    contract = Contract(host.provider, required=False)
    contract.compress()
    assert contract.written == [""]
    assert any(BLOCKED in said for said in host.said)
    repo.git("update-ref", "refs/heads/ledger/main", str(tip))
    host.leave()


def test_a_clone_whose_files_cannot_be_trusted_is_no_clone_without_a_ledger(
    ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    state = repo.path / ".git" / "gitledger"
    away = tmp_path / "away"
    state.rename(away)
    state.symlink_to(away)
    host = Host(tmp_path / "h")
    with pytest.raises(CompressionCheckpointUnavailable, match=BLOCKED):
        Contract(host.provider).compress()
    state.unlink()
    away.rename(state)
    host.leave()


# ── the gate ─────────────────────────────────────────────────────────────────────────────────
class Compressor:
    """Hermes' compressor as far as the gate leans on it."""

    def __init__(
        self,
        model: str,
        threshold_percent: float = 0.5,
        protect_first_n: int = 3,
        abort_on_summary_failure: bool = False,
        quiet_mode: bool = False,
        config_context_length: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.given = (threshold_percent, protect_first_n, abort_on_summary_failure, max_tokens)
        self.window, self._session_db, self._session_id = config_context_length, None, "one"
        self.written: list[str] = []
        self._last_compress_aborted, self._last_summary_error = False, None

    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        self._last_compress_aborted, self._last_summary_error = False, None
        self.written.append(memory_context)
        return messages[-1:]

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return True

    def _automatic_compression_blocked(self) -> bool:
        return False

    def update_model(self, model: str, context_length: int, *rest: Any, **more: Any) -> None:
        self.window = context_length


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The gate's module on that compressor."""
    module = ModuleType("agent.context_compressor")
    module.ContextCompressor = Compressor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.context_compressor", module)
    monkeypatch.delitem(sys.modules, "gitledger.clients.hermes.engine", raising=False)
    yield importlib.import_module("gitledger.clients.hermes.engine")
    del sys.modules["gitledger.clients.hermes.engine"]


@pytest.fixture
def gate(engine: ModuleType, ledger: Ledger, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The gate as an agent gets it: a copy of the plugin's own one."""
    monkeypatch.chdir(repo.path)
    return copy.deepcopy(engine.engine())


def broken(repo: Repo) -> str:
    tip = repo.git("rev-parse", "refs/heads/ledger/main")
    repo.git("update-ref", "-d", "refs/heads/ledger/main")
    return tip


def test_the_gate_makes_the_checkpoint_itself_and_hands_it_over(gate: Any, asked: list[str], repo: Repo) -> None:
    assert gate.name == "gitledger-gate"
    assert gate.compress(TALK, 9, force=True) == TALK[-1:]
    assert asked == ["compact"]
    assert gate.written[0].startswith("Checkpoint: C-000001\n")
    assert again(repo).tip() in gate.written[0]


def test_provider_and_gate_ask_once_for_one_compaction(
    gate: Any, asked: list[str], ledger: Ledger, repo: Repo, tmp_path: Path
) -> None:
    host = Host(tmp_path / "h", "one")
    host.turn("hello")
    asked.clear()
    told = host.provider.on_pre_compress(TALK)
    assert gate.compress(TALK, memory_context=told) == TALK[-1:]
    assert asked == ["compact"]
    assert gate.written == [told], "it is handed over once"
    tip = broken(repo)
    asked.clear()
    assert host.provider.on_pre_compress(TALK) == ""
    assert gate.compress(TALK) == TALK
    assert asked == ["compact"]
    allowance.grant(ledger.gitdir, "main", "it is mended tomorrow")
    assert host.provider.on_pre_compress(TALK) == ""
    assert gate.compress(TALK) == TALK[-1:], "a permission is for both"
    assert host.provider.on_pre_compress(TALK) == ""
    assert gate.compress(TALK) == TALK, "and for one compaction"
    repo.git("update-ref", "refs/heads/ledger/main", tip)
    host.leave()


def test_a_refusal_holds_longer_each_time_and_ends_where_the_ledger_changes_or_a_person_asks(
    gate: Any, asked: list[str], repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = broken(repo)
    now = [1_000.0]
    monkeypatch.setattr(compaction.time, "monotonic", lambda: now[0])
    waits = []
    for _ in range(8):
        assert gate.compress(TALK) == TALK
        assert gate._last_compress_aborted
        assert gate._last_summary_error.startswith(BLOCKED)
        assert gate._automatic_compression_blocked()
        assert not gate.should_compress(1)
        assert gate._compression_block_reason().startswith("cooldown")
        other = copy.deepcopy(gate)  # a gateway makes a new agent for each message
        assert not other.should_compress(1)
        began = now[0]
        while not gate.should_compress(1):
            now[0] += 5
        waits.append(now[0] - began)
    assert waits == [30, 60, 120, 240, 480, 960, 1800, 1800]
    gate.compress(TALK)
    before = len(asked)
    assert gate.compress(TALK, force=True) == TALK
    assert len(asked) == before + 1
    assert not gate.should_compress(1)
    repo.git("update-ref", "refs/heads/ledger/main", tip)
    assert gate.should_compress(1), "the ledger is another one now"
    assert gate.compress(TALK) == TALK[-1:]
    assert gate._last_summary_error is None
    assert compaction._held == {}


def test_what_fails_in_the_gate_itself_refuses(gate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Embedded, *given: Any) -> Ran:
        raise OSError("no more processes")

    monkeypatch.setattr(Embedded, "hook", fails)
    assert gate.compress(TALK) == TALK
    assert "no more processes" in gate._last_summary_error
    assert "compaction allow --once" in gate._last_summary_error
    monkeypatch.setattr(Embedded, "hook", lambda *_: Ran(124, error="gitledger did not end within 45 seconds"))
    assert gate.compress(TALK) == TALK
    assert "did not end within 45 seconds" in gate._last_summary_error


def test_where_no_ledger_is_hermes_compacts_as_it_always_did(
    engine: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = copy.deepcopy(engine.engine())
    assert plain.compress(TALK, memory_context="somebody's") == TALK[-1:]
    assert plain.written == ["somebody's"]
    assert list(tmp_path.iterdir()) == []


def test_a_session_is_held_where_hermes_says_that_it_works(
    gate: Any, asked: list[str], repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sessions:
        def get_session(self, session: str) -> dict[str, str]:
            return {"one": {"cwd": str(repo.path)}}.get(session, {})

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TERMINAL_CWD")
    assert gate.compress(TALK) == TALK[-1:]
    assert asked == []
    gate._session_db = Sessions()
    assert gate.compress(TALK) == TALK[-1:]
    assert asked == ["compact"]


def test_the_gate_takes_what_hermes_is_configured_to(engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"threshold": "0.7", "protect_first_n": 1, "abort_on_summary_failure": "yes", "in_place": True, "model": "x"}
    module = ModuleType("hermes_cli.config")
    module.load_config = lambda: {"compression": said, "model": {"max_tokens": 9_000}}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "hermes_cli", ModuleType("hermes_cli"))
    monkeypatch.setitem(sys.modules, "hermes_cli.config", module)
    gate = engine.engine()
    assert gate.given == (0.7, 1, True, 9_000)
    gate.update_model("some-model", 200_000, provider="custom")
    assert (gate._configured_threshold_percent, gate.window) == (0.7, 200_000)
    said.update({"threshold": "much", "protect_first_n": None})
    assert engine.engine().given == (0.5, 3, True, 9_000)


def test_a_handoff_that_is_too_long_is_cut_at_its_end_and_says_so() -> None:
    text = "Checkpoint: C-000001\n" + "a line of the capsule\n" * 900
    cut = compaction._fitted(text)
    assert len(cut) <= 6_000
    assert cut.endswith("(cut here; all of it: gitledger capsule)")
    assert cut.startswith("Checkpoint: C-000001\na line")
    assert compaction._fitted("short") == "short"
