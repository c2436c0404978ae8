"""Tables of strings: each distinct string once, as bytes, under a code 0, 1, 2, ...

A table is made of four arrays. ``places``: int32[power of two], codes by hash, open addressing, EMPTY where
none is. ``hashes``: uint64[room], of each string. ``starts``: int64[room + 1], where the bytes of each begin
in ``data``, uint8[], one after the other. Bytes below ``starts[count]`` never change, so readers may keep
views of them.

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

from engine.kernels.compiled import kernel

ByteArray = npt.NDArray[np.uint8]
HashArray = npt.NDArray[np.uint64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

EMPTY = -1
UNKNOWN = -1

_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def _load_word(typingctx: Any, address: Any) -> Any:
    """The eight bytes at an address, which need not be a multiple of eight, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return types.uint64(types.intp), generate


_word_at: Any = intrinsic(_load_word)


@kernel
def few_bytes(given: ByteArray, start: int, end: int) -> int:
    """At most eight bytes as a number, the first lowest."""
    word = np.uint64(0)
    for byte in range(end - start):
        word |= np.uint64(given[start + byte]) << np.uint64(8 * byte)
    return word  # type: ignore[return-value]


@kernel
def hash_of(given: ByteArray, start: int, end: int) -> int:
    """The hash of some bytes, by eight at a time; the last eight overlap with those before."""
    length = end - start
    mixed = np.uint64(length) * _ODD
    if length < 8:
        mixed = (mixed ^ np.uint64(few_bytes(given, start, end))) * _MIX
    else:
        address = given.ctypes.data
        for at in range(start, end - 8, 8):
            mixed = (mixed ^ _word_at(address + at)) * _MIX
            mixed ^= mixed >> _HALF
        mixed = (mixed ^ _word_at(address + end - 8)) * _MIX
    mixed ^= mixed >> _HALF
    mixed *= _ODD
    return mixed ^ (mixed >> _HALF)  # type: ignore[return-value]


@kernel
def is_same(given: ByteArray, start: int, other: ByteArray, there: int, length: int) -> bool:
    """Whether two runs of bytes are equal."""
    if length < 8:
        return few_bytes(given, start, start + length) == few_bytes(other, there, there + length)
    mine, its = given.ctypes.data + start, other.ctypes.data + there
    for at in range(0, length - 8, 8):
        if _word_at(mine + at) != _word_at(its + at):
            return False
    last = length - 8
    return _word_at(mine + last) == _word_at(its + last)  # type: ignore[no-any-return]


@kernel
def has_code(
    given: ByteArray,
    start: int,
    length: int,
    mixed: np.uint64,
    code: int,
    hashes: HashArray,
    starts: Int64Array,
    data: ByteArray,
) -> bool:
    """Whether a run of bytes, whose hash is ``mixed``, is the table's string with this code."""
    there = starts[code]
    return (
        hashes[code] == mixed
        and starts[code + 1] - there == length
        and is_same(given, start, data, there, length)
    )


@kernel
def number(
    offsets: Int32Array,
    given: ByteArray,
    begin: int,
    places: Int32Array,
    hashes: HashArray,
    starts: Int64Array,
    data: ByteArray,
    count: int,
    codes: Int32Array,
) -> tuple[int, int]:
    """Write the codes of strings ``begin`` and on; those that are new get the next codes.

    Returns (the first string that found no room, how many the table holds then). O(bytes).
    """
    mask = places.shape[0] - 1
    room = hashes.shape[0]
    for i in range(begin, codes.shape[0]):
        start, end = int(offsets[i]), int(offsets[i + 1])
        length = end - start
        mixed = np.uint64(hash_of(given, start, end))
        place = np.int64(mixed >> _HALF) & mask
        while True:
            code = places[place]
            if code == EMPTY:
                used = starts[count]
                if count >= room or used + length > data.shape[0]:
                    return i, count
                places[place] = count
                hashes[count] = mixed
                for byte in range(length):
                    data[used + byte] = given[start + byte]
                starts[count + 1] = used + length
                codes[i] = count
                count += 1
                break
            if has_code(given, start, length, mixed, code, hashes, starts, data):
                codes[i] = code
                break
            place = (place + 1) & mask
    return codes.shape[0], count


@kernel
def find(
    offsets: Int32Array,
    given: ByteArray,
    places: Int32Array,
    hashes: HashArray,
    starts: Int64Array,
    data: ByteArray,
    codes: Int32Array,
) -> int:
    """Write the code of each string, UNKNOWN where it has none. Returns how many have none. O(bytes)."""
    mask = places.shape[0] - 1
    missing = 0
    for i in range(codes.shape[0]):
        start, end = int(offsets[i]), int(offsets[i + 1])
        length = end - start
        mixed = np.uint64(hash_of(given, start, end))
        place = np.int64(mixed >> _HALF) & mask
        codes[i] = UNKNOWN
        while places[place] != EMPTY:
            code = places[place]
            if has_code(given, start, length, mixed, code, hashes, starts, data):
                codes[i] = code
                break
            place = (place + 1) & mask
        missing += codes[i] == UNKNOWN
    return missing


@kernel
def rehash(hashes: HashArray, count: int, places: Int32Array) -> None:
    """Enter the first ``count`` codes into ``places``, which are empty and have room for them."""
    mask = places.shape[0] - 1
    for code in range(count):
        place = np.int64(hashes[code] >> _HALF) & mask
        while places[place] != EMPTY:
            place = (place + 1) & mask
        places[place] = code


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
