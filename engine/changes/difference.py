"""What changed between two answers of a query at one instant: rows that went, then rows that came, as bags.

Cost: O(rows of both), hashing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.changes.equality import codes_of_table
from engine.kernels.copies import number_copies
from engine.model.batch import Int32Array
from engine.model.changes import Weights


def difference(before: pa.Table, after: pa.Table) -> tuple[pa.Table, Weights, Int32Array]:
    """(rows, weights, copies): as in :class:`engine.model.changes.Changes`. Equal rows cancel."""
    n = before.num_rows
    both = pa.concat_tables([before, after])
    codes = codes_of_table(both)
    kinds = int(codes.max()) + 1 if len(codes) else 0
    held = np.bincount(codes[:n], minlength=kinds).astype(np.int64, copy=False)
    there = np.bincount(codes[n:], minlength=kinds).astype(np.int64, copy=False)
    went = np.flatnonzero(_numbers(codes[:n], kinds) > there[codes[:n]])
    came = n + np.flatnonzero(_numbers(codes[n:], kinds) > held[codes[n:]])
    places = np.concatenate([went, came])
    weights = np.ones(len(places), np.int8)
    weights[: len(went)] = -1
    copies = np.empty(len(places), np.int32)
    number_copies(codes[places], weights, held, copies)
    return both.take(places), weights, copies


def _numbers(codes: np.ndarray[tuple[int], np.dtype[np.int64]], kinds: int) -> Int32Array:
    """int32[n]: which copy of its kind each row is, from 1."""
    numbers = np.empty(len(codes), np.int32)
    number_copies(codes, np.ones(len(codes), np.int8), np.zeros(kinds, np.int64), numbers)
    return numbers
