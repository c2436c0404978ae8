"""Relations made of Python rows, and back: None is NULL, values are as :mod:`engine.model.types` says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engine.model.batch import Column
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)
from engine.operators.relation import Relation

PRICE = decimal(9, 2)
TYPES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, PRICE, STRING, DATE, TIMESTAMP)

_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: st.sampled_from([0, 1, 2, -1, 2**31 - 1, -(2**31)]),
    Kind.BIGINT: st.sampled_from([0, 1, 7, -1, 2**40, 2**63 - 1, -(2**63)])
    | st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.sampled_from([0.0, -0.0, 1.5, -1.5, 0.1, math.nan, math.inf, -math.inf, 1e300])
    | st.floats(-1e6, 1e6),
    Kind.STRING: st.sampled_from(["", "a", "b", "ab", "Z", "é", "\U0001f600", "\uffff"]),
    Kind.DATE: st.integers(-3, 3),
    Kind.TIMESTAMP: st.integers(-2, 2) | st.just(1_700_000_000_000),
}


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Few values, so that many are alike; the odd ones among them; None."""
    if type_.kind is Kind.DECIMAL:
        most = 10**type_.precision - 1
        unscaled = st.sampled_from([0, 100, 150, 200, most]) | st.integers(-most, most)
        return st.none() | unscaled.map(lambda value: Decimal(value).scaleb(-type_.scale))
    return st.none() | _VALUES[type_.kind]


@st.composite
def tables(draw: st.DrawFn, types: Sequence[Type], most: int = 30) -> list[tuple[Any, ...]]:
    """Rows of these types."""
    return draw(st.lists(st.tuples(*(values(type_) for type_ in types)), max_size=most))


def column(type_: Type, given: Sequence[Any]) -> Column:
    """One column; what stands at NULLs is no value of the others."""
    valid = np.array([value is not None for value in given], np.bool_)
    mask = None if valid.all() else valid
    if type_.kind is Kind.STRING:
        known = dict.fromkeys(["unused", *(value for value in given if value is not None)])
        code_of = {value: code for code, value in enumerate(known)}
        codes = [code_of[value] if value is not None else 0 for value in given]
        return Column(type_, np.array(codes, np.int32), mask, pa.array(list(known), pa.string()))
    plain = [scaled(value, type_) if value is not None else True for value in given]
    return Column(type_, np.array(plain, type_.dtype), mask)


def scaled(value: Any, type_: Type) -> Any:
    return int(value.scaleb(type_.scale)) if type_.kind is Kind.DECIMAL else value


def relation(
    types: Sequence[Type], rows: Sequence[Sequence[Any]], ordinals: Sequence[int] | None = None
) -> Relation:
    """A relation of these rows; ordinals 0, 1, 2, ... if none are given."""
    columns = [column(type_, [row[place] for row in rows]) for place, type_ in enumerate(types)]
    number = None if ordinals is None else lambda: np.array(ordinals, np.int64)
    return Relation(columns, len(rows), number)


def python(column: Column) -> list[Any]:
    """The values of a column, read without Arrow where that is possible."""
    type_, found = column.type, []
    for row, value in enumerate(column.values.tolist()):
        if column.valid is not None and not column.valid[row]:
            found.append(None)
        elif type_.kind is Kind.STRING:
            assert column.dictionary is not None
            found.append(column.dictionary[value].as_py())
        elif type_.kind is Kind.DECIMAL:
            found.append(Decimal(value).scaleb(-type_.scale))
        else:
            found.append(value)
    return found


def rows_of(given: Relation) -> list[tuple[Any, ...]]:
    """The rows of a relation."""
    columns = [python(column) for column in given.columns]
    assert all(len(column) == len(given) for column in columns)
    return [tuple(column[row] for column in columns) for row in range(len(given))]


def exactly(value: Any) -> Any:
    """Equal only where two values are the same to the bit, all NaNs being one."""
    if isinstance(value, list | tuple):
        return tuple(exactly(each) for each in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value.hex()
    return (type(value).__name__, value)
