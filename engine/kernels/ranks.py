"""Rows of groups that come and go, numbered in an order: in which pieces of time each row has which number.

Pieces, low and high are those of :mod:`engine.kernels.pieces`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]


@kernel
def numbers(
    low: Int64Array,
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    event_rows: Int64Array,
    most: int,
    rows: Int64Array,
    ranks: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
) -> int:
    """The runs of pieces in which a row keeps one number, of numbers from 1 to ``most``.

    Rows stand group by group (starts), each group's by their order. event_starts, event_rows: which rows come to a
    piece or leave it (:func:`engine.kernels.piece_folds.events`). low: where each row comes first.
    rows, ranks, begins, ends: written up to their length: row, number, first piece, the piece after the last.
    Return how many there are, which may be more than there is room for.

    Each piece is compared with the one before from the first place at which they can differ: O(most) a piece and
    the rows that are passed over.
    """
    room = rows.shape[0]
    count = 0
    widest = 0
    for group in range(starts.shape[0] - 1):
        widest = max(widest, starts[group + 1] - starts[group])
    most = min(most, widest)
    held = np.empty(most + 1, np.int64)
    since = np.empty(most + 1, np.int64)
    fresh = np.empty(most + 1, np.int64)
    there = np.zeros(low.shape[0], np.bool_)
    for group in range(starts.shape[0] - 1):
        first_row, end_row = starts[group], starts[group + 1]
        first_piece, end_piece = piece_starts[group], piece_starts[group + 1]
        n = 0
        for row in range(first_row, end_row):
            if low[row] == first_piece:
                there[row] = True
                if n < most:
                    held[n] = row
                    since[n] = first_piece
                    n += 1
        for piece in range(first_piece + 1, end_piece):
            start = end_row
            for i in range(event_starts[piece], event_starts[piece + 1]):
                row = event_rows[i]
                there[row] = low[row] == piece
                start = min(start, row)
            place = np.searchsorted(held[:n], start)
            if place == most:
                continue
            m = place
            row = start
            while m < most and row < end_row:
                if there[row]:
                    fresh[m] = row
                    m += 1
                row += 1
            for i in range(place, max(n, m)):
                if i < n and i < m and held[i] == fresh[i]:
                    continue
                if i < n:
                    if count < room:
                        rows[count], ranks[count] = held[i], i + 1
                        begins[count], ends[count] = since[i], piece
                    count += 1
                if i < m:
                    held[i] = fresh[i]
                    since[i] = piece
            n = m
        for i in range(n):
            if count < room:
                rows[count], ranks[count] = held[i], i + 1
                begins[count], ends[count] = since[i], end_piece
            count += 1
    return count
