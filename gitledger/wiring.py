"""Where each client's hooks are set up, and which of its events is which of ours: one table, read by everything else.

Files, shapes and units are as the clients were seen to take them; those of Kiro and Cursor are from documentation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

from gitledger import shims
from gitledger.model import Json
from gitledger.shims import Refusal
from gitledger.values import dataclass

Scope: TypeAlias = Literal["project", "user"]
Shape: TypeAlias = Literal["groups", "flat", "list", "plugin", "module"]
"""groups: `hooks.EVENT[].hooks[]`; flat: `hooks.EVENT[]`; list: `hooks[]`, each with its trigger; plugin: a program;
module: more than one file, which `Client.setup` puts in."""

TIMEOUTS: Mapping[str, int] = {
    "start": 30,
    "prompt": 10,
    "tool": 10,
    "turn": 10,
    "compact": 60,
    "compacted": 10,
    "end": 10,
}
"""Seconds that a client gives to our command. Without one Claude Code ends what runs at a session's end after 1.5 s."""


@dataclass(frozen=True, slots=True)
class Client:
    """How one client is wired.

    `project` is a path below the work tree's root, `user` one below `base` (an environment variable that names a
    folder) or else below the home folder's `home`. `events` pairs its events with ours. `programs` are what it is run
    by. `own` says that the file is ours alone, `below` that it is read where the client is started in a folder below.
    `scopes` are those that it has; `setup` names the module (an `install.Setup`) of a client of shape "module". One
    that is `asked` for is put in by its name alone: nothing tells whether it works in this repository.
    """

    name: str
    title: str
    project: str
    user: str
    home: str
    base: str
    shape: Shape
    events: tuple[tuple[str, str], ...]
    programs: tuple[str, ...]
    refusal: Refusal = ""
    timeout: str = "timeout"
    unit: int = 1
    command: str = "command"
    named: bool = False
    comments: bool = False
    own: bool = False
    below: bool = True
    top: tuple[tuple[str, Json], ...] = ()
    scopes: tuple[Scope, ...] = ("project", "user")
    setup: str = ""
    asked: bool = False

    def scope(self, user: bool) -> Scope:
        """The scope that is meant: the one that was asked for, or the only one that there is."""
        asked: Scope = "user" if user else "project"
        return asked if asked in self.scopes else self.scopes[0]

    def path(self, scope: Scope, root: str, environ: Mapping[str, str]) -> str:
        """The file to write; "" where the user has no home folder. `root` is the work tree's."""
        if scope == "project":
            return os.path.join(root, self.project)
        folder = environ.get(self.base, "") if self.base else ""
        if folder:
            return os.path.join(folder, self.user)
        home = environ.get("HOME", "")
        return os.path.join(home, self.home, self.user) if os.path.isabs(home) else ""

    def shim(self, event: str) -> str:
        """The command for one of our events."""
        return shims.command(self.name, event, self.refusal if event == "compact" else "")

    def settings(self) -> dict[str, Json]:
        """What its settings file must hold for all of our events; of a plugin there is none."""
        top: dict[str, Json] = dict(self.top)
        if self.shape == "list":
            hooks: list[Json] = [self._hook(theirs, ours) for theirs, ours in self.events]
            return top | {"hooks": hooks}
        found: dict[str, Json] = {}
        for theirs, ours in self.events:
            hook = self._hook(theirs, ours)
            found[theirs] = [{"hooks": [hook]} if self.shape == "groups" else hook]
        return top | {"hooks": found}

    def _hook(self, theirs: str, ours: str) -> dict[str, Json]:
        limit = {self.timeout: TIMEOUTS[ours] * self.unit} if self.timeout else {}
        action: dict[str, Json] = {"type": "command", self.command: self.shim(ours)}
        if self.shape == "list":
            return {"name": f"gitledger-{ours}", "trigger": theirs, "action": action, **limit}
        if self.named:
            action = {"name": f"gitledger-{ours}", **action}
        return action | limit

    def plugin(self) -> str:
        """The text of its plugin, with the commands that it runs."""
        name = os.path.join(os.path.dirname(__file__), "clients", "plugins", _PLUGINS[self.name])
        with open(name, encoding="utf-8") as f:
            text = f.read()
        scripts = {
            ours: shims.script(self.name, ours, self.refusal if ours == "compact" else "") for _, ours in self.events
        }
        return text.replace(_PLACE, json.dumps(scripts, indent=2))


def command(value: Json) -> str:
    """The command of a hook as any of the shapes has it, "" for what is none."""
    if not isinstance(value, dict):
        return ""
    action = value.get("action")
    places = (value, action if isinstance(action, dict) else {})
    texts = (place.get(key) for place in places for key in ("command", "bash"))
    return next((text for text in texts if isinstance(text, str)), "")


def ours(value: Json) -> bool:
    """True for a hook that gitledger put there, of this version or another one."""
    return shims.mark(command(value)) is not None


_PLACE = "{ /* filled in by gitledger hooks install */ }"
_PLUGINS = {"opencode": "opencode.js", "pi": "pi.ts"}
_CLAUDE = (
    ("SessionStart", "start"),
    ("UserPromptSubmit", "prompt"),
    ("PostToolUse", "tool"),
    ("PostToolUseFailure", "tool"),
    ("Stop", "turn"),
    ("PreCompact", "compact"),
    ("PostCompact", "compacted"),
    ("SessionEnd", "end"),
)
_CODEX = tuple(pair for pair in _CLAUDE if pair[0] != "PostToolUseFailure")
_DROID = tuple(pair for pair in _CODEX if pair[0] != "PostCompact")

CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code", "Claude Code", ".claude/settings.json", "settings.json", ".claude", "CLAUDE_CONFIG_DIR",
        "groups", _CLAUDE, ("claude",), refusal="status", below=False,
    ),
    Client(
        "codex", "Codex", ".codex/hooks.json", "hooks.json", ".codex", "CODEX_HOME",
        "groups", _CODEX, ("codex",), refusal="json",
    ),
    Client(
        "gemini", "Gemini CLI", ".gemini/settings.json", ".gemini/settings.json", "", "GEMINI_CLI_HOME",
        "groups",
        (
            ("SessionStart", "start"),
            ("BeforeAgent", "prompt"),
            ("AfterTool", "tool"),
            ("AfterAgent", "turn"),
            ("PreCompress", "compact"),
            ("SessionEnd", "end"),
        ),
        ("gemini",), unit=1000, named=True, comments=True, below=False,
    ),
    Client(
        "qwen", "Qwen Code", ".qwen/settings.json", "settings.json", ".qwen", "QWEN_HOME",
        "groups", _CLAUDE, ("qwen",), named=True, comments=True, below=False,
    ),
    Client(
        "copilot", "Copilot CLI", ".github/hooks/gitledger.json", "hooks/gitledger.json", ".copilot", "COPILOT_HOME",
        "flat",
        (
            ("sessionStart", "start"),
            ("userPromptSubmitted", "prompt"),
            ("postToolUse", "tool"),
            ("agentStop", "turn"),
            ("preCompact", "compact"),
            ("sessionEnd", "end"),
        ),
        ("copilot",), timeout="timeoutSec", command="bash", own=True, top=(("version", 1),),
    ),
    Client(
        "opencode", "OpenCode", ".opencode/plugins/gitledger.js", "opencode/plugins/gitledger.js", ".config",
        "XDG_CONFIG_HOME", "plugin",
        (
            ("chat.message", "prompt"),
            ("experimental.chat.system.transform", "start"),
            ("tool.execute.after", "tool"),
            ("session.idle", "turn"),
            ("experimental.session.compacting", "compact"),
            ("session.compacted", "compacted"),
            ("dispose", "end"),
        ),
        ("opencode",), refusal="status", own=True,
    ),
    Client(
        "pi", "pi", ".pi/extensions/gitledger.ts", "extensions/gitledger.ts", ".pi/agent", "PI_CODING_AGENT_DIR",
        "plugin",
        (
            ("before_agent_start", "start"),
            ("before_agent_start", "prompt"),
            ("tool_result", "tool"),
            ("agent_end", "turn"),
            ("session_before_compact", "compact"),
            ("session_compact", "compacted"),
            ("session_shutdown", "end"),
        ),
        ("pi",), refusal="status", own=True, below=False,
    ),
    Client(
        "droid", "Factory Droid", ".factory/settings.json", "settings.json", ".factory", "",
        "groups", _DROID, ("droid",), refusal="status", comments=True,
    ),
    Client(
        "kiro", "Kiro", ".kiro/hooks/gitledger.json", "hooks/gitledger.json", ".kiro", "",
        "list",
        (
            ("SessionStart", "start"),
            ("UserPromptSubmit", "prompt"),
            ("PostToolUse", "tool"),
            ("Stop", "turn"),
            ("PreCompact", "compact"),
        ),
        ("kiro-cli", "kiro"), refusal="status", own=True, top=(("version", "v1"),),
    ),
    Client(
        "cursor", "Cursor", ".cursor/hooks.json", "hooks.json", ".cursor", "",
        "flat",
        (
            ("sessionStart", "start"),
            ("beforeSubmitPrompt", "prompt"),
            ("afterShellExecution", "tool"),
            ("afterFileEdit", "tool"),
            ("afterAgentResponse", "turn"),
            ("preCompact", "compact"),
            ("sessionEnd", "end"),
        ),
        ("cursor", "cursor-agent"), timeout="", top=(("version", 1),),
    ),
    Client(
        "hermes", "Hermes", "", "config.yaml", ".hermes", "HERMES_HOME",
        "module",
        (
            ("initialize", "start"),
            ("on_turn_start", "prompt"),
            ("sync_turn", "tool"),
            ("sync_turn", "turn"),
            ("on_pre_compress", "compact"),
            ("compress", "compact"),
            ("on_session_switch", "compacted"),
            ("shutdown", "end"),
        ),
        ("hermes",), refusal="status", asked=True, scopes=("user",), setup="gitledger.clients.hermes.setup",
    ),
    Client(
        "nanobot", "nanobot", "plugins/gitledger/plugin.json", "workspace/plugins/gitledger/plugin.json",
        ".nanobot", "", "module",
        (
            ("runtime context", "start"),
            ("runtime context", "prompt"),
            ("SessionTurnPersisted", "turn"),
            ("Consolidator", "compact"),
            ("Consolidator", "compacted"),
            ("exit", "end"),
        ),
        ("nanobot",), refusal="status", own=True, asked=True, setup="gitledger.clients.nanobot.setup",
    ),
)  # fmt: skip
DOCUMENTED = ("kiro", "cursor")
"""Clients whose ways are known from documentation alone; they are wired where they are named."""
BY_NAME: Mapping[str, Client] = {client.name: client for client in CLIENTS}
