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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.joins.bounds import Reach
from engine.joins.key_codes import KeyCodes, kind_of
from engine.joins.shape import Shape, shape_of, windows_of
from engine.kernels import promising
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
from engine.promising.picking import Float64Array, Int8Array, faded
from engine.promising.probed_input import PREDICATES_MAX, Predicates, ProbedInput, lookup_of
from engine.promising.promising_set import PromisingEntries, least_promising
from engine.summaries.summary import Summary
from tureen.errors import NotSupported

OUT_MIN = 4_096
"""Pairs that there is room for at first."""
CODES_MIN = 65_536

_NEVER = -1


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


@dataclass(slots=True)
class InputState:
    """What is saved of one input: ordinals, and the entries that lead to its rows."""

    floor: int
    seen: int
    # Which rows from the floor on may have partners.
    wanted: BoolArray
    entries: PromisingEntries
    list_counts: Int64Array
    list_rows: Int64Array
    # Of the predicates in order of their text: rows looked at, and rows that satisfied it.
    passed: tuple[tuple[int, int], ...]
    # Of entries that were cut: the newest row that looked for partners, and the newest that it led to.
    cut_probing: int
    cut_stored: int


@dataclass(slots=True)
class JoinState:
    """What is saved of a promising join."""

    inputs: tuple[InputState, ...]
    left: Int64Array
    right: Int64Array
    # Pairs that were found before the set began anew.
    known_left: Int64Array
    known_right: Int64Array
    counts: GroupCounts


@dataclass(slots=True)
class _CutBounds:
    """Of entries that were cut: no pair of theirs has parts above both."""

    probing: int = _NEVER
    stored: int = _NEVER


@dataclass(slots=True)
class _Order:
    """How the entries of both inputs rank, the first input's before the second's."""

    rank: Int8Array
    priority: Float64Array
    sizes: tuple[int, int]


@dataclass(slots=True)
class _Kept:
    """What the rows in the set were kept for."""

    reaches: tuple[Reach, ...]
    predicates: tuple[Predicates, ...] = field(default=())


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
        self._codes = KeyCodes(kind_of([one.type for one in edge.left_keys]))
        inputs = []
        for place, priority in enumerate(key.priorities):
            lookup = lookup_of(sides[place], sides[1 - place], key.priorities[1 - place].column)
            assert lookup is not None
            summary = summaries[priority.summary]
            inputs.append(ProbedInput(key.sources[place], sides[place], lookup, priority, summary))
        self._inputs = tuple(inputs)
        self._cut = (_CutBounds(), _CutBounds())
        self._kept: _Kept | None = None
        self._known = PairRun.merged(())
        self._runs: list[PairRun] = []
        self._found: FoundPairs | None = None
        self._counts = GroupCounts()
        self._order: _Order | None = None
        self._at: Mapping[SourceName, ScanAt] = {}

    # --- queries ----------------------------------------------------------------------------------

    @property
    def weight(self) -> float:
        """The sum of the members' weights."""
        return sum(member.weight for member in self.members.values())

    def add(self, member: Member, at: Mapping[SourceName, ScanAt]) -> None:
        """A query comes; it sees all retained rows, after the next :meth:`arrive`."""
        self.members[member.query_id] = member
        self._at = dict(at)

    def remove(self, query_id: str) -> None:
        """It goes."""
        del self.members[query_id]

    def reweigh(self, query_id: str, weight: float) -> None:
        """It has another weight."""
        self.members[query_id] = replace(self.members[query_id], weight=weight)

    def _reaches_of(self, query: Query) -> tuple[Reach, ...]:
        return tuple(map(Reach.of, windows_of(query, self._shape)))

    def _needed(self) -> _Kept:
        """What the members need of the rows of each input."""
        queries = [member.query for member in self.members.values()]
        reaches = zip(*map(self._reaches_of, queries), strict=True)
        scans = zip(*(query.scans() for query in queries), strict=True)
        return _Kept(
            tuple(Reach.widest(set(each)) for each in reaches),
            tuple(_predicates([scan.predicate for scan in each]) for each in scans),
        )

    def _covers(self, needed: _Kept) -> bool:
        kept = self._kept
        return (
            kept is not None
            and all(map(Reach.covers, kept.reaches, needed.reaches))
            and all(
                one is None or (other is not None and other <= one)
                for one, other in zip(kept.predicates, needed.predicates, strict=True)
            )
        )

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
            self._begin_anew(needed, floors)
        self._kept = needed
        before = [each.seen for each in self._inputs]
        for each, predicates, scan in zip(self._inputs, needed.predicates, scans, strict=True):
            each.predicates = predicates
            each.append(scan.rows, scan.end, self._codes)
        self._raise_floors(floors)
        ends = [scan.end for scan in scans]
        self._insert(0, before[0], ends[0], before[1])
        self._insert(1, before[1], ends[1], ends[0])
        for each, end in zip(self._inputs, ends, strict=True):
            each.seen = end
            zones = each.summary.zones
            each.chains.keep_bounds(np.concatenate([zones.first, zones.end]).tolist())
        self._compact_codes()

    def _begin_anew(self, needed: _Kept, floors: Sequence[int]) -> None:
        """All rows that windows hold are new once more. Pairs that were found stay, and are known."""
        self._lapse_all()
        self._known = PairRun.merged(self._runs)
        self._codes = KeyCodes(kind_of([one.type for one in self._inputs[0].keys]))
        for each, floor, predicates in zip(self._inputs, floors, needed.predicates, strict=True):
            each.restart(floor)
            kept = () if predicates is None else predicates
            each.passed = {one: passed for one, passed in each.passed.items() if one in kept}

    def _raise_floors(self, floors: Sequence[int]) -> None:
        """Rows below these ordinals are in no window any more."""
        moved = False
        for each, floor in zip(self._inputs, floors, strict=True):
            if floor > each.floor:
                each.floor = floor
                each.chains.drop_below(floor)
                moved = True
        if moved:
            self._lapse()
            self._drop_pairs()

    def _lapse(self) -> None:
        """Entries go whose rows, or all that look for them, are below the floors."""
        for place, each in enumerate(self._inputs):
            entries = each.entries.entries
            gone = entries.cursor < each.floor
            gone |= each.entries.newest_probing() < self._inputs[1 - place].floor
            lapsed = gone & (entries.left > 0)
            if lapsed.any():
                self._count_lapsed(int(np.count_nonzero(lapsed)), int(entries.left[lapsed].sum()))
                each.entries.keep(~gone & (entries.left > 0))
        self._order = None

    def _lapse_all(self) -> None:
        for each in self._inputs:
            left = each.entries.entries.left
            self._count_lapsed(int(np.count_nonzero(left)), int(left.sum()))

    def _count_lapsed(self, entries: int, rows: int) -> None:
        counts = self._counts
        self._counts = replace(counts, lapsed=counts.lapsed + entries, rows_lapsed=counts.rows_lapsed + rows)

    def _drop_pairs(self) -> None:
        """Let go of pairs with a part below the floors, of one run at a time where most of it is gone."""
        left, right = (each.floor for each in self._inputs)
        kept = [run.from_floors(left, right) for run in self._runs]
        self._known = self._known.from_floors(left, right)
        self._runs = [run for run in kept if len(run)]
        self._found = None

    def _insert(self, driver: int, start: int, stop: int, upper: int) -> None:
        """Entries for the rows of one input, start <= ordinal < stop, over the other's below ``upper``."""
        probing, probed = self._inputs[driver], self._inputs[1 - driver]
        start = max(start, probing.floor)
        if start >= stop or upper <= probed.floor:
            return
        from_ms = self._at[probed.source].rows.timestamp_of(probed.floor)
        made = new_entries(probing, probed, self.key, start, stop, upper, from_ms)
        if made is None:
            return
        counts = self._counts
        self._counts = replace(
            counts,
            entries=counts.entries + len(made),
            rows=counts.rows + int(made.rows.sum()),
            pruned=counts.pruned + int(np.count_nonzero(made.rank == picking.PRUNED)),
            unranked=counts.unranked + int(np.count_nonzero(made.rank == picking.UNRANKED)),
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
        more = sum(len(each.entries) for each in self._inputs) - self._entries_max
        if more <= 0:
            return
        order = self._ordered()
        both = [each.entries.entries for each in self._inputs]
        joined = PromisingEntries.joined(both)
        cut = least_promising(self.key.order, joined, order.priority, more)
        parts = cut[: order.sizes[0]], cut[order.sizes[0] :]
        for place, (each, gone) in enumerate(zip(self._inputs, parts, strict=True)):
            if gone.any():
                entries, bounds = each.entries.entries, self._cut[place]
                bounds.probing = max(bounds.probing, int(each.entries.newest_probing()[gone].max()))
                bounds.stored = max(bounds.stored, int(entries.cursor[gone].max()))
                rows = int(entries.left[gone].sum())
                counts = self._counts
                self._counts = replace(
                    counts,
                    cut=counts.cut + int(np.count_nonzero(gone)),
                    rows_cut=counts.rows_cut + rows,
                )
                each.entries.keep(~gone)
        self._order = None

    def _compact_codes(self) -> None:
        """Numbers of keys that no row has any more are given back, now and then."""
        if self._codes.given <= CODES_MIN + 2 * sum(len(each.chains) for each in self._inputs):
            return
        used = np.unique(np.concatenate([each.chains.used_codes() for each in self._inputs]))
        renewed = self._codes.compact(used)
        for each in self._inputs:
            each.chains.recode(used, renewed)
        for place in (0, 1):
            self._recode_lists(place)

    def _recode_lists(self, place: int) -> None:
        """The keys of the lists that probe an input, by their newest rows."""
        entries, probing = self._inputs[place].entries, self._inputs[1 - place]
        lists = entries.lists()
        newest = lists.rows[lists.starts + lists.counts - 1]
        alive = newest >= probing.chains.floor
        codes = np.full(len(newest), promising.ENDED, np.int64)
        codes[alive] = probing.chains.keys_of(newest[alive])
        entries.recode(codes)

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
            entries = [each.entries.entries for each in self._inputs]
            rows = np.concatenate([each.rows for each in entries])
            left = np.concatenate([each.left for each in entries])
            picked = picking.pick(self.key.order, order.rank, order.priority, rows, left, units - used)
            if not len(picked.places):
                break
            for start in range(0, len(picked.places), picking.BLOCK):
                block = slice(start, start + picking.BLOCK)
                used += self._visit(picked.places[block], picked.units[block], order.sizes[0], found)
            self._sweep()
        self._keep_found(found)
        self._counts = replace(self._counts, spent=self._counts.spent + used)
        return used

    def _ordered(self) -> _Order:
        """Ranks and faded priorities of all entries; the same until some come or go."""
        if self._order is None:
            ranks, priorities = [], []
            for each in self._inputs:
                entries, zones = each.entries.entries, each.summary.zones
                ranks.append(entries.rank)
                priority = entries.priority
                if self.key.fade < 1.0 and len(zones.end) and len(entries):
                    zone = np.minimum(zones.end.searchsorted(entries.first, "right"), len(zones.end) - 1)
                    priority = faded(self.key.order, priority, self.key.fade, zones.granularity[zone])
                priorities.append(priority)
            sizes = len(ranks[0]), len(ranks[1])
            self._order = _Order(np.concatenate(ranks), np.concatenate(priorities), sizes)
        return self._order

    def _visit(
        self,
        places: Int64Array,
        units: Int64Array,
        boundary: int,
        found: list[tuple[Int64Array, Int64Array]],
    ) -> int:
        """Visit a block, in the order of the stored rows; places from ``boundary`` on are the second's."""
        tally = np.zeros(3, np.int64)
        for place, each in enumerate(self._inputs):
            among = places >= boundary if place else places < boundary
            chosen, allotted = places[among] - place * boundary, units[among]
            entries = each.entries.visited_entries()
            order = np.argsort(entries.cursor[chosen], kind="stable")
            chosen, allotted = chosen[order], allotted[order]
            lists, rows = each.entries.lists(), each.chains.rows()
            other, begin, room = self._inputs[1 - place], 0, OUT_MIN
            while begin < len(chosen):
                probing, stored = np.empty(room, np.int64), np.empty(room, np.int64)
                begin, count = promising.visit(
                    chosen,
                    allotted,
                    begin,
                    entries,
                    rows,
                    each.chains.first,
                    lists,
                    each.floor,
                    other.floor,
                    probing,
                    stored,
                    tally,
                )
                if count:
                    pair = stored[:count], probing[:count]
                    found.append(pair if place == 0 else pair[::-1])
                room *= 2
        visited, lapsed, finished = tally.tolist()
        counts = self._counts
        self._counts = replace(
            counts,
            visited=counts.visited + visited,
            rows_lapsed=counts.rows_lapsed + lapsed,
            done=counts.done + finished,
        )
        return int(visited)

    def _sweep(self) -> None:
        """Let go of finished entries where they are many."""
        before = [len(each.entries) for each in self._inputs]
        for each in self._inputs:
            each.entries.sweep()
        if before != [len(each.entries) for each in self._inputs]:
            self._order = None

    def _keep_found(self, found: Sequence[tuple[Int64Array, Int64Array]]) -> None:
        """Put pairs beside those that were found, without those that were known before."""
        if not found:
            return
        left, right = (np.concatenate([each[place] for each in found]) for place in (0, 1))
        if len(self._known):
            known = np.empty(len(left), np.bool_)
            promising.known_pairs(left, right, self._known.left, self._known.right, known)
            left, right = left[~known], right[~known]
        if len(left):
            self._runs.append(PairRun.sorted(left, right))
            while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
                self._runs[-2:] = [PairRun.merged(self._runs[-2:])]
        self._counts = replace(self._counts, hits=self._counts.hits + len(left))
        self._found = None

    # --- readers ----------------------------------------------------------------------------------

    @property
    def counts(self) -> GroupCounts:
        """What was done, and what is left."""
        left = [each.entries.entries.left for each in self._inputs]
        return self._counts.with_left(
            sum(int(np.count_nonzero(each)) for each in left),
            sum(int(each.sum()) for each in left),
            sum(float(each.entries.estimates_left().sum()) for each in self._inputs),
        )

    def found(self, query_id: str) -> FoundPairs:
        """The pairs that were found, for all members; the same object until something changes."""
        assert query_id in self.members
        if self._found is None:
            self._found = FoundPairs(tuple(self._runs))
        return self._found

    def _floors_of(self, query_id: str) -> tuple[int, int]:
        """Where the windows of a query begin."""
        reaches = self._reaches_of(self.members[query_id].query)
        floors = []
        for each, reach in zip(self._inputs, reaches, strict=True):
            scan = self._at[each.source]
            now_ms = scan.now_ms
            floors.append(each.floor if now_ms is None else reach.floor(scan.rows, scan.end, now_ms))
        return floors[0], floors[1]

    def _open(self, query_id: str, place: int) -> BoolArray:
        """bool[entries]: which of those that probe one input may lead to pairs in a query's windows."""
        floors = self._floors_of(query_id)
        entries = self._inputs[place].entries
        inside = entries.newest_probing() >= floors[1 - place]
        held = entries.entries
        there: BoolArray = inside & (held.left > 0) & (held.cursor >= floors[place])
        return there

    def estimate_left(self, query_id: str) -> float:
        """How many more pairs in a query's windows, that its predicates accept, the summaries estimate."""
        scans = tuple(self.members[query_id].query.scans())
        share = 1.0
        for each, scan in zip(self._inputs, scans, strict=True):
            share *= each.pass_rate(scan.predicate)
        total = 0.0
        for place, each in enumerate(self._inputs):
            total += float(each.entries.estimates_left()[self._open(query_id, place)].sum())
        return share * total

    def entries_left(self, query_id: str) -> int:
        """How many entries may lead to pairs in a query's windows."""
        return sum(int(np.count_nonzero(self._open(query_id, place))) for place in (0, 1))

    def is_whole(self, query_id: str) -> bool:
        """Whether nothing is left, or was cut, that a query's windows hold."""
        floors = self._floors_of(query_id)
        for place, bounds in enumerate(self._cut):
            if bounds.probing >= floors[1 - place] and bounds.stored >= floors[place]:
                return False
        return not self.entries_left(query_id)

    @property
    def nbytes(self) -> int:
        """Bytes of rows, entries and pairs."""
        pairs = sum(run.left.nbytes + run.right.nbytes for run in self._runs)
        return pairs + sum(each.nbytes for each in self._inputs)

    # --- what goes, and what is saved -------------------------------------------------------------

    def drop_below(self, source: SourceName, ordinal: int) -> None:
        """Rows of a source below this ordinal are gone."""
        self._raise_floors(
            [max(each.floor, ordinal) if each.source == source else each.floor for each in self._inputs]
        )

    def forget(self) -> None:
        """Begin anew at the next :meth:`arrive`; what was found goes, too."""
        self._lapse_all()
        for each in self._inputs:
            each.restart(0)
        self._runs, self._known, self._found = [], PairRun.merged(()), None
        self._kept = self._order = None
        self._cut = (_CutBounds(), _CutBounds())


def _predicates(scans: Sequence[object]) -> Predicates:
    """Of which a row has to satisfy one, where each query has one and they are few."""
    distinct = frozenset(scans)
    if None in distinct or len(distinct) > PREDICATES_MAX:
        return None
    return distinct  # type: ignore[return-value]
