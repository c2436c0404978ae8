"""IN and EXISTS: rows whose keys are, or are not, among those of another relation.

O(rows of both) for each pair of patterns of NULLs, hashing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from engine.algebra.semi_join.stage import SemiJoin
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.types import BOOLEAN
from engine.operators.keys import encode, together
from engine.operators.relation import Relation


def semi_join(stage: SemiJoin, relation: Relation, inner: Relation) -> tuple[Relation, int]:
    """The rows that are left, and how many keys were errors (they count as NULL).

    inner: its first columns are what the keys are compared with.
    """
    keys, errors = relation.values_of(stage.keys)
    others = [inner.columns[place] for place in range(len(keys))]
    found, unknown = _among(keys, others, len(relation), len(inner))
    if stage.negated:
        kept = ~found & ~unknown if stage.null_aware else ~found
    else:
        kept = found
    return (relation if kept.all() else relation.among(np.flatnonzero(kept))), errors


def _among(keys: Sequence[Column], others: Sequence[Column], n: int, m: int) -> tuple[BoolArray, BoolArray]:
    """bool[n] each: whether one of the others' rows equals in all keys; else, whether one might.

    A row differs as soon as one key does; where none does and some are NULL, it might be equal. So rows are
    compared by the keys that are NULL on neither side, pattern of NULLs by pattern of NULLs.
    """
    found, unknown = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    if not n or not m:
        return found, unknown
    for (here, rows), (there, other_rows) in product(list(_by_nulls(keys, n)), list(_by_nulls(others, m))):
        both = here & there
        columns = [
            column
            for place in np.flatnonzero(both).tolist()
            for column in together(keys[place].take(rows), others[place].take(other_rows))
        ]
        codes, _ = encode(columns, len(rows) + len(other_rows))
        equal = np.isin(codes[: len(rows)], codes[len(rows) :])
        if both.all():
            found[rows] |= equal
        else:
            unknown[rows] |= equal
    return found, unknown & ~found


def _by_nulls(columns: Sequence[Column], n: int) -> Iterator[tuple[BoolArray, Int64Array]]:
    """Each pattern of NULLs there is: which columns have a value, bool[columns], and its rows."""
    valid = np.ones((n, len(columns)), np.bool_)
    for place, column in enumerate(columns):
        if column.valid is not None:
            valid[:, place] = column.valid
    patterns, firsts = encode([Column(BOOLEAN, valid[:, place]) for place in range(len(columns))], n)
    for pattern, first in enumerate(firsts.tolist()):
        yield valid[first], np.flatnonzero(patterns == pattern)
