"""Ids of pairs of small numbers in a table with a place for each pair: the dense form of
:mod:`engine.kernels.word_table`, with the same ``words``, ``free`` and ``counts``.

``dense`` is int32[keys, places]: the id of each pair, or EMPTY. The word of a pair is key << 32 | place.
Pairs of a key whose places ascend lie side by side, and so do the ids that they get together, as a rule.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.word_table import EMPTY, FREE, TOP

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

PLACE_BITS = 32
PLACE_MASK = (1 << PLACE_BITS) - 1


@kernel
def number(
    keys: Int32Array,
    places: Int32Array,
    first: int,
    dense: Int32Array,
    words: Int64Array,
    free: Int32Array,
    counts: Int64Array,
    out: Int32Array,
) -> int:
    """out[i] = the id of pair i, from ``first`` on; new pairs get ids. Return the first pair that has none
    since no id is left. O(n).
    """
    for i in range(first, keys.shape[0]):
        given = dense[keys[i], places[i]]
        if given == EMPTY:
            if counts[FREE] > 0:
                counts[FREE] -= 1
                given = free[counts[FREE]]
            elif counts[TOP] < words.shape[0]:
                given = np.int32(counts[TOP])
                counts[TOP] += 1
            else:
                return i
            words[given, 0] = np.int64(keys[i]) << PLACE_BITS | np.int64(places[i])
            dense[keys[i], places[i]] = given
        out[i] = given
    return int(keys.shape[0])


@kernel
def release(
    ids: Int32Array, dense: Int32Array, words: Int64Array, free: Int32Array, counts: Int64Array
) -> None:
    """Give back ids, each once, that are in use; the first of them are given first again. O(n)."""
    for i in range(ids.shape[0] - 1, -1, -1):
        word = words[ids[i], 0]
        dense[word >> PLACE_BITS, word & PLACE_MASK] = EMPTY
        free[counts[FREE]] = ids[i]
        counts[FREE] += 1


@kernel
def lay_out(ids: Int32Array, words: Int64Array, dense: Int32Array) -> None:
    """Put ids that are in use into a table, all EMPTY."""
    for given in ids:
        word = words[given, 0]
        dense[word >> PLACE_BITS, word & PLACE_MASK] = given
