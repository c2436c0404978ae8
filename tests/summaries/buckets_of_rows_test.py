"""The bucket of each row of a range, in open and full blocks, and of rows that are not held."""

from __future__ import annotations

import numpy as np

from engine.kernels.row_buckets import BLOCK
from engine.summaries.row_buckets import RowBuckets


def test_buckets_of_ranges_are_those_that_were_appended():
    rng = np.random.default_rng(2)
    first = BLOCK - 3
    given = rng.integers(0, 5, BLOCK + 20).astype(np.int32)
    rows = RowBuckets(5)
    rows.begin(first)
    at = 0
    for size in (1, 2, 7, BLOCK, 10):
        rows.append(given[at : at + size])
        at += size
        for _ in range(5):
            start, end = np.sort(rng.integers(0, at + 1, 2)).tolist()
            assert (rows.buckets_of(first + start, first + end) == given[start:end]).all()
    rows.drop_below(first + 5)
    found = rows.buckets_of(first + 2, first + 9)
    assert found.tolist() == [4, 4, 4, *given[5:9].tolist()]
