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

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from engine.kernels import selections
from engine.language.query import Query
from engine.model.batch import Int32Array, Int64Array
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising.cell_places import CellPlaces
from engine.promising.found import FoundRows
from engine.promising.found_rows import RowsFound
from engine.promising.group import GroupCounts, GroupKey, Member
from engine.promising.left_estimates import LeftEstimates, add_estimates
from engine.promising.offered_rows import OfferedRows
from engine.promising.picking import pick
from engine.promising.row_entries import RowEntries
from engine.promising.row_filter import Hits, RowFilter
from engine.promising.row_ranking import RowRanking
from engine.promising.row_set import RowSet
from engine.promising.selection_members import Learnt, SelectionMembers
from engine.summaries.summary import Summary

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
    first = query.stages[0].aggregate
    return first is not None and any(
        call.function in ("COUNT", "SUM") and not call.distinct for call in first.calls
    )


class PromisingSelection:
    """A :class:`engine.promising.group.PromisingGroup` over one stream."""

    def __init__(
        self,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.key = key
        (priority,) = key.priorities
        self._summary = summaries[priority.summary]
        self._entries_max = limits.promising_entries_max
        buckets = self._summary.definition.settings.buckets
        self._members = SelectionMembers(priority.column, self._summary.type, buckets)
        self._offered = OfferedRows(self._members, self._summary)
        self._ranking = RowRanking(key, self._offered, self._summary)
        self._found: dict[int, RowsFound] = {}
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._offered.begin_anew()
        # Units that were used and not paid for yet.
        self._debt = 0
        self._spent = 0
        self._hits = 0
        self._changed()

    def _changed(self) -> None:
        """Members came or went."""
        self._offered.changed()
        self._filter: RowFilter | None = None
        self._moved()

    @property
    def _set(self) -> RowSet:
        return self._offered.set

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
        self._found[number] = RowsFound()
        self._changed()

    def remove(self, query_id: str) -> None:
        """A query goes, and the entries that it alone looked for."""
        number = self._members.remove(query_id)
        del self._found[number]
        self._offered.withdraw(number)
        self._changed()

    def reweigh(self, query_id: str, weight: float) -> None:
        """A query has another weight; the priorities of the entries that are there are computed anew."""
        held = self._members.held
        held[query_id] = replace(held[query_id], weight=weight)
        self._set.refresh()
        self._moved()

    # --- what comes and goes ----------------------------------------------------------------------

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Take in the rows that became visible since, and let go of what left all windows at NOW."""
        scan_at = at[self.key.sources[0]]
        if not self._summary.lists_values:
            self._summary.list_values(
                lambda first, end: self._ranking.values_at(scan_at, np.arange(first, end)), scan_at.rows.base
            )
        if now_ms is None or scan_at.now_ms is None:
            self._members.fresh.clear()  # there are no former rows
            return
        self._moved()
        self._offered.arrive(scan_at, now_ms)
        self._bound(scan_at)
        floor = self._members.learnt.floor
        for number, found in self._found.items():
            found.drop_below(int(floor[number]))

    def _bound(self, scan_at: ScanAt) -> None:
        """Cut the least promising entries beyond the limit."""
        over = len(self._set) - self._entries_max
        if over <= 0:
            return
        gone = self._set.cut(self._ranking.least(over, scan_at))
        self._offered.lose(gone, gone.end, gone.wanted)

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows below this ordinal are gone."""
        if source != self.key.sources[0]:
            return
        self._moved()
        self._offered.drop_below(ordinal)
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
            self._ranking.rank(scan_at)
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
        rows, left = entries.rows.astype(np.int32), entries.left.astype(np.int32)
        costs = np.ones(len(left), np.int64)
        picked = pick(self.key.order, entries.standing, self._ranking.faded(), rows, left, costs, units)
        some = entries.take(picked.places)
        listed = self._summary.rows_of_many(some.bucket, some.cursor, some.end)
        counts = picked.visits
        starts = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        ordinals = listed.rows[np.repeat(listed.offsets[:-1], counts) + within]
        of = np.repeat(np.arange(len(some), dtype=np.int32), counts)
        learnt = self._members.learnt
        place = CellPlaces.of(some, self._summary).place
        selections.rows_wanted(some.wanted, place, starts, ordinals, learnt.floor, learnt.visits)
        order = np.argsort(ordinals, kind="stable")
        hits = self._filtering(scan_at).apply(
            scan_at.rows, ordinals[order], of[order], some.wanted, learnt.floor
        )
        self._learn(some, place, counts, hits)
        self._set.advance(picked.places, counts, ordinals[starts[1:] - 1])
        self._hits += len(hits.ordinals)
        self._moved()
        return len(ordinals) + hits.evaluations

    def _learn(self, visited: RowEntries, place: Int32Array, counts: Int64Array, hits: Hits) -> None:
        """What members took is theirs; their rates are those of all that was visited for them."""
        learnt = self._members.learnt
        learnt.errors += hits.errors
        selections.count_cells(hits.starts, hits.entry, place, learnt.hits)
        named = self._offered.named
        seen = np.zeros(len(named.constants.member))
        add_estimates(visited, visited.wanted, counts, named, self._summary, seen)
        learnt.seen += np.bincount(named.constants.member, seen, self._members.size)
        for number in np.flatnonzero(np.diff(hits.starts)).tolist():
            self._found[number].add(hits.of(number).copy())

    def _filtering(self, scan_at: ScanAt) -> RowFilter:
        if self._filter is None:
            self._filter = RowFilter(scan_at.rows.schema, self._members.taken, self._members.size)
        return self._filter

    @property
    def evaluations(self) -> int:
        """Rows that were visited, each as often as members looked for it."""
        return int(self._members.learnt.visits.sum())

    # --- what is told -----------------------------------------------------------------------------

    @property
    def counts(self) -> GroupCounts:
        """Counts of what the group did, and of what is left for it."""
        entries, left = self._set.entries, float(self._all_left().total.sum())
        counts = replace(self._set.counts, hits=self._hits, spent=self._spent)
        return counts.with_left(len(entries), int(entries.left.sum()), left)

    @property
    def nbytes(self) -> int:
        """Bytes of the set, of what was learnt of members, and of what was found."""
        return (
            self._set.nbytes
            + self._members.learnt.nbytes
            + sum(found.nbytes for found in self._found.values())
        )

    def found(self, query_id: str) -> FoundRows:
        """The rows that a query takes of those that were visited for it; for aggregates that can be completed
        with those that are left.
        """
        number = self._members.number[query_id]
        found = FoundRows(self._found[number].read(), errors=self.errors(query_id))
        if not len(self._set) or not counts_or_sums(self._members.held[query_id].query):
            return found
        left = self._all_left().rows_left(number, self._members, self._offered.named, self._summary)
        return found if left is None else replace(found, left=left)

    def errors(self, query_id: str) -> int:
        """Visited rows whose predicate ended as an error."""
        return int(self._members.learnt.errors[self._members.number[query_id]])

    def estimate_left(self, query_id: str) -> float:
        """How many more of its matches the summaries estimate among the rows that are left, and among those
        in its window that were let go unvisited.
        """
        number = self._members.number[query_id]
        learnt = self._members.learnt
        lost = learnt.lost[number] if learnt.lost_end[number] > learnt.floor[number] else 0.0
        return float(self._all_left().total[number] + lost)

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
                self._set.entries,
                self._offered.left_in_windows(),
                self._members,
                self._offered.named,
                self._summary,
            )
        return self._estimates

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
            self._offered.mark,
            self._debt,
        )

    @classmethod
    def restored(
        cls,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        members: Iterable[Member],
        state: SelectionState,
        limits: Limits = DEFAULT_LIMITS,
    ) -> PromisingSelection:
        """The group as it was when it gave its state, with the same members."""
        group = cls(key, summaries, limits)
        held = {member.query_id: member for member in members}
        for query_id, number in state.numbers.items():
            group._members.add(held[query_id], number)
            group._found[number] = RowsFound(state.found[query_id])
        group._members.learnt = deepcopy(state.learnt)
        group._members.fresh = set(state.fresh)
        group._set.entries, group._set.counts = (
            state.entries,
            replace(state.counts, hits=0, spent=0),
        )
        group._hits, group._spent = state.counts.hits, state.counts.spent
        group._offered.mark, group._debt = state.mark, state.debt
        group._changed()
        return group

    def _check(self) -> None:
        self._set._check()
        assert set(self._found) == set(self._members.number.values())
        assert self._set.entries.wanted.shape[1] == self._members.words
