"""UNNEST: a row for each element of an ARRAY, for each entry of a MAP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.language.column_names import with_inner
from engine.model.expressions import Expression
from engine.model.types import BIGINT, STRING, Logical, Type

ELEMENTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Unnest(Operator):
    """The rows of the relation, each once for each element of the longest of its arrays, in the order of the
    elements; where another array is shorter, NULL stands for its element. NULL has no elements, and neither
    has an array that is an error, or has more elements than it may: both are counted.

    arrays: of type ARRAY or MAP, over the columns of the relation. names: of the columns that they give,
    behind those of the relation: the element of an ARRAY; the key and the value of a MAP, by its keys.
    ordinality: the name of a last column, the number of the element from 1. keeps: a row without elements
    stays, with NULL in all of these columns. elements_max: so many elements an array has at most; always the
    same, so that an answer is.
    """

    widens: ClassVar[bool] = True

    arrays: tuple[Expression, ...]
    names: tuple[str, ...]
    ordinality: str | None = None
    keeps: bool = False
    elements_max: int = ELEMENTS_MAX

    @property
    def own_columns(self) -> tuple[tuple[str, Type], ...]:
        """Names and types of the columns behind those of the relation."""
        types = (type_ for array in self.arrays for type_ in parts_of(array.type))
        own = tuple(zip(self.names, types, strict=True))
        return own if self.ordinality is None else (*own, (self.ordinality, BIGINT))

    def columns_above(self, below: Sequence[tuple[str, Type]]) -> Sequence[tuple[str, Type]]:
        return with_inner(below, self.own_columns)

    def expressions(self) -> tuple[Expression, ...]:
        return self.arrays

    def with_expressions(self, change: Callable[[Expression], Expression]) -> Unnest:
        """With others in the place of what it evaluates."""
        return replace(self, arrays=tuple(map(change, self.arrays)))


def parts_of(type_: Type) -> Iterator[Type]:
    """The types of the columns that an ARRAY or a MAP gives."""
    assert type_.element is not None
    if type_.logical is Logical.MAP:
        yield STRING
    yield type_.element
