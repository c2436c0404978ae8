"""Trees of partial results for the eager aggregates without keys over one stream.

Rows enter them with each step (:mod:`engine.operators.maintained`). Where the arguments of an aggregate are
more than columns, what they cost is measured, and they are kept only while
:class:`engine.queries.upkeep.Upkeep` has time; queries that are too dear are handed back. Where trees fail
they are made anew, without the queries for which that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from engine.language.query import Query
from engine.model.attributes import Attribute
from engine.model.defects import Defects
from engine.operators.maintained.measure import measures_of
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.queries.attempts import Attempt
from engine.queries.upkeep import Cost, Upkeep, expression_work
from engine.sources.source import Source
from engine.standing.query import StandingQuery

CHEAP_WORK = 50.0
"""What arguments take for a row that are columns, or little more. Trees of such are not measured: all slots
of a stream share their work, as they share that of matching.
"""


class TooDear(NamedTuple):
    """A query whose partial results take too long. expected_ns: of a step; None: of making them."""

    query: StandingQuery
    cost: Cost
    expected_ns: float | None = None


class EagerTrees:
    """Those over one set of sources; there are none where this is not one stream."""

    def __init__(
        self,
        sources: Sequence[Source],
        upkeep: Upkeep,
        defects: Defects,
        standing: dict[str, StandingQuery],
    ) -> None:
        """standing: the queries of the set, by id; those whose partial results are made anew are replaced."""
        self._lone = sources[0] if len(sources) == 1 and not sources[0].stream.is_table else None
        self._upkeep = upkeep
        self._defects = defects
        self._standing = standing
        self._trees = RankedAggregates(sources[0].rows.base)
        self._dear: dict[str, Cost] = {}
        """The costs of queries whose arguments are more than columns."""
        self._replanted: set[str] = set()
        """Queries whose partial results were made anew, of which nobody was told."""

    # --- queries ----------------------------------------------------------------------------------

    def can_keep(self, query: Query) -> bool:
        """Whether a query is answered from partial results."""
        return self._lone is not None and measures_of(query) is not None

    def plant(self, queries: Iterable[StandingQuery]) -> tuple[dict[str, StandingQuery], list[TooDear]]:
        """Partial results of these are kept from now on, where there is time. Returns those by id, as they
        stand now, and the others.
        """
        sown: list[StandingQuery] = []
        cheap: list[StandingQuery] = []
        dear: list[TooDear] = []
        for one in queries:
            with self._defects.of(one.query_id):
                work = arguments_work(one.query)
                if work <= CHEAP_WORK or one.query_id in self._trees:
                    cheap.append(one)
                    continue
                cost, rows = Cost(work), self._rows()
                self._dear[one.query_id] = cost
                if self._upkeep.affords(cost, rows):
                    self._upkeep.spend(cost, rows, lambda: self._sow([one]))  # noqa: B023
                    sown.append(one)
                else:
                    dear.append(TooDear(one, self._dear.pop(one.query_id)))
        if cheap:
            self._sow(cheap)
        planted: dict[str, StandingQuery] = {}
        for one in (*sown, *cheap):
            with self._defects.of(one.query_id):
                planted[one.query_id] = self.read_by(one)
        return planted, dear

    def read_by(self, query: StandingQuery) -> StandingQuery:
        """The query as it stands, answered from its partial results."""
        return replace(query, partials=self._trees.reader(query.query_id))

    def _sow(self, queries: Sequence[StandingQuery]) -> None:
        assert self._lone is not None
        try:
            self._trees.add({q.query_id: (q.query, q.scan_slot) for q in queries}, self._lone.rows.rows())
        except Exception as defect:  # noqa: BLE001  (whose it is is found out)
            self._plant_anew([*self._treed(), *queries], defect)

    def fell(self, query_id: str) -> None:
        """A query goes, or its partial results are kept no more."""
        self._dear.pop(query_id, None)
        try:
            self._trees.remove([query_id])
        except Exception as defect:  # noqa: BLE001  (those of the others are made anew)
            self._plant_anew([one for one in self._treed() if one.query_id != query_id], defect)

    def _treed(self) -> list[StandingQuery]:
        """Queries whose partial results are kept."""
        return [self._standing[query_id] for query_id in self._trees if query_id in self._standing]

    def _plant_anew(self, queries: Sequence[StandingQuery], defect: Exception) -> None:
        """Trees of partial results failed: they are made anew, without those queries for which that fails;
        without any where all succeed alone. Readers of the old ones are told of the new ones.
        """
        assert self._lone is not None
        rows = self._lone.rows.rows()
        whole = {one.query_id: (one.query, one.scan_slot) for one in queries}
        failed = set[str]()
        for query_id, kept in whole.items():
            try:
                RankedAggregates(rows.base).add({query_id: kept}, rows)
            except Exception as own:  # noqa: BLE001  (it is this one's)
                self._defects.note([query_id], own)
                failed.add(query_id)
        self._trees = RankedAggregates(rows.base)
        try:
            if not failed:
                raise defect
            self._trees.add({name: kept for name, kept in whole.items() if name not in failed}, rows)
        except Exception as shared:  # noqa: BLE001  (nobody can be told apart)
            self._defects.note(whole, shared)
            self._trees = RankedAggregates(rows.base)
        self._replanted.update(whole)

    def replanted(self) -> list[StandingQuery]:
        """Queries that are answered from other partial results than they were, since the last time."""
        names, self._replanted = self._replanted, set()
        found = []
        for name in names:
            query = self._standing.get(name)
            if query is not None and query.keeps_answer:
                query = self._standing[name] = self.read_by(query)
                found.append(query)
        return found

    # --- what is tried beside the shard -----------------------------------------------------------

    def _rows(self) -> float:
        """What a tree is made from."""
        assert self._lone is not None
        return 1.0 + len(self._lone.rows)

    def attempt(self, query: StandingQuery) -> Attempt[RankedAggregates]:
        """Begin to make the partial results of one query apart from the others."""
        assert self._lone is not None
        assert self._upkeep.timer is not None
        rows, trees = self._lone.rows.rows(), RankedAggregates(self._lone.rows.base)

        def planted() -> RankedAggregates:
            trees.add({query.query_id: (query.query, query.scan_slot)}, rows)
            return trees

        return Attempt(planted, self._rows(), self._upkeep.timer)

    def graft(self, query: StandingQuery, cost: Cost, made: RankedAggregates) -> float | None:
        """Take partial results over that were made apart. Returns what a step takes, in ns, where that is too
        much.
        """
        assert self._lone is not None
        rows = self._lone.rows.rows()
        entering = made.entering(rows)
        if entering and not self._upkeep.affords(cost, entering):
            return cost.expected_ns(entering)
        try:
            self._upkeep.spend(cost, max(1, entering), lambda: made.advance(rows))
            made.drop_below(rows.base)
            self._trees.advance(rows)
            self._trees.take(made, query.query_id, query.query)
        except Exception as defect:  # noqa: BLE001  (whose it is is found out)
            self._plant_anew([*self._treed(), query], defect)
        self._dear[query.query_id] = cost
        return None

    # --- what steps do ----------------------------------------------------------------------------

    def advance(self) -> list[TooDear]:
        """The stream took a step: its rows enter. Returns queries that are kept no more, since their
        arguments take too long for these.
        """
        if self._lone is None or not len(self._trees):
            return []
        rows = self._lone.rows.rows()
        dear = self._lighten(self._trees.entering(rows))
        try:
            self._trees.advance(rows)
        except Exception as defect:  # noqa: BLE001  (whose it is is found out)
            self._plant_anew(self._treed(), defect)
        return dear

    def _lighten(self, entering: int) -> list[TooDear]:
        """Let go of the dearest queries for which there is no time."""
        gone: list[TooDear] = []
        if not entering or not self._dear or not self._upkeep.is_measured:
            return gone
        expected = {query_id: cost.expected_ns(entering) for query_id, cost in self._dear.items()}
        for query_id in sorted(expected, key=lambda name: expected[name]):
            if expected[query_id] <= self._upkeep.left_ns:
                self._upkeep.left_ns -= expected[query_id]
                continue
            cost = self._dear[query_id]
            self.fell(query_id)
            gone.append(TooDear(replace(self._standing[query_id], partials=None), cost, expected[query_id]))
        return gone

    def dropped(self) -> None:
        """The stream let go of rows."""
        if self._lone is not None:
            try:
                self._trees.drop_below(self._lone.rows.base)
            except Exception as defect:  # noqa: BLE001  (whose it is is found out)
                self._plant_anew(self._treed(), defect)

    def begin_anew(self, base: int) -> list[StandingQuery]:
        """The rows have other ordinals, the first of them ``base``: nothing is kept. Returns the queries
        whose partial results were, to be planted.
        """
        self._trees = RankedAggregates(base)
        self._dear.clear()
        return [query for query in self._standing.values() if query.partials is not None]

    # --- readers ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[str]:
        """Ids of the queries whose partial results are kept."""
        yield from self._trees

    def bytes_of(self, query_id: str) -> int:
        """Bytes of what is kept of one query; 0 where nothing is."""
        return self._trees.bytes_of(query_id)

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return self._trees.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it."""
        return self._trees.attributes()

    def _check(self) -> None:
        if len(self._trees):
            self._trees._check()
        assert self._dear.keys() <= set(self._trees)


def arguments_work(query: Query) -> float:
    """The work of the arguments and filters of a query's first stage, an aggregate, for a row, in about
    nanoseconds; infinite where nobody knows.
    """
    stage = query.stages[0].aggregate
    assert stage is not None
    of = {(call.arguments, call.filter) for call in stage.calls}
    return max((expression_work(each) for each in of), default=0.0)
