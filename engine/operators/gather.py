"""From places of stored rows to columns.

Numbers are copied segment by segment into one array, and so are the codes of strings where all segments have
them from one table; else only the strings that occur are put into one dictionary.
Cost: O(rows + segments) a column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.language import expressions as ex
from engine.language.query import Output
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.source import Schema
from engine.model.types import Kind, Type
from engine.operators.places import Places
from engine.operators.relation import LazyColumns, Relation
from engine.stems.segment import PartColumn


def rows_at(schema: Schema, places: Places) -> Relation:
    """The rows at these places, with the columns of the stream, each gathered when it is read."""
    total = sum(len(where) for _, where in places)
    columns = LazyColumns(len(schema), lambda place: gather(place, schema, places, total))
    return Relation(columns, total, lambda: ordinals_of(places))


def ordinals_of(places: Places) -> Int64Array:
    """int64[n], ascending."""
    if not places:
        return np.empty(0, np.int64)
    return np.concatenate([part.first + where for part, where in places])


def project(outputs: Sequence[Output], schema: Schema, places: Places) -> tuple[pa.Table, int]:
    """The selected columns of the rows at these places, and how many values were errors (NULL in the table).

    Plain columns are copied straight into Arrow; expressions are evaluated over the gathered rows only.
    """
    relation = rows_at(schema, places)
    arrays: list[pa.Array | pa.ChunkedArray] = []
    errors = 0
    for output in outputs:
        expression = output.expression
        if isinstance(expression, ex.Column):
            if expression.type.kind is Kind.STRING:
                arrays.append(_strings(expression.index, places))
            else:
                arrays.append(relation.columns[expression.index].to_arrow())
            continue
        (column,), wrong = relation.values_of([expression])
        errors += wrong
        arrays.append(column.to_arrow())
    fields = [pa.field(output.name, output.type.arrow) for output in outputs]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), errors


def gather(place: int, schema: Schema, places: Places, total: int) -> Column:
    """One column of the rows at these places, ``total`` of them."""
    type_ = schema.fields[place].type
    tables = {id(part.columns[place].strings): part.columns[place].strings for part, _ in places}
    if type_.kind is Kind.STRING and len(tables) != 1:
        return _strings_as_one(type_, place, places)
    values = np.empty(total, type_.dtype)
    valid: BoolArray | None = None
    start = 0
    for part, where in places:  # once for each segment and column: every call here counts
        stop = start + len(where)
        part.columns[place].values.take(where, None, values[start:stop], "clip")
        start = stop
    if any(part.columns[place].valid is not None for part, _ in places):
        valid = np.concatenate([_valid(part.columns[place], where) for part, where in places])
    return Column(type_, values, valid, next(iter(tables.values()), None))


def _valid(column: PartColumn, where: Int64Array) -> BoolArray:
    return np.ones(len(where), np.bool_) if column.valid is None else column.valid[where]


def _strings_as_one(type_: Type, place: int, places: Places) -> Column:
    if not places:
        return Column(type_, np.empty(0, np.int32), None, pa.array([], pa.string()))
    taken = [part.columns[place].whole(part.n).take(where) for part, where in places]
    return concatenate_columns(type_, taken)


def _strings(place: int, places: Places) -> pa.ChunkedArray:
    """The same as Arrow, a chunk a segment."""
    taken = [part.columns[place].whole(part.n).take(where) for part, where in places]
    return pa.chunked_array([column.to_arrow() for column in taken], pa.string())
