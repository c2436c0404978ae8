"""Which queries share an entity, the inverse of what a query shares; and which entities rows come to.

O(queries), or O(entities), for each question, in any thread.
"""

from __future__ import annotations

from collections.abc import Collection

from broker.observe.entity_reading import EntityReading, part_id
from engine.dataflow.buffers import settings as buffers


def readers_of(reading: EntityReading, id_: str) -> list[str]:
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


def reached_from(reading: EntityReading, source: str, among: Collection[str]) -> set[str]:
    """Find the entities, among some, that read the Query SteM of a source, themselves or by others."""
    found: set[str] = set()
    for number, report in reading.reports.items():
        readers: dict[str, list[str]] = {}
        for part in report.parts:
            for below in part.reads:
                readers.setdefault(below, []).append(part.id)
        reached: set[str] = set()
        left = [f"query-stem/{source}"]
        while left:
            for above in readers.get(left.pop(), ()):
                if above not in reached:
                    reached.add(above)
                    left.append(above)
        found.update(id_ for id_ in (part_id(number, each) for each in reached) if id_ in among)
    return found
