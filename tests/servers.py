"""Real git servers on loopback: `git daemon`, `git http-backend` behind Python's HTTP server, sshd; and a black hole.

Each serves the bare repositories in one folder. What it was asked is in its `log`.
"""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOST = "127.0.0.1"
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class Server:
    """A server that runs: the address of a repository is `base` and its name; what it was asked."""

    base: str
    log: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    def url(self, name: str) -> str:
        """The address of a repository."""
        return f"{self.base}/{name}"


def free_port() -> int:
    """A port of loopback's that nobody listens on now."""
    with socket.socket() as s:
        s.bind((HOST, 0))
        return int(s.getsockname()[1])


def _await(port: int, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            assert child.poll() is None, f"{child.args!r} ended with {child.returncode}"
            assert time.monotonic() < until, f"nobody listens on port {port}"
            time.sleep(0.02)


@contextmanager
def _running(words: list[str], port: int, log: Path) -> Iterator[None]:
    with log.open("wb") as err:
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=err, stderr=err, start_new_session=True, env=_plain()
        )
        try:
            _await(port, child)
            yield
        finally:
            child.terminate()
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@contextmanager
def git_daemon(root: Path, folder: Path) -> Iterator[Server]:
    """`git://` with pushes allowed, unless a repository says `daemon.receivepack=false`."""
    port = free_port()
    words = ["git", "daemon", f"--base-path={root}", "--export-all", "--enable=receive-pack", "--reuseaddr"]
    words += ["--informative-errors", "--allow-override=receive-pack", f"--listen={HOST}", f"--port={port}"]
    with _running(words, port, folder / "git-daemon.log"):
        yield Server(f"git://{HOST}:{port}")


@contextmanager
def http(root: Path) -> Iterator[Server]:
    """`git http-backend`; below `/401/` a password is wanted, below `/403/` a push is forbidden, `/500/` is broken."""
    log: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's word)
            pass

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                data = b"".join(parts)
            else:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

        def answer(self) -> None:
            log.append(f"{self.command} {self.path}")
            body = self.body()
            path, _, query = self.path.partition("?")
            status = path.split("/")[1]
            if status == "401":
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="test"')
                self.end_headers()
                return
            if status == "500" or (status == "403" and "git-receive-pack" in self.path):
                self.send_response(int(status))
                self.end_headers()
                return
            env = _plain() | {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path.removeprefix("/403"),
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "REMOTE_USER": "tester",
                "REMOTE_ADDR": HOST,
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            rows = [row.partition(": ") for row in head.decode().split("\r\n") if row]
            said = next((value for name, _, value in rows if name == "Status"), "200 OK")
            self.send_response(int(said.split()[0]))
            for name, _, value in rows:
                if name != "Status":
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(rest)

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield Server(f"http://{HOST}:{server.server_address[1]}", log)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def ssh(root: Path, folder: Path) -> Iterator[Server]:
    """A real sshd with a host key, a user's key and a configuration of its own; `env` is how to reach it.

    In `folder`: `id` lets a user in, `locked` would too and has a passphrase, `stranger` does not, and `known` holds
    the host's key.
    """
    assert SSHD is not None
    port = free_port()
    for name, phrase in (("host", ""), ("id", ""), ("locked", "a passphrase"), ("stranger", "")):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-C", name, "-f", str(folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    (folder / "authorized").write_text((folder / "id.pub").read_text() + (folder / "locked.pub").read_text())
    (folder / "known").write_text(f"[{HOST}]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"ListenAddress {HOST}:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nUsePAM no\n"
        "StrictModes no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\nX11Forwarding no\nPrintMotd no\n"
    )
    made = _separation()
    words = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    try:
        with _running(words, port, folder / "sshd.log"):
            yield Server(f"ssh://{HOST}:{port}{root}", env={"GIT_SSH_COMMAND": ssh_command(folder, "id")})
    finally:
        if made:
            made.rmdir()


def _separation() -> Path | None:
    # Root's sshd wants an empty folder, which an init script makes where there is one.
    where = Path("/run/sshd")
    if os.geteuid() or where.exists():
        return None
    where.mkdir(mode=0o755)
    return where


def ssh_command(folder: Path, key: str, known: str = "known") -> str:
    """An ssh that reads no configuration of the user's and offers one key."""
    told = f"-oIdentitiesOnly=yes -oIdentityAgent=none -oUserKnownHostsFile={folder}/{known}"
    return f"ssh -F none -i {folder}/{key} {told} -oGlobalKnownHostsFile=/dev/null -oStrictHostKeyChecking=yes"


@contextmanager
def black_hole() -> Iterator[Server]:
    """A server that lets everybody in and says nothing."""
    log: list[str] = []
    kept: list[socket.socket] = []
    listening = socket.create_server((HOST, 0))

    def take() -> None:
        while True:
            try:
                one, peer = listening.accept()
            except OSError:
                return
            kept.append(one)
            log.append(str(peer))

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield Server(f"{HOST}:{listening.getsockname()[1]}", log)
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)
        for one in kept:
            one.close()


def children(word: str) -> list[str]:
    """The command lines of this user's processes in whose words or environment `word` stands, but this one's."""
    found = []
    for folder in Path("/proc").iterdir() if sys.platform.startswith("linux") else ():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            words, environ = ((folder / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ"))
        except OSError:
            continue  # another user's, or gone
        if word in words or word in environ:
            found.append(words.replace("\0", " "))
    return found
