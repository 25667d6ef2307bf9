"""The attack table of docs/security.md, from the tests' own rows: `python -m tests.attack_table` writes it there."""

from __future__ import annotations

from pathlib import Path

from tests import attacks, attacks_git

DOCUMENT = Path(__file__).parent.parent / "docs" / "security.md"
ROWS = (*attacks.ROWS, *attacks_git.ROWS)
BEGIN, END = "<!-- attacks: generated -->\n", "<!-- /attacks -->\n"


def table() -> str:
    """The rows as Markdown."""
    lines = ["| attack | rule that names it | verdict | honest neighbour that passes |", "|---|---|---|---|"]
    for row in ROWS:
        verdict = row.verdict + (" (with `--full`)" if row.full else "")
        lines.append(f"| {row.what} | `{row.rule}` | {verdict} | {row.near} |")
    return "\n".join(lines) + "\n"


def document(text: str) -> str:
    """The document's text with the table of now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{table()}{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text()))
