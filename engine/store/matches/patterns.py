"""Who accepts which rows, by sets: rows that the same slots accept stand with one set of them.

Rows of a segment have few patterns of bits as a rule, however many slots accept each. A word of 64 places is
read once for all of them; where its rows have many patterns, each byte of it, which has 255 at most.

Cost: O(rows) for each word of dense slots; for others O(their pairs), as a set of one slot each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels import patterns
from engine.kernels.bitmaps import Words
from engine.model.batch import Int32Array, Int64Array
from engine.store.matches.accepted import Slots, listed_of
from engine.store.matches.part_matches import PartMatches

PATTERNS_MAX = 256
"""A word whose rows have more patterns is read byte by byte."""


@dataclass(frozen=True, slots=True)
class SetsOfRows:
    """Places of rows and numbers of sets, int64[m] and int32[m]; and the sets, of names of slots."""

    rows: Int64Array
    numbers: Int32Array
    sets: list[Int32Array]


def sets_of(
    matches: PartMatches, slots: Slots, rows: Int64Array, patterns_max: int = PATTERNS_MAX
) -> SetsOfRows:
    """Finds the slots that accept each of some rows of a segment, which ascend. A row has several sets where
    slots are in several words; they have no slot in common.
    """
    dense, selective = slots.dense(matches.cohorts)
    found = _Sets()
    for first_place, bits in matches.bits.dense_words(dense, rows):
        names = dense.names[first_place : first_place + 64]
        if not found.add(bits, names, patterns_max):
            for byte in range(8):
                found.add((bits >> np.uint64(8 * byte)) & np.uint64(0xFF), names[8 * byte :], 255)
    for at, owners in [
        matches.bits.pairs_of_row_lists(dense, rows),
        *listed_of(matches, slots, selective, rows),
    ]:
        found.add_pairs(at, owners)
    return found.all()


class _Sets:
    """Sets that are found one after another."""

    def __init__(self) -> None:
        self._sets: list[Int32Array] = []
        self._rows: list[Int64Array] = [np.empty(0, np.int64)]
        self._numbers: list[Int32Array] = [np.empty(0, np.int32)]

    def add(self, bits: Words, names: Int32Array, room: int) -> bool:
        """The patterns of a word, uint64[n], one a row. Returns whether there are no more than that."""
        out, words = np.empty(len(bits), np.int32), np.empty(room, np.uint64)
        places = np.full(1 << (2 * room).bit_length(), -1, np.int32)
        count = int(patterns.number(bits, places, out, words))
        if count < 0:
            return False
        rows = np.flatnonzero(out >= 0)
        self._rows.append(rows)
        self._numbers.append(out[rows] + np.int32(len(self._sets)))
        for word in words[:count].tolist():
            self._sets.append(names[[bit for bit in range(64) if word >> bit & 1]])
        return True

    def add_pairs(self, rows: Int64Array, names: Int32Array) -> None:
        """Each name is a set."""
        if len(rows):
            least = int(names.min())
            there = np.zeros(int(names.max()) + 1 - least, np.bool_)
            there[names - least] = True
            numbers = np.cumsum(there, dtype=np.int32) + np.int32(len(self._sets) - 1)
            self._rows.append(rows)
            self._numbers.append(numbers[names - least])
            self._sets.extend((np.flatnonzero(there) + least).astype(np.int32).reshape(-1, 1))

    def all(self) -> SetsOfRows:
        return SetsOfRows(np.concatenate(self._rows), np.concatenate(self._numbers), self._sets)
