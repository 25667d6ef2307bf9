"""What every scripted model server has in common: it keeps each request, and answers by a few words in it.

`TOOLCALL` in the person's last text makes the model call a shell tool once. A request for a summary is told by its
wording and answered with SUMMARY. Usage is claimed, not counted: `Script.claimed` drives a client into compaction.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPLY = "FAKE-REPLY it is done."
SUMMARY = "FAKE-SUMMARY of the talk so far."
CALL = "TOOLCALL"
SMALL = 1_200
"""The usage that is claimed once a summary stands in the history, so that no client compacts for ever."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived. `kind`: turn, summary, title or other; `seen`: what `Script.look` gave just then."""

    path: str
    kind: str
    body: Any
    seen: str

    @property
    def text(self) -> str:
        """All the texts in the body, one a line: what the model would read, without JSON's escapes."""
        return whole(self.body)


@dataclass(slots=True)
class Script:
    """How a server answers; a test may change it between two runs."""

    claimed: int = SMALL
    tool: str = "echo tool-ran"
    limit: int = 120
    """Requests after which every answer is 503: a bound for clients that loop."""
    reply: Callable[[str], str] = field(default=lambda _: REPLY)
    """What a turn is answered with, from all the texts that the model would read."""
    call: Callable[[Any], tuple[str, dict[str, Any]] | None] = field(default=lambda _: None)
    """The tool that a chat's body is answered with, and its arguments; None where it is answered as any other."""
    look: Callable[[], str] = field(default=lambda: "")
    """Called at each request, before it is answered."""
    hang: threading.Event = field(default_factory=threading.Event)
    """While it is set no request for a turn is answered."""


class Server(ThreadingHTTPServer):
    """A server with its script and what it was asked so far."""

    daemon_threads = True

    def __init__(self, handler: type[Handler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.script = Script()
        self.requests: list[Request] = []
        self.guard = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def usage(self, body: object) -> int:
        """The input tokens to claim for a request."""
        return SMALL if "FAKE-SUMMARY" in json.dumps(body) else self.script.claimed

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed leaves a broken pipe, and that is all there is to say of it."""


class Handler(BaseHTTPRequestHandler):
    """Reads bodies, keeps requests, writes JSON and event streams."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *words: object) -> None:
        """Nothing: a test's output is its own."""

    def do_GET(self) -> None:
        self.keep("other", {})
        self.send_json(self.get())

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.post(self.path.split("?")[0], self.read())

    def get(self) -> object:
        """The answer to any GET."""
        return {"ok": True}

    def post(self, path: str, body: Any) -> None:
        """Answer a POST to `path`, which has no query."""
        self.send_json({})

    def read(self) -> Any:
        """The body as JSON; what is none comes as `{"raw": text}`."""
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if (self.headers.get("content-encoding") or "").lower() == "gzip":
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw) if raw else {}
        except ValueError:
            return {"raw": raw[:2000].decode("utf-8", "replace")}

    def keep(self, kind: str, body: object) -> bool:
        """Keep the request; True where it may be answered, which a hanging script puts off."""
        script = self.server.script
        with self.server.guard:
            self.server.requests.append(Request(self.path, kind, body, script.look()))
            answer = len(self.server.requests) <= script.limit
        while kind == "turn" and script.hang.is_set():
            time.sleep(0.05)
        return answer

    def send_json(self, value: object, status: int = 200) -> None:
        """Answer with JSON."""
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self) -> None:
        """Begin an event stream."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def say(self, value: Mapping[str, object] | str, event: str | None = None) -> None:
        """One event of a stream."""
        data = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(((f"event: {event}\n" if event else "") + f"data: {data}\n\n").encode())
        self.wfile.flush()


@contextmanager
def serving(handler: type[Handler]) -> Iterator[Server]:
    """A running server for the length of the block."""
    server = Server(handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.script.hang.clear()
        server.shutdown()
        server.server_close()
        thread.join()


def texts(content: object) -> str:
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def whole(body: object) -> str:
    """All the texts in a body, one a line."""
    return "\n".join(_texts(body))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
