"""Totals over a window of which whole blocks of rows, and nodes of 64 blocks, were added up before.

blocks, above: int64[words, nodes, 64], totals of blocks from number ``first`` on, and of nodes above, of
which (place, slot) is read. inner: (low, up, down, high), blocks low to high of which those from up * 64 to
down * 64 are taken as nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from engine.kernels import exact
from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]

BLOCK_SHIFT = 12
"""Blocks of 4,096 ordinals."""
FAN_SHIFT = 6
"""Nodes of 64 blocks."""


@kernel
def window_parts(
    blocks: npt.NDArray[Any], above: npt.NDArray[Any], place: int, slot: int, first: int, inner: Int64Array
) -> npt.NDArray[Any]:
    """What each block and node of the window holds, in order."""
    low, up, down, high = inner
    nodes = max(0, down - up)
    parts = np.empty(high - low - (nodes << FAN_SHIFT) + nodes, blocks.dtype)
    n = 0
    block = low
    while block < high:
        if nodes > 0 and block == up << FAN_SHIFT:
            for node in range(up, down):
                parts[n] = above[place, node - (first >> FAN_SHIFT), slot]
                n += 1
            block = down << FAN_SHIFT
        else:
            parts[n] = blocks[place, block - first, slot]
            n += 1
            block += 1
    return parts


@kernel
def put_parts(parts: Int64Array, at: int, limbs: Int64Array, span: Int64Array) -> None:
    """Add all parts * 2**at units to an exact total (:mod:`engine.kernels.exact`)."""
    for i in range(parts.shape[0]):
        exact.put(limbs, span, parts[i], at)
        if i % exact.CARRY_ROWS == exact.CARRY_ROWS - 1:
            exact.carry(limbs, span)
    exact.carry(limbs, span)
