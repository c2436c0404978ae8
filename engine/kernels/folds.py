"""Doubles combined in a tree that the rows' ordinals alone decide.

Values of an aligned block of 4,096 ordinals are taken one by one, left to right; the results of 64
neighbours, aligned, are merged left to right, and so on to the root. Who is absent takes no part. So a
sum comes out the same to the bit however its rows were found, cut into batches, or added up beforehand.

A fold goes over ordinals ascending with one open result a level: ``acc[l]`` of what came before within the
current node of level l, ``has[l]`` whether there is any. When the next block lies in another node, what is
below is merged upwards as far as the two have no node in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

BLOCK_SHIFT = 12
"""Blocks of 4,096 ordinals."""
FAN_SHIFT = 6
"""Nodes of 64 children."""
LEVELS = 10
"""(63 - 12) / 6 levels of nodes above the blocks, and the blocks."""


@kernel
def fold_sums(ordinals: Int64Array, values: Float64Array, starts: Int64Array, out: Float64Array) -> None:
    """out[g] = the sum of values[starts[g]:starts[g + 1]]; -0.0 of none.

    ordinals: int64[n], ascending within a group. out: float64[groups].
    """
    acc = np.empty(LEVELS, np.float64)
    has = np.empty(LEVELS, np.bool_)
    for group in range(starts.shape[0] - 1):
        begin, end = starts[group], starts[group + 1]
        if begin == end:
            out[group] = -0.0
            continue
        has[:] = False
        block = ordinals[begin] >> BLOCK_SHIFT
        total = values[begin]
        for i in range(begin + 1, end):
            entered = ordinals[i] >> BLOCK_SHIFT
            if entered == block:
                total += values[i]
                continue
            level = 1
            while True:
                acc[level] = acc[level] + total if has[level] else total
                has[level] = True
                if (block >> (FAN_SHIFT * level)) == (entered >> (FAN_SHIFT * level)):
                    break
                total = acc[level]
                has[level] = False
                level += 1
            block = entered
            total = values[i]
        for level in range(1, LEVELS):
            if has[level]:
                total = acc[level] + total
        out[group] = total


@kernel
def merge_moments(
    n: float, mean: float, square: float, m: float, other: float, squares: float
) -> tuple[float, float, float]:
    """(count, mean, squares) of two sets; one without members takes no part."""
    if n == 0.0:
        return m, other, squares
    if m == 0.0:
        return n, mean, square
    count = n + m
    apart = other - mean
    return count, mean + apart * m / count, square + squares + apart * apart * n * m / count


@kernel
def fold_moments(
    ordinals: Int64Array,
    values: Float64Array,
    starts: Int64Array,
    means: Float64Array,
    squares: Float64Array,
) -> None:
    """The mean and the sum of squared distances from it of each group, 0.0 of none.

    Within a block by Welford's update, between blocks by the pairwise one of Chan, Golub and LeVeque.
    """
    n = np.empty(LEVELS, np.float64)
    mean = np.empty(LEVELS, np.float64)
    square = np.empty(LEVELS, np.float64)
    for group in range(starts.shape[0] - 1):
        begin, end = starts[group], starts[group + 1]
        n[:] = 0.0
        m, a, s = 0.0, 0.0, 0.0
        block = np.int64(0)
        for i in range(begin, end):
            entered = ordinals[i] >> BLOCK_SHIFT
            if entered != block and m > 0.0:
                level = 1
                while True:
                    m, a, s = merge_moments(n[level], mean[level], square[level], m, a, s)
                    if (block >> (FAN_SHIFT * level)) == (entered >> (FAN_SHIFT * level)):
                        n[level], mean[level], square[level] = m, a, s
                        break
                    n[level] = 0.0
                    level += 1
                m, a, s = 0.0, 0.0, 0.0
            block = entered
            value = values[i]
            if m == 0.0:
                m, a, s = 1.0, value, 0.0
            else:
                m += 1.0
                before = value - a
                a += before / m
                s += before * (value - a)
        for level in range(1, LEVELS):
            m, a, s = merge_moments(n[level], mean[level], square[level], m, a, s)
        means[group] = a
        squares[group] = s


@kernel
def block_sums(ordinals: Int64Array, values: Float64Array, ids: Int64Array, sums: Float64Array) -> int:
    """The sum of each block that has a row, and the block's number; return how many there are.

    ordinals: int64[n], ascending. ids, sums: [>= blocks], written from the front.
    """
    count = 0
    for i in range(ordinals.shape[0]):
        block = ordinals[i] >> BLOCK_SHIFT
        if count > 0 and ids[count - 1] == block:
            sums[count - 1] += values[i]
        else:
            ids[count] = block
            sums[count] = values[i]
            count += 1
    return count


@kernel
def block_moments(
    ordinals: Int64Array,
    values: Float64Array,
    ids: Int64Array,
    n: Float64Array,
    means: Float64Array,
    squares: Float64Array,
) -> int:
    """The same of (count, mean, squares)."""
    count = 0
    for i in range(ordinals.shape[0]):
        block = ordinals[i] >> BLOCK_SHIFT
        value = values[i]
        if count > 0 and ids[count - 1] == block:
            place = count - 1
            n[place] += 1.0
            before = value - means[place]
            means[place] += before / n[place]
            squares[place] += before * (value - means[place])
        else:
            ids[count] = block
            n[count], means[count], squares[count] = 1.0, value, 0.0
            count += 1
    return count


@kernel
def fold_node_sums(levels: Int64Array, ids: Int64Array, values: Float64Array) -> float:
    """The sum of nodes of the tree, ascending and side by side; -0.0 of none.

    levels: int64[n], 0 for a block; ids: its number among the nodes of its level.
    """
    acc = np.empty(LEVELS + 1, np.float64)
    has = np.zeros(LEVELS + 1, np.bool_)
    total = -0.0
    for i in range(levels.shape[0]):
        if i > 0:
            level = levels[i - 1] + 1
            before = ids[i - 1] << (FAN_SHIFT * levels[i - 1])
            entered = ids[i] << (FAN_SHIFT * levels[i])
            while True:
                acc[level] = acc[level] + total if has[level] else total
                has[level] = True
                if (before >> (FAN_SHIFT * level)) == (entered >> (FAN_SHIFT * level)):
                    break
                total = acc[level]
                has[level] = False
                level += 1
        total = values[i]
    for level in range(1, LEVELS):
        if has[level]:
            total = acc[level] + total
    return total


@kernel
def fold_node_moments(
    levels: Int64Array, ids: Int64Array, n: Float64Array, means: Float64Array, squares: Float64Array
) -> tuple[float, float, float]:
    """The same of (count, mean, squares)."""
    acc = np.zeros((LEVELS + 1, 3), np.float64)
    m, a, s = 0.0, 0.0, 0.0
    for i in range(levels.shape[0]):
        if i > 0:
            level = levels[i - 1] + 1
            before = ids[i - 1] << (FAN_SHIFT * levels[i - 1])
            entered = ids[i] << (FAN_SHIFT * levels[i])
            while True:
                m, a, s = merge_moments(acc[level, 0], acc[level, 1], acc[level, 2], m, a, s)
                if (before >> (FAN_SHIFT * level)) == (entered >> (FAN_SHIFT * level)):
                    acc[level, 0], acc[level, 1], acc[level, 2] = m, a, s
                    break
                acc[level, 0] = 0.0
                level += 1
        m, a, s = n[i], means[i], squares[i]
    for level in range(1, LEVELS):
        m, a, s = merge_moments(acc[level, 0], acc[level, 1], acc[level, 2], m, a, s)
    return m, a, s


@kernel
def window_sum(
    blocks: Float64Array,
    above: Float64Array,
    place: int,
    slot: int,
    first: int,
    inner: Int64Array,
    ordinals: Int64Array,
    values: Float64Array,
) -> float:
    """The sum of a window of which the whole blocks were added up before.

    blocks, above: float64[words, nodes, 64], sums of blocks from number ``first`` on, and of nodes above, of
    which (place, slot) is read. inner: (low, up, down, high), blocks low to high of which those from up * 64
    to down * 64 are taken as nodes. ordinals, values: the rows before block low, and those from high on.
    """
    low, up, down, high = inner
    most = ordinals.shape[0] + high - low
    levels = np.zeros(most, np.int64)
    ids = np.empty(most, np.int64)
    sums = np.empty(most, np.float64)
    cut = np.searchsorted(ordinals, low << BLOCK_SHIFT)
    n = block_sums(ordinals[:cut], values[:cut], ids, sums)
    block = low
    while block < high:
        if up < down and block == up << FAN_SHIFT:
            for node in range(up, down):
                levels[n] = 1
                ids[n] = node
                sums[n] = above[place, node - (first >> FAN_SHIFT), slot]
                n += 1
            block = down << FAN_SHIFT
        else:
            ids[n] = block
            sums[n] = blocks[place, block - first, slot]
            n += 1
            block += 1
    n += block_sums(ordinals[cut:], values[cut:], ids[n:], sums[n:])
    return fold_node_sums(levels[:n], ids[:n], sums[:n])


@kernel
def window_moments(
    blocks: tuple[Float64Array, Float64Array, Float64Array],
    above: tuple[Float64Array, Float64Array, Float64Array],
    place: int,
    slot: int,
    first: int,
    inner: Int64Array,
    ordinals: Int64Array,
    values: Float64Array,
) -> tuple[float, float, float]:
    """The same of (count, mean, squares)."""
    low, up, down, high = inner
    most = ordinals.shape[0] + high - low
    levels = np.zeros(most, np.int64)
    ids = np.empty(most, np.int64)
    held = np.empty((3, most), np.float64)
    cut = np.searchsorted(ordinals, low << BLOCK_SHIFT)
    n = block_moments(ordinals[:cut], values[:cut], ids, held[0], held[1], held[2])
    block = low
    while block < high:
        if up < down and block == up << FAN_SHIFT:
            for node in range(up, down):
                levels[n] = 1
                ids[n] = node
                for i in range(3):
                    held[i, n] = above[i][place, node - (first >> FAN_SHIFT), slot]
                n += 1
            block = down << FAN_SHIFT
        else:
            ids[n] = block
            for i in range(3):
                held[i, n] = blocks[i][place, block - first, slot]
            n += 1
            block += 1
    n += block_moments(ordinals[cut:], values[cut:], ids[n:], held[0, n:], held[1, n:], held[2, n:])
    return fold_node_moments(levels[:n], ids[:n], held[0, :n], held[1, :n], held[2, :n])


@kernel
def window_total(
    blocks: Int64Array, above: Int64Array, place: int, slot: int, first: int, inner: Int64Array
) -> int:
    """The total of whole numbers over whole blocks, read in the same way."""
    low, up, down, high = inner
    total = 0
    if up >= down:
        for block in range(low, high):
            total += blocks[place, block - first, slot]
        return total
    for block in range(low, up << FAN_SHIFT):
        total += blocks[place, block - first, slot]
    for node in range(up, down):
        total += above[place, node - (first >> FAN_SHIFT), slot]
    for block in range(down << FAN_SHIFT, high):
        total += blocks[place, block - first, slot]
    return total
