"""A batch in flight: its rows, its lineage, and the modules it visits.

Lineage (CACQ section 3): for each row the queries that still want it, as word columns for the dense cohort
and as pairs for the selective one, and for the batch the modules it has passed. Rows and queries only ever
leave; what is left at the end is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from engine.kernels import bitmaps
from engine.model.batch import Batch, BoolArray, Int32Array
from engine.stems.selective_index import Pairs


@dataclass(slots=True)
class Flight:
    """rows: n rows. wanted: uint64[words, n]: bit (p & 63) of word (p >> 6): the slot at place p wants it.

    pairs: (row, slot) of the slots that have no place; alive, in_error: bool, one a pair. places: int32, by
    slot. done: names of modules visited. erring: slot -> bool[n]: rows whose predicate met an error and was
    not refuted since, of slots with a place.
    """

    rows: Batch
    wanted: bitmaps.Words
    pairs: Pairs
    places: Int32Array
    done: set[str] = field(default_factory=set)
    erring: dict[int, BoolArray] = field(default_factory=dict)
    alive: BoolArray = field(init=False)
    in_error: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.alive = np.ones(len(self.pairs), np.bool_)
        self.in_error = np.zeros(len(self.pairs), np.bool_)

    def settle_errors(self) -> dict[int, int]:
        """At the end: rows that err and nobody refuted leave the answer; how many, by slot."""
        counts: dict[int, int] = {}
        for slot, erring in self.erring.items():
            place = int(self.places[slot])
            column = self.wanted[place >> 6]
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

    def surviving(self) -> Pairs:
        """The pairs that are left."""
        return self.pairs if self.alive.all() else self.pairs.take(np.flatnonzero(self.alive))


class Module(Protocol):
    """A stop on the way: it may clear bits of ``flight.wanted`` and end pairs, never set or revive any."""

    name: str

    def visit(self, flight: Flight) -> tuple[int, int]:
        """Returns how many rows it was given (some query wanted them) and how many it let pass."""
