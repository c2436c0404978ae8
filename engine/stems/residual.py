"""Predicates that no index holds, as modules that run on surviving rows only.

One module for each distinct predicate, shared by every query that has it as a conjunct: it is
evaluated once for the rows that any of them still wants.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from engine.eddy.flight import Flight
from engine.kernels import bitmaps
from engine.language.evaluate import truth
from engine.language.expressions import Expression
from engine.model.batch import Int32Array, Int64Array


class ResidualPredicate:
    """A predicate and the slots of the queries that share it, dense ones and selective ones."""

    __slots__ = ("_masks", "_selective", "dense", "name", "predicate", "selective")

    def __init__(
        self, name: str, predicate: Expression, dense: Iterable[int] = (), selective: Iterable[int] = ()
    ) -> None:
        self.name = name
        self.predicate = predicate
        self.dense = set(dense)
        self.selective = set(selective)
        self.changed()

    def changed(self) -> None:
        """Sharers came, went or have other places."""
        self._masks: tuple[npt.NDArray[np.int64], bitmaps.Words] | None = None
        self._selective: Int32Array | None = None

    def drop(self, slot: int) -> None:
        """A sharer goes."""
        self.dense.discard(slot)
        self.selective.discard(slot)
        self.changed()

    def visit(self, flight: Flight) -> tuple[int, int]:
        """End the sharers' wish for rows where the predicate is FALSE or NULL; note where it is an error."""
        n = len(flight.rows)
        if self._masks is None:
            self._masks = _masks(self.dense, flight.places)
            self._selective = np.array(sorted(self.selective), np.int32)
        some = np.zeros(n, np.bool_)
        words, masks = self._masks
        if len(words):
            bitmaps.any_bit(flight.wanted, words, masks, n, some)
        mine = self._pairs(flight)
        some[flight.pairs.rows[mine]] = True
        rows = np.flatnonzero(some)
        if not len(rows):
            return 0, 0
        columns = [column.take(rows) for column in flight.rows.columns]
        true, error = truth(self.predicate, columns, len(rows))
        keep = true if error is None else true | error
        if len(words):
            bitmaps.keep_where(flight.wanted, words, masks, rows, keep)
        place = np.searchsorted(rows, flight.pairs.rows[mine])
        flight.alive[mine] = keep[place]
        if error is not None and error.any():
            flight.in_error[mine] |= error[place]
            for slot in self.dense:
                erring = flight.erring.get(slot)
                if erring is None:
                    erring = flight.erring[slot] = np.zeros(n, np.bool_)
                erring[rows[error]] = True
        return len(rows), int(keep.sum())

    def _pairs(self, flight: Flight) -> Int64Array:
        """Which pairs in flight are of a sharer."""
        if not self.selective or not len(flight.pairs):
            return np.zeros(0, np.int64)
        assert self._selective is not None
        return np.flatnonzero(flight.alive & np.isin(flight.pairs.slots, self._selective))


def _masks(slots: Iterable[int], places: Int32Array) -> tuple[npt.NDArray[np.int64], bitmaps.Words]:
    """The words that hold these slots and which bits of each."""
    by_word: dict[int, int] = {}
    for slot in slots:
        place = int(places[slot])
        by_word[place >> 6] = by_word.get(place >> 6, 0) | (1 << (place & 63))
    words = sorted(by_word)
    return np.array(words, np.int64), np.array([by_word[w] for w in words], np.uint64)
