"""The answers of the eager queries over one set of sources.

Aggregates without keys over one stream are read from trees of partial results
(:mod:`engine.queries.eager_trees`). All other answers are kept whole, and brought up to date after steps that
touched them (:mod:`engine.queries.kept_answers`). Both only as far as
:class:`engine.queries.upkeep.Upkeep` has time for them. What takes longer is put off
(:mod:`engine.queries.put_off`): the query is answered lazily, which gives the same, and what would be kept is
tried beside the shard. It is kept from when what was made so is current, or brought up to date in time.

Answers do not depend on it, so nothing of it is journalled. One owner, as the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

from engine.changes.marks import Mark
from engine.language.templates import FixedQuery
from engine.model.attributes import Attribute
from engine.model.defects import Defects, internal
from engine.model.limits import Limits
from engine.model.maintenance import PutOff
from engine.model.source import SourceName
from engine.operators.chain import CompositeSource
from engine.operators.maintained.ranked_aggregates import RankedAggregates
from engine.operators.scan import ScanAt
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.attempts import Attempt
from engine.queries.eager_trees import EagerTrees
from engine.queries.kept_answers import KeptAnswers
from engine.queries.put_off import Off, PutOffs
from engine.queries.upkeep import Cost, work_of
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.views.kept import KeptAnswer, RefreshWork, brought

Seen = Callable[[], tuple[Mapping[SourceName, ScanAt], CompositeSource | None, Limits]]
"""Returns how the sources are seen at NOW, without slots, what is kept of joins, and the limits."""


@dataclass(slots=True)
class WholeAnswer:
    """A query whose answer is kept whole."""

    query: StandingQuery
    cost: Cost


class EagerAnswers:
    """Those that are kept, and those that are put off."""

    def __init__(
        self,
        sources: Sequence[Source],
        seen: Seen,
        mark: Callable[[], Mark],
        put_offs: PutOffs,
        defects: Defects,
        standing: dict[str, StandingQuery],
    ) -> None:
        """sources: of the set. mark: returns where they stand. put_offs, defects: the engine's. standing: the
        queries of the set, by id, of which some stand otherwise once they are put off or kept again.
        """
        self._sources = sources
        self._seen = seen
        self.kept = KeptAnswers(mark)
        self._put_offs = put_offs
        self._upkeep = put_offs.upkeep
        self._defects = defects
        self._standing = standing
        self._trees = EagerTrees(sources, self._upkeep, defects, standing)
        self._whole: dict[str, WholeAnswer] = {}
        self._off: set[str] = set()

    # --- queries ----------------------------------------------------------------------------------

    def put(self, standing: Sequence[StandingQuery], coming: Sequence[AdmittedQuery]) -> list[StandingQuery]:
        """Queries come, or are maintained in another way. Returns them as they stand."""
        trees: dict[str, StandingQuery] = {}
        put: list[StandingQuery] = []
        for one, like in zip(standing, coming, strict=True):
            query_id = one.query_id
            self._whole.pop(query_id, None)
            self.kept.forget(query_id)
            self._take_off(query_id)
            mine = one if one.put_off is None else replace(one, put_off=None)
            if not one.keeps_answer or one.prefers:
                put.append(mine)
                continue
            query = like.query
            mine = replace(mine, template=FixedQuery.of(query))  # it is read at every step
            put.append(mine)
            with self._defects.of(query_id):
                if self._trees.can_keep(query):
                    trees[query_id] = mine
                else:
                    self._whole[query_id] = WholeAnswer(mine, Cost(work_of(query)))
                    self.kept.put(mine, query)
        planted = self._plant(trees.values())
        return [planted.get(one.query_id, one) for one in put]

    def _plant(self, queries: Iterable[StandingQuery]) -> dict[str, StandingQuery]:
        """Partial results of these are kept from now on, where there is time; by id, as they stand now."""
        planted, dear = self._trees.plant(queries)
        for one in dear:
            with self._defects.of(one.query.query_id):
                planted[one.query.query_id] = self._put_off(one.query, one.cost)
        return planted

    def fell(self, query_id: str) -> None:
        """A query goes, or its answer is kept no more."""
        self._whole.pop(query_id, None)
        self.kept.forget(query_id)
        self._take_off(query_id)
        self._trees.fell(query_id)

    def replanted(self) -> list[StandingQuery]:
        """Queries that are answered from other partial results than they were, since the last time."""
        return self._trees.replanted()

    # --- what is put off --------------------------------------------------------------------------

    def _put_off(self, query: StandingQuery, cost: Cost, step_ns: float | None = None) -> StandingQuery:
        """An answer is put off. query: as it stands while the answer is kept. Returns it as it stands now."""
        off = Off(query, cost, lambda: self._attempt(off), self._count)
        told = None if step_ns is None or not isfinite(step_ns) else step_ns
        self._put_offs.put(off, told)
        self._off.add(query.query_id)
        return replace(query, maintenance="lazy", partials=None, put_off=PutOff(told))

    def _take_off(self, query_id: str) -> None:
        self._off.discard(query_id)
        self._put_offs.remove(query_id)

    def _change(self, query: StandingQuery) -> None:
        """A query that stands is put off, or kept again, or takes another time than was told."""
        if self._standing.get(query.query_id) != query:
            self._standing[query.query_id] = self._put_offs.changed[query.query_id] = query

    def _count(self) -> int:
        """Rows of the sources."""
        return sum(len(source.rows) for source in self._sources)

    def _attempt(self, off: Off) -> Attempt[KeptAnswer] | Attempt[RankedAggregates]:
        """Begin to try what is put off."""
        query, timer = off.query, self._upkeep.timer
        assert timer is not None
        if self._trees.can_keep(query.query):
            return self._trees.attempt(query)
        self.kept.put(query, query.query)
        self.kept.begin([query.query_id])
        try:
            work = brought(query, *self._seen(), None)
        except Exception as defect:  # noqa: BLE001  (it is this one's)
            work = RefreshWork(1.0, partial(self._failed, query.query_id, defect))
        return Attempt(work.make, work.rows, timer)

    def _take_up(self) -> None:
        """Look at what was tried: keep what can be kept."""
        for query_id in list(self._off):
            off = self._put_offs.get(query_id)
            attempt = None if off is None else off.tried()
            if off is None or attempt is None:
                continue
            query, cost = off.query, off.cost
            cost.measured(attempt.rows, attempt.took_ns)
            step_ns: float | None = attempt.took_ns
            if attempt.defect is not None:
                self._defects.note([query_id], attempt.defect)
            elif isinstance(attempt.made, RankedAggregates):
                step_ns = self._trees.graft(query, cost, attempt.made)
            elif attempt.made is not None:
                step_ns = self._resume(query, cost, attempt.made)
            if step_ns is None:
                self._take_off(query_id)
                self._change(self._trees.read_by(query))
            else:
                self.kept.forget(query_id)
                self._put_offs.waits(off, attempt.took_ns)
                told = PutOff(step_ns if isfinite(step_ns) else None)
                self._change(replace(query, maintenance="lazy", partials=None, put_off=told))

    def _resume(self, query: StandingQuery, cost: Cost, made: KeptAnswer) -> float | None:
        """Keep an answer that was made beside. Returns what a step takes, where that is too much."""
        if self.kept.is_touched(query.query_id):
            with self._defects.of(query.query_id):
                now = brought(query, *self._seen(), made)
                if not self._upkeep.affords(cost, now.rows):
                    return cost.expected_ns(now.rows)
        self._whole[query.query_id] = WholeAnswer(query, cost)
        self.kept.keep(query.query_id, made)
        return None

    # --- what steps do ----------------------------------------------------------------------------

    def advance(self) -> None:
        """The lone stream took a step: its rows enter the trees."""
        for one in self._trees.advance():
            self._change(self._put_off(one.query, one.cost, one.expected_ns))

    def dropped(self) -> None:
        """The lone stream let go of rows."""
        self._trees.dropped()

    def renumbered(self) -> list[StandingQuery]:
        """The rows of a source have other ordinals now or begin elsewhere: all that is kept is made anew.
        Returns the queries whose partial results are.
        """
        self.kept.lose()
        for query_id in self._off:
            off = self._put_offs.get(query_id)
            if off is not None:
                off.give_up()
        anew = self._trees.begin_anew(self._sources[0].rows.base)
        self._standing.update(self._plant(anew))
        return [self._standing[query.query_id] for query in anew]

    # --- readers ----------------------------------------------------------------------------------

    def refresh(self) -> Mapping[str, KeptAnswer]:
        """Bring the answers that are kept whole up to date, the cheapest first, and put off those for which
        there is no time. Returns what is kept, by query id.
        """
        self._take_up()
        touched = [self._whole[query_id] for query_id in self.kept.begin(self._whole)]
        if not touched:
            return self.kept.shown()
        seen = self._seen()
        works: list[tuple[float, WholeAnswer, RefreshWork]] = []
        for whole in touched:
            query_id = whole.query.query_id
            try:
                now = brought(whole.query, *seen, self.kept.get(query_id))
            except Exception as defect:  # noqa: BLE001  (the answer is one that cannot be given)
                self.kept.keep(query_id, self._failed(query_id, defect))
            else:
                works.append((whole.cost.expected_ns(now.rows), whole, now))
        works.sort(key=lambda one: one[0])
        for _, whole, work in works:
            query_id = whole.query.query_id
            if not self._upkeep.affords(whole.cost, work.rows):
                del self._whole[query_id]
                self.kept.forget(query_id)
                self._change(self._put_off(whole.query, whole.cost, whole.cost.expected_ns(work.rows)))
                continue
            try:
                made = self._upkeep.spend(whole.cost, work.rows, work.make)
            except Exception as defect:  # noqa: BLE001  (the answer is one that cannot be given)
                made = self._failed(query_id, defect)
            self.kept.keep(query_id, made)
        return self.kept.shown()

    def _failed(self, query_id: str, defect: Exception) -> KeptAnswer:
        failed = internal(defect)
        self._defects.note([query_id], failed)
        return KeptAnswer(failed)

    def __iter__(self) -> Iterator[str]:
        """Ids of the queries of which something is kept."""
        yield from self._whole
        yield from self._trees

    def bytes_of(self, query_id: str) -> int:
        """Bytes of what is kept of one query's answer."""
        kept = self.kept.get(query_id)
        return (0 if kept is None else kept.nbytes) + self._trees.bytes_of(query_id)

    @property
    def nbytes(self) -> int:
        """Bytes of all that is kept. O(queries whose answers are kept whole)."""
        return self._trees.nbytes + self.kept.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of it."""
        return (
            Attribute("kept_answers", len(self._whole), "answers of eager queries that are kept whole"),
            Attribute(
                "put_off_answers",
                len(self._off),
                "eager answers that are not kept, since they take long",
            ),
            *self._trees.attributes(),
        )

    def _check(self) -> None:
        self._trees._check()
        self.kept._check()
        assert self._off.isdisjoint({*self._whole, *self._trees})
        for query_id in self._off:
            assert query_id in self._put_offs
            query = self._standing[query_id]
            assert query.maintenance == "lazy"
            assert query.put_off is not None
        for query_id in self._whole:
            assert self._standing[query_id].keeps_answer
