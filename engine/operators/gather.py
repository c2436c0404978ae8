"""From matching places to the columns of an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from engine.language import expressions as ex
from engine.language.evaluate import evaluate
from engine.language.query import Output
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.source import Schema
from engine.model.types import Kind
from engine.stems.segment import Part, PartColumn

Places = Sequence[tuple[Part, Int64Array]]
"""Per part the places of its rows that are in the answer, ascending."""


def project(outputs: Sequence[Output], schema: Schema, places: Places) -> tuple[pa.Table, int]:
    """The selected columns of the rows at these places, and how many values were errors (NULL in the table).

    Plain columns are copied straight into Arrow; expressions are evaluated over the gathered rows only.
    """
    total = sum(len(where) for _, where in places)
    computed = [output.expression for output in outputs if not isinstance(output.expression, ex.Column)]
    gathered = _inputs(computed, schema, places, total) if computed else []
    arrays: list[pa.Array | pa.ChunkedArray] = []
    errors = 0
    for output in outputs:
        expression = output.expression
        if isinstance(expression, ex.Column):
            if expression.type.kind is Kind.STRING:
                arrays.append(_strings(expression.index, places))
            else:
                arrays.append(_gather(expression.index, schema, places, total).to_arrow())
            continue
        result = evaluate(expression, gathered, total)
        column = result.column
        if result.error is not None and result.error.any():
            errors += int(result.error.sum())
            valid = ~result.error if column.valid is None else column.valid & ~result.error
            column = Column(column.type, column.values, valid, column.dictionary)
        arrays.append(column.to_arrow())
    fields = [pa.field(output.name, output.type.arrow) for output in outputs]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), errors


def _inputs(computed: Sequence[ex.Expression], schema: Schema, places: Places, total: int) -> list[Column]:
    """The columns that these expressions read, each at its place."""
    needed = {column.index for expression in computed for column in columns_of(expression)}
    return [
        _gather(place, schema, places, total) if place in needed else _absent(schema, place)
        for place in range(len(schema))
    ]


def columns_of(expression: ex.Expression) -> Iterator[ex.Column]:
    """Every column an expression reads."""
    pending: list[object] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ex.Column):
            yield node
        elif isinstance(node, tuple):
            pending.extend(node)
        elif hasattr(node, "__dataclass_fields__"):
            pending.extend(getattr(node, name) for name in node.__dataclass_fields__ if name != "type")


def _absent(schema: Schema, place: int) -> Column:
    """Stands where an expression reads nothing."""
    type_ = schema.fields[place].type
    return Column(type_, np.empty(0, type_.dtype))


def _gather(place: int, schema: Schema, places: Places, total: int) -> Column:
    type_ = schema.fields[place].type
    if type_.kind is Kind.STRING:
        if not places:
            return Column(type_, np.empty(0, np.int32), None, pa.array([], pa.string()))
        taken = [part.columns[place].whole(part.n).take(where) for part, where in places]
        return taken[0] if len(taken) == 1 else concatenate_columns(type_, taken)
    values = np.empty(total, type_.dtype)
    valid: BoolArray | None = None
    start = 0
    for part, where in places:  # once for each segment and column: every call here counts
        stop = start + len(where)
        part.columns[place].values.take(where, None, values[start:stop], "clip")
        start = stop
    if any(part.columns[place].valid is not None for part, _ in places):
        valid = np.concatenate([_valid(part.columns[place], where) for part, where in places])
    return Column(type_, values, valid)


def _valid(column: PartColumn, where: Int64Array) -> BoolArray:
    return np.ones(len(where), np.bool_) if column.valid is None else column.valid[where]


def _strings(place: int, places: Places) -> pa.ChunkedArray:
    chunks = []
    for part, where in places:
        column = part.columns[place]
        valid = None if column.valid is None else column.valid[where]
        chunks.append(Column(column.field.type, column.values[where], valid, column.dictionary()).to_arrow())
    return pa.chunked_array(chunks, pa.string())
