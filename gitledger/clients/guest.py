"""Clients that are none of ours: an adapter that another package brings, or else the generic client's payload.

A package names its adapter in the entry-point group `gitledger.clients`; docs/clients/your-own.md is its interface. Its
code runs in a process of its own (`room`), which is asked for values: whatever it does there, raise, hang or end, is a
fault with its name, and the ledger's own work goes on.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from gitledger import clients, gitdir, schema
from gitledger.clients import generic
from gitledger.clients.answers import Answer
from gitledger.clients.room import HEADER
from gitledger.errors import BadData, LedgerError
from gitledger.frame import Entry
from gitledger.ingest import permitted
from gitledger.model import Draft, Finding, Json
from gitledger.schema import Config, GenericPayload
from gitledger.values import dataclass, replace

if TYPE_CHECKING:
    from gitledger.doctor import Check
    from gitledger.ledger import Ledger

GROUP = "gitledger.clients"
LOADING, PATIENCE = 10.0, 5.0
"""Seconds within which an adapter is loaded, on a machine that is busy, and within which it says what it is asked."""
BIGGEST = 16 << 20
"""Bytes of what it says."""
SETTLES = "settles-"
"""The beginning of a file's name in the clone's own folder, by which a hook that loads nothing knows that this client's
turn's end makes a checkpoint."""
FAILED = "adapter"
"""The rule of a finding that says that an adapter failed; what comes with it was read as the generic client's."""
UNREAD = "no adapter"
"""The rule of a finding that says that not all was read, for want of an adapter."""
_ENTER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gitledger.clients import room; "
    "room.main(int(sys.argv[2]), *sys.argv[3:])"
)


class Point(NamedTuple):
    """Where a package says that its adapter is; `fault` where that cannot be told."""

    name: str
    package: str
    module: str = ""
    attr: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Plain:
    """A client that no package speaks for: it sends the generic client's payload, and is answered as that one is."""

    NAME: str
    CAN_REFUSE: bool = True
    SETTLES: bool = False
    ANNOUNCES_ALWAYS: bool = False

    def translate(self, event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
        """What a payload says; a key that the generic client has not is a fault, for an adapter may be missing."""
        value, faults = schema.read_object(payload)
        said = schema.generic(value, faults)
        unread = sorted(value.keys() - set(GenericPayload.__match_args__))
        if unread:
            what = f"client {self.NAME} has no adapter here, and nothing else reads {', '.join(unread[:5])}"
            faults.append(Finding(UNREAD, "payload", what, "install its adapter, or see docs/clients/your-own.md"))
        return said, faults

    def answer(self, event: str, text: str) -> Answer:
        """The text as it is."""
        return generic.answer(event, text)

    def refusal(self, text: str, status: int = 69) -> Answer:
        """The exit status of what stood in the way, its reason on stderr."""
        return generic.refusal(text, status)


@dataclass(frozen=True, slots=True)
class Guest:
    """An adapter of another package, asked by way of its room. Where it fails the generic client's stands in for it."""

    NAME: str
    CAN_REFUSE: bool
    SETTLES: bool
    ANNOUNCES_ALWAYS: bool
    room: Room

    def translate(self, event: str, payload: bytes) -> tuple[GenericPayload, list[Finding]]:
        """What a payload says; a failure of the adapter is among its faults, by the rule FAILED."""
        try:
            return _said(self.room.ask({"do": "translate", "event": event}, payload))
        except BadData as e:
            said, faults = schema.read_generic(payload)
            return said, [*faults, Finding(FAILED, "payload", str(e), "mend or remove that package")]

    def answer(self, event: str, text: str) -> Answer:
        """What the adapter makes of the text."""
        try:
            return _answer(self.room.ask({"do": "answer", "event": event, "text": text}))
        except BadData:
            return generic.answer(event, text)

    def refusal(self, text: str, status: int = 69) -> Answer:
        """What the adapter makes of the refusal."""
        try:
            return _answer(self.room.ask({"do": "refusal", "text": text, "status": status}))
        except BadData:
            return generic.refusal(text, status)


class Room:
    """The asking side of an adapter's process, which lives as long as this one; `fault` says why it does not."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.fault = point.fault
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def enter(self) -> dict[str, Json]:
        """Start the process and return what the adapter says of itself; raise BadData where it says nothing."""
        if self.fault:
            raise self._failed(self.fault)
        self._line, theirs = socket.socketpair()
        words = [json.dumps(path()), str(theirs.fileno()), self.point.module, self.point.attr]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    # -P and the root as its folder: nothing of the project that is worked in may be loaded
                    [sys.executable, "-P", "-c", _ENTER, *words],
                    pass_fds=[theirs.fileno()],
                    cwd=os.sep,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError as e:
            raise self._failed(f"its process cannot be started ({e.strerror})") from e
        atexit.register(self.leave)
        return self._told(LOADING)

    def ask(self, request: dict[str, Json], payload: bytes = b"") -> dict[str, Json]:
        """What the adapter says to a request; raise BadData where it fails, and at once where it is gone."""
        if self.fault or self._line is None:
            raise self._failed(self.fault)
        data = json.dumps(request).encode("ascii") + b"\n" + payload
        try:
            self._line.settimeout(PATIENCE)
            self._line.sendall(HEADER.pack(len(data)) + data)
        except OSError as e:
            raise self._ended(e) from e
        return self._told(PATIENCE)

    def leave(self) -> None:
        """End the process."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._line = self._process = None

    def _told(self, seconds: float) -> dict[str, Json]:
        until = time.monotonic() + seconds
        try:
            size = HEADER.unpack(self._exactly(HEADER.size, until))[0]
            if size > BIGGEST:
                raise self._ended(f"it says {size:,} bytes")
            told = json.loads(self._exactly(size, until))
        except (OSError, EOFError, ValueError) as e:
            raise self._ended(e) from e
        if not isinstance(told, dict):
            raise self._ended("its answer is of another shape")
        if "error" in told:
            raise self._failed(str(told["error"]))
        return told

    def _exactly(self, size: int, until: float) -> bytes:
        data = bytearray()
        while len(data) < size and self._line is not None:
            self._line.settimeout(max(0.001, until - time.monotonic()))
            part = self._line.recv(min(size - len(data), 1 << 20))
            if not part:
                raise EOFError("its process ended")
            data += part
        return bytes(data)

    def _ended(self, why: Exception | str) -> BadData:
        # Nobody asks it a second time: a ledger of a thousand lines would wait a thousand times.
        late = isinstance(why, TimeoutError)
        self.fault = "it did not answer in time" if late else "its process ended"
        if isinstance(why, str):
            self.fault = why
        self.leave()
        return self._failed(self.fault)

    def _failed(self, why: str) -> BadData:
        return BadData(f"the adapter of client {self.point.name} (package {self.point.package}) failed: {why}")


def adapter(name: str) -> Plain | Guest:
    """The adapter of a client that is none of ours."""
    return _adapter(name, os.getpid())  # a process that was forked has a room of its own


@lru_cache(maxsize=32)
def _adapter(name: str, pid: int) -> Plain | Guest:
    point = find(name)
    if point is None:
        return Plain(name)
    room = Room(point)
    try:
        said = room.enter()
        match [said.get(word) for word in ("NAME", "CAN_REFUSE", "SETTLES", "ANNOUNCES_ALWAYS")]:
            case [own, bool(refuses), bool(settles), bool(announces)] if own == name:
                return Guest(name, refuses, settles, announces, room)
        room.fault = "its NAME is another one, or what it says of itself is neither true nor false"
    except BadData as e:
        room.fault = room.fault or str(e).partition(" failed: ")[2]
    room.leave()
    return Guest(name, True, False, False, room)


def find(name: str) -> Point | None:
    """Where the adapter of a client is, by what is installed beside this program; None where no package has one."""
    from importlib.metadata import distributions

    found: dict[str, Point] = {}
    for distribution in distributions(path=path()):
        try:
            points = distribution.entry_points.select(group=GROUP, name=name)
            for point in points:
                package = f"{distribution.name} {distribution.version}"
                found.setdefault(distribution.name, Point(name, package, point.module, point.attr or ""))
        except Exception:  # noqa: S112 (a package whose own words about itself cannot be read has no adapter)
            continue
    if len(found) > 1:
        packages = ", ".join(sorted(point.package for point in found.values()))
        return Point(name, packages, fault="several packages have one; remove all but one")
    return next(iter(found.values()), None)


def path() -> list[str]:
    """Where packages are looked for: where this program's Python looks, but never the folder that it works in."""
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    kept = [place for place in sys.path if place and os.path.abspath(place) != here]
    return kept if home in kept else [*kept, home]


def checks(ledger: Ledger) -> list[Check]:
    """How the adapters fare of clients that are none of ours and were heard here, for `gitledger doctor`."""
    from gitledger import firing
    from gitledger.doctor import Check

    try:
        names = {client for client, _ in firing.last(ledger)} - set(clients.MODULES)
    except (LedgerError, OSError, ValueError) as e:
        return [Check("clients", "fault", f"cannot be looked at: {e}", "mend that and run gitledger doctor again")]
    found = []
    for name in sorted(filter(clients.is_name, names)):
        its = adapter(name)
        if isinstance(its, Plain):
            what = f"{name}: no adapter is installed; its payload is read as the generic client's"
            found.append(Check("clients", "ok", what))
        elif its.room.fault:
            what = f"{name}: the adapter of package {its.room.point.package} fails: {its.room.fault}"
            found.append(Check("clients", "warning", what, "mend or remove that package"))
        else:
            found.append(Check("clients", "ok", f"{name}: the adapter of package {its.room.point.package}"))
    return found


def sound(faults: list[Finding]) -> list[Finding]:
    """The faults, or BadData where one of them is that the adapter failed."""
    for fault in faults:
        if fault.rule == FAILED:
            raise BadData(f"{fault.what}; {fault.mend}")
    return faults


def kept(draft: Draft, entry: Entry, faults: list[Finding], config: Config) -> Draft:
    """The draft with the payload's own text, as far as the configuration allows, where not all of it was read."""
    if not any(fault.rule == UNREAD for fault in faults):
        return draft
    text = permitted(entry.payload.decode("utf-8", "backslashreplace"), config)
    return replace(draft, data={**draft.data, "text": text})


def flag(common: str, name: str, settles: bool) -> None:
    """Leave word for the hooks whether this client's turn's end makes a checkpoint; never raises."""
    place = os.path.join(gitdir.state(common), SETTLES + name)
    try:
        if settles:
            os.close(gitdir.open_own(place, os.O_WRONLY | os.O_CREAT))
        else:
            os.unlink(place)
    except (OSError, LedgerError):
        pass  # as it was: the next start tries again


def _said(told: dict[str, Json]) -> tuple[GenericPayload, list[Finding]]:
    value, rows = told.get("said"), told.get("faults")
    faults = []
    for row in rows if isinstance(rows, list) else []:
        match row:
            case [str(rule), str(where), str(what), str(mend)]:
                faults.append(Finding(rule, where, what, mend))
    return schema.generic(value if isinstance(value, dict) else {}, faults), faults


def _answer(told: dict[str, Json]) -> Answer:
    out, err, code = told.get("stdout"), told.get("stderr"), told.get("code")
    if not (isinstance(out, str) and isinstance(err, str) and isinstance(code, int) and 0 <= code < 256):
        raise BadData("what it answers is no answer")
    return Answer(out, err, code)
