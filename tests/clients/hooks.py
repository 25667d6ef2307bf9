"""How the suite puts a client's hooks in place: as a person does."""

from __future__ import annotations

from tests.clients.lab import Lab


def install_hooks(lab: Lab, name: str) -> None:
    """Install the client's hooks in this user's settings, beside what is there."""
    lab.ledger("hooks", "install", "--client", name, "--user")
