"""SSH signatures over commits: keys, sign, verify, all by `ssh-keygen`, with no cryptography of our own.

Nothing here prompts, asks an agent or hangs: a child has no terminal, no askpass, no agent, and a deadline.
What is made is what `git commit -S` makes with `gpg.format=ssh`, so stock `git verify-commit` checks it.
"""

from __future__ import annotations

import binascii
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence

from gitledger import gitdir
from gitledger.digests import sha256
from gitledger.errors import BadData, BadSignature, CannotWrite, IOFailed, LedgerError, Missing, NotAllowed, TryAgain
from gitledger.patterns import pattern
from gitledger.typed import TYPE_CHECKING, Protocol
from gitledger.values import dataclass

if TYPE_CHECKING:
    import subprocess

NAMESPACE = "git"
OTHERS = ("openpgp ", "x509 ")
"""What the line of a public key begins with that is none of SSH's; `gitsigner` has to do with those."""
KEY_TYPE = "ssh-ed25519"
KEY_NAME = "id_ed25519"
DEADLINE = 10.0
"""Seconds that one `ssh-keygen` may take; it needs hundredths of one."""

_KIND = b"abcdefghijklmnopqrstuvwxyz0123456789@.-"
_PIPE = 16384  # what a pipe takes on every system before somebody reads it
_PRINCIPAL = pattern(r"[A-Za-z0-9@._+-]+")  # no `*`, `?`, `!` or `,`: those are patterns in a signers file
_ARMOR = pattern(r"-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=\n]+)\n-----END SSH SIGNATURE-----\n?")
_FINGERPRINT = pattern(r"(?:SHA256:)?([A-Za-z0-9+/]{43})=?")
_OPENPGP = pattern(r"(?:0x)?[0-9A-Fa-f]{40}")
_X509 = pattern(r"[0-9A-Fa-f]{2}(?::?[0-9A-Fa-f]{2}){31}")
_PRIVATE = pattern(rb"-----BEGIN OPENSSH PRIVATE KEY-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END OPENSSH PRIVATE KEY-----")


class Signer(Protocol):
    """Whoever can sign a commit."""

    @property
    def public_key(self) -> str:
        """Its public key as a ledger carries it, in one line: `ssh-ed25519 AAAA…`, `openpgp …` or `x509 …`."""

    @property
    def fingerprint(self) -> str:
        """Its public key's fingerprint: `SHA256:…`, 40 digits of an OpenPGP key, 64 of a certificate."""

    def sign(self, payload: bytes) -> str:
        """The armored signature over `payload`."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key as read from a signature, a key file or a record; nothing is said of who holds it."""

    line: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class KeySigner:
    """Signs with a private key file: ed25519, without a passphrase, its owner's alone.

    The file is looked at when its key is first asked for and again for each signature, so a key that was
    deleted or replaced since is an error and never a hang.
    """

    path: str

    @property
    def public_key(self) -> str:
        """See Signer."""
        return read_key(self.path).line

    @property
    def fingerprint(self) -> str:
        """See Signer."""
        return read_key(self.path).fingerprint

    def sign(self, payload: bytes) -> str:
        """See Signer."""
        return sign(payload, self)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────
def key_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Where this user's signing key lives: gitledger's part of the platform's data folder."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environ:
        # What platformdirs answers here; importing it costs more than a signature does.
        data, home = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "")
        if os.path.isabs(data):
            return os.path.join(data, "gitledger")
        if os.path.isabs(home):
            return home.rstrip("/") + "/.local/share/gitledger"
    import platformdirs

    return platformdirs.user_data_dir("gitledger", appauthor=False)


def default_key(environ: Mapping[str, str] = os.environ) -> str:
    """The path of this user's signing key, whether or not it was made yet."""
    return os.path.join(key_folder(environ), KEY_NAME)


def ensure_key(environ: Mapping[str, str] = os.environ) -> str:
    """The path of this user's signing key, made where there is none."""
    return make_key(key_folder(environ), "gitledger")


def new_key(writer: str, environ: Mapping[str, str] = os.environ) -> str:
    """The path of a new private key for one writer alone, on disk with the folders that lead to it."""
    above = os.path.join(key_folder(environ), "writers")
    path = make_key(os.path.join(above, f"{writer}-{os.urandom(4).hex()}"), f"gitledger {writer}")
    for folder in (above, os.path.dirname(above)):
        _sync(folder)
    return path


def make_key(folder: str, comment: str) -> str:
    """The path of the private key in `folder`, made where there is none; two at once end with one key.

    The folder is made with mode 0700 and the key with 0600. Raises Missing without ssh-keygen.
    """
    path = os.path.join(folder, KEY_NAME)
    if not os.path.lexists(path):
        fresh = os.path.join(folder, f".{KEY_NAME}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            _run(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", fresh], b"", doing="make a key")
            _sync(fresh)
            try:
                os.link(fresh, path)  # not rename: it would replace a key that another process has just signed with
            except FileExistsError:
                pass
            _sync(folder)
        except OSError as e:
            raise CannotWrite(f"no key can be made in {folder} ({e.strerror}): see who owns it with `ls -ld`") from e
        finally:
            for left in (fresh, fresh + ".pub"):
                if os.path.lexists(left):
                    os.unlink(left)
    _publish(path, comment)
    return path


def read_key(path: str) -> PublicKey:
    """The public half of a private key file, or one clear error for each way in which it cannot sign unattended."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # NONBLOCK: a FIFO there must not hang us
        try:
            found = os.fstat(fd)
            data = os.read(fd, 1 << 16) if stat.S_ISREG(found.st_mode) else b""
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise Missing(f"the signing key {path} is gone: restore it, or make another with `gitledger init`") from None
    except OSError as e:
        raise NotAllowed(f"the signing key {path} cannot be read ({e.strerror}): see who owns it with `ls -l`") from e
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NotAllowed(f"the signing key {path} is open to others: make it yours alone with `chmod 600`")
    armored = _PRIVATE.search(data)
    if armored is None:
        raise BadData(f"{path} is no OpenSSH private key: give one that `ssh-keygen -t ed25519` made")
    try:
        blob = _decoded(armored[1].replace(b"\r", b"").replace(b"\n", b""))
        magic, rest = blob[:15], blob[15:]
        cipher, rest = _string(rest)
        _, rest = _string(rest)
        _, rest = _string(rest)
        count, (public, _) = rest[:4], _string(rest[4:])
        kind = _string(public)[0]
        if magic != b"openssh-key-v1\0" or count != b"\0\0\0\1":
            raise ValueError("not one key")
    except ValueError as e:
        raise BadData(f"the signing key {path} is damaged: restore it, or make another with `gitledger init`") from e
    if cipher != b"none":
        raise NotAllowed(f"the signing key {path} has a passphrase, which no hook can ask for: use one without")
    if kind != KEY_TYPE.encode():
        raise BadData(f"{path} is a key of type {_show(kind)}: gitledger signs with {KEY_TYPE}")
    return _public(public)


def parse_public_key(line: str) -> PublicKey:
    """The key of a `ssh-ed25519 AAAA… comment` line, without its comment, or of an OpenPGP or x509 one."""
    if line.startswith(OTHERS[0]):
        from gitledger import openpgp

        return PublicKey(line, openpgp.fingerprint(openpgp.exported(line)))
    if line.startswith(OTHERS[1]):
        from gitledger import certificates

        return PublicKey(line, certificates.fingerprint(certificates.carried(line)))
    words = line.split()
    try:
        blob = _decoded(words[1])
        if _string(blob)[0] != words[0].encode():
            raise ValueError("two types")
    except (ValueError, IndexError) as e:
        raise BadData(f"{line[:60]!r} is no public key: one looks like `ssh-ed25519 AAAA…`") from e
    return _public(blob)


def read_fingerprint(text: str) -> str:
    """A whole fingerprint as a person copied it, in its one form; raise BadData for a part of one or anything else.

    Only a whole one proves anything: keys that share a few characters are cheap to make.
    """
    words = "".join(text.split())
    found = _FINGERPRINT.fullmatch(words)
    if found:
        return f"SHA256:{found[1]}"
    if _OPENPGP.fullmatch(words):
        return words[-40:].upper()
    if _X509.fullmatch(words):
        return words.replace(":", "").upper()
    shown = text[:60].encode("unicode_escape").decode()
    raise BadData(f"{shown!r} is no whole fingerprint: give all of SHA256:… as gitledger trust list prints it")


def allowed_signers_line(principal: str, public_key: str) -> str:
    """One line of an allowed-signers file, with its line end: `principal` may sign commits with `public_key`."""
    if not _PRINCIPAL.fullmatch(principal):
        raise BadData(f"{principal!r} cannot stand in a signers file: use letters, digits and @ . _ + -")
    return f'{principal} namespaces="{NAMESPACE}" {parse_public_key(public_key).line}\n'


def _publish(path: str, comment: str) -> None:
    # The public file is for people and for ssh-keygen's own use; it follows from the private one, so that whoever
    # comes later mends it.
    wanted = f"{read_key(path).line} {comment}\n"
    try:
        if gitdir.read_own(path + ".pub", follow=True).split()[:2] == wanted.encode().split()[:2]:
            return
    except (OSError, CannotWrite):
        pass
    fresh = f"{path}.pub.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as f:
            f.write(wanted.encode())
        os.replace(fresh, path + ".pub")
    except OSError as e:
        raise CannotWrite(f"{path}.pub cannot be written ({e.strerror}): see who owns its folder with `ls -ld`") from e


# ── signatures ───────────────────────────────────────────────────────────────────────────────
def sign(payload: bytes, key: KeySigner) -> str:
    """The armored signature over `payload` by a key file; an error says why that key cannot sign."""
    read_key(key.path)
    if os.path.exists(key.path + ".pub"):
        _publish(
            key.path, "gitledger"
        )  # beside another key's .pub, as a restored key may find, ssh-keygen does not sign
    # An empty passphrase given is one that nobody is asked for.
    answer = _run(["-Y", "sign", "-n", NAMESPACE, "-P", "", "-f", key.path], payload, doing="sign")
    armored = answer.stdout.decode("ascii", "replace")
    if not _ARMOR.fullmatch(armored):
        raise BadSignature(f"ssh-keygen made no signature with {key.path}: try `ssh-keygen -Y sign` by hand")
    return armored


def verify(
    payload: bytes,
    armored: str,
    allowed_signers: bytes,
    principal: str,
    *,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """BadSignature unless `armored` is over `payload`, for git, by a key that `allowed_signers` gives `principal`.

    `meanwhile` is done while ssh-keygen starts; what it raises is raised.
    """
    signer = signer_of(armored)
    if not _PRINCIPAL.fullmatch(principal):
        raise BadData(f"{principal!r} is no name of a signer: use letters, digits and @ . _ + -")
    # Pipes, because a temporary file is a write, and `tempfile` takes longer to import than this takes to check.
    mine = b"".join(line + b"\n" for line in allowed_signers.splitlines() if principal.encode() in line)
    if len(mine) > _PIPE or len(armored) > _PIPE:
        raise BadSignature(f"a signature or the keys of {principal} are longer than any can be: look at keys/")
    pipes = [_pipe(armored.encode()), _pipe(mine)]
    words = ["-Y", "verify", "-n", NAMESPACE, "-I", principal]
    words += ["-s", f"/dev/fd/{pipes[0]}", "-f", f"/dev/fd/{pipes[1]}"]
    try:
        answer = _run(words, payload, doing="verify", pass_fds=pipes, check=False, meanwhile=meanwhile)
    finally:
        for fd in pipes:
            os.close(fd)
    if answer.returncode:
        raise BadSignature(f"the signature by {signer.fingerprint} is not a good one of {principal}: {_words(answer)}")


def signer_of(armored: str) -> PublicKey:
    """The key that a signature says it was made with, after its form was checked strictly; it proves nothing."""
    found = _ARMOR.fullmatch(armored)
    try:
        if found is None:
            raise ValueError("no SSH signature")
        blob = _decoded(found[1].replace("\n", ""))
        if blob[:10] != b"SSHSIG\0\0\0\1":
            raise ValueError("no SSHSIG of version 1")
        public, rest = _string(blob[10:])
        namespace, rest = _string(rest)
        reserved, rest = _string(rest)
        algorithm, rest = _string(rest)
        signature, rest = _string(rest)
        if namespace != NAMESPACE.encode():
            raise ValueError(f"made for {_show(namespace)} and not for git")
        if reserved or rest:
            raise ValueError("more in it than there should be")
        if algorithm not in (b"sha512", b"sha256"):
            raise ValueError(f"hashed by {_show(algorithm)}")
        _string(signature)
        _string(public)
        return _public(public)
    except (ValueError, binascii.Error) as e:
        raise BadSignature(f"a signature is not one that git takes ({e}): run `gitledger verify` to see which") from e


# ── ssh-keygen and its formats ───────────────────────────────────────────────────────────────
def _run(
    args: Sequence[str],
    data: bytes,
    *,
    doing: str,
    pass_fds: Sequence[int] = (),
    check: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
) -> subprocess.CompletedProcess[bytes]:
    import subprocess  # whoever only reads starts no child here

    dropped = ("SSH_AUTH_SOCK", "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    try:
        # A session of its own has no terminal to ask on.
        child = subprocess.Popen(
            ["ssh-keygen", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Missing("ssh-keygen not found: install OpenSSH, then run gitledger init again") from None
    except OSError as e:
        raise Missing(f"ssh-keygen cannot be started ({e.strerror}): see that OpenSSH is installed whole") from e
    with child:
        try:
            meanwhile()
            out, err = child.communicate(data, timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            child.kill()
            raise TryAgain(f"ssh-keygen could not {doing} in {DEADLINE:g} s and was stopped: try again") from None
        except BaseException:
            child.kill()
            raise
    answer = subprocess.CompletedProcess(child.args, child.returncode, out, err)
    if check and answer.returncode:
        raise _failure(doing, answer)
    return answer


def _failure(doing: str, answer: subprocess.CompletedProcess[bytes]) -> LedgerError:
    words = _words(answer)
    if "unknown option" in words or "illegal option" in words:
        return Missing("ssh-keygen is too old to sign: install OpenSSH 8.2 or newer, then run gitledger init again")
    if "No space left" in words:
        return IOFailed(f"ssh-keygen could not {doing}: {words}")
    if doing == "make a key":
        return CannotWrite(f"ssh-keygen could not {doing}: {words}")
    return BadSignature(f"ssh-keygen could not {doing}: {words}")


def _words(answer: subprocess.CompletedProcess[bytes]) -> str:
    said = (answer.stderr.strip() or answer.stdout.strip()).decode("utf-8", "backslashreplace").splitlines()
    kept = [line.strip() for line in said if line.strip() and not line.startswith("Signing data")]
    return kept[0] if kept else f"exit code {answer.returncode}"


def _pipe(data: bytes) -> int:
    """A pipe's end that reads as `data` and then ends; at most _PIPE bytes, or writing would wait for a reader."""
    out, into = os.pipe()
    try:
        os.write(into, data)
    finally:
        os.close(into)
    return out


def _string(data: bytes) -> tuple[bytes, bytes]:
    """The string that SSH's wire format has first in `data` (four bytes of length), and what follows it."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ValueError("cut off")
    return data[4 : 4 + size], data[4 + size :]


def _public(blob: bytes) -> PublicKey:
    kind = _string(blob)[0]
    if not kind or kind.translate(None, _KIND):
        raise ValueError("no type of key")
    digest = _encoded(sha256(blob).digest()).rstrip("=")
    return PublicKey(f"{kind.decode()} {_encoded(blob)}", f"SHA256:{digest}")


def _encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _decoded(text: str | bytes) -> bytes:
    return binascii.a2b_base64(text, strict_mode=True)  # what base64.b64decode does with validate=True


def _show(data: bytes) -> str:
    return repr(data[:40].decode("ascii", "backslashreplace"))


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
