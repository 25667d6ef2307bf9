"""One session of Hermes, as the ledger hears of it: opened, asked, answered, taken back, ended.

Called from the agent's thread, from Hermes' worker and from our own, so each change of what is remembered is made under
one lock; what is logged is on the disk when a call returns.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitledger.clients.embedded import Embedded
from gitledger.clients.hermes import claims, statedb, turns
from gitledger.clients.hermes.claims import Claim
from gitledger.errors import LedgerError

CAPSULE = 3.0
"""Seconds that a prompt's capsule may take; without it the prompt goes on, and what it lacked the next one is given."""
QUERY = 8_000
"""Characters of a prompt that are looked at for what it is about."""
ENDED = 12.0
"""Seconds for a session's end."""
STEP = 5
"""Per cent of a context after which advice is asked for again."""
KEPT = 200
_marks: dict[tuple[str, str, str], str] = {}
"""What each session was given, for this process: a gateway makes an agent anew for a talk that goes on."""


class Session:
    """What is known of one session in this process."""

    def __init__(self, ident: str, at: Embedded, home: str, complain: Callable[[str], None]) -> None:
        self.id = ident
        self._at = at
        self._home = home
        self._complain = complain
        self._lock = threading.RLock()
        self._claim: Claim | None = None
        self._open: list[str] = []
        """Prompts of which no turn's end was heard, the newest last."""
        self._heard: set[str] = set()
        self._place = (at.found.common, at.ledger, ident)
        self._briefing = ""
        self._taken: set[int] = set()
        self._step = -1
        self._advised = ""
        self._held = ""
        self._ended = False

    # ── opened and ended ─────────────────────────────────────────────────────────────────────
    def open(self, source: str, parent: str) -> None:
        """Say what earlier processes left unsaid, then have the session opened, and keep its briefing."""
        self._ended = False
        for claim in claims.left(self._at.found.common, self._at.ledger):
            if claim.session != self.id:
                self._reconcile(claim)
        self._have()
        goes_on = bool(_marks.get(self._place))
        known = self._claim is not None and self._claim.before
        source = source or ("resume" if known or self._any() else "startup")
        said = {"session_id": self.id, "source": source, "pid": os.getpid()}
        ran = self._at.hook("start", {**said, **({"parent": parent} if parent and source != "resume" else {})})
        if ran.status or ran.error:
            self._complain(f"start: {ran.error or f'exit {ran.status}'}")
        with self._lock:
            # After a compaction the summary holds what a briefing says, and a talk that goes on holds the one it had.
            self._briefing = "" if source == "compact" or goes_on else ran.text

    def end(self, reason: str) -> None:
        """Close the session with checkpoint and handover, once, and let go of it."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            claim, self._claim = self._claim, None
        self.renew()
        ran = self._at.hook("end", {"session_id": self.id, "reason": reason}, timeout=ENDED)
        if ran.status or ran.error:
            self._complain(f"end: {ran.error or f'exit {ran.status}'}")
        if claim:
            claim.release()

    def compacted(self) -> None:
        """Its talk was compacted and it goes on: the next prompt is given all."""
        self.renew()
        self._at.log("compacted", {"session_id": self.id})

    def renew(self) -> None:
        """Take what the model was given for forgotten."""
        _marks.pop(self._place, None)

    # ── turns ────────────────────────────────────────────────────────────────────────────────
    def asked(self, prompt: str) -> None:
        """Log what the person said."""
        with self._lock:
            self._open.append(prompt)
            ident = turns.prompt_id(prompt)
            self._at.log("prompt", {"session_id": self.id, "prompt": plain(prompt), "ids": [ident]})

    def answered(
        self, prompt: str, answer: str, messages: Sequence[Mapping[str, Any]] | None, used: Mapping[str, int]
    ) -> None:
        """Log a turn that ended, and what turns that were cut off before it had done."""
        turn = turns.newest(messages, prompt)
        turn = turns.Turn(turn.prompt or turns.text(prompt), turn.answer or turns.text(answer), turn.calls)
        with self._lock:
            begun, ids = self._open.pop() if self._open else None, turns.ids(turn, prompt)
            if begun is None and ids[0] in self._heard:
                return  # told again
            self._cut_off(messages or (), self._open)
            self._open.clear()
            said = {"session_id": self.id}
            if begun is None:
                asked = {"prompt": plain(prompt), "ids": [turns.prompt_id(prompt)]}
                self._at.log("prompt", {**said, **asked})
            told = turns.payload(turn, self._heard, self._at.folder)
            new = [one for one in ids if one not in self._heard or one[0] == "t"]
            self._at.log("turn", {**said, **told, "answer": turns.text(answer) or turn.answer, "ids": new, **used})
            self._heard.update(ids)

    def leftover(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Log what a turn that has not ended has run so far, once; its end, if it comes, says the rest."""
        with self._lock:
            self._cut_off(messages, self._open)

    def rewound(self) -> None:
        """Log which requests the person took back, with their turns; what the model was given may be gone with them."""
        self.renew()
        try:
            back = {row: said for row, said in self._read_taken().items() if row not in self._taken}
        except sqlite3.Error as e:
            self._complain(f"undo: {e}")
            back = {}
        with self._lock:
            self._open.clear()
            self._taken.update(back)
            undone = list(reversed(back.values()))
            # Where nobody can say what it was, that it was is said all the same.
            self._at.log("prompt", {"session_id": self.id, "undone": undone or ["the last turn"]})

    def noted(self, tool: str, said: str) -> None:
        """Log what a tool of Hermes' own did, in words that nothing is concluded from."""
        self._at.log("tool", {"session_id": self.id, "tool": tool, "note": said})

    def _cut_off(self, messages: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> None:
        if not prompts:
            return
        found = turns.split(messages)
        for prompt in dict.fromkeys(turns.text(prompt) for prompt in prompts):
            turn = next((one for one in reversed(found) if one.prompt == prompt), None)
            calls = [turns.call_id(call) for call in turn.calls] if turn else []
            new = [one for one in calls if one not in self._heard]
            if turn and new:
                told = turns.payload(turn, self._heard, self._at.folder)
                self._at.log("tool", {"session_id": self.id, **told, "ids": new})
                self._heard.update(new)

    # ── what the model is given ──────────────────────────────────────────────────────────────
    def given(self, query: str) -> str:
        """What goes with a prompt: the briefing and the capsule first, then what has changed; "" for nothing.

        Where the capsule cannot be had, what there is of it is given, and the next prompt is given all.
        """
        with self._lock:
            mark, briefing = _marks.get(self._place, ""), self._briefing
            held, self._held = self._held, ""
        ran, now = self._at.capsule(turns.text(query)[:QUERY], mark, CAPSULE)
        if ran.status:
            self._complain(f"a prompt's capsule: {ran.error}")
            return "\n\n".join(text for text in (briefing, held) if text)
        with self._lock:
            self._briefing = ""
            _marks.pop(self._place, None)
            _marks[self._place] = now
            while len(_marks) > KEPT:
                _marks.pop(next(iter(_marks)))
        return "\n\n".join(text for text in (briefing, ran.text.strip(), held) if text)

    def hold(self, text: str) -> None:
        """Have a text given with the next prompt, once."""
        with self._lock:
            self._held = text

    def advice(self, used: Mapping[str, int]) -> str:
        """What to do next in one line, where that is another thing than was said last; "" for going on."""
        step = int(100 * used["used"] / used["limit"]) // STEP if used else -1
        if step < 0 or step == self._step:
            return ""
        self._step = step
        ran = self._at.run(
            "rollover", "--json", f"--used={min(used['used'] / used['limit'], 1.0):.4f}", timeout=CAPSULE
        )
        if ran.status:
            self._complain(f"rollover: {ran.error}")
            return ""
        told = json.loads(ran.text)
        before, self._advised = self._advised, str(told["advice"])
        if self._advised in (before, "continue"):
            return ""
        how = f"; {told['command']}" if told.get("command") else ""
        fresh = "; then /new" if self._advised in ("fresh session", "emergency") else ""
        return f"{self._advised}: {told['why']}{how}{fresh}"

    # ── what was left unsaid ─────────────────────────────────────────────────────────────────
    def _have(self) -> None:
        if self._claim is None:
            try:
                self._claim = claims.take(self._at.found.common, self._at.ledger, self.id)
            except (OSError, LedgerError) as e:
                self._complain(f"the session is not kept in mind: {e}")
        if self._claim is not None:
            self._reconcile(self._claim)
        try:
            self._taken = set(self._read_taken())
        except sqlite3.Error:
            pass  # said where it matters

    def _reconcile(self, claim: Claim) -> None:
        try:
            statedb.reconcile(self._at, self._home, claim)
        except (OSError, LedgerError, sqlite3.Error, RuntimeError, ValueError) as e:
            self._complain(f"what Hermes kept of session {claim.session} was not looked through: {e}")

    def _any(self) -> bool:
        try:
            return os.path.exists(os.path.join(self._home, statedb.NAME)) and bool(statedb.read(self._home, self.id)[0])
        except sqlite3.Error:
            return False

    def _read_taken(self) -> dict[int, str]:
        there = self._home and os.path.exists(os.path.join(self._home, statedb.NAME))
        return statedb.taken_back(self._home, self.id) if there else {}


def plain(prompt: str) -> str:
    """What the person said, without the text of a skill that Hermes puts around it."""
    try:
        from agent.skill_commands import extract_user_instruction_from_skill_message as own

        return turns.text(own(prompt)) or turns.text(prompt)
    except Exception:
        return turns.text(prompt)
