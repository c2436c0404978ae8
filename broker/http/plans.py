"""Plans: how the answer of a query comes about, asked of its shard's engine between two steps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from broker.http.described import standing
from broker.http.errors import QueryNotRunning
from broker.http.formats import catching_up_dicts
from broker.worker.node import Node
from engine.engine import Engine
from engine.language.query import Query
from engine.model.constraint import referred_to
from engine.overload.proposals.proposal import Proposal


async def plan_of(node: Node, query_id: str, analyze: bool) -> dict[str, Any]:
    """Of a query that stands. Raises UnknownQuery, QueryNotRunning, BrokerUnavailable."""
    entry = standing(node, query_id)
    if entry.shard is None:
        raise QueryNotRunning(entry.state, entry.error)
    timer = perf_counter_ns if analyze else None
    behind = _catching_up(node, entry.shard, entry.sources)
    found = await node.shards.ask(entry.shard, lambda engine: engine.explain(query_id=query_id, timer=timer))
    return found.as_dict() | behind


async def proposals_of(node: Node, query_id: str) -> list[dict[str, Any]]:
    """Other texts that would use less, of a query that stands. Raises as :func:`plan_of`."""
    entry = standing(node, query_id)
    if entry.shard is None:
        raise QueryNotRunning(entry.state, entry.error)
    found = await node.shards.ask(entry.shard, lambda engine: engine.proposals(query_id=query_id))
    return _listed(found)


async def proposals_for(node: Node, query: Query, *, of_rows: bool = True) -> list[dict[str, Any]]:
    """The same of a SELECT that is not registered. of_rows, and what it raises: as of :func:`plan_for`."""
    shard = _beside(node, query) if of_rows else None
    if shard is None:
        found = await asyncio.to_thread(lambda: _without_rows(node, query).proposals(sql=query.sql))
    else:
        found = await node.shards.ask(shard, lambda engine: engine.proposals(sql=query.sql))
    return _listed(found)


def _listed(found: Sequence[Proposal]) -> list[dict[str, Any]]:
    return [proposal.as_dict() for proposal in found]


async def plan_for(
    node: Node, query: Query, analyze: bool, wait_ms: int | None = None, *, of_rows: bool = True
) -> dict[str, Any]:
    """Of a SELECT that is not registered. wait_ms: how long its shard may take to turn to it.

    of_rows: False for who may not look at rows, since estimates of any condition tell values: the plan is
    that of streams without rows, and none is measured.

    Raises BrokerUnavailable, and what its text is refused with.
    """
    timer = perf_counter_ns if analyze else None
    shard = _beside(node, query) if of_rows else None
    if shard is None:
        found = await asyncio.to_thread(lambda: _without_rows(node, query).explain(sql=query.sql))
        return found.as_dict()
    behind = _catching_up(node, shard, query.sources)
    found = await node.shards.ask(shard, lambda engine: engine.explain(sql=query.sql, timer=timer), wait_ms)
    return found.as_dict() | behind


def _catching_up(node: Node, shard: int, sources: Sequence[str]) -> dict[str, Any]:
    """The sources that have not yet what their topics held, taken before the figures that lack it."""
    return {"catching_up": catching_up_dicts(node.shards[shard].view().catching_up(sources))}


def _beside(node: Node, query: Query) -> int | None:
    """The shard on which all that a text reads stands side by side; None: there is none yet."""
    directory = node.directory
    shard = directory.home_of(query.sources)
    there = set(node.hosting.guests_on(shard))
    there |= {name for name, one in directory.sources.items() if one.shard == shard}
    there |= {name for name, one in directory.views.items() if one.shard == shard}
    return shard if there.issuperset((*query.sources, *query.uses)) else None


def _without_rows(node: Node, query: Query) -> Engine:
    """An engine with what a text reads and no rows, so that nothing is timed."""
    engine, there = node.engines.fresh(), node.directory
    referred = {name for one in query.sources for name in referred_to(there.sources[one].stream.constraints)}
    for name in dict.fromkeys((*sorted(referred), *query.sources)):
        engine.create(there.sources[name].sql)
    for view in sorted((there.views[name] for name in query.uses), key=lambda one: len(one.uses)):
        engine.create(view.sql)
    for summary in query.summaries:
        engine.create(there.summaries[summary].sql)
    return engine
