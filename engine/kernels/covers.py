"""Intervals of time that cover the lives of rows, and what is left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]


@kernel
def cut_out(
    begins: Int64Array,
    ends: Int64Array,
    starts: Int64Array,
    cover_begins: Int64Array,
    cover_ends: Int64Array,
    inside: bool,
    rows: Int64Array,
    out_begins: Int64Array,
    out_ends: Int64Array,
) -> int:
    """The pieces of each row's life that are covered (inside), or not, each as long as may be.

    begins, ends: int64[n], lives. cover_begins, cover_ends: those of row r are at starts[r] to starts[r + 1],
    by begin, within its life. rows, out_begins, out_ends: int64[n + covers], written, by row and begin.
    Returns how many pieces there are. O(n + covers).
    """
    written = 0
    for row in range(begins.shape[0]):
        reached = begins[row]  # all before it is told
        opened = reached  # where the piece that is being told begins
        for place in range(starts[row], starts[row + 1]):
            begin, end = cover_begins[place], cover_ends[place]
            if begin > reached:
                told_begin, told_end = (opened, reached) if inside else (reached, begin)
                if told_begin < told_end:
                    rows[written], out_begins[written], out_ends[written] = row, told_begin, told_end
                    written += 1
                opened = begin
            reached = max(reached, end)
        told_begin, told_end = (opened, reached) if inside else (reached, ends[row])
        if told_begin < told_end:
            rows[written], out_begins[written], out_ends[written] = row, told_begin, told_end
            written += 1
    return written
