"""Selections by promising tuples: the engine's summary and promising set of many queries, with grants by a
clock.

The engine visits a row once for all queries that want its cell and meets one grouped filter. The paper's
clock knows no such filter: a visit is charged with an evaluation for each of these queries, as SIMPLE
selection is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.stores.costs import PAPER, Costs
from benchmarks.stores.intervals import BoolMatrix, Intervals
from benchmarks.stores.promising import LIMITS, STORES, T1_MS, Store
from benchmarks.stores.sales import FloatArray, IntArray, Sales
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.operators.scan import ScanAt
from engine.promising.found import FoundRows
from engine.promising.group import GroupKey, Member
from engine.promising.selections import PromisingSelection

SETTINGS = SummarySettings(bucket_function="range", zone_length_max_ms=T1_MS)
"""Ordered buckets, so that an interval of values touches few of them."""
TRIES = 4
"""Units are granted so many times a step, since what they cost is known afterwards."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What queries found.

    found: bool[queries, rows]. since: int64[queries, rows], ms, when. left: float64[queries, seconds + 1],
    how many more the summaries estimated in the windows at each second.
    """

    found: BoolMatrix
    since: IntArray
    left: FloatArray
    visited: int
    evaluations: int


@dataclass(frozen=True, slots=True)
class Selecting:
    """Selections by promising tuples. priority: p of the preference. step_ms: event time of a step."""

    order: str = "desc"
    priority: str = "SUMMARY.Estimate.Count(item)"
    window_s: int | None = None
    costs: Costs = PAPER
    step_ms: int = 500

    def text(self, lo: int, hi: int) -> str:
        """One query."""
        window = "" if self.window_s is None else f" WINDOW {self.window_s} SECONDS"
        return (
            f"SELECT item, price FROM {STORES[0]} WHERE item >= {lo} AND item < {hi} "
            f"WITH PREFERENCE {self.order} {self.priority}{window}"
        )

    def run(self, sales: Sales, intervals: Intervals) -> Seen:
        """What each query finds of the rows of one store."""
        name = STORES[0]
        store = Store(sales, name, SummaryDefinition(f"{name}_items", name, "item", T1_MS, 4, 3, SETTINGS))
        group = self._group(store, intervals)
        found = np.zeros((len(intervals), len(sales)), np.bool_)
        since = np.zeros(found.shape, np.int64)
        seconds = np.zeros((len(intervals), int(sales.at[-1] / 1_000) + 2))
        left = 0.0
        for until, now_ms, free in self._steps(sales):
            at = {name: store.enter(until, now_ms)}
            group.arrive(at, now_ms)
            left = self._spend(group, at, left + free)
            for query in range(len(intervals)):
                rows = group.found(f"q{query}")
                assert isinstance(rows, FoundRows)
                new = rows.rows[~found[query, rows.rows]]
                found[query, new] = True
                since[query, new] = now_ms
            if self.window_s is not None:
                second = -(-now_ms // 1_000)
                seconds[:, second] = [group.estimate_left(f"q{query}") for query in range(len(intervals))]
        return Seen(found, since, seconds, group.counts.visited, evaluations(group))

    def _group(self, store: Store, intervals: Intervals) -> PromisingSelection:
        catalogue = {store.name: store.stream}
        summaries = {store.summary.definition.name: store.summary.definition}
        members = []
        for query, (lo, hi) in enumerate(zip(intervals.lo.tolist(), intervals.hi.tolist(), strict=True)):
            bound = parse(self.text(lo, hi), catalogue, LIMITS, summaries=summaries)
            assert isinstance(bound, Query)
            members.append(Member(f"q{query}", bound))
        key = GroupKey.of("selection", (store.stream.name,), None, members[0].preference)
        group = PromisingSelection(key, {store.summary.definition.name: store.summary})
        at = {store.stream.name: store.enter(0.0, 0)}
        for member in members:
            group.add(member, at)
        return group

    def _spend(self, group: PromisingSelection, at: Mapping[str, ScanAt], left: float) -> float:
        """Use so much of the clock; returns what is left of it, below 0 where the last visits took more."""
        for _ in range(TRIES):
            if left <= 0 or not group.left:
                break
            visited, evaluated = group.counts.visited, evaluations(group)
            each = evaluated / visited if visited else 1.0
            units = int(left / (self.costs.evaluation * max(1.0, each)))
            if not units:
                break
            group.spend(units, at)
            left -= self.costs.evaluation * (evaluations(group) - evaluated)
        return min(left, 0.0) if not group.left else left

    def _steps(self, sales: Sales) -> Iterator[tuple[float, int, float]]:
        """(rows come before this instant, NOW, units of the clock)."""
        gaps: FloatArray = np.diff(sales.at, append=sales.at[-1])
        free = np.maximum(0.0, gaps - self.costs.insertion["t4"])
        step = (sales.at // self.step_ms).astype(np.int64)
        ends = np.append(np.flatnonzero(np.diff(step)), len(sales) - 1)
        upto = np.diff(np.cumsum(free)[ends], prepend=0.0)
        for end, units in zip(ends.tolist(), upto.tolist(), strict=True):
            until = sales.at[end + 1] if end + 1 < len(sales) else sales.at[end] + 1
            yield until, int(sales.at[end]), units


def evaluations(group: PromisingSelection) -> int:
    """How often a row was visited for a query, over all queries."""
    return group.evaluations
