"""Signing as the user's own git does (`signing.mode: git`), and checking what such keys signed.

The program is the one that git would run, with the words that git gives it (its gpg-interface.c): git itself signs only
what is in the repository already. Nothing prompts: no terminal, no askpass, no pinentry, and a deadline. What needs a
passphrase must be unlocked before, in the user's agent.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from gitledger import certificates, cms, gitcli, openpgp, signing
from gitledger.errors import BadConfig, BadData, BadSignature, LedgerError, Missing, NotAllowed, TryAgain
from gitledger.signing import NAMESPACE, PublicKey
from gitledger.values import dataclass

DEADLINE = 15.0
"""Seconds that a signing program may take; a security key may wait for a touch."""
X509_TRIES = 3
"""How often a signature by a certificate is made: of some keys gpgsm 2.2 makes one in thirty that nobody can verify."""

_PGP = re.compile(r"-----BEGIN PGP SIGNATURE-----\n(?:[!-~][ -~]*\n)*\n[A-Za-z0-9+/=\n]+-----END PGP SIGNATURE-----\n?")
_LITERAL = re.compile(r"(?:key::)?((?:ssh-|ecdsa-|sk-)[a-z0-9@.-]+ .*)", re.DOTALL)
_STRONG = frozenset(("8", "9", "10", "11"))  # SHA-256, 384, 512, 224; a forger can choose two texts for an older one
_WHY: tuple[tuple[str, type[LedgerError], str], ...] = (
    ("No secret key", Missing, "its secret key is not here: import it, or set user.signingkey to another"),
    (
        "No public key",
        Missing,
        "no such certificate with its key is here: import it, or set user.signingkey to another",
    ),
    ("Ambiguous name", BadConfig, "several fit that name: set user.signingkey to the fingerprint of one"),
    ("Not trusted", NotAllowed, "gpgsm does not trust its root: see `gpgsm --list-chain`, then mark it as trusted"),
    ("ertificate expired", NotAllowed, "it has expired: renew it, or set user.signingkey to another"),
    ("No private key found", Missing, "its private key is not in the agent: add it with ssh-add"),
    ("communication with agent failed", Missing, "no ssh-agent answers: start one, or name a private key file"),
    ("Could not open a connection", Missing, "no ssh-agent answers: start one, or name a private key file"),
    ("find key in agent", Missing, "its private key is not in the agent: add it with ssh-add"),
    ("Unusable secret key", NotAllowed, "it has expired or was revoked: extend it, or set user.signingkey to another"),
    ("incorrect passphrase", NotAllowed, "the key is locked, and nobody is asked here: add it with ssh-add first"),
    ("agent refused operation", NotAllowed, "the agent refused: unlock it, or confirm and run the command again"),
    ("o pinentry", NotAllowed, "the key is locked, and nobody is asked here: sign something by hand first"),
    ("o passphrase", NotAllowed, "the key is locked, and nobody is asked here: sign something by hand first"),
    ("cancelled", NotAllowed, "the key is locked, and nobody is asked here: sign something by hand first"),
    ("not a tty", NotAllowed, "the key is locked, and nobody is asked here: sign something by hand first"),
    ("Couldn't load", Missing, "the key file cannot be read: see that user.signingkey names one"),
    ("No such file", Missing, "the key file is not there: see that user.signingkey names one"),
)
"""What a program's words mean, and what to do; the first that fits."""


@dataclass(frozen=True, slots=True)
class GitSigner:
    """Signs by the git configuration that holds in the folder `place`; `chosen` is another user.signingkey than there.

    Everything is looked up again each time, so what the user changed since is an error or holds, and never a mixture.
    """

    place: str
    chosen: str = ""

    @property
    def public_key(self) -> str:
        """See Signer."""
        return identity(settings(self.place, self.chosen)).line

    @property
    def fingerprint(self) -> str:
        """See Signer."""
        return identity(settings(self.place, self.chosen)).fingerprint

    def sign(self, payload: bytes) -> str:
        """See Signer."""
        found = settings(self.place, self.chosen)
        return _WAYS[found.format].sign(found, payload)


@dataclass(frozen=True, slots=True)
class Settings:
    """What git would sign with: format `ssh`, `openpgp` or `x509`, the program, and the key as it is named there."""

    format: str
    program: str
    key: str
    place: str


def settings(place: str, chosen: str = "") -> Settings:
    """The signing part of the git configuration in `place`; BadConfig where it names no key."""
    words = ["config", "-z", "--get-regexp", r"^(gpg\..*|user\.signingkey)$"]
    answer = gitcli.run(words, cwd=place, check=False)
    rows = (row.partition("\n") for row in answer.out.decode("utf-8", "surrogateescape").split("\0") if row)
    values = {name: value for name, _, value in rows}
    kind = values.get("gpg.format", "openpgp").lower()
    if kind not in _WAYS:
        raise BadConfig(f"gpg.format is {kind[:40]!r}; set it to ssh, openpgp or x509: git config gpg.format ssh")
    program = values.get(f"gpg.{kind}.program") or (values.get("gpg.program", "") if kind == "openpgp" else "")
    program = os.path.expanduser(program) or _WAYS[kind].program
    key = chosen or values.get("user.signingkey", "")
    if not key and kind == "ssh" and (command := values.get("gpg.ssh.defaultkeycommand", "")):
        key = _ask(command, place)
    if not key and kind != "ssh":
        key = _committer(place)
    if not key:
        raise BadConfig("git has no key to sign with; name one: git config user.signingkey KEY")
    return Settings(kind, program, key, place)


def identity(found: Settings) -> PublicKey:
    """The public key that such a configuration signs with."""
    return _WAYS[found.format].identity(found)


# ── checking ─────────────────────────────────────────────────────────────────────────────────
def check(payload: bytes, armored: str, public_key: str) -> None:
    """BadSignature unless `armored` is over `payload` by the OpenPGP key or certificate of a line in a ledger."""
    if public_key.startswith(f"{certificates.WORD} "):
        cms.check(payload, armored, certificates.carried(public_key))
        return
    export = openpgp.exported(public_key)
    found = check_openpgp(payload, armored, [export])
    if found != openpgp.fingerprint(export):
        raise BadSignature(f"the signature is by {found}, not by {openpgp.fingerprint(export)}")


def check_openpgp(payload: bytes, armored: str, exports: Iterable[bytes]) -> str:
    """The fingerprint of the key among `exports` that made `armored` over `payload`; BadSignature where none did.

    By `gpgv`, which knows these keys and no others, starts no agent and asks nobody. That a key has expired is not
    held against what it signed: the place in the chain counts, never a date. Missing where there is no gpgv.
    """
    import tempfile

    if not _PGP.fullmatch(armored):
        raise BadSignature("a signature is no OpenPGP one in the form that git takes")
    with tempfile.TemporaryDirectory(prefix="gitledger-") as folder:
        paths = {name: os.path.join(folder, name) for name in ("keys.gpg", "signature", "payload")}
        for name, data in (
            ("keys.gpg", b"".join(dict.fromkeys(exports))),
            ("signature", armored.encode()),
            ("payload", payload),
        ):
            with open(paths[name], "wb") as f:
                f.write(data)
        words = ["gpgv", "--homedir", folder, "--status-fd", "1", "--keyring", paths["keys.gpg"]]
        answer = _run([*words, paths["signature"], paths["payload"]], place=folder)
    status = [row.split()[1:] for row in answer.out.decode("utf-8", "replace").splitlines() if row[:9] == "[GNUPG:] "]
    names = [row[0] for row in status if row]
    valid = [row for row in status if row and row[0] == "VALIDSIG" and len(row) > 10]
    good = [name for name in names if name in ("GOODSIG", "EXPSIG", "EXPKEYSIG")]
    if names.count("NEWSIG") != 1 or len(valid) != 1 or len(good) != 1:
        raise BadSignature(f"a signature is not over these bytes by a key that the ledger carries: {answer.words}")
    if valid[0][8] not in _STRONG or valid[0][9] != "00":
        raise BadSignature("a signature uses a digest that proves nothing any more, or is over text and not over bytes")
    return valid[0][10].upper()


# ── ssh ──────────────────────────────────────────────────────────────────────────────────────
def _ssh_identity(found: Settings) -> PublicKey:
    if literal := _LITERAL.fullmatch(found.key):
        return signing.parse_public_key(literal[1])
    path = _key_path(found)
    for one in (path + ".pub", path):
        try:
            with open(os.open(one, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), encoding="utf-8") as f:
                return signing.parse_public_key(f.read(1 << 16))
        except (OSError, UnicodeDecodeError, BadData):
            continue
    answer = _run(["ssh-keygen", "-y", "-f", path], place=found.place)
    if answer.code:
        raise _failure("tell the public key of", found, answer)
    return signing.parse_public_key(answer.out.decode("utf-8", "replace"))


def _sign_ssh(found: Settings, payload: bytes) -> str:
    import tempfile

    # Files and words as git gives them, because the program may be a stand-in that knows nothing else.
    with tempfile.TemporaryDirectory(prefix="gitledger-") as folder:
        target, literal = os.path.join(folder, "payload"), _LITERAL.fullmatch(found.key)
        key = os.path.join(folder, "key") if literal else _key_path(found)
        for path, data in ((target, payload), *(((key, literal[1].encode()),) if literal else ())):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(data)
        words = [found.program, "-Y", "sign", "-n", NAMESPACE, "-f", key, *(["-U"] if literal else []), target]
        answer = _run(words, place=found.place)
        try:
            with open(target + ".sig", encoding="ascii") as f:
                made = f.read(1 << 16).replace("\r", "")
        except (OSError, UnicodeDecodeError):
            made = ""
    if answer.code or not made.startswith("-----BEGIN SSH SIGNATURE-----\n"):
        raise _failure("sign with", found, answer)
    return made


def _key_path(found: Settings) -> str:
    # git reads it as a path, relative to where it runs.
    return os.path.join(found.place, os.path.expanduser(found.key))


# ── openpgp ──────────────────────────────────────────────────────────────────────────────────
def _openpgp_identity(found: Settings) -> PublicKey:
    quiet = [found.program, "--batch", "--no-tty"]
    listed = _run([*quiet, "--with-colons", "--list-secret-keys", "--", found.key], place=found.place)
    primary = _first(listed, "sec")
    if listed.code or not primary:
        raise _failure("find", found, listed)
    words = [*quiet, "--export-options", "export-minimal", "--export", "--", primary]
    made = _run(words, place=found.place)
    if made.code or not made.out:
        raise _failure("export", found, made)
    return PublicKey(openpgp.line(made.out), openpgp.fingerprint(made.out))


def _sign_openpgp(found: Settings, payload: bytes) -> str:
    words = [found.program, "--batch", "--no-tty", "--pinentry-mode", "error", "--status-fd=2", "-bsau", found.key]
    answer = _run(words, payload, place=found.place)
    made = answer.out.decode("ascii", "replace").replace("\r", "")
    if answer.code or "[GNUPG:] SIG_CREATED " not in answer.err or not _PGP.fullmatch(made):
        raise _failure("sign with", found, answer)
    return made


# ── x509 ─────────────────────────────────────────────────────────────────────────────────────
def _x509_identity(found: Settings) -> PublicKey:
    quiet = [found.program, "--batch", "--no-tty", "--disable-dirmngr"]
    listed = _run([*quiet, "--with-colons", "--list-secret-keys", "--", found.key], place=found.place)
    own = _first(listed, "crs")
    if not listed.code and not own:  # of a name that fits nothing it says nothing
        raise _failure("find", found, _Answer(1, b"", "No public key"))
    if listed.code:
        raise _failure("find", found, listed)
    made = _run([*quiet, "--export", "--", own], place=found.place)
    if made.code or not made.out:
        raise _failure("export", found, made)
    cms.usable(made.out)
    return PublicKey(certificates.line(made.out), certificates.fingerprint(made.out))


def _sign_x509(found: Settings, payload: bytes) -> str:
    # No network: whether an issuer revoked it is not asked, since the ledger's own chain says how long a key counts.
    offline = ["--disable-dirmngr", "--disable-crl-checks"]
    quiet = ["--batch", "--no-tty", "--pinentry-mode", "error", *offline]
    certificate = certificates.carried(_x509_identity(found).line)
    for tried in range(1, X509_TRIES + 1):
        answer = _run([found.program, *quiet, "--status-fd=2", "-bsau", found.key], payload, place=found.place)
        made = answer.out.decode("ascii", "replace").replace("\r", "")
        # What failed half way has written the beginning of a signature.
        if answer.code or "[GNUPG:] SIG_CREATED " not in answer.err or not made.startswith(cms.BEGIN):
            raise _failure("sign with", found, answer)
        try:
            cms.check(payload, made, certificate)
            break
        except BadSignature:
            if tried == X509_TRIES:
                raise
    return made


def _committer(place: str) -> str:
    answer = gitcli.run(["var", "GIT_COMMITTER_IDENT"], cwd=place, check=False)
    return "" if answer.code else answer.line.rpartition("> ")[0] + ">"


def _first(listed: _Answer, kind: str) -> str:
    """The fingerprint behind the first row of a kind in a listing with colons; "" where there is none."""
    rows = [row.split(":") for row in listed.out.decode("utf-8", "replace").splitlines()]
    return next((row[9] for of, row in pairwise(rows) if row[0] == "fpr" and of[0] == kind), "")


@dataclass(frozen=True, slots=True)
class _Way:
    """How one of git's formats is gone about."""

    program: str
    identity: Callable[[Settings], PublicKey]
    sign: Callable[[Settings, bytes], str]


_WAYS = {
    "ssh": _Way("ssh-keygen", _ssh_identity, _sign_ssh),
    "openpgp": _Way("gpg", _openpgp_identity, _sign_openpgp),
    "x509": _Way("gpgsm", _x509_identity, _sign_x509),
}


# ── programs ─────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    out: bytes
    err: str

    @property
    def words(self) -> str:
        """What it complained of, in one line."""
        rows = [row.strip() for row in self.err.splitlines() if row.strip() and not row.startswith("[GNUPG:]")]
        return next((row for row in rows if "failed" in row or "rror" in row), rows[0] if rows else f"exit {self.code}")


def _run(words: Sequence[str], data: bytes | None = None, *, place: str) -> _Answer:
    try:
        # A session of its own has no terminal to ask on, and can be ended with all that it started.
        child = subprocess.Popen(
            words,
            cwd=place,
            env=_quiet(gitcli.environment()),
            stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as e:
        raise Missing(
            f"{words[0]} cannot be started ({e.strerror}): install it, or name another in git's gpg.program"
        ) from e
    try:
        out, err = child.communicate(data, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        gitcli.kill(child)
        raise TryAgain(
            f"{words[0]} did not answer in {DEADLINE:g} s and was stopped: see what it waits for, then try again"
        ) from None
    except BaseException:
        gitcli.kill(child)
        raise
    return _Answer(child.returncode, out, err.decode("utf-8", "backslashreplace"))


def _quiet(env: Mapping[str, str]) -> dict[str, str]:
    dropped = ("GPG_TTY", "SSH_ASKPASS", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
    return {name: value for name, value in env.items() if name not in dropped} | {"SSH_ASKPASS_REQUIRE": "never"}


def _ask(command: str, place: str) -> str:
    # By the shell, as git runs it: it is the user's own configuration.
    answer = _run(["sh", "-c", command], place=place)
    first = answer.out.decode("utf-8", "replace").partition("\n")[0].strip()
    if answer.code or not first:
        raise BadConfig(f"gpg.ssh.defaultKeyCommand gave no key ({answer.words}); set user.signingkey instead")
    return first


def _failure(doing: str, found: Settings, answer: _Answer) -> LedgerError:
    shown = found.key[:60].encode("unicode_escape").decode()
    for words, kind, mend in _WHY:
        if words in answer.err:
            return kind(f"git's {found.format} set-up cannot {doing} the key {shown}: {mend}")
    return BadSignature(f"git's {found.format} set-up cannot {doing} the key {shown} ({answer.words[:200]}): try it by "
                        "hand with `git commit -S`")  # fmt: skip
