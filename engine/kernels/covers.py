"""Intervals of time that cover the lives of rows: what is left, and which of several rows comes first."""

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


@kernel
def last_there(
    low: Int64Array,
    high: Int64Array,
    order: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
    of_begins: Int64Array,
    of_ends: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """For each row and each time of its life the last of its partners that is there then.

    The partners of row r are order[low[r] : high[r]], the last is preferred. begins, ends: int64[n], lives of
    the rows; of_begins, of_ends: int64[m], those of partners. Returns (row, partner, begin, end), by row.
    O(n + partners looked at * gaps): it stops at the first partners that cover a life.
    """
    room, written = max(16, 2 * low.shape[0]), 0
    rows, partners = np.empty(room, np.int64), np.empty(room, np.int64)
    out_begins, out_ends = np.empty(room, np.int64), np.empty(room, np.int64)
    gap_begins, gap_ends = np.empty(16, np.int64), np.empty(16, np.int64)
    for row in range(low.shape[0]):
        gap_begins[0], gap_ends[0], gaps = begins[row], ends[row], 1
        place = high[row] - 1
        while place >= low[row] and gaps:
            partner = order[place]
            begin, end = of_begins[partner], of_ends[partner]
            if gaps == gap_begins.shape[0]:
                gap_begins = np.concatenate((gap_begins, gap_begins))
                gap_ends = np.concatenate((gap_ends, gap_ends))
            gap = 0
            while gap < gaps:
                first, last = max(begin, gap_begins[gap]), min(end, gap_ends[gap])
                if first >= last:
                    gap += 1
                    continue
                if written == room:
                    room *= 2
                    rows, partners = np.concatenate((rows, rows)), np.concatenate((partners, partners))
                    out_begins = np.concatenate((out_begins, out_begins))
                    out_ends = np.concatenate((out_ends, out_ends))
                rows[written], partners[written] = row, partner
                out_begins[written], out_ends[written] = first, last
                written += 1
                before, after = gap_begins[gap] < first, last < gap_ends[gap]
                if before and after:  # an interval is in one piece, so this happens once a partner
                    gap_begins[gaps], gap_ends[gaps] = last, gap_ends[gap]
                    gap_ends[gap] = first
                    gaps += 1
                    break
                if before:
                    gap_ends[gap] = first
                    gap += 1
                elif after:
                    gap_begins[gap] = last
                    gap += 1
                else:
                    gaps -= 1
                    gap_begins[gap], gap_ends[gap] = gap_begins[gaps], gap_ends[gaps]
            place -= 1
    return rows[:written], partners[:written], out_begins[:written], out_ends[:written]
