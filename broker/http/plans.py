"""Plans: how the answer of a query comes about, and other texts for it that use less.

The shard's engine tells between two steps what a plan is made of, in a time that the text alone decides; what
rows are looked at for is worked out beside the shard (:mod:`broker.node.request_work`).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from broker.http.asking import brought_back
from broker.http.described import standing
from broker.http.errors import QueryNotRunning
from broker.http.formats import catching_up_dicts
from broker.node.node import Node
from engine.engine import Engine
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.model.constraint import referred_to
from engine.overload.proposals.proposal import Proposal
from engine.queries.explain import planned
from engine.standing.query import StandingQuery
from tureen.errors import NotSupported, UnknownQuery


async def plan_of(node: Node, query_id: str, analyze: bool) -> dict[str, Any]:
    """Return the plan of a query that stands. Raises UnknownQuery, QueryNotRunning, BrokerUnavailable, and
    what :meth:`broker.node.request_work.RequestWork.do` raises.
    """
    await brought_back(node, query_id)
    shard = _shard_of(node, query_id)

    def work() -> dict[str, Any]:
        query = _standing(node, shard, query_id).query  # its tree is built here, and known to the shard then
        behind, ask = _catching_up(node, shard, query.sources), node.shards.asker(shard)
        inputs = ask(lambda engine: engine.plan_inputs(query_id=query_id))
        return planned(inputs, ask, _timer(analyze)).as_dict() | behind

    return await node.work.do(work)


async def plan_for(
    node: Node, query: Query, analyze: bool, limit_ms: int | None = None, *, of_rows: bool = True
) -> dict[str, Any]:
    """Return the plan of a SELECT that is not registered. limit_ms: how long planning may take at most.

    of_rows: False for callers that may not look at rows, since an estimate of any condition tells values. The
    plan is then that of streams without rows, and nothing is measured.

    Raises BrokerUnavailable, and what :meth:`broker.node.request_work.RequestWork.do` raises.
    """
    shard = _beside(node, query) if of_rows else None

    def work() -> dict[str, Any]:
        if shard is None:
            return _without_rows(node, query).explain(sql=query.sql).as_dict()
        behind, ask = _catching_up(node, shard, query.sources), node.shards.asker(shard)
        inputs = ask(lambda engine: engine.plan_inputs(query=query))
        return planned(inputs, ask, _timer(analyze)).as_dict() | behind

    return await node.work.do(work, limit_ms)


async def proposals_of(node: Node, query_id: str) -> list[dict[str, Any]]:
    """Other texts that would use less, of a query that stands. Raises as :func:`plan_of`."""
    await brought_back(node, query_id)
    shard = _shard_of(node, query_id)

    def work() -> list[dict[str, Any]]:
        one = _standing(node, shard, query_id)
        asked = node.directory.parse(text_of(one.registration))
        assert isinstance(asked, Query)
        return _proposed(node, shard, asked, one)

    return await node.work.do(work)


async def proposals_for(node: Node, query: Query, *, of_rows: bool = True) -> list[dict[str, Any]]:
    """Propose other texts that would use less, for a SELECT that is not registered. of_rows and errors: as of
    :func:`plan_for`.
    """
    shard = _beside(node, query) if of_rows else None

    def work() -> list[dict[str, Any]]:
        if shard is None:
            return _listed(_without_rows(node, query).proposals(sql=query.sql))
        return _proposed(node, shard, query, query)

    return await node.work.do(work)


def _proposed(node: Node, shard: int, query: Query, tolerates: Query | StandingQuery) -> list[dict[str, Any]]:
    def bind(sql: str) -> Query:
        statement = node.directory.parse(sql)
        if not isinstance(statement, Query):
            raise NotSupported("only a SELECT has a plan")
        return statement

    sources = node.shards.asker(shard)(lambda engine: engine.sources_at(query))
    catalogue = node.directory.catalogue
    return _listed(sources.proposals(query, query.sql, catalogue, bind, tolerates.tolerance))


def _listed(found: Sequence[Proposal]) -> list[dict[str, Any]]:
    return [proposal.as_dict() for proposal in found]


def _catching_up(node: Node, shard: int, sources: Sequence[str]) -> dict[str, Any]:
    """The sources that have not yet what their topics held, taken before the figures that lack it."""
    return {"catching_up": catching_up_dicts(node.shards[shard].view().catching_up(sources))}


def _timer(analyze: bool) -> Any:
    return perf_counter_ns if analyze else None


def _shard_of(node: Node, query_id: str) -> int:
    """Raises UnknownQuery, QueryNotRunning."""
    entry = standing(node, query_id)
    if entry.shard is None:
        raise QueryNotRunning(entry.state, entry.error)
    return entry.shard


def _standing(node: Node, shard: int, query_id: str) -> StandingQuery:
    """As its shard shows it. Raises UnknownQuery."""
    found = node.shards[shard].view().standing.get(query_id)
    if found is None:
        raise UnknownQuery
    return found


def _beside(node: Node, query: Query) -> int | None:
    """The shard on which all that a text reads stands side by side; None: there is none yet."""
    directory = node.directory
    shard = directory.home_of(query.sources)
    there = set(node.hosting.replicas_on(shard))
    there |= {name for name, one in directory.sources.items() if one.shard == shard}
    there |= {name for name, one in directory.views.items() if one.shard == shard}
    return shard if there.issuperset((*query.sources, *query.uses)) else None


def _without_rows(node: Node, query: Query) -> Engine:
    """An engine with what a text reads and no rows, so that nothing is timed."""
    engine, there = node.setup.engines.fresh(), node.directory
    referred = {name for one in query.sources for name in referred_to(there.sources[one].stream.constraints)}
    into = [name for name in query.uses if name not in there.views]
    for name in dict.fromkeys((*sorted(referred), *query.sources, *into)):
        engine.create(there.sources[name].sql)
    for view in sorted((there.views[name] for name in query.views), key=lambda one: len(one.uses)):
        engine.create(view.sql)
    for summary in query.summaries:
        engine.create(there.summaries[summary].sql)
    return engine
