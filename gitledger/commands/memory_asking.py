"""What the memory commands share: how the proposer is asked, and how findings are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gitledger.commands import warn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitledger.ledger import Ledger
    from gitledger.memory import Loaded
    from gitledger.memorycheck import Edit
    from gitledger.model import Finding

file_option = click.option(
    "--file", "file", default="", metavar="PATH", help="Which memory file, where several are configured."
)


def asked(ledger: Ledger, loaded: Loaded) -> tuple[bytes, tuple[Edit, ...]]:
    """What the proposer says of a file, and the edits that the validator made of it."""
    from gitledger import capture, memory, memoryprompt, proposer
    from gitledger.errors import Missing

    config = ledger.desk.config.proposer
    if not config.command:
        raise Missing(
            "no proposer is configured; name one by: gitledger config set proposer.command 'COMMAND WORDS', or give a "
            "change set to: gitledger memory propose --from FILE"
        )
    held = memory.companions(ledger, loaded.target)

    def prompt(errors: tuple[str, ...]) -> str:
        return memoryprompt.prompt(loaded.target.name, loaded.text, loaded.sha256, held, errors)

    def accept(data: bytes) -> tuple[bytes, tuple[Edit, ...]]:
        return data, memory.accepted(ledger, loaded, data)

    cwd = ledger.gitdir.top or ledger.gitdir.common
    until = float(config.deadline)
    got = proposer.propose(config.command, prompt, accept, cwd=cwd, deadline=until, key="source_sha256")
    if got.value is None:
        if got.heard.strip():
            capture.log(ledger.gitdir.common, f"memory: the proposer said: {got.heard}")
        raise proposer.NotProposed(got, f"{loaded.target.name} is as it was")
    return got.value


def tell(findings: Iterable[Finding]) -> None:
    """Warn of each finding, in one line."""
    for finding in findings:
        warn(f"{finding.where}: {finding.what}; {finding.mend}")
