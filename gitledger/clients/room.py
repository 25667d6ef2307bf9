"""The process that an adapter of another package runs in: it reads requests from one socket, and answers there.

Nothing of a ledger is open here, and what the adapter prints goes nowhere. Started by `guest`.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gitledger.clients.answers import Answer
from gitledger.model import Finding
from gitledger.schema import CommandRun, GenericPayload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitledger.model import Json

HEADER = struct.Struct("!Q")
"""What goes before each request and each answer: its size in bytes."""
PATIENCE = 20.0
"""Seconds after which the kernel ends an adapter that hangs; whoever asked has ended it long before."""
SHOWN = 300
"""Characters of what an adapter says of its failure."""


def main(fd: str, module: str, attr: str) -> None:
    """Load the adapter, say what it is, and answer until the other side is gone."""
    line = socket.socket(fileno=int(fd))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _alarm()
    try:
        adapter: Any = import_module(module)
        for name in filter(None, attr.split(".")):
            adapter = getattr(adapter, name)
        said = {name: getattr(adapter, name) for name in ("NAME", "CAN_REFUSE", "SETTLES", "ANNOUNCES_ALWAYS")}
    except BaseException as e:  # whatever it raises, an exit too
        _say(line, _failure(e))
        return
    _say(line, said)
    while True:
        signal.setitimer(signal.ITIMER_REAL, 0)
        data = _heard(line)
        if data is None:
            return
        _alarm()
        head, _, payload = data.partition(b"\n")
        try:
            said = _asked(adapter, json.loads(head), payload)
        except BaseException as e:
            said = _failure(e)
        _say(line, said)


def _asked(adapter: Any, request: Mapping[str, Any], payload: bytes) -> dict[str, Any]:
    match request["do"]:
        case "translate":
            return _payload(adapter.translate(request["event"], payload))
        case "answer":
            return _answer(adapter.answer(request["event"], request["text"]))
        case _:
            return _answer(adapter.refusal(request["text"], request["status"]))


def _payload(told: object) -> dict[str, Any]:
    match told:
        case (GenericPayload() as said, list(faults)) if all(isinstance(fault, Finding) for fault in faults):
            value: dict[str, Json] = {name: getattr(said, name) for name in GenericPayload.__match_args__}
            value["commands"] = [
                {"command": run.command, "exit": run.exit, "output": run.output}
                for run in said.commands
                if isinstance(run, CommandRun)
            ]
            return {"said": value, "faults": [[f.rule, f.where, f.what, f.mend] for f in faults]}
    raise TypeError(f"translate gave {_kind(told)}, not a GenericPayload and a list of Finding")


def _answer(told: object) -> dict[str, Any]:
    if not isinstance(told, Answer):
        raise TypeError(f"it answers with {_kind(told)}, not with an Answer")
    return {"stdout": told.stdout, "stderr": told.stderr, "code": told.code}


def _kind(value: object) -> str:
    return f"({', '.join(type(one).__name__ for one in value)})" if isinstance(value, tuple) else type(value).__name__


def _failure(error: BaseException) -> dict[str, str]:
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:  # it cannot even be said
        said = type(error).__name__
    return {"error": said[:SHOWN]}


def _alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)


def _say(line: socket.socket, value: Mapping[str, Any]) -> None:
    try:
        data = json.dumps(value).encode("ascii")
    except (TypeError, ValueError, RecursionError) as e:
        data = json.dumps(_failure(e)).encode("ascii")
    try:
        line.sendall(HEADER.pack(len(data)) + data)
    except OSError:
        pass  # nobody listens any more, and the next look finds that out


def _heard(line: socket.socket) -> bytes | None:
    head = _exactly(line, HEADER.size)
    return _exactly(line, HEADER.unpack(head)[0]) if head else None


def _exactly(line: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            part = line.recv(min(size - len(data), 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)
