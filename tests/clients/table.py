"""`python -m tests.clients.table > docs/clients/results.md`: what the suite's last results show, client by client."""

from __future__ import annotations

import sys
from typing import Any

from tests.clients import agents, install, moments, results

HEAD = """\
# What real clients do

Made by `python -m tests.clients.table` from the last runs of `./dev clients all`: the real clients, headless, on model
servers of our own on loopback. Each cell is proved in the request that the model server received, and in the ledger.

- **start**: the briefing reaches the model whole and once, and again where a session goes on; with Claude Code also
  after `/clear`, in a fork, by a project's settings and by a user's, in a linked work tree whose path has spaces.
- **turn**: prompt, answer and the command that ran are journalled, our own words are not.
- **compaction**: a checkpoint stands before the summary is asked for, and afterwards the model reads the next action.
- **compaction refused**: the client does not compact with gitledger gone, crashing, past its deadline, on a full disk,
  with the lock held, the ledger broken or another key than the ledger knows; what a person lets through happens, once
  where that could be tried again, and the next briefing says `CHECKPOINT MISSING`.
- **end**: a handover is left and the session is closed; two windows of Claude Code do not end each other.
- **recovered**: killed in the middle of a turn, the next start has its prompt and a handover; so it is when Claude Code
  got SIGINT, SIGTERM or SIGHUP.
- **teammate**: in a clone without a ledger nothing is written and nothing is said, with gitledger and without.

"""
WITHIN = """\
The real agent in its own virtual environment, on a model server on loopback; after each step the ledger is looked at,
and what the next request held. Each row names its tests, in their own words.
"""
COLUMNS = ("start", "turn", "compaction", "compaction refused", "end", "recovered", "teammate")
WORDS = {"passed": "yes", "failed": "**no**", "skipped": "–", "": "not run"}


def cell(name: str, outcomes: dict[str, Any], column: str) -> str:
    """What is said of one client in one column."""
    agent = agents.named(name)
    if column.startswith("compaction") and not agent.compacts:
        return "not driven: headless none is announced"
    if column == "compaction refused" and not agent.refuses:
        return "the client cannot"
    if column == "end" and not agent.ends:
        return "the client tells none"
    said = WORDS[str(outcomes.get(column, ""))]
    if said == "yes" and column in ("turn", "recovered"):
        untold = sorted(agent.untold if column == "turn" else agent.untold & {"prompt"})
        said += f", but no hook is told the {' or the '.join(untold)}" if untold else ""
    return said


def table(kept: dict[str, Any]) -> str:
    """The page."""
    rows = [["client", "version", *COLUMNS], ["---"] * (len(COLUMNS) + 2)]
    for name in agents.MODULES:
        outcomes = kept.get(name, {})
        version = str(outcomes.get("version", install.PACKAGES[name].version))
        rows.append([name, version, *(cell(name, outcomes, column) for column in COLUMNS)])
    return HEAD + _lines(rows) + "".join(_within(client, kept.get(client, {})) for client in results.WITHIN)


def _within(client: str, outcomes: dict[str, Any]) -> str:
    """The section of a client that gitledger runs within."""
    proofs = outcomes.get(results.PROOFS, {})
    rows = [["moment", "what is shown", "last run"], ["---"] * 3]
    for moment, tests in moments.rows(client):
        said = [WORDS[str(proofs.get(test, ""))] for test in tests]
        told = said[0] if len(set(said)) == 1 else ", ".join(said)
        shown = "; ".join(moments.sentence(test) for test in tests)
        rows.append([moment, "by its name" if shown == moment else shown, told])
    version = outcomes.get("version", install.PACKAGES[client].version)
    return f"\n## {client} {version}\n\n{WITHIN}\n{_lines(rows)}"


def _lines(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(table(results.read()))
