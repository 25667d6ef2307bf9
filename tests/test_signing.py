"""Signatures: what stock git believes we believe, and each way in which a key cannot sign is one clear error."""

from __future__ import annotations

import base64
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitledger import objects, signing
from gitledger.errors import BadData, BadSignature, CannotWrite, LedgerError, Missing, NotAllowed, TryAgain
from gitledger.objects import Commit
from gitledger.signing import KeySigner
from tests.sealed import Repo

WHO = "gitledger k3f9c2 <k3f9c2@ledger.invalid> 1790000000 +0000"
PRINCIPAL = "k3f9c2@ledger.invalid"


@pytest.fixture
def key(tmp_path: Path) -> KeySigner:
    return KeySigner(signing.make_key(str(tmp_path / "keys"), "gitledger"))


@pytest.fixture
def other(tmp_path: Path) -> KeySigner:
    return KeySigner(signing.make_key(str(tmp_path / "other"), "gitledger"))


def keygen(path: Path, *args: str) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-C", "x", "-f", str(path), *args], check=True, stdin=subprocess.DEVNULL)
    return path


def signers(key: KeySigner, principal: str = PRINCIPAL) -> bytes:
    return signing.allowed_signers_line(principal, key.public_key).encode()


# ── stock git agrees ─────────────────────────────────────────────────────────────────────────
def signed_commit(repo: Repo, key: KeySigner, namespace: str = "git") -> bytes:
    payload = objects.format_commit(Commit(repo.tree(), (repo.head(),), WHO, WHO, "C-000001 T-0001: next\n\nbody\n"))
    if namespace == "git":
        return objects.with_signature(payload, key.sign(payload), "sha1")
    words = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", key.path]
    armored = subprocess.run(words, input=payload, capture_output=True, check=True).stdout.decode()
    return objects.with_signature(payload, armored, "sha1")


def git_accepts(repo: Repo, commit: bytes, allowed: bytes) -> bool:
    file = repo.path.parent / "signers"
    file.write_bytes(allowed)
    oid = repo.git("hash-object", "-w", "-t", "commit", "--stdin", input=commit)
    words = ["git", "-c", f"gpg.ssh.allowedSignersFile={file}", "verify-commit", oid]
    return subprocess.run(words, cwd=repo.path, capture_output=True, check=False).returncode == 0


def we_accept(commit: bytes, allowed: bytes, principal: str = PRINCIPAL) -> bool:
    signatures = objects.parse_commit(commit).signatures
    assert len(signatures) == 1
    try:
        signing.verify(objects.signed_payload(commit), signatures[0][1], allowed, principal)
    except BadSignature:
        return False
    return True


def test_stock_git_verifies_what_we_signed(repo: Repo, key: KeySigner) -> None:
    commit = signed_commit(repo, key)
    assert git_accepts(repo, commit, signers(key))
    assert we_accept(commit, signers(key))
    assert signing.signer_of(objects.parse_commit(commit).signatures[0][1]).fingerprint == key.fingerprint


def test_we_verify_what_stock_git_signed(repo: Repo, key: KeySigner) -> None:
    config = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={key.path}"]
    oid = repo.git(*config, "commit-tree", "-S", "-m", "theirs\n\nbody", repo.tree(), "-p", repo.head())
    commit = subprocess.run(["git", "cat-file", "commit", oid], cwd=repo.path, capture_output=True, check=True).stdout
    assert we_accept(commit, signers(key))


def test_one_changed_byte_fails_in_git_and_here(repo: Repo, key: KeySigner) -> None:
    commit = signed_commit(repo, key)
    for old, new in ((b"next", b"nexx"), (b"k3f9c2 <", b"k3f9c3 <"), (b"body\n", b"body")):
        tampered = commit.replace(old, new, 1)
        assert tampered != commit
        assert not git_accepts(repo, tampered, signers(key))
        assert not we_accept(tampered, signers(key))


def test_a_signature_made_for_something_else_than_git_fails(repo: Repo, key: KeySigner) -> None:
    commit = signed_commit(repo, key, namespace="file")
    assert not git_accepts(repo, commit, signers(key))
    with pytest.raises(BadSignature, match="made for 'file' and not for git"):
        signing.verify(b"x", objects.parse_commit(commit).signatures[0][1], signers(key), PRINCIPAL)


def test_another_key_fails_however_it_is_listed(repo: Repo, key: KeySigner, other: KeySigner) -> None:
    commit = signed_commit(repo, other)
    assert not git_accepts(repo, commit, signers(key))
    assert not we_accept(commit, signers(key))
    assert not we_accept(commit, signers(key) + signers(other, "someone@ledger.invalid"))
    assert not we_accept(commit, b"")
    assert we_accept(commit, signers(key) + signers(other))


def test_a_key_that_may_sign_only_elsewhere_fails(repo: Repo, key: KeySigner) -> None:
    allowed = signers(key).replace(b'"git"', b'"file"')
    commit = signed_commit(repo, key)
    assert not git_accepts(repo, commit, allowed)
    assert not we_accept(commit, allowed)


def test_many_other_signers_do_not_get_in_the_way(repo: Repo, key: KeySigner) -> None:
    crowd = b"".join(signers(key, f"w{n}@ledger.invalid") for n in range(2000))
    assert len(crowd) > 1 << 16, "more than a pipe holds"
    commit = signed_commit(repo, key)
    assert we_accept(commit, crowd + signers(key))
    assert not we_accept(commit, crowd)


# ── what a signature says of itself ──────────────────────────────────────────────────────────
def wire(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def armor(blob: bytes) -> str:
    return f"-----BEGIN SSH SIGNATURE-----\n{base64.b64encode(blob).decode()}\n-----END SSH SIGNATURE-----\n"


PUBLIC = wire(b"ssh-ed25519", bytes(32))
GOOD = (PUBLIC, b"git", b"", b"sha512", wire(b"ssh-ed25519", bytes(64)))


def test_the_signer_is_read_as_ssh_keygen_reads_it(tmp_path: Path, key: KeySigner) -> None:
    listed = subprocess.run(["ssh-keygen", "-lf", key.path + ".pub"], capture_output=True, check=True).stdout.decode()
    assert key.fingerprint == listed.split()[1]
    assert (tmp_path / "keys" / "id_ed25519.pub").read_text() == f"{key.public_key} gitledger\n"
    found = signing.signer_of(key.sign(b"x"))
    assert (found.line, found.fingerprint) == (key.public_key, key.fingerprint)
    assert signing.parse_public_key(key.public_key + " a comment") == found
    assert signing.signer_of(armor(b"SSHSIG\0\0\0\1" + wire(*GOOD))).line.startswith("ssh-ed25519 ")


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"SSHSIG\0\0\0\2" + wire(*GOOD),
        b"SSHSIX\0\0\0\1" + wire(*GOOD),
        b"SSHSIG\0\0\0\1" + wire(*GOOD)[:-1],
        b"SSHSIG\0\0\0\1" + wire(*GOOD) + b"\0",
        b"SSHSIG\0\0\0\1" + wire(PUBLIC, b"file", *GOOD[2:]),
        b"SSHSIG\0\0\0\1" + wire(PUBLIC, b"", *GOOD[2:]),
        b"SSHSIG\0\0\0\1" + wire(PUBLIC, b"git", b"reserved", *GOOD[3:]),
        b"SSHSIG\0\0\0\1" + wire(PUBLIC, b"git", b"", b"md5", GOOD[4]),
        b"SSHSIG\0\0\0\1" + wire(b"short", *GOOD[1:]),
        b"SSHSIG\0\0\0\1" + wire(wire(b"ssh\nevil", b""), *GOOD[1:]),
        b"SSHSIG\0\0\0\1\xff\xff\xff\xff",
    ],
)
def test_a_signature_of_another_form_is_refused(blob: bytes) -> None:
    with pytest.raises(BadSignature):
        signing.signer_of(armor(blob))


@given(st.text(max_size=60), st.binary(max_size=60))
def test_any_text_is_a_signature_or_a_bad_one(text: str, blob: bytes) -> None:
    for armored in (text, armor(blob), armor(b"SSHSIG\0\0\0\1" + blob), armor(blob) + text):
        with pytest.raises(BadSignature):
            signing.signer_of(armored)


@pytest.mark.parametrize("principal", ["", "*", "a,b", "!a", "a b", "a\nb", 'a"', "a?", "#a"])
def test_a_principal_cannot_be_a_pattern(key: KeySigner, principal: str) -> None:
    with pytest.raises(BadData):
        signing.allowed_signers_line(principal, key.public_key)
    with pytest.raises(BadData):
        signing.verify(b"x", key.sign(b"x"), signers(key), principal)


@pytest.mark.parametrize("line", ["", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-rsa " + base64.b64encode(PUBLIC).decode()])
def test_a_line_that_is_no_public_key_is_refused(line: str) -> None:
    with pytest.raises(BadData):
        signing.allowed_signers_line(PRINCIPAL, line)


# ── keys ─────────────────────────────────────────────────────────────────────────────────────
def test_a_key_is_its_owner_s_alone_and_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "keys"
    path = signing.make_key(str(folder), "gitledger")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    before = Path(path).read_bytes()
    assert signing.make_key(str(folder), "another") == path
    assert Path(path).read_bytes() == before
    assert sorted(os.listdir(folder)) == ["id_ed25519", "id_ed25519.pub"]


def test_two_processes_that_make_a_key_at_once_end_with_one(tmp_path: Path) -> None:
    folder = str(tmp_path / "keys")
    code = "import sys; from gitledger import signing; k = signing.KeySigner(signing.make_key(sys.argv[1], 'x'))"
    code += "; sys.stdin.read(); print(k.fingerprint)"
    start = [sys.executable, "-c", code, folder]
    children = [subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    said = {child.communicate(b"")[0] for child in children}
    assert [child.returncode for child in children] == [0] * 4
    assert said == {KeySigner(folder + "/id_ed25519").fingerprint.encode() + b"\n"}
    assert sorted(os.listdir(folder)) == ["id_ed25519", "id_ed25519.pub"]


def test_a_lost_public_file_comes_back(key: KeySigner) -> None:
    os.unlink(key.path + ".pub")
    signing.make_key(os.path.dirname(key.path), "gitledger")
    assert Path(key.path + ".pub").read_text().startswith(key.public_key)


def test_without_ssh_keygen_a_person_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Missing, match="ssh-keygen not found: install OpenSSH, then run gitledger init again"):
        signing.make_key(str(tmp_path / "keys"), "x")
    assert os.listdir(tmp_path / "keys") == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="file/keys"):
        signing.make_key(str(tmp_path / "file" / "keys"), "x")


def deleted(path: Path) -> None:
    keygen(path, "-t", "ed25519", "-N", "").unlink()


def of_rsa(path: Path) -> None:
    keygen(path, "-t", "rsa", "-b", "2048", "-N", "")


def in_pem(path: Path) -> None:
    keygen(path, "-t", "ecdsa", "-m", "PEM", "-N", "")


def with_a_passphrase(path: Path) -> None:
    keygen(path, "-t", "ed25519", "-N", "secret")


def open_to_others(path: Path) -> None:
    keygen(path, "-t", "ed25519", "-N", "").chmod(0o640)


def cut_off(path: Path) -> None:
    data = keygen(path, "-t", "ed25519", "-N", "").read_bytes().splitlines(keepends=True)
    path.write_bytes(data[0] + data[1][:20] + b"\n" + data[-1])


def a_folder(path: Path) -> None:
    path.mkdir(mode=0o700)


def a_pipe(path: Path) -> None:
    os.mkfifo(path, 0o600)


def a_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (deleted, Missing, "is gone"),
        (of_rsa, BadData, "of type 'ssh-rsa'"),
        (in_pem, BadData, "no OpenSSH private key"),
        (with_a_passphrase, NotAllowed, "has a passphrase"),
        (open_to_others, NotAllowed, "chmod 600"),
        (cut_off, BadData, "is damaged"),
        (a_folder, BadData, "no OpenSSH private key"),
        (a_pipe, BadData, "no OpenSSH private key"),
        (a_loop, NotAllowed, "cannot be read"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_key_that_cannot_sign_unattended_is_one_clear_error(
    tmp_path: Path, make: Callable[[Path], None], error: type[LedgerError], words: str
) -> None:
    path = tmp_path / "key"
    make(path)
    with pytest.raises(error, match=words) as caught:
        KeySigner(str(path)).sign(b"x")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_agent_an_askpass_and_a_display_are_never_asked(
    tmp_path: Path, key: KeySigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    askpass = tmp_path / "askpass"
    askpass.write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n")
    askpass.chmod(0o755)
    for name, value in (("SSH_ASKPASS", str(askpass)), ("SSH_ASKPASS_REQUIRE", "force"), ("DISPLAY", ":9")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "dead"))
    assert signing.signer_of(key.sign(b"x")).fingerprint == key.fingerprint
    with pytest.raises(NotAllowed):
        KeySigner(str(keygen(tmp_path / "locked", "-t", "ed25519", "-N", "secret"))).sign(b"x")
    assert not asked.exists()


def test_a_program_that_hangs_is_stopped(tmp_path: Path, key: KeySigner, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "ssh-keygen"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(signing, "DEADLINE", 0.2)
    with pytest.raises(TryAgain, match="stopped"):
        key.sign(b"x")


def test_a_program_that_lies_makes_no_signature(
    tmp_path: Path, key: KeySigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "bin" / "ssh-keygen"
    liar.parent.mkdir()
    monkeypatch.setenv("PATH", f"{liar.parent}:{os.environ['PATH']}")
    for script in ("cat >/dev/null; echo fine", "cat >/dev/null; echo 'no: really' >&2; exit 255", "exit 1"):
        liar.write_text(f"#!/bin/sh\n{script}\n")
        liar.chmod(0o755)
        with pytest.raises(BadSignature):
            key.sign(b"x" * 300_000)


# ── where keys live ──────────────────────────────────────────────────────────────────────────
@pytest.mark.skipif(sys.platform != "linux", reason="the short cut is for Linux alone")
@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"XDG_DATA_HOME": ""},
        {"XDG_DATA_HOME": "relative"},
        {"XDG_DATA_HOME": " "},
        {"XDG_DATA_HOME": "/x/data"},
        {"XDG_DATA_HOME": "/x/data/"},
        {"HOME": "/y/"},
        {"HOME": "relative"},
        {"HOME": "/"},
        {"HOME": "", "PWD": "/"},
    ],
    ids=str,
)
def test_the_key_folder_is_the_one_that_platformdirs_names(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    import platformdirs

    monkeypatch.delenv("XDG_DATA_HOME")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    ours = signing.key_folder()
    assert ours == platformdirs.user_data_dir("gitledger", appauthor=False)
    assert signing.key_folder(dict(os.environ)) == ours
    assert signing.default_key() == ours + "/id_ed25519"


def test_a_home_gets_its_key_where_default_key_says(home: Path) -> None:
    path = signing.ensure_key()
    assert path == signing.default_key()
    assert path.startswith(str(home))
    assert shutil.which("ssh-keygen")
    assert signing.signer_of(KeySigner(path).sign(b"x")).line == KeySigner(path).public_key


def test_signing_imports_neither_cryptography_nor_platformdirs() -> None:
    code = "import sys, gitledger.signing as s; s.key_folder(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.decode().split()
    assert {"cryptography", "platformdirs", "tempfile", "pygit2", "pydantic"}.isdisjoint(loaded)


def test_a_key_that_was_restored_beside_another_ones_public_file_signs(tmp_path: Path) -> None:
    ours = signing.make_key(str(tmp_path / "ours"), "gitledger")
    other = signing.make_key(str(tmp_path / "other"), "gitledger")
    Path(ours + ".pub").write_bytes(Path(other + ".pub").read_bytes())
    key = signing.KeySigner(ours)
    armored = signing.sign(b"payload", key)
    signing.verify(b"payload", armored, signing.allowed_signers_line("a@b", key.public_key).encode(), "a@b")
