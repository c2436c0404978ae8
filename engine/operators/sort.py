"""ORDER BY: stable, and with a LIMIT behind it only as far as that needs.

O(rows log rows); O(rows + k log k) for the first k where the first key tells most rows apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.model.batch import Column, Int64Array
from engine.operators.keys import order_keys
from engine.operators.relation import Relation

INT64 = np.iinfo(np.int64)


def sort(
    by: Sequence[SortKey], relation: Relation, wanted: int | None = None, *, ties: bool = False
) -> tuple[Relation, int]:
    """The rows in order, the first ``wanted`` of them; and how many values of keys were errors. ties: with
    those that are equal to the last of these, of which there is one at least.
    """
    keys, errors = relation.values_of(key.expression for key in by)
    rows = None
    if wanted is not None and wanted < len(relation):
        rows = _candidates(by[0], keys[0], wanted)
        keys = [key.take(rows) for key in keys]
    arrays = [array for key, column in zip(by, keys, strict=True) for array in key_arrays(key, column)]
    if len(arrays) == 1:
        order = np.argsort(arrays[0], kind="stable")
    else:
        order = np.lexsort(arrays[::-1])
    if wanted is not None:
        first, others = order[:wanted], order[wanted:]
        if ties and len(others):
            tied = [array[others] == array[first[-1]] for array in arrays]
            first = order[: wanted + int(np.logical_and.reduce(tied).sum())]
        order = first
    return relation.take(order if rows is None else rows[order]), errors


def first_rows(keys: Sequence[SortKey], relation: Relation, wanted: int) -> Int64Array | None:
    """Rows, ascending, among which the first ``wanted`` by these keys are; None: all."""
    if wanted >= len(relation):
        return None
    if not keys:
        return np.arange(wanted)
    (column,), _ = relation.values_of([keys[0].expression])
    return _candidates(keys[0], column, wanted)


def sort_arrays(keys: Sequence[SortKey], relation: Relation) -> tuple[list[Int64Array], int]:
    """int64[n] each, by which rows are sorted, the first weighs most; how many values are errors."""
    columns, errors = relation.values_of(key.expression for key in keys)
    return [
        array for key, column in zip(keys, columns, strict=True) for array in key_arrays(key, column)
    ], errors


def key_arrays(key: SortKey, column: Column) -> list[Int64Array]:
    """int64[n] each, the first weighs most: where NULLs go, then the values' order."""
    values = order_keys(column)
    if key.descending:
        values = ~values
    if column.valid is None:
        return [values]
    values = np.where(column.valid, values, 0)
    return [(column.valid if key.nulls_first else ~column.valid).astype(np.int64), values]


def leading(key: SortKey, column: Column) -> Int64Array:
    """int64[n] that never order two rows otherwise than this key does, though it may tell them apart."""
    values = order_keys(column)
    if key.descending:
        values = ~values
    if column.valid is not None:
        values = np.where(column.valid, values, INT64.min if key.nulls_first else INT64.max)
    return values


def _candidates(key: SortKey, column: Column, wanted: int) -> Int64Array:
    """Rows, ascending, among which the first ``wanted`` by all keys are: by the first key alone."""
    values = leading(key, column)
    if not wanted:
        return np.empty(0, np.int64)
    last = np.partition(values, wanted - 1)[wanted - 1]
    return np.flatnonzero(values <= last)
