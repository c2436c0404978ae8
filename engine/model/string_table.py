"""Strings under codes 0, 1, 2, ... in the order in which they first came; append-only.

One table serves whoever has to tell equal strings of many batches: the open segment of a stream, the keys of
joins, the constants of predicates. It holds bytes, not Python objects: a look-up is a compiled pass over a
whole dictionary, some 40 ns a string as long as the table is in the processor's cache.

What was read from a table stays as it is when more strings come. One writer; :meth:`StringTable.array` may be
called by other threads.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.kernels import strings
from engine.kernels.strings import ByteArray, HashArray, Int32Array, Int64Array

ROOM_MIN = 256
BYTES_A_STRING = 16
"""Expected, at the start."""
ARROW_BYTES_MAX = 2**31 - 1
"""Bytes that one Arrow array of strings may hold."""

_NO_BYTES: ByteArray = np.zeros(0, np.uint8)


def buffers_of(array: pa.StringArray) -> tuple[Int32Array, ByteArray]:
    """(offsets int32[n + 1], bytes) of an Arrow array without NULL, not copied."""
    _, offsets, data = array.buffers()
    n = len(array)
    if offsets is None or not n:
        return np.zeros(n + 1, np.int32), _NO_BYTES
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + n + 1]
    return places, _NO_BYTES if data is None else np.frombuffer(data, np.uint8)


class StringTable:
    """Codes of strings."""

    def __init__(self, room: int = ROOM_MIN) -> None:
        """room: how many strings fit before the table grows."""
        self._count = 0
        self._hashes: HashArray = np.empty(room, np.uint64)
        self._starts: Int64Array = np.zeros(room + 1, np.int64)
        self._data: ByteArray = np.empty(room * BYTES_A_STRING, np.uint8)
        self._places = _empty_places(room)
        self._array: pa.StringArray = pa.array([], pa.string())

    def __len__(self) -> int:
        return self._count

    def number(self, array: pa.StringArray) -> Int32Array:
        """The codes of strings, without NULL; new ones are taken in. O(bytes)."""
        offsets, given = buffers_of(array)
        codes = np.empty(len(array), np.int32)
        done = 0
        while True:
            done, self._count = strings.number(
                offsets,
                given,
                done,
                self._places,
                self._hashes,
                self._starts,
                self._data,
                self._count,
                codes,
            )
            if done == len(codes):
                return codes
            self._grow(int(offsets[-1]) - int(offsets[done]), len(codes) - done)

    def find(self, array: pa.StringArray) -> tuple[Int32Array, int]:
        """(codes of strings, UNKNOWN where they have none; how many have none). O(bytes)."""
        offsets, given = buffers_of(array)
        codes = np.empty(len(array), np.int32)
        missing = strings.find(offsets, given, self._places, self._hashes, self._starts, self._data, codes)
        return codes, missing

    def array(self) -> pa.StringArray:
        """All strings by code, without a copy of their bytes; kept until more come."""
        if len(self._array) != self._count:
            self._array = self._arrow()
        return self._array

    def only(self, codes: Int64Array) -> StringTable:
        """A table of the strings with these codes, in this order, no two alike."""
        fewer = StringTable(max(ROOM_MIN, len(codes)))
        fewer.number(self.array().take(pa.array(codes)))
        return fewer

    @property
    def used_bytes(self) -> int:
        """Bytes of all strings."""
        return int(self._starts[self._count])

    @property
    def nbytes(self) -> int:
        """What the table takes."""
        return self._hashes.nbytes + self._starts.nbytes + self._data.nbytes + self._places.nbytes

    def _arrow(self) -> pa.StringArray:
        """Readers call this while strings come: what is below the count is there before it is counted."""
        count = self._count
        starts = self._starts
        used = int(starts[count])
        if used > ARROW_BYTES_MAX:
            raise OverflowError(f"{used:,} bytes of strings do not fit into one array")
        offsets = starts[: count + 1].astype(np.int32)
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(self._data[:used]))

    def _grow(self, more_bytes: int, more: int) -> None:
        """Make room for at most so many strings more, at least by half of what there is."""
        count, used = self._count, self.used_bytes
        if count == len(self._hashes):
            room = count + max(count, min(more, count + ROOM_MIN))
            hashes, starts = np.empty(room, np.uint64), np.zeros(room + 1, np.int64)
            hashes[:count] = self._hashes[:count]
            starts[: count + 1] = self._starts[: count + 1]
            self._hashes, self._starts = hashes, starts
            self._places = _empty_places(room)
            strings.rehash(hashes, count, self._places)
        if used + more_bytes > len(self._data):
            data = np.empty(used + max(used >> 1, more_bytes), np.uint8)
            data[:used] = self._data[:used]
            self._data = data

    def _check(self) -> None:
        values = self.array().to_pylist()
        assert len(set(values)) == self._count
        codes, missing = self.find(self.array())
        assert missing == 0
        assert codes.tolist() == list(range(self._count))


def _empty_places(room: int) -> Int32Array:
    """Half empty when the room is used."""
    return np.full(1 << (2 * room - 1).bit_length(), strings.EMPTY, np.int32)
