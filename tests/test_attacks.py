"""Every attack of the table is named, by its rule and its commit, and its honest neighbour passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitledger import entries, transaction
from gitledger.errors import Blocked, NotAllowed
from tests import attack_table, attacks
from tests.attacks import Attack, Field
from tests.ledgers import do

_grounds: list[Field] = []


@pytest.fixture
def field(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Field:
    """A field of this test's own."""
    if not _grounds:
        _grounds.append(attacks.ground(tmp_path_factory.mktemp("ground")))
    return attacks.copy(_grounds[0], tmp_path / "repo")


@pytest.mark.parametrize("attack", attacks.ROWS, ids=lambda attack: attack.name)
def test_an_attack_is_named_and_its_honest_neighbour_passes(field: Field, attack: Attack, tmp_path: Path) -> None:
    beside = attacks.copy(field, tmp_path / "honest")
    attack.honest(beside)
    assert beside.verify().findings == ()
    assert beside.verify(full=True).verdict == "verified"

    named = attack.does(field)
    found = field.verify(full=attack.full)
    assert found.verdict == attack.verdict
    assert (attack.rule, named) in [(fault.rule, fault.commit) for fault in found.findings]
    for fault in found.findings:
        assert fault.what
        assert fault.mend
    assert field.verify(full=attack.full).verdict == attack.verdict, "a bad verdict is never remembered"


def test_an_end_of_the_order_of_events_loses_no_word_of_an_honest_writer(field: Field) -> None:
    before = field.tip
    attacks.last_place(field)
    note = do(field.a, entries.note, "Said after the attack", None)
    assert note is not None
    assert field.a.view().need(note).text("title") == "Said after the attack"
    with pytest.raises(NotAllowed, match="order of events .* is at its end.*gitledger verify"):
        field.a.commit(lambda view: transaction.Plan("checkpoint", (field.draft("turn"),), "Said"))
    with pytest.raises(Blocked):
        field.a.checkpoint()
    assert field.a.tip() == field.tip

    field.point(before)
    field.a.checkpoint()
    assert field.verify(full=True).findings == ()
    assert field.a.view().need(note).text("title") == "Said after the attack"


def test_the_table_in_the_documentation_is_that_of_the_tests() -> None:
    text = attack_table.DOCUMENT.read_text()
    assert attack_table.BEGIN in text
    assert text == attack_table.document(text), "run: python -m tests.attack_table"


def test_every_rule_of_the_documentation_is_one_that_verification_has() -> None:
    text = attack_table.DOCUMENT.read_text()
    for attack in attacks.ROWS:
        assert f"`{attack.rule}`" in text.split(attack_table.BEGIN)[0], attack.rule
