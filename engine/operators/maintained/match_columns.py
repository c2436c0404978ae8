"""The match bits of slots over new rows, 64 slots to a word as they are numbered.

A part keeps a slot's matches where its cohort says: a bit of some word column, or pairs. Slots that came
together lie together, so a word is mostly one column, or parts of two, shifted; which ones is worked out once
for each object of cohorts, until slots come or go. Pairs are set bit by bit. O(rows * words + pairs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import partials
from engine.model.batch import Int64Array
from engine.stems.segment import SegmentView
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.part_matches import PartMatches, place_of

Words = npt.NDArray[np.uint64]

EVERY_ROW = -64
"""The slot of queries without a predicate, for which a word of its own stands, number -1."""

KNOWN_MAX = 32


@dataclass(frozen=True, slots=True)
class _Pieces:
    """How a word is put together. dense: (column, left shift, mask of the result); selective: its slots."""

    dense: tuple[tuple[int, int, int], ...]
    selective: Int64Array


class MatchColumns:
    """For one set of slots: another takes its place when that changes."""

    def __init__(self, wanted: Mapping[int, int]) -> None:
        """wanted: the mask of slots of each word."""
        self._wanted = {word: mask for word, mask in wanted.items() if word != EVERY_ROW >> 6}
        self._every_row = EVERY_ROW >> 6 in wanted
        self._known: dict[int, tuple[Cohorts, dict[int, _Pieces]]] = {}

    def of(self, part: SegmentView, first: int, last: int) -> dict[int, Words]:
        """uint64[last - first] of each word; bits outside the masks mean nothing. Not to be written."""
        matches = part.matches
        pieces = self._pieces(matches.cohorts)
        columns = {word: _dense(matches, each, first, last) for word, each in pieces.items()}
        selective = [word for word, each in pieces.items() if len(each.selective)]
        if selective:
            self._add_pairs(matches, pieces, selective, columns, first, last)
        if self._every_row:
            columns[EVERY_ROW >> 6] = np.ones(last - first, np.uint64)
        return columns

    def _pieces(self, cohorts: Cohorts) -> dict[int, _Pieces]:
        known = self._known.get(cohorts.epoch)
        if known is None or known[0] is not cohorts:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            known = cohorts, {word: _put_together(cohorts, word, mask) for word, mask in self._wanted.items()}
            self._known[cohorts.epoch] = known
        return known[1]

    def _add_pairs(
        self,
        matches: PartMatches,
        pieces: Mapping[int, _Pieces],
        words: list[int],
        columns: dict[int, Words],
        first: int,
        last: int,
    ) -> None:
        pairs = _pairs(matches, first, last)
        if pairs is None:
            for word in words:
                own = columns[word].copy()
                for slot in pieces[word].selective.tolist():
                    own[matches.rows_of(slot, first, last) - first] |= np.uint64(1 << (slot & 63))
                columns[word] = own
            return
        places = np.full(max(words) + 1, -1, np.int64)
        places[words] = np.arange(len(words))
        masks = np.zeros(len(words), np.uint64)
        own = np.stack([columns[word] for word in words])
        for place, word in enumerate(words):
            masks[place] = np.bitwise_or.reduce(
                np.uint64(1) << (pieces[word].selective & 63).astype(np.uint64)
            )
        partials.set_bits(*pairs, first, places, masks, own)
        columns.update(zip(words, own, strict=True))


def _put_together(cohorts: Cohorts, word: int, mask: int) -> _Pieces:
    slots = np.array([word << 6 | bit for bit in range(64) if mask >> bit & 1], np.int64)
    places = np.array([cohorts.of(slot) for slot in slots.tolist()], np.int64)
    masks: dict[tuple[int, int], int] = {}
    for slot, place in zip(slots.tolist(), places.tolist(), strict=True):
        if place != SELECTIVE:
            piece = place >> 6, (slot & 63) - (place & 63)
            masks[piece] = masks.get(piece, 0) | 1 << (slot & 63)
    dense = tuple((column, shift, bits) for (column, shift), bits in masks.items())
    return _Pieces(dense, slots[places == SELECTIVE])


def _dense(matches: PartMatches, pieces: _Pieces, first: int, last: int) -> Words:
    """What word columns hold of a word."""
    own: Words | None = None
    for column, shift, mask in pieces.dense:
        bits = matches.bits.word(column, first, last)
        if shift == 0 and len(pieces.dense) == 1 and not len(pieces.selective):
            return bits
        moved = bits << np.uint64(shift) if shift >= 0 else bits >> np.uint64(-shift)
        moved &= np.uint64(mask)
        own = moved if own is None else own | moved
    return np.zeros(last - first, np.uint64) if own is None else own


def _pairs(
    matches: PartMatches, first: int, last: int
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32]] | None:
    """All pairs (rows, slots) of rows first <= r < last; None where they are in several places."""
    if matches.log is not None:
        if any(lists.upto > first for lists in matches.lists):
            return None
        rows, slots = matches.log
        low, high = place_of(rows, first), place_of(rows, last)
        return rows[low:high], slots[low:high]
    if len(matches.lists) > 1:
        return None
    if not matches.lists:
        return np.zeros(0, np.uint16), np.zeros(0, np.int32)
    rows, slots = matches.lists[0].pairs()
    there = (rows >= first) & (rows < last)
    return rows[there], slots[there]
