"""A ledger beside a history that nobody here made up: 254 commits of a public project, anonymized, with its merges."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from gitledger import audit, authority, handovers, tasks
from gitledger.model import Divergence
from tests.ledgers import Clock, again, begin, do
from tests.sealed import Repo, new_repo

EXPORT = Path(__file__).parent / "data" / "small.fast-export.xz"


@pytest.fixture
def real(tmp_path: Path) -> Repo:
    """The real history on `main`, checked out."""
    repo = new_repo(tmp_path / "real")
    repo.git("fast-import", "--quiet", input=lzma.decompress(EXPORT.read_bytes()))
    repo.git("branch", "--quiet", "-M", "ref0", "main")
    repo.git("reset", "--quiet", "--hard", "main")
    return repo


def fork(repo: Repo) -> tuple[str, str, str]:
    """The newest merge of two lines that both had gone on, and its parents."""
    for row in repo.git("rev-list", "--merges", "--parents", "--max-parents=2", "main").splitlines():
        merge, ours, theirs = row.split()
        if repo.git("merge-base", ours, theirs) not in (ours, theirs):
            return merge, ours, theirs
    raise AssertionError("this history has no merge of two lines")


def judged(repo: Repo, clock: Clock, key: str = "") -> tuple[str, Divergence]:
    """The handover that a session which starts now would continue from, or the one of `key`, and its label."""
    book = again(repo, clock)
    view, here, trusted = book.view(), book.position(), authority.assess(book.desk, book.tip())
    found = handovers.judge(book, view, key, here, trusted) if key else handovers.selected(book, view, here, trusted)[0]
    assert found is not None
    assert found.verdict.authenticity == "verified"
    return found.key, found.verdict.divergence


def test_on_a_real_history_with_merges_every_label_is_what_git_says_and_the_ledger_stays_whole(real: Repo) -> None:
    clock = Clock()
    tip = real.head()
    old = real.git("rev-parse", "main~40")
    merge, ours, theirs = fork(real)
    users = real.git("status", "--porcelain", "--branch"), real.git("rev-parse", "main")

    book = begin(real, clock)
    task = do(book, tasks.add, "Read the history", accept=("every label is right",))
    do(book, tasks.start, task)
    book.write_handover()
    assert (real.git("status", "--porcelain", "--branch"), real.git("rev-parse", "main")) == users
    assert judged(real, clock)[1].label == "exact"

    real.git("reset", "--quiet", "--hard", old)
    _, found = judged(real, clock)
    assert (found.label, found.reason) == ("diverged", "rewound")

    second = again(real, clock).write_handover()
    real.git("reset", "--quiet", "--hard", tip)
    key, found = judged(real, clock)
    assert (key, found.label) == (second.key, "advanced")
    assert found.relation is not None
    assert found.relation.count == int(real.git("rev-list", "--count", f"{old}..{tip}"))
    assert found.relation.count > 40  # merges brought more than the first parents
    newest = real.git("rev-list", "--max-count=20", f"{old}..{tip}").splitlines()
    assert [oid for oid, _ in found.relation.commits] == newest

    real.git("reset", "--quiet", "--hard", ours)
    third = again(real, clock).write_handover()
    real.git("reset", "--quiet", "--hard", theirs)
    _, found = judged(real, clock)
    assert (found.label, found.reason) == ("diverged", "forked")
    real.git("reset", "--quiet", "--hard", merge)
    assert judged(real, clock)[1].label == "advanced"

    real.git("switch", "--quiet", "--create", "elsewhere")
    _, found = judged(real, clock, third.key)
    assert (found.label, found.reason) == ("different_context", "merged")
    real.git("switch", "--quiet", "main")

    book = again(real, clock)
    made = book.checkpoint()
    assert real.git("rev-parse", "ledger/main") == made.commit
    assert list(audit.fsck(book)) == []
    tree = real.tree("ledger/main")
    with audit.rebuilt(book, tree) as whole:
        assert (whole.tree, whole.faults) == (tree, [])
    assert real.git("fsck", "--strict", "--no-dangling", "ledger/main") == ""
