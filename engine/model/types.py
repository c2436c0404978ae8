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

An INTERVAL is a length of time, a TIME a time of the day, inside queries alone: in an answer they are a
BIGINT and a STRING.
A DECIMAL has at most 18 digits, so that it fits 64 bits. Strings compare by Unicode code point.

Other types are STRINGs with a *logical type*: each of their values has one text, its canonical text
(:mod:`engine.model.nested`), so that they are stored, coded, compared for equality, grouped and joined as
strings are. ``kind`` is STRING, and in Python their values are these texts.

| logical type       | canonical text                                              | Arrow         |
|--------------------|-------------------------------------------------------------|---------------|
| JSON               | JSON, members sorted, no white space, each number in one form | arrow.json  |
| ARRAY<T>           | JSON array of the values as answers in JSON have them       | list          |
| STRUCT<a T, b U>   | JSON object of all members                                  | struct        |
| MAP<STRING, T>     | JSON object                                                 | map           |
| BYTES              | hexadecimal digits in lower case                            | binary        |
| UUID               | 36 characters in lower case                                 | utf8          |
"""

from __future__ import annotations

from collections.abc import Iterable
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
    NULL = "NULL"

    __hash__ = object.__hash__  # members are single; Enum hashes the name, in Python, at every look-up


class Logical(Enum):
    """What the texts of a STRING mean, where they are not just texts."""

    JSON = "JSON"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"
    MAP = "MAP"
    BYTES = "BYTES"
    UUID = "UUID"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Type:
    """A column type.

    precision, scale: of DECIMAL. logical: of a STRING whose texts are values of another type. element: the
    type of the elements of an ARRAY, of the values of a MAP. members: of a STRUCT, in declared order.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: Type | None = None
    logical: Logical | None = None
    members: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        if self.logical is not None:
            return self._logical_name()
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        return str(self.kind.value)

    def _logical_name(self) -> str:
        match self.logical:
            case Logical.ARRAY:
                return f"ARRAY<{self.element}>"
            case Logical.MAP:
                return f"MAP<STRING, {self.element}>"
            case Logical.STRUCT:
                return f"STRUCT<{', '.join(f'{_name(name)} {type_}' for name, type_ in self.members)}>"
        assert self.logical is not None
        return str(self.logical.value)

    @property
    def is_nested(self) -> bool:
        """Whether its values may hold others: JSON, ARRAY, STRUCT, MAP. They have no order."""
        return self.logical is not None and self.logical not in (Logical.BYTES, Logical.UUID)

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
        match self.logical:
            case Logical.JSON:
                return pa.json_(pa.string())
            case Logical.BYTES:
                return pa.binary()
            case Logical.ARRAY:
                assert self.element is not None
                return pa.list_(self.element.arrow)
            case Logical.MAP:
                assert self.element is not None
                return pa.map_(pa.string(), self.element.arrow)
            case Logical.STRUCT:
                return pa.struct([(name, type_.arrow) for name, type_ in self.members])
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
JSON = Type(Kind.STRING, logical=Logical.JSON)
BYTES = Type(Kind.STRING, logical=Logical.BYTES)
UUID = Type(Kind.STRING, logical=Logical.UUID)


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale), 1 <= precision <= 18, 0 <= scale <= precision."""
    if not (1 <= precision <= DECIMAL_DIGITS_MAX and 0 <= scale <= precision):
        raise ValueError(f"DECIMAL({precision}, {scale}) does not fit {DECIMAL_DIGITS_MAX} digits")
    return Type(Kind.DECIMAL, precision, scale)


def array(element: Type) -> Type:
    """ARRAY of a type."""
    return Type(Kind.STRING, element=element, logical=Logical.ARRAY)


def map_of(value: Type) -> Type:
    """MAP from STRING to a type."""
    return Type(Kind.STRING, element=value, logical=Logical.MAP)


def struct(members: Iterable[tuple[str, Type]]) -> Type:
    """STRUCT of these members, whose names are different."""
    return Type(Kind.STRING, logical=Logical.STRUCT, members=tuple(members))


def _name(name: str) -> str:
    """A member's name as SQL writes it."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'
