"""Verification of a whole ledger against stock git: `gitledger verify --full`, `git log --format=%G?`, per commit."""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchmarks import grounds as ground
from benchmarks.clock import Row, ways
from benchmarks.grounds import Grounds, git
from benchmarks.size import peak
from gitledger import signing
from gitledger.ledger import Ledger
from gitledger.signing import KeySigner

FASTER = 30.0
MEMORY = 128.0
"""MiB, of one process of it."""
GIT_COMMITS = 200
"""So many commits are enough for git's side: each one costs it the same."""
ROUNDS = 3

WALK = """
import sys
from dataclasses import replace
from functools import partial
from gitledger import contents, discover, verify
from gitledger.commands.verify import _store
contents.differing = lambda *given: []
book = discover.open(sys.argv[1])
ways = verify.Ways(full=True, reopen=partial(_store, book, alone=True))
found = verify.verify(replace(book.desk, store=_store(book)), book.tip(), ways)
sys.exit(found.verdict != "verified")
"""


def rows(grounds: Grounds) -> Iterator[Row]:
    """Both sides in turn, per commit: the walk over all commits, and that with the tip held against its journals."""
    n = 10_000 if grounds.long else 1_000
    folder = signed_ledger(grounds, n)
    commits = int(git(folder, "rev-list", "--count", "ledger/main"))
    signers = os.path.join(grounds.folder, "signers")
    with open(signers, "w", encoding="utf-8") as f:
        f.write(git(folder, "show", "ledger/main:keys/allowed_signers") + "\n")
    shown = ["log", f"-{GIT_COMMITS}", "--format=%G?", "ledger/main"]
    whole = ways("verify", "--full")["script"]
    sides: dict[str, tuple[list[str], int]] = {
        "git": (["git", "-c", f"gpg.ssh.allowedSignersFile={signers}", *shown], GIT_COMMITS),
        "walk": ([sys.executable, "-c", WALK, folder], commits),
        "whole": (whole, commits),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, (command, count) in sides.items():
            wall, cpu = seconds(command, folder)
            took[name].append((wall * 1000 / count, cpu * 1000 / count))
    middle = {name: [sorted(each)[ROUNDS // 2] for each in zip(*rounds, strict=True)] for name, rounds in took.items()}
    for n, kind in enumerate(("", "processor time, ")):
        theirs = middle["git"][n]
        for name, what in (("walk", "every commit and object"), ("whole", "and the tip against its journals")):
            ours = middle[name][n]
            figure = theirs / ours
            counts = n == 0 and name == "whole"
            yield Row(
                f"verify --full, {commits:,} commits, {kind}{what}, each",
                f"{ours:.2f} ms",
                f"{theirs:.2f} ms",
                f"{figure:.1f} × faster",
                f"{FASTER:g} × faster" if counts else "–",
                figure >= FASTER if counts else None,
            )
    used, *_ = peak(whole, folder)
    yield Row("peak of memory of one process of it", f"{used:.1f} MiB", "–", "–", f"{MEMORY:g} MiB", used <= MEMORY)


def seconds(command: list[str], folder: str) -> tuple[float, float]:
    """How long a whole process took, and the processor time of it and its children; a failure stops the benchmark."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    took = time.perf_counter() - begun
    if done.returncode:
        sys.exit(f"{' '.join(command)[:80]} exited {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ── a ledger with real signatures ────────────────────────────────────────────────────────────
def signed_ledger(grounds: Grounds, checkpoints: int) -> str:
    """A ledger of so many checkpoints, each with a real signature; a kept scratch folder has it from an earlier run."""
    built = os.path.join(grounds.folder, f"signed-{checkpoints}")
    if not os.path.exists(built):
        grounds.say(f"building a ledger of {checkpoints:,} signed checkpoints and {checkpoints * 10:,} events")
        folder = grounds.repository("signing", "small")
        ground.begin(folder)
        with signing_in_process():
            ground.grow(folder, checkpoints, 9, grounds.say)
        os.rename(folder, built)
    return built


@contextmanager
def signing_in_process() -> Iterator[None]:
    """Real signatures by the same key file, without a child for each, in place of those that `hurried` makes up."""
    made_up = ground.hurried
    signers: dict[str, Callable[[bytes], str]] = {}

    def sign(payload: bytes, key: KeySigner) -> str:
        if key.path not in signers:
            signers[key.path] = signer(key)
        return signers[key.path](payload)

    @contextmanager
    def hurried(ledger: Ledger) -> Iterator[None]:
        with made_up(ledger):
            was, signing.sign = signing.sign, sign
            try:
                yield
            finally:
                signing.sign = was

    ground.hurried = hurried
    try:
        yield
    finally:
        ground.hurried = made_up


def signer(key: KeySigner) -> Callable[[bytes], str]:
    """What signs as `ssh-keygen -Y sign -n git` does with this key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    with open(key.path, "rb") as f:
        private = load_ssh_private_key(f.read(), None)
    assert isinstance(private, Ed25519PrivateKey)
    public = base64.b64decode(key.public_key.split()[1])

    def sign(payload: bytes) -> str:
        head = string(b"git") + string(b"") + string(b"sha512")
        signature = private.sign(b"SSHSIG" + head + string(hashlib.sha512(payload).digest()))
        made = string(b"ssh-ed25519") + string(signature)
        body = base64.b64encode(b"SSHSIG\0\0\0\1" + string(public) + head + string(made)).decode()
        lines = [body[at : at + 70] for at in range(0, len(body), 70)]
        return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])

    return sign


def string(data: bytes) -> bytes:
    """SSH's wire format of a string."""
    return len(data).to_bytes(4, "big") + data
