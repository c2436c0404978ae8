"""Predicates that no grouped filter holds, as modules that run on surviving rows only.

One module for each distinct predicate, shared by every query that has it as a conjunct: it is
evaluated once for the rows that any of them still wants.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.eddy.flight import Flight
from engine.kernels import bitmaps
from engine.language.evaluate import truth
from engine.language.expressions import Expression


@dataclass(slots=True)
class ResidualPredicate:
    """A predicate and the slots of the queries that share it."""

    name: str
    predicate: Expression
    slots: set[int] = field(default_factory=set)

    def visit(self, flight: Flight) -> tuple[int, int]:
        """Clear the sharers' bits where the predicate is FALSE or NULL; note rows where it is an error."""
        words, masks = _masks(self.slots)
        n = len(flight.rows)
        some = np.empty(n, np.bool_)
        given = bitmaps.any_bit(flight.wanted, words, masks, n, some)
        if not given:
            return 0, 0
        rows = np.flatnonzero(some)
        columns = [column.take(rows) for column in flight.rows.columns]
        true, error = truth(self.predicate, columns, given)
        keep = true if error is None else true | error
        bitmaps.keep_where(flight.wanted, words, masks, rows, keep)
        if error is not None and error.any():
            for slot in self.slots:
                erring = flight.erring.get(slot)
                if erring is None:
                    erring = flight.erring[slot] = np.zeros(n, np.bool_)
                erring[rows[error]] = True
        passed = int(keep.sum())
        return given, passed


def _masks(slots: set[int]) -> tuple[npt.NDArray[np.int64], bitmaps.Words]:
    """The words that hold these slots and which bits of each."""
    by_word: dict[int, int] = {}
    for slot in slots:
        by_word[slot >> 6] = by_word.get(slot >> 6, 0) | (1 << (slot & 63))
    words = sorted(by_word)
    return np.array(words, np.int64), np.array([by_word[w] for w in words], np.uint64)
