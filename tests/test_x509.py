"""`gpg.format=x509`: gpgsm signs as it does for git, and what it made is checked here, by no program and no date."""

from __future__ import annotations

import base64
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs7, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from gitledger import certificates, cms, der, discover, gitsigner, layout, signing, transaction, verify
from gitledger.errors import BadConfig, BadData, BadSignature, Blocked, LedgerError, Missing, NotAllowed, Unsupported
from gitledger.gitsigner import GitSigner
from tests import certificate
from tests.certificate import Made, gpgsm, install, make, needs_gpgsm
from tests.ledgers import again
from tests.patience import agent_ended
from tests.sealed import Repo
from tests.test_config_command import run
from tests.test_gitsigner import PAYLOAD, good, recorded

DETACHED = (pkcs7.PKCS7Options.DetachedSignature, pkcs7.PKCS7Options.Binary)


@pytest.fixture(scope="module")
def ada() -> Made:
    """A certificate by an authority, as a company gives them out."""
    return make("Ada", make("Authority"))


def use(repo: Repo, key: str) -> None:
    repo.git("config", "gpg.format", "x509")
    repo.git("config", "user.signingkey", key)


def signed(
    *by: Made,
    payload: bytes = PAYLOAD,
    options: tuple[pkcs7.PKCS7Options, ...] = DETACHED,
    digest: hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | hashes.SHA1 | None = None,
) -> str:
    """A signature by another program's hand than gpgsm's."""
    builder = pkcs7.PKCS7SignatureBuilder().set_data(payload)
    for one in by:
        builder = builder.add_signer(one.certificate, one.key, digest or hashes.SHA256())  # type: ignore[arg-type]
    return armored(builder.sign(serialization.Encoding.DER, list(options)))


def armored(blob: bytes) -> str:
    text = base64.b64encode(blob).decode()
    rows = "".join(text[at : at + 64] + "\n" for at in range(0, len(text), 64))
    return f"-----BEGIN SIGNED MESSAGE-----\n{rows}-----END SIGNED MESSAGE-----\n"


# ── with gpgsm ───────────────────────────────────────────────────────────────────────────────
@needs_gpgsm
def test_a_certificate_signs_and_stock_git_verifies_where_its_root_is_trusted(
    repo: Repo, gnupg: Path, ada: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(gnupg, ada)
    use(repo, ada.id)
    run(repo.path, "init", "--signing", "git")
    fingerprint = ada.certificate.fingerprint(hashes.SHA256()).hex().upper()
    assert fingerprint in capsys.readouterr().out
    again(repo).checkpoint()
    book = again(repo)
    good(book)
    assert certificates.carried(recorded(book)) == ada.der
    assert book.view().need(layout.writer_key(book.desk.writer.id)).text("fingerprint") == fingerprint
    assert repo.git("show", "ledger/main:keys/allowed_signers") == ""
    run(repo.path, "trust", "list")
    assert fingerprint in capsys.readouterr().out

    def none(*words: object, **more: object) -> None:
        raise AssertionError("a program was started to verify")

    with monkeypatch.context() as patch:
        patch.setattr(gitsigner, "_run", none)
        made = verify.verify(book.desk, book.tip(), verify.Ways(full=True))
    assert made.verdict == "verified", made.findings
    assert made.trusted == {book.desk.writer.id}
    assert run(repo.path, "verify", "--full") == 0

    # Another machine, that has the certificate from the ledger and trusts the authority, and not the key.
    other = gnupg.with_name("o")
    other.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(other))
    assert ada.issuer
    (other / "trustlist.txt").write_text(f"{ada.issuer.id} S\n")
    gpgsm(dict(os.environ), "--import", text=ada.issuer.der)
    gpgsm(dict(os.environ), "--import", text=certificates.carried(recorded(book)))
    (other / "gpgsm.conf").write_text("disable-crl-checks\ndisable-dirmngr\n")
    repo.git("verify-commit", "ledger/main")
    (other / "trustlist.txt").write_text("")
    agent_ended()
    with pytest.raises(AssertionError, match="verify-commit"):
        repo.git("verify-commit", "ledger/main")
    subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


@needs_gpgsm
@pytest.mark.parametrize(("wrong", "good"), [(1, True), (9, False)], ids=["once", "always"])
def test_a_signature_that_nobody_could_verify_is_made_again_and_never_used(
    repo: Repo, gnupg: Path, ada: Made, tmp_path: Path, wrong: int, good: bool
) -> None:
    install(gnupg, ada)
    use(repo, ada.id)
    program = tmp_path / "gpgsm"
    counted = tmp_path / "counted"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *-bsau*) ;; *) exec gpgsm "$@" ;; esac\n'
        f"echo >> {counted}\n"
        f'[ "$(wc -l < {counted})" -gt {wrong} ] && exec gpgsm "$@"\n'
        '{ cat; echo more; } | gpgsm "$@"\n'
    )
    program.chmod(0o755)
    repo.git("config", "gpg.x509.program", str(program))
    if good:
        cms.check(PAYLOAD, GitSigner(str(repo.path)).sign(PAYLOAD), ada.der)
    else:
        with pytest.raises(BadSignature, match="not over these bytes"):
            GitSigner(str(repo.path)).sign(PAYLOAD)
    assert len(counted.read_text()) == (2 if good else gitsigner.X509_TRIES)


@needs_gpgsm
def test_what_gpgsm_makes_of_either_type_of_key_is_checked_to_the_byte(repo: Repo, gnupg: Path, ada: Made) -> None:
    curve = make("Curve", kind="ec")
    install(gnupg, ada, curve)
    for one in (ada, curve):
        use(repo, one.id)
        signer = GitSigner(str(repo.path))
        line, text = signer.public_key, signer.sign(PAYLOAD)
        assert certificates.carried(line) == one.der
        transaction.verify(PAYLOAD, text, line, "ada@gitledger.invalid")
        for payload, made, key in (
            (PAYLOAD + b"\n", text, line),
            (PAYLOAD, text, certificates.line(make("Ada", kind="ec").der)),
            (PAYLOAD, text + text, line),
            (PAYLOAD, text.replace("\n", "\r\n"), line),
        ):
            with pytest.raises(BadSignature):
                transaction.verify(payload, made, key, "ada@gitledger.invalid")
    attached = gpgsm(dict(os.environ), "--armor", "--sign", "-u", ada.id, text=PAYLOAD).decode()
    two = gpgsm(dict(os.environ), "-bsa", "-u", ada.id, "-u", curve.id, text=PAYLOAD).decode()
    weak = gpgsm(dict(os.environ), "--digest-algo", "SHA1", "-bsa", "-u", ada.id, text=PAYLOAD).decode()
    for made, why in ((attached, "encloses"), (two, "2 signers"), (weak, "digest that is not taken")):
        with pytest.raises(BadSignature, match=why):
            cms.check(PAYLOAD, made, ada.der)


@needs_gpgsm
def test_an_expired_certificate_signs_nothing_more_and_what_it_signed_counts(repo: Repo, gnupg: Path) -> None:
    old = make("Ada", until=datetime(2020, 1, 1, tzinfo=UTC))
    install(gnupg, old)
    use(repo, old.id)
    (gnupg / "gpgsm.conf").write_text("faked-system-time 20190601T000000\n")
    run(repo.path, "init", "--signing", "git")
    (gnupg / "gpgsm.conf").unlink()
    tip = again(repo).tip()
    with pytest.raises(Blocked, match="expired") as found:
        again(repo).checkpoint()
    assert "\n" not in str(found.value)
    assert again(repo).tip() == tip
    good(again(repo))
    assert verify.verify(again(repo).desk, tip, verify.Ways(full=True)).verdict == "verified"


def put_locked(gnupg: Path, one: Made, secret: bytes) -> None:
    """Import a certificate with its key, which stays behind a passphrase."""
    # Of the ciphers that gpgsm reads in a bundle this is the one that every version of it does.
    builder = serialization.PrivateFormat.PKCS12.encryption_builder().kdf_rounds(1_000)
    builder = builder.key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(hashes.SHA1())
    words = ("--pinentry-mode", "loopback", "--passphrase-fd", "0", "--import", str(gnupg / "bundle"))
    for left in reversed(range(10)):
        bundle = pkcs12.serialize_key_and_certificates(None, one.key, one.certificate, None, builder.build(secret))
        (gnupg / "bundle").write_bytes(bundle)
        try:
            gpgsm(dict(os.environ), *words, text=secret + b"\n")
        except AssertionError:
            if not left:
                raise
            continue  # of a hundred bundles it cannot read one, for its salt; another one of the same key it can
        return


@needs_gpgsm
def test_a_certificate_that_cannot_sign_is_one_line_and_begins_nothing(repo: Repo, gnupg: Path, ada: Made) -> None:
    locked = make("Locked")
    stranger = make("Stranger")
    install(gnupg, stranger, ada, make("Ada"))
    put_locked(gnupg, locked, b"secret")
    assert ada.issuer
    (gnupg / "trustlist.txt").write_text(f"{ada.issuer.id} S\n{locked.id} S relax\n")
    agent_ended()
    cases: tuple[tuple[str, type[LedgerError], str], ...] = (
        (stranger.id, NotAllowed, "does not trust its root"),
        ("0" * 40, Missing, "no such certificate"),
        ("ada@example.org", BadConfig, "several fit"),
        (locked.id, NotAllowed, "locked"),
    )
    for key, error, words in cases:
        use(repo, key)
        with pytest.raises(error, match=words) as found:
            discover.init(str(repo.path), "main", None, mode="git")
        assert "\n" not in str(found.value)
        assert not (repo.path / ".git" / "gitledger").exists()
    repo.git("config", "gpg.x509.program", "/nowhere/gpgsm")
    with pytest.raises(Missing, match="/nowhere/gpgsm"):
        discover.init(str(repo.path), "main", None, mode="git")


# ── the form ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("digest", [hashes.SHA256(), hashes.SHA384(), hashes.SHA512()])
@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_another_program_s_signature_counts_as_well(
    kind: certificate.Kind, digest: hashes.SHA256 | hashes.SHA384 | hashes.SHA512
) -> None:
    one = make("Ada", kind=kind)
    cms.check(PAYLOAD, signed(one, digest=digest), one.der)
    with pytest.raises(BadSignature):
        cms.check(PAYLOAD + b"x", signed(one, digest=digest), one.der)


def test_a_signature_of_any_other_form_is_refused(ada: Made) -> None:
    eve = make("Eve")
    blob = base64.b64decode("".join(signed(ada).splitlines()[1:-1]))
    # Eve's key under Ada's name and number: what names the certificate fits, and the key does not.
    posing = Made(ada.certificate, eve.key)
    for text, why in (
        (signed(eve), "not by the certificate"),
        (signed(posing), "not over these bytes"),
        (signed(ada, payload=PAYLOAD + b"x"), "not over these bytes"),
        (signed(ada, options=(*DETACHED, pkcs7.PKCS7Options.NoAttributes)), "signs no attributes"),
        (signed(ada, options=(pkcs7.PKCS7Options.Binary,)), "encloses"),
        (signed(ada, eve), "2 signers"),
        (armored(blob + b"\0\0"), "git takes"),
        (armored(blob + blob), "git takes"),
        (armored(blob[:-1]), "git takes"),
        (armored(b""), "git takes"),
        (signed(ada).replace("SIGNED MESSAGE", "CMS"), "git takes"),
        ("x" + signed(ada), "git takes"),
        (signed(ada) * 100, "git takes"),
        ("", "git takes"),
    ):
        with pytest.raises(BadSignature, match=why) as found:
            cms.check(PAYLOAD, text, ada.der)
        assert "\n" not in str(found.value)


def test_no_bit_of_what_is_signed_or_of_the_signature_can_be_another() -> None:
    one = make("Ada", kind="ec")
    blob = base64.b64decode("".join(signed(one).splitlines()[1:-1]))
    signer = blob.rindex(one.certificate.issuer.public_bytes())  # from here on it is the signer's own part
    accepted = []
    for at in range(len(blob)):
        for bit in (1, 0x80):
            flipped = blob[:at] + bytes([blob[at] ^ bit]) + blob[at + 1 :]
            try:
                cms.check(PAYLOAD, armored(flipped), one.der)
                accepted.append(at)
            except BadSignature:
                continue
    assert [at for at in accepted if at >= signer] == []


def test_a_key_that_proves_nothing_is_refused_before_it_signs() -> None:
    weak = make("Weak", bits=1024)
    with pytest.raises(Unsupported, match="too short"):
        cms.usable(weak.der)
    with pytest.raises(BadSignature, match="too short"):
        cms.check(PAYLOAD, signed(weak), weak.der)


def test_a_carried_certificate_is_one_and_nothing_beside_it(ada: Made) -> None:
    line = certificates.line(ada.der)
    fingerprint = ada.certificate.fingerprint(hashes.SHA256()).hex()
    assert signing.parse_public_key(line).fingerprint == fingerprint.upper()
    shown = ":".join(fingerprint[at : at + 2] for at in range(0, 64, 2))
    for text in (shown, fingerprint, fingerprint.upper()):
        assert signing.read_fingerprint(text) == fingerprint.upper()
    with pytest.raises(BadData):
        signing.read_fingerprint(shown[:-3])
    for wrong in (b"", ada.der * 2, ada.der[:-1], ada.der[1:], ada.der + b"\0", ada.pem, b"\x30\x80\0\0", b"\x30\0"):
        with pytest.raises(BadData):
            certificates.fingerprint(wrong)
    for text in ("x509", "x509 !", "x509 AAAA", f"x509  {line[5:]}", "ssh-ed25519 AAAA", line + "A" * 20_000):
        with pytest.raises(BadData):
            certificates.carried(text)


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x30\x80", b"\x30\x80\xa0\x80", b"\x30\x82\0\x10", b"\x30\x06"]))
def test_any_bytes_are_read_or_are_an_error_of_ours(data: bytes, head: bytes) -> None:
    for indefinite in (False, True):
        try:
            found = der.elements(head + data, indefinite=indefinite)
            assert b"".join(one.whole for one in found) == head + data
        except ValueError:
            pass
    with pytest.raises(BadSignature):
        cms.read(armored(head + data))
    with pytest.raises(BadData):
        certificates.fingerprint(head + data)
