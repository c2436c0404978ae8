"""Chooses for followed queries which plan their changes come from, and how its operators keep rows.

Where nothing was measured, and of selections, which keep nothing, a query is worked out as it is written, and
each exit is told. Queries of a shape share operators, so they get the same way while their sources stand
still.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.choice import Choice, choose
from engine.dataflow.cost.estimate import PlanCost, estimate
from engine.dataflow.cost.flows import most_rows
from engine.dataflow.cost.statistics import Statistics
from engine.dataflow.operator_tree import OperatorTree
from engine.dataflow.physical import operators_of, physical
from engine.dataflow.plan import Plan, is_selection, plan_of, shape_of
from engine.dataflow.policy import ONE_STORE, Policy
from engine.dataflow.rewrites import alternatives
from engine.dataflow.strategy_plan import Explained, strategy_of, with_costs
from engine.language.query import Query
from engine.model.changes import Operator
from engine.model.maintenance import QueryOptions, UnitCosts
from engine.model.source import SourceName, Stream
from engine.queries.statistics import statistics_of
from engine.sources.source import Source
from engine.standing.query import SetKey, set_key

SHAPES_MAX = 1_024
"""So many choices are remembered for sources that stand still."""


@dataclass(frozen=True, slots=True)
class PhysicalChoice:
    """How a query is worked out. query: with the same meaning; choice: why, None: nothing was weighed."""

    query: Query
    policy: Policy
    choice: Choice | None = None

    @property
    def stands(self) -> tuple[tuple[str, ...], Policy]:
        """The rules that led to it, and the policy."""
        return () if self.choice is None else self.choice.chosen.rules, self.policy


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a set of sources while it stands still. stands: facts of the sources that differ once
    they have moved.
    """

    stands: tuple[object, ...]
    statistics: Statistics
    choices: dict[Hashable, Choice]


class Strategist:
    """Without costs nothing was measured."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        units: UnitCosts | None,
        settings: StateSettings | None = None,
    ) -> None:
        """sources: those there are, as they come and go. settings: what state is made with."""
        self._settings = settings or StateSettings()
        self._sources = sources
        self._units = units
        self._known: dict[SetKey, _Known] = {}

    def over(self, query: Query) -> Weighing:
        """What weighs ways of a query while its sources stand as they do now. O(sources)."""
        streams = {name: self._sources[name].stream for name in query.sources}
        if self._units is None:
            return Weighing(streams, None, None, self._settings)
        return Weighing(streams, self._units, self._known_of(set_key(query.sources)), self._settings)

    def way(
        self, query: Query, operator: Operator, options: QueryOptions, present: PhysicalChoice | None = None
    ) -> PhysicalChoice:
        """The way for a query. present: the one it has, which stays unless another is much cheaper."""
        return self.over(query).way(query, operator, options, present)

    def most_rows(self, query: Query) -> float:
        """About how many rows are there at most on an edge of its plan: its operators keep them, or meet
        them.
        """
        known = self._known_of(set_key(query.sources)).statistics
        return most_rows(query, self.over(query).tables, known)

    def _known_of(self, key: SetKey) -> _Known:
        sources = {name: self._sources[name] for name in key}
        stands = tuple(
            part
            for source in sources.values()
            for part in (source, source.rows.end, source.clock.now_ms, source.meter.rows_per_s)
        )
        known = self._known.get(key)
        if known is None or known.stands != stands:
            known = self._known[key] = _Known(stands, statistics_of(sources), {})
        return known


@dataclass(frozen=True, slots=True)
class Weighing:
    """Ways of a query over sources that stand still. It reads views alone, and what several find at once is
    the same, so it may be used in any thread.

    units, known: None where nothing was measured. settings: what state is made with.
    """

    streams: Mapping[SourceName, Stream]
    units: UnitCosts | None
    known: _Known | None
    settings: StateSettings

    def way(
        self, query: Query, operator: Operator, options: QueryOptions, present: PhysicalChoice | None = None
    ) -> PhysicalChoice:
        """As :meth:`Strategist.way`. Rows of each scan are looked at, up to some thousands."""
        asked_for = Policy.asked_for(options)
        if self.units is None or operator == "rstream" or (asked_for is None and is_selection(query)):
            return PhysicalChoice(
                query, ONE_STORE if asked_for is None or operator == "rstream" else asked_for
            )
        choice = self._choice(query, options, present, self.units)
        chosen = choice.chosen
        texts = alternatives(query, self.streams)
        text = next(text for text, rules in texts if rules == chosen.rules)
        return PhysicalChoice(text, chosen.policy, choice)

    def weigh(self, query: Query, policy: Policy) -> PlanCost | None:
        """What a way costs; None where nothing was measured."""
        if self.units is None or self.known is None:
            return None
        tables = self.tables
        made = physical(plan_of(query, tables), policy)
        return estimate(made, self.known.statistics, self.units, tables, self.settings)

    def _choice(
        self, query: Query, options: QueryOptions, present: PhysicalChoice | None, units: UnitCosts
    ) -> Choice:
        assert self.known is not None
        stands = None if present is None else present.stands
        asked_for = options.strategy, options.structure, options.partitions
        key = shape_of(plan_of(query, self.tables)), asked_for, stands
        choices = self.known.choices
        found = choices.get(key)
        if found is None:
            statistics = self.known.statistics
            found = choose(query, self.streams, statistics, units, options, stands, self.settings)
            if len(choices) < SHAPES_MAX:
                choices[key] = found
        return found

    @property
    def tables(self) -> frozenset[SourceName]:
        """Which of the sources are."""
        return frozenset(name for name, stream in self.streams.items() if stream.is_table)


@dataclass(frozen=True, slots=True)
class StrategyInputs:
    """What the strategy of a query's changes is chosen by, as it stood between two steps. present: the way it
    is worked out now, policy: of its operators in the graph; None: it is not followed.
    """

    query: Query
    operator: Operator
    options: QueryOptions
    present: PhysicalChoice | None
    policy: Policy | None
    weighing: Weighing

    def way(self) -> PhysicalChoice:
        """The way that its changes come, or would if it were followed. Any thread."""
        way = self.weighing.way(self.query, self.operator, self.options, self.present)
        if self.present is None or self.policy is None:
            return way
        return PhysicalChoice(self.present.query, self.policy, way.choice)

    def plan(self, way: PhysicalChoice) -> Plan:
        """The operators of that way. Any thread."""
        streams = self.weighing.streams
        return operators_of(way.query, self.operator, way.policy, self.weighing.tables, streams)

    def explained(self, way: PhysicalChoice, tree: OperatorTree) -> Explained:
        """The operators of that way with what each costs, and why they are these. Any thread."""
        cost = None if self.operator == "rstream" else self.weighing.weigh(way.query, way.policy)
        if cost is not None:
            tree = with_costs(tree, cost)
        return Explained(tree, strategy_of(way.policy, way.choice, cost))
