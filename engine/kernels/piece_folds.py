"""Doubles combined over groups whose rows come and go: the trees of :mod:`engine.kernels.folds`, piece after
piece.

Pieces and events are those of :mod:`engine.kernels.pieces`. A result is (count, total, 0.0), or with
``spread`` (count, mean, squares). Every result is to the bit what a fold over the rows that are there gives,
since what is kept from the piece before are nodes of the tree none of whose rows came or went.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.folds import BLOCK_SHIFT, FAN_SHIFT, LEVELS, merge_moments

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@kernel
def added(spread: bool, n: float, a: float, s: float, value: float) -> tuple[float, float, float]:
    """A result and one value more."""
    if n == 0.0:
        return 1.0, value, 0.0
    m = n + 1.0
    if spread:
        before = value - a
        mean = a + before / m
        return m, mean, s + before * (value - mean)
    return m, a + value, 0.0


@kernel
def merged(
    spread: bool, n: float, a: float, s: float, m: float, b: float, t: float
) -> tuple[float, float, float]:
    """Two results, the left one first; one of nothing takes no part."""
    if spread:
        return merge_moments(n, a, s, m, b, t)
    if n == 0.0:
        return m, b, t
    if m == 0.0:
        return n, a, s
    return n + m, a + b, 0.0


@kernel
def blocks_most(ordinals: Int64Array, starts: Int64Array) -> int:
    """The most blocks that rows of one group lie in."""
    most = 0
    for group in range(starts.shape[0] - 1):
        count = 0
        for row in range(starts[group], starts[group + 1]):
            if row == starts[group] or ordinals[row] >> BLOCK_SHIFT != ordinals[row - 1] >> BLOCK_SHIFT:
                count += 1
        most = max(most, count)
    return most


@kernel
def fold_numbered(
    spread: bool,
    ordinals: Int64Array,
    values: Float64Array,
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    events: Int64Array,
    there: BoolArray,
    visits_max: int,
    totals: Float64Array,
    squares: Float64Array,
) -> bool:
    """The result of each piece, where a stream has numbered the rows. False: given up at ``visits_max`` rows.

    Rows stand group by group (starts), ordinals ascending. there: bool[n], which rows are there in the first
    piece of their group; written to. totals, squares: float64[pieces].

    The nodes of a group's tree are numbered level by level. Whoever came behind all that are there in its
    block is added to it; of other blocks in which a row came or went the rows are added up anew.
    """
    most = blocks_most(ordinals, starts)
    capacity = most * LEVELS + LEVELS
    number = np.empty(capacity, np.int64)
    begin = np.empty(capacity + 1, np.int64)
    parent = np.empty(capacity, np.int64)
    n = np.empty(capacity, np.float64)
    a = np.empty(capacity, np.float64)
    s = np.empty(capacity, np.float64)
    stamp = np.empty(capacity, np.int64)
    anew = np.empty(capacity, np.bool_)
    dirty = np.empty(capacity, np.int64)
    first_there = np.empty(most + 1, np.int64)
    last_there = np.empty(most + 1, np.int64)
    block_of = np.empty(values.shape[0], np.int32)
    visits = 0
    for group in range(starts.shape[0] - 1):
        first_row, end_row = starts[group], starts[group + 1]
        first_piece, end_piece = piece_starts[group], piece_starts[group + 1]
        if first_row == end_row:
            totals[first_piece:end_piece] = -0.0
            squares[first_piece:end_piece] = 0.0
            continue
        # blocks, and what is in them in the first piece
        nodes = 0
        for row in range(first_row, end_row):
            block = ordinals[row] >> BLOCK_SHIFT
            if nodes == 0 or number[nodes - 1] != block:
                number[nodes] = block
                begin[nodes] = row
                n[nodes], a[nodes], s[nodes] = 0.0, -0.0, 0.0
                first_there[nodes], last_there[nodes] = row, row - 1
                nodes += 1
            node = nodes - 1
            block_of[row] = node
            if there[row]:
                n[node], a[node], s[node] = added(spread, n[node], a[node], s[node], values[row])
                last_there[node] = row
        blocks = nodes
        visits += end_row - first_row
        # nodes above, up to one
        below, end_below = 0, nodes
        while end_below - below > 1:
            for child in range(below, end_below):
                above = number[child] >> FAN_SHIFT
                if nodes == end_below or number[nodes - 1] != above:
                    number[nodes] = above
                    begin[nodes] = child
                    n[nodes], a[nodes], s[nodes] = 0.0, -0.0, 0.0
                    nodes += 1
                node = nodes - 1
                parent[child] = node
                n[node], a[node], s[node] = merged(
                    spread, n[node], a[node], s[node], n[child], a[child], s[child]
                )
            below, end_below = end_below, nodes
        root = nodes - 1
        stamp[:nodes] = -1
        anew[:blocks] = False
        totals[first_piece] = a[root]
        squares[first_piece] = s[root]
        for piece in range(first_piece + 1, end_piece):
            count = 0
            for i in range(event_starts[piece], event_starts[piece + 1]):
                row = events[i] >> 1
                node = block_of[row]
                if stamp[node] != piece:
                    stamp[node] = piece
                    dirty[count] = node
                    count += 1
                if not events[i] & 1:
                    there[row] = True
                    if row > last_there[node]:
                        if not anew[node]:
                            n[node], a[node], s[node] = added(spread, n[node], a[node], s[node], values[row])
                        last_there[node] = row
                    else:
                        anew[node] = True
                        first_there[node] = min(first_there[node], row)
                else:
                    there[row] = False
                    anew[node] = True
            for i in range(count):
                node = dirty[i]
                if not anew[node]:
                    continue
                anew[node] = False
                m, b, t = 0.0, -0.0, 0.0
                last = first_there[node] - 1
                for row in range(first_there[node], last_there[node] + 1):
                    if there[row]:
                        if m == 0.0:
                            first_there[node] = row
                        m, b, t = added(spread, m, b, t, values[row])
                        last = row
                visits += last_there[node] + 1 - first_there[node]
                last_there[node] = last
                n[node], a[node], s[node] = m, b, t
            while count > 0 and dirty[0] != root:
                up = 0
                for i in range(count):
                    node = parent[dirty[i]]
                    if stamp[node] != piece:
                        stamp[node] = piece
                        dirty[up] = node
                        up += 1
                count = up
                for i in range(count):
                    node = dirty[i]
                    m, b, t = 0.0, -0.0, 0.0
                    child = begin[node]
                    while child < root and parent[child] == node:
                        m, b, t = merged(spread, m, b, t, n[child], a[child], s[child])
                        child += 1
                    visits += child - begin[node]
                    n[node], a[node], s[node] = m, b, t
            totals[piece] = a[root]
            squares[piece] = s[root]
            if visits > visits_max:
                return False
    return True


@kernel
def fold_counted(
    spread: bool,
    values: Float64Array,
    starts: Int64Array,
    piece_starts: Int64Array,
    event_starts: Int64Array,
    events: Int64Array,
    there: BoolArray,
    visits_max: int,
    totals: Float64Array,
    squares: Float64Array,
) -> bool:
    """The same where those that are there count from 0 in the order of rows.

    Of each block of the last fold is kept how it began: at which row, and what was open above it
    (:mod:`engine.kernels.folds`). A piece goes on from the block that its first event lies in, or, where that
    lies behind all rows that are there, from the end.
    """
    most = 0
    for group in range(starts.shape[0] - 1):
        most = max(most, starts[group + 1] - starts[group])
    capacity = (most >> BLOCK_SHIFT) + 2
    began = np.empty(capacity, np.int64)
    kept = np.zeros((capacity, LEVELS, 3), np.float64)
    opened = np.zeros((LEVELS, 3), np.float64)
    visits = 0
    for group in range(starts.shape[0] - 1):
        first_row, end_row = starts[group], starts[group + 1]
        first_piece, end_piece = piece_starts[group], piece_starts[group + 1]
        counted = 0  # of those that are there
        top = first_row - 1  # none is there behind it
        m, b, t = 0.0, -0.0, 0.0  # of the last block
        began[0] = first_row
        kept[0] = 0.0
        opened[:] = 0.0
        for row in range(first_row, end_row):
            if there[row]:
                top = row
        for piece in range(first_piece, end_piece):
            start = first_row
            if piece > first_piece:
                start = end_row
                before = top
                for i in range(event_starts[piece], event_starts[piece + 1]):
                    row = events[i] >> 1
                    there[row] = not events[i] & 1
                    if there[row]:
                        top = max(top, row)
                    start = min(start, row)
                if start <= before:
                    block = max(0, (counted - 1) >> BLOCK_SHIFT)
                    while block > 0 and began[block] > start:
                        block -= 1
                    start = began[block] if block > 0 else first_row
                    counted = block << BLOCK_SHIFT
                    opened[:] = kept[block]
                    m, b, t = 0.0, -0.0, 0.0
            last = start - 1 if start <= top else top
            visits += max(0, top + 1 - start)
            for row in range(start, top + 1):
                if not there[row]:
                    continue
                last = row
                if counted & ((1 << BLOCK_SHIFT) - 1) == 0:
                    entered = counted >> BLOCK_SHIFT
                    if m > 0.0:
                        level = 1
                        while True:
                            m, b, t = merged(
                                spread, opened[level, 0], opened[level, 1], opened[level, 2], m, b, t
                            )
                            if ((entered - 1) >> (FAN_SHIFT * level)) == (entered >> (FAN_SHIFT * level)):
                                opened[level, 0], opened[level, 1], opened[level, 2] = m, b, t
                                break
                            opened[level, 0] = 0.0
                            level += 1
                        m, b, t = 0.0, -0.0, 0.0
                    began[entered] = row
                    kept[entered] = opened
                m, b, t = added(spread, m, b, t, values[row])
                counted += 1
            top = last
            if visits > visits_max:
                return False
            n, total, square = m, b, t
            for level in range(1, LEVELS):
                n, total, square = merged(
                    spread, opened[level, 0], opened[level, 1], opened[level, 2], n, total, square
                )
            totals[piece] = total
            squares[piece] = square
    return True
