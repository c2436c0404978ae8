"""Equality in which NULL equals NULL, as pairs of keys of a join."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engine.model.expressions import Expression, Function, IsNull, Literal, Value
from engine.model.types import Kind

_INSTEAD: dict[Kind, Value] = {
    Kind.BOOLEAN: False,
    Kind.DOUBLE: 0.0,
    Kind.DECIMAL: Decimal(0),
    Kind.STRING: "",
}
"""What stands for NULL where both are; of other types 0."""


def equal_keys(one: Expression, other: Expression) -> Iterator[tuple[Expression, Expression]]:
    """Keys that are equal where the two expressions, of one type, are or both are NULL."""
    yield IsNull(one), IsNull(other)
    if one.type.kind is not Kind.NULL:
        instead = Literal(_INSTEAD.get(one.type.kind, 0), one.type)
        yield (
            Function("COALESCE", (one, instead), one.type),
            Function("COALESCE", (other, instead), one.type),
        )
