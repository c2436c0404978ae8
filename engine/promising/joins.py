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

import numpy as np

from engine.joins.shape import Shape
from engine.model.batch import Int64Array
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising import picking
from engine.promising.found import FoundPairs
from engine.promising.group import GroupCounts, GroupKey, Member, RunningCounts
from engine.promising.join_members import JoinMembers, KeptInputs
from engine.promising.join_state import JoinState
from engine.promising.pair_store import PairStore
from engine.promising.probed_inputs import ProbedInputs
from engine.summaries.summary import Summary

CODES_MIN = 65_536


class PromisingJoin:
    """A group of queries that join the same two streams by the same keys."""

    def __init__(
        self,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        limits: Limits = DEFAULT_LIMITS,
        codes_min: int = CODES_MIN,
        counts: GroupCounts | None = None,
    ) -> None:
        """summaries: those of the preference, by name. codes_min: of so many numbers of keys none is given
        back. counts: what was done before.
        """
        assert key.edge is not None
        self.key = key
        self._limits = limits
        self._members = JoinMembers(Shape(key.sources, (key.edge,)))
        self._kept: KeptInputs | None = None
        self._tally = RunningCounts(counts)
        self._inputs = ProbedInputs(key, summaries, self._tally, limits.promising_entries_max, codes_min)
        self._pairs = PairStore()
        self._pairs_max = limits.promising_pairs_max
        # Units that were used and not paid for yet.
        self._debt = 0
        self._at: Mapping[SourceName, ScanAt] = {}
        # What is left for windows that begin at these ordinals, until something changes.
        self._left_by_floors: dict[tuple[int, int], tuple[int, float]] = {}

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
        self._inputs.reorder()
        self._left_by_floors.clear()
        if now_ms is None or not self._members:
            return
        needed = self._members.needed()
        scans = [at[each.source] for each in self._inputs]
        floors = [
            reach.floor(scan.rows, scan.end, now_ms)
            for reach, scan in zip(needed.reaches, scans, strict=True)
        ]
        if not self._is_kept:  # all rows that windows hold are new once more; pairs that were found are known
            self._pairs.know()
            self._inputs.restart(floors)
        self._keep_for(needed)
        self._inputs.append(scans)
        self._raise_floors(floors)
        self._inputs.insert(scans)

    def _raise_floors(self, floors: Sequence[int]) -> None:
        """Rows below these ordinals are in no window any more, and their pairs in no answer."""
        if self._inputs.raise_floors(floors):
            self._pairs.drop_below(*self._inputs.floors)

    # --- visits -----------------------------------------------------------------------------------

    @property
    def left(self) -> bool:
        """Whether there is anything to spend units on."""
        return not self.is_full and self._inputs.left

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
            # A unit gives a pair at most.
            picked = self._inputs.pick(min(units - used, self._pairs_max - len(self._pairs)))
            if not len(picked.places):
                break
            for start in range(0, len(picked.places), picking.BLOCK):
                block = slice(start, start + picking.BLOCK)
                used += self._inputs.visit(picked.places[block], picked.visits[block], found)
            if found:
                left, right = (np.concatenate([each[place] for each in found]) for place in (0, 1))
                hits += self._pairs.add(left, right)
            self._inputs.sweep()
        self._debt += max(0, used - units)
        used = min(used, units)
        self._tally.count(spent=used, hits=hits)
        return used

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
            known = self._left_by_floors[floors] = self._inputs.left_within(floors)
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
        if self._inputs.lacks(self._members.floors_of(query_id, self._at)):
            return False
        return not self.entries_left(query_id)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, entries and pairs."""
        return self._pairs.nbytes + sum(each.nbytes for each in self._inputs)

    # --- what goes, and what is saved -------------------------------------------------------------

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows of a source below this ordinal are gone."""
        self._left_by_floors.clear()
        self._raise_floors(
            [max(each.floor, ordinal) if each.source == source else each.floor for each in self._inputs]
        )

    def forget(self) -> None:
        """Begin anew at the next :meth:`arrive`; what was found goes, too."""
        self._left_by_floors.clear()
        self._inputs.restart((0, 0))
        self._pairs = PairStore()
        self._debt = 0
        self._kept = None

    def state(self) -> JoinState:
        """What the next calls depend on besides rows, members and summaries."""
        pairs = self._pairs.view().pairs()
        return JoinState(
            self._inputs.state(),
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
        group = cls(key, summaries, limits, counts=state.counts)
        for member in members:
            group.add(member, at)
        if state.is_kept:
            group._keep_for(group._members.needed())
        group._inputs.restore(state.inputs, [at[name] for name in key.sources])
        group._pairs = PairStore(state.pairs.copy(), state.known.copy())
        group._debt = state.debt
        return group

    def _check(self) -> None:
        counts = self.counts
        done = counts.done + counts.entries_left + counts.cut + counts.lapsed
        assert counts.entries == done
        assert counts.rows == counts.visited + counts.short + counts.rows_cut + counts.rows_lapsed
        assert counts.spent + self._debt == counts.visited
        assert counts.entries_left <= self._limits.promising_entries_max
        self._pairs._check()
        self._inputs._check()
