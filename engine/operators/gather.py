"""From places of stored rows to columns.

Numbers are copied segment by segment into one array, and so are the codes of strings where all segments have
them from one table; else only the strings that occur are put into one dictionary.
Cost: O(rows + segments) a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from engine.algebra.project.stage import Output
from engine.model.answer import AnswerColumns
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns, made_column
from engine.model.interruption import require_room
from engine.model.lazy_columns import LazyColumns
from engine.model.source import Schema
from engine.model.string_table import StringTable
from engine.model.types import Kind, Type
from engine.operators.places import Places, moments_at
from engine.operators.relation import Relation
from engine.stems.segment import SegmentColumn, SegmentView

WORKED_ON = 2
"""A column, and what is made of it: its sorted order, numbers of its values, its part of the answer."""


def rows_at(schema: Schema, places: Places) -> Relation:
    """The rows at these places, with the columns of the stream, each gathered when it is read."""
    total = sum(len(where) for _, where in places)
    columns = LazyColumns(
        len(schema),
        lambda place: gather(place, schema, places, total),
        lambda place: pieces(place, schema, places),
    )
    return Relation(columns, total, lambda: ordinals_of(places))


def ordinals_of(places: Places) -> Int64Array:
    """int64[n], ascending."""
    if not places:
        return np.empty(0, np.int64)
    return np.concatenate([part.first + where for part, where in places])


def project(outputs: Sequence[Output], schema: Schema, places: Places) -> tuple[AnswerColumns, int]:
    """The selected columns of the rows at these places, and how many values were errors, which are NULL.

    Expressions are evaluated over the gathered rows only.
    """
    relation = rows_at(schema, places)
    columns, errors = relation.values_of(one.expression for one in outputs)
    schema_made = schema_of(tuple((one.name, one.type) for one in outputs))
    return AnswerColumns(schema_made, columns, len(relation)), errors


@lru_cache(1_000)
def schema_of(columns: tuple[tuple[str, Type], ...]) -> pa.Schema:
    """The Arrow schema of an answer with these columns."""
    return pa.schema([pa.field(name, type_.arrow) for name, type_ in columns])


def gather(place: int, schema: Schema, places: Places, total: int) -> Column:
    """One column of the rows at these places, ``total`` of them; behind the stored ones stand those
    that are made.
    """
    type_ = schema.field(place).type
    if places and place >= len(places[0][0].columns):
        moments = moments_at(places)
        return made_column(place, schema, moments.partition.astype(np.int32), moments.offset)
    columns = [part.columns[place] for part, _ in places]
    tables = {column.strings for column in columns}
    if type_.kind is Kind.STRING and len(tables) != 1:
        taken = pieces(place, schema, places)
        if taken is None:
            return Column.no_rows(type_)
        require_room(WORKED_ON * sum(map(_used_bytes, taken)))
        return concatenate_columns(type_, taken)
    require_room(WORKED_ON * total * type_.dtype.itemsize)
    return _taken(type_, columns, places, total)


def pieces(place: int, schema: Schema, places: Places) -> list[Column] | None:
    """A column of strings as several: the rows that have their codes from one table are one. None: all are,
    or it is another column. Strings are not copied.
    """
    if place >= len(schema) or schema.field(place).type.kind is not Kind.STRING:
        return None
    runs: list[tuple[list[SegmentColumn], list[tuple[SegmentView, Int64Array]]]] = []
    for part in places:
        column = part[0].columns[place]
        if not runs or runs[-1][0][0].strings is not column.strings:
            runs.append(([], []))
        runs[-1][0].append(column)
        runs[-1][1].append(part)
    if len(runs) < 2:
        return None
    type_ = schema.field(place).type
    require_room(type_.dtype.itemsize * sum(len(where) for _, where in places))
    totals = (sum(len(where) for _, where in parts) for _, parts in runs)
    return [
        _taken(type_, columns, parts, total) for (columns, parts), total in zip(runs, totals, strict=True)
    ]


def _taken(type_: Type, columns: Sequence[SegmentColumn], places: Places, total: int) -> Column:
    """The rows at these places of the columns of their parts, ``total`` of them, which have one table."""
    values = np.empty(total, type_.dtype)
    valid: BoolArray | None = None
    start = 0
    has_nulls = False
    for column, (_, where) in zip(columns, places, strict=True):  # every call here counts
        stop = start + len(where)
        column.values.take(where, None, values[start:stop], "clip")
        start = stop
        has_nulls |= column.valid is not None
    if has_nulls:
        masks = (_valid(column, where) for column, (_, where) in zip(columns, places, strict=True))
        valid = np.concatenate(list(masks))
    return Column(type_, values, valid, columns[0].strings if columns else None)


def _used_bytes(column: Column) -> int:
    """Bytes of the codes of a column, and of the strings that it may use, by the average of its table."""
    table, n = column.strings, len(column)
    if not isinstance(table, StringTable) or not len(table):
        return column.values.nbytes
    return column.values.nbytes + min(2 * n + 16, len(table)) * (4 + table.used_bytes // len(table))


def _valid(column: SegmentColumn, where: Int64Array) -> BoolArray:
    return np.ones(len(where), np.bool_) if column.valid is None else column.valid[where]
