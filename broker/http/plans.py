"""Plans: how the answer of a query comes about, asked of its shard's engine between two steps."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import Any

from broker.http.described import standing
from broker.http.errors import QueryNotRunning
from broker.worker.node import Node
from engine.language.query import Query
from engine.queries.explain import Plan


async def plan_of(node: Node, query_id: str, analyze: bool) -> dict[str, Any]:
    """Of a query that stands. Raises UnknownQuery, QueryNotRunning, BrokerUnavailable."""
    entry = standing(node, query_id)
    if entry.shard is None:
        raise QueryNotRunning(entry.state, entry.error)
    timer = perf_counter_ns if analyze else None
    found = await node.shards.ask(entry.shard, lambda engine: engine.explain(query_id=query_id, timer=timer))
    return found.as_dict()


async def plan_for(node: Node, query: Query, analyze: bool) -> dict[str, Any]:
    """Of a SELECT that is not registered. Raises BrokerUnavailable, and what its text is refused with."""
    timer = perf_counter_ns if analyze else None
    directory = node.directory
    shard = directory.home_of(query.sources)
    there = set(node.hosting.guests_on(shard))
    there |= {name for name, one in directory.sources.items() if one.shard == shard}
    there |= {name for name, one in directory.views.items() if one.shard == shard}
    if not there.issuperset((*query.sources, *query.uses)):
        found = await asyncio.to_thread(_without_rows, node, query)
    else:
        found = await node.shards.ask(shard, lambda engine: engine.explain(sql=query.sql, timer=timer))
    return found.as_dict()


def _without_rows(node: Node, query: Query) -> Plan:
    """The plan of a text whose sources do not stand side by side yet: over no rows, so nothing is timed."""
    engine = node.engines.fresh()
    for name in query.sources:
        engine.create(node.directory.sources[name].sql)
    for view in sorted((node.directory.views[name] for name in query.uses), key=lambda one: len(one.uses)):
        engine.create(view.sql)
    return engine.explain(sql=query.sql)
