"""SSH signatures in process: what ssh-keygen makes is taken, what it refuses is refused, and the form is strict."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import signing, sshsig
from gitledger.errors import BadSignature, LedgerError
from tests.test_signing import keygen, wire

TYPES = (
    ("ed25519", ()),
    ("ecdsa", ("-b", "256")),
    ("ecdsa", ("-b", "384")),
    ("ecdsa", ("-b", "521")),
    ("rsa", ("-b", "2048")),
)
PAYLOAD = b"tree 0\n\nsomething\n"


def armor(blob: bytes) -> str:
    """Armored as ssh-keygen does it, in lines of 70."""
    body = base64.b64encode(blob).decode()
    lines = [body[at : at + 70] for at in range(0, len(body), 70)] or [""]
    return "\n".join(["-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""])


def made(tmp_path: Path, kind: str, more: tuple[str, ...], payload: bytes = PAYLOAD, *options: str) -> tuple[str, str]:
    """A public key's line, and a signature by it."""
    path = tmp_path / f"{kind}{''.join(more)}"
    if not path.exists():
        keygen(path, "-t", kind, *more, "-N", "")
    words = ["ssh-keygen", "-Y", "sign", "-n", "git", *options, "-f", str(path)]
    signature = subprocess.run(words, input=payload, capture_output=True, check=True).stdout.decode()
    return " ".join(path.with_suffix(".pub").read_text().split()[:2]), signature


@pytest.mark.parametrize(("kind", "more"), TYPES)
def test_what_ssh_keygen_signs_is_taken_and_one_other_byte_is_not(
    tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    line, signature = made(tmp_path, kind, more)
    assert sshsig.check(PAYLOAD, signature).line == line
    assert sshsig.check(PAYLOAD, signature) == signing.signer_of(signature)
    for other in (PAYLOAD + b"x", PAYLOAD[:-1], b"", PAYLOAD.replace(b"0", b"1")):
        with pytest.raises(BadSignature, match="not over these bytes"):
            sshsig.check(other, signature)


@pytest.mark.parametrize("digest", ["sha256", "sha512"])
def test_both_digests_are_taken(tmp_path: Path, digest: str) -> None:
    line, signature = made(tmp_path, "ed25519", (), PAYLOAD, "-O", f"hashalg={digest}")
    assert sshsig.check(PAYLOAD, signature).line == line


def test_it_says_what_signing_says(tmp_path: Path) -> None:
    line, signature = made(tmp_path, "ed25519", ())
    other, theirs = made(tmp_path, "ecdsa", ())
    allowed = (
        signing.allowed_signers_line("me@x.invalid", line) + signing.allowed_signers_line("you@x.invalid", other)
    ).encode()
    for principal, armored, good in (
        ("me@x.invalid", signature, True),
        ("you@x.invalid", theirs, True),
        ("you@x.invalid", signature, False),
        ("nobody@x.invalid", signature, False),
    ):
        for verify in (signing.verify, sshsig.verify):
            if good:
                verify(PAYLOAD, armored, allowed, principal)
            else:
                with pytest.raises(BadSignature):
                    verify(PAYLOAD, armored, allowed, principal)


def test_without_the_package_ssh_keygen_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, signature = made(tmp_path, "ed25519", ())
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    sshsig._verifier.cache_clear()
    assert sshsig.check(PAYLOAD, signature).line == line
    with pytest.raises(BadSignature):
        sshsig.check(PAYLOAD + b"x", signature)
    sshsig._verifier.cache_clear()


def blob(armored: str) -> bytes:
    return base64.b64decode("".join(armored.split("\n")[1:-2]))


def test_every_bit_of_a_signature_counts(tmp_path: Path) -> None:
    """A flipped bit is refused, or makes the signature of another key: never a good one of this key."""
    line, signature = made(tmp_path, "ed25519", ())
    whole = blob(signature)
    for at in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(LedgerError):
            sshsig.check(PAYLOAD, armor(bytes(changed)))
    assert sshsig.check(PAYLOAD, armor(whole)).line == line


@pytest.mark.parametrize(
    "change",
    [
        lambda good: good.replace("SSH SIGNATURE", "PGP SIGNATURE"),
        lambda good: "x" + good,
        lambda good: good + "\n",
        lambda good: good + good,
        lambda good: good.replace("\n", "\r\n"),
        lambda good: good.replace("\n", "\n "),
        lambda good: good[:60] + "!" + good[61:],
        lambda good: good.replace("-----END", "=\n-----END"),
        lambda good: "",
        lambda good: "A" * 100_000,
    ],
)
def test_a_signature_of_another_form_is_refused(tmp_path: Path, change: object) -> None:
    _, signature = made(tmp_path, "ed25519", ())
    with pytest.raises(BadSignature):
        sshsig.read(change(signature))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((b"k", b"file", b"", b"sha512", b"s"), "not for git"),
        ((b"k", b"git", b"x", b"sha512", b"s"), "more than it should"),
        ((b"k", b"git", b"", b"sha1", b"s"), "another function"),
        ((b"k", b"git", b"", b"sha512", wire(b"ssh-ed25519", b"s", b"x")), "more than it should"),
        ((b"k", b"git", b"", b"sha512", wire(b"ssh-ed25519", b"s"), b""), "more than it should"),
        ((b"k", b"git", b""), "cut off"),
    ],
)
def test_what_a_signature_holds_is_checked(parts: tuple[bytes, ...], words: str) -> None:
    with pytest.raises(BadSignature, match=words):
        sshsig.read(armor(b"SSHSIG\0\0\0\1" + wire(*parts)))


def test_a_signature_of_another_type_than_its_key_is_refused(tmp_path: Path) -> None:
    line, signature = made(tmp_path, "ed25519", ())
    whole = blob(signature)
    assert whole.count(b"ssh-ed25519") == 2
    head, _, tail = whole.rpartition(b"ssh-ed25519")
    with pytest.raises(BadSignature, match="another type"):
        sshsig.check(PAYLOAD, armor(head + b"ssh-ed25510" + tail))
    assert line


def test_a_weak_rsa_key_proves_nothing(tmp_path: Path) -> None:
    _, signature = made(tmp_path, "rsa", ("-b", "1024"))
    with pytest.raises(BadSignature):
        sshsig.check(PAYLOAD, signature)


@settings(max_examples=200)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_signature_or_a_bad_one(data: bytes, headed: bool) -> None:
    with pytest.raises(BadSignature):
        sshsig.check(PAYLOAD, armor((b"SSHSIG\0\0\0\1" if headed else b"") + data))


def test_a_key_that_cryptography_would_not_read_is_not_read_here() -> None:
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    def word(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    kind, point = word(b"ssh-ed25519"), bytes(range(32))
    for tail in (
        word(point),
        word(point[:-1]),
        word(point + b"x"),
        word(point) + b"x",
        word(point)[:-1],
        b"",
        word(b""),
    ):
        try:
            load_ssh_public_key(b"ssh-ed25519 " + base64.b64encode(kind + tail))
        except ValueError:
            with pytest.raises(BadSignature, match="damaged public key"):
                sshsig._verifier(kind + tail)
        else:
            assert tail == word(point)
            assert sshsig._verifier(kind + tail) is not None
