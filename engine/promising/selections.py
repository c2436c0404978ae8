"""Selections and aggregates over one stream: rows that are visited cell by cell, the most promising first.

Rows that became visible since the last turn are put into the set as entries, a cell's rows an entry, for all
members that may take some of them: those whose predicate names values look only into the buckets of these
values. A visit costs a unit and serves all members that look for the row; conditions that no grouped filter
holds cost a unit more for each row that they are evaluated for, and once for all members that have them.
Units that the last row of a grant costs beyond it are paid out of the next.

Entries that nobody visited stay for the windows of those who look for them, without a window for the length
of granularity 1 after they came; then they lapse, and are counted. What was visited, is left, lapsed or was
cut is all that was offered.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, sections 4.2 and 4.3, figure 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.kernels import selections
from engine.language.query import Aggregate, Query
from engine.model.batch import Column, Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.operators.gather import gather
from engine.operators.scan import ScanAt
from engine.promising.found import FoundRows
from engine.promising.found_rows import RowsFound
from engine.promising.group import GroupCounts, GroupKey, Member
from engine.promising.left_estimates import LeftEstimates, add_estimates
from engine.promising.named_values import NamedValues
from engine.promising.picking import EMPTY, UNRANKED, faded, pick
from engine.promising.row_entries import FRESH, RowEntries, before
from engine.promising.row_filter import Hits, RowFilter, places_of
from engine.promising.row_priorities import CellPlaces, ranked
from engine.promising.row_set import RowSet, lost_below
from engine.promising.selection_members import Learnt, SelectionMembers, bits_of
from engine.summaries.summary import Summary
from engine.windows.clauses import TimeWindow

VISITED_MAX = 65_536
"""Rows that are gathered at a time."""


@dataclass(frozen=True, slots=True)
class SelectionState:
    """What is saved of a group over one stream."""

    entries: RowEntries
    counts: GroupCounts
    learnt: Learnt
    # The number of each member, by query id; and the numbers of those that old rows are still to be offered.
    numbers: Mapping[str, int]
    fresh: tuple[int, ...]
    # int64, by query id: the rows that were found.
    found: Mapping[str, Int64Array]
    mark: int | None
    debt: int


def counts_or_sums(query: Query) -> bool:
    """Whether its first stage has aggregates that rows which are left can complete."""
    first = query.stages[0]
    return isinstance(first, Aggregate) and any(
        call.function in ("COUNT", "SUM") and not call.distinct for call in first.calls
    )


class PromisingSelection:
    """A :class:`engine.promising.group.PromisingGroup` over one stream."""

    def __init__(
        self,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        entries_max: int = Limits().promising_entries_max,
    ) -> None:
        self.key = key
        (priority,) = key.priorities
        self._summary = summaries[priority.summary]
        self._entries_max = entries_max
        buckets = self._summary.definition.settings.buckets
        self._members = SelectionMembers(priority.column, self._summary.type, buckets)
        self._found: dict[int, RowsFound] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._set = RowSet(self._summary, self._members.words)
        # The ordinal after the last row that was put into the set; None: none was yet.
        self._mark: int | None = None
        # Units that were used and not paid for yet.
        self._debt = 0
        self._spent = 0
        self._hits = 0
        self._changed()

    def _changed(self) -> None:
        """Members came or went."""
        self._filter: RowFilter | None = None
        self._named: NamedValues | None = None
        self._moved()

    def _moved(self) -> None:
        """Entries came, went or were visited."""
        self._estimates: LeftEstimates | None = None

    # --- members ----------------------------------------------------------------------------------

    @property
    def members(self) -> Mapping[str, Member]:
        """By query id."""
        return self._members.held

    @property
    def weight(self) -> float:
        """The sum of the members' weights."""
        return sum(member.weight for member in self._members.held.values())

    def add(self, member: Member, at: Mapping[SourceName, ScanAt]) -> None:
        """A query comes; retained rows from before are offered to it at the next arrival."""
        number = self._members.add(member)
        self._members.fresh.add(number)
        self._set.widen(self._members.words)
        self._found[number] = RowsFound()
        self._changed()

    def remove(self, query_id: str) -> None:
        """It goes, and entries that it alone looked for."""
        number = self._members.remove(query_id)
        del self._found[number]
        entries = self._set.entries
        self._set.keep(replace(entries, wanted=entries.wanted & ~self._members.bits([number])))
        self._changed()

    def reweigh(self, query_id: str, weight: float) -> None:
        """It has another weight; the priorities of entries that are there are told anew."""
        held = self._members.held
        held[query_id] = replace(held[query_id], weight=weight)
        self._set.refresh()
        self._moved()

    # --- what comes and goes ----------------------------------------------------------------------

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Take in the rows that became visible since, and let go of what left all windows at NOW."""
        scan_at = at[self.key.sources[0]]
        if now_ms is None or scan_at.now_ms is None:
            self._members.fresh.clear()  # there are no former rows
            return
        self._moved()
        self._let_go(scan_at, now_ms)
        zones = self._summary.zones
        reach = int(zones.first[0]) if len(zones.first) else scan_at.end
        end = min(scan_at.end, int(zones.end[-1])) if len(zones.end) else scan_at.end
        base = max(reach, scan_at.rows.base)
        mark = base if self._mark is None else min(max(base, self._mark), end)
        self._offer_former(scan_at, now_ms, base, mark)
        if mark < end:
            self._offer_new(mark, end, now_ms)
        self._mark = end
        self._bound(scan_at)

    def _let_go(self, scan_at: ScanAt, now_ms: int) -> None:
        """Move the windows; entries, or the beginnings of some, leave them."""
        members, entries = self._members, self._set.entries
        zones = self._summary.zones
        reach = int(zones.first[0]) if len(zones.first) else scan_at.end
        lapsed = now_ms - entries.queued_ms >= self._summary.definition.granularity_ms
        floor = np.full(len(entries), np.iinfo(np.int64).max)
        wanted = entries.wanted.copy()
        for window, numbers in members.by_window().items():
            start = scan_at.window(members.scan_of(numbers[0])).start
            members.learnt.floor[numbers] = start
            mask = members.bits(numbers)
            ends = np.full(len(entries), max(start, reach))
            if not isinstance(window, TimeWindow) or window.reach_ms is None:
                ends = np.where(lapsed, entries.end, ends)
            if (ends > start).any():
                self._lose(entries, ends, wanted & mask)
            wanted[entries.end <= ends] &= ~mask
            looking = (wanted & mask).any(axis=1)
            floor[looking] = np.minimum(floor, ends)[looking]
        self._set.keep(replace(entries, wanted=wanted), floor)
        learnt = members.learnt
        learnt.lost[learnt.lost_end <= learnt.floor] = 0.0
        for number, found in self._found.items():
            found.drop_below(int(members.learnt.floor[number]))

    def _lose(self, entries: RowEntries, ends: Int64Array, wanted: npt.NDArray[np.uint64]) -> None:
        """Rows of entries below these ordinals are let go unvisited, whatever window holds them. wanted: who
        loses them.
        """
        learnt = self._members.learnt
        gone = np.flatnonzero((ends > entries.cursor) & wanted.any(axis=1))
        if not len(gone):
            return
        lost_below(entries, ends, wanted, learnt.lost_end)
        some = replace(entries.take(gone), wanted=wanted[gone])
        last = np.minimum(ends[gone], some.end)
        rows = np.diff(self._summary.rows_of_many(some.bucket, some.cursor, last).offsets)
        every = self._members.bits(list(self._members.number.values()))
        learnt.lost += LeftEstimates.of(
            some, [(every, rows)], self._members, self._naming(), self._summary
        ).total

    def _offer_former(self, scan_at: ScanAt, now_ms: int, base: int, mark: int) -> None:
        """Rows that are there already are offered to members that just came."""
        members = self._members
        fresh, members.fresh = sorted(members.fresh), set()
        floor = members.learnt.floor
        for number in fresh:
            if floor[number] < base:
                members.learnt.lost_end[number] = base
        if not fresh:
            return
        coming = np.zeros(members.size, np.bool_)
        coming[fresh] = True
        for layout, first, end in self._stretches(base, mark):
            wanted = self._naming().wanted[:, layout] & coming[:, None]
            for bucket in np.flatnonzero(wanted.any(axis=0)).tolist():
                start = max(first, int(floor[wanted[:, bucket]].min()))
                if start < end:
                    self._set.offer(bucket, start, end, bits_of(wanted[:, bucket]), now_ms)

    def _offer_new(self, mark: int, end: int, now_ms: int) -> None:
        """Rows that just came are offered to all."""
        for layout, first, stop in self._stretches(mark, end):
            wanted = self._naming().wanted[:, layout]
            buckets = np.flatnonzero(wanted.any(axis=0)).astype(np.int32)
            if len(buckets):
                bits = bits_of(np.ascontiguousarray(wanted[:, buckets].T))
                self._set.put(buckets, first, stop, bits, now_ms)

    def _stretches(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(layout, first, end): the parts of first .. end whose zones have one layout, in order."""
        zones = self._summary.zones
        met = np.flatnonzero((zones.end > first) & (zones.first < end))
        for run in np.split(met, np.flatnonzero(np.diff(zones.layout[met])) + 1):
            if len(run):
                low, high = int(zones.first[run[0]]), int(zones.end[run[-1]])
                yield int(zones.layout[run[0]]), max(first, low), min(end, high)

    def _bound(self, scan_at: ScanAt) -> None:
        """Cut the least promising entries beyond the limit."""
        over = len(self._set) - self._entries_max
        if over <= 0:
            return
        self._rank(scan_at)
        entries = self._set.entries
        priority = self._faded()
        best_last = -priority if self.key.order == "asc" else priority
        order = np.lexsort((np.arange(len(entries))[::-1], best_last, -entries.standing.astype(np.int64)))
        cut = np.zeros(len(entries), np.bool_)
        cut[order[:over]] = True
        gone = self._set.cut(cut)
        self._lose(gone, gone.end, gone.wanted)

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows below this ordinal are gone."""
        if source != self.key.sources[0]:
            return
        self._moved()
        entries = self._set.entries
        floor = np.full(len(entries), ordinal)
        gone = entries.end <= ordinal
        wanted = np.where(gone[:, None], np.uint64(0), entries.wanted)
        self._set.keep(replace(entries, wanted=wanted), floor)
        self._mark = None if self._mark is None else max(self._mark, ordinal)
        for found in self._found.values():
            found.drop_below(ordinal)

    def forget(self) -> None:
        """Begin anew at the next arrival: rows or the summary are others."""
        members = self._members
        for query_id, number in members.number.items():
            members.learnt.clear(number)
            members.fresh.add(number)
            self._found[number] = RowsFound()
            assert query_id in members.held
        self._begin_anew()

    # --- turns ------------------------------------------------------------------------------------

    @property
    def left(self) -> bool:
        """Whether there is anything to spend units on."""
        return bool(len(self._set))

    def spend(self, units: int, at: Mapping[SourceName, ScanAt]) -> int:
        """Visit rows; returns the units that were used: all of them, or less and nothing is left."""
        scan_at = at[self.key.sources[0]]
        paid = min(units, self._debt)
        self._debt -= paid
        spent = paid
        while spent < units and len(self._set):
            self._rank(scan_at)
            cost = 1 + self._filtering(scan_at).residuals
            wanted = min(VISITED_MAX, max(1, (units - spent) // cost))
            spent += self._visit(scan_at, wanted)
        self._debt += max(0, spent - units)
        spent = min(spent, units)
        self._spent += spent
        return spent

    def _visit(self, scan_at: ScanAt, units: int) -> int:
        """Visit the next rows, so many or less; returns the units that they cost."""
        entries = self._set.entries
        left = entries.left.astype(np.int32)
        picked = pick(
            self.key.order, entries.standing, self._faded(), entries.rows.astype(np.int32), left, units
        )
        some = entries.take(picked.places)
        listed = self._summary.rows_of_many(some.bucket, some.cursor, some.end)
        counts = picked.units
        starts = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        ordinals = listed.rows[np.repeat(listed.offsets[:-1], counts) + within]
        of = np.repeat(np.arange(len(some), dtype=np.int32), counts)
        learnt = self._members.learnt
        selections.rows_wanted(some.wanted, some.bucket, starts, ordinals, learnt.floor, learnt.visits)
        order = np.argsort(ordinals, kind="stable")
        hits = self._filtering(scan_at).apply(
            scan_at.rows, ordinals[order], of[order], some.wanted, learnt.floor
        )
        self._learn(some, counts, hits)
        self._set.advance(picked.places, counts, ordinals[starts[1:] - 1])
        self._hits += len(hits.ordinals)
        self._moved()
        return len(ordinals) + hits.evaluations

    def _learn(self, visited: RowEntries, counts: Int64Array, hits: Hits) -> None:
        """What members took is theirs; their rates are those of all that was visited for them."""
        learnt = self._members.learnt
        learnt.errors += hits.errors
        selections.count_cells(hits.starts, hits.entry, visited.bucket, learnt.hits)
        named = self._naming()
        seen = np.zeros(len(named.constants.member))
        add_estimates(visited, visited.wanted, counts, named, self._summary, seen)
        learnt.seen += np.bincount(named.constants.member, seen, self._members.size)
        for number in np.flatnonzero(np.diff(hits.starts)).tolist():
            self._found[number].add(hits.of(number).copy())

    def _rank(self, scan_at: ScanAt) -> None:
        """Tell the priorities of entries that are new, or have new rows or members."""
        entries = self._set.entries
        fresh = np.flatnonzero(entries.standing <= FRESH)
        if not len(fresh):
            return
        some = entries.take(fresh)
        base, values_at = scan_at.rows.base, partial(self._values_at, scan_at)
        told = ranked(self.key, some, base, values_at, self._members, self._naming(), self._summary)
        priority, standing = entries.priority.copy(), entries.standing.copy()
        priority[fresh], standing[fresh] = told.priority, told.standing
        self._set.entries = replace(entries, priority=priority, standing=standing)
        former = before(some.standing)
        empty, unranked = (
            int(np.count_nonzero(told.standing == rank)) - int(np.count_nonzero(former == rank))
            for rank in (EMPTY, UNRANKED)
        )
        counts = self._set.counts
        self._set.counts = replace(counts, pruned=counts.pruned + empty, unranked=counts.unranked + unranked)

    def _values_at(self, scan_at: ScanAt, ordinals: Int64Array) -> Column:
        """The summarised attribute of rows."""
        distinct, place = np.unique(ordinals, return_inverse=True)
        places = places_of(scan_at.rows, distinct)
        column = self._members.column
        return gather(column, scan_at.rows.schema, places, len(distinct)).take(place)

    def _faded(self) -> npt.NDArray[np.float64]:
        entries = self._set.entries
        if self.key.fade == 1.0:
            return entries.priority
        granularity = CellPlaces.of(entries, self._summary).granularity
        return faded(self.key.order, entries.priority, self.key.fade, granularity)

    def _filtering(self, scan_at: ScanAt) -> RowFilter:
        if self._filter is None:
            self._filter = RowFilter(scan_at.rows.schema, self._members.taken, self._members.size)
        return self._filter

    def _naming(self) -> NamedValues:
        layouts = len(self._summary.layouts)
        if self._named is None or self._named.wanted.shape[1] != layouts:
            self._named = NamedValues.of(self._members, self._summary)
        return self._named

    @property
    def evaluations(self) -> int:
        """Rows that were visited, each as often as members looked for it."""
        return int(self._members.learnt.visits.sum())

    # --- what is told -----------------------------------------------------------------------------

    @property
    def counts(self) -> GroupCounts:
        """What it did, and what is before it."""
        entries, left = self._set.entries, float(self._all_left().total.sum())
        counts = replace(self._set.counts, hits=self._hits, spent=self._spent)
        return counts.with_left(len(entries), int(entries.left.sum()), left)

    @property
    def nbytes(self) -> int:
        """Bytes of the set and of what was found."""
        return self._set.nbytes + sum(found.nbytes for found in self._found.values())

    def found(self, query_id: str) -> FoundRows:
        """The rows that a query takes of those that were visited for it; for aggregates that can be completed
        with those that are left.
        """
        number = self._members.number[query_id]
        found = FoundRows(self._found[number].read(), errors=self.errors(query_id))
        if not len(self._set) or not counts_or_sums(self._members.held[query_id].query):
            return found
        left = self._all_left().rows_left(number, self._members, self._naming(), self._summary)
        return found if left is None else replace(found, left=left)

    def errors(self, query_id: str) -> int:
        """Visited rows whose predicate ended as an error."""
        return int(self._members.learnt.errors[self._members.number[query_id]])

    def estimate_left(self, query_id: str) -> float:
        """How many more of its matches the summaries estimate among the rows that are left, and among those
        in its window that were let go unvisited.
        """
        number = self._members.number[query_id]
        return float(self._all_left().total[number] + self._members.learnt.lost[number])

    def is_whole(self, query_id: str) -> bool:
        """Whether nothing is left, or was let go unvisited, that its window holds."""
        number, learnt = self._members.number[query_id], self._members.learnt
        if number in self._members.fresh or learnt.lost_end[number] > learnt.floor[number]:
            return False
        entries = self._set.entries
        looking = (entries.wanted & self._members.bits([number])).any(axis=1)
        if not looking.any():
            return True
        some = entries.take(looking & (entries.end > learnt.floor[number]))
        first = np.maximum(some.cursor, learnt.floor[number])
        return not len(self._summary.rows_of_many(some.bucket, first, some.end).rows)

    def _all_left(self) -> LeftEstimates:
        """The matches that are estimated among the rows that are left."""
        if self._estimates is None:
            self._estimates = LeftEstimates.of(
                self._set.entries, self._left_in_windows(), self._members, self._naming(), self._summary
            )
        return self._estimates

    def _left_in_windows(self) -> Iterator[tuple[npt.NDArray[np.uint64], Int64Array]]:
        """The members with each window, and int64[entries], the rows that are left in it."""
        entries, members = self._set.entries, self._members
        for numbers in members.by_window().values():
            floor = members.learnt.floor[numbers[0]]
            left = entries.left.copy()
            across = np.flatnonzero(entries.cursor < floor)
            if len(across):
                some = entries.take(across)
                first = np.full(len(some), floor)
                left[across] = np.diff(self._summary.rows_of_many(some.bucket, first, some.end).offsets)
            yield members.bits(numbers), left

    # --- the store's side -------------------------------------------------------------------------

    def state(self) -> SelectionState:
        """All that the next calls depend on besides rows, members and the summary."""
        members = self._members
        return SelectionState(
            self._set.entries,
            replace(self._set.counts, hits=self._hits, spent=self._spent),
            deepcopy(members.learnt),
            dict(members.number),
            tuple(sorted(members.fresh)),
            {query_id: self._found[number].read() for query_id, number in members.number.items()},
            self._mark,
            self._debt,
        )

    @classmethod
    def restored(
        cls,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        members: Iterable[Member],
        state: SelectionState,
        entries_max: int = Limits().promising_entries_max,
    ) -> PromisingSelection:
        """The group as it was when it gave its state, with the same members."""
        group = cls(key, summaries, entries_max)
        held = {member.query_id: member for member in members}
        for query_id, number in state.numbers.items():
            group._members.add(held[query_id], number)
            group._found[number] = RowsFound(state.found[query_id])
        group._members.learnt = deepcopy(state.learnt)
        group._members.fresh = set(state.fresh)
        group._set.entries, group._set.counts = state.entries, replace(state.counts, hits=0, spent=0)
        group._hits, group._spent = state.counts.hits, state.counts.spent
        group._mark, group._debt = state.mark, state.debt
        group._changed()
        return group

    def _check(self) -> None:
        self._set._check()
        assert set(self._found) == set(self._members.number.values())
        assert self._set.entries.wanted.shape[1] == self._members.words
