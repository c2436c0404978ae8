"""What the plan of a query over a set of sources is made of, taken from what the set keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy

from engine.language.query import Query
from engine.model.source import SourceName
from engine.queries.plan_inputs import HeldPredicate, PlanInputs
from engine.queries.plan_preference import PlanPreference, plan_preference
from engine.queries.planner import Setting
from engine.queries.promising import member_of
from engine.queries.source_set import SourceSet
from engine.queries.strategist import StrategyInputs
from engine.standing.query import StandingQuery
from engine.views.estimated_aggregates import unscaled_calls
from engine.views.found_answers import NOTHING_YET


def plan_inputs_over(
    over: SourceSet,
    query: Query,
    standing: StandingQuery | None,
    strategy: StrategyInputs,
    readers: Mapping[SourceName, int],
    *,
    followed: bool,
) -> PlanInputs:
    """standing: None for a query that is not registered. readers: how many queries read each source.
    followed: it is. O(sources + size of the query).
    """
    seen, setting, sources = over.now.seen(), over.now.setting(), over.sources
    group = over.joins.group_of(query)
    modules = {f"query-stem/{name}": sources[name].queries.statistics() for name in query.sources}
    if group is not None:
        modules[f"join/{over.joins.name_of(group)}"] = group.statistics()
    return PlanInputs(
        query,
        standing,
        {name: source.stream for name, source in sources.items()},
        over.now.estimates(),
        Setting({name: copy(meter) for name, meter in setting.meters.items()}, setting.at),
        over.modes.planner,
        standing is not None and standing.query_id in over.modes.unaffordable,
        tuple(_held_predicates(over, query, standing)),
        modules,
        tuple(name for name, one in seen.sources.items() if one.now_ms is None and not one.stream.is_table),
        readers,
        _plan_preference(over, query, standing),
        NOTHING_YET if standing is None else over.promising.found().get(standing.query_id, NOTHING_YET),
        followed,
        strategy,
    )


def _held_predicates(
    over: SourceSet, query: Query, standing: StandingQuery | None
) -> Iterator[HeldPredicate]:
    for source, predicate in query.predicates():
        stem = over.sources[source].queries
        slot = None if standing is None else standing.slot_of(source, predicate)
        if slot is None:
            yield HeldPredicate(source, predicate, {}, None)
        else:
            others = int(stem.slots.holders[slot]) - 1
            yield HeldPredicate(source, predicate, stem.explain(slot), others)


def _plan_preference(over: SourceSet, query: Query, standing: StandingQuery | None) -> PlanPreference | None:
    """Where the rows of a query with a preference come from."""
    if query.preference is None:
        return None
    query_id, preference, numbered = None, query.preference, None
    if standing is not None:
        query_id, member = standing.query_id, member_of(standing)
        preference, numbered = member.preference, over.promising.group_of(query_id)
    kind = over.promising.kind_of(query)
    return plan_preference(query_id, preference, kind, numbered, over.sources, unscaled_calls(query))
