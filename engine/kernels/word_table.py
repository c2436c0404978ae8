"""Tuples of whole numbers under ids: a hash table of rows of *words*, whose ids are used again.

``places`` is int32[size], a power of two, open addressing: an id, EMPTY, or GONE where one was. ``words`` is
int64[capacity, width], the tuple of each id; ``free`` int32[capacity], a stack of ids that were given back.
``counts`` is int64[3]: ids ever given (TOP), ids in ``free`` (FREE), places that are not EMPTY (FILLED).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

EMPTY = -1
GONE = -2
TOP, FREE, FILLED = 0, 1, 2

_MIX = 0x9E3779B97F4A7C15


@kernel
def _home(words: Int64Array, row: int, mask: int) -> int:
    """Where the search for a tuple begins."""
    mixed = np.uint64(0)
    for place in range(words.shape[1]):
        mixed = (mixed ^ np.uint64(words[row, place])) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(mask))  # type: ignore[return-value]


@kernel
def _equal(words: Int64Array, row: int, others: Int64Array, other: int) -> bool:
    for place in range(words.shape[1]):  # noqa: SIM110 (compiled)
        if words[row, place] != others[other, place]:
            return False
    return True


@kernel
def number(
    coming: Int64Array,
    first: int,
    places: Int32Array,
    words: Int64Array,
    free: Int32Array,
    counts: Int64Array,
    out: Int32Array,
) -> int:
    """out[i] = the id of tuple ``coming[i]``, from ``first`` on; new tuples get ids. Return the first tuple
    that has none since the table is full: half of the places filled, or no id left.

    coming: int64[n, width]. O(n).
    """
    mask = places.shape[0] - 1
    for i in range(first, coming.shape[0]):
        place = _home(coming, i, mask)
        hole = -1
        while places[place] != EMPTY:
            known = places[place]
            if known == GONE:
                if hole < 0:
                    hole = place
            elif _equal(words, known, coming, i):
                break
            place = (place + 1) & mask
        if places[place] == EMPTY:
            if hole < 0:
                if 2 * counts[FILLED] >= places.shape[0]:
                    return i
                hole = place
            if counts[FREE] > 0:
                given = free[counts[FREE] - 1]
                counts[FREE] -= 1
            elif counts[TOP] < words.shape[0]:
                given = np.int32(counts[TOP])
                counts[TOP] += 1
            else:
                return i
            if places[hole] == EMPTY:
                counts[FILLED] += 1
            for word in range(coming.shape[1]):
                words[given, word] = coming[i, word]
            places[hole] = given
            place = hole
        out[i] = places[place]
    return int(coming.shape[0])


@kernel
def find(coming: Int64Array, places: Int32Array, words: Int64Array, out: Int32Array) -> None:
    """out[i] = the id of tuple ``coming[i]``, EMPTY where it has none. O(n)."""
    mask = places.shape[0] - 1
    for i in range(coming.shape[0]):
        place = _home(coming, i, mask)
        while places[place] != EMPTY:
            if places[place] != GONE and _equal(words, places[place], coming, i):
                break
            place = (place + 1) & mask
        out[i] = places[place]


@kernel
def release(
    ids: Int32Array, places: Int32Array, words: Int64Array, free: Int32Array, counts: Int64Array
) -> None:
    """Give back ids, each once, that are in use. O(n)."""
    mask = places.shape[0] - 1
    for i in range(ids.shape[0]):
        place = _home(words, ids[i], mask)
        while places[place] != ids[i]:
            place = (place + 1) & mask
        places[place] = GONE
        free[counts[FREE]] = ids[i]
        counts[FREE] += 1


@kernel
def rehash(ids: Int32Array, words: Int64Array, places: Int32Array, counts: Int64Array) -> None:
    """Put ids into places, all EMPTY and more than twice as many."""
    mask = places.shape[0] - 1
    for i in range(ids.shape[0]):
        place = _home(words, ids[i], mask)
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = ids[i]
    counts[FILLED] = ids.shape[0]
