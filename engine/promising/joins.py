"""The promising join: pairs of two streams in the order in which a preference wants them.

Symmetric: rows of a step probe the rows of the other input that were there before, those of the second input
the new ones of the first, too; so a pair is led to by one entry at most, however late that is visited. Rows
that came together and have one key share an entry for each cell of the other input's summary that may hold
the key; a visit looks at one stored row for all of them, takes as many units as they are, compares the keys
themselves, and gives pairs whose parts both are in the widest window at NOW. Cells that the pyramid rules out
share an entry for each run of them, which is visited last: a sketch can err, and with enough units the answer
is exact. Pairs are bounded, too: while there is no room for more, nothing is visited.

A query that comes and wants more than the rows were kept for (a wider window, another predicate) makes the
set begin anew; pairs that were found stay, and are not found again.

Cost: insertion O(rows + keys * zones) a step; a visit O(1) and O(pairs); picking O(entries) for each block.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 4.1 and figure 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.joins.key_codes import KeyCodes, kind_of
from engine.joins.shape import Shape
from engine.model.batch import Int64Array
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising import picking
from engine.promising.found import FoundPairs
from engine.promising.group import GroupCounts, GroupKey, Member, RunningCounts
from engine.promising.insertion import new_entries
from engine.promising.join_members import JoinMembers, KeptInputs
from engine.promising.join_state import JoinState
from engine.promising.pair_store import PairStore
from engine.promising.picking import Float64Array, Int8Array
from engine.promising.probed_input import InputSide, ProbedInput, lookup_of
from engine.promising.promising_set import PromisingEntries, least_promising
from engine.summaries.summary import Summary

CODES_MIN = 65_536


@dataclass(frozen=True, slots=True)
class _Order:
    """Rank and faded priority of all entries, those of the first input before ``boundary``."""

    rank: Int8Array
    priority: Float64Array
    boundary: int


class PromisingJoin:
    """A group of queries that join the same two streams by the same keys."""

    def __init__(
        self,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        limits: Limits = DEFAULT_LIMITS,
        codes_min: int = CODES_MIN,
    ) -> None:
        """summaries: those of the preference, by name. codes_min: of so many numbers of keys none is given
        back.
        """
        assert key.edge is not None
        self.key = key
        self._entries_max = limits.promising_entries_max
        self._limits = limits
        self._pairs_max = limits.promising_pairs_max
        self._codes_min = codes_min
        edge = key.edge
        self._members = JoinMembers(Shape(key.sources, (edge,)))
        sides = (edge.left_keys, edge.right_keys)
        inputs = []
        for place, priority in enumerate(key.priorities):
            lookup = lookup_of(sides[place], sides[1 - place], key.priorities[1 - place].column)
            assert lookup is not None
            summary = summaries[priority.summary]
            inputs.append(ProbedInput(key.sources[place], InputSide(sides[place], lookup), priority, summary))
        self._inputs = tuple(inputs)
        self._codes = self._new_codes()
        self._kept: KeptInputs | None = None
        self._pairs = PairStore()
        self._tally = RunningCounts()
        self._debt = 0
        self._order: _Order | None = None
        self._at: Mapping[SourceName, ScanAt] = {}
        self._left_by_floors: dict[tuple[int, int], tuple[int, float]] = {}

    def _new_codes(self) -> KeyCodes:
        first = self._inputs[0]
        return KeyCodes(kind_of([one.type for one in first.side.keys]), first.summary.capacities)

    # --- queries ----------------------------------------------------------------------------------

    @property
    def members(self) -> Mapping[str, Member]:
        """Its queries, by id."""
        return self._members.by_id

    @property
    def weight(self) -> float:
        """The sum of the members' weights."""
        return self._members.weight

    def add(self, member: Member, at: Mapping[SourceName, ScanAt]) -> None:
        """A query comes; it sees all retained rows, after the next :meth:`arrive`."""
        self._members.add(member)
        self._bound_pairs()
        self._at = {name: at[name] for name in self.key.sources}
        self._left_by_floors.clear()

    def remove(self, query_id: str) -> None:
        """A query goes; what only it wanted is not kept from now on."""
        self._members.remove(query_id)
        self._bound_pairs()
        if self._is_kept:
            self._keep_for(self._members.needed())

    def _bound_pairs(self) -> None:
        """Where a query emits its changes, no answer may become too large to be compared with the one before:
        half of that is left for what the last visit gives.
        """
        emits = any(member.query.emit is not None for member in self.members.values())
        self._pairs_max = self._limits.promising_pairs_max
        if emits:
            self._pairs_max = min(self._pairs_max, self._limits.changes_max // 2)

    def reweigh(self, query_id: str, weight: float) -> None:
        """A query has another weight."""
        self._members.reweigh(query_id, weight)

    @property
    def _is_kept(self) -> bool:
        """Whether rows and entries are kept for all members."""
        if self._kept is None or not self._members:
            return False
        needed = self._members.needed()
        return self._kept is needed or self._kept.covers(needed)

    def _keep_for(self, needed: KeptInputs) -> None:
        """What rows that come are kept for."""
        self._kept = needed
        for each, predicates in zip(self._inputs, needed.predicates, strict=True):
            each.wanted.predicates = predicates

    # --- rows -------------------------------------------------------------------------------------

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Take in the rows that became visible since, and let go of what left all windows at NOW."""
        self._at = {name: at[name] for name in self.key.sources}
        self._order = None
        self._left_by_floors.clear()
        if now_ms is None or not self._members:
            return
        needed = self._members.needed()
        scans = [at[each.source] for each in self._inputs]
        floors = [
            reach.floor(scan.rows, scan.end, now_ms)
            for reach, scan in zip(needed.reaches, scans, strict=True)
        ]
        if not self._is_kept:
            self._begin_anew(floors)
        self._keep_for(needed)
        before = [each.seen for each in self._inputs]
        for each, scan in zip(self._inputs, scans, strict=True):
            each.append(scan.rows, scan.end, self._codes)
        self._raise_floors(floors)
        ends = [scan.end for scan in scans]
        self._insert(0, before[0], ends[0], before[1])
        self._insert(1, before[1], ends[1], ends[0])
        for each, end in zip(self._inputs, ends, strict=True):
            each.seen = end
            each.chains.keep_bounds(each.zone_bounds())
        self._compact_codes()

    def _begin_anew(self, floors: Sequence[int]) -> None:
        """All rows that windows hold are new once more. Pairs that were found stay, and are known."""
        self._lapse_all()
        self._pairs.know()
        self._codes = self._new_codes()
        for each, floor in zip(self._inputs, floors, strict=True):
            each.restart(floor)

    def _raise_floors(self, floors: Sequence[int]) -> None:
        """Rows below these ordinals are in no window any more, and others may be out of reach now."""
        moved = False
        for each, floor in zip(self._inputs, floors, strict=True):
            moved |= each.raise_floor(floor)
        if moved:
            self._pairs.drop_below(self._inputs[0].floor, self._inputs[1].floor)
        for place, each in enumerate(self._inputs):
            low = each.low
            if moved or low > each.lapsed_below:
                lapsed, rows = each.lapse(low, self._inputs[1 - place].floor)
                self._tally.count(lapsed=lapsed, rows_lapsed=rows)

    def _lapse_all(self) -> None:
        for each in self._inputs:
            left = each.entries.entries.left
            self._tally.count(lapsed=int(np.count_nonzero(left)), rows_lapsed=each.entries.units_left())

    def _insert(self, driver: int, start: int, stop: int, upper: int) -> None:
        """Entries for the rows of one input, start <= ordinal < stop, over the other's below ``upper``."""
        probing, probed = self._inputs[driver], self._inputs[1 - driver]
        start = max(start, probing.floor)
        if start >= stop or upper <= probed.floor:
            return
        if probed.low > probed.floor:  # rows in a window that the summary does not know of any more
            probed.miss(stop - 1, min(probed.low, upper) - 1)
        from_ms = self._at[probed.source].rows.timestamp_of(probed.floor)
        made = new_entries(probing, probed, self.key, start, stop, upper, from_ms)
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
        if sum(len(each.entries) for each in self._inputs) <= self._entries_max:
            return
        for each in self._inputs:
            each.entries.sweep(always=True)
        self._order = None
        more = sum(len(each.entries) for each in self._inputs) - self._entries_max
        if more <= 0:
            return
        order = self._ordered()
        both = PromisingEntries.joined([each.entries.entries for each in self._inputs])
        cut = least_promising(self.key.order, both, order.priority, more)
        costs = np.concatenate([each.entries.costs() for each in self._inputs])
        self._tally.count(cut=more, rows_cut=int((both.left * costs)[cut].sum()))
        self._inputs[0].cut(cut[: order.boundary])
        self._inputs[1].cut(cut[order.boundary :])
        self._order = None

    def _compact_codes(self) -> None:
        """Numbers of keys that no row has any more are given back, now and then."""
        if self._codes.given <= self._codes_min + 2 * sum(len(each.chains) for each in self._inputs):
            return
        used = np.unique(np.concatenate([each.chains.used_codes() for each in self._inputs]))
        renewed = self._codes.compact(used)
        for each in self._inputs:
            each.chains.recode(used, renewed)
        self._recode_lists()

    def _recode_lists(self) -> None:
        one, other = self._inputs
        one.recode_lists(other)
        other.recode_lists(one)

    # --- visits -----------------------------------------------------------------------------------

    @property
    def left(self) -> bool:
        """Whether there is anything to spend units on."""
        return not self.is_full and any(bool(each.entries.entries.left.any()) for each in self._inputs)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more pairs: no row is visited until some leave the windows."""
        return len(self._pairs) >= self._pairs_max

    def spend(self, units: int, at: Mapping[SourceName, ScanAt]) -> int:
        """Visit rows; returns the units that were used: all of them, or less and nothing is left.

        A visit is whole: what the last one takes beyond the grant, later grants pay first.
        """
        used, hits = min(units, self._debt), 0
        self._debt -= used
        self._left_by_floors.clear()
        while used < units and not self.is_full:
            found = list[tuple[Int64Array, Int64Array]]()
            order = self._ordered()
            both = [each.entries.entries for each in self._inputs]
            rows = np.concatenate([each.rows for each in both])
            left = np.concatenate([each.left for each in both])
            costs = np.concatenate([each.entries.costs() for each in self._inputs])
            # A unit gives a pair at most.
            room = min(units - used, self._pairs_max - len(self._pairs))
            picked = picking.pick(self.key.order, order.rank, order.priority, rows, left, costs, room)
            if not len(picked.places):
                break
            for start in range(0, len(picked.places), picking.BLOCK):
                block = slice(start, start + picking.BLOCK)
                used += self._visit(picked.places[block], picked.visits[block], order.boundary, found)
            if found:
                left, right = (np.concatenate([each[place] for each in found]) for place in (0, 1))
                hits += self._pairs.add(left, right)
            swept = [each.entries.sweep() for each in self._inputs]
            if any(swept):
                self._order = None
        self._debt += max(0, used - units)
        used = min(used, units)
        self._tally.count(spent=used, hits=hits)
        return used

    def _ordered(self) -> _Order:
        """Ranks and faded priorities of all entries; the same until some come or go."""
        if self._order is None:
            ranks = [each.entries.entries.rank for each in self._inputs]
            priorities = [each.faded(self.key.order, self.key.fade) for each in self._inputs]
            self._order = _Order(np.concatenate(ranks), np.concatenate(priorities), len(ranks[0]))
        return self._order

    def _visit(
        self,
        places: Int64Array,
        visits: Int64Array,
        boundary: int,
        found: list[tuple[Int64Array, Int64Array]],
    ) -> int:
        """Visit a block of entries; those at places from ``boundary`` on are the second input's. Returns the
        units of the visits.
        """
        tally = np.zeros(3, np.int64)
        for place, each in enumerate(self._inputs):
            among = places >= boundary if place else places < boundary
            chosen = places[among] - place * boundary
            for stored, probing in each.visit(chosen, visits[among], self._inputs[1 - place].floor, tally):
                found.append((probing, stored) if place else (stored, probing))
        visited, lapsed, finished = tally.tolist()
        self._tally.count(visited=visited, rows_lapsed=lapsed, done=finished)
        return int(visited)

    # --- readers ----------------------------------------------------------------------------------

    @property
    def counts(self) -> GroupCounts:
        """What was done, and what is left."""
        left = [each.entries.entries.left for each in self._inputs]
        return self._tally.counts().with_left(
            sum(int(np.count_nonzero(each)) for each in left),
            sum(each.entries.units_left() for each in self._inputs),
            sum(each.entries.estimate_left() for each in self._inputs),
        )

    def found(self, query_id: str) -> FoundPairs:
        """The pairs that were found, for all members; the same object until something changes."""
        assert query_id in self.members
        return self._pairs.view()

    def _left_of(self, query_id: str) -> tuple[int, float]:
        """How many entries may lead to pairs in a query's windows, and how many pairs they are estimated to
        lead to. O(entries) for the first query with these windows since something changed.
        """
        floors = self._members.floors_of(query_id, self._at)
        known = self._left_by_floors.get(floors)
        if known is None:
            one, other = (each.entries for each in self._inputs)
            open_ = one.open(*floors), other.open(*floors[::-1])
            known = (
                sum(int(np.count_nonzero(each)) for each in open_),
                one.estimate_left(open_[0], *floors) + other.estimate_left(open_[1], *floors[::-1]),
            )
            self._left_by_floors[floors] = known
        return known

    def estimate_left(self, query_id: str) -> float:
        """How many more pairs in a query's windows the summaries estimate, as those that were found: whatever
        its predicates make of them.
        """
        return self._left_of(query_id)[1]

    def entries_left(self, query_id: str) -> int:
        """How many entries may lead to pairs in a query's windows."""
        return self._left_of(query_id)[0]

    def is_whole(self, query_id: str) -> bool:
        """Whether nothing is left, or was cut, or out of reach, that a query's windows hold."""
        if not self._is_kept:
            return False
        one, other = self._members.floors_of(query_id, self._at)
        if self._inputs[0].lacks(one, other) or self._inputs[1].lacks(other, one):
            return False
        return not self.entries_left(query_id)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, entries and pairs."""
        return self._pairs.nbytes + sum(each.nbytes for each in self._inputs)

    # --- what goes, and what is saved -------------------------------------------------------------

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows of a source below this ordinal are gone."""
        self._order = None
        self._left_by_floors.clear()
        self._raise_floors(
            [max(each.floor, ordinal) if each.source == source else each.floor for each in self._inputs]
        )

    def forget(self) -> None:
        """Begin anew at the next :meth:`arrive`; what was found goes, too."""
        self._left_by_floors.clear()
        self._lapse_all()
        for each in self._inputs:
            each.restart(0)
        self._pairs = PairStore()
        self._debt = 0
        self._kept = self._order = None

    def state(self) -> JoinState:
        """What the next calls depend on besides rows, members and summaries."""
        self._order = None
        pairs = self._pairs.view().pairs()
        return JoinState(
            tuple(each.state() for each in self._inputs),
            pairs,
            self._pairs.known,
            self._tally.counts(),
            self._is_kept,
            self._debt,
        )

    @classmethod
    def restored(
        cls,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        members: Iterable[Member],
        at: Mapping[SourceName, ScanAt],
        state: JoinState,
        limits: Limits = DEFAULT_LIMITS,
    ) -> PromisingJoin:
        """The group that :meth:`state` was asked of, over the same rows, summaries and members."""
        group = cls(key, summaries, limits)
        for member in members:
            group.add(member, at)
        if state.is_kept:
            group._keep_for(group._members.needed())
        for each, saved in zip(group._inputs, state.inputs, strict=True):
            each.restore(saved, at[each.source].rows, group._codes)
        group._recode_lists()
        group._pairs = PairStore(state.pairs.copy(), state.known.copy())
        group._tally = RunningCounts(state.counts)
        group._debt = state.debt
        return group

    def _check(self) -> None:
        counts = self.counts
        done = counts.done + counts.entries_left + counts.cut + counts.lapsed
        assert counts.entries == done
        assert counts.rows == counts.visited + counts.short + counts.rows_cut + counts.rows_lapsed
        assert counts.spent + self._debt == counts.visited
        assert counts.entries_left <= self._entries_max
        self._pairs._check()
        for each in self._inputs:
            each._check()
