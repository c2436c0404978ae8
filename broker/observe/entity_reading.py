"""What was read of all entities of a node at one time, in pages and as statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.dataflow.buffers import settings as buffers
from engine.model.attributes import AttributeValue
from engine.queries.entities import EntityPart, Report, statistics
from engine.standing.queries import ShownQueries
from engine.standing.query import StandingQuery
from tureen.errors import UnknownQuery

QUERY = "query/"
"""What ids of queries begin with."""


@dataclass(frozen=True, slots=True)
class EntityReading:
    """What was found in the shards at about one time. at_s: on the monotonic clock. spent_ns: computing time
    of answers that queries were asked for, besides that of engines, by shard.

    What follows is empty where queries are left out. answers_ns: the same by query.
    """

    at_s: float
    reports: Mapping[int, Report]
    spent_ns: Mapping[int, float]
    standing: Mapping[int, ShownQueries]
    answers_ns: Mapping[int, Mapping[str, float]]

    @property
    def cpu_ns(self) -> float:
        """Computing time of all engines since they were made, and of answers."""
        return sum(self.spent_ns.values()) + sum(report.cpu_ns for report in self.reports.values())

    @property
    def memory_bytes(self) -> int:
        return sum(report.nbytes() for report in self.reports.values())

    def shared_by(self, name: str) -> set[str] | None:
        """The ids of the entities that a query shares; None where it does not stand."""
        for number, queries in self.standing.items():
            query = queries.get(name)
            if query is not None:
                shared = self.reports[number].entities_of(query)
                return {QUERY + name, *(part_id(number, each) for each in shared)}
        return None


def page_of(
    reading: EntityReading,
    kind: str | None,
    query: str | None,
    after: str,
    limit: int,
    *,
    queries: bool = True,
) -> dict[str, Any]:
    """A page of all entities by their ids, as :meth:`broker.observe.entities.Entities.listed` has it.

    Raises UnknownQuery. O(entities * log entities).
    """
    names = sorted(
        (id_, number, each) for id_, number, each in _chosen(reading, kind, query, queries) if id_ > after
    )
    cpu_ns = reading.cpu_ns
    shared = _SharedIds()
    page = [
        {
            "id": id_,
            "kind": each.kind if isinstance(each, EntityPart) else "query",
            "shard": number,
            "reads": shared.reads(number, reading.reports[number], each),
            "statistics": _statistics(reading, number, each, cpu_ns),
        }
        for id_, number, each in names[:limit]
    ]
    return {
        "entities": page,
        "next": names[limit - 1][0] if len(names) > limit else None,
        "total": {"cpu_ns": round(cpu_ns), "memory_bytes": reading.memory_bytes},
    }


def statistics_of(
    reading: EntityReading, kind: str | None, query: str | None, *, queries: bool = True
) -> dict[str, dict[str, AttributeValue]]:
    """Return what entities use, by id; which ones is chosen as for :func:`page_of`. Raises UnknownQuery."""
    cpu_ns = reading.cpu_ns
    return {
        id_: _statistics(reading, number, each, cpu_ns)
        for id_, number, each in _chosen(reading, kind, query, queries)
    }


def _statistics(
    reading: EntityReading, number: int, entity: EntityPart | StandingQuery, cpu_ns: float
) -> dict[str, AttributeValue]:
    if isinstance(entity, EntityPart):
        return statistics(entity.usage, entity.nbytes, entity.readers, cpu_ns) | entity.listed()
    answers_ns = reading.answers_ns[number].get(entity.query_id, 0.0)
    return query_statistics(reading.reports[number], entity, cpu_ns, answers_ns)


class _SharedIds:
    """What entities read, as lists have it; that of queries which share the same ones is one list."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}

    def reads(self, number: int, report: Report, entity: EntityPart | StandingQuery) -> list[str]:
        if isinstance(entity, EntityPart):
            return [part_id(number, each) for each in entity.reads]
        ids = report.entities_of(entity)
        key = number, id(ids)  # a report keeps what it has told of
        if key not in self._known:
            self._known[key] = [part_id(number, each) for each in ids]
        return self._known[key]


def part_id(shard: int, name: str) -> str:
    """The id, in this worker, of an entity of a shard's engine."""
    return name if name == buffers.MODULE else f"{shard}/{name}"


def query_statistics(
    report: Report, query: StandingQuery, cpu_ns: float, answers_ns: float
) -> dict[str, AttributeValue]:
    """What a query uses and pays. cpu_ns: of all. answers_ns: of its answers."""
    paid = report.paid(query)
    own_ns = paid.cpu_ns + answers_ns
    return {
        "cpu_ns": int(own_ns),
        "cpu_share": own_ns / cpu_ns if cpu_ns else 0.0,
        "answers_cpu_ns": int(answers_ns),
        "rows_in": paid.rows_in,
        "row_cost_ns": paid.cpu_ns / paid.rows_in if paid.rows_in else None,
        "memory_bytes": int(paid.nbytes),
        "queued_rows": paid.queued_rows,
        "behind_ms": paid.behind_ms,
    }


def _chosen(
    reading: EntityReading, kind: str | None, query: str | None, queries: bool
) -> Iterator[tuple[str, int, EntityPart | StandingQuery]]:
    """(id, shard, entity) of those of a kind, or that a query shares. Raises UnknownQuery."""
    wanted: set[str] | None = None
    if query is not None:
        wanted = reading.shared_by(query)
        if wanted is None:
            raise UnknownQuery()
    for id_, of, number, each in _all(reading, queries and kind in (None, "query")):
        if (kind is None or kind == of) and (wanted is None or id_ in wanted):
            yield id_, number, each


def _all(reading: EntityReading, queries: bool) -> Iterator[tuple[str, str, int, EntityPart | StandingQuery]]:
    """(id, kind, shard, entity)."""
    settings = False
    for number, report in reading.reports.items():
        for part in report.parts:
            if part.id == buffers.MODULE:
                if settings:
                    continue
                settings = True
            yield part_id(number, part.id), part.kind, number, part
        if queries and number in reading.standing:
            for query in reading.standing[number].in_any_order():
                yield QUERY + query.query_id, "query", number, query
