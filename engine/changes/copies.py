"""Copies of equal rows, numbered from 1, where nothing but its values tells a row from others.

The second of two equal rows is copy 2, whichever came first; when one of them goes, copy 2 does. Rows are
equal as :mod:`engine.changes.equality` has it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.changes.equality import codes_of_table
from engine.kernels.copies import number_copies
from engine.model.batch import Int32Array


def copies_of_whole(table: pa.Table) -> Int32Array:
    """int32[n]: the copy that each row of an answer is."""
    n = table.num_rows
    codes = codes_of_table(table)
    told = np.empty(n, np.int32)
    if n:
        number_copies(codes, np.ones(n, np.int8), np.zeros(int(codes.max()) + 1, np.int64), told)
    return told
