"""Followed queries: those that say EMIT CHANGES, and those that somebody follows for a while.

At the end of a step the changes of their answers are told (:mod:`engine.changes`). They are worked out from
rows and instants alone; what is remembered between steps saves work and changes nothing, so that whoever
begins to follow begins anywhere, and a replay tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa

from engine.changes.marks import Mark, transition_of
from engine.changes.operator import operator_over
from engine.changes.output import continues
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.graph import Graph
from engine.dataflow.isolation import advanced, remade
from engine.dataflow.operator_tree import ExpectedOf, OperatorTree
from engine.dataflow.plan import Plan
from engine.dataflow.releases.held_rows import Gone
from engine.dataflow.strategy_state import ByStrategy, summed
from engine.language.query import Query
from engine.model.batch import Int32Array
from engine.model.changes import Occasion
from engine.model.defects import Defects, refusal_of
from engine.model.interruption import asked
from engine.model.last_answer import LastAnswer
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions, Strategy, UnitCosts
from engine.model.persistence import HeldState
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
from engine.queries.whole_answers import Whole, changes_of_whole, limited, rows_max
from engine.sources.source import Source
from engine.standing.query import SetKey, StandingQuery, set_key
from engine.stems.data_stem import Rows
from engine.views.view import SetView, View
from tureen.errors import LimitExceeded, TureenError


@dataclass(frozen=True, slots=True)
class Before:
    """A followed query as it was before its text was altered. answer: what was told of it; None: nothing.
    last: kept while it was paused.
    """

    standing: StandingQuery
    subscriber: Subscriber
    answer: Whole | TureenError | None
    last: LastAnswer | None


Answers = dict[str, Whole | TureenError]
"""By query id; or why there is none."""

BeforeRetention = Mapping[SourceName, tuple[Rows, int]]
"""The rows of streams, and the first ordinal that is retained."""

Marks = Mapping[SetKey, Mark]
"""How sets stood before a step."""


class Subscriptions:
    """One owner, as the engine."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        limits: Limits,
        units: UnitCosts | None = None,
        watch: Stopwatch | None = None,
        defects: Defects | None = None,
        settings: StateSettings | None = None,
    ) -> None:
        """sources: those there are, as they come and go. units: for the choice of strategies; None: nothing
        was measured. watch, defects: the engine's. settings: what state is made with.
        """
        self._defects = Defects() if defects is None else defects
        self._settings = settings or StateSettings()
        self._watch = watch or Stopwatch()
        self._sources = sources
        self._limits = limits
        self._strategist = Strategist(sources, units, self._settings)
        self._ways: dict[str, PhysicalChoice] = {}
        """How the queries of graphs are worked out."""
        self._subscribers: dict[str, Subscriber] = {}
        self._last: dict[str, LastAnswer] = {}
        """The answers that were told last of followed queries that are paused, by query id."""
        self._graphs: dict[SetKey, Graph] = {}
        self._preferring: dict[str, StandingQuery] = {}
        """Those with a preference that are followed and not paused: graphs know nothing of them."""
        self._found: dict[str, tuple[SetView | None, Whole | TureenError]] = {}
        """The answers that were told last of the queries in ``_preferring``, by query id, each with the view
        that it was read from; None: no view is known for it.
        """
        self.nurseries = Nurseries(limits, self._empty)
        self._since: dict[str, int] = {}
        """The steps in which queries began to be followed that were there before."""
        self.step = 0
        """The sequence number of the step at hand."""

    def begin(self, step: int) -> None:
        """The step of this sequence number is at hand."""
        self.step = step
        self.nurseries.begin()

    def __len__(self) -> int:
        return len(self._subscribers)

    @property
    def nbytes(self) -> int:
        """Bytes of the state that changes come from, and of what was told last of paused queries."""
        kept = sum(last.nbytes for last in self._last.values())
        return kept + sum(graph.nbytes for graph in self._graphs.values())

    def graphs(self) -> Iterable[tuple[SetKey, Graph]]:
        """Returns the graphs of the sets with followed queries, by key."""
        return self._graphs.items()

    def strategy_of(self, standing: StandingQuery) -> Strategy | None:
        """How the operators that the changes of a query come from keep rows now; None where it is not
        followed. Any thread.
        """
        graph = self._graphs.get(standing.set_key)
        return None if graph is None else graph.strategy_of(standing.query_id)

    def by_strategy(self) -> ByStrategy:
        """What is kept for the followed queries of each strategy."""
        return summed(graph.by_strategy() for graph in self._graphs.values())

    def forget(self) -> None:
        """State is made anew with the next step; changes go on where they were."""
        for graph in self._graphs.values():
            graph.forget()

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._subscribers

    # --- who is followed --------------------------------------------------------------------------

    def came(self, standing: StandingQuery, query: Query) -> bool:
        """A query was registered, or came back. Returns whether its text says that it is followed."""
        if query.emit is None:
            return False
        with self._defects.of(standing.query_id):
            self._put(standing, Subscriber.of(query, self._sources))
        return True

    def follow(self, standing: StandingQuery) -> None:
        """Somebody begins to follow a query; each asks for itself."""
        known = self._subscribers.get(standing.query_id)
        if known is None:
            known = Subscriber.of(standing.query, self._sources)
            self._since[standing.query_id] = self.step
        self._put(standing, replace(known, asked=known.asked + 1))

    def unfollow(self, standing: StandingQuery) -> None:
        """One of those stops."""
        known = self._subscribers.get(standing.query_id)
        if known is None or not known.asked:
            return
        if known.asked == 1 and known.query.emit is None:
            self.gone(standing)
        else:
            self._put(standing, replace(known, asked=known.asked - 1))

    def changed(self, standing: StandingQuery) -> None:
        """A query is maintained in another way, or was paused or resumed."""
        known = self._subscribers.get(standing.query_id)
        if known is not None:
            graph = self._graphs.get(standing.set_key)
            if graph is None or standing.query_id not in graph:  # it runs again, from what is retained now
                self._since[standing.query_id] = self.step
            told = self._found.get(standing.query_id)
            self._put(standing, known)
            if told is not None and not standing.paused:  # its answer may be another by that
                self._found[standing.query_id] = None, told[1]

    def has_end(self, query_id: str) -> bool:
        """Whether the answer of a query is taken back when it goes. O(1)."""
        subscriber = self._subscribers.get(query_id)
        return subscriber is not None and subscriber.has_whole("end")

    def gone(self, standing: StandingQuery) -> None:
        """A query is followed no more."""
        self.nurseries.gone(standing.query_id)
        self.nurseries.apart.gone(standing.query_id)
        self._last.pop(standing.query_id, None)
        if self._subscribers.pop(standing.query_id, None) is None:
            return
        self._since.pop(standing.query_id, None)
        self._ways.pop(standing.query_id, None)
        if self._preferring.pop(standing.query_id, None) is not None:
            self._found.pop(standing.query_id, None)
            return
        graph = self._graphs.get(standing.set_key)
        if graph is None:  # the others that are followed are paused
            return
        if not self._leave(standing):
            del self._graphs[standing.set_key]

    def _leave(self, standing: StandingQuery) -> Graph:
        """A query leaves its graph, if it is there; what is left."""
        graph, query_id = self._graphs[standing.set_key], standing.query_id
        try:
            graph.remove(query_id)
        except Exception:  # noqa: BLE001  (it goes, whatever it is)
            others = [name for name in graph.query_ids if name != query_id]
            graph = self._graphs[standing.set_key] = remade(graph, others, self._defects)
        return graph

    def before(self, query: StandingQuery, view: View) -> Before | None:
        """What an alteration of a query has to know of what it was; None where nobody follows it.

        view: before the alteration.
        """
        subscriber = self._subscribers.get(query.query_id)
        if subscriber is None:
            return None
        last = self._last.get(query.query_id)
        if query.paused:
            return Before(query, subscriber, self._told_last(query.query_id), last)
        return Before(query, subscriber, self._last_answer(view, query.query_id, "snapshot"), last)

    def altered(
        self, before: Before, after: StandingQuery, query: Query, view: View, told: PendingOutput
    ) -> bool:
        """A followed query has another text, and both answers are told: their difference where it is followed
        on, else the answer that was as an end and the new one as a beginning. Returns whether it is.

        query: the new tree. view: with the new text. Raises the refusal of an answer that cannot be told
        whole, where the text says EMIT CHANGES; then nothing is told.
        """
        sources = (*before.subscriber.query.sources, *query.sources)
        streams = {name: self._sources[name].stream for name in sources}
        on = (
            not before.standing.paused
            and not after.paused
            and continues(before.subscriber.query, query, streams)
        )
        subscriber, was = Subscriber.of(query, self._sources), before.answer
        self._since[after.query_id] = self.step
        now: Whole | TureenError | None = None
        if not after.paused and (on or subscriber.has_whole("snapshot")):
            now = self._first_answer(view, after.query_id)
        refusal = next((one for one in (now, was if on else None) if isinstance(one, TureenError)), None)
        if refusal is not None and query.emit is not None:
            raise refusal
        if on and refusal is None:
            assert isinstance(was, Whole)
            assert isinstance(now, Whole)
            self._put(after, replace(subscriber, asked=before.subscriber.asked))
            told.tell_difference(subscriber, was, now, came_alone=query.operator == "istream")
            return True
        if query.emit is not None:
            self._put(after, subscriber)
            if not after.paused:
                told.began.append(after)
        if isinstance(was, Whole) and was.table.num_rows and before.subscriber.has_whole("end"):
            told.changes.append(changes_of_whole(was, "end", copies=before.subscriber.copies))
        return False

    def back(self, before: Before, standing: StandingQuery) -> None:
        """An alteration was refused: the query is followed as it was, whatever failed of the other."""
        self._defects.gone(standing.query_id)
        self._put(standing, before.subscriber)
        if before.answer is not None and standing.query_id in self._preferring:
            self._found[standing.query_id] = None, before.answer  # what it begins anew with may be less
        if before.last is not None:
            self._last[standing.query_id] = before.last

    # --- who is paused ----------------------------------------------------------------------------

    def pauses(self, standing: StandingQuery, view: View) -> None:
        """A query is about to be paused: nothing is told of it until it runs again, and then how its answer
        differs from that of now. view: as it stands.
        """
        answer = self._last_answer(view, standing.query_id, "end")
        if isinstance(answer, Whole):
            self._last[standing.query_id] = LastAnswer.of(answer.table, answer.now_ms)
        else:
            self._last[standing.query_id] = LastAnswer(view.now_ms(standing.query_id), None)

    def is_silent(self, standing: StandingQuery) -> bool:
        """Whether nothing is told of a query now, for it is paused or about to run again."""
        return standing.paused or standing.query_id in self._last

    def replace_silently(
        self, standing: StandingQuery, query: Query, put: Callable[[], StandingQuery]
    ) -> None:
        """A query of which nothing is told now is answered by ``query`` once it runs again. put: puts that in
        its place.
        """
        query_id = standing.query_id
        known, last = self._subscribers.get(query_id), self._last.get(query_id)
        after = put()
        if known is not None:
            self._put(after, replace(Subscriber.of(query, self._sources), asked=known.asked))
        if last is not None:
            self._last[query_id] = last

    def last_of(self, query_id: str) -> LastAnswer | None:
        """What is to be saved of a query that is paused; None where nothing was told of it."""
        return self._last.get(query_id)

    def paused_with(self, query_id: str, last: LastAnswer) -> None:
        """A query comes back from a store, paused; who followed it may ask for that again."""
        self._last[query_id] = last

    def resumes_silently(self, query_id: str) -> None:
        """A query runs again, and what follows was told."""
        self._last.pop(query_id, None)

    def tell_resumed(self, queries: Iterable[StandingQuery], view: View, told: PendingOutput) -> None:
        """These run again: how their answers differ from what was told last; whole where nothing was."""
        for standing in queries:
            query_id = standing.query_id
            if query_id not in self._subscribers:
                self._last.pop(query_id, None)
            elif query_id not in self._last:
                self.tell_whole([standing], view, "snapshot", told)
            else:
                with self._defects.of(query_id):
                    was = self._rows_of(query_id, self._last.pop(query_id))
                    subscriber, now = self._subscribers[query_id], self._first_answer(view, query_id)
                    told.tell_differing(subscriber, query_id, was, now)

    def _told_last(self, query_id: str) -> Whole | TureenError | None:
        """Returns the answer that was told last of a paused query; None: nothing was told."""
        last = self._last.get(query_id)
        return None if last is None else self._rows_of(query_id, last)

    def _rows_of(self, query_id: str, last: LastAnswer) -> Whole | TureenError:
        table = last.table()
        if table is None:
            return LimitExceeded("changes_max", self._limits.changes_max)
        return Whole(query_id, table, last.now_ms)

    def _put(self, standing: StandingQuery, subscriber: Subscriber) -> None:
        """A query comes, or is maintained in another way."""
        query_id, key = standing.query_id, standing.set_key
        self._subscribers[query_id] = subscriber
        if query_id in self.nurseries.apart:
            return
        for name, (slot, _) in standing.places():
            self._sources[name].catch_up([slot])
        self._found.pop(query_id, None)
        self._preferring.pop(query_id, None)
        if standing.prefers:
            if not standing.paused:
                self._preferring[query_id] = standing
            return
        if key not in self._graphs:
            self._graphs[key] = self._empty(key)
        self._leave(standing)
        if not standing.paused:
            with self._defects.of(query_id):
                self._add(standing, subscriber, self._way(standing, subscriber))

    def _way(self, standing: StandingQuery, subscriber: Subscriber) -> PhysicalChoice:
        made = self.nurseries.way_of(standing.query_id)
        if made is not None:
            return made
        options = QueryOptions.of(standing.registration.options)
        present = self._ways.get(standing.query_id)
        return self._strategist.way(subscriber.query, subscriber.operator, options, present)

    def nurse(self, standing: StandingQuery, query: Query, over: SourceSet) -> Nursery | None:
        """As :meth:`engine.queries.nurseries.Nurseries.nurse`."""
        try:
            subscriber = Subscriber.of(query, self._sources)
            way = self._way(standing, subscriber)
            made = self.nurseries.nurse(standing, query, subscriber, way, over)
        except Exception:  # noqa: BLE001  (the step that brings it will tell)
            return None
        if made is not None:
            self._ways.pop(standing.query_id, None)
        return made

    def nurse_standing(self, standing: StandingQuery, over: SourceSet) -> Nursery | None:
        """As :meth:`engine.queries.nurseries.Nurseries.nurse_standing`; None also of a query of which nothing
        is told now.
        """
        subscriber = self._subscribers.get(standing.query_id)
        if subscriber is None or standing.prefers or self.is_silent(standing):
            return None
        try:
            graph = self._graphs[standing.set_key]
            told = subscriber.operator == "changes" and not graph.holds_for(standing.query_id)
            way = self._way(standing, subscriber)
            return self.nurseries.nurse_standing(standing, subscriber, way, over, told=told)
        except Exception:  # noqa: BLE001  (the step will tell)
            return None

    def most_rows(self, query: Query) -> float:
        """About how many rows there are at most on an edge of a query's plan."""
        return self._strategist.most_rows(query)

    def dismiss(self, query_id: str) -> None:
        """What was made for a query, before the step that needs it, goes."""
        self.nurseries.dismiss(query_id)

    def _add(self, standing: StandingQuery, subscriber: Subscriber, way: PhysicalChoice) -> None:
        """What fails unexpectedly is the defect of the query; it is in no graph then."""
        self._ways[standing.query_id] = way
        graph = self._graphs[standing.set_key]
        try:
            if self.nurseries.take_over(standing, subscriber, way, graph):
                return
            graph.add(
                standing,
                way.query,
                subscriber.operator,
                copies=subscriber.copies,
                policy=way.policy,
                since=self._since.get(standing.query_id, standing.born.sequence),
            )
        except Exception as defect:  # noqa: BLE001  (nobody knows what of it is there)
            self._defects.note([standing.query_id], defect)
            others = [name for name in graph.query_ids if name != standing.query_id]
            self._graphs[standing.set_key] = remade(graph, others, self._defects)

    # --- who is set apart -------------------------------------------------------------------------

    def set_apart(self, queries: Sequence[StandingQuery], over: SourceSet) -> None:
        """What changes in the answers of these, over one set of sources, is worked out beside from now on.
        Those that cannot be set apart are passed over.
        """
        stands, graph = over.at_rest(), self._graphs.get(queries[0].set_key)
        names = [one.query_id for one in queries if graph is not None and one.query_id in graph]
        if stands is None or graph is None:
            return
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
            graph = self._graphs.setdefault(apart.key, self._empty(apart.key))
            if tells and not apart.is_begun:
                apart.run(asked())
            with self._defects.of(*apart.query_ids):
                graph.take_over(apart.graph, [queries[name] for name in apart.rejoins(tells=tells)])
            if tells:
                told.changes += apart.told()
                told.broken |= {name: apart.broken[name] for name in apart.query_ids & apart.broken.keys()}

    def revise(self, standing: StandingQuery) -> bool:
        """Choose again how the changes of a query are worked out; returns whether that is another way now.
        They go on where they were: state is made from retained rows with the next transition.
        """
        query_id = standing.query_id
        subscriber, present = self._subscribers.get(query_id), self._ways.get(query_id)
        if subscriber is None or present is None or standing.paused or query_id in self.nurseries.apart:
            return False
        way = self._way(standing, subscriber)
        if way.stands == present.stands:
            return False
        self._leave(standing)
        self._add(standing, subscriber, way)
        return True

    def _empty(self, key: SetKey) -> Graph:
        streams = {name: self._sources[name].stream for name in key}
        tables = frozenset(name for name, stream in streams.items() if stream.is_table)
        return Graph(tables, self._watch.clock, streams, self._settings)

    def strategy_inputs(self, query: Query, standing: StandingQuery | None = None) -> StrategyInputs:
        """What the strategy of a query's changes is chosen by, as it stands now. standing: None for a query
        that is not registered. O(sources).
        """
        streams = {name: self._sources[name].stream for name in query.sources}
        options = QueryOptions() if standing is None else QueryOptions.of(standing.registration.options)
        present = None if standing is None else self._ways.get(standing.query_id)
        policy, graph = None, self._graphs.get(set_key(query.sources))
        if present is not None and standing is not None and graph is not None and standing.query_id in graph:
            policy = graph.policy_of(standing.query_id)
        return StrategyInputs(
            query, operator_over(query, streams), options, present, policy, self._strategist.over(query)
        )

    def operators(self, plan: Plan, sources: Sequence[SourceName], expected_of: ExpectedOf) -> OperatorTree:
        """The operators of a plan over sources, with what those that are there keep. O(operators)."""
        key = set_key(tuple(sources))
        graph = self._graphs.get(key) or self._empty(key)
        return graph.explain(plan, sources, expected_of)

    # --- what steps tell --------------------------------------------------------------------------

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
            keys |= {key for one in among if (key := tuple(one.sources)) in self._graphs or one.eager.kept}
        return {key: sets.seen(key).mark() for key in sorted(keys)}

    def rows(self, sets: SourceSets, marks: Marks) -> dict[SourceName, Rows]:
        """Returns the rows of the sources of these sets. It is to be called after a step's rows came, before
        any are let go of.
        """
        return {name: source.rows.rows() for key in marks for name, source in sets.seen(key).sources.items()}

    def tell(
        self,
        marks: Marks,
        rows: Mapping[SourceName, Rows],
        sets: SourceSets,
        told: PendingOutput,
        position: Position,
        *,
        tells: bool,
    ) -> None:
        """What changed in the step of a position. tells: as for :meth:`marks`."""
        for key, mark in marks.items():
            sources, graph = sets.seen(key), self._graphs.get(key) if tells else None
            shared = len(key) == 1 and sets.is_joined(key[0])
            transition = transition_of(mark, sources.mark(), sources.views(), rows, shared)
            with self._watch.on(sources.usage):
                sources.eager.kept.moved(mark, transition)
            if transition is None:
                continue
            assert sources.now_ms is not None
            self.nurseries.came(key, transition, sources.now_ms, position)
            if graph is not None:
                with self._watch.on(Usage()):  # the graph divides its time itself
                    self._graphs[key], changes = advanced(
                        graph, transition, self._limits, sources.now_ms, told.broken, self._defects
                    )
                self.nurseries.told(changes)
                told.changes += changes

    # --- queries with a preference ----------------------------------------------------------------

    def before_finds(self, view: Callable[[], View]) -> None:
        """A step is about to come: of queries with a preference that are followed it must be known what was
        told. view: before the step, which is asked for where a query was followed since the last.
        """
        for query_id in self._preferring:
            if query_id not in self._found:
                self._found[query_id] = None, self._answer(view(), query_id)

    def tell_finds(self, sets: SourceSets, view: Callable[[], View], told: PendingOutput) -> None:
        """A step is over: how answers of queries with a preference differ from what was told of them. Rows
        that were found enter at NOW, whenever they came to their stream; rows leave with their windows.

        view: after the step. O(rows of both answers), of those that may differ.
        """
        for query_id, standing in list(self._preferring.items()):
            before = self._found.get(query_id)
            over = sets.of(standing).view()
            if before is None:  # it came in this step, or has another text: what it begins with is told
                self._found[query_id] = over, self._answer(view(), query_id)
            elif before[0] is not over:
                answer = self._answer(view(), query_id)
                self._found[query_id] = over, answer
                with self._defects.of(query_id):
                    told.tell_differing(self._subscribers[query_id], query_id, before[1], answer)

    def forget_finds(self) -> None:
        """A step told nothing: what was told of queries with a preference is to be taken from a view."""
        self._found.clear()

    # --- rows that joins hold ---------------------------------------------------------------------

    def before_retention(self, names: Collection[SourceName] | None) -> BeforeRetention:
        """Streams of which joins hold rows, before a step lets go of any. names: those that it touches; None:
        all.
        """
        held = {name for key, graph in self._graphs.items() if graph.holds for name in key}
        held = held if names is None else held.intersection(names)
        rows = {name: self._sources[name].rows.rows() for name in held}
        return {name: (was, self._first_retained(name, was)) for name, was in rows.items()}

    def _first_retained(self, name: SourceName, rows: Rows) -> int:
        """The first ordinal that is retained: there may be rows below it, for windows of rows."""
        from_ms = self._sources[name].retained_from_ms
        return rows.base if from_ms is None else rows.first_at_or_after(from_ms)

    def hold(self, before: BeforeRetention) -> None:
        """A step is over, and told: of what streams let go of joins hold what they need. before: see
        :meth:`before_retention`.
        """
        gone = {
            name: Gone(was, first, self._first_retained(name, was)) for name, (was, first) in before.items()
        }
        for key, graph in list(self._graphs.items()) if gone else ():
            try:
                graph.hold(gone, self.step)
            except Exception as defect:  # noqa: BLE001  (it is of those that hold rows)
                self._holding_failed(key, defect)

    def _holding_failed(self, key: SetKey, defect: Exception) -> None:
        """What joins over these sources hold is not known any more: their queries end."""
        graph = self._graphs[key]
        self._defects.note([name for name in graph.query_ids if graph.holds_for(name)], defect)
        others = [name for name in graph.query_ids if name not in self._defects]
        self._graphs[key] = remade(graph, others, self._defects)

    def held_streams(self) -> set[tuple[SetKey, SourceName]]:
        """Returns the streams of which joins hold rows, each with the key of the set whose queries they are
        for.
        """
        return {(key, name) for key, graph in self._graphs.items() if graph.holds for name in key}

    def held(self, names: Set[SourceName]) -> Iterator[HeldState]:
        """What joins over any of these hold, as it is stored."""
        for key, graph in list(self._graphs.items()):
            if graph.holds and not names.isdisjoint(key):
                try:
                    yield from list(graph.held(key))
                except Exception as defect:  # noqa: BLE001  (its queries go with the next step)
                    self._holding_failed(key, defect)

    def restore_held(self, states: Iterable[HeldState]) -> None:
        """Back from a store, once the queries are back; what nobody holds any more is passed over."""
        for state in states:
            key = SetKey(state.over)
            graph = self._graphs.get(key)
            if graph is not None:
                try:
                    graph.restore_held(state)
                except Exception as defect:  # noqa: BLE001  (its queries go with the next step)
                    self._holding_failed(key, defect)

    def answers(self, name: SourceName, sets: SourceSets, view: View) -> Answers:
        """As they stand, of the queries over a source of whose history coming back is told: not of those that
        tell of rows that come alone, for what is past is no news.
        """
        found: Answers = {}
        for key in [key for key in self._graphs if name in key]:
            standing = sets.seen(key).standing
            for query_id, query in standing.items():
                subscriber = self._subscribers.get(query_id)
                if query_id in self._preferring or subscriber is None or query.paused:
                    continue
                if subscriber.operator != "istream":
                    found[query_id] = self._answer(view, query_id)
        return found

    def _answer(self, view: View, query_id: str, occasion: Occasion = "snapshot") -> Whole | TureenError:
        """As it stands; why it cannot be told where it is refused."""
        try:
            table = limited(
                lambda limit: view.snapshot(query_id, rows_max=limit).table, self._limits, occasion
            )
        except Exception as error:  # noqa: BLE001  (whoever asked tells it)
            return refusal_of(error)
        return Whole(query_id, table, view.now_ms(query_id))

    def _first_answer(self, view: View, query_id: str) -> Whole | TureenError:
        """The answer of a query that has just come, or runs again, or has another text: as it was made
        beside, if it was.
        """
        return self._made(self.nurseries.first_answer(query_id), view, query_id, "snapshot")

    def _last_answer(self, view: View, query_id: str, occasion: Occasion) -> Whole | TureenError:
        """The answer of a query that stands, before the step alters, pauses or removes it: as it was made
        beside, if it was.
        """
        return self._made(self.nurseries.last_answer(query_id), view, query_id, occasion)

    def _made(
        self,
        found: tuple[pa.Table, Int32Array | None] | TureenError | None,
        view: View,
        query_id: str,
        occasion: Occasion,
    ) -> Whole | TureenError:
        """An answer of which that was found beside; None: it is worked out here."""
        if found is None:
            return self._answer(view, query_id, occasion)
        if isinstance(found, TureenError):
            return found
        (table, copies), most = found, rows_max(self._limits, occasion)
        if table.num_rows > most:
            return LimitExceeded("changes_max", most, table.num_rows)
        return Whole(query_id, table, view.now_ms(query_id), copies)

    def tell_history(self, name: SourceName, before: Answers, view: View, told: PendingOutput) -> None:
        """History of a source came back: how answers at NOW differ from those before."""
        rows, from_ms = self._sources[name].rows.rows(), self._sources[name].retained_from_ms
        first = self._first_retained(name, rows)
        self.nurseries.lose()
        for key, graph in list(self._graphs.items()):
            if name in key:
                try:
                    graph.renumbered(name, rows.base, first, from_ms)
                except Exception:  # noqa: BLE001  (its state was to be made anew anyway)
                    self._graphs[key] = remade(graph, graph.query_ids, self._defects)
        for query_id, was in before.items():
            with self._defects.of(query_id):
                now = self._answer(view, query_id)
                told.tell_differing(self._subscribers[query_id], query_id, was, now)

    def tell_whole(
        self, queries: Iterable[StandingQuery], view: View, occasion: Occasion, told: PendingOutput
    ) -> None:
        """The answers of these as they stand, or as told last where they are paused, given (``snapshot``)
        or taken back (``end``).
        """
        for standing in queries:
            query_id = standing.query_id
            subscriber = self._subscribers.get(query_id)
            if subscriber is None or not subscriber.has_whole(occasion) or query_id in self.nurseries.apart:
                continue
            if standing.paused:
                answer = self._told_last(query_id)
            elif occasion == "snapshot":
                answer = self._first_answer(view, query_id)
            else:
                answer = self._last_answer(view, query_id, occasion)
            if not isinstance(answer, Whole):
                if answer is not None and occasion == "snapshot":
                    told.broken[query_id] = answer
                continue
            if answer.table.num_rows or occasion == "snapshot":
                with self._defects.of(query_id):
                    told.changes.append(changes_of_whole(answer, occasion, copies=subscriber.copies))
