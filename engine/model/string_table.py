"""Strings under codes 0, 1, 2, ... in the order in which they first came; append-only.

One table serves whoever has to tell equal strings of many batches: a column of a stream, the keys of joins,
the constants of predicates. It holds bytes, not Python objects: a look-up is a compiled pass over a whole
array, some 15 ns a string of 15 bytes while the table is in the processor's cache, 40 ns where it is not.

What was read from a table stays as it is when more strings come. One writer; :meth:`StringTable.array` may be
called by other threads.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.kernels import strings
from engine.kernels.strings import ByteArray, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.codes import CodeValues
from engine.model.growing import Growing
from engine.model.spill import SpillSpace

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

    def __init__(self, capacities: Capacities = USUAL, room: int = 0) -> None:
        """room: how many strings fit before the table grows, if more than it usually begins with."""
        self._capacities = capacities
        room = max(capacities.first(ROOM_MIN), room)
        self._count = 0
        self._starts = Growing(np.zeros(room + 1, np.int32), appended=True)
        data = np.empty(room * BYTES_A_STRING, np.uint8)
        self._data = Growing(data, appended=True, most=ARROW_BYTES_MAX)
        self._places = Growing(np.zeros((1 << (2 * room - 1).bit_length(), 2), np.int64), appended=False)
        self._array: pa.StringArray = pa.array([], pa.string())
        self._code_of: CodeValues | None = None
        self.is_spilled = False
        """Whether the strings are on disk."""

    def __len__(self) -> int:
        return self._count

    def number(self, array: pa.StringArray) -> Int32Array:
        """The codes of strings, without NULL; new ones are taken in. O(bytes)."""
        offsets, given = buffers_of(array)
        codes = np.empty(len(array), np.int32)
        done = 0
        while True:
            count, used = self._count, self.used_bytes
            done, self._count, _ = self._look_up(offsets, given, done, codes, takes_in=True)
            self._starts.prepare(self._count, self._count - count)
            self._places.prepare(2 * self._count, 2 * (self._count - count))
            self._data.prepare(self.used_bytes, self.used_bytes - used)
            if done == len(codes):
                return codes
            self._grow(int(offsets[-1]) - int(offsets[done]))

    def find(self, array: pa.StringArray) -> tuple[Int32Array, int]:
        """(codes of strings, UNKNOWN where they have none; how many have none). O(bytes)."""
        codes = np.empty(len(array), np.int32)
        _, _, missing = self._look_up(*buffers_of(array), 0, codes, takes_in=False)
        return codes, missing

    def codes_of(self, other: StringTable, codes: Int32Array) -> Int32Array:
        """The codes here of another table's; strings that are new here are taken in.

        O(codes + bytes of the strings that nobody asked for before).
        """
        if self._code_of is None:
            self._code_of = CodeValues()
        here = np.empty(len(codes), np.int64)
        self._code_of.take(other, codes, here, self.number)
        return here.astype(np.int32)

    def _look_up(
        self, offsets: Int32Array, given: ByteArray, begin: int, codes: Int32Array, *, takes_in: bool
    ) -> tuple[int, int, int]:
        """See :func:`engine.kernels.strings.number`."""
        places, starts, data = self._places.array, self._starts.array, self._data.array
        found: tuple[int, int, int] = strings.number(
            offsets, given, begin, places, starts, data, self._count, takes_in, codes
        )
        return found

    def array(self) -> pa.StringArray:
        """All strings by code, without a copy; the same object until more come.

        Readers call this while strings come: what is below the count is there before it is counted.
        """
        array = self._array
        count = self._count
        if len(array) < count:
            starts, data = pa.py_buffer(self._starts.array[: count + 1]), pa.py_buffer(self._data.array)
            array = self._array = pa.StringArray.from_buffers(count, starts, data)
        return array

    def buffers(self) -> tuple[Int32Array, ByteArray]:
        """(where each string begins, int32, and the last ends; the bytes of all). As :meth:`array`."""
        return self._starts.array, self._data.array

    def only(self, codes: Int64Array) -> StringTable:
        """A table of the strings with these codes, in this order, no two alike."""
        fewer = StringTable(self._capacities, len(codes))
        fewer.number(self.array().take(pa.array(codes)))
        return fewer

    @property
    def used_bytes(self) -> int:
        """Bytes of all strings."""
        return int(self._starts.array[self._count])

    @property
    def nbytes(self) -> int:
        """What the table takes of memory, and what it knows of the codes of others."""
        kept = 0 if self._code_of is None else self._code_of.nbytes
        if self.is_spilled:
            return kept
        ahead = sum(one.ahead_bytes for one in (self._starts, self._data, self._places))
        return 4 * self._count + self.used_bytes + self._places.array.nbytes + ahead + kept

    def spill(self, space: SpillSpace) -> int:
        """Have the strings on disk; no more are expected, but may come. Returns the bytes that leave memory;
        0: there is no room on disk, or they are there already. O(bytes).
        """
        if self.is_spilled:
            return 0
        before = self.nbytes
        held = [
            self._starts.array[: self._count + 1],
            self._data.array[: self.used_bytes],
            self._places.array,
        ]
        written = space.write(held)
        if written is None:
            return 0
        self.is_spilled = True
        for growing, array in zip((self._starts, self._data, self._places), written, strict=True):
            growing.replace(array)
        self._array = pa.array([], pa.string())
        return before - self.nbytes

    def _grow(self, more_bytes: int) -> None:
        """Make room for some strings more, with so many bytes that are still to come."""
        count, used, self.is_spilled = self._count, self.used_bytes, False
        if 2 * count >= len(self._places.array):
            strings.rehash(self._places.grow(2 * count), self._places.array)
        if count + 1 == len(self._starts.array):
            self._starts.grow(count + 1)
        if used + more_bytes > len(self._data.array):
            if len(self._data.array) == ARROW_BYTES_MAX:
                raise OverflowError(f"{used + more_bytes:,} bytes of strings do not fit into one array")
            self._data.grow(used, used + more_bytes)

    def _check(self) -> None:
        values = self.array().to_pylist()
        assert len(set(values)) == self._count
        codes, missing = self.find(self.array())
        assert missing == 0
        assert codes.tolist() == list(range(self._count))
