"""One input of a join that lets go of rows which can have no partner any more.

What is known is as of NOW of the queries: facts are read off the rows that they have seen. Rows go at the end
of a transition, so that nobody sees half of it. Cost: that of the facts, and O(rows that are kept) a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.changes.transition import FOREVER, Transition
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.releases.reading import Frontier, KeysOver, ends_behind
from engine.dataflow.releases.release import Release
from engine.kernels import arranged as kernels
from engine.kernels.arranged import NOBODY
from engine.model.batch import Column, Int32Array, Int64Array

Waiting = Callable[[], Sequence[Sequence[Column]]]
"""The keys of rows of the other input's stream that may still come out of joins below: some lists of columns,
one a key of the join.
"""


class ReleaseSide:
    """One writer. rows: of the input. waiting: of the other input."""

    def __init__(self, release: Release, rows: KeyedRows, keys: Keys, waiting: Waiting) -> None:
        self._release = release
        self._rows = rows
        self._keys = keys
        self._waiting = waiting
        self._over = None if release.over is None else KeysOver(release.over, keys)
        self._bounds = [Frontier(each) for each in release.below]
        self._closing: Int32Array = np.empty(0, np.int32)
        """Keys that are over, and of which rows wait below."""
        self._met: list[tuple[Int32Array, Int32Array]] = []
        """(slot, owner) of rows that have met a partner."""
        self._entered: list[tuple[Int32Array, Int64Array]] = []
        """(slots, instants in ms) of rows that entered."""
        self._until: Int64Array = np.empty(0, np.int64)
        """By slot: until when a row waits; an ordinal or an instant, FOREVER: that is not known yet."""
        self.released = 0
        """Rows that were let go of."""

    def meet(self, slots: Int32Array, starts: Int64Array, owners: Int32Array) -> None:
        """These have partners, for these owners."""
        if self._release.once and len(slots):
            self._met.append((np.repeat(slots, np.diff(starts)), owners.copy()))

    def enter(self, slots: Int32Array, valid_from: Int64Array) -> None:
        """Rows entered. valid_from: when, in halves."""
        if self._release.awaited is not None:
            kept = slots != NOBODY
            self._entered.append((slots[kept], valid_from[kept] >> 1))

    def let_go(self, transition: Transition) -> None:
        """A transition is over: rows go."""
        before = len(self._rows)
        self._let_go_met()
        self._let_go_unmet(transition)
        self._let_go_over(transition)
        self._let_go_below(transition)
        self.released += before - len(self._rows)

    # --- one partner ------------------------------------------------------------------------------

    def _let_go_met(self) -> None:
        if not self._met:
            return
        slots, owners = (np.concatenate(each) for each in zip(*self._met, strict=True))
        self._met.clear()
        is_met = np.zeros(len(self._rows.moving), np.bool_)
        is_met[slots] = True
        rows = np.flatnonzero(is_met).astype(np.int32)
        starts, held = self._rows.owners_of(rows)
        whose = np.repeat(np.arange(len(rows)), np.diff(starts))
        width = int(max(held.max(initial=0), owners.max())) + 1
        met = np.isin(whose * width + held, np.searchsorted(rows, slots).astype(np.int64) * width + owners)
        self._rows.disown(rows, whose, held, met)

    def _let_go_unmet(self, transition: Transition) -> None:
        awaited = self._release.awaited
        if awaited is None:
            return
        at = transition.by_source[awaited.source].at
        now = transition.until_ms if awaited.within_rows is None else at.end
        more = awaited.within_ms if awaited.within_rows is None else awaited.within_rows
        assert more is not None
        slots = self._rows.slots()
        until = np.full(len(self._rows.moving), FOREVER)
        known = slots[slots < len(self._until)]
        until[known] = self._until[known]
        for entered, instants in self._entered:
            until[entered] = (instants if awaited.within_rows is None else ends_behind(at, instants)) + more
        self._entered.clear()
        waits = until[slots]
        until[slots] = np.where(waits == FOREVER, now + more, waits)
        gone = slots[until[slots] <= now]
        until[gone] = FOREVER
        self._until = until
        self._rows.let_go(gone)

    # --- streams that are clustered or ordered ----------------------------------------------------

    def _let_go_over(self, transition: Transition) -> None:
        over = self._release.over
        if over is None:
            return
        assert self._over is not None
        fresh = self._over.advance(transition.by_source[over.source].at)
        numbers = np.concatenate([self._closing, fresh])
        if not len(numbers):
            return
        waits = [self._keys.find(columns, len(columns[0])) for columns in self._waiting()]
        if waits:
            stay = np.isin(numbers, np.concatenate(waits))
            self._closing, numbers = numbers[stay], numbers[~stay]
        self._rows.cover_keys()
        chains = np.empty(len(self._rows), np.int32)
        count = kernels.slots_of(numbers, self._rows.rows, chains)
        self._rows.let_go(chains[:count])
        self._keys.give_back(numbers)

    def _let_go_below(self, transition: Transition) -> None:
        for bound in self._bounds:
            below = bound.below
            least = bound.advance(transition.by_source[below.source].at)
            if least is None:
                continue
            for columns in self._waiting():
                column = columns[below.key]
                least = min(least, int(column.values[column.there()].min(initial=least)))
            slots = self._rows.slots()
            values = self._keys.columns(self._rows.rows.key[slots])[below.key].values
            self._rows.let_go(slots[values.astype(np.int64) < least])

    @property
    def nbytes(self) -> int:
        held = 0 if self._over is None else self._over.nbytes
        return held + self._until.nbytes + sum(bound.nbytes for bound in self._bounds)

    def _check(self) -> None:
        assert not self._met
        assert not self._entered
        if self._over is not None:
            self._over._check()
