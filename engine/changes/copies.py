"""Copies of equal rows, numbered from 1, where nothing but its values tells a row from others.

The second of two equal rows is copy 2, whichever came first; when one of them goes, copy 2 does. Rows are
equal as :mod:`engine.changes.equality` has it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.changes.equality import codes_of, codes_of_table
from engine.changes.lives import Input, Touched
from engine.kernels.copies import number_copies
from engine.language.expressions import Column as ColumnOf
from engine.model.batch import Int32Array, concatenate_columns
from engine.model.changes import Weights
from engine.model.types import Kind
from engine.operators.relation import Relation


def copies_of(last: Input, changed: Relation, weights: Weights) -> Int32Array:
    """int32[n]: which copy each change brings or takes away.

    last: what gives the answer. changed: n rows that come (+1) and go (-1), in the order in which they do,
    without such as cancel at one instant. O(rows of both), hashing.
    """
    n = len(changed)
    told = np.empty(n, np.int32)
    if not n:
        return told
    keys = [
        (ColumnOf(place, "", column.type), column)
        for place, column in enumerate(changed.columns)
        if column.type.kind is not Kind.ARRAY
    ]
    touched = Touched(tuple(key for key, _ in keys), tuple(column for _, column in keys), n)
    alive = last.alive(touched if keys else None)
    before = alive.where(alive.begins <= last.way.since_ms).relation
    columns = [
        concatenate_columns(one.type, [one, other])
        for one, other in zip(changed.columns, before.columns, strict=True)
    ]
    codes = codes_of(columns, n + len(before))
    held = np.bincount(codes[n:], minlength=int(codes.max()) + 1).astype(np.int64, copy=False)
    number_copies(codes[:n], weights, held, told)
    return told


def copies_of_whole(table: pa.Table) -> Int32Array:
    """int32[n]: the copy that each row of an answer is."""
    n = table.num_rows
    codes = codes_of_table(table)
    told = np.empty(n, np.int32)
    if n:
        number_copies(codes, np.ones(n, np.int8), np.zeros(int(codes.max()) + 1, np.int64), told)
    return told
