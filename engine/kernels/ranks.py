"""Rows of groups that come and go, numbered in an order: in which pieces of time each row has which number.

Pieces and events are those of :mod:`engine.kernels.pieces`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]


@kernel
def numbers(
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    events: Int64Array,
    there: npt.NDArray[np.bool_],
    most: int,
    rows: Int64Array,
    ranks: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
) -> int:
    """The runs of pieces in which a row keeps one number, of numbers from 1 to ``most``.

    Rows stand group by group (starts), each group's by their order. event_starts, events: which rows come to
    a piece or leave it (:func:`engine.kernels.pieces.events`). there: bool[n], which rows are there in the
    first piece of their group; written to. rows, ranks, begins, ends: written up to their length: row,
    number, first piece, the piece after the last. Return how many there are, which may be more than there is
    room for.

    Each piece is compared with the one before from the first place at which they can differ: O(most) a piece
    and the rows that are passed over.
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
    for group in range(starts.shape[0] - 1):
        first_row, end_row = starts[group], starts[group + 1]
        first_piece, end_piece = piece_starts[group], piece_starts[group + 1]
        n = 0
        for row in range(first_row, end_row):
            if n == most:
                break
            if there[row]:
                held[n] = row
                since[n] = first_piece
                n += 1
        for piece in range(first_piece + 1, end_piece):
            start = end_row
            for i in range(event_starts[piece], event_starts[piece + 1]):
                row = events[i] >> 1
                there[row] = not events[i] & 1
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


@kernel
def bounds(
    keys: Int64Array, codes: Int64Array, starts: Int64Array, heap: Int64Array, out: Int64Array
) -> None:
    """out[g] = a key that so many rows of a group do not exceed as it has room for in ``heap``; the greatest
    key there is where it has no more rows than that.

    starts: int64[groups + 1], where each group's room begins; none is empty. heap: int64[all room]: of each
    group the least keys so far, the greatest of them first. O(rows + those that enter * log room).
    """
    groups = starts.shape[0] - 1
    held = np.zeros(groups, np.int64)
    for i in range(keys.shape[0]):
        group = codes[i]
        start, n = starts[group], held[group]
        room = starts[group + 1] - start
        key = keys[i]
        if n < room:  # up from the end
            place = n
            held[group] = n + 1
            while place > 0 and heap[start + ((place - 1) >> 1)] < key:
                heap[start + place] = heap[start + ((place - 1) >> 1)]
                place = (place - 1) >> 1
            heap[start + place] = key
        elif key < heap[start]:  # down from the root
            place = 0
            while True:
                child = 2 * place + 1
                if child >= room:
                    break
                if child + 1 < room and heap[start + child + 1] > heap[start + child]:
                    child += 1
                if heap[start + child] <= key:
                    break
                heap[start + place] = heap[start + child]
                place = child
            heap[start + place] = key
    for group in range(groups):
        full = held[group] == starts[group + 1] - starts[group]
        out[group] = heap[starts[group]] if full else np.iinfo(np.int64).max
