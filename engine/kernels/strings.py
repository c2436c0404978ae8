"""Tables of strings: each distinct string once, as bytes, under a code 0, 1, 2, ...

A table is made of three arrays. ``places``: int64[power of two, 2], open addressing. The upper half of a
place's first number is the *tag* of a string, a part of its hash that also tells its place, the lower half
its code plus 1; EMPTY where none is. The second number has where its bytes begin, and in its lower half how
many they are. ``starts``: int32[room + 1], where the bytes of each string begin in ``data``, uint8[], one
after the other, as Arrow has them. What stands below ``starts[count]`` never changes, so readers may keep
views.

Strings come as Arrow has them: ``offsets``, int32[n + 1], into ``given``, uint8[]. They compare by their
UTF-8 bytes, which is the order of their characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.kernels.compiled import kernel, step
from engine.kernels.streaming import prefetch

ByteArray = npt.NDArray[np.uint8]
HashArray = npt.NDArray[np.uint64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

EMPTY = 0
UNKNOWN = -1
LOWER = 0xFFFFFFFF
"""The mask of the lower half of a place's numbers: the code plus 1, and the length of the string in bytes."""
BLOCK = 16
"""Strings that are looked for together: the processor drops what is asked for in advance if that is more."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
NO_SEED = np.uint64(0)


def _load_word(typingctx: Any, address: Any) -> Any:
    """The eight bytes at an address, which need not be a multiple of eight, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return types.uint64(types.intp), generate


_word_at: Any = intrinsic(_load_word)


@step
def last_word(given: ByteArray, address: int, start: int, end: int) -> np.uint64:
    """The last eight bytes of a run as a number, or all of fewer. ``address``: of ``given``."""
    length = end - start
    if length >= 8:
        return _word_at(address + end - 8)  # type: ignore[no-any-return]
    if end >= 8:  # what stands before the run is cut off
        shift = np.uint64(8 * (8 - length))
        return _word_at(address + end - 8) >> shift if length else np.uint64(0)
    word = np.uint64(0)
    for byte in range(length):
        word |= np.uint64(given[start + byte]) << np.uint64(8 * byte)
    return word


@step
def hash_of(given: ByteArray, address: int, start: int, end: int, seed: np.uint64) -> np.uint64:
    """The hash of some bytes, by eight at a time; the last eight overlap with those before."""
    mixed = np.uint64(end - start) * _ODD ^ seed
    at, last = address + start, address + end - 8
    while at < last:
        mixed = (mixed ^ _word_at(at)) * _MIX
        mixed ^= mixed >> _HALF
        at += 8
    mixed = (mixed ^ last_word(given, address, start, end)) * _MIX
    mixed = (mixed ^ (mixed >> _HALF)) * _ODD
    return mixed ^ (mixed >> _HALF)


@step
def is_string(given: ByteArray, address: int, start: int, end: int, where: int, data: ByteArray) -> bool:
    """Whether a run of bytes is the table's string there. ``where``: the second number of its place."""
    there, length = where >> 32, where & LOWER
    if length != end - start:
        return False
    its = data.ctypes.data
    if last_word(given, address, start, end) != last_word(data, its, there, there + length):
        return False
    at, last, beside = address + start, address + end - 8, its + there
    while at < last:
        if _word_at(at) != _word_at(beside):
            return False
        at += 8
        beside += 8
    return True


@step
def _tagged(places: Int64Array, tag: int, place: int, mask: int) -> int:
    """The first place from one on that is empty, or of a string with this tag."""
    entry = places[place, 0]
    while entry != EMPTY and entry >> 32 != tag:
        place = (place + 1) & mask
        entry = places[place, 0]
    return place


@kernel
def number(
    offsets: Int32Array,
    given: ByteArray,
    begin: int,
    places: Int64Array,
    starts: Int32Array,
    data: ByteArray,
    count: int,
    takes_in: bool,
    codes: Int32Array,
) -> tuple[int, int, int]:
    """Write the codes of strings ``begin`` and on. ``takes_in``: new ones get the next codes; else UNKNOWN.

    Returns (the first string that found no room, how many the table holds then, how many have no code).

    A block of strings is hashed, then their places are read, then the strings there: memory that a pass needs
    is asked for by the one before, so a large table costs little more than a small one. O(bytes).
    """
    mask = places.shape[0] - 1
    room = min(starts.shape[0] - 1, places.shape[0] >> 1)
    address, of_places, of_data = given.ctypes.data, places.ctypes.data, data.ctypes.data
    tags, found = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    missing = 0
    for first in range(begin, codes.shape[0], BLOCK):
        held = min(BLOCK, codes.shape[0] - first)
        for j in range(held):
            start, end = int(offsets[first + j]), int(offsets[first + j + 1])
            tags[j] = np.int64(hash_of(given, address, start, end, NO_SEED)) >> 32
            prefetch(of_places + 16 * (tags[j] & mask))  # type: ignore[call-arg]
        for j in range(held):
            found[j] = place = _tagged(places, tags[j], tags[j] & mask, mask)
            there = of_data + (places[place, 1] >> 32)
            prefetch(there)  # type: ignore[call-arg]
            prefetch(there + (places[place, 1] & LOWER))
        for j in range(held):
            i = first + j
            start, end = int(offsets[i]), int(offsets[i + 1])
            place = found[j]
            entry = places[place, 0]
            while entry != EMPTY:
                if entry >> 32 == tags[j] and is_string(given, address, start, end, places[place, 1], data):
                    break
                place = (place + 1) & mask
                entry = places[place, 0]
            if entry != EMPTY:
                codes[i] = (entry & LOWER) - 1
                continue
            if not takes_in:
                codes[i], missing = UNKNOWN, missing + 1
                continue
            used = int(starts[count])
            if count >= room or used + end - start > data.shape[0]:
                return i, count, missing
            places[place, 0], places[place, 1] = tags[j] << 32 | (count + 1), used << 32 | (end - start)
            for byte in range(end - start):
                data[used + byte] = given[start + byte]
            starts[count + 1] = used + end - start
            codes[i] = count
            count += 1
    return codes.shape[0], count, missing


@kernel
def lay_out(starts: Int32Array, codes: Int32Array, there: npt.NDArray[np.bool_], ends: Int64Array) -> None:
    """``ends``, int64[n + 1]: where each of the strings with these codes ends when they stand one after
    another, the first at ends[0] = 0. ``there``, bool[n]: the others are NULL and take nothing; bool[0]: all.
    """
    end = 0
    ends[0] = 0
    for i in range(len(codes)):
        if not len(there) or there[i]:
            end += starts[codes[i] + 1] - starts[codes[i]]
        ends[i + 1] = end


@kernel
def put_together(
    starts: Int32Array, data: ByteArray, codes: Int32Array, ends: Int64Array, out: ByteArray
) -> None:
    """Write the strings with these codes where ``ends`` says. O(bytes)."""
    for i in range(len(codes)):
        start = starts[codes[i]] - ends[i]
        for at in range(ends[i], ends[i + 1]):
            out[at] = data[start + at]


@kernel
def rehash(before: Int64Array, places: Int64Array) -> None:
    """Enter what stands in fewer places into more, which are empty."""
    mask = places.shape[0] - 1
    for at in range(before.shape[0]):
        if before[at, 0] == EMPTY:
            continue
        place = (before[at, 0] >> 32) & mask
        while places[place, 0] != EMPTY:
            place = (place + 1) & mask
        places[place, 0] = before[at, 0]
        places[place, 1] = before[at, 1]


@kernel
def prefix_of(given: ByteArray, start: int, end: int) -> int:
    """The first eight bytes as a number that orders as they do; zeros where there are fewer."""
    prefix = np.uint64(0)
    for byte in range(8):
        prefix <<= np.uint64(8)
        if start + byte < end:
            prefix |= np.uint64(given[start + byte])
    return prefix  # type: ignore[return-value]


@kernel
def prefixes(offsets: Int32Array, given: ByteArray, out: HashArray) -> None:
    """The prefix of each string."""
    for i in range(out.shape[0]):
        out[i] = prefix_of(given, int(offsets[i]), int(offsets[i + 1]))


@kernel
def is_less(given: ByteArray, start: int, end: int, other: ByteArray, first: int, last: int) -> bool:
    """Whether one run of bytes comes before another."""
    length = min(end - start, last - first)
    for byte in range(length):
        mine, its = given[start + byte], other[first + byte]
        if mine != its:
            return bool(mine < its)
    return end - start < last - first


@kernel
def count_up_to(
    offsets: Int32Array,
    given: ByteArray,
    wanted: Int32Array,
    sorted_offsets: Int32Array,
    sorted_data: ByteArray,
    sorted_prefixes: HashArray,
    out: Int64Array,
) -> None:
    """out[i]: how many of some ascending strings are at or below string i, where ``wanted[i]`` is UNKNOWN.

    O(log strings) each.
    """
    for i in range(out.shape[0]):
        if wanted[i] != UNKNOWN:
            continue
        start, end = int(offsets[i]), int(offsets[i + 1])
        prefix = np.uint64(prefix_of(given, start, end))
        low, high = 0, sorted_prefixes.shape[0]
        while low < high:
            middle = (low + high) >> 1
            its = sorted_prefixes[middle]
            if its == prefix:
                first, last = int(sorted_offsets[middle]), int(sorted_offsets[middle + 1])
                below = not is_less(given, start, end, sorted_data, first, last)
            else:
                below = its < prefix
            if below:
                low = middle + 1
            else:
                high = middle
        out[i] = low
