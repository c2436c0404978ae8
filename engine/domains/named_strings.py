"""Labels of named strings, as a batch's strings look for them: by compiled passes over bytes.

A string that is named has its label, any other the label of the greatest named one below it, plus 1; KEY_MIN
below all. The named strings lie in a table of hashes; for those that are not named they also lie in order, in
two runs: a long one, and a short one of those that came since it was made. So a new string costs the short
run, and the long one is made again once in RECENT_MAX of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from engine.kernels import strings
from engine.kernels.strings import Int64Array
from engine.model.batch import Column
from engine.model.capacities import USUAL, Capacities
from engine.model.codes import CodeValues
from engine.model.string_table import StringTable, buffers_of

KEY_MIN = -(2**63)
RECENT_MAX = 512


class SortedStrings:
    """Strings in ascending order, with their labels."""

    def __init__(self, labels: Iterable[tuple[str, int]]) -> None:
        pairs = sorted(labels)
        self._offsets, self._data = buffers_of(pa.array([string for string, _ in pairs], pa.string()))
        self._prefixes = np.empty(len(pairs), np.uint64)
        strings.prefixes(self._offsets, self._data, self._prefixes)
        self._gaps = np.array([KEY_MIN, *(label + 1 for _, label in pairs)], np.int64)

    def gaps(self, array: pa.StringArray, codes: strings.Int32Array) -> Int64Array:
        """The gap of each string whose code is UNKNOWN: one above the label below it, or KEY_MIN."""
        places = np.zeros(len(array), np.int64)
        offsets, given = buffers_of(array)
        strings.count_up_to(offsets, given, codes, self._offsets, self._data, self._prefixes, places)
        return self._gaps[places]


class NamedStrings:
    """Used by the engine's writer alone."""

    def __init__(self, labels: Mapping[str, int] | None = None, capacities: Capacities = USUAL) -> None:
        self._table = StringTable(capacities)
        self._label_of: Int64Array = np.empty(0, np.int64)
        self._coming = list((labels or {}).items())
        self._settled: list[tuple[str, int]] = []
        self._recent: list[tuple[str, int]] = []
        self._long: SortedStrings | None = None
        self._short: SortedStrings | None = None
        self._key_of = CodeValues()
        self._ordered = False

    def add(self, string: str, label: int) -> None:
        """Name another string."""
        self._coming.append((string, label))

    def keys_of(self, column: Column, out: Int64Array, *, ordered: bool) -> None:
        """Write the key of each row; not ordered: KEY_MIN of all that are not named. Anything where NULL.

        O(rows + bytes of distinct strings); of a source's strings only those that are asked for the first
        time, or after another was named among ordered ones.
        """
        if ordered != self._ordered:
            self._ordered = ordered
            self._key_of.forget()
        self._take_in()
        if isinstance(column.strings, StringTable):
            self._key_of.take(column.strings, column.values, out, self._keys)
            return
        short = column.short()
        assert short.dictionary is not None
        if len(short.dictionary):
            np.take(self._keys(short.dictionary), short.values, out=out, mode="clip")
        else:
            out[:] = 0

    def _keys(self, array: pa.StringArray) -> Int64Array:
        if not len(self._table):
            return np.full(len(array), KEY_MIN, np.int64)
        codes, missing = self._table.find(array)
        keys = self._label_of[codes]  # UNKNOWN takes the last
        if missing:
            unnamed = codes == strings.UNKNOWN
            keys[unnamed] = self._gaps(array, codes)[unnamed] if self._ordered else KEY_MIN
        return keys

    def _take_in(self) -> None:
        if not self._coming:
            return
        named = pa.array([string for string, _ in self._coming], pa.string())
        self._table.number(named)
        coming = np.fromiter((label for _, label in self._coming), np.int64, len(self._coming))
        if self._ordered:
            self._key_of.forget()  # a gap became two
        else:
            self._key_of.put(named, coming)
        self._label_of = np.concatenate([self._label_of, coming])
        self._recent += self._coming
        self._coming = []
        self._short = None

    def _gaps(self, array: pa.StringArray, codes: strings.Int32Array) -> Int64Array:
        if self._long is None or len(self._recent) > RECENT_MAX:
            self._settled += self._recent
            self._recent = []
            self._long, self._short = SortedStrings(self._settled), None
        gaps = self._long.gaps(array, codes)
        if not self._recent:
            return gaps
        if self._short is None:
            self._short = SortedStrings(self._recent)
        return np.maximum(gaps, self._short.gaps(array, codes))

    def _check(self, labels: Mapping[str, int]) -> None:
        assert {*self._settled, *self._recent, *self._coming} == set(labels.items())
        named = [string for string, _ in self._settled + self._recent]
        array = pa.array(named, pa.string())
        assert self._table.array().to_pylist() == named
        assert self._label_of.tolist() == [labels[string] for string in named]
        assert self._table.find(array)[1] == 0
