"""The promising join: pairs of two streams in the order in which a preference wants them.

Symmetric: rows of a step probe the rows of the other input that were there before, those of the second input
the new ones of the first, too; so a pair is led to by one entry at most, however late that is visited. Rows
that came together and have one key share an entry for each cell of the other input's summary that may hold
the key; a visit looks at one stored row for all of them, compares the keys themselves, and gives pairs whose
parts both are in the widest window at NOW. Cells that the pyramid rules out share an entry for each run of
them, which is visited last: a sketch can err, and with enough units the answer is exact.

A query that comes and wants more than the rows were kept for (a wider window, another predicate) makes the
set begin anew; pairs that were found stay, and are not found again.

Cost: insertion O(rows + keys * zones) a step; a visit O(1) and O(pairs); picking O(entries) for each block.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 4.1 and figure 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.joins.bounds import Reach
from engine.joins.key_codes import KeyCodes, kind_of
from engine.joins.shape import Shape, shape_of, windows_of
from engine.language.expressions import Expression
from engine.language.query import Join, Query
from engine.model.batch import BoolArray, Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.operators.scan import ScanAt
from engine.promising import picking
from engine.promising.found import FoundPairs, PairRun
from engine.promising.group import GroupCounts, GroupKey, Member
from engine.promising.insertion import new_entries
from engine.promising.pair_store import PairStore
from engine.promising.picking import Float64Array, Int8Array
from engine.promising.probed_input import PREDICATES_MAX, InputState, Predicates, ProbedInput, lookup_of
from engine.promising.promising_set import PromisingEntries, least_promising
from engine.summaries.summary import Summary
from tureen.errors import NotSupported

CODES_MIN = 65_536


def join_key(query: Query, widths: Mapping[SourceName, int]) -> GroupKey:
    """The key of the group that a join with a preference belongs to. widths: columns of each source.

    Raises NotSupported: its first stages are no inner join of two streams by equal columns, one of which each
    summary is on.
    """
    assert query.preference is not None
    shape = shape_of(query, widths)
    first = query.stages[0]
    kind = first.kind if isinstance(first, Join) else None
    if shape is None or kind not in ("inner", "semi") or len(tuple(query.scans())) != 2:
        hint = "join two streams by equal columns: FROM a, b WHERE a.k = b.k"
        raise NotSupported("a preference is for a join of two streams", hint=hint)
    (edge,) = shape.edges
    one, other = query.preference.priorities
    for own, others, column in (
        (edge.left_keys, edge.right_keys, other.column),
        (edge.right_keys, edge.left_keys, one.column),
    ):
        if lookup_of(own, others, column) is None:
            hint = "let the estimates be of the columns that the streams are joined by"
            raise NotSupported("a summary is on a column that is no key of the join", hint=hint)
    return GroupKey.of("join", shape.inputs, edge, query.preference)


@dataclass(frozen=True, slots=True)
class Kept:
    """What rows and entries are kept for, one an input."""

    reaches: tuple[Reach, ...]
    predicates: tuple[Predicates, ...]

    def covers(self, other: Kept) -> bool:
        """Whether all that the other needs is kept."""
        return all(map(Reach.covers, self.reaches, other.reaches)) and all(
            one is None or (two is not None and two <= one)
            for one, two in zip(self.predicates, other.predicates, strict=True)
        )


@dataclass(frozen=True, slots=True)
class JoinState:
    """What is saved of a promising join. is_kept: whether rows and entries are kept for all its members;
    else it begins anew. known: pairs that may be found once more.
    """

    inputs: tuple[InputState, ...]
    pairs: PairRun
    known: PairRun
    counts: GroupCounts
    is_kept: bool


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
        entries_max: int = Limits().promising_entries_max,
    ) -> None:
        """summaries: those of the preference, by name."""
        assert key.edge is not None
        self.key = key
        self.members: dict[str, Member] = {}
        self._entries_max = entries_max
        edge = key.edge
        self._shape = Shape(key.sources, (edge,))
        sides = (edge.left_keys, edge.right_keys)
        inputs = []
        for place, priority in enumerate(key.priorities):
            lookup = lookup_of(sides[place], sides[1 - place], key.priorities[1 - place].column)
            assert lookup is not None
            summary = summaries[priority.summary]
            inputs.append(ProbedInput(key.sources[place], sides[place], lookup, priority, summary))
        self._inputs = tuple(inputs)
        self._codes = self._new_codes()
        self._kept: Kept | None = None
        self._pairs = PairStore()
        self._counts = GroupCounts()
        self._order: _Order | None = None
        self._at: Mapping[SourceName, ScanAt] = {}

    def _new_codes(self) -> KeyCodes:
        return KeyCodes(kind_of([one.type for one in self._inputs[0].keys]))

    # --- queries ----------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """The sum of the members' weights."""
        return sum(member.weight for member in self.members.values())

    def add(self, member: Member, at: Mapping[SourceName, ScanAt]) -> None:
        """A query comes; it sees all retained rows, after the next :meth:`arrive`."""
        self.members[member.query_id] = member
        self._at = {name: at[name] for name in self.key.sources}

    def remove(self, query_id: str) -> None:
        """It goes; what only it wanted is not kept from now on."""
        del self.members[query_id]
        if self.members and self._covers(needed := self._needed()):
            self._keep_for(needed)

    def reweigh(self, query_id: str, weight: float) -> None:
        """It has another weight."""
        self.members[query_id] = replace(self.members[query_id], weight=weight)

    def _reaches_of(self, query: Query) -> tuple[Reach, ...]:
        return tuple(map(Reach.of, windows_of(query, self._shape)))

    def _needed(self) -> Kept:
        """What the members need of the rows of each input."""
        queries = [member.query for member in self.members.values()]
        reaches = zip(*map(self._reaches_of, queries), strict=True)
        scans = zip(*(query.scans() for query in queries), strict=True)
        return Kept(
            tuple(Reach.widest(set(each)) for each in reaches),
            tuple(predicates_of([scan.predicate for scan in each]) for each in scans),
        )

    def _covers(self, needed: Kept) -> bool:
        return self._kept is not None and self._kept.covers(needed)

    def _keep_for(self, needed: Kept) -> None:
        """What rows that come are kept for."""
        self._kept = needed
        for each, predicates in zip(self._inputs, needed.predicates, strict=True):
            each.look_for(predicates)

    # --- rows -------------------------------------------------------------------------------------

    def arrive(self, at: Mapping[SourceName, ScanAt], now_ms: int | None) -> None:
        """Take in the rows that became visible since, and let go of what left all windows at NOW."""
        self._at = {name: at[name] for name in self.key.sources}
        self._order = None
        if now_ms is None or not self.members:
            return
        needed = self._needed()
        scans = [at[each.source] for each in self._inputs]
        floors = [
            reach.floor(scan.rows, scan.end, now_ms)
            for reach, scan in zip(needed.reaches, scans, strict=True)
        ]
        if not self._covers(needed):
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
                self._counts = self._counts.plus(lapsed=lapsed, rows_lapsed=rows)

    def _lapse_all(self) -> None:
        for each in self._inputs:
            left = each.entries.entries.left
            self._counts = self._counts.plus(lapsed=int(np.count_nonzero(left)), rows_lapsed=int(left.sum()))

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
        self._counts = self._counts.plus(
            entries=len(made),
            rows=int(made.rows.sum()),
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
        self._counts = self._counts.plus(cut=more, rows_cut=int(both.left[cut].sum()))
        self._inputs[0].cut(cut[: order.boundary])
        self._inputs[1].cut(cut[order.boundary :])
        self._order = None

    def _compact_codes(self) -> None:
        """Numbers of keys that no row has any more are given back, now and then."""
        if self._codes.given <= CODES_MIN + 2 * sum(len(each.chains) for each in self._inputs):
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
        return any(bool(each.entries.entries.left.any()) for each in self._inputs)

    def spend(self, units: int, at: Mapping[SourceName, ScanAt]) -> int:
        """Visit rows; returns the units that were used: all of them, or less and nothing is left."""
        used, found = 0, list[tuple[Int64Array, Int64Array]]()
        while used < units:
            order = self._ordered()
            both = [each.entries.entries for each in self._inputs]
            rows = np.concatenate([each.rows for each in both])
            left = np.concatenate([each.left for each in both])
            picked = picking.pick(self.key.order, order.rank, order.priority, rows, left, units - used)
            if not len(picked.places):
                break
            for start in range(0, len(picked.places), picking.BLOCK):
                block = slice(start, start + picking.BLOCK)
                used += self._visit(picked.places[block], picked.units[block], order.boundary, found)
            swept = [each.entries.sweep() for each in self._inputs]
            if any(swept):
                self._order = None
        hits = 0
        if found:
            left, right = (np.concatenate([each[place] for each in found]) for place in (0, 1))
            hits = self._pairs.add(left, right)
        self._counts = self._counts.plus(spent=used, hits=hits)
        return used

    def _ordered(self) -> _Order:
        """Ranks and faded priorities of all entries; the same until some come or go."""
        if self._order is None:
            ranks = [each.entries.entries.rank for each in self._inputs]
            priorities = [each.faded(self.key.order, self.key.fade) for each in self._inputs]
            self._order = _Order(np.concatenate(ranks), np.concatenate(priorities), len(ranks[0]))
        return self._order

    def _visit(
        self, places: Int64Array, units: Int64Array, boundary: int, found: list[tuple[Int64Array, Int64Array]]
    ) -> int:
        """Visit a block of entries; those at places from ``boundary`` on are the second input's."""
        tally = np.zeros(3, np.int64)
        for place, each in enumerate(self._inputs):
            among = places >= boundary if place else places < boundary
            chosen = places[among] - place * boundary
            for stored, probing in each.visit(chosen, units[among], self._inputs[1 - place].floor, tally):
                found.append((probing, stored) if place else (stored, probing))
        visited, lapsed, finished = tally.tolist()
        self._counts = self._counts.plus(visited=visited, rows_lapsed=lapsed, done=finished)
        return int(visited)

    # --- readers ----------------------------------------------------------------------------------

    @property
    def counts(self) -> GroupCounts:
        """What was done, and what is left."""
        left = [each.entries.entries.left for each in self._inputs]
        return self._counts.with_left(
            sum(int(np.count_nonzero(each)) for each in left),
            sum(int(each.sum()) for each in left),
            sum(each.entries.estimate_left() for each in self._inputs),
        )

    def found(self, query_id: str) -> FoundPairs:
        """The pairs that were found, for all members; the same object until something changes."""
        assert query_id in self.members
        return self._pairs.view()

    def _floors_of(self, query_id: str) -> list[int]:
        """Where the windows of a query begin."""
        reaches = self._reaches_of(self.members[query_id].query)
        floors = []
        for each, reach in zip(self._inputs, reaches, strict=True):
            scan = self._at[each.source]
            now_ms = scan.now_ms
            floors.append(each.floor if now_ms is None else reach.floor(scan.rows, scan.end, now_ms))
        return floors

    def _open(self, query_id: str) -> list[BoolArray]:
        """bool[entries] of each input: which may lead to pairs in a query's windows."""
        one, other = self._floors_of(query_id)
        return [self._inputs[0].entries.open(one, other), self._inputs[1].entries.open(other, one)]

    def estimate_left(self, query_id: str) -> float:
        """How many more pairs in a query's windows, that its predicates accept, the summaries estimate."""
        scans = tuple(self.members[query_id].query.scans())
        share, total = 1.0, 0.0
        for each, scan, there in zip(self._inputs, scans, self._open(query_id), strict=True):
            share *= each.pass_rate(scan.predicate)
            total += each.entries.estimate_left(there)
        return share * total

    def entries_left(self, query_id: str) -> int:
        """How many entries may lead to pairs in a query's windows."""
        return sum(int(np.count_nonzero(there)) for there in self._open(query_id))

    def is_whole(self, query_id: str) -> bool:
        """Whether nothing is left, or was cut, or out of reach, that a query's windows hold."""
        if not self._covers(self._needed()):
            return False
        one, other = self._floors_of(query_id)
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
        self._raise_floors(
            [max(each.floor, ordinal) if each.source == source else each.floor for each in self._inputs]
        )

    def forget(self) -> None:
        """Begin anew at the next :meth:`arrive`; what was found goes, too."""
        self._lapse_all()
        for each in self._inputs:
            each.restart(0)
        self._pairs = PairStore()
        self._kept = self._order = None

    def state(self) -> JoinState:
        """What the next calls depend on besides rows, members and summaries."""
        self._order = None
        pairs = self._pairs.view().pairs()
        return JoinState(
            tuple(each.state() for each in self._inputs),
            pairs,
            self._pairs.known,
            self._counts,
            self._covers(self._needed()) if self.members else False,
        )

    @classmethod
    def restored(
        cls,
        key: GroupKey,
        summaries: Mapping[SummaryName, Summary],
        members: Iterable[Member],
        at: Mapping[SourceName, ScanAt],
        state: JoinState,
        entries_max: int = Limits().promising_entries_max,
    ) -> PromisingJoin:
        """The group that :meth:`state` was asked of, over the same rows, summaries and members."""
        group = cls(key, summaries, entries_max)
        for member in members:
            group.add(member, at)
        if group.members and state.is_kept:
            group._keep_for(group._needed())
        for each, saved in zip(group._inputs, state.inputs, strict=True):
            each.restore(saved, at[each.source].rows, group._codes)
        group._recode_lists()
        group._pairs = PairStore(state.pairs, state.known)
        group._counts = state.counts
        return group

    def _check(self) -> None:
        counts = self.counts
        done = counts.done + counts.entries_left + counts.cut + counts.lapsed
        assert counts.entries == done
        assert counts.rows == counts.visited + counts.short + counts.rows_cut + counts.rows_lapsed
        assert counts.spent == counts.visited
        assert counts.entries_left <= self._entries_max
        self._pairs._check()
        for each in self._inputs:
            each._check()


def predicates_of(scans: Sequence[Expression | None]) -> Predicates:
    """Of which a row has to satisfy one, where each query has one and they are few."""
    distinct = {each for each in scans if each is not None}
    if None in scans or len(distinct) > PREDICATES_MAX:
        return None
    return frozenset(distinct)
