"""Every attack of the table is named, by its rule and its commit, and its honest neighbour passes."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitledger import entries, transaction
from gitledger.errors import Blocked, NotAllowed
from tests import attack_table, attacks, attacks_git
from tests.attacks import Attack, Field
from tests.attacks_git import GitAttack
from tests.ledgers import do

_grounds: list[Field] = []


@pytest.fixture
def field(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Field:
    """A field of this test's own."""
    if not _grounds:
        _grounds.append(attacks.ground(tmp_path_factory.mktemp("ground")))
    return attacks.copy(_grounds[0], tmp_path / "repo")


@pytest.fixture(scope="module")
def gnupg() -> Iterator[Path]:
    """A GnuPG home for all tests here, of a path that is short enough for its agent's socket."""
    home = Path(tempfile.mkdtemp(prefix="gl-"))
    yield home
    if shutil.which("gpgconf"):
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)
    shutil.rmtree(home)


_made: dict[attacks_git.Format, tuple[str, str]] = {}
_git_grounds: dict[str, Field] = {}
_passed: set[tuple[str, Callable[..., str]]] = set()


@pytest.mark.parametrize("attack", attacks_git.ROWS, ids=lambda attack: attack.name)
def test_an_attack_on_a_key_of_gits_own_is_named_and_its_honest_neighbour_passes(
    field: Field,
    gnupg: Path,
    attack: GitAttack,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not attacks_git.here(attack.format):
        pytest.skip(f"{attacks_git.PROGRAMS[attack.format][0]} is not here: ATTACKS BY SUCH KEYS ARE NOT TESTED")
    monkeypatch.setenv("GNUPGHOME", str(gnupg))
    if not _made:
        _made.update(attacks_git.furnish(gnupg))
    if attack.format not in _git_grounds:
        place = tmp_path_factory.mktemp(attack.format) / "repo"
        _git_grounds[attack.format] = attacks_git.ground(field, place, attack.format, _made[attack.format])
    named_and_beside(attacks.copy(_git_grounds[attack.format], tmp_path / "git"), attack, tmp_path)


@pytest.mark.parametrize("attack", attacks.ROWS, ids=lambda attack: attack.name)
def test_an_attack_is_named_and_its_honest_neighbour_passes(field: Field, attack: Attack, tmp_path: Path) -> None:
    named_and_beside(field, attack, tmp_path)


def named_and_beside(field: Field, attack: Attack, tmp_path: Path) -> None:
    neighbour = getattr(attack, "format", ""), attack.honest
    if neighbour not in _passed:  # many attacks have the same one, on the same ground
        beside = attacks.copy(field, tmp_path / "honest")
        attack.honest(beside)
        assert beside.verify().findings == ()
        assert beside.verify(full=True).verdict == "verified"
        _passed.add(neighbour)

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
    with pytest.raises(NotAllowed, match=r"order of events .* is at its end.*gitledger verify"):
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
    for attack in attack_table.ROWS:
        assert f"`{attack.rule}`" in text.split(attack_table.BEGIN)[0], attack.rule
