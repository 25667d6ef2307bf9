"""Frozen, slotted values as `dataclasses` has them, defined in a twentieth of its time.

The standard library writes six methods of each class as source and compiles them as the class is defined, 0.65 ms for
each class; a command loads up to ninety and makes values of half of them. Here a method is written when it is first
looked at, and setting a frozen one's field is a call of the slot's own. What is asked of a class is the same, and type
checkers are told it is the same; `dataclasses` and what builds on it (pydantic, `copy`, `pickle`) find what they look
for. What no class of ours asks for is refused, and a test holds both sides against each other.
"""

from __future__ import annotations

TYPE_CHECKING = False  # capture loads what loads this, and may not pay for `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from dataclasses import InitVar as InitVar
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Any
else:

    class InitVar:
        """The type of a parameter that only `__post_init__` is given."""

        def __class_getitem__(cls, item):
            return cls

    def dataclass(*, frozen=False, slots, order=False):
        """A decorator that makes a slotted value of a class, as `dataclasses.dataclass(slots=True)` does."""
        if not slots:
            raise TypeError("every value of ours is slotted")
        return lambda cls: _made(cls, frozen, order)

    def field(*, default_factory=None, kw_only=False):
        """A field whose value is made anew for each instance, or that is given by its name alone."""
        return _Field(factory=default_factory, kw_only=kw_only)

    def replace(one, /, **changes):
        """The same value with other fields."""
        for said in _fields(type(one)):
            if not said.passing and said.name not in changes:
                changes[said.name] = getattr(one, said.name)
        return one.__class__(**changes)

    def asdict(one):
        """A value's fields by name, as are those of values in it; lists, tuples and dicts are copied."""
        return {said.name: _plain(getattr(one, said.name)) for said in _fields(type(one)) if not said.passing}


class _Absent:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"  # as a signature of the standard library's shows it


_NONE: Any = _Absent()
FILLED = 12
"""Values of a class that are filled field by field before its `__init__` is written."""


class _Field:
    """One field: its default, or what makes one; `passing` for one that only `__post_init__` is given."""

    __slots__ = ("default", "factory", "kw_only", "name", "passing", "type")

    def __init__(self, default: Any = _NONE, factory: Callable[[], Any] | None = None, kw_only: bool = False) -> None:
        self.name = self.type = ""
        self.default, self.factory, self.kw_only, self.passing = default, factory, kw_only, False

    @property
    def optional(self) -> bool:
        """True for one that need not be given."""
        return self.default is not _NONE or self.factory is not None


class _Later:
    """A part of a class that is made when it is first looked at, and then stands there itself."""

    __slots__ = ("cls", "make", "name")

    def __init__(self, name: str, make: Callable[[type], Any]) -> None:
        self.name, self.make = name, make
        self.cls: Any = None

    def __get__(self, one: Any, cls: type) -> Any:
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        if isinstance(one, type):  # `inspect` asks so since Python 3.13, as if the class were a value of its own
            return made.__get__(one)
        return getattr(cls if one is None else one, self.name)


class _Init(_Later):
    """`__init__`, which is written for the value after the first few: compiling one takes as long as filling thirty."""

    __slots__ = ("left",)

    def __init__(self, frozen: bool) -> None:
        super().__init__("__init__", lambda cls: _init(cls, frozen))
        self.left = FILLED

    def __get__(self, one: Any, cls: type) -> Any:
        self.left -= 1
        if one is None or isinstance(one, type) or self.left < 0:
            return super().__get__(one, cls)
        return lambda *given, **named: self._fill(one, given, named)

    def _fill(self, one: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        said = _fields(self.cls)
        by_name = dict(zip(self.cls.__match_args__, given, strict=False)) | named
        missing = any(not one.optional for one in said if one.name not in by_name)
        if missing or len(by_name) != len(given) + len(named) or by_name.keys() - {one.name for one in said}:
            self.make(self.cls)(one, *given, **named)  # says what is wrong
            return
        passed = []
        for here in said:
            value = by_name.get(here.name, here.default)
            if value is _NONE and here.factory is not None:
                value = here.factory()
            if here.passing:
                passed.append(value)
            else:
                getattr(self.cls, here.name).__set__(one, value)
        if hasattr(one, "__post_init__"):
            one.__post_init__(*passed)


def _made(cls: type, frozen: bool, order: bool) -> type:
    """`cls` once more, as a value."""
    own = dict(vars(cls))
    found = {said.name: said for base in reversed(cls.__mro__[1:]) for said in _fields(base)}
    mine = list(_declared(cls, own))
    found.update((said.name, said) for said in mine)
    said = (*(one for one in found.values() if not one.kw_only), *(one for one in found.values() if one.kw_only))
    optional = [one.optional for one in said if not one.kw_only]
    if optional != sorted(optional):
        raise TypeError(f"a field of {cls.__qualname__} that must be given follows one that need not be")
    for name in ("__dict__", "__weakref__", *(one.name for one in mine)):
        own.pop(name, None)
    own["__slots__"] = tuple(one.name for one in mine if not one.passing)
    own["__values__"] = said
    own["__match_args__"] = tuple(one.name for one in said if not one.kw_only)
    signs = _SIGNS if order else _SIGNS[:1]
    parts = [("__dataclass_fields__", _standard), *((word, _compared(word, sign)) for word, sign in signs)]
    parts += [("__hash__", _hash)] if frozen else []
    later = [_Later(name, make) for name, make in parts if name not in own]
    later += [_Init(frozen)] if "__init__" not in own else []
    own.update((one.name, one) for one in later)
    if not frozen:
        own.setdefault("__hash__", None)
    else:
        own |= {"__setattr__": _set, "__delattr__": _delete}
    for name, part in (("__repr__", _repr), ("__getstate__", _getstate), ("__setstate__", _setstate)):
        own.setdefault(name, part)
    made = type(cls)(cls.__name__, cls.__bases__, own)
    made.__qualname__ = cls.__qualname__
    for one in later:
        one.cls = made
    return made


def _declared(cls: type, own: dict[str, Any]) -> Iterator[_Field]:
    """The fields that the class itself declares, in order."""
    for name, kind in cls.__annotations__.items():
        default = own.get(name, _NONE)
        said = default if isinstance(default, _Field) else _Field(default)
        if not _is_hashed(said.default.__class__):
            raise TypeError(f"every {cls.__qualname__} would share its {name}; give it a default_factory")
        said.name, said.type = name, kind
        said.passing = kind.startswith("InitVar[")
        yield said


def _is_hashed(cls: type) -> bool:
    # without looking at it, which would have it written
    return next(vars(base)["__hash__"] for base in cls.__mro__ if "__hash__" in vars(base)) is not None


def _fields(cls: type) -> tuple[_Field, ...]:
    found: tuple[_Field, ...] = getattr(cls, "__values__", ())
    return found


def _plain(value: Any) -> Any:
    if _fields(type(value)):
        return asdict(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {_plain(key): _plain(held) for key, held in value.items()}
    return value


# ── methods that are written when they are needed ────────────────────────────────────────────
_SIGNS = (("__eq__", "=="), ("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">="))


def _written(cls: type, name: str, head: str, body: list[str], given: dict[str, Any]) -> Any:
    source = f"def {name}({head}):\n " + "\n ".join(body)
    exec(compile(source, f"<{cls.__module__}.{cls.__qualname__}.{name}>", "exec"), given)  # noqa: S102 (our own words)
    made = given[name]
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    made.__module__ = cls.__module__
    return made


def _init(cls: type, frozen: bool) -> Any:
    given: dict[str, Any] = {"_NONE": _NONE}
    head, body, starred = ["self"], [], False
    for said in _fields(cls):
        name = said.name
        if said.kw_only and not starred:
            head.append("*")
            starred = True
        value = name
        if said.factory is not None:
            given[f"_make_{name}"] = said.factory
            value = f"_make_{name}() if {name} is _NONE else {name}"
        if said.optional:
            given[f"_else_{name}"] = said.default
        head.append(f"{name}=_else_{name}" if said.optional else name)
        if said.passing:
            continue
        if frozen:
            given[f"_set_{name}"] = getattr(cls, name).__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(f"self.__post_init__({', '.join(said.name for said in _fields(cls) if said.passing)})")
    made = _written(cls, "__init__", ", ".join(head), body or ["pass"], given)
    made.__annotations__ = {said.name: said.type for said in _fields(cls)} | {"return": None}
    return made


def _all_of(cls: type, of: str) -> str:
    return f"({''.join(f'{of}.{said.name}, ' for said in _fields(cls) if not said.passing)})"


def _compared(word: str, sign: str) -> Callable[[type], Any]:
    def make(cls: type) -> Any:
        both = f"{_all_of(cls, 'self')} {sign} {_all_of(cls, 'other')}"
        return _written(
            cls, word, "self, other", [f"return {both} if other.__class__ is self.__class__ else NotImplemented"], {}
        )

    return make


def _hash(cls: type) -> Any:
    return _written(cls, "__hash__", "self", [f"return hash({_all_of(cls, 'self')})"], {})


def _standard(cls: type) -> Any:
    """What `dataclasses` itself would know of the class."""
    import dataclasses

    standard: Any = dataclasses
    known: dict[str, Any] = {"__annotations__": {}}
    for said in _fields(cls):
        known["__annotations__"][said.name] = standard.InitVar[said.type] if said.passing else said.type
        if said.factory is not None:
            known[said.name] = dataclasses.field(default_factory=said.factory, kw_only=said.kw_only)
        elif said.default is not _NONE or said.kw_only:
            default = {} if said.default is _NONE else {"default": said.default}
            known[said.name] = dataclasses.field(**default, kw_only=said.kw_only)
    twin = type(cls.__name__, (), known | {"__module__": cls.__module__, "__doc__": ""})
    return vars(dataclasses.dataclass(init=False, repr=False, eq=False)(twin))["__dataclass_fields__"]


# ── methods that every value shares ──────────────────────────────────────────────────────────
def _set(self: Any, name: str, value: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: Any) -> str:
    shown = (f"{said.name}={getattr(self, said.name)!r}" for said in _fields(type(self)) if not said.passing)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, said.name) for said in _fields(type(self)) if not said.passing]


def _setstate(self: Any, state: list[Any]) -> None:
    for said, value in zip((one for one in _fields(type(self)) if not one.passing), state, strict=True):
        object.__setattr__(self, said.name, value)
