"""Both inputs of a promising join: rows that come probe the other input; entries lead to the rows to visit.

Keys are numbered alike for both. Entries of both are visited in one order, and are bounded together.

Cost: insertion O(rows + keys * zones) a step; the order O(entries) when some came or went.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.joins.key_codes import KeyCodes, kind_of
from engine.model.batch import Int64Array
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising import picking
from engine.promising.group import GroupKey, RunningCounts
from engine.promising.insertion import new_entries
from engine.promising.join_state import InputState
from engine.promising.picking import Float64Array, Int8Array, Picked
from engine.promising.probed_input import InputSide, ProbedInput, lookup_of
from engine.promising.promising_set import PromisingEntries, least_promising
from engine.summaries.summary import Summary


@dataclass(frozen=True, slots=True)
class _Order:
    """Rank and faded priority of all entries, those of the first input before ``boundary``."""

    rank: Int8Array
    priority: Float64Array
    boundary: int


class ProbedInputs:
    """The two inputs, in the order of the join."""

    def __init__(
        self,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        tally: RunningCounts,
        entries_max: int,
        codes_min: int,
    ) -> None:
        """tally: counts what becomes of entries. codes_min: of so many numbers of keys none is given back."""
        assert key.edge is not None
        sides = (key.edge.left_keys, key.edge.right_keys)
        inputs = []
        for place, priority in enumerate(key.priorities):
            lookup = lookup_of(sides[place], sides[1 - place], key.priorities[1 - place].column)
            assert lookup is not None
            summary = summaries[priority.summary]
            inputs.append(ProbedInput(key.sources[place], InputSide(sides[place], lookup), priority, summary))
        self.both = tuple(inputs)
        self._key = key
        self._tally = tally
        self._entries_max = entries_max
        self._codes_min = codes_min
        self._codes = self._new_codes()
        self._order: _Order | None = None

    def __iter__(self) -> Iterator[ProbedInput]:
        return iter(self.both)

    def _new_codes(self) -> KeyCodes:
        first = self.both[0]
        return KeyCodes(kind_of([one.type for one in first.side.keys]), first.summary.capacities)

    @property
    def floors(self) -> tuple[int, int]:
        """Rows below are in no window, of each input."""
        one, other = self.both
        return one.floor, other.floor

    # --- rows -------------------------------------------------------------------------------------

    def restart(self, floors: Sequence[int]) -> None:
        """There is nothing; the next rows have these ordinals."""
        self._order = None
        for each in self.both:
            left = each.entries.entries.left
            self._tally.count(lapsed=int(np.count_nonzero(left)), rows_lapsed=each.entries.units_left())
        self._codes = self._new_codes()
        for each, floor in zip(self.both, floors, strict=True):
            each.restart(floor)

    def append(self, scans: Sequence[ScanAt]) -> None:
        """Take in the rows that are visible, which probe the others at :meth:`insert`."""
        for each, scan in zip(self.both, scans, strict=True):
            each.append(scan.rows, scan.end, self._codes)

    def raise_floors(self, floors: Sequence[int]) -> bool:
        """Rows below these ordinals are in no window any more, and others may be out of reach now. Returns
        whether a floor was raised.
        """
        self._order = None
        moved = False
        for each, floor in zip(self.both, floors, strict=True):
            moved |= each.raise_floor(floor)
        for place, each in enumerate(self.both):
            low = each.low
            if moved or low > each.lapsed_below:
                lapsed, rows = each.lapse(low, self.both[1 - place].floor)
                self._tally.count(lapsed=lapsed, rows_lapsed=rows)
        return moved

    def insert(self, scans: Sequence[ScanAt]) -> None:
        """Entries for the rows that came: those of the first input over what was there of the second, those
        of the second over all of the first.
        """
        seen = [each.seen for each in self.both]
        self._insert(0, seen[0], scans, seen[1])
        self._insert(1, seen[1], scans, scans[0].end)
        for each, scan in zip(self.both, scans, strict=True):
            each.seen = scan.end
            each.chains.keep_bounds(each.zone_bounds())
        self._compact_codes()

    def _insert(self, driver: int, start: int, scans: Sequence[ScanAt], upper: int) -> None:
        """Entries for the rows of one input from ``start`` on, over the other's below ``upper``."""
        probing, probed = self.both[driver], self.both[1 - driver]
        start, stop = max(start, probing.floor), scans[driver].end
        if start >= stop or upper <= probed.floor:
            return
        if probed.low > probed.floor:  # rows in a window that the summary does not know of any more
            probed.miss(stop - 1, min(probed.low, upper) - 1)
        from_ms = scans[1 - driver].rows.timestamp_of(probed.floor)
        made = new_entries(probing, probed, self._key, start, stop, upper, from_ms)
        if made is None:
            return
        self._tally.count(
            entries=len(made),
            rows=int((made.rows * probed.entries.costs(made)).sum()),
            pruned=int(np.count_nonzero(made.rank == picking.PRUNED)),
            unranked=int(np.count_nonzero(made.rank == picking.UNRANKED)),
        )
        probed.entries.add(made)
        self._order = None
        self._cut_down()

    def _cut_down(self) -> None:
        """The least promising entries go where there are too many."""
        if sum(len(each.entries) for each in self.both) <= self._entries_max:
            return
        for each in self.both:
            each.entries.sweep(always=True)
        self._order = None
        more = sum(len(each.entries) for each in self.both) - self._entries_max
        if more <= 0:
            return
        order = self._ordered()
        both = PromisingEntries.joined([each.entries.entries for each in self.both])
        cut = least_promising(self._key.order, both, order.priority, more)
        costs = np.concatenate([each.entries.costs() for each in self.both])
        self._tally.count(cut=more, rows_cut=int((both.left * costs)[cut].sum()))
        self.both[0].cut(cut[: order.boundary])
        self.both[1].cut(cut[order.boundary :])
        self._order = None

    def _compact_codes(self) -> None:
        """Numbers of keys that no row has any more are given back, now and then."""
        if self._codes.given <= self._codes_min + 2 * sum(len(each.chains) for each in self.both):
            return
        used = np.unique(np.concatenate([each.chains.used_codes() for each in self.both]))
        renewed = self._codes.compact(used)
        for each in self.both:
            each.chains.recode(used, renewed)
        self._recode_lists()

    def _recode_lists(self) -> None:
        one, other = self.both
        one.recode_lists(other)
        other.recode_lists(one)

    # --- visits -----------------------------------------------------------------------------------

    @property
    def left(self) -> bool:
        """Whether an entry has rows that were not visited."""
        return any(bool(each.entries.entries.left.any()) for each in self.both)

    def reorder(self) -> None:
        """Priorities may have faded: summaries went on."""
        self._order = None

    def pick(self, units: int) -> Picked:
        """The entries to visit next, as places among those of both inputs, for so many units or less."""
        order = self._ordered()
        both = [each.entries.entries for each in self.both]
        rows = np.concatenate([each.rows for each in both])
        left = np.concatenate([each.left for each in both])
        costs = np.concatenate([each.entries.costs() for each in self.both])
        return picking.pick(self._key.order, order.rank, order.priority, rows, left, costs, units)

    def _ordered(self) -> _Order:
        """Ranks and faded priorities of all entries; the same until some come or go."""
        if self._order is None:
            ranks = [each.entries.entries.rank for each in self.both]
            priorities = [each.faded(self._key.order, self._key.fade) for each in self.both]
            self._order = _Order(np.concatenate(ranks), np.concatenate(priorities), len(ranks[0]))
        return self._order

    def visit(
        self, places: Int64Array, visits: Int64Array, found: list[tuple[Int64Array, Int64Array]]
    ) -> int:
        """Visit a block of entries that were picked, and put pairs (rows of the first input, rows of the
        second) behind ``found``. Returns the units of the visits.
        """
        boundary, tally = self._ordered().boundary, np.zeros(3, np.int64)
        for place, each in enumerate(self.both):
            among = places >= boundary if place else places < boundary
            chosen = places[among] - place * boundary
            for stored, probing in each.visit(chosen, visits[among], self.both[1 - place].floor, tally):
                found.append((probing, stored) if place else (stored, probing))
        visited, lapsed, finished = tally.tolist()
        self._tally.count(visited=visited, rows_lapsed=lapsed, done=finished)
        return int(visited)

    def sweep(self) -> None:
        """Let go of entries that are done, where these are many."""
        swept = [each.entries.sweep() for each in self.both]
        if any(swept):
            self._order = None

    # --- what is left, and what is saved ----------------------------------------------------------

    def left_within(self, floors: tuple[int, int]) -> tuple[int, float]:
        """How many entries may lead to pairs of rows at or above these ordinals, and how many pairs they are
        estimated to lead to. O(entries).
        """
        one, other = (each.entries for each in self.both)
        open_ = one.open(*floors), other.open(*floors[::-1])
        entries = sum(int(np.count_nonzero(each)) for each in open_)
        return entries, one.estimate_left(open_[0], *floors) + other.estimate_left(open_[1], *floors[::-1])

    def lacks(self, floors: tuple[int, int]) -> bool:
        """Whether pairs of rows at or above these ordinals may be missing for good."""
        return self.both[0].lacks(*floors) or self.both[1].lacks(*floors[::-1])

    def state(self) -> tuple[InputState, ...]:
        """All but rows and summaries, input by input."""
        self._order = None
        return tuple(each.state() for each in self.both)

    def restore(self, states: Sequence[InputState], scans: Sequence[ScanAt]) -> None:
        """As they were, over the same rows."""
        for each, saved, scan in zip(self.both, states, scans, strict=True):
            each.restore(saved, scan.rows, self._codes)
        self._recode_lists()

    def _check(self) -> None:
        for each in self.both:
            each._check()
