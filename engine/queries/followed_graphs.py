"""The graphs that the changes of followed queries come from: one for the queries over each set of sources.

Those with a preference are in none (:mod:`engine.queries.preference_changes`), nor are those that are paused
or set apart.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from engine.changes.marks import Mark, transition_of
from engine.changes.operator import operator_over
from engine.dataflow import graph_report
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.graph import Graph
from engine.dataflow.isolation import advanced, remade
from engine.dataflow.operator_tree import ExpectedOf, OperatorTree
from engine.dataflow.plan import Plan
from engine.dataflow.strategy_state import ByStrategy, summed
from engine.language.query import Query
from engine.model.defects import Defects
from engine.model.interruption import asked
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions, Strategy, UnitCosts
from engine.model.source import SourceName
from engine.model.step import Position
from engine.model.usage import Stopwatch, Usage
from engine.queries.nurseries import Nurseries
from engine.queries.nursery import Nursery
from engine.queries.source_set import SourceSet
from engine.queries.source_sets import SourceSets
from engine.queries.strategist import PhysicalChoice, Strategist, StrategyInputs
from engine.queries.subscriber import Subscriber
from engine.queries.telling import PendingOutput
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery, set_key
from engine.stems.rows import Rows

Marks = Mapping[SetKey, Mark]
"""How sets stood before a step."""


class FollowedGraphs:
    """One owner, as the engine."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        limits: Limits,
        units: UnitCosts | None,
        watch: Stopwatch,
        defects: Defects,
        settings: StateSettings,
    ) -> None:
        """As :class:`engine.queries.subscriptions.Subscriptions` has them."""
        self._sources = sources
        self._limits = limits
        self._watch = watch
        self._defects = defects
        self._settings = settings
        self.strategist = Strategist(sources, units, settings)
        self.by_set: dict[SetKey, Graph] = {}
        self._by_source: dict[SourceName, set[SetKey]] = {}
        """The keys of these graphs by each source that they are over."""
        self._choices: dict[str, PhysicalChoice] = {}
        """How the queries of graphs are worked out, by query id."""
        self.nurseries = Nurseries(limits, self.empty)

    @property
    def nbytes(self) -> int:
        """Bytes of the state that changes come from."""
        return sum(graph.nbytes for graph in self.by_set.values())

    def strategy_of(self, standing: StandingQuery) -> Strategy | None:
        """How the operators that the changes of a query come from keep rows now; None where it is not
        followed. Any thread.
        """
        graph = self.by_set.get(standing.set_key)
        policy = None if graph is None else graph.policy_of(standing.query_id)
        return None if policy is None else policy.strategy

    def shares(self) -> dict[str, int]:
        """By followed query the bytes that it keeps, of what it shares its part. O(queries + nodes)."""
        return {
            query_id: share
            for graph in self.by_set.values()
            for queries, share in graph_report.shares(graph.sinks.by_end)
            for query_id in queries
        }

    def by_strategy(self) -> ByStrategy:
        """What is kept for the followed queries of each strategy."""
        return summed(graph.sinks.by_strategy() for graph in self.by_set.values())

    def forget(self) -> None:
        """State is made anew with the next step; changes go on where they were."""
        for graph in self.by_set.values():
            graph.forget()

    def empty(self, key: SetKey) -> Graph:
        """A graph over these sources, without queries."""
        streams = {name: self._sources[name].stream for name in key}
        tables = frozenset(name for name, stream in streams.items() if stream.is_table)
        return Graph(tables, self._watch.clock, streams, self._settings)

    # --- queries ----------------------------------------------------------------------------------

    def __contains__(self, standing: StandingQuery) -> bool:
        graph = self.by_set.get(standing.set_key)
        return graph is not None and standing.query_id in graph

    def put(self, standing: StandingQuery, subscriber: Subscriber) -> None:
        """A query comes, or is maintained in another way. What fails unexpectedly is its defect."""
        self._enter(standing.set_key)
        self._leave(standing)
        if not standing.paused:
            with self._defects.of(standing.query_id):
                self._add(standing, subscriber, self.choice(standing, subscriber))

    def gone(self, standing: StandingQuery) -> None:
        """A query is followed no more, whether it is in its graph or paused."""
        self._choices.pop(standing.query_id, None)
        if standing.set_key in self.by_set and not self._leave(standing):
            key = standing.set_key
            del self.by_set[key]
            for name in key:
                self._by_source[name].discard(key)
                if not self._by_source[name]:
                    del self._by_source[name]

    def _enter(self, key: SetKey) -> Graph:
        """The graph over these sources, made where there is none."""
        graph = self.by_set.get(key)
        if graph is None:
            graph = self.by_set[key] = self.empty(key)
            for name in key:
                self._by_source.setdefault(name, set()).add(key)
        return graph

    def holds_of(self, name: SourceName) -> bool:
        """Whether joins hold rows of a source, or will. O(graphs over it)."""
        return any(self.by_set[key].held for key in self._by_source.get(name, ()))

    def _leave(self, standing: StandingQuery) -> Graph:
        """A query leaves its graph, if it is there; what is left."""
        graph = self.by_set[standing.set_key]
        try:
            graph.remove(standing.query_id)
        except Exception:  # noqa: BLE001  (it goes, whatever it is)
            graph = self.remake(standing.set_key, [standing.query_id])
        return graph

    def remake(self, key: SetKey, without: Container[str] = ()) -> Graph:
        """A graph failed: another has its queries but these, its state still to be made."""
        graph = self.by_set[key]
        left = [name for name in graph.query_ids if name not in without]
        graph = self.by_set[key] = remade(graph, left, self._defects)
        return graph

    def choice(self, standing: StandingQuery, subscriber: Subscriber) -> PhysicalChoice:
        """How the changes of a query are to be worked out."""
        made = self.nurseries.choice_of(standing.query_id)
        if made is not None:
            return made
        options = QueryOptions.of(standing.registration.options)
        present = self._choices.get(standing.query_id)
        return self.strategist.way(subscriber.query, subscriber.operator, options, present)

    def _add(self, standing: StandingQuery, subscriber: Subscriber, choice: PhysicalChoice) -> None:
        """What fails unexpectedly is the defect of the query; it is in no graph then."""
        self._choices[standing.query_id] = choice
        graph = self.by_set[standing.set_key]
        try:
            if self.nurseries.take_over(standing, subscriber, choice, graph):
                return
            graph.add(
                standing,
                choice.query,
                subscriber.operator,
                copies=subscriber.copies,
                policy=choice.policy,
                since=standing.born.sequence if subscriber.since is None else subscriber.since,
            )
        except Exception as defect:  # noqa: BLE001  (nobody knows what of it is there)
            self._defects.note([standing.query_id], defect)
            self.remake(standing.set_key, [standing.query_id])

    def revise(self, standing: StandingQuery, subscriber: Subscriber) -> bool:
        """Choose again how the changes of a query are worked out; returns whether that is another way now.
        They go on where they were: state is made from retained rows with the next transition.
        """
        query_id = standing.query_id
        present = self._choices.get(query_id)
        if present is None or standing.paused or query_id in self.nurseries.apart:
            return False
        choice = self.choice(standing, subscriber)
        if choice.stands == present.stands:
            return False
        self._leave(standing)
        self._add(standing, subscriber, choice)
        return True

    def nurse(self, standing: StandingQuery, query: Query, over: SourceSet) -> Nursery | None:
        """As :meth:`engine.queries.nurseries.Nurseries.nurse`."""
        try:
            subscriber = Subscriber.of(query, self._sources)
            choice = self.choice(standing, subscriber)
            made = self.nurseries.nurse(standing, query, subscriber, choice, over)
        except Exception:  # noqa: BLE001  (the step that brings it will tell)
            return None
        if made is not None:
            self._choices.pop(standing.query_id, None)
        return made

    # --- plans ------------------------------------------------------------------------------------

    def strategy_inputs(self, query: Query, standing: StandingQuery | None = None) -> StrategyInputs:
        """What the strategy of a query's changes is chosen by, as it stands now. standing: None for a query
        that is not registered. O(sources).
        """
        streams = {name: self._sources[name].stream for name in query.sources}
        options, present, policy = QueryOptions(), None, None
        if standing is not None:
            options = QueryOptions.of(standing.registration.options)
            present = self._choices.get(standing.query_id)
            graph = self.by_set.get(set_key(query.sources))
            if present is not None and graph is not None:
                policy = graph.policy_of(standing.query_id)
        weighing = self.strategist.over(query)
        return StrategyInputs(query, operator_over(query, streams), options, present, policy, weighing)

    def operators(self, plan: Plan, sources: Sequence[SourceName], expected_of: ExpectedOf) -> OperatorTree:
        """The operators of a plan over sources, with what those that are there keep. O(operators)."""
        key = set_key(tuple(sources))
        graph = self.by_set.get(key) or self.empty(key)
        return graph.explain(plan, sources, expected_of)

    # --- who is set apart -------------------------------------------------------------------------

    def set_apart(self, queries: Sequence[StandingQuery], over: SourceSet) -> None:
        """What changes in the answers of these, over one set of sources, is worked out beside from now on.
        Those that cannot be set apart are passed over.
        """
        stands, graph = over.now.at_rest(), self.by_set.get(queries[0].set_key)
        if stands is None or graph is None:
            return
        names = [one.query_id for one in queries if one.query_id in graph]
        with self._defects.of(*names):
            self.nurseries.apart.add(queries[0].set_key, graph, names, stands, self._limits)
        for standing in queries:
            if standing.query_id in self.nurseries.apart:
                self._leave(standing)

    def rejoin(self, queries: Mapping[str, StandingQuery], told: PendingOutput, *, tells: bool) -> None:
        """Those of these that are set apart are told what changed since, and later changes with the steps.
        tells: False: that was told.
        """
        for apart in self.nurseries.apart.rejoining(queries):
            graph = self._enter(apart.key)
            if tells and not apart.is_begun:
                apart.run(asked())
            with self._defects.of(*apart.query_ids):
                graph.take_over(apart.graph, [queries[name] for name in apart.rejoins(tells=tells)])
            if tells:
                told.changes += apart.told()
                told.broken |= {name: apart.broken[name] for name in apart.query_ids & apart.broken.keys()}

    # --- steps ------------------------------------------------------------------------------------

    def marks(
        self, sets: SourceSets, affected: Collection[SourceName] | None, *, tells: bool = True
    ) -> Marks:
        """Marks how sets with followed queries or kept answers stand before a step. affected: the sources
        that it moves, or takes rows from; None: any. tells: False: only what is worked out beside goes
        through the step.

        A source that moves on may end the hold of a join on rows of another, and so change what those who
        read that one see. O(sets that read these).
        """
        keys = self.nurseries.keys(affected)
        if tells:
            among = sets if affected is None else sets.over(affected)
            keys |= {key for one in among if (key := tuple(one.sources)) in self.by_set or one.eager.kept}
        return {key: sets.seen(key).now.mark() for key in sorted(keys)}

    def advance(
        self,
        marks: Marks,
        rows: Mapping[SourceName, Rows],
        sets: SourceSets,
        told: PendingOutput,
        position: Position,
        *,
        tells: bool,
    ) -> None:
        """What changed in the step of a position. rows: of the sources of the sets that were marked. tells:
        as for :meth:`marks`.
        """
        for key, mark in marks.items():
            sources, graph = sets.seen(key), self.by_set.get(key) if tells else None
            now, shared = sources.now, len(key) == 1 and sets.by_source.is_joined(key[0])
            transition = transition_of(mark, now.mark(), now.seen().sources, rows, shared)
            with self._watch.on(sources.usage):
                sources.eager.kept.moved(mark, transition)
            if transition is None:
                continue
            now_ms = now.ms
            assert now_ms is not None
            self.nurseries.came(key, transition, now_ms, position)
            if graph is not None:
                with self._watch.on(Usage()):  # the graph divides its time itself
                    self.by_set[key], changes = advanced(
                        graph, transition, self._limits, now_ms, told.broken, self._defects
                    )
                self.nurseries.told(changes)
                told.changes += changes

    def _check(self) -> None:
        by_source = {(name, key) for name, keys in self._by_source.items() for key in keys}
        assert by_source == {(name, key) for key in self.by_set for name in key}
        assert all(self._by_source.values())


def rows_of(sets: SourceSets, marks: Marks) -> dict[SourceName, Rows]:
    """Returns the rows of the sources of these sets. It is to be called after a step's rows came, before any
    are let go of.
    """
    return {name: source.rows.rows() for key in marks for name, source in sets.seen(key).sources.items()}
