"""One nanobot with a ledger: what it is told at each turn, what is journalled of it, and what its compactions ask.

Everything that waits for a disk or a child does so in a thread. A session of nanobot's is one of the ledger's, from
its first turn in this process until the process ends, the talk is begun anew, or nothing was said for a while.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import threading
import time
import weakref
from dataclasses import dataclass, field, replace
from datetime import datetime

from gitledger.clients import embedded as host
from gitledger.clients.nanobot import gate, marks, turns
from gitledger.clients.nanobot.gate import Blocked, Refusal
from gitledger.clients.nanobot.marks import Mark
from gitledger.errors import LedgerError

TYPE_CHECKING = False  # `typing` costs as much as the rest of Python's start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gitledger.clients.embedded import Embedded
    from gitledger.clients.nanobot.turns import Message
    from gitledger.model import Json

CLIENT = "nanobot"
SOURCE = "gitledger"
"""Whose our context is, as nanobot notes it beside the message."""
INTERNAL = ("dream:",)
"""What nanobot's own jobs call their sessions; they are no talk with anybody."""
IDLE = 3600.0
"""Seconds without a turn after which a session ends with a handover; its next turn takes it up again."""
PARTING = 20.0
"""Seconds for the handovers of all sessions at the end of the process; what is left is recovered at the next start."""


@dataclass(slots=True)
class Talk:
    """What this process knows of one of nanobot's sessions."""

    folder: str
    channel: str = ""
    chat: str = ""
    started: bool = False
    source: str = ""
    capsule: str = ""
    limit: int | None = None
    heard: float = 0.0
    turn: tuple[str, str] = ("", "")
    refusal: Refusal | None = None
    idle: asyncio.TimerHandle | None = None


@dataclass(eq=False, slots=True, weakref_slot=True)
class Attached:
    """A nanobot that keeps a ledger. Made by `attach`, or by nanobot itself where our tool is installed."""

    bus: Any
    sessions: Any
    workspace: str
    folder: str = ""
    ledger: str | None = None
    idle_seconds: float = IDLE
    ungated: str = ""
    _talks: dict[str, Talk] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _caught_up: set[str] = field(default_factory=set)

    # ── what nanobot calls ───────────────────────────────────────────────────────────────────
    async def context(self, request: Any) -> Any:
        """What is added to the person's message: at first the briefing and the capsule, then what has changed."""
        key, said = request.session_key or "", request.original_user_text or ""
        if not key or key.startswith(INTERNAL):
            return None
        talk = self._talk(key, request)
        if talk.turn == (turn := (request.turn_id or "", said)):
            return None  # asked twice for one message: by each tool, and by the provider that was added
        # What is said while a turn goes on is taken into it: its messages are not whole yet.
        between = bool(turn[0]) and talk.turn[0] == turn[0]
        talk.turn = turn
        messages = None if between else list(self.sessions.get_or_create(key).messages)
        text = await asyncio.to_thread(self._began, key, talk, said, messages)
        if not text:
            return None
        from nanobot.runtime_context import RuntimeContextBlock

        return RuntimeContextBlock(source=SOURCE, content=text)

    async def persisted(self, event: Any) -> None:
        """Journal the turn that nanobot has just saved; it is on disk when this returns."""
        key = event.context.session_key
        if key.startswith(INTERNAL):
            return
        session = self.sessions.get_or_create(key)
        talk = self._talk(key)
        told = list(session.messages), dict(session.metadata), session.updated_at.isoformat()
        await asyncio.to_thread(self._ended, key, talk, *told)
        self._rest(key, talk)

    async def before(self, key: str, trigger: str) -> str:
        """Make the checkpoint before a compaction and return its pointer, "" without a ledger; raise Blocked."""
        talk = self._talk(key)
        try:
            return await asyncio.to_thread(self._checkpoint, key, talk, trigger)
        except Blocked as e:
            await self._say(key, talk, str(e))
            raise

    async def after(self, key: str) -> None:
        """Journal that session `key` was compacted: its next turn is told everything again."""
        talk = self._talk(key)
        talk.started, talk.source, talk.capsule = False, "compact", ""
        await asyncio.to_thread(self._log, key, talk, "compacted", {})

    async def aclose(self) -> None:
        """Close the ledger's sessions with a handover each; a session that speaks again is taken up again."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` where no loop runs."""
        until = time.monotonic() + PARTING
        for key, talk in list(self._talks.items()):
            if talk.idle is not None:
                talk.idle.cancel()
            if time.monotonic() < until:
                self._over(key, talk, "exit")

    # ── in a thread ──────────────────────────────────────────────────────────────────────────
    def at(self, folder: str) -> Embedded | None:
        """The ledger of a session that works in `folder`, "" for the workspace; None where there is none."""
        try:
            return host.find(CLIENT, self.folder or folder or self.workspace, self.ledger)
        except LedgerError:
            return None

    def _began(self, key: str, talk: Talk, said: str, messages: Sequence[Message] | None) -> str:
        found = self._found(talk)
        if found is None:
            return ""
        try:
            self._catch_up(found)
            if messages is not None:
                self._anew(found, key, talk, messages)
                self._forward(found, key, messages)
            texts = [self._start(found, key, talk, bool(messages))]
            if said:
                self._prompt(found, key, said)
            texts.append(self._capsule(found, talk, said))
            return "\n\n".join(text for text in texts if text)
        except Exception as e:  # a turn goes on without us
            found.complain(f"turn of {key}: {type(e).__name__}: {e}")
            return ""

    def _anew(self, found: Embedded, key: str, talk: Talk, messages: Sequence[Message]) -> None:
        """Close a session whose talk was cleared, which nanobot tells nobody of; it goes on as another one."""
        mark = marks.read(found, self._id(found, key))
        if mark is not None and mark.last and not messages:
            self._over(key, talk, "new")
            talk.source = "clear"
            marks.write(found, self._id(found, key), replace(mark, last="", prompted=()))

    def _start(self, found: Embedded, key: str, talk: Talk, resumed: bool) -> str:
        if talk.started:
            return ""
        source = talk.source or ("resume" if resumed else "startup")
        ran = found.hook("start", self._said(key, {"source": source}), timeout=25.0)
        if ran.error:
            found.complain(f"start of {key}: {ran.error}")
        talk.started, talk.source = True, ""
        _at_exit(self)
        return ran.text

    def _prompt(self, found: Embedded, key: str, said: str) -> None:
        with self._guard:
            found.log("prompt", self._said(key, {"prompt": said}))
            mark = marks.read(found, self._id(found, key)) or Mark(key)
            digests = (*mark.prompted, marks.digest(said))
            marks.write(found, self._id(found, key), replace(mark, prompted=digests))

    def _capsule(self, found: Embedded, talk: Talk, said: str) -> str:
        ran, mark = found.capsule(said, talk.capsule)
        if ran.status:
            found.complain(f"capsule: {ran.error}")
            return ""
        talk.capsule = mark
        return ran.text

    def _ended(self, key: str, talk: Talk, messages: Sequence[Message], metadata: dict[str, Any], updated: str) -> None:
        found = self._found(talk)
        if found is None:
            return
        usage = metadata.get("_last_usage")
        used = usage.get("context_tokens") if isinstance(usage, dict) else None
        more: dict[str, Json] = {"used": used, "limit": talk.limit} if used and talk.limit else {}
        try:
            self._forward(found, key, messages, updated=updated, more=more)
        except Exception as e:
            found.complain(f"turn of {key} is not journalled yet: {type(e).__name__}: {e}")

    def _forward(
        self,
        found: Embedded,
        key: str,
        messages: Sequence[Message],
        *,
        updated: str = "",
        more: dict[str, Json] | None = None,
        whole: bool = False,
    ) -> None:
        """Journal what of a session's messages is not journalled yet; only turns that ended where they must be `whole`.

        A session that was never heard of is taken up from here: its past is not brought in, but for the turn that has
        just ended, as `more` says.
        """
        with self._guard:
            session = self._id(found, key)
            mark = marks.read(found, session)
            if mark is None:
                rows = list(turns.split(messages))
                fresh: Sequence[Message] = rows[-1] if rows and more is not None else ()
                past = messages[: len(messages) - len(fresh)]
                mark = Mark(key, turns.digest(past[-1]), turns.time(past[-1])) if past else Mark(key)
            else:
                fresh = turns.since(messages, mark.last, mark.at)
            for turn in turns.split(fresh):
                if whole and not turns.ended(turn):
                    marks.write(found, session, replace(mark, updated=updated))
                    return
                self._turn(found, session, mark, turn, more or {})
                mark = replace(mark, last=turns.digest(turn[-1]), at=turns.time(turn[-1]), updated=updated)
            # Only now: what is said while a turn goes on is the next one's prompt, and both end together.
            marks.write(found, session, replace(mark, prompted=()) if fresh else mark)

    def _turn(self, found: Embedded, session: str, mark: Mark, turn: list[Message], more: dict[str, Json]) -> None:
        shown = [_public(message) for message in turn if not _hidden(message)]
        prompts = [text for text in turns.prompts(shown) if marks.digest(text) not in mark.prompted]
        said = turns.told(shown) | ({"prompt": "\n\n".join(prompts)} if prompts else {})
        if said:
            talk = self._talks.get(mark.key)
            said["cwd"] = talk.folder if talk else self.folder or self.workspace  # what its files are named from
            once = "\0".join((session, mark.last, turns.digest(turn[-1])))
            ids: list[Json] = [turns.digest(turn[-1])]
            payload: dict[str, Json] = {"session_id": session, "pid": os.getpid(), "ids": ids, **said, **more}
            found.log("turn", payload, once=once, now_ms=_ms(turns.time(turn[-1])))

    def _catch_up(self, found: Embedded) -> None:
        """Journal the turns that nanobot saved, and a process that died then never told of; once for each ledger."""
        if found.found.common in self._caught_up:
            return
        self._caught_up.add(found.found.common)
        if self.ungated:
            found.complain(f"compactions are not held up: {self.ungated}")
        for mark in marks.each(found):
            try:
                known = self.sessions.read_session_metadata(mark.key)
                updated = str(known.get("updated_at") or "") if known else mark.updated
                if updated != mark.updated:
                    messages = (self.sessions.read_session_file(mark.key) or {}).get("messages") or []
                    self._forward(found, mark.key, messages, updated=updated, whole=True)
            except Exception as e:
                found.complain(f"catching up with {mark.key}: {type(e).__name__}: {e}")

    def _checkpoint(self, key: str, talk: Talk, trigger: str) -> str:
        found = self._found(talk, closed=True)
        if found is None:
            return ""
        if talk.refusal and gate.pending(talk.refusal, found, time.monotonic()):
            raise Blocked(talk.refusal.why)
        ran = found.hook("compact", self._said(key, {"trigger": trigger}))
        if ran.status:
            talk.refusal = gate.refused(ran.error.removeprefix("gitledger: "), talk.refusal)
            raise Blocked(talk.refusal.why)
        talk.refusal = None
        return ran.text.partition("\n\n")[0]

    def _over(self, key: str, talk: Talk, reason: str) -> None:
        if not talk.started:
            return
        talk.started, talk.capsule = False, ""
        found = self._found(talk)
        if found is not None:
            ran = found.hook("end", self._said(key, {"reason": reason}), timeout=15.0)
            if ran.error:
                found.complain(f"end of {key}: {ran.error}")

    def _log(self, key: str, talk: Talk, event: str, said: dict[str, Json]) -> None:
        found = self._found(talk)
        if found is None:
            return
        try:
            found.log(event, self._said(key, said))
        except Exception as e:
            found.complain(f"{event} of {key}: {type(e).__name__}: {e}")

    def _found(self, talk: Talk, *, closed: bool = False) -> Embedded | None:
        """This talk's ledger; None where there is none. A clone that nobody may trust raises Blocked where `closed`."""
        try:
            return host.find(CLIENT, talk.folder, self.ledger)
        except Exception as e:
            if closed:
                raise Blocked(f"BLOCKED_MISSING_PREREQUISITE: {e}") from e
            return None

    # ── what is known here ───────────────────────────────────────────────────────────────────
    def _talk(self, key: str, request: Any = None) -> Talk:
        talk = self._talks.get(key)
        if talk is None:
            talk = self._talks[key] = Talk(self.folder or self._project(key) or self.workspace)
        talk.heard = time.monotonic()
        if request is not None:
            talk.folder = self.folder or str(request.workspace or self.workspace)
            talk.channel, talk.chat = request.channel, request.chat_id
            talk.limit = getattr(request.runtime, "context_window_tokens", None)
        return talk

    def _project(self, key: str) -> str:
        """The folder that a session works in by its own file, "" where that names none: before it speaks, for one."""
        scope = self.sessions.get_or_create(key).metadata.get("workspace_scope")
        path = scope.get("project_path") or scope.get("path") if isinstance(scope, dict) else None
        return path if isinstance(path, str) else ""

    def _id(self, found: Embedded, key: str) -> str:
        """The ledger's name for a session: nanobot's, and where the ledger is not its workspace's, whose it is too."""
        place, top = os.path.realpath(self.workspace), os.path.realpath(found.folder)
        if place == top or place.startswith(top + os.sep):
            return key
        return f"{key} {hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"

    def _said(self, key: str, more: dict[str, Json]) -> dict[str, Json]:
        found = self._found(self._talks[key])
        return {"session_id": self._id(found, key) if found else key, "pid": os.getpid(), **more}

    def _rest(self, key: str, talk: Talk) -> None:
        if talk.idle is not None:
            talk.idle.cancel()
        loop = asyncio.get_running_loop()
        talk.idle = loop.call_later(
            self.idle_seconds, lambda: loop.run_in_executor(None, self._over, key, talk, "other")
        )

    async def _say(self, key: str, talk: Talk, text: str) -> None:
        """Tell the person: nanobot itself says no more than that there was an error."""
        from nanobot.bus.events import OutboundMessage

        channel, _, chat = key.partition(":")
        message = OutboundMessage(channel=talk.channel or channel, chat_id=talk.chat or chat, content=text)
        await self.bus.publish_outbound(message)


_LEAVING: weakref.WeakSet[Attached] = weakref.WeakSet()


def _at_exit(one: Attached) -> None:
    if not _LEAVING:
        atexit.register(_leave)
    _LEAVING.add(one)


def _leave() -> None:
    for one in list(_LEAVING):
        one.close()


def _public(message: Message) -> Message:
    """A message without the context that was added to it, ours and that of others."""
    from nanobot.runtime_context import public_history_message

    shown: Message = public_history_message(message)
    return shown


def _hidden(message: Message) -> bool:
    """True for what was said by nobody: a command to nanobot itself, or what it leaves for itself."""
    from nanobot.session.history_visibility import is_hidden_history_message

    return bool(message.get("_command")) or is_hidden_history_message(message)


def _ms(at: str) -> int | None:
    try:
        return int(datetime.fromisoformat(at).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
