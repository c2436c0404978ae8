"""Codes of strings, and what is known by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.kernels import grouping
from engine.kernels.strings import UNKNOWN, Int32Array, Int64Array

if TYPE_CHECKING:
    from engine.model.string_table import StringTable

Work = Callable[[pa.StringArray], npt.NDArray[np.integer]]
"""Computes an integer for each of some strings, none of them NULL. O(strings)."""

NOT_YET = 2**63 - 1
"""Stands where nothing was worked out; no value is this."""


def used_codes(values: Int32Array) -> tuple[Int32Array, Int32Array]:
    """Codes numbered anew, without gaps: new codes of the values, the old code of each. O(rows)."""
    places = np.full(1 << (2 * len(values) + 1).bit_length(), -1, np.int32)
    codes, used = np.empty(len(values), np.int32), np.empty(len(values), np.int32)
    return codes, used[: grouping.distinct(np.ascontiguousarray(values), places, codes, used)]


_NOTHING: Int64Array = np.empty(0, np.int64)


class CodeValues:
    """What was worked out of the strings of tables, an int64 each, kept by code: whoever asks again gathers.

    A table that is gone takes its values with it. One writer.
    """

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[StringTable, tuple[Int64Array, int]] = WeakKeyDictionary()

    def take(self, table: StringTable, codes: Int32Array, out: Int64Array, work: Work) -> None:
        """Write the value of each of the table's codes; those that nobody asked for yet are worked out.

        work: always the same; it is not kept, as it may hold this. O(codes) and the work.
        """
        if not len(table):
            out[:] = 0  # rows without a string, being NULL
            return
        held = self._values_of(table, 2 * len(codes), work)
        np.take(held, codes, out=out, mode="clip")
        new = np.flatnonzero(out == NOT_YET)
        if len(new):
            _, wanted = used_codes(codes[new])
            held[wanted] = work(table.array().take(pa.array(wanted)))
            out[new] = held[codes[new]]

    def put(self, strings: pa.StringArray, values: Int64Array) -> None:
        """Give these strings, no two alike, other values from now on. O(strings), a table."""
        for table, (held, known) in self._held.items():
            codes, _ = table.find(strings)
            there = (codes != UNKNOWN) & (codes < known)
            held[codes[there]] = values[there]

    def forget(self) -> None:
        """All are to be worked out again."""
        for held, known in self._held.values():
            held[:known] = NOT_YET

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(held.nbytes for held, _ in self._held.values())

    def _values_of(self, table: StringTable, at_once: int, work: Work) -> Int64Array:
        """Values by code. at_once: so many new strings, lying together, are worked out unasked."""
        count = len(table)
        held, known = self._held.get(table, (_NOTHING, 0))
        if known == count:
            return held
        if len(held) < count:
            longer = np.empty(max(count, known + (known >> 1)), np.int64)
            longer[:known] = held[:known]
            held = longer
        new = held[known:count]
        new[:] = work(table.array().slice(known, len(new))) if len(new) <= at_once else NOT_YET
        self._held[table] = held, count
        return held
