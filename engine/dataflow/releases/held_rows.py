"""Rows that a stream let go of and that joins of a graph still need, with all their values.

They are looked at only when the state of those joins is made anew. One writer. Cost: O(rows that are held) a
time that as many came as there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.transition import NEVER
from engine.model.batch import Batch, BoolArray, Int64Array, concatenate
from engine.model.capacities import USUAL, Capacities
from engine.model.persistence import HeldState
from engine.model.source import Schema, SourceName
from engine.operators.relation import Relation
from engine.stems.rows import Rows

SWEPT_MIN = 1_024
"""So many rows may be held that nobody needs any more."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What a stream let go of in a step: the rows as they were before it, and the first ordinals that were
    retained before and after it; there may be rows below them.
    """

    rows: Rows
    first: int
    after: int


class HeldRows:
    """Keeps the rows that one stream let go of and that are needed still. Rows keep their ordinals."""

    def __init__(self, schema: Schema, capacities: Capacities = USUAL) -> None:
        self._swept_min = capacities.first(SWEPT_MIN)
        self._schema = schema
        self._first: int | None = None
        """The first ordinal that is retained; None: nobody asked yet."""
        self._rows = Batch.empty(schema)
        self._ordinals: Int64Array = np.empty(0, np.int64)
        self._let_go: Int64Array = np.empty(0, np.int64)
        """The step in which the stream let go of each."""
        self._needed: Int64Array = np.empty(0, np.int64)
        self._needed_below: int | None = None
        """Below this ordinal it is known which rows are needed; None: it is known of no row."""
        self._swept = 0

    def __len__(self) -> int:
        return len(self._ordinals)

    def take(self, gone: Gone, needed: Int64Array | None, step: int) -> None:
        """The stream lets go of rows. needed: ordinals of rows that are, ascending; None: all may be."""
        first = gone.first if self._first is None else max(gone.rows.base, self._first)
        self._first = max(gone.after, first)
        if gone.after <= first:
            return
        ordinals = np.arange(first, gone.after)
        if needed is not None:
            ordinals = needed[needed.searchsorted(first) : needed.searchsorted(gone.after)]
        if not len(ordinals):
            return
        pieces = [self._rows]
        for start, piece in gone.rows.slices(int(ordinals[0]), int(ordinals[-1]) + 1):
            chosen = ordinals[ordinals.searchsorted(start) : ordinals.searchsorted(start + len(piece))]
            pieces.append(piece.take(chosen - start))
        self._rows = concatenate(self._schema, pieces)
        self._ordinals = np.concatenate([self._ordinals, ordinals])
        self._let_go = np.concatenate([self._let_go, np.full(len(ordinals), step)])

    def sweep(self, needed: Int64Array) -> None:
        """Only these are needed, of all rows, once there are many others perhaps."""
        if len(self) > self._swept_min + 2 * self._swept:
            self._keep(np.isin(self._ordinals, needed, assume_unique=True))
            self._swept = len(self)

    def _keep(self, kept: BoolArray) -> None:
        places = np.flatnonzero(kept)
        self._rows = self._rows.take(places)
        self._ordinals, self._let_go = self._ordinals[places], self._let_go[places]

    def remember(self, needed: Int64Array, below: int) -> None:
        """State is about to be lost: of rows below an ordinal these are needed, ascending."""
        self._needed, self._needed_below = needed, below

    def may_need(self, ordinals: Int64Array) -> BoolArray:
        """bool[n]: which rows a query may need that was there when state was lost."""
        if self._needed_below is None:
            return np.ones(len(ordinals), np.bool_)
        known = ordinals < self._needed_below
        return ~known | np.isin(ordinals, self._needed, assume_unique=True)

    def since(self, step: int) -> tuple[Relation, Int64Array]:
        """(rows, ordinals) of those that the stream let go of in a step or later."""
        places = np.flatnonzero(self._let_go >= step)
        rows = self._rows.take(places)
        return Relation(rows.columns, len(places)), self._ordinals[places]

    def renumbered(self, base: int, first: int, from_ms: int | None) -> None:
        """History came back, and perhaps went again: rows from this instant on are among those that are
        retained; None: all are. base, first: the first ordinals of the rows there are, and of those retained.
        """
        self._keep(self._rows.timestamp < (NEVER if from_ms is None else from_ms))
        n = len(self)
        self._ordinals = base - n + np.arange(n)
        self._first, self._needed_below = first, None

    # --- the store's side -------------------------------------------------------------------------

    def state(
        self, over: Sequence[SourceName], source: SourceName, needed: Int64Array | None, end: int
    ) -> HeldState:
        """As it is stored. needed: of rows below ``end`` those that are, ascending; None: all may be."""
        if needed is None:
            known, below = self._needed, self._needed_below
            kept = np.ones(len(self), np.bool_)
        else:
            known, below = needed, end
            kept = np.isin(self._ordinals, needed, assume_unique=True)
        places = np.flatnonzero(kept)
        ordinals, let_go = self._ordinals[places], self._let_go[places]
        return HeldState(
            tuple(over), source, self._first, known, below, ordinals, let_go, self._rows.take(places)
        )

    def restore(self, state: HeldState) -> None:
        """Back from a store."""
        self._first = state.first
        self._needed, self._needed_below = state.needed, state.needed_below
        self._rows, self._ordinals, self._let_go = state.rows, state.ordinals, state.let_go

    @property
    def nbytes(self) -> int:
        beside = (self._ordinals, self._let_go, self._needed)
        rows = self._rows
        columns = sum(column.values.nbytes for column in rows.columns)
        return columns + sum(each.nbytes for each in (*beside, rows.partition, rows.offset, rows.timestamp))

    def _check(self) -> None:
        assert len(self._ordinals) == len(self._let_go) == len(self._rows)
        assert bool((self._ordinals[1:] > self._ordinals[:-1]).all())
        assert self._first is None or bool((self._ordinals < self._first).all())
