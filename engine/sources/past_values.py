"""Values that were there, beyond RETAIN: by their hashes, so that one that comes again is told.

A row whose value comes again after RETAIN enters all the same, so that what is known of the past changes no
answer. 64 bits of a value are kept: one in some 10^13 is taken for another at VALUES_MAX, which errs by
telling too much. Whole numbers stand for themselves (:mod:`engine.sources.past_numbers`). Of more values
those that went first are forgotten, half of them at once, and counted.

Cost: O(n log VALUES_MAX) for n values; some 1.5 us a distinct string.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.kernels import intervals
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.types import Kind

VALUES_MAX = 1 << 18
"""The most values of one constraint that are known; half as many are known at least, once there were so many.
"""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_UNMIX = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_SHIFT = np.uint64(29)
NO_HASHES: Int64Array = np.empty(0, np.int64)


class PastValues:
    """The hashes of past values of one constraint. values_max: how many it may hold, as VALUES_MAX."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        self._half = max(1, values_max // 2)
        self.forgotten = 0
        """Values that are not known any more: one of them that comes again is not told."""
        self._old, self._young = NO_HASHES, NO_HASHES
        """Hashes, ascending."""

    def codes(self, columns: Sequence[Column]) -> Int64Array:
        """int64[n]: what :meth:`add` and :meth:`has` take of values; any where one is NULL."""
        return hashes_of(columns)

    def add(self, hashes: Int64Array) -> None:
        """Remember the hashes of values that went."""
        if not len(hashes):
            return
        self._young = np.union1d(self._young, hashes)
        if len(self._young) >= self._half:
            self.forgotten += len(self._old) - int(_within(self._old, self._young).sum())
            self._old, self._young = self._young, NO_HASHES

    def has(self, hashes: Int64Array) -> BoolArray:
        """Which of these were there, bool[n]."""
        return _within(hashes, self._old) | _within(hashes, self._young)

    def all(self) -> Int64Array:
        """All hashes, ascending."""
        return np.union1d(self._old, self._young)

    @property
    def nbytes(self) -> int:
        return self._old.nbytes + self._young.nbytes

    # --- the store's side -------------------------------------------------------------------------

    def saved(self, more: Int64Array) -> tuple[bytes, bytes]:
        """(the hashes, no runs) to be saved. more: hashes of values that are known otherwise."""
        return np.union1d(self.all(), more).tobytes(), b""

    def restore(self, hashes: bytes, runs: bytes) -> None:
        """As saved."""
        assert not runs
        self.add(np.frombuffer(hashes, np.int64))


def _within(hashes: Int64Array, known: Int64Array) -> BoolArray:
    if not len(known):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(known, hashes)
    found: BoolArray = known[np.minimum(at, len(known) - 1)] == hashes
    return found


def hashes_of(columns: Sequence[Column]) -> Int64Array:
    """int64[n]: of equal values the same in every process; any where one is NULL. O(n)."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ _words(column).view(np.uint64)) * _MIX
        mixed = (mixed ^ (mixed >> _SHIFT)) * _MIX
        mixed ^= mixed >> np.uint64(32)
    return mixed.view(np.int64)


def values_of(hashes: Int64Array) -> Int64Array:
    """int64[n]: the whole numbers of which :func:`hashes_of` one column makes these."""
    mixed = hashes.view(np.uint64)
    mixed = mixed ^ (mixed >> np.uint64(32))
    mixed = mixed * _UNMIX
    mixed = mixed ^ (mixed >> _SHIFT) ^ (mixed >> (_SHIFT + _SHIFT))
    found: Int64Array = (mixed * _UNMIX).view(np.int64)
    return found


def _words(column: Column) -> Int64Array:
    """int64[n], a word a value."""
    if column.type.kind is Kind.STRING:
        short = column.short()
        assert isinstance(short.dictionary, pa.StringArray)
        if not len(short.dictionary):
            return np.zeros(len(column), np.int64)
        words = np.array([_word(text) for text in short.dictionary.to_pylist()], np.int64)
        spread: Int64Array = words[short.values]
        return spread
    if column.type.kind is Kind.DOUBLE:
        keys = np.empty(len(column), np.int64)
        values = np.ascontiguousarray(column.values)
        intervals.keys_of_doubles(values, values.view(np.int64), keys)
        return keys
    return column.values.astype(np.int64)


def _word(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
