"""What each module alone would do with rows that were dropped, for :mod:`engine.eddy.a_greedy`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.eddy.flight import Flight, FlightRows, Module
from engine.eddy.policies import Visit
from engine.kernels import bitmaps
from engine.model.batch import BoolArray, Int64Array
from engine.store.matches.row_slots import RowSlots

if TYPE_CHECKING:
    from engine.domains.batch_keys import BatchKeys


@dataclass(frozen=True, slots=True)
class FlightSample:
    """Some rows of a flight as they took off; nothing that happens to the flight changes them.

    at: int64[m], their places in the batch, ascending. wanted: uint64[columns, m]. pairs: those of the rows.
    keys, words: see FlightRows.
    """

    at: Int64Array
    wanted: bitmaps.Words
    pairs: RowSlots
    keys: BatchKeys | None
    words: Int64Array

    @classmethod
    def of(cls, flight: Flight, places: Int64Array) -> FlightSample:
        """places: ascending, of rows of the batch, which are all in flight. O(places * columns + pairs)."""
        way = flight.way
        return cls(
            places,
            np.take(flight.wanted, places, axis=1),
            flight.pairs.take(np.flatnonzero(np.isin(flight.pairs.rows, places))),
            None if way is None else way.keys,
            flight.words if way is None else way.words,
        )

    def dropped(self, flight: Flight) -> Int64Array:
        """Which of 0 .. m - 1 somebody wanted and nobody wants now that the flight has landed, ascending."""
        wanted = self.wanted.any(axis=0) | np.isin(self.at, self.pairs.rows)
        left = np.take(flight.wanted, self.at, axis=1).any(axis=0)
        if len(self.pairs):
            left |= np.isin(self.at, flight.pairs.rows[flight.alive])
        return np.flatnonzero(wanted & ~left)

    def outcomes(
        self, flight: Flight, modules: Sequence[Module], visit: Callable[[Module, Flight], Visit]
    ) -> tuple[BoolArray, list[Visit]]:
        """(bool[modules, rows], visits): whether a module alone ends all wishes that it serves.

        visit: makes one and tells what it did. O(rows * modules), and what the visits cost.
        """
        dropped = self.dropped(flight)
        at = self.at[dropped]
        found = np.zeros((len(modules), len(at)), np.bool_)
        visits = list[Visit]()
        if not len(at):
            return found, visits
        wanted = np.take(self.wanted, dropped, axis=1)
        pairs = self.pairs
        if len(pairs):
            pairs = pairs.take(np.flatnonzero(np.isin(pairs.rows, at)))
        nowhere = wanted[:, :0]  # it never lands
        for number, module in enumerate(modules):
            way = FlightRows(self.keys, self.words, at, nowhere, 0)
            alone = Flight(
                flight.rows, wanted.copy(), pairs, flight.places, flight.words, way, short=flight.short
            )
            given = module.wanting(alone)
            visits.append(visit(module, alone))
            found[number, at.searchsorted(given)] = True
            found[number, at.searchsorted(module.wanting(alone))] = False
        return found, visits
