"""The nurseries of an engine (:mod:`engine.queries.nursery`): those of queries that are to come, and of
others that stand and are to be altered, paused or removed. Beside them stand those that are set apart
(:mod:`engine.queries.apart`).

All go through what the steps that follow do. Whoever had one made dismisses it once the query has come, was
altered or has gone, or when nobody waits for that any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from engine.changes.transition import Transition
from engine.dataflow.graph import STREAMS, Graph
from engine.language.query import Query
from engine.model.batch import Int32Array
from engine.model.changes import Changes, Occasion
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Position
from engine.operators.pipeline import evaluate
from engine.queries.apart import AllApart
from engine.queries.nursery import AnswerBeside, Nursery
from engine.queries.source_set import SourceSet
from engine.queries.strategist import PhysicalChoice
from engine.queries.subscriber import Subscriber
from engine.queries.whole_answers import limited
from engine.standing.query import SetKey, StandingQuery
from tureen.errors import TureenError


class Nurseries:
    """One owner, as the engine."""

    def __init__(self, limits: Limits, empty: Callable[[SetKey], Graph]) -> None:
        """empty: makes a graph of the queries over a set of sources."""
        self._limits = limits
        self._empty = empty
        self._coming: dict[str, Nursery] = {}
        """The nurseries of queries that are to come, by query id."""
        self._arrived: dict[str, Nursery] = {}
        """Those of queries that came in the step at hand, whose first answers are to be told."""
        self._standing: dict[str, Nursery] = {}
        """Those of queries that stand, whose answers are to be taken back or compared."""
        self.apart = AllApart()
        """Queries whose state, and changes, are made beside."""

    def begin(self) -> None:
        """A step is at hand."""
        self._arrived.clear()

    # --- of queries that come -----------------------------------------------------------------------

    def nurse(
        self,
        standing: StandingQuery,
        query: Query,
        subscriber: Subscriber,
        way: PhysicalChoice,
        over: SourceSet,
    ) -> Nursery | None:
        """Begin to make what a query that is to come needs: its state, and its first answer where that is
        told, as its sources stand now. None: that can only be made when it comes. standing: the query as it
        will be, but for the step. way: how its changes are worked out.
        """
        stands = over.now.at_rest()
        if stands is None:
            return None
        operator, copies = subscriber.operator, subscriber.copies
        apart = self._empty(standing.set_key)
        apart.add(standing, way.query, operator, copies=copies, policy=way.policy, own=standing.query_id)
        graph = apart if apart.may_be_apart else None
        answer = None
        if subscriber.has_whole("snapshot"):
            telling = graph
            if graph is None or operator != "changes":
                telling = self._telling(standing, way)
            answer = self._answer(standing, query, subscriber, stands, telling, "snapshot")
        if graph is None and answer is None:
            return None
        made = Nursery(standing.set_key, graph, way, subscriber, stands, self._limits, answer)
        self._coming[standing.query_id] = made
        return made

    def _telling(self, standing: StandingQuery, way: PhysicalChoice) -> Graph:
        """A graph that tells all changes of a query's answer."""
        graph = self._empty(standing.set_key)
        graph.add(standing, way.query, "changes", policy=way.policy)
        return graph

    def _answer(
        self,
        standing: StandingQuery,
        query: Query,
        subscriber: Subscriber,
        stands: Transition,
        graph: Graph | None,
        occasion: Occasion,
    ) -> AnswerBeside:
        """A whole answer, to be made beside and kept up. graph: as AnswerBeside has it."""
        at = standing.at({name: at_source.at for name, at_source in stands.by_source.items()})

        def rows(limit: int) -> pa.Table:
            return evaluate(query, at, limit, self._limits, streams=STREAMS).table

        return AnswerBeside(graph, lambda: limited(rows, self._limits, occasion), copies=subscriber.copies)

    def choice_of(self, query_id: str) -> PhysicalChoice | None:
        """How the changes of a query that comes are worked out by what was made for it; None: nothing was."""
        made = self._coming.get(query_id)
        return made.way if made is not None and made.is_usable else None

    def take_over(
        self, standing: StandingQuery, subscriber: Subscriber, way: PhysicalChoice, graph: Graph
    ) -> bool:
        """Whether what a query needs was made before it came; then a graph, that of its sources, has it."""
        made = self._coming.pop(standing.query_id, None)
        if made is None or not made.is_usable or made.way is not way:
            return False
        if (made.subscriber.operator, made.subscriber.copies) != (subscriber.operator, subscriber.copies):
            return False
        while made.some():
            pass
        self._arrived[standing.query_id] = made
        if made.graph is None or not made.is_usable:
            return False
        graph.take_over(made.graph, [standing])
        return True

    def first_answer(self, query_id: str) -> tuple[pa.Table, Int32Array | None] | TureenError | None:
        """The answer of a query that has just come, or runs again, or has another text, as
        :meth:`engine.queries.nursery.Nursery.rows` has it.
        """
        made = self._arrived.get(query_id) or self._coming.get(query_id)
        return None if made is None else made.rows()

    # --- of queries that stand ----------------------------------------------------------------------

    def nurse_standing(
        self,
        standing: StandingQuery,
        subscriber: Subscriber,
        way: PhysicalChoice,
        over: SourceSet,
        *,
        told: bool,
    ) -> Nursery | None:
        """Begin to make the answer of a followed query that stands, for a step that takes it back or compares
        it. None: that can only be made in the step. way: how its changes are worked out. told: steps tell all
        changes of the answer.
        """
        stands = over.now.at_rest()
        if stands is None:
            return None
        graph = None if told else self._telling(standing, way)
        answer = self._answer(standing, standing.query, subscriber, stands, graph, "end")
        made = Nursery(standing.set_key, None, way, subscriber, stands, self._limits, answer)
        self._standing[standing.query_id] = made
        return made

    def last_answer(self, query_id: str) -> tuple[pa.Table, Int32Array | None] | TureenError | None:
        """The answer of a query that stands, as it was made beside; once. As :meth:`first_answer`."""
        made = self._standing.pop(query_id, None)
        return None if made is None else made.rows()

    def gone(self, query_id: str) -> None:
        """A query does not stand any more, or otherwise: its answer is not what is made."""
        made = self._standing.pop(query_id, None)
        if made is not None:
            made.lose()

    # --- steps --------------------------------------------------------------------------------------

    def _all(self) -> Iterator[Nursery]:
        yield from self._coming.values()
        yield from self._standing.values()

    def keys(self, affected: Collection[SourceName] | None) -> set[SetKey]:
        """The sets of sources that they read, any of these; None: all."""
        keys = {made.key for made in self._all()}.union(self.apart.keys)
        return {key for key in keys if affected is None or not set(key).isdisjoint(affected)}

    def came(self, key: SetKey, transition: Transition, now_ms: int, position: Position) -> None:
        """The sources of a set took the step of a position."""
        self.apart.came(key, transition, now_ms, position)
        for made in self._all():
            if made.key == key:
                made.came(transition, now_ms)
        for made in self._arrived.values():  # its state has gone to the graph
            if made.key == key:
                made.lose()

    def told(self, changes: Iterable[Changes]) -> None:
        """A step told these. O(queries that they are of), where answers of some that stand are made."""
        if not self._standing:
            return
        for one in changes:
            for place in [place for place, name in enumerate(one.query_ids) if name in self._standing]:
                self._standing[one.query_ids[place]].told(one.of_query(place))

    def lose(self) -> None:
        """What is made is not true any more."""
        for made in self._all():
            made.lose()

    def dismiss(self, query_id: str) -> None:
        """What was made for a query goes."""
        for of in (self._coming, self._standing):
            made = of.pop(query_id, None)
            if made is not None:
                made.give_up()
