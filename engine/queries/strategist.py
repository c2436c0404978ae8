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
from engine.dataflow.cost.estimate import Estimate, estimate
from engine.dataflow.cost.flows import most_rows
from engine.dataflow.cost.statistics import Statistics
from engine.dataflow.physical import physical
from engine.dataflow.plan import is_selection, plan_of, shape_of
from engine.dataflow.policy import ONE_STORE, Policy
from engine.dataflow.rewrites import alternatives
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
class Way:
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
    """Of a set of sources while it stands still. stands: by what that is told."""

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

    def way(self, query: Query, operator: Operator, options: QueryOptions, present: Way | None = None) -> Way:
        """The way for a query. present: the one it has, which stays unless another is much cheaper."""
        asked_for = Policy.asked_for(options)
        if self._units is None or operator == "rstream" or (asked_for is None and is_selection(query)):
            return Way(query, ONE_STORE if asked_for is None or operator == "rstream" else asked_for)
        choice = self._choice(query, options, present, self._units)
        chosen = choice.chosen
        texts = alternatives(query, self._streams(query))
        text = next(text for text, rules in texts if rules == chosen.rules)
        return Way(text, chosen.policy, choice)

    def weigh(self, query: Query, policy: Policy) -> Estimate | None:
        """What a way costs; None where nothing was measured."""
        if self._units is None:
            return None
        tables = frozenset(name for name, stream in self._streams(query).items() if stream.is_table)
        known = self._known_of(set_key(query.sources)).statistics
        return estimate(physical(plan_of(query, tables), policy), known, self._units, tables, self._settings)

    def most_rows(self, query: Query) -> float:
        """About how many rows are there at most on an edge of its plan: its operators keep them, or meet
        them.
        """
        tables = frozenset(name for name, stream in self._streams(query).items() if stream.is_table)
        return most_rows(query, tables, self._known_of(set_key(query.sources)).statistics)

    def _choice(self, query: Query, options: QueryOptions, present: Way | None, units: UnitCosts) -> Choice:
        streams = self._streams(query)
        known = self._known_of(set_key(query.sources))
        tables = frozenset(name for name, stream in streams.items() if stream.is_table)
        stands = None if present is None else present.stands
        asked_for = options.strategy, options.structure, options.partitions
        key = shape_of(plan_of(query, tables)), asked_for, stands
        found = known.choices.get(key)
        if found is None:
            found = choose(query, streams, known.statistics, units, options, stands, self._settings)
            if len(known.choices) < SHAPES_MAX:
                known.choices[key] = found
        return found

    def _streams(self, query: Query) -> dict[SourceName, Stream]:
        return {name: self._sources[name].stream for name in query.sources}

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
