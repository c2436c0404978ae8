"""ROW_NUMBER() OVER: rows numbered within each value of some keys. O(rows log rows)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.algebra.row_number.stage import RowNumber
from engine.model.batch import Column, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.model.types import BIGINT
from engine.operators.keys import encode
from engine.operators.relation import Relation
from engine.operators.sort import sort_arrays


def row_number(stage: RowNumber, relation: Relation) -> tuple[Relation, int]:
    """The rows with their numbers behind them, those up to ``count``; how many keys were errors."""
    keys, errors = relation.values_of(stage.keys)
    arrays, wrong = sort_arrays(stage.order, relation)
    codes, firsts = encode(keys, len(relation))
    sorted_rows: Int64Array = (
        np.lexsort([*arrays[::-1], codes]) if arrays else np.argsort(codes, kind="stable")
    )
    numbers = np.empty(len(relation), np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(firsts)))])
    numbers[sorted_rows] = np.arange(1, len(relation) + 1) - starts[codes[sorted_rows]]
    numbered = relation.with_columns(_and_one(relation.columns, Column(BIGINT, numbers)))
    if stage.count is not None:
        numbered = numbered.among(np.flatnonzero(numbers <= stage.count))
    return numbered, errors + wrong


def _and_one(columns: Sequence[Column], last: Column) -> LazyColumns:
    return LazyColumns(len(columns) + 1, lambda place: last if place == len(columns) else columns[place])
