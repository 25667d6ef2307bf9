"""What a module says of types as it is loaded, without `typing`, which takes a quarter of Python's own start to load.

Annotations are not evaluated, so nothing stands behind most of these words. Where one is, by pydantic, `Annotated` and
`Literal` are those of `typing`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated as Annotated
    from typing import Any as Any
    from typing import Literal as Literal
    from typing import Protocol as Protocol
    from typing import TypeAlias as TypeAlias
    from typing import TypeVar as TypeVar
    from typing import cast as cast
else:
    Any = Protocol = TypeAlias = object

    def TypeVar(name):  # noqa: N802 (typing's word)
        """A name in annotations."""

    def cast(kind, value):
        """`value`, which is of that kind."""
        return value

    class Annotated:
        """A type with what bounds it."""

        def __class_getitem__(cls, said):
            from typing import Annotated

            return Annotated[said]

    class Literal:
        """One of a few values."""

        def __class_getitem__(cls, said):
            from typing import Literal

            return Literal[said]
