"""Which queries share an entity: the inverse of what a query shares.

O(queries) for each question, in any thread; of queries that share the same ones it is looked up once.
"""

from __future__ import annotations

from broker.worker.entities import Reading
from engine.dataflow.buffers import settings as buffers


def readers_of(reading: Reading, id_: str) -> list[str]:
    """The ids of the queries that share an entity, in order. reading: one with queries."""
    number, _, name = id_.partition("/")
    found: list[str] = []
    for shard, queries in reading.standing.items():
        if id_ != buffers.MODULE and str(shard) != number:
            continue
        report = reading.reports[shard]
        shares: dict[tuple[str, ...], bool] = {}
        for query in queries.in_any_order():
            ids = report.entities_of(query)
            known = shares.get(ids)
            if known is None:
                known = shares[ids] = name in ids
            if known:
                found.append(query.query_id)
    return sorted(found)
