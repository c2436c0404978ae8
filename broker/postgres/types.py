"""Types: which of PostgreSQL's a column of an answer has, and which a parameter.

| Tureen               | PostgreSQL   | text                        | binary                          |
|----------------------|--------------|-----------------------------|---------------------------------|
| BOOLEAN              | bool         | t, f                        | 1 byte                          |
| INTEGER              | int4         | digits                      | 4 bytes                         |
| BIGINT               | int8         | digits                      | 8 bytes                         |
| DOUBLE               | float8       | 10, 0.1, 1e+20, NaN, Infinity | 8 bytes                       |
| DECIMAL(p, s)        | numeric(p, s) | all digits                 | digits to the base 10,000       |
| STRING               | text         | as it is                    | the same                        |
| DATE                 | date         | 2013-01-31                  | 4 bytes, days since 2000        |
| TIMESTAMP            | timestamptz  | 2013-01-31 09:15:00.5+00    | 8 bytes, microseconds since 2000 |
| UUID                 | uuid         | 36 characters               | 16 bytes                        |
| BYTES                | bytea        | \\x and hexadecimal digits  | as they are                     |
| ARRAY of one of these | int8[], ... | {1,NULL,"a, b"}            | dimension, element type, elements |
| JSON, STRUCT, MAP, ARRAY of these | json | JSON, as answers over HTTP have it | the same            |

A TIMESTAMP is an instant, so it is one with a zone, UTC, however a client shows it.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from broker.postgres.messages import Field
from engine.model.types import Logical, Type

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID, JSON = 16, 17, 20, 21, 23, 25, 26, 114
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE = 700, 701, 705, 1042, 1043, 1082
TIMESTAMP, TIMESTAMPTZ, NUMERIC, UUID, JSONB, NAME = 1114, 1184, 1700, 2950, 3802, 19


class PgType(NamedTuple):
    """A type as pg_type has it.

    category: as PostgreSQL classes it. sql: what SQL and format_type call it. element: the oid of the
    elements of an array; 0: it is none.
    """

    oid: int
    name: str
    size: int
    category: str
    sql: str
    element: int = 0


TYPES = {
    one.oid: one
    for one in (
        PgType(BOOL, "bool", 1, "B", "boolean"),
        PgType(BYTEA, "bytea", -1, "U", "bytea"),
        PgType(INT8, "int8", 8, "N", "bigint"),
        PgType(INT2, "int2", 2, "N", "smallint"),
        PgType(INT4, "int4", 4, "N", "integer"),
        PgType(TEXT, "text", -1, "S", "text"),
        PgType(OID, "oid", 4, "N", "oid"),
        PgType(NAME, "name", 64, "S", "name"),
        PgType(JSON, "json", -1, "U", "json"),
        PgType(FLOAT4, "float4", 4, "N", "real"),
        PgType(FLOAT8, "float8", 8, "N", "double precision"),
        PgType(UNKNOWN, "unknown", -2, "X", "unknown"),
        PgType(BPCHAR, "bpchar", -1, "S", "character"),
        PgType(VARCHAR, "varchar", -1, "S", "character varying"),
        PgType(DATE, "date", 4, "D", "date"),
        PgType(TIMESTAMP, "timestamp", 8, "D", "timestamp without time zone"),
        PgType(TIMESTAMPTZ, "timestamptz", 8, "D", "timestamp with time zone"),
        PgType(NUMERIC, "numeric", -1, "N", "numeric"),
        PgType(UUID, "uuid", 16, "U", "uuid"),
        PgType(JSONB, "jsonb", -1, "U", "jsonb"),
    )
}
"""By oid: those that columns and parameters may have."""

ARRAYS = {
    BOOL: 1000,
    BYTEA: 1001,
    NAME: 1003,
    INT2: 1005,
    INT4: 1007,
    TEXT: 1009,
    BPCHAR: 1014,
    VARCHAR: 1015,
    INT8: 1016,
    FLOAT4: 1021,
    FLOAT8: 1022,
    OID: 1028,
    TIMESTAMP: 1115,
    DATE: 1182,
    TIMESTAMPTZ: 1185,
    NUMERIC: 1231,
    UUID: 2951,
    JSON: 199,
    JSONB: 3807,
}
"""The oid of the array of a type, by that of its elements."""
ELEMENTS = {array: element for element, array in ARRAYS.items()}
TYPES |= {
    array: PgType(array, f"_{TYPES[element].name}", -1, "A", f"{TYPES[element].sql}[]", element)
    for element, array in ARRAYS.items()
}

_NUMERIC_HEADER = 4


def numeric_modifier(precision: int, scale: int) -> int:
    """The type modifier of numeric(precision, scale)."""
    return (precision << 16 | scale) + _NUMERIC_HEADER


def field(name: str, type_: pa.DataType) -> Field:
    """A column of an answer by its Arrow type."""
    oid = oid_of(type_)
    inner = type_.value_type if oid in ELEMENTS else type_
    modifier = numeric_modifier(inner.precision, inner.scale) if pa.types.is_decimal(inner) else -1
    return Field(name, oid, TYPES[oid].size, modifier)


def field_of(name: str, type_: Type) -> Field:
    """A column of an answer by its type."""
    if type_.logical is Logical.UUID:
        return Field(name, UUID, TYPES[UUID].size)
    if type_.logical is Logical.ARRAY and type_.element is not None and type_.element.logical is Logical.UUID:
        return Field(name, ARRAYS[UUID], -1)
    return field(name, type_.arrow)


def oid_of(type_: pa.DataType) -> int:
    """The oid of an Arrow type."""
    for is_type, oid in _BY_ARROW:
        if is_type(type_):
            return oid
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        element = oid_of(type_.value_type)
        return JSON if element == JSON or element in ELEMENTS else ARRAYS[element]
    return JSON


_BY_ARROW = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_int32, INT4),
    (pa.types.is_int64, INT8),
    (lambda one: pa.types.is_int8(one) or pa.types.is_int16(one) or pa.types.is_uint8(one), INT4),
    (pa.types.is_uint16, INT8),
    (pa.types.is_uint32, OID),
    (pa.types.is_floating, FLOAT8),
    (lambda one: pa.types.is_decimal(one) or pa.types.is_uint64(one), NUMERIC),
    (lambda one: pa.types.is_string(one) or pa.types.is_large_string(one) or pa.types.is_null(one), TEXT),
    (pa.types.is_date, DATE),
    (pa.types.is_timestamp, TIMESTAMPTZ),
    (lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one), BYTEA),
    (lambda one: pa.types.is_time(one) or pa.types.is_duration(one) or pa.types.is_interval(one), TEXT),
)


def normal(type_: pa.DataType) -> pa.DataType:
    """The Arrow type in which a column is written that comes in another of the same oid."""
    oid = oid_of(type_)
    if oid in ELEMENTS:
        return pa.list_(normal(type_.value_type))
    return _NORMAL.get(oid, type_)


_NORMAL = {
    BOOL: pa.bool_(),
    INT4: pa.int32(),
    INT8: pa.int64(),
    OID: pa.uint32(),
    FLOAT8: pa.float64(),
    TEXT: pa.string(),
    DATE: pa.date32(),
    BYTEA: pa.binary(),
}


def oid_of_name(name: str) -> int:
    """The oid of a type by what SQL calls it, ``bigint`` or ``bigint[]``; text where it is not known."""
    element, brackets, _ = name.lower().partition("[")
    oid = _BY_NAME.get(element.strip(), TEXT)
    return ARRAYS.get(oid, oid) if brackets else oid


_BY_NAME = {one.name: one.oid for one in TYPES.values()} | {one.sql: one.oid for one in TYPES.values()}
_BY_NAME |= {
    "oidvector": ARRAYS[OID],
    "int": INT4,
    "decimal": NUMERIC,
    "double": FLOAT8,
    "float": FLOAT8,
    "string": TEXT,
}
