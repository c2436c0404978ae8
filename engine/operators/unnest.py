"""UNNEST of a relation: its rows, each once for each element of its arrays.

Arrays are texts of which each that differs is read once; elements are then taken by their places.
Cost: O(rows + bytes of distinct arrays + rows that it gives).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.algebra.unnest.stage import Unnest, parts_of
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.model.nested.arrow import elements_of
from engine.model.runs import places_of
from engine.model.types import BIGINT
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded


class Unnested(NamedTuple):
    """relation: m rows. rows: int64[m], ascending, the row that each is of. numbers: int64[m], which of its
    elements, from 0; of a row that is kept without elements 0. errors: arrays that could not be computed, or
    have too many elements.
    """

    relation: Relation
    rows: Int64Array
    numbers: Int64Array
    errors: int


class _Elements(NamedTuple):
    """columns: of all elements of the arrays that differ, one behind the other. starts, counts: int64[n]:
    where those of a row begin, and how many there are. too_many: arrays, rows of which have none for that.
    """

    columns: list[Column]
    starts: Int64Array
    counts: Int64Array
    too_many: int


def unnested(stage: Unnest, relation: Relation, rows_max: int) -> Unnested:
    """The rows with their elements. Raises LimitExceeded for more than ``rows_max`` of them."""
    arrays, errors = relation.values_of(stage.arrays)
    found = [_elements(array, stage.elements_max) for array in arrays]
    errors += sum(each.too_many for each in found)
    counts = np.maximum.reduce([each.counts for each in found])
    given = np.maximum(counts, 1) if stage.keeps else counts
    total = int(given.sum())
    if total > rows_max:
        hint = "narrow the window or the predicate, or cut arrays: UNNEST(a[1:10])"
        raise LimitExceeded("intermediate_rows_max", rows_max, total, hint=hint)
    rows = np.repeat(np.arange(len(relation)), given)
    numbers = places_of(np.zeros(len(relation), np.int64), given)
    own: list[Column] = []
    for each in found:
        there = numbers < each.counts[rows]
        places = np.where(there, each.starts[rows] + numbers, -1)
        own += [column.take_or_null(places) for column in each.columns]
    if stage.ordinality is not None:
        own.append(Column(BIGINT, numbers + 1, _there(numbers < counts[rows])))
    taken = relation.among(rows)
    width = len(relation.columns)

    def make(place: int) -> Column:
        return taken.columns[place] if place < width else own[place - width]

    columns = LazyColumns(width + len(own), make)
    moments = taken.moments if taken.is_in_time else None
    return Unnested(Relation(columns, total, None, moments), rows, numbers, errors)


def _there(mask: BoolArray) -> BoolArray | None:
    return None if mask.all() else mask


def _elements(array: Column, elements_max: int) -> _Elements:
    short = array.with_used()
    texts = pa.array([], pa.string()) if short.dictionary is None else short.dictionary
    lengths, parts = elements_of(array.type, texts, elements_max)
    columns = [
        Column.from_arrow(type_, part) for type_, part in zip(parts_of(array.type), parts, strict=True)
    ]
    starts = np.cumsum(np.maximum(lengths, 0)) - np.maximum(lengths, 0)
    if not len(lengths):
        nothing = np.zeros(len(array), np.int64)
        return _Elements(columns, nothing, nothing, 0)
    counts = np.where(array.there(), lengths[short.values], 0)
    return _Elements(columns, starts[short.values], np.maximum(counts, 0), int((counts < 0).sum()))
