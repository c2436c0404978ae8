"""Rows under fingerprints: 96 bits that stand for a row's values, and a table that counts rows by them.

Two chains of ``mixed`` run over the words of a row, from seeds that nobody outside the process knows. Rows
that differ have one fingerprint with a chance of 2^-96 a pair; whoever chooses the rows cannot raise it.

The table has open addressing: slot s holds ``first[s]``, ``second[s]``, how many rows (``held[s]``, 0: it is
empty) and whose (``owners[s]``). The home of a row is its first number scaled to the size, which may be any;
so a larger table has the rows in the same order, and is made in one pass over both. When a row goes, those
behind it move up, so that a search ends at the first empty slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step
from engine.kernels.sampling import mixed
from engine.kernels.strings import ByteArray, Int32Array, Int64Array, hash_of

Uint64Array = npt.NDArray[np.uint64]
Uint32Array = npt.NDArray[np.uint32]
Int8Array = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]

GROUP = 32
"""Rows whose homes are read before any is compared, so that the memory is waited for once."""

_HALF = np.uint64(32)
_NULL = np.uint64(0x9E3779B97F4A7C15)


class Slots(NamedTuple):
    """first: uint64[size]; second: uint32[size]; held, owners: int32[size]."""

    first: Uint64Array
    second: Uint32Array
    held: Int32Array
    owners: Int32Array


@kernel
def mix(words: Int64Array, null: BoolArray, chain: Uint64Array) -> None:
    """A column's values are mixed into a chain. null: bool[n], or bool[0]: none is; words there are any."""
    for row in range(words.shape[0]):
        if null.shape[0] and null[row]:
            chain[row] = mixed(mixed(chain[row]) ^ _NULL)
        else:
            chain[row] = mixed(chain[row] ^ np.uint64(words[row]))


@kernel
def string_words(
    offsets: Int32Array, given: ByteArray, codes: Int32Array, seed: np.uint64, out: Int64Array
) -> None:
    """out[i] = a word of the bytes of the string with code i, by a seed; 0 where there is no such code."""
    address = given.ctypes.data
    for i in range(codes.shape[0]):
        code = np.int64(codes[i])
        out[i] = 0
        if 0 <= code < offsets.shape[0] - 1:
            out[i] = np.int64(hash_of(given, address, int(offsets[code]), int(offsets[code + 1]), seed))


@step
def _home(number: np.uint64, size: int) -> int:
    """A place below the size, ascending with the number."""
    return np.int64(((number >> _HALF) * np.uint64(size)) >> _HALF)  # type: ignore[return-value]


@step
def _slot_of(number: np.uint64, other: np.uint32, slots: Slots) -> int:
    """The slot of a row, or the empty one where it would be."""
    size = slots.first.shape[0]
    slot = _home(number, size)
    while slots.held[slot] != 0 and (slots.first[slot] != number or slots.second[slot] != other):
        slot += 1
        if slot == size:
            slot = 0
    return slot


@step
def _take_out(slot: int, slots: Slots) -> None:
    """Empty a slot; those behind it move up, as far as they are not at home."""
    size = slots.first.shape[0]
    ahead = slot + 1 if slot + 1 < size else 0
    while slots.held[ahead] != 0:
        home = _home(slots.first[ahead], size)
        away = ahead - home if ahead >= home else ahead - home + size
        apart = ahead - slot if ahead >= slot else ahead - slot + size
        if away >= apart:
            slots.first[slot], slots.second[slot] = slots.first[ahead], slots.second[ahead]
            slots.held[slot], slots.owners[slot] = slots.held[ahead], slots.owners[ahead]
            slot = ahead
        ahead = ahead + 1 if ahead + 1 < size else 0
    slots.held[slot] = 0


@kernel
def number_copies(
    first: Uint64Array,
    second: Uint64Array,
    owners: Int32Array,
    weights: Int8Array,
    begin: int,
    slots: Slots,
    used: Int64Array,
    most: int,
    out: Int32Array,
) -> int:
    """out[i] = the copy of row i that a change brings or takes away, from 1, the last one that there is, from
    ``begin`` on; changes that take away a copy where there is none get 0. Return the first row that would be
    one more than ``most``. used: int64[1], how many different rows there are. O(n).
    """
    size = slots.first.shape[0]
    seen = np.int64(0)
    for start in range(begin, first.shape[0], GROUP):
        stop = min(start + GROUP, first.shape[0])
        for i in range(start, stop):
            seen += slots.held[_home(first[i], size)] + np.int64(slots.first[_home(first[i], size)] & _HALF)
        for i in range(start, stop):
            other = np.uint32(second[i])
            slot = _slot_of(first[i], other, slots)
            held = slots.held[slot]
            if weights[i] > 0:
                if held == 0:
                    if used[0] == most:
                        return i
                    used[0] += 1
                    slots.first[slot], slots.second[slot], slots.owners[slot] = first[i], other, owners[i]
                slots.held[slot] = held + 1
                out[i] = held + 1
                continue
            out[i] = held
            if held == 1:
                _take_out(slot, slots)
                used[0] -= 1
            elif held > 1:
                slots.held[slot] = held - 1
    return first.shape[0] if seen != -1 else 0


@kernel
def move(before: Slots, into: Slots, without: int) -> int:
    """Put all rows into other slots, which are empty and more; those of an owner are left out (-1: of none).
    Return how many there are. O(slots of both).
    """
    count = 0
    for slot in range(before.first.shape[0]):
        if before.held[slot] != 0 and before.owners[slot] != without:
            there = _slot_of(before.first[slot], before.second[slot], into)
            into.first[there], into.second[there] = before.first[slot], before.second[slot]
            into.held[there], into.owners[there] = before.held[slot], before.owners[slot]
            count += 1
    return count


@kernel
def misplaced(slots: Slots) -> int:
    """How many rows are not found where they are."""
    count = 0
    for slot in range(slots.first.shape[0]):
        if slots.held[slot] != 0 and _slot_of(slots.first[slot], slots.second[slot], slots) != slot:
            count += 1
    return count
