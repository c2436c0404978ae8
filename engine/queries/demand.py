"""What the queries over a source ask of the order of work: how much they weigh together, and how long its
rows may wait at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.model.maintenance import QueryOptions
from engine.standing.query import INACTIVE_WEIGHT, StandingQuery


@dataclass(frozen=True, slots=True)
class Demand:
    """weight: above 0. latency_ms_max: the least that a query asks for; None: none asks."""

    weight: float
    latency_ms_max: int | None


def demand_of(queries: Iterable[StandingQuery]) -> Demand:
    """Sums up what some queries demand. Where no query reads a source, the demand is that of a paused query.
    O(queries).
    """
    weight, latency_ms = 0.0, None
    for query in queries:
        weight += query.weight
        if query.paused:
            continue
        asked_ms = QueryOptions.of(query.registration.options).latency_ms_max
        if asked_ms is not None:
            latency_ms = asked_ms if latency_ms is None else min(latency_ms, asked_ms)
    return Demand(max(weight, INACTIVE_WEIGHT), latency_ms)
