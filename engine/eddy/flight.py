"""A batch in flight: its rows, its lineage, and the modules it visits.

Lineage (CACQ section 3): for each row the queries that still want it, as a bit matrix for the dense cohort
and as pairs for the selective one, and for all rows of the batch alike the modules that are done. Rows and
queries only ever leave; what is left at the end is the answer.

A flight is either *in place*, its bits those that are kept, or *on its way*: its bits lie apart, rows that no
module has anything to say of any more leave it with the bits they have, and those that fly on lie dense.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from engine.eddy.policies import Visit
from engine.kernels import bitmaps, lineage
from engine.model.batch import Batch, BoolArray, Column, Int32Array, Int64Array
from engine.model.types import Kind
from engine.store.matches.row_slots import RowSlots

if TYPE_CHECKING:
    from engine.domains.batch_keys import BatchKeys

LEAVING_SHIFT = 3
"""Rows leave once an eighth of those in flight may: moving the others costs about a visit of them."""

Needs = tuple[Int64Array, bitmaps.Words]
"""(columns, masks): the bits that a module may clear, columns ascending, none twice."""


@dataclass(slots=True)
class FlightRows:
    """What a flight has that is not in place.

    keys: of the whole batch; None where no grouped filter is ahead.
    words: int64[columns]: the word of 64 queries that each column is of; several columns are alternatives.
    at: int64[rows in flight], ascending: their places in the batch. out, start: where bits are kept,
    uint64[>= words, >= start + n], zeros to begin with.
    """

    keys: BatchKeys | None
    words: Int64Array
    at: Int64Array
    out: bitmaps.Words
    start: int


@dataclass(slots=True)
class Flight:
    """rows: n rows. wanted: uint64[columns, rows in flight]; in place: bit (p & 63) of the column of word
    (p >> 6): the slot at place p wants it. words: in place, ascending, the word of each column.

    pairs: (row, slot) of the slots that have no place; alive, in_error: bool, one a pair. places: int32, by
    slot. erring: slot -> bool[n]: rows whose predicate met an error and was not refuted since, of slots with
    a place. done: names of modules visited. short: columns that modules asked for, by place.
    """

    rows: Batch
    wanted: bitmaps.Words
    pairs: RowSlots
    places: Int32Array
    words: Int64Array
    way: FlightRows | None = None
    done: set[str] = field(default_factory=set)
    erring: dict[int, BoolArray] = field(default_factory=dict)
    short: dict[int, Column] = field(default_factory=dict)
    alive: BoolArray = field(init=False)
    in_error: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.alive = np.ones(len(self.pairs), np.bool_)
        self.in_error = np.zeros(len(self.pairs), np.bool_)

    def __len__(self) -> int:
        """Rows in flight."""
        return int(self.wanted.shape[1])

    # --- for modules ------------------------------------------------------------------------------

    def column(self, place: int) -> Column:
        """A column of the rows, with the strings that they use."""
        column = self.short.get(place)
        if column is None:
            column = self.rows.column(place)
            column = self.short[place] = column.short() if column.type.kind is Kind.STRING else column
        return column

    def columns_of(self, words: Int64Array, masks: bitmaps.Words) -> Needs:
        """Where these bits of words of queries are, all alternatives of them."""
        if self.way is None:
            return self.words.searchsorted(words), masks
        of_word = dict(zip(words.tolist(), masks.tolist(), strict=True))
        held = [(c, of_word[w]) for c, w in enumerate(self.way.words.tolist()) if w in of_word]
        return np.array([c for c, _ in held], np.int64), np.array([mask for _, mask in held], np.uint64)

    def wanting(self, needs: Needs) -> Int64Array:
        """Which rows in flight have such a bit, ascending."""
        found = np.empty(len(self), np.int64)
        return found[: lineage.wanting(self.wanted, *needs, len(self), found)]

    def places_of(self, rows: Int64Array) -> Int64Array:
        """The places in the batch of rows in flight."""
        return rows if self.way is None else self.way.at[rows]

    # --- for the eddy -----------------------------------------------------------------------------

    def leave(self, ahead: Iterable[Module]) -> None:
        """Let rows go that no module ahead may change. O(rows * columns)."""
        way = self.way
        if way is None or not len(self):
            return
        pending = np.zeros(len(way.words), np.uint64)
        for module in ahead:
            columns, masks = module.needs(self)
            pending[columns] |= masks
        columns = np.flatnonzero(pending)
        staying = self.wanting((columns, pending[columns]))
        if len(self) - len(staying) <= len(self) >> LEAVING_SHIFT:
            return
        leaving = np.ones(len(self), np.bool_)
        leaving[staying] = False
        self._land(way, np.flatnonzero(leaving))
        self.wanted = np.take(self.wanted, staying, axis=1)
        way.at = way.at[staying]

    def land(self) -> None:
        """At the end: all bits are in place."""
        way = self.way
        if way is None:
            return
        self._land(way, np.arange(len(self)))
        self.wanted = way.out[:, way.start : way.start + len(self.rows)]
        self.way = None

    def _land(self, way: FlightRows, rows: npt.NDArray[np.int64]) -> None:
        lineage.end(self.wanted, way.words, rows, way.at, way.start, way.out)

    # --- afterwards -------------------------------------------------------------------------------

    def settle_errors(self) -> dict[int, int]:
        """In place: rows that err and nobody refuted leave the answer; how many, by slot."""
        counts: dict[int, int] = {}
        for slot, erring in self.erring.items():
            place = int(self.places[slot])
            column = self.wanted[self.words.searchsorted(place >> 6)]
            bit = np.uint64(1 << (place & 63))
            ended = erring & ((column & bit) != 0)
            column[ended] &= ~bit
            count = int(ended.sum())
            if count:
                counts[slot] = count
        errors = self.alive & self.in_error
        if errors.any():
            slots, times = np.unique(self.pairs.slots[errors], return_counts=True)
            counts.update(zip(slots.tolist(), times.tolist(), strict=True))
            self.alive &= ~errors
        return counts

    def surviving(self) -> RowSlots:
        """The pairs that are left."""
        return self.pairs if self.alive.all() else self.pairs.take(np.flatnonzero(self.alive))


class Module(Protocol):
    """A stop on the way: it may clear bits of ``flight.wanted`` and end pairs, never set or revive any."""

    @property
    def name(self) -> str: ...

    @property
    def queries(self) -> int: ...

    @property
    def expected_ns(self) -> float | None:
        """What a row will take, where that is known before the first visit, or may be very much."""

    def needs(self, flight: Flight) -> Needs:
        """The bits of the flight that a visit may clear."""

    def wanting(self, flight: Flight) -> Int64Array:
        """Places in the batch of the rows that some query it serves wants, ascending."""

    def visit(self, flight: Flight) -> Visit:
        """Rows given are those that some query it serves wants; those of them passed it wants still."""
