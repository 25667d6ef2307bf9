"""The figures of docs/secrets.md: `python -m tests.secrets_figures` prints them, and a test holds the page to them."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from gitledger.redact import redact
from tests.data import secrets_development, secrets_report
from tests.secrets_made import leaks

BEGIN = "<!-- Generated: python -m tests.secrets_figures -->"
END = "<!-- End of what is generated -->"


def figures() -> str:
    """The table of both sets by the built-in rules."""
    rows = [
        BEGIN,
        "",
        "| set | secrets | taken out | recall | look-alikes | wrongly taken out |",
        "|---|---|---|---|---|---|",
        _row("report", secrets_report),
        _row("development", secrets_development),
        "",
        END,
    ]
    return "\n".join(rows)


def _row(name: str, rows: ModuleType) -> str:
    secrets: Sequence[tuple[str, str, str]] = rows.SECRETS
    gone = sum(not leaks(redact(text.replace("{}", secret)), secret) for _, text, secret in secrets)
    wrong = sum(redact(text) != text for text in rows.LOOK_ALIKES)
    share = f"{100 * gone / len(secrets):.0f} %"
    return f"| {name} | {len(secrets)} | {gone} | {share} | {len(rows.LOOK_ALIKES)} | {wrong} |"


if __name__ == "__main__":
    print(figures())
