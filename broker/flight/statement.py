"""A statement with its parameters, as a client holds it: a handle is the statement itself, so nothing of it
is kept here, and it goes on after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from broker.flight.messages import BadMessage
from broker.postgres import types
from broker.postgres.parameters import Array, BadValue, Value
from broker.postgres.results import WRITTEN
from tureen.errors import LimitExceeded

_SIZE_BYTES = 4


@dataclass(frozen=True, slots=True)
class Statement:
    """A text, and rows of values for its parameters; None: it has none yet. A SELECT takes one row, a
    statement that changes something is carried out for each.
    """

    sql: str
    values: pa.Table | None = None

    @property
    def handle(self) -> bytes:
        """What a client is given for it."""
        text = self.sql.encode()
        rows = b"" if self.values is None else _written(self.values)
        return len(text).to_bytes(_SIZE_BYTES) + text + rows

    @classmethod
    def of_handle(cls, handle: bytes, sql_bytes_max: int) -> Statement:
        """Raises BadMessage, LimitExceeded."""
        size = int.from_bytes(handle[:_SIZE_BYTES])
        text = handle[_SIZE_BYTES : _SIZE_BYTES + size]
        if len(text) < size or len(handle) < _SIZE_BYTES:
            raise BadMessage("this is the handle of no prepared statement")
        if size > sql_bytes_max:
            raise LimitExceeded("sql_bytes_max", sql_bytes_max, size)
        try:
            rows = handle[_SIZE_BYTES + size :]
            return cls(text.decode(), pa.ipc.open_stream(rows).read_all() if rows else None)
        except (UnicodeDecodeError, pa.ArrowException, OSError):
            raise BadMessage("this is the handle of no prepared statement") from None

    def with_values(self, values: pa.Table) -> Statement:
        """The statement with other values."""
        return replace(self, values=values)

    def rows(self) -> list[tuple[Value, ...]]:
        """The values of its parameters, row by row; one row without values where there are none. Raises
        BadValue.
        """
        if self.values is None or self.values.num_columns == 0:
            return [()]
        columns = [
            [_value(place, one, column.type) for one in column.to_pylist()]
            for place, column in enumerate(self.values.columns, 1)
        ]
        return list(zip(*columns, strict=True))

    def row(self) -> tuple[Value, ...]:
        """The values of a statement that takes one row. Raises BadValue."""
        rows = self.rows()
        if len(rows) != 1:
            raise BadValue(f"a SELECT takes one row of parameters; {len(rows):,} are given")
        return rows[0]


def parameter_schema(oids: Sequence[int]) -> pa.Schema:
    """What a client is told of the parameters. oids: their types, by place."""
    return pa.schema([(f"${place}", _arrow(oid)) for place, oid in enumerate(oids, 1)])


def _arrow(oid: int) -> pa.DataType:
    element = types.ELEMENTS.get(oid)
    return WRITTEN.get(oid, pa.string()) if element is None else pa.list_(_arrow(element))


def _value(place: int, value: Any, type_: pa.DataType) -> Value:
    if isinstance(value, list):
        oid = types.oid_of(type_)
        if oid not in types.ELEMENTS:
            raise BadValue(f"the value of ${place} is {type_}, which is no type of a parameter")
        inner = tuple(_value(place, one, type_.value_type) for one in value)
        return Array(types.ELEMENTS[oid], inner)  # type: ignore[arg-type]
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if isinstance(value, dict | tuple):
        raise BadValue(f"the value of ${place} is {type_}, which is no type of a parameter")
    known: Value = value
    return known


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
