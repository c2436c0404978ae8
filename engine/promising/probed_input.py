"""One input of a promising join: its stored rows, how they are looked up, and what probes them.

Rows are numbered by their join key, alike for both inputs, and hang in chains by the buckets of the input's
summary. A row may have a partner if no part of its key is NULL and some query's predicate accepts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.joins.key_codes import KeyCodes
from engine.kernels import promising
from engine.language.preference import PreferenceOrder, Priority
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.expressions import Column as ColumnOf
from engine.model.expressions import Expression
from engine.model.source import SourceName
from engine.operators.relation import Relation
from engine.promising.acceptance import WantedRows
from engine.promising.join_state import InputState
from engine.promising.picking import Float64Array, faded
from engine.promising.promising_set import PromisingSet
from engine.promising.row_chains import RowChains
from engine.stems.rows import Rows
from engine.summaries.summary import Summary

PAIRS_MIN = 4_096
"""Pairs that there is room for at first."""

NEVER = -1


@dataclass(frozen=True, slots=True)
class InputSide:
    """Expressions over the rows of an input. keys: its side of the join's keys. lookup: what equals the
    other's summarised attribute.
    """

    keys: tuple[Expression, ...]
    lookup: Expression


@dataclass(slots=True)
class ProbedInput:
    """An input of a join of two."""

    source: SourceName
    side: InputSide
    # The p that is used when this input is probed.
    priority: Priority
    # The summary of this input on the attribute of ``priority``.
    summary: Summary
    chains: RowChains = field(init=False)
    # Entries that lead to rows of this input.
    entries: PromisingSet = field(init=False)
    # Which rows may have a partner.
    wanted: WantedRows = field(default_factory=WantedRows)
    # Rows below are in no window.
    floor: int = 0
    # Rows below have probed.
    seen: int = 0
    # Entries that lead to rows below this were looked at already.
    lapsed_below: int = 0
    # The newest row that looked for partners, and the newest partner, in pairs that will not be found.
    missed: tuple[int, int] = (NEVER, NEVER)
    # The values of ``lookup`` of the rows that just came, by the ordinal of the first of each piece.
    _fresh: list[tuple[int, Column]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart(0)

    def restart(self, ordinal: int) -> None:
        """There is nothing; the next row has this ordinal."""
        self.chains = self._new_chains(ordinal)
        self.entries = PromisingSet(self.summary.capacities)
        self.floor = self.seen = self.lapsed_below = ordinal
        self.missed = NEVER, NEVER
        self._fresh = []

    def _new_chains(self, ordinal: int) -> RowChains:
        return RowChains(self.summary.definition.settings.buckets + 1, ordinal, self.summary.capacities)

    @property
    def low(self) -> int:
        """The first row that entries may lead to: in a window, and in reach of the summary."""
        first = self.summary.zones.first
        return max(self.floor, int(first[0])) if len(first) else max(self.floor, self.chains.end)

    def zone_bounds(self) -> list[int]:
        """Ordinals at which zones begin and end."""
        zones = self.summary.zones
        bounds: list[int] = np.concatenate([zones.first, zones.end[-1:]]).tolist()
        return bounds

    # --- rows -------------------------------------------------------------------------------------

    def append(self, rows: Rows, end: int, codes: KeyCodes, flags: BoolArray | None = None) -> None:
        """Take in the rows that are not in and lie below ``end``. flags: which of them may have a partner, as
        it was told before; None: find out.
        """
        self._fresh = []
        if rows.base > self.chains.end:
            self.chains = self._new_chains(rows.base)
        cuts = self.zone_bounds()
        begun = self.chains.end
        for ordinal, batch in rows.slices(begun, end):
            relation = Relation(batch.columns, len(batch))
            columns, _ = relation.values_of(self.side.keys)
            numbered = codes.number(columns)
            if flags is None:
                wanted = self.wanted.of(batch)
            else:
                wanted = flags[ordinal - begun : ordinal - begun + len(batch)].copy()
            if len(numbered.null):
                wanted &= ~numbered.null
            (lookup,), _ = relation.values_of([self.side.lookup])
            self._fresh.append((ordinal, lookup))
            buckets = self.summary.buckets_of(ordinal, ordinal + len(batch))
            self.chains.append(numbered.keys, wanted, buckets, cuts)

    def values(self, ordinals: Int64Array) -> Column:
        """The values of ``lookup`` of some of the rows that just came, ascending."""
        pieces = []
        for first, column in self._fresh:
            start, stop = ordinals.searchsorted([first, first + len(column)])
            if start < stop:
                pieces.append(column.take(ordinals[start:stop] - first))
        return pieces[0] if len(pieces) == 1 else concatenate_columns(self.side.lookup.type, pieces)

    # --- entries ----------------------------------------------------------------------------------

    def raise_floor(self, floor: int) -> bool:
        """Rows below this ordinal are in no window any more; returns whether that is new."""
        if floor <= self.floor:
            return False
        self.floor = floor
        self.chains.drop_below(floor)
        return True

    def lapse(self, low: int, probing_floor: int) -> tuple[int, int]:
        """Entries go all of whose rows are below ``low``, or all of whose probing rows below that floor.
        Returns how many they were, and the units of the visits that they lack. O(entries).
        """
        self.lapsed_below = low
        held, newest = self.entries.entries, self.entries.newest_probing()
        left = held.left > 0
        gone = (held.cursor < low) | (newest < probing_floor)
        if low > self.floor:  # what is out of reach is lost, though windows hold it
            lost = left & (held.first < low) & (newest >= probing_floor)
            if lost.any():
                self.miss(int(newest[lost].max()), int(np.minimum(held.cursor[lost], low - 1).max()))
        lapsed = gone & left
        if not lapsed.any():
            return 0, 0
        rows = int((held.left * self.entries.costs())[lapsed].sum())
        self.entries.keep(left & ~gone)
        return int(np.count_nonzero(lapsed)), rows

    def miss(self, probing: int, stored: int) -> None:
        """Some pairs of rows up to these ordinals will not be found."""
        self.missed = max(self.missed[0], probing), max(self.missed[1], stored)

    def lacks(self, stored_floor: int, probing_floor: int) -> bool:
        """Whether pairs of rows at or above these ordinals may be missing for good."""
        return self.missed[0] >= probing_floor and self.missed[1] >= stored_floor

    def cut(self, gone: BoolArray) -> None:
        """Drop these entries, bool[entries], because there are too many."""
        if gone.any():
            held, newest = self.entries.entries, self.entries.newest_probing()
            self.miss(int(newest[gone].max()), int(held.cursor[gone].max()))
            self.entries.keep(~gone)

    def faded(self, order: PreferenceOrder, fade: float) -> Float64Array:
        """float64[entries]: their priorities, by the granularities that they lead to now."""
        held, zones = self.entries.entries, self.summary.zones
        if fade == 1.0 or not len(zones.end):
            return held.priority
        zone = np.minimum(zones.end.searchsorted(held.first, "right"), len(zones.end) - 1)
        return faded(order, held.priority, fade, zones.granularity[zone])

    def visit(
        self, places: Int64Array, visits: Int64Array, probing_floor: int, tally: Int64Array
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Visit rows of entries, of each so many or fewer, in the order of the rows; yields (stored rows,
        probing rows) of pairs. tally: as :func:`engine.kernels.promising.visit` counts.
        """
        order = np.argsort(self.entries.entries.cursor[places], kind="stable")
        places, visits = places[order], visits[order]
        entries, lists, rows = self.entries.visited_entries(), self.entries.lists(), self.chains.rows()
        begin, room = 0, self.summary.capacities.first(PAIRS_MIN)
        turns, floors = promising.Visits(places, visits), promising.Floors(self.low, probing_floor)
        while begin < len(places):
            out = promising.PairsRoom(np.empty(room, np.int64), np.empty(room, np.int64))
            begin, count = promising.visit(turns, begin, entries, rows, lists, floors, out, tally)
            if count:
                yield out.stored[:count], out.probing[:count]
            room *= 2

    def recode_lists(self, probing: ProbedInput) -> None:
        """Tell the keys of the lists anew, by their newest rows, which are the other input's."""
        lists = self.entries.lists()
        newest = lists.rows[lists.starts + lists.counts - 1]
        alive = newest >= probing.floor
        codes = np.full(len(newest), NEVER, np.int64)
        codes[alive] = probing.chains.keys_of(newest[alive])
        self.entries.recode(codes)

    @property
    def nbytes(self) -> int:
        return self.chains.nbytes + self.entries.nbytes

    # --- what is saved ----------------------------------------------------------------------------

    def state(self) -> InputState:
        """All but the rows and the summary."""
        self.entries.sweep(always=True)
        lists = self.entries.lists()
        return InputState(
            self.floor,
            self.seen,
            self.lapsed_below,
            self.chains.wanted_flags(self.floor).copy(),
            self.entries.entries.take(slice(None)).copy(),
            lists.counts,
            lists.rows,
            *self.missed,
        )

    def restore(self, state: InputState, rows: Rows, codes: KeyCodes) -> None:
        """As it was, over the same rows."""
        self.restart(state.floor)
        self.append(rows, state.seen, codes, state.wanted)
        self.seen, self.lapsed_below = state.seen, state.lapsed_below
        self.entries.restore(state.entries, state.list_counts, state.list_rows)
        self.missed = state.missed_probing, state.missed_stored

    def _check(self) -> None:
        self.chains._check()
        self.entries._check()
        held = self.entries.entries
        assert (held.cursor[held.left > 0] >= self.floor).all()


def lookup_of(own: Sequence[Expression], others: Sequence[Expression], column: int) -> Expression | None:
    """This side's expression of the join key whose other side is this column; None: no key has it."""
    for one, other in zip(own, others, strict=True):
        if isinstance(other, ColumnOf) and other.index == column:
            return one
    return None
