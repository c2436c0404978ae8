"""Column types and how their values are held.

| kind      | numpy dtype            | a value in Python (``Literal.value``, reference) | Arrow            |
|-----------|------------------------|--------------------------------------------------|------------------|
| BOOLEAN   | bool                   | bool                                             | bool             |
| INTEGER   | int32                  | int                                              | int32            |
| BIGINT    | int64                  | int                                              | int64            |
| DOUBLE    | float64                | float (NaN sorts above infinity, equals itself)  | double           |
| DECIMAL   | int64, scaled          | decimal.Decimal with ``scale`` digits            | decimal128(p, s) |
| STRING    | int32 codes + values   | str                                              | utf8             |
| DATE      | int32, days since 1970 | int                                              | date32           |
| TIMESTAMP | int64, ms since 1970   | int                                              | timestamp[ms]    |
| INTERVAL  | int64, ms              | int                                              | int64            |
| TIME      | int64, ms of the day   | int                                              | int64            |
| ARRAY     | int32 codes + values   | tuple of values                                  | list             |

An ARRAY is what ARRAY_AGG gives and nothing else: it stands in answers, and is not compared, grouped or
computed with.
An INTERVAL is a length of time, a TIME a time of the day, inside queries alone: in an answer they are a
BIGINT and a STRING.
A DECIMAL has at most 18 digits, so that it fits 64 bits. Strings compare by Unicode code point.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum

import numpy as np
import pyarrow as pa

DECIMAL_DIGITS_MAX = 18

DAY_MIN = date.min.toordinal() - date(1970, 1, 1).toordinal()
DAY_MAX = date.max.toordinal() - date(1970, 1, 1).toordinal()
TIMESTAMP_MS_MIN = DAY_MIN * 86_400_000
TIMESTAMP_MS_MAX = (DAY_MAX + 1) * 86_400_000 - 1
"""Dates and timestamps lie in the years 1 to 9999, as in Python, pandas and Arrow's text forms."""


class Kind(Enum):
    """The families of types a column can have; NULL is the type of a bare NULL literal alone."""

    BOOLEAN = "BOOLEAN"
    INTEGER = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    TIME = "TIME"
    ARRAY = "ARRAY"
    NULL = "NULL"

    __hash__ = object.__hash__  # members are single; Enum hashes the name, in Python, at every look-up


@dataclass(frozen=True, slots=True)
class Type:
    """A column type; ``precision`` and ``scale`` mean something for DECIMAL only, ``element`` for ARRAY."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: Type | None = None

    def __str__(self) -> str:
        if self.kind is Kind.ARRAY:
            return f"ARRAY<{self.element}>"
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        return str(self.kind.value)

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.BIGINT)

    @property
    def is_numeric(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy dtype of ``Column.values``."""
        return _DTYPES[self.kind]

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of an answer's column."""
        if self.kind is Kind.DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        if self.kind is Kind.ARRAY:
            assert self.element is not None
            return pa.list_(self.element.arrow)
        return _ARROW[self.kind]


_DTYPES: dict[Kind, np.dtype[np.generic]] = {
    Kind.BOOLEAN: np.dtype(np.bool_),
    Kind.INTEGER: np.dtype(np.int32),
    Kind.BIGINT: np.dtype(np.int64),
    Kind.DOUBLE: np.dtype(np.float64),
    Kind.DECIMAL: np.dtype(np.int64),
    Kind.STRING: np.dtype(np.int32),
    Kind.DATE: np.dtype(np.int32),
    Kind.TIMESTAMP: np.dtype(np.int64),
    Kind.INTERVAL: np.dtype(np.int64),
    Kind.TIME: np.dtype(np.int64),
    Kind.ARRAY: np.dtype(np.int32),
    Kind.NULL: np.dtype(np.bool_),
}

_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("ms"),
    Kind.INTERVAL: pa.int64(),
    Kind.TIME: pa.int64(),
    Kind.NULL: pa.null(),
}

BOOLEAN = Type(Kind.BOOLEAN)
INTEGER = Type(Kind.INTEGER)
BIGINT = Type(Kind.BIGINT)
DOUBLE = Type(Kind.DOUBLE)
STRING = Type(Kind.STRING)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
INTERVAL = Type(Kind.INTERVAL)
TIME = Type(Kind.TIME)
NULL = Type(Kind.NULL)


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), 1 <= precision <= 18, 0 <= scale <= precision."""
    if not (1 <= precision <= DECIMAL_DIGITS_MAX and 0 <= scale <= precision):
        raise ValueError(f"DECIMAL({precision}, {scale}) does not fit {DECIMAL_DIGITS_MAX} digits")
    return Type(Kind.DECIMAL, precision, scale)


def array(element: Type) -> Type:
    """ARRAY of a type that is no ARRAY itself."""
    if element.kind is Kind.ARRAY:
        raise ValueError("an array of arrays is not supported")
    return Type(Kind.ARRAY, element=element)
