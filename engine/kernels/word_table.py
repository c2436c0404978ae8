"""Tuples of whole numbers under ids: a hash table of rows of *words*, whose ids are used again.

``slots`` is int64[size], a power of two, open addressing: EMPTY, or the hash of a tuple << 32 | its id.
``words`` is int64[capacity, width], the tuple of each id; ``free`` int32[capacity], a stack of ids that were
given back. ``counts`` is int64[2]: ids ever given (TOP), ids in ``free`` (FREE). When a tuple goes, those
behind it move up, so that a search ends at the first empty slot.

Tuples are looked at in groups: all slots and words of a group are read before any is compared, so that the
memory is waited for once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

EMPTY = -1
TOP, FREE = 0, 1
GROUP = 32

_MIX = 0x9E3779B97F4A7C15
_HASH = 0x7FFFFFFF
_ID = 0xFFFFFFFF


@kernel
def _hash(words: Int64Array, row: int) -> int:
    """The hash of a tuple, 31 bits."""
    mixed = np.uint64(0)
    for place in range(words.shape[1]):
        mixed = (mixed ^ np.uint64(words[row, place])) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(_HASH))  # type: ignore[return-value]


@kernel
def _equal(words: Int64Array, row: int, others: Int64Array, other: int) -> bool:
    for place in range(words.shape[1]):  # noqa: SIM110 (compiled)
        if words[row, place] != others[other, place]:
            return False
    return True


@kernel
def _look_ahead(
    coming: Int64Array, first: int, stop: int, slots: Int64Array, words: Int64Array, hashes: Int64Array
) -> None:
    """Write the hashes of tuples [first, stop), and read what is at their homes. hashes: int64[2 * GROUP],
    the second half for nothing else.
    """
    mask = slots.shape[0] - 1
    for i in range(first, stop):
        hashed = _hash(coming, i)
        hashes[i - first] = hashed
        hashes[GROUP + i - first] = slots[hashed & mask]
    for i in range(stop - first):
        known = hashes[GROUP + i]
        if known >= 0:
            hashes[GROUP + i] = words[known & _ID, 0]


@kernel
def _slot_of(coming: Int64Array, i: int, hashed: int, slots: Int64Array, words: Int64Array) -> int:
    """The slot of tuple ``coming[i]``, or the empty one where it would be."""
    mask = slots.shape[0] - 1
    slot = hashed & mask
    while True:
        known = slots[slot]
        if known == EMPTY or (known >> 32 == hashed and _equal(words, known & _ID, coming, i)):
            return int(slot)
        slot = (slot + 1) & mask


@kernel
def _put(
    coming: Int64Array,
    i: int,
    hashed: int,
    slot: int,
    slots: Int64Array,
    words: Int64Array,
    free: Int32Array,
    counts: Int64Array,
) -> int:
    """Give an id to tuple ``coming[i]``, at its slot; EMPTY: the table is full."""
    if 2 * (counts[TOP] - counts[FREE]) >= slots.shape[0]:
        return EMPTY
    if counts[FREE] > 0:
        given = np.int64(free[counts[FREE] - 1])
        counts[FREE] -= 1
    elif counts[TOP] < words.shape[0]:
        given = counts[TOP]
        counts[TOP] += 1
    else:
        return EMPTY
    for word in range(coming.shape[1]):
        words[given, word] = coming[i, word]
    slots[slot] = np.int64(hashed) << 32 | given
    return int(given)


@kernel
def _take_out(slot: int, slots: Int64Array) -> None:
    """Empty a slot; those behind it move up, as far as they are not at home."""
    mask = slots.shape[0] - 1
    ahead = (slot + 1) & mask
    while slots[ahead] != EMPTY:
        home = (slots[ahead] >> 32) & mask
        if (ahead - home) & mask >= (ahead - slot) & mask:
            slots[slot] = slots[ahead]
            slot = ahead
        ahead = (ahead + 1) & mask
    slots[slot] = EMPTY


@kernel
def number(
    coming: Int64Array,
    first: int,
    slots: Int64Array,
    words: Int64Array,
    free: Int32Array,
    counts: Int64Array,
    out: Int32Array,
) -> int:
    """out[i] = the id of tuple ``coming[i]``, from ``first`` on; new tuples get ids. Return the first tuple
    that has none since the table is full: half of the slots filled, or no id left.

    coming: int64[n, width]. O(n).
    """
    hashes = np.empty(2 * GROUP, np.int64)
    for start in range(first, coming.shape[0], GROUP):
        stop = min(start + GROUP, coming.shape[0])
        _look_ahead(coming, start, stop, slots, words, hashes)
        for i in range(start, stop):
            hashed = hashes[i - start]
            slot = _slot_of(coming, i, hashed, slots, words)
            given = slots[slot]
            if given == EMPTY:
                given = _put(coming, i, hashed, slot, slots, words, free, counts)
                if given == EMPTY:
                    return i
            out[i] = given & _ID
    return int(coming.shape[0])


@kernel
def find(coming: Int64Array, slots: Int64Array, words: Int64Array, out: Int32Array) -> None:
    """out[i] = the id of tuple ``coming[i]``, EMPTY where it has none. O(n)."""
    hashes = np.empty(2 * GROUP, np.int64)
    for start in range(0, coming.shape[0], GROUP):
        stop = min(start + GROUP, coming.shape[0])
        _look_ahead(coming, start, stop, slots, words, hashes)
        for i in range(start, stop):
            known = slots[_slot_of(coming, i, hashes[i - start], slots, words)]
            out[i] = EMPTY if known == EMPTY else known & _ID


@kernel
def release(
    ids: Int32Array, slots: Int64Array, words: Int64Array, free: Int32Array, counts: Int64Array
) -> None:
    """Give back ids, each once, that are in use. O(n)."""
    mask = slots.shape[0] - 1
    hashes = np.empty(2 * GROUP, np.int64)
    for start in range(0, ids.shape[0], GROUP):
        stop = min(start + GROUP, ids.shape[0])
        for i in range(start, stop):
            hashes[i - start] = _hash(words, ids[i])
        for i in range(stop - start):
            hashes[GROUP + i] = slots[hashes[i] & mask]
        for i in range(start, stop):
            wanted = hashes[i - start] << 32 | np.int64(ids[i])
            slot = hashes[i - start] & mask
            while slots[slot] != wanted:
                slot = (slot + 1) & mask
            _take_out(slot, slots)
            free[counts[FREE]] = ids[i]
            counts[FREE] += 1


@kernel
def rehash(ids: Int32Array, words: Int64Array, slots: Int64Array) -> None:
    """Put ids into slots, all EMPTY and more than there are ids."""
    mask = slots.shape[0] - 1
    for i in range(ids.shape[0]):
        hashed = _hash(words, ids[i])
        slot = hashed & mask
        while slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = hashed << 32 | np.int64(ids[i])
