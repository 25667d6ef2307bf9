"""`signing.mode: git`: the user's own set-up signs, by file key, agent or GnuPG, and never asks anybody."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitledger import discover, gitsigner, keys, layout, objects, openpgp, signing, transaction, verify
from gitledger.errors import BadConfig, BadData, BadSignature, Blocked, LedgerError, Missing, NotAllowed
from gitledger.gitsigner import GitSigner
from gitledger.ledger import Ledger
from tests.ledgers import again, begin
from tests.patience import agent_ended, begun, ended
from tests.sealed import Repo
from tests.test_config_command import run

needs_gpg = pytest.mark.skipif(
    not (shutil.which("gpg") and shutil.which("gpgv")), reason="GnuPG is not here: OpenPGP signing is NOT TESTED"
)
needs_agent = pytest.mark.skipif(not shutil.which("ssh-agent"), reason="no ssh-agent: signing by agent is NOT TESTED")
PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nany bytes\n"


def recorded(book: Ledger) -> str:
    return book.view().need(layout.writer_key(book.desk.writer.id)).text("public_key")


def ssh_key(folder: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"id_{kind}"
    words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "ada", "-f", str(path)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return path


def use_ssh(repo: Repo, key: str | Path) -> None:
    repo.git("config", "gpg.format", "ssh")
    repo.git("config", "user.signingkey", str(key))


def good(book: Ledger) -> None:
    """The newest commit is signed by the key that the ledger has for the writer, by our check."""
    data = book.desk.store.get(book.tip()).data
    ((_, armored),) = objects.parse_commit(data).signatures
    transaction.verify(objects.signed_payload(data), armored, recorded(book), book.desk.writer.principal)


# ── ssh ──────────────────────────────────────────────────────────────────────────────────────
def test_a_ledger_begun_with_gits_own_key_needs_no_other_and_stock_git_verifies_it(repo: Repo, tmp_path: Path) -> None:
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "init", "--signing", "git")
    assert not Path(signing.default_key()).exists()
    book = again(repo)
    assert book.desk.config.signing.mode == "git"
    book.checkpoint()
    good(again(repo))
    assert recorded(book) == (tmp_path / "mine" / "id_ed25519.pub").read_text().removesuffix(" ada\n")
    signers = repo.path / ".git" / "signers"
    signers.write_text(repo.git("show", "ledger/main:keys/allowed_signers") + "\n")
    repo.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-commit", "ledger/main")
    made = verify.verify(book.desk, book.tip(), verify.Ways(full=True))
    assert made.verdict == "verified", made.findings


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
@pytest.mark.parametrize("named", ["private", "public", "without .pub"])
def test_a_key_file_of_any_type_signs_however_it_is_named(repo: Repo, tmp_path: Path, kind: str, named: str) -> None:
    key = ssh_key(tmp_path / "mine", kind)
    public = signing.parse_public_key(key.with_suffix(".pub").read_text())
    use_ssh(repo, key.with_suffix(".pub") if named == "public" else key)
    if named == "without .pub":
        key.with_suffix(".pub").unlink()
    signer = GitSigner(str(repo.path))
    assert (signer.public_key, signer.fingerprint) == (public.line, public.fingerprint)
    transaction.verify(PAYLOAD, signer.sign(PAYLOAD), public.line, "ada@gitledger.invalid")
    with pytest.raises(BadSignature):
        transaction.verify(PAYLOAD + b"x", signer.sign(PAYLOAD), public.line, "ada@gitledger.invalid")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An ssh-agent that is this test's only one."""
    out = subprocess.run(["ssh-agent", "-s", "-a", str(tmp_path / "agent")], check=True, capture_output=True, text=True)
    pid = int(out.stdout.split("SSH_AGENT_PID=")[1].split(";")[0])
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    yield
    os.kill(pid, signal.SIGTERM)


@needs_agent
@pytest.mark.parametrize("literal", ["{}", "key::{}"])
def test_a_key_that_only_the_agent_holds_signs(repo: Repo, tmp_path: Path, agent: None, literal: str) -> None:
    key = ssh_key(tmp_path / "mine")
    subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    key.unlink()
    use_ssh(repo, literal.format(key.with_suffix(".pub").read_text().strip()))
    run(repo.path, "init", "--signing", "git")
    again(repo).checkpoint()
    good(again(repo))
    subprocess.run(["ssh-add", "-q", "-D"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    tip = again(repo).tip()
    with pytest.raises(Blocked, match="ssh-add"):
        again(repo).checkpoint()
    assert again(repo).tip() == tip


@needs_agent
def test_a_key_that_the_users_own_command_names_signs(repo: Repo, tmp_path: Path, agent: None) -> None:
    key = ssh_key(tmp_path / "mine")
    subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    repo.git("config", "gpg.format", "ssh")
    repo.git("config", "gpg.ssh.defaultKeyCommand", "ssh-add -L")
    signer = GitSigner(str(repo.path))
    assert signer.fingerprint == signing.parse_public_key(key.with_suffix(".pub").read_text()).fingerprint
    transaction.verify(PAYLOAD, signer.sign(PAYLOAD), signer.public_key, "ada@gitledger.invalid")


def test_a_locked_key_file_is_one_line_and_no_question(repo: Repo, tmp_path: Path) -> None:
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "init", "--signing", "git")
    words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(tmp_path / "mine" / "id_ed25519")]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    tip = again(repo).tip()
    with pytest.raises(Blocked, match=r"locked.*ssh-add") as found:
        again(repo).checkpoint()
    assert "\n" not in str(found.value)
    assert again(repo).tip() == tip


def test_a_program_that_stands_in_for_ssh_keygen_is_the_one_that_signs(repo: Repo, tmp_path: Path) -> None:
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexec ssh-keygen "$@"\n')
    stand_in.chmod(0o755)
    repo.git("config", "gpg.ssh.program", str(stand_in))
    GitSigner(str(repo.path)).sign(PAYLOAD)
    said = (tmp_path / "words").read_text().split()
    assert said[:6] == ["-Y", "sign", "-n", "git", "-f", str(tmp_path / "mine" / "id_ed25519")]


# ── what can go wrong ────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"gpg.format": "ssh"}, BadConfig, "user.signingkey"),
        ({"gpg.format": "ssh", "user.signingkey": "/nowhere/key"}, Missing, "user.signingkey"),
        ({"gpg.format": "x509", "gpg.x509.program": "/nowhere/gpgsm"}, Missing, "/nowhere/gpgsm"),
        ({"gpg.format": "odd"}, BadConfig, "gpg.format"),
        ({"gpg.program": "/nowhere/gpg", "user.signingkey": "x"}, Missing, "/nowhere/gpg"),
        ({"gpg.format": "ssh", "gpg.ssh.defaultKeyCommand": "false"}, BadConfig, "defaultKeyCommand"),
    ],
)
def test_a_set_up_that_cannot_sign_is_one_line_and_begins_nothing(
    repo: Repo, settings: dict[str, str], error: type[LedgerError], words: str
) -> None:
    for name, value in settings.items():
        repo.git("config", name, value)
    with pytest.raises(error, match=words) as found:
        discover.init(str(repo.path), "main", None, mode="git")
    assert "\n" not in str(found.value)
    assert not (repo.path / ".git" / "gitledger").exists()
    assert repo.git("for-each-ref", "refs/heads/ledger") == ""


def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "init", "--signing", "git")
    tip = again(repo).tip()
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\nsleep 300 & echo $! > {tmp_path}/pid\nwait\n")
    slow.chmod(0o755)
    repo.git("config", "gpg.ssh.program", str(slow))
    pid = tmp_path / "pid"

    def attempt(seconds: float) -> Blocked:
        monkeypatch.setattr(gitsigner, "DEADLINE", seconds)
        with pytest.raises(Blocked, match=f"did not answer in {seconds:g} s") as found:
            again(repo).checkpoint()
        return found.value

    blocked = begun(attempt, lambda _: pid.exists() and pid.read_text(), 1.0)
    assert blocked.exit_code == 75
    assert again(repo).tip() == tip
    assert ended(int(pid.read_text())), "the program's own child lives on"


def test_a_program_that_signs_nonsense_commits_nothing(repo: Repo, tmp_path: Path) -> None:
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "init", "--signing", "git")
    tip = again(repo).tip()
    other = ssh_key(tmp_path / "other")
    for n, body in enumerate(
        (
            "exit 0",
            'for f; do :; done; echo no > "$f.sig"',
            f'for f; do :; done; exec ssh-keygen -Y sign -n git -f {other} "$f"',
            f'for f; do :; done; exec ssh-keygen -Y sign -n file -f {other} "$f"',
        )
    ):
        program = tmp_path / f"program{n}"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        repo.git("config", "gpg.ssh.program", str(program))
        with pytest.raises(Blocked):
            again(repo).checkpoint()
        assert again(repo).tip() == tip


# ── changing over ────────────────────────────────────────────────────────────────────────────
def test_a_changed_mode_takes_effect_by_a_rotation_in_either_direction(repo: Repo, tmp_path: Path) -> None:
    begin(repo)
    old = recorded(again(repo))
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "config", "set", "signing.mode", "git")
    again(repo).checkpoint()
    assert recorded(again(repo)) == old, "until then the key that the ledger has signs on"
    run(repo.path, "trust", "rotate")
    assert recorded(again(repo)) == GitSigner(str(repo.path)).public_key
    again(repo).checkpoint()
    good(again(repo))
    second = ssh_key(tmp_path / "second")
    run(repo.path, "trust", "rotate", "--to", str(second))
    with pytest.raises(Blocked, match="knows this clone's writer"):
        again(repo).checkpoint()
    repo.git("config", "user.signingkey", str(second))
    again(repo).checkpoint()
    good(again(repo))
    run(repo.path, "config", "set", "signing.mode", "key")
    run(repo.path, "trust", "rotate")
    repo.git("config", "--unset", "user.signingkey")
    again(repo).checkpoint()
    good(again(repo))
    made = verify.verify(again(repo).desk, again(repo).tip(), verify.Ways(full=True))
    assert made.verdict == "verified", made.findings


def test_a_key_that_was_revoked_does_not_come_back(repo: Repo, tmp_path: Path) -> None:
    begin(repo)
    use_ssh(repo, ssh_key(tmp_path / "mine"))
    run(repo.path, "trust", "revoke", GitSigner(str(repo.path)).fingerprint)
    run(repo.path, "config", "set", "signing.mode", "git")
    with pytest.raises(NotAllowed, match="was revoked"):
        run(repo.path, "trust", "rotate")
    assert keys.pinned(again(repo).desk).until(GitSigner(str(repo.path)).fingerprint)


# ── openpgp ──────────────────────────────────────────────────────────────────────────────────
def gpg(*words: str, text: str = "") -> str:
    done = subprocess.run(
        ["gpg", "--batch", "--yes", *words], input=text, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def pgp_key(name: str, *, passphrase: str = "", until: str = "0") -> str:
    """A new key; its fingerprint."""
    gpg("--passphrase", passphrase, "--pinentry-mode", "loopback", "--quick-gen-key", name, "ed25519", "sign", until)
    rows = gpg("--with-colons", "--list-secret-keys", f"={name}").splitlines()
    return next(row.split(":")[9] for row in rows if row.startswith("fpr"))


ADA = "Ada Tester <ada@example.org>"


@needs_gpg
def test_an_openpgp_key_signs_and_gpg_alone_with_the_carried_key_verifies(
    repo: Repo, gnupg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = pgp_key(ADA)
    run(repo.path, "init", "--signing", "git")  # without a key named: that of the committer, as git does
    again(repo).checkpoint()
    book = again(repo)
    good(book)
    assert book.view().need(layout.writer_key(book.desk.writer.id)).text("fingerprint") == fingerprint
    assert repo.git("show", "ledger/main:keys/allowed_signers") == ""
    made = verify.verify(book.desk, book.tip(), verify.Ways(full=True))
    assert made.verdict == "verified", made.findings
    assert made.trusted == {book.desk.writer.id}
    empty = tmp_path / "e"
    empty.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(empty))
    (tmp_path / "key").write_bytes(openpgp.exported(recorded(book)))
    gpg("--import", str(tmp_path / "key"))
    repo.git("verify-commit", "ledger/main")
    subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


@needs_gpg
def test_other_bytes_another_key_and_another_form_are_refused(repo: Repo, gnupg: Path) -> None:
    first, second = pgp_key(ADA), pgp_key("Eve <eve@example.org>")
    repo.git("config", "user.signingkey", first)
    signer = GitSigner(str(repo.path))
    armored, line = signer.sign(PAYLOAD), signer.public_key
    gitsigner.check(PAYLOAD, armored, line)
    eve = openpgp.line(subprocess.run(["gpg", "--export", second], capture_output=True, check=True).stdout)
    clear = gpg("--local-user", first, "--clearsign", text=PAYLOAD.decode())
    textual = gpg("--local-user", first, "--textmode", "-bsa", text=PAYLOAD.decode())
    weak = gpg(
        "--local-user", first, "--digest-algo", "SHA1", "--allow-weak-digest-algos", "-bsa", text=PAYLOAD.decode()
    )
    two = gpg("--local-user", first, "--local-user", second, "-bsa", text=PAYLOAD.decode())
    for payload, made, key in (
        (PAYLOAD + b"\n", armored, line),
        (PAYLOAD, armored, eve),
        (PAYLOAD, clear, line),
        (PAYLOAD, textual, line),
        (PAYLOAD, weak, line),
        (PAYLOAD, two, line),
        (PAYLOAD, armored + armored, line),
        (PAYLOAD, armored.replace("\n\n", "\n\nAAAA", 1), line),
        (PAYLOAD, "", line),
    ):
        with pytest.raises(BadSignature):
            gitsigner.check(payload, made, key)


@needs_gpg
def test_an_expired_key_signs_nothing_more_and_what_it_signed_counts(repo: Repo, gnupg: Path) -> None:
    (gnupg / "gpg.conf").write_text("faked-system-time 20200101T000000\n")
    key = pgp_key(ADA, until="seconds=3600")
    repo.git("config", "user.signingkey", key)
    run(repo.path, "init", "--signing", "git")
    (gnupg / "gpg.conf").unlink()  # years later
    tip = again(repo).tip()
    with pytest.raises(Blocked, match="expired") as found:
        again(repo).checkpoint()
    assert "\n" not in str(found.value)
    assert again(repo).tip() == tip
    good(again(repo))


@needs_gpg
def test_a_key_that_was_revoked_in_its_owners_keyring_signs_nothing_more_and_what_it_signed_counts(
    repo: Repo, gnupg: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = pgp_key(ADA)
    repo.git("config", "user.signingkey", key)
    run(repo.path, "init", "--signing", "git")
    again(repo).checkpoint()
    # GnuPG makes it ready with each key, and puts a colon before it, so that nobody takes it by mistake.
    revocation = (gnupg / "openpgp-revocs.d" / f"{key}.rev").read_text().replace(":-----BEGIN", "-----BEGIN")
    gpg("--import", text=revocation)
    with pytest.raises(Blocked, match="was revoked") as found:
        again(repo).checkpoint()
    assert "\n" not in str(found.value)
    capsys.readouterr()
    assert run(repo.path, "verify", "--full") == 0
    assert "2 commits" in capsys.readouterr().out


@needs_gpg
def test_a_locked_openpgp_key_is_one_line_and_no_question(repo: Repo, gnupg: Path) -> None:
    key = pgp_key(ADA, passphrase="secret")
    repo.git("config", "user.signingkey", key)
    agent_ended()
    with pytest.raises(NotAllowed, match="locked") as found:
        discover.init(str(repo.path), "main", None, mode="git")
    assert "\n" not in str(found.value)
    assert not (repo.path / ".git" / "gitledger").exists()
    # Unlocked by its owner before, it signs.
    gpg("--local-user", key, "--passphrase", "secret", "--pinentry-mode", "loopback", "-bsa", text="any")
    discover.init(str(repo.path), "main", None, mode="git")
    good(again(repo))


@needs_gpg
def test_a_key_that_is_not_here_is_named(repo: Repo, gnupg: Path) -> None:
    repo.git("config", "user.signingkey", "0" * 40)
    with pytest.raises(Missing, match=r"0{40}.*secret key is not here"):
        discover.init(str(repo.path), "main", None, mode="git")


@needs_gpg
def test_a_carried_key_is_one_key_and_nothing_beside_it(gnupg: Path) -> None:
    one, two = pgp_key(ADA), pgp_key("Eve <eve@example.org>")
    export = subprocess.run(["gpg", "--export", one], capture_output=True, check=True).stdout
    both = subprocess.run(["gpg", "--export", one, two], capture_output=True, check=True).stdout
    secret = subprocess.run(
        ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--export-secret-keys", one],
        capture_output=True,
        check=True,
    ).stdout
    assert openpgp.fingerprint(export) == one
    assert openpgp.exported(openpgp.line(export)) == export
    assert signing.parse_public_key(openpgp.line(export)).fingerprint == one
    for wrong in (
        b"",
        both,
        secret,
        export[:-1],
        export[1:],
        export + b"\0",
        export * 2,
        b"\x99",
        b"\xff" * 9,
        b"\x98\1\3",
    ):
        with pytest.raises(BadData):
            openpgp.fingerprint(wrong)
    for line in ("openpgp", "openpgp !", "openpgp AAAA", f"openpgp  {openpgp.line(export)[8:]}", "ssh-ed25519 AAAA"):
        with pytest.raises(BadData):
            openpgp.exported(line)


@needs_gpg
def test_a_strangers_subkey_that_the_key_did_not_bind_signs_nothing(repo: Repo, gnupg: Path) -> None:
    """Eve's key as a subkey of Ada's, without Ada's word for it: by hand, as a forged record could carry it."""
    ada, eve = pgp_key(ADA), pgp_key("Eve <eve@example.org>")
    exports = {k: subprocess.run(["gpg", "--export", k], capture_output=True, check=True).stdout for k in (ada, eve)}
    packets = list(openpgp._packets(exports[eve]))
    body = packets[0][1]
    graft = bytes([0x80 | 14 << 2 | 1]) + len(body).to_bytes(2, "big") + body
    forged = openpgp.line(exports[ada] + graft)
    made = gpg("--local-user", eve, "-bsa", text=PAYLOAD.decode())
    with pytest.raises(BadSignature):
        gitsigner.check(PAYLOAD, made, forged)
