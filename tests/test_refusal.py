"""Words that git, ssh and hosts say, and the one line that they become."""

from __future__ import annotations

import pytest

from gitledger import refusal
from gitledger.errors import CannotWrite, IOFailed, LedgerError, Missing, NotAllowed, TryAgain

SAID: tuple[tuple[str, type[LedgerError], str], ...] = (
    ("fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate", NotAllowed, "who it is"),
    ("fatal: unable to access 'https://x/': The requested URL returned error: 403", NotAllowed, "let this user in"),
    ("fatal: unable to access 'https://x/': The requested URL returned error: 404", Missing, "no git repository"),
    ("error: RPC failed; HTTP 503 curl 22\nfatal: the remote end hung up unexpectedly", TryAgain, "be reached"),
    ("fatal: unable to access 'https://x/': Could not resolve host: x", TryAgain, "be reached"),
    ("remote: Repository not found.\nfatal: repository 'https://x/' not found", Missing, "no git repository"),
    (
        "ERROR: Permission to a/b.git denied to ada.\nfatal: Could not read from remote repository.",
        NotAllowed,
        "denied to ada",
    ),
    ("ERROR: The key you are authenticating with has been marked as read only. write access", NotAllowed, "read only"),
    (
        "git@x: Permission denied (publickey,password).\nfatal: Could not read from remote repository.",
        NotAllowed,
        "ssh-add",
    ),
    ("sign_and_send_pubkey: signing failed for ED25519: agent refused operation", NotAllowed, "ssh-add"),
    ("fatal: Authentication failed for 'https://x/'", NotAllowed, "credential helper"),
    ("error: remote unpack failed: unable to create temporary object directory", CannotWrite, "by this user"),
    ("fatal: write error: No space left on device", IOFailed, "no space left"),
    ("error: object 0123: missingEmail: invalid author\nfatal: fsck error in packed object", IOFailed, "git refuses"),
    (
        "ssh: connect to host x port 22: Connection refused\nfatal: Could not read from remote repository.",
        TryAgain,
        "be reached",
    ),
    ("fatal: something new", IOFailed, "fatal: something new"),
)


@pytest.mark.parametrize(("said", "kind", "words"), SAID)
def test_what_is_said_becomes_one_line_with_the_next_step(said: str, kind: type[LedgerError], words: str) -> None:
    made = refusal.of(said, "origin", "fetch")
    assert type(made) is kind, made
    assert words in str(made)
    assert "; " in str(made)
    assert "\n" not in str(made)


def test_numbers_of_objects_are_no_status_of_a_server() -> None:
    counted = "remote: Counting objects: 100% (403/403), done.\rReceiving objects: 100% (500/500)\n"
    assert type(refusal.of(f"{counted}fatal: something new", "origin", "fetch")) is IOFailed


def test_a_lost_race_is_told_from_a_refusal() -> None:
    assert refusal.moved("!\t1:2\t[rejected] (fetch first)")
    assert refusal.moved("!\t1:2\t[remote rejected] (failed to update ref)")
    assert refusal.moved("!\t1:2\t[remote rejected] (incorrect old value provided)")
    assert not refusal.moved("!\t1:2\t[remote rejected] (pre-receive hook declined)")
    assert not refusal.moved("!\t1:2\t[remote rejected] (protected branch hook declined)")


SECRET = "correct-horse"


@pytest.mark.parametrize(
    "address",
    [
        f"https://ada:{SECRET}@x.example/a.git",
        f"https://{SECRET}@x.example/a.git",
        f"https://x.example/a.git?token={SECRET}",
        f"https://:{SECRET}@x.example/a.git",
        f"ssh://ada:{SECRET}@x.example/a.git",
        f"git://ada:{SECRET}@x.example/a.git",
    ],
)
def test_an_address_is_shown_without_what_lets_one_in(address: str) -> None:
    made = str(refusal.of(f"fatal: unable to access '{address}': no", refusal.bare(address), "push"))
    assert SECRET not in made
    assert "x.example/a.git" in made


def test_the_user_of_an_ssh_address_is_shown() -> None:
    assert refusal.bare("ssh://git@x.example/a.git and git@x.example:a.git") == (
        "ssh://git@x.example/a.git and git@x.example:a.git"
    )
