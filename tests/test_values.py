"""Values are what `dataclasses` would make of the same classes, in all that this package asks of one."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import InitVar
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gitledger
from gitledger import values
from gitledger.values import dataclass

PACKAGE = Path(gitledger.__file__).parent
NOT_HERE = (
    "gitledger.__main__",
    "gitledger.clients.hermes.",
    "gitledger.clients.nanobot.",
    "gitledger.clients.plugins",
)
"""Modules that run something, or that another program's process has to be there for."""
HOSTED = ("embedded.py", "guest.py", "hermes/", "nanobot/", "plugins/")
"""Of the clients' modules those that run in a process which has loaded `dataclasses` already."""


# ── the same classes, made in both ways ──────────────────────────────────────────────────────
def made(way: Any) -> SimpleNamespace:
    """A class of each form, made by `way`: our module, or the standard library's."""

    @way.dataclass(frozen=True, slots=True, order=True)
    class Place:
        """A place in an order."""

        lamport: int
        writer: str = "k3f9c2"

    @way.dataclass(frozen=True, slots=True)
    class Base:
        """What others are made of."""

        id: str
        said: dict[str, Any] = way.field(default_factory=dict)
        place: Place | None = None

        @property
        def short(self) -> str:
            """A part of it."""
            return self.id[:2]

    @way.dataclass(frozen=True, slots=True)
    class Sealed(Base):
        """One more field, and a word that is only looked at."""

        more: tuple[int, ...] = ()
        seal: InitVar[str] = way.field(kw_only=True)

        def __post_init__(self, seal: str) -> None:
            if seal != "clean":
                raise TypeError("not clean")

    @way.dataclass(slots=True)
    class Open:
        """One that changes."""

        count: int = 0
        rows: list[int] = way.field(default_factory=list)
        kind: str = way.field(default_factory=lambda: "any", kw_only=True)

    @way.dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    @way.dataclass(frozen=True, slots=True)
    class Own:
        """One that says itself what equal is."""

        text: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.text.lower() == other.text.lower()

        def __hash__(self) -> int:
            return hash(self.text.lower())

        def __repr__(self) -> str:
            return f"<{self.text}>"

    found = {cls.__name__: cls for cls in (Place, Base, Sealed, Open, Empty, Own)}
    for cls in found.values():
        cls.__qualname__ = cls.__name__
    return SimpleNamespace(**found)


TRIED: tuple[Callable[..., Any], ...] = (
    lambda of: of.Place(1, "a"),
    lambda of: (of.Place(1), of.Place(lamport=1, writer="b"), of.Place(writer="c", lamport=2)),
    lambda of: of.Place(),
    lambda of: of.Place(1, "a", 3),
    lambda of: of.Place(1, "a", wrong=3),
    lambda of: of.Place(1, lamport=3),
    lambda of: (
        of.Place(1) == of.Place(1),
        of.Place(1) == of.Place(2),
        of.Place(1) != of.Place(1),
        of.Place(1) == (1, "k3f9c2"),
    ),
    lambda of: (
        of.Place(1) < of.Place(2),
        of.Place(1) <= of.Place(1),
        of.Place(1) > of.Place(1, "z"),
        of.Place(2) >= of.Place(3),
    ),
    lambda of: of.Place(1) < 1,
    lambda of: of.Place(1) == of.Empty(),
    lambda of: hash(of.Place(1)) == hash(of.Place(1)) == hash((1, "k3f9c2")),
    lambda of: sorted([of.Place(2), of.Place(1, "z"), of.Place(1, "b")]),
    lambda of: max(of.Place(2), of.Place(1), key=lambda one: one),
    lambda of: {of.Place(1): "x"}[of.Place(1)],
    lambda of: setattr(of.Place(1), "lamport", 2),
    lambda of: delattr(of.Place(1), "lamport"),
    lambda of: of.Place(1).__dict__,
    lambda of: of.Place.__slots__,
    lambda of: of.Place.__match_args__,
    lambda of: of.Place.__doc__,
    lambda of: (
        of.Base("abc"),
        of.Base("abc").short,
        of.Base("x").said is of.Base("x").said,
        of.Base("x") == of.Base("x"),
    ),
    lambda of: of.Base("x", {"a": 1}, None).said,
    lambda of: hash(of.Base("x")),
    lambda of: dataclasses.asdict(of.Base("x", {"a": [of.Place(1)]}, of.Place(2))),
    lambda of: of.Sealed("abc", seal="clean"),
    lambda of: of.Sealed("abc", {}, None, (1, 2), seal="clean").short,
    lambda of: of.Sealed("abc"),
    lambda of: of.Sealed("abc", seal="not"),
    lambda of: of.Sealed("abc", {}, None, (), "clean"),
    lambda of: of.Sealed("abc", seal="clean") == of.Base("abc"),
    lambda of: (of.Sealed.__slots__, of.Sealed.__match_args__),
    lambda of: (of.Open(), of.Open(1, [2], kind="k"), of.Open() == of.Open(), of.Open().rows is of.Open().rows),
    lambda of: hash(of.Open()),
    lambda of: [one for one in [of.Open()] if not setattr(one, "count", 3)],
    lambda of: setattr(of.Open(), "other", 1),
    lambda of: of.Open(1, [], "k"),
    lambda of: of.Open.__match_args__,
    lambda of: (of.Empty(), of.Empty() == of.Empty(), hash(of.Empty()) == hash(())),
    lambda of: (of.Own("A"), of.Own("A") == of.Own("a"), {of.Own("A"): 1}[of.Own("a")]),
    lambda of: copy.copy(of.Base("x", {"a": 1})),
    lambda of: copy.deepcopy(of.Base("x", {"a": 1})),
    lambda of: copy.deepcopy(of.Open(3, [1])),
    lambda of: [name for name in ("lamport", "writer") if not isinstance(vars(of.Place)[name], int | str)],
    lambda of: [str(inspect.signature(cls)) for cls in vars(of).values()],
    lambda of: [[(f.name, f.type, f.kw_only) for f in dataclasses.fields(c)] for c in vars(of).values()],
    lambda of: dataclasses.replace(of.Base("x"), id="y"),
    lambda of: dataclasses.replace(of.Sealed("x", seal="clean"), id="y"),
    lambda of: dataclasses.replace(of.Sealed("x", seal="clean"), id="y", seal="clean"),
)


def told(way: Any, tried: Callable[..., Any]) -> str:
    """What came of it, in words: a value, or what was raised."""
    try:
        return repr(tried(made(way))).replace("made.<locals>.", "")
    except (AttributeError, TypeError, ValueError) as e:
        return f"{type(e).__name__}: {e}".replace("made.<locals>.", "")


@pytest.mark.parametrize("filled", [values.FILLED, 1, 0])
@pytest.mark.parametrize("n", range(len(TRIED)))
def test_a_value_does_what_the_standard_librarys_does(n: int, filled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "FILLED", filled)
    ours, theirs = told(values, TRIED[n]), told(dataclasses, TRIED[n])
    assert ours == theirs


def test_a_seal_is_looked_at_and_not_kept() -> None:
    one = made(values).Sealed("abc", seal="clean")
    assert one.short == "ab"
    assert not hasattr(one, "seal")


def test_replace_and_asdict_are_the_standard_librarys() -> None:
    ours = made(values)
    one = ours.Base("x", {"a": [ours.Place(1)]}, ours.Place(2))
    assert values.replace(one, id="y") == dataclasses.replace(one, id="y") != one
    assert values.asdict(one) == dataclasses.asdict(one)
    assert values.asdict(one)["said"] is not one.said
    with pytest.raises(TypeError, match="wrong"):
        values.replace(one, wrong=1)
    with pytest.raises(TypeError, match="seal"):
        values.replace(ours.Sealed("x", seal="clean"), id="y")


def test_a_field_that_no_class_may_have_is_refused_as_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="follows"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            a: int = 0
            b: str

    with pytest.raises(TypeError, match="default_factory"):

        @dataclass(frozen=True, slots=True)
        class Shared:
            rows: list[int] = []

    with pytest.raises(TypeError, match="slotted"):
        dataclass(frozen=True, slots=False)


# ── every value of the package ───────────────────────────────────────────────────────────────
def modules() -> Iterator[ModuleType]:
    """Every module of the package that can be loaded here."""
    for found in pkgutil.walk_packages(gitledger.__path__, "gitledger."):
        if not found.name.startswith(NOT_HERE):
            yield importlib.import_module(found.name)


def all_values() -> list[type]:
    """Every value that the package defines."""
    found = {cls for module in modules() for cls in vars(module).values() if isinstance(cls, type)}
    return sorted((cls for cls in found if hasattr(cls, "__values__")), key=lambda cls: (cls.__module__, cls.__name__))


def test_each_value_of_the_package_is_one_to_the_standard_library_too() -> None:
    found = all_values()
    assert len(found) > 100
    for cls in found:
        names = [field.name for field in dataclasses.fields(cls)]
        parameters = list(inspect.signature(cls).parameters)
        assert [name for name in parameters if name in names] == names, cls


def test_a_value_goes_to_another_process_and_back() -> None:
    from gitledger.model import Finding, Stamp

    for one in (Stamp(1, "k3f9c2", 2), Finding("rule", "where", "what", "mend")):
        assert pickle.loads(pickle.dumps(one)) == one


def test_every_value_is_made_in_the_one_way() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix().removeprefix("clients/")
        if where != "values.py" and not where.startswith(HOSTED):
            assert not list(taken(path.read_text(encoding="utf-8"))), f"{path}: import from gitledger.values"


def test_another_way_is_noticed() -> None:
    assert list(taken("def f():\n    from dataclasses import replace\n")) == [2]
    assert list(taken("import dataclasses\n")) == [1]
    assert not list(taken("from gitledger.values import dataclass\n"))


def taken(source: str) -> Iterator[int]:
    """The lines that import the standard library's dataclasses."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if "dataclasses" in [*names, node.module if isinstance(node, ast.ImportFrom) else ""]:
            yield node.lineno  # type: ignore[attr-defined]
